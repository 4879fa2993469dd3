// What the page is given. Its types are made of the Rust types by `make page`: see types.mjs. Units are in the names.
import type { Bound, Data, Decision } from "./types";

export type * from "./types";

export const valueOf = (bound: Bound): number => (typeof bound === "number" ? bound : bound[0]);

/** Tracks over common stretches, one figure a stretch. */
export interface Tracks<T> {
  start_ms: number[];
  length_ms: number[];
  tracks: T[];
}

/** What stands in the page; or that it comes later, from where the page came from. */
export function embedded(): Data | Decision | { kind: "follow" } {
  const place = document.getElementById("data");
  return JSON.parse(place?.textContent ?? "null") as Data | Decision | { kind: "follow" };
}
