//! Whether the target takes connections and answers: the load is given up if it does not.

use std::sync::atomic::Ordering;

use brunt_record::SECOND_NS;
use brunt_record::snapshot::Phase;
use brunt_record::time::Tick;

use super::{Stage, Worker};
use crate::network::{Unanswered, Workload};
use crate::transport::Driver;

/// How long a load goes on whose target refuses every connection, in nanoseconds: it may be starting up.
const REFUSED_NS: u64 = SECOND_NS;
/// How long a load goes on whose target is silent, in nanoseconds: long enough for the first packet to be sent again
/// twice (after 1 and 3 s), and for a slow handshake. Where calls may take longer, it is a second more than those.
const UNHEARD_NS: u64 = 10 * SECOND_NS;

/// What this worker knows of whether its target is there.
#[derive(Debug)]
pub(super) struct Target {
    /// Whether it has not answered yet.
    is_awaited: bool,
    /// Why the run was ended for that.
    unreached: Option<String>,
    /// The reason for which this worker had no connection in all of its time.
    unconnected: Option<String>,
}

impl Default for Target {
    fn default() -> Self {
        Self { is_awaited: true, unreached: None, unconnected: None }
    }
}

impl Target {
    /// Whether it has not answered yet.
    #[inline]
    pub(super) fn is_awaited(&self) -> bool {
        self.is_awaited
    }

    /// Why the run was ended since the target is not there; and why this worker had no connection in all of its time.
    pub(super) fn take_reasons(&mut self) -> (Option<String>, Option<String>) {
        (self.unreached.take(), self.unconnected.take())
    }
}

impl<D: Driver, W: Workload<D>> Worker<D, W> {
    /// Ends the run if no part of it has ever had an answer, and none will: nothing takes its connections, or what
    /// takes them says nothing.
    pub(super) fn look_for_target(&mut self, now: Tick) {
        if self.network.signs().has_connected() {
            self.shared.reached.store(true, Ordering::Relaxed);
        }
        if self.network.signs().has_answers() {
            self.shared.answered.store(true, Ordering::Relaxed);
        }
        if self.shared.answered.load(Ordering::Relaxed) {
            self.target.is_awaited = false;
            return;
        }
        if !matches!(self.stage, Stage::Loading(Phase::Warmup | Phase::Measured)) {
            return;
        }
        let signs = self.network.signs();
        let waited = now.since(self.load_began.max(signs.first_attempt()));
        let patience = UNHEARD_NS.max(signs.longest_timeout_ns().saturating_add(SECOND_NS));
        let patience_of_refused = if self.load.nature().calls_at_once { REFUSED_NS } else { patience };
        let reason = match signs.refusal() {
            _ if self.shared.reached.load(Ordering::Relaxed) => {
                let did = match signs.unanswered() {
                    Unanswered::TimedOut => "answered nothing in",
                    Unanswered::Dropped => "closed each without an answer for",
                    Unanswered::None => return,
                };
                if waited < patience || self.network.is_being_answered() {
                    return;
                }
                format!("the target took connections and {did} {}s", waited / SECOND_NS)
            }
            Some(reason) if waited >= patience_of_refused => unreached(waited, reason),
            None if waited >= patience && signs.is_unheard() => unreached(waited, self.network.silence()),
            _ => return,
        };
        self.target.unreached = Some(reason);
        self.target.is_awaited = false;
        self.shared.end();
        self.end_early(now);
    }

    /// Keeps the reason for which a run that is over never had a connection, if it had none.
    pub(super) fn look_back_for_target(&mut self, now: Tick) {
        if self.load.nature().calls_at_once && !self.shared.reached.load(Ordering::Relaxed) {
            let reason = self.network.signs().refusal().unwrap_or_else(|| self.network.silence());
            self.target.unconnected = Some(unreached(now.since(self.load_began), reason));
        }
    }
}

/// The reason for taking a target as absent.
fn unreached(waited_ns: u64, reason: &str) -> String {
    format!("no connection to the target could be made in {}s: {reason}", waited_ns / SECOND_NS)
}
