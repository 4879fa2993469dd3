// Why a request got no answer, in k6's error codes: https://grafana.com/docs/k6/latest/javascript-api/error-codes/

import { failureOf, hopOf } from "brunt:natives";

const GENERIC = 1000;
const NONE = [0, ""];

/** k6's code and text of each failure of brunt's; the reason tells some apart. The others are generic. */
const FAILURES = {
    timeout: () => [1050, "request timeout"],
    stalled: () => [1050, "request timeout"],
    resolve: () => [1101, "lookup: no such host"],
    connect: (reason) => (/refused/i.test(reason) ? [1212, "dial: connection refused"] : [1210, `dial: ${reason}`]),
    connect_timeout: () => [1211, "dial: i/o timeout"],
    write: (reason) => (/reset/i.test(reason) ? RESET : [1201, "write: broken pipe"]),
    read: (reason) => (/reset/i.test(reason) ? RESET : [1200, `read: ${reason}`]),
    closed: (reason) => (/reset/i.test(reason) ? RESET : [GENERIC, "EOF"]),
    tls: tlsFailure,
    protocol: (reason) => (/HTTP\/2/.test(reason) ? [1600, reason] : [GENERIC, reason]),
    // A range of addresses, or the pattern of a name.
    blocked: (reason) => [/\/\d+'$/.test(reason) ? 1110 : 1111, reason],
};
const RESET = [1220, "read: connection reset by peer"];

/** The code and text of a failed TLS handshake. */
function tlsFailure(reason) {
    if (/unknown ?issuer|unknown authority|self.?signed/i.test(reason)) return [1310, "x509: unknown authority"];
    if (/not ?valid ?for ?name|hostname/i.test(reason)) return [1311, "x509: certificate doesn't match hostname"];
    return [1300, reason];
}

/** k6's `[error_code, error]` of a Response: `[0, ""]` where nothing is wrong with it. */
export function errorOf(response) {
    const failure = failureOf(response);
    if (failure === undefined) return response.status >= 400 ? [GENERIC + response.status, ""] : NONE;
    const reason = failure[1] || failure[0];
    const { code } = hopOf(response);
    if (code !== undefined) return [code, reason];
    return FAILURES[failure[0]]?.(reason) ?? [GENERIC, reason];
}
