// `https://jslib.k6.io/k6-testing`: Playwright's assertions, as far as they need no browser. One that does not hold ends
// the whole run; a soft one lets it go on and fail.
import exec from "k6/execution";
import { isEqual, shown } from "brunt:equality";

const DEFAULTS = { timeout: 5000, interval: 100, colorize: true, display: "pretty", softMode: "fail" };
/** Assertions of elements in a browser, which brunt does not drive. */
const BROWSER = [
    "toBeChecked", "toBeDisabled", "toBeEditable", "toBeEmpty", "toBeEnabled", "toBeHidden", "toBeVisible", "toContainText",
    "toHaveAttribute", "toHaveText", "toHaveTitle", "toHaveValue",
];

/** What assertions compare: `(value, …expected)` to whether it holds. */
const MATCHERS = {
    toBe: (value, expected) => Object.is(value, expected),
    toEqual: (value, expected) => isEqual(value, expected),
    toBeCloseTo: (value, expected, digits = 2) => value === expected || Math.abs(value - expected) < 10 ** -digits / 2,
    toBeDefined: (value) => value !== undefined,
    toBeUndefined: (value) => value === undefined,
    toBeNull: (value) => value === null,
    toBeNaN: (value) => Number.isNaN(value),
    toBeTruthy: (value) => Boolean(value),
    toBeFalsy: (value) => !value,
    toBeGreaterThan: (value, limit) => value > limit,
    toBeGreaterThanOrEqual: (value, limit) => value >= limit,
    toBeLessThan: (value, limit) => value < limit,
    toBeLessThanOrEqual: (value, limit) => value <= limit,
    toBeInstanceOf: (value, kind) => value instanceof kind,
    toContain: (value, part) => (value instanceof Set ? value.has(part) : value.includes(part)),
    toContainEqual: (value, part) => [...value].some((one) => isEqual(one, part)),
    toHaveLength: (value, length) => value?.length === length,
    /** Whether the value has the property at a path. */
    toHaveProperty(value, path, ...expected) {
        const found = propertyOf(value, path);
        return found !== undefined && (expected.length === 0 || isEqual(found.value, expected[0]));
    },
};

/** The property at a path: a text with dots and indices, or a list of keys. */
function propertyOf(value, path) {
    const keys = Array.isArray(path) ? path : String(path).replace(/\[(\w+)\]/g, ".$1").split(".");
    let at = value;
    for (const key of keys) {
        if (at === null || at === undefined || !(key in Object(at))) return undefined;
        at = at[key];
    }
    return { value: at };
}

/** What is said of an assertion that does not hold. */
function problemOf(matcher, not, value, expected, message) {
    const call = `expect(${shown(value)})${not ? ".not" : ""}.${matcher}(${expected.map((one) => shown(one)).join(", ")})`;
    return message === undefined ? `${call} does not hold` : `${message}: ${call} does not hold`;
}

/** Fails the run, the test or the iteration, as the assertion's kind and the configuration say. */
function fail(problem, soft, options) {
    if (!soft) return exec.test.abort(problem);
    if (options.softMode === "throw") throw new Error(problem);
    return exec.test.fail(problem);
}

/** Assertions of a value. */
function expectation(value, message, soft, not, options) {
    const chain = {};
    for (const [name, holds] of Object.entries(MATCHERS)) {
        chain[name] = (...expected) => {
            if (holds(value, ...expected) === not) fail(problemOf(name, not, value, expected, message), soft, options);
        };
    }
    for (const name of BROWSER) {
        chain[name] = () => {
            throw new Error(`${name}() is about elements of a browser, which brunt does not drive`);
        };
    }
    if (!not) Object.defineProperty(chain, "not", { get: () => expectation(value, message, soft, true, options) });
    return chain;
}

/** An `expect` with these options. */
function configured(options) {
    const expect = (value, message) => expectation(value, message, false, false, options);
    expect.soft = (value, message) => expectation(value, message, true, false, options);
    expect.configure = (changes) => configured({ ...options, ...changes });
    return expect;
}

const { K6_TESTING_SOFT_MODE: softMode } = globalThis.__ENV ?? {};

/** Asserts something of a value. */
export const expect = configured(softMode ? { ...DEFAULTS, softMode } : DEFAULTS);

export default { expect };
