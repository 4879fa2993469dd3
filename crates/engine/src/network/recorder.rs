//! The recorder: writes down outcomes and times of a worker's calls.

mod by_end;
mod by_name;
mod cores;
mod examples;
mod success;
mod timed;

use brunt_plan::plan::ArrivalTimes;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::histogram::Histogram;
use brunt_record::instrument::{self, ArrivalTime, BoundedTime, BoundedTimes, CallTimes};
use brunt_record::outcome::{Failure, OkStatus};
use brunt_record::samples::Samples;
use brunt_record::snapshot::Snapshot;
use brunt_record::time::Tick;
use brunt_record::timeline::DueLog;

use super::CallLimits;
use super::answer_sampler::AnswerSampler;
use super::calls::{Call, CallId, Counted, End};
use super::sampler::{SLOW, Sampler, Timed};
use by_end::ByEnd;
use cores::SampledCores;
use examples::Wanted;
use success::{Judged, Success};
use timed::{Exact, StandIns};

pub(crate) use by_end::Core;
pub(crate) use cores::{CoreAnswer, Durations};

/// The arrival time of the bytes being handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Reading {
    /// No bytes are: this program ends the call.
    #[default]
    Nothing,
    /// No kernel timestamp: the call is recorded with the times of one that has it, if there is one.
    /// Where the kernel never tells (Unix sockets), times are those of reading, and the result says so.
    Untimed,
    /// Known.
    Arrived(Tick),
}

/// Calls of the closed model that came due, and ended well, within the current tick. They enter the timeline together.
#[derive(Debug, Default)]
struct InTick {
    calls: Histogram,
    begins: Tick,
    /// Not after `begins` where calls enter the timeline one by one.
    ends: Tick,
}

impl InTick {
    fn moves_to(&mut self, (begins, ends): (Tick, Tick)) {
        (self.begins, self.ends) = (begins, ends);
    }
}

/// The figures of the interval under way.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) snapshot: Snapshot,
    /// Calls that were sent when due and answered in one piece: their response time, service time and first byte are
    /// one number, recorded once.
    plain: Histogram,
    in_tick: InTick,
    /// Calls of the measured part by when they were due.
    by_due: DueLog,
    /// Calls and messages by when they ended, whenever they were due.
    by_end: ByEnd,
    exact: Exact,
    sampler: Sampler,
    sampled: SampledCores,
    /// When the worker woke to read, where reads are sampled.
    woke_at: Tick,
    stand_ins: StandIns,
    reading: Reading,
    /// The number of reads, which tells messages of one read from those of another.
    reads: u64,
    /// The latest time at which an answer arrived, or was read where the kernel did not tell.
    last_arrival: Tick,
    success: Success,
    /// An excerpt of the answer being handled, where its status is no success, with its call.
    pub(super) excerpt: Option<(CallId, String)>,
    /// The rows of calls, where each call is written down.
    pub(crate) samples: Option<Box<Samples>>,
    /// Which answers are looked at.
    pub(crate) looks: AnswerSampler,
    wanted: Wanted,
    /// Whether calls of the warm-up are written down: in the warm-up itself, for the live view.
    pub(crate) warming_up: bool,
}

impl Recorder {
    /// A recorder for calls that are made on these terms, of which those with an `ok` status are a success.
    pub(super) fn new(terms: CallLimits, ok: OkStatus) -> Self {
        let timed = match terms.arrival_times {
            ArrivalTimes::Read => Timed::None,
            // A call may wait for a connection, and each answer tells when that was free.
            ArrivalTimes::Kernel if terms.is_open => Timed::All,
            ArrivalTimes::Kernel => Timed::Some,
        };
        Self { sampler: Sampler { timed, ..Sampler::default() }, success: Success::with(ok), ..Self::default() }
    }

    /// The measured part begins at `now`.
    pub(crate) fn begin_measured(&mut self, now: Tick) {
        self.warming_up = false;
        self.by_due = DueLog::beginning_at(now);
        // Where each arrival is timed, the target's part of each call is known.
        self.in_tick.moves_to(if self.sampler.timed == Timed::All {
            (Tick::NEVER, Tick::EPOCH)
        } else {
            self.tick_around(now)
        });
    }

    /// The tick around `now`. It lies on one side of the end of the open second, so that its calls count there together.
    fn tick_around(&self, now: Tick) -> (Tick, Tick) {
        let (begins, ends) = self.by_due.tick_around(now);
        let until = self.by_end.until();
        if now < until { (begins, ends.min(until)) } else { (begins.max(until), ends) }
    }

