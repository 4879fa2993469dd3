// Colours come from the style sheet, and are asked for whenever something is drawn: a page that turns dark, or to paper,
// is drawn anew.

export type Colour = "text" | "faint" | "grid" | "good" | "bad" | "warning" | "one" | "two" | "three" | "four" | "band";

export function colour(name: Colour): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** The typeface of the page's text, for axes. */
export const FONT = "12px system-ui, sans-serif";
