// Streams of gRPC, and what answers of calls say.
import * as native from "brunt:natives";
import { handle, unhandle } from "brunt:events";

const CANCELED = 1;
const DEADLINE_EXCEEDED = 4;
const UNAVAILABLE = 14;
/** Fields with which trailers begin. */
const TRAILERS = new Set(["grpc-status", "grpc-message", "grpc-status-details-bin"]);
const EVENTS = ["data", "error", "end", "metadata"];

let callOf;

/** Sets what prepares the calls of streams. */
export function streamsBy(prepare) {
    callOf = prepare;
}

/** The text of `grpc-message`, whose bytes are escaped as in URLs. */
function unescaped(text) {
    try {
        return decodeURIComponent(text);
    } catch {
        return text;
    }
}

/** Status, header fields, trailers and error of an answer with this head. */
export function partsOf(answer, head) {
    const headers = {};
    const trailers = {};
    let into = headers;
    for (const line of (head ?? "").split(/\r?\n/)) {
        const at = line.indexOf(": ");
        if (at <= 0) continue;
        const name = line.slice(0, at).toLowerCase();
        if (TRAILERS.has(name)) into = trailers;
        (into[name] ??= []).push(line.slice(at + 2));
    }
    if (answer.error !== undefined) {
        const code = answer.error === "timeout" || answer.error === "stalled" ? DEADLINE_EXCEEDED : UNAVAILABLE;
        return { status: code, headers, trailers, error: { code, message: answer.reason || answer.error, details: [] } };
    }
    const message = unescaped(trailers["grpc-message"]?.[0] ?? "");
    const error = answer.status === 0 ? null : { code: answer.status, message, details: [] };
    return { status: answer.status, headers, trailers, error };
}

/** A call whose messages go one by one. It begins with the first message, or with the end of them. */
export class Stream {
    #call;
    #handlers = new Map();
    #ticket;
    #isEnded = false;
    #isOver = false;

    constructor(client, method, params) {
        this.#call = callOf(client, method, params, "streaming");
    }

    /** Calls `handler` with each event of this name. */
    on(event, handler) {
        if (!EVENTS.includes(event)) throw new TypeError(`a stream has no event '${event}': ${EVENTS.join(", ")}`);
        if (typeof handler !== "function") throw new TypeError("stream.on() takes a function");
        if (!this.#handlers.has(event)) this.#handlers.set(event, []);
        this.#handlers.get(event).push(handler);
    }

    /** Sends a message. */
    write(message) {
        if (this.#isEnded || this.#isOver) return this.#emit("error", { code: CANCELED, message: "the stream has ended: nothing more is sent", details: [] });
        const json = JSON.stringify(message);
        if (this.#ticket === undefined) this.#begin(json);
        else native.say(this.#ticket, this.#call.method, json, undefined, "more");
        this.#call.count("grpc_streams_msgs_sent");
    }

    /** Says that nothing more is sent. */
    end() {
        if (this.#isEnded || this.#isOver) return;
        this.#isEnded = true;
        if (this.#ticket === undefined) this.#begin(undefined);
        try {
            native.say(this.#ticket, this.#call.method, undefined, undefined, "finish");
        } catch (error) {
            // A method that takes one message has it already.
            if (!/nothing to send/.test(error.message)) throw error;
        }
    }

    #begin(json) {
        const { way, label, timeout, method, metadata } = this.#call;
        this.#ticket = native.stream(way[0], label, timeout, way[1], way[2], false, method, json, metadata, "open");
        this.#call.count("grpc_streams");
        this.#listen();
    }

    #listen() {
        const id = native.nextOf(this.#ticket, `json ${this.#call.method}`);
        handle(id, (event) => {
            unhandle(id);
            if (event.answer === undefined) {
                this.#call.count("grpc_streams_msgs_received");
                this.#emit("data", JSON.parse(event.message));
                this.#listen();
            } else {
                this.#over(event.answer, event.head);
            }
        });
    }

    #over(answer, head) {
        this.#isOver = true;
        const { headers, error } = partsOf(answer, head);
        this.#emit("metadata", headers);
        if (error !== null) this.#emit("error", error);
        this.#emit("end");
    }

    #emit(event, ...values) {
        for (const handler of this.#handlers.get(event) ?? []) handler(...values);
    }
}
