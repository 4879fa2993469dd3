// Figures against a value: lines, points and the intervals of points; with what is marked on the way.
import uPlot from "uplot";
import type { Chart, Line } from "../data";
import { clock, duration, number } from "../format";
import { limitOf } from "../verdict";
import { axis, figure } from "./chart";
import { decades, percentile } from "./spectrum";
import { apart, axisDuration, axisNumber, CLOCK_STEPS, roundValues } from "./ticks";
import { colour, FONT, markers } from "./theme";

/** A disc, a cross, a ring. */
type Mark = NonNullable<Line["mark"]>;

/** How many times as large or small as what was measured a limit may be and still be drawn. */
const NEAR = 10;
/** Room for a label on the x-axis, in CSS pixels. */
const LABEL_ROOM = 40;

const UNITS = {
  ns: { text: (ns: number) => duration(Math.round(ns)), tick: axisDuration },
  per_s: { text: (n: number) => `${number(n >= 100 ? Math.round(n) : n)}/s`, tick: axisNumber },
  ratio: { text: (n: number) => n.toFixed(3), tick: (n: number) => String(Number(n.toFixed(3))) },
};

export function against(chart: Chart): HTMLElement {
  const { text, tick } = UNITS[chart.unit];
  const table = (points: { x: number; y: number }[]): uPlot.AlignedData => {
    // Of several at one place the chart has the middle one; the others are drawn as points all the same.
    const byX = new Map<number, number[]>();
    for (const { x, y } of points) byX.set(x, [...(byX.get(x) ?? []), y]);
    const xs = [...byX.keys()].sort((a, b) => a - b);
    const middle = (ys: number[]): number => [...ys].sort((a, b) => a - b)[Math.floor(ys.length / 2)] ?? 0;
    return [xs, xs.map((x) => middle(byX.get(x) ?? []))];
  };
  const tickX = (x: number): string => {
    if (chart.x_is === "percentile") return percentile(x);
    if (chart.x_is === "time") return clock(x);
    if (x >= 100) return axisNumber(Math.round(x));
    return chart.x_is_logarithmic || Number.isInteger(x) ? axisNumber(x) : "";
  };
  const data = uPlot.join(chart.lines.map(({ points }) => table(points)));
  const at = (index: number): string => {
    const x = data[0][index] ?? 0;
    return chart.names[x] ?? (chart.x_is ? tickX(x) : `${number(x)} ${chart.x}`);
  };
  const value = (line: number, index: number): string => {
    const y = data[line + 1]?.[index];
    if (y === null || y === undefined) return "–";
    const x = data[0][index];
    const interval = chart.lines[line]?.points.find((point) => point.x === x)?.interval;
    return interval ? `${text(y)} [${interval.map(text).join(", ")}]` : text(y);
  };
  const limits = (chart.limits ?? []).flatMap((text) => {
    const limit = limitOf(text);
    return limit ? [{ text, ns: limit.ns }] : [];
  });
  const measuredYs = chart.lines.flatMap(({ points }) => points.map(({ y }) => y));
  // A limit far from all that was measured would hide it.
  const near = limits.filter(({ ns }) => ns <= Math.max(...measuredYs) * NEAR && ns >= Math.min(...measuredYs) / NEAR);
  const ys = chart.lines.flatMap(({ points }) => points.flatMap(({ y, interval }) => [y, ...(interval ?? [])]));
  const xs = data[0] as number[];
  const [left, right] = [xs[0] ?? 0, xs[xs.length - 1] ?? 1];
  const xRange = (): [number, number] => {
    if (chart.names.length > 0) return [-0.5, chart.names.length - 0.5];
    if (chart.x_is === "percentile") return [left, Math.max(right * 1.05, left * 10)];
    if (chart.x_is === "time") return [0, right + left];
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
    if (chart.x_is === "percentile") return { splits: (_, __, min, max) => decades(min, max), filter: (_, all) => all };
    if (chart.x_is === "time") return { incrs: CLOCK_STEPS };
    // Decades alone would leave most of a sweep's doubled values unnamed.
    return chart.x_is_logarithmic ? { splits: (plot, _, min, max) => measuredInView(plot, min, max), filter: (_, all) => all } : {};
  };
  const dashOf = (line: Line, i: number): number[] | undefined =>
    line.how === "dashed" ? [6, 4] : chart.x_is && i > 0 ? [10, 4] : undefined;
  const yRange = (): [number, number] => {
    const all = chart.level === null ? ys : [...ys, chart.level];
    const [low, high] = [Math.min(...all), Math.max(...all)];
    if (chart.unit === "ratio") {
      const room = Math.max((high - low) * 0.08, 0.005);
      return [low - room, high + room];
    }
    return [0, high > 0 ? high * 1.08 : 1];
  };
  // Of all points, also where the line has one of several.
  const yLogarithmic = (): [number, number] => {
    const all = [...ys, ...near.map(({ ns }) => ns), ...(chart.level === null ? [] : [chart.level])].filter((y) => y > 0);
    return all.length > 0 ? [Math.min(...all) / 1.2, Math.max(...all) * 1.2] : [1, 10];
  };
  return figure(chart.id, {
    title: chart.title,
    summary: [chart.summary, ...near.map(({ text }) => `limit ${text.trim()}`)].join("; "),
    data,
    readout: (_, index) => [at(index), ...chart.lines.map(({ label }, i) => `${label} ${value(i, index)}`)].join(", "),
    options: {
      cursor: { y: false, points: { size: 7 } },
      legend: { markers: markers(chart.lines.map((line, i) => ({ colour: line.colour, dash: dashOf(line, i) }))) },
      scales: {
        // While nothing is zoomed the ends are those of the values.
        x: { time: false, ...(chart.x_is_logarithmic ? { distr: 3, log: 10 } : {}), range: (_, min, max) => (min === left && max === right ? xRange() : [min, max]) },
        y: chart.y_is_logarithmic ? { distr: 3, log: 10, range: yLogarithmic } : { range: yRange },
      },
      axes: [
        axis({
          values: (_, ticks) => ticks.map((x) => (x === null ? "" : chart.names.length > 0 ? (chart.names[x] ?? "") : tickX(x))),
          ...splits(),
        }),
        axis({
          size: 64,
          ...(chart.y_is_logarithmic ? { splits: (_: uPlot, __: number, min: number, max: number) => roundValues(min, max), filter: (_: uPlot, all: number[]) => all } : {}),
          values: (_, ticks) => ticks.map((y) => (y === null ? "" : tick(y))),
        }),
      ],
      series: [
        { label: chart.x || "figure", value: (_, __, ___, index) => (index === null ? "–" : at(index)) },
        ...chart.lines.map((line, i) => ({
          label: line.mark ? `${line.mark} ${line.label}` : line.label,
          stroke: () => colour(line.colour),
          width: line.how === "points" ? 0 : 1.5,
          ...(dashOf(line, i) ? { dash: dashOf(line, i) ?? [] } : {}),
          spanGaps: true,
          points: { show: line.how === "line" && !line.mark && !chart.x_is ? () => true : false, size: 6 },
          value: (_: uPlot, __: number, ___: number, index: number | null) => (index === null ? "–" : value(i, index)),
        })),
      ],
      hooks: { draw: [(plot) => draw(plot, chart, near)] },
    },
  });
}

