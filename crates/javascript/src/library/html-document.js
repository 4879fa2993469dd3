// A parsed page: its nodes as native knows them, each asked for once.
import * as native from "brunt:natives";

/** The node that stands for the page itself. */
export const ROOT = 0;

/** A parsed page. Nodes are numbers; elements, texts and comments have one each. */
export class Page {
    #handle;
    #nodes = new Map();
    #matches = new Map();

    constructor(text) {
        this.#handle = native.html(text);
    }

    /**
     * What a node is and where: `{ name, attributes, parent, children, nodes, next, previous }`. The name is `#text`,
     * `#comment` or `#document` where the node is no element.
     */
    node(node) {
        let known = this.#nodes.get(node);
        if (known === undefined) this.#nodes.set(node, (known = native.htmlNode(this.#handle, node)));
        return known;
    }

    /** Whether a node is an element. */
    isElement(node) {
        return !this.node(node).name.startsWith("#");
    }

    /** The value of an attribute, if the node has it. */
    attribute(node, name) {
        const { attributes } = this.node(node);
        return Object.hasOwn(attributes, name) ? attributes[name] : undefined;
    }

    /** The text of a node with all below it. */
    text(node) {
        return native.htmlText(this.#handle, node);
    }

    /** The markup inside a node. */
    inner(node) {
        return native.htmlInner(this.#handle, node);
    }

    /** The markup of a node itself. */
    outer(node) {
        return native.htmlOuter(this.#handle, node);
    }

    /** Elements below a node that match a CSS selector, in the order of the page. */
    select(node, selector) {
        return native.htmlSelect(this.#handle, node, selector);
    }

    /** Whether an element matches a CSS selector. */
    matches(node, selector) {
        let known = this.#matches.get(selector);
        if (known === undefined) this.#matches.set(selector, (known = new Set(this.select(ROOT, selector))));
        return known.has(node);
    }

    /** The parent of a node that is an element. */
    parentElement(node) {
        const { parent } = this.node(node);
        return parent === undefined || !this.isElement(parent) ? undefined : parent;
    }

    /** Nodes by following one direction of a node, nearest first. */
    follow(node, step) {
        const found = [];
        for (let at = step(node); at !== undefined; at = step(at)) found.push(at);
        return found;
    }
}
