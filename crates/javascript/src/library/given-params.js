// Reads what a script gives with a request: https://grafana.com/docs/k6/latest/javascript-api/k6-http/params/
import { setField } from "brunt:fields";
import { CookieJar } from "brunt:jars";
import { Params } from "brunt:params";
import { callbackOf } from "brunt:statuses";

const RESPONSE_TYPES = new Set(["text", "binary", "none"]);
const COMPRESSIONS = new Set(["gzip", "deflate", "br", "zstd"]);
const UNITS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1, us: 1e-3, "µs": 1e-3, ns: 1e-6 };

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

/** The Params of a script's object. */
export function readParams(given) {
    const params = new Params();
    for (const name in given) {
        const value = given[name];
        if (value !== undefined && value !== null) READERS[name]?.(params, value);
        else if (value === null && name === "responseCallback") params.callback = null;
    }
    return params;
}

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
    throw(params, throws) {
        params.throws = Boolean(throws);
    },
    responseCallback(params, callback) {
        params.callback = callbackOf(callback);
    },
};
