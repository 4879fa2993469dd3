// `k6/net/grpc`: https://grafana.com/docs/k6/latest/javascript-api/k6-net-grpc/
import * as native from "brunt:natives";
import { defer, handle, unhandle } from "brunt:events";
import { eachIteration, LABEL, TICKET, user } from "brunt:user";
import { milliseconds } from "brunt:given-params";
import { sample } from "brunt:samples";
import { labelOf } from "brunt:targets";
import { partsOf, Stream, streamsBy } from "brunt:grpc-stream";

/** The statuses of gRPC, by their numbers. */
const STATUSES = [
    "OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists", "PermissionDenied",
    "ResourceExhausted", "FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented", "Internal", "Unavailable",
    "DataLoss", "Unauthenticated",
];
export const [
    StatusOK, StatusCanceled, StatusUnknown, StatusInvalidArgument, StatusDeadlineExceeded, StatusNotFound, StatusAlreadyExists,
    StatusPermissionDenied, StatusResourceExhausted, StatusFailedPrecondition, StatusAborted, StatusOutOfRange, StatusUnimplemented,
    StatusInternal, StatusUnavailable, StatusDataLoss, StatusUnauthenticated,
] = STATUSES.keys();

/** Params of `connect` that change what is sent in ways that brunt does not have. */
const REFUSED = ["tls", "authority", "compression"];

/** Connected clients of the iteration. */
const connected = new Set();
let lastHandle = 1e6;

eachIteration(() => {
    for (const client of connected) client.close();
});

/** A client, which has a schema and, once it is connected, a connection. */
export class Client {
    #directories = [];
    #files = [];
    #sets = [];
    /** The number of the client of brunt that has the schema. */
    #schema;
    #connection;

    /** Loads `.proto` files, which are looked for in these directories. */
    load(directories, ...files) {
        refuseRunning("load");
        this.#directories.push(...(directories ?? []).map(String));
        this.#files.push(...files.map(String));
        this.#schema = native.schema("files", this.#files, this.#directories);
        return [];
    }

