// GJSON paths on parsed JSON: https://github.com/tidwall/gjson/blob/master/SYNTAX.md

/** What a path gives where nothing is. */
const MISSING = Symbol("missing");
const OPENERS = { "(": ")", "[": "]", "{": "}" };

/** What `path` selects of a value; `undefined` where it selects nothing. */
export function select(value, path) {
    const found = at(value, path);
    return found === MISSING ? undefined : found;
}

/** What `path` selects of a value, or `MISSING`. */
function at(value, path) {
    const first = path[0];
    if (first === "@" && modifierOf(path)) return modified(value, path);
    if (first === "{" || first === "[") return multipath(value, path);
    if (first === "!") return literal(path);
    if (Array.isArray(value)) return first === "#" ? ofAll(value, path) : element(value, path);
    return value !== null && typeof value === "object" ? member(value, path) : MISSING;
}

/** Goes on with the rest of a path, which begins with its separator. */
function further(value, rest) {
    return rest === "" || value === MISSING ? value : at(value, rest.slice(1));
}

/** Where the component that begins `path` ends: at the first `.` or `|` that is not escaped. */
function componentEnd(path) {
    for (let end = 0; end < path.length; end += 1) {
        if (path[end] === "\\") end += 1;
        else if (path[end] === "." || path[end] === "|") return end;
    }
    return path.length;
}

/** Where what is quoted or in brackets at `start` ends: behind its closing character. */
function balancedEnd(path, start) {
    if (path[start] === '"') return quotedEnd(path, start);
    const closers = [];
    for (let end = start; end < path.length; end += 1) {
        if (path[end] === "\\") end += 1;
        else if (path[end] === '"') end = quotedEnd(path, end) - 1;
        else if (OPENERS[path[end]]) closers.push(OPENERS[path[end]]);
        else if (path[end] === closers.at(-1)) closers.pop();
        if (closers.length === 0) return end + 1;
    }
    return path.length;
}

/** Where a quoted text that begins at `start` ends: behind its quote. */
function quotedEnd(path, start) {
    for (let end = start + 1; end < path.length; end += 1) {
        if (path[end] === "\\") end += 1;
        else if (path[end] === '"') return end + 1;
    }
    return path.length;
}

/** An element of a list, by its index. */
function element(list, path) {
    const end = componentEnd(path);
    const index = path.slice(0, end);
    return /^\d+$/.test(index) && Number(index) < list.length ? further(list[Number(index)], path.slice(end)) : MISSING;
}

/** A member of an object: by its name, or the first whose name a pattern matches. */
function member(object, path) {
    const end = componentEnd(path);
    const component = path.slice(0, end);
    const key = /(?<!\\)(?:\\\\)*[*?]/.test(component)
        ? Object.keys(object).find((name) => matches(name, component))
        : component.replace(/\\(.)/g, "$1");
    return key !== undefined && Object.hasOwn(object, key) ? further(object[key], path.slice(end)) : MISSING;
}

/** Whether a text matches a pattern: `*` is any text, `?` any character, `\` escapes. */
function matches(text, pattern) {
    const source = pattern.replace(/\\(.)|[\s\S]/g, (part, escaped) => {
        if (escaped !== undefined) return escapeRegExp(escaped);
        return part === "*" ? "[\\s\\S]*" : part === "?" ? "[\\s\\S]" : escapeRegExp(part);
    });
    return new RegExp(`^${source}$`).test(text);
}

/** A text that a regular expression takes literally. */
function escapeRegExp(text) {
    return text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
}

/** `#` of a list: its length, all its elements, or those that a query finds. */
function ofAll(list, path) {
    if (path[1] !== "(" && path[1] !== "[") {
        if (path.length === 1 || path[1] === "|") return further(list.length, path.slice(1));
        return path[1] === "." ? ofEach(list, path.slice(1)) : MISSING;
    }
    const end = balancedEnd(path, 1);
    const query = queryOf(path.slice(2, end - 1));
    if (path[end] !== "#") {
        const found = list.find((one) => holds(query, one));
        return found === undefined ? MISSING : further(found, path.slice(end));
    }
    const found = list.filter((one) => holds(query, one));
    const rest = path.slice(end + 1);
    return rest[0] === "." ? ofEach(found, rest) : further(found, rest);
}