/** One point, `radius` wide to each side. */
function point(ctx: CanvasRenderingContext2D, mark: Mark, x: number, y: number, radius: number): void {
  ctx.beginPath();
  if (mark === "✕") {
    ctx.moveTo(x - radius, y - radius);
    ctx.lineTo(x + radius, y + radius);
    ctx.moveTo(x - radius, y + radius);
    ctx.lineTo(x + radius, y - radius);
  } else {
    ctx.arc(x, y, radius, 0, 2 * Math.PI);
  }
  const width = ctx.lineWidth;
  ctx.lineWidth = radius / 2;
  if (mark === "●") ctx.fill();
  else ctx.stroke();
  ctx.lineWidth = width;
}

/** Points with their intervals, what is marked, and the level. */
function draw(plot: uPlot, chart: Chart, limits: { text: string; ns: number }[]): void {
  const { ctx, bbox } = plot;
  const scale = window.devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  // Points at the edges are seen whole.
  ctx.rect(bbox.left - 6 * scale, bbox.top - 6 * scale, bbox.width + 12 * scale, bbox.height + 12 * scale);
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
  for (const { text, ns } of limits) {
    ctx.strokeStyle = ctx.fillStyle = colour("bad");
    ctx.setLineDash([3 * scale, 3 * scale]);
    const y = plot.valToPos(ns, "y", true);
    stroke([[bbox.left, y], [bbox.left + bbox.width, y]]);
    ctx.textAlign = "left";
    ctx.fillText(`limit ${text.trim()}`, bbox.left + 4 * scale, y - 4 * scale);
  }
  chart.marks.forEach(([value, what], i) => {
    const x = plot.valToPos(value, "x", true);
    ctx.strokeStyle = ctx.fillStyle = colour("warning");
    ctx.setLineDash([2 * scale, 3 * scale]);
    stroke([[x, bbox.top], [x, bbox.top + bbox.height]]);
    // Towards the middle, where there is room; of two, away from each other; neighbours in lines of their own.
    const [first, second] = chart.marks;
    const isMiddle = x > bbox.left + 80 * scale && x < bbox.left + bbox.width - 80 * scale;
    const isRight = first && second && chart.marks.length === 2 && isMiddle ? value === Math.min(first[0], second[0]) : x > bbox.left + bbox.width / 2;
    ctx.textAlign = isRight ? "right" : "left";
    ctx.fillText(what, x + (isRight ? -4 : 4) * scale, bbox.top + (14 + 14 * i) * scale);
  });
  ctx.setLineDash([]);
  chart.lines.forEach((line, i) => {
    if ((line.how !== "points" && !line.mark) || plot.series[i + 1]?.show === false) return;
    ctx.strokeStyle = ctx.fillStyle = colour(line.colour);
    for (const { x, y, interval } of line.points) {
      const [left, top] = [plot.valToPos(x, "x", true), plot.valToPos(y, "y", true)];
      point(ctx, line.mark ?? "●", left, top, 4 * scale);
      if (!interval) continue;
      const [low, high] = interval.map((end) => plot.valToPos(end, "y", true)) as [number, number];
      stroke([[left, low], [left, high]]);
      for (const end of [low, high]) stroke([[left - 5 * scale, end], [left + 5 * scale, end]]);
    }
  });
  ctx.restore();
}
