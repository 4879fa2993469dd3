//! What a worker writes down about its calls.

mod by_name;
mod examples;

use brunt_plan::plan::ArrivalTimes;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::examples::Ended;
use brunt_record::histogram::Histogram;
use brunt_record::instrument::{self, Arrival, CallTimes, Part, Parts};
use brunt_record::outcome::{Failure, OkStatus};
use brunt_record::snapshot::Snapshot;
use brunt_record::timeline::DueLog;

use super::Terms;
use super::call::{Call, Counted, End};
use super::calls::CallId;
use super::deadlines::NEVER;
use super::looks::Looks;
use super::sampler::{SLOW, Sampler, Timed};

/// What is known of the arrival of the bytes that are being handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Reading {
    /// None are: what ends now is ended by this program.
    #[default]
    Nothing,
    /// The kernel was not asked, or told nothing: another call stands for those that they end, if there is one. Where it never
    /// tells (Unix sockets), a result is as read and says so.
    Untimed,
    /// When they did.
    Arrived(u64),
}

/// The figures of the interval under way.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) snapshot: Snapshot,
    /// Calls that were sent when due and whose answer came in one piece: response time, service time and first byte are
    /// one, and are written down once.
    plain: Histogram,
    /// Such calls of the closed model that were due, and ended well, within the current tick.
    in_tick: Histogram,
    /// The current tick, from when to when; empty where calls are written into the timeline one by one.
    tick: (u64, u64),
    /// Calls of the measured part by when they were due.
    by_due: DueLog,
    /// Such calls by the kernel's time of arrival, by weight, and how many they were.
    exact: Histogram,
    exact_calls: u64,
    sampler: Sampler,
    /// When the worker woke to read, where reads are sampled.
    woke_at: u64,
    /// The times of the last answer that was timed by chance, and whether it was a success.
    last_timed: Option<(CallTimes, bool)>,
    /// The times of the first answer as they were read, and whether it was a success, if the kernel told none: it begins to a moment
    /// after it was asked.
    untimed: Option<(CallTimes, bool)>,
    reading: Reading,
    /// Reads so far, so that messages of one are told from those of another.
    reads: u64,
    /// The latest time at which an answer arrived, or was read where the kernel did not tell.
    last_arrival: u64,
    /// Which statuses are a success.
    ok: OkStatus,
    /// The last status that was: it needs no looking up.
    usual: Option<u16>,
    /// Whether the next answer that is no success by its status counts as one.
    excused: bool,
    /// What the answer to a call said that is being handled, where it is no success by its status.
    pub(super) excerpt: Option<(CallId, String)>,
    /// Which answers are looked at.
    pub(crate) looks: Looks,
    /// Ways to end that need no further example in this interval.
    exemplified: Vec<Ended>,
    /// How long a call with success has to take to be asked for its trace, in nanoseconds; [`NEVER`] where none is traced.
    pub(in crate::network) slow_from_ns: u64,
    /// Whether calls of the warm-up are written down: in the warm-up itself, for the live view.
    pub(crate) warming_up: bool,
}

impl Recorder {
    /// A recorder for calls that are made on these terms, of which those with an `ok` status are a success.
    pub(super) fn new(terms: Terms, ok: OkStatus) -> Self {
        let timed = match terms.arrival_times {
            ArrivalTimes::Read => Timed::None,
            // A call may wait for a connection, and each answer says when that was free.
            ArrivalTimes::Kernel if terms.is_open => Timed::All,
            ArrivalTimes::Kernel => Timed::Some,
        };
        Self { sampler: Sampler { timed, ..Sampler::default() }, ok, slow_from_ns: NEVER, ..Self::default() }
    }

    /// The measured part begins at `now`.
    pub(crate) fn begin_measured(&mut self, now: u64) {
        self.warming_up = false;
        self.by_due = DueLog::beginning_at(now);
        // Where each arrival is timed, the target's part of a call is known by itself.
        self.tick = if self.sampler.timed == Timed::All { (NEVER, 0) } else { self.by_due.tick_around(now) };
    }

    /// Writes the calls of the current tick into the timeline.
    fn end_tick(&mut self) {
        if !self.in_tick.is_empty() {
            let (begins, _) = self.tick;
            self.by_due.answered_all(begins, &self.in_tick);
            self.by_due.completed(begins);
            self.plain.merge(&self.in_tick);
            self.in_tick.clear();
        }
    }

