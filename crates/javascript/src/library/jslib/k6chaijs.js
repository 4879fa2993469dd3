// `https://jslib.k6.io/k6chaijs`: Chai's `expect` (www.chaijs.com/api/bdd), each assertion of which is a check.
import { check, group } from "k6";
import * as native from "brunt:natives";
import { isEqual, shown } from "brunt:equality";

/** What the script may set as `chai.config`. */
export const config = { truncateMsgThreshold: 300, truncateVariableThreshold: 100, aggregateChecks: true, logFailures: false };

/** An assertion that did not hold. */
export class AssertionError extends Error {
    constructor(message) {
        super(message);
        this.name = "AssertionError";
    }
}

const WORDS = ["to", "be", "been", "is", "that", "which", "and", "has", "have", "with", "at", "of", "same", "but", "does", "still", "also"];
const FLAGS = ["not", "deep", "nested", "own", "ordered", "any", "all", "itself"];

/** A text of at most so many characters. */
function cut(text, length) {
    return text.length > length ? `${text.slice(0, Math.max(0, length - 3))}...` : text;
}

/** A value inside a message. */
function variable(value) {
    return cut(shown(value), config.truncateVariableThreshold);
}

/** Whether a value has the type that Chai names, in lower case. */
function typeOf(value) {
    if (value === null) return "null";
    return Object.prototype.toString.call(value).slice(8, -1).toLowerCase();
}

/** Whether two values are equal; with `deep`, with all that they hold. */
function isSame(state, left, right) {
    return state.deep ? isEqual(left, right) : left === right;
}

/** Judges an assertion: counts a check, and throws where it does not hold. `text` is what follows "expected …". */
function assert(state, holds, text, negated, actual) {
    const ok = state.not ? !holds : holds;
    const label = state.message ?? (config.aggregateChecks ? "${this}" : variable(state.value));
    const got = actual === undefined ? "" : ` got ${config.aggregateChecks ? "${actual}" : variable(actual)}`;
    const name = cut(`expected ${label} ${state.not ? negated ?? text.replace(/^to /, "to not ") : text}${got}`, config.truncateMsgThreshold);
    if (!ok && config.logFailures) native.print("warn", `${name} (it is ${variable(state.value)})`);
    if (!check(state.value, { [name.replaceAll("::", ": :")]: ok })) throw new AssertionError(name);
}

/** The keys of an assertion's arguments: names, a list of them, or an object's own. */
function keysOf(values, takesObject) {
    if (values.length > 1) return values;
    const [one] = values;
    if (Array.isArray(one)) return one;
    return takesObject && one !== null && typeof one === "object" ? Object.keys(one) : [one];
}

/** Values with a word before the last. */
function listed(values, word) {
    const texts = values.map((value) => variable(value));
    return texts.length < 2 ? texts.join("") : `${texts.slice(0, -1).join(", ")}, ${word} ${texts.at(-1)}`;
}

/** Whether one set of members has another: in its order, or each as often as it is. */
function hasMembers(state, actual, wanted) {
    if (!state.contains && actual.length !== wanted.length) return false;
    if (state.ordered) return wanted.every((member, index) => isSame(state, actual[index], member));
    const left = [...actual];
    return wanted.every((member) => {
        const at = left.findIndex((one) => isSame(state, one, member));
        if (at >= 0 && !state.contains) left.splice(at, 1);
        return at >= 0;
    });
}

/** The property at a path such as `a.b[1]`. */
function nestedOf(value, path) {
    const keys = String(path).match(/\\.|[^.[\]]+/g) ?? [];
    let at = value;
    for (const key of keys) {
        if (at === null || at === undefined || !(key in Object(at))) return { has: false };
        at = at[key];
    }
    return { has: true, value: at };
}

/** The property that an assertion is about. */
function propertyOf(state, name) {
    requireKind(state, state.value !== null && state.value !== undefined, "an object with properties");
    if (state.nested) return nestedOf(state.value, name);
    const has = state.own ? Object.hasOwn(Object(state.value), name) : name in Object(state.value);
    return { has, value: has ? state.value[name] : undefined };
}

