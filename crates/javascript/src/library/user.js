// The running user: its numbers, tags and groups, and what happens before it waits.
import * as native from "brunt:native";

/** The user that this runtime stands for. Other modules read it; they write tags by `setTag` only. */
export const user = {
    /** Whether a function of the script runs; false in the init context. */
    running: false,
    id: 0,
    /** The number of the user's iteration. */
    get iteration() {
        return native.iterationNumber();
    },
    scenario: "",
    /** The path of the group that the user is in, as k6 writes it: `::outer::inner`, or empty. */
    group: "",
    /** Every tag that samples get beside their own. */
    tags: {},
};

/** Keys under which a response of gRPC carries its label, its ticket, and whether a check of it has failed. */
export const LABEL = Symbol("label");
export const TICKET = Symbol("ticket");
export const JUDGED = Symbol("judged");

/** Tags that the user has by where it is, rather than by the script's wish. */
const PLACE_TAGS = new Set(["group", "scenario", "vu", "iter"]);
/** The system tags that k6 sets where the script does not choose. */
const DEFAULT_SYSTEM_TAGS = [
    "proto", "subproto", "status", "method", "url", "name", "group", "check", "error", "error_code",
    "tls_version", "scenario", "service", "expected_response", "rpc_type",
];

const iterationHooks = [];
const groups = [];
/** Numbers of places, by the path of the group: those that the user has been in with the tags that it has now. */
const places = new Map();
let systemTags = new Set(DEFAULT_SYSTEM_TAGS);
/** Whether samples carry the user's number, or that of its iteration. */
let tagsNumbers = false;
let lastPlace = 0;
let place = 0;
/** Names of the variables that the scenario has of its own. */
let scenarioVariables = [];

/** Registers a hook that runs before each iteration. `isIdle` says whether it has nothing to do before the next one. */
export function eachIteration(hook, isIdle = () => false) {
    iterationHooks.push({ hook, isIdle });
}

/** Whether an iteration begins as it is, with nothing to do before it. */
export function beginsAtOnce() {
    return !tagsNumbers && groups.length === 0 && iterationHooks.every(({ isIdle }) => isIdle());
}

/** Pauses the user; its groups count the time as a pause. */
export function pause(seconds) {
    const from = native.now();
    native.pause(seconds);
    paused(native.now() - from);
}

/** Counts milliseconds as a pause of the groups that the user is in. */
export function paused(milliseconds) {
    for (const group of groups) group.paused += milliseconds;
}

/** Whether samples carry this system tag, by the option `systemTags`. */
export function hasSystemTag(name) {
    return systemTags.has(name);
}

/** Takes the run's tags and system tags from the options, once they are known. */
export function configureTags(options) {
    const chosen = options?.systemTags;
    systemTags = new Set(Array.isArray(chosen) ? chosen : DEFAULT_SYSTEM_TAGS);
    tagsNumbers = systemTags.has("vu") || systemTags.has("iter");
    addTags(options?.tags);
}

/** Adds tags that all samples of the user get. */
function addTags(tags) {
    for (const [name, value] of Object.entries(tags ?? {})) user.tags[name] = String(value);
    forgetPlaces();
}

/** Sets a tag of the user, which stays from one iteration to the next. */
export function setTag(name, value) {
    user.tags[name] = String(value);
    forgetPlaces();
}

/** Removes a tag of the user. */
export function deleteTag(name) {
    delete user.tags[name];
    forgetPlaces();
}

/** The number of the user's place; 0 once that has changed, until it is asked for by `placeNumber`. */
export { place as knownPlace };

/** The number of the user's place: its group, with the tags that it has. What has another place, or is judged otherwise, has another label. */
export function placeNumber() {
    if (place === 0) {
        place = places.get(user.group) ?? (lastPlace += 1);
        places.set(user.group, place);
        native.moved(place);
    }
    return place;
}

/** The user's place is another one. */
function moved() {
    place = 0;
    native.moved(0);
}

/** Calls count as something else than they did, wherever the user is. */
export function forgetPlaces() {
    places.clear();
    moved();
}

/** The user's tags but for those of its place. */
export function ownTags() {
    const own = {};
    for (const name of Object.keys(user.tags)) if (!PLACE_TAGS.has(name)) own[name] = user.tags[name];
    return own;
}

/** The path of the group that the user is in, as brunt writes it: `outer/inner`, or empty. */
export function groupName() {
    return user.group.slice(2).replaceAll("::", "/");
}

/** Sets a tag of the user's place, where the script has not turned it off. */
function setPlaceTag(name, value) {
    const text = String(value);
    if (!systemTags.has(name) || user.tags[name] === text) return;
    user.tags[name] = text;
    forgetPlaces();
}

/** Makes `path` the group that the user is in. */
function moveTo(path) {
    if (user.group !== path) moved();
    user.group = path;
    if (systemTags.has("group")) user.tags.group = path;
}

/** Enters a group inside the current one. */
export function enterGroup(name) {
    const outer = user.group;
    moveTo(`${outer}::${name}`);
    groups.push({ id: native.groupBegin(groupName()), outer, from: native.now(), paused: 0 });
}

/** Leaves the current group. Returns how long it took, in milliseconds. */
export function leaveGroup(ok) {
    const group = groups.pop();
    const took = native.now() - group.from;
    native.groupEnded(group.id, nanoseconds(took), nanoseconds(took - group.paused), ok);
    moveTo(group.outer);
    return took;
}

/** Milliseconds as whole nanoseconds. */
function nanoseconds(milliseconds) {
    return Math.max(0, Math.round(milliseconds * 1e6));
}

/** Begins an iteration or a function beside the load: takes the user's numbers and leaves all groups. */
export function begin(place) {
    if (!native.isSameUser()) becomes(native.user());
    // Setup and teardown are of no VU.
    if (place && user.id !== 0) globalThis.__VU = user.id = 0;
    if (groups.length > 0) groups.length = 0;
    const path = place ? `::${place}` : "";
    if (user.group !== path || user.tags.group === undefined) moveTo(path);
    if (tagsNumbers) {
        setPlaceTag("vu", user.id);
        setPlaceTag("iter", user.iteration);
    }
    for (let at = 0; at < iterationHooks.length; at += 1) iterationHooks[at].hook();
}

/** Takes the user's number and scenario. */
function becomes(now) {
    user.running = true;
    user.id = now.id;
    globalThis.__VU = now.id;
    if (user.scenario !== now.scenario) beginScenario(now);
}

/** Takes the tags and variables of the scenario that the user works for from now on. */
function beginScenario(now) {
    user.scenario = now.scenario;
    const options = native.options();
    user.tags = {};
    configureTags(options);
    if (now.scenario) setPlaceTag("scenario", now.scenario);
    const own = options?.scenarios?.[now.scenario];
    addTags(own?.tags);
    takeEnvironment(own?.env ?? {});
}

/** Gives `__ENV` the variables of the scenario, in place of those of the one before. */
function takeEnvironment(variables) {
    const shared = scenarioVariables.length > 0 ? native.env() : {};
    for (const name of scenarioVariables) {
        if (Object.hasOwn(shared, name)) globalThis.__ENV[name] = shared[name];
        else delete globalThis.__ENV[name];
    }
    scenarioVariables = Object.keys(variables);
    for (const name of scenarioVariables) globalThis.__ENV[name] = String(variables[name]);
}
