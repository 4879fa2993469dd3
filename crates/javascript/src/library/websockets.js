// `k6/websockets`: https://grafana.com/docs/k6/latest/javascript-api/k6-websockets/
import { text, utf8 } from "brunt:natives";
import { Connection } from "brunt:sockets";

const STATES = { connecting: 0, open: 1, closing: 2, closed: 3 };
const EVENTS = ["open", "message", "ping", "pong", "close", "error"];

/** Bytes of a text, a buffer, a view or a Blob. */
function bytesOf(part) {
    if (part instanceof Blob) return Blob.bytesOf(part);
    if (part instanceof ArrayBuffer) return new Uint8Array(part);
    if (ArrayBuffer.isView(part)) return new Uint8Array(part.buffer, part.byteOffset, part.byteLength);
    return new Uint8Array(utf8(String(part)));
}

/** Bytes that do not change. */
export class Blob {
    #bytes;

    constructor(parts = [], options = {}) {
        const all = Array.from(parts, bytesOf);
        this.#bytes = new Uint8Array(all.reduce((size, part) => size + part.length, 0));
        let at = 0;
        for (const part of all) {
            this.#bytes.set(part, at);
            at += part.length;
        }
        this.type = String(options.type ?? "").toLowerCase();
    }

    get size() {
        return this.#bytes.length;
    }

    /** A part of it. */
    slice(from, to, type = "") {
        return new Blob([this.#bytes.slice(from, to)], { type });
    }

    /** A promise of its bytes. */
    async arrayBuffer() {
        return this.#bytes.slice().buffer;
    }

    /** A promise of its bytes. */
    async bytes() {
        return this.#bytes.slice();
    }

    /** A promise of its text. */
    async text() {
        return text(this.#bytes.slice().buffer);
    }

    static bytesOf(blob) {
        return blob.#bytes;
    }
}

/** A connection, as browsers have it. */
export class WebSocket {
    #connection;
    #handlers = new Map();
    #binaryType = "blob";

    constructor(url, protocols, params) {
        const asked = protocols === undefined || protocols === null ? [] : [protocols].flat().map(String);
        this.url = String(url);
        this.bufferedAmount = 0;
        this.extensions = "";
        this.#connection = new Connection(this.url, asked, params, {
            opened: () => {
                this.extensions = this.#connection.response.headers["Sec-Websocket-Extensions"] ?? "";
                this.#emit("open", {});
            },
            message: (data, isText) => this.#emit("message", { data: isText ? data : this.#binary(data), origin: this.url }),
            ping: () => this.#emit("ping", {}),
            pong: () => this.#emit("pong", {}),
            failed: (error) => this.#emit("error", { error, message: error }),
            closed: (code, reason) => this.#emit("close", { code, reason, wasClean: code !== 1006 }),
        });
        this.#connection.begin();
    }

    get readyState() {
        return STATES[this.#connection.state];
    }

    get protocol() {
        return this.#connection.protocol;
    }

    /** What binary messages are: `blob` or `arraybuffer`. */
    get binaryType() {
        return this.#binaryType;
    }

    set binaryType(type) {
        if (type !== "blob" && type !== "arraybuffer") throw new TypeError(`unknown binaryType ${type}: use "blob" or "arraybuffer"`);
        this.#binaryType = type;
    }

    /** Sends a text, or bytes. */
    send(data) {
        this.#refuseUnlessOpen("send");
        if (typeof data === "string") this.#connection.send(data, false);
        else if (data instanceof Blob || data instanceof ArrayBuffer || ArrayBuffer.isView(data)) this.#connection.send(bytesOf(data), true);
        else throw new TypeError(`send() takes a text, an ArrayBuffer, a view of one or a Blob, not ${typeof data}`);
    }

    /** Sends a ping. */
    ping() {
        this.#refuseUnlessOpen("ping");
        this.#connection.ping();
    }

    /** Says goodbye. */
    close(code, reason) {
        this.#connection.close(code === undefined ? undefined : Number(code), reason === undefined ? undefined : String(reason));
    }

    /** Calls `handler` with each event of this name. */
    addEventListener(event, handler) {
        if (!EVENTS.includes(event)) throw new TypeError(`WebSocket has no event '${event}': ${EVENTS.join(", ")}`);
        if (typeof handler !== "function") throw new TypeError("addEventListener() takes a function");
        if (!this.#handlers.has(event)) this.#handlers.set(event, []);
        this.#handlers.get(event).push(handler);
    }

    #refuseUnlessOpen(name) {
        if (this.#connection.state !== "open") throw new Error(`InvalidStateError: ${name}() while the connection is ${this.#connection.state}`);
    }

    #binary(bytes) {
        return this.#binaryType === "blob" ? new Blob([bytes]) : bytes;
    }

    #emit(type, event) {
        Object.assign(event, { type, target: this, timestamp: Date.now() });
        this[`on${type}`]?.(event);
        for (const handler of this.#handlers.get(type) ?? []) handler(event);
    }

    static {
        for (const event of EVENTS) this.prototype[`on${event}`] = null;
        for (const [state, number] of Object.entries(STATES)) {
            const name = state.toUpperCase();
            this[name] = this.prototype[name] = number;
        }
    }
}

export default { WebSocket, Blob };
