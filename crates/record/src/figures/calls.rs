//! Figures of the calls that have something in common: a name or a tag.

use serde::{Deserialize, Serialize};

use super::{FigureByName, StatusNames};
use crate::catalogue::{Counter, Numbers, Timing, Timings};
use crate::counts::{Failures, Statuses};
use crate::histogram::{Censored, Histogram};
use crate::messages::{self, MessageArrival, Messages};
use crate::outcome::{Failure, OkStatus};
use crate::redaction::Secrets;

/// Figures of some of a run's calls. As for all of them, once the run is over
/// `due = statuses + failures + unfinished + unsent`. All times in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CallFigures {
    /// Counts: calls, messages, and bytes after decryption.
    pub numbers: Numbers,
    /// Times: response and service times, and times of messages.
    pub times: Timings,
    /// Answers by status.
    pub statuses: Statuses,
    /// Answers among them that failed a check, by status.
    pub failed_check: Statuses,
    /// Answers among them that count as ok against their status, by status.
    #[serde(default, skip_serializing_if = "Statuses::is_empty")]
    pub excused: Statuses,
    /// Failures by name, without reasons: these are kept once, over all calls.
    pub failures: Failures,
    /// Names of statuses, where their protocol has some.
    #[serde(default, skip_serializing_if = "StatusNames::is_empty")]
    pub status_names: StatusNames,
}

impl CallFigures {
    /// The messages of streams.
    pub const fn messages(&self) -> Messages<'_> {
        Messages::new(&self.numbers, &self.times)
    }

    /// A call was due.
    #[inline]
    pub fn due(&mut self) {
        self.numbers.add(Counter::Due, 1);
    }

    /// A call was answered.
    #[inline]
    pub fn answered(&mut self, status: u16, response_ns: u64, service_ns: u64) {
        self.statuses.record(status);
        self.took(response_ns, service_ns, 1);
    }

    /// So many answered calls took so long, in nanoseconds: one that was timed, and those that it stands for.
    #[inline]
    pub fn took(&mut self, response_ns: u64, service_ns: u64, calls: u64) {
        self.times.record_n(Timing::Response, response_ns, calls);
        self.times.record_n(Timing::Service, service_ns, calls);
    }

    /// A call was answered with a status that is not ok. Call after [`CallFigures::answered`].
    pub fn refused(&mut self, response_ns: u64) {
        self.times.record(Timing::Refused, response_ns);
    }

    /// A call's answer failed a check. Call once for each call, after [`CallFigures::answered`].
    pub fn failed_check(&mut self, status: u16) {
        self.failed_check.record(status);
    }

    /// A call's answer counts as ok whatever its status. Call once for each call, after [`CallFigures::answered`].
    pub fn excused(&mut self, status: u16) {
        self.excused.record(status);
    }

    /// A call failed; `service_ns` if it was sent.
    pub fn failed(&mut self, failure: Failure, response_ns: u64, service_ns: Option<u64>) {
        self.failures.count_one(failure);
        self.times.record(Timing::Response, response_ns);
        self.times.record(Timing::Failed, response_ns);
        if let Some(service_ns) = service_ns {
            self.times.record(Timing::Service, service_ns);
        }
    }

    /// So many calls had not ended with the drain, and had taken this long, in nanoseconds; `service_ns` if they were sent.
    pub fn unfinished(&mut self, response_ns: u64, service_ns: Option<u64>, calls: u64) {
        self.numbers.add(Counter::Unfinished, calls);
        self.times.record_bounds(Timing::Response, response_ns, calls);
        if let Some(service_ns) = service_ns {
            self.times.record_bounds(Timing::Service, service_ns, calls);
        }
    }

    /// So many calls were due and never sent, and had waited this long, in nanoseconds.
    pub fn unsent(&mut self, response_ns: u64, calls: u64) {
        self.numbers.add(Counter::Unsent, calls);
        self.times.record_bounds(Timing::Response, response_ns, calls);
    }

    /// A message of a call has come.
    #[inline]
    pub fn message(&mut self, came: &MessageArrival) {
        messages::came(&mut self.numbers, &mut self.times, came);
    }

    /// A call has ended whose answer came as messages, or should have.
    pub fn stream_ended(&mut self, ended: &messages::StreamEnd) {
        messages::ended(&mut self.numbers, &mut self.times, ended);
    }

    /// Adds the bytes of a call.
    #[inline]
    pub fn bytes(&mut self, bytes_in: u64, bytes_out: u64) {
        self.numbers.add(Counter::ClearIn, bytes_in);
        self.numbers.add(Counter::ClearOut, bytes_out);
    }

    /// The response times of calls that failed or were answered with a status that is not ok, with lower bounds for those
    /// that had not ended.
    pub fn response_not_ok(&self) -> Censored {
        let mut known = self.times.known(Timing::Failed).clone();
        known.merge(self.times.known(Timing::Refused));
        Censored { known, bounds: self.times.bounds(Timing::Response).clone(), ..Censored::default() }
    }

    /// Response times, those of calls without success apart.
    pub fn response_times(&self) -> Censored {
        Censored {
            known: self.response_ok(),
            failed: self.response_not_ok().known,
            bounds: self.times.bounds(Timing::Response).clone(),
        }
    }

    /// The response times of all other calls: answers whose status is ok, whatever checks found.
    pub fn response_ok(&self) -> Histogram {
        self.times.known(Timing::Response).without(&self.response_not_ok().known)
    }

    /// Calls that ended, in whichever way.
    pub fn ended(&self) -> u64 {
        self.statuses.total() + self.failures.total() + self.numbers.without_end()
    }

    /// Answers that are a success: their status is ok or excused, and they failed no check.
    pub fn ok(&self, ok: &OkStatus) -> u64 {
        self.statuses.amended_ok(ok, &self.failed_check, &self.excused)
    }

    /// Calls that are not a success: failures, unfinished and unsent ones, and answers whose status is not ok or that
    /// failed a check.
    pub fn not_ok(&self, ok: &OkStatus) -> u64 {
        self.ended().saturating_sub(self.ok(ok))
    }
}

