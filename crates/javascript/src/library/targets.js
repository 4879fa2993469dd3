// What requests go to, and what they count as.
import { label } from "brunt:native";
import { groupName, ownTags, placeNumber, user } from "brunt:user";
import { parseUrl } from "brunt:urls";

/** URLs that a user remembers; a script that makes ever new ones starts over. */
const MOST_TARGETS = 64;
const MOST_LABELS = 500;

const targets = new Map();
let firstHost;

/** A URL, ready to be requested. */
export class Target {
    /** @param url a `Url` */
    constructor(url) {
        firstHost ??= url.host;
        this.url = url;
        this.sent = url.sent();
        /** A GET without Params, once there was one. */
        this.plainGet = undefined;
    }

    /** The URL as a Response shows it. */
    get shown() {
        return this.url.shown();
    }

    /** The URL as tags show it. */
    get tagged() {
        return this.url.userInfo === undefined ? this.shown : this.url.shown("****:****@");
    }

    /** The path, and in front of it the host, unless that is the one that the user requested first. */
    get name() {
        const { host, path } = this.url;
        const whole = path === "" ? "/" : path;
        return host === firstHost ? whole : host + whole;
    }
}

/** The target of a URL's text, if it is remembered. */
export function knownTarget(text) {
    return targets.get(text);
}

/** The target of a URL's text, remembered. */
export function targetOf(text) {
    let target = targets.get(text);
    if (target === undefined) {
        target = new Target(parseUrl(text));
        if (targets.size >= MOST_TARGETS) targets.clear();
        targets.set(text, target);
    }
    return target;
}

/** Labels by place, by the statuses that are fine, by name and tags. */
const labels = new Map();
let labelCount = 0;
let place;
let here;

/** The number under which calls of a name count where the user is. Those of `tags` but for `name` are the calls' own. */
export function labelOf(name, tags, ok) {
    const now = placeNumber();
    if (place !== now) {
        place = now;
        here = inner(labels, now);
    }
    const known = inner(here, ok);
    const key = tags === undefined ? name : `${name}\n${JSON.stringify(tags)}`;
    let number = known.get(key);
    if (number === undefined) {
        number = newLabel(name, tags, ok);
        known.set(key, number);
        labelCount += 1;
        if (labelCount > MOST_LABELS) forgetLabels();
    }
    return number;
}

/** The map under a key, made where there is none. */
function inner(map, key) {
    let found = map.get(key);
    if (found === undefined) map.set(key, (found = new Map()));
    return found;
}

/** Asks the client for a label's number. */
function newLabel(name, tags, ok) {
    const all = { ...ownTags(), ...tags };
    delete all.name;
    const list = Object.keys(all).sort().map((tag) => `${tag}=${all[tag]}`);
    return label(name, list, user.scenario, groupName(), ok);
}

/** Forgets all labels; they are found again when they are needed. */
function forgetLabels() {
    labels.clear();
    place = undefined;
    labelCount = 0;
}
