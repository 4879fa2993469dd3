// The libraries of jslib.k6.io in common use.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { newUser } from "./harness.mjs";

/** What expressions give, as JSON. */
async function values(imports, expressions, given) {
    const user = await newUser(given);
    await user.iterate(`${imports}\nexport default () => { for (const show of [${expressions.map((text) => `() => ${text}`)}]) {
        try { console.log(JSON.stringify(show()) ?? "undefined"); } catch (error) { console.log("threw " + error.message); } } };`);
    return user.printed().map((text) => (text === "undefined" || text.startsWith("threw") ? text : JSON.parse(text)));
}

/** Checks of a script's iteration: names with `+` where they held and `-` where not. */
async function checks(text, given) {
    const names = [];
    const user = await newUser({ ...given, native: { check: (_, name) => names.push(name), checkPassed: (id) => told.push(`+${names[id - 1]}`), checkFailed: (id) => told.push(`-${names[id - 1]}`) } });
    const told = [];
    let thrown;
    await user.iterate(text).catch((error) => (thrown = error));
    return { told, thrown, user };
}

const UTILS = `import * as utils from "https://jslib.k6.io/k6-utils/1.4.0/index.js";`;

test("k6-utils: random values", async () => {
    const given = { random: () => 0.999 };
    assert.deepEqual(await values(UTILS, [`utils.randomIntBetween(1, 5)`, `utils.randomItem(["a", "b"])`, `utils.randomString(3)`, `utils.randomString(2, "xy")`, `utils.default.randomString(0)`], given), [
        5, "b", "zzz", "yy", "",
    ]);
    for (const secure of [true, false]) {
        const [uuid] = await values(UTILS, [`utils.uuidv4(${secure})`]);
        assert.match(uuid, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    }
});

test("k6-utils: texts, durations and stages", async () => {
    const text = `<b>1</b><b>2</b><b>`;
    const [first, all, none, nones, duration, bad, bare, stages] = await values(UTILS, [
        `utils.findBetween("${text}", "<b>", "</b>")`, `utils.findBetween("${text}", "<b>", "</b>", true)`, `utils.findBetween("x", "<", ">")`,
        `utils.findBetween("x", "<", ">", true)`, `utils.parseDuration("1d2h3m4.5s6ms")`, `utils.parseDuration("1x")`, `utils.parseDuration("1500")`,
        `utils.normalDistributionStages(10, 20, 5)`,
    ]);
    assert.deepEqual([first, all, none, nones, duration, bare], ["1", ["1", "2"], "", [], 93_784_506, 1500]);
    assert.match(bad, /^threw .*1x/);
    assert.deepEqual(stages, [1, 6, 10, 6, 1].map((target) => ({ duration: "4s", target })));
});

test("k6-utils: the current stage", async () => {
    const scenario = { executor: "ramping-vus", startVUs: 0, stages: [{ duration: "1h", target: 5 }, { duration: "1h", target: 5 }, { duration: "1h", target: 0 }] };
    const at = (hours) => ({
        options: { scenarios: { default: scenario } },
        execution: { scenario: { startTime: Date.now() - hours * 3_600_000, executor: "ramping-vus" }, vu: {}, instance: {} },
    });
    const imports = `${UTILS} import exec from "k6/execution";`;
    const told = ["utils.getCurrentStageIndex()", "(utils.tagWithCurrentStageIndex(), utils.tagWithCurrentStageProfile(), [exec.vu.tags.stage, exec.vu.tags.stage_profile])"];
    assert.deepEqual(await values(imports, told, at(0.5)), [0, ["0", "ramp-up"]]);
    assert.deepEqual(await values(imports, told, at(1.5)), [1, ["1", "steady"]]);
    assert.deepEqual(await values(imports, told, at(9)), [2, ["2", "ramp-down"]]);
    assert.match((await values(imports, told, { ...at(1), options: { scenarios: { default: {} } } }))[0], /no stages/);
});

test("k6-utils: checks of promises", async () => {
    const { told, thrown } = await checks(`${UTILS} export default async function () {
        const now = utils.check(1, { one: (v) => v === 1 });
        const later = await utils.check(1, { soon: new Promise((resolve) => setTimeout(() => resolve(true), 10)), never: async () => false });
        console.log(now, later);
    }`);
    assert.equal(thrown, undefined);
    assert.deepEqual(told, ["+one", "+soon", "-never"]);
});

const CSV = `import papaparse, { parse, unparse } from "https://jslib.k6.io/papaparse/5.1.1/index.js";`;

test("papaparse reads rows and objects", async () => {
    assert.deepEqual(await values(CSV, [
        `parse("a,b\\n1,2").data`, `parse("a,b\\n1,2\\n", { header: true }).data`, `parse("a,b\\r\\n1,2\\r\\n", { header: true, skipEmptyLines: true }).data`,
        `parse('x,"a,b","c""d","e\\nf"\\n"", z').data`, `parse("a;b\\n1;2").meta.delimiter`, `parse("a\\tb\\n1\\t2").data`, `parse("a|b", { delimiter: "|" }).data`,
        `parse("n,t,e,s,z\\n1.5,true,,x,007", { header: true, dynamicTyping: true }).data`, `parse("a,b\\n1,2", { header: true, dynamicTyping: { a: true } }).data`,
        `parse("#c\\na,b", { comments: "#" }).data`, `parse("a\\nb\\nc", { preview: 2 }).data`, `parse("h\\nb\\nc", { preview: 1, header: true }).data`,
        `parse("a,b\\n1,2", { header: true, transform: (v, f) => f + v }).data`, `parse("A ,b\\n1,2", { header: true, transformHeader: (h) => h.trim().toLowerCase() }).data`,
        `parse(" \\n,\\nx", { skipEmptyLines: "greedy" }).data`, `parse("a,b\\n1,2,3", { header: true }).data`, `parse("a,b\\n1", { header: true, delimiter: "," }).errors.map((e) => e.code)`,
        `parse('a,"b').errors.map((e) => e.code)`, `parse("\\ufeffa,b").data`, `parse("").data`, `parse("a,b,").data`, `parse("'a,b',c", { quoteChar: "'" }).data`,
        `papaparse.parse("a,b\\n1,2", { header: true }).meta.fields`, `(() => { const seen = []; parse("a\\nb\\nc", { step: ({ data }, p) => { seen.push(data[0]); if (data[0] === "b") p.abort(); } }); return seen; })()`,
    ]), [
        [["a", "b"], ["1", "2"]], [{ a: "1", b: "2" }, { a: "" }], [{ a: "1", b: "2" }],
        [["x", "a,b", 'c"d', "e\nf"], ["", " z"]], ";", [["a", "b"], ["1", "2"]], [["a", "b"]],
        [{ n: 1.5, t: true, e: null, s: "x", z: 7 }], [{ a: 1, b: "2" }],
        [["a", "b"]], [["a"], ["b"]], [{ h: "b" }],
        [{ a: "a1", b: "b2" }], [{ a: "1", b: "2" }],
        [["x"]], [{ a: "1", b: "2", __parsed_extra: ["3"] }], ["TooFewFields"],
        ["MissingQuotes"], [["a", "b"]], [], [["a", "b", ""]], [["a,b", "c"]],
        ["a", "b"], ["a", "b"],
    ]);
});

test("papaparse writes rows and objects", async () => {
    assert.deepEqual(await values(CSV, [
        `unparse([["a", "b"], [1, null]])`, `unparse([{ a: 1, b: "x,y" }, { a: 'q"', b: " s" }])`, `unparse({ fields: ["b", "a"], data: [{ a: 1, b: 2 }] })`,
        `unparse([["a"]], { quotes: true, delimiter: ";" })`, `unparse([{ a: 1 }], { header: false, newline: "\\n" })`,
    ]), ["a,b\r\n1,", 'a,b\r\n1,"x,y"\r\n"q"""," s"', "b,a\r\n2,1", '"a"', "1"]);
});

test("addresses are those of the URL Standard", async () => {
    const addresses = [
        ["https://k6.io"], ["HTTP://User:p%40ss@Example.COM:80/a/./b/../c d?q=é x'#h<i"], ["https://[::1]:8080/"], ["http:a/b", "http://h/x/y"], ["../z?q", "http://h/x/y/w"],
        ["?only", "http://h/x?y#z"], ["#frag", "http://h/x?y#z"], ["//other/p", "https://h/x"], ["/abs", "https://u:p@h:444/x"], ["", "https://h/x?y#z"], ["https:\\\\h\\p"],
        ["mailto:a@b.c"], ["http://1.2.3"], ["http://0x7f.1/"], ["  http://h/p  "], ["foo://h:9/p/../q"], ["http://h/%7Efoo/%2e%2E/bar"], ["http://h/a{b}|c^d`"], ["file:///a/b"],
        ["http://h?a=b"], ["https://h:443"], ["ws://h:80/x"], ["http://h/."], ["http://h/a/.."], ["data:text/plain,x y"], ["http://h/🙂?🙂#🙂"],
    ];
    const facts = "[u.href, u.origin, u.protocol, u.username, u.password, u.host, u.hostname, u.port, u.pathname, u.search, u.hash]";
    const got = await values(`import { URL } from "https://jslib.k6.io/url/1.0.0/index.js";`, addresses.map((given) => `((u) => ${facts})(new URL(...${JSON.stringify(given)}))`));
    const expected = addresses.map((given) => ((u) => [u.href, u.origin, u.protocol, u.username, u.password, u.host, u.hostname, u.port, u.pathname, u.search, u.hash])(new URL(...given)));
    assert.deepEqual(got, expected);
    for (const bad of ["x", "", "http://", "http://h:99999", "http://a b", "http://1.2.3.4.5", "http://[x]"]) {
        assert.throws(() => new URL(bad));
        assert.match((await values(`import { URL } from "https://jslib.k6.io/url/1.0.0/index.js";`, [`new URL(${JSON.stringify(bad)})`]))[0], /^threw not an address/);
    }
});

test("parts of an address and queries can be changed", async () => {
    const steps = [
        `u.searchParams.append("a b", "ü&="); u.searchParams.append("m", ["foo", "bar"]);`, `u.searchParams.set("q", 2);`, `u.searchParams.delete("q");`, `u.search = "x=1&y=ä";`,
        `u.hash = "top";`, `u.pathname = "/p q/../r";`, `u.port = "8080";`, `u.port = "443";`, `u.hostname = "Other";`, `u.host = "h2:99";`, `u.username = "a@b"; u.password = "c:d";`,
        `u.protocol = "http";`, `u.search = "";`, `u.searchParams.sort();`,
    ];
    const run = `(() => { const u = new URL("https://h/x?q=1&q=3&b=~*'()!"); const seen = []; ${steps.map((step) => `${step} seen.push(u.href, String(u.searchParams), u.searchParams.get("x"));`).join(" ")} return seen; })()`;
    const [got] = await values(`import { URL } from "https://jslib.k6.io/url/1.0.0/index.js";`, [run]);
    assert.deepEqual(got, (0, eval)(run));
    const queries = [
        `[...new URLSearchParams("?a=1&b=%20+%zz&&c")]`, `String(new URLSearchParams({ a: 1, b: "x y" }))`, `String(new URLSearchParams([["a", "1"], ["a", "2"]]))`,
        `new URLSearchParams("a=1&a=2").getAll("a")`, `new URLSearchParams("a=1").has("a", "2")`, `[...new URLSearchParams("a=1&b=2").keys()]`, `new URLSearchParams("a=1&b=2").size`,
    ];
    assert.deepEqual(await values(`import { URLSearchParams } from "https://jslib.k6.io/url/1.0.0/index.js";`, queries), queries.map((query) => (0, eval)(query)));
});

test("formdata writes multipart bodies in order", async () => {
    const [body] = await values(`import { FormData } from "https://jslib.k6.io/formdata/0.0.2/index.js";
        function written() {
            const form = new FormData();
            form.append("text", "é");
            form.append("file", { data: new Uint8Array([65, 66]).buffer, filename: 'a".png', content_type: "image/png" });
            form.append("plain", { data: "x", filename: "p" });
            return String.fromCharCode(...new Uint8Array(form.body())).replaceAll(form.boundary, "B");
        }`, ["written()"]);
    assert.equal(body, [
        "--B", 'Content-Disposition: form-data; name="text"', "", "\xc3\xa9", "--B", 'Content-Disposition: form-data; name="file"; filename="a%22.png"', "Content-Type: image/png", "", "AB",
        "--B", 'Content-Disposition: form-data; name="plain"; filename="p"', "Content-Type: application/octet-stream", "", "x", "--B--", "",
    ].join("\r\n"));
});

test("httpx adds what its session has", async () => {
    const http = `const told = (...values) => values;
        export default { request: told, asyncRequest: async (...values) => values, batch: (list) => list };`;
    assert.deepEqual(await values(`import { Httpx, Get, Post } from "https://jslib.k6.io/httpx/0.1.0/index.js";
        const s = new Httpx({ baseURL: "http://h", headers: { A: "1", B: "2" }, timeout: 20000 });
        s.addHeader("C", "3"); s.clearHeader("B"); s.addTag("t", "u");`, [
        `s.get("/p")`, `s.post("/p", "body", { headers: { A: "9" }, tags: { name: "n" } })`, `s.request("PUT", "https://other/x", null)`,
        `s.batch([new Get("/1"), new Post("/2", { a: 1 }, { headers: { D: "4" } })], { tags: { name: "b" } })`,
    ], { files: { "k6/http": http } }), [
        ["GET", "http://h/p", null, { timeout: 20000, headers: { A: "1", C: "3" }, tags: { t: "u" } }],
        ["POST", "http://h/p", "body", { timeout: 20000, headers: { A: "9", C: "3" }, tags: { t: "u", name: "n" } }],
        ["PUT", "https://other/x", null, { timeout: 20000, headers: { A: "1", C: "3" }, tags: { t: "u" } }],
        [
            { method: "GET", url: "http://h/1", params: { timeout: 20000, headers: { A: "1", C: "3" }, tags: { t: "u", name: "b" } } },
            { method: "POST", url: "http://h/2", body: { a: 1 }, params: { timeout: 20000, headers: { A: "1", C: "3", D: "4" }, tags: { t: "u", name: "b" } } },
        ],
    ]);
});

test("k6chaijs: the assertions of its documentation hold", async () => {
    const { told, thrown } = await checks(`import chai, { describe, expect } from "https://jslib.k6.io/k6chaijs/4.3.4.3/index.js";
        export default function () { console.log(describe("Basic test", () => {
            expect({ a: 1 }).to.not.have.property("b"); expect(2).to.equal(2); expect({ a: 1 }).to.deep.equal({ a: 1 });
            expect({ a: { b: ["x", "y"] } }).to.have.nested.property("a.b[1]"); expect({ a: 1 }).to.have.own.property("a");
            expect([1, 2]).to.have.ordered.members([1, 2]).but.not.have.ordered.members([2, 1]);
            expect({ a: 1, b: 2 }).to.not.have.any.keys("c", "d"); expect({ a: 1, b: 2 }).to.have.all.keys("a", "b");
            expect("foo").to.be.a("string"); expect([1, 2, 3]).to.be.an("array").that.includes(2); expect("foobar").to.include("foo");
            expect(true).to.be.true; expect(false).to.be.false; expect(null).to.be.null; expect(undefined).to.be.undefined; expect(NaN).to.be.NaN;
            expect([]).to.be.empty; expect({}).not.to.be.arguments; expect({ a: 1 }).to.eql({ a: 1 }).but.not.equal({ a: 1 });
            expect("foo").to.have.lengthOf(3); expect(2).to.be.at.most(3); expect({ a: 1 }).to.not.be.an.instanceof(Array);
            expect("foobar").to.match(/^foo/); expect("foobar").to.have.string("bar");
            expect(() => { throw new TypeError("Illegal salmon!"); }).to.throw(TypeError, /salmon/); expect(1).to.satisfy((n) => n > 0);
            expect([1, 2, 3]).to.have.members([2, 1, 3]); expect("Today is sunny").to.contain.oneOf(["sunny", "cloudy"]);
            expect({ a: 1 }).to.be.extensible; expect(1).to.be.finite; expect([1, 2, 3]).to.have.length.above(2).and.below(9);
            expect(1.5).to.be.closeTo(1.4, 0.2); expect([{ a: 1 }]).to.deep.include({ a: 1 }); expect({ a: 1, b: 2 }).to.include({ a: 1 });
            expect(5, "five").to.be.within(1, 9); expect(true).to.be.true(); expect("x").to.exist.and.not.be.empty; expect({ n: 3 }).to.have.property("n").that.is.above(2);
        })); }`);
    assert.equal(thrown, undefined);
    assert.deepEqual(told.filter((name) => name.startsWith("-")), []);
    for (const name of [
        "+expected ${this} to not have property 'b'", "+expected ${this} to deeply equal { a: 1 }", "+expected ${this} to have nested property 'a.b[1]'",
        "+expected ${this} to have own property 'a'", "+expected ${this} to have the same ordered members as [ 1, 2 ]", "+expected ${this} to not have the same ordered members as [ 2, 1 ]",
        "+expected ${this} to not have keys 'c', or 'd'", "+expected ${this} to have keys 'a', and 'b'", "+expected ${this} to be a string", "+expected ${this} to be an array",
        "+expected ${this} to include 2", "+expected ${this} to be NaN", "+expected ${this} to not be arguments", "+expected ${this} to not equal { a: 1 }",
        "+expected ${this} to have property 'length'", "+expected ${this} to have a length of 3 got ${actual}", "+expected ${this} to be at most 3",
        "+expected ${this} to not be an instance of Array", "+expected ${this} to match /^foo/", "+expected ${this} to contain 'bar'", "+expected ${this} to be a function",
        "+expected ${this} to satisfy [Function]", "+expected ${this} to contain one of [ 'sunny', 'cloudy' ]", "+expected ${this} to be extensible",
        "+expected ${this} to be a finite number", "+expected five to be within 1..9",
    ]) assert.ok(told.includes(name), name);
});

test("k6chaijs: assertions that do not hold end their case", async () => {
    const cases = [
        `expect(1).to.equal(2)`, `expect({ a: 1 }).to.equal({ a: 1 })`, `expect([1]).to.be.empty`, `expect("x").to.be.a("number")`, `expect({ a: 1 }).to.have.property("a", 2)`,
        `expect([1, 2]).to.have.members([1])`, `expect(1).to.be.above(1)`, `expect(() => 1).to.throw()`, `expect("x").to.not.match(/x/)`, `expect(null).to.exist`, `expect({}).to.have.keys("a")`,
        `expect([1, 1]).to.have.members([1, 2])`, `expect(0).to.be.ok`, `expect("abc").to.have.lengthOf.at.least(4)`, `expect([1]).to.not.include(1)`, `expect.fail("no")`,
    ];
    for (const one of cases) {
        const { told, thrown, user } = await checks(`import { describe, expect } from "https://jslib.k6.io/k6chaijs/4.3.4.3/index.js";
            export default () => console.log(describe("c", () => { ${one}; console.log("went on"); }));`);
        assert.equal(thrown, undefined, one);
        assert.equal(told.filter((name) => name.startsWith("-")).length, 1, one);
        assert.deepEqual(user.printed(), ["false"], one);
    }
    const { told, thrown } = await checks(`import { expect } from "https://jslib.k6.io/k6chaijs/4.3.4.3/index.js"; export default () => expect(1, "one").to.equal(2);`);
    assert.deepEqual([told, thrown.name], [["-expected one to equal 2"], "AssertionError"]);
    assert.deepEqual((await checks(`import { describe } from "https://jslib.k6.io/k6chaijs/4.3.4.3/index.js"; export default () => describe("c", () => { throw "gone"; });`)).told, ['-Exception raised "gone"']);
});

test("expect and functional: chains inside describe", async () => {
    for (const name of ["expect/0.0.4", "functional/0.0.3"]) {
        const { told, user } = await checks(`import { describe } from "https://jslib.k6.io/${name}/index.js";
            export default () => console.log(describe("c", (t) => {
                t.expect(200).as("status").toEqual(200).and({ json: () => ({}) }).as("response").toHaveValidJson().and(5).as("stars").toBeGreaterThan(0).toBeBetween(1, 4);
            }));`);
        assert.deepEqual(told, ["+status is 200.", "+response has valid JSON.", "+stars is greater than 0.", "-stars is between 1 and 4."]);
        assert.deepEqual(user.printed(), ["false"]);
    }
});

test("k6-testing: assertions that hold, end the run, or fail it", async () => {
    const imports = `import { expect } from "https://jslib.k6.io/k6-testing/0.5.0/index.js";`;
    const holding = [
        `expect(42).toBe(42)`, `expect(NaN).toBeNaN()`, `expect({ a: [1] }).toEqual({ a: [1] })`, `expect(0.1 + 0.2).toBeCloseTo(0.3)`, `expect([1, 2]).toContain(2)`, `expect("abc").toContain("b")`,
        `expect([{ a: 1 }]).toContainEqual({ a: 1 })`, `expect("abc").toHaveLength(3)`, `expect({ a: { b: [5] } }).toHaveProperty("a.b[0]", 5)`, `expect({}).not.toHaveProperty("x")`,
        `expect(1).toBeDefined()`, `expect(undefined).toBeUndefined()`, `expect(null).toBeNull()`, `expect(1).toBeTruthy()`, `expect(0).toBeFalsy()`, `expect(2).toBeGreaterThan(1)`,
        `expect(2).toBeGreaterThanOrEqual(2)`, `expect(1).toBeLessThan(2)`, `expect(2).toBeLessThanOrEqual(2)`, `expect([]).toBeInstanceOf(Array)`, `expect(1).not.toBe(2)`,
    ];
    assert.deepEqual(await values(imports, holding), holding.map(() => "undefined"));
    const strict = await newUser();
    await assert.rejects(() => strict.iterate(`${imports} export default () => expect(1, "one").toBe(2);`), /stopped/);
    assert.deepEqual(strict.called("stop"), [["test aborted: one: expect(1).toBe(2) does not hold", false]]);
    const soft = await newUser();
    await soft.iterate(`${imports} export default () => { expect.soft(1).not.toBe(1); console.log("on"); };`);
    assert.deepEqual([soft.called("failRun"), soft.printed()], [[["expect(1).not.toBe(1) does not hold"]], ["on"]]);
    assert.deepEqual(await values(imports, [`expect.configure({ softMode: "throw" }).soft(1).toBe(2)`, `expect(1).toBeVisible()`]), [
        "threw expect(1).toBe(2) does not hold", "threw toBeVisible() is about elements of a browser, which brunt does not drive",
    ]);
});

test("totp: the vectors of RFC 6238", async () => {
    const user = await newUser({ native: { hmac: (_, key, data) => new Uint8Array(createHmac("sha1", Buffer.from(key)).update(Buffer.from(data)).digest()).buffer } });
    await user.iterate(`import { TOTP } from "https://jslib.k6.io/totp/1.0.0/index.js";
        const codes = [];
        export default async function () {
            const totp = new TOTP("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", 8);
            for (const seconds of [59, 1111111109, 1234567890, 20000000000]) { Date.now = () => seconds * 1000; console.log(await totp.gen(), await totp.verify(await totp.gen())); }
        }`);
    assert.deepEqual(user.printed(), ["94287082 true", "07081804 true", "89005924 true", "65353130 true"]);
});