/** Whether a value includes another: a part of a text, a member, or properties. */
function includes(state, part) {
    const { value } = state;
    if (typeof value === "string") return value.includes(part);
    if (value instanceof Map) return [...value.values()].some((one) => isSame(state, one, part));
    if (Array.isArray(value) || value instanceof Set) return [...value].some((one) => isSame(state, one, part));
    requireKind(state, Object(part) === part, "a text or a list");
    return Object.keys(part).every((key) => {
        const { has, value: own } = propertyOf(state, key);
        return has && isSame(state, own, part[key]);
    });
}

/** The length or size of a value. */
function sizeOf(value) {
    return value instanceof Map || value instanceof Set ? value.size : value?.length;
}

/** The length of a value, which Chai asserts to be there first. */
function assertedSize(state) {
    const name = state.value instanceof Map || state.value instanceof Set ? "size" : "length";
    assert({ ...state, not: false }, sizeOf(state.value) !== undefined, `to have property '${name}'`);
    return sizeOf(state.value);
}

/** Fails where a value is not of a kind that an assertion is about, whether or not it is negated. */
function requireKind(state, holds, kinds) {
    if (!holds) assert({ ...state, not: false }, false, `to be ${kinds}`);
}

/** Whether a value can be compared by size. */
function isNumeric(value) {
    return typeof value === "number" || typeof value === "bigint" || value instanceof Number || value instanceof Date;
}

/** The number that a comparison is about: the value, or its length where `lengthOf` stands before. */
function comparedOf(state, ...limits) {
    const value = state.lengthOf ? assertedSize(state) : state.value;
    const fits = (one) => isNumeric(one) && one instanceof Date === value instanceof Date;
    requireKind(state, [value, ...limits].every(fits), "a number or a date, as its limit is");
    return value;
}

/** Asserts the type of a value before an assertion that wants it. */
function assertType(state, type) {
    METHODS.a({ ...state, not: false }, type);
}

/** Compares a number, or a length where `lengthOf` stands before. */
function compare(words, holds) {
    return (state, limit) => {
        const value = comparedOf(state, limit);
        const what = state.lengthOf ? "to have a length " : "to be ";
        assert(state, holds(value, limit), `${what}${words} ${variable(limit)}`, undefined, state.lengthOf ? value : undefined);
    };
}

/** Whether a value holds nothing. */
function isEmpty(value, state) {
    requireKind(state, typeof value === "string" || (typeof value === "object" && value !== null), "a text, a list or an object");
    return (sizeOf(value) ?? Object.keys(value).length) === 0;
}

/** What a function changes of an object's property. */
function change(words, holds) {
    return (state, subject, name) => {
        const read = typeof subject === "function" ? subject : () => subject[name];
        const before = read();
        state.value();
        const delta = read() - before;
        state.delta = Math.abs(delta);
        assert(state, holds(read() !== before, delta), `to ${words} ${name === undefined ? "the value" : `.${name}`}`);
    };
}

/** Judges what a function throws: of a class, with a text, or that very error. */
function throws(state, kind, pattern) {
    assertType(state, "function");
    let thrown;
    let has = false;
    try {
        state.value();
    } catch (error) {
        thrown = error;
        has = true;
    }
    const type = typeof kind === "function" ? kind : undefined;
    const text = typeof kind === "string" || kind instanceof RegExp ? kind : pattern;
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    const said = text === undefined || (text instanceof RegExp ? text.test(message) : message.includes(text));
    const same = typeof kind !== "object" || kind instanceof RegExp || kind === thrown;
    const what = type ? type.name : text === undefined ? "an error" : `an error with ${shown(text)}`;
    assert(state, has && said && same && (type === undefined || thrown instanceof type), `to throw ${what}`);
}

