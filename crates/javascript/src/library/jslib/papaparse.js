// `https://jslib.k6.io/papaparse`: CSV (RFC 4180) read and written, after Papa Parse's documentation.

const DELIMITERS = [",", "\t", "|", ";", "\x1e", "\x1f"];
const NUMBER = /^\s*-?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*$/i;
const TIME = /\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d(:[0-5]\d(\.\d+)?)?([+-][0-2]\d:[0-5]\d|Z)/;
/** Rows from which a delimiter is guessed. */
const GUESSED_ROWS = 10;
const BYTE_ORDER_MARK = "\ufeff";

/** Parses CSV. Returns `{ data, errors, meta }`. */
export function parse(input, options = {}) {
    const text = String(input).startsWith(BYTE_ORDER_MARK) ? String(input).slice(1) : String(input);
    if (options.download || options.worker) throw new Error("papaparse: only texts can be parsed: read the file by open()");
    const quote = options.quoteChar ?? '"';
    const newline = options.newline || guessNewline(text, quote);
    const errors = [];
    const delimiter = delimiterOf(options, text, newline, errors);
    const reader = { text, delimiter, newline, quote, escape: options.escapeChar ?? quote, comments: commentMark(options) };
    const { rows: all, cursor, truncated } = read(reader, limitOf(options), errors);
    const rows = kept(all, options);
    const fields = options.header ? headerOf(rows, options) : undefined;
    const data = rows.map((row, index) => valueOfRow(row, index, fields, options, errors));
    const meta = { delimiter, linebreak: newline, aborted: false, truncated, cursor };
    return deliver({ data, errors, meta: fields ? { ...meta, fields } : meta }, options);
}

/** Calls the script's `step` for each row and `complete` at the end. */
function deliver(result, options) {
    if (typeof options.step === "function") {
        let aborted = false;
        const parser = { abort: () => (aborted = true), pause() {}, resume() {} };
        for (const row of result.data) {
            options.step({ data: row, errors: [], meta: result.meta }, parser);
            if (aborted) break;
        }
        options.complete?.({ data: [], errors: result.errors, meta: { ...result.meta, aborted } });
        return undefined;
    }
    options.complete?.(result);
    return result;
}

/** What begins a line of comment. */
function commentMark({ comments }) {
    return comments === true ? "#" : typeof comments === "string" ? comments : undefined;
}

/** Rows to read: `preview` counts data rows, not the header. */
function limitOf({ preview, header }) {
    return preview > 0 ? preview + (header ? 1 : 0) : Infinity;
}

/** The line ends of a text, outside of quotes: the first one decides, and for a carriage return what follows most of them. */
function guessNewline(text, quote) {
    const start = text.slice(0, 1024 * 1024).replaceAll(new RegExp(`${escaped(quote)}[^]*?${escaped(quote)}`, "g"), "");
    const [first] = /[\r\n]/.exec(start) ?? ["\n"];
    if (first === "\n") return "\n";
    const lines = start.split("\r");
    return lines.filter((line) => line.startsWith("\n")).length >= lines.length / 2 ? "\r\n" : "\r";
}

