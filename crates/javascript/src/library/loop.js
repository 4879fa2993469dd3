// The functions that the script exports, and their ends.
import { drain, goesOnAlone, now } from "brunt:native";
import { need } from "brunt:needed";
import { begin, beginsAtOnce } from "brunt:user";
import { sample, wants } from "brunt:samples";

/** What waits for timers and events, once a script has any: `{ settle, forget, isIdle }`. */
let waits;

/** Sets what waits for timers and events: `brunt:events`. */
export function waitFor(events) {
    waits = events;
    goesOnAlone(false);
}

/** Calls a function and runs all that it began. Returns what it returned, a promise's value in place of the promise. */
function complete(run, value) {
    return settle(run(value));
}

/** Runs all that a function began which has returned this. Returns it, a promise's value in place of the promise. */
export function settle(returned) {
    if (returned instanceof Promise) return need("brunt:events").settle(returned);
    if (waits !== undefined && !waits.isIdle()) return waits.settle(returned);
    const rejected = drain();
    if (rejected !== undefined) throw rejected.reason;
    return waits === undefined || waits.isIdle() ? returned : waits.settle(returned);
}

/** Runs a function of the script. What is left of its timers and calls ends with it. */
function runAt(place, run, value) {
    waits?.forget();
    begin(place);
    return complete(run, value);
}

/** Runs an iteration of the script's function. Throws what ended it. Native code runs the next ones for as long as they have nothing to do but that. */
export function iterate(run, value) {
    if (!wants("iterations") && !wants("iteration_duration")) {
        runAt("", run, value);
        if (waits === undefined && beginsAtOnce()) goesOnAlone(true);
        return;
    }
    const from = now();
    try {
        runAt("", run, value);
    } finally {
        sample("iterations", 1);
        sample("iteration_duration", now() - from);
    }
}

/**
 * Runs a function beside the load (`setup`, `teardown`, or `handleSummary` with an empty `place`). Returns its value.
 * k6 gives setup and teardown a group of their name, and an `iteration_duration`.
 */
export function runOnce(run, place, value) {
    const from = now();
    try {
        return runAt(place, run, value);
    } finally {
        if (place) sample("iteration_duration", now() - from);
    }
}
