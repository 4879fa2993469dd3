// `k6/http` without its constants, which `brunt:http-constants` adds for scripts that name one: https://grafana.com/docs/k6/latest/javascript-api/k6-http/
import { http, now, remember, send as sendPrepared, setsCookies, shortcut } from "brunt:native";
import { knownPlace, user } from "brunt:user";
import { bareFields, cookieJar as userJar, described, FileData, isResponse, NamedUrl, preparedOf, refuseInit } from "brunt:hops";
import { CookieJar } from "brunt:jars";
import { need } from "brunt:needed";
import { Response } from "brunt:responses";
import { settings } from "brunt:settings";
import { expectedStatuses, setResponseCallback, standing } from "brunt:statuses";
import { knownTarget } from "brunt:targets";

/** Makes a request. Returns its Response. */
export function request(method, url, body, params) {
    return send(String(method).toUpperCase(), url, body, params);
}

/** Makes a request beside the script. Returns a promise of its Response. */
export function asyncRequest(method, url, body, params) {
    return need("brunt:batches").asyncRequest(method, url, body, params);
}

/** GET. One without Params is remembered by its URL, and sent again without being built anew: the engine has it prepared. */
export const get = shortcut("get", usualGet, 2, exchanged);

function usualGet(url, params) {
    if (params !== undefined || typeof url !== "string" || !user.running) return send("GET", url, undefined, params);
    const hop = knownTarget(url)?.plainGet;
    if (hop !== undefined) return sendHop(hop, preparedOf(hop), url);
    const made = described("GET", url);
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
    return need("brunt:batches").batch(requests);
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

/** Wraps data as a file of a multipart body. */
export function file(data, filename, contentType) {
    return need("brunt:forms").file(data, filename, contentType);
}

/** Makes the request that a script describes. Returns its Response. */
function send(method, url, body, params) {
    const hop = described(method, url, body, params);
    return isResponse(hop) ? hop : sendHop(hop, 0);
}

/** Makes a request, by its number where the engine has it prepared, and what it leads to. Returns the Response. `url`: its text, where it is a plain GET. */
function sendHop(hop, prepared, url) {
    const { debug, measures } = settings();
    if (!hop.isBare || debug !== undefined) return exchanged(hop, 0);
    if (hop.place !== knownPlace || knownPlace === 0 || hop.callback !== standing) hop.takeLabel();
    const began = measures ? now() : 0;
    const { timeout } = hop.params;
    if (prepared !== 0 && url !== undefined && !measures) remember(get, url, hop, hop.label, prepared, hop.discards);
    const response = prepared === 0
        ? http(hop, hop.label, timeout, hop.method, hop.target.sent, bareFields(hop), hop.body, hop.discards)
        : sendPrepared(hop, hop.label, timeout, prepared, hop.discards);
    const { status } = response;
    if (status < 200 || status >= 300 || setsCookies(response)) {
        return exchanged(hop, began, response);
    }
    if (measures) need("brunt:measures").measure(hop, response, false, 0);
    return response;
}

/** Does what a request's answer leads to, or makes the request first where there is none. Returns the last Response. */
function exchanged(hop, began, response) {
    const { complete, Exchange } = need("brunt:exchanges");
    const exchange = new Exchange(hop, began);
    // The request may have been made where it has another label.
    if (response !== undefined) hop.takeLabel();
    return response === undefined || exchange.settle(response) ? complete(exchange) : exchange.response;
}

export { CookieJar, expectedStatuses, FileData, Response, setResponseCallback };

export default {
    request, asyncRequest, get, head, post, put, patch, del, options, query, batch, url, cookieJar, CookieJar, file, FileData, Response,
    expectedStatuses, setResponseCallback,
};
