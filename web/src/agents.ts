// The agents of a run on several machines.
import { type Data, type Lost, valueOf } from "./data";
import { type Cell, section, table } from "./dom";
import { bound, count, counted, duration, number } from "./format";

const JUDGEMENTS: Record<string, string> = {
  trustworthy: "✓",
  generator_bound: "was the bottleneck itself",
  latency_unreliable: "its own delays are wide",
  nothing_measured: "had no answer",
};

const time = (ns: number | null): Cell => (ns === null ? { text: "–", sort: -1 } : { text: duration(ns), sort: ns });

/** How an agent was lost, from when on others did what it had left, and how many users never started. */
function lostText({ after_ns, reason, taken_over_ns, users_missed }: Lost): string {
  const takeover = taken_over_ns === undefined ? "" : `; others took over after ${duration(taken_over_ns)}`;
  const missed = users_missed === undefined ? "" : `; ${count(users_missed)} users never started`;
  return `lost after ${duration(after_ns)}: ${reason}${takeover}${missed}`;
}

/** A line for each agent; while the run goes on, of its last second. */
export function agents({ agents, live }: Data): HTMLElement | null {
  if (live?.agents) {
    const rows = live.agents.map((agent): Cell[] => [
      { text: agent.name },
      { text: count(agent.answered), sort: agent.answered },
      agent.p99_ns === null ? time(null) : { text: bound(agent.p99_ns), sort: valueOf(agent.p99_ns) },
      time(agent.lag_p99_ns),
      { text: count(agent.not_ok), sort: agent.not_ok, ...(agent.not_ok > 0 ? { class: "bad" } : {}) },
      agent.is_silent ? { text: "reported nothing", class: "bad" } : agent.is_saturated ? { text: "no CPU left", class: "warning" } : { text: "" },
    ]);
    return section("Agents", "agents", table({ caption: "the last second", head: ["agent", "answered", "p99", "lag p99", "not ok", "state"], words: [5], sortable: "agents", rows }));
  }
  if (!agents) return null;
  const lost = agents.list.filter((agent) => agent.lost).length;
  const apart = agents.start_skew_ns === null ? null : agents.start_skew_ns + (agents.start_skew_uncertainty_ns ?? 0);
  const caption = [counted(agents.list.length, "agent"), lost > 0 && `${lost} lost`, apart !== null && `began within ${duration(apart)} of each other`];
  return section(
    "Agents",
    "agents",
    table({
      caption: caption.filter(Boolean).join(", "),
      head: ["agent", "cores", "workers", "due", "answered/s", "p99", "lag p99", "not ok", "figures"],
      words: [8],
      sortable: "agents",
      rows: agents.list.map((agent): Cell[] => [
        { text: agent.name },
        { text: count(agent.cores), sort: agent.cores },
        { text: count(agent.workers), sort: agent.workers },
        { text: count(agent.due), sort: agent.due },
        { text: number(agent.answered_per_s), sort: agent.answered_per_s },
        time(agent.response_p99_ns),
        time(agent.lag_p99_ns),
        { text: count(agent.not_ok), sort: agent.not_ok, ...(agent.not_ok > 0 ? { class: "bad" } : {}) },
        agent.lost
          ? { text: lostText(agent.lost), class: "bad" }
          : { text: JUDGEMENTS[agent.judgement] ?? agent.judgement, ...(agent.judgement === "trustworthy" ? {} : { class: "warning" }) },
      ]),
    }),
  );
}
