//! The guide, offline: the pages of `docs/`, for the terminal and as manual pages.

mod markdown;
pub mod roff;
mod terminal;

use markdown::Part;

/// A page of the guide.
#[derive(Debug, Clone, Copy)]
pub struct Topic {
    /// Its name in `brunt help`, which is its file's name.
    pub name: &'static str,
    /// Its subject, in a line.
    pub about: &'static str,
    text: &'static str,
}

/// A page of `docs/`, wherever `build.rs` found that.
macro_rules! topic {
    ($name:literal, $about:literal) => {
        Topic { name: $name, about: $about, text: include_str!(concat!(env!("BRUNT_DOCS"), "/", $name, ".md")) }
    };
}

/// Every page, in the order in which a new user needs them.
pub const TOPICS: [Topic; 36] = [
    topic!("install", "packages, from source, container, service"),
    topic!("first", "a first run: one request, a load, a page to show"),
    topic!("load", "closed and open model, rates and ramps, how long, how many connections"),
    topic!("replay", "the requests of an access log, at its times, beside its answers"),
    topic!("report", "every figure of the report, the verdict, exit statuses"),
    topic!("doubt", "when a result cannot be believed, and what to do"),
    topic!("http", "requests, headers, bodies, many URLs; connections and TLS; --once"),
    topic!("http2", "HTTP/2: streams, flow control, what is sent again"),
    topic!("thresholds", "pass or fail, for CI"),
    topic!("changing", "another rate, a pause, a mark while a run goes on; guards that back off"),
    topic!("gate", "a performance gate for CI in ten minutes, without flakes"),
    topic!("results", "files, the report page, live view, runs that are kept, plans"),
    topic!("metrics", "each second to OpenTelemetry (OTLP) or Prometheus; Grafana"),
    topic!("watch", "the target's CPU, memory and metrics, second by second beside brunt's figures"),
    topic!("deciding", "find the capacity, compare A and B, sweep over values"),
    topic!("scenarios", "users in Lua, with sessions, data, checks"),
    topic!("javascript", "k6's scripts as they are"),
    topic!("editors", "completion, and brunt check: what is misspelt, before there is load"),
    topic!("machines", "one run on many machines, by agents over NATS"),
    topic!("streams", "answers that come as messages: events, tokens of language models"),
    topic!("llm", "language models: time to first token, tokens a second, goodput"),
    topic!("wrk-scripts", "wrk's Lua scripts as they are"),
    topic!("settings", "flags without typing them: brunt.toml, BRUNT_*"),
    topic!("websocket", "WebSocket"),
    topic!("thrift", "Thrift, from a service's IDL"),
    topic!("grpc", "gRPC, from .proto files"),
    topic!("tcp", "plain TCP"),
    topic!("custom-protocol", "a protocol of your own, in Rust"),
    topic!("coalescing", "a proxy that serves identical requests once, and a check of it"),
    topic!("target", "the built-in target: slow, failing, with a known capacity"),
    topic!("import", "scenarios from a recording, OpenAPI, Postman, curl; a curl command as load"),
    topic!("moving", "from k6 and Gatling: what differs, their words and brunt's"),
    topic!("locust-jmeter", "from Locust and JMeter: their words and brunt's, a file ported"),
    topic!("beside", "brunt beside wrk, oha, zrk, k6, Gatling, Locust, vegeta"),
    topic!("other-tools", "the flags of wrk, ab, hey, oha, curl, and brunt's for them"),
    topic!("stability", "versions, what stays, older and newer files"),
];

/// The page of this name.
pub fn topic(name: &str) -> Option<&'static Topic> {
    TOPICS.iter().find(|topic| topic.name == name)
}

impl Topic {
    fn parts(&self) -> Vec<Part> {
        markdown::parts(self.text)
    }

    /// The page for a terminal of this many columns.
    pub fn for_terminal(&self, width: usize, colour: bool) -> String {
        terminal::text(&self.parts(), width, colour)
    }

    /// The page for `man`, as `brunt-NAME(7)`.
    pub fn for_man(&self) -> String {
        roff::text(self.name, self.about, &self.parts())
    }
}
