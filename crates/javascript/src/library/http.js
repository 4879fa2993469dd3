// `k6/http`: https://grafana.com/docs/k6/latest/javascript-api/k6-http/
import { http, httpAll, httpBegin, log } from "brunt:native";
import { defer, handle, unhandle } from "brunt:loop";
import { aboutToWait, user } from "brunt:user";
import { CookieJar } from "brunt:cookies";
import { cookieJar as userJar, Exchange, Hop, NamedUrl } from "brunt:exchanges";
import { errorOf } from "brunt:failures";
import { FileData, file } from "brunt:forms";
import { NO_PARAMS } from "brunt:params";
import { Reading } from "brunt:readings";
import { redirects } from "brunt:redirects";
import { requestBy, Response } from "brunt:responses";
import { settings } from "brunt:settings";
import { expectedStatuses, setResponseCallback } from "brunt:statuses";
import { remember, targetOf } from "brunt:targets";
import { UrlError } from "brunt:urls";

/** GETs without Params, by URL: they are ready to be sent again. */
const plainGets = new Map();

/** Makes a request. Returns its Response. */
export function request(method, url, body, params) {
    needsUser("request");
    const made = exchangeOf(String(method).toUpperCase(), url, body, params);
    return made instanceof Response ? made : complete(made);
}

/** Makes a request beside the script. Returns a promise of its Response. */
export function asyncRequest(method, url, body, params) {
    const { promise, resolve, reject } = defer();
    try {
        needsUser("asyncRequest");
        const made = exchangeOf(String(method).toUpperCase(), url, body, params);
        if (made instanceof Response) resolve(made);
        else begin(made, resolve, reject);
    } catch (error) {
        reject(error);
    }
    return promise;
}

export function get(url, params) {
    if (params === undefined && typeof url === "string" && user.running) {
        const hop = plainGets.get(url);
        if (hop !== undefined) return getAgain(hop, url);
        keepPlainGet(url);
    }
    return request("GET", url, undefined, params);
}

export function head(url, params) {
    return request("HEAD", url, undefined, params);
}

export function post(url, body, params) {
    return request("POST", url, body, params);
}

export function put(url, body, params) {
    return request("PUT", url, body, params);
}

export function patch(url, body, params) {
    return request("PATCH", url, body, params);
}

export function del(url, body, params) {
    return request("DELETE", url, body, params);
}

export function options(url, body, params) {
    return request("OPTIONS", url, body, params);
}

export function query(url, body, params) {
    return request("QUERY", url, body, params);
}

/** Makes requests together. Returns their Responses: a list for a list, an object of the same names for an object. */
export function batch(requests) {
    needsUser("batch");
    if (requests === null || typeof requests !== "object") throw new TypeError("batch() takes a list or an object of requests");
    const made = Object.keys(requests).map((name) => [name, memberOf(requests[name], name)]);
    completeAll(made.map(([, exchange]) => exchange).filter((exchange) => exchange instanceof Exchange));
    const responses = Array.isArray(requests) ? [] : {};
    for (const [name, exchange] of made) responses[name] = exchange instanceof Response ? exchange : exchange.response;
    return responses;
}

/** The exchange of a member of a batch. */
function memberOf(member, name) {
    if (typeof member === "string" || member instanceof NamedUrl) return exchangeOf("GET", member);
    if (Array.isArray(member)) return exchangeOf(String(member[0]).toUpperCase(), member[1], member[2], member[3]);
    if (member === null || typeof member !== "object") throw new TypeError(`batch(): the request ${name} is neither a URL nor a list nor an object`);
    return exchangeOf(String(member.method ?? "GET").toUpperCase(), member.url, member.body, member.params);
}

/** Makes a URL whose requests share a name, whatever its parts are. */
export function url(parts, ...values) {
    if (typeof parts === "string") return new NamedUrl(parts, parts);
    return new NamedUrl(String.raw({ raw: parts }, ...values), parts.join("${}"));
}

/** The jar of the user. */
export function cookieJar() {
    needsUser("cookieJar");
    return userJar();
}

/** Refuses what takes a running user. */
function needsUser(name) {
    if (!user.running) throw new Error(`http.${name}() is not for the init context: call it in setup(), in a scenario's function or in teardown()`);
}

/** The exchange of a request, or the Response that says why there can be none. */
function exchangeOf(method, target, body, params) {
    try {
        return Exchange.of(method, target, body, params);
    } catch (error) {
        if (!(error instanceof UrlError) || settings().throws) throw error;
        return unsent(method, String(target), error);
    }
}

/** The Response of a request that could not be made. */
function unsent(method, text, { code, message }) {
    log("warn", `Request Failed: ${method} ${text}: ${message}`);
    const hop = { label: 0, method, fields: [], body: null, params: NO_PARAMS, target: { shown: text } };
    return new Response(hop, { ticket: 0, status: 0, flags: 0 }, undefined, [code, code === 1020 ? `invalid URL: ${message}` : message]);
}

/** The parts of an answer; none where the request failed. */
function readingOf(answer, discards) {
    return answer.error === undefined ? Reading.of(answer, discards) : undefined;
}

/** Makes an exchange's requests, one after the other. */
function complete(exchange) {
    for (;;) {
        const call = exchange.call();
        aboutToWait();
        const answer = http(...call);
        if (!exchange.settle(answer, readingOf(answer, call[6] === 1))) return exchange.response;
    }
}

