// Whether to believe the figures, and what came of what was asked for.
import type { Data, Finding, Statement } from "./data";
import { el, section, table } from "./dom";
import { bound, count, counted, duration, number, percent, within } from "./format";

/** Findings that make throughput a lower bound; the others spoil latency. */
const THROUGHPUT = ["cpu_saturated", "slow_script", "ports", "descriptors"];

const isThroughput = (finding: Finding): boolean =>
  finding.spoils === undefined ? THROUGHPUT.includes(finding.cause) : finding.spoils === "throughput";

export const isSpoiled = (data: Data, what: "throughput" | "latency"): boolean =>
  data.verdict.findings.some((finding) => finding.decisive && isThroughput(finding) === (what === "throughput"));

/** From so long on a waiting call is worth a word, in nanoseconds. */
export const LONG_WAIT_NS = 1e9;

/** The most ranges of seconds that are listed of a finding. */
const MOST_RANGES = 8;

function seconds(finding: Finding): string {
  const ranges = finding.seconds.map(({ first, last }) => (first === last ? `${first}` : `${first}–${last}`));
  if (ranges.length === 0) return "";
  const only = finding.seconds.length === 1 && finding.seconds[0]?.first === finding.seconds[0]?.last;
  const more = ranges.length > MOST_RANGES ? ", …" : "";
  return `, in second${only ? "" : "s"} ${ranges.slice(0, MOST_RANGES).join(", ")}${more}`;
}

function judgement({ verdict }: Data): [string, string] {
  switch (verdict.judgement) {
    case "trustworthy":
      return ["faint", verdict.findings.length > 0 ? "measured well, apart from what is listed below" : "measured well"];
    case "generator_bound":
      return ["bad", "✗ generator-bound: throughput is a lower bound"];
    default:
      return ["bad", `✗ ${verdict.sentence}`];
  }
}

function generator({ health, times, quantiles }: Data): string {
  let text = `brunt's workers: CPU up to ${percent(health.busiest_worker_cpu_ratio)}`;
  if (health.most_starved_worker_ratio > 0) {
    text += `, waiting for a CPU up to ${percent(health.most_starved_worker_ratio)} of the time`;
  }
  const lag = times.find(([name]) => name === "lag")?.[1].quantiles_ns;
  const [p50, p99] = ["p50", "p99"].map((name) => lag?.[quantiles.indexOf(name)]);
  return p50 !== undefined && p99 !== undefined ? `${text}; lag p50 ${bound(p50)}, p99 ${bound(p99)}` : text;
}

/** Whether a run goes on of which no call has ended yet. */
const hasNoFigure = ({ live, outcomes }: Data): boolean => live !== null && outcomes.answered + outcomes.failed === 0;

/** Signs of what a statement means; one that begins with its own has none. */
const SIGNS = { bad: "✗ ", warning: "! ", note: "· ", plain: "", good: "✓ " };

/** Those that were asked for, and defaults that failed. */
const noted = (thresholds: Data["thresholds"]): Data["thresholds"] =>
  thresholds.filter(({ implicit, held }) => !implicit || !held);

/** A statement with its sign. */
function said({ tone, text }: Statement): string {
  return `${text.startsWith("FAILED: ") ? "" : SIGNS[tone]}${text}`;
}

/** What came of the run, in a line: the headline that every output leads with. */
function passed(data: Data): [string, string] {
  const { statements: [headline], live } = data;
  if (live && hasNoFigure(data)) return ["", live.phase === "measuring" || live.phase === "draining" ? "● running: no call has ended yet" : `● running: ${live.phase}, nothing is measured yet`];
  // What waits is in no figure yet: no headline knows of it.
  const waits = live?.oldest_ns ?? 0;
  if (waits >= LONG_WAIT_NS && headline?.tone !== "bad") return ["warning", `! ${live && live.backlog > 0 ? `${counted(live.backlog, "call")} wait to be sent, ` : ""}the oldest call has waited ${duration(waits)}`];
  if (headline === undefined) return ["warning", "! nothing is known of this run"];
  return [headline.tone === "plain" ? "" : headline.tone, `${said(headline)}${live ? ", so far" : ""}`];
}

