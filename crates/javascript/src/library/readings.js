// Parts of an answer: read when the script wants them, or just before the client forgets them.
import { readBytes, readHeaders, readRemote, readText, readTimings, text } from "brunt:native";
import { beforeWaiting } from "brunt:user";

/** Readings of answers that the client still has. */
const open = [];

beforeWaiting(() => {
    for (let at = 0; at < open.length; at += 1) open[at].deref()?.keep();
    open.length = 0;
});

const NO_TIMINGS = { blocked: 0, connecting: 0, tls_handshaking: 0, sending: 0, waiting: 0, receiving: 0, duration: 0 };
const NO_REMOTE = {};

/** The parts of one answer. */
export class Reading {
    #ticket;
    /** Whether the client still has the answer. */
    #isOpen = true;
    #discards;
    #bytes = undefined;
    #headers = undefined;
    #timings = undefined;
    #remote = undefined;

    constructor(ticket, discards) {
        this.#ticket = ticket;
        this.#discards = discards;
    }

    /** The parts of an answer that the client has. */
    static of(answer, discards) {
        const reading = new Reading(answer.ticket, discards);
        open.push(new WeakRef(reading));
        return reading;
    }

    /** The parts of an answer that came as an event, with all that is known of it. */
    static ofEvent(event, discards) {
        const reading = new Reading(event.answer.ticket, discards);
        reading.#isOpen = false;
        reading.#bytes = event.body;
        reading.#headers = event.headers;
        reading.#timings = event.timings;
        reading.#remote = event.remote;
        return reading;
    }

    /** The body as text; `null` where it was discarded. */
    text() {
        if (this.#discards) return null;
        if (this.#bytes) return text(this.#bytes);
        return this.#isOpen ? readText(this.#ticket) : "";
    }

    /** The body as an ArrayBuffer; `null` where it was discarded. */
    bytes() {
        if (this.#discards) return null;
        if (!this.#bytes && this.#isOpen) this.#bytes = readBytes(this.#ticket);
        return this.#bytes ?? new ArrayBuffer(0);
    }

    /** Header fields by their names in lower case; lines of `set-cookie` are joined by line feeds. */
    headers() {
        if (this.#headers === undefined && this.#isOpen) this.#headers = readHeaders(this.#ticket);
        return this.#headers ?? {};
    }

    /** Times of the request in milliseconds. */
    timings() {
        if (this.#timings === undefined && this.#isOpen) this.#timings = readTimings(this.#ticket);
        return this.#timings ?? NO_TIMINGS;
    }

    /** The server's address, the protocol and TLS, as far as known. */
    remote() {
        if (this.#remote === undefined && this.#isOpen) this.#remote = readRemote(this.#ticket);
        return this.#remote ?? NO_REMOTE;
    }

    /** Reads all parts, since the client is about to forget the answer. */
    keep() {
        this.bytes();
        this.headers();
        this.timings();
        this.remote();
        this.#isOpen = false;
    }
}
