// Statuses of answers: their texts, and those that a script expects.

const TEXTS = {
    100: "Continue", 101: "Switching Protocols", 102: "Processing", 103: "Early Hints", 200: "OK", 201: "Created", 202: "Accepted",
    203: "Non-Authoritative Information", 204: "No Content", 205: "Reset Content", 206: "Partial Content", 207: "Multi-Status",
    208: "Already Reported", 226: "IM Used", 300: "Multiple Choices", 301: "Moved Permanently", 302: "Found", 303: "See Other",
    304: "Not Modified", 305: "Use Proxy", 307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized",
    402: "Payment Required", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable",
    407: "Proxy Authentication Required", 408: "Request Timeout", 409: "Conflict", 410: "Gone", 411: "Length Required",
    412: "Precondition Failed", 413: "Request Entity Too Large", 414: "Request URI Too Long", 415: "Unsupported Media Type",
    416: "Requested Range Not Satisfiable", 417: "Expectation Failed", 418: "I'm a teapot", 421: "Misdirected Request",
    422: "Unprocessable Entity", 423: "Locked", 424: "Failed Dependency", 425: "Too Early", 426: "Upgrade Required",
    428: "Precondition Required", 429: "Too Many Requests", 431: "Request Header Fields Too Large", 451: "Unavailable For Legal Reasons",
    500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout",
    505: "HTTP Version Not Supported", 506: "Variant Also Negotiates", 507: "Insufficient Storage", 508: "Loop Detected",
    510: "Not Extended", 511: "Network Authentication Required",
};

/** A status and its text, as Go shows them; empty where there was no answer. */
export function statusText(status) {
    return status === 0 ? "" : `${status} ${TEXTS[status] ?? ""}`.trimEnd();
}

/** Statuses that count as expected: ranges of numbers. */
class ExpectedStatuses {
    constructor(ranges) {
        this.ranges = ranges;
        /** The ranges as brunt writes them. */
        this.ok = ranges.map(([least, most]) => (least === most ? `${least}` : `${least}-${most}`)).join(",");
    }

    /** Whether a status is one of them. */
    includes(status) {
        return this.ranges.some(([least, most]) => status >= least && status <= most);
    }
}

/** What calls count as where the script judges none: every status is fine. */
export const ANY_STATUS = "100-999";

/** The callback of requests that have none of their own. */
export let standing = new ExpectedStatuses([[200, 399]]);

/** A range of statuses: a number, or an object with `min` and `max`. */
function rangeOf(status, at) {
    if (Number.isInteger(status)) return [status, status];
    if (Number.isInteger(status?.min) && Number.isInteger(status?.max)) return [status.min, status.max];
    throw new TypeError(`expectedStatuses(): argument ${at + 1} is neither a number nor an object such as {min: 200, max: 299}`);
}

/** Makes a callback that expects these statuses. */
export function expectedStatuses(...statuses) {
    if (statuses.length === 0) throw new TypeError("expectedStatuses() takes at least one status");
    return new ExpectedStatuses(statuses.map(rangeOf));
}

/** The callback of a script's, checked: what `expectedStatuses` made, or `null`. */
export function callbackOf(callback) {
    if (callback === null || callback instanceof ExpectedStatuses) return callback;
    throw new TypeError("a responseCallback must come from http.expectedStatuses(…), or be null");
}

/** Makes a callback the one of all requests that have none of their own. */
export function setResponseCallback(callback) {
    standing = callbackOf(callback ?? null);
}
