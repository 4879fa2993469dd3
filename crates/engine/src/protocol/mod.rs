//! Protocols: what turns calls into bytes and bytes into answers.
//!
//! A protocol does no I/O. It is given the bytes that arrived and says what they meant; it is given a call and says
//! which bytes to send. Connecting, TLS, timeouts, pacing and measuring are the worker's, and the same for all.
//!
//! To add one: a folder beside [`http1`] that implements [`Protocol`], [`Prepared`], [`Client`] and [`User`], and a line in
//! [`Registry::built_in`].

mod by_flags;
pub mod flags;
pub mod http1;
pub mod scenario;
pub mod tcp;
pub mod thrift;
pub mod websocket;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use brunt_model::outcome::{Failure, OkStatus};
use brunt_model::plan::{Plan, ProtocolOptions};

use serde::Serialize;
use serde::de::DeserializeOwned;

use self::flags::{Flag, Given};
use self::scenario::Dialect;
use crate::EngineError;
use crate::script::Start;
use crate::trace::Way;
use crate::user::{Message, User};

/// What a scheme means to the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheme {
    /// In lower case, as in `http://`.
    pub name: &'static str,
    /// The port where the URL names none; 0 if it must name one.
    pub default_port: u16,
    /// Whether TLS lies under the protocol.
    pub tls: bool,
}

/// A protocol that a plan's scheme may name.
pub trait Protocol: Send + Sync {
    /// What it is called in the help, such as `HTTP`.
    fn name(&self) -> &'static str;

    /// The schemes it answers to.
    fn schemes(&self) -> &[Scheme];

    /// Which statuses are a success where nothing else is asked for.
    fn ok_status(&self) -> OkStatus {
        OkStatus::default()
    }

    /// The flags by which its options are given.
    fn flags(&self) -> &[Flag] {
        &[]
    }

    /// The plan's `protocol` part, as these flags ask for it. Files are in it by content.
    ///
    /// # Errors
    /// Says which flag is wrong and what was expected.
    fn options(&self, given: &Given) -> Result<ProtocolOptions, OptionsError>;

    /// Reads and validates the plan's `protocol` part, and prepares what can be prepared before the load begins.
    ///
    /// # Errors
    /// Says what in the plan is wrong (file, line, option) and what to do.
    fn prepare(&self, plan: &Plan) -> Result<Arc<dyn Prepared>, OptionsError>;

    /// What it is in scenarios, if it has words of its own there. Otherwise it is `brunt.SCHEME`, by its first scheme, whose
    /// options and calls are given by the names of its flags: `brunt.memcached{ address = … }:call{ item = "a" }`.
    fn dialect(&self) -> Option<Box<dyn Dialect>> {
        None
    }
}

/// A protocol made ready for one plan, shared by the workers.
pub trait Prepared: Send + Sync {
    /// The state for one connection. It lives from the connection's beginning to its end. With `keep`, it keeps each
    /// answer for [`Client::parts`].
    fn client(&self, keep: bool) -> Box<dyn Client>;

    /// What asks for calls on one worker, unless a script does.
    fn user(&self) -> Box<dyn User>;

    /// What a script's requests are made from where it does not say otherwise; none if this protocol's calls are not
    /// such as scripts make (HTTP/1.1 requests).
    fn script_start(&self) -> Option<&Start> {
        None
    }

    /// The names to offer in the TLS handshake (ALPN, RFC 7301), by preference.
    fn alpn(&self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// What its statuses are called, where that says more than their numbers.
    fn status_names(&self) -> BTreeMap<u16, String> {
        BTreeMap::new()
    }

    /// What bytes of a call or of its answer say, for `--once`, where they are not what people read: frames, arguments by
    /// their names. They may be cut short.
    fn meaning(&self, _way: Way, _bytes: &[u8]) -> Option<String> {
        None
    }
}

/// Something in a plan's `protocol` part is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OptionsError(pub String);

/// What a fresh connection needs before calls can be sent on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// Nothing.
    Ready,
    /// An exchange of the protocol's own, a handshake or a login. It has the connect timeout, begun with the connection,
    /// and ends with [`Progress::Opened`]; how long it took is a figure of its own.
    Exchange,
}

/// What a call waits for once it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Started {
    /// Its answer.
    Awaited,
    /// Nothing: it ends, with this status, when the operating system has taken its bytes. Where it appended none, because
    /// what it asks for had come before, it ends at once.
    Sent(u16),
}

