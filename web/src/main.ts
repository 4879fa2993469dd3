// The page: what matters first, then charts, then tables.
import { agents } from "./agents";
import { type Data, type Decision, embedded } from "./data";
import { decision } from "./decision";
import { el, openTarget } from "./dom";
import { follow, state } from "./live";
import { names } from "./names";
import { named, repeat } from "./origin";
import { distribution, load } from "./overtime";
import { reconcile } from "./reconcile";
import { showStack } from "./stack";
import { latency, outcomes, seconds } from "./tables";
import { verdict } from "./verdict";

/** The first screen: the page's own, or that of a run that goes on. */
function firstScreen({ first_screen }: Data): HTMLElement {
  const written = document.getElementById("first-screen");
  if (first_screen === undefined && written) return written;
  const fresh = el("div", { id: "first-screen" });
  // brunt wrote it, and everything from elsewhere in it as text.
  fresh.innerHTML = first_screen ?? "";
  return fresh;
}

function contents(sections: (HTMLElement | null)[]): HTMLElement {
  const links = sections.flatMap((section) => {
    const title = section?.querySelector("h2")?.textContent;
    return section && title ? [el("li", {}, el("a", { href: `#${section.id}` }, title))] : [];
  });
  return el("nav", { "aria-label": "Contents" }, el("ul", {}, ...links));
}

const KEYS =
  "Drag in a chart to zoom, double-click to see all; with the keyboard, arrows move from point to point, + and - zoom, Escape shows all.";

function put(title: string, parts: (HTMLElement | null)[]): void {
  document.title = title;
  const footer = el("footer", { class: "faint" }, el("p", {}, KEYS));
  const report = document.getElementById("report");
  if (report) reconcile(report, [...parts, footer].filter((part) => part !== null));
}

function show(data: Data | Decision): void {
  if (data.kind === "run") {
    showRun(data);
    return;
  }
  const [header, ...sections] = decision(data);
  const [live, found, charts] = sections;
  put(`${data.live === null ? "" : "● "}brunt ${named(data.origin)}${data.title}`, [header ?? null, live ?? null, found ?? null, charts ?? null, contents(sections), ...sections.slice(3)]);
}

function showRun(data: Data): void {
  const first = firstScreen(data);
  const rest = [verdict(data), distribution(data), latency(data), outcomes(data), ...names(data), agents(data), load(data)];
  put(`${data.live ? "● " : ""}brunt ${data.title}`, [data.live && state(data.live), first, contents(rest), ...rest, seconds(data), repeat(data.origin)]);
  showStack(data.by_due);
}

function say(problem: string): void {
  const place = document.getElementById("problem");
  if (place) place.textContent = problem;
}

addEventListener("hashchange", openTarget);
const data = embedded();
if (data.kind !== "follow") {
  show(data);
  openTarget();
} else {
  document.getElementById("report")?.replaceChildren(
    el("header", {}, el("h1", {}, el("span", { class: "brand" }, "brunt"), " live")),
    el("p", { id: "problem", role: "status" }, "waiting for the run"),
  );
  follow(show, say);
}
