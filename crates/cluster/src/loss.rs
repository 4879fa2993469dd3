//! Calls that fall due on a lost agent: those that it may have sent, and those that are never sent.

use brunt_plan::arrivals::Arrivals;
use brunt_plan::injection::UserArrivals;
use brunt_plan::plan::Plan;
use brunt_plan::profile::Profile;
use brunt_plan::schedule::Schedule;
use brunt_plan::share::Portion;
use brunt_record::SECOND_NS;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::interval::Interval;
use brunt_record::snapshot::{Phase, Snapshot};
use brunt_record::time::Tick;
use brunt_record::timeline::DueLog;

use crate::lost_log_calls::{Fate, LostCalls, Unreported};
use crate::rules::{Rule, is_broken};

/// Longer than any run, in nanoseconds: a century.
const LONGEST_NS: u64 = 100 * 365 * 24 * 3600 * SECOND_NS;

/// The timetable of a lost agent after it fell silent, in seconds as the agent would have reported them.
///
/// In the open model every call of its part is due whether or not the agent lives: the timetable is arithmetic, so the
/// controller knows it too. In the closed model a call is due when a connection is free for it, so no further calls are
/// due by time. Of a number of requests, those that neither the agent nor anybody else makes are due at the end.
///
/// The agent makes no call that is due at its horizon or later. Whether it has made the calls before that is *unknown*,
/// unless it still reports them ([`Lost::amend`]). The others are *unsent*.
#[derive(Debug)]
pub(crate) struct LostTimetable {
    machine: u32,
    schedules: Vec<Schedule>,
    /// A copy for calls due after the run's end and before the horizon, which it may have sent, too.
    beyond: Vec<Arrivals>,
    /// When the run is planned to end, in nanoseconds of the measured part.
    planned_ns: u64,
    /// Its calls of a log.
    log: Option<LostCalls>,
    /// The end of its own account of due calls, and the point from which on it has sent nothing, in nanoseconds of the
    /// measured part.
    accounted_ns: u64,
    horizon_ns: u64,
    ahead: u64,
    /// Requests, of a counted number, that nobody makes.
    unmade: u64,
    /// Calls of the timetable that were due before the end of its account, and that it left out.
    left_out: u64,
    /// Whether a number of requests ends the run.
    is_counted: bool,
    /// The next second of the measured part to report.
    next: u64,
    /// The agent's own figures of that second, and of its drain.
    begun: Snapshot,
    drained: Snapshot,
}

/// What a lost agent had to do and has not accounted for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unaccounted {
    pub(crate) portion: Portion,
    /// The calls that are left, where the plan limits their number in the closed model.
    pub(crate) requests: u64,
    /// Calls that it has reported as due.
    pub(crate) due: u64,
    /// The end of its account in the measured part, in nanoseconds.
    pub(crate) since_ns: u64,
}

impl Unaccounted {
    /// The virtual users who were due on it and never started, in a measured part of this length, in nanoseconds.
    /// Leaves out populations that begin after others: only the lost agent knew when.
    pub(crate) fn users(&self, plan: &Plan, measured_ns: u64) -> u64 {
        let populations = plan.scenarios.iter().flat_map(|scenarios| scenarios.populations.iter().enumerate());
        let open = populations.filter(|(_, population)| population.is_open() && population.after.is_none());
        let missed = open.flat_map(|(place, population)| {
            let theirs = self
                .portion
                .shares()
                .map(move |share| UserArrivals::for_population(population, place, plan.seed, share));
            theirs.map(|all| all.skip_while(|at| *at < self.since_ns).take_while(|at| *at < measured_ns).count() as u64)
        });
        missed.sum()
    }
}

/// An agent's last reports: of a second that it did not finish, and of its drain.
#[derive(Debug, Default)]
pub(crate) struct LastSeconds {
    /// How long its measured part was, in nanoseconds.
    pub(crate) measured_ns: u64,
    /// The second that it did not finish.
    pub(crate) begun: Snapshot,
    /// Its figures after that.
    pub(crate) drained: Snapshot,
    /// The point from which on it has sent nothing, in nanoseconds of the measured part; `None` if it has sent nothing
    /// after its reports.
    pub(crate) horizon_ns: Option<u64>,
    /// Whether it had reported its drain: it makes no more calls.
    pub(crate) is_drained: bool,
    /// Calls that it reported as ended but not yet as due: it closed its last second a little late.
    pub(crate) ahead: u64,
}

