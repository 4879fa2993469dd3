// The page: what matters first, then charts, then tables.
import { type Data, embedded } from "./data";
import { el } from "./dom";
import { names } from "./names";
import { charts } from "./overtime";
import { latency, outcomes, seconds } from "./tables";
import { keyFigures, thresholds, verdict } from "./verdict";

function header(data: Data): HTMLElement {
  const started = new Date(data.started_unix_ms);
  return el(
    "header",
    {},
    el("h1", {}, el("span", { class: "brand" }, "brunt"), " ", data.url),
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

function show(data: Data): void {
  document.title = `brunt ${data.url}`;
  const sections = [
    verdict(data),
    keyFigures(data),
    thresholds(data),
    latency(data),
    charts(data),
    outcomes(data),
    ...names(data),
  ];
  const keys =
    "Drag in a chart to zoom, click twice to see all; with the keyboard, arrows move from point to point, + and - zoom, Escape shows all. Shaded seconds were spoiled by the generator.";
  const footer = el("footer", { class: "faint" }, el("p", {}, keys));
  document.getElementById("report")?.replaceChildren(
    header(data),
    contents(sections),
    ...sections.flatMap((section) => (section ? [section] : [])),
    seconds(data),
    footer,
  );
}

show(embedded());
