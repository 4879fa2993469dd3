// Modules that few scripts need: each user has a copy of a module's code, so they are loaded by those alone that use them.
import { requireModule } from "brunt:native";

const needed = {};

/** A module of the library, loaded with its first use. */
export function need(name) {
    return (needed[name] ??= requireModule(name, "brunt:needed").namespace);
}
