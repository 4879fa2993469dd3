// How many calls took how long, those that are not ok apart, with the thresholds among them.
import uPlot from "uplot";
import type { Bars } from "../data";
import { count, counted, duration } from "../format";
import { axis, figure } from "./chart";
import { type Colour, colour, FONT, hatch, markers } from "./theme";
import { axisDuration, axisNumber, roundValues } from "./ticks";

/** A threshold on a time of all calls. */
export interface Limit {
  label: string;
  ns: number;
  held: boolean;
}

/** How far beyond the times a threshold may lie and still be drawn. */
const NEAR = 10;

/** The times that a histogram with these thresholds shows. */
export function extent({ bars_an_octave: per, bars }: Bars, limits: Limit[]): [number, number] {
  const [first, last] = [2 ** ((bars[0]?.[0] ?? 0) / per), 2 ** (((bars.at(-1)?.[0] ?? 0) + 1) / per)];
  const near = limits.map(({ ns }) => ns).filter((ns) => ns >= first / NEAR && ns <= last * NEAR);
  return [Math.min(first, ...near.map((ns) => ns / 1.1)), Math.max(last, ...near.map((ns) => ns * 1.1))];
}

export function histogram(all: Bars, limits: Limit[]): HTMLElement {
  const { bars_an_octave: per, bars } = all;
  const from = (bar: number): number => 2 ** (bar / per);
  const [low, high] = extent(all, limits);
  const most = bars.reduce((most, [, calls]) => Math.max(most, calls), 1);
  const sum = bars.reduce((sum, [, calls]) => sum + calls, 0);
  const bad = bars.reduce((sum, [, , notOk]) => sum + notOk, 0);
  const middle = bars.map(([bar]) => Math.sqrt(from(bar) * from(bar + 1)));
  const range = (index: number): string => {
    const bar = bars[index]?.[0] ?? 0;
    return `${duration(Math.floor(from(bar)))} to ${duration(Math.floor(from(bar + 1)))}`;
  };
  const fullest = bars.findIndex(([, calls]) => calls === most);
  const shown = limits.filter(({ ns }) => ns >= low && ns <= high);
  const ok = bars.map(([, calls, notOk]) => calls - notOk);
  const notOk = bars.map(([, , notOk]) => notOk);
  const lines: [string, number[], Colour][] = [["ok", ok, "one"]];
  if (bad > 0) lines.push(["not ok", notOk, "bad"]);
  return figure("histogram", {
    title: "Histogram of response times",
    summary: [
      `${counted(sum, "call")}${bad > 0 ? `, of which ${count(bad)} not ok` : ""}, most of them ${range(fullest)}`,
      ...shown.map(({ label }) => label),
    ].join("; "),
    data: [middle, ...lines.map(([, values]) => values)],
    readout: (_, index) => [range(index), ...lines.map(([label, values]) => `${counted(values[index] ?? 0, "call")} ${label}`)].join(", "),
    options: {
      cursor: { y: false, points: { show: false } },
      legend: { markers: markers(lines.map(([, , colour]) => ({ colour }))) },
      scales: {
        x: { time: false, distr: 3, log: 10, range: (_, min, max) => (min === middle[0] && max === middle.at(-1) ? [low, high] : [min, max]) },
        y: { range: [0, most * 1.08] },
      },
      axes: [
        axis({ splits: (_, __, min, max) => roundValues(min, max), filter: (_, all) => all, values: (_, ticks) => ticks.map(axisDuration) }),
        axis({ size: 64, values: (_, ticks) => ticks.map(axisNumber) }),
      ],
      series: [
        { label: "took", value: (_, __, ___, index) => (index === null ? "–" : range(index)) },
        ...lines.map(([label, values, name]) => ({
          label,
          stroke: () => colour(name),
          width: 0,
          points: { show: false },
          value: (_: uPlot, __: number, ___: number, index: number | null) => (index === null ? "–" : counted(values[index] ?? 0, "call")),
        })),
      ],
      hooks: {
        draw: [
          (plot) => {
            const { ctx, bbox } = plot;
            const scale = window.devicePixelRatio;
            ctx.save();
            ctx.beginPath();
            ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
            ctx.clip();
            const y = (calls: number): number => plot.valToPos(calls, "y", true);
            bars.forEach(([bar], i) => {
              const [left, right] = [plot.valToPos(from(bar), "x", true), plot.valToPos(from(bar + 1), "x", true)];
              const width = Math.max(right - left - scale, scale);
              const [lower, upper] = [notOk[i] ?? 0, (notOk[i] ?? 0) + (ok[i] ?? 0)];
              ctx.fillStyle = colour("one");
              if (plot.series[1]?.show !== false) ctx.fillRect(left, y(upper), width, y(lower) - y(upper));
              // A bar of few calls is seen beside one of many.
              if (lower > 0 && plot.series[2]?.show !== false) hatch(ctx, left, Math.min(y(lower), y(0) - 2 * scale), width, Math.max(y(0) - y(lower), 2 * scale), "bad");
            });
            ctx.font = FONT.replace("12px", `${12 * scale}px`);
            shown.forEach(({ label, ns, held }, i) => {
              const x = plot.valToPos(ns, "x", true);
              ctx.strokeStyle = ctx.fillStyle = colour(held ? "good" : "bad");
              ctx.lineWidth = 1.5 * scale;
              ctx.setLineDash([3 * scale, 3 * scale]);
              ctx.beginPath();
              ctx.moveTo(x, bbox.top);
              ctx.lineTo(x, bbox.top + bbox.height);
              ctx.stroke();
              const isRight = x > bbox.left + bbox.width / 2;
              ctx.textAlign = isRight ? "right" : "left";
              ctx.fillText(`${held ? "✓" : "✗"} ${label}`, x + (isRight ? -4 : 4) * scale, bbox.top + (14 + 14 * i) * scale);
            });
            ctx.restore();
          },
        ],
      },
    },
  });
}
