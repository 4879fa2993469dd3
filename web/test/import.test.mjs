// A visit to the built-in shop, recorded by a real Chromium, as a scenario that goes through it again.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { launch } from "./browser.mjs";
import { BRUNT, directory, target } from "./program.mjs";

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

/** What a user does in the shop, as a HAR in this file. */
async function record(file) {
  const context = await browser.newContext({ recordHar: { path: file, content: "embed" } });
  const page = await context.newPage();
  await page.goto(`${server.url}shop/`);
  await page.waitForTimeout(600);
  await page.click("text=Log in");
  await page.fill("input[name=user]", "ann");
  await page.fill("input[name=password]", "pw-ann");
  await page.click("button");
  await page.waitForURL("**/shop/account");
  await page.evaluate(async () => {
    const { items } = await (await fetch("/shop/items?page=2")).json();
    const body = JSON.stringify({ item: items[3].id, count: 2 });
    const cart = await (await fetch("/shop/cart", { method: "POST", headers: { "Content-Type": "application/json" }, body })).json();
    await fetch(`/shop/cart/${cart.id}`);
    await fetch("/shop/checkout", { method: "POST", body: new URLSearchParams({ cart: cart.id }) });
    await fetch("/shop/items/1000");
    await fetch(`/shop/cart/${cart.id}`, { method: "DELETE" });
  });
  await context.close();
}

test("a recording of Chromium becomes a scenario that holds its own checks", async () => {
  const [har, lua] = [files.path("shop.har"), files.path("shop.lua")];
  await record(har);
  const brunt = (args, env = {}) => promisify(execFile)(BRUNT, args, { env: { ...process.env, BRUNT_NO_SAVE: "1", ...env } });
  const { stderr } = await brunt(["import", "har", har, "-o", lua]);
  assert.match(stderr, /everything was moved/);
  const text = await readFile(lua, "utf8");
  for (const expected of [
    'brunt.group("The shop"',
    'brunt.group("Log in"',
    'found.token = answer:css("input[name=\\"token\\"]"):attr("value")',
    '{ "password", brunt.env("PASSWORD") }',
    'found.id = answer:jsonpath("$.id")',
    'name = "DELETE /shop/cart/:cart_id"',
    "ok = { 404 }",
    "3 files that pages load are left out",
  ]) {
    assert.ok(text.includes(expected), `lacks ${expected}:\n${text}`);
  }
  assert.match(text, /brunt\.pause\(\d/);
  assert.doesNotMatch(text, /pw-ann/);
  const { stdout } = await brunt(["run", lua, "--env", "PASSWORD", "--inject", "visit=iterations_each(2, 3)", "--format", "json"], { PASSWORD: "pw-ann" });
  const { names, outcomes } = JSON.parse(stdout);
  assert.deepEqual(names.checks.filter((check) => check.fails !== 0), []);
  // Nine calls and a redirect, six times.
  assert.equal(outcomes.due, 6 * 10);
});
