// Figures as tables: latency, outcomes, seconds.
import type { Bound, Data, Distribution } from "./data";
import { el, section, table, type Cell } from "./dom";
import { countedOverTime } from "./drilldown";
import { isMaximum } from "./verdict";
import { bound, clock, count, counted, duration, number, percent, size, within } from "./format";

const cell = (time: Bound): Cell => ({ text: bound(time), ...(typeof time === "number" ? {} : { class: "warning" }) });

export function latency({ times, quantiles, outcomes }: Data): HTMLElement | null {
  if (times.length === 0) return null;
  const quantile = (times: Distribution, i: number): Cell => ({
    ...cell(times.quantiles_ns[i] ?? 0),
    ...(isMaximum(quantiles[i] ?? "", times.count) ? { class: "faint" } : {}),
    ...(times.spoiled_quantiles?.includes(i) ? { class: "warning" } : {}),
  });
  const rows: [string, (times: Distribution) => Cell][] = [
    ["mean", (times) => cell(times.mean_ns)],
    ["stdev", (times) => cell(times.stdev_ns)],
    ["min", (times) => cell(times.min_ns)],
    ...quantiles.map((name, i): [string, (times: Distribution) => Cell] => [name, (times) => quantile(times, i)]),
    ["max", (times) => cell(times.max_ns)],
    ["count", (times) => ({ text: count(times.count) })],
  ];
  const open = outcomes.unfinished + outcomes.unsent;
  // Beside each time that has ends, a column for them.
  const ends = (name: string, times: Distribution): string[] =>
    times.quantile_ends_ns ? [within(times.quantile_ends_ns[quantiles.indexOf(name)])] : [];
  const hasEnds = times.some(([, { quantile_ends_ns }]) => quantile_ends_ns !== undefined);
  return section(
    "Latency",
    "latency",
    table({
      caption: `response from when a call was due, service from when it was sent${hasEnds ? "; within: 95% sampling and brunt's own delays" : ""}`,
      head: ["figure", ...times.flatMap(([name, { quantile_ends_ns }]) => (quantile_ends_ns ? [name, `${name} within`] : [name]))],
      rows: rows.map(([name, of]) => [name, ...times.flatMap(([, distribution]) => [of(distribution), ...ends(name, distribution)])]),
    }),
    open > 0 &&
      el("p", { class: "faint" }, `≥ at least: ${counted(open, "call")} had not ended and count with the time they had waited`),
  );
}

