// `k6/experimental/csv`: CSV files, of which all users share the rows.
import { SharedArray } from "k6/data";
import { File } from "k6/experimental/fs";
import papaparse from "https://jslib.k6.io/papaparse/5.1.1/index.js";

/** The rows of a file, as the options choose them: lists of fields, or with `asObjects` objects by the names in the first row. */
function rowsOf(file, { delimiter = ",", skipFirstLine = false, fromLine = 0, toLine, asObjects = false }) {
    const { data } = papaparse.parse(file.text(), { delimiter, skipEmptyLines: true });
    const from = Math.max(fromLine, skipFirstLine || asObjects ? 1 : 0);
    const rows = data.slice(from, toLine === undefined ? undefined : toLine + 1);
    if (!asObjects) return rows;
    return rows.map((row) => Object.fromEntries(data[0].map((name, column) => [name, row[column] ?? ""])));
}

/** The shared rows of a file. */
function shared(file, options = {}) {
    if (!(file instanceof File)) throw new TypeError("csv wants a file that open() of k6/experimental/fs has opened");
    return new SharedArray(`csv ${file.path} ${JSON.stringify(options)}`, () => rowsOf(file, options));
}

/** All rows of a file, as a SharedArray. */
export async function parse(file, options) {
    return shared(file, options);
}

/** The rows of a file, one after another. */
export class Parser {
    #rows;
    #next = 0;

    constructor(file, options) {
        this.#rows = shared(file, options);
    }

    /** The next row, as `{ done, value }`. */
    async next() {
        if (this.#next >= this.#rows.length) return { done: true, value: undefined };
        this.#next += 1;
        return { done: false, value: this.#rows[this.#next - 1] };
    }
}

export default { parse, Parser };
