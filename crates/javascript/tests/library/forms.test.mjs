// Bodies: https://grafana.com/docs/k6/latest/javascript-api/k6-http/request/ (Form-encoded request bodies), examples/data-uploads.
import assert from "node:assert/strict";
import { test } from "node:test";
import { visit } from "./site.mjs";

const SITE = "http://site.test";

/** What is sent for a body, written as JavaScript. */
async function sent(body, params = "{}") {
    const user = await visit(`http.post("${SITE}", ${body}, ${params});`);
    return { ...user.sent[0], logged: user.called("print") };
}

test("objects are forms: sorted by key, encoded as Go's url.Values", async () => {
    const cases = [
        [`{ name: "Bert" }`, "name=Bert"],
        [`{ b: 1, a: 2, B: 3, "10": 4, "9": 5 }`, "10=4&9=5&B=3&a=2&b=1"],
        [`{ "a key": "a value", q: "&=+?/:@é~-_.*!'()" }`, "a+key=a+value&q=%26%3D%2B%3F%2F%3A%40%C3%A9~-_.%2A%21%27%28%29"],
        [`{ name: null, tags: ["one", null] }`, "name=&tags=one&tags="],
        [`{ u: undefined, t: true, f: 1.5, i: 1e6, big: 1e21, small: 0.0000001, neg: -0.5, e: "" }`, "big=1e%2B21&e=&f=1.5&i=1000000&neg=-0.5&small=1e-07&t=true&u="],
        [`{ emoji: "😀" }`, "emoji=%F0%9F%98%80"],
        [`{}`, ""],
        [`{ list: [] }`, ""],
    ];
    for (const [body, expected] of cases) {
        const { body: made, headers } = await sent(body);
        assert.equal(made, expected, body);
        assert.equal(headers["Content-Type"], "application/x-www-form-urlencoded");
    }
});

test("nested data is sent empty, and named", async () => {
    const { body, logged } = await sent(`{ a: { b: 1 }, c: [[1], { d: 2 }, 3] }`);
    assert.equal(body, "a=&c=&c=&c=3");
    assert.deepEqual(logged.map(([level, text]) => [level, text.slice(0, 20)]), [["warn", `the form's field "a"`], ["warn", `the form's field "c"`], ["warn", `the form's field "c"`]]);
});

test("a Content-Type of the script's is kept", async () => {
    const { body, headers } = await sent(`{ a: 1 }`, `{ headers: { "content-type": "application/json" } }`);
    assert.equal(body, "a=1");
    assert.equal(headers["Content-Type"], "application/json");
});

test("texts and buffers are sent as they are", async () => {
    for (const [body, expected] of [[`"plain é"`, "plain é"], [`""`, ""], ["null", null], ["undefined", null]]) {
        const made = await sent(body);
        assert.deepEqual([made.body, made.headers["Content-Type"]], [expected, undefined], body);
    }
    for (const body of ["new Uint8Array([1, 2, 255]).buffer", "new Uint8Array([1, 2, 255])", "new Uint8Array([0, 1, 2, 255, 0]).subarray(1, 4)"]) {
        assert.deepEqual([...(await sent(body)).body], [1, 2, 255], body);
    }
});

test("other bodies are refused", async () => {
    for (const [body, name] of [["5", "a number"], ["true", "a boolean"], ["[1]", "a list"], ["() => 1", "a function"]]) {
        await assert.rejects(sent(body), { name: "TypeError", message: new RegExp(`not ${name}`) }, body);
    }
});

test("a form with a file is multipart (examples/data-uploads)", async () => {
    const { body, headers } = await sent(`{ field: "this is a standard form field", file: http.file(new Uint8Array([0, 255]).buffer, "te\\"st.bin"), text: http.file("abc", "a.txt", "text/plain"), n: [1, 2] }`);
    const boundary = /^multipart\/form-data; boundary=([0-9a-f]{60})$/.exec(headers["Content-Type"])[1];
    const part = (head, data) => `--${boundary}\r\nContent-Disposition: form-data; ${head}\r\n\r\n${data}\r\n`;
    const expected = [
        part(`name="field"`, "this is a standard form field"),
        part(`name="file"; filename="te\\"st.bin"\r\nContent-Type: application/octet-stream`, "\0\xff"),
        part(`name="n"`, "1"), part(`name="n"`, "2"),
        part(`name="text"; filename="a.txt"\r\nContent-Type: text/plain`, "abc"),
        `--${boundary}--\r\n`,
    ].join("");
    assert.equal(body.toString("latin1"), expected);
});

test("a file has its data, name and type (file, filedata)", async () => {
    const user = await visit(`const f = http.file([104, 105], "hi.txt"); show([f.data, f.filename, f.content_type]); show(http.file("x").filename.length > 15);
        try { http.file(5); } catch (e) { show(e.name); }`);
    assert.deepEqual(user.shown, [[[104, 105], "hi.txt", "application/octet-stream"], true, "TypeError"]);
});

test("a multipart Content-Type of the script's is kept, as FormData of jslib needs it", async () => {
    const { headers, body } = await sent(`new Uint8Array([45]).buffer`, `{ headers: { "Content-Type": "multipart/form-data; boundary=mine" } }`);
    assert.deepEqual([headers["Content-Type"], [...body]], ["multipart/form-data; boundary=mine", [45]]);
});
