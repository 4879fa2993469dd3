// brunt as a program, and places for its files.
import { execFile, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const TARGET = process.env.CARGO_TARGET_DIR ?? path.join(ROOT, "target");
export const BRUNT = process.env.BRUNT ?? path.join(TARGET, "debug/brunt");

export const golden = (name) => path.join(ROOT, "crates/report/tests/golden", name);

/** Runs brunt to its end; what it printed. A failed threshold is no failure of the program, nor is a silent target. */
export async function brunt(...args) {
  // What is kept, is kept in a file that the test names.
  const env = { ...process.env, BRUNT_NO_SAVE: "1" };
  try {
    return (await promisify(execFile)(BRUNT, args, { env, maxBuffer: 64 << 20 })).stdout;
  } catch (error) {
    if (error.code === 1 || error.code === 3) return error.stdout;
    throw new Error(`${BRUNT} ${args.join(" ")}: ${error.stderr || error.message}`);
  }
}

/** Writes pages of runs that no result was kept of into `directory`, and their results. */
export async function makePages(directory) {
  const env = { ...process.env, BRUNT_PAGES: directory };
  // Built as make test builds it, so that nothing is compiled twice.
  const words = ["--config", ".ci/tests.toml", "test", "--quiet", "--workspace", "--features", "brunt/schema", "--test", "pages"];
  await promisify(execFile)("cargo", words, { cwd: ROOT, env, maxBuffer: 64 << 20 });
}

/** brunt's own target, until `end` is called. */
export async function target(...args) {
  const child = spawn(BRUNT, ["serve", "http", "0", ...args], { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: child.stdout })) {
    const url = line.match(/https?:\/\/[^\s/]+\//)?.[0];
    if (url) return { url, end: () => child.kill() };
  }
  throw new Error("brunt serve http said no URL");
}

/** An agent of this name on a NATS server, once it waits for runs; until `end` or `kill` is called. */
export async function agent(nats, name) {
  const child = spawn(BRUNT, ["agent", "--nats", nats, "--name", name, "--cores", "1"], { stdio: ["ignore", "ignore", "pipe"] });
  const ended = new Promise((resolve) => child.on("close", resolve));
  const lines = createInterface({ input: child.stderr });
  const waits = new Promise((resolve) => lines.on("line", (line) => line.includes("waits for runs") && resolve(true)));
  if (!(await Promise.race([waits, ended.then(() => false)]))) throw new Error(`brunt agent ${name} ended`);
  return { end: () => child.kill(), kill: () => (child.kill("SIGKILL"), ended) };
}

/** A run that goes on, with its live page at `url`. */
export async function goingOn(...args) {
  const env = { ...process.env, BRUNT_NO_SAVE: "1" };
  const live = ["--live", "--live-linger", "0s"];
  const words = ["sweep", "find", "compare", "run"].includes(args[0]) ? [args[0], ...live, ...args.slice(1)] : [...live, ...args];
  const child = spawn(BRUNT, words, { env, stdio: ["ignore", "pipe", "pipe"] });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text) => (stdout += text));
  const ended = new Promise((resolve) => child.on("close", (status) => resolve({ status, stdout, stderr })));
  const url = await new Promise((resolve, reject) => {
    child.stderr.setEncoding("utf8").on("data", (text) => {
      stderr += text;
      const [found] = stderr.match(/(?<=^live: )\S+(?=\n)/m) ?? [];
      if (found) resolve(found);
    });
    ended.then((done) => reject(new Error(`brunt ended without a live page: ${done.stderr}`)));
  });
  return { url, end: () => ended, interrupt: () => child.kill("SIGINT"), kill: () => child.kill("SIGKILL") };
}

/** A directory that goes with the tests. */
export async function directory() {
  const dir = await mkdtemp(path.join(tmpdir(), "brunt-page-"));
  return { path: (name) => path.join(dir, name), end: () => rm(dir, { recursive: true, force: true }) };
}

/** A run that is kept in the file `store`. A failed threshold is no failure of the program. */
export async function kept(store, ...args) {
  return brunt("--quiet", "--store", store, ...args);
}

/** The pages of the runs in `store`, until `end` is called. */
export async function ui(store) {
  const child = spawn(BRUNT, ["ui", "--store", store], { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: child.stdout })) return { url: line.trim(), end: () => child.kill() };
  throw new Error("brunt ui said no URL");
}
