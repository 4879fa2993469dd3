// Colours come from the style sheet, and are asked for whenever something is drawn: a page that turns dark, or to paper,
// is drawn anew.

export type Colour = "text" | "faint" | "grid" | "good" | "bad" | "warning" | "one" | "two" | "three" | "four" | "band" | "hatch";

export function colour(name: Colour): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** How a line looks in its legend. */
interface Looks {
  colour: Colour;
  dash?: number[] | undefined;
}

/**
 * The swatches of a legend: filled, or with a dashed border where the line is dashed. They take their colours from the style sheet,
 * so that they turn dark with the page.
 */
export function markers(lines: Looks[]): { width: Swatch<number>; stroke: Swatch<string>; fill: Swatch<string>; dash: Swatch<string> } {
  const of = (series: number): Looks => lines[series - 1] ?? { colour: "faint" };
  return {
    width: (_, series) => (of(series).dash ? 2 : 0),
    stroke: (_, series) => `var(--${of(series).colour})`,
    fill: (_, series) => (of(series).dash ? "transparent" : `var(--${of(series).colour})`),
    dash: (_, series) => (of(series).dash ? "dashed" : "solid"),
  };
}

type Swatch<T> = (plot: unknown, series: number) => T;

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
