//! A worker's record, for one interval and merged over everything.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::addresses::Addresses;
use crate::catalogue::{Counter, Numbers, Timing, Timings};
use crate::counts::{Events, Failures, Statuses};
use crate::examples::Examples;
use crate::figures::Figures;
use crate::histogram::{AtLeast, Censored, Histogram};
use crate::instrument::{self, BoundedTimes, Bracket, CallTimes};
use crate::kinds::Kinds;
use crate::messages::{self, MessageArrival, Messages, StreamEnd};
use crate::outcome::OkStatus;
use crate::redaction::Secrets;
use crate::slowest::Slowest;
use crate::timeline::Timeline;
use crate::watched::Watched;

/// A part of a run, in the order in which they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before the measured part: shown live, in no figure of the result.
    Warmup,
    /// The measured part.
    Measured,
    /// After it: calls that were in flight end. They count in latency and outcomes, not in any rate.
    Drain,
}

/// The shortest interval that tells how a worker fares, in nanoseconds: many turns of the scheduler.
pub const SHORTEST_JUDGED_NS: u64 = 100_000_000;

/// The share of its time for which a saturated worker ran or waited to run.
const SATURATED: f64 = 0.95;

/// Numbers about how the generator itself fared.
const HEALTH: [Counter; 8] = [
    Counter::WorkersWall,
    Counter::WorkersCpu,
    Counter::WorkersSpun,
    Counter::WorkersStarved,
    Counter::WorkersScript,
    Counter::BusiestWorker,
    Counter::MostStarvedWorker,
    Counter::WorkersSaturated,
];

impl Numbers {
    /// One worker's health in an interval: its length, and the times in it in which the worker used a CPU, or was ready
    /// without one; in nanoseconds. Shares of a very short interval mean nothing, and are 0.
    pub fn of_health(wall_ns: u64, cpu_ns: u64, starved_ns: u64) -> Self {
        let judged = wall_ns >= SHORTEST_JUDGED_NS;
        let share = |part: u64| if judged { (part as f64 / wall_ns as f64).min(1.0) } else { 0.0 };
        // Used and waited together: CPU time that a busy machine withholds is missing as well.
        let is_saturated = share(cpu_ns.saturating_add(starved_ns)) >= SATURATED;
        let mut numbers = Self::from_values([
            (Counter::WorkersWall, wall_ns),
            (Counter::WorkersCpu, cpu_ns),
            (Counter::WorkersStarved, starved_ns),
            (Counter::WorkersSaturated, if is_saturated { wall_ns } else { 0 }),
        ]);
        numbers.set_ratio(Counter::BusiestWorker, share(cpu_ns));
        numbers.set_ratio(Counter::MostStarvedWorker, share(starved_ns));
        numbers
    }

    /// Replaces the figures of health by those of another place.
    pub fn set_health(&mut self, of: &Self) {
        for counter in HEALTH {
            self.set(counter, of.get(counter));
        }
    }

    /// The share of the workers' time for which they waited awake, 0 to 1.
    pub fn spun_share(&self) -> f64 {
        let (spun, wall) = (self.get(Counter::WorkersSpun), self.get(Counter::WorkersWall));
        if wall > 0 { (spun as f64 / wall as f64).min(1.0) } else { 0.0 }
    }

    /// The share of the workers' CPU time that was spent in the hooks of a script, 0 to 1.
    pub fn script_share(&self) -> f64 {
        let (script, cpu) = (self.get(Counter::WorkersScript), self.get(Counter::WorkersCpu));
        if cpu > 0 { (script as f64 / cpu as f64).min(1.0) } else { 0.0 }
    }
}

