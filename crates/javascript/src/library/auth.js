// Authorization of requests: Basic (RFC 7617) and Digest (RFC 7616).
import * as native from "brunt:natives";
import { hexOf } from "brunt:bytes";

const ALGORITHMS = { MD5: "md5", "SHA-256": "sha256", "SHA-512-256": "sha512_256" };

/** The Authorization field of a name and a password. */
export function basic({ user, password }) {
    return `Basic ${native.base64(`${user}:${password}`, "std")}`;
}

/** The parameters of a Digest challenge, or `undefined` where there is none. */
function challengeOf(header) {
    const start = /(?:^|,\s*)digest\s+/i.exec(header ?? "");
    if (!start) return undefined;
    const challenge = {};
    const parameters = header.slice(start.index + start[0].length);
    for (const [, name, quoted, plain] of parameters.matchAll(/([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,]+))/g)) {
        challenge[name.toLowerCase()] ??= quoted === undefined ? plain : quoted.replace(/\\(.)/g, "$1");
    }
    return challenge;
}

/** The Authorization field that answers a Digest challenge, or `undefined` where it cannot be answered. */
export function digest(header, method, target, { user, password }) {
    const challenge = challengeOf(header);
    if (!challenge) return undefined;
    const named = challenge.algorithm ?? "MD5";
    const algorithm = ALGORITHMS[named.toUpperCase().replace(/-SESS$/, "")];
    if (algorithm === undefined) return undefined;
    const hash = (text) => hexOf(native.digest(algorithm, text));
    const cnonce = hexOf(native.randomBytes(8));
    const { realm = "", nonce = "", opaque } = challenge;
    const qop = challenge.qop?.split(",").map((one) => one.trim()).includes("auth") ? "auth" : undefined;
    if (challenge.qop !== undefined && qop === undefined) return undefined;
    const secret = hash(`${user}:${realm}:${password}`);
    const session = /-sess$/i.test(named) ? hash(`${secret}:${nonce}:${cnonce}`) : secret;
    const request = hash(`${method}:${target}`);
    const response = hash(qop ? `${session}:${nonce}:00000001:${cnonce}:${qop}:${request}` : `${session}:${nonce}:${request}`);
    const quoted = { username: user, realm, nonce, uri: target, response };
    const parts = Object.keys(quoted).map((name) => `${name}="${quoted[name].replace(/["\\]/g, "\\$&")}"`);
    if (challenge.algorithm !== undefined) parts.push(`algorithm=${challenge.algorithm}`);
    if (opaque !== undefined) parts.push(`opaque="${opaque}"`);
    if (qop) parts.push(`qop=${qop}`, "nc=00000001", `cnonce="${cnonce}"`);
    return `Digest ${parts.join(", ")}`;
}
