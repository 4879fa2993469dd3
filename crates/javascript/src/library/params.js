// What a script gives with a request: its Params, checked and in the form in which requests need it.
import { CookieJar } from "brunt:cookies";
import { settings } from "brunt:settings";
import { callbackOf } from "brunt:statuses";

/** Header fields that the client writes itself, as Go's does. */
const WRITTEN_BY_CLIENT = new Set(["Content-Length", "Transfer-Encoding", "Trailer"]);
const RESPONSE_TYPES = new Set(["text", "binary", "none"]);
const COMPRESSIONS = new Set(["gzip", "deflate", "br", "zstd"]);
const UNITS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1, us: 1e-3, "µs": 1e-3, ns: 1e-6 };

const canonicalNames = new Map();

/** A header field's name as Go writes it: `content-type` is `Content-Type`. */
export function canonicalName(name) {
    let canonical = canonicalNames.get(name);
    if (canonical === undefined) {
        const isToken = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name);
        canonical = isToken ? name.toLowerCase().replace(/(^|-)[a-z]/g, (first) => first.toUpperCase()) : name;
        if (canonicalNames.size >= 500) canonicalNames.clear();
        canonicalNames.set(name, canonical);
    }
    return canonical;
}

/** Milliseconds of a duration: a number of them, or a text such as `1m30s`. */
export function milliseconds(duration) {
    const text = String(duration).trim();
    if (/^\d+(\.\d+)?$/.test(text)) return Number(text);
    const parts = [...text.matchAll(/(\d+(?:\.\d*)?|\.\d+)(ms|us|µs|ns|d|h|m|s)/gy)];
    if (parts.length === 0 || parts.map(([part]) => part).join("") !== text) {
        throw new TypeError(`invalid timeout "${text}": give milliseconds or a duration such as "10s"`);
    }
    return parts.reduce((sum, [, number, unit]) => sum + Number(number) * UNITS[unit], 0);
}

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
            /** The callback of this request, `undefined` for the one that stands. */
            callback: undefined,
        });
    }

    /** @param given the script's object */
    static read(given) {
        const params = new Params();
        for (const name in given) {
            const value = given[name];
            if (value !== undefined && value !== null) READERS[name]?.(params, value);
            else if (value === null && name === "responseCallback") params.callback = null;
        }
        return params;
    }

    /** How the body of the answer is read: `text`, `binary` or `none`. */
    get reads() {
        return this.responseType ?? (settings().discards ? "none" : "text");
    }
}

/** Params of requests that have none. */
export const NO_PARAMS = new Params();

/** Takes each of the script's params. Those of other names mean nothing to k6 either. */
const READERS = {
    headers(params, headers) {
        for (const name in headers) setField(params.fields, name, String(headers[name]));
    },
    tags(params, tags) {
        params.tags = {};
        for (const name in tags) {
            const value = tags[name];
            if (value === undefined || value === null) continue;
            params.tags[name] = String(value);
            if (name !== "name") (params.otherTags ??= {})[name] = params.tags[name];
        }
    },
    cookies(params, cookies) {
        params.cookies = Object.keys(cookies).map((name) => {
            const given = cookies[name];
            if (given === null || typeof given !== "object") return { name, value: String(given), replace: false };
            return { name, value: String(given.value ?? ""), replace: Boolean(given.replace) };
        });
    },
    jar(params, jar) {
        if (!(jar instanceof CookieJar)) throw new TypeError("params.jar must be a jar: new http.CookieJar()");
        params.jar = jar;
    },
    timeout(params, timeout) {
        params.timeout = milliseconds(timeout);
    },
    redirects(params, redirects) {
        params.redirects = Math.trunc(Number(redirects));
    },
    auth(params, auth) {
        if (auth === "ntlm") throw new Error("params.auth: brunt has no ntlm; use basic or digest, or send the Authorization field yourself");
        params.auth = String(auth);
    },
    compression(params, compression) {
        params.compression = String(compression).split(",").map((kind) => kind.trim()).filter((kind) => kind !== "");
        const unknown = params.compression.find((kind) => !COMPRESSIONS.has(kind));
        if (unknown !== undefined) throw new TypeError(`unknown compression algorithm ${unknown}: use gzip, deflate, br or zstd`);
    },
    responseType(params, type) {
        if (!RESPONSE_TYPES.has(type)) throw new TypeError(`unknown responseType "${type}": use text, binary or none`);
        params.responseType = type;
    },
    responseCallback(params, callback) {
        params.callback = callbackOf(callback);
    },
};

/** Sets a field in a flat list, in place of one of the same name. */
export function setField(fields, name, value) {
    const canonical = canonicalName(name);
    if (WRITTEN_BY_CLIENT.has(canonical)) return;
    for (let at = 0; at < fields.length; at += 2) {
        if (fields[at] === canonical) {
            fields[at + 1] = value;
            return;
        }
    }
    fields.push(canonical, value);
}

/** The fields with another one. */
export function withField(fields, name, value) {
    const all = [];
    for (let at = 0; at < fields.length; at += 1) all.push(fields[at]);
    setField(all, name, value);
    return all;
}

/** The fields but for those of a name. */
export function withoutField(fields, name) {
    const kept = [];
    for (let at = 0; at < fields.length; at += 2) {
        if (fields[at] !== name) kept.push(fields[at], fields[at + 1]);
    }
    return kept;
}

/** The value of a field in a flat list, or `undefined`. */
export function fieldOf(fields, name) {
    for (let at = 0; at < fields.length; at += 2) {
        if (fields[at] === name) return fields[at + 1];
    }
    return undefined;
}
