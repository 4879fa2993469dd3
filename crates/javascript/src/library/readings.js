// Parts of an answer: read when the script wants them, or just before the client forgets them.
import { readBytes, readHeaders, readRemote, readText, readTimings, text } from "brunt:native";

const NO_TIMINGS = { blocked: 0, connecting: 0, tls_handshaking: 0, sending: 0, waiting: 0, receiving: 0, duration: 0 };
const NO_REMOTE = {};

/** The parts of one answer. */
export class Reading {
    static {
        // What was read; most answers are read in one part, if at all.
        Object.assign(this.prototype, { body: undefined, string: undefined, json: undefined, fields: undefined, times: undefined, peer: undefined });
    }

    /** @param isOpen whether the client still has the answer */
    constructor(ticket, isOpen, discards) {
        this.ticket = ticket;
        this.isOpen = isOpen;
        this.discards = discards;
    }

    /** The parts of an answer that came as an event, with all that is known of it. */
    static ofEvent({ answer, body, headers, timings, remote }, discards) {
        const reading = new Reading(answer.ticket, false, discards);
        reading.body = body;
        reading.fields = headers;
        reading.times = timings;
        reading.peer = remote;
        return reading;
    }

    /** The body as text; `null` where it was discarded. */
    text() {
        if (this.discards) return null;
        if (this.string === undefined) this.string = this.body ? text(this.body) : this.isOpen ? readText(this.ticket) : "";
        return this.string;
    }

    /** The body as an ArrayBuffer; `null` where it was discarded. */
    bytes() {
        if (this.discards) return null;
        if (!this.body && this.isOpen) this.body = readBytes(this.ticket);
        return this.body ?? new ArrayBuffer(0);
    }

    /** Header fields by their names in lower case; lines of `set-cookie` are joined by line feeds. */
    headers() {
        if (this.fields === undefined && this.isOpen) this.fields = readHeaders(this.ticket);
        return this.fields ?? {};
    }

    /** Times of the request in milliseconds. */
    timings() {
        if (this.times === undefined && this.isOpen) this.times = readTimings(this.ticket);
        return this.times ?? NO_TIMINGS;
    }

    /** The server's address, the protocol and TLS, as far as known. */
    remote() {
        if (this.peer === undefined && this.isOpen) this.peer = readRemote(this.ticket);
        return this.peer ?? NO_REMOTE;
    }

    /** Reads all parts, since the client is about to forget the answer. */
    keep() {
        if (!this.isOpen) return;
        this.bytes();
        this.headers();
        this.timings();
        this.remote();
        this.isOpen = false;
    }
}
