// Samples of requests for thresholds: https://grafana.com/docs/k6/latest/using-k6/metrics/reference/ and using-k6/tags-and-groups.
import assert from "node:assert/strict";
import { test } from "node:test";
import { newVisitor } from "./site.mjs";

const SITE = "http://site.test";

/** The values of (sub)metrics after an iteration of `body`. */
async function measured(wanted, body, answer, given) {
    const user = await newVisitor(answer, given);
    const { configure } = await user.import("brunt:samples");
    configure(wanted.map(([metric, filter]) => ({ metric, kind: metric === "http_reqs" ? "counter" : "trend", isTime: true, filter: filter ?? {}, name: filter ? `${metric}${JSON.stringify(filter)}` : metric })));
    await user.iterate(`import http from "k6/http"; import { group } from "k6"; export default () => { ${body} };`);
    return Object.values(user.values());
}

test("each time of a request is a metric", async () => {
    const wanted = ["duration", "blocked", "connecting", "tls_handshaking", "sending", "waiting", "receiving"].map((time) => [`http_req_${time}`]);
    assert.deepEqual(await measured(wanted, `http.get("${SITE}"); http.get("${SITE}");`), [[15, 15], [1, 1], [2, 2], [3, 3], [4, 4], [5, 5], [6, 6]]);
});

test("each redirect is a request; http_req_failed follows the expected statuses (set-response-callback)", async () => {
    const answer = ({ url }) => (url.endsWith("/a") ? { status: 302, headers: { location: "/b" } } : { status: url.endsWith("/b") ? 200 : 404 });
    const wanted = [["http_reqs"], ["http_req_failed"], ["http_req_failed", { expected_response: "true" }]];
    const body = `http.get("${SITE}/a"); http.get("${SITE}/c"); const only200 = http.expectedStatuses(200); http.get("${SITE}/a", { responseCallback: only200 }); http.get("${SITE}/c", { responseCallback: null });`;
    assert.deepEqual(await measured(wanted, body, answer), [[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 0], [0, 0, 0]]);
});

test("filters see the system tags and the script's", async () => {
    const answer = ({ url }) => ({ status: url.includes("missing") ? 404 : 200 });
    const count = async (filter, body) => (await measured([["http_reqs", filter]], body, answer))[0].length;
    const body = `http.get("${SITE}/a?x=1"); http.post("${SITE}/missing"); group("g", () => http.get("${SITE}/c", { tags: { name: "n", kind: "k" } }));
        http.get(http.url\`${SITE}/d/\${1}\`); http.get("http://u:p@site.test/e");`;
    for (const [filter, expected] of [
        [{ method: "POST" }, 1], [{ method: "GET" }, 4], [{ status: "404" }, 1], [{ url: `${SITE}/a?x=1` }, 1], [{ name: `${SITE}/a?x=1` }, 1], [{ name: "n" }, 1], [{ url: "n" }, 1], [{ kind: "k" }, 1],
        [{ group: "::g" }, 1], [{ scenario: "default" }, 5], [{ name: `${SITE}/d/\${}` }, 1], [{ url: "http://****:****@site.test/e" }, 1], [{ expected_response: "false" }, 1], [{ error_code: "1404" }, 1],
        [{ proto: "HTTP/1.1" }, 5], [{ kind: "k", status: "200" }, 1], [{ kind: "k", status: "404" }, 0],
    ]) {
        assert.equal(await count(filter, body), expected, JSON.stringify(filter));
    }
});

test("a failure has its error and error_code, and the time that it took", async () => {
    const wanted = [["http_req_duration", { error: "request timeout", error_code: "1050", status: "0" }], ["http_req_failed"]];
    const user = await measured(wanted, `http.get("${SITE}");`, () => ({ error: "timeout", after: 250 }));
    assert.deepEqual(user, [[250], [1]]);
});

test("a 401 that Digest answers is no failure (set-response-callback, Exceptions)", async () => {
    const answer = ({ headers }) => (headers.Authorization ? "" : { status: 401, headers: { "www-authenticate": 'Digest realm="r", nonce="n"' } });
    assert.deepEqual(await measured([["http_req_failed"]], `http.get("http://u:p@site.test", { auth: "digest" });`, answer), [[0, 0]]);
});
