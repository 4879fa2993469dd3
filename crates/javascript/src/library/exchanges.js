// Requests under way, as far as an answer leads to more than a Response: cookies, redirects, a second try with Digest, failures.
import * as native from "brunt:natives";
import { withCookies } from "brunt:bodies";
import { cookiePair, cookiesOf, isWithin } from "brunt:cookies";
import { withField, withoutField } from "brunt:fields";
import { bareFields, cookieJar, Hop } from "brunt:hops";
import { CookieJar } from "brunt:jars";
import { need } from "brunt:needed";
import { fieldOf, NO_PARAMS } from "brunt:params";
import { redirected, redirects } from "brunt:redirects";
import { settings } from "brunt:settings";
import { Target } from "brunt:targets";

/** Puts the cookies of an answer into the jar of its request. */
function takeCookies({ params, target }, response) {
    CookieJar.of(params.jar ?? cookieJar()).takeAll(target.url, cookiesOf(native.readHeaders(response)["set-cookie"]));
}

/** A request and all that its redirects lead to. */
export class Exchange {
    /** What the script gets, once `settle` has returned false. */
    response = undefined;
    /** The request that is sent next. */
    hop;
    #first;
    /** The fields of the first request. */
    #fields;
    #left;
    /** Whether Digest is still to be tried. */
    #mayDigest;
    #credentials;
    #began;

    /** @param began when its first request was sent, if it was */
    constructor(hop, began = 0) {
        this.#began = began;
        this.#first = hop.target.url;
        this.#fields = hop.fields;
        this.#left = hop.params.redirects ?? settings().maxRedirects;
        this.#move(hop);
    }

    /** Makes `hop` the request that is sent next. */
    #move(hop) {
        this.hop = hop;
        this.#credentials = hop.target.url.credentials();
        this.#mayDigest = hop.params.auth === "digest" && this.#credentials !== undefined;
    }

    /** The next request, as the client takes it. */
    call() {
        const { hop } = this;
        hop.takeLabel();
        const { measures, debug } = settings();
        if (measures) this.#began = native.now();
        const fields = hop.isBare ? bareFields(hop) : this.#allFields(hop);
        if (debug) need("brunt:debug").showRequest(hop, fields);
        return [hop, hop.label, hop.params.timeout, hop.method, hop.target.sent, fields, hop.body, hop.discards];
    }

    /** The fields of a request with its cookies and the credentials of its URL. */
    #allFields(hop) {
        let fields = this.#withCookies(hop);
        const isBasic = this.#credentials && hop.params.auth !== "digest" && fieldOf(fields, "Authorization") === undefined;
        if (isBasic) fields = withField(fields, "Authorization", need("brunt:auth").basic(this.#credentials));
        return fields;
    }

    /** The fields of a request with the cookies that it has: its own, then those of the jar. */
    #withCookies({ target: { url }, params: { cookies, jar = cookieJar() }, fields }) {
        const mayHaveOwn = cookies !== undefined && isWithin(url.hostname, this.#first.hostname);
        const pairs = mayHaveOwn ? cookies.map(({ name, value }) => cookiePair(name, value)) : [];
        for (const { name, value, quoted } of CookieJar.of(jar).cookiesFor(url)) {
            const isReplaced = mayHaveOwn && cookies.some((own) => own.replace && own.name === name);
            if (!isReplaced) pairs.push(cookiePair(name, value, quoted));
        }
        return pairs.length === 0 ? fields : withCookies(fields, pairs.join("; "));
    }

    /** Takes a Response. Returns whether another request is to be sent: `call` has it. */
    settle(response) {
        const { hop } = this;
        const { status } = response;
        if (settings().debug) need("brunt:debug").showAnswer(response);
        const header = status === 401 && this.#mayDigest ? this.#digest(response) : undefined;
        if (settings().measures) need("brunt:measures").measure(hop, response, header !== undefined, native.now() - this.#began);
        if (native.setsCookies(response)) takeCookies(hop, response);
        if (header !== undefined) {
            native.excuse(hop.label, status);
            this.#retry(header);
            return true;
        }
        if (status === 0 && !native.isAnswer(response)) return this.#fail(response);
        try {
            if (redirects(status) && this.#follow(response)) return true;
        } catch (error) {
            if (!(error instanceof need("brunt:url-rules").UrlError)) throw error;
            return this.#fail(unsent(hop, error.code, `the redirect leads to no URL: ${error.message}`));
        }
        this.response = response;
        return false;
    }

    /** Ends with a Response of a failure, or throws it where the script wants that. Returns false, as `settle` does. */
    #fail(response) {
        this.response = response;
        if (this.hop.params.throws ?? settings().throws) throw new Error(response.error);
        return false;
    }

    /** The Authorization field that answers a challenge. */
    #digest(response) {
        const { method, target } = this.hop;
        return need("brunt:auth").digest(native.readHeaders(response)["www-authenticate"], method, target.url.target(), this.#credentials);
    }

    /** Sends the same request again with an Authorization field. */
    #retry(authorization) {
        const { method, target, fields, body, params, name } = this.hop;
        this.hop = new Hop(method, target, withField(fields, "Authorization", authorization), body, params, name);
        this.#mayDigest = false;
    }

    /** Goes where a redirect leads. Returns whether it leads anywhere. */
    #follow(response) {
        const { location } = native.readHeaders(response);
        if (!location || this.#left <= 0) return false;
        this.#left -= 1;
        const { hop } = this;
        this.#fields = withoutField(this.#fields, "Cookie");
        const next = redirected(hop, response.status, location, this.#fields, this.#first);
        this.#move(new Hop(next.method, new Target(next.url), next.fields, next.keepsBody ? hop.body : null, hop.params, hop.name));
        return true;
    }
}

/** Makes an exchange's requests, one after the other. Returns the last one's Response. */
export function complete(exchange) {
    for (;;) {
        if (!exchange.settle(native.http(...exchange.call()))) return exchange.response;
    }
}

/** The Response of a request that cannot be made, with k6's code of the error. */
export function unsent(hop, code, text) {
    return native.unsent(Object.assign(Object.create(hop), { code }), text);
}


/** The Response that says why a request cannot be made. Throws what is no fault of its URL, or where the script wants that. */
export function refused(error, method, url, params) {
    const throws = params?.throw ?? settings().throws;
    if (!(error instanceof need("brunt:url-rules").UrlError) || throws) throw error;
    native.print("warn", `Request Failed: ${method} ${url}: ${error.message}`);
    const text = error.code === 1020 ? `invalid URL: ${error.message}` : error.message;
    return unsent(new Hop(method, { shown: String(url) }, [], null, NO_PARAMS), error.code, text);
}
