// A user of k6's library in Node: its own realm, in which the library's modules stand as they do in QuickJS, on a mock of
// `brunt:native` whose clock moves only when the user waits.
import { createHash, createHmac, randomBytes } from "node:crypto";
import { STATUS_CODES } from "node:http";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import vm from "node:vm";
import { pages } from "./page.mjs";

export const LIBRARY = path.resolve(import.meta.dirname, "../../src/library");

/** Files of modules whose names do not say them. */
const FILES = { "k6": "k6.js", "k6/experimental/webcrypto": "webcrypto.js" };

/** Modules that the library loads only when they are used. */
const LATER = [...new Set(readdirSync(LIBRARY).filter((file) => file.endsWith(".js")).flatMap((file) => {
    const text = readFileSync(path.join(LIBRARY, file), "utf8");
    return [...text.matchAll(/(?:need\(|defineLater\([^,]+, )"([^"]+)"/g)].map(([, name]) => name);
}))];
/** Names of native functions. */
const NATIVE = [...readFileSync(path.join(LIBRARY, "../native.rs"), "utf8").matchAll(/^    "(\w+)",$/gm)].map(([, name]) => name);

/** The library's file of a module, if it is one of ours. */
function fileOf(name) {
    const plain = FILES[name] ?? `${name.replace(/^(brunt:|k6\/)/, "").replaceAll("/", "-")}.js`;
    return path.join(LIBRARY, name.startsWith("https://jslib.k6.io/") ? `jslib/${name.split("/")[3]}.js` : plain);
}

/** A mock of `brunt:native`. `world.calls` has what was called beside reading; `world.events` what `nextEvent` gives, each at its `due`. */
function mock(world) {
    const note = (name, value) => (...values) => {
        world.calls.push([name, ...values]);
        return typeof value === "function" ? value(...values) : value;
    };
    const bytes = (data) => (typeof data === "string" ? Buffer.from(data) : Buffer.from(new Uint8Array(data)));
    const numbers = new Map();
    const number = (...parts) => {
        const key = JSON.stringify(parts);
        if (!numbers.has(key)) numbers.set(key, numbers.size + 1);
        return numbers.get(key);
    };
    const shared = new Map();
    return {
        now: () => world.clock,
        wall: () => 1_700_000_000_000 + world.clock,
        user: () => world.user,
        env: () => world.env,
        options: () => world.options,
        readFile: (name, binary) => {
            if (!(name in world.files)) throw new Error(`${name}: no such file`);
            return binary ? world.buffer(bytes(world.files[name])) : world.files[name];
        },
        requireModule: (name) => world.required(name),
        isSameUser() {
            const now = JSON.stringify([world.user.id, world.user.scenario]);
            if (world.told === now) return true;
            world.told = now;
            return false;
        },
        iterationNumber: () => world.user.iteration,
        /** Everything goes the library's own way here. */
        shortcut: (_name, usual) => usual,
        remember: () => undefined,
        moved: () => undefined,
        hasCookies: () => undefined,
        goesOnAlone: () => undefined,
        drain: () => void vm.runInContext("0", world.context),
        responsePrototype: () => world.prototype,
        labelOf: () => undefined,
        statusText: (status) => (status === 0 ? "" : `${status} ${STATUS_CODES[status] ?? ""}`.trimEnd()),
        pause: note("pause", (seconds) => void (world.clock += seconds * 1000)),
        nextEvent: (most) => world.nextEvent(most),
        label: note("label", number),
        check: (label, name) => number("check", label, name),
        checkPassed: note("checkPassed"),
        checkFailed: note("checkFailed"),
        excuse: note("excuse"),
        fail: note("fail"),
        groupBegin: (group) => number("group", group),
        groupEnded: note("groupEnded"),
        stop: note("stop", () => { throw new Error("stopped"); }),
        failRun: note("failRun"),
        endUser: note("endUser"),
        print: note("print"),
        log: note("log"),
        figure: (kind, name, isTime) => {
            const id = number("figure", kind, name);
            world.figures[id] = { kind, name, isTime, values: [] };
            return id;
        },
        record: (id, value) => void world.figures[id].values.push(value),
        digest: (algorithm, data) => {
            const name = { ripemd160: "ripemd160", sha512_224: "sha512-224", sha512_256: "sha512-256" }[algorithm] ?? algorithm;
            return world.buffer(createHash(name).update(bytes(data)).digest());
        },
        hmac: (algorithm, key, data) => world.buffer(createHmac(algorithm.replace("_", "-"), bytes(key)).update(bytes(data)).digest()),
        randomBytes: (count) => world.buffer(randomBytes(count)),
        base64: (data, kind) => {
            const text = bytes(data).toString(kind.endsWith("url") ? "base64url" : "base64");
            if (kind === "url") return text.padEnd(Math.ceil(text.length / 4) * 4, "=");
            return kind === "rawstd" ? text.replace(/=+$/, "") : text;
        },
        unbase64: (text, kind) => {
            const pattern = kind.endsWith("url") ? /^[\w-]*=*$/ : /^[A-Za-z0-9+/]*=*$/;
            const whole = kind.startsWith("raw") ? !text.includes("=") : text.length % 4 === 0;
            if (!pattern.test(text) || !whole) throw new Error(`not base64: ${text}`);
            return world.buffer(Buffer.from(text, "base64"));
        },
        utf8: (text) => world.buffer(Buffer.from(text)),
        text: (buffer) => bytes(buffer).toString(),
        random: () => world.random(),
        seedRandom: note("seedRandom"),
        sharedLength: (name) => shared.get(name)?.length,
        sharedItem: (name, index) => shared.get(name)[index],
        sharedMake: note("sharedMake", (name, items) => void (shared.has(name) || shared.set(name, [...items]))),
        execution: () => world.execution,
        isTerminal: () => false,
        ...pages,
        ...world.overrides,
    };
}

/**
 * A user with a realm of its own. `given` may have `files`, `env`, `options`, `user`, `random`, and `native`: functions that
 * take the place of the mock's, or add to them.
 */
export async function newUser(given = {}) {
    const context = vm.createContext({}, { microtaskMode: "afterEvaluate" });
    const modules = new Map();
    const world = {
        context,
        calls: [],
        clock: 0,
        events: [],
        figures: {},
        files: given.files ?? {},
        env: given.env ?? {},
        options: given.options ?? {},
        user: given.user ?? { id: 1, iteration: 0, scenario: "default", slot: 0, worker: 0 },
        execution: given.execution,
        random: given.random ?? Math.random,
        overrides: given.native ?? {},
        /** The prototype of Responses. */
        prototype: vm.runInContext("({})", context),
        /** An ArrayBuffer of the user's realm. */
        buffer: (bytes) => {
            const buffer = vm.runInContext(`new ArrayBuffer(${bytes.length})`, context);
            new Uint8Array(buffer).set(bytes);
            return buffer;
        },
        /** A value of the user's realm, from its JSON. */
        parse: (text) => vm.runInContext("JSON.parse", context)(text),
        /** The next event, after at most so many milliseconds. */
        nextEvent(most) {
            world.events.sort((left, right) => (left.due ?? 0) - (right.due ?? 0));
            const due = Math.max(world.clock, world.events[0]?.due ?? (world.events.length ? 0 : Infinity));
            if (most >= 0 && due > world.clock + most) return void (world.clock += most);
            if (due === Infinity) throw new Error("the user waits for an event that never comes");
            world.clock = due;
            return world.events.shift();
        },
        /** What `require` finds: a file of the script's, or a module that was imported before. */
        required(name) {
            const wanted = name.replace(/^\.\//, "");
            if (wanted in world.files) {
                const source = `(function (exports, require, module) {${world.files[wanted]}\n})`;
                return { id: wanted, wrapper: vm.runInContext(source, context, { filename: wanted }) };
            }
            const module = modules.get(name);
            if (module?.status === "linked") start(module);
            if (!module) throw new Error(`cannot find ${name}`);
            return { id: name, namespace: module.namespace };
        },
    };

    /** Evaluates a module that is linked. Returns its exports. */
    const start = (module) => {
        module.evaluate().catch(() => {});
        vm.runInContext("0", context);
        if (module.status === "errored") throw module.error;
        return module.namespace;
    };
    const read = (name) => {
        const file = fileOf(name);
        const text = name in world.files ? world.files[name] : existsSync(file) ? readFileSync(file, "utf8") : undefined;
        if (text === undefined) throw new Error(`there is no module ${name}`);
        return new vm.SourceTextModule(text, { context, identifier: name in world.files ? name : file });
    };
    const native = mock(world);
    const names = [...new Set([...NATIVE, ...Object.keys(native)])];
    for (const of of ["brunt:native", "brunt:natives"]) {
        modules.set(of, new vm.SyntheticModule(names, function () {
            for (const name of names) this.setExport(name, native[name]);
        }, { context }));
    }
    const linked = (name) => {
        const wanted = name.replace(/^\.\//, "");
        if (!modules.has(wanted)) modules.set(wanted, read(wanted));
        return modules.get(wanted);
    };
    /** Evaluates a module and all that it imports. Returns its exports. */
    const evaluate = async (module) => {
        if (module.status === "unlinked") await module.link(linked);
        return start(module);
    };
    for (const name of LATER) {
        const module = linked(name);
        if (module.status === "unlinked") await module.link(linked);
    }
    /** The exports of a module of the library. */
    world.import = (name) => evaluate(linked(name));
    /** The exports of a script's text. */
    world.script = async (text) => {
        await world.import("brunt:prelude");
        // A module that began in the midst of a script would let the script's promises go on, which QuickJS does not do.
        for (const name of LATER) if (modules.get(name).status === "linked") start(modules.get(name));
        return evaluate(new vm.SourceTextModule(text, { context, identifier: "script.js" }));
    };
    /** Runs one iteration of a script's default function, from its text. Returns its exports. */
    world.iterate = async (text, ...values) => {
        const script = await world.script(text);
        const { configureTags } = await world.import("brunt:user");
        configureTags(world.options);
        const { iterate } = await world.import("brunt:loop");
        iterate(script.default, ...values);
        return script;
    };
    /** Calls by their name. */
    world.called = (name) => world.calls.filter((call) => call[0] === name).map((call) => call.slice(1));
    /** Lines that the script printed. */
    world.printed = () => world.called("print").map(([, text]) => text);
    /** The values of figures, by their names. */
    world.values = () => Object.fromEntries(Object.values(world.figures).map(({ name, values }) => [name, values]));
    return world;
}