impl LostTimetable {
    /// The agent with this number, which has reported seconds of the measured part up to `next`, and perhaps something
    /// after them. The run was changed to `changed`, if it was. `None` with virtual users, and if it has accounted for
    /// everything that its timetable has.
    pub(crate) fn new(
        plan: &Plan,
        changed: Option<&Profile>,
        unaccounted: &Unaccounted,
        machine: u32,
        next: u64,
        last: &LastSeconds,
    ) -> Option<Self> {
        let mut lost = Self { planned_ns: plan.duration_ns().unwrap_or(u64::MAX), ..Self::silent(machine, next, last) };
        lost.is_counted = plan.stop.requests.is_some();
        if plan.profile(Phase::Measured).is_none() {
            lost.unmade = if is_broken(Rule::UnmadeIsDue) { 0 } else { unaccounted.requests };
            return plan.scenarios.is_none().then_some(lost);
        }
        if plan.scenarios.is_some() {
            return None;
        }
        let mut passed = 0;
        for mut of_share in unaccounted.portion.shares().filter_map(|share| plan.arrivals(Phase::Measured, share)) {
            if let Some(profile) = changed {
                of_share.change(profile);
            }
            passed += of_share.pass(unaccounted.since_ns.min(lost.planned_ns));
            lost.beyond.push(of_share.clone());
            lost.schedules.push(Schedule::new(of_share, Tick::EPOCH, Tick::from_ns(lost.planned_ns)));
        }
        // It may have left seconds out, and said later ones.
        lost.left_out = passed.saturating_sub(unaccounted.due);
        if is_broken(Rule::LeftOutIsUnknown) {
            lost.left_out = 0;
        }
        if last.is_drained {
            // It has reported all that it did since.
            (lost.schedules, lost.beyond, lost.horizon_ns) = (Vec::new(), Vec::new(), 0);
            return (lost.left_out > 0).then_some(lost);
        }
        (lost.left_out > 0 || unaccounted.since_ns < lost.planned_ns).then_some(lost)
    }

    /// The agent with this number, which replays a log: its unreported calls of that, including those still to be read.
    pub(crate) fn of_log(plan: &Plan, unreported: Unreported, machine: u32, next: u64, last: &LastSeconds) -> Self {
        let mut lost = Self { log: Some(LostCalls::new(unreported)), ..Self::silent(machine, next, last) };
        // It knows when the run is planned to end.
        lost.horizon_ns = lost.horizon_ns.min(plan.duration_ns().unwrap_or(u64::MAX));
        lost
    }

    fn silent(machine: u32, next: u64, last: &LastSeconds) -> Self {
        Self {
            machine,
            schedules: Vec::new(),
            beyond: Vec::new(),
            planned_ns: u64::MAX,
            log: None,
            accounted_ns: 0,
            horizon_ns: last.horizon_ns.unwrap_or(0),
            ahead: last.ahead,
            unmade: 0,
            left_out: 0,
            is_counted: false,
            next,
            begun: last.begun.clone(),
            drained: last.drained.clone(),
        }
    }

    /// A call of the log is due on it.
    pub(crate) fn call_due(&mut self, due_ns: u64) {
        if let Some(log) = &mut self.log {
            log.due(due_ns);
        }
    }

    /// The point from which on it has sent nothing.
    pub(crate) fn horizon_ns(&self) -> u64 {
        self.horizon_ns
    }

    /// The run goes on by this profile, from a time that is not over.
    pub(crate) fn change(&mut self, profile: &Profile) {
        self.schedules.iter_mut().for_each(|schedule| schedule.change(profile));
        self.beyond.iter_mut().for_each(|arrivals| arrivals.change(profile));
    }

    /// Takes the agent's late report on calls due before `accounted_ns` of the measured part; on all that it made, if
    /// it `has_ended`.
    pub(crate) fn amend(&mut self, mut told: Snapshot, accounted_ns: u64, has_ended: bool) {
        if let Some(log) = &mut self.log {
            log.told = log.told.saturating_add(told.due());
            told.numbers.set(Counter::Due, 0);
        } else if self.schedules.is_empty() {
            // Without a timetable they have not been counted yet.
            self.unmade = self.unmade.saturating_sub(told.due());
        } else {
            told.numbers.set(Counter::Due, 0);
        }
        self.drained.merge(&told);
        self.accounted_ns = self.accounted_ns.max(accounted_ns);
        if has_ended {
            self.horizon_ns = 0;
        }
    }

