// One request, status or reason of failure over time.
import { overTime, type Stretches } from "./charts/time";
import { axisDuration, axisNumber } from "./charts/ticks";
import type { CountedTrack, RequestTrack, Tracks } from "./data";
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
