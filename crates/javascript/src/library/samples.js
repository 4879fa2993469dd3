// Samples of k6's metrics, as far as somebody asks for them: each threshold's metric and each metric of a summary is a
// figure of brunt, and a sample goes into the figures whose tags it has.
import * as native from "brunt:native";
import { hasSystemTag, user } from "brunt:user";

/** The system tags of k6; a filter on one that `systemTags` leaves out matches nothing. */
const SYSTEM_TAGS = new Set([
    "proto", "subproto", "status", "method", "url", "name", "group", "check", "error", "error_code", "tls_version",
    "scenario", "service", "expected_response", "rpc_type", "iter", "vu", "ocsp_status", "ip",
]);

/** Sinks by the metric's name: `{ figure, filter: [[tag, value], …] }`. */
const sinks = new Map();
/** The script's own metrics: `{ kind, isTime, figure }` by name. */
const own = new Map();

/** How the names of figures begin that count one check each, where a summary tells of each. */
let eachCheck;

/** Takes the (sub)metrics that are asked for: `[{ metric, kind, isTime, filter: { tag: value }, name }]`, and perhaps `{ eachCheck }`. */
export function configure(wanted) {
    for (const { metric, kind, isTime, filter, name, eachCheck: each } of wanted) {
        if (each !== undefined) {
            eachCheck = each;
            continue;
        }
        const tags = Object.entries(filter ?? {});
        if (tags.length === 0 && own.has(metric)) continue;
        const figure = native.figure(kind, name, isTime);
        if (tags.every(([tag]) => !SYSTEM_TAGS.has(tag) || hasSystemTag(tag))) addSink(metric, figure, tags);
    }
}

/** Lets a figure take the samples of a metric that have these tags. */
function addSink(metric, figure, tags) {
    if (!sinks.has(metric)) sinks.set(metric, []);
    sinks.get(metric).push({ figure, filter: tags.map(([tag, value]) => [tag, String(value)]) });
}

/** Declares a metric of the script's. */
export function declare(kind, name, isTime) {
    const known = own.get(name);
    if (known) {
        if (known.kind === kind && known.isTime === isTime) return;
        throw new Error(`metric '${name}' already exists as a ${known.kind}${known.isTime ? " of times" : ""}`);
    }
    const figure = native.figure(kind, name, isTime);
    own.set(name, { kind, isTime, figure });
    addSink(name, figure, []);
}

/** Whether some figure takes samples of this metric by their tags. */
export function filters(metric) {
    return sinks.get(metric)?.some(({ filter }) => filter.length > 0) ?? false;
}

/** Whether some figure takes samples of this metric. */
export function wants(metric) {
    return sinks.has(metric);
}

/** Adds a sample, with the tags that it has beside the user's, to each figure that it belongs to. */
export function sample(metric, value, tags) {
    const taken = sinks.get(metric);
    if (taken === undefined) return;
    for (const { figure, filter } of taken) {
        if (matches(filter, tags)) native.record(figure, value);
    }
}

/** Adds what a check gave, with the script's tags. */
export function sampleCheck(name, holds, tags) {
    const value = holds ? 1 : 0;
    sample("checks", value, { ...tags, check: name });
    if (eachCheck !== undefined) native.record(native.figure("rate", `${eachCheck}${user.group}::${name}`, false), value);
}

/** Whether a sample has each tag of a filter. A tag that it lacks is as good as an empty one. */
function matches(filter, tags) {
    for (const [tag, value] of filter) {
        const has = tags?.[tag] ?? user.tags[tag] ?? "";
        if (String(has) !== value) return false;
    }
    return true;
}
