// `k6/crypto`: digests, HMACs and random bytes.
import * as native from "brunt:natives";
import { bytesOf, hexOf, joined } from "brunt:bytes";

const ALGORITHMS = ["md4", "md5", "sha1", "sha256", "sha384", "sha512", "sha512_224", "sha512_256", "ripemd160"];
const OUTPUTS = {
    hex: hexOf,
    base64: (buffer) => native.base64(buffer, "std"),
    base64url: (buffer) => native.base64(buffer, "url"),
    base64rawurl: (buffer) => native.base64(buffer, "rawurl"),
    binary: (buffer) => buffer,
};

/** Bytes in the output encoding that the script names. */
function written(buffer, encoding) {
    if (!Object.hasOwn(OUTPUTS, encoding)) throw new Error(`unknown output encoding '${encoding}': use one of ${Object.keys(OUTPUTS).join(", ")}`);
    return OUTPUTS[encoding](buffer);
}

/** Refuses an algorithm that k6 does not have. */
function known(algorithm) {
    if (!ALGORITHMS.includes(algorithm)) throw new Error(`unknown algorithm '${algorithm}': use one of ${ALGORITHMS.join(", ")}`);
    return algorithm;
}

/** What is added bit by bit and digested at the end. */
class Hasher {
    #finish;
    #parts = [];

    constructor(finish) {
        this.#finish = finish;
    }

    /** Adds a text or bytes. */
    update(input) {
        this.#parts.push(bytesOf(input).slice(0));
        return this;
    }

    /** The digest of what was added so far. */
    digest(encoding) {
        this.#parts = [joined(this.#parts)];
        return written(this.#finish(this.#parts[0]), encoding);
    }
}

/** A digest of parts. */
export function createHash(algorithm) {
    const name = known(algorithm);
    return new Hasher((data) => native.digest(name, data));
}

/** An HMAC of parts. */
export function createHMAC(algorithm, secret) {
    const name = known(algorithm);
    const key = bytesOf(secret);
    return new Hasher((data) => native.hmac(name, key, data));
}

/** The HMAC of one text or of bytes. */
export function hmac(algorithm, secret, data, encoding) {
    return written(native.hmac(known(algorithm), bytesOf(secret), bytesOf(data)), encoding);
}

/** The digest function of one algorithm. */
function digester(algorithm) {
    return (data, encoding) => written(native.digest(algorithm, bytesOf(data)), encoding);
}

export const md4 = digester("md4");
export const md5 = digester("md5");
export const sha1 = digester("sha1");
export const sha256 = digester("sha256");
export const sha384 = digester("sha384");
export const sha512 = digester("sha512");
export const sha512_224 = digester("sha512_224");
export const sha512_256 = digester("sha512_256");
export const ripemd160 = digester("ripemd160");

/** Bytes as hexadecimal digits. */
export function hexEncode(data) {
    return hexOf(bytesOf(data));
}

/** So many random bytes. */
export function randomBytes(count) {
    if (!(count >= 1)) throw new Error(`randomBytes() wants a number of bytes, not ${count}`);
    return native.randomBytes(Math.trunc(count));
}

export default {
    createHash, createHMAC, hmac, md4, md5, sha1, sha256, sha384, sha512, sha512_224, sha512_256, ripemd160, hexEncode, randomBytes,
};
