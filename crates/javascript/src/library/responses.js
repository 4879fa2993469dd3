// What a request gives: https://grafana.com/docs/k6/latest/javascript-api/k6-http/response/
import * as native from "brunt:native";
import { LABEL, TICKET } from "brunt:user";
import { cookiesByName } from "brunt:cookies";
import { encodeForm } from "brunt:forms";
import { canonicalName } from "brunt:params";
import { select } from "brunt:selector";
import { statusText } from "brunt:statuses";
import { parseUrl } from "brunt:urls";
import { parseHTML } from "k6/html";

let request;

/** Sets the function that makes the requests of `clickLink` and `submitForm`: `http.request`. */
export function requestBy(make) {
    request = make;
}

const NO_TIMES = { blocked: 0, connecting: 0, tls_handshaking: 0, sending: 0, waiting: 0, receiving: 0, duration: 0 };

/** The parts of a Response that are read when they are asked for. */
const PARTS = {
    body: ({ hop, reading }) => {
        if (!reading) return null;
        return hop.params.reads === "binary" ? reading.bytes() : reading.text();
    },
    headers: ({ reading }) => (reading ? canonical(reading.headers()) : {}),
    cookies: ({ reading, flags }) => (reading && flags & 1 ? cookiesByName(reading.headers()["set-cookie"]) : {}),
    timings: ({ reading }) => ({ looking_up: 0, ...(reading ? reading.timings() : NO_TIMES) }),
    status_text: ({ response }) => statusText(response.status),
    url: ({ hop }) => hop.target.shown,
    request: ({ hop }) => requestOf(hop),
    remote_ip: ({ reading }) => reading?.remote().ip ?? "",
    remote_port: ({ reading }) => Number(reading?.remote().port || 0),
    proto: ({ reading }) => reading?.remote().proto ?? "",
    tls_version: ({ reading }) => reading?.remote().tls_version ?? "",
    tls_cipher_suite: ({ reading }) => reading?.remote().tls_cipher_suite ?? "",
    ocsp: () => ({ produced_at: 0, this_update: 0, next_update: 0, revoked_at: 0, revocation_reason: "", status: "unknown" }),
};

/** An answer, or why there is none. Its parts are read when they are asked for. */
export class Response {
    #hop;
    #reading;
    #flags;
    #json;

    /**
     * @param hop the request that was answered
     * @param answer the client's answer
     * @param reading its parts, `undefined` where there are none
     * @param failure `[error_code, error]`
     */
    constructor(hop, answer, reading, failure) {
        this.status = answer.status;
        this.error = failure[1];
        this.error_code = failure[0];
        this[LABEL] = hop.label;
        this[TICKET] = answer.ticket;
        this.#hop = hop;
        this.#reading = reading;
        this.#flags = answer.flags;
    }

    static {
        for (const name of Object.keys(PARTS)) addPart(this.prototype, name, (response) => PARTS[name](response.#view()));
    }

    /** What parts are read from. */
    #view() {
        return { response: this, hop: this.#hop, reading: this.#reading, flags: this.#flags };
    }

    /** The body as text. Throws where there is none. */
    #text() {
        const { body } = this;
        if (body === null || body === undefined) {
            throw new Error("the body is null so we can't transform it: there was an error getting the response, or the response type was none");
        }
        return typeof body === "string" ? body : native.text(body);
    }

    /** The body as JSON, or what a GJSON path selects of it: `undefined` where it selects nothing. */
    json(selector) {
        const text = this.#text();
        if (this.#json === undefined) this.#json = parsed(text);
        const { value, problem } = this.#json;
        if (selector !== undefined && selector !== null) return problem ? undefined : select(value, String(selector));
        if (problem) throw new Error(`cannot parse json: ${problem}`);
        return value;
    }

    /** The body as HTML, or what a selector finds in it. */
    html(selector) {
        const page = parseHTML(this.#text());
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

/** Makes `name` a property that is read once, and that a script may set. */
function addPart(prototype, name, read) {
    const define = (response, value) => Object.defineProperty(response, name, { value, writable: true, enumerable: true, configurable: true });
    Object.defineProperty(prototype, name, {
        enumerable: true,
        configurable: true,
        get() {
            const value = read(this);
            define(this, value);
            return value;
        },
        set(value) {
            define(this, value);
        },
    });
}

function parsed(text) {
    try {
        return { value: JSON.parse(text) };
    } catch (error) {
        return { problem: error.message };
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