    /// Writes the calls of the current tick into the timeline.
    fn end_tick(&mut self) {
        if !self.in_tick.calls.is_empty() {
            let begins = self.in_tick.begins;
            let calls = self.in_tick.calls.count();
            for counter in [Counter::EndedAnswered, Counter::EndedOk] {
                self.count_end(Core::All, counter, begins, calls);
            }
            self.by_due.answered_all(begins, &self.in_tick.calls);
            self.by_due.completed(begins);
            self.plain.merge(&self.in_tick.calls);
            self.in_tick.calls.clear();
        }
    }

    /// The timeline's point for a call that has ended at `now`, and whose answer arrived, or failure happened, at `at`.
    /// With `failure` it failed; a failure by brunt's own clock says nothing about what the target did then.
    #[inline]
    fn completes<T>(&mut self, call: &Call<T>, failure: Option<Failure>, at: Tick, now: Tick) -> Option<&mut DueLog> {
        if !call.measured {
            return None;
        }
        let InTick { begins, ends, .. } = self.in_tick;
        if begins < ends && now >= ends {
            self.end_tick();
            self.in_tick.moves_to(self.tick_around(now));
        }
        if !matches!(failure, Some(Failure::Timeout | Failure::ConnectTimeout | Failure::Stalled)) {
            self.by_due.completed(at);
        }
        Some(&mut self.by_due)
    }

    /// A message has come: its target does not stand still, whatever calls wait for.
    #[inline]
    pub(super) fn heard(&mut self, now: Tick) {
        if !self.warming_up {
            self.by_due.completed(self.arrival(now));
        }
    }

    /// Returns everything recorded, and begins anew.
    pub(crate) fn take(&mut self) -> Snapshot {
        if let Some(samples) = &mut self.samples {
            samples.hand_over();
        }
        self.sampled.settle(&mut self.snapshot.figures);
        // The numbers of names hold for the whole run.
        let figures = self.snapshot.figures.take();
        let names = std::mem::take(&mut self.snapshot.figures);
        self.end_tick();
        let mut snapshot = std::mem::take(&mut self.snapshot);
        snapshot.figures = figures;
        snapshot.timeline = self.by_due.take();
        self.snapshot.figures = names;
        self.forget_examples();
        self.looks.count(&snapshot);
        snapshot.times.merge_known(Timing::Response, &self.plain);
        snapshot.times.merge_known(Timing::Service, &self.plain);
        snapshot.times.merge_known(Timing::FirstByte, &self.plain);
        self.plain.clear();
        self.exact.hand_over(&mut snapshot.numbers, &mut snapshot.times);
        // The last timed answer stands for those after it, even from the interval before. Without a timed one, where
        // failures alone would stand for all, the times as read stand.
        let is_of_failures = BoundedTimes::of_response(&snapshot.times).cover();
        if let Some((last, is_ok)) = self.stand_ins.get(is_of_failures) {
            let skipped = std::mem::take(&mut self.sampler.skipped);
            instrument::weigh_more(&mut snapshot.times, last, skipped);
            if !is_ok && skipped > 0 {
                snapshot.had_no_success(last, skipped);
            }
        }
        snapshot
    }

    /// Whether to time the next read of a connection whose oldest call was `sent` then.
    #[inline]
    pub(super) fn times_next_read(&mut self, sent: impl FnOnce() -> Option<Tick>) -> bool {
        let woke_at = self.woke_at;
        self.sampler.next(|| sent().map_or(0, |sent| woke_at.since(sent)))
    }

    /// The usual duration of a call, in nanoseconds, where reads are sampled; 0 where it is not known.
    #[inline]
    pub(crate) fn usual_service_ns(&self) -> u64 {
        if self.sampler.timed == Timed::Some { self.sampler.slow_from / SLOW } else { 0 }
    }

    /// Whether [`Self::woke`] is of use.
    #[inline]
    pub(super) fn is_sampling(&self) -> bool {
        self.sampler.one_in > 1
    }

    /// The worker woke at `now`, to read what has come.
    #[inline]
    pub(super) fn woke(&mut self, now: Tick) {
        self.woke_at = now;
    }

    /// Bytes are about to be handled that arrived at `arrived`, if the kernel was asked and told.
    #[inline]
    pub(super) fn reads(&mut self, arrived: Option<Tick>, now: Tick) {
        self.reads = self.reads.wrapping_add(1);
        self.last_arrival = self.last_arrival.max(arrived.unwrap_or(now));
        if arrived.is_some() {
            self.sampled.are_told = true;
            self.sampler.fit(now);
        }
        self.reading = arrived.map_or(Reading::Untimed, Reading::Arrived);
    }

