// Figures as people read them, digit for digit as brunt prints them (crates/plan/src/units.rs, report/src/numbers.rs).
import { type Bound, valueOf } from "./data";

/** `value` with so many decimals, ties to even as Rust rounds them. */
function fixed(value: number, decimals: number): string {
  const [whole = "", fraction = ""] = value.toFixed(60).split(".");
  const dropped = fraction.slice(decimals);
  const kept = fraction.slice(0, decimals);
  const isTie = dropped.startsWith("5") && /^50*$/.test(dropped);
  const lastDigit = Number((whole + kept).at(-1));
  if (isTie && lastDigit % 2 === 0) return decimals > 0 ? `${whole}.${kept}` : whole;
  return value.toFixed(decimals);
}

const scaled = (value: number, unit: string): string => fixed(value, value >= 100 ? 1 : 2) + unit;

/** `812ns`, `36.20µs`, `4.71ms`, `2.04s`, `3.50m`. */
export function duration(ns: number): string {
  if (ns < 1_000) return `${ns}ns`;
  if (ns < 999_950) return scaled(ns / 1e3, "µs");
  if (ns < 999_950_000) return scaled(ns / 1e6, "ms");
  if (ns < 90e9) return scaled(ns / 1e9, "s");
  if (ns < 5_400e9) return scaled(ns / 60e9, "m");
  return scaled(ns / 3600e9, "h");
}

/** A time that may only be known from below: `≥4.71ms`. */
export const bound = (ns: Bound): string => (typeof ns === "number" ? duration(ns) : `≥${duration(valueOf(ns))}`);

/** The ends between which a time lies: `1.90ms to 2.60ms`, `over 977.0ms`; nothing where both read the same. */
export function within(ends: [number, number | null] | undefined): string {
  if (!ends) return "";
  const [low, high] = ends;
  if (high === null) return `over ${duration(low)}`;
  return duration(low) === duration(high) ? "" : `${duration(low)} to ${duration(high)}`;
}

/** `812`, `1,738`, `36.20k`, `4.71M`. */
export function number(n: number): string {
  const isWhole = Number.isInteger(n);
  if (n < 10 && !isWhole) return fixed(n, 2);
  if (n < 1_000 && !isWhole) return fixed(n, 1);
  if (n < 10_000) return count(Number(fixed(n, 0)));
  if (n < 1e6) return scaled(n / 1e3, "k");
  if (n < 1e9) return scaled(n / 1e6, "M");
  return scaled(n / 1e9, "G");
}

/** `412B`, `1.54kB`, `31.42MB`, in powers of 1000 (SI). */
export function size(bytes: number): string {
  const K = 1000;
  if (bytes < K) return `${fixed(bytes, 0)}B`;
  if (bytes < K * K) return scaled(bytes / K, "kB");
  if (bytes < K * K * K) return scaled(bytes / (K * K), "MB");
  return scaled(bytes / (K * K * K), "GB");
}

/** `1,284,332`. */
export const count = (n: number): string => n.toString().replace(/\B(?=(\d{3})+$)/g, ",");

/** `1 call`, `2,000 calls`. */
export const counted = (n: number, noun: string): string => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

/** A share from 0 to 1 with three significant digits; a small one never reads as nothing, nor a large one as all. */
export function percent(share: number): string {
  const percent = share * 100;
  if (percent <= 0) return "0%";
  if (percent >= 99.95 && percent < 100) return ">99.9%";
  const decimals = Math.min(Math.max(2 - Math.floor(Math.log10(percent)), 0), 6);
  let text = fixed(percent, decimals);
  if (text.includes(".")) text = text.replace(/0+$/, "").replace(/\.$/, "");
  return text === "0" ? "<0.000001%" : `${text}%`;
}

/** `0:07`, `12:30`, `1:02:03` of a time after the run's beginning. */
export function clock(seconds: number): string {
  const whole = Math.floor(seconds);
  const two = (n: number): string => n.toString().padStart(2, "0");
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}

/** Text from elsewhere, with what could hide or turn it (control characters, direction marks) made visible. */
export const clean = (text: string): string =>
  text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, (c) =>
    c === "\r" ? "\\r" : `\\u{${c.charCodeAt(0).toString(16)}}`,
  );
