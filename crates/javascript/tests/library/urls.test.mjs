// URLs, as Go's net/url sends them (https://pkg.go.dev/net/url), and redirects, as Go's net/http follows them (https://pkg.go.dev/net/http#Client).
import assert from "node:assert/strict";
import { test } from "node:test";
import { newVisitor, visit } from "./site.mjs";

const SITE = "http://site.test";

test("URLs are sent escaped, without fragment and user info", async () => {
    const cases = [
        ["http://site.test", "http://site.test/"],
        ["HTTP://Site.test:80?x=1", "http://Site.test:80/?x=1"],
        ["http://site.test/a b", "http://site.test/a%20b"],
        ["http://site.test/a%20b/%2F", "http://site.test/a%20b/%2F"],
        ["http://site.test/é/😀", "http://site.test/%C3%A9/%F0%9F%98%80"],
        ["http://site.test/(a)!*'[x]", "http://site.test/(a)!*'[x]"],
        ["http://site.test/(a) %2F", "http://site.test/%28a%29%20/"],
        ["http://site.test/a?b=c d&e=é", "http://site.test/a?b=c%20d&e=%C3%A9"],
        ["http://site.test/a?b={x}|y&c=[1]", "http://site.test/a?b={x}|y&c=[1]"],
        ["http://site.test/a#b?c", "http://site.test/a"],
        ["http://site.test/a?", "http://site.test/a?"],
        ["http://u:p@site.test/a/../b", "http://site.test/a/../b"],
        ["https://[::1]:8443/x", "https://[::1]:8443/x"],
        ["http://site.test:/x", "http://site.test/x"],
    ];
    for (const [url, expected] of cases) {
        const user = await visit(`http.get(${JSON.stringify(url)});`);
        assert.equal(user.sent[0]?.url, expected, url);
    }
});

test("what is no URL is refused", async () => {
    const cases = [
        ["", 1020], ["/path", 1000], ["site.test", 1000], ["ftp://site.test", 1000], ["http://", 1000], ["http://:80", 1000], ["http://a b", 1020],
        ["http://site.test:port", 1020], ["http://site.test/%zz", 1020], ["http://site.test/\n", 1020], ["http://u ser@site.test", 1020], ["http://bücher.test", 1020], ["http://h::1", 1020],
    ];
    for (const [url, code] of cases) {
        const user = await visit(`const r = http.get(${JSON.stringify(url)}); show([r.status, r.error_code]);`);
        assert.deepEqual(user.shown, [[0, code]], url);
        assert.equal(user.sent.length, 0, url);
    }
});

test("references resolve as RFC 3986, section 5.4 has them", async () => {
    const user = await newVisitor();
    const { parseUrl } = await user.import("brunt:urls");
    const base = parseUrl("http://a/b/c/d;p?q");
    const cases = {
        "g": "http://a/b/c/g", "./g": "http://a/b/c/g", "g/": "http://a/b/c/g/", "/g": "http://a/g", "//g": "http://g", "?y": "http://a/b/c/d;p?y", "g?y": "http://a/b/c/g?y",
        "#s": "http://a/b/c/d;p?q#s", "g#s": "http://a/b/c/g#s", ";x": "http://a/b/c/;x", "": "http://a/b/c/d;p?q", ".": "http://a/b/c/", "./": "http://a/b/c/", "..": "http://a/b/",
        "../": "http://a/b/", "../g": "http://a/b/g", "../..": "http://a/", "../../g": "http://a/g", "../../../g": "http://a/g", "/./g": "http://a/g", "/../g": "http://a/g",
        "g.": "http://a/b/c/g.", "..g": "http://a/b/c/..g", "./../g": "http://a/b/g", "./g/.": "http://a/b/c/g/", "g/./h": "http://a/b/c/g/h", "g/../h": "http://a/b/c/h",
        "http://x/y": "http://x/y",
    };
    for (const [reference, expected] of Object.entries(cases)) assert.equal(base.resolve(reference).shown(), expected, reference);
});

/** A site of redirects: `from` leads to `[status, location]`. */
const leading = (from) => ({ url, method, body }) => {
    const [status, location] = from[url] ?? [];
    return status ? { status, headers: location ? { location } : {} } : `${method} ${url} ${body}`;
};

test("redirects are followed; each is a request of its own, and the Response is the last one's (response)", async () => {
    const user = await visit(`const r = http.get("${SITE}/a"); show([r.status, r.body, r.url, r.request.url]);`, leading({ [`${SITE}/a`]: [301, "/b?x"], [`${SITE}/b?x`]: [302, "http://other.test/c"] }));
    assert.deepEqual(user.sent.map(({ url, label }) => [url, label]), [[`${SITE}/a`, "GET /a"], [`${SITE}/b?x`, "GET /b"], ["http://other.test/c", "GET other.test/c"]]);
    assert.deepEqual(user.shown, [[200, "GET http://other.test/c null", "http://other.test/c", "http://other.test/c"]]);
});

