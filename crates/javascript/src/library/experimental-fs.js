// `k6/experimental/fs`: files that are read piece by piece.
import * as native from "brunt:natives";
import { user } from "brunt:user";

/** From where `seek` counts. */
export const SeekMode = Object.freeze({ Start: 0, Current: 1, End: 2 });

/** A file that was opened in the init context. */
export class File {
    #bytes;
    #at = 0;

    constructor(path, bytes) {
        this.path = path;
        this.#bytes = new Uint8Array(bytes);
    }

    /** The file's name and size in bytes. */
    async stat() {
        return { name: this.path.split("/").at(-1), size: this.#bytes.length };
    }

    /** Fills an array with what comes next. Resolves to the number of bytes, or to null at the end. */
    async read(into) {
        if (!(into instanceof Uint8Array)) throw new TypeError("read() of a file wants a Uint8Array");
        if (this.#at >= this.#bytes.length) return null;
        const part = this.#bytes.subarray(this.#at, this.#at + into.length);
        into.set(part);
        this.#at += part.length;
        return part.length;
    }

    /** Moves to a place in the file. Resolves to it. */
    async seek(offset, whence = SeekMode.Start) {
        const from = [0, this.#at, this.#bytes.length][whence];
        const place = from + offset;
        if (!(place >= 0 && place <= this.#bytes.length)) throw new RangeError(`seek() of a file goes from 0 to ${this.#bytes.length}, not to ${place}`);
        this.#at = place;
        return place;
    }

    /** The whole file as text. */
    text() {
        return native.text(this.#bytes.buffer);
    }
}

/** Opens a file beside the script. */
export async function open(path) {
    if (user.running) throw new Error("open() is for the init context: open the file outside of the script's functions");
    return new File(String(path), native.readFile(String(path), true));
}

export default { open, SeekMode };
