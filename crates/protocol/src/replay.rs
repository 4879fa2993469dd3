//! Logs that are replayed: calls at times of their own, in sessions.

use crate::AnswerParts;
use crate::user::{Message, Refusal};

/// A call of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedCall {
    /// Its number, by which the log is asked about it until it has ended.
    pub number: u64,
    /// When it is due, in nanoseconds after the measured part began.
    pub due_ns: u64,
    /// Whose it is. Calls of a session are made one after the other on a connection of its own; those without share connections.
    pub session: Option<u64>,
    /// How long it took when it was logged, in nanoseconds of the replay.
    pub logged_ns: u64,
}

/// What a log has next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Upcoming {
    /// This call. None that follows is due before it.
    Call(LoggedCall),
    /// Nothing yet: the log is being read.
    NotYet,
    /// Nothing more.
    Over,
    /// It cannot be read on, for this reason, and the run ends.
    Failed(String),
}

/// How a call has ended, for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended<'a> {
    /// With this status, so long after it was sent, in nanoseconds; and the answer.
    Answered {
        /// The status.
        status: u16,
        /// Nanoseconds from sent to answered.
        took_ns: u64,
        /// The answer.
        parts: AnswerParts<'a>,
    },
    /// Without an answer.
    Failed,
    /// The run ended before it did.
    Cut,
}

/// The calls of a log that fall to one worker.
///
/// It never blocks: another thread reads ahead. It is asked for a call once the one before is due, so that a log of any length takes
/// bounded memory.
///
/// # Example
///
/// A log of three calls, one each second, all of one session:
///
/// ```
/// use brunt_protocol::replay::{Ended, LoggedCall, Replay, Upcoming};
/// use brunt_protocol::user::{Message, Refusal};
///
/// #[derive(Default)]
/// struct Three(u64);
///
/// impl Replay for Three {
///     fn next(&mut self) -> Upcoming {
///         let number = self.0;
///         self.0 += 1;
///         if number == 3 {
///             return Upcoming::Over;
///         }
///         let due_ns = number * 1_000_000_000;
///         Upcoming::Call(LoggedCall { number, due_ns, session: Some(7), logged_ns: 0 })
///     }
///
///     fn call(&mut self, _number: u64) -> Result<Message<'_>, Refusal> {
///         Ok(Message { bytes: b"PING\n", ..Message::default() })
///     }
///
///     fn name(&self, _number: u64) -> (u32, &str) {
///         (0, "ping")
///     }
///
///     fn ended(&mut self, _number: u64, _ended: Ended<'_>) {}
/// }
///
/// let mut log = Three::default();
/// assert!(matches!(log.next(), Upcoming::Call(LoggedCall { number: 0, due_ns: 0, .. })));
/// ```
pub trait Replay: Send {
    /// The next call, in the order of their due times.
    fn next(&mut self) -> Upcoming;

    /// What a call sends. Asked when it is sent, and again if it is sent again.
    ///
    /// # Errors
    /// When there is no such call, or it has ended.
    fn call(&mut self, number: u64) -> Result<Message<'_>, Refusal>;

    /// What a call is counted by: a small number, and the name that it stands for.
    fn name(&self, number: u64) -> (u32, &str);

    /// A call has ended: it may be forgotten.
    fn ended(&mut self, number: u64, ended: Ended<'_>);
}
