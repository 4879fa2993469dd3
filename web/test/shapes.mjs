// Runs of a known shape, each against brunt's own target, and what whoever reads their first line has to learn.
import { readFile, writeFile } from "node:fs/promises";
import { relative } from "node:path";
import { target } from "./program.mjs";
import { onTerminal } from "./terminal.mjs";

/** A request that fails beside others that do not. */
const SHOP = `local brunt = require "brunt"
local http = brunt.http { base = brunt.env.BASE }
local shopper = brunt.scenario("shopper", function(vu)
  http:get("/", { name = "home" })
  http:get("/_/delay/8", { name = "search" })
  http:get(vu.id % 5 == 0 and "/_/status/503" or "/cart", { name = "checkout" })
end)
shopper:inject { brunt.rate(60, "6s") }
`;

/** Each: its name, how the target is started, what is run (at its URL), and what its first line says. */
export const SHAPES = [
  { name: "steady", serve: ["--delay", "2ms..6ms"], run: ["-r", "300", "-d", "6s", "--threshold", "p99<1s"], says: /^✓ the threshold held: 1,800 of 1,800 calls succeeded, / },
  { name: "freeze", serve: ["--delay", "2ms..6ms", "--faults", "freeze 2s-4s"], run: ["-r", "300", "-d", "6s"], says: /^! the target froze from 0:0[12]\S* to 0:0[34]\S*: \d+ calls waited up to [12]\.\ds/ },
  { name: "pauses", serve: ["--delay", "2ms..6ms", "--stall", "300ms/1500ms"], run: ["-r", "300", "-d", "6s"], says: /^! the target paused [34] times, for 3\d\dms every 1\.5s/ },
  { name: "outage", serve: ["--delay", "2ms..6ms", "--faults", "refuse 2s-4s"], run: ["-r", "300", "-d", "6s"], says: /^FAILED: no server for [12]\.\ds of 6s, 3\d(\.\d)?% of 1,800 calls failed; default limit 1%\./ },
  { name: "outage-closed", serve: ["--delay", "2ms..6ms", "--faults", "refuse 2s-4s"], run: ["-c", "10", "-d", "6s"], says: /^FAILED: no server for (3\d(\.\d)?% of the time from 0:0[12]\S*|[12](\.\d+)?s of 6s, \S+% of [\d,]+ calls failed); default limit 1%\./ },
  { name: "overload", serve: ["--service-time", "4ms", "--servers", "2"], run: ["-r", "100/1s,1k/6s", "-d", "7s"], says: /^! from 0:01\S* on the target answered (49|50)\d calls\/s (\(95%: [45]\d\d to [45]\d\d\) )?while 1,000\/s were due/ },
  { name: "errors", serve: ["--delay", "2ms..6ms", "--error-rate", "5%"], run: ["-r", "300", "-d", "6s"], says: /^FAILED: [3-7]\S*% of 1,800 calls, \d+ × 503; default limit 1%\./ },
  { name: "failing-request", serve: ["--delay", "2ms..6ms"], script: SHOP, says: /^FAILED: 6\.67% of 1,080 calls, 72 × 503/ },
  { name: "slow", serve: ["--delay", "2ms..6ms", "--faults", "delay 100ms 2s-4s"], run: ["-r", "300", "-d", "6s"], says: /^! the target was slow from 0:0[12]\S* to 0:0[34]\S*: \d+ calls took a median of 1\d\d/ },
  { name: "dropped", serve: ["--delay", "40ms", "--faults", "cut 3s"], run: ["-r", "500", "-d", "6s", "--max-error-rate", "5%"], says: /^! the target dropped connections at 0:0[23]\S*: \d+ calls failed/ },
  { name: "closes", serve: ["--delay", "2ms", "--close-after", "10"], run: ["-r", "300", "-d", "6s"], says: /^1,800 of 1,800 calls succeeded/, also: /the target closed connections after about 10 calls/ },
  { name: "silent", serve: ["--delay", "1h"], run: ["-r", "50", "-d", "3s", "--timeout", "1s"], says: /^✗ the target never answered: timeout × / },
];

/** How often a run is made where this machine was too busy for it: a reader is told that first, whatever the target did. */
const ATTEMPTS = 4;

/** Makes the run of a shape on a terminal; what it leaves: the last picture of its live view, its text, and the paths of its result and page. */
export async function make(shape, path, ...more) {
  for (let attempt = 1; ; attempt += 1) {
    const made = await once(shape, path, ...more);
    const { judgement, sentence } = JSON.parse(await readFile(made.json, "utf8")).verdict;
    if (!["latency_unreliable", "generator_bound"].includes(judgement) || attempt === ATTEMPTS) return made;
    console.error(`${shape.name}, again: ${sentence}`);
  }
}

async function once({ name, serve, run, script }, path, ...more) {
  const server = await target(...serve);
  try {
    const [json, html] = [path(`${name}.json`), path(`${name}.html`)];
    const outputs = ["-o", json, "--html", html, ...more];
    if (script === undefined) return { ...(await onTerminal(...run, ...outputs, `${server.url}cart`)), json, html };
    const file = path(`${name}.lua`);
    await writeFile(file, script.replace("brunt.env.BASE", JSON.stringify(server.url.replace(/\/$/, ""))));
    return { ...(await onTerminal("run", ...outputs, relative(process.cwd(), file))), json, html };
  } finally {
    server.end();
  }
}
