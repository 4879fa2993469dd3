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

/** A moment as its reader's clock has it. */
export function when(unix_ms: number): HTMLElement {
  const at = new Date(unix_ms);
  return el("time", { datetime: at.toISOString() }, at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" }));
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
  /** What is said of it to who points at it. */
  title?: string;
  /** Where it leads. */
  href?: string | undefined;
  /** What the row is called in links to it, if this is its first cell. */
  id?: string | undefined;
  /** What stands below the row when this, its first cell, is opened. */
  opens?: (() => HTMLElement) | undefined;
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

/** What readers did to tables that can be sorted: by which column, whether falling, what they look for, how many rows they see. */
interface View {
  column?: number;
  falling?: boolean;
  filter?: string;
  rows?: number;
  open?: Set<string>;
}

const views = new Map<string, View>();

/** The rows of a long table that are shown at first, and how many more at a time. */
const PAGE = 20;

const asCell = (cell: Cell | string): Cell => (typeof cell === "string" ? { text: cell } : cell);

/** The button that opens what stands below a row; what readers opened stays open. */
function opener(row: HTMLElement, name: string, opens: () => HTMLElement, columns: number, view: View, extra: HTMLElement[]): HTMLElement {
  const button = el("button", { type: "button", class: "opener", "aria-expanded": "false" }, name);
  const below = (): HTMLElement => el("tr", { class: "opened" }, el("td", { colspan: columns }, el("div", { class: "drill" }, opens())));
  let shown: HTMLElement | null = null;
  const open = view.open ?? new Set<string>();
  view.open = open;
  if (open.has(name)) {
    shown = below();
    extra.push(shown);
    button.setAttribute("aria-expanded", "true");
  }
  button.addEventListener("click", () => {
    if (shown) {
      shown.remove();
      shown = null;
      open.delete(name);
    } else {
      shown = below();
      row.after(shown);
      open.add(name);
    }
    button.setAttribute("aria-expanded", String(shown !== null));
  });
  return button;
}

/** Opens what stands below the row of that id. */
function openRow(id: string): void {
  document.getElementById(id)?.querySelector<HTMLElement>(":scope > th > .opener[aria-expanded=false]")?.click();
}

/** Opens what stands below the row that the page's address names. */
export const openTarget = (): void => openRow(location.hash.slice(1));

/** A link; one to a row of this page opens it, also where the address names it already. */
function link(href: string, text: string): HTMLElement {
  const link = el("a", { href }, text);
  if (href.startsWith("#")) link.addEventListener("click", () => openRow(href.slice(1)));
  return link;
}

/** A table that scrolls sideways where it is wider than the page. */
export function table({ caption, head, rows, words = [], sortable }: Table): HTMLElement {
  const body = el("tbody");
  const view: View = (sortable && views.get(sortable)) || {};
  if (sortable) views.set(sortable, view);
  const isWords = (column: number): boolean => column === 0 || words.includes(column);
  const fill = (ordered: (Cell | string)[][]): void => {
    body.replaceChildren(
      ...ordered.flatMap((row) => {
        const first = asCell(row[0] ?? "");
        const tr = el("tr", { id: first.id });
        const extra: HTMLElement[] = [];
        row.forEach((raw, column) => {
          const cell = asCell(raw);
          const kind = [isWords(column) ? "words" : "figure", cell.class].filter(Boolean).join(" ");
          const text = cell.href === undefined ? cell.text : link(cell.href, cell.text);
          if (column > 0) tr.append(el("td", { class: kind, title: cell.title || undefined }, text));
          else tr.append(el("th", { scope: "row", class: kind }, cell.opens ? opener(tr, cell.text, cell.opens, head.length, view, extra) : text));
        });
        return [tr, ...extra];
      }),
    );
  };
  const isLong = sortable !== undefined && rows.length > PAGE;
  const more = el("button", { type: "button", class: "more" });
  let ordered = rows;
  const show = (): void => {
    const wanted = (view.filter ?? "").toLowerCase();
    const found = isLong ? ordered.filter(([first]) => asCell(first ?? "").text.toLowerCase().includes(wanted)) : ordered;
    const shown = isLong ? Math.min(view.rows ?? PAGE, found.length) : found.length;
    fill(found.slice(0, shown));
    more.textContent = `${shown} of ${found.length}: show ${Math.min(PAGE, found.length - shown)} more`;
    more.hidden = shown >= found.length;
  };
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
    ordered = [...rows].sort((a, b) => (falling ? -1 : 1) * order(key(a), key(b)));
    show();
  };
  headings.forEach((heading, column) => {
    heading.querySelector("button")?.addEventListener("click", () => {
      const falling = heading.getAttribute("aria-sort") !== "descending";
      Object.assign(view, { column, falling });
      sort(column, falling);
    });
  });
  if (view.column !== undefined && rows.length > 1) sort(view.column, view.falling ?? false);
  else show();
  const scroll = el(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, ...headings)), body),
  );
  if (!isLong) return scroll;
  const search = el("input", { type: "search", placeholder: `one of ${rows.length}`, "aria-label": `find in ${caption}` });
  search.value = view.filter ?? "";
  search.addEventListener("input", () => {
    view.filter = search.value;
    show();
  });
  more.addEventListener("click", () => {
    view.rows = (view.rows ?? PAGE) + PAGE;
    show();
  });
  return el("div", { class: "long" }, search, scroll, more);
}
