// Modules of CommonJS, and `require`.
import * as native from "brunt:native";
import { user } from "brunt:user";

/** Values of `require`d modules, by the name that they resolve to. */
const modules = new Map();

/** The `require` of the module with this identity. */
export function requireFrom(referrer) {
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
