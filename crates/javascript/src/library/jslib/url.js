// `https://jslib.k6.io/url`: URL and URLSearchParams, after the URL Standard (url.spec.whatwg.org).
import { bytesOf } from "brunt:bytes";
import * as native from "brunt:natives";

/** Schemes that the standard calls special, with their default ports. */
const SPECIAL = { "http:": "80", "https:": "443", "ws:": "80", "wss:": "443", "ftp:": "21", "file:": "" };
/** Characters beside the controls and non-ASCII ones that each part of an address escapes. */
const FRAGMENT = ' "<>`';
const QUERY = ' "#<>';
const SPECIAL_QUERY = `${QUERY}'`;
const PATH = `${QUERY}?\`{}`;
const USER = `${PATH}/:;=@[\\]^|`;

/** Escapes a part: controls, bytes beyond ASCII, and the given characters. */
function escaped(text, signs) {
    let out = "";
    for (const sign of text) {
        const code = sign.codePointAt(0);
        if (code > 0x1f && code < 0x7f && !signs.includes(sign)) {
            out += sign;
            continue;
        }
        for (const byte of new Uint8Array(bytesOf(sign))) out += percent(byte);
    }
    return out;
}

/** A byte as a percent sign and two digits. */
function percent(byte) {
    return `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
}

/** The text that percent signs stand for; what is no UTF-8 becomes U+FFFD. */
function unescaped(text) {
    if (!text.includes("%")) return text;
    const bytes = [];
    const raw = new Uint8Array(bytesOf(text));
    for (let at = 0; at < raw.length; at += 1) {
        const code = raw[at] === 0x25 ? /^[0-9a-f]{2}$/i.exec(String.fromCharCode(raw[at + 1], raw[at + 2]))?.[0] : undefined;
        bytes.push(code === undefined ? raw[at] : parseInt(code, 16));
        if (code !== undefined) at += 2;
    }
    return native.text(new Uint8Array(bytes).buffer);
}

/** A name or value of a query, as forms write it. */
function formEscaped(text) {
    return encodeURIComponent(text.toWellFormed()).replace(/%20/g, "+").replace(/[!'()~]/g, (sign) => percent(sign.charCodeAt(0)));
}

/** Names and values of a query. Its functions are the standard's. */
export class URLSearchParams {
    #pairs = [];
    /** Told of each change, where the query is an address's. */
    #changed = () => {};

    constructor(init = "") {
        if (init === null || typeof init !== "object") this.#pairs = pairsOf(String(init).replace(/^\?/, ""));
        else if (typeof init[Symbol.iterator] === "function") for (const pair of init) this.#add(...pairOf(pair));
        else for (const name of Object.keys(init)) this.#add(name, init[name]);
    }

    /** Adds a pair of texts. */
    #add(name, value) {
        this.#pairs.push([String(name), String(value)]);
    }

    /** The query of an address, which is told of changes. */
    static of(query, changed) {
        const params = new URLSearchParams(query);
        params.#changed = changed;
        return params;
    }

    /** Takes the names and values of another query. */
    replace(query) {
        this.#pairs = pairsOf(query);
    }

    get size() {
        return this.#pairs.length;
    }

    append(name, value) {
        this.#add(name, value);
        this.#changed();
    }

    delete(name, value) {
        this.#pairs = this.#pairs.filter(([key, own]) => key !== String(name) || (value !== undefined && own !== String(value)));
        this.#changed();
    }

    get(name) {
        return this.#pairs.find(([key]) => key === String(name))?.[1] ?? null;
    }

    getAll(name) {
        return this.#pairs.filter(([key]) => key === String(name)).map(([, value]) => value);
    }

    has(name, value) {
        return this.#pairs.some(([key, own]) => key === String(name) && (value === undefined || own === String(value)));
    }

    set(name, value) {
        const at = this.#pairs.findIndex(([key]) => key === String(name));
        if (at < 0) return this.append(name, value);
        this.#pairs = this.#pairs.filter(([key], index) => index <= at || key !== String(name));
        this.#pairs[at] = [String(name), String(value)];
        return this.#changed();
    }

    sort() {
        this.#pairs.sort(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0));
        this.#changed();
    }

    forEach(visit, self) {
        for (const [name, value] of this.#pairs) visit.call(self, value, name, this);
    }

    *keys() {
        for (const [name] of this.#pairs) yield name;
    }

    *values() {
        for (const [, value] of this.#pairs) yield value;
    }

    *entries() {
        for (const [name, value] of this.#pairs) yield [name, value];
    }

    [Symbol.iterator]() {
        return this.entries();
    }

    toString() {
        return this.#pairs.map(([name, value]) => `${formEscaped(name)}=${formEscaped(value)}`).join("&");
    }
}

/** A name and a value. */
function pairOf(pair) {
    const both = [...pair];
    if (both.length !== 2) throw new TypeError("URLSearchParams wants pairs of a name and a value");
    return both;
}

/** Names and values of a query's text. */
function pairsOf(query) {
    return query.split("&").filter((part) => part !== "").map((part) => {
        const at = part.indexOf("=");
        const name = at < 0 ? part : part.slice(0, at);
        const value = at < 0 ? "" : part.slice(at + 1);
        return [name, value].map((text) => unescaped(text.replaceAll("+", " ")));
    });
}

/** The host of a special address: lower case, an IPv4 address in its usual form. */
function hostOf(text, special) {
    if (text.startsWith("[")) {
        if (!/^\[[0-9a-f:.]+\]$/i.test(text)) throw new TypeError(`not an address: the host ${text}`);
        return text.toLowerCase();
    }
    if (!special) {
        if (/[\0\t\n\r #/:<>?@[\\\]^|]/.test(text)) throw new TypeError(`not an address: the host ${text}`);
        return escaped(text, "");
    }
    const host = unescaped(text).toLowerCase();
    if (/[^\x21-\x7e]/.test(host)) throw new TypeError(`not an address: the host ${text} is not ASCII; write it in Punycode`);
    if (host === "" || /[\s#%/:<>?@[\\\]^|]/.test(host)) throw new TypeError(`not an address: the host ${text}`);
    return /^(\d+|0x[\da-f]*)$/.test(host.replace(/\.$/, "").split(".").at(-1)) ? ipv4(host) : host;
}

/** An IPv4 address of up to four numbers, each decimal, octal or hexadecimal. */
function ipv4(host) {
    const parts = host.replace(/\.$/, "").split(".");
    const numbers = parts.map(ipv4Number);
    const last = numbers.pop();
    const isNumber = numbers.length < 4 && ![...numbers, last].some(Number.isNaN);
    if (!isNumber || numbers.some((number) => number > 255) || last >= 256 ** (4 - numbers.length)) throw new TypeError(`not an address: the host ${host}`);
    const all = numbers.reduce((sum, number, index) => sum + number * 256 ** (3 - index), last);
    return [24, 16, 8, 0].map((shift) => Math.floor(all / 2 ** shift) % 256).join(".");
}

/** A part of an IPv4 address. */
function ipv4Number(text) {
    if (/^0x[\da-f]+$/.test(text)) return parseInt(text, 16);
    if (/^0[0-7]+$/.test(text)) return parseInt(text, 8);
    return /^\d+$/.test(text) ? Number(text) : NaN;
}

/** A path without `.` and `..`. */
function flattened(path) {
    const segments = [];
    const parts = path.split("/").slice(1);
    parts.forEach((part, index) => {
        const isLast = index === parts.length - 1;
        const plain = part.replace(/%2e/gi, ".");
        if (plain === "..") segments.pop();
        else if (plain !== ".") return segments.push(part);
        return isLast && segments.push("");
    });
    return `/${segments.join("/")}`;
}

/** Splits a text into the parts of an address (RFC 3986, appendix B). */
function split(text) {
    const [, scheme, authority, path, query, fragment] = /^([a-z][a-z0-9+.-]*:)?(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#([^]*))?$/i.exec(text);
    return { scheme: scheme?.toLowerCase(), authority, path, query, fragment };
}

/** An address. Its properties are the standard's. */
export class URL {
    #parts;
    #params;

    constructor(address, base) {
        this.#parts = parse(String(address), base === undefined ? undefined : new URL(String(base)).#parts);
        this.#params = URLSearchParams.of(this.#parts.query ?? "", () => (this.#parts.query = this.#params.toString() || undefined));
    }

    /** Whether a text is an address. */
    static canParse(address, base) {
        try {
            return Boolean(new URL(address, base));
        } catch {
            return false;
        }
    }

    get protocol() {
        return this.#parts.scheme;
    }

    set protocol(value) {
        const scheme = `${String(value).split(":")[0].toLowerCase()}:`;
        if ((scheme in SPECIAL) !== (this.#parts.scheme in SPECIAL)) return;
        this.#parts.scheme = scheme;
        if (this.#parts.port === SPECIAL[scheme]) this.#parts.port = "";
    }

    get username() {
        return this.#parts.username;
    }

    set username(value) {
        this.#parts.username = escaped(String(value), USER);
    }

    get password() {
        return this.#parts.password;
    }

    set password(value) {
        this.#parts.password = escaped(String(value), USER);
    }

    get hostname() {
        return this.#parts.host ?? "";
    }

    set hostname(value) {
        this.#parts.host = hostOf(String(value), this.#parts.scheme in SPECIAL);
    }

    get port() {
        return this.#parts.port;
    }

    set port(value) {
        this.#parts.port = portOf(String(value), this.#parts.scheme);
    }

    get host() {
        return this.hostname + (this.port === "" ? "" : `:${this.port}`);
    }

    set host(value) {
        Object.assign(this.#parts, authorityOf(String(value), this.#parts.scheme), { username: this.username, password: this.password });
    }

    get origin() {
        return this.protocol in SPECIAL && this.protocol !== "file:" ? `${this.protocol}//${this.host}` : "null";
    }

    get pathname() {
        return this.#parts.path;
    }

    set pathname(value) {
        this.#parts.path = pathOf(String(value), this.#parts.scheme in SPECIAL, this.#parts.host !== undefined);
    }

    get search() {
        return this.#parts.query ? `?${this.#parts.query}` : "";
    }

    set search(value) {
        const query = String(value).replace(/^\?/, "");
        this.#parts.query = query === "" ? undefined : escaped(query, this.#parts.scheme in SPECIAL ? SPECIAL_QUERY : QUERY);
        this.#params.replace(this.#parts.query ?? "");
    }

    get searchParams() {
        return this.#params;
    }

    get hash() {
        return this.#parts.fragment ? `#${this.#parts.fragment}` : "";
    }

    set hash(value) {
        const fragment = String(value).replace(/^#/, "");
        this.#parts.fragment = fragment === "" ? undefined : escaped(fragment, FRAGMENT);
    }

    get href() {
        const { scheme, username, password, host, path, query, fragment } = this.#parts;
        const user = username + (password === "" ? "" : `:${password}`);
        const authority = host === undefined ? "" : `//${user === "" ? "" : `${user}@`}${this.host}`;
        return scheme + authority + path + (query === undefined ? "" : `?${query}`) + (fragment === undefined ? "" : `#${fragment}`);
    }

    toString() {
        return this.href;
    }

    toJSON() {
        return this.href;
    }
}

