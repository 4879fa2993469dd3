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

/** `1ms`, `2.5s`. */
export const axisDuration = (ns: number): string => short(duration(ns));
/** `1k`, `2.5M`. */
export const axisNumber = (n: number): string => short(number(n));
/** `1KB`, `2.5MB`. */
export const axisSize = (bytes: number): string => short(size(bytes));