/// Figures of calls over some time: of one worker's interval, or merged over workers, intervals and machines.
///
/// Every call that was due ends in exactly one outcome, so that once a run is over
/// `due = statuses + failures + unfinished + unsent`; see [`Snapshot::ended`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Counts.
    pub numbers: Numbers,
    /// Times.
    pub times: Timings,
    /// Answers by status.
    pub statuses: Statuses,
    /// Answers among them that failed a check, by status.
    pub failed_check: Statuses,
    /// Answers among them that count as ok against their status, as their call or its script said, by status.
    #[serde(default, skip_serializing_if = "Statuses::is_empty")]
    pub excused: Statuses,
    /// Failures by name.
    pub failures: Failures,
    /// Events that protocols count.
    pub events: Events,
    /// Troubles of connections that cost no call: an address that refused while another answered, bytes that nobody
    /// asked for. Not outcomes.
    pub troubles: Failures,
    /// Attempts to connect, by address; empty where each target has one.
    #[serde(default, skip_serializing_if = "Addresses::is_empty")]
    pub addresses: Addresses,
    /// Figures of scenarios by name; empty without scenarios.
    pub figures: Figures,
    /// Outcomes of measured calls, by when they were due.
    pub timeline: Timeline,
    /// Measured calls that were not ok, the first of each ending.
    #[serde(default, skip_serializing_if = "Examples::is_empty")]
    pub examples: Examples,
    /// Measured calls with a trace that were a success and took longest.
    #[serde(default, skip_serializing_if = "Slowest::is_empty")]
    pub slowest: Slowest,
    /// Kinds of successful answers, of those that were sampled.
    #[serde(default, skip_serializing_if = "Kinds::is_empty")]
    pub kinds: Kinds,
    /// Figures watched beside the run; empty unless the plan asks for some.
    #[serde(default, skip_serializing_if = "Watched::is_empty")]
    pub watched: Watched,
}

impl Snapshot {
    /// A snapshot with only these numbers.
    pub fn with_numbers(numbers: impl IntoIterator<Item = (Counter, u64)>) -> Self {
        Self { numbers: Numbers::from_values(numbers), ..Self::default() }
    }

    /// Calls that were due.
    pub const fn due(&self) -> u64 {
        self.numbers.get(Counter::Due)
    }

    /// Calls that ended, in whichever way.
    pub fn ended(&self) -> u64 {
        self.statuses.total() + self.failures.total() + self.numbers.without_end()
    }

    /// Calls that are not a success: failures, unfinished, unsent and unknown ones, and answers whose status is not ok or that
    /// failed a check.
    pub fn not_ok(&self, ok: &OkStatus) -> u64 {
        self.ended().saturating_sub(self.ok(ok))
    }

    /// Answers that are a success: their status is ok or excused, and they failed no check.
    pub fn ok(&self, ok: &OkStatus) -> u64 {
        self.statuses.amended_ok(ok, &self.failed_check, &self.excused)
    }

    /// Response times: the target's part where it is known, otherwise as read. Calls without success stand apart, and
    /// calls that never ended count with their lower bounds.
    pub fn response_times(&self) -> Censored {
        self.response_bracket().value
    }

    /// The response time at a quantile (0 to 1), as [`Snapshot::response_times`] has it.
    pub fn response_quantile(&self, q: f64) -> Option<AtLeast<u64>> {
        let parts = BoundedTimes::of_response(&self.times);
        if parts.are_all_known() {
            return parts.ended().quantile(q).map(AtLeast::exactly);
        }
        self.response_times().quantile(q)
    }

