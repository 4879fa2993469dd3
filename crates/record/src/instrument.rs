//! The generator as a measuring instrument: the delays that it adds to the times of calls, and the error that they can
//! cause.
//!
//! A call has five times on one clock, which only grow: *due*, *ready* (a connection is free for it; may be before
//! due), *sent*, *arrived* (the kernel has the answer's last byte), *read* (this program has it). So
//!
//! ```text
//! read − due = waiting for a connection + sending + target + receiving
//!              max(ready − due, 0)        own       own part   own
//!                                         delay                delay
//! sending   = sent − max(due, ready)      the generator was late to send
//! receiving = read − arrived              the generator was late to read
//! ```
//!
//! The figures shown are the *target's part*: waiting for a connection and the target. Three bounds of it are recorded
//! call by call, so that each of them is a distribution that merges:
//!
//! - **value**: `arrived − due − sending`, what is shown. Where the kernel told no time of arrival, the answer counts as
//!   arrived when it was read.
//! - **low**: the same with the earliest time at which the answer can have arrived: the kernel's, or else the last time
//!   at which the worker looked and found nothing.
//! - **high**: `value + exposed`. A call that is sent late finds the target in another state than it would have found in
//!   time. With a queue that is served in order of arrival, the answer to a call in time comes no later than the one to
//!   the late call, and no more than `sending` earlier (D. V. Lindley, "The theory of queues with a single server",
//!   Proceedings of the Cambridge Philosophical Society 48, 1952: work in the queue falls by one second a second). So the
//!   time that the target would have taken lies between `value` and `value + sending`; and where nothing of this run was
//!   with the target for the last part of that delay, the queue was empty as well then, and only the rest, *exposed*,
//!   counts; the engine's `flood/exposure.rs` says how that is known, and how calls that were late together count.
//!
//! Of each call low ≤ value ≤ high, so the quantiles of the three distributions are in this order as well, and each
//! quantile's true value lies between its low and its high one: an exact interval, without any assumption on how own
//! delays and the target's times go together. Merging adds up the distributions, and keeps this true.
//!
//! In a flood the kernel is asked about some calls only. Such a call is recorded with a *weight*: how many calls it stands
//! for. The weights add up to the number of calls. Ordinary calls are chosen whatever their answers; slow ones are all recorded, and
//! stand for themselves alone.

use std::borrow::Cow;

use crate::catalogue::{Counter, Numbers, Timing, Timings};
use crate::histogram::{Censored, Histogram};

/// When an answer arrived, as far as that is known, in nanoseconds since the start of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrivalTime {
    /// The kernel's receive timestamp of the answer's last byte.
    At(u64),
    /// Later than this: the worker looked then, and found no answer.
    After(u64),
}

/// The times of a call that was sent and ended. Nanoseconds since the start of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallTimes {
    /// When it was due.
    pub due: u64,
    /// When a connection was free for it; 0 where one always was.
    pub ready: u64,
    /// When it was sent.
    pub sent: u64,
    /// The longest time, after it was due and had a connection, for which the target may have had other calls of this
    /// run; at most the delay in sending counts. `u64::MAX` where it is not known.
    pub exposed: u64,
    /// When the first byte of its answer arrived: by the kernel where it told, otherwise when it was read; `None` where
    /// no byte came.
    pub first_byte: Option<u64>,
    /// When the last byte arrived.
    pub arrived: ArrivalTime,
    /// When this program had read it.
    pub read: u64,
}

/// The target's part of a call's time, with its bounds. Nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundedTime {
    /// The lower bound.
    pub low: u64,
    /// The value shown.
    pub value: u64,
    /// The upper bound.
    pub high: u64,
}

impl BoundedTime {
    /// A known time.
    pub const fn exactly(ns: u64) -> Self {
        Self { low: ns, value: ns, high: ns }
    }
}

impl CallTimes {
    /// The generator's own delay in sending, in nanoseconds.
    pub fn sending(&self) -> u64 {
        self.sent.saturating_sub(self.due.max(self.ready))
    }

    /// The earliest and the latest possible arrival of the answer. The kernel's clock is another one, so its times are
    /// clamped between sending and reading.
    fn arrival(&self) -> (u64, u64) {
        let read = self.read.max(self.sent);
        match self.arrived {
            ArrivalTime::At(at) => (at.clamp(self.sent, read), at.clamp(self.sent, read)),
            ArrivalTime::After(last_look) => (last_look.clamp(self.sent, read), read),
        }
    }

