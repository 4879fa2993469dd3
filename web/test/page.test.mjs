// The report page in a real browser: of real runs, and of results that were kept.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { labels, launch, open, outside, rows, said, text } from "./browser.mjs";
import { brunt, directory, golden, makePages, target } from "./program.mjs";

const RESULTS = ["clean", "open", "failing", "tls", "silent", "interrupted", "empty", "shop"];
const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let browser;
let files;

before(async () => {
  files = await directory();
  await makePages(files.path(""));
  browser = await launch();
});

after(async () => {
  await browser?.close();
  await files?.end();
});

/** The page of a result that was kept. */
async function pageOf(name, options = {}) {
  const result = JSON.parse(await readFile(golden(`${name}.json`), "utf8"));
  const html = files.path(`kept-${name}.html`);
  await brunt("report", golden(`${name}.json`), "-o", html);
  return { ...(await open(browser, html, options)), html, result };
}

/** A page that crates/report/tests/pages.rs makes. */
async function made(name) {
  const result = JSON.parse(await readFile(files.path(`${name}.json`), "utf8"));
  const html = files.path(`${name}.html`);
  return { ...(await open(browser, html)), html, result };
}

/** Time, figure and text of every cell of the text report's table, but of calls by success and of the ends of intervals. */
function latencies(report) {
  const figures = ["calls", "mean", "stdev", "min", "p50", "p75", "p90", "p95", "p99", "p99.9", "p99.99", "max"];
  const lines = report.split("\n");
  const first = lines.findIndex((line) => line.startsWith("Latency"));
  const cells = [];
  let head = [];
  for (const line of lines.slice(first, lines.indexOf("", first))) {
    const [, time, rest] = line.match(/^ {2}(response|service|first byte|connect|TLS|handshake|lag) +(.*)$/) ?? [];
    const names = line.replace(/^Latency( ✗)?/, "").trim().split(/\s+/);
    if (names.every((name) => figures.includes(name))) head = names;
    if (time) rest.split(/\s+/).forEach((text, i) => cells.push([time, head[i] === "calls" ? "count" : head[i], text]));
  }
  return cells;
}

for (const name of RESULTS) {
  test(`${name}: nothing to complain of, and the numbers of the text report`, async () => {
    const { page, complaints } = await pageOf(name);
    const report = await readFile(golden(`${name}.txt`), "utf8");
    assert.deepEqual(complaints, []);
    const shown = await text(page);
    const head = await page.$$eval("#latency thead th", (cells) => cells.map((cell) => cell.textContent));
    const table = new Map((await rows(page, "latency")).map(([row, ...times]) => [row, times]));
    if (report.includes("\nLatency")) {
      const expected = latencies(report);
      assert.ok(expected.length >= 12);
      for (const [column, row, time] of expected) {
        const got = table.get(row)?.[head.indexOf(column.toLowerCase()) - 1];
        assert.equal(got, time, `${column} ${row}`);
      }
    }
    const [answered] = report.match(/(?<=Throughput +)\S+(?= ok\/s)/) ?? [];
    if (answered) assert.equal(await page.textContent("[data-figure='ok/s'] .value"), answered);
    const [errors] = report.match(/(?<=error rate +)\d\S*/) ?? [];
    if (errors) assert.equal(await page.textContent("[data-figure='error rate'] .value"), errors);
    const [sum] = report.match(/(?<=^Outcomes +)\S.*$/m) ?? [];
    assert.equal(await page.textContent(".sum"), sum);
    const headline = report.split("\n")[0];
    assert.ok(shown.includes(headline), headline);
    await page.close();
  });
}

