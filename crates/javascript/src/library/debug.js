// Requests and answers in the log, for `httpDebug`: https://grafana.com/docs/k6/latest/using-k6/http-debugging/
import * as native from "brunt:natives";
import { canonicalName } from "brunt:fields";
import { settings } from "brunt:settings";

/** Logs a request. */
export function showRequest(hop, fields) {
    const lines = [`${hop.method} ${hop.target.url.target()} HTTP/1.1`, `Host: ${hop.target.url.host}`];
    for (let at = 0; at < fields.length; at += 2) lines.push(`${fields[at]}: ${fields[at + 1]}`);
    const body = hop.body === null || typeof hop.body === "string" ? hop.body : native.text(hop.body);
    show("Request", lines, body);
}

/** Logs an answer. */
export function showAnswer(response) {
    const failure = native.failureOf(response);
    if (failure !== undefined) return show("Response", [failure.join(": ")], null);
    const headers = native.readHeaders(response);
    const lines = [`${native.readPeer(response).proto} ${native.statusText(response.status)}`];
    for (const name of Object.keys(headers)) {
        for (const value of headers[name].split("\n")) lines.push(`${canonicalName(name)}: ${value}`);
    }
    show("Response", lines, settings().debug === "full" ? native.readText(response) : null);
}

/** Prints a head, and the body where `httpDebug` is `full`. */
function show(title, lines, body) {
    const full = settings().debug === "full" && body ? `\n${body}` : "";
    native.print("info", `${title}:\n${lines.join("\n")}\n${full}`);
}
