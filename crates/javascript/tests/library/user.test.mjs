// Globals, the event loop, groups, checks and metrics.
import assert from "node:assert/strict";
import { test } from "node:test";
import { newUser } from "./harness.mjs";

/** Runs a script's default function once; returns its user. */
async function run(text, given) {
    const user = await newUser(given);
    await user.iterate(text);
    return user;
}

/** The error with which a script ends. */
async function fails(text, given) {
    const user = await newUser(given);
    let thrown;
    await user.iterate(text).catch((error) => (thrown = error));
    assert.ok(thrown, "nothing was thrown");
    return { user, message: thrown.message ?? thrown };
}

test("checks count by name, and return whether all hold", async () => {
    const user = await run(`
        import { check } from "k6";
        export default function () {
            console.log(check(5, { "is five": (v) => v === 5, "is odd": (v) => v % 2 }), check(5, { "is even": (v) => v % 2 === 0, "yes": true }));
        }`);
    assert.deepEqual(user.printed(), ["true false"]);
    assert.equal(user.called("checkPassed").length, 3);
    assert.deepEqual(user.called("checkFailed").map(([, ticket, label, first]) => [ticket, label, first]), [[0, 0, false]]);
});

test("the first failed check of a response is told as such, with its label and ticket", async () => {
    const user = await run(`
        import { check } from "k6";
        import { LABEL, TICKET } from "brunt:user";
        export default function () {
            check({ [LABEL]: 7, [TICKET]: 99 }, { a: () => false, b: () => false, c: () => true });
        }`);
    assert.deepEqual(user.called("checkFailed").map(([, ...rest]) => rest), [[99, 7, true, undefined], [99, 7, false, undefined]]);
});

test("what a check throws fails the check and ends the iteration", async () => {
    const { user, message } = await fails(`
        import { check } from "k6";
        export default function () { check(null, { "has body": (r) => r.body.length > 0, never: () => true }); }`);
    assert.match(message, /null/);
    assert.match(user.called("checkFailed")[0][4], /^TypeError: /);
    assert.equal(user.called("checkPassed").length, 0);
});

test("names with two colons are refused", async () => {
    assert.match((await fails(`import { check } from "k6"; export default () => check(1, { "a::b": true });`)).message, /a::b/);
    assert.match((await fails(`import { group } from "k6"; export default () => group("a::b", () => 1);`)).message, /a::b/);
});

test("groups nest, return their value and tell pauses apart", async () => {
    const user = await run(`
        import { group, sleep } from "k6";
        export default function () {
            console.log(group("outer", () => { sleep(1); return group("inner", () => { sleep(0.5); return 42; }); }));
        }`);
    assert.deepEqual(user.printed(), ["42"]);
    assert.deepEqual(user.called("groupEnded").map(([, ...rest]) => rest), [[5e8, 0, true], [15e8, 0, true]]);
    assert.deepEqual(user.called("pause"), [[1], [0.5]]);
});

test("a group that throws is left, and counts as failed", async () => {
    const user = await run(`
        import { group, fail } from "k6";
        import { user } from "brunt:user";
        export default function () {
            try { group("g", () => fail("no")); } catch (e) { console.log(e.message, JSON.stringify(user.group)); }
        }`);
    assert.deepEqual(user.printed(), ['no ""']);
    assert.equal(user.called("groupEnded")[0][3], false);
});

test("async functions are refused by group", async () => {
    assert.match((await fails(`import { group } from "k6"; export default () => group("g", async () => 1);`)).message, /async/);
});

test("fail and rejected promises end the iteration", async () => {
    assert.equal((await fails(`import { fail } from "k6"; export default () => fail("gone");`)).message, "gone");
    assert.equal((await fails(`export default async () => { await null; throw new Error("later"); }`)).message, "later");
});

test("timers run in the order of their time, and the function ends after them", async () => {
    const user = await run(`
        import { setTimeout as later } from "k6/timers";
        export default async function () {
            setTimeout((text) => console.log(text), 20, "second");
            later(() => console.log("first"), 10);
            const dropped = setTimeout(() => console.log("never"), 15);
            clearTimeout(dropped);
            let times = 0;
            const id = setInterval(() => { times += 1; console.log("tick " + times); if (times === 3) clearInterval(id); }, 30);
            await new Promise((resolve) => setTimeout(resolve, 5));
            console.log("awaited");
        }`);
    assert.deepEqual(user.printed(), ["awaited", "first", "second", "tick 1", "tick 2", "tick 3"]);
    assert.equal(user.clock, 90);
});

test("events go to their handlers until they are unhandled", async () => {
    const user = await newUser();
    user.events.push({ id: 3, due: 50, text: "b" }, { id: 3, due: 10, text: "a" });
    await user.iterate(`
        import { handle, unhandle } from "brunt:events";
        export default function () {
            handle(3, (event) => { console.log(event.text); if (event.text === "b") unhandle(3); });
        }`);
    assert.deepEqual(user.printed(), ["a", "b"]);
    assert.equal(user.clock, 50);
});