test("a real run: the page says what the terminal says", async () => {
  const server = await target();
  try {
    const [html, json] = [files.path("real.html"), files.path("real.json")];
    const args = ["-c", "4", "-t", "1", "-r", "400", "-n", "1200", "--threshold", "p99<10s", "--name", "nightly", "--tag", "branch=main", "--html", html, "-o", json];
    const report = await brunt(...args, `${server.url}a?<b>`.replaceAll("<", "%3C").replaceAll(">", "%3E"));
    const { page, complaints } = await open(browser, html);
    assert.deepEqual(complaints, []);
    const result = JSON.parse(await readFile(json, "utf8"));
    // What it is called, when it was made, and how to make it again.
    assert.match(await page.textContent("h1"), /^brunt nightly: /);
    assert.match(await page.textContent("#settings"), /branch=main/);
    assert.equal(new Date(await page.getAttribute("#settings time", "datetime")).getTime(), Math.floor(result.started_unix_ms / 1000) * 1000);
    const command = await page.textContent("#repeat pre");
    assert.equal(command, `brunt --seed ${result.plan.seed} -c 4 -t 1 -n 1200 -r 400 --threshold 'p99<10s' '${server.url}a?%3Cb%3E'`);
    const atMost = "; 95%: at most 0.307%";
    assert.equal(await page.textContent("[data-figure='error rate'] small"), `0 of ${(1200).toLocaleString("en")}${atMost}`);
    const head = await page.$$eval("#latency thead th", (cells) => cells.map((cell) => cell.textContent));
    const table = new Map((await rows(page, "latency")).map(([row, ...times]) => [row, times]));
    for (const [column, row, time] of latencies(report)) {
      assert.equal(table.get(row)[head.indexOf(column.toLowerCase()) - 1], time, `${column} ${row}`);
    }
    assert.deepEqual((await limits(page)).map((limit) => limit[0]), ["✓"]);
    await page.click("#each summary");
    const stretches = await rows(page, "each");
    assert.ok(stretches.length >= 10, String(stretches.length));
    // The same as a file, whose sums are those of the run.
    const csv = await page.$eval("#over-time a[download]", (link) => decodeURIComponent(link.href.replace(/^[^,]*,/, "")));
    const [names, ...lines] = csv.trim().split("\n").map((line) => line.split(","));
    assert.equal(lines.length, stretches.length);
    const ok = lines.reduce((sum, line) => sum + Number(line[names.indexOf("ok")]), 0);
    assert.ok(Math.abs(ok - 1200) < 1, String(ok));
    await page.close();
  } finally {
    server.end();
  }
});

/** The thresholds on the first screen. */
const limits = (page) => page.$$eval("#thresholds li", (all) => all.map((li) => li.textContent));

/** Places in the run over time, and what is said of what is pointed at. */
const plot = async (page) => {
  const plots = page.locator("#stack .plots");
  await plots.scrollIntoViewIfNeeded();
  const box = await plots.boundingBox();
  return { at: (share) => [box.x + box.width * share, box.y + 80], said: () => page.textContent("#stack .readout") };
};

test("hovering shows what is under the pointer, in every chart over time", async () => {
  const { page, complaints, result } = await pageOf("open");
  const { at, said } = await plot(page);
  const seen = new Set();
  for (const share of [0.05, 0.4, 0.95]) {
    await page.mouse.move(...at(share));
    const [, clock, p50, rate] = (await said()).match(/^(0:0\d(?:\.\d)?), p50 (\S+), p99 \S+, max \S+, (\S+) ok\/s, /) ?? [];
    assert.ok(clock && p50 && rate, `at ${share}: ${await said()}`);
    seen.add(clock);
    const length = result.measured.length_ns / 1e9;
    assert.ok(Math.abs(Number(clock.slice(2)) - share * length) <= length / 10, `${clock} at ${share} of ${length} s`);
  }
  assert.equal(seen.size, 3);
  await page.locator("#spectrum .plots").hover();
  assert.match(await page.textContent("#spectrum .readout"), /^p\d\d\S* \(\S+ took longer\), response \S+/);
  assert.deepEqual(complaints, []);
  await page.close();
});

/** What the panels show: their view, and the times on the axis. */
const view = (page) => page.$eval("#stack", (stack) => [stack.querySelector("svg[data-plot]").getAttribute("viewBox"), [...stack.querySelectorAll(".time")].map((time) => time.textContent)].flat().join(" "));