export function outcomes(data: Data): HTMLElement | null {
  const { outcomes, connections, measured_bytes: bytes, rates } = data;
  const parts: [number, string][] = [
    [outcomes.answered, "answered"],
    [outcomes.failed, "failed"],
    [outcomes.unfinished, "unfinished"],
    [outcomes.unsent, "unsent"],
    [outcomes.unknown, "unknown (agent lost)"],
  ];
  const ended = parts.reduce((sum, [n]) => sum + n, 0);
  const listed = parts.filter(([n], i) => i === 0 || n > 0).map(([n, what]) => `${count(n)} ${what}`);
  // While the run goes on, calls have yet to end.
  if (data.live && ended < outcomes.due) listed.push(`${count(outcomes.due - ended)} not ended yet`);
  const adds = ended === outcomes.due || (data.live && ended < outcomes.due);
  const sum = `${count(outcomes.due)} due ${adds ? "=" : "≠ (a fault in brunt: please report it)"} ${listed.join(" + ")}`;
  const share = (n: number): Cell => ({ text: outcomes.due > 0 ? percent(n / outcomes.due) : "–", sort: n });
  const statuses = outcomes.statuses.filter(({ status }) => status !== 0);
  const { drilldown } = data;
  /** One of the tracks over time, below its row. */
  const opens = (kind: "statuses" | "failures" | "whole_failures", name: string): Pick<Cell, "opens"> => {
    const tracks = drilldown?.[kind];
    const at = tracks?.tracks.findIndex((track) => track.name === name) ?? -1;
    return tracks && at >= 0 && tracks.start_ms.length > 1 ? { opens: () => countedOverTime(tracks, at, kind) } : {};
  };
  const reasons = outcomes.failures.flatMap(({ failure, count: n, reasons }) => [
    [{ text: failure, class: "bad", ...opens("whole_failures", failure) }, { text: count(n), sort: n }, share(n)],
    ...reasons
      .filter(({ reason }) => reason !== "")
      .map(({ reason, count: of }) => [{ text: `${failure}: ${reason}`, ...opens("failures", `${failure}: ${reason}`) }, { text: count(of), sort: of }, share(of)]),
  ]);
  const statusCell = (status: number, name: string | undefined): Cell => {
    const text = name === undefined ? String(status) : `${status} ${name}`;
    return { text, sort: status, ...opens("statuses", text) };
  };
  const notes: [number, string][] = [
    [outcomes.waited_for_connection, "waited for a free connection"],
    [outcomes.unasked, "messages that nobody asked for"],
  ];
  const { stream_limit_ns: full, flow_control_ns: blocked } = outcomes.held_back;
  const held = [full > 0 && `${duration(full)} by the limit of streams`, blocked > 0 && `${duration(blocked)} by flow control`].filter(Boolean);
  const events = Object.entries(outcomes.events).map(([name, n]) => `${name} × ${count(n)}`);
  const made = [
    `${count(connections.made)} made`,
    connections.failed > 0 && `${count(connections.failed)} failed`,
    connections.tls_resumed > 0 && `${count(connections.tls_resumed)} resumed a TLS session`,
    connections.reconnects > 0 && `${count(connections.reconnects)} calls sent again after an idle one was closed`,
    connections.turned_away > 0 && `${count(connections.turned_away)} calls sent again that the server had not processed`,
    ...connections.troubles.flatMap(({ failure, reasons }) =>
      reasons.map(({ reason, count: n }) => `${count(n)} in trouble without cost to a call (${failure}: ${reason})`),
    ),
  ].filter(Boolean);
  return section(
    "Outcomes",
    "outcomes",
    el("p", { class: "sum" }, sum),
    statuses.length > 0 &&
      table({
        caption: "answers by status",
        head: ["status", "answers", "of all calls", "counts as"],
        words: [3],
        rows: statuses.map(({ status, name, count: n, ok }) => [
          statusCell(status, name),
          { text: count(n), sort: n },
          share(n),
          { text: ok ? "a success" : "not ok", class: ok ? "" : "bad" },
        ]),
        sortable: "statuses",
      }),
    reasons.length > 0 &&
      table({ caption: "failures by name, with the reasons given", head: ["failure", "calls", "of all calls"], sortable: "failures", rows: reasons }),
    ...notes.filter(([n]) => n > 0).map(([n, what]) => el("p", {}, `${count(n)} ${what}`)),
    events.length > 0 && el("p", {}, `Protocol events: ${events.join(", ")}`),
    held.length > 0 && el("p", {}, `Held back, over all connections: ${held.join(", ")}`),
    el("p", {}, `Connections: ${made.join(", ")}. Bytes: ${size(rates.wire_in_bytes_per_s)}/s in (${size(bytes.wire_in_bytes)}), ${size(rates.wire_out_bytes_per_s)}/s out (${size(bytes.wire_out_bytes)}).`),
  );
}

/** Every point of the series as text, made when it is asked for. */
export function seconds({ series, live }: Data): HTMLElement | null {
  // A table that changes under its reader is of no use.
  if (live) return null;
  const details = el("details", { id: "seconds" }, el("summary", {}, "Each second as a table"));
  details.addEventListener(
    "toggle",
    () => {
      const time = (values: (Bound | null)[], i: number): Cell => {
        const value = values[i];
        return value === null || value === undefined ? { text: "–" } : cell(value);
      };
      const rows = series.start_ms.map((start, i) => [
        clock(start / 1000) + (series.spoiled.includes(i) ? " !" : ""),
        number(series.due_per_s[i] ?? 0),
        number(series.answered_per_s[i] ?? 0),
        number(series.not_ok_per_s[i] ?? 0),
        time(series.p50_ns, i),
        time(series.p90_ns, i),
        time(series.p99_ns, i),
        time(series.max_ns, i),
        series.lag_p99_ns[i] == null ? "–" : duration(series.lag_p99_ns[i] ?? 0),
        percent(series.busiest_worker_cpu_ratio[i] ?? 0),
        percent(series.most_starved_worker_ratio[i] ?? 0),
        ...(series.users ? [count(series.users[i] ?? 0)] : []),
      ]);
      const head = ["at", "due/s", "answered/s", "not ok/s", "p50", "p90", "p99", "max", "lag p99", "CPU", "no CPU"];
      if (series.users) head.push("users");
      details.append(table({ caption: "! marks what the generator spoiled", head, rows }));
    },
    { once: true },
  );
  return details;
}
