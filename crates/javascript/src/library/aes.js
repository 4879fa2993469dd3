// AES (FIPS 197) in the modes CBC, CTR (NIST SP 800-38A) and GCM (NIST SP 800-38D), on arrays of bytes.

const BLOCK = 16;
const SBOX = new Uint8Array(256);
const INVERSE = new Uint8Array(256);

/** A product in AES's field of 256 elements. */
function times(left, right) {
    let product = 0;
    for (let a = left, b = right; b > 0; b >>= 1) {
        if (b & 1) product ^= a;
        a = (a << 1) ^ (a & 0x80 ? 0x11b : 0);
    }
    return product;
}

// 3 generates the field and 0xf6 is its inverse, so that each element meets its own inverse on the way.
for (let element = 1, inverse = 1, step = 0; step < 255; step += 1) {
    const spread = inverse ^ (inverse << 1) ^ (inverse << 2) ^ (inverse << 3) ^ (inverse << 4);
    SBOX[element] = (spread ^ (spread >> 8) ^ 0x63) & 0xff;
    INVERSE[SBOX[element]] = element;
    element = times(element, 3);
    inverse = times(inverse, 0xf6);
}
SBOX[0] = 0x63;
INVERSE[0x63] = 0;

/** Products of all elements with one of them. */
function table(factor) {
    return Uint8Array.from({ length: 256 }, (_, element) => times(element, factor));
}

const [BY2, BY3, BY9, BY11, BY13, BY14] = [2, 3, 9, 11, 13, 14].map(table);

/** The round keys of a key of 16, 24 or 32 bytes. */
export function expanded(key) {
    const words = key.length / 4;
    const all = new Uint8Array(BLOCK * (words + 7));
    all.set(key);
    for (let at = key.length, constant = 1; at < all.length; at += 4) {
        let word = [...all.subarray(at - 4, at)];
        const index = at / 4;
        if (index % words === 0) {
            word = [word[1], word[2], word[3], word[0]].map((byte) => SBOX[byte]);
            word[0] ^= constant;
            constant = times(constant, 2);
        } else if (words > 6 && index % words === 4) word = word.map((byte) => SBOX[byte]);
        for (let byte = 0; byte < 4; byte += 1) all[at + byte] = all[at + byte - key.length] ^ word[byte];
    }
    return all;
}

/** Mixes a round key into a block. */
function addKey(block, keys, round) {
    for (let at = 0; at < BLOCK; at += 1) block[at] ^= keys[round * BLOCK + at];
}

/** Replaces each byte by a table, and moves row `r` of the block by `r` columns, or back. */
function substitute(block, bytes, direction) {
    const from = block.slice();
    for (let at = 0; at < BLOCK; at += 1) block[at] = bytes[from[(at + direction * 4 * (at % 4) + 64) % BLOCK]];
}

/** Mixes each column by four tables; `undefined` is the product with 1. */
function mix(block, tables) {
    const by = (table, byte) => (table === undefined ? byte : table[byte]);
    for (let column = 0; column < BLOCK; column += 4) {
        const [a, b, c, d] = block.subarray(column, column + 4);
        const [p, q, r, s] = tables;
        block[column] = by(p, a) ^ by(q, b) ^ by(r, c) ^ by(s, d);
        block[column + 1] = by(s, a) ^ by(p, b) ^ by(q, c) ^ by(r, d);
        block[column + 2] = by(r, a) ^ by(s, b) ^ by(p, c) ^ by(q, d);
        block[column + 3] = by(q, a) ^ by(r, b) ^ by(s, c) ^ by(p, d);
    }
}

/** Encrypts a block in place. */
function encryptBlock(block, keys) {
    const rounds = keys.length / BLOCK - 1;
    addKey(block, keys, 0);
    for (let round = 1; round <= rounds; round += 1) {
        substitute(block, SBOX, 1);
        if (round < rounds) mix(block, [BY2, BY3, undefined, undefined]);
        addKey(block, keys, round);
    }
    return block;
}

/** Decrypts a block in place. */
function decryptBlock(block, keys) {
    const rounds = keys.length / BLOCK - 1;
    for (let round = rounds; round > 0; round -= 1) {
        addKey(block, keys, round);
        if (round < rounds) mix(block, [BY14, BY11, BY13, BY9]);
        substitute(block, INVERSE, -1);
    }
    addKey(block, keys, 0);
    return block;
}

/** Encrypts in CBC, padded as PKCS #7 says. */
export function encryptCbc(keys, iv, data) {
    const padding = BLOCK - (data.length % BLOCK);
    const out = new Uint8Array(data.length + padding).fill(padding);
    out.set(data);
    let before = iv;
    for (let at = 0; at < out.length; at += BLOCK) {
        const block = out.subarray(at, at + BLOCK);
        for (let byte = 0; byte < BLOCK; byte += 1) block[byte] ^= before[byte];
        before = encryptBlock(block, keys);
    }
    return out;
}

