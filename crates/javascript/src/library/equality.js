// Deep equality of values, and values as assertions show them.

/** Whether two values are equal with all that they hold: of the same type, with the same own properties. */
export function isEqual(left, right, pairs = []) {
    if (Object.is(left, right)) return true;
    if (typeof left !== "object" || typeof right !== "object" || left === null || right === null) return false;
    if (Object.prototype.toString.call(left) !== Object.prototype.toString.call(right)) return false;
    if (pairs.some(([one, other]) => one === left && other === right)) return true;
    return haveEqualParts(left, right, [...pairs, [left, right]]);
}

/** Whether two objects of the same type hold the same. */
function haveEqualParts(left, right, pairs) {
    if (left instanceof Date) return Object.is(left.getTime(), right.getTime());
    if (left instanceof RegExp) return String(left) === String(right);
    if (left instanceof Error) return left.name === right.name && left.message === right.message;
    if (left instanceof ArrayBuffer) return isEqual(new Uint8Array(left), new Uint8Array(right));
    if (left instanceof Map) {
        return left.size === right.size && [...left].every(([key, value]) => right.has(key) && isEqual(value, right.get(key), pairs));
    }
    if (left instanceof Set) {
        const isIn = (one) => right.has(one) || [...right].some((other) => isEqual(one, other, pairs));
        return left.size === right.size && [...left].every(isIn);
    }
    const keys = Object.keys(left);
    if (keys.length !== Object.keys(right).length || left.length !== right.length) return false;
    return keys.every((key) => Object.hasOwn(right, key) && isEqual(left[key], right[key], pairs));
}

/** A value as JavaScript writes it: texts in single quotes, objects with spaces inside their braces. */
export function shown(value, depth = 3) {
    if (typeof value === "string") return `'${value.replace(/\\/g, "\\\\").replace(/\n/g, "\\n").replace(/\r/g, "\\r").replace(/'/g, "\\'")}'`;
    if (typeof value === "function") return value.name ? `[Function ${value.name}]` : "[Function]";
    if (Object.is(value, -0)) return "-0";
    if (typeof value === "bigint") return `${value}n`;
    if (typeof value !== "object" || value === null) return String(value);
    if (value instanceof RegExp) return String(value);
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? "Invalid Date" : value.toISOString();
    if (value instanceof Error) return `[${value.name}: ${value.message}]`;
    return shownParts(value, depth);
}

/** A list or an object, to so many levels. */
function shownParts(value, depth) {
    if (Array.isArray(value)) {
        if (value.length === 0) return "[]";
        return depth === 0 ? "[ … ]" : `[ ${value.map((one) => shown(one, depth - 1)).join(", ")} ]`;
    }
    const keys = Object.keys(value);
    if (keys.length === 0) return "{}";
    if (depth === 0) return "{ … }";
    const name = (key) => (/^[A-Za-z_$][\w$]*$/.test(key) ? key : shown(key));
    return `{ ${keys.map((key) => `${name(key)}: ${shown(value[key], depth - 1)}`).join(", ")} }`;
}
