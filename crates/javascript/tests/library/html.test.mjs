// Pages as selections, elements and forms.
import assert from "node:assert/strict";
import { test } from "node:test";
import { newUser } from "./harness.mjs";

/** What expressions on a page, `doc`, give. */
async function values(page, expressions) {
    const user = await newUser();
    await user.iterate(`import { parseHTML } from "k6/html"; const doc = parseHTML(${JSON.stringify(page)});
        export default () => { for (const show of [${expressions.map((text) => `() => ${text}`)}]) {
            try { console.log(JSON.stringify(show()) ?? "undefined"); } catch (error) { console.log("threw " + error.message); } } };`);
    return user.printed().map((text) => (text === "undefined" || text.startsWith("threw") ? text : JSON.parse(text)));
}

const LIST = `<dl><dt id="term-1">term 1</dt><dd>1-a</dd><dd>1-b</dd><dt id="term-2" class="x y">term 2</dt><dd>2-a</dd><!-- note --><dd>2-b</dd><dt id="term-3">term 3</dt><dd>3-a</dd></dl>`;

test("selections find, filter and walk", async () => {
    assert.deepEqual(await values(LIST, [
        `doc.find("dt").size()`, `doc.find("dl dt").map((i, s) => i + s.text())`, `doc.find("dt").first().text()`, `doc.find("dt").last().attr("id")`,
        `doc.find("dt").eq(1).attr("class")`, `doc.find("dt").eq(7).attr("id")`, `doc.find("dt").attr("none")`, `doc.find("dt").attr("none", "else")`,
        `doc.find("dl").children().size()`, `doc.find("dl").children("dd").size()`, `doc.find("dl").contents().size()`, `doc.find("#term-2").next().text()`,
        `doc.find("#term-2").prev("dd").text()`, `doc.find("#term-2").nextAll("dd").text()`, `doc.find("#term-2").nextUntil("dt").text()`,
        `doc.find("#term-1").nextUntil("#term-3", "dd").size()`, `doc.find("#term-2").prevAll().size()`, `doc.find("#term-3").prevUntil("#term-2").text()`,
        `doc.find("dd").filter((i, s) => s.text() === "3-a").size()`, `doc.find("dt").filter("#term-2").text()`, `doc.find("dl").children().not("dt").size()`,
        `doc.find("dt").is("#term-2")`, `doc.find("dt").is("dd")`, `doc.find("dt").filter(doc.find("#term-1")).size()`, `doc.find("dt").slice(1).text()`,
        `doc.find("dt").slice(0, 2).size()`, `doc.find("dd").closest("dl").size()`, `doc.find("dd").parent().size()`, `doc.find("dt").parents().size()`,
        `doc.find("dl").has("#term-3").size()`, `doc.find("dt").has("b").size()`, `doc.find("dt").html()`, `doc.find("b").html()`, `doc.find("b").text()`,
        `doc.find("dt").toArray().map((s) => s.text())`, `doc.single("dt").size()`, `doc.find("dt").get(2).id()`, `doc.find("dt").get().length`,
    ]), [
        3, ["0term 1", "1term 2", "2term 3"], "term 1", "term-3", "x y", "undefined", "undefined", "else", 8, 5, 9, "2-a", "1-b", "2-a2-b3-a", "2-a2-b", 4, 3, "2-b2-a",
        1, "term 2", 5, true, false, 1, "term 2term 3", 2, 1, 1, 1, 1, 0, "term 1", "undefined", "", ["term 1", "term 2", "term 3"], 1, "term-3", 3,
    ]);
});

test("each gives elements, until it returns false", async () => {
    assert.deepEqual(await values(LIST, [
        `(() => { const seen = []; doc.find("dt").each((i, e) => { seen.push(i + e.textContent()); if (i === 1) return false; }); return seen; })()`,
    ]), [["0term 1", "1term 2"]]);
});

test("elements have the DOM's facts", async () => {
    const page = `<div id="a" class="x  y" lang="en"><p>one <b>two</b></p><!-- c --><a href="/z">link</a></div>`;
    const element = `doc.find("div").get(0)`;
    assert.deepEqual(await values(page, [
        `${element}.nodeName()`, `${element}.nodeType()`, `${element}.id()`, `${element}.lang()`, `${element}.classList()`, `${element}.className()`,
        `${element}.childElementCount()`, `${element}.childNodes().length`, `${element}.children().map((e) => e.nodeName())`, `${element}.firstChild().innerHTML()`,
        `${element}.lastElementChild().href()`, `${element}.firstChild().nextSibling().nodeType()`, `${element}.firstChild().nextElementSibling().nodeName()`,
        `${element}.firstChild().parentElement().id()`, `${element}.firstChild().firstChild().nodeValue()`, `${element}.attributes().lang.value`,
        `${element}.textContent()`, `${element}.querySelector("b").textContent()`, `${element}.contains(doc.find("b").get(0))`, `${element}.firstChild().toString()`,
        `${element}.selection().find("b").text()`, `${element}.parentElement()`, `${element}.ownerDocument().nodeName()`, `${element}.hasAttribute("lang")`,
    ]), ["div", 1, "a", "en", ["x", "y"], "x  y", 2, 3, ["p", "a"], "one <b>two</b>", "/z", 8, "a", "a", "one ", "en", "one twolink", "two", true,
        "<p>one <b>two</b></p>", "two", "undefined", "#document", true]);
});

