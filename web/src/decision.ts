// What was decided over several runs: found in words, in charts and in tables. Written by
// crates/report/src/decision/page.rs.
import { type AgainstChart, against } from "./charts/against";
import { el, section, table } from "./dom";

interface Text {
  text: string;
  role: string;
}

export interface Decision {
  kind: "decision";
  /** How far it is, while it goes on. */
  live: string | null;
  brunt_version: string;
  title: string;
  how: string[];
  found: Text[];
  tables: { id: string; title: string; caption: string; head: string[]; rows: Text[][] }[];
  charts: AgainstChart[];
}

const kind = (role: string): string => (role === "strong" ? "verdict" : role);

/** Columns of words: the first is what a row is about. */
const WORDS = ["verdict", "not met because", "differs", "95 %"];

/** The parts of its page. */
export function decision(data: Decision): (HTMLElement | null)[] {
  const found = data.found.map(({ text, role }, i) => el("p", { class: i === 0 ? `verdict ${role}` : kind(role) }, text));
  const charts = data.charts.filter(({ lines }) => lines.some(({ points }) => points.length > 0)).map(against);
  const tables = data.tables.map(({ id, title, caption, head, rows }) =>
    section(
      title,
      id,
      table({
        caption,
        head: head.map((name, i) => name || (i === 0 ? "value" : "note")),
        words: head.flatMap((name, i) => (WORDS.includes(name) || (name === "" && i > 0) ? [i] : [])),
        rows: rows.map((row) => row.map(({ text, role }) => ({ text, ...(role ? { class: role } : {}) }))),
      }),
    ),
  );
  return [
    el(
      "header",
      {},
      el("h1", {}, el("span", { class: "brand" }, "brunt"), " ", data.title),
      ...data.how.map((line) => el("p", { class: "faint" }, line)),
      el("p", { class: "faint" }, `brunt ${data.brunt_version}`),
    ),
    data.live === null
      ? null
      : el(
          "div",
          { id: "live", role: "group", "aria-label": "live" },
          el("p", {}, el("strong", {}, "● live"), ` ${data.live}`),
          el("p", { id: "problem", class: "warning", role: "status" }),
        ),
    section(data.live === null ? "What was found" : "What was found so far", "found", ...found),
    section("Charts", "charts", ...charts),
    ...tables,
  ];
}
