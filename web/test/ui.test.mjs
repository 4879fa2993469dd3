// The pages of kept runs, in a real browser: at two widths, in the dark, with hostile names, and without a script.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { blank, launch, outside } from "./browser.mjs";
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

for (const options of [{}, { viewport: { width: 390, height: 844 } }, { viewport: { width: 360, height: 800 } }, { colorScheme: "dark" }]) {
  test(`every page is accessible and fits: ${JSON.stringify(options)}`, async () => {
    for (const path of ["", "?name=nobody", "run?number=3", "run?number=7", "trend?figure=p99", "trend?figure=nothing", "forget?number=1", "compare?run=1"]) {
      // The pages' policy lets no script run, and axe is one.
      const { page, complaints } = await open(path, { ...options, bypassCSP: true });
      await page.addScriptTag({ path: AXE });
      const { violations } = await page.evaluate(() => axe.run());
      assert.deepEqual(violations.map(({ id, nodes }) => [id, nodes[0].html]), [], path);
      const { scroll, width } = await page.evaluate(() => ({ scroll: document.documentElement.scrollWidth, width: innerWidth }));
      assert.ok(scroll <= width, `${path} is ${scroll} px wide on ${width}`);
      // Nothing has to be pushed aside to be read.
      const cut = await page.$$eval("#history .scroll", (all) => all.filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.getAttribute("aria-label")));
      assert.deepEqual(cut, [], path);
      assert.deepEqual(complaints.filter((text) => !text.includes("422")), [], path);
      await page.close();
    }
  });
}

test("what stands here has one design with the report", async () => {
  const looks = async (path) => {
    const { page } = await open(path);
    const found = await page.evaluate(() => ["html", "h1", ".outcome", "thead th", "a"].map((one) => {
      const { color, fontFamily, fontSize, fontWeight, lineHeight } = getComputedStyle(document.querySelector(`main ${one}`) ?? document.querySelector(one));
      return [one, color, fontFamily, fontSize, fontWeight, lineHeight];
    }));
    await page.close();
    return found;
  };
  // The newest, and run 3: a sweep and a run that failed have headlines of other colours.
  const [list, run] = [await looks(""), await looks("run?number=3")];
  const but = (all, ...names) => all.filter(([name]) => !names.includes(name));
  assert.deepEqual(but(list, ".outcome", "a"), but(run, ".outcome", "a"));
});

test("runs are found, looked at and compared by clicks", async () => {
  const { page, complaints } = await open("");
  // Decisions stand apart from single runs.
  assert.deepEqual(await page.$$eval("section tbody", (all) => all.map((one) => one.rows.length)), [4, 1]);
  await page.click("summary");
  await page.fill("input[name=tag]", "version=1.0");
  await page.click("text=Filter >> nth=1");
  assert.equal(await page.locator("tbody tr").count(), 2);
  await page.click("text=Reset");
  await page.click("summary");
  await page.click("text=Trend of these runs");
  assert.equal(await page.locator("#trend a:has(.dot)").count(), 4);
  assert.equal(await page.locator("#trend .cross").count(), 1);
  assert.deepEqual(await outside(page, "#trend"), []);
  await page.click("#trend a:has(.dot) >> nth=2", { force: true });
  await page.waitForSelector("#figures");
  assert.match(await page.textContent("#outcome"), /✗ 1 of 1 threshold failed: p99 \S+ \(limit <1ns\)/);
  await page.click("text=All runs");
  await page.check("input[name=run][value='1']");
  await page.check("input[name=run][value='2']");
  await page.click("text=Compare the two");
  assert.match(await page.textContent("main"), /too short to be compared/);
  assert.notEqual(await page.title(), "owned");
  assert.deepEqual(complaints.filter((text) => !text.includes("422")), []);
  await page.close();
});

test("a run stands on the scale that its column names, beyond its limit where it failed", async () => {
  const { page } = await open("");
  const rows = await page.$$eval(".dots", (all) => all.map((one) => ({ at: one.querySelector(".dot").getBBox().x, beyond: one.querySelector(".beyond")?.getBBox().x, lost: one.querySelector(".dot.orange") !== null })));
  assert.equal(rows.length, 4);
  for (const { at, beyond, lost } of rows) assert.ok(at >= 0 && at <= 170 && (lost ? at >= beyond : true), JSON.stringify(rows));
  assert.deepEqual(rows.map(({ lost }) => lost), [false, true, false, false]);
  const ticks = await page.$$eval(".axis text", (all) => all.map((one) => one.getBoundingClientRect()).map(({ left, right }) => [left, right]));
  assert.ok(ticks.length > 0 && ticks.every(([left], nth) => nth === 0 || left > ticks[nth - 1][1]), JSON.stringify(ticks));
  // A course has its scale.
  for (const words of await page.$$eval(".course", (all) => all.map((one) => one.textContent))) assert.match(words, /\d\S*\/s\S*0$/);
  await page.close();
});

test("an empty history says what to type", async () => {
  const empty = await ui(files.path("none.db"));
  const page = await blank(browser);
  await page.goto(empty.url);
  assert.match(await page.textContent("main"), /No run is kept yet\.Type brunt http:\/\/localhost:8080\//);
  await page.close();
  empty.end();
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

test("the page of a decision is its report, and leads to the pages of its runs", async () => {
  const { page } = await open("?kind=sweep");
  assert.equal(await page.locator(".course").count(), 0);
  await page.click("tbody tr a");
  await page.waitForSelector("#runs-table");
  await page.click("#run-2 td a");
  await page.waitForSelector("#figures");
  assert.match(await page.textContent("#settings"), /2 connections/);
  await page.click("text=Part of 7");
  await page.waitForSelector("#runs-table");
  await page.close();
});

test("the page of a run is the report itself, can reach nothing here, and saves", async () => {
  const { page } = await open("run?number=1");
  assert.equal(await page.locator("pre").count(), 1, "the command alone");
  await page.waitForSelector("#report h1");
  const reached = await page.evaluate(() => fetch(location.href).then(() => "reached", () => "refused"));
  assert.equal(reached, "refused");
  assert.equal(await page.evaluate(() => origin), "null");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#kept >> text=JSON")]);
  assert.equal(download.suggestedFilename(), "brunt-1.json");
  await page.click("text=Trend of runs like it");
  await page.waitForSelector("#trend");
  await page.close();
});

test("names of runs stay text, and a run goes when its button is pressed", async () => {
  const { page } = await open("run?number=4");
  assert.match(await page.textContent("main"), /<script>/);
  assert.notEqual(await page.title(), "owned");
  await page.click("text=Delete run 4…");
  await page.click("text=Keep it");
  await page.click("text=Delete run 4…");
  await page.click("button.bad");
  await page.waitForSelector("table");
  assert.equal(await page.locator("tbody tr").count(), 4);
  await page.close();
});