/** What the rest of a path, up to a `|`, selects of each element; then the rest behind it of that list. */
function ofEach(list, rest) {
    const end = pipeEnd(rest);
    const path = rest.slice(1, end);
    const found = list.map((one) => at(one, path)).filter((one) => one !== MISSING);
    return further(found, rest.slice(end));
}

/** Where the first `|` outside of brackets and quotes is. */
function pipeEnd(path) {
    for (let end = 0; end < path.length; end += 1) {
        if (path[end] === "\\") end += 1;
        else if (OPENERS[path[end]] || path[end] === '"') end = balancedEnd(path, end) - 1;
        else if (path[end] === "|") return end;
    }
    return path.length;
}

/** A query's parts: `{ path, operator, wanted }`; without an operator it asks whether the path exists. */
function queryOf(text) {
    for (let end = 0; end < text.length; end += 1) {
        if (text[end] === "\\") end += 1;
        else if (OPENERS[text[end]] || text[end] === '"') end = balancedEnd(text, end) - 1;
        else {
            const operator = /^(?:==|!=|<=|>=|!%|[=<>%])/.exec(text.slice(end))?.[0];
            if (operator) return { path: text.slice(0, end).trim(), operator, wanted: wantedOf(text.slice(end + operator.length).trim()) };
        }
    }
    return { path: text.trim() };
}

/** The value that a query compares with: `{ text }`, or `{ kind }` for `~true` and the like. */
function wantedOf(text) {
    if (text[0] === "~") return { kind: text.slice(1) };
    return { text: text[0] === '"' ? unquoted(text.slice(0, quotedEnd(text, 0))) : text };
}

/** The text between quotes. */
function unquoted(quoted) {
    try {
        return JSON.parse(quoted);
    } catch {
        return quoted.slice(1, -1).replace(/\\(.)/g, "$1");
    }
}

/** Whether a query holds for an element. */
function holds({ path, operator, wanted }, one) {
    let value = path === "" ? one : at(one, path);
    if (operator === undefined) return value !== MISSING;
    let text = wanted.text;
    if (wanted.kind !== undefined) {
        value = asTruth(value, wanted.kind);
        text = "true";
    }
    if (typeof value === "string") return compares(operator, value, text);
    if (typeof value === "number") return operator.includes("%") ? false : compares(operator, value, Number(text));
    if (typeof value === "boolean" || value === null) return compares(operator, rank(value), rank({ true: true, false: false, null: null }[text]));
    return false;
}

/** A value's place in the order of `null`, `false` and `true`; NaN where it has none. */
function rank(value) {
    return value === null ? 0 : value === false ? 1 : value === true ? 2 : NaN;
}

/** Whether a value is of a kind: true-ish, false-ish, null or there at all. */
function asTruth(value, kind) {
    if (kind === "*") return value !== MISSING;
    if (kind === "null") return value === MISSING || value === null;
    const text = typeof value === "string" ? value.toLowerCase() : undefined;
    const isTrue = value === true || (typeof value === "number" && value !== 0) || ["1", "true", "t", "y", "yes"].includes(text);
    const isFalse = value === MISSING || value === null || value === false || value === 0 || ["", "0", "false", "f", "n", "no"].includes(text);
    return kind === "true" ? isTrue : kind === "false" && isFalse;
}

/** Whether `value operator wanted` holds. */
function compares(operator, value, wanted) {
    switch (operator) {
        case "=":
        case "==": return value === wanted;
        case "!=": return value !== wanted;
        case "<": return value < wanted;
        case "<=": return value <= wanted;
        case ">": return value > wanted;
        case ">=": return value >= wanted;
        case "%": return typeof value === "string" && matches(value, String(wanted));
        default: return typeof value === "string" && !matches(value, String(wanted));
    }
}

/** The modifier that a path begins with: `{ name, argument, rest }`, or `undefined`. */
function modifierOf(path) {
    const name = /^@[^:.|]*/.exec(path)[0].slice(1);
    if (!Object.hasOwn(MODIFIERS, name)) return undefined;
    let end = name.length + 1;
    if (path[end] !== ":") return { name, argument: "", rest: path.slice(end) };
    const start = end + 1;
    if (OPENERS[path[start]] || path[start] === '"') end = balancedEnd(path, start);
    else end = path.includes("|", start) ? path.indexOf("|", start) : path.length;
    return { name, argument: path.slice(start, end), rest: path.slice(end) };
}

