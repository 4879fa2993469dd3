//! Which answers are a success.

use brunt_record::outcome::OkStatus;

/// The statuses that are a success for the run, and an excuse for a call of which another one is.
#[derive(Debug, Default)]
pub(super) struct Success {
    ok: OkStatus,
    /// The last successful status, which needs no look-up.
    usual: Option<u16>,
    /// Whether the next answer counts as a success although its status does not.
    excused: bool,
}

/// What a status says of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judged {
    Success,
    /// It is none for the run, and one for its call.
    Excused,
    Refused,
}

impl Success {
    pub(super) fn with(ok: OkStatus) -> Self {
        Self { ok, ..Self::default() }
    }

    /// Whether this is the last successful status.
    #[inline]
    pub(super) fn is_usual(&self, status: u16) -> bool {
        self.usual == Some(status)
    }

    /// Whether this status is a success for the run.
    pub(super) fn holds(&self, status: u16) -> bool {
        self.is_usual(status) || self.ok.holds(status)
    }

    /// Whether the next answer, whose status is no success, counts as one all the same.
    pub(super) fn excuse(&mut self, excused: bool) {
        self.excused = excused;
    }

    /// Judges an answer, whose excuse is used up.
    #[cold]
    pub(super) fn judge(&mut self, status: u16) -> Judged {
        let is_excused = std::mem::take(&mut self.excused);
        if self.ok.holds(status) {
            self.usual = Some(status);
            Judged::Success
        } else if is_excused {
            Judged::Excused
        } else {
            Judged::Refused
        }
    }
}