test("dragging zooms all panels, and the keyboard does all of it", async () => {
  const { page } = await pageOf("open");
  const whole = await view(page);
  const { at, said } = await plot(page);
  await page.mouse.move(...at(0.3));
  await page.mouse.down();
  await page.mouse.move(...at(0.6), { steps: 4 });
  await page.mouse.up();
  const near = await view(page);
  const [, from, width] = near.match(/^(\S+) 0 (\S+) /).map(Number);
  assert.ok(Math.abs(from - 300) < 5 && Math.abs(width - 300) < 5, near);
  const views = await page.$$eval("#stack svg[data-plot]", (all) => new Set(all.map((plot) => plot.getAttribute("viewBox").split(" ").filter((_, i) => i % 2 === 0).join(" "))).size);
  assert.equal(views, 1, "all panels show the same seconds");
  // The address names what is seen: who is sent it sees the same, but for what lies beside.
  const [, begins, ends] = new URL(page.url()).hash.match(/^#t=(\d+\.\d)-(\d+\.\d)$/).map(Number);
  assert.ok(Math.abs(begins - 0.3 * 8) < 0.2 && Math.abs(ends - 0.6 * 8) < 0.2, page.url());
  await page.focus("#stack");
  await page.keyboard.press("Escape");
  assert.equal(await view(page), whole);
  assert.equal(new URL(page.url()).hash, "");
  await page.keyboard.press("Home");
  assert.match(await said(), /^0:00, p50 \S+, p99 \S+, max \S+, \S+ ok\/s, /);
  await page.keyboard.press("End");
  assert.match(await said(), /^0:0[5-9]/);
  await page.keyboard.press("+");
  assert.notEqual(await view(page), whole);
  await page.keyboard.press("-");
  await page.keyboard.press("Escape");
  assert.equal(await view(page), whole);
  await page.close();
});

test("a finding leads to its seconds, in every panel and by the page's address", async () => {
  const { page, html } = await pageOf("open");
  const whole = await view(page);
  const href = await page.getAttribute("#outcome .outcome a", "href");
  const [, from, to] = href.match(/^#t=(\d+\.\d)-(\d+\.\d)$/).map(Number);
  await page.click("#outcome .outcome a");
  await page.waitForFunction((whole) => document.querySelector("#stack svg[data-plot]").getAttribute("viewBox") !== whole, whole.split(" ").slice(0, 4).join(" "));
  const near = await view(page);
  assert.notEqual(near, whole);
  assert.ok(to > from);
  // Who is sent the address sees the same.
  const sent = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  await sent.goto(`file://${html}${href}`);
  assert.equal(await view(sent), near);
  await sent.close();
  await page.close();
});

test("without scripts the page is whole", async () => {
  const { html, page } = await pageOf("open");
  const expected = await page.$eval("#first-screen", (screen) => screen.textContent);
  const context = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 1280, height: 900 } });
  const plain = await context.newPage();
  await plain.goto(`file://${html}`);
  assert.equal(await plain.textContent("#first-screen"), expected);
  assert.match(await plain.title(), /^brunt http:/);
  assert.ok((await plain.locator("#stack path.p99").count()) > 0);
  // But for what is done by hand: opening, sorting, zooming. What a script would fold away is seen.
  const shown = async (page) => page.$$eval("main h2", (all) => all.map((title) => title.textContent));
  assert.deepEqual(await shown(plain), await shown(page));
  for (const drawing of ["#histogram-drawn path.bar", "#spectrum path.line", "#load-over-time .plots"]) {
    assert.ok((await plain.locator(drawing).count()) > 0, drawing);
    assert.ok(await plain.locator(drawing).first().isVisible(), drawing);
  }
  assert.ok(await plain.locator("#latency tr:not(.minor) td").first().isVisible());
  await plain.check("#histogram-linear");
  assert.ok(await plain.isVisible("#histogram-drawn-linear") && !(await plain.isVisible("#histogram-drawn")));
  await context.close();
  await page.close();
});

test("the outcome comes first, and what stands out about the target with it", async () => {
  const outcomeOf = async (name, of = pageOf) => {
    const { page, complaints } = await of(name);
    assert.deepEqual(complaints, []);
    assert.equal(await page.$eval("main section", (first) => first.id), "outcome");
    const [said, kind] = await page.$eval("#outcome p", (p) => [p.textContent, p.className]);
    const remarks = await page.$$eval("#outcome .findings li", (all) => all.map((li) => li.textContent));
    const advice = await page.$eval("#outcome", (outcome) => outcome.querySelector("p.advice")?.textContent);
    await page.close();
    return { said, kind, remarks, advice };
  };
  const failed = await outcomeOf("failing");
  assert.match(failed.said, /^✗ \d of \d thresholds failed: p99 6\.00ms \(limit < 5ms\)/);
  assert.match(failed.remarks[0], /^! brunt was the limit: the target can do at least \S+ ok\/s$/);
  assert.equal(failed.kind, "outcome bad");
  const held = await outcomeOf("clean");
  assert.match(held.said, /^✓ (the threshold|both thresholds|all \d thresholds) held: [\d,]+ of [\d,]+ calls succeeded, \S+ ok\/s$/);
  const nothing = await outcomeOf("silent");
  assert.match(nothing.said, /^✗ the target never answered: /);
  const errors = await outcomeOf("open");
  assert.match(errors.said, /^! ① the target froze from 0:05 to 0:06: /);
  const all = await outcomeOf("no-success", made);
  assert.equal(all.said, "! every answer was 500");
  assert.match(all.advice, /^→ .*brunt --once/);
});