/** A text inside a regular expression. */
function escaped(sign) {
    return sign.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** The delimiter that the script names, or that fits the first rows best. */
function delimiterOf(options, text, newline, errors) {
    if (typeof options.delimiter === "function") return options.delimiter(text);
    if (options.delimiter) return options.delimiter;
    const guess = guessDelimiter(options, text, newline);
    if (guess === undefined) {
        errors.push({ type: "Delimiter", code: "UndetectableDelimiter", message: "Unable to auto-detect delimiting character; defaulted to ','" });
    }
    return guess ?? ",";
}

/** The delimiter that gives the most fields a row, at least two, unless their number varies more than with one before. */
function guessDelimiter(options, text, newline) {
    let best;
    for (const delimiter of options.delimitersToGuess ?? DELIMITERS) {
        const reader = { text, delimiter, newline, quote: '"', escape: '"', comments: commentMark(options) };
        const counts = kept(read(reader, GUESSED_ROWS, []).rows, options).map((row) => row.length);
        const mean = counts.reduce((sum, count) => sum + count, 0) / counts.length;
        const variation = counts.reduce((sum, count, row) => sum + (row > 0 ? Math.abs(count - counts[row - 1]) : 0), 0);
        if (mean > 1.99 && (best === undefined || (variation <= best.variation && mean > best.mean))) best = { delimiter, variation, mean };
    }
    return best?.delimiter;
}

/** Splits a text into rows of fields. */
function read(reader, limit, errors) {
    const { text, newline, comments } = reader;
    const rows = [];
    let at = 0;
    while (at < text.length && rows.length < limit) {
        if (comments !== undefined && text.startsWith(comments, at)) {
            const end = text.indexOf(newline, at);
            at = end < 0 ? text.length : end + newline.length;
            if (end >= 0 && at === text.length) rows.push([""]);
            continue;
        }
        const row = [];
        at = readRow(reader, at, row, rows.length, errors);
        rows.push(row);
        if (at === text.length && text.endsWith(newline) && !reader.ended) rows.push([""]);
    }
    return { rows: rows.slice(0, limit), cursor: at, truncated: at < text.length };
}

/** Reads one row into `row`. Returns where the next begins. */
function readRow(reader, from, row, index, errors) {
    const { text, delimiter, newline, quote } = reader;
    let at = from;
    for (;;) {
        if (quote !== "" && text.startsWith(quote, at)) {
            at = readQuoted(reader, at + quote.length, row, index, errors);
        } else {
            const end = nextOf(text, at, delimiter, newline);
            row.push(text.slice(at, end));
            at = end;
        }
        if (at < text.length && text.startsWith(delimiter, at)) {
            at += delimiter.length;
            continue;
        }
        reader.ended = at >= text.length;
        return reader.ended ? text.length : at + newline.length;
    }
}

/** Where the next delimiter or line end stands. */
function nextOf(text, at, delimiter, newline) {
    const line = text.indexOf(newline, at);
    const end = line < 0 ? text.length : line;
    const next = text.indexOf(delimiter, at);
    return next < 0 || next > end ? end : next;
}

/** Reads a quoted field, of which the first quote is read. Returns where its delimiter stands. */
function readQuoted(reader, from, row, index, errors) {
    const { text, quote, escape } = reader;
    let at = from;
    for (;;) {
        at = text.indexOf(quote, at);
        if (at < 0) {
            errors.push({ type: "Quotes", code: "MissingQuotes", message: "Quoted field unterminated", row: index, index: from });
            row.push(text.slice(from));
            return text.length;
        }
        if (escape === quote && text.startsWith(quote, at + quote.length)) {
            at += 2 * quote.length;
        } else if (escape !== quote && at > from && text.startsWith(escape, at - escape.length)) {
            at += quote.length;
        } else {
            const end = at + quote.length;
            const next = fieldEnd(reader, end);
            if (next !== undefined) {
                row.push(unescaped(text.slice(from, at), quote, escape));
                return next;
            }
            errors.push({ type: "Quotes", code: "InvalidQuotes", message: "Trailing quote on quoted field is malformed", row: index, index: from });
            at = end;
        }
    }
}

/** Where the field ends whose closing quote stands before `at`: spaces may follow the quote. */
function fieldEnd({ text, delimiter, newline }, at) {
    const isEnd = (place) => text.startsWith(delimiter, place) || text.startsWith(newline, place);
    if (at >= text.length) return at;
    let rest = at;
    while (!isEnd(rest) && /\s/.test(text[rest] ?? "")) rest += 1;
    return isEnd(rest) ? rest : undefined;
}

/** A quoted field without its escapes. */
function unescaped(text, quote, escape) {
    return text.replaceAll(escape + quote, quote);
}

/** Takes the first row as names of fields. */
function headerOf(rows, { transformHeader }) {
    const names = rows.shift() ?? [];
    return transformHeader ? names.map((name, index) => transformHeader(name, index)) : names;
}

/** Rows without those that `skipEmptyLines` leaves out. */
function kept(rows, { skipEmptyLines }) {
    if (!skipEmptyLines) return rows;
    const isEmpty = skipEmptyLines === "greedy" ? (row) => row.join("").trim() === "" : (row) => row.length === 1 && row[0] === "";
    return rows.filter((row) => !isEmpty(row));
}

/** A row as a list, or as an object where there is a header. */
function valueOfRow(row, index, fields, options, errors) {
    const value = (text, field) => typed(options.transform ? options.transform(text, field) : text, field, options);
    if (!fields) return row.map((text, column) => value(text, column));
    const object = {};
    row.forEach((text, column) => {
        if (column < fields.length) object[fields[column]] = value(text, fields[column]);
        else (object.__parsed_extra ??= []).push(value(text, "__parsed_extra"));
    });
    if (row.length !== fields.length) errors.push(mismatch(row.length, fields.length, index));
    return object;
}

/** The error of a row with more or fewer fields than the header. */
function mismatch(found, wanted, row) {
    const many = found > wanted;
    const message = `Too ${many ? "many" : "few"} fields: expected ${wanted} fields but parsed ${found}`;
    return { type: "FieldMismatch", code: many ? "TooManyFields" : "TooFewFields", message, row };
}

/** A value as `dynamicTyping` wants it: numbers, booleans and times as such, nothing as null. */
function typed(value, field, { dynamicTyping }) {
    const chosen = typeof dynamicTyping === "object" ? dynamicTyping?.[field] : dynamicTyping;
    const wanted = typeof chosen === "function" ? chosen(field) : chosen;
    if (!wanted || typeof value !== "string") return value;
    if (value === "true" || value === "TRUE") return true;
    if (value === "false" || value === "FALSE") return false;
    if (value === "") return null;
    if (NUMBER.test(value) && Math.abs(Number(value)) < 2 ** 53) return Number(value);
    return TIME.test(value) ? new Date(value) : value;
}

/** Writes rows as CSV: a list of lists, a list of objects, or `{ fields, data }`. */
export function unparse(input, options = {}) {
    const given = typeof input === "string" ? JSON.parse(input) : input;
    const rows = Array.isArray(given) ? given : given.data ?? [];
    const isObject = rows.length > 0 && !Array.isArray(rows[0]) && typeof rows[0] === "object";
    const fields = given.fields ?? options.columns ?? (isObject ? Object.keys(rows[0]) : undefined);
    const lines = rows.map((row) => (Array.isArray(row) ? row : (fields ?? Object.keys(row)).map((field) => row[field])));
    const written = options.skipEmptyLines ? lines.filter((line) => kept([line.map(textOf)], options).length > 0) : lines;
    if (fields && options.header !== false) written.unshift(fields);
    return written.map((line) => line.map((value, column) => quoted(value, column, options)).join(options.delimiter ?? ",")).join(options.newline ?? "\r\n");
}

/** A value as a field. */
function textOf(value) {
    if (value === null || value === undefined) return "";
    return value instanceof Date ? value.toISOString() : typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A field in quotes, where it needs them or the script wants them. */
function quoted(value, column, options) {
    if (value === null || value === undefined) return "";
    const text = textOf(value);
    const quote = options.quoteChar ?? '"';
    const wanted = Array.isArray(options.quotes) ? options.quotes[column] : options.quotes;
    const needed = [quote, options.delimiter ?? ",", "\r", "\n", BYTE_ORDER_MARK].some((sign) => text.includes(sign)) || /^ | $/.test(text);
    return wanted || needed ? quote + text.replaceAll(quote, (options.escapeChar ?? quote) + quote) + quote : text;
}

export default { parse, unparse, BAD_DELIMITERS: ["\r", "\n", '"', BYTE_ORDER_MARK], RECORD_SEP: "\x1e", UNIT_SEP: "\x1f" };
