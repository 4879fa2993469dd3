// The page of what goes on: what it shows comes from where the page came from, again and again. What did not change stays as it is, and what its
// reader did stays done.
(() => {
  "use strict";
  const FOCUSABLE = "a, button, input, summary, [tabindex]";
  const main = document.getElementById("report");

  /** Parts by their ids; those without one by what they are, and which of these. */
  function named(parts) {
    const seen = new Map();
    return new Map(
      parts.map((part) => {
        const nth = seen.get(part.tagName) ?? 0;
        if (!part.id) seen.set(part.tagName, nth + 1);
        return [part.id || `${part.tagName} ${nth}`, part];
      }),
    );
  }

  /** What each part was when it came: scripts change what is shown of it. */
  const came = new WeakMap();

  /** Makes the children of `parent` be as `fresh` are; those that are known by their names stay. */
  function reconcile(parent, fresh) {
    const [known, next] = [named([...parent.children]), named(fresh)];
    for (const [name, old] of known) if (!next.has(name)) old.remove();
    [...next].forEach(([name, part], i) => {
      const old = known.get(name);
      const text = part.outerHTML;
      if (old && came.get(old) !== text) replace(old, part);
      const shown = old?.isConnected ? old : part;
      if (shown === part) came.set(part, text);
      // What is moved loses the focus, so nothing is that need not be.
      if (parent.children[i] !== shown) parent.insertBefore(shown, parent.children[i] ?? null);
    });
  }

  /** Puts `fresh` in the place of `old`, with what was scrolled, chosen, opened and focused there. */
  function replace(old, fresh) {
    const scrolled = [...old.querySelectorAll(".scroll")].map((region) => region.scrollLeft);
    const active = old.contains(document.activeElement) ? document.activeElement : null;
    const focused = active ? [...old.querySelectorAll(FOCUSABLE)].indexOf(active) : -1;
    const chosen = [...old.querySelectorAll("input:checked")].map(({ id }) => id);
    const isOpen = old instanceof HTMLDetailsElement && old.open;
    const opened = [...old.querySelectorAll("details")].map((details) => details.open);
    old.replaceWith(fresh);
    fresh.querySelectorAll(".scroll").forEach((region, i) => {
      region.scrollLeft = scrolled[i] ?? 0;
    });
    for (const id of chosen) if (id) fresh.querySelector(`#${CSS.escape(id)}`)?.click();
    if (fresh instanceof HTMLDetailsElement) fresh.open = isOpen;
    fresh.querySelectorAll("details").forEach((details, i) => {
      details.open = opened[i] ?? false;
    });
    if (!active) return;
    document.dispatchEvent(new Event("brunt:shown"));
    const place = (active.id && document.getElementById(active.id)) || fresh.querySelectorAll(FOCUSABLE)[focused];
    place?.focus({ preventScroll: true });
  }

  function show(event) {
    const { title, main: parts } = JSON.parse(event.data);
    document.title = `brunt ${title}`;
    const place = document.createElement("template");
    // brunt wrote it, and everything from elsewhere in it as text.
    place.innerHTML = parts;
    // What was said of a lost connection goes, even where nothing else is new.
    const live = document.getElementById("live");
    if (live?.classList.contains("lost")) came.delete(live);
    reconcile(main, [...place.content.children]);
    document.dispatchEvent(new Event("brunt:shown"));
  }

  const events = new EventSource("events");
  let kept;
  events.addEventListener("data", show);
  events.addEventListener("kept", (event) => {
    kept = event.data;
  });
  /** What changes the run, where brunt says that it takes changes: asked for at `change`, beside the events. */
  async function takeChanges() {
    const known = await fetch("change").catch(() => undefined);
    if (!known?.ok) return;
    const form = document.createElement("form");
    form.id = "change";
    form.setAttribute("aria-label", "change this run");
    const { rate, users } = await known.json();
    form.innerHTML =
      (rate ? '<label>Calls a second <input name="rate" inputmode="decimal" size="8"></label> <button value="rate">Set rate</button> ' : "") +
      (users ? '<label>Virtual users <input name="users" inputmode="numeric" size="8"></label> <button value="users">Set users</button> ' : "") +
      '<button value="pause">Pause</button> <button value="resume">Resume</button> ' +
      '<label>Mark <input name="mark" maxlength="200" size="20"></label> <button value="mark">Set mark</button> <output></output>';
    // By itself Enter in any field presses the first button.
    form.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.isComposing || !(event.target instanceof HTMLInputElement)) return;
      event.preventDefault();
      form.requestSubmit(form.querySelector(`button[value="${event.target.name}"]`));
    });
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const [what, said] = [event.submitter.value, form.querySelector("output")];
      const text = form.elements[what]?.value;
      // A field that is empty, or no number, is not 0: brunt says what it expects.
      const number = text?.trim() ? Number(text) : NaN;
      const action = { rate: { rate: number }, users: { users: number }, mark: { mark: text } }[what] ?? what;
      const body = JSON.stringify(action);
      const headers = { "Content-Type": "application/json" };
      const answer = await fetch("change", { method: "POST", headers, body }).catch(() => undefined);
      said.textContent = answer ? await answer.text() : "No connection to brunt.";
    });
    main.before(form);
  }
  takeChanges();
  events.addEventListener("finished", (event) => {
    events.close();
    document.getElementById("change")?.remove();
    show(event);
    const ended = document.createElement("p");
    ended.id = "finished";
    ended.setAttribute("role", "status");
    ended.textContent = kept === undefined ? "● finished" : `● finished, kept as ${kept}: brunt show ${kept}`;
    main.prepend(ended);
  });
  events.addEventListener("error", () => {
    const live = document.getElementById("live");
    live?.classList.add("lost");
    const running = live?.querySelector("strong");
    if (running) running.textContent = "○ no connection";
    const problem = document.getElementById("problem");
    if (problem) problem.textContent = "No connection to brunt: it has ended, or this page will catch up in a moment.";
  });
})();
