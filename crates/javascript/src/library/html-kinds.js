// What elements of some kinds have beside others: parts of a link's address, the controls of a form, the rows of a table.
import { URL } from "https://jslib.k6.io/url/1.0.0/index.js";
import { valueOf } from "brunt:html-forms";

/** A node, or none, which becomes an Element. */
export class Node {
    constructor(node) {
        this.node = node;
    }
}

/** Nodes, which become Elements. */
export class Nodes {
    constructor(list) {
        this.list = list;
    }
}

const CONTROLS = "button, fieldset, input, output, select, textarea";
const LABELLED = "button, input, meter, output, progress, select, textarea";
const ROWS = "tr";

/** The nearest element above one that has a name. */
function above(page, node, name) {
    return page.follow(node, (at) => page.parentElement(at)).find((at) => page.node(at).name === name);
}

/** The element of the page with an id. */
function byId(page, id) {
    return page.select(0, "[id]").find((node) => page.attribute(node, "id") === id);
}

/** Nodes below one that match, or those that belong to it by an attribute. */
function below(selector) {
    return (page, node) => new Nodes(page.select(node, selector));
}

/** The first node below one that matches. */
function firstBelow(selector) {
    return (page, node) => new Node(page.select(node, selector)[0]);
}

/** Parts of an address that one without a host has, too. */
const RELATIVE_PARTS = ["hash", "pathname", "search"];

/** A part of a link's address; empty where the link has none. */
function addressPart(part) {
    return (page, node) => {
        const address = page.attribute(node, "href") ?? "";
        if (URL.canParse(address)) return new URL(address)[part];
        return RELATIVE_PARTS.includes(part) && URL.canParse(address, "http://page") ? new URL(address, "http://page")[part] : "";
    };
}

/** The value of an attribute. */
function attribute(name, otherwise = "") {
    return (page, node) => page.attribute(node, name) ?? otherwise;
}

/** Whether the element has an attribute. */
function isSet(name) {
    return (page, node) => page.attribute(node, name) !== undefined;
}

/** The value of an attribute as a number. */
function number(name, otherwise) {
    return (page, node) => Number(page.attribute(node, name) ?? otherwise);
}

/** The form that a control belongs to: by its attribute `form`, or around it. */
function formOf(page, node) {
    const id = page.attribute(node, "form");
    return new Node(id === undefined ? above(page, node, "form") : byId(page, id));
}

/** The place of a node among its siblings of the same name; -1 where it has none. */
function placeAmong(page, node, list) {
    return list === undefined ? -1 : list.indexOf(node);
}

/** Labels of a control: those that name it, and the one around it. */
function labelsOf(page, node) {
    const id = page.attribute(node, "id");
    const around = above(page, node, "label");
    return new Nodes(page.select(0, "label").filter((label) => label === around || (id !== undefined && page.attribute(label, "for") === id)));
}

/** The control of a label: the one that it names, or the first inside. */
function controlOf(page, node) {
    const id = page.attribute(node, "for");
    return new Node(id === undefined ? page.select(node, LABELLED)[0] : byId(page, id));
}

/** Options that are chosen: of a list that takes one, the last, or the first of all. */
function selectedOptions(page, node) {
    const options = page.select(node, "option");
    const chosen = options.filter((option) => page.attribute(option, "selected") !== undefined);
    const isMultiple = page.attribute(node, "multiple") !== undefined;
    return chosen.length > 0 ? (isMultiple ? chosen : chosen.slice(-1)) : isMultiple ? [] : options.slice(0, 1);
}

/** How far a `progress` is, from 0 to 1; -1 where it does not say. */
function position(page, node) {
    const value = page.attribute(node, "value");
    return value === undefined ? -1 : Number(value) / Number(page.attribute(node, "max") ?? 1);
}

/** Images that use a map. */
function imagesOf(page, node) {
    const map = `#${page.attribute(node, "name")}`;
    return new Nodes(page.select(0, "img").filter((image) => page.attribute(image, "usemap") === map));
}

/** Functions of Elements: `(page, node)` to a value, a Node or Nodes. */
export const KINDS = {
    hash: addressPart("hash"),
    host: addressPart("host"),
    hostname: addressPart("hostname"),
    port: addressPart("port"),
    username: addressPart("username"),
    password: addressPart("password"),
    origin: addressPart("origin"),
    pathname: addressPart("pathname"),
    protocol: addressPart("protocol"),
    search: addressPart("search"),
    href: attribute("href"),
    relList: (page, node) => (page.attribute(node, "rel") ?? "").split(/\s+/).filter((name) => name !== ""),
    text: (page, node) => page.text(node),
    form: formOf,
    formAction: attribute("formaction"),
    formEnctype: attribute("formenctype"),
    formMethod: attribute("formmethod"),
    formNoValidate: isSet("formnovalidate"),
    formTarget: attribute("formtarget"),
    labels: labelsOf,
    control: controlOf,
    name: attribute("name"),
    type: attribute("type"),
    title: attribute("title"),
    src: attribute("src"),
    action: attribute("action"),
    method: (page, node) => (page.attribute(node, "method") ?? "get").toLowerCase(),
    value: valueOf,
    width: number("width", 300),
    height: number("height", 150),
    max: number("max", 1),
    position,
    disabled: isSet("disabled"),
    checked: isSet("checked"),
    selected: isSet("selected"),
    elements: below(CONTROLS),
    length: (page, node) => page.select(node, page.node(node).name === "form" ? CONTROLS : "option").length,
    options: below("option"),
    selectedOptions: (page, node) => new Nodes(selectedOptions(page, node)),
    selectedIndex: (page, node) => placeAmong(page, selectedOptions(page, node)[0], page.select(node, "option")),
    index: (page, node) => placeAmong(page, node, page.select(above(page, node, "select") ?? 0, "option")),
    label: (page, node) => page.attribute(node, "label") ?? page.text(node),
    areas: below("area"),
    images: imagesOf,
    caption: firstBelow("caption"),
    thead: firstBelow("thead"),
    tbody: firstBelow("tbody"),
    tfoot: firstBelow("tfoot"),
    rows: below(ROWS),
    cells: below("td, th"),
    colSpan: number("colspan", 1),
    rowSpan: number("rowspan", 1),
    headers: attribute("headers"),
    cellIndex: (page, node) => placeAmong(page, node, page.select(page.parentElement(node) ?? 0, "td, th")),
    rowIndex: (page, node) => placeAmong(page, node, page.select(above(page, node, "table") ?? 0, ROWS)),
    sectionRowIndex: (page, node) => placeAmong(page, node, page.select(page.parentElement(node) ?? 0, ROWS)),
};
KINDS.relist = KINDS.relList;
