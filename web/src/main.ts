// The page: what matters first, then charts, then tables.
import { type Data, embedded } from "./data";
import { type Decision, decision } from "./decision";
import { el } from "./dom";
import { follow, state } from "./live";
import { names } from "./names";
import { charts } from "./overtime";
import { reconcile } from "./reconcile";
import { latency, outcomes, seconds } from "./tables";
import { keyFigures, outcome, thresholds, verdict } from "./verdict";

function header(data: Data): HTMLElement {
  const started = new Date(data.started_unix_ms);
  return el(
    "header",
    {},
    el("h1", {}, el("span", { class: "brand" }, "brunt"), " ", data.title),
    el("p", { class: "faint" }, data.plan.join(", ")),
    el(
      "p",
      { class: "faint" },
      el("time", { datetime: started.toISOString() }, started.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" })),
      `, brunt ${data.brunt_version}`,
    ),
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
  put(`${data.live === null ? "" : "● "}brunt ${data.title}`, [header ?? null, contents(sections), ...sections]);
}

function showRun(data: Data): void {
  const sections = [
    outcome(data),
    keyFigures(data),
    verdict(data),
    thresholds(data),
    charts(data),
    latency(data),
    outcomes(data),
    ...names(data),
  ];
  const parts = [
    header(data),
    data.live && state(data.live),
    contents(sections),
    ...sections,
    seconds(data),
  ];
  put(`${data.live ? "● " : ""}brunt ${data.title}`, parts);
}

function say(problem: string): void {
  const place = document.getElementById("problem");
  if (place) place.textContent = problem;
}

const data = embedded();
if (data.kind !== "follow") {
  show(data);
} else {
  document.getElementById("report")?.replaceChildren(
    el("header", {}, el("h1", {}, el("span", { class: "brand" }, "brunt"), " live")),
    el("p", { id: "problem", role: "status" }, "waiting for the run"),
  );
  follow(show, say);
}
