//! HTTP/1.1 (RFC 9110, RFC 9112), HTTP/2 (RFC 9113) and HTTP/3 (RFC 9114): requests are prepared beforehand, answers read as they come.
//!
//! A flood's requests are written once and sent as they are. [`Parser`] reads answers of HTTP/1.1 in whatever pieces they come, and keeps of them only what the run needs:
//!
//! ```
//! use brunt_http1::{Parser, ReadStep};
//!
//! let mut parser = Parser::keeping();
//! let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
//! let (taken, step) = parser.receive(answer, false).unwrap();
//! assert!(taken <= answer.len() && !matches!(step, ReadStep::More));
//! ```
//!
//! HTTP/2 and HTTP/3 stand on `brunt-http2-calls`. `scenario/` has the words of scripts (`brunt.http`): cookies, redirects, forms, batches, streams of events.

mod chunked;
mod client;
mod content_coding;
mod cookies;
mod expected;
mod fields;
mod flags;
mod hints;
mod http2;
mod line;
mod negotiated;
pub mod options;
mod request;
mod response;
mod scenario;
mod seen;

use std::sync::{Arc, OnceLock};

use brunt_plan::plan::{Plan, ProtocolOptions};
use brunt_plan::scenario::DeclaredFigure;
use brunt_plan::target::Target;

use self::client::Http1Client;
use self::expected::Expected;
use self::hints::Streaming;
use self::options::{Options, Version};
use self::request::{Flood, Requests};
use brunt_protocol::flags::{Flag, FlagValues, shown_options};
use brunt_protocol::messages::MessageOptions;
use brunt_protocol::scenario::Dialect;
use brunt_protocol::source::RequestSource;
use brunt_protocol::traced::Tracing;
use brunt_protocol::{Client, Narrator, OptionsError, Prepared, Protocol, Scheme, quic_figures, read_options};

pub use self::flags::HTTP;
pub use self::response::{Parser, ReadStep};

/// The highest status (RFC 9110, section 15).
const MOST_STATUS: u16 = 999;

/// HTTP over TCP, TLS and Unix sockets.
pub struct Http1;

impl Protocol for Http1 {
    fn schemes(&self) -> &[Scheme] {
        &[Scheme { name: "http", default_port: 80, tls: false }, Scheme { name: "https", default_port: 443, tls: true }]
    }

    fn name(&self) -> &'static str {
        "HTTP"
    }

    fn flags(&self) -> &[Flag] {
        &flags::FLAGS
    }

    /// HTTP/2 and HTTP/3 do; a version that may turn out to be HTTP/2 may.
    fn multiplexes(&self, given: &FlagValues) -> bool {
        given.text("http").is_some_and(|version| version != "1.1")
    }

    fn options(&self, given: &FlagValues) -> Result<ProtocolOptions, OptionsError> {
        Ok(flags::options(given)?.to_protocol())
    }

    fn shown(&self, options: &serde_json::Value) -> serde_json::Value {
        // Unreadable options are shown by the names of their fields.
        Options::shown(options).unwrap_or_else(|| shown_options(options, self.flags()))
    }

    fn own_figures(&self, options: &ProtocolOptions) -> Vec<DeclaredFigure> {
        let is_over_quic = options.shown()["http"] == "3";
        if is_over_quic { quic_figures() } else { Vec::new() }
    }

    fn prepare(&self, plan: &Plan) -> Result<Arc<dyn Prepared>, OptionsError> {
        let options: Options = read_options(plan, self.name())?;
        if options.http == Version::Three {
            check_quic(plan).map_err(|problem| OptionsError(problem.to_owned()))?;
        } else if plan.transport.tls.early_data {
            return Err(OptionsError("--tls-earlydata is for HTTP/3: give --http 3".to_owned()));
        } else if plan.transport.udp_sockets > 0 {
            return Err(OptionsError("--udp-sockets is for HTTP/3: give --http 3".to_owned()));
        }
        if plan.ok_status.highest() > MOST_STATUS {
            let problem =
                format!("--ok-status: a status of HTTP has three digits, so there is no {}", plan.ok_status.highest());
            return Err(OptionsError(problem));
        }
        let requests = Requests::prepare(&options, plan, |name| plan.environment.value(name))?;
        options.messages.iter().try_for_each(MessageOptions::check)?;
        Ok(Arc::new(PreparedHttp {
            requests: Arc::new(requests),
            redirect: Arc::default(),
            streaming: options.messages.as_ref().map(Streaming::all).unwrap_or_default(),
            expected: options.expect_body.as_deref().map(Expected::new),
            version: options.http,
            is_secure: plan.target.scheme == "https",
        }))
    }

    fn dialect(&self) -> Option<Box<dyn Dialect>> {
        Some(Box::new(scenario::HttpDialect))
    }
}

