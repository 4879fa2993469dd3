// Functions of ECMAScript whose loops in C ask nobody whether the script goes on for too long, for what is no ordinary list. `bounded.rs` calls them.
const { isArray } = Array;
const { apply, construct, defineProperty } = Reflect;
const { filter } = Iterator.prototype;
const MOST = Number.MAX_SAFE_INTEGER;

function isObject(value) {
    return (typeof value === "object" && value !== null) || typeof value === "function";
}

function objectOf(value) {
    if (value === null || value === undefined) throw new TypeError("cannot convert to object");
    return Object(value);
}

function integer(value) {
    const number = +value;
    if (number !== number) return 0;
    return number === Infinity || number === -Infinity ? number : number - (number % 1);
}

function lengthOf(list) {
    const length = integer(list.length);
    return length <= 0 ? 0 : length < MOST ? length : MOST;
}

/** The place that an argument names, counted from the end if it is negative. */
function placeOf(value, length, absent) {
    const at = value === undefined ? absent : integer(value);
    return at < 0 ? (at + length > 0 ? at + length : 0) : at < length ? at : length;
}

function functionOf(value) {
    if (typeof value !== "function") throw new TypeError("not a function");
    return value;
}

function fits(length) {
    if (length > MOST) throw new TypeError("Array too long");
}

/** Defines an element, whatever setters there are. */
function put(list, at, value) {
    const element = { __proto__: null, value, writable: true, enumerable: true, configurable: true };
    if (!defineProperty(list, at, element)) throw new TypeError("cannot define an element of the list");
}

/** A new list of the list's kind. */
function alike(list, length) {
    let kind = isArray(list) ? list.constructor : undefined;
    if (isObject(kind)) kind = kind[Symbol.species] ?? undefined;
    if (kind !== undefined) return new kind(length);
    const made = [];
    made.length = length;
    return made;
}

function move(list, from, to) {
    if (from in list) list[to] = list[from];
    else delete list[to];
}

/** Moves `count` elements, from the last one on if their places overlap. */
function moveAll(list, from, to, count) {
    if (from < to) for (let i = count - 1; i >= 0; i--) move(list, from + i, to + i);
    else for (let i = 0; i < count; i++) move(list, from + i, to + i);
}

function isSpreadable(value) {
    if (!isObject(value)) return false;
    const says = value[Symbol.isConcatSpreadable];
    return says === undefined ? isArray(value) : !!says;
}

export function concat(...items) {
    const list = objectOf(this);
    const made = alike(list, 0);
    let at = 0;
    for (let i = -1; i < items.length; i++) {
        const item = i < 0 ? list : items[i];
        const spreads = isSpreadable(item);
        const length = spreads ? lengthOf(item) : 1;
        fits(at + length);
        if (!spreads) put(made, at, item);
        else for (let k = 0; k < length; k++) if (k in item) put(made, at + k, item[k]);
        at += length;
    }
    made.length = at;
    return made;
}

export function copyWithin(target, start, end) {
    const list = objectOf(this);
    const length = lengthOf(list);
    const to = placeOf(target, length, 0);
    const from = placeOf(start, length, 0);
    const behind = placeOf(end, length, length);
    moveAll(list, from, to, behind - from < length - to ? behind - from : length - to);
    return list;
}

export function fill(value, start, end) {
    const list = objectOf(this);
    const length = lengthOf(list);
    const from = placeOf(start, length, 0);
    const behind = placeOf(end, length, length);
    for (let i = from; i < behind; i++) list[i] = value;
    return list;
}

function flatten(made, at, list, length, depth, map, self) {
    for (let i = 0; i < length; i++) {
        if (!(i in list)) continue;
        const value = map ? apply(map, self, [list[i], i, list]) : list[i];
        if (depth > 0 && isArray(value)) {
            at = flatten(made, at, value, lengthOf(value), depth - 1);
        } else {
            fits(at + 1);
            put(made, at++, value);
        }
    }
    return at;
}

