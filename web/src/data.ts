// What the page is given; written by crates/report/src/html/data.rs. Units are in the names.

import type { Decision } from "./decision";

/** Nanoseconds; in a list, a lower bound: the true time may be longer. */
export type Bound = number | [number];

export const valueOf = (bound: Bound): number => (typeof bound === "number" ? bound : bound[0]);

export interface Distribution {
  count: number;
  mean_ns: Bound;
  stdev_ns: Bound;
  min_ns: number;
  quantiles_ns: Bound[];
  /** What each may be, by sampling (95 %) and the generator's own delays; null where nothing is known from above. */
  quantile_ends_ns?: [number, number | null][];
  /** The places of those that own delays spoil. */
  spoiled_quantiles?: number[];
  max_ns: Bound;
}

/** What stands out about the target or the plan. */
export interface Remark {
  about: "no_success" | "no_messages" | "redirects" | "connections" | "outage";
  message: string;
  advice: string;
}

export interface Finding {
  cause: string;
  /** Missing in older results. */
  spoils?: "throughput" | "latency" | "arrivals";
  message: string;
  advice: string;
  decisive: boolean;
  seconds: { first: number; last: number }[];
}

export interface Outcomes {
  due: number;
  answered: number;
  failed: number;
  unfinished: number;
  unsent: number;
  not_ok: number;
  error_ratio: number;
  waited_for_connection: number;
  unasked: number;
  /** What the protocol counted besides calls, by its name. */
  events: Record<string, number>;
  held_back: { stream_limit_ns: number; flow_control_ns: number };
  statuses: (Status & { ok: boolean })[];
  failures: { failure: string; count: number; reasons: { reason: string; count: number }[] }[];
}

/** Columns of figures, one row a point in time. */
export interface Series {
  start_ms: number[];
  length_ms: number[];
  /** Rows that the generator spoiled. */
  spoiled: number[];
  due_per_s: number[];
  answered_per_s: number[];
  not_ok_per_s: number[];
  waited_for_connection_per_s: number[];
  in_bytes_per_s: number[];
  out_bytes_per_s: number[];
  p50_ns: (Bound | null)[];
  p90_ns: (Bound | null)[];
  p99_ns: (Bound | null)[];
  max_ns: (Bound | null)[];
  service_p99_ns: (number | null)[];
  lag_p99_ns: (number | null)[];
  busiest_worker_cpu_ratio: number[];
  most_starved_worker_ratio: number[];
  users?: number[];
  open_connections?: number[];
}

/** Tracks over common stretches, one figure a stretch. */
export interface Tracks<T> {
  start_ms: number[];
  length_ms: number[];
  tracks: T[];
}

/** Calls with one name. */
export interface RequestTrack {
  name: string;
  ended_per_s: number[];
  not_ok_per_s: number[];
  p50_ns: (number | null)[];
  p99_ns: (number | null)[];
}

/** Calls that ended in one way. */
export interface CountedTrack {
  name: string;
  ok: boolean;
  count: number;
  per_s: number[];
}

/** Calls over time by request name, status and reason of failure. */
export interface Drilldown {
  requests: Tracks<RequestTrack>;
  tags: Tracks<RequestTrack>;
  statuses: Tracks<CountedTrack>;
  /** By reason. */
  failures: Tracks<CountedTrack>;
  /** Each with all of its reasons. */
  whole_failures: Tracks<CountedTrack>;
}

/** How many calls took how long: bar, calls, those of them that are not a success. */
export interface Bars {
  /** Bar i begins at 2^(i / this) ns. */
  bars_an_octave: number;
  bars: [number, number, number][];
}

export interface HeatMap {
  /** Bin i begins at 2^(i / this) ns. */
  bins_an_octave: number;
  /** Where columns begin, and where the last one ends. */
  edges_ms: number[];
  /** Of each column: bin, count, bin, count, … */
  columns: number[][];
}

export interface Spectrum {
  name: string;
  /** Share of calls that took longer, and the time. */
  points: [number, Bound][];
}

/** Answers with one status, and what that is called where the protocol has a name for it. */
export interface Status {
  status: number;
  name?: string;
  count: number;
}

export interface Calls {
  name: string;
  due: number;
  answered: number;
  answered_per_s: number;
  failed: number;
  unfinished: number;
  unsent: number;
  not_ok: number;
  error_ratio: number;
  clear_in_bytes: number;
  clear_out_bytes: number;
  statuses: Status[];
  failures: { failure: string; count: number }[];
  response: Distribution | null;
  /** Of answers whose status is ok, where there are others; and of the others. */
  response_ok: Distribution | null;
  response_not_ok: Distribution | null;
}

