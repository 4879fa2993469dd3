// Figures against a value: lines, points and the intervals of points; with what is marked on the way.
import uPlot from "uplot";
import { duration, number } from "../format";
import { axis, figure } from "./chart";
import { apart, axisDuration, axisNumber } from "./ticks";
import { type Colour, colour, FONT, markers } from "./theme";

export interface AgainstChart {
  id: string;
  title: string;
  summary: string;
  /** What the x-axis is of; where it has names, they stand at 0, 1, 2, …. */
  x: string;
  names: string[];
  x_is_logarithmic: boolean;
  y_is_logarithmic: boolean;
  unit: "ns" | "per_s" | "ratio";
  lines: {
    label: string;
    colour: Colour;
    how: "line" | "points" | "dashed";
    points: { x: number; y: number; interval?: [number, number] }[];
  }[];
  /** What is marked on the x-axis: where, and what it is. */
  marks: [number, string][];
  /** A value that others are held against. */
  level: number | null;
}

/** Room for a label on the x-axis, in CSS pixels. */
const LABEL_ROOM = 40;

const UNITS = {
  ns: { text: (ns: number) => duration(Math.round(ns)), tick: axisDuration },
  per_s: { text: (n: number) => `${number(n >= 100 ? Math.round(n) : n)}/s`, tick: axisNumber },
  ratio: { text: (n: number) => n.toFixed(3), tick: (n: number) => String(Number(n.toFixed(3))) },
};

export function against(chart: AgainstChart): HTMLElement {
  const { text, tick } = UNITS[chart.unit];
  const table = (points: { x: number; y: number }[]): uPlot.AlignedData => {
    // Of several at one place the chart has the middle one; the others are drawn as points all the same.
    const byX = new Map<number, number[]>();
    for (const { x, y } of points) byX.set(x, [...(byX.get(x) ?? []), y]);
    const xs = [...byX.keys()].sort((a, b) => a - b);
    const middle = (ys: number[]): number => [...ys].sort((a, b) => a - b)[Math.floor(ys.length / 2)] ?? 0;
    return [xs, xs.map((x) => middle(byX.get(x) ?? []))];
  };
  const data = uPlot.join(chart.lines.map(({ points }) => table(points)));
  const at = (index: number): string => {
    const x = data[0][index] ?? 0;
    return chart.names[x] ?? `${number(x)} ${chart.x}`;
  };
  const value = (line: number, index: number): string => {
    const y = data[line + 1]?.[index];
    if (y === null || y === undefined) return "–";
    const x = data[0][index];
    const interval = chart.lines[line]?.points.find((point) => point.x === x)?.interval;
    return interval ? `${text(y)} [${interval.map(text).join(", ")}]` : text(y);
  };
  const ys = chart.lines.flatMap(({ points }) => points.flatMap(({ y, interval }) => [y, ...(interval ?? [])]));
  const xs = data[0] as number[];
  const [left, right] = [xs[0] ?? 0, xs[xs.length - 1] ?? 1];
  const xRange = (): [number, number] => {
    if (chart.names.length > 0) return [-0.5, chart.names.length - 0.5];
    // Points at the ends are seen whole.
    if (left < right) return chart.x_is_logarithmic ? [left / 1.05, right * 1.05] : [left - (right - left) / 60, right + (right - left) / 60];
    return chart.x_is_logarithmic ? [left / 2, left * 2] : [left - 1, left + 1];
  };
  // Values that were measured at, which a curve between them is not.
  const measured = [...new Set(chart.lines.flatMap(({ how, points }) => (how === "dashed" ? [] : points.map(({ x }) => x))))].sort((a, b) => a - b);
  const measuredInView = (plot: uPlot, min: number, max: number): number[] =>
    apart(measured.filter((x) => min <= x && x <= max), (x) => plot.valToPos(x, "x"), LABEL_ROOM);
  const splits = (): Partial<uPlot.Axis> => {
    if (chart.names.length > 0) return { splits: chart.names.map((_, i) => i) };
    // Decades alone would leave most of a sweep's doubled values unnamed.
    return chart.x_is_logarithmic ? { splits: (plot, _, min, max) => measuredInView(plot, min, max), filter: (_, all) => all } : {};
  };
  const yRange = (): [number, number] => {
    const all = chart.level === null ? ys : [...ys, chart.level];
    const [low, high] = [Math.min(...all), Math.max(...all)];
    if (chart.unit === "ratio") {
      const room = Math.max((high - low) * 0.08, 0.005);
      return [low - room, high + room];
    }
    return [0, high > 0 ? high * 1.08 : 1];
  };
  return figure(chart.id, {
    title: chart.title,
    summary: chart.summary,
    data,
    readout: (_, index) => [at(index), ...chart.lines.map(({ label }, i) => `${label} ${value(i, index)}`)].join(", "),
    options: {
      cursor: { y: false, points: { size: 7 } },
      legend: { markers: markers(chart.lines.map((line) => line.colour)) },
      scales: {
        // While nothing is zoomed the ends are those of the values.
        x: { time: false, ...(chart.x_is_logarithmic ? { distr: 3, log: 10 } : {}), range: (_, min, max) => (min === left && max === right ? xRange() : [min, max]) },
        y: chart.y_is_logarithmic ? { distr: 3, log: 10 } : { range: yRange },
      },
      axes: [
        axis({
          values: (_, ticks) => ticks.map((x) => (x === null ? "" : chart.names.length > 0 ? (chart.names[x] ?? "") : Number.isInteger(x) ? axisNumber(x) : "")),
          ...splits(),
        }),
        axis({ size: 64, values: (_, ticks) => ticks.map((y) => (y === null ? "" : tick(y))) }),
      ],
      series: [
        { label: chart.x || "figure", value: (_, __, ___, index) => (index === null ? "–" : at(index)) },
        ...chart.lines.map((line, i) => ({
          label: line.label,
          stroke: () => colour(line.colour),
          width: line.how === "points" ? 0 : 1.5,
          ...(line.how === "dashed" ? { dash: [6, 4] } : {}),
          spanGaps: true,
          points: { show: line.how === "line" ? () => true : false, size: 6 },
          value: (_: uPlot, __: number, ___: number, index: number | null) => (index === null ? "–" : value(i, index)),
        })),
      ],
      hooks: { draw: [(plot) => draw(plot, chart)] },
    },
  });
}

