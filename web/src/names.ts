// Figures by name: requests and tags, groups, checks, scenarios.
import { type Calls, type Data, type Distribution, type Names, type Own, valueOf } from "./data";
import { type Cell, el, section, table } from "./dom";
import { requestOverTime } from "./drilldown";
import { bound, count, counted, number, percent, size, within } from "./format";

/** From so many names on, those that matter come first. */
const LONG = 20;
/** The quantiles that tables have. */
const SHOWN = ["p50", "p95", "p99"];
/** And those of calls that are ok and those that are not, apart. */
const APART = ["p50", "p99"];

const whole = (n: number): Cell => ({ text: count(n), sort: n });
const wrong = (n: number): Cell => ({ text: count(n), sort: n, ...(n > 0 ? { class: "bad" } : {}) });

function times(distribution: Distribution | null, quantiles: string[]): Cell[] {
  return SHOWN.map((name) => {
    const at = quantiles.indexOf(name);
    const value = distribution?.quantiles_ns[at];
    if (value === undefined) return { text: "–", sort: -1 };
    return { text: bound(value), sort: valueOf(value), ...(typeof value === "number" && !distribution?.spoiled_quantiles?.includes(at) ? {} : { class: "warning" }), title: within(distribution?.quantile_ends_ns?.[at]) };
  });
}

function calls(title: string, id: "requests" | "tags", all: Calls[], { quantiles, drilldown }: Data): HTMLElement | null {
  if (all.length === 0) return null;
  const ended = (calls: Calls): string =>
    [
      ...calls.statuses.filter(({ status }) => status !== 0).map(({ status, name, count: n }) => `${name === undefined ? status : `${status} ${name}`} × ${count(n)}`),
      ...calls.failures.map(({ failure, count: n }) => `${failure} × ${count(n)}`),
      ...(calls.unfinished > 0 ? [`unfinished × ${count(calls.unfinished)}`] : []),
      ...(calls.unsent > 0 ? [`unsent × ${count(calls.unsent)}`] : []),
    ].join(", ");
  const tracks = drilldown?.[id];
  const opens = (name: string): Cell["opens"] => {
    const at = tracks?.tracks.findIndex((track) => track.name === name) ?? -1;
    return tracks && at >= 0 && tracks.start_ms.length > 1 ? () => requestOverTime(tracks, at, id) : undefined;
  };
  // Worst first: what failed, then what is slow.
  const p99 = ({ response }: Calls): number => valueOf(response?.quantiles_ns[quantiles.indexOf("p99")] ?? 0);
  const worst = [...all].sort((a, b) => b.error_ratio - a.error_ratio || p99(b) - p99(a));
  // A failure that is quick makes a name look fast, and one that is slow makes it look slow.
  const isApart = all.some(({ response_not_ok }) => response_not_ok !== null);
  const apart = (times: Distribution | null): Cell[] =>
    APART.map((name) => {
      const value = times?.quantiles_ns[quantiles.indexOf(name)];
      return value === undefined ? { text: "–", sort: -1 } : { text: bound(value), sort: valueOf(value), ...(typeof value === "number" ? {} : { class: "warning" }) };
    });
  const ends = isApart ? ["ok", "not ok"].flatMap((kind) => APART.map((name) => `${name} ${kind}`)) : [];
  const noun = id === "tags" ? "tag" : "name";
  const head = [noun, "due", "answered/s", "not ok", "error rate", ...SHOWN, "max", ...ends, "ended as", "in"];
  return section(
    title,
    id,
    table({
      caption: [
        `${counted(all.length, noun)}, response times`,
        isApart && "those of answers whose status is ok, and of all other calls, apart",
        tracks && tracks.start_ms.length > 1 && `open a ${noun} to see it over time`,
      ]
        .filter(Boolean)
        .join("; "),
      head,
      words: [head.length - 2],
      sortable: id,
      rows: (all.length > LONG ? worst : all).map((one) => [
        { text: one.name, opens: opens(one.name) },
        whole(one.due),
        { text: number(one.answered_per_s), sort: one.answered_per_s },
        wrong(one.not_ok),
        { text: percent(one.error_ratio), sort: one.error_ratio, ...(one.not_ok > 0 ? { class: "bad" } : {}) },
        ...times(one.response, quantiles),
        one.response ? { text: bound(one.response.max_ns), sort: valueOf(one.response.max_ns) } : "–",
        ...(isApart ? [...apart(one.response_not_ok ? one.response_ok : one.response), ...apart(one.response_not_ok)] : []),
        ended(one),
        { text: size(one.clear_in_bytes), sort: one.clear_in_bytes },
      ]),
    }),
  );
}

