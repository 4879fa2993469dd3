// `https://jslib.k6.io/k6-utils`: random values, texts between texts, and stages, after its documentation.
import exec from "k6/execution";
import { check as checkNow } from "k6";

const LETTERS = "abcdefghijklmnopqrstuvwxyz";
/** Milliseconds of the units of a duration. */
const UNITS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1, us: 1e-3, "µs": 1e-3, ns: 1e-6 };

/** A random integer from `min` to `max`, both included. */
export function randomIntBetween(min, max) {
    return Math.floor(Math.random() * (max - min + 1) + min);
}

/** A random element. */
export function randomItem(items) {
    return items[Math.floor(Math.random() * items.length)];
}

/** A text of random characters. */
export function randomString(length, charset = LETTERS) {
    let text = "";
    for (let left = length; left > 0; left -= 1) text += charset[Math.floor(Math.random() * charset.length)];
    return text;
}

/** A random UUID of version 4; with `secure`, from the system's random numbers. */
export function uuidv4(secure = false) {
    if (secure) return globalThis.crypto.randomUUID();
    return "xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx".replace(/[xy]/g, (sign) => {
        const digit = Math.floor(Math.random() * 16);
        return (sign === "x" ? digit : (digit & 3) | 8).toString(16);
    });
}

/** The text between two others: the first, or with `repeat` a list of all. */
export function findBetween(content, left, right, repeat = false) {
    const found = [];
    let from = content.indexOf(left);
    while (from >= 0) {
        const start = from + left.length;
        const end = content.indexOf(right, start);
        if (end < 0) break;
        found.push(content.slice(start, end));
        if (!repeat) break;
        from = content.indexOf(left, end + right.length);
    }
    return repeat ? found : found[0] ?? "";
}

/** Stages whose targets follow a bell curve of two standard deviations each way. */
export function normalDistributionStages(maxVUs, durationSeconds, numberOfStages = 10) {
    const duration = `${Math.round((durationSeconds / numberOfStages) * 1000) / 1000}s`;
    return Array.from({ length: numberOfStages }, (_, index) => {
        const deviations = numberOfStages === 1 ? 0 : (4 * index) / (numberOfStages - 1) - 2;
        return { duration, target: Math.round(maxVUs * Math.exp(-(deviations ** 2) / 2)) };
    });
}

/** Milliseconds of a duration such as `1h30m` or `1.5s`. */
export function parseDuration(text) {
    if (typeof text !== "string" || text === "") throw new Error("parseDuration() wants a text such as 1m30s");
    if (/^\d+(\.\d+)?$/.test(text)) return Number(text);
    let milliseconds = 0;
    const rest = text.replace(/(\d+(?:\.\d+)?)(ms|us|µs|ns|d|h|m|s)/g, (_, count, unit) => {
        milliseconds += Number(count) * UNITS[unit];
        return "";
    });
    if (rest !== "") throw new Error(`parseDuration() wants a text such as 1m30s, not ${text}`);
    return milliseconds;
}

/** The stages of the running scenario. */
function currentStages() {
    const { stages } = exec.test.options.scenarios[exec.scenario.name] ?? {};
    if (!stages) throw new Error(`scenario ${exec.scenario.name} has no stages: use an executor that ramps`);
    return stages;
}

/** The index of the stage that the scenario is in. */
export function getCurrentStageIndex() {
    const stages = currentStages();
    let left = Date.now() - exec.scenario.startTime;
    for (let index = 0; index < stages.length; index += 1) {
        left -= parseDuration(String(stages[index].duration));
        if (left < 0) return index;
    }
    return stages.length - 1;
}

/** Gives the user's samples the tag `stage`. */
export function tagWithCurrentStageIndex() {
    exec.vu.metrics.tags.stage = String(getCurrentStageIndex());
}

/** Gives the user's samples the tag `stage_profile`: `ramp-up`, `steady` or `ramp-down`. */
export function tagWithCurrentStageProfile() {
    const stages = currentStages();
    const index = getCurrentStageIndex();
    const options = exec.test.options.scenarios[exec.scenario.name];
    const before = index > 0 ? stages[index - 1].target : options.startVUs ?? options.startRate ?? 0;
    const change = stages[index].target - before;
    exec.vu.metrics.tags.stage_profile = change > 0 ? "ramp-up" : change < 0 ? "ramp-down" : "steady";
}

/** `check` of k6 that awaits promises. Returns a promise where there was one. */
export function check(value, conditions, tags) {
    const results = Object.entries(conditions).map(([name, condition]) => [name, typeof condition === "function" ? condition(value) : condition]);
    if (!results.some(([, result]) => result instanceof Promise)) return checkNow(value, Object.fromEntries(results), tags);
    return Promise.all(results.map(async ([name, result]) => [name, await result]))
        .then((settled) => checkNow(value, Object.fromEntries(settled), tags));
}

export default {
    randomIntBetween, randomItem, randomString, uuidv4, findBetween, normalDistributionStages, parseDuration,
    getCurrentStageIndex, tagWithCurrentStageIndex, tagWithCurrentStageProfile, check,
};
