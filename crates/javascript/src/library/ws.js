// `k6/ws`: https://grafana.com/docs/k6/latest/javascript-api/k6-ws/
import { runUntil, startTimer, stopTimer } from "brunt:events";
import { settings } from "brunt:settings";
import { Connection, NORMAL } from "brunt:sockets";

/** An error as handlers take it. */
class SocketError {
    constructor(text) {
        this.message = text;
    }

    /** Its text. */
    error() {
        return this.message;
    }

    toString() {
        return this.message;
    }
}

/** A connection, as the script's callback takes it. */
class Socket {
    #connection;
    #handlers = new Map();
    #timers = new Set();

    constructor(connection) {
        this.#connection = connection;
    }

    /** Calls `handler` with each event of this name. */
    on(event, handler) {
        if (typeof handler !== "function") throw new TypeError("socket.on() takes a function");
        if (!this.#handlers.has(event)) this.#handlers.set(event, []);
        this.#handlers.get(event).push(handler);
    }

    /** Sends a text. */
    send(text) {
        this.#connection.send(String(text), false);
    }

    /** Sends bytes. */
    sendBinary(bytes) {
        if (bytes === undefined || bytes === null) throw new TypeError("missing argument, expected ArrayBuffer");
        if (typeof bytes !== "object" || bytes.byteLength === undefined) throw new TypeError("expected ArrayBuffer as argument");
        this.#connection.send(bytes, true);
    }

    /** Sends a ping. */
    ping() {
        this.#connection.ping();
    }

    /** Ends the connection: the script hears of it at once. */
    close(code) {
        if (this.#connection.state !== "open") return;
        this.#connection.close(code === undefined ? NORMAL : Number(code));
        if (this.#connection.state === "closing") Socket.emit(this, "close", code === undefined ? NORMAL : Number(code));
    }

    /** Calls `run` once, after so many milliseconds. */
    setTimeout(run, delay) {
        this.#after("setTimeout", run, delay, false);
    }

    /** Calls `run` each so many milliseconds. */
    setInterval(run, delay) {
        this.#after("setInterval", run, delay, true);
    }

    #after(name, run, delay, repeats) {
        if (typeof run !== "function") throw new TypeError(`socket.${name}() takes a function`);
        if (!(Number(delay) > 0)) throw new TypeError(`socket.${name}() takes a time above 0, not ${delay}`);
        this.#timers.add(startTimer(run, delay, repeats));
    }

    /** Calls the handlers of an event. */
    static emit(socket, event, ...values) {
        for (const handler of socket.#handlers.get(event) ?? []) handler(...values);
    }

    /** Ends the socket's timers. */
    static quiet(socket) {
        for (const timer of socket.#timers) stopTimer(timer);
        socket.#timers.clear();
    }
}

/** Connects, and calls `callback` with the socket. Returns the answer to the handshake once the connection has ended. */
export function connect(url, params, callback) {
    const run = typeof params === "function" ? params : callback;
    if (typeof run !== "function") throw new TypeError("the last argument to ws.connect must be a function");
    let wasOpen = false;
    /** Whether the script has heard of the end. */
    let isOver = false;
    const emit = (event, ...values) => wasOpen && !isOver && Socket.emit(socket, event, ...values);
    const connection = new Connection(String(url), [], typeof params === "function" ? undefined : params, {
        opened() {
            wasOpen = true;
            run(socket);
            emit("open");
        },
        message: (data, isText) => connection.state === "open" && emit(isText ? "message" : "binaryMessage", data),
        ping: () => emit("ping"),
        pong: () => emit("pong"),
        failed: (text) => emit("error", new SocketError(text)),
        closed(code) {
            if (!hasLeft) emit("close", code);
            isOver = true;
        },
    });
    let hasLeft = false;
    const socket = new Socket(connection);
    socket.on("close", () => {
        hasLeft = true;
        Socket.quiet(socket);
    });
    try {
        connection.begin();
        runUntil(() => connection.state === "closed");
    } finally {
        Socket.quiet(socket);
        connection.abandon();
    }
    const { response } = connection;
    if (response.error !== "" && settings().throws) throw new Error(response.error);
    return response;
}

export default { connect };
