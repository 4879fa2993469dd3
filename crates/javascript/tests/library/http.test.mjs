// `k6/http`: requests and what they give. Expectations are from k6's documentation; the page is named at each test.
import assert from "node:assert/strict";
import { test } from "node:test";
import { newVisitor, visit } from "./site.mjs";

const SITE = "http://site.test";

test("each method sends its own, with or without a body (javascript-api/k6-http)", async () => {
    const user = await visit(`
        http.get("${SITE}/a"); http.head("${SITE}/a"); http.post("${SITE}/a", "p"); http.put("${SITE}/a", "u"); http.patch("${SITE}/a", "t");
        http.del("${SITE}/a"); http.options("${SITE}/a"); http.request("TRACE", "${SITE}/a"); http.query("${SITE}/a", "q"); http.del("${SITE}/a", "d");`);
    assert.deepEqual(user.sent.map(({ method, body }) => [method, body]), [
        ["GET", null], ["HEAD", null], ["POST", "p"], ["PUT", "u"], ["PATCH", "t"], ["DELETE", null], ["OPTIONS", null], ["TRACE", null],
        ["QUERY", "q"], ["DELETE", "d"],
    ]);
    assert.ok(user.sent.every(({ url, fields }) => url === `${SITE}/a` && fields.length === 0));
});

test("named exports are those of the default one", async () => {
    const user = await newVisitor();
    const module = await user.import("k6/http");
    for (const name of Object.keys(module.default)) assert.equal(module[name], module.default[name], name);
    const whole = await user.import("brunt:http-constants");
    for (const name of Object.keys(whole.default)) assert.equal(whole[name], whole.default[name], name);
    assert.equal(whole.get, module.get);
    assert.deepEqual([whole.OCSP_STATUS_GOOD, whole.TLS_1_2], ["good", "tls1.2"]);
});

test("a Response has what the site answered (javascript-api/k6-http/response)", async () => {
    const answer = () => ({ status: 201, headers: { "content-type": "text/plain", "x-a": ["1", "2"] }, body: "höi" });
    const user = await visit(`const r = http.get("${SITE}");
        show([r.status, r.status_text, r.body, r.headers, r.error, r.error_code, r.url, r.proto, r.remote_ip, r.remote_port]);
        show(r.timings); show(r.cookies); show(r.request);`, answer);
    assert.deepEqual(user.shown, [
        [201, "201 Created", "höi", { "Content-Type": "text/plain", "X-A": "1, 2" }, "", 0, SITE, "HTTP/1.1", "127.0.0.1", 8080],
        { looking_up: 0, blocked: 1, connecting: 2, tls_handshaking: 3, sending: 4, waiting: 5, receiving: 6, duration: 15 },
        {},
        { method: "GET", url: SITE, headers: {}, body: "", cookies: {} },
    ]);
    assert.equal(user.sent[0].url, `${SITE}/`);
});

test("a Response lives on after other requests and pauses", async () => {
    const answer = ({ url }) => ({ body: `body of ${url}`, headers: { "x-url": url } });
    const user = await visit(`const one = http.get("${SITE}/1"); const two = http.get("${SITE}/2"); sleep(1);
        show([one.body, one.headers["X-Url"], one.timings.duration, two.body, two.headers["X-Url"], two.proto]);`, answer);
    assert.deepEqual(user.shown, [[`body of ${SITE}/1`, `${SITE}/1`, 15, `body of ${SITE}/2`, `${SITE}/2`, "HTTP/1.1"]]);
});

test("a Response is written as JSON with all its parts, and may be changed", async () => {
    const user = await visit(`const r = http.get("${SITE}"); const parts = JSON.parse(JSON.stringify(r));
        show(Object.keys(parts).sort()); r.body = { changed: true }; r.extra = 1; show([r.body, r.extra]);
        const names = []; for (const name in r) names.push(name); show(names.includes("timings"));`);
    assert.deepEqual(user.shown, [
        ["body", "cookies", "error", "error_code", "extra", "headers", "ocsp", "proto", "remote_ip", "remote_port", "request", "status",
            "status_text", "timings", "tls_cipher_suite", "tls_version", "url"].filter((name) => name !== "extra"),
        [{ changed: true }, 1], true,
    ]);
});

