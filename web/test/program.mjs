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
const BRUNT = process.env.BRUNT ?? path.join(TARGET, "debug/brunt");

export const golden = (name) => path.join(ROOT, "crates/report/tests/golden", name);

/** Runs brunt to its end; what it printed. A failed threshold is no failure of the program. */
export async function brunt(...args) {
  const env = { ...process.env, BRUNT_NO_SAVE: "1" };
  try {
    return (await promisify(execFile)(BRUNT, args, { env, maxBuffer: 64 << 20 })).stdout;
  } catch (error) {
    if (error.code === 1) return error.stdout;
    throw new Error(`${BRUNT} ${args.join(" ")}: ${error.stderr || error.message}`);
  }
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

/** A directory that goes with the tests. */
export async function directory() {
  const dir = await mkdtemp(path.join(tmpdir(), "brunt-page-"));
  return { path: (name) => path.join(dir, name), end: () => rm(dir, { recursive: true, force: true }) };
}
