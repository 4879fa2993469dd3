// A user whose requests a function answers: `brunt:native`'s calls of HTTP, with answers that are forgotten at the next wait.
import { newUser } from "./harness.mjs";

const TIMINGS = { blocked: 1, connecting: 2, tls_handshaking: 3, sending: 4, waiting: 5, receiving: 6, duration: 15 };
const REMOTE = { ip: "127.0.0.1", port: 8080, proto: "HTTP/1.1", tls_version: "", tls_cipher_suite: "" };

/**
 * A user of a site. `answer(request)` gives what the site answers to `{ method, url, headers, fields, body }`: a body, or
 * `{ status, headers, body, error, reason, timings, remote }`. The user has `sent`, the requests in their order, and
 * `together`, how many were in flight at each time.
 */
export async function newVisitor(answer = () => "", given = {}) {
    const sent = [];
    const together = [];
    let answers = new Map();
    // The client's first ticket is 0.
    let tickets = -1;
    const world = {};
    const names = new Map();
    const bytesOf = (body) => (typeof body === "string" ? Buffer.from(body) : Buffer.from(new Uint8Array(body)));

    const make = ([label, timeout, method, url, fields, body, flags]) => {
        const headers = {};
        for (let at = 0; at < fields.length; at += 2) headers[fields[at]] = fields[at + 1];
        const request = { label: names.get(label)?.name, ok: names.get(label)?.ok, tags: names.get(label)?.tags, group: names.get(label)?.group };
        Object.assign(request, { timeout, method, url, headers, fields: [...fields], flags });
        request.body = body === null || typeof body === "string" ? body : bytesOf(body);
        sent.push(request);
        const given = answer(request) ?? "";
        const made = typeof given === "string" || Buffer.isBuffer(given) ? { body: given } : given;
        const ticket = (tickets += 1);
        answers.set(ticket, made);
        const setsCookies = Object.keys(made.headers ?? {}).some((name) => name === "set-cookie");
        const status = made.error ? 0 : (made.status ?? 200);
        const ended = { ticket, status, ok: status < 400, flags: setsCookies ? 1 : 0 };
        if (made.error) Object.assign(ended, { error: made.error, reason: made.reason ?? made.error });
        return ended;
    };
    const forget = () => void (answers = new Map());
    const parts = (ticket) => {
        if (!answers.has(ticket)) throw new Error(`the answer ${ticket} is forgotten`);
        return answers.get(ticket);
    };
    const headersOf = ({ headers }) => Object.fromEntries(Object.entries(headers ?? {}).map(([name, value]) => {
        return [name, Array.isArray(value) ? value.join(name === "set-cookie" ? "\n" : ", ") : value];
    }));
    const native = {
        http(...call) {
            forget();
            together.push(1);
            const ended = make(call);
            world.user.clock += parts(ended.ticket).after ?? 0;
            return ended;
        },
        httpAll(calls) {
            forget();
            together.push(calls.length);
            return calls.map(make);
        },
        httpBegin(...call) {
            const ended = make(call);
            const made = parts(ended.ticket);
            const id = 1000 + ended.ticket;
            const body = ended.error ? null : world.user.buffer(bytesOf(made.body ?? ""));
            const due = world.user.clock + (made.after ?? 1);
            world.user.events.push({ due, id, answer: ended, body, headers: headersOf(made), timings: made.timings ?? TIMINGS });
            return id;
        },
        pause(seconds) {
            forget();
            world.user.clock += seconds * 1000;
        },
        readText: (ticket) => bytesOf(parts(ticket).body ?? "").toString(),
        readBytes: (ticket) => world.user.buffer(bytesOf(parts(ticket).body ?? "")),
        readHeaders: (ticket) => headersOf(parts(ticket)),
        readTimings: (ticket) => ({ ...(parts(ticket).timings ?? TIMINGS) }),
        readSizes: () => ({ head: 100, received: 10, body: 10 }),
        readRemote: (ticket) => ({ ...(parts(ticket).remote ?? REMOTE) }),
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