/** Decrypts CBC; `undefined` where length or padding are not those of CBC. */
export function decryptCbc(keys, iv, data) {
    if (data.length === 0 || data.length % BLOCK !== 0) return undefined;
    const out = data.slice();
    for (let at = 0; at < out.length; at += BLOCK) {
        const block = decryptBlock(out.subarray(at, at + BLOCK), keys);
        const before = at === 0 ? iv : data.subarray(at - BLOCK, at);
        for (let byte = 0; byte < BLOCK; byte += 1) block[byte] ^= before[byte];
    }
    const padding = out[out.length - 1];
    const isPadded = padding > 0 && padding <= BLOCK && out.subarray(-padding).every((byte) => byte === padding);
    return isPadded ? out.slice(0, out.length - padding) : undefined;
}

/** Encrypts or decrypts in CTR: the last `bits` of the counter count, and wrap. */
export function applyCtr(keys, counter, bits, data) {
    const out = data.slice();
    const block = counter.slice();
    for (let at = 0; at < out.length; at += BLOCK) {
        const stream = encryptBlock(block.slice(), keys);
        for (let byte = 0; byte < BLOCK && at + byte < out.length; byte += 1) out[at + byte] ^= stream[byte];
        increment(block, bits);
    }
    return out;
}

/** Adds one to the last bits of a counter. */
function increment(block, bits) {
    for (let left = bits, at = BLOCK - 1; left > 0; left -= 8, at -= 1) {
        const mask = left >= 8 ? 0xff : (1 << left) - 1;
        const next = ((block[at] & mask) + 1) & mask;
        block[at] = (block[at] & ~mask) | next;
        if (next !== 0) return;
    }
}

/** A block as a number. */
function numberOf(block) {
    return block.reduce((number, byte) => (number << 8n) | BigInt(byte), 0n);
}

/** GHASH of data, padded with zeros to whole blocks, under a key. */
function hashed(key, parts) {
    let sum = 0n;
    for (const part of parts) {
        for (let at = 0; at < part.length; at += BLOCK) {
            const block = new Uint8Array(BLOCK);
            block.set(part.subarray(at, at + BLOCK));
            sum = product(sum ^ numberOf(block), key);
        }
    }
    return sum;
}

/** A product in GCM's field, whose bits stand in reverse. */
function product(left, right) {
    let sum = 0n;
    let power = right;
    for (let bit = 127n; bit >= 0n; bit -= 1n) {
        if ((left >> bit) & 1n) sum ^= power;
        power = (power >> 1n) ^ (power & 1n ? 0xe1n << 120n : 0n);
    }
    return sum;
}

/** The lengths of two parts, in bits, as a block. */
function lengths(first, second) {
    const view = new DataView(new ArrayBuffer(BLOCK));
    view.setBigUint64(0, BigInt(first.length * 8));
    view.setBigUint64(8, BigInt(second.length * 8));
    return new Uint8Array(view.buffer);
}

/** A number as a block. */
function blockOf(number) {
    return Uint8Array.from({ length: BLOCK }, (_, at) => Number((number >> BigInt(120 - 8 * at)) & 0xffn));
}

/** GCM's text by CTR, and the tag of the encrypted one. `encryptedOf(text)` says which of the two texts is encrypted. */
function gcm(keys, iv, extra, data, encryptedOf) {
    const key = numberOf(encryptBlock(new Uint8Array(BLOCK), keys));
    const start = iv.length === 12 ? Uint8Array.of(...iv, 0, 0, 0, 1) : blockOf(hashed(key, [iv, lengths([], iv)]));
    const next = start.slice();
    increment(next, 32);
    const text = applyCtr(keys, next, 32, data);
    const encrypted = encryptedOf(text);
    const tag = blockOf(hashed(key, [extra, encrypted, lengths(extra, encrypted)]) ^ numberOf(encryptBlock(start.slice(), keys)));
    return { text, tag };
}

/** Encrypts in GCM. Returns the text with its tag of so many bytes. */
export function encryptGcm(keys, iv, extra, size, data) {
    const { text, tag } = gcm(keys, iv, extra, data, (encrypted) => encrypted);
    const out = new Uint8Array(text.length + size);
    out.set(text);
    out.set(tag.subarray(0, size), text.length);
    return out;
}

/** Decrypts GCM; `undefined` where the tag is not that of the text. */
export function decryptGcm(keys, iv, extra, size, data) {
    if (data.length < size) return undefined;
    const encrypted = data.subarray(0, data.length - size);
    const { text, tag } = gcm(keys, iv, extra, encrypted, () => encrypted);
    return data.subarray(data.length - size).every((byte, at) => byte === tag[at]) ? text : undefined;
}
