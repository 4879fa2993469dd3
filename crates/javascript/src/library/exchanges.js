// Requests under way: what is sent, and what an answer leads to: cookies, redirects, a second try with Digest, a Response.
import * as native from "brunt:native";
import { eachIteration, placeKey } from "brunt:user";
import { CookieJar, cookiePair, cookiesOf, isWithin } from "brunt:cookies";
import { encodeBody } from "brunt:forms";
import { measure } from "brunt:measures";
import { fieldOf, NO_PARAMS, Params, withField, withoutField } from "brunt:params";
import { redirected, redirects } from "brunt:redirects";
import { need } from "brunt:needed";
import { settings } from "brunt:settings";
import { ANY_STATUS, standing } from "brunt:statuses";
import { labelOf, Target, targetOf } from "brunt:targets";
import { UrlError } from "brunt:urls";

let userJar = new CookieJar();

eachIteration(() => {
    if (!CookieJar.isEmpty(userJar) && !settings().keepsCookies) userJar = new CookieJar();
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

    /** The URL. */
    toString() {
        return this.url;
    }
}

/** One request that is sent; a redirect leads to another one. */
export class Hop {
    static {
        // The Cookie field that was sent last, and the fields with it.
        Object.assign(this.prototype, {
            cookies: undefined,
            fieldsWithCookies: undefined,
            /** k6's code of the error for which it cannot be sent. */
            code: undefined,
            /** The number by which the engine sends it as it is; 0 where it has none. */
            prepared: 0,
        });
    }

    /**
     * @param target where it goes
     * @param fields header fields, flat, without cookies and without credentials of the URL
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
        this.discards = params.reads === "none";
        /** Whether the user's cookies are all that its fields lack. */
        this.isBare = target.url?.userInfo === undefined && params.cookies === undefined && params.jar === undefined;
        this.label = 0;
        this.place = undefined;
        this.callback = undefined;
    }

    /** The request that the script describes. `url` is a text or a `NamedUrl`. Throws where it describes none. */
    static of(method, url, body, given) {
        const params = given === undefined || given === null ? NO_PARAMS : Params.read(given);
        const isNamed = url instanceof NamedUrl;
        const target = targetOf(isNamed ? url.url : String(url));
        const name = params.tags?.name ?? (isNamed ? url.name : undefined);
        let { fields } = params;
        const { userAgent } = settings();
        if (userAgent !== undefined && fieldOf(fields, "User-Agent") === undefined) fields = withField(fields, "User-Agent", userAgent);
        if (body === undefined || body === null) return new Hop(method, target, fields, null, params, name);
        const encoded = encodeBody(body);
        if (encoded.contentType && fieldOf(fields, "Content-Type") === undefined) fields = withField(fields, "Content-Type", encoded.contentType);
        if (!params.compression) return new Hop(method, target, fields, encoded.body, params, name);
        if (fieldOf(fields, "Content-Encoding") === undefined) fields = withField(fields, "Content-Encoding", params.compression.join(", "));
        return new Hop(method, target, fields, compressed(encoded.body, params.compression), params, name);
    }

    /** Takes the label of calls such as this one where the user is now. */
    takeLabel() {
        const { params } = this;
        const callback = params.callback === undefined ? standing : params.callback;
        const place = placeKey();
        if (this.place === place && this.callback === callback) return;
        this.place = place;
        this.callback = callback;
        const name = this.name ?? `${this.method} ${this.target.name}`;
        this.label = labelOf(name, params.otherTags, callback === null ? ANY_STATUS : callback.ok);
    }

    /** Whether the script expects this status; `undefined` where it judges none. */
    expects(status) {
        return this.callback === null ? undefined : this.callback.includes(status);
    }
}

/** The fields of a request with the user's cookies. Its URL has no credentials, and its Params neither cookies nor a jar. */
export function bareFields(hop) {
    if (CookieJar.isEmpty(userJar)) return hop.fields;
    const cookies = CookieJar.fieldFor(userJar, hop.target.url);
    if (cookies === "") return hop.fields;
    if (hop.cookies !== cookies) {
        hop.cookies = cookies;
        hop.fieldsWithCookies = withCookies(hop.fields, cookies);
    }
    return hop.fieldsWithCookies;
}

/** Fields with cookies behind those that they have. */
function withCookies(fields, cookies) {
    const explicit = fieldOf(fields, "Cookie");
    return withField(fields, "Cookie", explicit === undefined ? cookies : `${explicit}; ${cookies}`);
}

/** The number by which the engine sends a request that takes neither cookies nor credentials; 0 where it has none. */
export function preparedOf(hop) {
    if (!CookieJar.isEmpty(userJar)) return 0;
    hop.prepared ||= native.prepare(hop, 0, 0, hop.method, hop.target.sent, hop.fields, hop.body, hop.discards);
    return hop.prepared;
}

/** Puts the cookies of an answer into the jar of its request. */
function takeCookies({ params, target }, response) {
    CookieJar.take(params.jar ?? userJar, target.url, cookiesOf(native.readHeaders(response)["set-cookie"]));
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
    #withCookies({ target: { url }, params: { cookies, jar = userJar }, fields }) {
        const mayHaveOwn = cookies !== undefined && isWithin(url.hostname, this.#first.hostname);
        const pairs = mayHaveOwn ? cookies.map(({ name, value }) => cookiePair(name, value)) : [];
        for (const { name, value, quoted } of CookieJar.cookiesFor(jar, url)) {
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
        if (settings().measures) measure(hop, response, header !== undefined, native.now() - this.#began);
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
            if (!(error instanceof UrlError)) throw error;
            return this.#fail(unsent(hop, error.code, `the redirect leads to no URL: ${error.message}`));
        }
        this.response = response;
        return false;
    }

    /** Ends with a Response of a failure, or throws it where the script wants that. Returns false, as `settle` does. */
    #fail(response) {
        this.response = response;
        if (settings().throws) throw new Error(response.error);
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

/** The Response of a request that cannot be made, with k6's code of the error. */
export function unsent(hop, code, text) {
    return native.unsent(Object.assign(Object.create(hop), { code }), text);
}

/** A body, compressed by each of these in turn. */
function compressed(body, kinds) {
    let packed = typeof body === "string" ? native.utf8(body) : body;
    for (const kind of kinds) {
        if (kind !== "gzip" && kind !== "deflate") throw new Error(`params.compression: brunt has no ${kind} for request bodies; use gzip or deflate`);
        packed = native.deflate(kind, packed);
    }
    return packed;
}