/** Remembers a GET without Params, where it is sent as it stands. */
function keepPlainGet(text) {
    if (settings().measures || settings().debug || settings().userAgent !== undefined) return;
    try {
        const target = targetOf(text);
        if (target.url.userInfo === undefined) remember(plainGets, text, new Hop("GET", target, [], null, NO_PARAMS, undefined));
    } catch {
        // request() says what is wrong with the URL.
    }
}

/** Makes a GET that was made before. */
function getAgain(hop, text) {
    if (!CookieJar.isEmpty(userJar())) return request("GET", text);
    hop.takeLabel();
    aboutToWait();
    const answer = http(hop.label, 0, "GET", hop.target.sent, hop.fields, null, hop.flags);
    const reading = readingOf(answer, hop.discards);
    if (answer.error === undefined && (answer.flags & 1) === 0 && !redirects(answer.status)) return new Response(hop, answer, reading, errorOf(answer));
    const exchange = new Exchange(hop);
    return exchange.settle(answer, reading) ? complete(exchange) : exchange.response;
}

/** Sends an exchange's next request beside the script. */
function begin(exchange, resolve, reject) {
    const call = exchange.call();
    aboutToWait();
    const id = httpBegin(...call);
    handle(id, (event) => {
        unhandle(id);
        try {
            const reading = event.answer.error === undefined ? Reading.ofEvent(event, call[6] === 1) : undefined;
            if (exchange.settle(event.answer, reading)) begin(exchange, resolve, reject);
            else resolve(exchange.response);
        } catch (error) {
            reject(error);
        }
    });
}

/** Makes the requests of exchanges together, in rounds that keep to the limits of batches. */
function completeAll(exchanges) {
    let waiting = exchanges;
    while (waiting.length > 0) {
        const { round, later } = roundOf(waiting);
        const calls = round.map((exchange) => exchange.call());
        aboutToWait();
        const answers = httpAll(calls);
        // All are read while the client has them: an exchange that goes on waits, and the others' answers are forgotten.
        const readings = answers.map((answer, at) => readingOf(answer, calls[at][6] === 1));
        const again = round.filter((exchange, at) => exchange.settle(answers[at], readings[at]));
        waiting = [...again, ...later];
    }
}

/** The first exchanges that may be under way together, and those after them. */
function roundOf(exchanges) {
    const { batch: most, batchPerHost: mostPerHost } = settings();
    const hosts = new Map();
    const round = [];
    const later = [];
    for (const exchange of exchanges) {
        const count = hosts.get(exchange.host) ?? 0;
        const fits = (most <= 0 || round.length < most) && (mostPerHost <= 0 || count < mostPerHost);
        if (fits) hosts.set(exchange.host, count + 1);
        (fits ? round : later).push(exchange);
    }
    return { round, later };
}

requestBy(request);

export const TLS_1_0 = "tls1.0";
export const TLS_1_1 = "tls1.1";
export const TLS_1_2 = "tls1.2";
export const TLS_1_3 = "tls1.3";
export const OCSP_STATUS_GOOD = "good";
export const OCSP_STATUS_REVOKED = "revoked";
export const OCSP_STATUS_SERVER_FAILED = "server_failed";
export const OCSP_STATUS_UNKNOWN = "unknown";
export const OCSP_REASON_UNSPECIFIED = "unspecified";
export const OCSP_REASON_KEY_COMPROMISE = "key_compromise";
export const OCSP_REASON_CA_COMPROMISE = "ca_compromise";
export const OCSP_REASON_AFFILIATION_CHANGED = "affiliation_changed";
export const OCSP_REASON_SUPERSEDED = "superseded";
export const OCSP_REASON_CESSATION_OF_OPERATION = "cessation_of_operation";
export const OCSP_REASON_CERTIFICATE_HOLD = "certificate_hold";
export const OCSP_REASON_REMOVE_FROM_CRL = "remove_from_crl";
export const OCSP_REASON_PRIVILEGE_WITHDRAWN = "privilege_withdrawn";
export const OCSP_REASON_AA_COMPROMISE = "aa_compromise";

export { CookieJar, expectedStatuses, file, FileData, Response, setResponseCallback };

export default {
    request, asyncRequest, get, head, post, put, patch, del, options, query, batch, url, cookieJar, CookieJar, file, FileData, Response,
    expectedStatuses, setResponseCallback, TLS_1_0, TLS_1_1, TLS_1_2, TLS_1_3, OCSP_STATUS_GOOD, OCSP_STATUS_REVOKED,
    OCSP_STATUS_SERVER_FAILED, OCSP_STATUS_UNKNOWN, OCSP_REASON_UNSPECIFIED, OCSP_REASON_KEY_COMPROMISE, OCSP_REASON_CA_COMPROMISE,
    OCSP_REASON_AFFILIATION_CHANGED, OCSP_REASON_SUPERSEDED, OCSP_REASON_CESSATION_OF_OPERATION, OCSP_REASON_CERTIFICATE_HOLD,
    OCSP_REASON_REMOVE_FROM_CRL, OCSP_REASON_PRIVILEGE_WITHDRAWN, OCSP_REASON_AA_COMPROMISE,
};
