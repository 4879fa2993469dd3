// One element of a page, with the functions that k6 gives it after the DOM (dom.spec.whatwg.org).
import { ROOT } from "brunt:html-document";
import { KINDS, Node, Nodes } from "brunt:html-kinds";

/** The DOM's numbers of node types. */
const NODE_TYPES = { "#text": 3, "#comment": 8, "#document": 9 };
const KEY = Symbol("element");

/** The DOM's number of a node's type. */
function nodeType(page, node) {
    return NODE_TYPES[page.node(node).name] ?? 1;
}

/** The value of an attribute; empty where the node lacks it. */
function attribute(name) {
    return (page, node) => page.attribute(node, name) ?? "";
}

/** The names in the attribute `class`. */
function classList(page, node) {
    return (page.attribute(node, "class") ?? "").split(/\s+/).filter((name) => name !== "");
}

/** The sibling at a distance, texts and comments included. */
function sibling(distance) {
    return (page, node) => {
        const { parent } = page.node(node);
        const { nodes } = parent === undefined ? { nodes: [] } : page.node(parent);
        return new Node(nodes[nodes.indexOf(node) + distance]);
    };
}

/** A node's relative by a name that the page knows. */
function relative(name) {
    return (page, node) => new Node(page.node(node)[name]);
}

/** The first or last of a node's children. */
function childAt(list, index) {
    return (page, node) => new Node(page.node(node)[list].at(index));
}

/** Whether a node stands below another. */
function contains(page, node, other) {
    return other instanceof Element && page.follow(nodeOf(other), (at) => page.node(at).parent).includes(node);
}

/** Elements below a node that have all of these classes. */
function byClass(page, node, names) {
    const wanted = String(names).split(/\s+/).filter((name) => name !== "");
    return new Nodes(page.select(node, "*").filter((inner) => wanted.every((name) => classList(page, inner).includes(name))));
}

/** Functions that every element has: `(page, node, …arguments)` to a value, a Node or Nodes. */
const FACTS = {
    nodeName: (page, node) => page.node(node).name,
    nodeType,
    nodeValue: (page, node) => (nodeType(page, node) === 3 || nodeType(page, node) === 8 ? page.text(node) : ""),
    id: attribute("id"),
    lang: attribute("lang"),
    className: attribute("class"),
    classList,
    innerHTML: (page, node) => page.inner(node),
    textContent: (page, node) => page.text(node),
    toString: (page, node) => page.outer(node),
    ownerDocument: () => new Node(ROOT),
    hasAttribute: (page, node, name) => page.attribute(node, name) !== undefined,
    getAttribute: (page, node, name) => page.attribute(node, name),
    hasAttributes: (page, node) => Object.keys(page.node(node).attributes).length > 0,
    hasChildNodes: (page, node) => page.node(node).nodes.length > 0,
    childNodes: (page, node) => new Nodes(page.node(node).nodes),
    children: (page, node) => new Nodes(page.node(node).children),
    childElementCount: (page, node) => page.node(node).children.length,
    firstChild: childAt("nodes", 0),
    lastChild: childAt("nodes", -1),
    firstElementChild: childAt("children", 0),
    lastElementChild: childAt("children", -1),
    previousSibling: sibling(-1),
    nextSibling: sibling(1),
    previousElementSibling: relative("previous"),
    nextElementSibling: relative("next"),
    parentElement: (page, node) => new Node(page.parentElement(node)),
    parentNode: relative("parent"),
    contains,
    matches: (page, node, selector) => page.matches(node, selector),
    querySelector: (page, node, selector) => new Node(page.select(node, selector)[0]),
    querySelectorAll: (page, node, selector) => new Nodes(page.select(node, selector)),
    getElementsByClassName: byClass,
    getElementsByTagName: (page, node, name) => new Nodes(page.select(node, String(name))),
    isEqualNode: (page, node, other) => other instanceof Element && page.outer(node) === other.toString(),
    isSameNode: (page, node, other) => other instanceof Element && other[KEY].page === page && nodeOf(other) === node,
    namespaceURI: () => "http://www.w3.org/1999/xhtml",
    isDefaultNamespace: () => true,
};

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

    /** The Selection that has this element alone. */
    selection() {
        return this[KEY].select([this[KEY].node]);
    }

    /** The element's attributes, by their names. */
    attributes() {
        const { page, node } = this[KEY];
        return Object.fromEntries(Object.entries(page.node(node).attributes).map(([name, value]) => [name, new Attribute(this, name, value)]));
    }

    /** One of the element's attributes. */
    getAttributeNode(name) {
        return this.attributes()[name];
    }
}

for (const [name, read] of Object.entries({ ...KINDS, ...FACTS })) {
    Element.prototype[name] = function (...values) {
        const { page, node, select } = this[KEY];
        const element = (inner) => (inner === undefined ? undefined : new Element(page, inner, select));
        const found = read(page, node, ...values);
        if (found instanceof Nodes) return found.list.map(element);
        return found instanceof Node ? element(found.node) : found;
    };
}

/** The node of an element. */
export function nodeOf(element) {
    return element[KEY].node;
}
