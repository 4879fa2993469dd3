// Values as `console` of k6 shows them: texts as they are, all else as JSON in which functions and circles have a word.

/** Values of `console`, in a line. */
export function allShown(values) {
    return values.map(shown).join(" ");
}

/** A value of `console`. */
function shown(value) {
    if (typeof value === "string") return value;
    if (value instanceof Error) return shownError(value);
    if (isBinary(value)) return shownBinary(value);
    if (typeof value === "function") return "[object Function]";
    if (typeof value !== "object" || value === null) return String(value);
    return hasBinary(value, new Set()) ? loose(value, new Set()) : (JSON.stringify(plain(value, [])) ?? String(value));
}

/** An error with the places in the script that led to it. */
function shownError(error) {
    const places = String(error.stack ?? "").split("\n").filter((line) => /^\s+at /.test(line));
    return [String(error), ...places].join("\n");
}

/** A value for JSON: functions as a word, and what holds itself as another. */
function plain(value, around) {
    if (typeof value === "function") return "[object Function]";
    if (typeof value === "bigint") return String(value);
    if (typeof value !== "object" || value === null) return value;
    if (around.includes(value)) return "[Circular]";
    if (typeof value.toJSON === "function") return plain(value.toJSON(), [...around, value]);
    const inner = [...around, value];
    if (Array.isArray(value)) return value.map((one) => plain(one, inner));
    return Object.fromEntries(Object.keys(value).map((key) => [key, plain(value[key], inner)]));
}

/** Whether a value is bytes, or an array over bytes. */
function isBinary(value) {
    return value instanceof ArrayBuffer || (ArrayBuffer.isView(value) && !(value instanceof DataView));
}

/** Whether a value holds bytes. */
function hasBinary(value, seen) {
    if (typeof value !== "object" || value === null || seen.has(value)) return false;
    seen.add(value);
    return isBinary(value) || Object.values(value).some((one) => hasBinary(one, seen));
}

/** Bytes, or an array over them. */
function shownBinary(value) {
    if (value instanceof ArrayBuffer) {
        const bytes = Array.from(new Uint8Array(value), (byte) => byte.toString(16).padStart(2, "0"));
        return `ArrayBuffer { [Uint8Contents]: <${bytes.join(" ")}>, byteLength: ${value.byteLength} }`;
    }
    return `${value.constructor.name}(${value.length}) [ ${Array.from(value, String).join(", ")} ]`;
}

/** A value that holds bytes, as JavaScript writes it. */
function loose(value, around) {
    if (isBinary(value)) return shownBinary(value);
    if (typeof value === "string") return JSON.stringify(value);
    if (typeof value !== "object" || value === null) return shown(value);
    if (around.has(value)) return "[Circular]";
    const inner = new Set(around).add(value);
    if (Array.isArray(value)) return `[ ${value.map((one) => loose(one, inner)).join(", ")} ]`;
    return `{ ${Object.keys(value).map((key) => `${key}: ${loose(value[key], inner)}`).join(", ")} }`;
}
