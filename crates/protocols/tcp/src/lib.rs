//! Plain TCP, also over TLS and Unix sockets: bytes out, and an answer whose end the options define.
//!
//! The requests of a flood are given as text, hex or files ([`options`]); an answer ends after so many bytes, at a delimiter, as its length prefix says, or with the
//! connection. [`AnswerReader`] finds that end in whatever pieces the bytes come:
//!
//! ```
//! use brunt_plan::content::Content;
//! use brunt_tcp::AnswerReader;
//! use brunt_tcp::options::AnswerFraming;
//!
//! let framing = AnswerFraming::Until(Content(b"\n".to_vec()));
//! let mut reader = AnswerReader::default();
//! assert_eq!(reader.receive(b"+PO", &framing).unwrap(), (3, None));
//! assert_eq!(reader.receive(b"NG\n+", &framing).unwrap(), (3, Some(&b"+PONG"[..])));
//! ```
//!
//! In scenarios `brunt.tcp` sends and receives by hand (`scenario.rs`); `flood.rs` makes the calls of a flood.

mod answer;
mod client;
mod escapes;
mod flags;
pub mod options;
mod piece;
mod scenario;

use std::sync::Arc;

use brunt_plan::plan::{Plan, ProtocolOptions};

use self::client::TcpClient;
use self::options::{AnswerFraming, Options};
use brunt_protocol::flags::{Flag, FlagValues};
use brunt_protocol::scenario::Dialect;
use brunt_protocol::source::{RepeatingSource, RequestSource};
use brunt_protocol::{Client, OptionsError, Prepared, Protocol, Scheme, read_options};

pub use self::answer::{AnswerReader, MOST_ANSWER_BYTES};

/// Plain TCP, also over TLS and Unix sockets.
pub struct Tcp;

impl Protocol for Tcp {
    fn name(&self) -> &'static str {
        "TCP"
    }

    fn schemes(&self) -> &[Scheme] {
        &[Scheme { name: "tcp", default_port: 0, tls: false }, Scheme { name: "tls", default_port: 0, tls: true }]
    }

    fn flags(&self) -> &[Flag] {
        &flags::FLAGS
    }

    fn options(&self, given: &FlagValues) -> Result<ProtocolOptions, OptionsError> {
        Ok(flags::options(given)?.to_protocol())
    }

    fn dialect(&self) -> Option<Box<dyn Dialect>> {
        Some(Box::new(scenario::TcpDialect))
    }

    fn prepare(&self, plan: &Plan) -> Result<Arc<dyn Prepared>, OptionsError> {
        let options: Options = read_options(plan, self.name())?;
        if options.greeting.as_ref().is_some_and(|end| end.0.is_empty()) {
            return Err(wrong("the terminator of a greeting must not be empty"));
        }
        match &options.framing {
            AnswerFraming::Until(end) if end.0.is_empty() => {
                Err(wrong("the terminator of an answer must not be empty"))
            }
            AnswerFraming::Bytes(0) => Err(wrong("an answer has 0 bytes")),
            AnswerFraming::LengthPrefix(prefix) if !matches!(prefix.bytes, 1 | 2 | 4) => {
                Err(wrong("a length has 1, 2 or 4 bytes"))
            }
            _ => Ok(Arc::new(PreparedTcp(Arc::new(options)))),
        }
    }
}

fn wrong(problem: &str) -> OptionsError {
    OptionsError(format!("the plan's protocol part: {problem}"))
}

struct PreparedTcp(Arc<Options>);

impl Prepared for PreparedTcp {
    fn client(&self, _keep: bool) -> Box<dyn Client> {
        Box::new(TcpClient::flood(Arc::clone(&self.0)))
    }

    fn user(&self) -> Box<dyn RequestSource> {
        Box::new(RepeatingSource::new(self.0.send.0.as_slice(), false))
    }
}
