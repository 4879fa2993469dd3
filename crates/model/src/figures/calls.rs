//! Figures of the calls that have something in common: a name or a tag.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Figure;
use crate::histogram::{Censored, Histogram};
use crate::messages::{self, Came, Messages};
use crate::outcome::{Failure, OkStatus};
use crate::snapshot::{Failures, Statuses};

/// Figures of some of a run's calls. As for all of them, once the run is over
/// `due = statuses + failures + unfinished + unsent`. All times in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CallFigures {
    /// Calls that were due.
    pub due: u64,
    /// Answers by status.
    pub statuses: Statuses,
    /// Those among them that failed a check, by status.
    pub failed_check: Statuses,
    /// Failures by name, without reasons: these are kept once, over all calls.
    pub failures: Failures,
    /// Calls in flight when the drain ended.
    pub unfinished: u64,
    /// Calls that were due and never sent.
    pub unsent: u64,
    /// From when a call was due to its end.
    pub response: Censored,
    /// From when a call was sent to its end.
    pub service: Censored,
    /// The response times, among all those, of calls that failed.
    pub failed: Histogram,
    /// The response times, among all those, of answers whose status is not ok.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub refused: Histogram,
    /// Their messages, where their answers come as streams of them.
    #[serde(default, skip_serializing_if = "Messages::is_empty")]
    pub messages: Messages,
    /// Bytes of answers, after decryption.
    pub bytes_in: u64,
    /// Bytes of calls, before encryption.
    pub bytes_out: u64,
    /// What statuses are called, where their protocol has names for them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub status_names: BTreeMap<u16, String>,
}

impl CallFigures {
    /// A call was due.
    #[inline]
    pub fn due(&mut self) {
        self.due += 1;
    }

    /// No call came of it.
    pub fn withdrawn(&mut self) {
        self.due = self.due.saturating_sub(1);
    }

    /// It was answered.
    #[inline]
    pub fn answered(&mut self, status: u16, response_ns: u64, service_ns: u64) {
        self.statuses.record(status);
        self.response.known.record(response_ns);
        self.service.known.record(service_ns);
    }

    /// It was answered with a status that is not ok; told after [`CallFigures::answered`].
    pub fn refused(&mut self, response_ns: u64) {
        self.refused.record(response_ns);
    }

    /// It was answered, and its answer failed a check; told once a call, after [`CallFigures::answered`].
    pub fn failed_check(&mut self, status: u16) {
        self.failed_check.record(status);
    }

    /// It failed; `service_ns` if it was sent at all.
    pub fn failed(&mut self, failure: Failure, response_ns: u64, service_ns: Option<u64>) {
        self.failures.count_one(failure);
        self.response.known.record(response_ns);
        self.failed.record(response_ns);
        if let Some(service_ns) = service_ns {
            self.service.known.record(service_ns);
        }
    }

    /// It was in flight when the drain ended, and had taken so long.
    pub fn unfinished(&mut self, response_ns: u64, service_ns: u64) {
        self.unfinished += 1;
        self.response.bounds.record(response_ns);
        self.service.bounds.record(service_ns);
    }

    /// It was due and never sent, and had waited so long.
    pub fn unsent(&mut self, response_ns: u64) {
        self.unsent += 1;
        self.response.bounds.record(response_ns);
    }

    /// A message of it has come.
    #[inline]
    pub fn message(&mut self, came: &Came) {
        self.messages.came(came);
    }

    /// It has ended, and its answer came as messages, or was to.
    pub fn stream_ended(&mut self, ended: &messages::Ended) {
        self.messages.ended(ended);
    }

    /// Bytes that it took.
    #[inline]
    pub fn bytes(&mut self, bytes_in: u64, bytes_out: u64) {
        self.bytes_in += bytes_in;
        self.bytes_out += bytes_out;
    }

    /// A status is called that; where calls of one name come from several services, it may be called several things.
    pub fn name_status(&mut self, status: u16, name: &str) {
        join_name(&mut self.status_names, status, name);
    }

    /// The response times of calls that failed or were answered with a status that is not ok, with lower bounds for those
    /// that had not ended.
    pub fn response_not_ok(&self) -> Censored {
        let mut known = self.failed.clone();
        known.merge(&self.refused);
        Censored { known, bounds: self.response.bounds.clone() }
    }

    /// The response times of all other calls: answers whose status is ok, whatever checks said of them.
    pub fn response_ok(&self) -> Histogram {
        self.response.known.without(&self.response_not_ok().known)
    }

    /// Calls that ended, in whichever way.
    pub fn ended(&self) -> u64 {
        self.statuses.total() + self.failures.total() + self.unfinished + self.unsent
    }

    /// Calls that are not a success: failures, unfinished and unsent ones, and answers whose status is not ok or that
    /// failed a check.
    pub fn not_ok(&self, ok: &OkStatus) -> u64 {
        self.ended() - self.statuses.ok(ok) + self.failed_check.ok(ok)
    }
}

/// What stands between several names of one status.
pub(super) const OR: &str = " or ";
/// The longest of names for one status, in bytes.
const LONGEST_STATUS_NAME: usize = 200;

/// Adds what a status is called to what it is called already.
pub(super) fn join_name(names: &mut BTreeMap<u16, String>, status: u16, name: &str) {
    let known = names.entry(status).or_default();
    if known.is_empty() {
        name.clone_into(known);
    } else if !known.split(OR).any(|known| known == name) && known.len() + name.len() < LONGEST_STATUS_NAME {
        known.push_str(OR);
        known.push_str(name);
    }
}

impl Figure for CallFigures {
    fn is_empty(&self) -> bool {
        // A check can come in an interval after its answer's.
        self.due == 0
            && self.ended() == 0
            && self.failed_check.total() == 0
            && self.bytes_in + self.bytes_out == 0
            && self.messages.is_empty()
    }

    fn merge(&mut self, other: &Self) {
        self.due += other.due;
        self.statuses.merge(&other.statuses);
        self.failed_check.merge(&other.failed_check);
        self.failures.merge(&other.failures);
        self.unfinished += other.unfinished;
        self.unsent += other.unsent;
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.failed.merge(&other.failed);
        self.refused.merge(&other.refused);
        self.messages.merge(&other.messages);
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        for (&status, name) in &other.status_names {
            name.split(OR).for_each(|name| self.name_status(status, name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_may_have_several_names() {
        let (mut some, mut others) = (CallFigures::default(), CallFigures::default());
        some.name_status(1, "Gone");
        for name in ["Busy", "Gone", "Busy"] {
            others.name_status(1, name);
        }
        some.merge(&others);
        assert_eq!(some.status_names, BTreeMap::from([(1, "Gone or Busy".to_owned())]));
        (0..1000).for_each(|n| some.name_status(1, &n.to_string()));
        assert!(some.status_names[&1].len() < 250);
    }

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
        assert_eq!(calls.response.count(), 3, "its latency is kept");
    }
}
