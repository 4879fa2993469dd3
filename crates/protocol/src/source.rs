//! Users: sources of calls on one worker, such as a fixed request, the lines of a file, or a script.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::client::AnswerParts;
pub use crate::message::{Message, Tail};
use crate::traced::TraceIds;

/// Why a user asks for no more calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceEnd {
    /// It has no more calls: this worker's share of the run ends, as if its time was up.
    Done,
    /// It failed, for this reason; the whole run ends.
    Failed(String),
}

/// Optional hooks that a user wants, known before the load begins so that absent ones cost nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hooks {
    /// [`RequestSource::pause`] is asked before each call of the closed model.
    pub pauses: bool,
    /// [`RequestSource::answered`] sees each answer.
    pub answers: bool,
}

/// The source of calls of one worker, and of that worker alone.
///
/// A user is asked for a call where the worker has room for one, and says when there are no more. It never blocks: what it is asked
/// holds up every connection of its worker.
///
/// # Example
///
/// A user whose calls are numbered, and end after three:
///
/// ```
/// use brunt_protocol::source::{Message, RequestSource, SourceEnd};
///
/// #[derive(Default)]
/// struct Counting {
///     line: Vec<u8>,
/// }
///
/// impl RequestSource for Counting {
///     fn request(&mut self, index: u64) -> Result<Message<'_>, SourceEnd> {
///         if index >= 3 {
///             return Err(SourceEnd::Done);
///         }
///         // The same number gives the same call, so that it may be sent again.
///         self.line = format!("GET {index}\n").into_bytes();
///         Ok(Message { bytes: &self.line, idempotent: true, ..Message::default() })
///     }
/// }
///
/// let mut user = Counting::default();
/// assert_eq!(user.request(2).map(|call| call.bytes), Ok(b"GET 2\n".as_slice()));
/// assert_eq!(user.request(3), Err(SourceEnd::Done));
/// ```
pub trait RequestSource: Send {
    /// The call with this number. Numbers are unique over all workers. The number of an idempotent call may be asked
    /// for again while it is in flight, and must give the same call.
    ///
    /// # Errors
    /// When there are no more calls.
    fn request(&mut self, index: u64) -> Result<Message<'_>, SourceEnd>;

    /// Which of [`Prepared::targets`](crate::Prepared::targets) the call with this number goes to: the same each time it is
    /// asked.
    fn target(&mut self, _index: u64) -> usize {
        0
    }

    /// Names of its calls, if the report tells them apart: few names, the same on each worker.
    fn names(&self) -> &[String] {
        &[]
    }

    /// Which of [`names`](Self::names) the call with this number has, or a number beyond them if it has none: the same
    /// each time it is asked.
    fn name(&self, _index: u64) -> usize {
        0
    }

    /// Which of [`names`](Self::names) the calls on the connection with this number have, if connections decide that
    /// ([`Prepared::client_of`](crate::Prepared::client_of)) and not calls. Calls that no connection carried are then dealt
    /// to the connections in turn.
    fn connection_name(&self, _number: u64) -> Option<usize> {
        None
    }

    /// The ids by which the call with this number is traced, if it is: the same each time it is asked.
    fn trace(&self, _index: u64) -> Option<TraceIds> {
        None
    }

    /// Whether any call is traced.
    fn traces(&self) -> bool {
        false
    }

    /// Announces about this many calls, one after the other, with nothing between them; 0 ends that. Calls made ahead
    /// that are not asked for are the next ones.
    fn expect(&mut self, _calls: usize) {}

    /// The hooks that it wants.
    fn hooks(&self) -> Hooks {
        Hooks::default()
    }

    /// How long a connection waits before its next call, in nanoseconds.
    ///
    /// # Errors
    /// When there are no more calls.
    fn pause(&mut self) -> Result<u64, SourceEnd> {
        Ok(0)
    }

    /// A call was answered.
    ///
    /// # Errors
    /// When there are no more calls.
    fn answered(&mut self, _status: u16, _parts: AnswerParts<'_>) -> Result<(), SourceEnd> {
        Ok(())
    }

    /// Everything that arrived has been read, and calls will be asked for: every answer has to be processed by now.
    ///
    /// # Errors
    /// When there are no more calls.
    fn settle(&mut self) -> Result<(), SourceEnd> {
        Ok(())
    }

    /// About how long it was busy since this was last asked, in nanoseconds; 0 if it does nothing worth measuring.
    fn take_busy_ns(&mut self) -> u64 {
        0
    }
}

/// A user that asks for the same call each time.
#[derive(Debug, Clone)]
pub struct RepeatingSource {
    bytes: Arc<[u8]>,
    idempotent: bool,
}

impl RepeatingSource {
    /// The call that sends `bytes`; `idempotent` as in [`Message::idempotent`].
    pub fn new(bytes: impl Into<Arc<[u8]>>, idempotent: bool) -> Self {
        Self { bytes: bytes.into(), idempotent }
    }
}

impl RequestSource for RepeatingSource {
    fn request(&mut self, _index: u64) -> Result<Message<'_>, SourceEnd> {
        Ok(Message { bytes: &self.bytes, idempotent: self.idempotent, ..Message::default() })
    }
}

/// Heartbeat of a worker's user, seen from outside: does the user return from what it was asked? Debug hooks of an
/// interpreter do not fire in compiled loops, so a script cannot be stopped from inside.
#[derive(Debug, Clone, Default)]
pub struct Heartbeat(Arc<Pulse>);

#[derive(Debug, Default)]
struct Pulse {
    /// How often the user was called or has returned, and in the lowest eight bits the function that it is in.
    beat: AtomicU64,
    /// Whose function that is, by the number of a scenario.
    whose: AtomicU32,
    /// Calls that it has made so far.
    calls: AtomicU64,
}

impl Heartbeat {
    /// The user is called; `what` (under 256) names the function. Ends with [`Heartbeat::leave`].
    #[inline]
    pub fn enter(&self, what: u8) {
        let beats = (self.0.beat.load(Ordering::Relaxed) >> 8).wrapping_add(1);
        self.0.beat.store(beats << 8 | u64::from(what), Ordering::Relaxed);
    }

    /// The user has not returned, and will: whoever says so ends its function by itself.
    pub fn goes_on(&self) {
        let beat = self.0.beat.load(Ordering::Relaxed);
        self.0.beat.store((beat >> 8).wrapping_add(1) << 8 | beat & 0xff, Ordering::Relaxed);
    }

    /// The same, in the function of the scenario with this number.
    #[inline]
    pub fn enter_scenario(&self, what: u8, whose: u32) {
        self.0.whose.store(whose, Ordering::Relaxed);
        self.enter(what);
    }

    /// The user has made this many calls so far.
    #[inline]
    pub fn has_made(&self, calls: u64) {
        self.0.calls.store(calls, Ordering::Relaxed);
    }

    /// The number of the scenario whose function was entered last, and the calls made so far: what is known of a user that
    /// does not return.
    pub fn last_seen(&self) -> (u32, u64) {
        (self.0.whose.load(Ordering::Relaxed), self.0.calls.load(Ordering::Relaxed))
    }

    /// The user has returned.
    #[inline]
    pub fn leave(&self) {
        let beats = (self.0.beat.load(Ordering::Relaxed) >> 8).wrapping_add(1);
        self.0.beat.store(beats << 8, Ordering::Relaxed);
    }

    /// A number that changes whenever the user is called or returns, and the function that it is in (0: none).
    pub fn beat(&self) -> (u64, u8) {
        let value = self.0.beat.load(Ordering::Relaxed);
        (value >> 8, value as u8)
    }
}