test("301 to 303 become GET without a body, but for HEAD; 307 and 308 stay as they are", async () => {
    for (const [status, method, expected] of [
        [301, "POST", ["GET", null]], [302, "PUT", ["GET", null]], [303, "DELETE", ["GET", null]], [301, "HEAD", ["HEAD", null]], [307, "POST", ["POST", "b"]], [308, "PUT", ["PUT", "b"]],
    ]) {
        const user = await visit(`http.request("${method}", "${SITE}/a", "b");`, leading({ [`${SITE}/a`]: [status, "/b"] }));
        assert.deepEqual([user.sent[1].method, user.sent[1].body], expected, `${status} ${method}`);
    }
    for (const answer of [[304, "/b"], [300, "/b"], [302, undefined]]) {
        const user = await visit(`http.get("${SITE}/a");`, leading({ [`${SITE}/a`]: answer }));
        assert.equal(user.sent.length, 1);
    }
});

test("maxRedirects and params.redirects end the chain with the last redirect's Response", async () => {
    const endless = () => ({ status: 302, headers: { location: "/again" } });
    const count = async (params, options) => {
        const user = await visit(`show(http.get("${SITE}/a", ${params}).status);`, endless, { options });
        assert.deepEqual(user.shown, [302]);
        return user.sent.length;
    };
    assert.equal(await count("{}"), 11);
    assert.equal(await count("{}", { maxRedirects: 3 }), 4);
    assert.equal(await count("{}", { maxRedirects: 0 }), 1);
    assert.equal(await count("{ redirects: 5 }", { maxRedirects: 3 }), 6);
    assert.equal(await count("{ redirects: 0 }"), 1);
});

test("header fields go along, with a Referer; Authorization and cookies do not go to another host", async () => {
    const params = `{ headers: { Authorization: "secret", "X-A": "1", Host: "virtual.test" }, cookies: { c: "1" } }`;
    const user = await visit(`http.get("${SITE}/a", ${params});`, leading({ [`${SITE}/a`]: [302, "/b"], [`${SITE}/b`]: [302, "http://sub.site.test/c"], ["http://sub.site.test/c"]: [302, "http://other.test/"] }));
    assert.deepEqual(user.sent.map(({ headers }) => headers), [
        { Authorization: "secret", "X-A": "1", Host: "virtual.test", Cookie: "c=1" },
        { Authorization: "secret", "X-A": "1", Host: "virtual.test", Cookie: "c=1", Referer: `${SITE}/a` },
        { Authorization: "secret", "X-A": "1", Cookie: "c=1", Referer: `${SITE}/b` },
        { "X-A": "1", Referer: "http://sub.site.test/c" },
    ]);
    const safe = await visit(`http.get("https://site.test/a"); http.get("https://u:p@site.test/b");`, leading({ "https://site.test/a": [302, SITE], "https://site.test/b": [302, "/c"] }));
    assert.equal(safe.sent[1].headers.Referer, undefined);
    assert.equal(safe.sent[3].headers.Referer, "https://site.test/b");
    assert.equal(safe.sent[3].headers.Authorization, safe.sent[2].headers.Authorization);
});

test("cookies that a redirect sets are sent to where it leads", async () => {
    const answer = ({ url }) => (url.endsWith("/a") ? { status: 302, headers: { location: "/b", "set-cookie": ["s=1"] } } : "");
    const user = await visit(`http.get("${SITE}/a", { headers: { Cookie: "raw=1" } }); http.post("${SITE}/a");`, answer);
    assert.deepEqual(user.sent.map(({ headers }) => headers.Cookie), ["raw=1", "s=1", "s=1", "s=1"]);
});

test("redirects of a batch are followed", async () => {
    const user = await visit(`show(http.batch(["${SITE}/a", "${SITE}/x"]).map((r) => r.body));`, leading({ [`${SITE}/a`]: [302, "/b"] }));
    assert.deepEqual(user.shown, [[`GET ${SITE}/b null`, `GET ${SITE}/x null`]]);
    assert.deepEqual(user.together, [2, 1]);
});

test("a redirect to what is no URL gives an error", async () => {
    const user = await visit(`const r = http.get("${SITE}/a"); show([r.status, r.error_code]);`, leading({ [`${SITE}/a`]: [302, "http://a b/"] }));
    assert.deepEqual(user.shown, [[0, 1020]]);
});

test("a name of the script's holds for all requests of a redirect", async () => {
    const user = await visit(`http.get("${SITE}/a", { tags: { name: "n" } });`, leading({ [`${SITE}/a`]: [302, "/b"] }));
    assert.deepEqual(user.sent.map(({ label }) => label), ["n", "n"]);
});
