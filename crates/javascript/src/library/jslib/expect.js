// `https://jslib.k6.io/expect`: assertions that are checks, inside `describe`.
import { check, fail, group } from "k6";
import { isEqual, shown } from "brunt:equality";

/** What ends a `describe` after an assertion that did not hold. */
class Unmet extends Error {
    constructor(message) {
        super(message);
        this.name = "AssertionError";
    }
}

/** Assertions of one value. Each returns the chain, in which `and(other)` goes on with another value. */
class Chain {
    constructor(value, name) {
        this.value = value;
        this.label = name ?? shown(value);
    }

    /** Names the value in what follows. */
    as(name) {
        this.label = name;
        return this;
    }

    /** Goes on with another value. */
    and(value) {
        return new Chain(value);
    }

    /** Counts a check, and ends the case where it does not hold. */
    #assert(holds, text) {
        const name = `${this.label} ${text}.`;
        if (!check(this.value, { [name]: holds })) throw new Unmet(name);
        return this;
    }

    toEqual(expected) {
        return this.#assert(isEqual(this.value, expected), `is ${shown(expected)}`);
    }

    toBeTruthy() {
        return this.#assert(Boolean(this.value), "is truthy");
    }

    toBeFalsy() {
        return this.#assert(!this.value, "is falsy");
    }

    toBeGreaterThan(limit) {
        return this.#assert(this.value > limit, `is greater than ${limit}`);
    }

    toBeGreaterThanOrEqual(limit) {
        return this.#assert(this.value >= limit, `is greater than or equal to ${limit}`);
    }

    toBeLessThan(limit) {
        return this.#assert(this.value < limit, `is less than ${limit}`);
    }

    toBeLessThanOrEqual(limit) {
        return this.#assert(this.value <= limit, `is less than or equal to ${limit}`);
    }

    toBeBetween(low, high) {
        return this.#assert(this.value >= low && this.value <= high, `is between ${low} and ${high}`);
    }

    toContain(part) {
        return this.#assert(this.value?.includes?.(part) === true, `contains ${shown(part)}`);
    }

    toInclude(part) {
        return this.toContain(part);
    }

    toMatch(pattern) {
        return this.#assert(new RegExp(pattern).test(String(this.value)), `matches ${pattern}`);
    }

    toHaveValidJson() {
        return this.#assert(hasJson(this.value), "has valid JSON");
    }
}

/** Whether a Response has a body of JSON. */
function hasJson(response) {
    try {
        return response.json() !== undefined;
    } catch {
        return false;
    }
}

/** Asserts something of a value. */
export function expect(value, name) {
    return new Chain(value, name);
}

/** Runs a test case as a group. Returns whether all held; the first that does not, or an error, ends the case. */
export function describe(name, body) {
    return group(name, () => {
        try {
            body({ expect, fail });
            return true;
        } catch (error) {
            if (!(error instanceof Unmet)) check(null, { [`Exception raised "${error?.message ?? error}"`]: false });
            return false;
        }
    });
}

export default { expect, describe };