export interface Group {
  name: string;
  count: number;
  failed: number;
  unfinished: number;
  with_pauses: Distribution | null;
  without_pauses: Distribution | null;
}

export interface Check {
  call: string | null;
  check: string;
  passes: number;
  fails: number;
  example: { status: number | null; body: string } | null;
}

export interface Scenario {
  name: string;
  users_before: number;
  users_started: number;
  users_ended: number;
  not_admitted: number;
  out_of_rows: number;
  iterations: number;
  unfinished: number;
  errors: number;
  iteration: Distribution | null;
  tracebacks: { traceback: string; count: number }[];
}

/** A figure of the script's own, in its unit. */
export interface Own {
  name: string;
  kind: "counter" | "rate" | "trend" | "gauge";
  unit: string;
  count: number;
  sum: number | null;
  sum_per_s: number | null;
  ratio: number | null;
  last: number | null;
  min: number | null;
  max: number | null;
  mean: number | null;
  quantiles: { name: string; value: number }[];
}

export interface Names {
  most_users: number;
  requests: Calls[];
  tags: Calls[];
  groups: Group[];
  checks: Check[];
  scenarios: Scenario[];
  own: Own[];
  crowded: string[];
}

/** A run that goes on. */
export interface Live {
  phase: string;
  elapsed_ns: number;
  planned_ns: number | null;
  planned_requests: number | null;
  open_connections: number;
  in_flight: number;
  /** Calls that were due and are not sent. */
  backlog: number;
  /** How long the oldest call had been due that had not ended. */
  oldest_ns: number | null;
  users: number | null;
  /** Of the last second. */
  answered_per_s: number;
  not_ok: number;
  p50_ns: Bound | null;
  p99_ns: Bound | null;
  /** What each agent did in the last second, of a run that agents carry out. */
  agents?: { name: string; answered: number; not_ok: number; p99_ns: Bound | null; lag_p99_ns: number | null; is_saturated: boolean; is_silent: boolean }[];
  /** Seconds that are in no figure. */
  missed: number;
}

/** How an agent was lost. */
export interface Lost {
  after_ns: number;
  reason: string;
  taken_over_ns?: number;
  users_missed?: number;
}

/** What the agents of a run did. */
export interface Agents {
  start_skew_ns: number | null;
  start_skew_uncertainty_ns: number | null;
  list: {
    name: string;
    cores: number;
    workers: number;
    began_ns: number;
    lost: Lost | null;
    due: number;
    not_ok: number;
    answered_per_s: number;
    response_p99_ns: number | null;
    lag_p99_ns: number | null;
    judgement: string;
  }[];
}

/** What a user calls a run or decision, its tags, and the command that repeats it. */
export interface Origin {
  name?: string;
  tags?: Record<string, string>;
  command?: string;
}

export interface Data {
  kind: "run";
  live: Live | null;
  brunt_version: string;
  started_unix_ms: number;
  /** What its user calls the run, and the command that repeats it. */
  origin: Origin;
  ending: "completed" | "interrupted" | { failed: string } | { aborted: string } | { stopped: string };
  title: string;
  plan: string[];
  is_open: boolean;
  verdict: { judgement: string; sentence: string; findings: Finding[] };
  remarks: Remark[];
  rates: {
    answered_per_s: number;
    due_per_s: number;
    wire_in_bytes_per_s: number;
    wire_out_bytes_per_s: number;
  };
  outcomes: Outcomes;
  measured_ns: number;
  measured_bytes: { wire_in_bytes: number; wire_out_bytes: number };
  connections: { made: number; failed: number; reconnects: number; tls_resumed: number; troubles: Outcomes["failures"] };
  health: { busiest_worker_cpu_ratio: number; most_starved_worker_ratio: number };
  thresholds: { threshold: string; got: string; held: boolean }[];
  quantiles: string[];
  times: [string, Distribution][];
  series: Series;
  drilldown: Drilldown | null;
  agents: Agents | null;
  heat_map: HeatMap | null;
  bars: Bars | null;
  spectra: Spectrum[];
  names: Names | null;
}

/** What stands in the page; or that it comes later, from where the page came from. */
export function embedded(): Data | Decision | { kind: "follow" } {
  const place = document.getElementById("data");
  return JSON.parse(place?.textContent ?? "null") as Data | Decision | { kind: "follow" };
}
