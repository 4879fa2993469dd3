// The run over time, which brunt drew: zoom, a cursor, and the figures of what is pointed at.
import type { ByDue } from "./data";
import { bound, count, number } from "./format";

/** How wide the drawing is in its own units. */
const ACROSS = 1000;
/** What a clock has steps of, in seconds. */
const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600];
/** The most times on the axis. */
const MOST_TIMES = 10;
/** What is shown beside a stretch that a link leads to, as a share of it. */
const BESIDE = 0.5;
/** The narrowest that can be zoomed to, in seconds. */
const NARROWEST = 0.2;

let stretches: ByDue | undefined;
/** What is seen, in seconds; all where it is not set. */
let seen: [number, number] | undefined;
/** The stretch that is pointed at. */
let pointed = -1;

const stack = (): HTMLElement | null => document.getElementById("stack");
const plots = (): SVGSVGElement | null | undefined => stack()?.querySelector<SVGSVGElement>(".plots");

/** How long the run is, in seconds. */
function span(): number {
  const last = (stretches?.start_ms.length ?? 0) - 1;
  return stretches && last >= 0 ? ((stretches.start_ms[last] ?? 0) + (stretches.length_ms[last] ?? 0)) / 1000 : 0;
}

const shown = (): [number, number] => seen ?? [0, span()];

/** `0:05` or `0:02.5`, as brunt writes places in a run. */
function clock(seconds: number): string {
  const tenths = Math.round(seconds * 10);
  const rest = tenths % 10;
  return `${Math.floor(tenths / 600)}:${String(Math.floor(tenths / 10) % 60).padStart(2, "0")}${rest ? `.${rest}` : ""}`;
}

/** The stretch that the page's address names, as `#t=2.6-4.5`. */
function named(): [number, number] | undefined {
  const [, from, to] = location.hash.match(/^#t=(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/) ?? [];
  return from === undefined || to === undefined || Number(to) < Number(from) ? undefined : [Number(from), Number(to)];
}

/** Takes over the drawing of a run, whose figures these are. */
export function showStack(figures: ByDue): void {
  stretches = figures;
  if (seen === undefined) follow();
  else draw();
}

/** Shows the stretch that the address names, and something beside it. */
function follow(): void {
  const found = named();
  if (!found) return draw();
  const beside = Math.max((found[1] - found[0]) * BESIDE, 0.5);
  look(found[0] - beside, found[1] + beside);
}

/** Shows these seconds; all where they are. */
function look(from: number, to: number): void {
  const end = span();
  const [a, b] = [Math.max(from, 0), Math.min(to, end)];
  seen = b - a < NARROWEST || (a <= 0 && b >= end) ? undefined : [a, b];
  draw();
}

function draw(): void {
  const [end, place] = [span(), plots()];
  if (!place || end === 0) return;
  const [from, to] = shown();
  const [left, width] = [(from / end) * ACROSS, ((to - from) / end) * ACROSS];
  for (const plot of place.querySelectorAll<SVGSVGElement>("svg[data-plot]")) {
    const height = plot.viewBox.baseVal.height;
    plot.setAttribute("viewBox", `${left} 0 ${width} ${height}`);
  }
  times(place, from, to);
  for (const text of place.querySelectorAll<SVGTextElement>("text[data-x]")) {
    const share = (Number(text.dataset.x) - left) / width;
    text.setAttribute("x", `${share * 100}%`);
    text.classList.toggle("outside", share < -0.001 || share > 1.001);
  }
  point(pointed);
}

/** The axis of time, anew. */
function times(place: SVGSVGElement, from: number, to: number): void {
  const group = place.querySelector<SVGGElement>(".times");
  if (!group) return;
  const step = STEPS.find((step) => (to - from) / step <= MOST_TIMES) ?? Math.ceil((to - from) / MOST_TIMES / 3600) * 3600;
  const texts: SVGTextElement[] = [];
  for (let nth = Math.ceil(from / step - 1e-9); nth * step <= to + 1e-9; nth++) {
    const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
    text.setAttribute("class", "time");
    text.setAttribute("data-x", String(((nth * step) / span()) * ACROSS));
    text.setAttribute("y", group.dataset.y ?? "0");
    text.textContent = clock(nth * step);
    texts.push(text);
  }
  group.replaceChildren(...texts);
}

/** Points at a stretch: a line through all panels, and its figures in words. */
function point(at: number): void {
  const place = plots();
  const readout = stack()?.querySelector(".readout");
  if (!place || !readout || !stretches) return;
  const [start, length] = [stretches.start_ms[at], stretches.length_ms[at]];
  const cursor = place.querySelector(".cursor") ?? place.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "line"));
  if (start === undefined || length === undefined) {
    pointed = -1;
    cursor.remove();
    readout.textContent = "";
    return;
  }
  pointed = at;
  const [from, to] = shown();
  const share = ((start + length / 2) / 1000 - from) / (to - from);
  for (const [name, value] of Object.entries({ class: "cursor", x1: `${share * 100}%`, x2: `${share * 100}%`, y1: 18, y2: Number(place.querySelector<SVGGElement>(".times")?.dataset.y ?? 0) - 15 })) {
    cursor.setAttribute(name, String(value));
  }
  cursor.classList.toggle("outside", share < 0 || share > 1);
  const time = (name: string, values: ByDue["p50_ns"]): string => {
    const value = values[at];
    return value === null || value === undefined ? `no ${name}` : `${name} ${bound(value)}`;
  };
  const notOk = stretches.not_ok_per_s[at] ?? 0;
  readout.textContent = [
    clock(start / 1000),
    time("p50", stretches.p50_ns),
    time("p99", stretches.p99_ns),
    time("max", stretches.max_ns),
    `${number(stretches.ok_per_s[at] ?? 0)} ok/s`,
    ...(notOk > 0 ? [`${number(notOk)} not ok/s`] : []),
    `${count(stretches.waiting[at] ?? 0)} under way`,
  ].join(", ");
}