test("responseType and discardResponseBodies choose the body's form (params)", async () => {
    const text = `const body = (type) => { const { body } = http.get("${SITE}/" + type, { responseType: type });
        return body instanceof ArrayBuffer ? ["bytes", ...new Uint8Array(body)] : body; };
        show([body("text"), body("binary"), body("none"), http.get("${SITE}").body]); `;
    const user = await visit(text, () => Buffer.from([0x68, 0xc3, 0xa9]));
    assert.deepEqual(user.shown, [["hé", ["bytes", 0x68, 0xc3, 0xa9], null, "hé"]]);
    assert.deepEqual(user.sent.map(({ discards }) => discards), [false, false, true, false]);
    const discarding = await visit(text, () => "x", { options: { discardResponseBodies: true } });
    assert.deepEqual(discarding.shown, [["x", ["bytes", 0x78], null, null]]);
    assert.deepEqual(discarding.sent.map(({ discards }) => discards), [false, false, true, true]);
    await assert.rejects(visit(`http.get("${SITE}", { responseType: "json" })`), /responseType "json"/);
});

test("json() parses, caches and selects (response/response-json)", async () => {
    const user = await visit(`const r = http.get("${SITE}");
        show(r.json()); show(r.json() === r.json()); show(r.json("a.1.b")); show(r.json("none"));
        show(r.json("n"));`, () => `{"a":[1,{"b":"x"}],"n":null}`);
    assert.deepEqual(user.shown, [{ a: [1, { b: "x" }], n: null }, true, "x", undefined, null]);
    const bad = await visit(`const r = http.get("${SITE}"); show(r.json("a")); try { r.json(); } catch (e) { show(e.message); }
        try { http.get("${SITE}", { responseType: "none" }).json(); } catch (e) { show(e.message); }
        show(http.get("${SITE}", { responseType: "binary" }).json("none"));`, () => "<p>");
    assert.equal(bad.shown[0], undefined);
    assert.match(bad.shown[1], /^cannot parse json: /);
    assert.match(bad.shown[2], /^the body is null so we can't transform it/);
});

test("failures have k6's codes and texts (javascript-api/error-codes)", async () => {
    const cases = [
        [{ error: "timeout" }, 1050, "request timeout"],
        [{ error: "resolve", reason: "no address" }, 1101, "lookup: no such host"],
        [{ error: "connect", reason: "Connection refused (os error 111)" }, 1212, "dial: connection refused"],
        [{ error: "connect", reason: "no route" }, 1210, "dial: no route"],
        [{ error: "connect_timeout" }, 1211, "dial: i/o timeout"],
        [{ error: "read", reason: "Connection reset by peer" }, 1220, "read: connection reset by peer"],
        [{ error: "write", reason: "Broken pipe" }, 1201, "write: broken pipe"],
        [{ error: "closed" }, 1000, "EOF"],
        [{ error: "tls", reason: "invalid peer certificate: UnknownIssuer" }, 1310, "x509: unknown authority"],
        [{ error: "tls", reason: "certificate not valid for name" }, 1311, "x509: certificate doesn't match hostname"],
        [{ error: "tls", reason: "alert" }, 1300, "alert"],
        [{ error: "protocol", reason: "bad chunk" }, 1000, "bad chunk"],
        [{ status: 404 }, 1404, ""],
        [{ status: 503 }, 1503, ""],
        [{ status: 302 }, 0, ""],
    ];
    for (const [answer, code, text] of cases) {
        const user = await visit(`const r = http.get("${SITE}"); show([r.status, r.error_code, r.error]); show(r.body);`, () => answer);
        assert.deepEqual(user.shown, [[answer.status ?? 0, code, text], answer.error ? null : ""], JSON.stringify(answer));
    }
});

test("failures are thrown where the option throw is set (k6-options/reference, Throw)", async () => {
    const given = { options: { throw: true } };
    await assert.rejects(visit(`http.get("${SITE}")`, () => ({ error: "timeout" }), given), { message: "request timeout" });
    await assert.rejects(visit(`http.get("http://[::1")`, () => "", given), { name: "UrlError" });
    await visit(`http.get("${SITE}")`, () => ({ status: 500 }), given);
});

test("a URL that is none gives a Response with the code 1020", async () => {
    const user = await visit(`const r = http.get("http://a b/"); show([r.status, r.error_code, r.body, r.url]); show(http.get("ftp://a/").error);
        show(http.batch(["http://x:y/", "${SITE}"]).map((r) => r.status));`);
    assert.deepEqual(user.shown, [[0, 1020, null, "http://a b/"], 'unsupported protocol scheme "ftp"', [0, 200]]);
    assert.equal(user.sent.length, 1);
    assert.match(user.called("print").find(([level]) => level === "warn")[1], /Request Failed: GET http:\/\/a b\//);
});

test("requests are for running users", async () => {
    for (const call of [`http.get("${SITE}")`, `http.batch([])`, `http.cookieJar()`]) {
        await assert.rejects(visit("", undefined, { init: `${call};` }), /not for the init context/);
    }
});

test("header fields have Go's names, and the last of a name holds (params)", async () => {
    const user = await visit(`http.post("${SITE}", "x", { headers: { "x-my-header": 5, "X-LIST": ["a", "b"], host: "other.test", "content-length": 7, accept: "a", Accept: "b" } });`);
    assert.deepEqual(user.sent[0].headers, { "X-My-Header": "5", "X-List": "a,b", Host: "other.test", Accept: "b" });
});

test("userAgent is the User-Agent of requests that have none (k6-options/reference, User agent)", async () => {
    const user = await visit(`http.get("${SITE}"); http.get("${SITE}", { headers: { "user-agent": "mine" } });`, undefined, { options: { userAgent: "k" } });
    assert.deepEqual(user.sent.map(({ headers }) => headers["User-Agent"]), ["k", "mine"]);
});

test("timeouts are milliseconds or durations (params)", async () => {
    const user = await visit(`for (const timeout of [1500, "1500", "10s", "1m30s", "1.5s", "2h", "250ms"]) http.get("${SITE}", { timeout });
        http.get("${SITE}");`);
    assert.deepEqual(user.sent.map(({ timeout }) => timeout), [1500, 1500, 10_000, 90_000, 1500, 7_200_000, 250, 0]);
    await assert.rejects(visit(`http.get("${SITE}", { timeout: "soon" })`), /invalid timeout "soon"/);
});

test("compression packs the body and names its codings (params)", async () => {
    const user = await visit(`http.post("${SITE}", "abc", { compression: "gzip" }); http.post("${SITE}", "abc", { compression: "gzip, deflate" });`);
    assert.deepEqual(user.sent.map(({ body, headers }) => [String(body), headers["Content-Encoding"]]), [["gzip(abc)", "gzip"], ["deflate(gzip(abc))", "gzip, deflate"]]);
    await assert.rejects(visit(`http.post("${SITE}", "abc", { compression: "br" })`), /brunt has no br/);
    await assert.rejects(visit(`http.post("${SITE}", "abc", { compression: "lzw" })`), /unknown compression algorithm lzw/);
});

test("calls count under the script's name, else method and path (using-k6/http-requests, URL grouping)", async () => {
    const user = await visit(`http.get("${SITE}/a?x=1"); http.get("${SITE}/a?x=2"); http.post("${SITE}/a"); http.get("http://other.test:81/b");
        http.get("${SITE}/c/1", { tags: { name: "c", kind: "k" } }); http.get(http.url\`${SITE}/d/\${5}\`);
        group("outer", () => group("inner", () => http.get("${SITE}/a")));`);
    assert.deepEqual(user.sent.map(({ label, tags, group }) => [label, tags, group]), [
        ["GET /a", [], ""], ["GET /a", [], ""], ["POST /a", [], ""], ["GET other.test:81/b", [], ""], ["c", ["kind=k"], ""],
        [`${SITE}/d/\${}`, [], ""], ["GET /a", [], "outer/inner"],
    ]);
    assert.equal(user.sent[5].url, `${SITE}/d/5`);
});

test("expected statuses come from the callbacks (set-response-callback, expected-statuses)", async () => {
    const user = await visit(`const mine = http.expectedStatuses(406, 500, { min: 200, max: 204 });
        http.get("${SITE}"); http.get("${SITE}", { responseCallback: mine }); http.get("${SITE}", { responseCallback: null });
        http.setResponseCallback(http.expectedStatuses(301)); http.get("${SITE}"); http.setResponseCallback(null); http.get("${SITE}");`);
    assert.deepEqual(user.sent.map(({ ok }) => ok), ["200-399", "406,500,200-204", "100-999", "301", "100-999"]);
    await assert.rejects(visit(`http.expectedStatuses("200")`), /argument 1/);
    await assert.rejects(visit(`http.get("${SITE}", { responseCallback: () => true })`), /expectedStatuses/);
});

test("checks of a Response belong to its call", async () => {
    const user = await visit(`const r = http.get("${SITE}"); check(r, { a: (r) => r.status === 200, b: () => false, c: () => false });`);
    assert.deepEqual(user.called("checkFailed").map(([, ticket, label, first]) => [ticket, label, first]), [[0, 1, true], [0, 1, false]]);
});

test("batch takes lists, objects and URLs, and gives what was named (batch)", async () => {
    const answer = ({ method, url }) => `${method} ${url}`;
    const user = await visit(`show(http.batch(["${SITE}/1", ["POST", "${SITE}/2", "b"], { method: "put", url: "${SITE}/3", body: "c", params: { headers: { x: "y" } } },
            http.url\`${SITE}/\${4}\`, { url: "${SITE}/5" }]).map((r) => r.body));
        const named = http.batch({ "front page": "${SITE}/6", other: { method: "GET", url: "${SITE}/7" } });
        show([Object.keys(named), named["front page"].body, named.other.status]); show(http.batch([])); `, answer);
    assert.deepEqual(user.shown, [
        ["GET", "POST", "PUT", "GET", "GET"].map((method, at) => `${method} ${SITE}/${at + 1}`),
        [["front page", "other"], `GET ${SITE}/6`, 200], [],
    ]);
    assert.deepEqual(user.sent.slice(1, 3).map(({ body, headers }) => [body, headers]), [["b", {}], ["c", { X: "y" }]]);
    assert.deepEqual(user.together, [5, 2]);
    await assert.rejects(visit(`http.batch(["${SITE}", 5])`), /request 1/);
});

test("a batch keeps to its limits (k6-options/reference, Batch, Batch per host)", async () => {
    const many = `http.batch(Array.from({ length: 25 }, (_, i) => "http://h" + (i % 5) + ".test/")); http.batch(Array.from({ length: 8 }, () => "${SITE}"));`;
    assert.deepEqual((await visit(many)).together, [20, 5, 6, 2]);
    assert.deepEqual((await visit(many, undefined, { options: { batch: 15, batchPerHost: 2 } })).together, [10, 10, 5, 2, 2, 2, 2]);
});

test("asyncRequest gives a promise (asyncrequest)", async () => {
    const answer = ({ url }) => (url.endsWith("/moved") ? { status: 302, headers: { location: "/b" } } : { body: `at ${url}`, after: url.endsWith("slow") ? 50 : 1, headers: { "x-a": "1" } });
    const user = await visit(`const [a, b] = await Promise.all([http.asyncRequest("GET", "${SITE}/moved"), http.asyncRequest("post", "${SITE}/c", { name: "Bert" })]);
        show([a.body, a.headers["X-A"], a.url, a.timings.duration, b.status, b.request.method]);
        const first = await Promise.race([http.asyncRequest("GET", "${SITE}/slow"), http.asyncRequest("GET", "${SITE}/fast")]); show(first.body);
        show(await http.asyncRequest("GET", "${SITE}", null, { responseType: "x" }).catch((e) => e.message));
        const failed = await http.asyncRequest("GET", "no url"); show(failed.status);`, answer, { isAsync: true });
    assert.deepEqual(user.shown.slice(0, 2), [[`at ${SITE}/b`, "1", `${SITE}/b`, 15, 200, "POST"], `at ${SITE}/fast`]);
    assert.match(user.shown[2], /responseType/);
    assert.equal(user.shown[3], 0);
    assert.equal(user.sent[1].body, "name=Bert");
});

test("credentials of a URL are sent as Basic (examples/http-authentication)", async () => {
    const user = await visit(`const r = http.get("http://user:pa%3Ass@site.test/a"); show([r.url, r.request.url]);
        http.get("http://user:pass@site.test/a", { headers: { Authorization: "mine" } });`);
    assert.deepEqual(user.sent.map(({ url, headers }) => [url, headers.Authorization]), [
        [`${SITE}/a`, `Basic ${Buffer.from("user:pa:ss").toString("base64")}`], [`${SITE}/a`, "mine"],
    ]);
    assert.deepEqual(user.shown, [[`${SITE}/a`, `${SITE}/a`]]);
    await assert.rejects(visit(`http.get("${SITE}", { auth: "ntlm" })`), /no ntlm/);
});

test("Digest answers the challenge of RFC 2617, section 3.5; the 401 is excused (params, set-response-callback)", async () => {
    const challenge = 'Digest realm="testrealm@host.com", qop="auth,auth-int", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", opaque="5ccc069c403ebaf9f0171e9517f40e41"';
    const answer = ({ headers }) => (headers.Authorization ? "in" : { status: 401, headers: { "www-authenticate": challenge } });
    const cnonce = Buffer.from("0a4f113b", "hex");
    const native = { randomBytes: () => new Uint8Array(cnonce).buffer };
    const user = await visit(`show(http.get("http://Mufasa:Circle Of Life@www.nowhere.org/dir/index.html".replaceAll(" ", "%20"), { auth: "digest" }).status);`, answer, { native });
    assert.deepEqual(user.shown, [200]);
    assert.equal(user.sent[0].headers.Authorization, undefined);
    const field = user.sent[1].headers.Authorization;
    assert.match(field, /^Digest username="Mufasa", realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", uri="\/dir\/index.html"/);
    assert.match(field, /response="6629fae49393a05397450978507c4ef1"/);
    assert.match(field, /opaque="5ccc069c403ebaf9f0171e9517f40e41", qop=auth, nc=00000001, cnonce="0a4f113b"$/);
    assert.deepEqual(user.called("excuse").map(([, status]) => status), [401]);
    const wrong = await visit(`show(http.get("http://a:b@site.test", { auth: "digest" }).status);`, () => ({ status: 401, headers: { "www-authenticate": challenge } }));
    assert.deepEqual([wrong.shown, wrong.sent.length], [[401], 2]);
});

test("httpDebug logs requests and answers (using-k6/http-debugging)", async () => {
    const answer = () => ({ body: "secret", headers: { "x-a": "1" } });
    const head = await visit(`http.post("${SITE}/a", "body", { headers: { k: "v" } });`, answer, { options: { httpDebug: true } });
    assert.deepEqual(head.printed(), [`Request:\nPOST /a HTTP/1.1\nHost: site.test\nK: v\n`, `Response:\nHTTP/1.1 200 OK\nX-A: 1\n`]);
    const full = await visit(`http.post("${SITE}/a", "body");`, answer, { options: { httpDebug: "full" } });
    assert.match(full.printed()[0], /\nbody$/);
    assert.match(full.printed()[1], /\nsecret$/);
});
