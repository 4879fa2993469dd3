// Elements. Text only ever goes in as text: no name or message can become markup.
import { clean } from "./format";

export type Child = Node | string | null | undefined | false;

export interface Attributes {
  [name: string]: string | number | boolean | undefined;
}

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(typeof child === "string" ? document.createTextNode(clean(child)) : child);
  }
  return element;
}

/** A part of the page with its heading; null where there is nothing to show. */
export function section(title: string, id: string, ...children: Child[]): HTMLElement | null {
  if (!children.some(Boolean)) return null;
  return el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), ...children);
}

/** A cell: what it shows, what it is sorted by, how it looks. */
export interface Cell {
  text: string;
  sort?: number;
  class?: string;
}

export interface Table {
  caption: string;
  /** The first column is what each row is about. */
  head: string[];
  rows: (Cell | string)[][];
  /** Columns of words; all others but the first are figures. */
  words?: number[];
  /** Its name among those that can be sorted, if it can. */
  sortable?: string;
}

/** How tables were sorted by their reader: by which column, and whether falling. */
const sorted = new Map<string, { column: number; falling: boolean }>();

const asCell = (cell: Cell | string): Cell => (typeof cell === "string" ? { text: cell } : cell);

/** A table that scrolls sideways where it is wider than the page. */
export function table({ caption, head, rows, words = [], sortable }: Table): HTMLElement {
  const body = el("tbody");
  const isWords = (column: number): boolean => column === 0 || words.includes(column);
  const fill = (ordered: (Cell | string)[][]): void => {
    body.replaceChildren(
      ...ordered.map((row) =>
        el(
          "tr",
          {},
          ...row.map((raw, column) => {
            const cell = asCell(raw);
            const kind = [isWords(column) ? "words" : "figure", cell.class].filter(Boolean).join(" ");
            return column === 0
              ? el("th", { scope: "row", class: kind }, cell.text)
              : el("td", { class: kind }, cell.text);
          }),
        ),
      ),
    );
  };
  fill(rows);
  const headings = head.map((name, column) => {
    const attributes = { scope: "col", class: isWords(column) ? "words" : "figure" };
    return el("th", attributes, sortable && rows.length > 1 ? el("button", { type: "button" }, name) : name);
  });
  const sort = (column: number, falling: boolean): void => {
    headings.forEach((heading) => heading.removeAttribute("aria-sort"));
    headings[column]?.setAttribute("aria-sort", falling ? "descending" : "ascending");
    const key = (row: (Cell | string)[]): Cell => asCell(row[column] ?? "");
    const order = (a: Cell, b: Cell): number =>
      a.sort !== undefined || b.sort !== undefined ? (a.sort ?? -1) - (b.sort ?? -1) : a.text.localeCompare(b.text);
    fill([...rows].sort((a, b) => (falling ? -1 : 1) * order(key(a), key(b))));
  };
  headings.forEach((heading, column) => {
    heading.querySelector("button")?.addEventListener("click", () => {
      const falling = heading.getAttribute("aria-sort") !== "descending";
      if (sortable) sorted.set(sortable, { column, falling });
      sort(column, falling);
    });
  });
  const known = sortable && rows.length > 1 ? sorted.get(sortable) : undefined;
  if (known) sort(known.column, known.falling);
  return el(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, ...headings)), body),
  );
}
