// Tables: sorting, a search in long ones, and rows that open. What a reader did stays done when a page that goes on is shown anew.
(() => {
  "use strict";
  /** The rows of a long table that are shown at first, and how many more at a time. */
  const PAGE = 20;

  /** What was done to each table, by its id: the column it is sorted by, whether falling, what is looked for, how many rows are seen, what is open. */
  const views = new Map();

  const viewOf = (table) => {
    const view = views.get(table.id) ?? { open: new Set(), rows: PAGE, filter: "" };
    views.set(table.id, view);
    return view;
  };

  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };

  /** Its rows, each with what stands below it. */
  function rowsOf(table) {
    return [...table.tBodies[0].rows]
      .filter((row) => !row.matches(".below"))
      .map((row) => ({ row, below: row.nextElementSibling?.matches(".below") ? row.nextElementSibling : null }));
  }

  /** By what a row is known from one showing to the next. */
  const nameOf = (row) => row.cells[0]?.dataset.name ?? row.cells[0]?.textContent ?? "";

  function opener(view, { row, below }) {
    const cell = row.cells[0];
    if (!below || !cell || cell.querySelector(".opener")) return;
    const name = nameOf(row);
    cell.dataset.name = name;
    const button = element("button", { type: "button", class: "opener" });
    // What was written there stays, within the button; a link would not be one within it.
    button.append(...[...cell.childNodes].filter((node) => node.nodeName !== "SMALL"));
    cell.prepend(button);
    const show = () => {
      const isOpen = view.open.has(name);
      button.setAttribute("aria-expanded", String(isOpen));
      below.classList.toggle("open", isOpen);
    };
    button.addEventListener("click", () => {
      if (!view.open.delete(name)) view.open.add(name);
      show();
      document.dispatchEvent(new Event("brunt:shown"));
    });
    show();
  }

  function sort(table, view, rows) {
    if (view.column === undefined) return rows;
    const key = ({ row }) => row.cells[view.column];
    const order = (a, b) => {
      const [x, y] = [a?.dataset.sort, b?.dataset.sort];
      return x !== undefined || y !== undefined ? Number(x ?? -1) - Number(y ?? -1) : (a?.textContent ?? "").localeCompare(b?.textContent ?? "");
    };
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      if (column === view.column) heading.setAttribute("aria-sort", view.falling ? "descending" : "ascending");
      else heading.removeAttribute("aria-sort");
    });
    return [...rows].sort((a, b) => (view.falling ? -1 : 1) * order(key(a), key(b)));
  }

  function take(table) {
    if (table.dataset.taken) return;
    table.dataset.taken = "taken";
    const [view, rows] = [viewOf(table), rowsOf(table)];
    rows.forEach((one) => opener(view, one));
    if (!("sortable" in table.dataset) || rows.length < 2) return;
    const isLong = rows.length > PAGE;
    const more = element("button", { type: "button", class: "more" });
    const show = () => {
      const wanted = view.filter.toLowerCase();
      const found = sort(table, view, rows).filter(({ row }) => nameOf(row).toLowerCase().includes(wanted));
      const shown = isLong ? found.slice(0, view.rows) : found;
      table.tBodies[0].replaceChildren(...shown.flatMap(({ row, below }) => (below ? [row, below] : [row])));
      more.textContent = `${shown.length} of ${found.length}: show ${Math.min(PAGE, found.length - shown.length)} more`;
      more.hidden = shown.length >= found.length;
    };
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      const button = element("button", { type: "button" }, heading.textContent);
      heading.replaceChildren(button);
      button.addEventListener("click", () => {
        view.falling = heading.getAttribute("aria-sort") !== "descending";
        view.column = column;
        show();
      });
    });
    if (isLong) {
      const search = element("input", { type: "search", placeholder: `one of ${rows.length}`, "aria-label": `find in ${table.caption.textContent}` });
      search.value = view.filter;
      search.addEventListener("input", () => {
        view.filter = search.value;
        show();
      });
      more.addEventListener("click", () => {
        view.rows += PAGE;
        show();
      });
      table.parentElement.before(search);
      table.parentElement.after(more);
    }
    show();
  }

  /** Opens what stands below the row that the page's address names. */
  function openTarget(id) {
    const opener = document.getElementById(id)?.querySelector(":scope > th > .opener[aria-expanded=false]");
    opener?.click();
  }

  const takeAll = () => document.querySelectorAll("main table").forEach(take);
  document.addEventListener("brunt:shown", takeAll);
  addEventListener("hashchange", () => openTarget(location.hash.slice(1)));
  // Once more, though the address names it already.
  addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a[href^='#']") : null;
    if (link) openTarget(link.getAttribute("href").slice(1));
  });
  takeAll();
  openTarget(location.hash.slice(1));
})();