/// Reads the plan's `protocol` part, which is one of the protocol that is called `name`.
///
/// # Errors
/// When it is not.
pub fn read_options<T: DeserializeOwned>(plan: &Plan, name: &str) -> Result<T, OptionsError> {
    serde_json::from_value(plan.protocol.reveal().clone())
        .map_err(|e| OptionsError(format!("the plan's protocol part is not one of {name}: {e}")))
}

/// A plan's `protocol` part of options in which nothing is secret.
///
/// # Errors
/// When they cannot be written as JSON.
pub fn write_options(options: &impl Serialize) -> Result<ProtocolOptions, OptionsError> {
    let value = serde_json::to_value(options).map_err(|e| OptionsError(e.to_string()))?;
    Ok(ProtocolOptions::new(value.clone(), value))
}

/// What bytes from a connection meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// The bytes belong to what the oldest call in flight waits for, or to the opening exchange, and do not complete it.
    More,
    /// The bytes were taken, and belong to no call: a ping, or a part of what nobody asked for.
    Aside,
    /// The opening exchange is over, and calls can be sent.
    Opened,
    /// A call's answer is complete.
    Answered(Answer),
    /// A call has come to an end that is none of its answers.
    Failed(Failed),
    /// A message is complete that no call asked for.
    Unasked,
    /// The peer says, in the protocol's own way and for this reason, that it ends the connection: calls in flight fail
    /// as [`Failure::Closed`], an opening exchange as [`Failure::Handshake`].
    Closing(Cow<'static, str>),
}

/// A complete answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Which of the calls in flight on the connection it belongs to, counted from the oldest, which is 0.
    pub position: usize,
    /// The protocol's own status.
    pub status: u16,
    /// Whether the connection can carry another call.
    pub reusable: bool,
}

/// The end of a call that got no answer, or the wrong one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// Which of the calls in flight on the connection it was, counted from the oldest, which is 0.
    pub position: usize,
    /// What it counts as.
    pub failure: Failure,
    /// Why, the same for the same cause whatever came, so that reasons can be counted.
    pub reason: Cow<'static, str>,
    /// Whether the connection can carry another call.
    pub reusable: bool,
}

/// An answer that was kept, in the protocol's own form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parts<'a> {
    /// What came before the body, as it came.
    pub head: &'a [u8],
    /// The body, decoded as far as the protocol itself goes.
    pub body: &'a [u8],
}

/// An answer that was taken out of its connection's client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// What came before the body, as it came.
    pub head: Vec<u8>,
    /// The body, decoded as far as the protocol itself goes.
    pub body: Vec<u8>,
}

impl Kept {
    /// The same to be looked at.
    pub fn parts(&self) -> Parts<'_> {
        Parts { head: &self.head, body: &self.body }
    }
}

/// Bytes that break the protocol's grammar or its limits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub Cow<'static, str>);

impl Malformed {
    /// With a reason that is the same whatever came, so that reasons can be counted.
    pub const fn because(reason: &'static str) -> Self {
        Self(Cow::Borrowed(reason))
    }
}

/// One connection's state of a protocol. Pure: it only sees bytes.
///
/// **Order.** [`open`](Self::open) once, first; then [`start`](Self::start) and [`receive`](Self::receive) in any order, the
/// former only once the connection is open; [`closed`](Self::closed) or [`close`](Self::close) at most once, last. Bytes
/// appended to `out` are sent in that order.
///
/// **Errors.** Any error ends the connection: the oldest call in flight gets it as its outcome, and the others fail as
/// [`Failure::Closed`]. Before the connection is open, those that wait for it fail with it.
///
/// **Timeouts and cancellation.** A call that takes longer than the plan's timeout ends as [`Failure::Timeout`], and the
/// connection with it, since an answer that comes later could not be told from another's, unless the client says by
/// [`give_up`](Self::give_up) that it can. Otherwise it is dropped without a word, as it is whenever a socket fails. When
/// the run ends, [`close`](Self::close) is asked for a last one.
///
/// **Byte counts** are the worker's: what `out` gets is counted as sent, what `receive` is given as received.
///
/// **Memory.** A client holds what it needs to go on, within limits of its own, and nothing for its history; there may be
/// tens of thousands of them.
pub trait Client: Send {
    /// A fresh connection is there, with TLS where the scheme wants it. Appends to `out` what opens it.
    fn open(&mut self, _out: &mut Vec<u8>) -> Opening {
        Opening::Ready
    }