function further(statement: Statement): HTMLElement {
  const { tone, advice } = statement;
  return el("li", { class: tone }, said(statement), advice && el("p", { class: "advice" }, `→ ${advice}`));
}

/** Whether to believe the figures, in a line that leads to why. */
function badge(data: Data): HTMLElement | null {
  if (data.outcomes.answered === 0) return null;
  const [kind, words] = judgement(data);
  return el("p", { class: "badge" }, el("a", { href: "#verdict", class: kind }, `Measurement: ${words}`));
}

/** The most ways of failing that are named beside the outcome. */
const MOST_WAYS = 3;

/** What went wrong with the calls that are not ok, the most frequent first: `Not ok: 503 × 67, timeout × 3 (no answer in 10s)`. */
function waysOfFailing(outcomes: Data["outcomes"]): HTMLElement | null {
  const statuses = outcomes.statuses.filter(({ ok }) => !ok);
  const ways: [string, number, string | undefined][] = [
    ...statuses.map(({ status, name, count: n }): [string, number, undefined] => [name === undefined ? `${status}` : `${status} ${name}`, n, undefined]),
    ...outcomes.failures.map(({ failure, count: n, reasons }): [string, number, string | undefined] => [failure, n, reasons[0]?.reason]),
    ["unfinished", outcomes.unfinished, undefined],
    ["unsent", outcomes.unsent, undefined],
  ];
  // What is left was answered with a status that is ok.
  ways.push(["failed check", outcomes.not_ok - ways.reduce((sum, [, n]) => sum + n, 0), undefined]);
  const some = ways.filter(([, n]) => n > 0).sort(([, a], [, b]) => b - a);
  if (some.length === 0) return null;
  const named = some.slice(0, MOST_WAYS).map(([what, n, reason]) => `${what} × ${count(n)}${reason ? ` (${reason})` : ""}`);
  return el("p", { class: "ways" }, "Not ok: ", el("a", { href: "#outcomes" }, named.join(", ")), some.length > MOST_WAYS && ", …");
}

/** What came of the run: its headline, and what else has to be known before its figures are read. */
export function outcome(data: Data): HTMLElement | null {
  const [kind, words] = passed(data);
  const [headline, ...others] = data.statements;
  const advice = headline && words.includes(headline.text) ? headline.advice : undefined;
  return section(
    data.live ? "Outcome so far" : "Outcome",
    "outcome",
    el("p", { class: `outcome ${kind}` }, words),
    advice && el("p", { class: "advice" }, `→ ${advice}`),
    data.outcomes.answered > 0 && waysOfFailing(data.outcomes),
    badge(data),
    others.length > 0 && el("ul", { class: "findings" }, ...others.map(further)),
  );
}

/** Whether to believe the figures, and why not. */
export function verdict(data: Data): HTMLElement | null {
  const [kind, words] = judgement(data);
  const findings = data.verdict.findings.map((finding) =>
    el(
      "li",
      { class: finding.decisive ? "bad" : "warning" },
      `${finding.message}${seconds(finding)}`,
      el("p", { class: "advice" }, `→ ${finding.advice}`),
    ),
  );
  if (hasNoFigure(data)) {
    return section("Verdict", "verdict", el("p", { class: "verdict" }, "nothing was measured yet"));
  }
  return section(
    data.live ? "Verdict so far" : "Verdict",
    "verdict",
    (data.outcomes.answered > 0 || data.live) && el("p", { class: `verdict ${kind}` }, words),
    el("p", { class: "faint" }, generator(data)),
    findings.length > 0 && el("ul", { class: "findings" }, ...findings),
  );
}

/** Whether a percentile of so many calls is nothing but the longest of them. */
export function isMaximum(quantile: string, count: number): boolean {
  return count * (1 - Number(quantile.slice(1)) / 100) < 1;
}