export function flat(depth) {
    const list = objectOf(this);
    const length = lengthOf(list);
    const levels = depth === undefined ? 1 : integer(depth);
    const made = alike(list, 0);
    flatten(made, 0, list, length, levels);
    return made;
}

export function flatMap(map, self) {
    const list = objectOf(this);
    const length = lengthOf(list);
    functionOf(map);
    const made = alike(list, 0);
    flatten(made, 0, list, length, 1, map, self);
    return made;
}

function joined(list, between, textOf) {
    const length = lengthOf(list);
    const separator = between === undefined ? "," : `${between}`;
    let text = "";
    for (let i = 0; i < length; i++) {
        if (i > 0) text += separator;
        const value = list[i];
        if (value !== null && value !== undefined) text += textOf(value);
    }
    return text;
}

export function join(separator) {
    return joined(objectOf(this), separator, (value) => `${value}`);
}

export function toLocaleString() {
    return joined(objectOf(this), ",", (value) => `${value.toLocaleString()}`);
}

export function reverse() {
    const list = objectOf(this);
    const length = lengthOf(list);
    for (let low = 0, high = length - 1; low < high; low++, high--) {
        const hasLow = low in list;
        const first = hasLow ? list[low] : undefined;
        const hasHigh = high in list;
        const last = hasHigh ? list[high] : undefined;
        if (hasHigh) list[low] = last;
        else if (hasLow) delete list[low];
        if (hasLow) list[high] = first;
        else if (hasHigh) delete list[high];
    }
    return list;
}

export function shift() {
    const list = objectOf(this);
    const length = lengthOf(list);
    if (length === 0) {
        list.length = 0;
        return undefined;
    }
    const first = list[0];
    moveAll(list, 1, 0, length - 1);
    delete list[length - 1];
    list.length = length - 1;
    return first;
}

/** The elements of a part of a list, in a new one. */
function part(list, from, count) {
    const made = alike(list, count);
    for (let i = 0; i < count; i++) if (from + i in list) put(made, i, list[from + i]);
    made.length = count;
    return made;
}

export function slice(start, end) {
    const list = objectOf(this);
    const length = lengthOf(list);
    const from = placeOf(start, length, 0);
    const behind = placeOf(end, length, length);
    return part(list, from, behind > from ? behind - from : 0);
}

export function splice(start, remove, ...items) {
    const list = objectOf(this);
    const length = lengthOf(list);
    const from = placeOf(start, length, 0);
    let removed = 0;
    if (arguments.length === 1) removed = length - from;
    else if (arguments.length > 1) removed = placeOf(integer(remove) < 0 ? 0 : remove, length - from, 0);
    const behind = length + items.length - removed;
    fits(behind);
    const made = part(list, from, removed);
    moveAll(list, from + removed, from + items.length, items.length === removed ? 0 : length - from - removed);
    for (let i = length - 1; i >= behind; i--) delete list[i];
    for (let i = 0; i < items.length; i++) list[from + i] = items[i];
    list.length = behind;
    return made;
}

export function unshift(...items) {
    const list = objectOf(this);
    const length = lengthOf(list);
    if (items.length > 0) {
        fits(length + items.length);
        moveAll(list, 0, items.length, length);
        for (let i = 0; i < items.length; i++) list[i] = items[i];
    }
    list.length = length + items.length;
    return list.length;
}

/** Sorts values by merging, so that equal ones stay in their order. */
function sorted(values, compare) {
    let [from, to] = [values, []];
    for (let width = 1; width < values.length; width *= 2) {
        for (let low = 0; low < values.length; low += 2 * width) {
            const middle = low + width < values.length ? low + width : values.length;
            const high = middle + width < values.length ? middle + width : values.length;
            let [left, right] = [low, middle];
            for (let at = low; at < high; at++) {
                const takesLeft = left < middle && (right >= high || !(compare(from[left], from[right]) > 0));
                to[at] = takesLeft ? from[left++] : from[right++];
            }
        }
        [from, to] = [to, from];
    }
    return from;
}

