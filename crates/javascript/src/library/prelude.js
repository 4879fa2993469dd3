// The globals that a script of k6 finds.
import * as native from "brunt:native";
import { user } from "brunt:user";
import * as timers from "k6/timers";
import { shown } from "brunt:shown";
import "brunt:language";

/** A function of `console`. */
function printer(level) {
    return (...values) => native.print(level, values.map(shown).join(" "));
}

/** Reads a file beside the script, as text or with the mode `b` as bytes. */
function open(path, mode) {
    if (user.running) throw new Error("open() is for the init context: read the file outside of the script's functions");
    if (path === undefined || path === "") throw new Error("open() wants the path of a file");
    return native.readFile(String(path), mode === "b");
}

/** Values of `require`d modules, by the name that they resolve to. */
const modules = new Map();

/** The `require` of the module with this identity. */
function requireFrom(referrer) {
    return (name) => {
        if (user.running) throw new Error("require() is for the init context");
        const found = native.requireModule(String(name), referrer);
        if (!modules.has(found.id)) load(found);
        return modules.get(found.id).exports;
    };
}

/** Runs a module that is `require`d for the first time. */
function load({ id, namespace, wrapper }) {
    const module = { id, exports: {} };
    modules.set(id, module);
    if (namespace) {
        module.exports = Object.defineProperty({ ...namespace }, "__esModule", { value: true });
        return;
    }
    try {
        wrapper.call(module.exports, module.exports, requireFrom(id), module);
    } catch (error) {
        modules.delete(id);
        throw error;
    }
}

/** The exports of a CommonJS file that is imported, or is the script itself. */
export function commonJs(found) {
    if (!modules.has(found.id)) load(found);
    return modules.get(found.id).exports;
}

/** Defines a global that a script may replace, and `Object.keys(globalThis)` does not name. */
function define(name, value) {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
}

/** The exports of a module of ours. A function of its own: the engine resolves a name for the caller of who asks. */
function loaded(module) {
    return native.requireModule(module, "brunt:prelude").namespace;
}

/** Defines a global whose module is loaded only by a script that uses it: each user has a copy of its code. */
function defineLater(name, module) {
    Object.defineProperty(globalThis, name, {
        get() {
            const value = loaded(module)[name];
            define(name, value);
            return value;
        },
        set: (value) => define(name, value),
        configurable: true,
        enumerable: false,
    });
}

define("console", {
    log: printer("info"),
    info: printer("info"),
    warn: printer("warn"),
    error: printer("error"),
    debug: printer("debug"),
});
define("global", globalThis);
define("__ENV", { ...native.env() });
define("__VU", native.user()?.id ?? 0);
define("__ITER", undefined);
define("open", open);
define("require", requireFrom(""));
defineLater("crypto", "brunt:webcrypto");
defineLater("TextEncoder", "brunt:text-encoding");
defineLater("TextDecoder", "brunt:text-encoding");
for (const name of ["setTimeout", "setInterval", "clearTimeout", "clearInterval"]) define(name, timers[name]);
Math.random = native.random;
