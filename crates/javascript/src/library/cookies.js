// Cookies, and what jars keep of them: RFC 6265, as Go's net/http and net/http/cookiejar keep them.
import { parseUrl } from "brunt:urls";

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const BAD_VALUE = /[^\x20\x21\x23-\x3a\x3c-\x5b\x5d-\x7e]/;
const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DATE = /^[A-Za-z]+,\s*(\d{1,2})[ -]([A-Za-z]{3})[ -](\d{2,4})\s+(\d{1,2}):(\d{2}):(\d{2})\s+(?:GMT|UTC|[A-Z]{3,4}|[+-]\d{4})$/;

/** Milliseconds since 1970 of a date as RFC 1123 writes it, or `undefined`. */
function dateOf(text) {
    if (text.length === 29 && text.endsWith(" GMT")) {
        const date = Date.parse(text);
        if (!Number.isNaN(date)) return date;
    }
    const parts = DATE.exec(text.trim());
    const month = parts ? MONTHS.indexOf(parts[2].toLowerCase()) : -1;
    if (month < 0) return undefined;
    const year = Number(parts[3]) + (parts[3].length > 2 ? 0 : Number(parts[3]) < 69 ? 2000 : 1900);
    return Date.UTC(year, month, Number(parts[1]), Number(parts[4]), Number(parts[5]), Number(parts[6]));
}

/** When a cookie ends, in milliseconds since 1970 and never 0, which means that it has no end; `undefined` where `text` is no date. */
function expiryOf(text) {
    const date = dateOf(text);
    return date === 0 ? -1 : date;
}

/** A cookie as a Response shows it. `max_age` is in seconds, `expires` in milliseconds since 1970; 0 where absent. */
export class Cookie {
    constructor(name, value) {
        this.name = name;
        this.value = value;
        this.domain = "";
        this.path = "";
        this.http_only = false;
        this.secure = false;
        this.max_age = 0;
        this.expires = 0;
    }

    /** `http_only`, as one page of k6's documentation calls it. */
    get httpOnly() {
        return this.http_only;
    }

    /** `max_age`, likewise. */
    get maxAge() {
        return this.max_age;
    }
}

/** Reads the value of a `Set-Cookie` field. Returns `undefined` where it is no cookie. */
export function parseSetCookie(line) {
    const parts = line.split(";");
    const pair = parts[0];
    const equals = pair.indexOf("=");
    const name = pair.slice(0, Math.max(equals, 0)).trim();
    if (!TOKEN.test(name)) return undefined;
    const written = pair.slice(equals + 1).trim();
    const isQuoted = written.length > 1 && written.startsWith('"') && written.endsWith('"');
    const value = isQuoted ? written.slice(1, -1) : written;
    if (BAD_VALUE.test(value)) return undefined;
    const cookie = new Cookie(name, value);
    if (isQuoted) Object.defineProperty(cookie, "quoted", { value: true });
    for (let at = 1; at < parts.length; at += 1) readAttribute(cookie, parts[at]);
    return cookie;
}

/** Takes an attribute of a `Set-Cookie` field. */
function readAttribute(cookie, attribute) {
    const equals = attribute.indexOf("=");
    const name = (equals < 0 ? attribute : attribute.slice(0, equals)).trim().toLowerCase();
    const value = equals < 0 ? "" : attribute.slice(equals + 1).trim();
    if (name === "domain") cookie.domain = value;
    else if (name === "path") cookie.path = value;
    else if (name === "secure") cookie.secure = true;
    else if (name === "httponly") cookie.http_only = true;
    else if (name === "expires") cookie.expires = expiryOf(value) ?? 0;
    else if (name === "max-age" && /^(?:-\d+|0|[1-9]\d*)$/.test(value)) cookie.max_age = Number(value) > 0 ? Number(value) : -1;
}

/** The cookies of `Set-Cookie` fields that are joined by line feeds, by name: `{ name: [Cookie, …] }`. */
export function cookiesByName(lines) {
    const byName = {};
    for (const cookie of cookiesOf(lines)) (byName[cookie.name] ??= []).push(cookie);
    return byName;
}

/** The cookies of `Set-Cookie` fields that are joined by line feeds. */
export function cookiesOf(lines) {
    const cookies = [];
    for (const line of lines ? lines.split("\n") : []) {
        const cookie = parseSetCookie(line);
        if (cookie) cookies.push(cookie);
    }
    return cookies;
}

/** A cookie as a `Cookie` field has it: bytes that no cookie has are left out, spaces and commas are quoted. */
export function cookiePair(name, value, isQuoted = false) {
    const valid = BAD_VALUE.test(value) ? value.replace(new RegExp(BAD_VALUE.source, "g"), "") : value;
    const quoted = isQuoted || /[ ,]/.test(valid) ? `"${valid}"` : valid;
    return `${name.replace(/[\r\n]/g, "-")}=${quoted}`;
}

/** The directory of a path, which is the path of cookies that name none (RFC 6265, section 5.1.4). */
function directoryOf(path) {
    const slash = path.lastIndexOf("/");
    return slash <= 0 ? "/" : path.slice(0, slash);
}

/** Whether a cookie's path holds for a request's path (RFC 6265, section 5.1.4). */
function pathMatches(path, requested) {
    if (!requested.startsWith(path)) return false;
    return requested.length === path.length || path.endsWith("/") || requested[path.length] === "/";
}

