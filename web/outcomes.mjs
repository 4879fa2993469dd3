// Makes target/gallery: the first screens of 16 pages, of four kinds of results with four outcomes each, in light, in dark and on a phone,
// to be looked at side by side.
import { mkdir, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { launch, open } from "./test/browser.mjs";
import { brunt, directory, target } from "./test/program.mjs";

const GALLERY = fileURLToPath(new URL("../target/gallery/", import.meta.url));

const QUICK = ["--delay", "2ms..6ms"];
const CAPACITY = ["--service-time", "4ms", "--servers", "2"];
/** More than one thread of brunt can make, whatever the machine. */
const TOO_MUCH = ["-t", "1", "-r", "3M"];

/** Each: its name, how the targets are started (none: nobody listens), and what is run, given their URLs. */
const PAGES = [
  { name: "run-held", serve: [QUICK], words: ([url]) => ["-r", "300", "-d", "6s", "--threshold", "p99<1s", url] },
  { name: "run-failed", serve: [[...QUICK, "--faults", "freeze 2s-4s"]], words: ([url]) => ["-r", "300", "-d", "6s", "--threshold", "p99<50ms", url] },
  { name: "run-doubted", serve: [[]], words: ([url]) => [...TOO_MUCH, "-d", "4s", url] },
  { name: "run-silent", serve: [], words: ([url]) => ["-r", "50", "-d", "3s", url] },
  { name: "find-found", serve: [CAPACITY], words: ([url]) => ["find", "--threshold", "p99<100ms", "-d", "1s", url] },
  { name: "find-not-met", serve: [["--delay", "40ms"]], words: ([url]) => ["find", "--threshold", "p99<5ms", "-d", "1s", url] },
  { name: "find-doubted", serve: [[]], words: ([url]) => ["find", "-t", "1", "--threshold", "p99<1s", "-d", "500ms", url] },
  { name: "find-silent", serve: [], words: ([url]) => ["find", "--threshold", "p99<50ms", "-d", "1s", url] },
  { name: "compare-alike", serve: [QUICK, QUICK], words: ([a, b]) => ["compare", "-r", "300", "-d", "1s", "-w", "0s", "--fail-if", "p50 > 1.2x", a, b] },
  { name: "compare-slower", serve: [QUICK, ["--delay", "4ms..10ms"]], words: ([a, b]) => ["compare", "-r", "300", "-d", "1s", "-w", "0s", "--fail-if", "p50 > 1.2x", a, b] },
  { name: "compare-undecided", serve: [["--delay", "1ms..60ms"], ["--delay", "1ms..64ms"]], words: ([a, b]) => ["compare", "-r", "100", "-d", "500ms", "-w", "0s", "--fail-if", "p90 > 1.1x", a, b] },
  { name: "compare-silent", serve: [QUICK], words: ([a, b]) => ["compare", "-r", "300", "-d", "1s", "-w", "0s", a, b] },
  { name: "sweep-bend", serve: [CAPACITY], words: ([url]) => ["sweep", "-c", "1,2,4,8,16,32", "-d", "1s", "-w", "0s", url] },
  { name: "sweep-failed", serve: [CAPACITY], words: ([url]) => ["sweep", "-r", "100,200,400,600", "-d", "1s", "-w", "0s", "--threshold", "p99<50ms", url] },
  { name: "sweep-doubted", serve: [[]], words: ([url]) => ["sweep", "-t", "1", "-r", "50k,1M,3M", "-d", "1s", "-w", "0s", url] },
  { name: "sweep-silent", serve: [], words: ([url]) => ["sweep", "-c", "1,2,4", "-d", "1s", "-w", "0s", url] },
];

/** Views of a page: a window each, and the width at which it stands in the picture. */
const VIEWS = [
  { viewport: { width: 1280, height: 900 }, colorScheme: "light", shown: 640 },
  { viewport: { width: 1280, height: 900 }, colorScheme: "dark", shown: 640 },
  { viewport: { width: 390, height: 900 }, colorScheme: "light", shown: 390 },
];

const asked = new RegExp(process.argv[2] ?? "");
await mkdir(GALLERY, { recursive: true });
const files = await directory();
const browser = await launch();
try {
  for (const { name, serve, words } of PAGES.filter(({ name }) => asked.test(name))) {
    const servers = await Promise.all(serve.map((flags) => target(...flags)));
    const html = files.path(`${name}.html`);
    try {
      // Nobody listens at the discard port.
      const urls = [...servers.map(({ url }) => `${url}cart`), "http://127.0.0.1:9/cart"];
      await writeFile(`${GALLERY}${name}.txt`, await brunt(...words(urls), "-o", html));
    } finally {
      servers.forEach((server) => server.end());
    }
    const pictures = [];
    for (const { shown, ...view } of VIEWS) {
      const { page } = await open(browser, html, view);
      // What a reader would have to push aside.
      const cut = await page.$$eval(".scroll", (all) => all.filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => `${one.getAttribute("aria-label")}: ${one.scrollWidth} of ${one.clientWidth}`));
      if (cut.length > 0) console.log(`${name} at ${view.viewport.width}: ${cut.join("; ")}`);
      pictures.push(`<img width=${shown} src="data:image/png;base64,${(await page.screenshot()).toString("base64")}">`);
      await page.close();
    }
    const side = await browser.newPage({ viewport: { width: 1710, height: 480 } });
    await side.setContent(`<body style="display:flex;align-items:flex-start;gap:8px;margin:8px;background:#888">${pictures.join("")}`);
    await side.screenshot({ fullPage: true, path: `${GALLERY}${name}.png` });
    await side.close();
    console.log(name);
  }
} finally {
  await browser.close();
  await files.end();
}
