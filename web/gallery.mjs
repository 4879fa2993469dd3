// Makes docs/gallery of runs of known shapes: of each its page's first screen as a picture, and its text.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { launch, open } from "./test/browser.mjs";
import { brunt, directory, target } from "./test/program.mjs";
import { make, SHAPES } from "./test/shapes.mjs";

const GALLERY = fileURLToPath(new URL("../docs/gallery/", import.meta.url));

await mkdir(GALLERY, { recursive: true });
const files = await directory();
// Scripts are named as who stands beside them would.
process.chdir(files.path("."));
const browser = await launch();
const parts = ["# Gallery\n", "Runs of known shapes, as `make gallery` made them on brunt's own target: the first screen of each run's page, and its text.\n"];
try {
  for (const shape of SHAPES) {
    const { text, html } = await make(shape, files.path, { brunt, target });
    const { page } = await open(browser, html, { viewport: { width: 1280, height: 800 } });
    await page.screenshot({ path: `${GALLERY}${shape.name}.png` });
    await page.close();
    const words = ["brunt", ...(shape.script ? ["run shop.lua"] : [shape.run.map((word) => (/^[\w./,%<:-]+$/.test(word) ? word : `'${word}'`)).join(" "), "URL"])].join(" ");
    const serve = shape.serve.map((word) => (word.includes(" ") ? `'${word}'` : word)).join(" ");
    parts.push(`## ${shape.name}\n\n\`brunt serve http ${serve}\`, then \`${words}\`\n\n![first screen](${shape.name}.png)\n\n\`\`\`text\n${text.trimEnd()}\n\`\`\`\n`);
  }
} finally {
  await browser.close();
  await files.end();
}
parts.push(await terminal());
await writeFile(`${GALLERY}README.md`, parts.join("\n"));

/** What a terminal of 80 by 24 shows while a run goes on: as the tests hold it, of seconds that are the same each time. */
async function terminal() {
  const [COLUMNS, LINES] = [80, 24];
  const shown = [["healthy", "all is well"], ["stalled", "nothing is answered"], ["after", "after the stall"], ["no-server", "there is no server"], ["errors", "calls fail"]];
  const frames = await Promise.all(
    shown.map(async ([name, words]) => {
      const lines = (await readFile(new URL(`../crates/report/tests/golden/live-${name}.txt`, import.meta.url), "utf8")).split("\n");
      const first = lines.findIndex((line) => line.length === COLUMNS);
      return `### ${words}\n\n\`\`\`text\n${lines.slice(first, first + LINES).join("\n").trimEnd()}\n\`\`\`\n`;
    }),
  );
  return ["## The terminal\n", ...frames].join("\n");
}
