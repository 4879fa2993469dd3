// The globals TextEncoder and TextDecoder, after the Encoding Standard (encoding.spec.whatwg.org).
import * as native from "brunt:natives";
import { bytesOf, joined } from "brunt:bytes";

/** Names of encodings, as scripts write them, and the standard's own. */
const ENCODINGS = {
    "utf-8": "utf-8", utf8: "utf-8", "unicode-1-1-utf-8": "utf-8",
    "utf-16le": "utf-16le", "utf-16": "utf-16le", "utf-16be": "utf-16be",
};
const BYTE_ORDER_MARK = "\ufeff";

/** Texts to UTF-8. */
export class TextEncoder {
    get encoding() {
        return "utf-8";
    }

    /** The bytes of a text. */
    encode(text = "") {
        return new Uint8Array(native.utf8(String(text).toWellFormed()));
    }

    /** Writes as many whole characters as there is room for. */
    encodeInto(text, target) {
        let read = 0;
        let written = 0;
        for (const sign of String(text).toWellFormed()) {
            const bytes = new Uint8Array(native.utf8(sign));
            if (written + bytes.length > target.length) break;
            target.set(bytes, written);
            written += bytes.length;
            read += sign.length;
        }
        return { read, written };
    }
}

/** Bytes to texts. */
export class TextDecoder {
    #held = new ArrayBuffer(0);
    #isContinued = false;

    constructor(label = "utf-8", { fatal = false, ignoreBOM = false } = {}) {
        const encoding = ENCODINGS[String(label).trim().toLowerCase()];
        if (encoding === undefined) throw new RangeError(`TextDecoder: unknown encoding '${label}'`);
        this.encoding = encoding;
        this.fatal = Boolean(fatal);
        this.ignoreBOM = Boolean(ignoreBOM);
    }

    /** The text of bytes. With `stream`, an unfinished character waits for the next call. */
    decode(input = new ArrayBuffer(0), { stream = false } = {}) {
        const all = joined([this.#held, bytesOf(input)]);
        const end = stream ? all.byteLength - unfinished(new Uint8Array(all), this.encoding) : all.byteLength;
        this.#held = all.slice(end);
        const text = this.#text(all.slice(0, end));
        const isFirst = !this.#isContinued;
        this.#isContinued = stream && (this.#isContinued || end > 0);
        return isFirst && !this.ignoreBOM && text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
    }

    /** The text of bytes; throws where `fatal` wants that. */
    #text(bytes) {
        const text = this.encoding === "utf-8" ? native.text(bytes) : utf16(bytes, this.encoding === "utf-16le");
        if (this.fatal && text.includes("\ufffd") && !isSame(this.#bytes(text), new Uint8Array(bytes))) {
            this.#held = new ArrayBuffer(0);
            throw new TypeError(`TextDecoder: not ${this.encoding}`);
        }
        return text;
    }

    /** The bytes that a text stands for. */
    #bytes(text) {
        if (this.encoding === "utf-8") return new Uint8Array(native.utf8(text));
        const view = new DataView(new ArrayBuffer(2 * text.length));
        for (let at = 0; at < text.length; at += 1) view.setUint16(2 * at, text.charCodeAt(at), this.encoding === "utf-16le");
        return new Uint8Array(view.buffer);
    }
}

/** Whether two arrays have the same bytes. */
function isSame(left, right) {
    return left.length === right.length && left.every((byte, at) => byte === right[at]);
}

/** The text of UTF-16; half a pair, or half a unit at the end, becomes U+FFFD. */
function utf16(bytes, isLittle) {
    const view = new DataView(bytes);
    let text = "";
    for (let at = 0; at + 1 < bytes.byteLength; at += 2) text += String.fromCharCode(view.getUint16(at, isLittle));
    return text.toWellFormed() + (bytes.byteLength % 2 === 1 ? "\ufffd" : "");
}

/** How many bytes at the end begin a character that is not whole. */
function unfinished(bytes, encoding) {
    if (encoding !== "utf-8") {
        const odd = bytes.length % 2;
        const high = bytes[bytes.length - odd - (encoding === "utf-16le" ? 1 : 2)];
        return odd + (high >= 0xd8 && high < 0xdc ? 2 : 0);
    }
    for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
        const byte = bytes[bytes.length - back];
        if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? back : 0;
        if (byte < 0x80) return 0;
    }
    return 0;
}
