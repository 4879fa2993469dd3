// `k6`: checks, groups, pauses and failures.
import * as native from "brunt:native";
import { enterGroup, JUDGED, LABEL, leaveGroup, pause, TICKET, user } from "brunt:user";
import { seeded } from "brunt:random";
import { sample, wants } from "brunt:samples";

const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor;
const MAXIMUM_PAUSE = 1e9;

/** Numbers of checks: by the label of the call, or the group where there is no call, then by name. */
const numbers = new Map();

/** Judges a value by each condition. Returns whether all hold. A condition that throws fails, and what it threw is thrown. */
export function check(value, conditions, tags) {
    if (!user.running) throw new Error("check() is not for the init context");
    if (conditions === null || typeof conditions !== "object") throw new TypeError("check() wants conditions: an object of names and functions");
    const isResponse = value !== null && typeof value === "object" && value[LABEL] !== undefined;
    const answer = isResponse ? value : undefined;
    let all = true;
    for (const name of Object.keys(conditions)) {
        if (!judge(name, conditions[name], value, answer, tags)) all = false;
    }
    return all;
}

/** Judges a value by one condition. */
function judge(name, condition, value, answer, tags) {
    const id = numberOf(answer === undefined ? 0 : answer[LABEL], name);
    let holds;
    try {
        holds = Boolean(typeof condition === "function" ? condition(value) : condition);
    } catch (error) {
        failed(id, name, answer, tags, textOf(error));
        throw error;
    }
    if (holds) {
        native.checkPassed(id);
        if (wants("checks")) sample("checks", 1, { ...tags, check: name });
    } else {
        failed(id, name, answer, tags, undefined);
    }
    return holds;
}

/** Counts a check that did not hold. */
function failed(id, name, answer, tags, reason) {
    const first = answer !== undefined && !answer[JUDGED];
    if (first) answer[JUDGED] = true;
    native.checkFailed(id, answer?.[TICKET] ?? 0, answer?.[LABEL] ?? 0, first, reason);
    if (wants("checks")) sample("checks", 0, { ...tags, check: name });
}

/** The number of a check of calls with this label. */
function numberOf(label, name) {
    const place = label === 0 ? user.group : label;
    let names = numbers.get(place);
    if (names === undefined) numbers.set(place, (names = new Map()));
    let id = names.get(name);
    if (id === undefined) {
        refuseSeparator(name);
        names.set(name, (id = native.check(label, name, user.group)));
    }
    return id;
}

/** What is said of an error that a check has thrown. */
function textOf(error) {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

/** Refuses a name that would look like a path of groups. */
function refuseSeparator(name) {
    if (name.includes("::")) throw new Error(`names of groups and checks must not contain '::': ${name}`);
}

/** Calls a function inside a group. Returns what it returns. */
export function group(name, body) {
    const title = String(name);
    refuseSeparator(title);
    if (typeof body !== "function") throw new TypeError("group() wants a function as its second argument");
    if (body instanceof AsyncFunction) throw new TypeError("group() does not support async functions: await outside of it");
    if (!user.running) throw new Error("group() is not for the init context");
    enterGroup(title);
    let ok = false;
    try {
        const value = body();
        ok = true;
        return value;
    } finally {
        const path = user.group;
        sample("group_duration", leaveGroup(ok), { group: path });
    }
}

/** Pauses the user for so many seconds. */
export function sleep(seconds) {
    const wanted = Number(seconds);
    if (wanted > 0) pause(Math.min(wanted, MAXIMUM_PAUSE));
}

/** Ends the iteration with an error. */
export function fail(message) {
    throw new Error(message === undefined ? "" : String(message));
}

/** Makes `Math.random` of this user repeat its numbers from this seed on. */
export function randomSeed(seed) {
    Math.random = seeded(Number(seed));
}

export default { check, group, sleep, fail, randomSeed };
