// The global `crypto`.
import * as native from "brunt:natives";
import { subtle } from "brunt:subtle";

const MOST_BYTES = 65536;
const INTEGERS = [
    Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, BigInt64Array, BigUint64Array,
];

/** Fills an array of integers with random bits. */
function getRandomValues(array) {
    if (!INTEGERS.some((kind) => array instanceof kind)) throw new TypeError("crypto.getRandomValues() wants an array of integers");
    if (array.byteLength > MOST_BYTES) throw new RangeError(`crypto.getRandomValues() fills at most ${MOST_BYTES} bytes, not ${array.byteLength}`);
    new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(new Uint8Array(native.randomBytes(array.byteLength)));
    return array;
}

/** A random UUID of version 4 (RFC 9562, section 5.4). */
function randomUUID() {
    const bytes = new Uint8Array(native.randomBytes(16));
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** What a script finds as `crypto`. */
export const crypto = {
    getRandomValues,
    randomUUID,
    subtle,
};

export default crypto;