    /// Datagrams are read from now on, whose arrival the kernel does not tell. Where no read was timed before, the times of all calls are those
    /// of reading: the times of failures, which are exact, would stand for all.
    pub(super) fn reads_datagrams(&mut self) {
        if !self.sampled.are_told {
            self.sampler.timed = Timed::None;
        }
    }

    /// The number of the read being handled.
    pub(super) fn reads_so_far(&self) -> u64 {
        self.reads
    }

    /// From now on every read is timed, if any is: answers come as messages, and a gap between one message with a known
    /// arrival and one without would be wrong by the generator's own delay.
    #[inline]
    pub(super) fn times_streams(&mut self) {
        if self.sampler.timed == Timed::Some {
            (self.sampler.timed, self.sampler.one_in) = (Timed::All, 1);
        }
    }

    /// The latest known arrival of an answer.
    pub(crate) fn last_arrival(&self) -> Tick {
        self.last_arrival
    }

    /// When the bytes being handled arrived; `now`, when they were read, if that is not known.
    #[inline]
    pub(super) fn arrival(&self, now: Tick) -> Tick {
        if let Reading::Arrived(at) = self.reading { at.min(now) } else { now }
    }

    /// When a call ended whose end was noticed at `now`: when its answer arrived or its time was over, as far as that
    /// is known.
    #[inline]
    pub(crate) fn ended_at<T>(&self, call: &Call<T>, failure: Option<Failure>, now: Tick) -> Tick {
        match failure {
            _ if !call.was_sent() => now,
            // This program's own clock ended it, at its time.
            Some(Failure::Timeout | Failure::Stalled) => call.expires.min(now),
            _ => self.arrival(now).max(call.sent),
        }
    }

    /// The bytes have been handled.
    #[inline]
    pub(super) fn has_read(&mut self) {
        self.reading = Reading::Nothing;
    }

    /// Whether the call is written down.
    #[inline]
    pub(crate) fn counts<T>(&self, call: &Call<T>) -> bool {
        call.measured || self.warming_up
    }

    /// A time, counted from the beginning of the measured part.
    pub(super) fn measured_at(&self, at: Tick) -> u64 {
        self.by_due.since_beginning(at)
    }

    /// Something went wrong with a connection, and cost no call.
    #[cold]
    pub(crate) fn trouble(&mut self, failure: Failure, reason: &str) {
        self.snapshot.troubles.record(failure, reason);
    }

    /// A call counts as due from now on. A second time changes nothing.
    #[inline]
    pub(super) fn due<T>(&mut self, call: &mut Call<T>) {
        if call.counted != Counted::Already {
            call.counted = Counted::Already;
            if self.counts(call) {
                self.snapshot.numbers.add(Counter::Due, 1);
            }
        }
    }

    /// A call has ended at `now`. The only place where outcomes are written down.
    #[inline]
    pub(super) fn ended<T>(&mut self, call: &mut Call<T>, end: End<'_>, now: Tick) {
        if matches!(end, End::Withdrawn) {
            return;
        }
        self.due(call);
        if !self.counts(call) {
            if let End::Answered(status) = end {
                self.carried(status, now);
            }
            return;
        }
        match end {
            End::Answered(status) => self.answered(call, status, now),
            End::Failed(failure, reason) => self.failed(call, (failure, reason), end.is_absence(), now),
            End::ToldByPeer(failure, reason) => self.failed(call, (failure, reason), false, now),
            End::GivenUp(failure, reason) => {
                self.snapshot.failures.follows(failure);
                self.failed(call, (failure, reason), false, now);
            }
            End::Unfinished => {
                self.snapshot.numbers.add(Counter::Unfinished, 1);
                self.snapshot.times.record_bound(Timing::Response, call.response_ns(now));
                if call.measured {
                    self.by_due.unfinished(call.due, call.response_ns(now), 1);
                }
                if call.was_sent() {
                    self.snapshot.times.record_bound(Timing::Service, call.service_ns(now));
                }
            }
            End::Unsent => {
                self.snapshot.numbers.add(Counter::Unsent, 1);
                self.snapshot.times.record_bound(Timing::Response, call.response_ns(now));
                if call.measured {
                    self.by_due.unsent(call.due, call.response_ns(now), 1);
                }
            }
            End::Withdrawn => {}
        }
    }

