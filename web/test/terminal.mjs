// brunt on a terminal of 80 by 24: what it shows while a run goes on, and what it leaves.
import { spawn } from "node:child_process";
import headless from "@xterm/headless";
import { BRUNT } from "./program.mjs";

const [COLUMNS, LINES] = [80, 24];
/** What gives a terminal back after the live view (xterm's private mode 1049). */
const LEAVE = "\x1b[?1049l";

/** A word as a shell reads it. */
const quoted = (word) => `'${word.replaceAll("'", `'\\''`)}'`;

/** Runs brunt on a terminal to its end: the last picture of the live view, as lines, and the text that follows it. */
export async function onTerminal(...args) {
  const command = `stty cols ${COLUMNS} rows ${LINES}; exec ${[BRUNT, ...args].map(quoted).join(" ")}`;
  const env = { ...process.env, BRUNT_NO_SAVE: "1", NO_COLOR: "1", TERM: "xterm-256color", LC_ALL: "C.UTF-8" };
  const child = spawn("script", ["-qfc", command, "/dev/null"], { env, stdio: ["ignore", "pipe", "inherit"] });
  let shown = "";
  child.stdout.setEncoding("utf8").on("data", (text) => (shown += text));
  await new Promise((resolve, reject) => {
    child.on("error", (error) => reject(new Error(`script: ${error.message}; make test installs it`)));
    child.on("close", resolve);
  });
  const end = shown.lastIndexOf(LEAVE);
  if (end < 0) throw new Error(`brunt drew nothing on the terminal: ${shown}`);
  return { frame: await picture(shown.slice(0, end)), text: shown.slice(end + LEAVE.length).replaceAll("\r\n", "\n") };
}

/** What stands on a terminal that was sent this. */
async function picture(text) {
  const terminal = new headless.Terminal({ cols: COLUMNS, rows: LINES, allowProposedApi: true });
  await new Promise((resolve) => terminal.write(text, resolve));
  const { active } = terminal.buffer;
  return Array.from({ length: LINES }, (_, line) => active.getLine(line)?.translateToString(true) ?? "");
}
