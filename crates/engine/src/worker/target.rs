//! Whether the target takes connections and answers: the load is given up if it does neither.

use std::sync::atomic::Ordering;

use brunt_record::SECOND_NS;
use brunt_record::snapshot::Phase;

use super::{Phases, Stage, Worker};
use crate::transport::Driver;

/// How long a load goes on whose target refuses every connection, in nanoseconds: it may be starting up.
const REFUSED_NS: u64 = SECOND_NS;
/// How long a load goes on whose target is silent, in nanoseconds: long enough for the first packet to be sent again
/// twice (after 1 and 3 s), and for a slow handshake. Where calls may take longer, it is a second more than those.
const UNHEARD_NS: u64 = 10 * SECOND_NS;

impl<D: Driver, L: Phases<D>> Worker<D, L> {
    /// Ends the run if no part of it has ever reached the target, and none will.
    pub(super) fn look_for_target(&mut self, now: u64) {
        if self.network.has_connected {
            self.shared.reached.store(true, Ordering::Relaxed);
        }
        let is_loading = matches!(self.stage, Stage::Loading(Phase::Warmup | Phase::Measured));
        if self.shared.reached.load(Ordering::Relaxed) {
            self.awaits_target = false;
        } else if is_loading {
            let waited = now.saturating_sub(self.load_began);
            let patience = UNHEARD_NS.max(self.shared.plan.timeout_ns.saturating_add(SECOND_NS));
            let reason = match &self.network.refusal {
                Some(reason) if waited >= REFUSED_NS => reason.as_str(),
                None if waited >= patience && !self.network.has_heard => self.network.silence(),
                _ => return,
            };
            self.unreached = Some(unreached(waited, reason));
            self.awaits_target = false;
            self.shared.ended.store(true, Ordering::Relaxed);
            self.end_early(now);
        }
    }

    /// Keeps the reason for which a run that is over never had a connection, if it had none.
    pub(super) fn look_back_for_target(&mut self, now: u64) {
        if self.awaits_target && !self.shared.reached.load(Ordering::Relaxed) {
            let reason = self.network.refusal.as_deref().unwrap_or_else(|| self.network.silence());
            self.unconnected = Some(unreached(now.saturating_sub(self.load_began), reason));
        }
    }
}

/// The reason for taking a target as absent.
fn unreached(waited_ns: u64, reason: &str) -> String {
    format!("no connection to the target could be made in {}s: {reason}", waited_ns / SECOND_NS)
}
