// `k6/html`: a page as a set of nodes, with jQuery's functions for reading.
import { Page, ROOT } from "brunt:html-document";
import { Element, nodeOf } from "brunt:html-element";
import { encoded, fields, valueOf } from "brunt:html-forms";

const STATE = Symbol("selection");

/** Nodes without repetition. */
function unique(nodes) {
    return [...new Set(nodes)];
}

/** A value of a `data-` attribute, as jQuery reads it: JSON where it is some, else the text. */
function dataValue(text) {
    if (text === "true" || text === "false" || text === "null" || /^[[{]/.test(text)) {
        try {
            return JSON.parse(text);
        } catch {
            return text;
        }
    }
    return text !== "" && String(Number(text)) === text ? Number(text) : text;
}

/** A name with hyphens in camel case. */
function camelCase(name) {
    return name.replace(/-([a-z])/g, (_, letter) => letter.toUpperCase());
}

/** A set of nodes of one page. Its functions are those of jQuery with the same names (api.jquery.com), for reading. */
export class Selection {
    constructor(page, nodes) {
        Object.defineProperty(this, STATE, { value: { page, nodes } });
    }

    /** A Selection of other nodes of the page. */
    #with(nodes) {
        return new Selection(this[STATE].page, unique(nodes));
    }

    /** Nodes that each node leads to, of which a selector may take some. */
    #walk(step, selector) {
        const { nodes } = this[STATE];
        return this.#with(nodes.flatMap(step).filter((node) => node !== undefined)).#only(selector);
    }

    /** The nodes that match a selector, or all where there is none. */
    #only(selector) {
        return selector === undefined || selector === null ? this : this.filter(selector);
    }

    /** A test of nodes: by CSS, a function of index and Selection, a Selection or an Element. */
    #test(selector) {
        const { page } = this[STATE];
        if (typeof selector === "function") return (node, index) => Boolean(selector(index, this.#with([node])));
        if (selector instanceof Selection) return (node) => selector[STATE].nodes.includes(node);
        if (selector instanceof Element) return (node) => nodeOf(selector) === node;
        return (node) => page.matches(node, String(selector));
    }

    find(selector) {
        const { page, nodes } = this[STATE];
        return this.#with(nodes.flatMap((node) => page.select(node, String(selector))));
    }

    single(selector) {
        return this.find(selector).first();
    }

    filter(selector) {
        const test = this.#test(selector);
        return this.#with(this[STATE].nodes.filter((node, index) => test(node, index)));
    }

    not(selector) {
        const test = this.#test(selector);
        return this.#with(this[STATE].nodes.filter((node, index) => !test(node, index)));
    }

    is(selector) {
        const test = this.#test(selector);
        return this[STATE].nodes.some((node, index) => test(node, index));
    }

    has(selector) {
        const { page, nodes } = this[STATE];
        return this.#with(nodes.filter((node) => page.select(node, String(selector)).length > 0));
    }

    first() {
        return this.eq(0);
    }

    last() {
        return this.eq(-1);
    }

    eq(index) {
        const node = this[STATE].nodes.at(index);
        return this.#with(node === undefined ? [] : [node]);
    }

    slice(start, end) {
        return this.#with(this[STATE].nodes.slice(start, end));
    }

    /** The Element at an index; without one, all Elements. */
    get(index) {
        const { nodes } = this[STATE];
        if (index === undefined) return nodes.map((node) => this.#element(node));
        const node = nodes.at(index);
        return node === undefined ? undefined : this.#element(node);
    }

    /** The Element of a node. */
    #element(node) {
        return new Element(this[STATE].page, node, (nodes) => this.#with(nodes));
    }

    /** A Selection for each node. */
    toArray() {
        return this[STATE].nodes.map((node) => this.#with([node]));
    }

    /** Calls a function with the index and the Element of each node, until it returns false. */
    each(visit) {
        const { nodes } = this[STATE];
        for (let index = 0; index < nodes.length; index += 1) {
            if (visit(index, this.#element(nodes[index])) === false) break;
        }
        return this;
    }

    /** What a function returns of the index and the Selection of each node. */
    map(visit) {
        return this.toArray().map((selection, index) => visit(index, selection));
    }

    size() {
        return this[STATE].nodes.length;
    }

    attr(name, otherwise) {
        const { page, nodes } = this[STATE];
        return nodes.length > 0 ? page.attribute(nodes[0], String(name).toLowerCase()) ?? otherwise : otherwise;
    }

    text() {
        const { page, nodes } = this[STATE];
        return nodes.map((node) => page.text(node)).join("");
    }

    html(otherwise) {
        const { page, nodes } = this[STATE];
        return nodes.length > 0 ? page.inner(nodes[0]) : otherwise;
    }

    val(otherwise) {
        const { page, nodes } = this[STATE];
        return nodes.length > 0 ? valueOf(page, nodes[0]) ?? otherwise : otherwise;
    }

    /** The value of a `data-` attribute of the first node, by its name with hyphens or in camel case; without a name, all. */
    data(name) {
        const { page, nodes } = this[STATE];
        const all = {};
        const attributes = nodes.length > 0 ? page.node(nodes[0]).attributes : {};
        for (const [key, value] of Object.entries(attributes)) {
            if (key.startsWith("data-")) all[camelCase(key.slice(5))] = dataValue(value);
        }
        return name === undefined ? all : all[camelCase(String(name))];
    }

    children(selector) {
        return this.#walk((node) => this[STATE].page.node(node).children, selector);
    }

    contents() {
        return this.#walk((node) => this[STATE].page.node(node).nodes);
    }

    parent(selector) {
        return this.#walk((node) => this[STATE].page.parentElement(node), selector);
    }

    closest(selector) {
        const { page } = this[STATE];
        const test = this.#test(selector);
        return this.#walk((node) => [node, ...page.follow(node, (at) => page.parentElement(at))].find((at) => test(at)));
    }

    next(selector) {
        return this.#walk((node) => this[STATE].page.node(node).next, selector);
    }

    prev(selector) {
        return this.#walk((node) => this[STATE].page.node(node).previous, selector);
    }

    /** Nodes in one direction, up to a limit that a selector sets. */
    #until(step, limit, selector) {
        const { page } = this[STATE];
        const ends = limit === undefined || limit === null ? () => false : this.#test(limit);
        return this.#walk((node) => {
            const found = page.follow(node, step);
            const end = found.findIndex((at) => ends(at));
            return end < 0 ? found : found.slice(0, end);
        }, selector);
    }

    nextAll(selector) {
        return this.nextUntil(undefined, selector);
    }

    prevAll(selector) {
        return this.prevUntil(undefined, selector);
    }

    parents(selector) {
        return this.parentsUntil(undefined, selector);
    }

    nextUntil(limit, selector) {
        return this.#until((at) => this[STATE].page.node(at).next, limit, selector);
    }

    prevUntil(limit, selector) {
        return this.#until((at) => this[STATE].page.node(at).previous, limit, selector);
    }

    parentsUntil(limit, selector) {
        return this.#until((at) => this[STATE].page.parentElement(at), limit, selector);
    }

    /** Names and values of the form's controls. */
    serializeArray() {
        return fields(this[STATE].page, this[STATE].nodes);
    }

    /** Values of the form's controls by their names. */
    serializeObject() {
        return Object.fromEntries(this.serializeArray().map(({ name, value }) => [name, value]));
    }

    /** The form's controls as a query. */
    serialize() {
        return this.serializeArray().map(({ name, value }) => `${encoded(name)}=${encoded(value)}`).join("&");
    }
}

/** A page from its text. */
export function parseHTML(text) {
    return new Selection(new Page(String(text)), [ROOT]);
}

export default { parseHTML, Selection, Element };
