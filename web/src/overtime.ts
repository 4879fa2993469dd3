// The charts of a run: which there are, and what each says in words.
import { histogram } from "./charts/histogram";
import { type Ends, spectrum } from "./charts/spectrum";
import { axisDuration, axisNumber } from "./charts/ticks";
import { type Line, overTime } from "./charts/time";
import { type Bound, type CountedTrack, type Data, type Series, type Tracks, valueOf } from "./data";
import { el, section } from "./dom";
import { bound, count, counted, duration, percent } from "./format";
import { limitOf } from "./verdict";

const least = (values: number[]): number => values.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
const greatest = (values: number[]): number => values.reduce((a, b) => Math.max(a, b), 0);
const known = (values: (Bound | null)[]): number[] => values.flatMap((value) => (value === null ? [] : [valueOf(value)]));

/** The share of the usual length under which the last point is none: a drain's few milliseconds are no second. */
const SHORTEST = 0.5;

/** Without a last point that is too short to be drawn beside the others. */
function whole(series: Series): Series {
  const last = series.start_ms.length - 1;
  const [usual, length] = [series.length_ms[0] ?? 0, series.length_ms[last] ?? 0];
  if (last < 1 || length >= usual * SHORTEST) return series;
  const columns = Object.entries(series).map(([name, column]: [string, unknown[]]) =>
    name === "spoiled" ? [name, column.filter((row) => row !== last)] : [name, column.slice(0, last)],
  );
  return Object.fromEntries(columns) as Series;
}

/** The tracks of those seconds. */
function shortened({ drilldown, series }: Data): Data["drilldown"] {
  const left = whole(series).start_ms.length;
  if (drilldown === null || left === series.start_ms.length) return drilldown;
  const cut = (kind: Tracks<CountedTrack>): Tracks<CountedTrack> =>
    kind.start_ms.length === series.start_ms.length ? { ...kind, start_ms: kind.start_ms.slice(0, left) } : kind;
  return { ...drilldown, statuses: cut(drilldown.statuses), failures: cut(drilldown.failures) };
}

/** What is drawn of a run: without a last moment that is no second. */
const drawn = (data: Data): Data => ({ ...data, series: whole(data.series), drilldown: shortened(data) });

/** How long calls took. */
export function distribution(all: Data): HTMLElement | null {
  const data = drawn(all);
  return section("Distribution of response times", "distribution", bars(data), spectra(data));
}

/** What the load was like, and the generator. */
export function load(all: Data): HTMLElement | null {
  if (all.series.start_ms.length === 0) return null;
  const data = drawn(all);
  return section("Load and generator", "load", users(data), connections(data), generator(data));
}

/** The histogram, with the thresholds on times of all calls in it. */
function bars({ bars, thresholds }: Data): HTMLElement | null {
  if (!bars) return null;
  const limits = thresholds.flatMap(({ threshold, held }) => {
    const limit = limitOf(threshold);
    return limit ? [{ label: threshold.trim(), ns: limit.ns, held }] : [];
  });
  return histogram(bars, limits);
}

function spectra({ spectra, times, quantiles }: Data): HTMLElement | null {
  const response = times.find(([name]) => name === "response")?.[1];
  if (spectra.length === 0 || !response) return null;
  const at = (name: string): string => bound(response.quantiles_ns[quantiles.indexOf(name)] ?? 0);
  const shares = quantiles.map((name) => 1 - Number(name.slice(1)) / 100);
  const ends: Ends = (response.quantile_ends_ns ?? []).map((both, i) => [shares[i] ?? 1, both]);
  return spectrum(spectra, ends, `response p50 ${at("p50")}, p99 ${at("p99")}, p99.9 ${at("p99.9")}, max ${bound(response.max_ns)}`);
}

/** A value that never changes, in a line of text. */
function throughout(values: number[], what: string): HTMLElement | null {
  const most = greatest(values);
  return values.length > 1 && least(values) === most ? el("p", { class: "throughout" }, `${counted(most, what)} throughout`) : null;
}

function users({ series }: Data): HTMLElement | null {
  if (!series.users) return null;
  const constant = throughout(series.users, "user");
  if (constant) return constant;
  return overTime(series, {
    id: "users",
    title: "Virtual users",
    summary: `${count(least(series.users))} to ${count(greatest(series.users))} alive`,
    lines: [{ label: "users", values: series.users, colour: "two", text: count, fill: true }],
    tick: axisNumber,
  });
}

function connections({ series }: Data): HTMLElement | null {
  const open = series.open_connections;
  if (!open || open.length !== series.start_ms.length) return null;
  const constant = throughout(open, "open connection");
  if (constant) return constant;
  return overTime(series, {
    id: "connections",
    title: "Open connections",
    summary: `${count(least(open))} to ${count(greatest(open))} open`,
    lines: [{ label: "connections", values: open, colour: "two", text: count, fill: true }],
    tick: axisNumber,
  });
}

/** The generator's own state: what the verdict rests on. */
function generator({ series }: Data): HTMLElement {
  const lag = known(series.lag_p99_ns);
  const lines: Line[] = [
    { label: "CPU of the busiest worker", values: series.busiest_worker_cpu_ratio, colour: "one", text: percent },
    { label: "waiting for a CPU", values: series.most_starved_worker_ratio, colour: "four", text: percent },
  ];
  if (lag.length > 0) lines.push({ label: "lag p99", values: series.lag_p99_ns, colour: "three", text: duration, second: true });
  const busiest = `busiest worker: CPU up to ${percent(greatest(series.busiest_worker_cpu_ratio))}`;
  const starved = `waiting for a CPU up to ${percent(greatest(series.most_starved_worker_ratio))} of the time`;
  return overTime(series, {
    id: "generator",
    title: "The generator",
    summary: `${busiest}, ${starved}${lag.length > 0 ? `; lag p99 up to ${duration(greatest(lag))}` : ""}`,
    lines,
    tick: percent,
    secondTick: axisDuration,
  });
}
