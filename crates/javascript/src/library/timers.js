// `k6/timers`: functions that run later.
import { startTimer, stopTimer } from "brunt:events";
import { user } from "brunt:user";

/** Runs a function after so many milliseconds. Returns the timer's number. */
export function setTimeout(run, delay, ...values) {
    return begin("setTimeout", run, delay, values, false);
}

/** Runs a function each so many milliseconds. Returns the timer's number. */
export function setInterval(run, delay, ...values) {
    return begin("setInterval", run, delay, values, true);
}

/** Begins a timer of either kind. */
function begin(name, run, delay, values, repeats) {
    if (typeof run !== "function") throw new TypeError(`${name}() wants a function`);
    if (!user.running) throw new Error(`${name}() is not for the init context`);
    return startTimer(values.length > 0 ? () => run(...values) : run, delay, repeats);
}

/** Stops a timer of `setTimeout`. */
export function clearTimeout(id) {
    stopTimer(id);
}

/** Stops a timer of `setInterval`. */
export function clearInterval(id) {
    stopTimer(id);
}

export default { setTimeout, setInterval, clearTimeout, clearInterval };
