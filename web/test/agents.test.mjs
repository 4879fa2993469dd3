// The agents of a run on several machines, on the page of the finished run and on the live one: real agents over a real nats-server.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { after, before, test } from "node:test";
import { blank, launch, open, rows } from "./browser.mjs";
import { agent, brunt, directory, goingOn, makePages, target } from "./program.mjs";

let browser;
let files;
let server;
let nats;

before(async () => {
  files = await directory();
  browser = await launch();
  server = await target();
  nats = await bus();
});

after(async () => {
  nats?.end();
  server?.end();
  await browser?.close();
  await files?.end();
});

/** A nats-server on a free port, once it listens. */
async function bus() {
  const port = await new Promise((resolve) => {
    const listener = createServer().listen(0, "127.0.0.1", () => {
      const { port } = listener.address();
      listener.close(() => resolve(port));
    });
  });
  const child = spawn("nats-server", ["-a", "127.0.0.1", "-p", String(port)], { stdio: "ignore" });
  const failed = new Promise((_, reject) => child.on("error", (error) => reject(new Error(`nats-server: ${error.message}; make test installs it`))));
  const listens = async () => {
    for (;;) {
      const isThere = await new Promise((resolve) => {
        const socket = connect(port, "127.0.0.1", () => resolve(true)).on("error", () => resolve(false));
        socket.unref();
      });
      if (isThere) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  await Promise.race([listens(), failed]);
  return { url: `nats://127.0.0.1:${port}`, end: () => child.kill() };
}

test("each agent has a line, and can be sorted by its figures", async () => {
  const agents = await Promise.all(["a1", "a2"].map((name) => agent(nats.url, name)));
  try {
    const [html, json] = [files.path("run.html"), files.path("run.json")];
    await brunt("-r", "300", "-d", "2s", "-t", "1", "--nats", nats.url, "--agents", "2", "--quiet", "--html", html, "-o", json, server.url);
    const result = JSON.parse(await readFile(json, "utf8"));
    const { page, complaints } = await open(browser, html);
    assert.deepEqual(complaints, []);
    const shown = await rows(page, "agents");
    assert.deepEqual(
      shown.map(([name, , workers, due]) => [name, workers, due]),
      [
        ["a1", "1", "300"],
        ["a2", "1", "300"],
      ],
    );
    assert.match(await page.textContent("#agents caption"), /^2 agents, began within \S+ of each other/);
    await page.close();
    assert.deepEqual(result.agents.list.map(({ due }) => due), [300, 300]);
    // One that was lost says how; hostile names stay text.
    await makePages(files.path(""));
    const lost = await open(browser, files.path("agent-lost.html"));
    assert.deepEqual(lost.complaints, []);
    assert.match(await lost.page.textContent("#agents caption"), /^2 agents, 1 lost, /);
    const line = (await rows(lost.page, "agents")).find(([name]) => name === "<i>a2</i>");
    assert.equal(line.at(-1), "lost after 2.00s: <b>gone</b>; 1,234 users never started");
    // The one with fewer answers comes first.
    const order = "#agents thead th:nth-child(5)";
    await lost.page.click(`${order} button`);
    await lost.page.click(`${order} button`);
    assert.deepEqual((await rows(lost.page, "agents")).map(([name]) => name), ["<i>a2</i>", "a1"]);
    assert.equal(await lost.page.getAttribute(order, "aria-sort"), "ascending");
    await lost.page.close();
  } finally {
    agents.forEach((one) => one.end());
  }
});

test("the live page shows each agent's last second, and which of them has fallen silent", async () => {
  const agents = await Promise.all(["b1", "b2"].map((name) => agent(nats.url, name)));
  try {
    const run = await goingOn("-r", "200", "-d", "1h", "-t", "1", "--nats", nats.url, "--agents", "2", server.url);
    const page = await blank(browser);
    const complaints = [];
    page.on("console", (message) => complaints.push(`console: ${message.text()}`));
    page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
    await page.goto(run.url);
    await page.waitForSelector("#agents tbody tr");
    const shown = await rows(page, "agents");
    assert.deepEqual(shown.map(([name]) => name), ["b1", "b2"]);
    await agents[1].kill();
    await page.waitForFunction(() => {
      const line = [...document.querySelectorAll("#agents tbody tr")].find((row) => row.cells[0].textContent === "b2");
      return line?.textContent.includes("reported nothing");
    });
    assert.deepEqual(complaints, []);
    run.interrupt();
    const done = await run.end();
    assert.equal(done.status, 130, done.stderr);
    await page.close();
  } finally {
    agents.forEach((one) => one.end());
  }
});
