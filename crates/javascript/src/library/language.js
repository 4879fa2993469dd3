// What k6's engine gives a script where ours gives another: the texts of stacks, and the order of texts.

/** Files whose frames say nothing to a script's author: the library, and texts that are parsed. */
const LIBRARY = /^(brunt:|k6\b|k6\/|jslib\/|<)/;

/** A stack's text: the error's, then a line for each frame of the script. */
function stackText(error, frames) {
    let text = String(error?.name ?? "Error");
    if (error?.message) text += `: ${error.message}`;
    for (const frame of frames) {
        const file = frame.getFileName();
        if (!file || LIBRARY.test(file)) continue;
        text += `\n    at ${frame.getFunctionName() || "<anonymous>"} (${file}:${frame.getLineNumber()}:${frame.getColumnNumber()})`;
    }
    return text;
}

const PLAIN = /^[\0-\x7f]*$/;

/** The letters of a text without accents and case. */
function letters(text) {
    return (PLAIN.test(text) ? text : text.normalize("NFD").replace(/\p{M}/gu, "")).toLowerCase();
}

/** Where a letter of ASCII stands: punctuation and signs, then digits, then letters, as in Unicode's collation. */
function place(text) {
    return text.replace(/[^\p{L}\p{N}]/gu, (sign) => `\0${sign}`);
}

function order(left, right) {
    return left < right ? -1 : left > right ? 1 : 0;
}

/** Compares texts by letters, then by accents, then by case with small letters first. */
function localeCompare(that) {
    if (this === undefined || this === null) throw new TypeError("String.prototype.localeCompare called on null or undefined");
    const [left, right] = [String(this), String(that)];
    if (left === right) return 0;
    const swapped = (text) => text.replace(/\p{L}/gu, (letter) => (letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase()));
    return order(place(letters(left)), place(letters(right)))
        || order(left.normalize("NFD").toLowerCase(), right.normalize("NFD").toLowerCase())
        || order(swapped(left), swapped(right));
}

Error.prepareStackTrace = stackText;
Object.defineProperty(String.prototype, "localeCompare", { value: localeCompare, writable: true, configurable: true, enumerable: false });
