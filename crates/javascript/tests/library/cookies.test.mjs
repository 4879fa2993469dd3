// Cookies: https://grafana.com/docs/k6/latest/using-k6/cookies/, javascript-api/k6-http/cookiejar; RFC 6265.
import assert from "node:assert/strict";
import { test } from "node:test";
import { newVisitor, visit } from "./site.mjs";

const SITE = "https://site.test";
const cookiesSent = (user) => user.sent.map(({ headers }) => headers.Cookie);

/** A site that sets these cookies at /set. */
function setting(...lines) {
    return ({ url }) => (new URL(url).pathname.startsWith("/set") ? { headers: { "set-cookie": lines } } : "");
}

test("cookies of answers are sent again, also of the same request's later ones", async () => {
    const user = await visit(`http.get("${SITE}/set"); http.get("${SITE}/a"); http.get("${SITE}/a"); http.get("http://other.test/");`, setting("a=1", "b=2; Path=/"));
    assert.deepEqual(cookiesSent(user), [undefined, "a=1; b=2", "a=1; b=2", undefined]);
});

test("Response.cookies has each cookie with its attributes (using-k6/cookies, Properties of a response cookie object)", async () => {
    const line = "my_cookie=hello; Domain=site.test; Path=/p; Expires=Mon, 02 Jan 2040 15:04:05 GMT; Max-Age=600; Secure; HttpOnly; SameSite=Lax";
    const user = await visit(`const { cookies, headers } = http.get("${SITE}/set"); show(cookies); show([cookies.my_cookie[0].httpOnly, cookies.my_cookie[0].maxAge]); show(headers["Set-Cookie"]);`,
        setting(line, "my_cookie=other", "q=\"quo ted\"", "bad name=1", "noequals"));
    assert.deepEqual(user.shown[0], {
        my_cookie: [
            { name: "my_cookie", value: "hello", domain: "site.test", path: "/p", http_only: true, secure: true, max_age: 600, expires: Date.UTC(2040, 0, 2, 15, 4, 5) },
            { name: "my_cookie", value: "other", domain: "", path: "", http_only: false, secure: false, max_age: 0, expires: 0 },
        ],
        q: [{ name: "q", value: "quo ted", domain: "", path: "", http_only: false, secure: false, max_age: 0, expires: 0 }],
    });
    assert.deepEqual(user.shown[1], [true, 600]);
    assert.ok(user.shown[2].startsWith(`${line}, my_cookie=other`));
});

test("domain, path, Secure and the end of a cookie choose where it is sent (RFC 6265, section 5.4)", async () => {
    const cases = [
        ["a=1; Domain=site.test", "https://sub.site.test/", "a=1"],
        ["a=1", "https://sub.site.test/", undefined],
        ["a=1; Domain=.site.test", "https://sub.site.test/", "a=1"],
        ["a=1; Domain=other.test", "https://other.test/", undefined],
        ["a=1; Domain=other.test", SITE, undefined],
        ["a=1; Path=/docs", `${SITE}/docs/x`, "a=1"],
        ["a=1; Path=/docs", `${SITE}/docs`, "a=1"],
        ["a=1; Path=/docs", `${SITE}/docsets`, undefined],
        ["a=1; Secure", "http://site.test/", undefined],
        ["a=1", "http://site.test/", "a=1"],
        ["a=1", "http://SITE.test:8080/", "a=1"],
        ["a=1; Max-Age=0", SITE, undefined],
        ["a=1; Max-Age=-5", SITE, undefined],
        ["a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT", SITE, undefined],
        ["a=1; Expires=Thu, 01-Jan-1970 00:00:00 GMT; Max-Age=60", SITE, "a=1"],
        ["a=1; Expires=never", SITE, "a=1"],
    ];
    for (const [line, url, expected] of cases) {
        const user = await visit(`http.get("${SITE}/set"); http.get("${url}");`, setting(line));
        assert.equal(cookiesSent(user)[1], expected, `${line} at ${url}`);
    }
});

test("a cookie without a path is for the directory that set it (RFC 6265, section 5.1.4)", async () => {
    const answer = ({ url }) => (url.endsWith("/b") ? { headers: { "set-cookie": ["a=1"] } } : "");
    const user = await visit(`http.get("${SITE}/x/a/b"); http.get("${SITE}/x/a"); http.get("${SITE}/x"); http.get("${SITE}/x/a/c");`, answer);
    assert.deepEqual(cookiesSent(user), [undefined, "a=1", undefined, "a=1"]);
});

