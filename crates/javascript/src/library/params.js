// What a script gives with a request: its Params, in the form in which requests need it. `brunt:given-params` reads them.
import { settings } from "brunt:settings";

/** The Params of a request. Those that the script does not give are the prototype's. */
export class Params {
    /** Header fields that the script gave, flat: name, value, … */
    fields = [];

    static {
        Object.assign(this.prototype, {
            /** Tags of the request's samples. */
            tags: undefined,
            /** The tags without `name`, if there are others. */
            otherTags: undefined,
            /** Cookies of this request: `[{ name, value, replace }, …]`. */
            cookies: undefined,
            jar: undefined,
            /** Milliseconds; 0 is the plan's. */
            timeout: 0,
            redirects: undefined,
            auth: "",
            compression: undefined,
            responseType: undefined,
            /** Whether a failure is thrown; `undefined` where the options say it. */
            throws: undefined,
            /** The callback of this request, `undefined` for the one that stands. */
            callback: undefined,
        });
    }

    /** How the body of the answer is read: `text`, `binary` or `none`. */
    get reads() {
        return this.responseType ?? (settings().discards ? "none" : "text");
    }
}

/** Params of requests that have none. */
export const NO_PARAMS = new Params();

/** The value of a field in a flat list, or `undefined`. */
export function fieldOf(fields, name) {
    for (let at = 0; at < fields.length; at += 2) {
        if (fields[at] === name) return fields[at + 1];
    }
    return undefined;
}
