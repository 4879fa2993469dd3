// The page: what matters first, then charts, then tables.
import { agents } from "./agents";
import { type Data, type Decision, embedded } from "./data";
import { decision } from "./decision";
import { el, openTarget } from "./dom";
import { follow, state } from "./live";
import { names } from "./names";
import { began, named, repeat } from "./origin";
import { charts, distribution, load } from "./overtime";
import { reconcile } from "./reconcile";
import { latency, outcomes, seconds } from "./tables";
import { keyFigures, outcome, thresholds, verdict } from "./verdict";

function header(data: Data): HTMLElement {
  return el(
    "header",
    {},
    el("h1", {}, el("span", { class: "brand" }, "brunt"), " ", named(data.origin), data.title),
    el("p", { class: "faint" }, data.plan.join(", ")),
    began(data),
  );
}

function contents(sections: (HTMLElement | null)[]): HTMLElement {
  const links = sections.flatMap((section) => {
    const title = section?.querySelector("h2")?.textContent;
    return section && title ? [el("li", {}, el("a", { href: `#${section.id}` }, title))] : [];
  });
  return el("nav", { "aria-label": "Contents" }, el("ul", {}, ...links));
}

const KEYS =
  "Drag in a chart to zoom, double-click to reset; with the keyboard, arrows move from point to point, + and - zoom, Escape shows all.";

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
  const first = [outcome(data), keyFigures(data), charts(data)];
  const rest = [verdict(data), thresholds(data), distribution(data), latency(data), outcomes(data), ...names(data), agents(data), load(data)];
  const parts = [header(data), data.live && state(data.live), ...first, contents([...first, ...rest]), ...rest, seconds(data), repeat(data.origin)];
  put(`${data.live ? "● " : ""}brunt ${named(data.origin)}${data.title}`, parts);
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
