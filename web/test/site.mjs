// The static site of the guide: every link leads somewhere, search finds, and axe finds nothing against WCAG 2.2 AA. `make site-test`
// makes the site and runs this; the folder is in SITE.
import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { extname, join, normalize, relative } from "node:path";
import { after, before, test } from "node:test";
import { blank, launch } from "./browser.mjs";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const ROOT = process.env.SITE ?? new URL("../../target/site", import.meta.url).pathname;
const TYPES = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".json": "application/json", ".png": "image/png" };

let browser;
let server;
let base;
let files;
/** Addresses of joined pages, which lead to another. */
let moved;

before(async () => {
  files = (await readdir(ROOT, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => relative(ROOT, join(entry.parentPath ?? entry.path, entry.name)));
  const texts = await Promise.all(files.filter((file) => file.endsWith(".html")).map(async (file) => [file, await readFile(join(ROOT, file), "utf8")]));
  moved = texts.filter(([, text]) => text.includes('http-equiv="refresh"')).map(([file]) => file);
  server = createServer(async (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, "http://site").pathname)).replace(/\/$/, "/index.html");
    try {
      response.setHeader("content-type", TYPES[extname(path)] ?? "application/octet-stream").end(await readFile(join(ROOT, path)));
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  base = `http://127.0.0.1:${server.address().port}`;
  browser = await launch();
});

after(async () => {
  await browser?.close();
  server?.close();
});

/** Pages of the guide: not the redirects and the frame of contents that mdbook adds. */
const pages = () => files.filter((file) => file.endsWith(".html") && !["404.html", "print.html", "toc.html"].includes(file) && !moved.includes(file));

test("every link of every page leads to a file and to a place in it", async () => {
  const page = await blank(browser);
  const places = new Map();
  const links = [];
  for (const file of pages()) {
    await page.goto(`${base}/${file}`);
    places.set(file, new Set(await page.$$eval("[id]", (all) => all.map((one) => one.id))));
    const found = await page.$$eval("main a[href], main img[src]", (all) => all.map((one) => one.href ?? one.src));
    links.push(...found.map((href) => ({ file, href })));
  }
  const broken = links.filter(({ href }) => {
    if (!href.startsWith(base)) return false;
    const url = new URL(href);
    const path = decodeURIComponent(url.pathname).replace(/^\//, "").replace(/(^|\/)$/, "$1index.html");
    if (!files.includes(path)) return !files.includes(`${path}/index.html`);
    const place = decodeURIComponent(url.hash.slice(1));
    return place && places.has(path) && !places.get(path).has(place);
  });
  assert.deepEqual(broken.map(({ file, href }) => `${file}: ${href.slice(base.length)}`), []);
  assert.ok(links.length > 100, `${links.length} links`);
  await page.close();
});

test("addresses of joined pages lead to their text", async () => {
  assert.ok(moved.includes("docs/tcp.html"), `${moved}`);
  const page = await blank(browser);
  await page.goto(`${base}/docs/tcp.html`);
  await page.waitForFunction(() => location.pathname.endsWith("/docs/sockets.html"));
  await page.close();
});

test("search finds a page by its words", async () => {
  const page = await blank(browser);
  await page.goto(`${base}/docs/load.html?search=threshold`);
  await page.waitForSelector("#mdbook-searchresults a, #searchresults a");
  const found = await page.$$eval("#mdbook-searchresults a, #searchresults a", (all) => all.map((one) => one.textContent));
  assert.ok(found.length > 0);
  await page.close();
});

for (const scheme of ["light", "dark"]) {
  test(`axe finds nothing wrong, ${scheme}`, async () => {
    const page = await blank(browser, { colorScheme: scheme });
    const violations = [];
    for (const file of pages()) {
      await page.goto(`${base}/${file}`);
      await page.addScriptTag({ path: AXE });
      const found = await page.evaluate(() => axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] }));
      violations.push(...found.violations.map(({ id, nodes }) => `${file}: ${id}: ${nodes.length}: ${nodes[0].html.slice(0, 200)}: ${nodes[0].failureSummary?.slice(0, 200)}`));
    }
    assert.deepEqual(violations, []);
    await page.close();
  });
}
