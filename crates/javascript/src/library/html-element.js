// One element of a page, with the functions that k6 gives it after the DOM.
import { ROOT } from "brunt:html-document";
import { KINDS, Node, Nodes } from "brunt:html-kinds";

/** The DOM's numbers of node types. */
const NODE_TYPES = { "#text": 3, "#comment": 8, "#document": 9 };
const KEY = Symbol("element");

/** An attribute of an element. */
class Attribute {
    constructor(owner, name, value) {
        this.nodeName = name;
        this.name = name;
        this.nodeValue = value;
        this.value = value;
        Object.defineProperty(this, "ownerElement", { value: owner });
    }
}

/** An element, a text or a comment of a page. `select(nodes)` makes a Selection of nodes. */
export class Element {
    constructor(page, node, select) {
        Object.defineProperty(this, KEY, { value: { page, node, select } });
    }

    #at(node) {
        const { page, select } = this[KEY];
        return node === undefined || node === null ? undefined : new Element(page, node, select);
    }

    #facts() {
        return this[KEY].page.node(this[KEY].node);
    }

    #attribute(name) {
        return this[KEY].page.attribute(this[KEY].node, name);
    }

    /** The Selection that has this element alone. */
    selection() {
        return this[KEY].select([this[KEY].node]);
    }

    nodeName() {
        return this.#facts().name;
    }

    nodeType() {
        return NODE_TYPES[this.#facts().name] ?? 1;
    }

    nodeValue() {
        return this.nodeType() === 3 || this.nodeType() === 8 ? this.textContent() : "";
    }

    id() {
        return this.#attribute("id") ?? "";
    }

    lang() {
        return this.#attribute("lang") ?? "";
    }

    className() {
        return this.#attribute("class") ?? "";
    }

    classList() {
        return this.className().split(/\s+/).filter((name) => name !== "");
    }

    innerHTML() {
        return this[KEY].page.inner(this[KEY].node);
    }

    textContent() {
        return this[KEY].page.text(this[KEY].node);
    }

    toString() {
        return this[KEY].page.outer(this[KEY].node);
    }

    ownerDocument() {
        return this.#at(ROOT);
    }

    attributes() {
        const owned = {};
        for (const [name, value] of Object.entries(this.#facts().attributes)) owned[name] = new Attribute(this, name, value);
        return owned;
    }

    hasAttribute(name) {
        return this.#attribute(name) !== undefined;
    }

    getAttribute(name) {
        return this.#attribute(name);
    }

    getAttributeNode(name) {
        return this.attributes()[name];
    }

    hasAttributes() {
        return Object.keys(this.#facts().attributes).length > 0;
    }

    hasChildNodes() {
        return this.#facts().nodes.length > 0;
    }

    childNodes() {
        return this.#facts().nodes.map((node) => this.#at(node));
    }

    children() {
        return this.#facts().children.map((node) => this.#at(node));
    }

    childElementCount() {
        return this.#facts().children.length;
    }

    firstChild() {
        return this.#at(this.#facts().nodes[0]);
    }

    lastChild() {
        return this.#at(this.#facts().nodes.at(-1));
    }

    firstElementChild() {
        return this.#at(this.#facts().children[0]);
    }

    lastElementChild() {
        return this.#at(this.#facts().children.at(-1));
    }

    #sibling(distance) {
        const { parent } = this.#facts();
        if (parent === undefined) return undefined;
        const { nodes } = this[KEY].page.node(parent);
        return this.#at(nodes[nodes.indexOf(this[KEY].node) + distance]);
    }

    previousSibling() {
        return this.#sibling(-1);
    }

    nextSibling() {
        return this.#sibling(1);
    }

    previousElementSibling() {
        return this.#at(this.#facts().previous);
    }

    nextElementSibling() {
        return this.#at(this.#facts().next);
    }

    parentElement() {
        return this.#at(this[KEY].page.parentElement(this[KEY].node));
    }

    parentNode() {
        return this.#at(this.#facts().parent);
    }

    contains(other) {
        const { page, node } = this[KEY];
        const inner = other?.[KEY]?.node;
        return inner !== undefined && page.follow(inner, (at) => page.node(at).parent).includes(node);
    }

    matches(selector) {
        return this[KEY].page.matches(this[KEY].node, selector);
    }

    querySelector(selector) {
        return this.querySelectorAll(selector)[0];
    }

    querySelectorAll(selector) {
        return this[KEY].page.select(this[KEY].node, selector).map((node) => this.#at(node));
    }

    isEqualNode(other) {
        return other instanceof Element && this.toString() === other.toString();
    }

    isSameNode(other) {
        return other?.[KEY]?.page === this[KEY].page && other[KEY].node === this[KEY].node;
    }

    getElementsByClassName(names) {
        const wanted = String(names).split(/\s+/).filter((name) => name !== "");
        return this.querySelectorAll("*").filter((element) => wanted.every((name) => element.classList().includes(name)));
    }

    getElementsByTagName(name) {
        return this.querySelectorAll(String(name));
    }

    namespaceURI() {
        return "http://www.w3.org/1999/xhtml";
    }

    isDefaultNamespace() {
        return true;
    }
}

for (const [name, read] of Object.entries(KINDS)) {
    Element.prototype[name] = function () {
        const { page, node, select } = this[KEY];
        const found = read(page, node);
        if (found instanceof Nodes) return found.list.map((inner) => new Element(page, inner, select));
        return found instanceof Node ? found.node === undefined ? undefined : new Element(page, found.node, select) : found;
    };
}

/** The node of an element. */
export function nodeOf(element) {
    return element[KEY].node;
}
