// `crypto.subtle`, as far as digests, HMAC, AES and PBKDF2 go (www.w3.org/TR/WebCryptoAPI).
import * as native from "brunt:natives";
import { applyCtr, decryptCbc, decryptGcm, encryptCbc, encryptGcm, expanded } from "brunt:aes";
import { bytesOf, joined } from "brunt:bytes";

/** Algorithms of digests: their native names, the bytes of a digest and of a block, and what JSON Web Keys call their HMAC. */
const DIGESTS = {
    "SHA-1": { native: "sha1", size: 20, block: 64, jwk: "HS1" },
    "SHA-256": { native: "sha256", size: 32, block: 64, jwk: "HS256" },
    "SHA-384": { native: "sha384", size: 48, block: 128, jwk: "HS384" },
    "SHA-512": { native: "sha512", size: 64, block: 128, jwk: "HS512" },
};
/** Modes of AES: `(round keys, parameters, data)` to data, or `undefined` where it is not theirs. */
const AES = {
    "AES-CBC": {
        encrypt: (keys, { iv }, data) => encryptCbc(keys, block("iv", iv), data),
        decrypt: (keys, { iv }, data) => decryptCbc(keys, block("iv", iv), data),
    },
    "AES-CTR": {
        encrypt: (keys, { counter, length }, data) => applyCtr(keys, block("counter", counter), length, data),
        decrypt: (keys, { counter, length }, data) => applyCtr(keys, block("counter", counter), length, data),
    },
    "AES-GCM": {
        encrypt: (keys, way, data) => encryptGcm(keys, array(way.iv), array(way.additionalData ?? ""), (way.tagLength ?? 128) / 8, data),
        decrypt: (keys, way, data) => decryptGcm(keys, array(way.iv), array(way.additionalData ?? ""), (way.tagLength ?? 128) / 8, data),
    },
};
const BYTES = Symbol("bytes");

/** Bytes as an array. */
function array(data) {
    return new Uint8Array(bytesOf(data));
}

/** A parameter of 16 bytes. */
function block(name, data) {
    const bytes = array(data);
    if (bytes.length !== 16) throw refused("OperationError", `crypto.subtle wants 16 bytes as ${name}, not ${bytes.length}`);
    return bytes;
}

/** An error with one of the DOM's names. */
function refused(name, message) {
    return Object.assign(new Error(message), { name });
}

/** The name of an algorithm, in upper case. */
function nameOf(algorithm) {
    return String(algorithm?.name ?? algorithm).toUpperCase();
}

/** The digest that an algorithm names or uses. */
function digestOf(algorithm) {
    const name = nameOf(algorithm);
    if (!Object.hasOwn(DIGESTS, name)) throw absent(algorithm);
    return { name, ...DIGESTS[name] };
}

/** What is thrown for an algorithm that is not there. */
function absent(algorithm) {
    return refused("NotSupportedError", `crypto.subtle has no ${algorithm?.name ?? algorithm}: brunt has SHA digests, HMAC, AES-CBC, AES-CTR, AES-GCM and PBKDF2`);
}

/** A key, whose bytes scripts do not see. */
class CryptoKey {
    constructor(algorithm, bytes, extractable, usages) {
        this.type = "secret";
        this.algorithm = algorithm;
        this.extractable = Boolean(extractable);
        this.usages = [...usages];
        Object.defineProperty(this, BYTES, { value: bytes });
    }
}

/** The bytes of a key that may be used in this way. */
function bytesFor(key, usage, algorithm) {
    if (!key.usages.includes(usage)) throw refused("InvalidAccessError", `the key is not for ${usage}: it is for ${key.usages.join(", ")}`);
    if (algorithm !== undefined && nameOf(algorithm) !== key.algorithm.name) throw refused("InvalidAccessError", `the key is one of ${key.algorithm.name}`);
    return key[BYTES];
}

/** A key of HMAC. */
function hmacKey({ hash, length }, bytes, extractable, usages) {
    return new CryptoKey({ name: "HMAC", hash: { name: digestOf(hash).name }, length: length ?? bytes.byteLength * 8 }, bytes, extractable, usages);
}

/** A key of AES. */
function aesKey(name, bytes, extractable, usages) {
    if (![16, 24, 32].includes(bytes.byteLength)) throw refused("DataError", `a key of ${name} has 16, 24 or 32 bytes, not ${bytes.byteLength}`);
    return new CryptoKey({ name, length: bytes.byteLength * 8 }, bytes, extractable, usages);
}

/** A key of HMAC or AES. */
function secretKey(algorithm, bytes, extractable, usages) {
    const name = nameOf(algorithm);
    if (name === "HMAC") return hmacKey(algorithm, bytes, extractable, usages);
    if (Object.hasOwn(AES, name)) return aesKey(name, bytes, extractable, usages);
    throw absent(algorithm);
}

