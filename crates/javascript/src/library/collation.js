// The order of texts.

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
export function localeCompare(one, that) {
    if (one === undefined || one === null) throw new TypeError("String.prototype.localeCompare called on null or undefined");
    const [left, right] = [String(one), String(that)];
    if (left === right) return 0;
    const swapped = (text) => text.replace(/\p{L}/gu, (letter) => (letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase()));
    return order(place(letters(left)), place(letters(right)))
        || order(left.normalize("NFD").toLowerCase(), right.normalize("NFD").toLowerCase())
        || order(swapped(left), swapped(right));
}
