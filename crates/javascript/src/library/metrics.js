// `k6/metrics`: the script's own counters, gauges, rates and trends.
import * as native from "brunt:native";
import { user } from "brunt:user";
import { declare, sample } from "brunt:samples";

/** Up to 128 ASCII letters, digits and underscores; the first is no digit. */
const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;

/** What the four kinds have in common. */
class Metric {
    #name;

    constructor(kind, name, isTime) {
        if (user.running) throw new Error(`new ${this.constructor.name}() is for the init context`);
        if (typeof name !== "string" || !NAME.test(name)) {
            throw new Error(`invalid metric name '${name}': use up to 128 ASCII letters, digits and underscores, and no digit first`);
        }
        declare(kind, name, isTime);
        this.#name = name;
    }

    /** The metric's name. */
    get name() {
        return this.#name;
    }

    /** Adds a sample. A value that is no number is left out with a warning, or thrown where the script wants that. */
    add(value, tags) {
        if (!user.running) throw new Error("add() of a metric is not for the init context");
        const number = value === null || typeof value === "symbol" || typeof value === "bigint" ? NaN : Number(value);
        if (Number.isFinite(number)) {
            sample(this.#name, this.weigh(number), tags);
            return true;
        }
        return this.#refuse(value);
    }

    /** The value that a sample counts as. */
    weigh(number) {
        return number;
    }

    /** Warns of a value that is no number, or throws. */
    #refuse(value) {
        const problem = `'${value}' is an invalid value for metric '${this.#name}', a number or a boolean value is expected`;
        if (native.options()?.throw) throw new Error(problem);
        native.log("warn", problem);
        return false;
    }
}

/** A sum of values. */
export class Counter extends Metric {
    constructor(name, isTime) {
        super("counter", name, Boolean(isTime));
    }
}

/** The last value, with the lowest and the highest. */
export class Gauge extends Metric {
    constructor(name, isTime) {
        super("gauge", name, Boolean(isTime));
    }
}

/** The share of values that are not zero. */
export class Rate extends Metric {
    constructor(name, isTime) {
        super("rate", name, Boolean(isTime));
    }

    /** Any number but zero counts as one. */
    weigh(number) {
        return number === 0 ? 0 : 1;
    }
}

/** The distribution of values. */
export class Trend extends Metric {
    constructor(name, isTime) {
        super("trend", name, Boolean(isTime));
    }
}

export default { Counter, Gauge, Rate, Trend };