/** The bits of a key to be made: of HMAC a block of its digest, where the script names no length. */
function lengthOf(algorithm) {
    return algorithm.length ?? (nameOf(algorithm) === "HMAC" ? digestOf(algorithm.hash).block * 8 : 0);
}

/** A digest of bytes. */
async function digest(algorithm, data) {
    return native.digest(digestOf(algorithm).native, bytesOf(data));
}

/** A new key of HMAC or AES. */
async function generateKey(algorithm, extractable, usages) {
    if (nameOf(algorithm) !== "HMAC" && !Object.hasOwn(AES, nameOf(algorithm))) throw absent(algorithm);
    const length = lengthOf(algorithm);
    return secretKey({ ...algorithm, length }, native.randomBytes(Math.ceil(length / 8)), extractable, usages);
}

/** A key of given bytes: `raw`, or as a JSON Web Key (RFC 7518, section 6.4). */
async function importKey(format, data, algorithm, extractable, usages) {
    if (format !== "raw" && format !== "jwk") throw refused("NotSupportedError", `crypto.subtle takes keys as raw or jwk, not ${format}`);
    const bytes = format === "raw" ? bytesOf(data).slice(0) : native.unbase64(data.k, "rawurl");
    if (nameOf(algorithm) === "PBKDF2") return new CryptoKey({ name: "PBKDF2" }, bytes, false, usages);
    return secretKey(algorithm, bytes, extractable, usages);
}

/** The bytes of a key, or its JSON Web Key. */
async function exportKey(format, key) {
    if (!key.extractable) throw refused("InvalidAccessError", "the key is not extractable");
    if (format === "raw") return key[BYTES].slice(0);
    if (format !== "jwk") throw refused("NotSupportedError", `crypto.subtle gives keys as raw or jwk, not ${format}`);
    const { name, hash, length } = key.algorithm;
    const alg = hash ? digestOf(hash).jwk : `A${length}${name.slice(4)}`;
    return { kty: "oct", k: native.base64(key[BYTES], "rawurl"), alg, ext: true, key_ops: key.usages };
}

/** The HMAC of bytes under a key. */
function mac(key, usage, algorithm, data) {
    if (nameOf(algorithm) !== "HMAC") throw absent(algorithm);
    const secret = bytesFor(key, usage, algorithm);
    return native.hmac(digestOf(key.algorithm.hash).native, secret, bytesOf(data));
}

/** The HMAC of bytes. */
async function sign(algorithm, key, data) {
    return mac(key, "sign", algorithm, data);
}

/** Whether an HMAC is that of bytes. */
async function verify(algorithm, key, signature, data) {
    const given = new Uint8Array(bytesOf(signature));
    const own = new Uint8Array(mac(key, "verify", algorithm, data));
    return own.length === given.length && own.every((byte, at) => byte === given[at]);
}

/** So many bits from a password by PBKDF2 (RFC 8018, section 5.2). */
function derived(algorithm, secret, length) {
    const { native: name, size } = digestOf(algorithm.hash);
    const salt = bytesOf(algorithm.salt);
    const blocks = [];
    for (let index = 1; blocks.length * size * 8 < length; index += 1) {
        const number = new DataView(new ArrayBuffer(4));
        number.setUint32(0, index);
        let round = native.hmac(name, secret, joined([salt, number.buffer]));
        const block = new Uint8Array(round.slice(0));
        for (let left = algorithm.iterations - 1; left > 0; left -= 1) {
            round = native.hmac(name, secret, round);
            new Uint8Array(round).forEach((byte, at) => (block[at] ^= byte));
        }
        blocks.push(block.buffer);
    }
    return joined(blocks).slice(0, length / 8);
}

/** Bits from a key. */
async function deriveBits(algorithm, key, length) {
    if (nameOf(algorithm) !== "PBKDF2") throw absent(algorithm);
    return derived(algorithm, bytesFor(key, "deriveBits", algorithm), length);
}

/** A key of HMAC or AES from another key. */
async function deriveKey(algorithm, key, wanted, extractable, usages) {
    if (nameOf(algorithm) !== "PBKDF2") throw absent(algorithm);
    const length = lengthOf(wanted);
    return secretKey({ ...wanted, length }, derived(algorithm, bytesFor(key, "deriveKey", algorithm), length), extractable, usages);
}

/** Encrypts or decrypts bytes by AES. */
function cipher(usage) {
    return async (algorithm, key, data) => {
        const mode = AES[nameOf(algorithm)];
        if (mode === undefined) throw absent(algorithm);
        const keys = expanded(array(bytesFor(key, usage, algorithm)));
        const made = mode[usage](keys, algorithm, array(data));
        if (made === undefined) throw refused("OperationError", `crypto.subtle cannot decrypt: the data or the key is another`);
        return made.buffer;
    };
}

/** What a script finds as `crypto.subtle`. */
export const subtle = { digest, generateKey, importKey, exportKey, sign, verify, deriveBits, deriveKey, encrypt: cipher("encrypt"), decrypt: cipher("decrypt") };
