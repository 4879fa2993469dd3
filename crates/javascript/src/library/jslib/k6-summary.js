// `https://jslib.k6.io/k6-summary`: k6's summary of a run as text, and its thresholds as JUnit's XML.

const COLORS = { red: "31", green: "32", cyan: "36", faint: "2" };
const UNITS = { s: [0.001, "s"], ms: [1, "ms"], us: [1000, "µs"] };
const BYTES = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
const PASSED = "✓";
const FAILED = "✗";

/** Writes a text in color, or as it is. */
function painter(enabled) {
    return (text, ...colors) => (enabled ? `\x1b[${colors.map((color) => COLORS[color]).join(";")}m${text}\x1b[0m` : text);
}

/** A number with at most so many decimals, and no zeros at its end. */
function decimal(number, digits) {
    return String(Number(number.toFixed(digits)));
}

/** A number of bytes in the unit that fits. */
function bytes(count) {
    if (count < 10) return `${decimal(count, 6)} B`;
    const power = Math.min(Math.floor(Math.log10(count) / 3 + 1e-9), BYTES.length - 1);
    const number = Math.round((count / 1000 ** power) * 10) / 10;
    return `${number.toFixed(number < 10 ? 1 : 0)} ${BYTES[power]}`;
}

/** Milliseconds, in the unit that the options name or that fits. */
function duration(milliseconds, unit) {
    if (unit in UNITS) return (milliseconds * UNITS[unit][0]).toFixed(2) + UNITS[unit][1];
    if (milliseconds === 0) return "0s";
    if (milliseconds < 0.001) return `${Math.trunc(milliseconds * 1e6)}ns`;
    if (milliseconds < 1) return `${decimal(milliseconds * 1000, 2)}µs`;
    if (milliseconds < 1000) return `${decimal(milliseconds, 2)}ms`;
    const seconds = milliseconds / 1000;
    if (seconds < 60) return `${decimal(seconds, 2)}s`;
    const minutes = Math.trunc(seconds / 60);
    const rest = `${minutes % 60}m${Math.trunc(seconds % 60)}s`;
    return minutes < 60 ? rest : `${Math.trunc(minutes / 60)}h${rest}`;
}

/** A value of a metric, as its type and contents want. */
function shown(value, { type, contains }, unit) {
    if (type === "rate") return `${(Math.trunc(value * 10000) / 100).toFixed(2)}%`;
    if (contains === "data") return bytes(value);
    return contains === "time" ? duration(value, unit) : decimal(value, 6);
}

/** The value of a metric that is no trend, and what stands beside it. */
function plainColumns(metric, unit) {
    const { values } = metric;
    if (metric.type === "rate") return [shown(values.rate, metric, unit), `${PASSED} ${values.passes}`, `${FAILED} ${values.fails}`];
    if (metric.type === "counter") return [shown(values.count, metric, unit), `${shown(values.rate, metric, unit)}/s`];
    return [shown(values.value, metric, unit), `min=${shown(values.min, metric, unit)}`, `max=${shown(values.max, metric, unit)}`];
}

/** A trend's statistics. */
function trendColumns(metric, stats, unit) {
    return stats.map((stat) => {
        const value = metric.values[stat] ?? 0;
        return `${stat}=${stat === "count" ? value : shown(value, metric, unit)}`;
    });
}

/** Rows with columns of the same width, but for the last of each row. */
function aligned(rows) {
    const widths = [];
    for (const row of rows) row.forEach((text, column) => (widths[column] = Math.max(widths[column] ?? 0, text.length)));
    return rows.map((row) => row.map((text, column) => (column === row.length - 1 ? text : text.padEnd(widths[column]))).join(" "));
}

/** Checks and groups of a group. */
function groupLines(indent, group, paint) {
    const lines = [];
    let inner = indent;
    if (group.name !== "") {
        lines.push(`${indent}█ ${group.name}`, "");
        inner += "  ";
    }
    for (const check of group.checks ?? []) lines.push(...checkLines(inner, check, paint));
    if (group.checks?.length > 0) lines.push("");
    for (const one of group.groups ?? []) lines.push(...groupLines(inner, one, paint));
    return lines;
}

