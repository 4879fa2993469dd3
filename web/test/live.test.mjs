// The page of a run that goes on, in a real browser; and browsers that are slow, gone or somebody else's.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import { blank, launch } from "./browser.mjs";
import { directory, goingOn, target } from "./program.mjs";

let browser;
let files;
let server;

before(async () => {
  files = await directory();
  browser = await launch();
  server = await target();
});

after(async () => {
  server?.end();
  await browser?.close();
  await files?.end();
});

/** The page of a run that goes on, once it shows something. */
async function watch(run) {
  const page = await blank(browser);
  const complaints = [];
  page.on("console", (message) => complaints.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  await page.goto(run.url);
  await page.waitForSelector("#load-over-time");
  return { page, complaints };
}

/** How many milliseconds of the run are drawn. */
const length = (page) => page.getAttribute("#load-over-time", "data-span-ms").then(Number);

test("the page moves while the run does, and ends as the finished report", async () => {
  const html = files.path("finished.html");
  const run = await goingOn("-r", "200", "-d", "1h", "-t", "1", "-c", "4", "--threshold", "p99<10s", "--html", html, server.url);
  const { page, complaints } = await watch(run);
  assert.match(await page.textContent("#live"), /● running measuring, \S+ of \S+/);
  assert.match(await page.textContent("#outcome"), /^Outcome so far/);
  const before = await length(page);
  // What its reader does stays done: the focus, and how near a chart is.
  await page.focus("#stack");
  await page.keyboard.press("Home");
  await page.waitForFunction((before) => Number(document.querySelector("#load-over-time").dataset.spanMs) > before, before);
  assert.equal(await page.evaluate(() => document.activeElement.id), "stack");
  assert.match(await page.textContent("#stack .readout"), /^0:00, /);
  // However slow this machine is, the page is seen before the end.
  run.interrupt();
  await page.waitForSelector("#live", { state: "detached" });
  assert.match(await page.textContent("#finished"), /^● finished/);
  const done = await run.end();
  // Ended early, by Ctrl-C.
  assert.equal(done.status, 130, done.stderr);
  // The same as the report that was written, word for word.
  const finished = await blank(browser);
  await finished.goto(`file://${html}`);
  // But for what is under the pointer.
  const words = (page) =>
    page.$eval("main", (main) =>
      [...main.querySelectorAll("header, h2, p, dl, table, figcaption, summary")]
        .filter((part) => !part.matches(".readout, #finished"))
        .map((part) => part.textContent),
    );
  assert.deepEqual(await words(page), await words(finished));
  assert.equal(await page.title(), await finished.title());
  assert.deepEqual(await page.$$eval("#thresholds li", (all) => all.map((li) => li.textContent[0])), ["✓"]);
  assert.deepEqual(complaints, []);
  await page.close();
  await finished.close();
});

test("a page that is opened again, or loses brunt, shows all there is, and says so", async () => {
  const run = await goingOn("-r", "200", "-d", "1h", "-t", "1", "-c", "4", server.url);
  const { page } = await watch(run);
  await page.reload();
  await page.waitForSelector("#load-over-time");
  // As when a network fails: what comes after it has everything.
  const before = await length(page);
  await page.context().setOffline(true);
  await page.context().setOffline(false);
  await page.waitForFunction((before) => Number(document.querySelector("#load-over-time")?.dataset.spanMs) > before, before);
  const colour = () => page.$eval("#live strong", (strong) => getComputedStyle(strong).color);
  const [running, green] = [await colour(), await page.evaluate(() => {
    const held = document.body.appendChild(Object.assign(document.createElement("p"), { className: "good" }));
    const { color } = getComputedStyle(held);
    held.remove();
    return color;
  })];
  // Only what held is green, and what is lost does not look as if it went on.
  assert.notEqual(running, green);
  run.kill();
  await page.waitForFunction(() => document.getElementById("problem")?.textContent.includes("No connection"));
  assert.equal(await page.textContent("#live strong"), "○ no connection");
  assert.ok(![running, green].includes(await colour()));
  assert.ok((await length(page)) > before);
  await page.close();
});

test("an hour of seconds in one tab leaves nothing behind", async (context) => {
  const run = await goingOn("-r", "200", "-d", "1h", "-t", "1", "-c", "4", server.url);
  const { page: first } = await watch(run);
  await first.close();
  const address = new URL(run.url);
  const ask = (path, until) =>
    new Promise((resolve, reject) => {
      let text = "";
      const asked = request({ host: address.hostname, port: address.port, path }, (answer) => {
        answer.setEncoding("utf8");
        answer.on("data", (piece) => {
          text += piece;
          if (until?.(text)) asked.destroy();
        });
        answer.on("close", () => resolve(text));
      });
      asked.on("error", (error) => (text ? resolve(text) : reject(error))).end();
    });
  const html = await ask("/");
  const event = JSON.parse((await ask("/events", (text) => /data: \{.*\}\n\n/.test(text))).match(/data: (\{.*\})\n\n/)[1]);
  run.kill();
  await run.end();
  // What brunt sends in an hour, as fast as the page takes it.
  const SECONDS = 3600;
  const hour = createServer(async (asked, answer) => {
    if (asked.url !== "/events") return answer.setHeader("content-type", "text/html").end(html);
    answer.setHeader("content-type", "text/event-stream");
    for (let second = 0; second < SECONDS; second++) {
      const main = event.main.replace("running</strong>", `running</strong> second ${second},`).replaceAll("H1000", `H${1000 - (second % 7) / 10}`);
      if (!answer.write(`event: data\ndata: ${JSON.stringify({ title: event.title, main })}\n\n`)) await new Promise((resolve) => answer.once("drain", resolve));
    }
  });
  await new Promise((resolve) => hour.listen(0, "127.0.0.1", resolve));
  // A test that fails must not leave a server behind, which nothing would end.
  context.after(() => {
    hour.closeAllConnections();
    hour.close();
  });
  const page = await blank(browser);
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  await page.goto(`http://127.0.0.1:${hour.address().port}/`);
  await page.waitForFunction((last) => document.querySelector("#live")?.textContent.includes(`second ${last},`), SECONDS - 1, { timeout: 600_000 });
  await session.send("HeapProfiler.collectGarbage");
  const { metrics } = await session.send("Performance.getMetrics");
  const of = (name) => metrics.find((metric) => metric.name === name).value;
  assert.ok(of("JSHeapUsedSize") < 50e6, `${of("JSHeapUsedSize")} bytes`);
  assert.ok(of("Nodes") < 20_000 && of("JSEventListeners") < 500, `${of("Nodes")} nodes, ${of("JSEventListeners")} listeners`);
  await page.close();
});

test("virtual users of a closed scenario are more and fewer by a button, and Enter presses the button of its field", async () => {
  const script = files.path("users.lua");
  await writeFile(
    script,
    `local brunt = require "brunt"
     local http = brunt.http { base = "${server.url.replace(/\/$/, "")}" }
     brunt.scenario("s", function() http:get("/") brunt.pause("20ms") end):inject { brunt.users(2, "1h") }`,
  );
  const run = await goingOn("run", "-t", "1", script);
  const { page, complaints } = await watch(run);
  const said = (text) => page.waitForFunction((text) => document.querySelector("#change output").textContent.includes(text), text);
  try {
    await page.waitForSelector("#change");
    // In the page's column, and within a phone.
    for (const width of [1600, 360]) {
      await page.setViewportSize({ width, height: 800 });
      const [form, column] = await page.$$eval("#change, main", (all) => all.map((one) => one.getBoundingClientRect()).map(({ left, right }) => [left, right]));
      assert.ok(form[0] >= column[0] && form[1] <= column[1] && form[1] <= width, `${form} in ${column}`);
    }
    assert.deepEqual(await page.$$eval("#change button", (all) => all.map((one) => one.value)), ["users", "pause", "resume", "mark"]);
    await page.fill("#change [name=users]", "7");
    await page.click("#change [value=users]");
    await said("7 virtual users, at 0:");
    // A field that is empty is no 0, and what brunt refuses has no effect.
    for (const [text, why] of [["", "expected a rate"], ["2.5", "a whole number of users"], ["0", "1 to 100000"]]) {
      await page.fill("#change [name=users]", text);
      await page.press("#change [name=users]", "Enter");
      await said(why);
    }
    await page.fill("#change [name=mark]", "by Enter");
    await page.press("#change [name=mark]", "Enter");
    await said("marked 'by Enter' at 0:");
    await page.waitForFunction(() => document.querySelector("main").textContent.includes("7 users"));
    run.interrupt();
    await page.waitForSelector("#change", { state: "detached" });
    const done = await run.end();
    assert.equal(done.status, 130, done.stderr);
    assert.match(done.stdout, /7 users, by the live page/);
    // Chromium notes answers that are errors, and nothing else is amiss.
    assert.deepEqual(complaints.filter((one) => !/status of 4(00|09)/.test(one)), []);
  } finally {
    run.kill();
    await run.end();
    await page.close();
  }
});

test("a run without virtual users has no field for them", async () => {
  const run = await goingOn("-r", "50", "-d", "1h", "-t", "1", "-c", "1", server.url);
  const { page } = await watch(run);
  try {
    await page.waitForSelector("#change");
    assert.deepEqual(await page.$$eval("#change input", (all) => all.map((one) => one.name)), ["rate", "mark"]);
    await page.fill("#change [name=rate]", "70");
    await page.press("#change [name=rate]", "Enter");
    await page.waitForFunction(() => document.querySelector("#change output").textContent.startsWith("70 calls a second, at 0:"));
  } finally {
    run.kill();
    await run.end();
    await page.close();
  }
});

test("before there is a figure it is running, and nothing is red", async () => {
  const run = await goingOn("-r", "200", "-d", "1h", "-w", "1h", "-t", "1", "-c", "4", "--threshold", "p99<1us", "--threshold", "rate>1M", server.url);
  const page = await blank(browser);
  try {
    await page.goto(run.url);
    await page.waitForSelector("#outcome .outcome");
    assert.match(await page.textContent("#outcome"), /^Outcome so far● running: (starting|warm-up), nothing is measured yet$/);
    assert.deepEqual(await page.$$eval("main .bad", (all) => all.map((one) => one.textContent)), []);
  } finally {
    run.kill();
    await run.end();
    await page.close();
  }
});

test("in a stall the page tells what waits", async () => {
  const frozen = await target("--stall", "30s/32s");
  const run = await goingOn("-r", "500", "-d", "1h", "-t", "1", "-c", "4", "--timeout", "1h", frozen.url);
  const page = await blank(browser);
  try {
    await page.goto(run.url);
    await page.waitForFunction(() => /calls due and not sent; the oldest call has waited \d+s and/.test(document.getElementById("backlog")?.textContent ?? ""));
    assert.match(await page.textContent("#outcome .outcome"), /^! [\d,]+ calls wait to be sent, the oldest call has waited \d/);
    // Until it is over it is no overload.
    await page.waitForFunction(() => /waited ([4-9]|\d\d)s/.test(document.getElementById("backlog")?.textContent ?? ""));
    assert.doesNotMatch(await page.textContent("#outcome"), /on the target answered|overload/);
  } finally {
    run.kill();
    await run.end();
    await page.close();
    frozen.end();
  }
});

test("browsers that never read, or are gone, hold nothing up", async () => {
  const run = await goingOn("-r", "500", "-n", "2000", "-t", "1", "-c", "4", "--format", "json", server.url);
  const { port } = new URL(run.url);
  const asked = (after) =>
    new Promise((resolve) => {
      const socket = connect(port, "127.0.0.1", () => {
        socket.write(`GET /events HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
        after(socket);
        resolve(socket);
      });
      socket.on("error", () => resolve(socket));
    });
  const never = await Promise.all(Array.from({ length: 8 }, () => asked((socket) => socket.pause())));
  await Promise.all(Array.from({ length: 8 }, () => asked((socket) => socket.destroy())));
  // One that says nothing at all, and more than there is room for.
  const silent = await Promise.all(Array.from({ length: 100 }, () => new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => resolve(socket));
    socket.on("error", () => resolve(socket));
  })));
  const done = await run.end();
  assert.equal(done.status, 0, done.stderr);
  const { outcomes, measured } = JSON.parse(done.stdout);
  assert.equal(outcomes.due, 2000);
  assert.equal(outcomes.answered, 2000);
  assert.equal(measured.due, 2000);
  for (const socket of [...never, ...silent]) socket.destroy();
});

test("only what is meant for it is answered", async () => {
  const run = await goingOn("-r", "50", "-d", "1h", "-t", "1", "-c", "1", server.url);
  const { port } = new URL(run.url);
  const ask = (path, options = {}) =>
    new Promise((resolve, reject) => {
      const asked = request({ host: "127.0.0.1", port, path, ...options }, (answer) => {
        answer.resume();
        resolve(answer);
      });
      asked.on("error", reject).end();
    });
  assert.equal((await ask("/")).statusCode, 200);
  assert.equal((await ask("/", { headers: { host: `localhost:${port}` } })).statusCode, 200);
  // A name that somebody else's page was reached by, and that now leads here.
  assert.equal((await ask("/", { headers: { host: "evil.example" } })).statusCode, 421);
  assert.equal((await ask("/events", { headers: { host: `evil.example:${port}` } })).statusCode, 421);
  assert.equal((await ask("/other")).statusCode, 404);
  assert.equal((await ask("/", { method: "POST" })).statusCode, 405);
  assert.equal((await ask("/")).headers["content-security-policy"], "frame-ancestors 'none'");
  run.kill();
  await run.end();
});