/** What the modifier that begins a path makes of a value, then the rest of the path. */
function modified(value, path) {
    const { name, argument, rest } = modifierOf(path);
    return further(MODIFIERS[name](value, argument), rest);
}

/** The argument of a modifier, if it is a JSON object. */
function optionsOf(argument) {
    try {
        return JSON.parse(argument) ?? {};
    } catch {
        return {};
    }
}

/** Whether a value is a JSON object. */
function isObject(value) {
    return value !== null && typeof value === "object" && !Array.isArray(value);
}

/** The value itself: layout does not outlive parsing. */
function same(value) {
    return value;
}

/** What each modifier makes of a value and its argument. */
const MODIFIERS = {
    this: same,
    valid: same,
    ugly: same,
    pretty: same,
    reverse: (value) => (Array.isArray(value) ? [...value].reverse() : isObject(value) ? Object.fromEntries(Object.entries(value).reverse()) : value),
    flatten: (value, argument) => (Array.isArray(value) ? value.flat(optionsOf(argument).deep ? Infinity : 1) : value),
    join: (value) => (Array.isArray(value) ? Object.assign({}, ...value.filter(isObject)) : value),
    keys: (value) => (isObject(value) ? Object.keys(value) : Array.isArray(value) ? value.map(() => null) : []),
    values: (value) => (Array.isArray(value) ? value : isObject(value) ? Object.values(value) : []),
    tostr: (value) => JSON.stringify(value),
    fromstr: (value) => {
        try {
            return JSON.parse(value);
        } catch {
            return MISSING;
        }
    },
    group: (value) => {
        if (!isObject(value)) return MISSING;
        const lists = Object.entries(value).filter(([, list]) => Array.isArray(list));
        const length = Math.max(0, ...lists.map(([, list]) => list.length));
        return Array.from({ length }, (_, index) => Object.fromEntries(lists.filter(([, list]) => index < list.length).map(([key, list]) => [key, list[index]])));
    },
    dig: (value, path) => dug(value, path, []),
};

/** What a path selects of a value and of all that is inside it. */
function dug(value, path, found) {
    const here = at(value, path);
    if (here !== MISSING) found.push(here);
    if (value !== null && typeof value === "object") for (const inner of Object.values(value)) dug(inner, path, found);
    return found;
}

/** Several paths together: `[a,b]` is a list of what they select, `{a,"name":b}` an object. */
function multipath(value, path) {
    const end = balancedEnd(path, 0);
    const isList = path[0] === "[";
    const made = isList ? [] : {};
    for (const part of partsOf(path.slice(1, end - 1))) {
        const name = part[0] === '"' ? quotedEnd(part, 0) : 0;
        const isNamed = name > 0 && part[name] === ":";
        const inner = isNamed ? part.slice(name + 1) : part;
        const found = at(value, inner);
        if (found === MISSING) continue;
        if (isList) made.push(found);
        else made[isNamed ? unquoted(part.slice(0, name)) : nameOf(inner)] = found;
    }
    return further(made, path.slice(end));
}

/** The parts of a multipath, at its commas outside of brackets and quotes. */
function partsOf(text) {
    const parts = [];
    let start = 0;
    for (let end = 0; end <= text.length; end += 1) {
        if (text[end] === "\\") end += 1;
        else if (OPENERS[text[end]] || text[end] === '"') end = balancedEnd(text, end) - 1;
        else if (end === text.length || text[end] === ",") {
            parts.push(text.slice(start, end).trim());
            start = end + 1;
        }
    }
    return parts.filter((part) => part !== "");
}

/** The name of what a path selects: its last component, or `_` where that is no name. */
function nameOf(path) {
    const last = /(?:^|[.|])((?:[^.|\\]|\\.)*)$/.exec(path)?.[1] ?? "";
    return /^[^@#{}[\]()!"]+$/.test(last) ? last.replace(/\\(.)/g, "$1") : "_";
}

/** A literal: `!` and JSON. */
function literal(path) {
    const isLong = OPENERS[path[1]] || path[1] === '"';
    const end = isLong ? balancedEnd(path, 1) : 1 + componentEnd(path.slice(1));
    try {
        return further(JSON.parse(path.slice(1, end)), path.slice(end));
    } catch {
        return MISSING;
    }
}
