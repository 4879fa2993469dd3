// How many calls took how long, over time: a cell is darker the more calls fall into it.
import uPlot from "uplot";
import type { HeatMap } from "../data";
import { el } from "../dom";
import { clock, count, counted, duration } from "../format";
import { axis, figure } from "./chart";
import { colour } from "./theme";
import { axisDuration, CLOCK_STEPS, roundValues } from "./ticks";

/** The faintest that a cell with a call in it is drawn. */
const FAINTEST = 0.12;

interface CellOf {
  bin: number;
  calls: number;
}

export function heatMap(map: HeatMap, summary: string): HTMLElement {
  const columns: CellOf[][] = map.columns.map((flat) => {
    const cells: CellOf[] = [];
    for (let i = 0; i + 1 < flat.length; i += 2) cells.push({ bin: flat[i] ?? 0, calls: flat[i + 1] ?? 0 });
    return cells;
  });
  const edges = map.edges_ms.map((ms) => ms / 1000);
  const bins = columns.flat().map(({ bin }) => bin);
  const calls = columns.flat().map((cell) => cell.calls);
  const [lowest, highest, most] = [least(bins), greatest(bins), greatest(calls)];
  const time = (bin: number): number => 2 ** (bin / map.bins_an_octave);
  const strength = (n: number): number => (most > 1 ? FAINTEST + (1 - FAINTEST) * (Math.log(n) / Math.log(most)) : 1);
  const span = (column: number): string => `${clock(edges[column] ?? 0)}–${clock(edges[column + 1] ?? 0)}`;
  const inColumn = (column: number): string => {
    const cells = columns[column] ?? [];
    const fullest = cells.reduce<CellOf | null>((best, cell) => (best && best.calls >= cell.calls ? best : cell), null);
    const sum = cells.reduce((sum, cell) => sum + cell.calls, 0);
    return fullest
      ? `${span(column)}: ${counted(sum, "call")}, most often ${range(fullest.bin)}`
      : `${span(column)}: no call ended`;
  };
  const range = (bin: number): string => `${duration(Math.floor(time(bin)))} to ${duration(Math.floor(time(bin + 1)))}`;
  const below = el("p", { class: "readout", "data-most": most }, rest(most));

  const draw = (plot: uPlot): void => {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.fillStyle = colour("one");
    columns.forEach((cells, column) => {
      const from = Math.round(plot.valToPos(edges[column] ?? 0, "x", true));
      const to = Math.round(plot.valToPos(edges[column + 1] ?? 0, "x", true));
      for (const cell of cells) {
        const top = Math.round(plot.valToPos(time(cell.bin + 1), "y", true));
        const bottom = Math.round(plot.valToPos(time(cell.bin), "y", true));
        ctx.globalAlpha = strength(cell.calls);
        ctx.fillRect(from, top, Math.max(to - from, 1), Math.max(bottom - top, 1));
      }
    });
    ctx.restore();
  };
  const point = (plot: uPlot): void => {
    const { left = -1, top = -1 } = plot.cursor;
    if (left < 0 || top < 0) {
      below.textContent = rest(most);
      return;
    }
    const x = plot.posToVal(left, "x");
    const column = edges.findLastIndex((edge) => edge <= x);
    const bin = Math.floor(Math.log2(plot.posToVal(top, "y")) * map.bins_an_octave);
    const calls = columns[column]?.find((cell) => cell.bin === bin)?.calls ?? 0;
    below.textContent = `${span(Math.min(column, columns.length - 1))}: ${counted(calls, "call")} took ${range(bin)}`;
  };

  return figure("heat-map", {
    title: "Latency over time",
    summary,
    below,
    data: [edges, edges.map(() => null)],
    readout: (_, index) => inColumn(Math.min(index, columns.length - 1)),
    options: {
      cursor: { points: { show: false }, sync: { key: "time", setSeries: false, scales: ["x", null] } },
      legend: { show: false },
      scales: {
        x: { time: false },
        y: { distr: 3, log: 10, range: () => [time(lowest), time(highest + 1)] },
      },
      axes: [
        axis({ incrs: CLOCK_STEPS, values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? clock(tick) : "")) }),
        axis({
          size: 64,
          splits: () => roundValues(time(lowest), time(highest + 1)),
          filter: (_, splits) => splits,
          values: (_, ticks) => ticks.map(axisDuration),
        }),
      ],
      series: [{}, { scale: "y" }],
      hooks: { draw: [draw], setCursor: [point] },
    },
  });
}

const rest = (most: number): string => `The darkest cell holds ${count(most)} calls; shades are logarithmic.`;

// Not by spreading: there may be more cells than a call takes arguments.
const least = (all: number[]): number => all.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
const greatest = (all: number[]): number => all.reduce((a, b) => Math.max(a, b), 0);
