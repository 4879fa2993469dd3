// Makes one HTML file of src/: script and style stand in it, and nothing else may run in it, or be fetched by it: the
// content security policy names their hashes.
import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const OUT = new URL("../crates/report/page/page.html", import.meta.url);

async function bundled(entry) {
  const result = await build({
    entryPoints: [new URL(entry, import.meta.url).pathname],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: ["es2022", "chrome105", "firefox110", "safari16"],
    charset: "utf8",
    legalComments: "none",
  });
  return result.outputFiles[0].text.trim();
}

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

function put(template, place, text) {
  const parts = template.split(place);
  if (parts.length !== 2) throw new Error(`expected ${place} once in src/page.html, got it ${parts.length - 1} times`);
  return parts.join(text);
}

const [script, style, template] = await Promise.all([
  bundled("src/main.ts"),
  bundled("src/style.css"),
  readFile(new URL("src/page.html", import.meta.url), "utf8"),
]);
if (/<\/(script|style)/i.test(script + style)) throw new Error("the script or the style would end its own element");
const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; img-src data:; base-uri 'none'; form-action 'none'`;
let page = put(template, "/* the policy */", policy);
page = put(page, "/* the style */", style);
page = put(page, "/* the script */", script);
await mkdir(new URL(".", OUT), { recursive: true });
await writeFile(OUT, page);
console.log(`crates/report/page/page.html: ${Math.ceil(page.length / 1024)} KiB`);