function groups({ groups }: Names, quantiles: string[]): HTMLElement | null {
  if (groups.length === 0) return null;
  return section(
    "Groups",
    "groups",
    table({
      caption: "without the pauses of users, and with them",
      head: ["group", "count", "failed", "unfinished", ...SHOWN, ...SHOWN.map((name) => `${name} with pauses`)],
      sortable: "groups",
      rows: groups.map((group) => [
        group.name,
        whole(group.count),
        wrong(group.failed),
        wrong(group.unfinished),
        ...times(group.without_pauses, quantiles),
        ...times(group.with_pauses, quantiles),
      ]),
    }),
  );
}

function checks({ checks }: Names): HTMLElement | null {
  if (checks.length === 0) return null;
  const failed = checks.filter(({ fails }) => fails > 0).length;
  return section(
    "Checks",
    "checks",
    table({
      caption: failed > 0 ? `${failed} of ${counted(checks.length, "check")} failed at times` : "every check held",
      head: ["check", "held", "failed", "of all", "such as"],
      words: [4],
      sortable: "checks",
      rows: checks.map(({ call, check, passes, fails, example }) => [
        call === null ? check : `${call}: ${check}`,
        whole(passes),
        wrong(fails),
        { text: passes + fails > 0 ? percent(fails / (passes + fails)) : "–", sort: fails / Math.max(passes + fails, 1) },
        example ? [example.status ?? "", example.body].filter((part) => part !== "").join(" ") : "",
      ]),
    }),
  );
}

function scenarios(names: Names, quantiles: string[]): HTMLElement | null {
  if (names.scenarios.length === 0) return null;
  const tracebacks = names.scenarios.flatMap((scenario) =>
    scenario.tracebacks.map(({ traceback, count: n }) =>
      el("li", {}, el("p", { class: "bad" }, `${scenario.name}: ${counted(n, "error")}`), el("pre", { tabindex: 0, role: "region", "aria-label": "traceback" }, traceback)),
    ),
  );
  return section(
    "Scenarios",
    "scenarios",
    table({
      caption: `at most ${counted(names.most_users, "user")} at once; times are of whole iterations`,
      head: ["scenario", "users started", "from the warm-up", "ended", "not admitted", "out of rows", "iterations", "cut short", "errors", ...SHOWN],
      sortable: "scenarios",
      rows: names.scenarios.map((one) => [
        one.name,
        whole(one.users_started),
        whole(one.users_before),
        whole(one.users_ended),
        wrong(one.not_admitted),
        wrong(one.out_of_rows),
        whole(one.iterations),
        whole(one.unfinished),
        wrong(one.errors),
        ...times(one.iteration, quantiles),
      ]),
    }),
    tracebacks.length > 0 && el("ul", { class: "tracebacks" }, ...tracebacks),
  );
}

function own({ own }: Names): HTMLElement | null {
  if (own.length === 0) return null;
  const value = (n: number | null | undefined): Cell => (n == null ? { text: "–", sort: -Infinity } : { text: number(n), sort: n });
  const first = (one: Own): Cell => {
    if (one.ratio !== null) return { text: percent(one.ratio), sort: one.ratio };
    if (one.sum !== null) return { text: `${number(one.sum)}, ${number(one.sum_per_s ?? 0)}/s`, sort: one.sum };
    return value(one.last);
  };
  return section(
    "Figures of the script",
    "own",
    table({
      caption: "counted by the script itself: the sum of a counter, the share of a rate, the last value of a gauge, the distribution of a trend",
      head: ["figure", "kind", "unit", "recorded", "value", ...SHOWN, "mean", "min", "max"],
      words: [1, 2],
      sortable: "own",
      rows: own.map((one) => [
        one.name,
        one.kind,
        one.unit,
        whole(one.count),
        first(one),
        ...SHOWN.map((name) => value(one.quantiles.find((quantile) => quantile.name === name)?.value)),
        value(one.mean),
        value(one.min),
        value(one.max),
      ]),
    }),
  );
}

export function names(data: Data): (HTMLElement | null)[] {
  const { names, quantiles } = data;
  if (!names) return [];
  const crowded = names.crowded.length > 0 && `There were more ${names.crowded.join(" and ")} than are told apart; the rest count as (others).`;
  return [
    calls("Requests", "requests", names.requests, data),
    calls("Tags", "tags", names.tags, data),
    groups(names, quantiles),
    checks(names),
    scenarios(names, quantiles),
    own(names),
    crowded ? el("p", { class: "warning" }, crowded) : null,
  ];
}
