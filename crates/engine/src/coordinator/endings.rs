//! Why a run ended, from what its workers and its observer said.

use brunt_record::recording::{AbortCause, Ending, Stop};

/// The reasons for which a run ended. Of each kind the first one counts, but for [`Stop::first_of`].
#[derive(Debug, Default)]
pub(super) struct Endings {
    interrupted: bool,
    failed: Option<String>,
    /// Why the observer ended the run.
    aborted: Option<AbortCause>,
    /// Why a worker gave the target up before any load.
    unreached: Option<String>,
    /// Why a worker had no connection in all of its time, if no worker ever had one.
    unconnected: Option<String>,
    /// Why a script has ended the run.
    stopped: Option<Stop>,
}

impl Endings {
    /// A worker was asked to stop before its end.
    pub(super) fn interrupt(&mut self, interrupted: bool) {
        self.interrupted |= interrupted;
    }

    pub(super) fn fail(&mut self, reason: Option<String>) {
        self.failed = self.failed.take().or(reason);
    }

    pub(super) fn unreach(&mut self, reason: Option<String>) {
        self.unreached = self.unreached.take().or(reason);
    }

    pub(super) fn stop(&mut self, stop: Option<Stop>) {
        self.stopped = Stop::first_of(self.stopped.take(), stop);
    }

    pub(super) fn unconnect(&mut self, reason: String) {
        self.unconnected = Some(reason);
    }

    /// The observer ends the run. False if it has before.
    pub(super) fn abort(&mut self, cause: AbortCause) -> bool {
        let is_first = self.aborted.is_none();
        self.aborted = self.aborted.take().or(Some(cause));
        is_first
    }

    /// How the run ended. `has_outcomes`: whether any call was answered or has failed.
    pub(super) fn ending(self, has_outcomes: bool) -> Ending {
        match (self.failed, self.unreached, self.aborted) {
            (Some(reason), ..) => Ending::Failed(reason),
            (None, Some(reason), _) => Ending::Unreached(reason),
            (None, None, Some(cause)) => Ending::Aborted(cause),
            _ if self.interrupted => Ending::Interrupted,
            // Failed calls state their reasons themselves.
            _ => match (self.stopped, self.unconnected.filter(|_| !has_outcomes)) {
                (Some(stop), _) => stop.ending(),
                (None, Some(reason)) => Ending::Unreached(reason),
                (None, None) => Ending::Completed,
            },
        }
    }
}
