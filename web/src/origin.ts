// What a run or decision is called, when it began, and how it is repeated.
import type { Origin } from "./data";
import { el, section, when } from "./dom";

/** What stands before its title. */
export const named = ({ name }: Origin): string => (name === undefined ? "" : `${name}: `);

/** When it began, which brunt made it, and its tags. */
export function began({ started_unix_ms, brunt_version, origin }: { started_unix_ms?: number; brunt_version: string; origin: Origin }): HTMLElement {
  const tags = Object.entries(origin.tags ?? {});
  return el(
    "p",
    { class: "faint" },
    started_unix_ms !== undefined && when(started_unix_ms),
    `${started_unix_ms === undefined ? "" : ", "}brunt ${brunt_version}`,
    ...tags.flatMap(([key, value]) => [" ", el("span", { class: "tag" }, `${key}=${value}`)]),
  );
}

/** The command that makes it again. */
export function repeat({ command }: Origin): HTMLElement | null {
  return section("Run it again", "repeat", command && el("pre", { tabindex: 0, role: "region", "aria-label": "command" }, command));
}
