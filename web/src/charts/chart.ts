// What all charts have in common: their place in the page, their size, their keys, and what is read out.
import uPlot from "uplot";
import { el } from "../dom";
import { colour, FONT } from "./theme";

const HEIGHT = 220;
/** The width on paper, in CSS pixels. */
const PAPER = 660;
/** How much nearer a press of + goes. */
const ZOOM = 2;

const all = new Set<Drawn>();

interface Drawn {
  plot: uPlot;
  box: HTMLElement;
}

const widthOf = (box: HTMLElement): number => Math.max(box.clientWidth, 240);

function redraw(width: (drawn: Drawn) => number): void {
  for (const drawn of all) {
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
  const box = el("div", { class: "chart", tabindex: 0, role: "img", "aria-label": `${chart.title}: ${chart.summary}` });
  const said = el("p", { class: "visually-hidden", "aria-live": "polite" });
  const figure = el(
    "figure",
    { id },
    el("figcaption", {}, el("h3", {}, chart.title), el("p", { class: "faint" }, chart.summary)),
    box,
    said,
    chart.below,
  );
  requestAnimationFrame(() => {
    const options: uPlot.Options = { width: widthOf(box), height: HEIGHT, ...chart.options };
    const drawn = { box, plot: new uPlot(options, chart.data, box) };
    all.add(drawn);
    listen(drawn, chart, said);
    new ResizeObserver(() => {
      const isPrinting = document.documentElement.classList.contains("printing");
      if (!isPrinting && drawn.plot.width !== widthOf(box)) {
        drawn.plot.setSize({ width: widthOf(box), height: HEIGHT });
      }
    }).observe(box);
  });
  return figure;
}

/** Arrows move the cursor from point to point, + and - zoom around it, Escape shows all. */
function listen({ plot, box }: Drawn, chart: Chart, said: HTMLElement): void {
  const xs = plot.data[0];
  const last = xs.length - 1;
  let at = -1;
  const show = (index: number): void => {
    at = Math.min(Math.max(index, 0), last);
    const x = xs[at];
    if (x === undefined) return;
    plot.setCursor({ left: plot.valToPos(x, "x"), top: plot.over.clientHeight / 2 });
    said.textContent = chart.readout(plot, at);
  };
  const zoom = (factor: number): void => {
    const [first, end] = [xs[0], xs[last]];
    const { min, max } = plot.scales["x"] ?? {};
    if (first === undefined || end === undefined || min == null || max == null || first === end) return;
    const middle = xs[at] ?? (min + max) / 2;
    const half = Math.max((max - min) / 2 / factor, (end - first) / last);
    plot.setScale("x", { min: Math.max(first, middle - half), max: Math.min(end, middle + half) });
  };
  const keys: Record<string, () => void> = {
    ArrowLeft: () => show(at - 1),
    ArrowRight: () => show(at + 1),
    Home: () => show(0),
    End: () => show(last),
    "+": () => zoom(ZOOM),
    "-": () => zoom(1 / ZOOM),
    Escape: () => {
      const [min, max] = [xs[0], xs[last]];
      if (min !== undefined && max !== undefined) plot.setScale("x", { min, max });
    },
  };
  box.addEventListener("keydown", (event) => {
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
}
