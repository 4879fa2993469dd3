// `k6/execution`: what the script may ask of the run, its scenario and its user.
import * as native from "brunt:natives";
import { deleteTag, setTag, user } from "brunt:user";

/** Refuses what is known only while a function of the script runs. */
function refuseInit(what) {
    if (!user.running) throw new Error(`${what} is not known in the init context`);
}

/** An object whose properties are asked for each time. */
function facts(what, readers) {
    const object = {};
    for (const [name, read] of Object.entries(readers)) {
        Object.defineProperty(object, name, {
            enumerable: true,
            get() {
                refuseInit(what);
                return read(native.execution());
            },
        });
    }
    return object;
}

export const instance = facts("exec.instance", {
    iterationsInterrupted: (now) => now.instance.iterationsInterrupted,
    iterationsCompleted: (now) => now.instance.iterationsCompleted,
    vusActive: (now) => now.instance.vusActive,
    vusInitialized: (now) => now.instance.vusInitialized,
    currentTestRunDuration: (now) => now.instance.currentTestRunDuration,
});

/** The scenario, of which setup and teardown have none. */
function ofScenario(now) {
    if (!now.scenario) throw new Error("exec.scenario is known to scenarios only, not to setup or teardown");
    return now.scenario;
}

export const scenario = facts("exec.scenario", {
    name: (now) => ofScenario(now) && user.scenario,
    executor: (now) => ofScenario(now).executor,
    startTime: (now) => Math.trunc(ofScenario(now).startTime),
    progress: (now) => ofScenario(now).progress,
    iterationInInstance: (now) => ofScenario(now).iterationInInstance,
    iterationInTest: (now) => ofScenario(now).iterationInTest,
});

/** A map that a script writes to: `write(name, text)` takes values, `remove(name)` takes them away. */
function map(what, values, write, remove) {
    return new Proxy({}, {
        get: (target, name) => (Object.hasOwn(values(), name) ? values()[name] : target[name]),
        has: (_, name) => Object.hasOwn(values(), name),
        ownKeys: () => Object.keys(values()),
        getOwnPropertyDescriptor(_, name) {
            if (!Object.hasOwn(values(), name)) return undefined;
            return { value: values()[name], writable: true, enumerable: true, configurable: true };
        },
        set(_, name, value) {
            if (["string", "number", "boolean"].includes(typeof value)) write(String(name), String(value));
            else refuseValue(`${what}['${String(name)}'] wants a text, a number or a boolean, not ${typeof value}`);
            return true;
        },
        deleteProperty(_, name) {
            remove(String(name));
            return true;
        },
    });
}

/** Throws where the script has the option `throw`; else warns, and the value is left out. */
function refuseValue(problem) {
    if (native.options()?.throw) throw new TypeError(problem);
    native.log("warn", problem);
}

/** Replaces all values of a map. */
function assign(target, values) {
    for (const name of Object.keys(target)) delete target[name];
    Object.assign(target, values);
}

const ownMetadata = {};
const tags = map("exec.vu.metrics.tags", () => user.tags, setTag, deleteTag);
const metadata = map(
    "exec.vu.metrics.metadata",
    () => ownMetadata,
    (name, text) => (ownMetadata[name] = text),
    (name) => delete ownMetadata[name],
);

const metrics = {
    get tags() {
        return tags;
    },
    set tags(values) {
        assign(tags, values);
    },
    get metadata() {
        return metadata;
    },
    set metadata(values) {
        assign(metadata, values);
    },
};

export const vu = Object.defineProperties(facts("exec.vu", {
    idInInstance: (now) => (user.id === 0 ? 0 : now.vu.idInInstance),
    idInTest: () => user.id,
    iterationInInstance: () => user.iteration,
    iterationInScenario: (now) => now.vu.iterationInScenario,
}), {
    metrics: { enumerable: true, value: metrics },
    tags: Object.getOwnPropertyDescriptor(metrics, "tags"),
});

export const test = {
    /** Ends the whole run; in the init context before it begins. */
    abort(reason) {
        const text = reason === undefined ? "test aborted" : `test aborted: ${reason}`;
        // Nothing goes on that could be stopped.
        if (!user.running) throw new Error(text);
        native.stop(text, false);
    },
    /** Lets the run go on to its end, and fail. */
    fail(reason) {
        refuseInit("exec.test.fail");
        native.failRun(reason === undefined ? "the script failed the test" : String(reason));
    },
    /** The options as the run goes by them. */
    get options() {
        refuseInit("exec.test.options");
        return native.options();
    },
};

export default { instance, scenario, vu, test };