    /// Appends to `out` what must be sent for `message`. Calls may be started while others are in flight, up to the
    /// plan's `pipeline`.
    fn start(&mut self, message: &Message<'_>, out: &mut Vec<u8>) -> Started;

    /// Takes bytes that arrived, in whatever pieces, and says how many it took (at least one) and what they meant. It is
    /// called again with the rest until everything is taken. What it appends to `out` is sent at once: the answer to
    /// a ping, the next step of the opening exchange.
    ///
    /// # Errors
    /// When the bytes break the grammar or a limit, or when there is no call that they could answer.
    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(usize, Progress), Malformed>;

    /// The peer closed its side. Some answers are complete only by that.
    fn closed(&mut self) -> Option<Answer> {
        None
    }

    /// The only call in flight has taken too long. True if it is forgotten and the connection goes on without it; false
    /// ends the connection.
    fn give_up(&mut self) -> bool {
        false
    }

    /// The run ends, and the connection with it. Appends to `out` what takes leave; nobody waits for what comes back.
    fn close(&mut self, _out: &mut Vec<u8>) {}

    /// The answer that was completed last, if answers are kept. Holds until the next bytes come or the next call starts.
    fn parts(&self) -> Parts<'_> {
        Parts::default()
    }

    /// Moves what [`Self::parts`] has into `kept`, whose memory may be used in exchange.
    fn hand_over(&mut self, kept: &mut Kept) {
        let parts = self.parts();
        kept.head.clear();
        kept.head.extend_from_slice(parts.head);
        kept.body.clear();
        kept.body.extend_from_slice(parts.body);
    }
}

/// The protocols that a plan's scheme may name.
pub struct Registry {
    protocols: Vec<Arc<dyn Protocol>>,
}

impl Registry {
    /// The protocols that come with brunt.
    pub fn built_in() -> Self {
        Self {
            protocols: vec![
                Arc::new(http1::Http1),
                Arc::new(websocket::WebSocket),
                Arc::new(thrift::Thrift),
                Arc::new(tcp::Tcp),
            ],
        }
    }

    /// Adds a protocol; where it names a scheme that is there already, it takes its place.
    pub fn register(&mut self, protocol: impl Protocol + 'static) {
        self.protocols.insert(0, Arc::new(protocol));
    }

    /// The protocol for a scheme, and what that scheme means.
    ///
    /// # Errors
    /// When there is none; the error names those that there are.
    pub fn named(&self, scheme: &str) -> Result<(&dyn Protocol, Scheme), EngineError> {
        self.find(scheme)
            .ok_or_else(|| EngineError::Scheme { scheme: scheme.to_owned(), known: self.schemes().join(", ") })
    }

    /// Every protocol, in the order in which they are asked.
    pub fn protocols(&self) -> impl Iterator<Item = &dyn Protocol> {
        self.protocols.iter().map(AsRef::as_ref)
    }

    /// The protocol for a scheme, and what that scheme means.
    pub fn find(&self, scheme: &str) -> Option<(&dyn Protocol, Scheme)> {
        self.protocols.iter().find_map(|protocol| {
            let scheme = *protocol.schemes().iter().find(|known| known.name == scheme)?;
            Some((protocol.as_ref(), scheme))
        })
    }

    /// What the protocols are in scenarios, each with its schemes; of those with the same name, the one added last.
    pub(crate) fn dialects(&self) -> Vec<(Box<dyn Dialect>, Vec<Scheme>)> {
        let mut dialects: Vec<(Box<dyn Dialect>, Vec<Scheme>)> = Vec::new();
        for protocol in &self.protocols {
            let by_flags = || by_flags::ByFlags::of(protocol).map(|dialect| Box::new(dialect) as Box<dyn Dialect>);
            if let Some(dialect) = protocol.dialect().or_else(by_flags)
                && dialects.iter().all(|(known, _)| known.name() != dialect.name())
            {
                dialects.push((dialect, protocol.schemes().to_vec()));
            }
        }
        dialects
    }

    /// Every scheme that can be named, sorted.
    pub fn schemes(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.protocols.iter().flat_map(|p| p.schemes()).map(|scheme| scheme.name).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}
