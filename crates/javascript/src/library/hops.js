// Requests as they are sent, and what describes them.
import * as native from "brunt:native";
import { CookieJar } from "brunt:jars";
import { need } from "brunt:needed";
import { NO_PARAMS } from "brunt:params";
import { settings } from "brunt:settings";
import { ANY_STATUS, standing } from "brunt:statuses";
import { labelOf, targetOf } from "brunt:targets";
import { eachIteration, placeNumber, user } from "brunt:user";

let userJar = new CookieJar();

eachIteration(
    () => {
        if (!CookieJar.isEmpty(userJar) && !settings().keepsCookies) userJar = new CookieJar();
        native.hasCookies(!CookieJar.isEmpty(userJar));
    },
    () => CookieJar.isEmpty(userJar),
);

/** The jar of the user. */
export function cookieJar() {
    return userJar;
}

/** A file of a multipart body, as `http.file` makes it. */
export class FileData {
    constructor(data, filename, contentType) {
        this.data = data;
        this.filename = filename;
        this.content_type = contentType;
    }
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
        this.place = 0;
        this.callback = undefined;
    }

    /** The request that the script describes. `url` is a text or a `NamedUrl`. Throws where it describes none. */
    static of(method, url, body, given) {
        const params = given === undefined || given === null ? NO_PARAMS : need("brunt:given-params").readParams(given);
        const isNamed = url instanceof NamedUrl;
        const target = targetOf(isNamed ? url.url : String(url));
        const name = params.tags?.name ?? (isNamed ? url.name : undefined);
        const { userAgent } = settings();
        const isPlain = (body === undefined || body === null) && userAgent === undefined;
        const { fields, sent } = isPlain ? { fields: params.fields, sent: null } : need("brunt:bodies").encoded(body, params, userAgent);
        return new Hop(method, target, fields, sent, params, name);
    }

    /** Takes the label of calls such as this one where the user is now. */
    takeLabel() {
        const { params } = this;
        const callback = params.callback === undefined ? standing : params.callback;
        const place = placeNumber();
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
    const cookies = CookieJar.of(userJar).fieldFor(hop.target.url);
    if (cookies === "") return hop.fields;
    if (hop.cookies !== cookies) {
        hop.cookies = cookies;
        hop.fieldsWithCookies = need("brunt:bodies").withCookies(hop.fields, cookies);
    }
    return hop.fieldsWithCookies;
}

/** The number by which the engine sends a request that takes neither cookies nor credentials; 0 where it has none. */
export function preparedOf(hop) {
    if (!CookieJar.isEmpty(userJar)) return 0;
    hop.prepared ||= native.prepare(hop, 0, 0, hop.method, hop.target.sent, hop.fields, hop.body, hop.discards);
    return hop.prepared;
}

/** Refuses, in the init context, what takes a running user. */
export function refuseInit() {
    if (!user.running) throw new Error("requests and jars are not for the init context: use them in setup(), in a scenario's function or in teardown()");
}

/** The request that a script describes, or the Response that says why there is none. */
export function described(method, url, body, params) {
    refuseInit();
    try {
        return Hop.of(method, url, body, params);
    } catch (error) {
        return need("brunt:exchanges").refused(error, method, url, params);
    }
}

/** Whether a value is a Response. */
export function isResponse(value) {
    return native.labelOf(value) !== undefined;
}