    /// The seconds that are over when the measured part has lasted so long.
    pub(crate) fn until(&mut self, measured_ns: u64) -> Vec<Interval> {
        let mut seconds = Vec::new();
        while (self.next + 1) * SECOND_NS <= measured_ns {
            let end = (self.next + 1) * SECOND_NS;
            let of_log = self.log.as_mut().map_or(0, |log| log.come_due(end));
            let due =
                of_log + self.schedules.iter_mut().map(|schedule| schedule.come_due(Tick::from_ns(end))).sum::<u64>();
            seconds.push(self.interval(SECOND_NS, Snapshot::with_numbers([(Counter::Due, due)])));
        }
        seconds
    }

    /// The end of the measured part, which lasted `measured_ns` for the others. A number of requests, or a log, ends
    /// with its last call, whichever agent was to make it.
    pub(crate) fn end_ns(&self, measured_ns: u64, is_whole: bool) -> u64 {
        let numbered =
            self.beyond.iter().filter(|_| is_whole && self.is_counted && !is_broken(Rule::NumberedRateEndsWithItsLast));
        let of_log = self.log.as_ref().filter(|_| is_whole).and_then(LostCalls::end_ns);
        let ends = numbered.filter_map(|arrivals| after_last(arrivals, self.planned_ns));
        ends.chain(of_log).fold(measured_ns, u64::max)
    }

    /// The rest, once the measured part has ended after `measured_ns`: calls that were due, and never sent or perhaps
    /// sent. With `is_whole`, all of a number of requests had to be made by then.
    pub(crate) fn end(mut self, measured_ns: u64, is_whole: bool) -> Vec<Interval> {
        // The last second is reported together with the calls never sent in it.
        let mut seconds = self.until(measured_ns.saturating_sub(1));
        let (mut rest, mut by_due) = (Snapshot::default(), DueLog::default());
        // Those of them that were due after the end of the measured part.
        let mut late = 0;
        for _ in 0..self.ahead {
            // The end of the first remaining calls is known.
            let first = self.schedules.iter_mut().filter(|schedule| schedule.due().is_some());
            let taken = first.min_by_key(|schedule| schedule.due()).and_then(Schedule::take);
            late += u64::from(taken.is_some_and(|(due, _)| due.ns() >= measured_ns.max(self.accounted_ns)));
        }
        let end = Tick::from_ns(measured_ns);
        for schedule in &mut self.schedules {
            schedule.end_at(end);
            if !is_broken(Rule::ReportedLateIsKnown) {
                schedule.skip(Tick::from_ns(self.accounted_ns), |_, _| {});
            }
            let (mut unknown, mut unsent) = (0, 0);
            let horizon_ns = if is_broken(Rule::BeforeTheHorizonIsUnknown) { 0 } else { self.horizon_ns };
            schedule.skip(Tick::from_ns(horizon_ns), |due, count| {
                unknown += count;
                // Unknown calls are in no percentile; percentiles that they could change are flagged.
                rest.times.record_bounds(Timing::Response, 0, count);
                by_due.exclude(due, count);
            });
            schedule.drop_overdue(end, |due, count| {
                unsent += count;
                let waited_ns = end.since(due);
                rest.times.record_bounds(Timing::Response, waited_ns, count);
                by_due.exclude(due, count);
            });
            rest.numbers.add(Counter::Unsent, unsent);
            rest.numbers.add(Counter::Unknown, unknown);
            rest.numbers.add(Counter::Due, schedule.come_due(end));
        }
        if let Some(mut log) = self.log.take() {
            self.end_log(&mut log, measured_ns, &mut rest, &mut by_due);
        }
        // It may have sent them.
        rest.times.record_bounds(Timing::Response, 0, self.left_out);
        rest.numbers.add(Counter::Due, self.left_out);
        rest.numbers.add(Counter::Unknown, self.left_out);
        // What it may have made counts, also where the run was ended.
        if is_whole || self.horizon_ns > 0 {
            // Their due times are unknown: they move no percentile, but mark those that they could have moved.
            rest.times.record_bounds(Timing::Response, 0, self.unmade);
            rest.numbers.add(Counter::Due, self.unmade);
            // The number that it made until its horizon is unknown: the pace of calls of the closed model is the
            // target's.
            let counter = if self.horizon_ns > 0 { Counter::Unknown } else { Counter::Unsent };
            rest.numbers.add(counter, self.unmade);
        }
        for arrivals in &mut self.beyond {
            arrivals.pass(measured_ns.max(self.accounted_ns));
        }
        for _ in 0..late {
            let next = |arrivals: &&mut Arrivals| Arrivals::clone(arrivals).next().map(|one| one.due_ns);
            let first = self.beyond.iter_mut().filter(|one| next(one).is_some()).min_by_key(next);
            // It has counted as due since it was taken, and the agent reported its end.
            first.and_then(Iterator::next);
        }
        for arrivals in &mut self.beyond {
            let horizon_ns = if is_broken(Rule::AfterTheEndIsUnknown) { 0 } else { self.horizon_ns };
            let calls = arrivals.pass(horizon_ns.min(self.planned_ns));
            // The run had ended without the agent's knowledge: they belong to no second of it.
            self.drained.times.record_bounds(Timing::Response, 0, calls);
            self.drained.numbers.add(Counter::Due, calls);
            self.drained.numbers.add(Counter::Unknown, calls);
        }
        rest.timeline = by_due.take();
        rest.numbers.set(Counter::UnsentLost, rest.numbers.get(Counter::Unsent));
        let length_ns = measured_ns.saturating_sub(self.next * SECOND_NS);
        let mut drained = std::mem::take(&mut self.drained);
        if length_ns > 0 {
            seconds.push(self.interval(length_ns, rest));
        } else {
            // All seconds are reported: the rest belongs to the drain, since a second of no length does not exist.
            rest.merge(&std::mem::take(&mut self.begun));
            drained.merge(&rest);
        }
        if drained != Snapshot::default() {
            self.next = 0;
            seconds.push(Interval { phase: Phase::Drain, ..self.interval(0, drained) });
        }
        seconds
    }

