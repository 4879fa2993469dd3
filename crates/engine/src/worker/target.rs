//! Whether the target takes connections and says anything: a load on one that does neither is given up.

use std::sync::atomic::Ordering;

use brunt_record::SECOND_NS;
use brunt_record::snapshot::Phase;

use super::{Phases, Stage, Worker};
use crate::transport::Driver;

/// How long a load goes on whose target refuses every connection, in nanoseconds: it may be about to start.
const REFUSED_NS: u64 = SECOND_NS;
/// The same for a target that says nothing, in nanoseconds: long enough for the first packet to be sent again twice (after 1 and 3 s), and for a
/// slow handshake. Where calls may take longer, it is a second more than those.
const UNHEARD_NS: u64 = 10 * SECOND_NS;

impl<D: Driver, L: Phases<D>> Worker<D, L> {
    /// Ends the run if nothing of it has ever reached the target, and nothing will.
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

    /// Keeps why a run whose time is over has never had a connection, if it has not.
    pub(super) fn look_back_for_target(&mut self, now: u64) {
        if self.awaits_target && !self.shared.reached.load(Ordering::Relaxed) {
            let reason = self.network.refusal.as_deref().unwrap_or_else(|| self.network.silence());
            self.unconnected = Some(unreached(now.saturating_sub(self.load_began), reason));
        }
    }
}

/// Why a target is taken for one that is not there.
fn unreached(waited_ns: u64, reason: &str) -> String {
    format!("no connection to the target could be made in {}s: {reason}", waited_ns / SECOND_NS)
}
