// The pages of what was decided over several runs: real ones, small.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFile, writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { blank, labels, launch, open, outside, rows, said } from "./browser.mjs";
import { brunt, directory, goingOn, golden, target } from "./program.mjs";

const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let browser;
let files;
let server;

before(async () => {
  files = await directory();
  browser = await launch();
  server = await target("--delay", "2ms");
});

after(async () => {
  server?.end();
  await browser?.close();
  await files?.end();
});

/** Its page, with nothing to complain of at either width, light and dark. */
async function shown(html) {
  for (const [width, colorScheme] of [[360, "dark"], [390, "dark"], [1280, "light"]]) {
    const { page, complaints } = await open(browser, html, { viewport: { width, height: 900 }, colorScheme });
    const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(wider <= 0, `${wider} pixels wider than its window`);
    await page.evaluate(AXE);
    const { violations } = await page.evaluate(() => window.axe.run());
    assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join("; ")}`), []);
    assert.deepEqual(complaints, []);
    if (width === 1280) return page;
    await page.close();
  }
}

test("a sweep: what its JSON says is in its tables and charts, and again from where it was kept", async () => {
  const [html, json, store, again] = ["sweep.html", "sweep.json", "sweep.db", "again.html"].map(files.path);
  await brunt("sweep", "-c", "1,2,4", "-t", "1", "-n", "300", "-w", "0s", "--store", store, "--name", "knee", "--tag", "branch=main", "--html", html, "-o", json, server.url);
  const result = JSON.parse(await readFile(json, "utf8"));
  const page = await shown(html);
  assert.deepEqual((await rows(page, "steps")).map(([value]) => value), ["1", "2", "4"]);
  const runs = await rows(page, "runs");
  assert.deepEqual(runs.map((row) => [row[0], row[1]]), [["connections 1", "1"], ["connections 2", "2"], ["connections 4", "3"]]);
  assert.deepEqual(runs.map((row) => Number(row[7].replaceAll(",", ""))), result.steps.map(({ evidence }) => evidence.ok));
  // What it is called, and how it is made again.
  assert.match(await page.textContent("h1"), /^brunt knee: sweep connections/);
  assert.deepEqual(await page.$$eval("#made .tag", (all) => all.map((one) => one.textContent)), ["branch=main"]);
  assert.match(await page.title(), /knee/);
  assert.match(await page.textContent("#repeat pre"), /^brunt sweep --seed \d+ -n 300 -c 1,2,4 -t 1 -w 0s http\S+$/);
  // A value leads to its run, which opens with the command that makes its page.
  await page.click("#steps tbody tr:nth-child(2) a");
  assert.equal(await page.getAttribute("#run-2 .opener", "aria-expanded"), "true");
  assert.equal(await page.textContent("#run-2 + tr .command code"), `brunt report 2 --store '${store}' -o run-2.html`);
  assert.ok(await page.isVisible("#run-2 + tr #run-1-spectrum"));
  await page.click("#run-2 .opener");
  // Once more, though the address names it already.
  await page.click("#steps tbody tr:nth-child(2) a");
  assert.equal(await page.getAttribute("#run-2 .opener", "aria-expanded"), "true");
  await page.click("#run-2 .opener");
  assert.deepEqual(await page.$$eval("#sweep .ticks a", (all) => all.map((link) => link.getAttribute("href"))), ["#run-1", "#run-2", "#run-3"]);
  const words = await said(page, "sweep");
  assert.match(words[1], /^2 connections, ok\/s \S+, p50 \S+, p90 \S+, p99 \S+$/);
  assert.match(words.at(-1), /^4 connections, /);
  // First what a reader decides by, then the law.
  const found = await page.$$eval("#found p", (all) => all.map((one) => one.textContent));
  assert.match(found[0], /^\d connections answer (the most|[\d,.k]+ calls\/s, (as many as any|\d+% of the most))/);
  assert.equal(await page.textContent("#steps caption"), "one run per value of connections");
  assert.deepEqual(await outside(page, "main"), []);
  assert.deepEqual((await labels(page, "sweep")).filter((label) => /p\d\d/.test(label)).sort(), ["● p50", "● p90", "● p99"]);
  // Each run behind it opens, and says when it was made.
  await page.click("#runs .opener >> nth=1");
  assert.match((await said(page, "run-1-spectrum"))[0], /^p0, response \S+$/);
  assert.equal(new Date(await page.getAttribute("#made time", "datetime")).getTime(), Math.floor(result.steps[0].evidence.started_unix_ms / 1000) * 1000);
  await brunt("report", "last", "--store", store, "-o", again);
  const second = await shown(again);
  assert.deepEqual(await rows(second, "runs"), runs);
  assert.equal(await second.textContent("#found"), await page.textContent("#found"));
  await page.close();
  await second.close();
});

test("a comparison: its ratios have error bars, and hostile flags stay text", async () => {
  const [html, json] = ["compare.html", "compare.json"].map(files.path);
  const header = "<script>window.hacked = 1</script>";
  await brunt("compare", "--rounds", "10", "-t", "1", "-n", "100", "-w", "0s", "--html", html, "-o", json, server.url, "--a", "-c 1", "--b", `-c 2 -H 'X: ${header}'`);
  const { comparison } = JSON.parse(await readFile(json, "utf8"));
  const page = await shown(html);
  assert.deepEqual((await rows(page, "differences")).map(([metric]) => metric), comparison.differences.map(({ metric }) => metric));
  assert.equal((await rows(page, "runs")).length, 20);
  assert.ok((await page.textContent("#made")).includes(header));
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  // A figure that was not measured often enough is left out of the comparison: the rate of runs this short may be.
  const [first] = comparison.differences;
  const row = (await rows(page, "differences")).find(([metric]) => metric === first.metric);
  const off = (ratio) => ((text) => (Number(text) === 0 ? "0%" : `${ratio < 1 ? "−" : "+"}${text}%`))((Math.abs(ratio - 1) * 100).toFixed(1));
  assert.equal(row[4], `[${off(first.low_ratio)}, ${off(first.high_ratio)}]`);
  assert.equal(await page.locator("#differences svg.interval").count(), comparison.differences.length);
  // Plain words first; both sides over each other; told apart by marks.
  assert.match(await page.textContent("#found p"), /^(B's p\d+ is \d|B's mean|B answers \d|no difference seen)/);
  assert.deepEqual((await labels(page, "spectra")).sort(), ["A", "B"]);
  assert.ok((await said(page, "spectra")).some((words) => /^p90, A \S+, B \S+$/.test(words)));
  assert.deepEqual((await labels(page, "rounds-drawn")).sort(), ["○ A", "○ A", "● B", "● B"].sort());
  assert.equal((await said(page, "rounds-drawn")).length, 10);
  assert.match((await said(page, "shift-by-percentile"))[0], /^p0, B over A [+−]?\d/);
  assert.deepEqual(await outside(page, "main"), []);
  await page.close();
});

test("a search: live while it goes on, and its answer at the end", async () => {
  const html = files.path("find.html");
  const run = await goingOn("find", "--from", "50", "--highest", "100", "--repeats", "1", "-c", "4", "-t", "1", "-d", "4s", "-w", "0s", "--threshold", "p99<50ms", "--html", html, server.url);
  const live = await blank(browser);
  await live.goto(run.url);
  await live.waitForSelector("#live");
  assert.match(await live.textContent("#live"), /● running trial \d+: [\d.,]+\/s/);
  await live.waitForSelector("#live", { state: "detached", timeout: 600_000 });
  const done = await run.end();
  const page = await shown(html);
  const found = (page) => page.$$eval("#found p", (all) => all.map((one) => one.textContent));
  assert.deepEqual(await found(live), await found(page));
  assert.ok(done.stdout.includes((await found(page))[0].slice(0, 30)), done.stdout);
  assert.ok((await rows(page, "rates")).length > 0);
  assert.ok((await labels(page, "latency")).includes("● met"));
  // Every trial is in the chart, whole.
  assert.deepEqual(await outside(page, "#latency"), []);
  await page.close();
  await live.close();
});

/** The page of a search that was kept, which `change` alters first. */
async function searched(change) {
  const result = JSON.parse(await readFile(golden("capacity-found.json"), "utf8"));
  change(result);
  const [json, html] = ["found.json", "found.html"].map(files.path);
  await writeFile(json, JSON.stringify(result));
  await brunt("report", json, "-o", html);
  const { page } = await open(browser, html);
  return { page, result };
}

test("a search at rates that are no integers names them on its axis, and has its threshold where it is", async () => {
  const { page, result } = await searched((result) => {
    for (const trial of result.trials) trial.rate_per_s /= 100;
    result.answer.low_per_s /= 100;
    result.answer.high_per_s /= 100;
  });
  const rates = [...new Set(result.trials.map(({ rate_per_s }) => rate_per_s))].sort((a, b) => a - b);
  // Each tick is one of the rates, and the first is there; those too near to the one before have none.
  const labels = await page.$$eval("#latency .ticks text", (all) => all.map((text) => ({ text: text.textContent, at: Number(text.dataset.x) / 1000 })));
  const known = rates.map((rate) => String(Number(rate.toPrecision(rate < 10 ? 3 : 4))));
  assert.ok(labels.length >= 5, JSON.stringify(labels));
  for (const { text, at } of labels) {
    assert.ok(known.some((rate) => Math.abs(Number(rate) - Number(text)) <= Number(rate) * 0.01), `${text} is none of ${known}`);
    assert.ok(at > 0 && at < 1, `${text} stands outside`);
  }
  assert.ok(labels.some(({ text }) => text.includes(".")), "none of them is fractional");
  // A rate leads to the trial that is shown for it.
  await page.click("#rates tbody tr:last-child a");
  const opened = await page.$$eval("#runs .opener[aria-expanded=true]", (all) => all.map((one) => one.textContent));
  assert.equal(opened.length, 1);
  assert.match(opened[0], /^trial \d+, [\d.]+\/s, /);
  await page.click("#runs .opener[aria-expanded=true]");
  // p99 over four decades is in the chart, and so is the limit: where 50 ms is on the axis.
  assert.deepEqual(await outside(page, "#latency"), []);
  const limit = await page.$eval("#latency svg[data-plot] path.limit", (path) => [path.getBBox().y, path.viewportElement.viewBox.baseVal.height]);
  const p99s = result.trials.map(({ evidence }) => evidence.p99_ns.value);
  const [low, high] = [Math.min(...p99s) / 1.2, Math.max(...p99s) * 1.2].map(Math.log);
  const expected = (high - Math.log(50e6)) / (high - low);
  assert.ok(Math.abs(limit[0] / limit[1] - expected) < 0.01, `at ${limit[0] / limit[1]}, not at ${expected}`);
  await page.close();
});

test("a threshold far from what was measured is not drawn, and hides nothing", async () => {
  const { page } = await searched((result) => {
    result.plan.thresholds = ["p99<1h"];
  });
  assert.ok(!(await labels(page, "latency")).some((label) => label.startsWith("limit")));
  assert.equal(await page.locator("#latency path.limit").count(), 0);
  assert.deepEqual(await outside(page, "#latency"), []);
  await page.close();
});
