// One sentence leads a run wherever it is shown: on the page, in text, JSON, JUnit, and in the history.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { launch, open } from "./browser.mjs";
import { brunt, directory } from "./program.mjs";
import { make, SHAPES } from "./shapes.mjs";

let browser;
let files;

before(async () => {
  files = await directory();
  browser = await launch();
});

after(async () => {
  await browser?.close();
  await files?.end();
});

/** A sentence without its sign, a finding's number, and how it was broken into lines. */
const plain = (sentence) => sentence.replace(/\s+/g, " ").replace(/^((✗|!|·|✓) |FAILED: |FAILING: )/, "").replace(/^[①-⑤] /, "").trim();

for (const shape of SHAPES) {
  test(`${shape.name}: the first line says what happened, everywhere the same`, async () => {
    const [junit, store] = [`${shape.name}.xml`, `${shape.name}.db`].map(files.path);
    const { frame, text, json, html } = await make(shape, files.path, "-o", junit, "--store", store);
    const [headline, ...others] = JSON.parse(await readFile(json, "utf8")).remarks;
    const sign = { failed: "FAILED: ", bad: "✗ ", warning: "! ", note: "· ", plain: "", good: "✓ " }[headline.tone];
    assert.match(`${sign}${headline.message}`, shape.says);
    if (shape.also) assert.ok(others.some(({ message }) => shape.also.test(message)), JSON.stringify(others));
    const sentence = plain(headline.message);
    assert.ok(plain(text.split("\n\n")[0]).startsWith(sentence), text.split("\n\n")[0]);
    assert.ok(plain((await readFile(junit, "utf8")).replaceAll("&gt;", ">").replaceAll("&lt;", "<").replaceAll("&apos;", "'").replaceAll("&amp;", "&").split("<system-out>")[1]).startsWith(sentence));
    // On the terminal nothing is judged yet, and the line is cut where the terminal ends.
    const state = plain(frame[1].replace(/^[▲✗ ] /, "")).replace("has not answered yet", "never answered").replace(/…$/, "");
    if (["warning", "bad", "failed"].includes(headline.tone)) assert.ok(state.length > 20 && sentence.startsWith(state), `${frame[1]}: ${sentence}`);
    // It may have a doubt about its measurement meanwhile, on a machine that others use, that the whole run has not.
    else assert.match(state, /^(Steady|Draining): |unreliable|sent as asked|brunt was the limit/);
    for (const line of frame) assert.ok(line.length <= 80, line);
    const { page, complaints } = await open(browser, html);
    assert.equal(plain(await page.textContent("#outcome .outcome")), sentence);
    // Nothing green stands above a failure: green is a threshold that held.
    if (headline.tone !== "good") assert.equal(await page.locator("#outcome .outcome.good").count(), 0);
    assert.deepEqual(complaints, []);
    await page.close();
    const [kept] = JSON.parse(await brunt("runs", "--store", store, "--format", "json"));
    assert.equal(plain(kept.headline), sentence);
  });
}
