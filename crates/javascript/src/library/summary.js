// `brunt:summary`: the object `data` that k6 gives handleSummary, from what the run has counted.
//
// The run hands over one plain object:
//     {
//         metrics: [{
//             name,        // such as `http_req_duration` or `http_req_duration{page:a}`
//             kind,        // `counter`, `gauge`, `rate` or `trend`
//             contains,    // `time` (milliseconds), `data` (bytes) or `default`
//             values,      // counter: { count, rate (a second) }; gauge: { value, min, max }; rate: { rate, passes, fails };
//                          // trend: a number under each name of `summaryTrendStats`: avg, min, med, max, count, p(N)
//             thresholds,  // [{ source, ok }], or nothing
//         }],
//         groups: [["outer"], ["outer", "inner"]],           // names along each group's path
//         checks: [{ group: ["outer"], name, passes, fails }],
//         options: { summaryTrendStats, summaryTimeUnit, noColor },
//         setupData,       // what setup returned, or nothing
//         isStdOutTTY, isStdErrTTY, testRunDurationMs,
//     }
import * as native from "brunt:natives";
import { hexOf } from "brunt:bytes";

const DEFAULT_STATS = ["avg", "min", "med", "max", "p(90)", "p(95)"];

/** k6's identity of a group or check: the MD5 digest of its path. */
function identity(path) {
    return hexOf(native.digest("md5", native.utf8(path)));
}

/** A group without its parts. */
function group(name, path) {
    return { name, path, id: identity(path), groups: [], checks: [] };
}

/** The group at a path of names under the root, made with those above it where it is missing. */
function groupAt(root, names) {
    let at = root;
    for (const name of names) {
        let inner = at.groups.find((one) => one.name === name);
        if (inner === undefined) at.groups.push((inner = group(name, `${at.path}::${name}`)));
        at = inner;
    }
    return at;
}

/** The root group with all groups and checks. */
function rootGroup({ groups, checks }) {
    const root = group("", "");
    for (const names of groups) groupAt(root, names);
    for (const { group: names, name, passes, fails } of checks) {
        const owner = groupAt(root, names);
        const path = `${owner.path}::${name}`;
        owner.checks.push({ name, path, id: identity(path), passes, fails });
    }
    return root;
}

/** One metric, as k6 shows it. */
function metric({ kind, contains, values, thresholds }) {
    const shown = { type: kind, contains, values };
    if (thresholds?.length > 0) shown.thresholds = Object.fromEntries(thresholds.map(({ source, ok }) => [source, { ok }]));
    return shown;
}

/** The object `data` of handleSummary. */
export function summaryData(run) {
    const { summaryTrendStats, summaryTimeUnit, noColor } = run.options ?? {};
    const data = {
        root_group: rootGroup(run),
        options: {
            summaryTrendStats: summaryTrendStats ?? DEFAULT_STATS,
            summaryTimeUnit: summaryTimeUnit ?? "",
            noColor: noColor ?? false,
        },
        state: {
            isStdOutTTY: run.isStdOutTTY,
            isStdErrTTY: run.isStdErrTTY,
            testRunDurationMs: run.testRunDurationMs,
        },
        metrics: Object.fromEntries(run.metrics.map((one) => [one.name, metric(one)])),
    };
    if (run.setupData !== undefined) data.setup_data = run.setupData;
    return data;
}
