// A user gone wild: what it calls, and with what, is made up by the numbers in __ENV.BYTES. It calls each function that the modules, and whatever
// these return, have.
import * as k6 from "k6";
import * as crypto from "k6/crypto";
import * as data from "k6/data";
import * as encoding from "k6/encoding";
import * as execution from "k6/execution";
import * as html from "k6/html";
import * as http from "k6/http";
import * as metrics from "k6/metrics";
import * as grpc from "k6/net/grpc";
import * as timers from "k6/timers";
import * as websockets from "k6/websockets";
import * as ws from "k6/ws";

const bytes = __ENV.BYTES.split(",").map(Number);
let at = 0;
const next = () => bytes[at++] ?? 0;

const circle = {};
circle.circle = circle;
const values = [
    undefined, null, NaN, -1, 0, 1, 1e300, true, 10n, Symbol("s"), "", "a", "\u0000", "\ud800", "GET", "http://localhost/", "https://é:1/?#", "a=1; b=2",
    "$..a[?(@.b)]", "#(a==1)#", "<a href='x'><form><input name=y></form>", '[1,{"a":[2,null]}]', "p(95)", "a > b:first-child", "10s", [], [1, [2]], {}, circle,
    { headers: { "a b": 1, Cookie: "c" }, tags: { name: 1 }, timeout: "1s" }, { a: () => true, b: () => { throw 1; } }, () => 1, (value) => value.json(),
    async () => 1, /a/g, new Date(NaN), new ArrayBuffer(3), new Uint8Array([1, 255]), Promise.resolve(1),
    new Proxy({}, { get() { throw new Error("no"); } }), Object.freeze({ body: 1 }), new Map([[1, 2]]),
];
/** What functions are called on. Whatever they return joins. */
const targets = [k6, crypto, data, encoding, execution, html, http, metrics, grpc, timers, websockets, ws, globalThis.crypto, console, http.cookieJar];

/** The names of what an object has, also by its prototypes. */
function membersOf(object) {
    const names = new Set();
    for (let own = object; own && own !== Object.prototype && own !== Function.prototype; own = Object.getPrototypeOf(own)) {
        for (const name of Reflect.ownKeys(own)) names.add(name);
    }
    return [...names];
}

function value() {
    const number = next();
    return number % 3 === 0 && targets.length > 15 ? targets[15 + (number % (targets.length - 15))] : values[number % values.length];
}

function join(found) {
    if (found !== null && ["object", "function"].includes(typeof found) && targets.length < 60) targets.push(found);
}

/** Calls one function, or reads one property. */
function step() {
    const target = targets[next() % targets.length];
    const names = membersOf(target);
    if (names.length === 0) return;
    const found = target[names[next() % names.length]];
    if (typeof found !== "function") return join(found);
    const given = Array.from({ length: next() % 4 }, value);
    join(/^[A-Z]/.test(found.name) ? Reflect.construct(found, given) : Reflect.apply(found, target, given));
}

function run(until) {
    while (at < until) {
        try {
            step();
        } catch (error) {
            join(error);
        }
    }
}

run(bytes.length / 4);

export default function () {
    targets.push(http.get("http://localhost/"), http.cookieJar());
    run(bytes.length);
}