/** Nanoseconds of a unit of time. */
const UNITS: Record<string, number> = { ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9, m: 60e9, h: 3600e9 };

/** Of a threshold on a percentile of all calls: which, and how long it may take. `p99 < 50ms` is p99 and 50,000,000 ns. */
export function limitOf(threshold: string): { figure: string; ns: number } | null {
  const [, figure, value, unit] = threshold.match(/^\s*(p\d+(?:\.\d+)?|max|mean)\s*<=?\s*(\d+(?:\.\d+)?)\s*([nuµm]?s|m|h)\b/) ?? [];
  const scale = UNITS[unit ?? ""];
  return figure === undefined || scale === undefined ? null : { figure, ns: Number(value) * scale };
}

/** What is looked for first. */
export function keyFigures(data: Data): HTMLElement | null {
  const { rates, outcomes, times, quantiles, is_open } = data;
  const response = times.find(([name]) => name === "response")?.[1];
  const at = (name: string): string | null => {
    const value = response?.quantiles_ns[quantiles.indexOf(name)];
    return value === undefined ? null : bound(value);
  };
  const off = (name: string): string | undefined => within(response?.quantile_ends_ns?.[quantiles.indexOf(name)]) || undefined;
  const least = isSpoiled(data, "throughput") ? "≥" : "";
  // A threshold that failed is what is looked for; then whether to believe the figure; then whether it is one at all.
  const failed = new Set(data.thresholds.flatMap(({ threshold, held }) => (held ? [] : [limitOf(threshold)?.figure])));
  const late = (name: string): string | undefined => {
    if (failed.has(name)) return "bad";
    if (isSpoiled(data, "latency")) return "warning";
    return isMaximum(name, response?.count ?? 0) ? "faint" : undefined;
  };
  const figures: [string, string | null, string | undefined, string | undefined][] = [
    [
      "ok/s",
      `${least}${number(rates.ok_per_s)}`,
      is_open ? `of ${number(rates.due_per_s)} due/s` : undefined,
      least ? "warning" : undefined,
    ],
    ["p50", at("p50"), off("p50") ?? "response time", late("p50")],
    ["p99", at("p99"), off("p99"), late("p99")],
    ["p99.9", at("p99.9"), isMaximum("p99.9", response?.count ?? 0) ? "the longest of all" : off("p99.9"), late("p99.9")],
    ["max", response ? bound(response.max_ns) : null, undefined, late("max")],
    [
      "error rate",
      outcomes.due > 0 ? percent(outcomes.error_ratio) : null,
      `${count(outcomes.not_ok)} of ${count(outcomes.due)}`,
      outcomes.not_ok > 0 ? "bad" : "good",
    ],
  ];
  const tiles = figures.flatMap(([name, value, note, kind]) =>
    value === null
      ? []
      : [
          el(
            "div",
            { class: "tile", "data-figure": name },
            el("dt", {}, name),
            el("dd", {}, el("span", { class: ["value", kind].filter(Boolean).join(" ") }, value), note && el("small", {}, note)),
          ),
        ],
  );
  return section("Key figures", "figures", el("dl", { class: "tiles" }, ...tiles));
}

export function thresholds(data: Data): HTMLElement | null {
  const { live } = data;
  const thresholds = noted(data.thresholds);
  if (thresholds.length === 0 || hasNoFigure(data)) return null;
  const failed = thresholds.filter((threshold) => !threshold.held).length;
  return section(
    "Thresholds",
    "thresholds",
    table({
      caption: `${failed > 0 ? `${failed} of ${counted(thresholds.length, "threshold")} failed` : "every threshold held"}${live ? " so far" : ""}`,
      head: ["threshold", "came out as", "held"],
      words: [2],
      rows: thresholds.map(({ threshold, got, held }) => [
        threshold,
        { text: got, ...(held ? {} : { class: "bad" }) },
        { text: held ? "✓ held" : "✗ failed", class: held ? "good" : "bad" },
      ]),
    }),
  );
}
