// What a request gives: https://grafana.com/docs/k6/latest/javascript-api/k6-http/response/
import * as native from "brunt:native";
import { beforeWaiting, LABEL, TICKET, user } from "brunt:user";
import { cookiesByName } from "brunt:cookies";
import { errorOf } from "brunt:failures";
import { encodeForm } from "brunt:forms";
import { canonicalName } from "brunt:params";
import { Reading } from "brunt:readings";
import { statusText } from "brunt:statuses";
import { parseUrl } from "brunt:urls";

let request;

/** Modules that few scripts need: a user that does not has them in no memory of its own. */
const needed = {};

/** A module of the library, loaded with its first use. */
function need(name) {
    return (needed[name] ??= native.requireModule(name, "k6/http").namespace);
}

/** Sets the function that makes the requests of `clickLink` and `submitForm`: `http.request`. */
export function requestBy(make) {
    request = make;
}

const NO_TIMES = { blocked: 0, connecting: 0, tls_handshaking: 0, sending: 0, waiting: 0, receiving: 0, duration: 0 };

/** Parts of a Response that a script has asked for and brunt does not tell. */
const untold = new Set();

/** What is known of the server that answered. What is not is empty, and the first user says so once. */
function ofPeer(name, value) {
    if (value !== undefined && value !== "") return value;
    if (user.id === 1 && !untold.has(name)) {
        untold.add(name);
        native.print("warn", `${name} of a response is empty: brunt does not tell it`);
    }
    return "";
}

/** The parts of a Response that are read when they are asked for: from the request, the answer and its reading, if there is one. */
const PARTS = {
    body: (hop, _, reading) => (reading === undefined ? null : hop.params.reads === "binary" ? reading.bytes() : reading.text()),
    headers: (_, __, reading) => (reading === undefined ? {} : canonical(reading.headers())),
    cookies: (_, answer, reading) => (reading !== undefined && answer.flags & 1 ? cookiesByName(reading.headers()["set-cookie"]) : {}),
    timings: (_, __, reading) => ({ looking_up: 0, ...(reading === undefined ? NO_TIMES : reading.timings()) }),
    error: (_, answer) => errorOf(answer)[1],
    error_code: (_, answer) => errorOf(answer)[0],
    status_text: (_, answer) => statusText(answer.status),
    url: (hop) => hop.target.shown,
    request: requestOf,
    remote_ip: (_, __, reading) => ofPeer("remote_ip", reading?.remote().ip),
    remote_port: (_, __, reading) => Number(ofPeer("remote_port", reading?.remote().port) || 0),
    proto: (_, __, reading) => ofPeer("proto", reading?.remote().proto),
    tls_version: (_, __, reading) => ofPeer("tls_version", reading?.remote().tls_version),
    tls_cipher_suite: (_, __, reading) => ofPeer("tls_cipher_suite", reading?.remote().tls_cipher_suite),
    ocsp: () => ({ produced_at: 0, this_update: 0, next_update: 0, revoked_at: 0, revocation_reason: "", status: "unknown" }),
};
/** Parts that are the same object whenever they are read. */
const OBJECTS = new Set(["headers", "cookies", "timings", "request", "ocsp"]);

/** Responses whose answers the client still has. A script that holds none of them leaves nothing to keep. */
const open = [];

/** Keeps what scripts may still read of answers. The client forgets them with its next wait. */
export function keepOpen() {
    for (let at = 0; at < open.length; at += 1) {
        const response = open[at].deref();
        if (response !== undefined) Response.keep(response);
    }
    open.length = 0;
}

beforeWaiting(keepOpen);

/** An answer, or why there is none. Its parts are read when they are asked for. */
export class Response {
    #hop;
    #answer;
    #label;
    #reading;

    /**
     * @param hop the request that was answered
     * @param answer the client's answer
     * @param reading its parts, if something of it was read before
     */
    constructor(hop, answer, reading) {
        this.status = answer.status;
        this.#hop = hop;
        this.#answer = answer;
        this.#label = hop.label;
        if (reading !== undefined) this.#reading = reading;
        if (reading === undefined || reading.isOpen) open.push(new WeakRef(this));
    }

    static {
        for (const name of Object.keys(PARTS)) {
            const read = PARTS[name];
            addPart(this.prototype, name, (response) => read(response.#hop, response.#answer, response.#parts()));
        }
    }

    /** Reads what is left of the answer. */
    static keep(response) {
        response.#parts()?.keep();
    }

    get [LABEL]() {
        return this.#label;
    }

    get [TICKET]() {
        return this.#answer.ticket;
    }

    /** The answer's parts; `undefined` where there is no answer. */
    #parts() {
        if (this.#reading === undefined && this.#answer.error === undefined) {
            this.#reading = new Reading(this.#answer.ticket, true, this.#hop.discards);
        }
        return this.#reading;
    }

    /** The body as text. Throws where there is none. */
    #text() {
        const body = Object.hasOwn(this, "body") ? this.body : this.#parts()?.text();
        if (body === null || body === undefined) {
            throw new Error("the body is null so we can't transform it: there was an error getting the response, or the response type was none");
        }
        return body instanceof ArrayBuffer ? native.text(body) : String(body);
    }

    /** The body as JSON, or what a GJSON path selects of it: `undefined` where it selects nothing. */
    json(selector) {
        const reading = this.#parts() ?? {};
        const parsed = (reading.json ??= parse(this.#text()));
        if (selector !== undefined && selector !== null) return parsed.problem === undefined ? need("brunt:selector").select(parsed.value, String(selector)) : undefined;
        if (parsed.problem !== undefined) throw new Error(`cannot parse json: ${parsed.problem}`);
        return parsed.value;
    }

    /** The body as HTML, or what a selector finds in it. */
    html(selector) {
        const page = need("k6/html").parseHTML(this.#text());
        return selector === undefined || selector === null ? page : page.find(selector);
    }

    /** Requests what a link of the page leads to. */
    clickLink({ selector = "a[href]", params } = {}) {
        const link = this.html(selector).first();
        if (link.size() === 0) throw new Error(`no element found for selector '${selector}' in response '${this.url}'`);
        const href = link.attr("href");
        if (href === undefined) throw new Error(`no valid href attribute value found on element '${selector}' in response '${this.url}'`);
        return request("GET", parseUrl(this.url).resolve(href).shown(), undefined, params);
    }

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
    }

    /** All parts, for `JSON.stringify`. */
    toJSON() {
        const parts = { ...this };
        for (const name of Object.keys(PARTS)) parts[name] = this[name];
        return parts;
    }
}

/** Makes `name` a property that a script may set. An object is made once. */
function addPart(prototype, name, read) {
    const define = (response, value) => Object.defineProperty(response, name, { value, writable: true, enumerable: true, configurable: true });
    const readOnce = (response) => {
        const value = read(response);
        define(response, value);
        return value;
    };
    const get = OBJECTS.has(name) ? readOnce : read;
    Object.defineProperty(prototype, name, {
        enumerable: true,
        configurable: true,
        get() {
            return get(this);
        },
        set(value) {
            define(this, value);
        },
    });
}

/** A text as JSON: its value, or what is wrong with it. */
function parse(text) {
    try {
        return { value: JSON.parse(text), problem: undefined };
    } catch (error) {
        return { value: undefined, problem: error.message };
    }
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