/** Points with their intervals, what is marked, and the level. */
function draw(plot: uPlot, chart: AgainstChart): void {
  const { ctx, bbox } = plot;
  const scale = window.devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.lineWidth = scale;
  const stroke = (points: [number, number][]): void => {
    ctx.beginPath();
    points.forEach(([x, y], i) => (i === 0 ? ctx.moveTo(x, y) : ctx.lineTo(x, y)));
    ctx.stroke();
  };
  if (chart.level !== null) {
    ctx.strokeStyle = colour("faint");
    ctx.setLineDash([4 * scale, 4 * scale]);
    const y = plot.valToPos(chart.level, "y", true);
    stroke([[bbox.left, y], [bbox.left + bbox.width, y]]);
  }
  ctx.font = FONT.replace("12px", `${12 * scale}px`);
  chart.marks.forEach(([value, what], i) => {
    const x = plot.valToPos(value, "x", true);
    ctx.strokeStyle = ctx.fillStyle = colour("warning");
    ctx.setLineDash([2 * scale, 3 * scale]);
    stroke([[x, bbox.top], [x, bbox.top + bbox.height]]);
    // Towards the middle, where there is room; neighbours in lines of their own.
    const isRight = x > bbox.left + bbox.width / 2;
    ctx.textAlign = isRight ? "right" : "left";
    ctx.fillText(what, x + (isRight ? -4 : 4) * scale, bbox.top + (14 + 14 * i) * scale);
  });
  ctx.setLineDash([]);
  chart.lines.forEach((line, i) => {
    if (line.how !== "points" || plot.series[i + 1]?.show === false) return;
    ctx.strokeStyle = ctx.fillStyle = colour(line.colour);
    for (const { x, y, interval } of line.points) {
      const [left, top] = [plot.valToPos(x, "x", true), plot.valToPos(y, "y", true)];
      ctx.beginPath();
      ctx.arc(left, top, 3.5 * scale, 0, 2 * Math.PI);
      ctx.fill();
      if (!interval) continue;
      const [low, high] = interval.map((end) => plot.valToPos(end, "y", true)) as [number, number];
      stroke([[left, low], [left, high]]);
      for (const end of [low, high]) stroke([[left - 5 * scale, end], [left + 5 * scale, end]]);
    }
  });
  ctx.restore();
}
