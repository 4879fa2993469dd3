// Statuses of answers: those that a script expects.
import { forgetPlaces } from "brunt:user";

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
    forgetPlaces();
}
