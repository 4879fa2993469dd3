// What all charts have in common: their place in the page, their size, their keys, and what is read out.
import uPlot from "uplot";
import { el } from "../dom";
import { colour, FONT } from "./theme";

const HEIGHT = 220;
/** The width on paper, in CSS pixels. */
const PAPER = 660;
/** How much nearer a press of + goes. */
const ZOOM = 2;

interface Drawn {
  plot: uPlot;
  box: HTMLElement;
  chart: Chart;
  said: HTMLElement;
  /** The point that the keyboard is at, or -1. */
  at: number;
  /** Whether a button of the pointer is down in it. */
  isHeld: boolean;
}

/** Charts that are drawn, by their figures. */
const all = new Map<HTMLElement, Drawn>();
/** What figures that are not drawn yet are to show. */
const waiting = new WeakMap<HTMLElement, Chart>();

const widthOf = (box: HTMLElement): number => Math.max(box.clientWidth, 240);

function redraw(width: (drawn: Drawn) => number): void {
  for (const [figure, drawn] of all) {
    if (!figure.isConnected) {
      all.delete(figure);
      continue;
    }
    drawn.plot.setSize({ width: width(drawn), height: HEIGHT });
    drawn.plot.redraw(false, true);
  }
}

window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw((d) => widthOf(d.box)));
window.addEventListener("beforeprint", () => {
  document.documentElement.classList.add("printing");
  redraw(() => PAPER);
});
window.addEventListener("afterprint", () => {
  document.documentElement.classList.remove("printing");
  redraw((drawn) => widthOf(drawn.box));
});

export interface Chart {
  title: string;
  /** What is to be seen in it, in a sentence with figures, for those who do not see it. */
  summary: string;
  options: Partial<uPlot.Options> & { series: uPlot.Series[] };
  data: uPlot.AlignedData;
  /** What is read out of the point at the cursor. */
  readout: (plot: uPlot, index: number) => string;
  /** What stands below it. */
  below?: HTMLElement;
}

export const axis = (options: uPlot.Axis = {}): uPlot.Axis => ({
  stroke: () => colour("faint"),
  font: FONT,
  grid: { stroke: () => colour("grid"), width: 1 },
  ticks: { stroke: () => colour("grid"), width: 1, size: 4 },
  ...options,
});

/** A chart in its figure. It is drawn once it is in the page, and as wide as its place is. */
export function figure(id: string, chart: Chart): HTMLElement {
  const label = `${chart.title}: ${chart.summary}`;
  const box = el("div", { class: "chart", tabindex: 0, role: "img", "aria-label": label, "data-points": chart.data[0].length });
  const said = el("p", { class: "visually-hidden", "aria-live": "polite" });
  const figure = el(
    "figure",
    { id },
    el("figcaption", {}, el("h3", {}, chart.title), el("p", { class: "faint" }, chart.summary)),
    box,
    said,
    chart.below,
  );
  waiting.set(figure, chart);
  requestAnimationFrame(() => {
    if (!figure.isConnected) return;
    const drawn: Drawn = { box, said, chart, plot: drawIn(box, chart), at: -1, isHeld: false };
    all.set(figure, drawn);
    listen(drawn);
    new ResizeObserver(() => {
      const isPrinting = document.documentElement.classList.contains("printing");
      if (!isPrinting && drawn.plot.width !== widthOf(box)) {
        drawn.plot.setSize({ width: widthOf(box), height: HEIGHT });
      }
    }).observe(box);
  });
  return figure;
}

const drawIn = (box: HTMLElement, chart: Chart): uPlot =>
  new uPlot({ width: widthOf(box), height: HEIGHT, ...chart.options }, chart.data, box);

/** Both ends of its data. */
function endsOf(plot: uPlot): [number, number] {
  const xs = plot.data[0];
  return [xs[0] ?? 0, xs[xs.length - 1] ?? 0];
}

/**
 * Shows in the figure `old` what `fresh` was to show, and leaves what its reader did: how near it is, where the cursor
 * stands, which lines are hidden. Whether it could.
 */
export function refresh(old: HTMLElement, fresh: HTMLElement): boolean {
  const [drawn, chart] = [all.get(old), waiting.get(fresh)];
  if (!drawn || !chart) return waiting.has(old) && chart !== undefined && !drawn;
  const { plot, box } = drawn;
  // The next one comes when the pointer has let go.
  if (drawn.isHeld) return true;
  const { min, max } = plot.scales["x"] ?? {};
  const [first, last] = endsOf(plot);
  // The axis may go beyond the points.
  const isZoomed = min != null && max != null && (min > first || max < last) && last > first;
  const { left = -10, top = -10 } = plot.cursor;
  const hidden = new Set(plot.series.filter((line) => line.show === false).map((line) => line.label));
  plot.destroy();
  drawn.chart = chart;
  drawn.plot = drawIn(box, chart);
  drawn.plot.series.forEach((line, i) => {
    if (i > 0 && hidden.has(line.label)) drawn.plot.setSeries(i, { show: false });
  });
  if (isZoomed) drawn.plot.setScale("x", { min, max });
  if (left >= 0) drawn.plot.setCursor({ left, top }, false);
  for (const name of ["aria-label", "data-points"]) {
    box.setAttribute(name, fresh.querySelector(".chart")?.getAttribute(name) ?? "");
  }
  // What stands below is written to by the chart that is drawn now.
  for (const part of ["figcaption", ".readout"]) {
    const now = fresh.querySelector(part);
    if (now) old.querySelector(part)?.replaceWith(now);
  }
  return true;
}

/** Arrows move the cursor from point to point, + and - zoom around it, Escape shows all. */
function listen(drawn: Drawn): void {
  const { box, said } = drawn;
  const show = (index: number): void => {
    const { plot, chart } = drawn;
    const xs = plot.data[0];
    drawn.at = Math.min(Math.max(index, 0), xs.length - 1);
    const x = xs[drawn.at];
    if (x === undefined) return;
    plot.setCursor({ left: plot.valToPos(x, "x"), top: plot.over.clientHeight / 2 });
    said.textContent = chart.readout(plot, drawn.at);
  };
  const zoom = (factor: number): void => {
    const { plot } = drawn;
    const xs = plot.data[0];
    const [first, end] = endsOf(plot);
    const [min, max] = [Math.max(plot.scales["x"]?.min ?? first, first), Math.min(plot.scales["x"]?.max ?? end, end)];
    if (first === end) return;
    const middle = xs[drawn.at] ?? (min + max) / 2;
    const half = Math.max((max - min) / 2 / factor, (end - first) / (xs.length - 1));
    plot.setScale("x", { min: Math.max(first, middle - half), max: Math.min(end, middle + half) });
  };
  const keys: Record<string, () => void> = {
    ArrowLeft: () => show(drawn.at - 1),
    ArrowRight: () => show(drawn.at + 1),
    Home: () => show(0),
    End: () => show(drawn.plot.data[0].length - 1),
    "+": () => zoom(ZOOM),
    "-": () => zoom(1 / ZOOM),
    Escape: () => {
      const [min, max] = endsOf(drawn.plot);
      drawn.plot.setScale("x", { min, max });
    },
  };
  box.addEventListener("keydown", (event) => {
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
  box.addEventListener("pointerdown", () => {
    drawn.isHeld = true;
  });
  for (const end of ["pointerup", "pointercancel"]) {
    window.addEventListener(end, () => {
      drawn.isHeld = false;
    });
  }
}
