// Figures as short as an axis wants them.
import { duration, number, size } from "../format";

const short = (text: string): string => text.replace(/(\.\d*?)0+(?=[a-z])/i, "$1").replace(/\.(?=[a-z]|$)/i, "");

/** `1ms`, `2.5s`. */
export const axisDuration = (ns: number): string => short(duration(ns));
/** `1k`, `2.5M`. */
export const axisNumber = (n: number): string => short(number(n));
/** `1KB`, `2.5MB`. */
export const axisSize = (bytes: number): string => short(size(bytes));
