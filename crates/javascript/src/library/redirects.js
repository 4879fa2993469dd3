// Redirects, as Go's net/http follows them: https://pkg.go.dev/net/http#Client
import { isWithin } from "brunt:cookies";
import { fieldOf } from "brunt:params";

/** Statuses that send on, and whether the method and the body stay. */
const KEEPS = { 301: false, 302: false, 303: false, 307: true, 308: true };
/** Fields that go to the first host and hosts inside it only. */
const FOR_FIRST_HOST = new Set(["Authorization", "Www-Authenticate"]);

/** Whether an answer's status sends on. */
export function redirects(status) {
    return KEEPS[status] !== undefined;
}

/**
 * The request that a redirect asks for: `{ method, url, fields, keepsBody }`.
 * @param hop the request that was answered
 * @param fields the fields of the first request
 * @param first the URL of the first request
 */
export function redirected(hop, status, location, fields, first) {
    const from = hop.target.url;
    const url = from.resolve(location);
    const keepsBody = KEEPS[status];
    const method = keepsBody || hop.method === "HEAD" ? hop.method : "GET";
    return { method, url, fields: fieldsFor(url, from, location, fields, first), keepsBody };
}

/** The fields of the first request, without those that are not for this URL, and with its Referer. */
function fieldsFor(url, from, location, fields, first) {
    const isForFirst = isWithin(url.hostname, first.hostname);
    const kept = [];
    for (let at = 0; at < fields.length; at += 2) {
        const name = fields[at];
        const isForOthers = name === "Host" ? !/^[a-z][a-z0-9+.-]*:|^\/\//i.test(location) : isForFirst || !FOR_FIRST_HOST.has(name);
        if (isForOthers) kept.push(name, fields[at + 1]);
    }
    const staysSafe = !(from.scheme === "https" && url.scheme === "http");
    if (staysSafe && fieldOf(kept, "Referer") === undefined) kept.push("Referer", from.shown());
    return kept;
}