/** The parts of an address, which may be relative to that of `base`. */
function parse(address, base) {
    const text = address.replace(/^[\0-\x20]+|[\0-\x20]+$/g, "").replace(/[\t\n\r]/g, "");
    let given = split(text);
    // `http:a` is relative to an address of its scheme, for browsers have always taken it so.
    if (base !== undefined && given.scheme === base.scheme && given.scheme in SPECIAL && !/^[^:]*:[/\\]{2}/.test(text)) {
        const rest = text.slice(given.scheme.length);
        return parse(/^[?#/\\]|^$/.test(rest) ? rest : `./${rest}`, base);
    }
    const scheme = given.scheme ?? base?.scheme;
    if (scheme === undefined) throw new TypeError(`not an address: ${address}`);
    const special = scheme in SPECIAL;
    if (special) given = split(straightened(text, given.scheme));
    const isRelative = base !== undefined && given.scheme === undefined;
    const fragment = given.fragment === undefined ? undefined : escaped(given.fragment, FRAGMENT);
    const query = given.query === undefined ? undefined : escaped(given.query, special ? SPECIAL_QUERY : QUERY);
    if (given.authority !== undefined || !isRelative) {
        if (special && scheme !== "file:" && !given.authority) throw new TypeError(`not an address: ${address}`);
        const owned = given.authority === undefined ? { username: "", password: "", port: "", host: undefined } : authorityOf(given.authority, scheme);
        return { scheme, ...owned, path: pathOf(given.path, special, owned.host !== undefined), query, fragment };
    }
    if (given.path === "") return { ...base, query: query ?? base.query, fragment };
    const path = given.path.startsWith("/") ? given.path : base.path.replace(/[^/]*$/, "") + given.path;
    return { ...base, path: pathOf(path, special, true), query, fragment };
}

/** A special address with slashes for backslashes, and two of them after its scheme. */
function straightened(text, scheme) {
    const end = text.search(/[?#]/);
    const head = (end < 0 ? text : text.slice(0, end)).replaceAll("\\", "/");
    const tail = end < 0 ? "" : text.slice(end);
    if (scheme === undefined) return head.replace(/^\/{2,}/, "//") + tail;
    return (scheme === "file:" ? head : head.replace(/^([^:]*:)\/*/, "$1//")) + tail;
}

/** User, host and port of an authority. */
function authorityOf(authority, scheme) {
    const at = authority.lastIndexOf("@");
    const user = at < 0 ? "" : authority.slice(0, at);
    const colon = user.indexOf(":");
    const [, host, port] = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/.exec(authority.slice(at + 1)) ?? [];
    if (host === undefined || (host === "" && (at >= 0 || port !== undefined))) throw new TypeError(`not an address: the host ${authority}`);
    return {
        username: escaped(colon < 0 ? user : user.slice(0, colon), USER),
        password: colon < 0 ? "" : escaped(user.slice(colon + 1), USER),
        host: scheme === "file:" && host === "" ? "" : hostOf(host, scheme in SPECIAL),
        port: portOf(port ?? "", scheme),
    };
}

/** A port; empty for the default one of its scheme. */
function portOf(text, scheme) {
    if (!/^\d*$/.test(text) || Number(text) > 65535) throw new TypeError(`not an address: the port ${text}`);
    const port = text === "" ? "" : String(Number(text));
    return port === SPECIAL[scheme] ? "" : port;
}

/** A path, escaped and without dots. */
function pathOf(path, special, hasHost) {
    if (!special && !hasHost && !path.startsWith("/")) return escaped(path, "");
    const straight = special ? path.replaceAll("\\", "/") : path;
    if (!special && straight === "") return "";
    return flattened(escaped(straight.startsWith("/") ? straight : `/${straight}`, PATH));
}

export default { URL, URLSearchParams };
