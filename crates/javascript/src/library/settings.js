// The run's options that concern requests, read once.
import { options } from "brunt:native";
import { filters, wants } from "brunt:samples";

/** Metrics of a request's times, with the names of these times in `Response.timings`. */
const TIMES = ["duration", "blocked", "connecting", "tls_handshaking", "sending", "waiting", "receiving"];

let read;

/** The options, as the plan has consolidated them. */
export function settings() {
    return (read ??= readSettings(options() ?? {}));
}

/** An option's number, or what holds where it is absent. */
function numberOr(given, otherwise) {
    return given === undefined || given === null ? otherwise : Number(given);
}

/** Takes what concerns requests from the options. */
function readSettings(given) {
    const times = TIMES.filter((time) => wants(`http_req_${time}`));
    const countsRequests = wants("http_reqs");
    const countsFailures = wants("http_req_failed");
    const countsBytes = wants("data_sent") || wants("data_received");
    const measures = times.length > 0 || countsRequests || countsFailures || countsBytes;
    const debug = given.httpDebug ? (given.httpDebug === "full" ? "full" : "headers") : undefined;
    return {
        maxRedirects: numberOr(given.maxRedirects, 10),
        batch: numberOr(given.batch, 20),
        batchPerHost: numberOr(given.batchPerHost, 6),
        userAgent: given.userAgent ?? undefined,
        discards: Boolean(given.discardResponseBodies),
        keepsCookies: Boolean(given.noCookiesReset),
        throws: Boolean(given.throw),
        /** `undefined`, or how much of requests is logged: `headers` or `full`. */
        debug,
        times: times.map((time) => [`http_req_${time}`, time]),
        countsRequests,
        countsFailures,
        countsBytes,
        /** Whether some of them are taken by their tags. */
        filters: [...TIMES.map((time) => `http_req_${time}`), "http_reqs", "http_req_failed", "data_sent", "data_received"].some(filters),
        /** Whether anybody asks for samples of requests. */
        measures,
    };
}
