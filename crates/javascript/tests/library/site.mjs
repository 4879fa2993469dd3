// A user whose requests a function answers: `brunt:native`'s calls of HTTP.
import { newUser } from "./harness.mjs";

const TIMINGS = { looking_up: 0, blocked: 1, connecting: 2, tls_handshaking: 3, sending: 4, waiting: 5, receiving: 6, duration: 15 };
const REMOTE = { ip: "127.0.0.1", port: 8080, proto: "HTTP/1.1", tls_version: "", tls_cipher_suite: "" };

/**
 * A user of a site. `answer(request)` gives what the site answers to `{ method, url, headers, fields, body }`: a body, or
 * `{ status, headers, body, error, reason, timings, remote }`. The user has `sent`, the requests in their order, and
 * `together`, how many were in flight at each time.
 */
export async function newVisitor(answer = () => "", given = {}) {
    const sent = [];
    const together = [];
    // The client's first ticket is 0.
    let tickets = -1;
    const world = {};
    const names = new Map();
    const bytesOf = (body) => (typeof body === "string" ? Buffer.from(body) : Buffer.from(new Uint8Array(body)));

    /** What stands behind each Response. */
    const states = new WeakMap();
    const respond = (hop, state) => {
        const response = Object.create(world.user.prototype);
        response.status = state.made.error ? 0 : (state.made.status ?? 200);
        states.set(response, { hop, judged: false, ...state });
        return response;
    };
    const make = ([hop, label, timeout, method, url, fields, body, discards]) => {
        const headers = {};
        for (let at = 0; at < fields.length; at += 2) headers[fields[at]] = fields[at + 1];
        const request = { label: names.get(label)?.name, ok: names.get(label)?.ok, tags: names.get(label)?.tags, group: names.get(label)?.group };
        Object.assign(request, { timeout, method, url, headers, fields: [...fields], discards });
        request.body = body === null || typeof body === "string" ? body : bytesOf(body);
        sent.push(request);
        const given = answer(request) ?? "";
        const made = typeof given === "string" || Buffer.isBuffer(given) ? { body: given } : given;
        return respond(hop, { ticket: (tickets += 1), label, discards, made });
    };
    /** Requests that were prepared, by their numbers. */
    const prepared = [];
    const bodyOf = (response) => {
        const { made, discards } = states.get(response);
        return discards || made.error ? null : bytesOf(made.body ?? "");
    };
    const headersOf = ({ headers }) => Object.fromEntries(Object.entries(headers ?? {}).map(([name, value]) => {
        return [name, Array.isArray(value) ? value.join(name === "set-cookie" ? "\n" : ", ") : value];
    }));
    const native = {
        http(...call) {
            together.push(1);
            const response = make(call);
            world.user.clock += states.get(response).made.after ?? 0;
            return response;
        },
        prepare: (...call) => prepared.push(call),
        send(hop, label, timeout, number, discards) {
            const [, , , method, url, fields, body] = prepared[number - 1];
            return native.http(hop, label, timeout, method, url, fields, body, discards);
        },
        httpAll(calls) {
            together.push(calls.length);
            return calls.map(make);
        },
        httpBegin(...call) {
            const response = make(call);
            const { made, ticket } = states.get(response);
            const id = 1000 + ticket;
            world.user.events.push({ due: world.user.clock + (made.after ?? 1), id, response });
            return id;
        },
        pause(seconds) {
            world.user.clock += seconds * 1000;
        },
        unsent: (hop, reason) => respond(hop, { ticket: 0, label: 0, discards: false, made: { error: "refused", reason } }),
        labelOf: (value) => (states.has(value) ? states.get(value).label : undefined),
        ticketOf: (response) => states.get(response).ticket,
        failsFirst(response) {
            const state = states.get(response);
            const isFirst = !state.judged;
            state.judged = true;
            return isFirst;
        },
        setsCookies: (response) => "set-cookie" in (states.get(response).made.headers ?? {}),
        isAnswer: (response) => !states.get(response).made.error,
        failureOf(response) {
            const { error, reason } = states.get(response).made;
            return error ? [error, reason ?? error] : undefined;
        },
        hopOf: (response) => states.get(response).hop,
        setHop: (response, hop) => void (states.get(response).hop = hop),
        readText: (response) => bodyOf(response)?.toString() ?? null,
        readBytes(response) {
            const body = bodyOf(response);
            return body && (states.get(response).bytes ??= world.user.buffer(body));
        },
        readJson(response) {
            const state = states.get(response);
            const body = bodyOf(response);
            return body === null ? undefined : (state.json ??= world.user.parse(body.toString()));
        },
        readHeaders: (response) => headersOf(states.get(response).made),
        readTimings(response) {
            const { made } = states.get(response);
            return made.error ? { ...TIMINGS, ...Object.fromEntries(Object.keys(TIMINGS).map((name) => [name, 0])) } : { ...(made.timings ?? TIMINGS) };
        },
        readSizes: () => ({ head: 100, received: 10, body: 10 }),
        readPeer(response) {
            const { made } = states.get(response);
            return made.error ? {} : { ...(made.remote ?? REMOTE) };
        },
        label(name, tags, scenario, group, ok) {
            const key = JSON.stringify([name, tags, scenario, group, ok]);
            for (const [number, known] of names) if (known.key === key) return number;
            names.set(names.size + 1, { key, name, tags: [...tags], group, ok });
            return names.size;
        },
        excuse: (label, status) => void world.user.calls.push(["excuse", names.get(label).name, status]),
        deflate: (kind, body) => world.user.buffer(Buffer.from(`${kind}(${bytesOf(body)})`)),
        ...given.native,
    };
    world.user = await newUser({ ...given, native });
    // The mock finds modules that were imported before.
    for (const name of ["k6/html", "brunt:selector"]) await world.user.import(name);
    return Object.assign(world.user, { sent, together });
}

/**
 * Runs a script's function of this text against a site. Returns the user, whose `shown` is what `show(value)` was called
 * with, as JSON has it.
 */
export async function visit(body, answer, given) {
    const user = await newVisitor(answer, given);
    const init = given?.init ?? "";
    await user.iterate(`import http from "k6/http"; import { check, sleep, group } from "k6";
        const show = (value) => console.log("shown: " + JSON.stringify(value));
        ${init}
        export default ${given?.isAsync ? "async " : ""}function () { ${body} }`);
    const shown = user.printed().filter((text) => text.startsWith("shown: ")).map((text) => text.slice(7));
    user.shown = shown.map((text) => (text === "undefined" ? undefined : JSON.parse(text)));
    return user;
}
