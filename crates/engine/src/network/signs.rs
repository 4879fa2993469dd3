//! What was seen of the target so far: whether it takes connections, and whether it says anything on them.

use brunt_record::time::Tick;

/// How calls ended so far that got no byte of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// None did.
    None,
    /// Their connections broke.
    Dropped,
    /// One has timed out at least.
    TimedOut,
}

/// The signs that a target is there.
#[derive(Debug)]
pub(crate) struct Signs {
    /// When the first attempt to connect was made; [`Tick::NEVER`] before.
    first_attempt: Tick,
    /// When a connection was last made, and whether one ever was.
    last_connected: Tick,
    has_connected: bool,
    /// Whether anything came back while none had been made.
    has_heard: bool,
    /// Why the last attempt was refused, until a connection is made.
    refusal: Option<String>,
    /// When the last answer, or message of one, was read.
    last_answer: Tick,
    /// How calls ended that got no byte, and the longest timeout of any, in nanoseconds.
    unanswered: Unanswered,
    longest_timeout_ns: u64,
}

impl Signs {
    /// None at `now`, of a target whose calls may take so long.
    pub(super) fn none(now: Tick, timeout_ns: u64) -> Self {
        Self {
            first_attempt: Tick::NEVER,
            last_connected: now,
            has_connected: false,
            has_heard: false,
            refusal: None,
            last_answer: Tick::EPOCH,
            unanswered: Unanswered::None,
            longest_timeout_ns: timeout_ns,
        }
    }

    /// An attempt to connect begins.
    pub(super) fn tried(&mut self, now: Tick) {
        self.first_attempt = self.first_attempt.min(now);
    }

    /// When the first attempt to connect was made; [`Tick::NEVER`] before.
    pub(crate) fn first_attempt(&self) -> Tick {
        self.first_attempt
    }

    /// A connection was made.
    pub(super) fn connected(&mut self, now: Tick) {
        (self.last_connected, self.has_connected) = (now, true);
    }

    /// When a connection was last made, or the network began.
    pub(crate) fn last_connected(&self) -> Tick {
        self.last_connected
    }

    /// Whether a connection was ever made.
    pub(crate) fn has_connected(&self) -> bool {
        self.has_connected
    }

    /// The target, or what stands before it, has refused a connection.
    pub(super) fn refused(&mut self, reason: &str) {
        if !self.has_connected {
            self.refusal = Some(reason.to_owned());
        }
    }

    /// Why the last attempt was refused.
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Something came back.
    #[inline]
    pub(super) fn heard(&mut self) {
        self.has_heard |= !self.has_connected;
    }

    /// Whether nothing at all came back.
    pub(crate) fn is_unheard(&self) -> bool {
        !self.has_heard
    }

    /// An answer, or a message of one, was read.
    #[inline]
    pub(super) fn answered(&mut self, now: Tick) {
        self.last_answer = now;
    }

    /// When the last answer, or message of one, was read.
    #[inline]
    pub(crate) fn last_answer(&self) -> Tick {
        self.last_answer
    }

    /// Whether a call was answered, or needed no answer.
    pub(crate) fn has_answers(&self) -> bool {
        self.last_answer > Tick::EPOCH
    }

    /// A call has timed out.
    pub(super) fn timed_out(&mut self) {
        self.unanswered = Unanswered::TimedOut;
    }

    /// A connection that was made broke with a call, before a byte of its answer.
    pub(super) fn dropped(&mut self) {
        if self.unanswered == Unanswered::None {
            self.unanswered = Unanswered::Dropped;
        }
    }

    /// How calls ended that got no byte.
    pub(crate) fn unanswered(&self) -> Unanswered {
        self.unanswered
    }

    /// There are calls that may take so long.
    pub(crate) fn may_take(&mut self, timeout_ns: u64) {
        self.longest_timeout_ns = self.longest_timeout_ns.max(timeout_ns);
    }

    /// The longest time that a call may take, in nanoseconds.
    pub(crate) fn longest_timeout_ns(&self) -> u64 {
        self.longest_timeout_ns
    }
}