    /// From due to end: waiting for a connection, and the target.
    pub fn response(&self) -> BoundedTime {
        let (earliest, latest) = self.arrival();
        let value = latest.saturating_sub(self.due).saturating_sub(self.sending());
        BoundedTime {
            low: value.saturating_sub(latest - earliest),
            value,
            high: value.saturating_add(self.exposed.min(self.sending())),
        }
    }

    /// From sent to end. The time of sending is known, so nothing lies above the value.
    pub fn service(&self) -> BoundedTime {
        let (earliest, latest) = self.arrival();
        let value = latest - self.sent;
        BoundedTime { low: earliest - self.sent, value, high: value }
    }
}

/// The timings of a target's part: its lower bound, the value shown, and its upper bound.
#[derive(Debug, Clone, Copy)]
struct PartTimings {
    low: Timing,
    value: Timing,
    high: Timing,
}

const RESPONSE: PartTimings =
    PartTimings { low: Timing::ResponseLow, value: Timing::ResponseValue, high: Timing::ResponseHigh };
const SERVICE: PartTimings =
    PartTimings { low: Timing::ServiceLow, value: Timing::ServiceValue, high: Timing::ServiceHigh };

/// Response times of calls without success: failures, and answers whose status is not ok.
const NOT_OK: PartTimings = PartTimings { low: Timing::NotOkLow, value: Timing::NotOkValue, high: Timing::NotOkHigh };

impl PartTimings {
    fn record(self, times: &mut Timings, part: BoundedTime, weight: u64) {
        times.record_n(self.low, part.low, weight);
        times.record_n(self.value, part.value, weight);
        times.record_n(self.high, part.high, weight);
    }

    fn add(self, times: &mut Timings, exact: &Histogram) {
        for timing in [self.low, self.value, self.high] {
            times.merge_known(timing, exact);
        }
    }
}

/// The target's part of times, with a distribution for each of its bounds. The counts of all three are the same.
#[derive(Debug, Clone, Copy)]
pub struct BoundedTimes<'a> {
    /// The lower bounds.
    pub low: &'a Histogram,
    /// The values shown.
    pub value: &'a Histogram,
    /// The upper bounds.
    pub high: &'a Histogram,
    as_read: &'a Censored,
    times: &'a Timings,
}

impl<'a> BoundedTimes<'a> {
    fn new(times: &'a Timings, parts: PartTimings, as_read: Timing) -> Self {
        Self {
            low: times.known(parts.low),
            value: times.known(parts.value),
            high: times.known(parts.high),
            as_read: times.get(as_read),
            times,
        }
    }

    /// The target's part of response times.
    pub fn of_response(times: &'a Timings) -> Self {
        Self::new(times, RESPONSE, Timing::Response)
    }

    /// The target's part of service times.
    pub fn of_service(times: &'a Timings) -> Self {
        Self::new(times, SERVICE, Timing::Service)
    }

    /// Whether they stand for all calls that were read, and not only for a few.
    pub fn cover(&self) -> bool {
        !self.value.is_empty() && self.value.count() >= self.as_read.known.count() / 2
    }

