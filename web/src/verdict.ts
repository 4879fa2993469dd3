// Whether to believe the figures.
import type { Data, Finding } from "./data";
import { el, section } from "./dom";
import { bound, percent } from "./format";

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