test("elements of some kinds have more", async () => {
    const page = `<a href="http://u:p@h.example:8080/p?q=1#f" rel="prev next">6</a><form id="f" method="POST"><label for="i">L</label><input id="i" name="n" value="v"/>
<select name="s"><option>a</option><option selected>b</option></select></form><table><thead><tr><th>H</th></tr></thead><tbody><tr><td>1</td><td colspan="2">2</td></tr></tbody></table>`;
    assert.deepEqual(await values(page, [
        `["hash", "host", "hostname", "port", "username", "password", "origin", "pathname", "protocol", "search", "text"].map((name) => doc.find("a").get(0)[name]())`,
        `doc.find("a").get(0).relList()`, `doc.find("form").get(0).method()`, `doc.find("form").get(0).length()`, `doc.find("form").get(0).elements().map((e) => e.name())`,
        `doc.find("input").get(0).form().id()`, `doc.find("input").get(0).labels().map((e) => e.text())`, `doc.find("label").get(0).control().value()`,
        `doc.find("select").get(0).selectedIndex()`, `doc.find("select").get(0).options().map((e) => e.index())`, `doc.find("select").get(0).value()`,
        `doc.find("table").get(0).rows().length`, `doc.find("td").get(1).cellIndex()`, `doc.find("td").get(1).colSpan()`, `doc.find("td").get(0).parentElement().rowIndex()`,
        `doc.find("form").get(0).getElementsByTagName("option").length`, `parseHTML('<a href="/p?x=1#y">l</a>').find("a").map((i, s) => ["pathname", "search", "hash", "host"].map((part) => s.get(0)[part]()))`, `doc.find("a").get(0).form()`,
    ]), [
        ["#f", "h.example:8080", "h.example", "8080", "u", "p", "http://h.example:8080", "/p", "http:", "?q=1", "6"], ["prev", "next"], "post", 2, ["n", "s"],
        "f", ["L"], "v", 1, [0, 1], "b", 2, 1, 2, 1, 2, [["/p", "?x=1", "#y", ""]], "undefined",
    ]);
});

const FORM = `<form><input name="user" value="a b"/><input name="empty"/><input name="off" type="checkbox"/><input name="on" type="checkbox" checked/>
<input name="r" type="radio" value="1"/><input name="r" type="radio" value="2" checked/><input name="no" disabled value="x"/><input type="submit" name="go" value="Go"/>
<input value="nameless"/><select name="s"><option value="v1">1</option><option selected>two</option></select><select name="d"><option>first</option><option>second</option></select>
<select name="m" multiple><option selected>x</option><option>y</option><option selected>z</option></select><textarea name="t">Lorem (é)</textarea></form>`;

test("controls have values, and forms are serialized", async () => {
    assert.deepEqual(await values(FORM, [
        `doc.find("form").serialize()`, `doc.find("form").serializeObject()`, `doc.find("input").first().val()`, `doc.find("select").map((i, s) => s.val())`,
        `doc.find("textarea").val()`, `doc.find("option").eq(0).val()`, `doc.find("nothing").val()`, `doc.find("input").serializeArray().length`,
    ]), [
        "user=a+b&empty=&on=on&r=2&s=two&d=first&m=x&m=z&t=Lorem+%28%C3%A9%29",
        { user: "a b", empty: "", on: "on", r: "2", s: "two", d: "first", m: "z", t: "Lorem (é)" },
        "a b", ["two", "first", ["x", "z"]], "Lorem (é)", "v1", "undefined", 4,
    ]);
});

test("data attributes are read as jQuery reads them", async () => {
    const json = `<h1 data-test-id="value" data-n="12" data-code="012" data-on="true" data-list="[1,2]" data-bad="{x">Hola</h1>`;
    assert.deepEqual(await values(json, [`doc.find("h1").data()`, `doc.find("h1").data("test-id")`, `doc.find("h1").data("testId")`, `doc.find("h1").data("none")`]), [
        { testId: "value", n: 12, code: "012", on: true, list: [1, 2], bad: "{x" }, "value", "value", "undefined",
    ]);
});
