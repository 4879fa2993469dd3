//! What a worker writes down about its calls.

use brunt_model::histogram::Histogram;
use brunt_model::outcome::Failure;
use brunt_model::snapshot::Snapshot;

use super::connection::{Call, NEVER};

/// The figures of the interval under way.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    pub(super) snapshot: Snapshot,
    /// Calls that were sent when due and whose answer came in one piece: response time, service time and first byte are
    /// one, and are written down once.
    plain: Histogram,
    /// Whether calls of the warm-up are written down: in the warm-up itself, for the live view.
    pub(super) warming_up: bool,
}

impl Recorder {
    /// Hands over what was written down, and begins anew.
    pub(super) fn take(&mut self) -> Snapshot {
        // The numbers of names hold for the whole run.
        let figures = self.snapshot.figures.take();
        let names = std::mem::take(&mut self.snapshot.figures);
        let mut snapshot = std::mem::take(&mut self.snapshot);
        snapshot.figures = figures;
        self.snapshot.figures = names;
        snapshot.response.known.merge(&self.plain);
        snapshot.service.known.merge(&self.plain);
        snapshot.first_byte.merge(&self.plain);
        self.plain.clear();
        snapshot
    }

    /// Whether the call is written down.
    pub(super) fn counts(&self, call: &Call) -> bool {
        call.measured || self.warming_up
    }

    /// A call was due. Closed model; in the open one the schedule is counted.
    #[inline]
    pub(super) fn due(&mut self, call: &Call) {
        if self.counts(call) {
            self.snapshot.due += 1;
        }
    }

    /// A call that was due was not made after all, since there is none.
    pub(super) fn withdraw(&mut self, call: &Call) {
        if self.counts(call) {
            self.snapshot.due = self.snapshot.due.saturating_sub(1);
        }
    }

    /// A call was answered at `now`.
    #[inline]
    pub(super) fn answered(&mut self, call: &Call, status: u16, now: u64) {
        if !self.counts(call) {
            return;
        }
        let snapshot = &mut self.snapshot;
        snapshot.statuses.record(status);
        if call.due == call.sent && call.first_byte == now {
            self.plain.record(now - call.sent);
            return;
        }
        snapshot.response.known.record(now - call.due);
        snapshot.service.known.record(now - call.sent);
        snapshot.first_byte.record(call.first_byte.min(now) - call.sent);
    }

    /// Something went wrong with a connection, and cost no call.
    #[cold]
    pub(super) fn trouble(&mut self, failure: Failure, reason: &str) {
        self.snapshot.troubles.record(failure, reason);
    }

    /// A message came that no call asked for.
    pub(super) fn unasked(&mut self) {
        self.snapshot.unasked += 1;
    }

    /// A call failed at `now`.
    pub(super) fn failed(&mut self, call: &Call, failure: Failure, reason: &str, now: u64) {
        if !self.counts(call) {
            return;
        }
        let snapshot = &mut self.snapshot;
        let response = now.saturating_sub(call.due);
        snapshot.failures.record(failure, reason);
        snapshot.response.known.record(response);
        snapshot.failed.record(response);
        if call.sent != NEVER {
            snapshot.service.known.record(now - call.sent);
        }
    }

    /// The run ended at `now` while the call was in flight.
    pub(super) fn unfinished(&mut self, call: &Call, now: u64) {
        if self.counts(call) {
            self.snapshot.unfinished += 1;
            self.snapshot.response.bounds.record(now.saturating_sub(call.due));
            self.snapshot.service.bounds.record(now.saturating_sub(call.sent));
        }
    }

    /// The measured part, or the drain after it, ended at `end` before a call due at `due` was sent.
    pub(super) fn unsent(&mut self, due: u64, end: u64) {
        self.snapshot.unsent += 1;
        self.snapshot.response.bounds.record(end.saturating_sub(due));
    }
}
