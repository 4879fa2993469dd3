// Connections over WebSocket, on which k6/ws and k6/websockets stand.
import * as native from "brunt:natives";
import { handle, startTimer, stopTimer, unhandle } from "brunt:events";
import { eachIteration, user } from "brunt:user";
import { cookiesOf } from "brunt:cookies";
import { canonicalName } from "brunt:fields";
import { cookieJar } from "brunt:hops";
import { CookieJar } from "brunt:jars";
import { sample } from "brunt:samples";
import { settings } from "brunt:settings";
import { labelOf, targetOf } from "brunt:targets";

/** The client that connections go by. */
const WS = 1;
const SWITCHING = 101;
const IS_TEXT = 1;
const IS_PING = 2;
const IS_PONG = 4;
const IS_CLOSE = 8;
/** Codes of a Close frame (RFC 6455, section 7.4.1). */
export const NORMAL = 1000;
const GOING_AWAY = 1001;
const NO_STATUS = 1005;
const ABNORMAL = 1006;
/** How long the peer's goodbye is waited for, in milliseconds. */
const LONGEST_GOODBYE = 2000;
/** Fields whose values are lists of the handshake's own. */
const PROTOCOLS = "Sec-Websocket-Protocol";

/** Connections that have not ended. */
const open = new Set();
let lastHandle = 0;

eachIteration(() => {
    for (const connection of open) connection.abandon();
});

/** The fields of a head, by their names in Go's form; of those that are repeated the values are joined. */
function fieldsOf(head) {
    const fields = {};
    const cookies = [];
    for (const line of head.split(/\r?\n/).slice(1)) {
        const at = line.indexOf(":");
        if (at <= 0) continue;
        const name = canonicalName(line.slice(0, at).trim());
        const value = line.slice(at + 1).trim();
        if (name === "Set-Cookie") cookies.push(value);
        fields[name] = name in fields ? `${fields[name]}, ${value}` : value;
    }
    return { fields, cookies };
}

