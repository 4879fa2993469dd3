// What requests go to, and what they count as.
import { label } from "brunt:native";
import { groupName, ownTags, placeKey, user } from "brunt:user";
import { parseUrl } from "brunt:urls";

/** URLs and labels that are remembered; a script that makes ever new ones starts over. */
const MOST_REMEMBERED = 500;

const targets = new Map();
const labels = new Map();
let firstHost;

/** A URL, ready to be requested. */
export class Target {
    /** @param url a `Url` */
    constructor(url) {
        firstHost ??= url.host;
        this.url = url;
        this.sent = url.sent();
        /** The URL as a Response shows it. */
        this.shown = url.shown();
        /** The URL as tags show it. */
        this.tagged = url.userInfo === undefined ? this.shown : url.shown("****:****@");
        const path = url.path === "" ? "/" : url.path;
        this.name = url.host === firstHost ? path : `${url.host}${path}`;
    }
}

/** The target of a URL's text, remembered. */
export function targetOf(text) {
    let target = targets.get(text);
    if (target === undefined) {
        target = new Target(parseUrl(text));
        remember(targets, text, target);
    }
    return target;
}

/** Keeps `value`; forgets all before it when there are too many. */
export function remember(map, key, value) {
    if (map.size >= MOST_REMEMBERED) map.clear();
    map.set(key, value);
}

/** The number under which calls of a name count, with these tags of their own, where the user is. */
export function labelOf(name, tags, ok) {
    const key = `${placeKey()}\n${ok ?? ""}\n${tags === undefined ? "" : JSON.stringify(tags)}\n${name}`;
    let number = labels.get(key);
    if (number === undefined) {
        const all = { ...ownTags(), ...tags };
        delete all.name;
        const list = Object.keys(all).sort().map((tag) => `${tag}=${all[tag]}`);
        number = label(name, list, user.scenario, groupName(), ok);
        remember(labels, key, number);
    }
    return number;
}