/** Whether a host's name is an IP address. */
function isAddress(hostname) {
    return hostname.startsWith("[") || /^\d+\.\d+\.\d+\.\d+$/.test(hostname);
}

/** Whether `hostname` is `domain` or inside it. */
export function isWithin(hostname, domain) {
    return hostname === domain || (hostname.endsWith(`.${domain}`) && !isAddress(hostname));
}

/** The domain that a cookie is kept for: `[domain, only that host]`, or `undefined` where its host may not set it. */
function domainOf(hostname, attribute) {
    if (attribute === "") return [hostname, true];
    const domain = attribute.replace(/^\./, "").toLowerCase();
    if (isAddress(hostname)) return domain === hostname ? [hostname, true] : undefined;
    if (domain === "" || domain.startsWith(".") || domain.endsWith(".") || !isWithin(hostname, domain)) return undefined;
    return [domain, false];
}

/** URLs whose Cookie field a jar remembers. */
const MOST_FIELDS = 64;

/** What a jar keeps. */
export class Cookies {
    #kept = new Map();
    #created = 0;
    /** Cookie fields by `Url`, until the jar changes: `{ text, until }`. */
    #fields = new Map();

    /** Whether there is no cookie at all. */
    get isEmpty() {
        return this.#kept.size === 0;
    }

    /** Takes cookies that came with an answer of `url`, a `Url`. */
    takeAll(url, cookies) {
        for (const cookie of cookies) this.#take(url, cookie);
    }

    /** The cookies for `url`, a `Url`, in the order in which they are sent: `[{ name, value, quoted }, …]`. */
    cookiesFor(url) {
        return this.#matching(url);
    }

    /** The cookies for `url`, a `Url`, as a Cookie field has them; empty where there are none. */
    fieldFor(url) {
        const known = this.#fields.get(url);
        if (known !== undefined && (known.until === Infinity || known.until > Date.now())) return known.text;
        let text = "";
        let until = Infinity;
        for (const cookie of this.#matching(url)) {
            text += (text === "" ? "" : "; ") + cookiePair(cookie.name, cookie.value, cookie.quoted);
            until = Math.min(until, cookie.until);
        }
        if (this.#fields.size >= MOST_FIELDS) this.#fields.clear();
        this.#fields.set(url, { text, until });
        return text;
    }

    /** Keeps a cookie, or removes it where it has ended (RFC 6265, section 5.3). */
    #take(url, cookie) {
        const where = domainOf(url.hostname, cookie.domain);
        if (!where) return;
        const [domain, isHostOnly] = where;
        const path = cookie.path.startsWith("/") ? cookie.path : directoryOf(url.path);
        const key = `${domain};${path};${cookie.name}`;
        this.#fields.clear();
        const now = Date.now();
        const until = cookie.max_age > 0 ? now + cookie.max_age * 1000 : cookie.expires || Infinity;
        if (cookie.max_age < 0 || until <= now) {
            this.#kept.delete(key);
            return;
        }
        const order = this.#kept.get(key)?.order ?? (this.#created += 1);
        const { name, value, secure, quoted } = cookie;
        this.#kept.set(key, { key, name, value, quoted, secure, domain, isHostOnly, path, until, order });
    }

    /** The cookies for a URL, in the order in which they are sent (RFC 6265, section 5.4). */
    #matching(url) {
        const now = Date.now();
        const path = url.path === "" ? "/" : url.path;
        const found = [];
        for (const cookie of this.#kept.values()) {
            if (cookie.until <= now) this.#kept.delete(cookie.key);
            else if (cookie.secure && url.scheme !== "https") continue;
            else if (cookie.isHostOnly ? url.hostname !== cookie.domain : !isWithin(url.hostname, cookie.domain)) continue;
            else if (pathMatches(cookie.path, path)) found.push(cookie);
        }
        return found.sort((one, other) => other.path.length - one.path.length || one.order - other.order);
    }

    /** The values of the cookies for a URL, by name: `{ name: [value, …] }`. */
    cookiesForURL(url) {
        const values = {};
        for (const { name, value } of this.#matching(parseUrl(String(url)))) (values[name] ??= []).push(value);
        return values;
    }

    /** Sets a cookie, as if an answer of `url` had set it. Options: domain, path, expires, max_age, secure, http_only. */
    set(url, name, value, options = {}) {
        const cookie = new Cookie(String(name), String(value));
        for (const [option, given] of Object.entries(options ?? {})) setOption(cookie, option, given);
        this.#take(parseUrl(String(url)), cookie);
        return true;
    }

    /** Removes all cookies for a URL. */
    clear(url) {
        for (const { key } of this.#matching(parseUrl(String(url)))) this.#kept.delete(key);
        this.#fields.clear();
    }

    /** Removes the cookies of a name for a URL. */
    delete(url, name) {
        for (const cookie of this.#matching(parseUrl(String(url)))) {
            if (cookie.name === String(name)) this.#kept.delete(cookie.key);
        }
        this.#fields.clear();
    }
}

/** Takes an option of `set`. */
function setOption(cookie, option, given) {
    if (option === "domain" || option === "path") cookie[option] = String(given);
    else if (option === "secure" || option === "http_only") cookie[option] = Boolean(given);
    else if (option === "max_age") cookie.max_age = Math.trunc(Number(given));
    else if (option === "expires") {
        cookie.expires = expiryOf(String(given));
        if (cookie.expires === undefined) throw new Error(`unable to parse '${given}' as a cookie's expires: write it as 'Mon, 02 Jan 2006 15:04:05 MST'`);
    }
}