test("longer paths come first, then older cookies; a cookie that is set again keeps its place", async () => {
    const user = await visit(`const jar = http.cookieJar(); const set = (name, path) => jar.set("${SITE}/x/y", name, name, { path });
        set("a", "/"); set("b", "/x"); set("c", "/"); jar.set("${SITE}/x/y", "a", "again", { path: "/" }); http.get("${SITE}/x/y");`);
    assert.deepEqual(cookiesSent(user), ["b=b; a=again; c=c"]);
});

test("params.cookies are the request's own; replace takes the jar's place (using-k6/cookies)", async () => {
    const user = await visit(`const jar = http.cookieJar(); jar.set("${SITE}", "my", "jar");
        http.get("${SITE}", { cookies: { my: "own", n: 5 } }); http.get("${SITE}", { cookies: { my: { value: "new", replace: true } } }); http.get("${SITE}");
        show(http.get("${SITE}", { cookies: { my: { value: "new", replace: true } } }).request.cookies);
        http.get("${SITE}", { headers: { cookie: "raw=1" }, cookies: { a: "b" } }); `);
    assert.deepEqual(cookiesSent(user), ["my=own; n=5; my=jar", "my=new", "my=jar", "my=new", "raw=1; a=b; my=jar"]);
    assert.deepEqual(user.shown, [{ my: [{ name: "my", value: "new", replace: true }] }]);
});

test("spaces and commas are quoted, bytes of no cookie are left out (Go's net/http, Cookie.String)", async () => {
    const user = await visit(`http.get("${SITE}", { cookies: { a: "hello world", b: "1,2", c: 'x"y;z' } });`);
    assert.deepEqual(cookiesSent(user), ['a="hello world"; b="1,2"; c=xyz']);
});

test("a jar is read, set and emptied by URL (cookiejar)", async () => {
    const user = await visit(`const jar = http.cookieJar(); const at = "${SITE}/api/cookies";
        jar.set(at, "one", "1"); jar.set(at, "two", "hello world"); jar.set(at, "three", 3); show(jar.cookiesForURL(at)); show(jar.cookiesForURL("${SITE}/other"));
        jar.delete(at, "one"); show(jar.cookiesForURL(at)); jar.clear(at); show(jar.cookiesForURL(at));
        jar.set("http://site.test", "safe", "s", { domain: "site.test", path: "/api", secure: true, max_age: 600, http_only: true, expires: "Mon, 02 Jan 2040 15:04:05 MST" });
        show(jar.cookiesForURL(at)); show(jar.cookiesForURL("http://site.test/api"));
        try { jar.set(at, "x", "y", { expires: "tomorrow" }); } catch (e) { show(e.message); }`);
    assert.deepEqual(user.shown.slice(0, 6), [
        { one: ["1"], two: ["hello world"], three: ["3"] }, {}, { two: ["hello world"], three: ["3"] }, {}, { safe: ["s"] }, {},
    ]);
    assert.match(user.shown[6], /tomorrow/);
});

test("a jar of the script's takes the place of the user's (using-k6/cookies, Local cookie jars)", async () => {
    const user = await visit(`const jar = new http.CookieJar(); jar.set("${SITE}", "mine", "1", { path: "/" });
        http.get("${SITE}/set", { jar }); http.get("${SITE}/a", { jar }); http.get("${SITE}/a"); show(jar.cookiesForURL("${SITE}/"));`, setting("got=2; Path=/"));
    assert.deepEqual(cookiesSent(user), ["mine=1", "mine=1; got=2", undefined]);
    assert.deepEqual(user.shown, [{ mine: ["1"], got: ["2"] }]);
    await assert.rejects(visit(`http.get("${SITE}", { jar: {} })`), /new http.CookieJar/);
});

test("cookies are forgotten after each iteration, unless noCookiesReset says otherwise (k6-options/reference)", async () => {
    for (const [noCookiesReset, expected] of [[false, [undefined, undefined]], [true, [undefined, "a=1"]]]) {
        const user = await newVisitor(setting("a=1"), { options: { noCookiesReset } });
        const script = await user.script(`import http from "k6/http"; export default () => { http.get("${SITE}/set"); };`);
        const { iterate } = await user.import("brunt:loop");
        iterate(script.default);
        iterate(script.default);
        assert.deepEqual(cookiesSent(user), expected);
    }
});
