// Makes docs/gallery of runs of known shapes: of each its page's first screen as a picture, its text, and the live view.
import { mkdir, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { launch, open } from "./test/browser.mjs";
import { directory } from "./test/program.mjs";
import { make, SHAPES } from "./test/shapes.mjs";

const GALLERY = fileURLToPath(new URL("../docs/gallery/", import.meta.url));

await mkdir(GALLERY, { recursive: true });
const files = await directory();
// Scripts are named as who stands beside them would.
process.chdir(files.path("."));
const browser = await launch();
const parts = ["# Gallery\n", "Runs of known shapes, as `make gallery` made them on brunt's own target: the first screen of each run's page, its text, and the last picture of its live view on a terminal of 80 by 24.\n"];
try {
  for (const shape of SHAPES) {
    const { frame, text, html } = await make(shape, files.path);
    const { page } = await open(browser, html, { viewport: { width: 1280, height: 800 } });
    await page.screenshot({ path: `${GALLERY}${shape.name}.png` });
    await page.close();
    const words = ["brunt", ...(shape.script ? ["run shop.lua"] : [shape.run.map((word) => (/^[\w./,%<:-]+$/.test(word) ? word : `'${word}'`)).join(" "), "URL"])].join(" ");
    const serve = shape.serve.map((word) => (word.includes(" ") ? `'${word}'` : word)).join(" ");
    parts.push(`## ${shape.name}\n\n\`brunt serve http ${serve}\`, then \`${words}\`\n\n![first screen](${shape.name}.png)\n\n\`\`\`text\n${text.trimEnd()}\n\`\`\`\n\nOn the terminal, at the end:\n\n\`\`\`text\n${frame.map((line) => line.trimEnd()).join("\n").trimEnd()}\n\`\`\`\n`);
  }
} finally {
  await browser.close();
  await files.end();
}
await writeFile(`${GALLERY}README.md`, parts.join("\n"));
