// The latency spectrum: times over the share of calls that took no longer, with ever more room for the slowest.
import uPlot from "uplot";
import { type Spectrum, valueOf } from "../data";
import { bound, percent, within } from "../format";
import { axis, figure } from "./chart";
import { axisDuration, roundValues } from "./ticks";
import { around } from "./time";
import { type Colour, colour, markers } from "./theme";

const COLOURS: Colour[] = ["one", "two", "three", "four"];

/** Where lines lie on each other, each is seen through the gaps of the next. */
const DASHES: (number[] | undefined)[] = [undefined, [8, 5], [3, 4], undefined];

/** One in so many calls took longer: 10 is p90, 100 is p99. */
const oneIn = (tail: number): number => 1 / tail;

/** `p50`, `p99.9`. */
export function percentile(oneIn: number): string {
  const decimals = Math.max(0, Math.ceil(Math.log10(oneIn)) - 2);
  return `p${(100 - 100 / oneIn).toFixed(Math.min(decimals, 9))}`;
}

/** How far off the first spectrum may be, at some of its shares: the share of calls that took longer, and both ends. */
export type Ends = [number, [number, number | null]][];

export function spectrum(spectra: Spectrum[], ends: Ends, summary: string): HTMLElement {
  const tables = spectra.map(
    ({ points }) => [points.map(([tail]) => oneIn(tail)), points.map(([, time]) => valueOf(time))] as uPlot.AlignedData,
  );
  // Where nothing is known from above, there is no band to draw.
  const known = ends.flatMap(([tail, [low, high]]) => (high === null ? [] : [{ x: oneIn(tail), low: Math.max(low, 1), high }]));
  const hasBand = known.length > 1;
  if (hasBand) {
    const xs = known.map(({ x }) => x);
    tables.push([xs, known.map(({ low }) => low)], [xs, known.map(({ high }) => high)]);
  }
  const endsAt = new Map(ends.map(([tail, both]) => [oneIn(tail), both]));
  const times = spectra.map(({ points }) => new Map(points.map(([tail, time]) => [oneIn(tail), time])));
  const data = uPlot.join(tables);
  const text = (series: number, index: number): string => {
    const time = times[series]?.get(data[0][index] ?? 0);
    const off = series === 0 ? within(endsAt.get(data[0][index] ?? 0)) : "";
    return time === undefined ? "–" : `${bound(time)}${off ? ` (${off})` : ""}`;
  };
  const share = (index: number): string => {
    const one = data[0][index] ?? 1;
    return `${percentile(one)} (${percent(1 / one)} took longer)`;
  };
  return figure("spectrum", {
    title: "Latency spectrum",
    summary,
    data,
    readout: (_, index) => [share(index), ...spectra.map(({ name }, i) => `${name} ${text(i, index)}`)].join(", "),
    options: {
      cursor: { y: false, points: { size: 7 } },
      legend: { markers: markers(spectra.map((_, i) => ({ colour: COLOURS[i % COLOURS.length] ?? "one", dash: DASHES[i] }))) },
      scales: { x: { time: false, distr: 3, log: 10, range: (_, min, max) => [min, Math.max(max, min * 10)] }, y: { distr: 3, log: 10, range: around } },
      axes: [
        axis({
          splits: (plot) => decades(plot.scales["x"]?.min ?? 1, plot.scales["x"]?.max ?? 10),
          filter: (_, splits) => splits,
          values: (_, ticks) => ticks.map(percentile),
        }),
        axis({ size: 64, splits: (_, __, min, max) => roundValues(min, max), filter: (_, all) => all, values: (_, ticks) => ticks.map(axisDuration) }),
      ],
      series: [
        { label: "share", value: (_, __, ___, index) => (index === null ? "–" : share(index)) },
        ...spectra.map(({ name }, i) => ({
          label: name,
          stroke: () => colour(COLOURS[i % COLOURS.length] ?? "one"),
          width: 1.5,
          ...(DASHES[i] ? { dash: DASHES[i] } : {}),
          spanGaps: true,
          points: { show: false },
          value: (_: uPlot, __: number, ___: number, index: number | null) => (index === null ? "–" : text(i, index)),
        })),
        ...(hasBand ? ["from", "to"] : []).map((label) => ({
          label,
          class: "end",
          stroke: () => `${colour("one")}66`,
          width: 0.5,
          spanGaps: true,
          points: { show: false },
        })),
      ],
      ...(hasBand
        ? { bands: [{ series: [spectra.length + 2, spectra.length + 1] as [number, number], fill: () => `${colour("one")}2b` }] }
        : {}),
    },
  });
}

/** p0, p50, p90, p99, p99.9, … as far as the scale goes. */
export function decades(min: number, max: number): number[] {
  const splits = [1, 2];
  for (let one = 10; one <= max * 1.001; one *= 10) splits.push(one);
  return splits.filter((one) => one >= min * 0.999);
}
