// The page: what matters first, then charts, then tables.
import { type Data, embedded } from "./data";
import { type Decision, decision } from "./decision";
import { el, section, when } from "./dom";
import { follow, state } from "./live";
import { names } from "./names";
import { charts, distribution, load } from "./overtime";
import { reconcile } from "./reconcile";
import { latency, outcomes, seconds } from "./tables";
import { keyFigures, outcome, thresholds, verdict } from "./verdict";

function header(data: Data): HTMLElement {
  return el(
    "header",
    {},
    el("h1", {}, el("span", { class: "brand" }, "brunt"), " ", data.origin.name !== undefined && `${data.origin.name}: `, data.title),
    el("p", { class: "faint" }, data.plan.join(", ")),
    el(
      "p",
      { class: "faint" },
      when(data.started_unix_ms),
      `, brunt ${data.brunt_version}`,
      ...Object.entries(data.origin.tags ?? {}).flatMap(([key, value]) => [" ", el("span", { class: "tag" }, `${key}=${value}`)]),
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
  const [live, found, charts] = sections;
  put(`${data.live === null ? "" : "● "}brunt ${data.title}`, [header ?? null, live ?? null, found ?? null, charts ?? null, contents(sections), ...sections.slice(3)]);
}

/** The command that makes the run again. */
function repeat({ origin }: Data): HTMLElement | null {
  return section("Run it again", "repeat", origin.command && el("pre", { tabindex: 0, role: "region", "aria-label": "command" }, origin.command));
}

function showRun(data: Data): void {
  const first = [outcome(data), keyFigures(data), charts(data)];
  const rest = [verdict(data), thresholds(data), distribution(data), latency(data), outcomes(data), ...names(data), load(data)];
  const parts = [header(data), data.live && state(data.live), ...first, contents([...first, ...rest]), ...rest, seconds(data), repeat(data)];
  const name = data.origin.name === undefined ? "" : `${data.origin.name}: `;
  put(`${data.live ? "● " : ""}brunt ${name}${data.title}`, parts);
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
