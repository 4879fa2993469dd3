// `k6`: checks, groups, pauses and failures.
import * as native from "brunt:native";
import { enterGroup, JUDGED, LABEL, leaveGroup, pause, TICKET, user } from "brunt:user";
import { need } from "brunt:needed";
import { sample, sampleCheck, wants } from "brunt:samples";

const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor;
const MAXIMUM_PAUSE = 1e9;

/** Numbers of checks: by the label of the call, or the group where there is no call, then by name. */
const numbers = new Map();

/** Judges a value by each condition. Returns whether all hold. A condition that throws fails, and what it threw is thrown. */
export const check = native.shortcut("check", usualCheck, 3);

function usualCheck(value, conditions, tags) {
    if (!user.running) throw new Error("check() is not for the init context");
    if (conditions === null || typeof conditions !== "object") throw new TypeError("check() wants conditions: an object of names and functions");
    const ofHttp = native.labelOf(value);
    const label = ofHttp ?? value?.[LABEL] ?? 0;
    const known = numbersAt(label === 0 ? user.group : label);
    const samples = wants("checks");
    let all = true;
    for (const name of Object.keys(conditions)) {
        const id = known.get(name) ?? newNumber(known, label, name);
        const condition = conditions[name];
        let holds;
        let reason;
        try {
            holds = Boolean(typeof condition === "function" ? condition(value) : condition);
        } catch (error) {
            reason = error;
        }
        if (samples) sampleCheck(name, holds, tags);
        if (holds) {
            native.checkPassed(id);
            continue;
        }
        all = false;
        failed(id, label, ofHttp === undefined ? value : undefined, ofHttp === undefined ? undefined : value, holds === undefined ? textOf(reason) : undefined);
        if (holds === undefined) throw reason;
    }
    return all;
}

/** Counts a check that did not hold: of a response of gRPC, of a Response, or of another value. */
function failed(id, label, ofGrpc, ofHttp, reason) {
    if (ofHttp !== undefined) return native.checkFailed(id, native.ticketOf(ofHttp), label, native.failsFirst(ofHttp), reason);
    const first = label !== 0 && !ofGrpc[JUDGED];
    if (first) ofGrpc[JUDGED] = true;
    native.checkFailed(id, ofGrpc?.[TICKET] ?? 0, label, first, reason);
}

/** The numbers of checks in a place, by their names. */
function numbersAt(place) {
    let names = numbers.get(place);
    if (names === undefined) numbers.set(place, (names = new Map()));
    return names;
}

/** The number of a check of calls with this label, which is new to its place. */
function newNumber(names, label, name) {
    refuseSeparator(name);
    const id = native.check(label, name);
    names.set(name, id);
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
    Math.random = need("brunt:random").seeded(Number(seed));
}

export default { check, group, sleep, fail, randomSeed };