/// Whether a plan's target can be reached over QUIC.
fn check_quic(plan: &Plan) -> Result<(), &'static str> {
    let transport = &plan.transport;
    if plan.target.scheme != "https" {
        Err("--http 3 needs a target with https://: QUIC carries TLS")
    } else if transport.unix_socket.is_some() {
        Err("--http 3 goes over UDP: leave --unix-socket out")
    } else if transport.proxy.is_some() {
        Err("--http 3 goes over UDP, which no proxy's tunnel carries: leave --proxy out")
    } else {
        Ok(())
    }
}

struct PreparedHttp {
    requests: Arc<Requests>,
    /// The location of the first redirect.
    redirect: Arc<OnceLock<String>>,
    streaming: Streaming,
    /// The expected content of answers.
    expected: Option<Expected>,
    version: Version,
    /// Whether the target's scheme wants TLS.
    is_secure: bool,
}

impl Prepared for PreparedHttp {
    fn client(&self, keep: bool) -> Box<dyn Client> {
        let one = Http1Client::noting(keep, Arc::clone(&self.redirect)).expecting(self.expected.clone());
        self.version.client(one, keep, self.is_secure, self.streaming.clone(), Some(&self.redirect))
    }

    fn user(&self) -> Box<dyn RequestSource> {
        Box::new(Flood::new(Arc::clone(&self.requests)))
    }

    fn targets(&self) -> Vec<Target> {
        self.requests.targets().to_vec()
    }

    fn is_safe(&self) -> bool {
        self.requests.are_safe()
    }

    fn alpn(&self) -> Vec<Vec<u8>> {
        self.version.alpn()
    }

    fn tracing(&self) -> Option<Tracing> {
        self.requests.script_tracing()
    }

    fn redirected_to(&self) -> Option<String> {
        self.redirect.get().cloned()
    }

    fn narrator(&self) -> Option<Box<dyn Narrator>> {
        match self.version {
            Version::One => None,
            Version::Two | Version::Auto => Some(Box::new(http2::Frames::default())),
            Version::Three => Some(Box::new(http2::Records::default())),
        }
    }
}

#[cfg(test)]
mod tests {
    use brunt_plan::plan::{Load, PLAN_VERSION, Plan, Sandbox, StopRule, Transport};
    use brunt_plan::target::Url;

    use super::*;

    /// A plan for `http://127.0.0.1:8080/a?b=c`.
    pub(super) fn plan() -> Plan {
        let second = brunt_record::SECOND_NS;
        Plan {
            version: PLAN_VERSION,
            target: Url::parse("http://127.0.0.1:8080/a?b=c").unwrap().target,
            protocol: Options::default().to_protocol(),
            script: None,
            scenarios: None,
            connections: 1.into(),
            workers: 1,
            load: Load::Closed {},
            stop: StopRule { duration_ns: Some(second), requests: None },
            warmup_ns: 0,
            timeout_ns: second,
            connect_timeout_ns: second,
            drain_ns: second,
            seed: 1,
            reconnect: false,
            pipeline: 1,
            transport: Transport::default(),
            ok_status: brunt_record::outcome::OkStatus::default(),
            own_times: false,
            own: Vec::new(),
            thresholds: Vec::new(),
            guards: Vec::new(),
            guard_action: brunt_plan::threshold::GuardAction::Stop,
            watches: Vec::new(),
            max_error_rate: brunt_plan::plan::MAX_ERROR_RATE,
            max_less_ratio: brunt_plan::plan::MAX_LESS_RATIO,
            origin: brunt_plan::plan::Origin::default(),
            sandbox: Sandbox::default(),
            environment: brunt_plan::environment::Environment::default(),
        }
    }

    #[test]
    fn a_status_that_does_not_exist_is_no_success() {
        for (text, is_right) in [("999", true), ("0-1001", false), ("200,65535", false)] {
            let prepared = Http1.prepare(&Plan { ok_status: text.parse().unwrap(), ..plan() });
            assert_eq!(prepared.is_ok(), is_right, "{text}");
        }
    }

    #[test]
    fn options_that_are_not_https_are_refused() {
        let mut plan = plan();
        let wrong = serde_json::json!({"methd": "GET"});
        plan.protocol = ProtocolOptions::new(wrong.clone(), wrong);
        let error = Http1.prepare(&plan).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.contains("methd"), "{error}");
    }
}
