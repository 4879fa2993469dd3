// Bodies of requests: forms as Go's url.Values encodes them, and multipart bodies with files.
import * as native from "brunt:natives";
import { hexOf, joined } from "brunt:bytes";
import { FileData } from "brunt:hops";
import { queryEscape } from "brunt:url-rules";

export const FORM = "application/x-www-form-urlencoded";

/** Wraps data as a file of a multipart body. */
export function file(data, filename, contentType) {
    const name = filename === undefined || filename === null ? String(Date.now() * 1e6) : String(filename);
    bytesOfFile(data);
    return new FileData(data, name, contentType ? String(contentType) : "application/octet-stream");
}

/** The bytes of a file's data. */
function bytesOfFile(data) {
    if (typeof data === "string") return native.utf8(data);
    const bytes = Array.isArray(data) ? Uint8Array.from(data).buffer : binary(data);
    if (bytes === undefined) throw new TypeError(`a file's data must be a string, a list of bytes or an ArrayBuffer, not ${data === null ? "null" : typeof data}`);
    return bytes;
}

/** The bytes of a buffer or of a view of one, else `undefined`. */
function binary(value) {
    if (value instanceof ArrayBuffer) return value;
    if (!ArrayBuffer.isView(value)) return undefined;
    if (value.byteLength === value.buffer.byteLength) return value.buffer;
    return value.buffer.slice(value.byteOffset, value.byteOffset + value.byteLength);
}

/** A number as Go's `%v` writes it. */
function goNumber(number) {
    if (Number.isInteger(number) && Math.abs(number) < 1e21) return String(number);
    if (Number.isNaN(number)) return "NaN";
    if (!Number.isFinite(number)) return number > 0 ? "+Inf" : "-Inf";
    const size = Math.abs(number);
    if (size >= 1e-4 && size < 1e21) return String(number);
    return number.toExponential().replace(/e-(\d)$/, "e-0$1");
}

/** The text of a field's value. What has none is empty, as k6 documents it, and is named. */
function textOf(key, value) {
    if (value === null || value === undefined) return "";
    if (typeof value === "number") return goNumber(value);
    if (typeof value !== "object" && typeof value !== "function") return String(value);
    native.print("warn", `the form's field "${key}" holds nested data, which forms cannot: it is sent empty; send JSON.stringify(…) with a Content-Type of application/json`);
    return "";
}

/** The fields of a form in the order in which they are sent: `[[key, value], …]`, lists as repeated keys. */
function fieldsOf(form) {
    const fields = [];
    for (const key of sorted(form)) {
        const value = form[key];
        const values = Array.isArray(value) ? value : [value];
        for (const one of values) fields.push([key, one]);
    }
    return fields;
}

/** The keys of a form, sorted by their bytes as Go sorts them. */
function sorted(form) {
    const keys = Object.keys(form);
    return keys.some((key) => /[\ud800-\udfff]/.test(key)) ? keys.sort(compareCodePoints) : keys.sort();
}

/** Compares texts by code points, which is the order of their UTF-8 bytes. */
function compareCodePoints(one, other) {
    const left = Array.from(one, (character) => character.codePointAt(0));
    const right = Array.from(other, (character) => character.codePointAt(0));
    for (let at = 0; at < Math.min(left.length, right.length); at += 1) {
        if (left[at] !== right[at]) return left[at] - right[at];
    }
    return left.length - right.length;
}

/** Encodes an object as Go's `url.Values.Encode` does: sorted by key, spaces as `+`. */
export function encodeForm(form) {
    let text = "";
    for (const key of sorted(form)) {
        const value = form[key];
        const name = queryEscape(key);
        for (const one of Array.isArray(value) ? value : [value]) text += `${text === "" ? "" : "&"}${name}=${queryEscape(textOf(key, one))}`;
    }
    return text;
}

/** A boundary that no body has by chance: 60 hexadecimal digits, as Go makes them. */
function newBoundary() {
    return hexOf(native.randomBytes(30));
}

/** A text for a quoted parameter of a part's head. */
function quote(text) {
    return text.replace(/[\\"]/g, "\\$&").replace(/\r/g, "%0D").replace(/\n/g, "%0A");
}

/** Encodes an object that has files: `{ body, contentType }` (RFC 7578). */
function encodeMultipart(form) {
    const boundary = newBoundary();
    const parts = [];
    for (const [key, value] of fieldsOf(form)) {
        const head = `Content-Disposition: form-data; name="${quote(key)}"`;
        if (value instanceof FileData) {
            parts.push(native.utf8(`--${boundary}\r\n${head}; filename="${quote(value.filename)}"\r\nContent-Type: ${value.content_type}\r\n\r\n`));
            parts.push(bytesOfFile(value.data), native.utf8("\r\n"));
        } else {
            parts.push(native.utf8(`--${boundary}\r\n${head}\r\n\r\n${textOf(key, value)}\r\n`));
        }
    }
    parts.push(native.utf8(`--${boundary}--\r\n`));
    return { body: joined(parts), contentType: `multipart/form-data; boundary=${boundary}` };
}

/** Whether a form has a file, which makes it multipart. */
function hasFile(form) {
    return Object.values(form).some((value) => value instanceof FileData);
}

/** A request's body as it is sent: `{ body: string | ArrayBuffer | null, contentType: string | undefined }`. */
export function encodeBody(body) {
    if (body === null || body === undefined) return { body: null };
    if (typeof body === "string") return { body };
    const bytes = binary(body);
    if (bytes) return { body: bytes };
    if (body instanceof String) return { body: String(body) };
    if (typeof body !== "object" || Array.isArray(body)) {
        const kind = Array.isArray(body) ? "a list" : `a ${typeof body}`;
        throw new TypeError(`a request's body must be a string, an ArrayBuffer or an object of form fields, not ${kind}: send JSON.stringify(…)`);
    }
    if (hasFile(body)) return encodeMultipart(body);
    return { body: encodeForm(body), contentType: FORM };
}
