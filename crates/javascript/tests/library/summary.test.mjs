// What handleSummary is given, and the texts that jslib makes of it.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { newUser } from "./harness.mjs";

const RUN = {
    metrics: [
        { name: "http_req_duration", kind: "trend", contains: "time", values: { avg: 202.264, med: 0.2788, "p(95)": 61234.5, count: 5 }, thresholds: [{ source: "p(95)<500", ok: false }] },
        { name: "http_req_duration{page:a}", kind: "trend", contains: "time", values: { avg: 0, med: 0.0000004, "p(95)": 3_723_000, count: 2 } },
        { name: "http_reqs", kind: "counter", contains: "default", values: { count: 5, rate: 3.3526461 } },
        { name: "data_received", kind: "counter", contains: "data", values: { count: 63049, rate: 8279.4 } },
        { name: "data_sent", kind: "counter", contains: "data", values: { count: 7, rate: 5.5 } },
        { name: "vus", kind: "gauge", contains: "default", values: { value: 1, min: 1, max: 5 } },
        { name: "checks", kind: "rate", contains: "default", values: { rate: 0.66666, passes: 4, fails: 2 }, thresholds: [{ source: "rate>0.5", ok: true }] },
    ],
    groups: [["outer"], ["outer", "inner"], ["empty"]],
    checks: [
        { group: [], name: "is status 200", passes: 3, fails: 0 },
        { group: ["outer", "inner"], name: "has body", passes: 1, fails: 2 },
    ],
    options: { summaryTrendStats: ["avg", "med", "p(95)", "count"] },
    setupData: { token: "t" },
    isStdOutTTY: false,
    isStdErrTTY: true,
    testRunDurationMs: 1500.5,
};

/** The data and what a function of k6-summary makes of it. */
async function summary(expression) {
    const user = await newUser();
    const script = await user.script(`import { textSummary, jUnit } from "https://jslib.k6.io/k6-summary/0.0.2/index.js";
        import { summaryData } from "brunt:summary";
        const data = summaryData(JSON.parse(${JSON.stringify(JSON.stringify(RUN))}));
        export const made = JSON.stringify(${expression});`);
    return JSON.parse(script.made);
}

test("data has metrics, groups, options and state", async () => {
    const data = await summary("data");
    const id = (path) => createHash("md5").update(path).digest("hex");
    assert.deepEqual(data.metrics.http_req_duration, { type: "trend", contains: "time", values: RUN.metrics[0].values, thresholds: { "p(95)<500": { ok: false } } });
    assert.deepEqual(data.metrics.vus, { type: "gauge", contains: "default", values: { value: 1, min: 1, max: 5 } });
    assert.deepEqual(data.root_group, {
        name: "", path: "", id: id(""),
        groups: [
            { name: "outer", path: "::outer", id: id("::outer"), checks: [], groups: [
                { name: "inner", path: "::outer::inner", id: id("::outer::inner"), groups: [],
                    checks: [{ name: "has body", path: "::outer::inner::has body", id: id("::outer::inner::has body"), passes: 1, fails: 2 }] },
            ] },
            { name: "empty", path: "::empty", id: id("::empty"), groups: [], checks: [] },
        ],
        checks: [{ name: "is status 200", path: "::is status 200", id: id("::is status 200"), passes: 3, fails: 0 }],
    });
    assert.deepEqual(data.options, { summaryTrendStats: ["avg", "med", "p(95)", "count"], summaryTimeUnit: "", noColor: false });
    assert.deepEqual(data.state, { isStdOutTTY: false, isStdErrTTY: true, testRunDurationMs: 1500.5 });
    assert.deepEqual(data.setup_data, { token: "t" });
});

test("textSummary writes checks, groups and metrics", async () => {
    assert.equal(await summary(`textSummary(data, { enableColors: false })`), `     ✓ is status 200

     █ outer

       █ inner

         ✗ has body
          ↳  33% — ✓ 1 / ✗ 2

     █ empty

   ✓ checks..............: 66.66% ✓ 4        ✗ 2
     data_received.......: 63 kB  8.3 kB/s
     data_sent...........: 7 B    5.5 B/s
   ✗ http_req_duration...: avg=202.26ms med=278.8µs p(95)=1m1s   count=5
       { page:a }........: avg=0s       med=0ns     p(95)=1h2m3s count=2
     http_reqs...........: 5      3.352646/s
     vus.................: 1      min=1      max=5`);
    const arrow = await summary(`textSummary(data, { indent: "→", enableColors: true, summaryTimeUnit: "s" })`);
    assert.match(arrow, /^\x1b\[32m→ {4}✓ is status 200\x1b\[0m\n/);
    assert.match(arrow, /avg=0\.20s/);
});

test("jUnit writes a case for each threshold", async () => {
    assert.equal(await summary("jUnit(data)"), `<?xml version="1.0"?>
<testsuites tests="2" failures="1">
<testsuite name="k6 thresholds" tests="2" failures="1"><testcase name="http_req_duration - p(95)&lt;500"><failure message="failed" /></testcase>
<testcase name="checks - rate&gt;0.5" />
</testsuite >
</testsuites >`);
});
