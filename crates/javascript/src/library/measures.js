// Samples of requests, for k6's metrics: https://grafana.com/docs/k6/latest/using-k6/metrics/reference/
import { isAnswer, readPeer, readSizes, readTimings, utf8 } from "brunt:natives";
import { sample } from "brunt:samples";
import { errorOf } from "brunt:failures";
import { settings } from "brunt:settings";

/** Adds the samples of a request. `isExcused`: its status is none of a failure, whatever the script expects. */
export function measure(hop, response, isExcused, took) {
    const { countsRequests, countsFailures, countsBytes, filters, times } = settings();
    const expected = isExcused ? true : hop.expects(response.status);
    const tags = filters ? tagsOf(hop, response, expected) : undefined;
    if (countsRequests) sample("http_reqs", 1, tags);
    if (countsFailures && expected !== undefined) sample("http_req_failed", expected ? 0 : 1, tags);
    if (countsBytes) measureBytes(hop, response, tags);
    if (times.length === 0) return;
    const timings = isAnswer(response) ? readTimings(response) : { duration: took, waiting: took };
    for (const [metric, time] of times) sample(metric, timings[time] ?? 0, tags);
}

/** Adds how many bytes of HTTP/1.1 a request and its answer take, without what TLS adds. */
function measureBytes(hop, response, tags) {
    let sent = hop.method.length + hop.target.sent.length + hop.target.url.host.length + 24;
    for (const part of hop.fields) sent += part.length + 2;
    sent += hop.body === null ? 0 : typeof hop.body === "string" ? utf8(hop.body).byteLength : hop.body.byteLength;
    sample("data_sent", sent, tags);
    if (!isAnswer(response)) return;
    const { head, received } = readSizes(response);
    sample("data_received", (head ?? 0) + (received ?? 0), tags);
}

/** The tags of a request's samples. Those that the client must be asked for are read where a filter has them. */
function tagsOf(hop, response, expected) {
    const failure = errorOf(response);
    const name = hop.name ?? hop.target.tagged;
    const tags = { ...hop.params.tags, name, url: name, method: hop.method, status: String(response.status) };
    if (expected !== undefined) tags.expected_response = String(expected);
    if (failure[0] !== 0) tags.error_code = String(failure[0]);
    if (failure[1] !== "") tags.error = failure[1];
    if (!isAnswer(response)) return tags;
    for (const tag of ["proto", "tls_version", "ip"]) {
        Object.defineProperty(tags, tag, { get: () => readPeer(response)[tag] });
    }
    return tags;
}
