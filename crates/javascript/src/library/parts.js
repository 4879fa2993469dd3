// What few scripts ask of a Response: https://grafana.com/docs/k6/latest/javascript-api/k6-http/response/
import * as native from "brunt:natives";
import { errorOf } from "brunt:failures";
import { canonicalName } from "brunt:fields";
import { need } from "brunt:needed";
import { PARTS, textOf } from "brunt:responses";

/** Parts, by how they are read. */
export const READERS = {
    headers: (response) => (native.isAnswer(response) ? canonical(native.readHeaders(response)) : {}),
    cookies: (response) => (native.setsCookies(response) ? need("brunt:cookies").cookiesByName(native.readHeaders(response)["set-cookie"]) : {}),
    error: (response) => errorOf(response)[1],
    error_code: (response) => errorOf(response)[0],
    status_text: (response) => native.statusText(response.status),
    url: (response) => native.hopOf(response).target.shown,
    request: (response) => requestOf(native.hopOf(response)),
    remote_ip: (response) => native.readPeer(response).ip ?? "",
    remote_port: (response) => native.readPeer(response).port ?? 0,
    proto: (response) => native.readPeer(response).proto ?? "",
    tls_version: (response) => native.readPeer(response).tls_version ?? "",
    tls_cipher_suite: (response) => native.readPeer(response).tls_cipher_suite ?? "",
    ocsp: () => ({ produced_at: 0, this_update: 0, next_update: 0, revoked_at: 0, revocation_reason: "", status: "unknown" }),
};

/** The body as HTML, or what a selector finds in it. */
export function html(response, selector) {
    const page = need("k6/html").parseHTML(textOf(response));
    return selector === undefined || selector === null ? page : page.find(selector);
}

/** Requests what a link of the page leads to. */
export function clickLink(response, { selector = "a[href]", params } = {}) {
    const link = html(response, selector).first();
    if (link.size() === 0) throw new Error(`no element found for selector '${selector}' in response '${response.url}'`);
    const href = link.attr("href");
    if (href === undefined) throw new Error(`no valid href attribute value found on element '${selector}' in response '${response.url}'`);
    return need("k6/http").request("GET", need("brunt:urls").parseUrl(response.url).resolve(href).shown(), undefined, params);
}

/** Sends a form of the page, with `fields` in place of those that it has. */
export function submitForm(response, { formSelector = "form", fields, submitSelector = '[type="submit"]', params } = {}) {
    const form = html(response, formSelector).first();
    if (form.size() === 0) throw new Error(`no form found for selector '${formSelector}' in response '${response.url}'`);
    const method = (form.attr("method") ?? "GET").toUpperCase();
    const action = form.attr("action");
    const url = action === undefined ? need("brunt:urls").parseUrl(response.url) : need("brunt:urls").parseUrl(response.url).resolve(action);
    const values = { ...form.serializeObject() };
    const submit = form.find(submitSelector).first();
    const name = submit.attr("name");
    if (name !== undefined && !(name in values)) values[name] = submit.val() ?? "";
    Object.assign(values, fields);
    if (method !== "GET") return need("k6/http").request(method, url.shown(), values, params);
    url.query = need("brunt:forms").encodeForm(values);
    return need("k6/http").request(method, url.shown(), undefined, params);
}

/** All parts, for `JSON.stringify`. */
export function toJSON(response) {
    const parts = { ...response };
    for (const name of PARTS) parts[name] = response[name];
    return parts;
}

/** Header fields under the names that Go gives them. */
function canonical(headers) {
    const fields = {};
    for (const name of Object.keys(headers)) {
        fields[canonicalName(name)] = name === "set-cookie" ? headers[name].replaceAll("\n", ", ") : headers[name];
    }
    return fields;
}

/** `Response.request`: what was sent. */
function requestOf(hop) {
    const headers = {};
    for (let at = 0; at < hop.fields.length; at += 2) headers[hop.fields[at]] = [hop.fields[at + 1]];
    const cookies = {};
    for (const cookie of hop.params.cookies ?? []) (cookies[cookie.name] ??= []).push({ ...cookie });
    const { body } = hop;
    return {
        method: hop.method,
        url: hop.target.shown,
        headers,
        body: body === null ? "" : typeof body === "string" ? body : native.text(body),
        cookies,
    };
}
