// Makes docs/gallery of runs of known shapes: of each its page's first screen as a picture, and its text.
import { mkdir, writeFile } from "node:fs/promises";
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
await writeFile(`${GALLERY}README.md`, parts.join("\n"));
