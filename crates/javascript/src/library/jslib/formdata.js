// `https://jslib.k6.io/formdata`: multipart bodies (RFC 7578) whose parts keep their order.
import { bytesOf, joined } from "brunt:bytes";

const BOUNDARY_DIGITS = 24;
const BINARY = "application/octet-stream";

/** Parts of a form. Send `body()` with the header `multipart/form-data; boundary=` and `boundary`. */
export class FormData {
    constructor() {
        this.parts = [];
        this.boundary = "------------------------";
        for (let left = BOUNDARY_DIGITS; left > 0; left -= 1) this.boundary += Math.floor(Math.random() * 10);
    }

    /** Adds a field: a text, or a file as `{ data, filename, content_type }`. */
    append(name, value, filename) {
        const isFile = value !== null && typeof value === "object" && value.data !== undefined;
        const isBytes = value instanceof ArrayBuffer || ArrayBuffer.isView(value);
        if (isFile) this.parts.push({ name, data: value.data, filename: value.filename ?? filename, type: value.content_type || BINARY });
        else if (isBytes) this.parts.push({ name, data: value, filename, type: BINARY });
        else this.parts.push({ name, data: String(value), filename, type: undefined });
    }

    /** The body, as an ArrayBuffer. */
    body() {
        const pieces = [];
        for (const { name, data, filename, type } of this.parts) {
            const file = filename === undefined ? "" : `; filename="${escaped(filename)}"`;
            const kind = type === undefined ? "" : `\r\nContent-Type: ${type}`;
            pieces.push(`--${this.boundary}\r\nContent-Disposition: form-data; name="${escaped(name)}"${file}${kind}\r\n\r\n`, data, "\r\n");
        }
        pieces.push(`--${this.boundary}--\r\n`);
        return joined(pieces.map((piece) => bytesOf(piece)));
    }
}

/** A name inside quotes, as browsers write it. */
function escaped(name) {
    return String(name).replace(/\r/g, "%0D").replace(/\n/g, "%0A").replace(/"/g, "%22");
}

export default { FormData };
