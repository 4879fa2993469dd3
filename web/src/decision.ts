// What was decided over several runs: found in words, in charts and in tables.
import { against } from "./charts/against";
import type { Decision, Outline } from "./data";
import { el, section, table } from "./dom";
import { began, named, repeat } from "./origin";

/** Points of a spectrum between 10 % and 1 % of the calls, 1 % and 0.1 %, and so on. */
const TAILS_A_DECADE = 8;

/** The spectrum of a run, and its p99 over time. */
function outline({ tails_ns, stretch_ns, p99_ns }: Outline, at: number, command: string | undefined): HTMLElement {
  const chart = { names: [], x: "", y_is_logarithmic: true, unit: "ns" as const, marks: [], level: null };
  const tails = tails_ns.map((y, i) => ({ x: 10 ** (i / TAILS_A_DECADE), y: Math.max(y, 1) }));
  const seconds = p99_ns.flatMap((y, i) => (y === null ? [] : [{ x: ((i + 0.5) * stretch_ns) / 1e9, y: Math.max(y, 1) }]));
  const line = (label: string, points: { x: number; y: number }[]) => [{ label, colour: "one" as const, how: "line" as const, points }];
  return el(
    "div",
    {},
    command !== undefined && el("p", { class: "command" }, "Its whole page: ", el("code", {}, command)),
    tails.length > 1 && el("div", { class: "pair" }, ...[against({ ...chart, id: `run-${at}-spectrum`, title: "Latency spectrum", summary: "response time by percentile", x_is: "percentile", x_is_logarithmic: true, lines: line("response", tails) }),
    seconds.length > 1 && against({ ...chart, id: `run-${at}-p99`, title: "p99 over time", summary: "p99 of each stretch", x_is: "time", x_is_logarithmic: false, lines: line("p99", seconds) })]),
  );
}

const kind = (role: string): string => (role === "strong" ? "verdict" : role);

/** Columns of words: the first is what a row is about. */
const WORDS = ["verdict", "not met because", "differs", "95 %"];

/** The parts of its page. */
export function decision(data: Decision): (HTMLElement | null)[] {
  const found = data.found.map(({ text, role }, i) => el("p", { class: i === 0 ? `verdict ${role}` : kind(role) }, text));
  const charts = data.charts.filter(({ lines }) => lines.some(({ points }) => points.length > 0)).map(against);
  const shape = (nth: number): (() => HTMLElement) | undefined => {
    const found = data.outlines?.[nth];
    return found && (found.tails_ns.length > 1 || data.commands?.[nth] !== undefined) ? () => outline(found, nth, data.commands?.[nth]) : undefined;
  };
  const tables = data.tables.map(({ id, title, caption, head, rows }) =>
    section(
      title,
      id,
      table({
        caption,
        head: head.map((name, i) => name || (i === 0 ? "value" : "note")),
        words: head.flatMap((name, i) => (WORDS.includes(name) || (name === "" && i > 0) ? [i] : [])),
        rows: rows.map((row, nth) =>
          row.map(({ text, role, href }, column) => ({
            text,
            href,
            id: id === "runs" && column === 0 ? `run-${nth + 1}` : undefined,
            ...(role ? { class: role } : {}),
            opens: id === "runs" && column === 0 ? shape(nth) : undefined,
          })),
        ),
      }),
    ),
  );
  return [
    el(
      "header",
      {},
      el("h1", {}, el("span", { class: "brand" }, "brunt"), " ", named(data.origin), data.title),
      ...data.how.map((line) => el("p", { class: "faint" }, line)),
      began(data),
    ),
    data.live === null
      ? null
      : el(
          "div",
          { id: "live", role: "group", "aria-label": "live" },
          el("p", {}, el("strong", {}, "● running"), ` ${data.live}`),
          el("p", { id: "problem", class: "warning", role: "status" }),
        ),
    section(data.live === null ? "What was found" : "What was found so far", "found", ...found),
    section("Charts", "charts", ...charts),
    ...tables,
    repeat(data.origin),
  ];
}