    /// Records an answer that was read at `now`. A plain call (sent when due, answered in one piece) takes the short way through its own
    /// counters; any other goes into the distributions at once. What is timed, and with which weight, the sampler has decided.
    #[inline]
    fn answered<T>(&mut self, call: &Call<T>, status: u16, now: Tick) {
        let is_ok = self.success.is_usual(status) || self.unusual(status, call.response_ns(now));
        let snapshot = &mut self.snapshot;
        snapshot.statuses.record(status);
        let is_plain = call.due == call.sent && call.first_byte == now;
        // From due to end; the target's part where every arrival is timed.
        let mut response_ns = call.response_ns(now);
        match self.reading {
            Reading::Untimed => {
                self.sampler.skipped += 1;
                if self.stand_ins.are_none() {
                    self.stand_ins.untimed(Self::times(call, Self::first_byte(call, now, now), now, now), is_ok);
                }
            }
            Reading::Arrived(at) if is_plain => {
                let weight = self.sampler.weight(call.service_ns(now));
                let at = at.clamp(call.sent, now);
                if self.sampler.timed == Timed::All {
                    response_ns = at - call.due;
                }
                self.exact.record(at - call.sent, weight);
                snapshot.times.record_n(Timing::Receiving, now - at, weight);
                if !is_ok {
                    instrument::record_not_ok(&mut snapshot.times, BoundedTime::exactly(at - call.sent), weight);
                }
                if !self.sampler.is_slow {
                    self.stand_ins.timed(Self::times(call, Some(at), at, now), is_ok);
                }
            }
            Reading::Arrived(at) => {
                let times = Self::times(call, Self::first_byte(call, at, now), at, now);
                if self.sampler.timed == Timed::All {
                    response_ns = times.response().value;
                }
                let weight = self.sampler.weight(call.service_ns(now));
                snapshot.arrived(&times, weight);
                if !is_ok {
                    snapshot.had_no_success(&times, weight);
                }
                if !self.sampler.is_slow {
                    self.stand_ins.timed(times, is_ok);
                }
            }
            // A call that ends when it is sent has no answer that could be late.
            Reading::Nothing => {
                let times = Self::times(call, Self::first_byte(call, now, now), now, now);
                snapshot.arrived(&times, 1);
                if !is_ok {
                    snapshot.had_no_success(&times, 1);
                }
            }
        }
        if is_plain {
            if is_ok && call.due >= self.in_tick.begins && now < self.in_tick.ends {
                self.in_tick.calls.record(call.service_ns(now));
                return;
            }
            self.plain.record(call.service_ns(now));
        } else {
            snapshot.times.record(Timing::Response, call.response_ns(now));
            snapshot.times.record(Timing::Service, call.service_ns(now));
            snapshot.times.record(Timing::FirstByte, call.service_ns(call.first_byte.min(now)));
        }
        let at = self.arrival(now);
        self.answered_by_end(Core::All, at, is_ok);
        if !call.measured {
            self.count_end(Core::All, Counter::EndedCarried, at, 1);
        }
        match self.completes(call, None, at, now) {
            Some(by_due) if is_ok => by_due.answered(call.due, response_ns),
            Some(by_due) => by_due.refused(call.due, response_ns),
            None => {}
        }
    }

    /// A call was answered before its request was sent whole.
    #[cold]
    pub(super) fn answered_early<T>(&mut self, call: &Call<T>) {
        self.snapshot.numbers.add(Counter::AnsweredEarly, u64::from(self.counts(call)));
    }

    /// A call of the warm-up was answered in the measured time: it counts in the throughput, and in no other figure.
    #[cold]
    fn carried(&mut self, status: u16, now: Tick) {
        let (at, is_ok) = (self.arrival(now), self.success.judge(status) != Judged::Refused);
        self.answered_by_end(Core::All, at, is_ok);
        self.count_end(Core::All, Counter::EndedCarried, at, 1);
        self.by_due.completed(at);
    }

    /// Whether the next answer, whose status is no success, counts as one all the same.
    pub(super) fn excuses(&mut self, excused: bool) {
        self.success.excuse(excused);
    }

    /// Whether an answer with this status is a success.
    pub(crate) fn is_ok(&self, status: u16) -> bool {
        self.success.holds(status)
    }

    /// An answer has another status than the last success. Returns whether this status is a success.
    #[cold]
    fn unusual(&mut self, status: u16, response_ns: u64) -> bool {
        let judged = self.success.judge(status);
        match judged {
            Judged::Success => {}
            Judged::Excused => self.snapshot.excused.record(status),
            Judged::Refused => self.snapshot.times.record(Timing::Refused, response_ns),
        }
        judged != Judged::Refused
    }