    /// Calls of a log that were due, and never sent or perhaps sent.
    fn end_log(&mut self, log: &mut LostCalls, measured_ns: u64, rest: &mut Snapshot, by_due: &mut DueLog) {
        rest.numbers.add(Counter::Due, log.come_due(measured_ns));
        // The end of the first remaining calls is known.
        log.told = log.told.saturating_add(self.ahead);
        for (due, count, fate) in log.fates(self.horizon_ns) {
            let (counter, waited_ns) = match fate {
                // Unknown calls are in no percentile; percentiles that they could change are flagged.
                Fate::Unknown => (Counter::Unknown, 0),
                Fate::Unsent => (Counter::Unsent, measured_ns.saturating_sub(due)),
            };
            rest.times.record_bounds(Timing::Response, waited_ns, count);
            by_due.exclude(Tick::from_ns(due), count);
            rest.numbers.add(counter, count);
        }
        // The run had ended, and the agent did not know.
        let beyond = log.beyond(self.horizon_ns);
        self.drained.times.record_bounds(Timing::Response, 0, beyond);
        self.drained.numbers.add(Counter::Due, beyond);
        self.drained.numbers.add(Counter::Unknown, beyond);
    }

    fn interval(&mut self, length_ns: u64, mut snapshot: Snapshot) -> Interval {
        snapshot.merge(&std::mem::take(&mut self.begun));
        let second = self.next;
        self.next += 1;
        Interval {
            worker: self.machine,
            phase: Phase::Measured,
            second,
            length_ns,
            snapshot,
            open_connections: 0,
            in_flight: 0,
            oldest_ns: 0,
        }
    }
}

/// The end of the last of these arrivals before `until_ns`, in nanoseconds; `None` without such an arrival.
fn after_last(arrivals: &Arrivals, until_ns: u64) -> Option<u64> {
    let count = |until_ns: u64| arrivals.clone().pass(until_ns);
    let (mut low, mut high) = (0, until_ns.min(LONGEST_NS));
    let all = Some(count(high)).filter(|all| *all > 0)?;
    while low < high {
        let middle = low.midpoint(high);
        if count(middle) < all {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Some(low)
}

#[cfg(test)]
mod tests;
