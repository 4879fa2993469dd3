// Drawings over an axis: a cursor and what is said of a place; and of those over time, zoom. What brunt drew stays as it is.
(() => {
  "use strict";
  /** How wide every drawing is in its own units. */
  const ACROSS = 1000;
  /** What a clock has steps of, in seconds. */
  const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600];
  /** The most times on the axis. */
  const MOST_TIMES = 10;
  /** What is shown beside a stretch that a link leads to, as a share of it. */
  const BESIDE = 0.5;
  /** The narrowest that can be zoomed to, in seconds. */
  const NARROWEST = 0.2;
  const SVG = "http://www.w3.org/2000/svg";

  /** What is seen of the run, in seconds; all where it is not set. */
  let seen;
  /** Which point of which drawing is pointed at, by the drawing's id. */
  const pointed = new Map();
  /** Where a drag began: in which drawing, and at which share of it. */
  let begun;

  const stacks = () => document.querySelectorAll(".stack");
  const plotsOf = (stack) => stack.querySelector(":scope > .plots");
  /** How long a drawing's axis is, in seconds; none where it is not one of time. */
  const spanOf = (stack) => (stack.dataset.spanMs === undefined ? undefined : Number(stack.dataset.spanMs) / 1000);

  /** What is said of each place: from, to, words. */
  const pointsOf = (stack) =>
    (stack.dataset.points ?? "").split("\n").filter(Boolean).map((line) => {
      const [from, to, words] = line.split("|");
      return { from: Number(from), to: Number(to), words };
    });

  /** The part of a drawing that is seen, in its own units. */
  function windowOf(stack) {
    const span = spanOf(stack);
    if (seen === undefined || !span || seen[0] >= span) return [0, ACROSS];
    return [(seen[0] / span) * ACROSS, (Math.min(seen[1], span) / span) * ACROSS];
  }

  /** `0:05` or `0:02.5`, as brunt writes places in a run. */
  function clock(seconds) {
    const tenths = Math.round(seconds * 10);
    const two = (n) => String(n).padStart(2, "0");
    const [h, m, s] = [Math.floor(tenths / 36000), Math.floor(tenths / 600) % 60, Math.floor(tenths / 10) % 60];
    return `${h > 0 ? `${h}:${two(m)}` : m}:${two(s)}${tenths % 10 ? `.${tenths % 10}` : ""}`;
  }

  /** The stretch that the page's address names, as `#t=2.6-4.5`. */
  function named() {
    const [, from, to] = location.hash.match(/^#t=(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/) ?? [];
    return from === undefined || to === undefined || Number(to) < Number(from) ? undefined : [Number(from), Number(to)];
  }

  /** Shows the stretch that the address names, and something beside it. */
  function follow() {
    const found = named();
    if (!found) return draw();
    const beside = Math.max((found[1] - found[0]) * BESIDE, 0.5);
    look(found[0] - beside, found[1] + beside);
  }

  /** The longest axis of time. */
  const longest = () => Math.max(0, ...[...stacks()].map((stack) => spanOf(stack) ?? 0));

  /** Shows these seconds because a hand asked for them: the page's address names them from then on. */
  function choose(from, to) {
    look(from, to);
    const hash = seen ? `#t=${seen.map((at) => at.toFixed(1)).join("-")}` : " ";
    try {
      if (seen || named()) history.replaceState(null, "", hash.trim() || location.pathname + location.search);
    } catch {
      // A page without an address of its own, as within another, keeps what it has.
    }
  }

  /** Shows these seconds in every drawing over time; all where they are. */
  function look(from, to) {
    const [a, b] = [Math.max(from, 0), Math.min(to, longest())];
    seen = b - a < NARROWEST || (a <= 0 && b >= longest()) ? undefined : [a, b];
    draw();
  }

  function draw() {
    for (const stack of stacks()) {
      if (spanOf(stack)) zoom(stack);
      point(stack, pointed.get(stack.id) ?? -1);
    }
  }

  function zoom(stack) {
    const place = plotsOf(stack);
    if (!place) return;
    const [left, right] = windowOf(stack);
    const width = right - left;
    for (const plot of place.querySelectorAll("svg[data-plot]")) {
      plot.setAttribute("viewBox", `${left} 0 ${width} ${plot.viewBox.baseVal.height}`);
    }
    times(stack, place, left, width);
    for (const text of place.querySelectorAll("text[data-x]")) {
      const share = (Number(text.dataset.x) - left) / width;
      text.setAttribute("x", `${share * 100}%`);
      text.classList.toggle("outside", share < -0.001 || share > 1.001);
    }
  }

  /** The axis of time, anew. */
  function times(stack, place, left, width) {
    const group = place.querySelector(".ticks");
    const span = spanOf(stack);
    if (!group || (left === 0 && width === ACROSS && !group.dataset.moved)) return;
    group.dataset.moved = "moved";
    const [from, to] = [(left / ACROSS) * span, ((left + width) / ACROSS) * span];
    const step = STEPS.find((step) => (to - from) / step <= MOST_TIMES) ?? Math.ceil((to - from) / MOST_TIMES / 3600) * 3600;
    const texts = [];
    for (let nth = Math.ceil(from / step - 1e-9); nth * step <= to + 1e-9; nth++) {
      const text = document.createElementNS(SVG, "text");
      text.setAttribute("class", "time");
      text.setAttribute("data-x", String(((nth * step) / span) * ACROSS));
      text.setAttribute("y", group.dataset.y ?? "0");
      text.textContent = clock(nth * step);
      texts.push(text);
    }
    group.replaceChildren(...texts);
  }

  /** From where to where panels stand, in pixels. */
  const heights = (place) => {
    const { top, y } = place.querySelector(".ticks")?.dataset ?? {};
    return [Number(top ?? 0), Number(y ?? 15) - 15];
  };

  /** Points at a place: a line through all panels, and its figures in words. */
  function point(stack, at) {
    const [place, readout] = [plotsOf(stack), stack.querySelector(":scope > .readout")];
    if (!place || !readout || (at < 0 && !pointed.has(stack.id))) return;
    const found = pointsOf(stack)[at];
    const cursor = place.querySelector(".cursor") ?? place.appendChild(document.createElementNS(SVG, "line"));
    if (!found) {
      pointed.delete(stack.id);
      cursor.remove();
      readout.textContent = "";
      return;
    }
    pointed.set(stack.id, at);
    const [left, right] = windowOf(stack);
    const share = ((found.from + found.to) / 2 - left) / (right - left);
    const [y1, y2] = heights(place);
    for (const [name, value] of Object.entries({ class: "cursor", x1: `${share * 100}%`, x2: `${share * 100}%`, y1, y2 })) {
      cursor.setAttribute(name, String(value));
    }
    cursor.classList.toggle("outside", share < 0 || share > 1);
    if (readout.textContent !== found.words) readout.textContent = found.words;
  }

  /** The place in a drawing, in its own units, at a place of the window. */
  function unitsAt(stack, clientX) {
    const box = plotsOf(stack)?.getBoundingClientRect();
    if (!box || box.width === 0) return undefined;
    const [left, right] = windowOf(stack);
    return left + ((clientX - box.left) / box.width) * (right - left);
  }

  /** The point nearest to a place. */
  function nearest(stack, units) {
    const points = pointsOf(stack);
    const away = ({ from, to }) => (units >= from && units <= to ? 0 : Math.min(Math.abs(units - from), Math.abs(units - to)));
    return points.reduce((best, one, at) => (best < 0 || away(one) < away(points[best]) ? at : best), -1);
  }

  function drag(stack, to) {
    const place = plotsOf(stack);
    const [left, right] = windowOf(stack);
    const shares = [begun.at, to].map((at) => Math.min(Math.max((at - left) / (right - left), 0), 1)).sort((a, b) => a - b);
    const band = place.querySelector(".chosen") ?? place.appendChild(document.createElementNS(SVG, "rect"));
    const [y, bottom] = heights(place);
    for (const [name, value] of Object.entries({ class: "chosen", x: `${shares[0] * 100}%`, width: `${(shares[1] - shares[0]) * 100}%`, y, height: Math.max(bottom - y, 0) })) {
      band.setAttribute(name, String(value));
    }
  }

  const within = (event) => (event.target instanceof Element ? event.target.closest(".stack") : null);

  addEventListener("pointermove", (event) => {
    const stack = begun?.stack ?? within(event);
    const at = stack && unitsAt(stack, event.clientX);
    if (at === undefined || at === null) return;
    if (begun) drag(stack, at);
    if (at >= 0 && at <= ACROSS) point(stack, nearest(stack, at));
  });
  addEventListener("pointerdown", (event) => {
    const stack = within(event);
    if (!stack || !spanOf(stack) || event.button !== 0 || event.pointerType === "touch") return;
    begun = { stack, at: unitsAt(stack, event.clientX) };
  });
  addEventListener("pointerup", (event) => {
    if (!begun) return;
    const { stack, at } = begun;
    begun = undefined;
    plotsOf(stack)?.querySelector(".chosen")?.remove();
    const [to, [left, right]] = [unitsAt(stack, event.clientX), windowOf(stack)];
    if (at === undefined || to === undefined || Math.abs(to - at) < (right - left) / 100) return;
    const span = spanOf(stack) ?? 0;
    choose((Math.min(at, to) / ACROSS) * span, (Math.max(at, to) / ACROSS) * span);
  });
  addEventListener("dblclick", (event) => {
    if (within(event)) choose(0, longest());
  });
  addEventListener("keydown", (event) => {
    const stack = event.target;
    if (!(stack instanceof Element) || !stack.matches(".stack") || event.ctrlKey || event.metaKey || event.altKey) return;
    const [points, at, span] = [pointsOf(stack), pointed.get(stack.id) ?? -1, spanOf(stack)];
    const [from, to] = windowOf(stack).map((units) => (units / ACROSS) * (span ?? 0));
    const middle = span && points[at] ? (points[at].from / ACROSS) * span : (from + to) / 2;
    const quarter = (to - from) / 4;
    const keys = {
      ArrowRight: () => point(stack, Math.min(at + 1, points.length - 1)),
      ArrowLeft: () => point(stack, Math.max(at - 1, 0)),
      Home: () => point(stack, 0),
      End: () => point(stack, points.length - 1),
      "+": () => span && choose(middle - quarter, middle + quarter),
      "-": () => span && choose(middle - 4 * quarter, middle + 4 * quarter),
      Escape: () => choose(0, longest()),
    };
    if (!(event.key in keys)) return;
    keys[event.key]();
    event.preventDefault();
  });
  addEventListener("hashchange", () => {
    if (named()) follow();
  });

  /** A drawing as a file of its own: what the style sheet says of it is written into it. */
  function standalone(plots) {
    const copy = plots.cloneNode(true);
    const kept = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "vector-effect", "font-size", "font-weight", "text-anchor", "display"];
    const originals = plots.querySelectorAll("*");
    copy.querySelectorAll("*").forEach((element, i) => {
      const style = getComputedStyle(originals[i]);
      for (const name of kept) element.setAttribute(name, style.getPropertyValue(name));
    });
    const [left, right, above] = [70, 180, 4];
    const [width, height] = [plots.clientWidth || plots.getBoundingClientRect().width, plots.getBoundingClientRect().height];
    copy.setAttribute("width", String(width));
    copy.setAttribute("x", String(left));
    copy.setAttribute("y", String(above));
    const file = document.createElementNS(SVG, "svg");
    file.setAttribute("xmlns", SVG);
    file.setAttribute("font-family", "system-ui, sans-serif");
    file.setAttribute("viewBox", `0 0 ${width + left + right} ${height + 2 * above}`);
    const ground = document.createElementNS(SVG, "rect");
    ground.setAttribute("width", "100%");
    ground.setAttribute("height", "100%");
    ground.setAttribute("fill", getComputedStyle(document.documentElement).backgroundColor);
    file.append(ground, copy);
    return new XMLSerializer().serializeToString(file);
  }

  addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("button.svg") : null;
    const section = button?.closest("section");
    for (const stack of section?.querySelectorAll(".stack") ?? []) {
      const place = plotsOf(stack);
      if (!place || place.getBoundingClientRect().width === 0) continue;
      const link = document.createElement("a");
      link.download = `${stack.id}.svg`;
      link.href = URL.createObjectURL(new Blob([standalone(place)], { type: "image/svg+xml" }));
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    }
  });

  function begin() {
    for (const button of document.querySelectorAll("button.svg")) button.hidden = false;
    draw();
  }
  document.addEventListener("brunt:shown", begin);
  begin();
  follow();
})();
