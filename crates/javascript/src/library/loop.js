// The event loop of a user: timers, events of calls that run beside the script, and the functions that the script exports.
import * as native from "brunt:native";
import { begin, paused } from "brunt:user";
import { sample, wants } from "brunt:samples";

/** Timers by their numbers: `{ run, due, every, order }`. */
const timers = new Map();
/** What takes the events of a call, by its number. */
const handlers = new Map();
let lastTimer = 0;

/** A promise with the functions that settle it. */
export function defer() {
    const deferred = {};
    deferred.promise = new Promise((resolve, reject) => Object.assign(deferred, { resolve, reject }));
    return deferred;
}

/** Calls `handler` with each event of this number. The script's function goes on until `unhandle`. */
export function handle(id, handler) {
    handlers.set(id, handler);
}

/** Ends what `handle` began. */
export function unhandle(id) {
    handlers.delete(id);
}

/** Calls `run` after so many milliseconds, once or again and again. Returns the timer's number. */
export function startTimer(run, milliseconds, repeats) {
    const every = Math.max(Number(milliseconds) || 0, repeats ? 1 : 0);
    lastTimer += 1;
    timers.set(lastTimer, { run, due: native.now() + every, every: repeats ? every : undefined, order: lastTimer });
    return lastTimer;
}

/** Stops a timer, if it is one. */
export function stopTimer(id) {
    timers.delete(id);
}

/** The timer that is due first, as `[number, timer]`. */
function firstTimer() {
    let first;
    for (const entry of timers) {
        if (!first || entry[1].due < first[1].due) first = entry;
    }
    return first;
}

/** Runs the first timer, if it is due. */
function runTimer([id, timer]) {
    if (timer.every === undefined) timers.delete(id);
    else timer.due = Math.max(timer.due + timer.every, native.now());
    timer.run();
}

/** Waits for the next event or timer, and runs it. */
function turn() {
    const first = firstTimer();
    const wait = first ? first[1].due - native.now() : -1;
    if (first && wait <= 0) return runTimer(first);
    const from = native.now();
    const event = native.nextEvent(wait);
    if (handlers.size === 0) paused(native.now() - from);
    if (event) handlers.get(event.id)?.(event);
}

/** Runs what promises wait for. Throws what nobody has caught. */
function drain() {
    const rejected = native.drain();
    if (rejected !== undefined) throw rejected.reason;
}

/** Calls a function and runs all that it began. Returns what it returned, a promise's value in place of the promise. */
function complete(run, value) {
    const returned = run(value);
    if (!(returned instanceof Promise) && timers.size === 0 && handlers.size === 0) {
        drain();
        if (timers.size === 0 && handlers.size === 0) return returned;
    }
    return settle(returned);
}

/** Runs all that a function began. Returns its value. */
function settle(returned) {
    const end = { value: returned, failed: false };
    if (end.value instanceof Promise) {
        const promise = end.value;
        end.value = undefined;
        promise.then((value) => (end.value = value), (error) => Object.assign(end, { failed: true, value: error }));
    }
    drain();
    while (!end.failed && (timers.size > 0 || handlers.size > 0)) {
        turn();
        drain();
    }
    if (end.failed) throw end.value;
    return end.value;
}

/** Runs timers and events until `isDone`: for functions of k6 that block while they call the script back. */
export function runUntil(isDone) {
    while (!isDone()) {
        turn();
        drain();
    }
}

/** Runs a function of the script. What is left of its timers and calls ends with it. */
function runAt(place, run, value) {
    if (timers.size > 0) timers.clear();
    if (handlers.size > 0) handlers.clear();
    begin(place);
    return complete(run, value);
}

/** Runs an iteration of the script's function. Throws what ended it. */
export function iterate(run, value) {
    if (!wants("iterations") && !wants("iteration_duration")) return void runAt("", run, value);
    const from = native.now();
    try {
        runAt("", run, value);
    } finally {
        sample("iterations", 1);
        sample("iteration_duration", native.now() - from);
    }
}

/**
 * Runs a function beside the load (`setup`, `teardown`, or `handleSummary` with an empty `place`). Returns its value.
 * k6 gives setup and teardown a group of their name, and an `iteration_duration`.
 */
export function runOnce(run, place, value) {
    const from = native.now();
    try {
        return runAt(place, run, value);
    } finally {
        if (place) sample("iteration_duration", native.now() - from);
    }
}
