// What a request gives: https://grafana.com/docs/k6/latest/javascript-api/k6-http/response/
import * as native from "brunt:native";
import { need } from "brunt:needed";

/** A part of a Response, read. */
function read(response, name) {
    if (name === "body") return native.hopOf(response).params.reads === "binary" ? native.readBytes(response) : native.readText(response);
    if (name === "timings") return native.readTimings(response);
    return need("brunt:parts").READERS[name](response);
}

/** The parts of a Response that are read when they are asked for. */
export const PARTS = [
    "body", "headers", "cookies", "timings", "error", "error_code", "status_text", "url", "request", "remote_ip", "remote_port", "proto", "tls_version",
    "tls_cipher_suite", "ocsp",
];
/** Parts that are the same object whenever they are read. */
const OBJECTS = new Set(["headers", "cookies", "timings", "request", "ocsp"]);

/** The response to a request, or the reason why it failed. Native code makes it, and reads its parts from the engine on first use. */
export function Response() {
    throw new TypeError("a Response comes from a request");
}

Response.prototype = native.responsePrototype();

/** The body as text. Throws where there is none. */
export function textOf(response) {
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

/** The body as JSON, or what a GJSON path selects of it: `undefined` where it selects nothing. */
function json(selector) {
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
}

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

/** Makes `name` a method of Responses, which a script may set. */
function addMethod(name, value) {
    Object.defineProperty(Response.prototype, name, { value, writable: true, enumerable: false, configurable: true });
}

/** Makes `name` a property that a script may set. An object is made once. */
function addPart(name) {
    const set = (response, value) => Object.defineProperty(response, name, { value, writable: true, enumerable: true, configurable: true });
    Object.defineProperty(Response.prototype, name, {
        enumerable: true,
        configurable: true,
        get() {
            const value = read(this, name);
            if (OBJECTS.has(name)) set(this, value);
            return value;
        },
        set(value) {
            set(this, value);
        },
    });
}

addMethod("constructor", Response);
addMethod("json", native.shortcut("json", json, 1));
for (const name of ["html", "clickLink", "submitForm", "toJSON"]) {
    addMethod(name, function (...given) {
        return need("brunt:parts")[name](this, ...given);
    });
}
PARTS.forEach(addPart);
