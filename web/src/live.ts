// The page of a run that goes on: what it shows comes from where the page came from, again and again.
import type { Data, Decision, Live } from "./data";
import { el } from "./dom";
import { bound, count, counted, duration, number } from "./format";

/** Shows with `show` what there is to show, until it is the finished report; what is wrong meanwhile, with `say`. */
export function follow(show: (data: Data | Decision) => void, say: (problem: string) => void): void {
  const events = new EventSource("events");
  const shown = (event: MessageEvent<string>): void => show(JSON.parse(event.data) as Data | Decision);
  events.addEventListener("data", shown);
  let kept: string | undefined;
  events.addEventListener("kept", (event: MessageEvent<string>) => {
    kept = event.data;
  });
  events.addEventListener("finished", (event: MessageEvent<string>) => {
    events.close();
    shown(event);
    finished(kept);
  });
  events.addEventListener("error", () => say("No connection to brunt: it has ended, or this page will catch up in a moment."));
}

/** From so long on a waiting call is worth a word, in nanoseconds. */
const LONG_WAIT_NS = 1e9;

const whole = (ns: number): string => duration(Math.floor(ns / 1e9) * 1e9).replace(".00s", "s");

function howFar({ phase, elapsed_ns, planned_ns, planned_requests }: Live): string {
  const of = planned_ns ? ` of ${whole(planned_ns)}` : "";
  const requests = planned_requests && phase === "measuring" ? `, until ${counted(planned_requests, "request")} are done` : "";
  return `${phase}, ${whole(elapsed_ns)}${of}${requests}`;
}

/** What the last second was like, and how far the run is. */
export function state(live: Live): HTMLElement {
  const parts = [
    `${number(live.answered_per_s)}/s`,
    live.p50_ns !== null && live.p99_ns !== null && `p50 ${bound(live.p50_ns)}, p99 ${bound(live.p99_ns)}`,
    live.not_ok > 0 && `${count(live.not_ok)} not ok`,
    live.users !== null && counted(live.users, "user"),
    `${counted(live.open_connections, "connection")} open`,
    `${counted(live.in_flight, "call")} in flight`,
  ].filter(Boolean);
  const share = live.planned_ns ? Math.min(live.elapsed_ns / live.planned_ns, 1) : null;
  return el(
    "div",
    { id: "live", role: "group", "aria-label": "live" },
    el("p", {}, el("strong", {}, "● running"), ` ${howFar(live)}`),
    share !== null && el("progress", { max: 1, value: share, "aria-label": "how far the run is" }),
    live.elapsed_ns > 0 && el("p", { class: "faint" }, `in the last second: ${parts.join(", ")}`),
    // In a stall nothing ends, and percentiles are of what ended.
    (live.backlog > 0 || (live.oldest_ns ?? 0) >= LONG_WAIT_NS) &&
      el(
        "p",
        { class: (live.oldest_ns ?? 0) >= LONG_WAIT_NS ? "warning" : "", id: "backlog" },
        [
          live.backlog > 0 && `${counted(live.backlog, "call")} due and not sent`,
          (live.oldest_ns ?? 0) >= LONG_WAIT_NS && `the oldest call has waited ${whole(live.oldest_ns ?? 0)} and is in no percentile yet`,
        ]
          .filter(Boolean)
          .join("; "),
      ),
    live.missed > 0 &&
      el("p", { class: "warning" }, `${counted(live.missed, "second")} came too fast for this page and are in none of its figures; the finished report has them`),
    el("p", { id: "problem", class: "warning", role: "status" }),
  );
}

/** Says that the run has ended, and what it is kept as, to who watched it. */
function finished(kept: string | undefined): void {
  const words = kept === undefined ? "● finished" : `● finished, kept as ${kept}: brunt show ${kept}`;
  document.querySelector("main header")?.after(el("div", { id: "finished", role: "status" }, words));
}
