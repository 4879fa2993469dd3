// A small parser of tidy pages, in place of native's: elements with their end tags, void elements, texts and comments;
// selectors of tags, #id, .class, [attribute], [attribute=value], descendants, children and commas.

const VOID = new Set(["br", "hr", "img", "input", "link", "meta"]);
const escape = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

/** Parses a page. Returns its nodes; the first is the document. */
function parse(text) {
    const nodes = [{ name: "#document", attributes: {}, nodes: [] }];
    let open = 0;
    const add = (node) => {
        nodes.push({ attributes: {}, nodes: [], parent: open, ...node });
        nodes[open].nodes.push(nodes.length - 1);
        return nodes.length - 1;
    };
    for (const [whole, comment, end, name, rest, selfClosing] of text.matchAll(/<!--([^]*?)-->|<\/([\w-]+)>|<([\w-]+)((?:\s+[\w-]+(?:="[^"]*")?)*)\s*(\/?)>|[^<]+/g)) {
        if (comment !== undefined) add({ name: "#comment", text: comment });
        else if (end) while (open !== 0 && nodes[open].name !== end) open = nodes[open].parent;
        else if (!name) add({ name: "#text", text: whole });
        if (end) open = nodes[open].parent ?? 0;
        if (!name) continue;
        const attributes = Object.fromEntries([...rest.matchAll(/([\w-]+)(?:="([^"]*)")?/g)].map(([, key, value]) => [key, value ?? ""]));
        const node = add({ name, attributes });
        if (!VOID.has(name) && !selfClosing) open = node;
    }
    return nodes;
}

/** Whether a node matches one compound such as `li.a[b=c]`. */
function matchesCompound(node, compound) {
    if (node.name.startsWith("#")) return false;
    return compound.match(/\[[^\]]*\]|[#.]?[\w-]+|\*/g).every((part) => {
        if (part === "*") return true;
        if (part[0] === "#") return node.attributes.id === part.slice(1);
        if (part[0] === ".") return (node.attributes.class ?? "").split(/\s+/).includes(part.slice(1));
        if (part[0] !== "[") return node.name === part;
        const [key, value] = part.slice(1, -1).split("=");
        return key in node.attributes && (value === undefined || node.attributes[key] === value.replace(/"/g, ""));
    });
}

function matches(nodes, at, parts) {
    if (!matchesCompound(nodes[at], parts.at(-1))) return false;
    const rest = parts.slice(0, -1);
    if (rest.length === 0) return true;
    const child = rest.at(-1) === ">";
    for (let above = nodes[at].parent; above !== undefined; above = nodes[above].parent) {
        if (matches(nodes, above, child ? rest.slice(0, -1) : rest)) return true;
        if (child) return false;
    }
    return false;
}

const isElement = (node) => !node.name.startsWith("#");
const below = (nodes, at) => nodes[at].nodes.flatMap((node) => [node, ...below(nodes, node)]);
const textOf = (nodes, at) => nodes[at].text ?? nodes[at].nodes.filter((node) => nodes[node].name !== "#comment").map((node) => textOf(nodes, node)).join("");
const inner = (nodes, at) => nodes[at].nodes.map((node) => outer(nodes, node)).join("");
function outer(nodes, at) {
    const node = nodes[at];
    if (node.name === "#text") return escape(node.text);
    if (node.name === "#comment") return `<!--${node.text}-->`;
    if (node.name === "#document") return inner(nodes, at);
    const attributes = Object.entries(node.attributes).map(([key, value]) => ` ${key}="${value}"`).join("");
    return `<${node.name}${attributes}>${VOID.has(node.name) ? "" : `${inner(nodes, at)}</${node.name}>`}`;
}

/** The functions of `brunt:native` for pages. */
export const pages = {
    html: parse,
    htmlSelect: (nodes, at, css) => {
        const selectors = css.split(",").map((one) => one.trim().replace(/\s*>\s*/g, " > ").split(/\s+/));
        return below(nodes, at).filter((node) => selectors.some((parts) => matches(nodes, node, parts))).sort((left, right) => left - right);
    },
    htmlNode: (nodes, at) => {
        const { name, attributes, parent, nodes: inside } = nodes[at];
        const siblings = parent === undefined ? [] : nodes[parent].nodes.filter((node) => isElement(nodes[node]));
        const place = siblings.indexOf(at);
        const children = inside.filter((node) => isElement(nodes[node]));
        return { name, attributes, parent, children, nodes: inside, next: place < 0 ? undefined : siblings[place + 1], previous: siblings[place - 1] };
    },
    htmlText: textOf,
    htmlInner: inner,
    htmlOuter: outer,
};
