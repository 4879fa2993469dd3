// The event loop of a user: timers, and events of calls that run beside the script.
import * as native from "brunt:natives";
import { waitFor } from "brunt:loop";
import { paused } from "brunt:user";

/** Timers by their numbers: `{ run, due, every, order }`. */
const timers = new Map();
/** What takes the events of a call, by its number. */
const handlers = new Map();
let lastTimer = 0;
/** When the user last waited. */
let waited = 0;
/** How long timers that are due run before others have their turn, in milliseconds. */
const TURN = 10;

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
    const from = native.now();
    const wait = first ? first[1].due - from : -1;
    if (first && wait <= 0 && from - waited < TURN) return runTimer(first);
    const event = native.nextEvent(first ? Math.max(wait, 0) : -1);
    waited = native.now();
    if (handlers.size === 0) paused(waited - from);
    if (event) handlers.get(event.id)?.(event);
}

/** Runs what promises wait for. Throws what nobody has caught. */
function drain() {
    const rejected = native.drain();
    if (rejected !== undefined) throw rejected.reason;
}

/** Runs all that a function began. Returns its value. */
export function settle(returned) {
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

/** Forgets all timers and calls. */
export function forget() {
    timers.clear();
    handlers.clear();
}

waitFor({ settle, forget, isIdle: () => timers.size === 0 && handlers.size === 0 });
