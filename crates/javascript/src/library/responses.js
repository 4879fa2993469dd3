// What a request gives: https://grafana.com/docs/k6/latest/javascript-api/k6-http/response/
import * as native from "brunt:native";
import { cookiesByName } from "brunt:cookies";
import { errorOf } from "brunt:failures";
import { encodeForm } from "brunt:forms";
import { need } from "brunt:needed";
import { canonicalName } from "brunt:params";
import { statusText } from "brunt:statuses";
import { parseUrl } from "brunt:urls";

let request;

/** Sets the function that makes the requests of `clickLink` and `submitForm`: `http.request`. */
export function requestBy(make) {
    request = make;
}

/** The parts of a Response that are read when they are asked for. */
const PARTS = {
    body: (response) => (native.hopOf(response).params.reads === "binary" ? native.readBytes(response) : native.readText(response)),
    headers: (response) => (native.isAnswer(response) ? canonical(native.readHeaders(response)) : {}),
    cookies: (response) => (native.setsCookies(response) ? cookiesByName(native.readHeaders(response)["set-cookie"]) : {}),
    timings: (response) => native.readTimings(response),
    error: (response) => errorOf(response)[1],
    error_code: (response) => errorOf(response)[0],
    status_text: (response) => statusText(response.status),
    url: (response) => native.hopOf(response).target.shown,
    request: (response) => requestOf(native.hopOf(response)),
    remote_ip: (response) => native.readPeer(response).ip ?? "",
    remote_port: (response) => native.readPeer(response).port ?? 0,
    proto: (response) => native.readPeer(response).proto ?? "",
    tls_version: (response) => native.readPeer(response).tls_version ?? "",
    tls_cipher_suite: (response) => native.readPeer(response).tls_cipher_suite ?? "",
    ocsp: () => ({ produced_at: 0, this_update: 0, next_update: 0, revoked_at: 0, revocation_reason: "", status: "unknown" }),
};
/** Parts that are the same object whenever they are read. */
const OBJECTS = new Set(["headers", "cookies", "timings", "request", "ocsp"]);

/** The response to a request, or the reason why it failed. Native code makes it, and reads its parts from the engine on first use. */
export function Response() {
    throw new TypeError("a Response comes from a request");
}

Response.prototype = native.responsePrototype();

/** The body as text. Throws where there is none. */
function textOf(response) {
    const body = Object.hasOwn(response, "body") ? response.body : native.readText(response);
    if (body === null || body === undefined) throw withoutBody();
    return body instanceof ArrayBuffer ? native.text(body) : String(body);
}

/** The error of whoever makes something of a body where there is none. */
function withoutBody() {
    return new Error("the body is null so we can't transform it: there was an error getting the response, or the response type was none");
}

/** The body's JSON. Throws where it is none. */
function jsonOf(response) {
    try {
        return Object.hasOwn(response, "body") ? JSON.parse(textOf(response)) : native.readJson(response);
    } catch (error) {
        if (!(error instanceof SyntaxError)) throw error;
        throw new Error(`cannot parse json: ${error.message}`, { cause: error });
    }
}

const METHODS = {
    /** The body as JSON, or what a GJSON path selects of it: `undefined` where it selects nothing. */
    json(selector) {
        let value;
        try {
            value = jsonOf(this);
        } catch (error) {
            if (selector === undefined || selector === null || error.cause === undefined) throw error;
            return undefined;
        }
        if (value === undefined) throw withoutBody();
        if (selector === undefined || selector === null) return value;
        const path = String(selector);
        if (isPlain(path) && !Array.isArray(value)) return value !== null && Object.hasOwn(value, path) ? value[path] : undefined;
        return need("brunt:selector").select(value, path);
    },

    /** The body as HTML, or what a selector finds in it. */
    html(selector) {
        const page = need("k6/html").parseHTML(textOf(this));
        return selector === undefined || selector === null ? page : page.find(selector);
    },

    /** Requests what a link of the page leads to. */
    clickLink({ selector = "a[href]", params } = {}) {
        const link = this.html(selector).first();
        if (link.size() === 0) throw new Error(`no element found for selector '${selector}' in response '${this.url}'`);
        const href = link.attr("href");
        if (href === undefined) throw new Error(`no valid href attribute value found on element '${selector}' in response '${this.url}'`);
        return request("GET", parseUrl(this.url).resolve(href).shown(), undefined, params);
    },

    /** Sends a form of the page, with `fields` in place of those that it has. */
    submitForm({ formSelector = "form", fields, submitSelector = '[type="submit"]', params } = {}) {
        const form = this.html(formSelector).first();
        if (form.size() === 0) throw new Error(`no form found for selector '${formSelector}' in response '${this.url}'`);
        const method = (form.attr("method") ?? "GET").toUpperCase();
        const action = form.attr("action");
        const url = action === undefined ? parseUrl(this.url) : parseUrl(this.url).resolve(action);
        const values = { ...form.serializeObject() };
        const submit = form.find(submitSelector).first();
        const name = submit.attr("name");
        if (name !== undefined && !(name in values)) values[name] = submit.val() ?? "";
        Object.assign(values, fields);
        if (method !== "GET") return request(method, url.shown(), values, params);
        url.query = encodeForm(values);
        return request(method, url.shown(), undefined, params);
    },

    /** All parts, for `JSON.stringify`. */
    toJSON() {
        const parts = { ...this };
        for (const name of Object.keys(PARTS)) parts[name] = this[name];
        return parts;
    },
};

/** GJSON paths that name a member of an object, and others: whether they do. */
const plainPaths = new Map();

/** Whether a GJSON path names a member of an object, and no more. */
function isPlain(path) {
    let known = plainPaths.get(path);
    if (known === undefined) {
        known = /^[A-Za-z_][A-Za-z0-9_]*$/.test(path);
        if (plainPaths.size >= 200) plainPaths.clear();
        plainPaths.set(path, known);
    }
    return known;
}

for (const name of Object.keys(METHODS)) {
    Object.defineProperty(Response.prototype, name, { value: METHODS[name], writable: true, enumerable: false, configurable: true });
}
Object.defineProperty(Response.prototype, "constructor", { value: Response, writable: true, enumerable: false, configurable: true });
for (const name of Object.keys(PARTS)) addPart(name, OBJECTS.has(name), PARTS[name]);

/** Makes `name` a property that a script may set. An object is made once. */
function addPart(name, isObject, read) {
    const define = (response, value) => Object.defineProperty(response, name, { value, writable: true, enumerable: true, configurable: true });
    Object.defineProperty(Response.prototype, name, {
        enumerable: true,
        configurable: true,
        get() {
            const value = read(this);
            if (isObject) define(this, value);
            return value;
        },
        set(value) {
            define(this, value);
        },
    });
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