export function sort(compare) {
    if (compare !== undefined) functionOf(compare);
    const list = objectOf(this);
    const length = lengthOf(list);
    let [count, absent] = [0, 0];
    let values = [];
    for (let i = 0; i < length; i++) {
        if (!(i in list)) continue;
        const value = list[i];
        if (value === undefined) absent++;
        else values[count++] = compare ? value : { value, text: `${value}` };
    }
    values = sorted(values, compare ?? ((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0)));
    for (let i = 0; i < count; i++) list[i] = compare ? values[i] : values[i].value;
    for (let i = count; i < count + absent; i++) list[i] = undefined;
    for (let i = count + absent; i < length; i++) if (i in list) delete list[i];
    return list;
}

function constructs(value) {
    try {
        construct(Object, [], value);
        return true;
    } catch {
        return false;
    }
}

/** `Array.from` of another constructor. */
export function from(items, map, self) {
    if (map !== undefined) functionOf(map);
    const mapped = (value, at) => (map === undefined ? value : apply(map, self, [value, at]));
    const begins = items[Symbol.iterator] ?? undefined;
    const makes = constructs(this);
    let made;
    let at = 0;
    if (begins !== undefined) {
        made = makes ? new this() : [];
        for (const value of polled(apply(begins, items, []))) {
            put(made, at, mapped(value, at));
            at++;
        }
    } else {
        const list = objectOf(items);
        const length = lengthOf(list);
        made = makes ? new this(length) : alike(null, length);
        for (; at < length; at++) put(made, at, mapped(list[at], at));
    }
    made.length = at;
    return made;
}

/** `String.raw`. */
export function raw(texts, ...values) {
    const literals = objectOf(objectOf(texts).raw);
    const length = lengthOf(literals);
    let text = "";
    for (let i = 0; i < length; i++) {
        text += `${literals[i]}`;
        if (i + 1 < length && i < values.length) text += `${values[i]}`;
    }
    return text;
}

/** The names that a replacer of `JSON.stringify` lists. */
export function names(replacer) {
    if (!isArray(replacer)) return replacer;
    const length = lengthOf(replacer);
    const known = { __proto__: null };
    const names = [];
    for (let i = 0; i < length; i++) {
        const name = replacer[i];
        const isName = typeof name === "string" || typeof name === "number" || name instanceof String || name instanceof Number;
        const text = isName ? `${name}` : undefined;
        if (text === undefined || text in known) continue;
        known[text] = true;
        names[names.length] = text;
    }
    return names;
}

/** The same values, by steps in JavaScript. */
function* polled(iterator) {
    const { next } = iterator;
    let ended = false;
    try {
        for (;;) {
            const step = apply(next, iterator, []);
            if (!isObject(step)) throw new TypeError("iterator must return an object");
            ended = !!step.done;
            if (ended) return;
            yield step.value;
        }
    } finally {
        if (!ended) iterator.return?.();
    }
}

/** What a method of Set gets, as it wants it. */
export function setLike(other) {
    if (!isObject(other)) return other;
    const { size, has, keys } = other;
    return {
        size,
        has: typeof has === "function" ? (value) => apply(has, other, [value]) : has,
        keys: typeof keys === "function" ? () => polled(apply(keys, other, [])) : keys,
    };
}

/** `Iterator.prototype.drop`. */
export function drop(limit) {
    if (!isObject(this)) throw new TypeError("not an object");
    const number = +limit;
    let left = integer(number);
    if (number !== number || left < 0) throw new RangeError("must be positive");
    return apply(filter, this, [() => left-- <= 0]);
}

/** A list that is no array, for functions of typed arrays. */
export function source(list) {
    const get = (list, name) => {
        const value = list[name];
        return name === Symbol.iterator && value !== undefined && value !== null ? () => apply(value, list, []) : value;
    };
    return isObject(list) ? new Proxy(list, { get }) : list;
}

/** The order of a typed array's elements. */
export function order(compare) {
    return compare ?? ((a, b) => (a < b ? -1 : a > b ? 1 : a !== a ? (b !== b ? 0 : 1) : b !== b ? -1 : Object.is(a, b) ? 0 : Object.is(a, -0) ? -1 : 1));
}