    /// A call has ended at `now` whose answer arrived, or whose failure came about, at `at`: its point in the timeline. With `failure` it
    /// failed; one that brunt's own clock ended says nothing of what the target did then.
    #[inline]
    fn completes<T>(&mut self, call: &Call<T>, failure: Option<Failure>, at: u64, now: u64) -> Option<&mut DueLog> {
        if !call.measured {
            return None;
        }
        let (begins, ends) = self.tick;
        if begins < ends && now >= ends {
            self.end_tick();
            self.tick = self.by_due.tick_around(now);
        }
        if !matches!(failure, Some(Failure::Timeout | Failure::ConnectTimeout | Failure::Stalled)) {
            self.by_due.completed(at);
        }
        Some(&mut self.by_due)
    }

    /// Hands over what was written down, and begins anew.
    pub(crate) fn take(&mut self) -> Snapshot {
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
        let exact_calls = std::mem::take(&mut self.exact_calls);
        instrument::add_exact(&mut snapshot.numbers, &mut snapshot.times, &self.exact, exact_calls);
        // The last one that was timed stands for those after it, too, also where that was in the interval before.
        // Where none was, and failures alone would speak for all, those before stand as they were read.
        let is_of_failures = Parts::of_response(&snapshot.times).cover();
        if let Some(last) = self.last_timed.as_ref().or(self.untimed.as_ref().filter(|_| is_of_failures)) {
            let (last, is_ok) = last;
            let skipped = std::mem::take(&mut self.sampler.skipped);
            instrument::weigh_more(&mut snapshot.times, last, skipped);
            if !is_ok && skipped > 0 {
                snapshot.had_no_success(last, skipped);
            }
        }
        self.exact.clear();
        snapshot
    }

    /// Whether the next read is to be timed, of a connection whose oldest call was `sent` then.
    #[inline]
    pub(super) fn times_next_read(&mut self, sent: impl FnOnce() -> Option<u64>) -> bool {
        let woke_at = self.woke_at;
        self.sampler.next(|| sent().map_or(0, |sent| woke_at.saturating_sub(sent)))
    }

    /// What a call usually takes, in nanoseconds, where reads are sampled; 0 where that is not known.
    #[inline]
    pub(crate) fn usual_service_ns(&self) -> u64 {
        if self.sampler.timed == Timed::Some { self.sampler.slow_from / SLOW } else { 0 }
    }

    /// Whether it is of use to be told when the worker woke ([`Self::woke`]).
    #[inline]
    pub(super) fn is_sampling(&self) -> bool {
        self.sampler.one_in > 1
    }

    /// The worker woke at `now`, to read what has come.
    #[inline]
    pub(super) fn woke(&mut self, now: u64) {
        self.woke_at = now;
    }

    /// Bytes are about to be handled that arrived at `arrived`, where the kernel was asked and told.
    #[inline]
    pub(super) fn reads(&mut self, arrived: Option<u64>, now: u64) {
        self.reads = self.reads.wrapping_add(1);
        self.last_arrival = self.last_arrival.max(arrived.unwrap_or(now));
        if arrived.is_some() {
            self.sampler.fit(now);
        }
        self.reading = arrived.map_or(Reading::Untimed, Reading::Arrived);
    }

    /// How many reads there were: the number of the one that is being handled.
    pub(super) fn reads_so_far(&self) -> u64 {
        self.reads
    }

    /// From now on every read is timed, if any is: answers come as messages, and a gap between a message whose arrival the
    /// kernel told and one whose arrival it did not would be off by the generator's own delay.
    #[inline]
    pub(super) fn times_streams(&mut self) {
        if self.sampler.timed == Timed::Some {
            (self.sampler.timed, self.sampler.one_in) = (Timed::All, 1);
        }
    }

    /// The latest time at which an answer arrived, as far as that is known.
    pub(crate) fn last_arrival(&self) -> u64 {
        self.last_arrival
    }

    /// When the bytes arrived that are being handled, read at `now`; as far as that is known.
    #[inline]
    pub(super) fn arrival(&self, now: u64) -> u64 {
        if let Reading::Arrived(at) = self.reading { at.min(now) } else { now }
    }

