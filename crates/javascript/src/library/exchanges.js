// Requests under way: what is sent, and what an answer leads to: cookies, redirects, a second try with Digest, a Response.
import * as native from "brunt:native";
import { eachIteration, placeKey } from "brunt:user";
import { basic, digest } from "brunt:auth";
import { CookieJar, cookiePair, cookiesOf, isWithin } from "brunt:cookies";
import { showAnswer, showRequest } from "brunt:debug";
import { errorOf } from "brunt:failures";
import { encodeBody } from "brunt:forms";
import { measure } from "brunt:measures";
import { fieldOf, NO_PARAMS, Params, setField } from "brunt:params";
import { redirected, redirects } from "brunt:redirects";
import { Response } from "brunt:responses";
import { settings } from "brunt:settings";
import { ANY_STATUS, standingCallback } from "brunt:statuses";
import { labelOf, Target, targetOf } from "brunt:targets";
import { UrlError } from "brunt:urls";

const DISCARDS = 1;
const SETS_COOKIES = 1;

let userJar = new CookieJar();

eachIteration(() => {
    if (!settings().keepsCookies && !CookieJar.isEmpty(userJar)) userJar = new CookieJar();
});

/** The jar of the user. */
export function cookieJar() {
    return userJar;
}

/** A URL with a name, as `` http.url`…` `` makes it. */
export class NamedUrl {
    constructor(url, name) {
        this.url = url;
        this.name = name;
    }

    toString() {
        return this.url;
    }
}

/** One request that is sent; a redirect leads to another one. */
export class Hop {
    /**
     * @param target where it goes
     * @param fields header fields, flat, without cookies
     * @param body as it is sent, or `null`
     * @param name the name that the script gives, or `undefined`
     */
    constructor(method, target, fields, body, params, name) {
        this.method = method;
        this.target = target;
        this.fields = fields;
        this.body = body;
        this.params = params;
        this.name = name;
        this.flags = params.reads === "none" ? DISCARDS : 0;
        this.label = 0;
        this.place = undefined;
        this.callback = undefined;
    }

    /** Takes the label of calls such as this one where the user is now. */
    takeLabel() {
        const { params } = this;
        const callback = params.callback === undefined ? standingCallback() : params.callback;
        const place = placeKey();
        if (this.place === place && this.callback === callback) return;
        this.place = place;
        this.callback = callback;
        const name = this.name ?? `${this.method} ${this.target.name}`;
        this.label = labelOf(name, params.tags, callback === null ? ANY_STATUS : callback.ok);
    }

    /** Whether the script expects this status; `undefined` where it judges none. */
    expects(status) {
        return this.callback === null ? undefined : this.callback.includes(status);
    }

    /** Whether the answer's body is not kept. */
    get discards() {
        return this.flags === DISCARDS;
    }
}

/** A request and all that its redirects lead to. */
export class Exchange {
    /** What the script gets, once `settle` has returned false. */
    response = undefined;
    #hop;
    #first;
    #fields;
    #left;
    /** Whether Digest is still to be tried. */
    #mayDigest;
    #credentials;
    #began = 0;

    /** @param url a text or a `NamedUrl`; `given` the script's Params. Throws where these name no request. */
    static of(method, url, body, given) {
        const params = given === undefined || given === null ? NO_PARAMS : Params.read(given);
        const target = targetOf(url instanceof NamedUrl ? url.url : String(url));
        const fields = params.fields.slice();
        const encoded = encodeBody(body);
        if (encoded.contentType && fieldOf(fields, "Content-Type") === undefined) fields.push("Content-Type", encoded.contentType);
        const sent = params.compression ? compressed(encoded.body, params.compression, fields) : encoded.body;
        const { userAgent } = settings();
        if (userAgent !== undefined && fieldOf(fields, "User-Agent") === undefined) fields.push("User-Agent", userAgent);
        const name = params.tags?.name ?? (url instanceof NamedUrl ? url.name : undefined);
        return new Exchange(new Hop(method, target, fields, sent, params, name));
    }

    constructor(hop) {
        this.#first = hop.target.url;
        this.#fields = hop.fields;
        this.#left = hop.params.redirects ?? settings().maxRedirects;
        this.#move(hop);
    }