/** The time at a place of the window, in seconds. */
function timeAt(clientX: number): number | undefined {
  const box = plots()?.getBoundingClientRect();
  if (!box || box.width === 0) return undefined;
  const [from, to] = shown();
  return from + ((clientX - box.left) / box.width) * (to - from);
}

/** The stretch at a time. */
function stretchAt(seconds: number): number {
  const starts = stretches?.start_ms ?? [];
  let at = starts.length - 1;
  while (at > 0 && (starts[at] ?? 0) > seconds * 1000) at--;
  return at;
}

/** Where a drag began, in seconds. */
let begun: number | undefined;

function drag(to: number): void {
  const place = plots();
  if (!place || begun === undefined) return;
  const [from, until] = shown();
  const shares = [begun, to].map((at) => Math.min(Math.max((at - from) / (until - from), 0), 1)).sort((a, b) => a - b);
  const band = place.querySelector(".chosen") ?? place.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "rect"));
  const [a = 0, b = 0] = shares;
  for (const [name, value] of Object.entries({ class: "chosen", x: `${a * 100}%`, width: `${(b - a) * 100}%`, y: 18, height: Number(place.querySelector<SVGGElement>(".times")?.dataset.y ?? 33) - 33 })) {
    band.setAttribute(name, String(value));
  }
}

const isWithin = (event: Event): boolean => event.target instanceof Element && event.target.closest("#stack") !== null;

addEventListener("pointermove", (event) => {
  const at = isWithin(event) || begun !== undefined ? timeAt(event.clientX) : undefined;
  if (at === undefined) return;
  if (begun !== undefined) drag(at);
  if (at >= 0 && at <= span()) point(stretchAt(at));
});
addEventListener("pointerdown", (event) => {
  if (isWithin(event) && event.button === 0 && event.pointerType !== "touch") begun = timeAt(event.clientX);
});
addEventListener("pointerup", (event) => {
  const [from, to] = [begun, timeAt(event.clientX)];
  begun = undefined;
  plots()?.querySelector(".chosen")?.remove();
  if (from === undefined || to === undefined || Math.abs(to - from) < (shown()[1] - shown()[0]) / 100) return;
  look(Math.min(from, to), Math.max(from, to));
});
addEventListener("dblclick", (event) => {
  if (isWithin(event)) look(0, span());
});
addEventListener("keydown", (event) => {
  if (event.target !== stack()) return;
  const last = (stretches?.start_ms.length ?? 0) - 1;
  const [from, to] = shown();
  const middle = pointed < 0 ? (from + to) / 2 : (stretches?.start_ms[pointed] ?? 0) / 1000;
  const quarter = (to - from) / 4;
  switch (event.key) {
    case "ArrowRight":
      point(Math.min(pointed + 1, last));
      break;
    case "ArrowLeft":
      point(Math.max(pointed - 1, 0));
      break;
    case "Home":
      point(0);
      break;
    case "End":
      point(last);
      break;
    case "+":
      look(middle - quarter, middle + quarter);
      break;
    case "-":
      look(middle - 4 * quarter, middle + 4 * quarter);
      break;
    case "Escape":
      look(0, span());
      break;
    default:
      return;
  }
  event.preventDefault();
});
addEventListener("hashchange", () => {
  if (named()) follow();
});