test("how far a figure may be off stands beside it", async () => {
  const { page, complaints } = await made("off");
  const head = await page.$$eval("#latency thead th", (cells) => cells.map((cell) => cell.textContent));
  const column = head.indexOf("response within");
  assert.ok(column > 0, String(head));
  const within = new Map((await rows(page, "latency")).map((row) => [row[0], row[column]]));
  assert.deepEqual(["p50", "p99", "p99.9", "max"].map((row) => within.get(row)), ["1.90ms to 2.60ms", "4.00ms to 6.00ms", "over 5.00ms", ""]);
  assert.equal(await page.textContent("[data-figure='p50'] small"), "95%: 1.90ms to 2.60ms");
  const spoiled = await page.$$eval("#latency td.warning", (cells) => cells.map((cell) => cell.closest("tr").firstChild.textContent));
  assert.deepEqual(spoiled, ["p99"]);
  // The band in the spectrum: without it, the same curve is another picture.
  assert.equal(await page.locator("#spectrum .band-of-one").count(), 1);
  const without = await made("exact");
  assert.equal(await without.page.locator("#spectrum .band-of-one").count(), 0);
  assert.ok(!(await without.page.textContent("#latency")).includes("within"));
  assert.deepEqual([...complaints, ...without.complaints], []);
  await page.close();
  await without.page.close();
});