    /** Makes `hop` the request that is sent next. */
    #move(hop) {
        this.#hop = hop;
        this.#credentials = hop.target.url.credentials();
        this.#mayDigest = hop.params.auth === "digest" && this.#credentials !== undefined;
    }

    /** The host that the next request goes to. */
    get host() {
        return this.#hop.target.url.host;
    }

    /** The next request, as the client takes it. */
    call() {
        const hop = this.#hop;
        hop.takeLabel();
        if (settings().measures) this.#began = native.now();
        const fields = this.#withCookies(hop.fields);
        if (this.#credentials && hop.params.auth !== "digest" && fieldOf(fields, "Authorization") === undefined) {
            fields.push("Authorization", basic(this.#credentials));
        }
        if (settings().debug) showRequest(hop, fields);
        return [hop.label, hop.params.timeout, hop.method, hop.target.sent, fields, hop.body, hop.flags];
    }

    /** The fields of a request with the cookies that it has: its own, then those of the jar. */
    #withCookies(fields) {
        const { url } = this.#hop.target;
        const { cookies, jar = userJar } = this.#hop.params;
        const sent = fields.slice();
        const mayHaveOwn = cookies !== undefined && isWithin(url.hostname, this.#first.hostname);
        if (!mayHaveOwn && CookieJar.isEmpty(jar)) return sent;
        const pairs = mayHaveOwn ? cookies.map(({ name, value }) => cookiePair(name, value)) : [];
        for (const { name, value, quoted } of CookieJar.cookiesFor(jar, url)) {
            const isReplaced = mayHaveOwn && cookies.some((own) => own.replace && own.name === name);
            if (!isReplaced) pairs.push(cookiePair(name, value, quoted));
        }
        const explicit = fieldOf(sent, "Cookie");
        if (explicit !== undefined) pairs.unshift(explicit);
        if (pairs.length > 0) setField(sent, "Cookie", pairs.join("; "));
        return sent;
    }

    /** Takes an answer. Returns whether another request is to be sent: `call` has it. */
    settle(answer, reading) {
        const hop = this.#hop;
        const failure = errorOf(answer);
        if (settings().debug) showAnswer(hop, answer, reading);
        const header = answer.status === 401 && this.#mayDigest ? this.#digest(reading) : undefined;
        if (settings().measures) measure(hop, answer, reading, failure, header !== undefined, native.now() - this.#began);
        if (answer.flags & SETS_COOKIES && reading) {
            CookieJar.take(hop.params.jar ?? userJar, hop.target.url, cookiesOf(reading.headers()["set-cookie"]));
        }
        if (header !== undefined) {
            native.excuse(hop.label, answer.status);
            this.#retry(header);
            return true;
        }
        if (redirects(answer.status) && reading) {
            try {
                if (this.#follow(answer, reading)) return true;
            } catch (error) {
                if (!(error instanceof UrlError)) throw error;
                return this.#fail({ ticket: answer.ticket, status: 0, flags: 0 }, [error.code, `the redirect leads to no URL: ${error.message}`]);
            }
        }
        if (answer.error !== undefined) return this.#fail(answer, failure);
        this.response = new Response(hop, answer, reading, failure);
        return false;
    }

    /** Ends with a Response of a failure, or throws it where the script wants that. Returns false, as `settle` does. */
    #fail(answer, failure) {
        if (settings().throws) throw new Error(failure[1]);
        this.response = new Response(this.#hop, answer, undefined, failure);
        return false;
    }

    /** The Authorization field that answers a challenge. */
    #digest(reading) {
        const { method, target } = this.#hop;
        return digest(reading.headers()["www-authenticate"], method, target.url.target(), this.#credentials);
    }

    /** Sends the same request again with an Authorization field. */
    #retry(authorization) {
        const { method, target, fields, body, params, name } = this.#hop;
        const all = fields.slice();
        setField(all, "Authorization", authorization);
        this.#hop = new Hop(method, target, all, body, params, name);
        this.#mayDigest = false;
    }

    /** Goes where a redirect leads. Returns whether it leads anywhere. */
    #follow(answer, reading) {
        const { location } = reading.headers();
        if (!location || this.#left <= 0) return false;
        this.#left -= 1;
        const hop = this.#hop;
        const next = redirected(hop, answer.status, location, this.#fields, this.#first);
        this.#fields = withoutField(this.#fields, "Cookie");
        const body = next.keepsBody ? hop.body : null;
        this.#move(new Hop(next.method, new Target(next.url), withoutField(next.fields, "Cookie"), body, hop.params, hop.name));
        return true;
    }
}

function withoutField(fields, name) {
    const kept = [];
    for (let at = 0; at < fields.length; at += 2) {
        if (fields[at] !== name) kept.push(fields[at], fields[at + 1]);
    }
    return kept;
}

/** A body, compressed by each of these in turn; `fields` get the Content-Encoding. */
function compressed(body, kinds, fields) {
    if (body === null) return null;
    let packed = typeof body === "string" ? native.utf8(body) : body;
    for (const kind of kinds) {
        if (kind !== "gzip" && kind !== "deflate") throw new Error(`params.compression: brunt has no ${kind} for request bodies; use gzip or deflate`);
        packed = native.deflate(kind, packed);
    }
    if (fieldOf(fields, "Content-Encoding") === undefined) fields.push("Content-Encoding", kinds.join(", "));
    return packed;
}
