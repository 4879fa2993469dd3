// Requests that are under way together: batches, and those beside the script.
import { httpAll, httpBegin, setHop } from "brunt:natives";
import { defer, handle, unhandle } from "brunt:events";
import { Exchange } from "brunt:exchanges";
import { described, isResponse, NamedUrl, refuseInit } from "brunt:hops";
import { settings } from "brunt:settings";

/** Makes a request beside the script. Returns a promise of its Response. */
export function asyncRequest(method, url, body, params) {
    const { promise, resolve, reject } = defer();
    try {
        const hop = described(String(method).toUpperCase(), url, body, params);
        if (isResponse(hop)) resolve(hop);
        else begin(new Exchange(hop), resolve, reject);
    } catch (error) {
        reject(error);
    }
    return promise;
}

/** Makes requests together. Returns their Responses: a list for a list, an object of the same names for an object. */
export function batch(requests) {
    refuseInit();
    if (requests === null || typeof requests !== "object") throw new TypeError("batch() takes a list or an object of requests");
    const made = {};
    for (const name of Object.keys(requests)) {
        const hop = memberOf(requests[name], name);
        made[name] = isResponse(hop) ? { response: hop } : new Exchange(hop);
    }
    completeAll(Object.values(made).filter((exchange) => exchange instanceof Exchange));
    const responses = Array.isArray(requests) ? [] : {};
    for (const name of Object.keys(made)) responses[name] = made[name].response;
    return responses;
}

/** The request of a member of a batch. */
function memberOf(member, name) {
    if (typeof member === "string" || member instanceof NamedUrl) return described("GET", member);
    if (Array.isArray(member)) return described(String(member[0]).toUpperCase(), member[1], member[2], member[3]);
    if (member === null || typeof member !== "object") throw new TypeError(`batch(): the request ${name} is neither a URL nor a list nor an object`);
    return described(String(member.method ?? "GET").toUpperCase(), member.url, member.body, member.params);
}

/** Sends an exchange's next request beside the script. */
function begin(exchange, resolve, reject) {
    const { hop } = exchange;
    const id = httpBegin(...exchange.call());
    handle(id, ({ response }) => {
        unhandle(id);
        setHop(response, hop);
        try {
            if (exchange.settle(response)) begin(exchange, resolve, reject);
            else resolve(exchange.response);
        } catch (error) {
            reject(error);
        }
    });
}

/** Makes the requests of exchanges together, in rounds that keep to the limits of batches. */
function completeAll(exchanges) {
    let waiting = exchanges;
    while (waiting.length > 0) {
        const { round, later } = roundOf(waiting);
        const responses = httpAll(round.map((exchange) => exchange.call()));
        waiting = [...round.filter((exchange, at) => exchange.settle(responses[at])), ...later];
    }
}

/** The first exchanges that may be under way together, and those after them. */
function roundOf(exchanges) {
    const { batch: most, batchPerHost: mostPerHost } = settings();
    const hosts = new Map();
    const round = [];
    const later = [];
    for (const exchange of exchanges) {
        const { host } = exchange.hop.target.url;
        const count = hosts.get(host) ?? 0;
        const fits = (most <= 0 || round.length < most) && (mostPerHost <= 0 || count < mostPerHost);
        if (fits) hosts.set(host, count + 1);
        (fits ? round : later).push(exchange);
    }
    return { round, later };
}