impl FigureByName for CallFigures {
    fn is_empty(&self) -> bool {
        // A check can come in an interval after its answer's.
        self.numbers == Numbers::default()
            && self.statuses.total() + self.failures.total() + self.failed_check.total() + self.excused.total() == 0
            && self.messages().is_empty()
    }

    fn merge(&mut self, other: &Self) {
        self.statuses.merge(&other.statuses);
        self.failed_check.merge(&other.failed_check);
        self.excused.merge(&other.excused);
        self.failures.merge(&other.failures);
        self.numbers.merge(&other.numbers);
        self.times.merge(&other.times);
        self.status_names.merge(&other.status_names);
    }

    fn hide(&mut self, secrets: &Secrets) {
        self.status_names.hide(secrets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_failed_a_check_is_not_ok_once() {
        let mut calls = CallFigures::default();
        for status in [200, 200, 500] {
            calls.due();
            calls.answered(status, 10, 10);
        }
        calls.failed_check(200);
        calls.failed_check(500);
        assert_eq!((calls.ended(), calls.not_ok(&OkStatus::default())), (3, 2));
        assert_eq!(calls.times.get(Timing::Response).count(), 3, "its latency is kept");
    }

    #[test]
    fn what_is_excused_is_ok_until_a_check_fails_it() {
        let mut calls = CallFigures::default();
        let not_ok = |calls: &CallFigures| (calls.ok(&OkStatus::default()), calls.not_ok(&OkStatus::default()));
        for status in [200, 404, 404, 500] {
            calls.answered(status, 10, 10);
        }
        calls.excused(404);
        assert_eq!(not_ok(&calls), (2, 2));
        calls.excused(404);
        calls.failed_check(404);
        assert_eq!(not_ok(&calls), (2, 2));
        // A status that is ok in general and was not for its call, which the script passes.
        calls.failed_check(200);
        assert_eq!(not_ok(&calls), (1, 3));
        calls.excused(200);
        assert_eq!(not_ok(&calls), (2, 2));
    }
}
