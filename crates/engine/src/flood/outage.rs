//! A target that takes no connection: which calls try to make one, and which share the outcome of another's attempt.
//!
//! A call that is due while there is no connection fails at that time. It makes an attempt of its own, up to a thousand
//! a second. Beyond that it takes the outcome of an attempt that has just ended, with its duration, so that a target
//! which answers nothing does not look like one that refuses at once. If no attempt has just ended, the call waits for
//! the next one that does. An attempt that succeeds ends all this.

use brunt_record::outcome::Failure;
use brunt_record::time::Tick;

use crate::network::FailedAttempt;
use crate::network::attempts::Attempts;
use crate::network::origins::OriginId;

/// How long other calls share the outcome of an attempt, in nanoseconds; and of one that failed in TLS, which costs the
/// target more.
const SHARED_NS: u64 = 50_000_000;
const SHARED_TLS_NS: u64 = 100_000_000;

/// An attempt that has failed, with no success after it.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    at: Tick,
    /// How long it took, in nanoseconds.
    pub(super) took_ns: u64,
    /// Its failure.
    pub(super) failure: Failure,
    /// Why.
    pub(super) reason: String,
}

/// A worker's knowledge of targets that take no connection.
#[derive(Debug)]
pub(super) struct Outage {
    /// The attempts of calls.
    pub(super) attempts: Attempts,
    /// The last attempt for each target, if it failed.
    last: Vec<Option<Outcome>>,
    /// Connections whose peers refused the protocol's opening exchange before the load began.
    pub(super) refused_ahead: u32,
    /// When to look again whether a waiting call can be ended or sent, if nothing happens before.
    pub(super) next_look: Tick,
}

impl Outage {
    /// The share of one of this many workers, over all machines.
    pub(super) fn new(workers: u64) -> Self {
        Self { attempts: Attempts::new(workers), last: Vec::new(), refused_ahead: 0, next_look: Tick::NEVER }
    }

    /// An attempt has failed at `now`.
    pub(super) fn failed(&mut self, attempt: &FailedAttempt<'_>, now: Tick) {
        if self.last.len() <= attempt.origin.place() {
            self.last.resize(attempt.origin.place() + 1, None);
        }
        let FailedAttempt { failure, reason, took_ns, .. } = *attempt;
        if let Some(last) = self.last.get_mut(attempt.origin.place()) {
            *last = Some(Outcome { at: now, took_ns, failure, reason: reason.to_owned() });
        }
    }

    /// A connection to this target was made.
    pub(super) fn made(&mut self, origin: OriginId) {
        if let Some(last) = self.last.get_mut(origin.place()) {
            *last = None;
        }
    }

    /// Whether the last attempt to connect to this target failed.
    pub(super) fn has_failed(&self, origin: OriginId) -> bool {
        matches!(self.last.get(origin.place()), Some(Some(_)))
    }

    /// The failure of the last attempt for this target, unless one has succeeded since.
    pub(super) fn last_failure(&self, origin: OriginId) -> Option<(Failure, String)> {
        let outcome = self.last.get(origin.place())?.as_ref()?;
        Some((outcome.failure, outcome.reason.clone()))
    }

    /// The outcome that a due call shares at `now`, as it makes no attempt of its own; `None` if no attempt ended just
    /// before.
    pub(super) fn shared(&self, origin: OriginId, now: Tick) -> Option<&Outcome> {
        let last = self.last.get(origin.place())?.as_ref()?;
        let shared_ns = if last.failure == Failure::Tls { SHARED_TLS_NS } else { SHARED_NS };
        (now.since(last.at) <= shared_ns).then_some(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_shared_for_a_moment_and_until_a_connection_is_made() {
        let mut outage = Outage::new(1);
        let attempt =
            FailedAttempt { origin: OriginId::at(1), failure: Failure::Connect, reason: "refused", took_ns: 7 };
        outage.failed(&attempt, Tick::from_ns(1_000));
        assert!(
            outage.has_failed(OriginId::at(1))
                && !outage.has_failed(OriginId::at(0))
                && !outage.has_failed(OriginId::at(9))
        );
        let shared = |outage: &Outage, now| outage.shared(OriginId::at(1), now).map(|outcome| outcome.took_ns);
        assert_eq!(shared(&outage, Tick::from_ns(1_000 + SHARED_NS)), Some(7));
        assert_eq!(shared(&outage, Tick::from_ns(1_001 + SHARED_NS)), None);
        outage.failed(&FailedAttempt { failure: Failure::Tls, ..attempt }, Tick::from_ns(1_000));
        assert_eq!(shared(&outage, Tick::from_ns(1_001 + SHARED_NS)), Some(7));
        outage.made(OriginId::at(1));
        assert_eq!((shared(&outage, Tick::from_ns(1_000)), outage.has_failed(OriginId::at(1))), (None, false));
    }
}