    /// The times shown: the target's part where it is known for calls in general, otherwise the times as read. Calls
    /// that never ended count with their lower bounds.
    pub fn shown(&self) -> Cow<'a, Censored> {
        if self.cover() { Cow::Owned(self.with_bounds(self.value)) } else { Cow::Borrowed(self.as_read) }
    }

    /// The values shown of calls that ended: of [`BoundedTimes::shown`] the known ones.
    pub fn ended(&self) -> &'a Histogram {
        if self.cover() { self.value } else { &self.as_read.known }
    }

    /// The response times shown of calls without success; `None` if there are none, or if the recording does not tell them
    /// apart.
    pub fn failed(&self) -> Option<Histogram> {
        // A controller asks this of thousands of seconds a second, and most have none.
        if self.are_successes() {
            return None;
        }
        let [_, value, _] = self.by_success();
        (!value.failed.is_empty()).then_some(value.failed)
    }

    /// Whether nothing was recorded of calls without success.
    fn are_successes(&self) -> bool {
        let timings = [NOT_OK.low, NOT_OK.value, NOT_OK.high, Timing::Failed, Timing::Refused];
        timings.into_iter().all(|timing| self.times.known(timing).is_empty())
    }

    /// Whether [`BoundedTimes::ended`] are all there is: no call is without success, and all have ended.
    pub fn are_all_known(&self) -> bool {
        self.are_successes() && self.as_read.bounds.is_empty()
    }

    /// The three sides of response times, with calls without success apart. Where it was not recorded which these are,
    /// they stand among the others.
    fn by_success(&self) -> [Censored; 3] {
        let not_ok = [NOT_OK.low, NOT_OK.value, NOT_OK.high].map(|timing| self.times.known(timing));
        let all = if self.cover() { [self.low, self.value, self.high] } else { [&self.as_read.known; 3] };
        let apart = |not_ok: [&Histogram; 3]| {
            let [low, value, high] = [0, 1, 2].map(|side| {
                let (all, failed): (&Histogram, &Histogram) = (all.get(side)?, not_ok.get(side)?);
                let known = all.without(failed);
                let is_whole = known.count() + failed.count() == all.count();
                is_whole.then(|| Censored { known, failed: failed.clone(), bounds: self.as_read.bounds.clone() })
            });
            Some([low?, value?, high?])
        };
        let as_read = not_ok_as_read(self.times);
        let is_of_most = not_ok.iter().all(|times| times.count() >= as_read.count().div_ceil(2));
        let by_part = if is_of_most { apart(not_ok) } else { None };
        let by_reading = || if self.cover() { None } else { apart([&as_read; 3]) };
        by_part.or_else(by_reading).unwrap_or_else(|| all.map(|known| self.with_bounds(known)))
    }

    fn with_bounds(&self, known: &Histogram) -> Censored {
        Censored { known: known.clone(), bounds: self.as_read.bounds.clone(), ..Censored::default() }
    }
}

/// Response times, as read, of calls without success: failures, and answers whose status is not ok.
pub fn not_ok_as_read(times: &Timings) -> Histogram {
    let mut all = times.known(Timing::Failed).clone();
    all.merge(times.known(Timing::Refused));
    all
}

/// Records the end of a call that was sent, answered or failed. It stands for `weight` calls, itself included.
pub fn record(numbers: &mut Numbers, times: &mut Timings, call: &CallTimes, weight: u64) {
    weigh_more(times, call, weight);
    match call.arrived {
        ArrivalTime::At(at) => {
            numbers.add(Counter::ArrivalsTimed, 1);
            times.record_n(Timing::Receiving, call.read.saturating_sub(at), weight);
        }
        ArrivalTime::After(_) => numbers.add(Counter::ArrivalsBounded, 1),
    }
}

/// Lets a recorded call stand for `more` further calls.
pub fn weigh_more(times: &mut Timings, call: &CallTimes, more: u64) {
    if more == 0 {
        return;
    }
    RESPONSE.record(times, call.response(), more);
    SERVICE.record(times, call.service(), more);
    if let Some(first) = call.first_byte {
        let first_byte = first.clamp(call.sent, call.read.max(call.sent)) - call.sent;
        times.record_n(Timing::FirstByteValue, first_byte, more);
    }
}

/// Records that a call had no success; called beside [`record`], [`record_never_sent`] or [`add_exact`], with the same
/// weight.
pub fn record_not_ok(times: &mut Timings, response: BoundedTime, weight: u64) {
    NOT_OK.record(times, response, weight);
}

/// Records a call that failed without being sent, `response_ns` after it was due: none of that is own delay.
pub fn record_never_sent(times: &mut Timings, response_ns: u64) {
    let response = BoundedTime::exactly(response_ns);
    RESPONSE.record(times, response, 1);
    record_not_ok(times, response, 1);
}

/// Adds calls that were sent when due, and answered in one piece whose arrival the kernel told: all their times are
/// one, `arrived − sent`. `exact` has them by weight, `timed` is their number.
pub fn add_exact(numbers: &mut Numbers, times: &mut Timings, exact: &Histogram, timed: u64) {
    RESPONSE.add(times, exact);
    SERVICE.add(times, exact);
    times.merge_known(Timing::FirstByteValue, exact);
    numbers.add(Counter::ArrivalsTimed, timed);
}

