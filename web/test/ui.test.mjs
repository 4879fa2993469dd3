// The pages of kept runs, in a real browser: at two widths, in the dark, with hostile names, and without a script.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { blank, launch } from "./browser.mjs";
import { brunt, directory, kept, target, ui } from "./program.mjs";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const HOSTILE = `"><img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`;

let browser;
let files;
let server;
let pages;

before(async () => {
  files = await directory();
  browser = await launch();
  server = await target();
  const store = files.path("runs.db");
  for (const [version, limit] of [["1.0", "10s"], ["1.0", "10s"], ["1.1", "1ns"], [HOSTILE, "10s"]]) {
    await kept(store, "-n", "300", "-c", "2", "-t", "1", "--name", "nightly", "--tag", `version=${version}`, "--threshold", `p99<${limit}`, server.url);
  }
  await brunt("sweep", "-c", "1,2", "-t", "1", "-n", "100", "-w", "0s", "--store", store, server.url);
  pages = await ui(store);
});

after(async () => {
  pages?.end();
  server?.end();
  await browser?.close();
  await files?.end();
});

/** Opens a page; `complaints` is what its console had to say. */
async function open(path, options) {
  const page = await blank(browser, options);
  const complaints = [];
  page.on("console", (message) => complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.goto(pages.url + path);
  return { page, complaints };
}

for (const options of [{}, { viewport: { width: 390, height: 844 } }, { colorScheme: "dark" }]) {
  test(`every page is accessible and fits: ${JSON.stringify(options)}`, async () => {
    for (const path of ["", "run?number=3", "trend?figure=p99", "compare?run=1"]) {
      // The pages' policy lets no script run, and axe is one.
      const { page, complaints } = await open(path, { ...options, bypassCSP: true });
      await page.addScriptTag({ path: AXE });
      const { violations } = await page.evaluate(() => axe.run());
      assert.deepEqual(violations.map(({ id, nodes }) => [id, nodes[0].html]), [], path);
      const { scroll, width } = await page.evaluate(() => ({ scroll: document.documentElement.scrollWidth, width: innerWidth }));
      assert.ok(scroll <= width, `${path} is ${scroll} px wide on ${width}`);
      assert.deepEqual(complaints.filter((text) => !text.includes("422")), [], path);
      await page.close();
    }
  });
}

test("runs are found, looked at and compared by clicks", async () => {
  const { page, complaints } = await open("");
  assert.equal(await page.locator("tbody tr").count(), 5);
  await page.fill("input[name=tag]", "version=1.0");
  await page.click("text=Filter");
  assert.equal(await page.locator("tbody tr").count(), 2);
  await page.click("text=Reset");
  await page.click("text=Trend of these runs");
  assert.equal(await page.locator("svg.trend a").count(), 4);
  assert.equal(await page.locator("svg.trend .cross").count(), 1);
  // Every dot, and every threshold, lies within the axes.
  const places = await page.$$eval("svg.trend .dot", (dots) => dots.map((dot) => [Number(dot.getAttribute("cx")), Number(dot.getAttribute("cy"))]));
  for (const [x, y] of places) assert.ok(x >= 80 && x <= 900 && y >= 24 && y <= 276, `${x}, ${y}`);
  await page.click("svg.trend a >> nth=2");
  await page.waitForSelector("h1:has-text('Run 3')");
  assert.match(await page.textContent("main"), /✗ failed p99<1ns/);
  await page.click("text=All runs");
  await page.check("input[name=run][value='1']");
  await page.check("input[name=run][value='2']");
  await page.click("text=Compare the two");
  assert.match(await page.textContent("main"), /too short to be compared/);
  assert.notEqual(await page.title(), "owned");
  assert.deepEqual(complaints.filter((text) => !text.includes("422")), []);
  await page.close();
});

test("several runs are exported at once, without a script", async () => {
  const { page } = await open("");
  await page.check("input[name=run][value='1']");
  await page.check("input[name=run][value='3']");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("button:text-is('CSV')")]);
  assert.equal(download.suggestedFilename(), "brunt-2-runs.csv");
  const rows = (await readFile(await download.path(), "utf8")).trim().split("\n");
  assert.deepEqual([...new Set(rows.map((row) => row.split(",")[0]))], ["number", "1", "3"]);
  await page.close();
});

test("the page of a decision leads to the pages of its runs", async () => {
  const { page } = await open("?kind=sweep");
  await page.click("tbody tr a");
  // It has no course of its own.
  assert.equal(await page.locator(".course").count(), 0);
  assert.deepEqual(await page.$$eval("ul.figures li", (all) => all.map((one) => one.textContent.trim())), ["5 connections 1", "6 connections 2"]);
  await page.click("text=Report page");
  await page.click("#run-2 td a");
  await page.waitForSelector("h1:has-text('http://')");
  assert.match(await page.textContent("#settings"), /2 connections/);
  await page.close();
});

test("on a narrow screen what a decision has not got takes no room", async () => {
  const { page } = await open("?kind=sweep", { viewport: { width: 390, height: 844 } });
  const seen = await page.$$eval("tbody td", (cells) => cells.filter((cell) => cell.offsetHeight > 0).map((cell) => cell.dataset.label));
  assert.deepEqual(seen, ["Run", "Begun (UTC)", "Outcome", "What"]);
  await page.close();
});

test("the report page opens, and can reach nothing here", async () => {
  const { page } = await open("run?number=1");
  await page.click("text=Report page");
  await page.waitForSelector("#report h1");
  const reached = await page.evaluate(() => fetch(location.href).then(() => "reached", () => "refused"));
  assert.equal(reached, "refused");
  assert.equal(await page.evaluate(() => origin), "null");
  await page.close();
});

test("names of runs stay text, and a run goes when its button is pressed", async () => {
  const { page } = await open("run?number=4");
  assert.match(await page.textContent("main"), /<script>/);
  assert.notEqual(await page.title(), "owned");
  await page.click("text=Delete…");
  await page.click("button.bad");
  await page.waitForSelector("table");
  assert.equal(await page.locator("tbody tr").count(), 4);
  await page.close();
});