    /// Service times, likewise.
    pub fn service_times(&self) -> Cow<'_, Censored> {
        BoundedTimes::of_service(&self.times).shown()
    }

    /// From sent to the first byte: the target's part where it is known, otherwise as read.
    pub fn first_byte_times(&self) -> &Histogram {
        let (known, as_read) = (self.times.known(Timing::FirstByteValue), self.times.known(Timing::FirstByte));
        if !known.is_empty() && known.count() >= as_read.count() / 2 { known } else { as_read }
    }

    /// Response times with the errors that the generator can have caused, and with calls without success apart.
    pub fn response_bracket(&self) -> Bracket {
        Bracket::by_success(&BoundedTimes::of_response(&self.times))
    }

    /// Service times, likewise.
    pub fn service_bracket(&self) -> Bracket {
        Bracket::from_parts(&BoundedTimes::of_service(&self.times))
    }

    /// Messages of streams.
    pub const fn messages(&self) -> Messages<'_> {
        Messages::new(&self.numbers, &self.times)
    }

    /// A message has come.
    #[inline]
    pub fn came(&mut self, came: &MessageArrival) {
        messages::came(&mut self.numbers, &mut self.times, came);
    }

    /// A call has ended that waited for messages.
    pub fn stream_ended(&mut self, ended: &StreamEnd) {
        messages::ended(&mut self.numbers, &mut self.times, ended);
    }

    /// A call that was sent has ended; see [`instrument::record`].
    pub fn arrived(&mut self, times: &CallTimes, weight: u64) {
        instrument::record(&mut self.numbers, &mut self.times, times, weight);
    }

    /// A call had no success. Call after [`Snapshot::arrived`].
    pub fn had_no_success(&mut self, times: &CallTimes, weight: u64) {
        instrument::record_not_ok(&mut self.times, times.response(), weight);
    }

    /// Counts its answers and messages as ended within the measured time. The engine counts each when it ends; this is for
    /// snapshots that are made by hand, and after which nothing was under way.
    pub fn count_ends(&mut self, ok: &OkStatus) {
        let (is_ok, answered, messages) = (self.ok(ok), self.statuses.total(), self.messages().count());
        self.numbers.set_ends(is_ok, answered, messages);
        self.figures.count_ends(ok);
    }

    /// Takes calls that a check failed out of those that ended with success, once all are known.
    pub fn settle_ends(&mut self) {
        self.numbers.revoke_ended();
        self.figures.settle_ends();
    }

    /// Calls that were under way when the measured time ended: of this part of a run, which is its drain.
    pub fn ended_late(&self) -> u64 {
        self.statuses.total() + self.failures.total() + self.numbers.get(Counter::Unfinished)
    }

    /// Puts [`REDACTED`](crate::redaction::REDACTED) in place of secrets in every text: names, reasons, examples, errors of scripts.
    pub fn hide(&mut self, secrets: &Secrets) {
        if secrets.is_empty() {
            return;
        }
        self.failures.hide(secrets);
        self.troubles.hide(secrets);
        self.events.hide(secrets);
        self.addresses.hide(secrets);
        self.figures.hide(secrets);
        self.examples.hide(secrets);
        self.slowest.hide(secrets);
        self.kinds.hide(secrets);
        self.watched.hide(secrets);
    }

    /// Adds everything that `other` recorded.
    pub fn merge(&mut self, other: &Self) {
        self.merge_totals(other);
        self.figures.merge(&other.figures);
        self.timeline.merge(&other.timeline);
        self.examples.merge(&other.examples);
        self.slowest.merge(&other.slowest);
        self.kinds.merge(&other.kinds);
        self.watched.merge(&other.watched);
    }

    /// Adds everything that `other` recorded, except figures by name and by due time.
    pub fn merge_totals(&mut self, other: &Self) {
        self.numbers.merge(&other.numbers);
        self.times.merge(&other.times);
        self.statuses.merge(&other.statuses);
        self.failed_check.merge(&other.failed_check);
        self.excused.merge(&other.excused);
        self.failures.merge(&other.failures);
        self.events.merge(&other.events);
        self.troubles.merge(&other.troubles);
        self.addresses.merge(&other.addresses);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Failure;

    #[test]
    fn merging_adds_up() {
        let mut a = Snapshot::with_numbers([(Counter::Due, 3), (Counter::Unsent, 1)]);
        a.statuses.record(200);
        a.failures.record(Failure::Protocol, "bad chunk size");
        let mut b = Snapshot::with_numbers([(Counter::Due, 1)]);
        b.failures.record(Failure::Protocol, "bad chunk size");
        b.numbers.set_health(&Numbers::of_health(1_000_000_000, 400_000_000, 10));
        a.merge(&b);
        assert_eq!((a.due(), a.ended()), (4, 4));
        assert_eq!(a.not_ok(&OkStatus::default()), 3);
        assert_eq!(a.failures.reasons(Failure::Protocol), [("bad chunk size", 2)]);
        assert!((a.numbers.ratio(Counter::BusiestWorker) - 0.4).abs() < 1e-9);
    }
}