/// Times as three distributions: lower bounds, values shown, upper bounds. Calls that never ended count with their
/// lower bounds in all three.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bracket {
    /// The lower bounds.
    pub low: Censored,
    /// The values shown.
    pub value: Censored,
    /// The upper bounds.
    pub high: Censored,
    /// Whether they include own delays in receiving. Without those, the lower bounds allow for delays in sending only.
    pub knows_receiving: bool,
}

impl Bracket {
    /// Times as read, without bounds of their own.
    pub fn as_read(times: &Censored) -> Self {
        Self { low: times.clone(), value: times.clone(), high: times.clone(), knows_receiving: false }
    }

    /// Response times, with calls without success apart.
    pub fn by_success(parts: &BoundedTimes<'_>) -> Self {
        let [low, value, high] = parts.by_success();
        Self { low, value, high, knows_receiving: parts.cover() }
    }

    /// Recorded times: the target's part where it is known for calls in general, otherwise as read.
    pub fn from_parts(parts: &BoundedTimes<'_>) -> Self {
        if !parts.cover() {
            return Self::as_read(parts.as_read);
        }
        Self {
            low: parts.with_bounds(parts.low),
            value: parts.with_bounds(parts.value),
            high: parts.with_bounds(parts.high),
            knows_receiving: true,
        }
    }
}

