// Bodies of requests as they are sent, with the header fields that go with them.
import * as native from "brunt:natives";
import { fieldOf } from "brunt:params";
import { withField } from "brunt:fields";
import { need } from "brunt:needed";

/** Fields with cookies behind those that they have. */
export function withCookies(fields, cookies) {
    const explicit = fieldOf(fields, "Cookie");
    return withField(fields, "Cookie", explicit === undefined ? cookies : `${explicit}; ${cookies}`);
}

/** A body as it is sent, with the request's fields: `{ fields, sent }`. */
export function encoded(body, params, userAgent) {
    let { fields } = params;
    if (userAgent !== undefined && fieldOf(fields, "User-Agent") === undefined) fields = withField(fields, "User-Agent", userAgent);
    if (body === undefined || body === null) return { fields, sent: null };
    const given = typeof body === "string" ? { body } : need("brunt:forms").encodeBody(body);
    if (given.contentType && fieldOf(fields, "Content-Type") === undefined) fields = withField(fields, "Content-Type", given.contentType);
    if (!params.compression) return { fields, sent: given.body };
    if (fieldOf(fields, "Content-Encoding") === undefined) fields = withField(fields, "Content-Encoding", params.compression.join(", "));
    return { fields, sent: compressed(given.body, params.compression) };
}

/** A body, compressed by each of these in turn. */
function compressed(body, kinds) {
    let packed = typeof body === "string" ? native.utf8(body) : body;
    for (const kind of kinds) {
        if (kind !== "gzip" && kind !== "deflate") throw new Error(`params.compression: brunt has no ${kind} for request bodies; use gzip or deflate`);
        packed = native.deflate(kind, packed);
    }
    return packed;
}
