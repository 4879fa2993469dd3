// Figures over time: lines, on one axis or two, with the seconds marked that the generator spoiled.
import uPlot from "uplot";
import type { Series } from "../data";
import { clock } from "../format";
import { axis, figure } from "./chart";
import { type Colour, colour, markers } from "./theme";
import { CLOCK_STEPS, roundValues } from "./ticks";

export interface Line {
  label: string;
  values: (number | null)[];
  colour: Colour;
  /** A value as its legend has it. */
  text: (value: number, index: number) => string;
  dash?: number[];
  fill?: boolean;
  /** Whether it goes by the second axis. */
  second?: boolean;
}

export interface OverTime {
  id: string;
  title: string;
  summary: string;
  lines: Line[];
  /** Values as the axes have them. */
  tick: (value: number) => string;
  secondTick?: (value: number) => string;
  logarithmic?: boolean;
}

/** How far apart the lines of a hatch are, in CSS pixels. */
const HATCH = 7;
/** As long as the widest label of an axis, in CSS pixels. */
const AXIS = 64;

/** When the points of a chart are. */
export type Stretches = Pick<Series, "start_ms" | "length_ms" | "spoiled">;

export function overTime(series: Stretches, { id, title, summary, lines, ...chart }: OverTime): HTMLElement {
  // A figure of a stretch stands in its middle, and the axis goes from the beginning of the first to the end of the last.
  const xs = series.start_ms.map((ms, i) => (ms + (series.length_ms[i] ?? 0) / 2) / 1000);
  const last = series.start_ms.length - 1;
  const ends: [number, number] = [(series.start_ms[0] ?? 0) / 1000, ((series.start_ms[last] ?? 0) + (series.length_ms[last] ?? 0)) / 1000];
  const when = (index: number): string => {
    const [start, length] = [series.start_ms[index] ?? 0, series.length_ms[index] ?? 0];
    const spoiled = series.spoiled.includes(index) ? " !" : "";
    return length > 1001 ? `${clock(start / 1000)}–${clock((start + length) / 1000)}${spoiled}` : clock(start / 1000) + spoiled;
  };
  const text = (line: Line, index: number): string => {
    const value = line.values[index];
    return value === null || value === undefined ? "–" : line.text(value, index);
  };
  const hasSecond = lines.some((line) => line.second);
  const points = (plot: uPlot): boolean => plot.data[0].length < 2;
  return figure(id, {
    title,
    summary,
    data: [xs, ...lines.map((line) => line.values)],
    readout: (_, index) => [when(index), ...lines.map((line) => `${line.label} ${text(line, index)}`)].join(", "),
    options: {
      cursor: { sync: { key: "time", setSeries: false }, y: false, points: { size: 7 } },
      legend: { live: true, markers: markers(lines) },
      scales: {
        x: { time: false, range: whole(xs, ends) },
        y: chart.logarithmic ? { distr: 3, log: 10, range: around } : { range: fromZero },
        second: { range: fromZero },
      },
      axes: [
        axis({ incrs: CLOCK_STEPS, values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? clock(tick) : "")) }),
        axis({ size: AXIS, ...(chart.logarithmic ? { splits: (_, __, min, max) => roundValues(min, max), filter: (_: uPlot, all: number[]) => all } : {}), values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : chart.tick(tick))) }),
        ...(hasSecond
          ? [
              axis({
                side: 1,
                scale: "second",
                size: AXIS,
                grid: { show: false },
                values: (_, ticks) => ticks.map((tick) => (chart.secondTick ?? chart.tick)(tick)),
              }),
            ]
          : []),
      ],
      series: [
        { label: "at", value: (_, __, ___, index) => (index === null ? "–" : when(index)) },
        ...lines.map((line) => ({
          label: line.label,
          scale: line.second ? "second" : "y",
          stroke: () => colour(line.colour),
          width: 1.5,
          ...(line.dash ? { dash: line.dash } : {}),
          ...(line.fill ? { fill: () => `${colour(line.colour)}22` } : {}),
          points: { show: points },
          value: (_: uPlot, __: number, ___: number, index: number | null) => (index === null ? "–" : text(line, index)),
        })),
      ],
      hooks: { drawClear: [(plot) => mark(plot, series)] },
    },
  });
}

/** All of the run while nothing is zoomed, which is when uPlot asks for all points. */
export const whole =
  (xs: number[], ends: [number, number]): uPlot.Scale.Range =>
  (_, min, max) =>
    min == null || max == null || (min <= (xs[0] ?? 0) && max >= (xs[xs.length - 1] ?? 0)) ? ends : [min, max];

/** A little more than all values, on a logarithmic axis. */
export const around = (_: uPlot, min: number | null, max: number | null): [number, number] =>
  min != null && max != null && min > 0 ? [min / 1.15, max * 1.15] : [1, 10];

/** Up to a little above the largest; a chart of nothing but 0 has an axis, too. */
const fromZero = (_: uPlot, __: number, max: number | null): [number, number] => [0, max ? max * 1.08 : 1];

/** Hatches the seconds that the generator spoiled: seen without colours, too. */
function mark(plot: uPlot, series: Stretches): void {
  const { left, top, width, height } = plot.bbox;
  plot.ctx.save();
  plot.ctx.beginPath();
  plot.ctx.rect(left, top, width, height);
  plot.ctx.clip();
  plot.ctx.fillStyle = colour("band");
  for (const row of series.spoiled) {
    const start = (series.start_ms[row] ?? 0) / 1000;
    const from = plot.valToPos(start, "x", true);
    const to = plot.valToPos(start + (series.length_ms[row] ?? 0) / 1000, "x", true);
    plot.ctx.fillRect(from, top, Math.max(to - from, 2), height);
    plot.ctx.save();
    plot.ctx.beginPath();
    plot.ctx.rect(from, top, Math.max(to - from, 2), height);
    plot.ctx.clip();
    plot.ctx.strokeStyle = colour("hatch");
    plot.ctx.lineWidth = window.devicePixelRatio;
    const step = HATCH * window.devicePixelRatio;
    plot.ctx.beginPath();
    for (let x = from - height; x < to; x += step) {
      plot.ctx.moveTo(x, top + height);
      plot.ctx.lineTo(x + height, top);
    }
    plot.ctx.stroke();
    plot.ctx.restore();
  }
  plot.ctx.restore();
}
