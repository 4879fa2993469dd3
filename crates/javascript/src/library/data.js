// `k6/data`: arrays of which the process holds one, as a JSON text for each element.
import * as native from "brunt:natives";
import { user } from "brunt:user";

/** Makes a value from JSON read-only, with all that it holds. */
function frozen(value) {
    if (value !== null && typeof value === "object") {
        for (const key of Object.keys(value)) frozen(value[key]);
        Object.freeze(value);
    }
    return value;
}

/** The array index that a property's name is, if it is one below `length`. */
function indexOf(name, length) {
    if (typeof name !== "string") return undefined;
    const index = Number(name);
    return Number.isInteger(index) && index >= 0 && index < length && String(index) === name ? index : undefined;
}

/** Refuses to change a shared array. */
function refuseChange() {
    throw new TypeError("a SharedArray is read-only");
}

/** Traps of a shared array's proxy, over an empty array of its length, which makes `Array.isArray` and `length` true. */
class Elements {
    constructor(name, length) {
        this.name = name;
        this.length = length;
    }

    /** The element at an index, read anew. */
    element(index) {
        return frozen(JSON.parse(native.sharedItem(this.name, index)));
    }

    get(target, property, receiver) {
        const index = indexOf(property, this.length);
        return index === undefined ? Reflect.get(target, property, receiver) : this.element(index);
    }

    has(target, property) {
        return indexOf(property, this.length) !== undefined || Reflect.has(target, property);
    }

    ownKeys(target) {
        return [...Array.from({ length: this.length }, (_, index) => String(index)), ...Reflect.ownKeys(target)];
    }

    getOwnPropertyDescriptor(target, property) {
        const index = indexOf(property, this.length);
        if (index === undefined) return Reflect.getOwnPropertyDescriptor(target, property);
        return { value: this.element(index), writable: true, enumerable: true, configurable: true };
    }

    set() {
        return refuseChange();
    }

    defineProperty() {
        return refuseChange();
    }

    deleteProperty() {
        return refuseChange();
    }

    setPrototypeOf() {
        return refuseChange();
    }
}

/** The elements that a script's function makes, as texts. */
function made(name, make) {
    const array = make();
    if (!Array.isArray(array)) throw new TypeError(`the function of SharedArray '${name}' must return an array`);
    return Array.from(array, (element) => JSON.stringify(element) ?? "null");
}

/** An array that all users share. Its function runs once in the process; each access reads an element anew. */
export class SharedArray {
    constructor(name, make) {
        if (user.running) throw new Error("new SharedArray() is for the init context");
        if (typeof name !== "string" || name === "") throw new TypeError("new SharedArray() wants a name");
        if (typeof make !== "function") throw new TypeError("new SharedArray() wants a function that returns an array");
        if (native.sharedLength(name) === undefined) native.sharedMake(name, made(name, make));
        const length = native.sharedLength(name);
        return new Proxy(new Array(length), new Elements(name, length));
    }
}

export default { SharedArray };