    /** Loads a descriptor set. */
    loadProtoset(file) {
        refuseRunning("loadProtoset");
        this.#sets.push(String(file));
        if (this.#sets.length > 1 || this.#files.length > 0) throw new Error("loadProtoset(): brunt reads one descriptor set for a client, and no files beside it");
        this.#schema = native.schema("set", this.#sets, []);
        return [];
    }

    /** Connects to `host:port`. */
    connect(address, params = {}) {
        if (!user.running) throw new Error("connecting to a gRPC server in the init context is not supported");
        const unknown = REFUSED.find((name) => params?.[name] !== undefined);
        if (unknown) throw new Error(`connect(): brunt does not take params.${unknown}`);
        const server = `${params?.plaintext ? "grpc" : "grpcs"}://${address}`;
        const schema = params?.reflect ? native.schema("server", [server], []) : this.#schema;
        if (schema === undefined) throw new Error("connect(): the client has no schema: load() it, or set params.reflect");
        this.close();
        lastHandle += 1;
        const connection = { schema, server, address: String(address), handle: lastHandle };
        const timeout = params?.timeout === undefined ? 60000 : milliseconds(params.timeout);
        const label = labelOf(`connect ${address}`, undefined, undefined);
        const answer = native.call(schema, label, timeout, "open", connection.handle, false, "", undefined, undefined, "connect", server);
        if (answer.error !== undefined) {
            native.release(connection.handle);
            throw new Error(`connect(): ${address}: ${answer.reason || answer.error}`);
        }
        this.#connection = connection;
        connected.add(this);
        return true;
    }

    /** Makes a call with one message. Returns its response. */
    invoke(method, request, params) {
        const call = this.#call(method, request, params);
        const from = native.now();
        const answer = native.call(...call.values);
        const response = call.response(answer, () => native.readPart(answer.ticket, "head"), () => native.readPart(answer.ticket, `json ${call.method}`));
        call.measure(response, native.now() - from);
        return response;
    }

    /** Makes a call beside the script. Returns a promise of its response. */
    asyncInvoke(method, request, params) {
        const { promise, resolve, reject } = defer();
        try {
            const call = this.#call(method, request, params);
            const from = native.now();
            const id = native.begin(["head", `json ${call.method}`], ...call.values);
            handle(id, (event) => {
                unhandle(id);
                if (event.answer.error === "refused") return reject(new Error(event.answer.reason));
                const response = call.response(event.answer, () => event.head, () => event.json);
                call.measure(response, native.now() - from);
                resolve(response);
            });
        } catch (error) {
            reject(error);
        }
        return promise;
    }

    /** Asks the server how a service is. */
    healthcheck() {
        throw new Error("healthcheck(): brunt has no schema of it by itself: load health.proto, and invoke grpc.health.v1.Health/Check");
    }

    /** Ends the connection. */
    close() {
        if (this.#connection === undefined) return;
        native.release(this.#connection.handle);
        this.#connection = undefined;
        connected.delete(this);
    }

    /** What a call to a method is, as the engine takes it. */
    static callOf(client, method, params, kind) {
        return client.#prepared(method, params, kind);
    }

    #prepared(given, params, kind) {
        if (this.#connection === undefined) throw new Error("no gRPC connection, you must call connect first");
        const { schema, server, address, handle: connection } = this.#connection;
        const method = String(given).replace(/^\//, "");
        const [service, name] = method.split("/");
        const { name: shown, ...tags } = params?.tags ?? {};
        const url = `${address}/${method}`;
        const all = { name: url, url, service, method: name, rpc_type: kind, ...params?.tags };
        return {
            method,
            label: labelOf(shown === undefined ? method : String(shown), texts(tags), undefined),
            metadata: metadataOf(params?.metadata),
            timeout: params?.timeout === undefined ? 0 : milliseconds(params.timeout),
            way: [schema, "on", connection],
            server,
            count: (metric) => sample(metric, 1, all),
            measure: (status, took) => sample("grpc_req_duration", took, { ...all, status: String(status) }),
        };
    }

    #call(method, request, params) {
        if (!user.running) throw new Error("invoking RPC methods in the init context is not supported");
        const call = this.#prepared(method, params, "unary");
        const json = JSON.stringify(request ?? {});
        const [schema, way, connection] = call.way;
        const values = [schema, call.label, call.timeout, way, connection, false, call.method, json, call.metadata];
        const discards = params?.discardResponseMessage === true;
        return {
            method: call.method,
            values,
            measure: (response, took) => call.measure(response.status, took),
            response(answer, head, message) {
                const { status, headers, trailers, error } = partsOf(answer, answer.error === undefined ? head() : "");
                const text = status === 0 && !discards ? message() : undefined;
                return { status, headers, trailers, error, message: text === undefined ? null : JSON.parse(text), [LABEL]: call.label, [TICKET]: answer.ticket };
            },
        };
    }
}

streamsBy(Client.callOf);

/** Texts of a script's tags. */
function texts(tags) {
    return Object.fromEntries(Object.entries(tags).map(([name, value]) => [name, String(value)]));
}

/** Metadata as a call has it; of a list of values the last counts. */
function metadataOf(given) {
    const metadata = {};
    for (const [name, value] of Object.entries(given ?? {})) {
        for (const one of [value].flat()) metadata[name] = name.toLowerCase().endsWith("-bin") ? native.base64(one, "std") : String(one);
    }
    return metadata;
}

/** Refuses what is for the init context. */
function refuseRunning(name) {
    if (user.running) throw new Error(`${name}() must be called in the init context`);
}

export { Stream };

export default {
    Client, Stream, StatusOK, StatusCanceled, StatusUnknown, StatusInvalidArgument, StatusDeadlineExceeded, StatusNotFound,
    StatusAlreadyExists, StatusPermissionDenied, StatusResourceExhausted, StatusFailedPrecondition, StatusAborted, StatusOutOfRange,
    StatusUnimplemented, StatusInternal, StatusUnavailable, StatusDataLoss, StatusUnauthenticated,
};
