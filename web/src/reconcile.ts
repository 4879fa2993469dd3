// Bringing the page up to date while it is read: what did not change stays as it is, and what its reader did stays done.
import { refresh } from "./charts/chart";

const FOCUSABLE = "a, button, input, summary, [tabindex]";

/** Makes the children of `parent` be as `fresh` are; those that are known by their names stay. */
export function reconcile(parent: Element, fresh: Element[]): void {
  const known = named([...parent.children]);
  const next = named(fresh);
  for (const [name, old] of known) if (!next.has(name)) old.remove();
  [...next].forEach(([name, child], i) => {
    const old = known.get(name);
    if (old && !isUpToDate(old, child)) replace(old, child);
    const shown = old?.isConnected ? old : child;
    // What is moved loses the focus, so nothing is that need not be.
    if (parent.children[i] !== shown) parent.insertBefore(shown, parent.children[i] ?? null);
  });
}

/** Elements by their ids; those without one by what they are, and which of these. */
function named(elements: Element[]): Map<string, Element> {
  const seen = new Map<string, number>();
  return new Map(
    elements.map((element) => {
      const nth = seen.get(element.tagName) ?? 0;
      if (!element.id) seen.set(element.tagName, nth + 1);
      return [element.id || `${element.tagName} ${nth}`, element];
    }),
  );
}

/** Whether `old` shows what `fresh` does, or could be made to. */
function isUpToDate(old: Element, fresh: Element): boolean {
  if (old instanceof HTMLElement && fresh instanceof HTMLElement && fresh.tagName === "FIGURE") return refresh(old, fresh);
  if (old.tagName === fresh.tagName && fresh.querySelector(":scope > figure") && old.querySelector(":scope > figure")) {
    reconcile(old, [...fresh.children]);
    return true;
  }
  return old.isEqualNode(fresh);
}

/** Puts `fresh` in the place of `old`, with what was scrolled and focused there. */
function replace(old: Element, fresh: Element): void {
  const scrolled = [...old.querySelectorAll(".scroll")].map((region) => region.scrollLeft);
  const focused = [...old.querySelectorAll(FOCUSABLE)].indexOf(document.activeElement ?? document.body);
  const isOpen = old instanceof HTMLDetailsElement && old.open;
  old.replaceWith(fresh);
  fresh.querySelectorAll(".scroll").forEach((region, i) => {
    region.scrollLeft = scrolled[i] ?? 0;
  });
  if (fresh instanceof HTMLDetailsElement) fresh.open = isOpen;
  const place = focused < 0 ? null : fresh.querySelectorAll(FOCUSABLE)[focused];
  if (place instanceof HTMLElement) place.focus({ preventScroll: true });
}
