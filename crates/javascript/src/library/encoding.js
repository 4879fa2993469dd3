// `k6/encoding`: base64 (RFC 4648).
import * as native from "brunt:natives";
import { bytesOf } from "brunt:bytes";

const KINDS = new Set(["std", "rawstd", "url", "rawurl"]);

/** The kind of base64 that the script names; the standard one for any other name. */
function kindOf(encoding) {
    return KINDS.has(encoding) ? encoding : "std";
}

/** Base64 of a text or of bytes: `std`, `url`, or without padding `rawstd`, `rawurl`. */
export function b64encode(input, encoding) {
    return native.base64(bytesOf(input), kindOf(encoding));
}

/** What base64 stands for: an ArrayBuffer, or with the format `s` a text. */
export function b64decode(input, encoding, format) {
    const buffer = native.unbase64(String(input), kindOf(encoding));
    return format === "s" ? native.text(buffer) : buffer;
}

export default { b64encode, b64decode };
