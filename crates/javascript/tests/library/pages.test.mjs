// Pages: https://grafana.com/docs/k6/latest/javascript-api/k6-http/response/ html, clickLink, submitForm.
import assert from "node:assert/strict";
import { test } from "node:test";
import { visit } from "./site.mjs";

const SITE = "http://site.test";
const LINKS = `<p><a name="x">no link</a><a href="/first?a=b">1</a><a id="two" href="../second">2</a></p>`;
const FORM = `<form id="other"></form><form id="f" action="/login?old=1" method="post"><input name="csrf" value="t/k"/><input name="user" value="u"/>
    <input type="submit" name="go" value="Go"/></form>`;

const page = (text) => ({ url }) => (url.startsWith(`${SITE}/dir/page`) ? text : "");

test("html() gives a selection, with or without a selector (response-html)", async () => {
    const user = await visit(`const r = http.get("${SITE}/dir/page"); show([r.html().find("a").size(), r.html("#two").text()]);`, page(LINKS));
    assert.deepEqual(user.shown, [[3, "2"]]);
});

test("clickLink requests the first link, or the one that a selector finds (response-clicklink)", async () => {
    const user = await visit(`const r = http.get("${SITE}/dir/page"); show(r.clickLink().url); r.clickLink({ selector: "#two", params: { headers: { x: "1" }, tags: { name: "n" } } });
        for (const selector of ["b", "p"]) try { r.clickLink({ selector }); } catch (e) { show(e.message); }`, page(LINKS));
    assert.deepEqual(user.sent.slice(1).map(({ method, url, headers, label }) => [method, url, headers, label]), [
        ["GET", `${SITE}/first?a=b`, {}, "GET /first"], ["GET", `${SITE}/second`, { X: "1" }, "n"],
    ]);
    assert.deepEqual(user.shown, [`${SITE}/first?a=b`, `no element found for selector 'b' in response '${SITE}/dir/page'`, `no valid href attribute value found on element 'p' in response '${SITE}/dir/page'`]);
});

test("submitForm sends a form's fields, with those that are given and its button's (response-submitform)", async () => {
    const user = await visit(`const r = http.get("${SITE}/dir/page"); r.submitForm({ formSelector: "#f", fields: { user: "me", more: "x y" } });
        r.submitForm({ formSelector: "#f", submitSelector: "#none", params: { headers: { k: "v" } } });`, page(FORM));
    assert.deepEqual(user.sent.slice(1).map(({ method, url, body }) => [method, url, body]), [
        ["POST", `${SITE}/login?old=1`, "csrf=t%2Fk&go=Go&more=x+y&user=me"], ["POST", `${SITE}/login?old=1`, "csrf=t%2Fk&user=u"],
    ]);
    assert.deepEqual(user.sent[2].headers, { "Content-Type": "application/x-www-form-urlencoded", K: "v" });
});

test("a form without method and action is a GET of its page, with the fields as its query", async () => {
    const user = await visit(`const r = http.get("${SITE}/dir/page?old=1"); r.submitForm({ fields: { q: "a b" } });
        try { r.submitForm({ formSelector: "#none" }); } catch (e) { show(e.message); }`, page(`<form><input name="q" value=""/><input name="p" value="1"/></form>`));
    assert.deepEqual([user.sent[1].method, user.sent[1].url, user.sent[1].body], ["GET", `${SITE}/dir/page?p=1&q=a+b`, null]);
    assert.match(user.shown[0], /no form found for selector '#none'/);
});