test("a promise that nothing can settle does not hold the iteration", async () => {
    const user = await run(`export default async function () { console.log("in"); await new Promise(() => {}); console.log("never"); }`);
    assert.deepEqual(user.printed(), ["in"]);
});

test("console prints objects as JSON", async () => {
    const user = await run(`export default () => { console.log("a", 1, { b: [true, null] }, undefined, [1, "x"]); console.error(null); }`);
    assert.deepEqual(user.called("print"), [["info", 'a 1 {"b":[true,null]} undefined [1,"x"]'], ["error", "null"]]);
});

test("console shows functions, circles, bytes and errors", async () => {
    const user = await run(`export default () => {
        const circle = { fn: function () {}, foo: {} }; circle.foo = circle;
        console.log({ a: [1, 2, 3], b: class {}, e: [1, () => {}, 2] }); console.log(circle); console.log(() => 1);
        console.log(new Int32Array([4, 2]).buffer); console.log(new Int32Array([4, 2])); console.log({ v: new Int32Array([4, 2]), s: "x" });
        console.log(new Date(0), { d: new Date(0), n: 1n, u: undefined }); console.log({ a: circle, twice: [1] });
        const shared = {}; console.log({ one: shared, two: shared });
        console.log(new TypeError("bad"));
    }`);
    const printed = user.printed();
    assert.match(printed.pop(), /^TypeError: bad\n\s+at .*script\.js/);
    assert.deepEqual(printed, [
        '{"a":[1,2,3],"b":"[object Function]","e":[1,"[object Function]",2]}', '{"fn":"[object Function]","foo":"[Circular]"}', "[object Function]",
        "ArrayBuffer { [Uint8Contents]: <04 00 00 00 02 00 00 00>, byteLength: 8 }", "Int32Array(2) [ 4, 2 ]", '{ v: Int32Array(2) [ 4, 2 ], s: "x" }',
        '"1970-01-01T00:00:00.000Z" {"d":"1970-01-01T00:00:00.000Z","n":"1"}', '{"a":{"fn":"[object Function]","foo":"[Circular]"},"twice":[1]}', '{"one":{},"two":{}}',
    ]);
});

test("texts are encoded and decoded as in Node", async () => {
    const expressions = [
        `[...new TextEncoder().encode("aé🙂")]`, `[...new TextEncoder().encode("\\ud800")]`, `new TextEncoder().encodeInto("é🙂", new Uint8Array(5))`,
        `new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 97, 0xff, 98]))`, `new TextDecoder("utf-8", { ignoreBOM: true }).decode(new Uint8Array([0xef, 0xbb, 0xbf, 97])).length`,
        `new TextDecoder("UTF-8", { fatal: true }).decode(new Uint8Array([0xff]))`, `new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array([0xef, 0xbf, 0xbd]))`,
        `new TextDecoder("utf-16le").decode(new Uint8Array([97, 0, 61, 216, 66, 222]))`, `new TextDecoder("nothing")`, `new TextDecoder().decode()`,
        `(() => { const d = new TextDecoder(); let t = ""; for (const b of [0xf0, 0x9f, 0x99, 0x82, 97]) t += d.decode(new Uint8Array([b]), { stream: true }); return t + d.decode(); })()`,
        `(() => { const d = new TextDecoder(); return d.decode(new Uint8Array([97, 0xe2, 0x82]), { stream: true }) + "|" + d.decode(); })()`,
        `new TextDecoder().decode(new Uint8Array([97, 98, 99]).subarray(1))`,
    ];
    const tell = (show) => { try { return JSON.stringify(show()) ?? "undefined"; } catch (error) { return error.name; } };
    const user = await run(`export default () => { const tell = ${tell}; for (const show of [${expressions.map((text) => `() => ${text}`)}]) console.log(tell(show)); }`);
    assert.deepEqual(user.printed(), expressions.map((text) => tell((0, eval)(`() => ${text}`))));
});

test("globals of the run", async () => {
    const given = { env: { HOST: "h" }, user: { id: 4, iteration: 6, scenario: "s" }, files: { "data.txt": "text" } };
    const user = await run(`
        const text = open("./data.txt".slice(2));
        export default () => console.log(__VU, __ITER, __ENV.HOST, text, typeof global.setTimeout, crypto.randomUUID().length);`, given);
    assert.deepEqual(user.printed(), ["4 6 h text function 36"]);
    assert.match((await fails(`export default () => open("data.txt");`, given)).message, /init context/);
});

test("a seed repeats the random numbers of its user", async () => {
    const user = await run(`
        import { randomSeed } from "k6";
        const some = (seed) => { randomSeed(seed); return Array.from({ length: 1000 }, Math.random); };
        export default function () {
            const numbers = some(42);
            const mean = numbers.reduce((sum, number) => sum + number) / 1000;
            console.log(String(numbers) === String(some(42)), String(numbers) === String(some(43)), new Set(numbers).size, numbers.every((n) => n >= 0 && n < 1), Math.abs(mean - 0.5) < 0.05);
        }`);
    assert.deepEqual(user.printed(), ["true false 1000 true true"]);
});

