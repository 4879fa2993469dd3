// One request, status or reason of failure over time.
import { type Line, overTime, type Stretches } from "./charts/time";
import type { Colour } from "./charts/theme";
import { axisDuration, axisNumber } from "./charts/ticks";
import type { CountedTrack, Data, RequestTrack, Tracks } from "./data";
import { el } from "./dom";
import { count, duration, number } from "./format";

const greatest = (values: (number | null)[]): number => values.reduce((a: number, b) => Math.max(a, b ?? 0), 0);
const perSecond = (value: number): string => `${number(value)}/s`;

/** The stretches of tracks, as charts over time take them: without a last moment that is none. */
function stretches<T>({ start_ms, length_ms }: Tracks<T>): Stretches {
  const last = start_ms.length - 1;
  const left = last > 0 && (length_ms[last] ?? 0) < (length_ms[0] ?? 0) / 2 ? last : last + 1;
  return { start_ms: start_ms.slice(0, left), length_ms: length_ms.slice(0, left), spoiled: [] };
}

/** One request name or tag: how long its calls took, how many there were, how many were not ok. */
export function requestOverTime(tracks: Tracks<RequestTrack>, at: number, kind: "requests" | "tags"): HTMLElement {
  const track = tracks.tracks[at];
  if (!track) return el("p", {}, "no figures over time");
  const id = `${kind === "tags" ? "tag" : "request"}-${at}`;
  const times = overTime(stretches(tracks), {
    id: `${id}-times`,
    title: "Response time",
    summary: `p99 up to ${duration(greatest(track.p99_ns))}, to within 0.8%`,
    lines: [
      { label: "p50", values: track.p50_ns, colour: "one", text: duration },
      { label: "p99", values: track.p99_ns, colour: "three", text: duration, dash: [8, 4] },
    ],
    tick: axisDuration,
    logarithmic: true,
  });
  const rates = overTime(stretches(tracks), {
    id: `${id}-calls`,
    title: "Calls",
    summary: `up to ${perSecond(greatest(track.ended_per_s))} ended, up to ${perSecond(greatest(track.not_ok_per_s))} not ok`,
    lines: [
      { label: "ended", values: track.ended_per_s, colour: "one", text: perSecond },
      { label: "not ok", values: track.not_ok_per_s, colour: "bad", text: perSecond, fill: true, dash: [8, 4] },
    ],
    tick: axisNumber,
  });
  return el("div", { class: "pair" }, times, rates);
}

/** Calls that ended in one way. */
export function countedOverTime(tracks: Tracks<CountedTrack>, at: number, id: string): HTMLElement {
  const track = tracks.tracks[at];
  if (!track) return el("p", {}, "no figures over time");
  return overTime(stretches(tracks), {
    id: `${id}-${at}`,
    title: track.name,
    summary: `${count(track.count)} in the measured part, up to ${perSecond(greatest(track.per_s))}`,
    lines: [{ label: "calls", values: track.per_s, colour: track.ok ? "one" : "bad", text: perSecond, fill: true }],
    tick: axisNumber,
  });
}

/** The most ways of failing that have a line of their own. */
const MOST_LINES = 5;
/** Lines are told apart by their dashes, too. */
const LOOKS: [Colour, number[] | undefined][] = [
  ["one", undefined],
  ["three", [8, 4]],
  ["four", [3, 3]],
  ["two", [10, 3, 3, 3]],
  ["text", [1, 3]],
];

/** What failed and when: a line for each status that is not ok and each reason, the most frequent first. */
export function failing({ drilldown, series }: Data): Line[] {
  // Where there are very many, they are counted over longer stretches than the seconds of the series.
  const kinds = [drilldown?.statuses, drilldown?.failures].filter((kind) => kind?.start_ms.length === series.start_ms.length);
  const bad = kinds.flatMap((kind) => kind?.tracks.filter(({ ok }) => !ok) ?? []).sort((a, b) => b.count - a.count);
  // Of one way there is nothing to tell apart.
  if (bad.length < 2) return [];
  const lines = bad.slice(0, MOST_LINES).map(({ name, per_s }, i): Line => {
    const [colour, dash] = LOOKS[i] ?? ["text", undefined];
    return { label: name, values: per_s.slice(0, series.start_ms.length), colour, text: perSecond, ...(dash ? { dash } : {}) };
  });
  const rest = bad.slice(MOST_LINES);
  if (rest.length > 0) {
    const values = series.start_ms.map((_, at) => rest.reduce((sum, { per_s }) => sum + (per_s[at] ?? 0), 0));
    lines.push({ label: `${rest.length} others`, values, colour: "faint", text: perSecond });
  }
  return lines;
}
