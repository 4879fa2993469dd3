//! Traces: everything that one user, or one call of a flood, does, as `--once` shows it.

mod flood;

use brunt_protocol::{Direction, Narration};
use brunt_record::outcome::Failure;

pub(crate) use self::flood::FloodTrace;

/// The part of an exchange that bytes of a connection belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExchangePart {
    /// The opening exchange of the protocol.
    Handshake,
    /// The call.
    Call,
    /// No call: a ping and its answer, or bytes that no call asked for.
    Aside,
    /// The end of the connection.
    Goodbye,
}

/// An event of a user or a flood.
#[derive(Debug, Clone, Copy)]
pub enum Traced<'a> {
    /// A user begins an iteration.
    Begun {
        /// Its scenario.
        scenario: &'a str,
    },
    /// A call was answered.
    Answered {
        /// The name of the call.
        name: &'a str,
        /// The call, as its protocol encoded it.
        request: &'a [u8],
        /// The protocol's own status.
        status: u16,
        /// The part of the answer before the body.
        head: &'a [u8],
        /// The body.
        body: &'a [u8],
        /// The time from sending to the end, in nanoseconds.
        service_ns: u64,
    },
    /// A call has failed.
    Failed {
        /// The name of the call.
        name: &'a str,
        /// The call, as its protocol encoded it.
        request: &'a [u8],
        /// The kind of failure.
        failure: Failure,
        /// The reason.
        reason: &'a str,
    },
    /// A connection of a flood sent or received bytes, before encryption.
    Moved {
        /// The direction in which the bytes went.
        direction: Direction,
        /// The part that they belong to.
        part: ExchangePart,
        /// The bytes, or the first of them.
        bytes: &'a [u8],
        /// The number of bytes.
        count: u64,
        /// Their meaning in words, where the bytes are not readable text.
        meaning: Option<&'a str>,
        /// The meaning part by part; shown in place of the bytes.
        told: Option<&'a [Narration]>,
        /// The time since the last bytes were sent, in nanoseconds; `None` for sent bytes.
        after_ns: Option<u64>,
    },
    /// A call of a flood was answered.
    CallAnswered {
        /// The protocol's own status.
        status: u16,
        /// The protocol's name for the status, if it has one.
        status_name: Option<&'a str>,
        /// The time from sending to the end, in nanoseconds.
        service_ns: u64,
    },
    /// The failure of a call of a flood.
    CallFailed {
        /// The kind of failure.
        failure: Failure,
        /// The reason.
        reason: &'a str,
        /// The time from sending to the end, in nanoseconds; `None` if it was not sent.
        service_ns: Option<u64>,
    },
    /// The result of a check.
    Checked {
        /// The name of the check, after the name of its call.
        name: &'a str,
        /// Whether it held.
        held: bool,
    },
    /// An error ended the iteration.
    Error {
        /// The message and the place of the error.
        traceback: &'a str,
    },
    /// A line that the script logged.
    Logged {
        /// The level of the line.
        level: Level,
        /// The number of the user.
        user: u64,
        /// The user's scenario.
        scenario: &'a str,
        /// The text of the line.
        text: &'a str,
    },
}

/// The level of a script's log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Details for finding a mistake.
    Debug,
    /// Normal events.
    Info,
    /// Something unexpected.
    Warn,
    /// A failure.
    Error,
}

impl Level {
    /// All levels by their names in scripts, the least severe first.
    pub const NAMED: [(&'static str, Self); 4] =
        [("debug", Self::Debug), ("info", Self::Info), ("warn", Self::Warn), ("error", Self::Error)];

    /// The name in scripts.
    pub fn name(self) -> &'static str {
        Self::NAMED.iter().find(|(_, level)| *level == self).map_or("", |(name, _)| name)
    }

    /// The level with this name in scripts.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(known, _)| *known == name).map(|(_, level)| *level)
    }
}

/// The part of a run that a trace sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// Everything, of one user or one call.
    Everything,
    /// Of any load: what scripts log, and calls of users that failed, were answered without success, or failed a check.
    Failures,
    /// Of any load: what scripts log alone.
    Said,
}

/// An observer of users and floods, called on the worker's thread.
pub trait Trace: Send + Sync {
    /// Called right after the event has happened.
    fn see(&self, traced: &Traced<'_>);

    /// The part of the run that it is shown.
    fn sight(&self) -> Sight {
        Sight::Everything
    }
}