test("thresholds are seen where their figures are", async () => {
  const { page, complaints } = await made("limits");
  const kinds = await page.$$eval(".tile", (tiles) => Object.fromEntries(tiles.map((tile) => [tile.dataset.figure, tile.querySelector(".value").className])));
  assert.equal(kinds.p99, "value bad");
  assert.ok(!kinds.p50.includes("bad"), kinds.p50);
  const lines = await labels(page, "stack");
  assert.deepEqual(lines.filter((line) => /^[✓✗]/.test(line)).sort(), ["✓ p50<20ms", "✗ p99 < 5ms"], "one of an hour would hide all else");
  assert.equal(await page.locator("#stack .limit").count(), 2);
  const marks = await page.$$eval("#histogram-drawn .mark", (all) => all.map((mark) => mark.textContent));
  assert.deepEqual(marks.sort(), ["✓ p50<20ms", "✗ p99 < 5ms"]);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("a percentile of few calls is not a figure of its own", async () => {
  const { page, result } = await made("few");
  const [look, said] = await page.$eval("[data-figure='p99']", (tile) => [tile.querySelector(".value").className, tile.querySelector("small").textContent]);
  assert.equal(look, "value faint");
  assert.match(said, /^the longest of \d+ calls$/);
  const faint = await page.$$eval("#latency tbody tr", (all) => all.filter((tr) => tr.children[1].classList.contains("faint")).map((tr) => tr.firstChild.textContent));
  assert.deepEqual(faint, ["p99", "p99.9", "p99.99"]);
  assert.ok(result.times.response.quantiles.length > 3);
  await page.close();
});

test("what never changes is said in words", async () => {
  const { page, complaints } = await made("constant");
  assert.ok((await labels(page, "load-over-time")).includes("64 throughout"));
  assert.deepEqual(complaints, []);
  await page.close();
});

test("of many names the worst come first, twenty at a time, and one can be looked for", async () => {
  const { page, complaints } = await made("many-names");
  const names = async () => (await rows(page, "requests")).map(([name]) => name);
  assert.equal((await names()).length, 20);
  assert.equal((await names())[0], "GET /articles/250");
  await page.click("#requests .more");
  assert.equal((await names()).length, 40);
  assert.equal(await page.textContent("#requests .more"), "40 of 500: show 20 more");
  await page.fill("#requests input", "articles/49");
  assert.deepEqual((await names()).sort(), ["GET /articles/49", ...Array.from({ length: 10 }, (_, i) => `GET /articles/49${i}`)]);
  assert.ok(await page.isHidden("#requests .more"));
  await page.click("#requests thead th:nth-child(1) button");
  assert.equal((await names()).length, 11, "sorting keeps what is looked for");
  assert.deepEqual(complaints, []);
  await page.close();
});

test("figures by name are there, and can be sorted", async () => {
  const { page, result } = await pageOf("shop");
  const names = (await rows(page, "requests")).map(([name]) => name);
  assert.equal(names.length, result.names.requests.length);
  await page.click("#requests thead th:nth-child(2) button");
  const due = (await rows(page, "requests")).map((row) => Number(row[1].replaceAll(",", "")));
  assert.deepEqual(due, [...due].sort((a, b) => b - a));
  assert.equal(await page.getAttribute("#requests thead th:nth-child(2)", "aria-sort"), "descending");
  for (const id of ["tags", "groups", "checks", "scenarios"]) {
    assert.equal((await rows(page, id)).length, result.names[id].length, id);
  }
  assert.ok((await labels(page, "stack")).includes("at most 32"));
  assert.match(await page.textContent(".tracebacks"), /attempt to index a nil value/);
  await page.close();
});

test("hostile names stay text", async () => {
  const hostile = [
    "</script><script>window.hacked = 1</script>",
    "<!--<script>window.hacked = 1//",
    "<img src=x onerror='window.hacked = 1'>",
    "]]><svg onload=window.hacked=1>",
    "{{constructor.constructor('window.hacked=1')()}} ${window.hacked = 1}",
    "__proto__",
  ];
  const { page, complaints } = await made("hostile");
  assert.deepEqual((await rows(page, "requests")).map(([name]) => name), hostile);
  for (const id of ["checks", "thresholds", "outcome", "outcomes", "scenarios", "verdict"]) {
    assert.ok(/<script>|<img|<svg/.test(await page.textContent(`#${id}`)), id);
  }
  assert.ok((await page.title()).includes("</script><script>"));
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.$$eval("script", (all) => all.length), 3);
  assert.equal(await page.$$eval("img, iframe, [onload], [onerror]", (all) => all.length), 0);
  assert.deepEqual(complaints, []);
  // Text that turns the direction of writing, or cannot be seen, is shown as what it is.
  const turned = await made("turned");
  assert.equal((await rows(turned.page, "requests"))[0][0], "a\\u{202e}b\\u{0}c\\u{1b}[31m");
  await page.close();
  await turned.page.close();
});

test("nothing runs in the page but its own script", async () => {
  const { html, page } = await pageOf("clean");
  await page.close();
  const source = await readFile(html, "utf8");
  const injected = files.path("injected.html");
  await writeFile(injected, source.replace("</main>", "</main><script>window.hacked = 1</script><img src='http://127.0.0.1:9/x'>"));
  const { page: second, complaints } = await open(browser, injected);
  assert.equal(await second.evaluate(() => window.hacked), undefined);
  assert.ok(complaints.some((line) => line.includes("Content Security Policy")), String(complaints));
  await second.close();
});

test("a report of ten minutes is under a megabyte, and still works", async () => {
  const { page, html, complaints } = await made("ten-minutes");
  const { size } = await stat(html);
  assert.ok(size < 1_000_000, `${size} bytes`);
  assert.deepEqual(complaints, []);
  const { at, said } = await plot(page);
  await page.mouse.move(...at(0.5));
  assert.match(await said(), /^[45]:\d\d/);
  await page.close();
});

for (const colorScheme of ["light", "dark"]) {
  for (const width of [360, 390, 1280]) {
    test(`${colorScheme}, ${width} pixels wide: fits, and can be used by everyone`, async () => {
      await mkdir(new URL("screenshots/", import.meta.url), { recursive: true });
      for (const name of ["shop", "open", "failing", "silent"]) {
        const { page, complaints } = await pageOf(name, { viewport: { width, height: 900 }, colorScheme });
        const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        assert.ok(wider <= 0, `${name} is ${wider} pixels wider than its window`);
        const shot = new URL(`screenshots/${name}-${colorScheme}-${width}.png`, import.meta.url).pathname;
        await page.screenshot({ path: shot, fullPage: true });
        await page.evaluate(AXE);
        const { violations } = await page.evaluate(() => window.axe.run());
        const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join("; ")}`);
        assert.deepEqual(found, [], name);
        assert.deepEqual(complaints, []);
        await page.close();
      }
    });
  }
}

test("it prints in ink on paper, dark or not", async () => {
  const { page } = await pageOf("shop", { colorScheme: "dark" });
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  await page.waitForFunction(() => getComputedStyle(document.documentElement).backgroundColor === "rgb(255, 255, 255)");
  await page.emulateMedia({ media: "screen", colorScheme: "dark" });
  const pdf = await page.pdf({ format: "A4" });
  assert.equal(pdf.subarray(0, 5).toString(), "%PDF-");
  await page.close();
});

/** Those of these selectors whose element lies within the first screen, whole. */
const inFold = (page, selectors) =>
  page.evaluate(
    (selectors) =>
      selectors.filter((selector) => {
        const box = document.querySelector(selector)?.getBoundingClientRect();
        return box !== undefined && box.height > 0 && box.top >= 0 && box.bottom <= window.innerHeight;
      }),
    selectors,
  );

test("the first screen says whether it passed, whether to believe it, how fast and how slow it was, and when", async () => {
  const wide = ["#outcome .outcome", "#outcome .badge", ".tile[data-figure='p99']", ".tile[data-figure='ok/s']", ".tile[data-figure='error rate']", "#stack .plots"];
  // Where many thresholds were asked for, a phone shows these first, and the figure that matters most.
  const narrow = ["#outcome .outcome", "#outcome .badge", ".tile.hero"];
  for (const [width, height, expected] of [[1280, 900, wide], [390, 844, narrow]]) {
    for (const name of ["clean", "failing", "open", "shop"]) {
      const { page } = await pageOf(name, { viewport: { width, height } });
      // The outcome of the shop names users who were not admitted, too: it pushes the plots, on a phone all figures, below the first screen.
      const below = width < 400 ? expected.slice(1) : ["#stack .plots"];
      const seen = name === "shop" ? expected.filter((selector) => !below.includes(selector)) : expected;
      assert.deepEqual(await inFold(page, seen), seen, `${name} at ${width}`);
      await page.close();
    }
  }
});

test("one figure leads: what failed, or what was asked", async () => {
  for (const [name, figure] of [["clean", "ok/s"], ["failing", "p99"], ["open", "p99"]]) {
    const { page } = await pageOf(name);
    const [first, ...others] = await page.$$eval(".tile", (tiles) => tiles.map((tile) => ({ figure: tile.dataset.figure, size: parseFloat(getComputedStyle(tile.querySelector(".value")).fontSize) })));
    assert.equal(first.figure, figure, name);
    assert.ok(others.length >= 4 && others.every(({ size }) => size < first.size / 1.5), name);
    // The latency table has five rows until all are asked for.
    assert.equal(await page.locator("#latency tbody tr:visible").count(), 5, name);
    await page.check("#latency .all-rows");
    assert.ok((await page.locator("#latency tbody tr:visible").count()) > 8, name);
    await page.close();
  }
});

test("calls that did not end well have a hatched row of their own, below all others", async () => {
  for (const [name, has] of [["open", true], ["clean", false]]) {
    const { page } = await pageOf(name);
    const rows = await page.$$eval("#stack .hatched", (all) => all.map((one) => ({ top: one.getBoundingClientRect().top, fill: getComputedStyle(one).fill })));
    assert.equal(rows.length, has ? 1 : 0, name);
    const lowest = await page.$$eval("#stack :is(.h1, .h2, .h3, .h4, .h5)", (all) => Math.max(...all.map((one) => one.getBoundingClientRect().bottom)));
    for (const { top, fill } of rows) assert.ok(top >= lowest && /#hatch-of-failed/.test(fill), `${name}: ${top} ${lowest} ${fill}`);
    // A doubt about brunt itself is no failure.
    assert.equal(await page.locator("#verdict .bad").count(), 0, name);
    await page.close();
  }
});

test("no label of a drawing is cut on a phone", async () => {
  for (const name of ["failing", "shop", "open", "tls"]) {
    for (const width of [360, 390]) {
      const { page } = await pageOf(name, { viewport: { width, height: 800 } });
      const ends = await page.$$eval(".stack .legend", (all) => all.map((one) => [one.textContent, one.getBoundingClientRect().right]));
      assert.ok(ends.length > 3, name);
      assert.deepEqual(ends.filter(([, right]) => right > width), [], `${name} at ${width}`);
      await page.close();
    }
  }
});

test("every figure lies within its panel, and panels begin and end together", async () => {
  for (const name of ["clean", "open", "failing", "shop", "tls"]) {
    const { page, complaints } = await pageOf(name);
    assert.deepEqual(await outside(page, "main"), [], name);
    const sides = await page.$$eval("#stack svg[data-plot]", (plots) => new Set(plots.map((plot) => `${plot.getAttribute("x")} ${plot.getAttribute("width")}`)).size);
    assert.equal(sides, 1, name);
    assert.deepEqual(complaints, []);
    await page.close();
  }
});

test("an hour is ticked as a clock has it", async () => {
  const { page } = await made("hour");
  const times = await page.$$eval("#stack .time", (all) => all.map((time) => time.textContent));
  assert.ok(times.length > 3, String(times));
  for (const time of times) assert.match(time, /^[0-6]?[05]:00$/, `${time} is no time of a clock`);
  await page.close();
});

test("what the protocol counted and what was held back stand with the outcomes", async () => {
  const { page } = await pageOf("failing");
  const said = await text(page);
  assert.match(said, /Protocol events: GOAWAY × 3, RST_STREAM CANCEL × 12/);
  assert.match(said, /Held back, over all connections: 1\.20s by the limit of streams, 40\.0\d*ms by flow control/);
});

test("a histogram has every call, those apart that are not ok, and the threshold in it", async () => {
  const { page, complaints, result } = await made("refused");
  const calls = ({ counts }) => counts.reduce((sum, [, n]) => sum + n, 0);
  const all = calls(result.histograms.response);
  const notOk = calls(result.histograms.failed) + calls(result.histograms.refused);
  const summary = await page.textContent("#histogram figcaption p");
  assert.ok(summary.startsWith(`${all.toLocaleString("en")} calls, ${notOk.toLocaleString("en")} of them not ok `), summary);
  assert.ok(summary.includes("p99 < 5ms"), summary);
  assert.equal(await page.locator("#histogram-drawn path.limit.lost").count(), 1);
  assert.ok((await page.getAttribute("#histogram-drawn path.failed", "d")).length > 10);
  const sum = (words) => [...words.matchAll(/([\d,]+) calls? (?:not )?ok/g)].reduce((sum, [, n]) => sum + Number(n.replaceAll(",", "")), 0);
  const counted = (await said(page, "histogram-drawn")).reduce((all, words) => all + sum(words), 0);
  assert.equal(counted, all);
  // On a linear scale the slowest calls are counted, and not drawn.
  await page.check("#histogram-linear");
  const drawn = (await said(page, "histogram-drawn-linear")).reduce((all, words) => all + sum(words), 0);
  const [beyond] = (await page.textContent("#histogram .linear")).match(/([\d,]+) calls? took longer/)?.slice(1) ?? ["0"];
  assert.equal(drawn + Number(beyond.replaceAll(",", "")), all);
  assert.deepEqual(complaints, []);
  await page.close();
});

test("what failed is named beside the outcome, the most frequent first", async () => {
  const { page, result } = await pageOf("failing");
  const { statuses, failures } = result.outcomes;
  const worst = Math.max(...statuses.filter(({ status }) => status >= 400).map(({ count }) => count), ...failures.map(({ count }) => count));
  const ways = await page.textContent("#outcome .ways");
  assert.match(ways, /^Not ok: \w+ × [\d,]+/);
  assert.equal(Number(ways.match(/× ([\d,]+)/)[1].replaceAll(",", "")), worst);
  assert.ok(ways.endsWith(", …"), "three of them are named");
  const { page: clean } = await pageOf("clean");
  assert.equal(await clean.locator("#outcome .ways").count(), 0);
  // An answer whose status is ok and that failed a check is one, too.
  const { page: shop } = await pageOf("shop");
  assert.match(await shop.textContent("#outcome .ways"), /check 'has a cart' × 5/);
  for (const one of [page, clean, shop]) await one.close();
});

test("the times of calls that are ok and of those that are not stand apart by name", async () => {
  const { page, result } = await pageOf("shop");
  const cart = result.names.requests.find(({ name }) => name === "cart/:id");
  const ms = (distribution, name) => distribution.quantiles.find(({ name: known }) => known === name);
  assert.ok(ms(cart.response_ok, "p99").value_ns < 1e8 && ms(cart.response_not_ok, "p99").value_ns >= 1e10, "failures took 10 s");
  const row = (await rows(page, "requests")).find(([name]) => name === "cart/:id");
  assert.match(row[2], /^6 · 2\.04%503 Busy × 3, timeout × 3$/);
  await page.click(`#requests .opener >> text="cart/:id"`);
  assert.match(await page.textContent("#requests .below.open"), /ok calls alone: p50 \S+ms, p99 \d\.\d+ms; those not ok: p50 \S+, p99 10\.0+s/);
  await page.close();
});

test("requests stand in seven columns that fit, worst first", async () => {
  const { page } = await pageOf("shop");
  const head = await page.$$eval("#requests thead th", (all) => all.map((one) => one.textContent));
  assert.deepEqual(head.slice(0, 6), ["name", "calls", "not ok", "p50", "p99", "max"]);
  const [width, room] = await page.$eval("#requests table", (table) => [table.clientWidth, table.parentElement.clientWidth]);
  assert.ok(width <= room, `${width} of ${room} pixels`);
  const ratios = await page.$$eval("#requests tbody tr:not(.below) td:nth-child(3)", (all) => all.map((cell) => Number(cell.dataset.sort)));
  assert.deepEqual(ratios, [...ratios].sort((a, b) => b - a));
  for (const drawing of ["svg.range path", "svg.spark path"]) assert.ok((await page.locator(`#requests ${drawing}`).count()) >= 3, drawing);
  await page.close();
});

test("a request, a status and a reason open over time, and stay open", async () => {
  const { page, complaints } = await made("reasons");
  /** What is said of each stretch of what opens. */
  const opened = async (section, name) => {
    await page.click(`#${section} .opener >> text="${name}"`);
    const id = await page.$eval(`#${section} .below.open:has(.stack) .stack >> visible=true`, (stack) => stack.id).catch(() => undefined);
    const ids = await page.$$eval(`#${section} .below.open .stack`, (all) => all.map((stack) => stack.id));
    return said(page, ids.at(-1) ?? id);
  };
  const words = await opened("requests", "home");
  assert.equal(words[0], "0:00, p50 4.50ms, p99 4.97ms, 100 ended/s, 1 not ok/s");
  await page.click("#requests thead th:nth-child(2) button");
  assert.equal(await page.locator("#requests .below.open .stack").count(), 1, "sorting keeps what is open");
  const ends = async (name) => {
    await page.click(`#outcomes .opener >> text="${name}"`);
    const row = page.locator("#outcomes tr", { has: page.locator(`.opener >> text="${name}"`) });
    const id = await row.evaluate((row) => row.nextElementSibling.querySelector(".stack").id);
    return said(page, id);
  };
  assert.equal((await ends("timeout: no answer in 10s")).at(-1), "0:02, 4 calls/s");
  // A failure opens as a whole, too: the sum over its reasons.
  assert.equal((await ends("timeout")).at(-1), "0:02, 7 calls/s");
  assert.equal((await ends("503 Busy")).length, 3);
  const tags = await opened("tags", "plan=pro");
  assert.match(tags.at(-1), /98 ended\/s, 2 not ok\/s$/);
  await page.click('#requests .opener >> text="home"');
  assert.equal(await page.locator("#requests .below.open").count(), 0);
  assert.deepEqual(complaints, []);
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run());
  assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join("; ")}`), []);
  await page.close();
});

test("how calls ended has examples, as text, and the one way apart from the others over time", async () => {
  const { page, complaints } = await made("examples");
  const row = page.locator("#outcomes tr", { has: page.locator('.opener >> text="503"') });
  await row.locator(".opener").click();
  const shown = await row.evaluate((row) => [...row.nextElementSibling.querySelectorAll(".examples li")].map((li) => li.innerText));
  assert.equal(shown.length, 3);
  assert.match(shown[0], /^0:01: GET \/<b>, after 600\.0µs\s+<script>window\.hacked = 1<\/script>\s+\\u\{1b\}\[31m\{"error":"db"\}$/);
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  const ends = await labels(page, "stack");
  assert.ok(ends.includes("■ 120 × 503") && ends.includes("□ 117 others"), String(ends));
  await page.locator("#outcomes").screenshot({ path: new URL("screenshots/examples.png", import.meta.url).pathname });
  assert.deepEqual(complaints, []);
  await page.close();
});

/** Takes something out of the menu of a section. */
const saved = async (page, section, what) => {
  await page.click(`#${section} .tools summary`);
  await page.click(`#${section} .tools ${what}`);
};

test("every drawing can be taken away as a picture, and every table as a file", async () => {
  const { page } = await pageOf("shop");
  const [download] = await Promise.all([page.waitForEvent("download"), saved(page, "over-time", "button.svg")]);
  assert.equal(download.suggestedFilename(), "stack.svg");
  const svg = await readFile(await download.path(), "utf8");
  assert.match(svg, /^<svg [^>]*xmlns="http:\/\/www.w3.org\/2000\/svg"/);
  assert.ok(svg.includes("stroke=") && !svg.includes("NaN"));
  for (const section of ["requests", "outcomes", "checks", "latency", "scenarios"]) {
    const [file] = await Promise.all([page.waitForEvent("download"), saved(page, section, "a[download]")]);
    assert.equal(file.suggestedFilename(), `${section}.csv`);
    const lines = (await readFile(await file.path(), "utf8")).trim().split("\n");
    assert.ok(lines.length > 1, section);
  }
  assert.equal(await page.getAttribute("#requests .tools a:last-child", "href"), "#requests");
  await page.close();
});

test("an hour of seconds and five hundred names open at once", async () => {
  const { page, html, complaints } = await made("hour-of-names");
  const { size } = await stat(html);
  const took = await page.evaluate(() => performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd);
  // No test asserts times; this one is printed.
  console.log(`    ${(size / 1e6).toFixed(2)} MB, there after ${Math.round(took)} ms`);
  assert.ok(size < 6_000_000, `${size} bytes`);
  assert.equal((await rows(page, "requests")).length, 20);
  assert.ok((await page.locator("#stack path.p99").count()) === 1);
  assert.deepEqual(complaints, []);
  await page.close();
});
