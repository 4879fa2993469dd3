//! Answers that the kernel has timed, and those that stand for others.

use brunt_record::catalogue::{Numbers, Timings};
use brunt_record::histogram::Histogram;
use brunt_record::instrument::{self, CallTimes};

/// Calls that were sent when due and answered in one piece, by the kernel's time of arrival, weighted; and their number.
#[derive(Debug, Default)]
pub(super) struct Exact {
    times: Histogram,
    calls: u64,
}

impl Exact {
    /// A call that took so long, in nanoseconds, and stands for so many.
    #[inline]
    pub(super) fn record(&mut self, ns: u64, weight: u64) {
        self.times.record_n(ns, weight);
        self.calls += 1;
    }

    /// Writes them down, and begins anew.
    pub(super) fn hand_over(&mut self, numbers: &mut Numbers, times: &mut Timings) {
        instrument::add_exact(numbers, times, &self.times, std::mem::take(&mut self.calls));
        self.times.clear();
    }
}

/// The answers that stand for others whose arrival nobody knows.
#[derive(Debug, Default)]
pub(super) struct StandIns {
    /// The times of the last answer that was timed by chance, and whether it was a success.
    timed: Option<(CallTimes, bool)>,
    /// The times of the first answer as read, and whether it was a success, if the kernel told none: it begins to tell
    /// a moment after it was asked.
    untimed: Option<(CallTimes, bool)>,
}

impl StandIns {
    /// An answer was timed by chance.
    #[inline]
    pub(super) fn timed(&mut self, times: CallTimes, is_ok: bool) {
        self.timed = Some((times, is_ok));
    }

    /// Whether no answer stands for others yet.
    #[inline]
    pub(super) fn are_none(&self) -> bool {
        self.timed.is_none() && self.untimed.is_none()
    }

    /// The first answer, which the kernel did not time.
    pub(super) fn untimed(&mut self, times: CallTimes, is_ok: bool) {
        self.untimed = Some((times, is_ok));
    }

    /// The one that stands for others, and whether it was a success: a timed one, or else `or_untimed` one as read.
    pub(super) fn get(&self, or_untimed: bool) -> Option<&(CallTimes, bool)> {
        self.timed.as_ref().or(self.untimed.as_ref().filter(|_| or_untimed))
    }
}
