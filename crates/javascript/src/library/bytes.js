// Texts and bytes, as k6's modules take and give them.
import * as native from "brunt:natives";

/** The bytes of a text (as UTF-8), an ArrayBuffer or a view of one, as an ArrayBuffer. */
export function bytesOf(data) {
    if (typeof data === "string") return native.utf8(data);
    if (data instanceof ArrayBuffer) return data;
    if (ArrayBuffer.isView(data)) return data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength);
    throw new TypeError(`a text or an ArrayBuffer is wanted, not ${data === null ? "null" : typeof data}`);
}

/** One ArrayBuffer of several. */
export function joined(buffers) {
    const length = buffers.reduce((sum, buffer) => sum + buffer.byteLength, 0);
    const all = new Uint8Array(length);
    let at = 0;
    for (const buffer of buffers) {
        all.set(new Uint8Array(buffer), at);
        at += buffer.byteLength;
    }
    return all.buffer;
}

/** Bytes as hexadecimal digits in lower case. */
export function hexOf(buffer) {
    let text = "";
    for (const byte of new Uint8Array(buffer)) text += (byte < 16 ? "0" : "") + byte.toString(16);
    return text;
}
