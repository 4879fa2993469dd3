// A real Chromium, and the page in it.
import { existsSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

/** Where Debian's packages put it. */
const PLACES = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"];

/** How long anything may take, in milliseconds: longer than a busy machine stands still. */
const PATIENCE = 120_000;

export async function launch() {
  const executablePath = process.env.CHROMIUM ?? PLACES.find((place) => existsSync(place));
  if (!executablePath) throw new Error("no Chromium: `make test-packages` installs it, or name one in CHROMIUM");
  return chromium.launch({ executablePath, timeout: PATIENCE, args: process.getuid() === 0 ? ["--no-sandbox"] : [] });
}

/** An empty page. */
export async function blank(browser, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, locale: "en-GB", ...options });
  page.setDefaultTimeout(PATIENCE);
  return page;
}

/** Opens the file. `complaints` is what its console, its errors and its requests had to say: nothing, in a good page. */
export async function open(browser, file, options = {}) {
  const page = await blank(browser, options);
  const url = pathToFileURL(file).href;
  const complaints = [];
  page.on("console", (message) => complaints.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("request", (request) => {
    const to = request.url();
    if (to !== url && !to.startsWith("data:")) complaints.push(`request: ${to}`);
  });
  await page.goto(url);
  return { page, complaints };
}

/** The rows of a table in the section of that id, as texts. */
export const rows = (page, section) =>
  page.$$eval(`#${section} tbody tr:not(.below)`, (rows) => rows.map((row) => [...row.cells].map((cell) => cell.querySelector(".opener")?.textContent ?? cell.textContent)));

/** Everything that can be read in the page. */
export const text = (page) => page.$eval("main", (main) => main.textContent);

/** Goes through all points of a drawing by the keyboard; what is said of each. */
export async function said(page, drawing) {
  await page.focus(`#${drawing}`);
  const all = [];
  await page.keyboard.press("Home");
  for (;;) {
    const words = await page.textContent(`#${drawing} .readout`);
    if (words === all.at(-1)) return all;
    all.push(words);
    await page.keyboard.press("ArrowRight");
  }
}

/** What stands at the ends of a drawing's lines. */
export const labels = (page, drawing) => page.$$eval(`#${drawing} .end`, (all) => all.map((label) => label.textContent));

/** What is drawn in a place and lies outside of its plot, or at no place at all. */
export const outside = (page, place) =>
  page.$$eval(`${place} svg[data-plot]`, (plots) =>
    plots.flatMap((plot) => {
      const { x, y, width, height } = plot.viewBox.baseVal;
      return [...plot.querySelectorAll("path")].flatMap((path) => {
        const box = path.getBBox();
        const fits = box.x >= x - 0.2 && box.y >= y - 0.2 && box.x + box.width <= x + width + 0.2 && box.y + box.height <= y + height + 0.2;
        return fits && !/NaN|Infinity/.test(path.getAttribute("d")) ? [] : [`${path.getAttribute("class")}: ${box.x} ${box.y} ${box.width} ${box.height} in ${width} ${height}`];
      });
    }),
  );
