// The globals that a script of k6 finds.
import * as native from "brunt:native";
import { user } from "brunt:user";
import { need } from "brunt:needed";

/** A function of `console`. */
function printer(level) {
    return (...values) => native.print(level, need("brunt:shown").allShown(values));
}

/** Reads a file beside the script, as text or with the mode `b` as bytes. */
function open(path, mode) {
    if (user.running) throw new Error("open() is for the init context: read the file outside of the script's functions");
    if (path === undefined || path === "") throw new Error("open() wants the path of a file");
    return native.readFile(String(path), mode === "b");
}

/** Defines a global that a script may replace, and `Object.keys(globalThis)` does not name. */
function define(name, value) {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
}

/** Defines a global whose module is loaded only by a script that uses it: each user has a copy of its code. */
function defineLater(name, module) {
    Object.defineProperty(globalThis, name, {
        get() {
            const value = need(module)[name];
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
Object.defineProperty(globalThis, "__ITER", {
    get: () => (user.running ? user.iteration : undefined),
    set: (value) => define("__ITER", value),
    configurable: true,
    enumerable: false,
});
define("open", open);
define("require", (name) => need("brunt:required").requireFrom("")(name));
defineLater("crypto", "brunt:webcrypto");
defineLater("TextEncoder", "brunt:text-encoding");
defineLater("TextDecoder", "brunt:text-encoding");
for (const name of ["setTimeout", "setInterval", "clearTimeout", "clearInterval"]) defineLater(name, "k6/timers");
Math.random = native.random;
Object.defineProperty(String.prototype, "localeCompare", {
    value(that) {
        return need("brunt:collation").localeCompare(this, that);
    },
    writable: true,
    configurable: true,
    enumerable: false,
});
