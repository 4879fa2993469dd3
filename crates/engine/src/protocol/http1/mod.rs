//! HTTP/1.1 (RFC 9110, RFC 9112): requests prepared beforehand, answers read as they come.

mod chunked;
mod client;
pub(crate) mod flags;
pub mod options;
pub(crate) mod ready_made;
pub(crate) mod request;
mod response;
pub(super) mod scenario;

use std::sync::Arc;

use brunt_model::plan::{Plan, ProtocolOptions};

use self::client::Http1Client;
use self::options::Options;
use self::request::{Flood, Requests};
use super::flags::{Flag, Given};
use super::scenario::Dialect;
use super::{Client, OptionsError, Prepared, Protocol, Scheme, read_options};
use crate::script::Start;
use crate::user::User;

pub use self::response::{Parser, Step};

/// HTTP/1.1 over TCP, TLS and Unix sockets.
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

    fn options(&self, given: &Given) -> Result<ProtocolOptions, OptionsError> {
        Ok(flags::options(given)?.to_protocol())
    }

    fn prepare(&self, plan: &Plan) -> Result<Arc<dyn Prepared>, OptionsError> {
        let options: Options = read_options(plan, self.name())?;
        let requests = Requests::prepare(&options, plan, |name| std::env::var(name).ok())?;
        let start = plan.script.is_some().then(|| request::start(&options, plan, |name| std::env::var(name).ok()));
        Ok(Arc::new(PreparedHttp1 { requests: Arc::new(requests), start: start.transpose()? }))
    }

    fn dialect(&self) -> Option<Box<dyn Dialect>> {
        Some(Box::new(scenario::HttpDialect))
    }
}

struct PreparedHttp1 {
    requests: Arc<Requests>,
    start: Option<Start>,
}

impl Prepared for PreparedHttp1 {
    fn client(&self, keep: bool) -> Box<dyn Client> {
        Box::new(Http1Client::new(keep))
    }

    fn user(&self) -> Box<dyn User> {
        Box::new(Flood::new(Arc::clone(&self.requests)))
    }

    fn script_start(&self) -> Option<&Start> {
        self.start.as_ref()
    }

    fn alpn(&self) -> Vec<Vec<u8>> {
        vec![b"http/1.1".to_vec()]
    }
}

#[cfg(test)]
mod tests {
    use brunt_model::plan::{Load, PLAN_VERSION, Plan, Stop, Transport};
    use brunt_model::target::Url;

    use super::*;

    /// A plan for `http://127.0.0.1:8080/a?b=c`.
    pub(super) fn plan() -> Plan {
        let second = brunt_model::SECOND_NS;
        Plan {
            version: PLAN_VERSION,
            target: Url::parse("http://127.0.0.1:8080/a?b=c").unwrap().target,
            protocol: Options::default().to_protocol(),
            script: None,
            scenarios: None,
            connections: 1,
            workers: 1,
            load: Load::Closed {},
            stop: Stop { duration_ns: Some(second), requests: None },
            warmup_ns: 0,
            timeout_ns: second,
            connect_timeout_ns: second,
            drain_ns: second,
            seed: 1,
            reconnect: false,
            pipeline: 1,
            transport: Transport::default(),
            ok_status: brunt_model::outcome::OkStatus::default(),
            thresholds: Vec::new(),
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