/** Assertions that take arguments. */
const METHODS = {
    a(state, type) {
        assert(state, typeOf(state.value) === type.toLowerCase(), `to be ${/^[aeiou]/i.test(type) ? "an" : "a"} ${type}`);
    },
    equal(state, expected) {
        assert(state, isSame(state, state.value, expected), `to ${state.deep ? "deeply " : ""}equal ${variable(expected)}`);
    },
    eql(state, expected) {
        assert(state, isEqual(state.value, expected), `to deeply equal ${variable(expected)}`);
    },
    above: compare("above", (value, limit) => value > limit),
    least: compare("at least", (value, limit) => value >= limit),
    below: compare("below", (value, limit) => value < limit),
    most: compare("at most", (value, limit) => value <= limit),
    within(state, low, high) {
        const value = comparedOf(state, low, high);
        assert(state, value >= low && value <= high, `to ${state.lengthOf ? "have a length" : "be"} within ${low}..${high}`);
    },
    include(state, part) {
        assert(state, includes(state, part), `to ${state.deep ? "deep " : ""}include ${variable(part)}`);
    },
    string(state, part) {
        assertType(state, "string");
        assert(state, state.value.includes(part), `to contain ${variable(part)}`);
    },
    match(state, pattern) {
        assert(state, pattern.test(state.value), `to match ${pattern}`);
    },
    property(state, name, ...expected) {
        const { has, value } = propertyOf(state, name);
        const kind = `${state.deep ? "deep " : ""}${state.nested ? "nested " : state.own ? "own " : ""}property`;
        const holds = has && (expected.length === 0 || isSame(state, value, expected[0]));
        const of = expected.length > 0 ? ` of ${variable(expected[0])}` : "";
        assert(state, holds, `to have ${kind} ${variable(name)}${of}`);
        if (!state.not) state.value = value;
    },
    lengthOf(state, length) {
        const size = assertedSize(state);
        assert(state, size === length, `to have a length of ${variable(length)}`, undefined, size);
    },
    keys(state, ...values) {
        const isCollection = state.value instanceof Map || state.value instanceof Set;
        const wanted = keysOf(values, !isCollection);
        const own = isCollection ? [...state.value.keys()] : Object.keys(state.value);
        const isOwn = (key) => own.some((one) => isEqual(one, key) || String(one) === String(key));
        const found = wanted.filter(isOwn);
        const holds = state.any ? found.length > 0 : found.length === wanted.length && (state.contains || own.length === wanted.length);
        const names = `${wanted.length > 1 ? "keys" : "key"} ${listed(wanted, state.any ? "or" : "and")}`;
        assert(state, holds, `to ${state.contains ? "contain" : "have"} ${names}`);
    },
    members(state, wanted) {
        assertType(state, "array");
        const kind = state.contains ? "to be a superset of" : `to have the same ${state.ordered ? "ordered " : ""}members as`;
        assert(state, hasMembers(state, [...state.value], [...wanted]), `${kind} ${variable(wanted)}`);
    },
    oneOf(state, list) {
        const holds = state.contains ? list.some((one) => includes(state, one)) : list.some((one) => isSame(state, state.value, one));
        assert(state, holds, `to ${state.contains ? "contain" : "be"} one of ${variable(list)}`);
    },
    instanceof(state, kind) {
        assert(state, state.value instanceof kind, `to be an instance of ${kind.name}`);
    },
    respondTo(state, name) {
        requireKind(state, state.value !== null && state.value !== undefined, "an object");
        const owner = typeof state.value === "function" && !state.itself ? state.value.prototype : state.value;
        assert(state, typeof owner?.[name] === "function", `to respond to ${variable(name)}`);
    },
    satisfy(state, test) {
        assert(state, Boolean(test(state.value)), `to satisfy ${variable(test)}`);
    },
    closeTo(state, expected, delta) {
        assertType(state, "number");
        assert(state, Math.abs(state.value - expected) <= delta, `to be close to ${expected} +/- ${delta}`);
    },
    ownPropertyDescriptor(state, name) {
        assert(state, Object.getOwnPropertyDescriptor(Object(state.value), name) !== undefined, `to have own property descriptor for ${variable(name)}`);
    },
    throw: throws,
    change: change("change", (changed) => changed),
    increase: change("increase", (_, delta) => delta > 0),
    decrease: change("decrease", (_, delta) => delta < 0),
    by(state, delta) {
        assert(state, state.delta === delta, `to change by ${delta}`);
    },
    /** k6chaijs's own: a Response whose body is JSON. */
    validJsonBody(state) {
        let holds = true;
        try {
            holds = state.value.json() !== undefined;
        } catch {
            holds = false;
        }
        assert(state, holds, "to have a valid JSON body");
    },
};