/** What the script's params say of a connection to `url`. */
function readParams(url, given, protocols) {
    if (!/^wss?:\/\//i.test(url)) throw new TypeError(`'${url}' is no URL of WebSocket: it begins with ws:// or wss://`);
    const target = targetOf(url.replace(/^ws/i, "http"));
    const params = { target, fields: {}, protocols: [...protocols], tags: {}, jar: cookieJar(), deflates: false };
    const { userAgent } = settings();
    if (userAgent !== undefined) params.fields["User-Agent"] = userAgent;
    for (const [name, value] of Object.entries(given?.headers ?? {})) {
        if (canonicalName(name) === PROTOCOLS) params.protocols.push(...String(value).split(",").map((one) => one.trim()));
        else params.fields[name] = String(value);
    }
    for (const [name, value] of Object.entries(given?.tags ?? {})) {
        if (value !== undefined && value !== null) params.tags[name] = String(value);
    }
    if (given?.jar instanceof CookieJar) params.jar = given.jar;
    if (given?.compression) {
        if (given.compression !== "deflate") throw new TypeError(`unsupported compression algorithm '${given.compression}': use deflate`);
        params.deflates = true;
    }
    const cookies = CookieJar.of(params.jar).fieldFor(target.url);
    if (cookies !== "" && params.fields.Cookie === undefined) params.fields.Cookie = cookies;
    return params;
}

/** One connection. Its listener has `opened()`, `message(data, isText)`, `ping()`, `pong()`, `failed(text)` and `closed(code, reason)`, which comes last. */
export class Connection {
    /** `connecting`, `open`, `closing` or `closed`. */
    state = "connecting";
    /** How the handshake was answered. */
    response;
    protocol = "";
    #listener;
    #params;
    #name;
    #tags;
    #handle;
    #began;
    /** When pings were sent, by their payload. */
    #pings = new Map();
    #lastPing = 0;
    /** The number of the event that is waited for. */
    #awaited;
    #goodbye;

    constructor(url, protocols, given, listener) {
        if (!user.running) throw new Error("WebSockets are not for the init context: use them in a scenario's function");
        this.#params = readParams(url, given, protocols);
        this.#listener = listener;
        this.response = { url, status: 0, headers: {}, body: "", error: "" };
        const { target, tags } = this.#params;
        this.#name = tags.name ?? target.name;
        this.#tags = { url, name: url, ...tags };
    }

    /** Begins with the handshake. */
    begin() {
        const { fields, protocols, deflates } = this.#params;
        lastHandle += 1;
        this.#handle = lastHandle;
        open.add(this);
        this.#began = native.now();
        const values = ["connect", this.response.url, fields, protocols, deflates, true];
        this.#await((event) => this.#answered(event), "connect", "open", false, values);
    }

    /** Sends a message: a text, or bytes. Returns whether it was sent; the listener is told why not. */
    send(data, isBinary) {
        const isSent = this.#say("send", "send", data, isBinary);
        if (isSent) this.sample("ws_msgs_sent", 1);
        return isSent;
    }

    /** Sends a ping. */
    ping() {
        this.#lastPing += 1;
        const payload = String(this.#lastPing);
        this.#pings.set(payload, native.now());
        this.#say("ping", "ping", payload);
    }

    /** Says goodbye; `closed` comes when the peer has, or after a while. */
    close(code = NORMAL, reason = "") {
        if (this.state === "connecting") return this.#end(ABNORMAL, "", "the connection was closed before it was open");
        if (this.state !== "open") return;
        if (!this.#say("close", "close", code, reason, true)) return;
        this.state = "closing";
        this.#goodbye = startTimer(() => this.#end(ABNORMAL, ""), LONGEST_GOODBYE, false);
    }

    /** Ends without a word. */
    abandon() {
        if (this.state !== "closed") this.#leave();
    }

    /** Adds a sample of the connection's. */
    sample(metric, value) {
        sample(metric, value, this.#tags);
    }

    /** The label of its calls of a kind. */
    #label(kind) {
        const { tags } = this.#params;
        const { name, ...others } = tags;
        return labelOf(`${kind} ${this.#name}`, others, undefined);
    }

    /** Makes a call beside the script. */
    #await(then, kind, way, isOptional, values) {
        const id = native.begin(["head", "body"], WS, this.#label(kind), 0, way, this.#handle, isOptional, ...values);
        this.#awaited = id;
        handle(id, (event) => {
            unhandle(id);
            this.#awaited = undefined;
            then(event);
        });
    }

    /** Makes a call that ends when it is sent. Returns whether it was. */
    #say(kind, ...values) {
        if (this.state !== "open") return this.#fail("websocket: close sent");
        const answer = native.call(WS, this.#label(kind), 0, "on", this.#handle, false, ...values);
        return answer.error === undefined || this.#fail(answer.reason || answer.error);
    }

    #fail(text) {
        this.#listener.failed(text);
        return false;
    }

    /** The handshake has ended. */
    #answered({ answer, head }) {
        if (this.state !== "connecting") return;
        if (answer.error !== undefined) return this.#refused(answer.reason || answer.error);
        const { fields, cookies } = fieldsOf(head ?? "");
        CookieJar.of(this.#params.jar).takeAll(this.#params.target.url, cookiesOf(cookies.join("\n") || undefined));
        this.response.status = answer.status;
        this.response.headers = fields;
        if (answer.status !== SWITCHING) return this.#refused("websocket: bad handshake");
        this.protocol = fields[PROTOCOLS] ?? "";
        this.#tags.status = String(answer.status);
        this.#tags.subproto = this.protocol;
        this.sample("ws_connecting", native.now() - this.#began);
        this.sample("ws_sessions", 1);
        this.state = "open";
        this.#listener.opened();
        this.#listen();
    }

    /** The handshake has failed. */
    #refused(text) {
        this.response.error = text;
        this.#end(ABNORMAL, "", text);
    }

    /** Waits for what comes next. */
    #listen() {
        if (this.state === "closed") return;
        this.#await((event) => this.#heard(event), "message", "on", true, ["listen"]);
    }

    /** Something has come. */
    #heard({ answer, body }) {
        if (this.state === "closed") return;
        // Nothing came for a while.
        if (answer.error === "timeout") return this.#listen();
        if (answer.error !== undefined) return this.#end(ABNORMAL, "", answer.reason || answer.error);
        if (answer.flags & IS_CLOSE) return this.#closedBy(body);
        if (answer.flags & IS_PING) this.#listener.ping();
        else if (answer.flags & IS_PONG) this.#pong(native.text(body));
        else {
            this.sample("ws_msgs_received", 1);
            const isText = (answer.flags & IS_TEXT) !== 0;
            this.#listener.message(isText ? native.text(body) : body, isText);
        }
        this.#listen();
    }

    #pong(payload) {
        const sent = this.#pings.get(payload);
        this.#pings.delete(payload);
        if (sent !== undefined) this.sample("ws_ping", native.now() - sent);
        this.#listener.pong();
    }

    /** The peer's Close frame has come. */
    #closedBy(body) {
        const bytes = new Uint8Array(body ?? new ArrayBuffer(0));
        const code = bytes.length < 2 ? NO_STATUS : bytes[0] * 256 + bytes[1];
        const reason = bytes.length < 2 ? "" : native.text(bytes.buffer.slice(2));
        const isExpected = this.state === "closing" || code === NORMAL || code === GOING_AWAY || code === NO_STATUS;
        this.#end(code, reason, isExpected ? undefined : `websocket: close ${code}${reason === "" ? "" : `: ${reason}`}`);
    }

    /** The connection has ended. */
    #end(code, reason, error) {
        if (this.state === "closed") return;
        this.#leave();
        if (error !== undefined) this.#listener.failed(error);
        this.#listener.closed(code, reason);
    }

    /** Gives the connection back. */
    #leave() {
        const wasOpen = this.state === "open" || this.state === "closing";
        this.state = "closed";
        open.delete(this);
        if (this.#goodbye !== undefined) stopTimer(this.#goodbye);
        if (this.#awaited !== undefined) {
            unhandle(this.#awaited);
            native.cancel(this.#awaited);
        }
        native.release(this.#handle);
        if (wasOpen) this.sample("ws_session_duration", native.now() - this.#began);
    }
}
