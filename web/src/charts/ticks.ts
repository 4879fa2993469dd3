// Figures as short as an axis wants them.
import { duration, number, size } from "../format";

const short = (text: string): string => text.replace(/(\.\d*?)0+(?=[a-z])/i, "$1").replace(/\.(?=[a-z]|$)/i, "");

/** Of ascending values those whose places are so far apart that labels do not touch, the first among them. */
export function apart(values: number[], place: (value: number) => number, room: number): number[] {
  const kept: number[] = [];
  let last = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    const at = place(value);
    if (at - last < room) continue;
    kept.push(value);
    last = at;
  }
  return kept;
}

/** Steps of an axis of time, in seconds: what a clock has. */
export const CLOCK_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

/** `1ms`, `2.5s`. */
export const axisDuration = (ns: number): string => short(duration(ns));
/** `1k`, `2.5M`. */
export const axisNumber = (n: number): string => short(number(n));
/** `1KB`, `2.5MB`. */
export const axisSize = (bytes: number): string => short(size(bytes));

/** Round values in that range: every 1, 2 and 5, or where it is wide the powers of ten alone. */
export function roundValues(from: number, to: number): number[] {
  const steps = to / from > 1e3 ? [1] : [1, 2, 5];
  const decades = Array.from({ length: 15 }, (_, i) => 10 ** i);
  return decades.flatMap((decade) => steps.map((step) => step * decade)).filter((value) => value >= from && value <= to);
}
