// Jars of cookies, which load `brunt:cookies` with their first cookie: https://grafana.com/docs/k6/latest/javascript-api/k6-http/cookiejar/
import { hasCookies } from "brunt:native";
import { need } from "brunt:needed";

/** A jar of cookies. */
export class CookieJar {
    #cookies;

    /** What a jar keeps. */
    static of(jar) {
        hasCookies(true);
        return (jar.#cookies ??= new (need("brunt:cookies").Cookies)());
    }

    /** Whether a jar has no cookie at all. */
    static isEmpty(jar) {
        return jar.#cookies === undefined || jar.#cookies.isEmpty;
    }

    /** The values of the cookies for a URL, by name: `{ name: [value, …] }`. */
    cookiesForURL(url) {
        return CookieJar.of(this).cookiesForURL(url);
    }

    /** Sets a cookie, as if an answer of `url` had set it. */
    set(url, name, value, options) {
        return CookieJar.of(this).set(url, name, value, options);
    }

    /** Removes all cookies for a URL. */
    clear(url) {
        CookieJar.of(this).clear(url);
    }

    /** Removes the cookies of a name for a URL. */
    delete(url, name) {
        CookieJar.of(this).delete(url, name);
    }
}
