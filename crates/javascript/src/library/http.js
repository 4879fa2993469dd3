// `k6/http`: https://grafana.com/docs/k6/latest/javascript-api/k6-http/
import { http, httpAll, httpBegin, labelOf, now, print, send as sendPrepared, setHop, setsCookies } from "brunt:native";
import { defer, handle, unhandle } from "brunt:loop";
import { knownPlace, user } from "brunt:user";
import { CookieJar } from "brunt:cookies";
import { bareFields, cookieJar as userJar, Exchange, Hop, NamedUrl, preparedOf, unsent } from "brunt:exchanges";
import { FileData, file } from "brunt:forms";
import { NO_PARAMS } from "brunt:params";
import { measure } from "brunt:measures";
import { requestBy, Response } from "brunt:responses";
import { settings } from "brunt:settings";
import { expectedStatuses, setResponseCallback, standing } from "brunt:statuses";
import { knownTarget } from "brunt:targets";
import { UrlError } from "brunt:urls";

/** Makes a request. Returns its Response. */
export function request(method, url, body, params) {
    return send(String(method).toUpperCase(), url, body, params);
}

/** Makes a request beside the script. Returns a promise of its Response. */
export function asyncRequest(method, url, body, params) {
    const { promise, resolve, reject } = defer();
    try {
        const hop = hopOf(String(method).toUpperCase(), url, body, params);
        if (isResponse(hop)) resolve(hop);
        else begin(new Exchange(hop), resolve, reject);
    } catch (error) {
        reject(error);
    }
    return promise;
}

/** GET. One without Params is remembered by its URL, and sent again without being built anew: the engine has it prepared. */
export function get(url, params) {
    if (params !== undefined || typeof url !== "string" || !user.running) return send("GET", url, undefined, params);
    const hop = knownTarget(url)?.plainGet;
    if (hop !== undefined) return sendHop(hop, preparedOf(hop));
    const made = hopOf("GET", url);
    if (isResponse(made)) return made;
    if (made.isBare) made.target.plainGet = made;
    return sendHop(made, 0);
}

/** HEAD. */
export function head(url, params) {
    return send("HEAD", url, undefined, params);
}

/** POST. */
export function post(url, body, params) {
    return send("POST", url, body, params);
}

/** PUT. */
export function put(url, body, params) {
    return send("PUT", url, body, params);
}

/** PATCH. */
export function patch(url, body, params) {
    return send("PATCH", url, body, params);
}

/** DELETE. */
export function del(url, body, params) {
    return send("DELETE", url, body, params);
}

/** OPTIONS. */
export function options(url, body, params) {
    return send("OPTIONS", url, body, params);
}

/** QUERY (RFC 10008). */
export function query(url, body, params) {
    return send("QUERY", url, body, params);
}

/** Makes requests together. Returns their Responses: a list for a list, an object of the same names for an object. */
export function batch(requests) {
    refuseInit();
    if (requests === null || typeof requests !== "object") throw new TypeError("batch() takes a list or an object of requests");
    const made = {};
    for (const name of Object.keys(requests)) {
        const hop = memberOf(requests[name], name);
        made[name] = isResponse(hop) ? { response: hop } : new Exchange(hop);
    }
    completeAll(Object.values(made).filter((exchange) => exchange instanceof Exchange));
    const responses = Array.isArray(requests) ? [] : {};
    for (const name of Object.keys(made)) responses[name] = made[name].response;
    return responses;
}

/** The request of a member of a batch. */
function memberOf(member, name) {
    if (typeof member === "string" || member instanceof NamedUrl) return hopOf("GET", member);
    if (Array.isArray(member)) return hopOf(String(member[0]).toUpperCase(), member[1], member[2], member[3]);
    if (member === null || typeof member !== "object") throw new TypeError(`batch(): the request ${name} is neither a URL nor a list nor an object`);
    return hopOf(String(member.method ?? "GET").toUpperCase(), member.url, member.body, member.params);
}

/** Makes a URL whose requests share a name, whatever its parts are. */
export function url(parts, ...values) {
    if (typeof parts === "string") return new NamedUrl(parts, parts);
    return new NamedUrl(String.raw({ raw: parts }, ...values), parts.join("${}"));
}

/** The jar of the user. */
export function cookieJar() {
    refuseInit();
    return userJar();
}

/** Refuses, in the init context, what takes a running user. */
function refuseInit() {
    if (!user.running) throw new Error("requests and jars are not for the init context: use them in setup(), in a scenario's function or in teardown()");
}

/** The request that a script describes, or the Response that says why there is none. */
function hopOf(method, url, body, params) {
    refuseInit();
    try {
        return Hop.of(method, url, body, params);
    } catch (error) {
        if (!(error instanceof UrlError) || settings().throws) throw error;
        print("warn", `Request Failed: ${method} ${url}: ${error.message}`);
        const text = error.code === 1020 ? `invalid URL: ${error.message}` : error.message;
        return unsent(new Hop(method, { shown: String(url) }, [], null, NO_PARAMS), error.code, text);
    }
}

/** Whether a value is a Response. */
function isResponse(value) {
    return labelOf(value) !== undefined;
}

/** Makes the request that a script describes. Returns its Response. */
function send(method, url, body, params) {
    const hop = hopOf(method, url, body, params);
    return isResponse(hop) ? hop : sendHop(hop, 0);
}

/** Makes a request, by its number where the engine has it prepared, and what it leads to. Returns the Response. */
function sendHop(hop, prepared) {
    const { debug, measures } = settings();
    if (!hop.isBare || debug !== undefined) return complete(new Exchange(hop));
    if (hop.place !== knownPlace || knownPlace === undefined || hop.callback !== standing) hop.takeLabel();
    const began = measures ? now() : 0;
    const { timeout } = hop.params;
    const response = prepared === 0
        ? http(hop, hop.label, timeout, hop.method, hop.target.sent, bareFields(hop), hop.body, hop.discards)
        : sendPrepared(hop, hop.label, timeout, prepared, hop.discards);
    const { status } = response;
    if (status < 200 || status >= 300 || setsCookies(response)) {
        const exchange = new Exchange(hop, began);
        return exchange.settle(response) ? complete(exchange) : exchange.response;
    }
    if (measures) measure(hop, response, false, 0);
    return response;
}

/** Makes an exchange's requests, one after the other. Returns the last one's Response. */
function complete(exchange) {
    for (;;) {
        if (!exchange.settle(http(...exchange.call()))) return exchange.response;
    }
}

/** Sends an exchange's next request beside the script. */
function begin(exchange, resolve, reject) {
    const { hop } = exchange;
    const id = httpBegin(...exchange.call());
    handle(id, ({ response }) => {
        unhandle(id);
        setHop(response, hop);
        try {
            if (exchange.settle(response)) begin(exchange, resolve, reject);
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
        const responses = httpAll(round.map((exchange) => exchange.call()));
        waiting = [...round.filter((exchange, at) => exchange.settle(responses[at])), ...later];
    }
}

/** The first exchanges that may be under way together, and those after them. */
function roundOf(exchanges) {
    const { batch: most, batchPerHost: mostPerHost } = settings();
    const hosts = new Map();
    const round = [];
    const later = [];
    for (const exchange of exchanges) {
        const { host } = exchange.hop.target.url;
        const count = hosts.get(host) ?? 0;
        const fits = (most <= 0 || round.length < most) && (mostPerHost <= 0 || count < mostPerHost);
        if (fits) hosts.set(host, count + 1);
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
