// Colours come from the style sheet, and are asked for whenever something is drawn: a page that turns dark, or to paper,
// is drawn anew.

export type Colour = "text" | "faint" | "grid" | "good" | "bad" | "warning" | "one" | "two" | "three" | "four" | "band" | "hatch";

export function colour(name: Colour): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** The swatches of a legend, filled: they take their colours from the style sheet, so that they turn dark with the page. */
export function markers(colours: Colour[]): { width: number; stroke: Swatch; fill: Swatch } {
  const swatch: Swatch = (_, series) => `var(--${colours[series - 1] ?? "faint"})`;
  return { width: 0, stroke: swatch, fill: swatch };
}

type Swatch = (plot: unknown, series: number) => string;

/** The typeface of the page's text, for axes. */
export const FONT = "12px system-ui, sans-serif";
