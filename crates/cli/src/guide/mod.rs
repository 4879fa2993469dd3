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

/// Every page, by what a reader is about to do.
pub const GROUPS: [(&str, &[Topic]); 5] = [
    (
        "Begin",
        &[
            topic!("first", "a first run, how to read it, how to install brunt"),
            topic!("load", "a rate or full speed, ramps, changes, brunt.toml"),
            topic!("report", "every line of the report; when not to believe it"),
            topic!("results", "files, the page, the live view, kept runs"),
        ],
    ),
    (
        "Decide",
        &[
            topic!("gate", "pass or fail: thresholds, guards, a gate in CI"),
            topic!("deciding", "find the capacity, compare A and B, sweep"),
            topic!("metrics", "the target's CPU and metrics; OTLP, Prometheus"),
            topic!("machines", "one run on many machines; containers, services"),
        ],
    ),
    (
        "Users",
        &[
            topic!("scenarios", "users by a script: who comes when, checks, editors"),
            topic!("lua", "the library of scenarios: clients, data, values"),
            topic!("javascript", "scripts of k6 as they are"),
            topic!("replay", "the requests of an access log, at its times"),
            topic!("moving", "HAR, OpenAPI, Postman, curl, Gatling, Locust, JMeter"),
            topic!("other-tools", "flags and scripts of wrk, ab, hey, oha, vegeta"),
        ],
    ),
    (
        "Protocols",
        &[
            topic!("http", "HTTP/1.1 and 2, many URLs, TLS, streams of messages"),
            topic!("llm", "language models: first token, tokens a second"),
            topic!("rpc", "gRPC and Thrift, from .proto files and IDL"),
            topic!("sockets", "WebSocket and TCP"),
            topic!("custom-protocol", "a protocol of your own, in Rust"),
        ],
    ),
    (
        "More",
        &[
            topic!("target", "brunt's own target: slow, failing, of known capacity"),
            topic!("coalescing", "a proxy that serves identical requests once"),
            topic!("reference", "formats, figures, versions"),
        ],
    ),
];

/// Names of pages before they were joined, and the topic that has their text now. They have manual pages and places on the site, too.
pub const ALIASES: [(&str, &str); 18] = [
    ("beside", "other-tools"),
    ("changing", "load"),
    ("doubt", "report"),
    ("editors", "scenarios"),
    ("grpc", "rpc"),
    ("http2", "http"),
    ("import", "moving"),
    ("install", "first"),
    ("locust-jmeter", "moving"),
    ("settings", "load"),
    ("stability", "reference"),
    ("streams", "http"),
    ("tcp", "sockets"),
    ("thresholds", "gate"),
    ("thrift", "rpc"),
    ("watch", "metrics"),
    ("websocket", "sockets"),
    ("wrk-scripts", "other-tools"),
];

/// Other tools and formats, and the topic for each.
const TOOLS: [(&str, &str); 14] = [
    ("wrk", "other-tools"),
    ("ab", "other-tools"),
    ("hey", "other-tools"),
    ("oha", "other-tools"),
    ("vegeta", "other-tools"),
    ("curl", "moving"),
    ("k6", "javascript"),
    ("gatling", "moving"),
    ("locust", "moving"),
    ("jmeter", "moving"),
    ("har", "moving"),
    ("openapi", "moving"),
    ("swagger", "moving"),
    ("postman", "moving"),
];

/// Every page, in the order of the groups.
pub fn topics() -> impl Iterator<Item = &'static Topic> {
    GROUPS.iter().flat_map(|(_, topics)| *topics)
}

/// The page of this name, or of one that it went by before.
pub fn topic(name: &str) -> Option<&'static Topic> {
    let name = ALIASES.iter().chain(&TOOLS).find(|(alias, _)| *alias == name).map_or(name, |(_, topic)| *topic);
    topics().find(|topic| topic.name == name)
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
