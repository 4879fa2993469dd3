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

/** Fills a rectangle so that it is told from a plain one without colours, too. */
export function hatch(ctx: CanvasRenderingContext2D, x: number, y: number, width: number, height: number, name: Colour): void {
  ctx.save();
  ctx.beginPath();
  ctx.rect(x, y, width, height);
  ctx.clip();
  ctx.fillStyle = `${colour(name)}55`;
  ctx.fillRect(x, y, width, height);
  ctx.strokeStyle = colour(name);
  ctx.lineWidth = 1.5 * window.devicePixelRatio;
  const step = 5 * window.devicePixelRatio;
  ctx.beginPath();
  for (let left = x - height; left < x + width; left += step) {
    ctx.moveTo(left, y + height);
    ctx.lineTo(left + height, y);
  }
  ctx.stroke();
  ctx.restore();
}