    /// When a call ended whose end was noticed at `now`: when its answer arrived, or its time was over; as far as that is known.
    #[inline]
    pub(crate) fn ended_at<T>(&self, call: &Call<T>, failure: Option<Failure>, now: u64) -> u64 {
        match failure {
            _ if !call.was_sent() => now,
            // This program's own clock ends it, at its time.
            Some(Failure::Timeout | Failure::Stalled) => call.expires.min(now),
            _ => self.arrival(now).max(call.sent),
        }
    }

    /// They were handled.
    #[inline]
    pub(super) fn has_read(&mut self) {
        self.reading = Reading::Nothing;
    }

    /// Whether the call is written down.
    #[inline]
    pub(crate) fn counts<T>(&self, call: &Call<T>) -> bool {
        call.measured || self.warming_up
    }

    /// A time as one after the measured part's beginning.
    pub(super) fn measured_at(&self, at: u64) -> u64 {
        self.by_due.since_beginning(at)
    }

    /// Something went wrong with a connection, and cost no call.
    #[cold]
    pub(crate) fn trouble(&mut self, failure: Failure, reason: &str) {
        self.snapshot.troubles.record(failure, reason);
    }

    /// A call counts as due from now on. Asked again for the same call, it changes nothing.
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
    pub(super) fn ended<T>(&mut self, call: &mut Call<T>, end: End<'_>, now: u64) {
        if end == End::Withdrawn {
            return;
        }
        self.due(call);
        if !self.counts(call) {
            return;
        }
        match end {
            End::Answered(status) => self.answered(call, status, now),
            End::Failed(failure, reason) => self.failed(call, failure, reason, now),
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

    #[inline]
    fn answered<T>(&mut self, call: &Call<T>, status: u16, now: u64) {
        let is_ok = self.usual == Some(status) || self.unusual(status, call.response_ns(now));
        let snapshot = &mut self.snapshot;
        snapshot.statuses.record(status);
        let is_plain = call.due == call.sent && call.first_byte == now;
        // From due to end; the target's part where every arrival is timed.
        let mut response_ns = call.response_ns(now);
        match self.reading {
            Reading::Untimed => {
                self.sampler.skipped += 1;
                if self.last_timed.is_none() && self.untimed.is_none() {
                    self.untimed = Some((Self::times(call, Self::first_byte(call, now, now), now, now), is_ok));
                }
            }
            Reading::Arrived(at) if is_plain => {
                let weight = self.sampler.weight(call.service_ns(now));
                let at = at.clamp(call.sent, now);
                if self.sampler.timed == Timed::All {
                    response_ns = at - call.due;
                }
                self.exact.record_n(at - call.sent, weight);
                self.exact_calls += 1;
                snapshot.times.record_n(Timing::Receiving, now - at, weight);
                if !is_ok {
                    instrument::record_not_ok(&mut snapshot.times, Part::exactly(at - call.sent), weight);
                }
                if !self.sampler.is_slow {
                    self.last_timed = Some((Self::times(call, Some(at), at, now), is_ok));
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
                    self.last_timed = Some((times, is_ok));
                }
            }
            // What ends when it is sent has no answer that could be late.
            Reading::Nothing => {
                let times = Self::times(call, Self::first_byte(call, now, now), now, now);
                snapshot.arrived(&times, 1);
                if !is_ok {
                    snapshot.had_no_success(&times, 1);
                }
            }
        }
        if is_plain {
            let (begins, ends) = self.tick;
            if is_ok && call.due >= begins && now < ends {
                self.in_tick.record(call.service_ns(now));
                return;
            }
            self.plain.record(call.service_ns(now));
        } else {
            snapshot.times.record(Timing::Response, call.response_ns(now));
            snapshot.times.record(Timing::Service, call.service_ns(now));
            snapshot.times.record(Timing::FirstByte, call.service_ns(call.first_byte.min(now)));
        }
        let at = self.arrival(now);
        match self.completes(call, None, at, now) {
            Some(by_due) if is_ok => by_due.answered(call.due, response_ns),
            Some(by_due) => by_due.refused(call.due, response_ns),
            None => {}
        }
    }

    /// Whether the next answer, whose status is no success, counts as one all the same.
    pub(super) fn excuses(&mut self, excused: bool) {
        self.excused = excused;
    }

    /// Whether an answer with this status is a success.
    pub(crate) fn is_ok(&self, status: u16) -> bool {
        self.usual == Some(status) || self.ok.holds(status)
    }

    /// An answer came with another status than the last success: whether this one is a success.
    #[cold]
    fn unusual(&mut self, status: u16, response_ns: u64) -> bool {
        let is_excused = std::mem::take(&mut self.excused);
        let is_ok = self.ok.holds(status);
        if is_ok {
            self.usual = Some(status);
        } else if is_excused {
            self.snapshot.excused.record(status);
            return true;
        } else {
            self.snapshot.times.record(Timing::Refused, response_ns);
        }
        is_ok
    }

    fn failed<T>(&mut self, call: &Call<T>, failure: Failure, reason: &str, now: u64) {
        let snapshot = &mut self.snapshot;
        let response = call.response_ns(now);
        snapshot.failures.record(failure, reason);
        snapshot.times.record(Timing::Response, response);
        snapshot.times.record(Timing::Failed, response);
        let at = self.ended_at(call, Some(failure), now);
        let times = Self::times(call, None, at, now);
        let response = if call.was_sent() { times.response().value } else { response };
        if let Some(by_due) = self.completes(call, Some(failure), at, now) {
            by_due.failed(call.due, response, failure.is_unreached());
        }
        let snapshot = &mut self.snapshot;
        if !call.was_sent() {
            instrument::record_never_sent(&mut snapshot.times, response);
            return;
        }
        snapshot.times.record(Timing::Service, call.service_ns(now));
        // As in the times as read, only answers have a first byte.
        snapshot.arrived(&times, 1);
        snapshot.had_no_success(&times, 1);
    }

    /// When the first byte of an answer came that arrived at `arrived` and was read at `now`.
    fn first_byte<T>(call: &Call<T>, arrived: u64, now: u64) -> Option<u64> {
        match call.first_byte {
            NEVER => None,
            // It came with the last.
            first if first == now => Some(arrived),
            first => Some(first.min(now)),
        }
    }

    /// The times of a call whose answer arrived at `arrived` and was read at `now`.
    fn times<T>(call: &Call<T>, first_byte: Option<u64>, arrived: u64, now: u64) -> CallTimes {
        CallTimes {
            due: call.due,
            ready: call.sent.saturating_sub(call.late),
            sent: call.sent,
            exposed: call.exposed,
            first_byte,
            arrived: Arrival::At(arrived),
            read: now.max(call.sent),
        }
    }

    /// So many calls that never were any of [`Calls`](super::calls::Calls), due at about `due`, are not sent by `end`: no
    /// connection was free for them.
    pub(crate) fn unsent_overdue(&mut self, due: u64, calls: u64, end: u64) {
        self.snapshot.numbers.add(Counter::Unsent, calls);
        self.snapshot.numbers.add(Counter::WaitedForConnection, calls);
        self.snapshot.times.record_bounds(Timing::Response, end.saturating_sub(due), calls);
        self.by_due.unsent(due, end.saturating_sub(due), calls);
    }

    /// So many calls, due at about `due`, were held back until `now` as nobody had granted them, and are never sent.
    pub(crate) fn held_overdue(&mut self, due: u64, calls: u64, measured: bool, now: u64) {
        self.snapshot.numbers.add(Counter::Unsent, calls);
        self.snapshot.numbers.add(Counter::UnsentHeld, calls);
        self.snapshot.times.record_bounds(Timing::Response, now.saturating_sub(due), calls);
        if measured {
            self.by_due.untold(due, calls);
        }
    }

    /// As [`Self::unsent_overdue`] where the target has said nothing since `due`: nobody knows what would have come of them.
    pub(crate) fn unfinished_overdue(&mut self, due: u64, calls: u64, end: u64) {
        self.snapshot.numbers.add(Counter::Unfinished, calls);
        self.snapshot.numbers.add(Counter::WaitedForConnection, calls);
        self.snapshot.times.record_bounds(Timing::Response, end.saturating_sub(due), calls);
        self.by_due.unfinished(due, end.saturating_sub(due), calls);
    }

    /// A call that never was one of [`Calls`](super::calls::Calls), due at `due`, has failed at `now`: it is counted by the
    /// schedule, and no connection came about for it.
    pub(crate) fn failed_overdue(&mut self, due: u64, measured: bool, failure: Failure, reason: &str, now: u64) {
        let mut call = Call::new((), due, measured, Counted::Already);
        self.ended(&mut call, End::Failed(failure, reason), now);
    }
}

#[cfg(test)]
mod tests;