/** A check, with its share where some failed. */
function checkLines(indent, { name, passes, fails }, paint) {
    if (fails === 0) return [paint(`${indent}${PASSED} ${name}`, "green")];
    const share = Math.floor((100 * passes) / (passes + fails));
    return [paint(`${indent}${FAILED} ${name}`, "red"), paint(`${indent} ↳  ${share}% — ${PASSED} ${passes} / ${FAILED} ${fails}`, "red")];
}

/** The sign of a metric's thresholds: whether all hold, or a space where it has none. */
function mark({ thresholds }, paint) {
    if (!thresholds) return " ";
    return Object.values(thresholds).every(({ ok }) => ok) ? paint(PASSED, "green") : paint(FAILED, "red");
}

/** A metric's name as it is shown, and how far it is set in: a submetric has its filter for a name. */
function titleOf(name) {
    const filter = /^[^{]*\{(.*)\}$/.exec(name);
    return filter ? { title: `{ ${filter[1]} }`, inset: "  " } : { title: name, inset: "" };
}

/** All metrics, sorted by name. */
function metricLines(indent, data, unit, paint) {
    const names = Object.keys(data.metrics).sort();
    const lengthOf = ({ title, inset }) => title.length + inset.length;
    const width = Math.max(...names.map((name) => lengthOf(titleOf(name)))) + 3;
    const columns = new Map();
    const fill = (chosen, columnsOf) => {
        const rows = aligned(chosen.map((name) => columnsOf(data.metrics[name])));
        chosen.forEach((name, index) => columns.set(name, rows[index]));
    };
    const isTrend = (name) => data.metrics[name].type === "trend";
    const stats = data.options?.summaryTrendStats ?? ["avg", "min", "med", "max", "p(90)", "p(95)"];
    fill(names.filter((name) => !isTrend(name)), (metric) => plainColumns(metric, unit));
    fill(names.filter(isTrend), (metric) => trendColumns(metric, stats, unit));
    return names.map((name) => {
        const { title, inset } = titleOf(name);
        const dots = paint(".".repeat(width - lengthOf({ title, inset })), "faint");
        return `${indent}${inset}${mark(data.metrics[name], paint)} ${title}${dots}: ${paint(columns.get(name), "cyan")}`;
    });
}

/** The summary of a run as text. Options: `indent`, `enableColors`, `summaryTimeUnit`. */
export function textSummary(data, options = {}) {
    const paint = painter(options.enableColors ?? !data.options?.noColor);
    const indent = options.indent ?? " ";
    const unit = options.summaryTimeUnit ?? data.options?.summaryTimeUnit;
    const lines = groupLines(`${indent}    `, data.root_group, paint);
    if (Object.keys(data.metrics).length > 0) lines.push(...metricLines(`${indent}  `, data, unit, paint));
    return lines.join("\n");
}

/** A text inside XML. */
function escaped(text) {
    return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;").replace(/'/g, "&apos;");
}

/** The thresholds of a run as a suite of JUnit's XML. Options: `name`. */
export function jUnit(data, options = {}) {
    const cases = Object.entries(data.metrics).flatMap(([name, { thresholds }]) =>
        Object.entries(thresholds ?? {}).map(([source, { ok }]) => ({ title: escaped(`${name} - ${source}`), ok })));
    const counts = `tests="${cases.length}" failures="${cases.filter(({ ok }) => !ok).length}"`;
    const rows = cases.map(({ title, ok }) => `<testcase name="${title}"${ok ? " />" : '><failure message="failed" /></testcase>'}\n`);
    const suite = `<testsuite name="${escaped(options.name ?? "k6 thresholds")}" ${counts}>${rows.join("")}</testsuite >`;
    return `<?xml version="1.0"?>\n<testsuites ${counts}>\n${suite}\n</testsuites >`;
}

export default { textSummary, jUnit };
