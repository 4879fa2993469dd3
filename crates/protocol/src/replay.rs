//! Logs that are replayed: calls at times of their own, in sessions.

use brunt_plan::plan::Plan;
use brunt_plan::share::Portion;
use brunt_record::replayed::LogRead;
use brunt_record::snapshot::Phase;

use crate::AnswerParts;
use crate::source::{Message, SourceEnd};
use crate::traced::TraceIds;

/// A call of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedCall {
    /// Its number, by which the log is asked about the call until it has ended.
    pub number: u64,
    /// When it is due, in nanoseconds after its part of the run began: the measured part, or the warm-up.
    pub due_ns: u64,
    /// Its session. Calls of a session are made one after the other on a connection of its own; calls without one share
    /// connections.
    pub session: Option<u64>,
    /// How long it took when it was logged, in nanoseconds of the replay.
    pub logged_ns: u64,
}

/// A call that follows from the end of another, on the same connection: the next turn of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Following {
    /// Its number.
    pub number: u64,
    /// How long after that end it is due, in nanoseconds.
    pub after_ns: u64,
}

/// The next entry of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Upcoming {
    /// This call. No later one is due before it.
    Call(LoggedCall),
    /// Nothing yet: the log is still being read.
    NotYet,
    /// The log is over.
    Over,
    /// The log cannot be read on, for this reason; the run ends.
    Failed(String),
}

/// How a call has ended, for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayedEnd<'a> {
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
    /// The run ended before the call did.
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
/// use brunt_protocol::replay::{ReplayedEnd, LoggedCall, WorkerReplay, Upcoming};
/// use brunt_protocol::source::{Message, SourceEnd};
///
/// #[derive(Default)]
/// struct Three(u64);
///
/// impl WorkerReplay for Three {
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
///     fn call(&mut self, _number: u64) -> Result<Message<'_>, SourceEnd> {
///         Ok(Message { bytes: b"PING\n", ..Message::default() })
///     }
///
///     fn name(&self, _number: u64) -> (u32, &str) {
///         (0, "ping")
///     }
///
///     fn ended(&mut self, _number: u64, _ended: ReplayedEnd<'_>) {}
/// }
///
/// let mut log = Three::default();
/// assert!(matches!(log.next(), Upcoming::Call(LoggedCall { number: 0, due_ns: 0, .. })));
/// ```
pub trait WorkerReplay: Send {
    /// A part of the run begins, from whose beginning due times count. After a warm-up, a call of [`next`](Self::next) that was not
    /// due in it is left out, and the log is asked anew.
    fn begin(&mut self, _phase: Phase) {}

    /// The next call, in the order of their due times.
    fn next(&mut self) -> Upcoming;

    /// Claims a call that has come due. `false` if it is not made after all: calls are planned ahead, and meanwhile the number to make may
    /// have been reached. Asked once, before [`call`](Self::call).
    fn claim(&mut self, _number: u64) -> bool {
        true
    }

    /// The bytes of a call. Asked when it is sent, and again if it is sent again.
    ///
    /// # Errors
    /// When there is no such call, or it has ended.
    fn call(&mut self, number: u64) -> Result<Message<'_>, SourceEnd>;

    /// The name by which a call is counted, with a small number that stands for it.
    fn name(&self, number: u64) -> (u32, &str);

    /// The ids by which a call is traced, if it is.
    fn trace(&self, _number: u64) -> Option<TraceIds> {
        None
    }

    /// Whether this status, otherwise no success, is one for a call: the log has it, too.
    fn excuses(&self, _number: u64, _status: u16) -> bool {
        false
    }

    /// Whether any call is traced.
    fn traces(&self) -> bool {
        false
    }

    /// A call has ended and may be forgotten.
    fn ended(&mut self, number: u64, ended: ReplayedEnd<'_>);

    /// The call that follows from the end of this one, asked once after [`ended`](Self::ended) while the load is on.
    fn follows(&mut self, _number: u64) -> Option<Following> {
        None
    }
}

/// All calls of a log in the order of their due times, for accounts of calls that are made elsewhere.
///
/// It never blocks. Its caller polls it as it polls a [`WorkerReplay`]: for the next entry, until [`Upcoming::Over`].
pub trait LogTimetable: Send {
    /// The next call. Its number is the one by which calls are dealt out: worker `i` of `n` has those with a number that leaves `i` when it is
    /// divided by `n`.
    fn next(&mut self) -> Upcoming;
}

/// The log that a plan names, as this machine has it.
pub trait Logs: Send + Sync {
    /// Opens the log for the workers of a portion.
    ///
    /// # Errors
    /// When it cannot be read here, is another one than the plan's, or may not be read.
    fn open(&self, plan: &Plan, portion: Portion) -> Result<OpenLog, String>;
}

/// A log that is being read.
pub struct OpenLog {
    /// The calls of each worker of the portion.
    pub of_workers: Vec<Box<dyn WorkerReplay>>,
    /// The account of what was read, and of what became of the calls. Called once the workers are done.
    pub read: Box<dyn FnOnce() -> LogRead + Send>,
}

/// A machine that has no logs.
pub struct NoLogs;

impl Logs for NoLogs {
    fn open(&self, _plan: &Plan, _portion: Portion) -> Result<OpenLog, String> {
        Err("it reads no logs".to_owned())
    }
}