/** Assertions that are properties. */
const PROPERTIES = {
    ok: [(value) => Boolean(value), "to be truthy", "to be falsy"],
    true: [(value) => value === true, "to be true"],
    false: [(value) => value === false, "to be false"],
    null: [(value) => value === null, "to be null"],
    undefined: [(value) => value === undefined, "to be undefined"],
    NaN: [(value) => Number.isNaN(value), "to be NaN"],
    exist: [(value) => value !== null && value !== undefined, "to exist"],
    empty: [isEmpty, "to be empty"],
    arguments: [(value) => typeOf(value) === "arguments", "to be arguments"],
    extensible: [(value) => Object.isExtensible(value), "to be extensible"],
    sealed: [(value) => Object.isSealed(value), "to be sealed"],
    frozen: [(value) => Object.isFrozen(value), "to be frozen"],
    finite: [(value) => Number.isFinite(value), "to be a finite number"],
};

/** Other names of assertions. */
const ALIASES = {
    an: "a", equals: "equal", eq: "equal", eqls: "eql", gt: "above", greaterThan: "above", gte: "least", greaterThanOrEqual: "least",
    lt: "below", lessThan: "below", lte: "most", lessThanOrEqual: "most", includes: "include", contain: "include", contains: "include",
    matches: "match", length: "lengthOf", key: "keys", instanceOf: "instanceof", throws: "throw", Throw: "throw", respondsTo: "respondTo",
    satisfies: "satisfy", approximately: "closeTo", changes: "change", increases: "increase", decreases: "decrease",
    haveOwnPropertyDescriptor: "ownPropertyDescriptor", Arguments: "arguments", exists: "exist",
};
/** Methods that may also stand in a chain without a call, and the flag that they then set. */
const CHAINABLE = { a: undefined, an: undefined, include: "contains", includes: "contains", contain: "contains", contains: "contains", lengthOf: "lengthOf", length: "lengthOf" };

const prototype = {};

/** A link of a chain: a function, so that `to.be.true()` may be called as well. */
function link(state, call) {
    const self = function (...values) {
        return call === undefined ? self : call(...values);
    };
    delete self.length;
    delete self.name;
    Object.setPrototypeOf(self, prototype);
    Object.defineProperty(self, STATE, { value: state });
    return self;
}

const STATE = Symbol("assertion");

/** Gives every link of a chain a property. */
function define(name, get) {
    Object.defineProperty(prototype, name, { get, configurable: true });
}

for (const word of WORDS) define(word, function () { return this; });
for (const flag of FLAGS) {
    define(flag, function () {
        const state = { ...this[STATE], [flag]: true };
        if (flag === "any") state.all = false;
        if (flag === "all") state.any = false;
        return link(state);
    });
}
for (const name of [...Object.keys(METHODS), ...Object.keys(ALIASES).filter((alias) => ALIASES[alias] in METHODS)]) {
    const method = METHODS[ALIASES[name] ?? name];
    const isChainable = Object.hasOwn(CHAINABLE, name);
    define(name, function () {
        const state = isChainable && CHAINABLE[name] ? { ...this[STATE], [CHAINABLE[name]]: true } : { ...this[STATE] };
        return link(state, (...values) => {
            const judged = { ...this[STATE] };
            method(judged, ...values);
            return link(judged);
        });
    });
}
for (const name of [...Object.keys(PROPERTIES), ...Object.keys(ALIASES).filter((alias) => ALIASES[alias] in PROPERTIES)]) {
    const [holds, text, negated] = PROPERTIES[ALIASES[name] ?? name];
    define(name, function () {
        assert(this[STATE], holds(this[STATE].value, this[STATE]), text, negated);
        return this;
    });
}

/** Asserts something of a value, which messages call `message`. */
export function expect(value, message) {
    return link({ value, message });
}

/** Fails. */
expect.fail = (message = "expect.fail()") => {
    check(null, { [message]: false });
    throw new AssertionError(message);
};

/** Runs a test case as a group. Returns whether all held; the first that does not, or an error, ends the case. */
export function describe(name, body) {
    return group(name, () => {
        try {
            body(expect);
            return true;
        } catch (error) {
            if (!(error instanceof AssertionError)) {
                native.print("error", `Exception raised in ${name}: ${error?.stack ?? error}`);
                check(null, { [`Exception raised "${error?.message ?? error}"`.replaceAll("::", ": :")]: false });
            }
            return false;
        }
    });
}

/** Takes a plugin of Chai's: `plugin(chai, utils)`. */
export function use() {
    throw new Error("k6chaijs: plugins of Chai are not taken");
}

const chai = { config, expect, describe, use, AssertionError };
export default chai;
