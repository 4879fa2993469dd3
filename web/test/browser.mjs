// A real Chromium, and the page in it.
import assert from "node:assert/strict";
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
  await page.waitForFunction(
    () => document.querySelectorAll("figure").length === document.querySelectorAll("figure .uplot").length,
  );
  return { page, complaints };
}

/** The rows of a table in the section of that id, as texts. */
export const rows = (page, section) =>
  page.$$eval(`#${section} tbody tr`, (rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));

/** Everything that can be read in the page. */
export const text = (page) => page.$eval("main", (main) => main.textContent);

/** Pixels of a chart's plotting area that are of a colour of the style sheet, and where: shares of its width and height. */
export const inked = (page, chart, colour) =>
  page.$eval(
    `#${chart}`,
    (figure, colour) => {
      const canvas = figure.querySelector("canvas");
      const wanted = getComputedStyle(document.documentElement).getPropertyValue(`--${colour}`).trim();
      const rgb = [1, 3, 5].map((at) => Number.parseInt(wanted.slice(at, at + 2), 16));
      const over = figure.querySelector(".u-over");
      const scale = canvas.width / canvas.clientWidth;
      const [left, top, width, height] = [over.offsetLeft, over.offsetTop, over.clientWidth, over.clientHeight].map((n) => Math.round(n * scale));
      const { data } = canvas.getContext("2d").getImageData(left, top, width, height);
      const places = [];
      for (let i = 0; i < data.length; i += 4) {
        if (rgb.every((part, at) => Math.abs(part - data[i + at]) < 12) && data[i + 3] > 200) {
          places.push([((i / 4) % width) / width, Math.floor(i / 4 / width) / height]);
        }
      }
      return places;
    },
    colour,
  );

/** Whether a line of that colour goes from one end to the other without leaving at the top or the bottom. */
export async function isWithin(page, chart, colour) {
  const places = await inked(page, chart, colour);
  assert.ok(places.length > 20, `${chart}: no ${colour} in it`);
  const ys = places.map(([, y]) => y);
  const [highest, lowest] = [Math.min(...ys), Math.max(...ys)];
  assert.ok(highest > 0 && lowest < 1, `${chart}: ${colour} is cut off, ${highest} to ${lowest}`);
}
