// URLs as Go's net/url reads and writes them, those that need an escape, too: https://pkg.go.dev/net/url, RFC 3986.
import * as native from "brunt:natives";
import { Url } from "brunt:urls";

/** An error of a URL that names no request, with k6's error code for it. */
export class UrlError extends Error {
    constructor(message, code = 1020) {
        super(message);
        this.name = "UrlError";
        this.code = code;
    }
}

const SCHEME = /^([a-zA-Z][a-zA-Z0-9+.-]*):/;
const CONTROL = /[\x00-\x1f\x7f]/;
const BAD_ESCAPE = /%(?![0-9a-fA-F]{2}).{0,2}/s;
/** What a path may hold without being escaped anew. */
const VALID_PATH = /^(?:[A-Za-z0-9\-_.~!$&'()*+,;=:@[\]/]|%[0-9a-fA-F]{2})*$/;
const ESCAPED_IN_PATH = /[^A-Za-z0-9\-_.~$&+,/:;=@]/gu;
const ESCAPED_IN_QUERY = /[^\x21-\x7e]/gu;
const USER = /^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/;
const HOST = /^(?:\[[0-9a-fA-F:.]+(?:%25[^\]]*)?\]|[^\s"<>\\^`{|}%[\]:]+)$/;

/** Percent-encodes the UTF-8 bytes of a text. */
export function percent(text) {
    const bytes = new Uint8Array(native.utf8(text));
    let escaped = "";
    for (const byte of bytes) escaped += `%${byte < 16 ? "0" : ""}${byte.toString(16).toUpperCase()}`;
    return escaped;
}

/** Decodes percent-encoding. Throws at a bad escape. */
export function unescape(text) {
    if (!text.includes("%")) return text;
    const bad = BAD_ESCAPE.exec(text);
    if (bad) throw new UrlError(`invalid URL escape "${bad[0]}"`);
    return text.replace(/(?:%[0-9a-fA-F]{2})+/g, (run) => {
        const bytes = new Uint8Array(run.length / 3);
        for (let at = 0; at < bytes.length; at += 1) bytes[at] = parseInt(run.slice(at * 3 + 1, at * 3 + 3), 16);
        return native.text(bytes.buffer);
    });
}

/** Encodes a key or a value of a form or query as Go's `url.QueryEscape` does: a space is `+`. */
export function queryEscape(text) {
    if (/^[A-Za-z0-9\-_.~]*$/.test(text)) return text;
    return text.replace(/[^A-Za-z0-9\-_.~]+/gu, (run) => percent(run).replaceAll("%20", "+"));
}

/** The path as it is sent: as written where that is valid, else decoded and escaped anew. */
function sentPath(path) {
    const plain = unescape(path);
    return VALID_PATH.test(path) ? path : plain.replace(ESCAPED_IN_PATH, percent);
}

/** Splits `text` at the first `mark`: what is before it, and what is after it or `undefined`. */
function cut(text, mark) {
    const at = text.indexOf(mark);
    return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}

/** The parts of a reference, as written: scheme, authority, path, query and fragment, `undefined` where absent. */
function split(text) {
    if (CONTROL.test(text)) throw new UrlError("invalid control character in URL");
    const [whole, fragment] = cut(text, "#");
    const scheme = SCHEME.exec(whole)?.[1];
    const [rest, query] = cut(scheme === undefined ? whole : whole.slice(scheme.length + 1), "?");
    if (!rest.startsWith("//")) return { scheme, path: rest, query, fragment };
    const slash = rest.indexOf("/", 2);
    const authority = slash < 0 ? rest.slice(2) : rest.slice(2, slash);
    return { scheme, authority, path: slash < 0 ? "" : rest.slice(slash), query, fragment };
}

/** The URL of these parts: scheme, authority (with user info), path, query, fragment, as written. */
function urlOf(parts) {
    const scheme = parts.scheme.toLowerCase();
    if (scheme !== "http" && scheme !== "https") throw new UrlError(`unsupported protocol scheme "${scheme}"`, 1000);
    const authority = parts.authority ?? "";
    const at = authority.lastIndexOf("@");
    const userInfo = at < 0 ? undefined : authority.slice(0, at);
    if (at >= 0 && !USER.test(userInfo)) throw new UrlError("invalid userinfo");
    const { host, hostname } = hostOf(authority.slice(at + 1));
    return new Url(scheme, userInfo, host, hostname, sentPath(parts.path), parts.query?.replace(ESCAPED_IN_QUERY, percent), parts.fragment);
}

/** The name and password of a URL's user info, decoded. */
export function credentialsOf(userInfo) {
    const [user, password] = cut(userInfo, ":");
    return { user: unescape(user), password: unescape(password ?? "") };
}

/** The URL that `reference` means when it is found at `url` (RFC 3986, section 5.2). */
export function resolved(url, reference) {
    const parts = split(reference);
    if (parts.scheme !== undefined) return urlOf(parts);
    if (parts.authority !== undefined) return urlOf({ ...parts, scheme: url.scheme });
    const authority = url.userInfo === undefined ? url.host : `${url.userInfo}@${url.host}`;
    const base = { scheme: url.scheme, authority, fragment: parts.fragment };
    if (parts.path === "") return urlOf({ ...base, path: url.path, query: parts.query ?? url.query });
    const path = parts.path.startsWith("/") ? parts.path : url.path.slice(0, url.path.lastIndexOf("/") + 1) + parts.path;
    return urlOf({ ...base, path: withoutDots(path), query: parts.query });
}

/** A host and its name in lower case, as cookies need it. Throws where it is none. */
function hostOf(written) {
    if (written === "" || written.startsWith(":")) throw new UrlError("no Host in request URL", 1000);
    const port = /:([^:\]]*)$/.exec(written);
    if (port && !/^[0-9]*$/.test(port[1])) throw new UrlError(`invalid port ":${port[1]}" after host`);
    const name = port ? written.slice(0, port.index) : written;
    if (!HOST.test(name)) throw new UrlError(`invalid character in host name "${name}"`);
    if (/[^\x00-\x7f]/.test(name)) throw new UrlError(`the host name "${name}" is not ASCII: write it in punycode (xn--…)`);
    return { host: port?.[1] === "" ? name : written, hostname: name.toLowerCase() };
}

/** Resolves `.` and `..` of a path (RFC 3986, section 5.2.4). */
function withoutDots(path) {
    const kept = [];
    const segments = path.split("/");
    for (const [at, segment] of segments.entries()) {
        const isLast = at === segments.length - 1;
        if (segment === "..") kept.length > 1 && kept.pop();
        else if (segment !== ".") kept.push(segment);
        if (isLast && (segment === ".." || segment === ".")) kept.push("");
    }
    const joined = kept.join("/");
    return joined.startsWith("/") ? joined : `/${joined}`;
}

/** Reads an absolute URL. Throws a `UrlError` where it is none. */
export function readUrl(text) {
    const parts = split(text);
    if (parts.scheme !== undefined) return urlOf(parts);
    if (parts.path.startsWith(":")) throw new UrlError("missing protocol scheme");
    if (parts.authority === undefined && cut(parts.path, "/")[0].includes(":")) throw new UrlError("first path segment in URL cannot contain colon");
    throw new UrlError(`unsupported protocol scheme ""`, text === "" ? 1020 : 1000);
}
