//! Plain TCP, and the same over TLS and Unix sockets: bytes out, and an answer that ends where it is said to.

mod answer;
mod conversation;
mod escapes;
mod flags;
pub mod options;
mod scenario;

use std::borrow::Cow;
use std::sync::Arc;

use brunt_model::outcome::Failure;
use brunt_model::plan::{Plan, ProtocolOptions};

use self::options::{Framing, Options};
use super::flags::{Flag, Given};
use super::scenario::Dialect;
use super::{
    Answer, Client, Failed, Malformed, OptionsError, Prepared, Progress, Protocol, Scheme, Started, read_options,
};
use crate::user::{Message, Repeated, User};

pub use self::answer::{MOST_ANSWER_BYTES, Reader};

/// There is no status in an answer of which nothing is known.
const NO_STATUS: u16 = 0;

/// Plain TCP, and the same over TLS and Unix sockets.
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

    fn options(&self, given: &Given) -> Result<ProtocolOptions, OptionsError> {
        Ok(flags::options(given)?.to_protocol())
    }

    fn dialect(&self) -> Option<Box<dyn Dialect>> {
        Some(Box::new(scenario::TcpDialect))
    }

    fn prepare(&self, plan: &Plan) -> Result<Arc<dyn Prepared>, OptionsError> {
        let options: Options = read_options(plan, self.name())?;
        match &options.framing {
            Framing::Until(end) if end.0.is_empty() => Err(wrong("the bytes that end an answer are none")),
            Framing::Bytes(0) => Err(wrong("an answer has 0 bytes")),
            Framing::LengthPrefix(prefix) if !matches!(prefix.bytes, 1 | 2 | 4) => {
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
        Box::new(TcpClient { options: Arc::clone(&self.0), reader: Reader::default(), in_flight: 0 })
    }

    fn user(&self) -> Box<dyn User> {
        Box::new(Repeated::new(self.0.send.0.as_slice(), false))
    }
}

/// One connection: answers come in the order of the calls.
struct TcpClient {
    options: Arc<Options>,
    reader: Reader,
    in_flight: u32,
}

impl Client for TcpClient {
    fn start(&mut self, message: &Message<'_>, out: &mut Vec<u8>) -> Started {
        out.extend_from_slice(message.bytes);
        if self.options.framing == Framing::None {
            return Started::Sent(NO_STATUS);
        }
        self.in_flight += 1;
        Started::Awaited
    }

    fn receive(&mut self, bytes: &[u8], _out: &mut Vec<u8>) -> Result<(usize, Progress), Malformed> {
        if self.options.framing == Framing::None {
            return Ok((bytes.len(), Progress::Aside));
        }
        let (taken, answer) = self.reader.receive(bytes, &self.options.framing)?;
        let progress = match answer {
            None if self.in_flight > 0 => Progress::More,
            None => Progress::Aside,
            Some(_) if self.in_flight == 0 => Progress::Unasked,
            Some(answer) => {
                self.in_flight -= 1;
                match &self.options.expect {
                    Some(expected) if expected.0 != answer => Progress::Failed(Failed {
                        position: 0,
                        failure: Failure::Mismatch,
                        reason: Cow::Borrowed("another answer came than --expect says"),
                        reusable: true,
                    }),
                    _ => Progress::Answered(Answer { position: 0, status: NO_STATUS, reusable: true }),
                }
            }
        };
        Ok((taken, progress))
    }

    fn closed(&mut self) -> Option<Answer> {
        None
    }
}