test("a scenario has variables and tags of its own", async () => {
    const scenarios = { one: { env: { A: "1", B: 2 }, tags: { t: "x" } }, two: { env: { C: "3" } } };
    const user = await newUser({ env: { A: "0" }, options: { scenarios }, user: { id: 1, iteration: 0, scenario: "one" } });
    const script = await user.script(`import exec from "k6/execution"; export default () => { exec.vu.tags.mine = 1; console.log(JSON.stringify([__ENV, exec.vu.tags])); };`);
    const { iterate } = await user.import("brunt:loop");
    iterate(script.default);
    user.user = { id: 1, iteration: 1, scenario: "two" };
    iterate(script.default);
    assert.deepEqual(user.printed().map((text) => JSON.parse(text)), [
        [{ A: "1", B: "2" }, { scenario: "one", t: "x", group: "", mine: "1" }],
        [{ A: "0", C: "3" }, { scenario: "two", group: "", mine: "1" }],
    ]);
});

test("require gives files and modules", async () => {
    const user = await newUser({ files: {
        "lib.js": `const other = require("./other.js"); exports.sum = (a, b) => other(a) + b;`,
        "other.js": `module.exports = (a) => a * 10;`,
    } });
    await user.import("k6");
    await user.iterate(`const { sum } = require("./lib.js"); const k6 = require("k6"); export default () => console.log(sum(1, 2), typeof k6.check, typeof k6.default.group);`);
    assert.deepEqual(user.printed(), ["12 function function"]);
});

test("the script's metrics take numbers, and warn of others", async () => {
    const user = await run(`
        import { Counter, Gauge, Rate, Trend } from "k6/metrics";
        const c = new Counter("c"), g = new Gauge("g"), r = new Rate("r"), t = new Trend("t", true);
        export default function () {
            c.add(1); c.add("2"); g.add(5); r.add(true); r.add(0); r.add(7); t.add(1.5, { a: "b" });
            console.log(t.add(NaN), t.add(undefined), t.add(null), c.name);
        }`);
    assert.deepEqual(user.values(), { c: [1, 2], g: [5], r: [1, 0, 1], t: [1.5] });
    assert.deepEqual(user.printed(), ["false false false c"]);
    assert.equal(user.called("log").length, 3);
});

test("metrics are declared in the init context, by good names, once", async () => {
    assert.match((await fails(`import { Counter } from "k6/metrics"; export default () => new Counter("c");`)).message, /init context/);
    assert.match((await fails(`import { Counter } from "k6/metrics"; new Counter("a b"); export default () => 1;`)).message, /a b/);
    assert.match((await fails(`import { Counter, Trend } from "k6/metrics"; new Counter("a"); new Trend("a"); export default () => 1;`)).message, /already exists/);
    assert.match((await fails(`import { Counter } from "k6/metrics"; const c = new Counter("a"); c.add(1); export default () => 1;`)).message, /init context/);
    assert.match((await fails(`import { Trend } from "k6/metrics"; const t = new Trend("t"); export default () => t.add("x");`, { options: { throw: true } })).message, /invalid value/);
});

test("samples go to the figures whose tags they have", async () => {
    const options = { tags: { team: "red" }, scenarios: { buy: { tags: { kind: "slow" } } } };
    const user = await newUser({ options, user: { id: 1, iteration: 0, scenario: "buy" } });
    const script = await user.script(`
        import { check, group } from "k6";
        import { Trend } from "k6/metrics";
        const t = new Trend("t");
        export default function () {
            t.add(1, { page: "a" }); t.add(2, { page: "b" }); t.add(3, { team: "blue" });
            group("g", () => { t.add(4); check(1, { one: true, two: false }, { page: "a" }); });
        }`);
    const wanted = (metric, kind, filter) => ({ metric, kind, isTime: false, filter, name: metric + JSON.stringify(filter ?? {}) });
    const { configureTags } = await user.import("brunt:user");
    configureTags(options);
    (await user.import("brunt:samples")).configure([
        wanted("t", "trend"), wanted("t", "trend", { page: "a" }), wanted("t", "trend", { team: "red" }), wanted("t", "trend", { group: "::g" }),
        wanted("t", "trend", { kind: "slow", scenario: "buy" }), wanted("checks", "rate", { check: "two" }), wanted("checks", "rate", { page: "a" }),
        wanted("group_duration", "trend", { group: "::g" }), wanted("iterations", "counter"),
    ]);
    (await user.import("brunt:loop")).iterate(script.default);
    assert.deepEqual(user.values(), {
        "t": [1, 2, 3, 4], 't{"page":"a"}': [1], 't{"team":"red"}': [1, 2, 4], 't{"group":"::g"}': [4],
        't{"kind":"slow","scenario":"buy"}': [1, 2, 3, 4], 'checks{"check":"two"}': [0], 'checks{"page":"a"}': [1, 0],
        'group_duration{"group":"::g"}': [0], "iterations{}": [1],
    });
});