    /// Records the failure of a call that ended at `now`, in the figures by name, by due time and, where arrivals are timed, in the
    /// distributions with bounds.
    fn failed<T>(&mut self, call: &Call<T>, (failure, reason): (Failure, &str), is_absence: bool, now: Tick) {
        let snapshot = &mut self.snapshot;
        let response = call.response_ns(now);
        snapshot.failures.record(failure, reason);
        snapshot.times.record(Timing::Response, response);
        snapshot.times.record(Timing::Failed, response);
        let at = self.ended_at(call, Some(failure), now);
        let times = Self::times(call, None, at, now);
        let response = if call.was_sent() { times.response().value } else { response };
        if let Some(by_due) = self.completes(call, Some(failure), at, now) {
            by_due.failed(call.due, response, is_absence);
        }
        let is_timed = self.sampler.timed != Timed::None;
        let snapshot = &mut self.snapshot;
        if call.was_sent() {
            snapshot.times.record(Timing::Service, call.service_ns(now));
        }
        // Where times are those of reading, failures alone would stand for all calls.
        if !is_timed {
            return;
        }
        if !call.was_sent() {
            instrument::record_never_sent(&mut snapshot.times, response);
            return;
        }
        // As with times as read, only answers have a first byte.
        snapshot.arrived(&times, 1);
        snapshot.had_no_success(&times, 1);
    }

    /// When the first byte of an answer came, which arrived at `arrived` and was read at `now`.
    fn first_byte<T>(call: &Call<T>, arrived: Tick, now: Tick) -> Option<Tick> {
        match call.first_byte {
            Tick::NEVER => None,
            // It came with the last byte.
            first if first == now => Some(arrived),
            first => Some(first.min(now)),
        }
    }

    /// The times of a call whose answer arrived at `arrived` and was read at `now`.
    fn times<T>(call: &Call<T>, first_byte: Option<Tick>, arrived: Tick, now: Tick) -> CallTimes {
        CallTimes {
            due: call.due.ns(),
            ready: call.sent.before(call.own_delay_ns).ns(),
            sent: call.sent.ns(),
            exposed: call.exposed_ns,
            first_byte: first_byte.map(Tick::ns),
            arrived: ArrivalTime::At(arrived.ns()),
            read: now.max(call.sent).ns(),
        }
    }

    /// So many calls that were due have no row, as they were never any of [`Calls`](super::calls::Calls).
    fn never_begun(&mut self, calls: u64) {
        if let Some(samples) = &mut self.samples {
            samples.never_begun(calls);
        }
    }

    /// This many calls, due at about `due`, were never any of [`Calls`](super::calls::Calls) and are not sent by `end`:
    /// no connection was free for them.
    pub(crate) fn unsent_overdue(&mut self, due: Tick, calls: u64, end: Tick) {
        self.never_begun(calls);
        self.snapshot.numbers.add(Counter::Unsent, calls);
        self.snapshot.numbers.add(Counter::WaitedForConnection, calls);
        self.snapshot.times.record_bounds(Timing::Response, end.since(due), calls);
        self.by_due.unsent(due, end.since(due), calls);
    }

    /// This many calls, due at about `due`, were held back until `now` because nobody granted them, and are never sent.
    pub(crate) fn held_overdue(&mut self, due: Tick, calls: u64, measured: bool, now: Tick) {
        self.never_begun(calls);
        self.snapshot.numbers.add(Counter::Unsent, calls);
        self.snapshot.numbers.add(Counter::UnsentHeld, calls);
        self.snapshot.times.record_bounds(Timing::Response, now.since(due), calls);
        if measured {
            self.by_due.exclude(due, calls);
        }
    }

    /// As [`Self::unsent_overdue`], where the target has been silent since `due`: their outcome is unknown.
    pub(crate) fn unfinished_overdue(&mut self, due: Tick, calls: u64, end: Tick) {
        self.never_begun(calls);
        self.snapshot.numbers.add(Counter::Unfinished, calls);
        self.snapshot.numbers.add(Counter::WaitedForConnection, calls);
        self.snapshot.times.record_bounds(Timing::Response, end.since(due), calls);
        self.by_due.unfinished(due, end.since(due), calls);
    }

    /// A call that was never one of [`Calls`](super::calls::Calls) has failed at `now`: the schedule counts it, and no connection
    /// was made for it.
    pub(crate) fn failed_overdue<T>(&mut self, call: &mut Call<T>, failed: End<'_>, now: Tick) {
        self.never_begun(1);
        self.ended(call, failed, now);
    }
}

#[cfg(test)]
mod tests;
