// What a form of a page would send.

/** Types of `input` that are sent only when they are checked. */
const CHECKED = new Set(["checkbox", "radio"]);
/** Types of `input` and `button` that `serialize` leaves out. */
const UNSENT = new Set(["submit", "button", "image", "reset", "file"]);
const CONTROLS = "input, select, textarea";

/** The value of a control, as the page has set it; a list for `select multiple`. */
export function valueOf(page, node) {
    const { name } = page.node(node);
    const given = page.attribute(node, "value");
    if (name === "textarea") return page.text(node);
    if (name === "option") return given ?? page.text(node);
    if (name === "select") return selected(page, node);
    if (name === "input") return given ?? (CHECKED.has(typeOf(page, node)) ? "on" : "");
    return given ?? "";
}

/** The values of a select's chosen options. */
function selected(page, node) {
    const options = page.select(node, "option");
    const chosen = options.filter((option) => page.attribute(option, "selected") !== undefined);
    if (page.attribute(node, "multiple") !== undefined) return chosen.map((option) => valueOf(page, option));
    const one = chosen.at(-1) ?? options[0];
    return one === undefined ? undefined : valueOf(page, one);
}

/** The type of a control, in lower case. */
function typeOf(page, node) {
    return (page.attribute(node, "type") ?? "").toLowerCase();
}

/** Whether a control is sent with its form. */
function isSent(page, node) {
    const name = page.attribute(node, "name");
    if (!name || page.attribute(node, "disabled") !== undefined) return false;
    const type = typeOf(page, node);
    return !UNSENT.has(type) && (!CHECKED.has(type) || page.attribute(node, "checked") !== undefined);
}

/** Names and values of controls that are sent, from controls and forms among the nodes. */
export function fields(page, nodes) {
    const controls = nodes.flatMap((node) => (page.node(node).name === "form" ? page.select(node, CONTROLS) : [node]));
    return controls.filter((node) => page.matches(node, CONTROLS) && isSent(page, node)).flatMap((node) => {
        const name = page.attribute(node, "name");
        const value = valueOf(page, node);
        return [value ?? []].flat().map((text) => ({ name, value: text }));
    });
}

/** A text as forms encode it: percent signs, and `+` for spaces (application/x-www-form-urlencoded). */
export function encoded(text) {
    return encodeURIComponent(text).replace(/%20/g, "+").replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
}
