// URLs, and the reading of those that need no escape; `brunt:url-rules` reads the others.
import { need } from "brunt:needed";

/** A URL that needs no escape: scheme, host with port, host, path, query. */
const USUAL = /^(https?):\/\/(([a-z0-9.-]+)(?::\d+)?)((?:\/[A-Za-z0-9\-_.~!$&'()*+,;=:@/]*)?)(?:\?([!"$-~]*))?$/;

/** An absolute URL of http or https. */
export class Url {
    /** Takes parts that are valid and escaped; `hostname` is in lower case, `userInfo`, `query` and `fragment` may be `undefined`. */
    constructor(scheme, userInfo, host, hostname, path, query, fragment) {
        this.scheme = scheme;
        this.userInfo = userInfo;
        /** The host as written, with its port. */
        this.host = host;
        this.hostname = hostname;
        this.path = path;
        this.query = query;
        this.fragment = fragment;
    }

    /** The user's name and password, decoded, or `undefined`. */
    credentials() {
        return this.userInfo === undefined ? undefined : need("brunt:url-rules").credentialsOf(this.userInfo);
    }

    /** Path and query, as a request line has them. */
    target() {
        const path = this.path === "" ? "/" : this.path;
        return this.query === undefined ? path : `${path}?${this.query}`;
    }

    /** The URL that is requested: without user info and fragment. */
    sent() {
        return `${this.scheme}://${this.host}${this.target()}`;
    }

    /** The URL as a Response and tags show it: without the path that was added, user info as `userInfo` says. */
    shown(userInfo = "") {
        const query = this.query === undefined ? "" : `?${this.query}`;
        const fragment = this.fragment ? `#${this.fragment}` : "";
        return `${this.scheme}://${userInfo}${this.host}${this.path}${query}${fragment}`;
    }

    /** The URL that `reference` means when it is found at this one. */
    resolve(reference) {
        return need("brunt:url-rules").resolved(this, reference);
    }
}

/** Reads an absolute URL. Throws a `UrlError` where it is none. */
export function parseUrl(text) {
    const usual = USUAL.exec(text);
    if (usual !== null) return new Url(usual[1], undefined, usual[2], usual[3], usual[4], usual[5], undefined);
    return need("brunt:url-rules").readUrl(text);
}
