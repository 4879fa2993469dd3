//! Everything that one user does, or one call of a flood, as `--once` shows it.

mod flood;

use brunt_protocol::{Direction, Narration};
use brunt_record::outcome::Failure;

pub(crate) use self::flood::FloodTrace;

/// What bytes of a connection belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// What the protocol opens its connection with.
    Handshake,
    /// The call.
    Call,
    /// No call: a ping and its answer, or what nobody asked for.
    Aside,
    /// The end of the connection.
    Goodbye,
}

/// Something that a user or a flood did, or that came of it.
#[derive(Debug, Clone, Copy)]
pub enum Traced<'a> {
    /// A user begins an iteration.
    Begun {
        /// Its scenario.
        scenario: &'a str,
    },
    /// A call was answered.
    Answered {
        /// What it is called by.
        name: &'a str,
        /// The call, as its protocol encoded it.
        request: &'a [u8],
        /// The protocol's own status.
        status: u16,
        /// What came before the body.
        head: &'a [u8],
        /// The body.
        body: &'a [u8],
        /// From when it was sent to its end, in nanoseconds.
        service_ns: u64,
    },
    /// A call has failed.
    Failed {
        /// What it is called by.
        name: &'a str,
        /// The call, as its protocol encoded it.
        request: &'a [u8],
        /// How.
        failure: Failure,
        /// Why.
        reason: &'a str,
    },
    /// A connection of a flood sent or received bytes, before encryption.
    Moved {
        /// Which way they went.
        direction: Direction,
        /// What they belong to.
        part: Part,
        /// The bytes, or the first of them.
        bytes: &'a [u8],
        /// How many there were.
        count: u64,
        /// What they say, where they are not what people read.
        meaning: Option<&'a str>,
        /// The same part by part; shown in place of the bytes.
        told: Option<&'a [Narration]>,
        /// Since what was sent last, in nanoseconds; none for what was sent.
        after_ns: Option<u64>,
    },
    /// A call of a flood was answered.
    CallAnswered {
        /// The protocol's own status.
        status: u16,
        /// What the protocol calls that, if it has a name for it.
        status_name: Option<&'a str>,
        /// From when it was sent to its end, in nanoseconds.
        service_ns: u64,
    },
    /// A call of a flood has failed.
    CallFailed {
        /// How.
        failure: Failure,
        /// Why.
        reason: &'a str,
        /// From when it was sent to its end, in nanoseconds; none if it was not sent.
        service_ns: Option<u64>,
    },
    /// A check held or did not.
    Checked {
        /// Its name, after that of the call that it is about.
        name: &'a str,
        /// Whether it held.
        held: bool,
    },
    /// An error ended the iteration.
    Error {
        /// Its message and where it came from.
        traceback: &'a str,
    },
    /// The script has written something down.
    Logged {
        /// How much it matters.
        level: Level,
        /// The user's number and its scenario.
        user: u64,
        /// Its scenario.
        scenario: &'a str,
        /// What it says.
        text: &'a str,
    },
}

/// How much it matters what a script writes down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For whoever looks for a mistake.
    Debug,
    /// What is usual.
    Info,
    /// What is not as it should be.
    Warn,
    /// What has failed.
    Error,
}

impl Level {
    /// All there are, by their names in scripts, from what matters least.
    pub const NAMED: [(&'static str, Self); 4] =
        [("debug", Self::Debug), ("info", Self::Info), ("warn", Self::Warn), ("error", Self::Error)];

    /// Its name in scripts.
    pub fn name(self) -> &'static str {
        Self::NAMED.iter().find(|(_, level)| *level == self).map_or("", |(name, _)| name)
    }

    /// By its name in scripts.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(known, _)| *known == name).map(|(_, level)| *level)
    }
}

/// What of a run is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// Everything, of one user or one call.
    Everything,
    /// Of any load: what scripts write down, and calls of users that failed, were answered with no success, or failed a check.
    Failures,
    /// Of any load: what scripts write down alone.
    Said,
}

/// Sees what is done, on the worker's thread.
pub trait Trace: Send + Sync {
    /// It has just happened.
    fn see(&self, traced: &Traced<'_>);

    /// What it is shown.
    fn sight(&self) -> Sight {
        Sight::Everything
    }
}