/// The lower bound on a quantile `q` (0 to 1) of `times` without the delays in them, where both distributions are
/// known, but not their dependence.
///
/// For any s, P(time − delay ≤ x) ≤ P(time ≤ x + s) + P(delay > s); this searches for the best s (G. D. Makarov,
/// "Estimates for the distribution function of a sum of two random variables when the marginal distributions are
/// fixed", Theory of Probability and its Applications 26, 1982).
pub fn least_without(times: &Censored, delays: &Histogram, q: f64) -> Option<u64> {
    /// Quantiles of the delays that are tried as s.
    const TRIED: [f64; 9] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999, 1.0];
    let at = |q: f64| times.quantile(q).map(|value| value.value);
    let least = |delay: u64| {
        let beyond = delays.count_above(delay) as f64 / delays.count().max(1) as f64;
        Some(at(q - beyond).filter(|_| q > beyond)?.saturating_sub(delay))
    };
    let tried = TRIED.iter().filter_map(|share| least(delays.quantile(*share)?));
    let undelayed = if delays.is_empty() { at(q) } else { at(q).map(|_| 0) };
    tried.chain(undelayed).max()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::snapshot::Snapshot;

    fn times(due: u64, ready: u64, sent: u64, arrived: ArrivalTime, read: u64) -> CallTimes {
        CallTimes { due, ready, sent, exposed: u64::MAX, first_byte: Some(read), arrived, read }
    }

    #[test]
    fn own_delays_are_taken_off_and_bounded() {
        // Due at 100, a connection at 150, sent 30 late, arrived at 500, read 40 late.
        let call = times(100, 150, 180, ArrivalTime::At(500), 540);
        assert_eq!(call.sending(), 30);
        assert_eq!(call.response(), BoundedTime { low: 370, value: 370, high: 400 });
        assert_eq!(call.service(), BoundedTime { low: 320, value: 320, high: 320 });
        // The target was empty but for the first 10 of those 30.
        assert_eq!(CallTimes { exposed: 10, ..call }.response(), BoundedTime { low: 370, value: 370, high: 380 });
        // The worker last looked at 420.
        let call = CallTimes { arrived: ArrivalTime::After(420), ..call };
        assert_eq!(call.response(), BoundedTime { low: 290, value: 410, high: 440 });
        assert_eq!(call.service(), BoundedTime { low: 240, value: 360, high: 360 });
        // It had not looked since the call was sent.
        assert_eq!(CallTimes { arrived: ArrivalTime::After(0), ..call }.service().low, 0);
    }

    #[test]
    fn times_of_the_kernel_stay_between_sending_and_reading() {
        let call = |at| times(100, 0, 100, ArrivalTime::At(at), 200);
        assert_eq!(call(90).response(), BoundedTime { low: 0, value: 0, high: 0 });
        assert_eq!(call(250).response(), BoundedTime { low: 100, value: 100, high: 100 });
    }

    #[test]
    fn what_covers_a_few_calls_only_is_not_shown_for_all() {
        let mut snapshot = Snapshot::default();
        snapshot.arrived(&times(0, 0, 0, ArrivalTime::At(1000), 1100), 1);
        snapshot.times.record_n(Timing::Response, 1100, 10);
        let bracket = snapshot.response_bracket();
        assert!(!bracket.knows_receiving);
        assert_eq!(&bracket.value, snapshot.times.get(Timing::Response));
        snapshot.arrived(&times(0, 0, 0, ArrivalTime::At(1000), 1100), 9);
        let bracket = snapshot.response_bracket();
        assert_eq!((bracket.value.count(), bracket.value.quantile(0.5).unwrap().value), (10, 1000));
        let timed = snapshot.numbers.get(Counter::ArrivalsTimed);
        assert_eq!((timed, snapshot.times.known(Timing::Receiving).count()), (2, 10));
    }

    #[test]
    fn delays_that_are_known_only_by_themselves_bound_the_times_from_below() {
        let mut times = Censored::default();
        times.known.record_n(1_000_000, 90);
        times.known.record_n(9_000_000, 10);
        let mut delays = Histogram::new();
        delays.record_n(10_000, 95);
        delays.record_n(8_000_000, 5);
        // Long delays can have made half of the long times: p94 may be long for its delay, p99 is not.
        let least = |q| least_without(&times, &delays, q).unwrap();
        assert!((985_000..=991_000).contains(&least(0.5)), "{}", least(0.5));
        assert!((985_000..=1_010_000).contains(&least(0.94)), "{}", least(0.94));
        assert!((8_980_000..=9_000_000).contains(&least(0.99)), "{}", least(0.99));
        assert_eq!(least_without(&times, &Histogram::new(), 0.99), times.lower().quantile(0.99));
        assert_eq!(least_without(&Censored::default(), &delays, 0.99), None);
    }

    fn call() -> impl Strategy<Value = CallTimes> {
        let span = 0_u64..5_000_000;
        (span.clone(), span.clone(), span.clone(), span.clone(), span, any::<bool>()).prop_map(
            |(due, ready, sending, taken, receiving, is_timed)| {
                let sent = due.max(ready) + sending;
                let at = sent + taken;
                let arrived = if is_timed { ArrivalTime::At(at) } else { ArrivalTime::After(at) };
                CallTimes { due, ready, sent, exposed: u64::MAX, first_byte: Some(at), arrived, read: at + receiving }
            },
        )
    }

    proptest! {
        /// Each quantile of what the target really took lies between the low and the high one, whatever the delays.
        #[test]
        fn the_interval_of_each_quantile_holds_the_truth(calls in prop::collection::vec(call(), 1..200)) {
            let (mut snapshot, mut truth) = (Snapshot::default(), Histogram::new());
            for call in &calls {
                snapshot.arrived(call, 1);
                let (ArrivalTime::At(at) | ArrivalTime::After(at)) = call.arrived;
                truth.record(at - call.due - call.sending());
            }
            let parts = BoundedTimes::of_response(&snapshot.times);
            for q in [0.01, 0.5, 0.9, 0.99, 1.0] {
                let at = |times: &Histogram| times.quantile(q).unwrap();
                let (low, value, high) =
                    (at(parts.low), at(parts.value), at(parts.high));
                prop_assert!(low <= value && value <= high);
                prop_assert!(low <= at(&truth) && at(&truth) <= high, "{q}: {low} {} {high}", at(&truth));
            }
            prop_assert_eq!(snapshot.numbers.get(Counter::ArrivalsTimed) + snapshot.numbers.get(Counter::ArrivalsBounded), calls.len() as u64);
        }

        #[test]
        fn merging_is_recording_everything_in_one(
            a in prop::collection::vec(call(), 0..50), b in prop::collection::vec(call(), 0..50),
        ) {
            let of = |calls: &[CallTimes]| {
                let mut snapshot = Snapshot::default();
                for call in calls {
                    snapshot.arrived(call, 3);
                }
                snapshot
            };
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let whole = of(&[a, b].concat());
            prop_assert_eq!(merged, whole);
        }
    }
}
