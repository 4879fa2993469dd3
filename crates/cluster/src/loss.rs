//! What falls due on an agent that was lost: calls that it may have sent, and calls that are never sent.

use brunt_plan::arrivals::Arrivals;
use brunt_plan::injection::UserArrivals;
use brunt_plan::plan::{Load, Plan};
use brunt_plan::profile::Profile;
use brunt_plan::schedule::Schedule;
use brunt_plan::share::Portion;
use brunt_record::SECOND_NS;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::interval::Interval;
use brunt_record::snapshot::{Phase, Snapshot};
use brunt_record::timeline::DueLog;

use crate::takeover::Left;

/// Longer than any run, in nanoseconds: a century.
const LONGEST_NS: u64 = 100 * 365 * 24 * 3600 * SECOND_NS;

/// The timetable of a lost agent from when it fell silent, in seconds as the agent would have reported them.
///
/// In the open model every call of its part is due whether or not the agent lives: the timetable is arithmetic, so the controller
/// knows it too. In the closed model a call is due when a connection is free for it, so nothing more is due within a time. Of a number of
/// requests, those that the agent has not made and nobody else makes are due at the end.
///
/// The agent makes no call that is due at its horizon or later. Whether it has made those before, nobody knows: they are *unknown*,
/// unless it tells of them yet ([`Lost::amend`]). The others are *unsent*.
#[derive(Debug)]
pub(crate) struct Lost {
    machine: u32,
    schedules: Vec<Schedule>,
    /// The same once more, for what is due after the run's end and before the horizon: it may have sent that, too. With when others take over.
    beyond: Vec<(Arrivals, u64)>,
    /// Up to when what it had due is in its own figures, and from when on it has sent nothing, in nanoseconds of the measured part.
    accounted_ns: u64,
    horizon_ns: u64,
    ahead: u64,
    /// Of a number of requests, those that nobody makes.
    unmade: u64,
    /// Whether a number of requests ends the run.
    is_counted: bool,
    /// The next second of the measured part that is to be reported.
    next: u64,
    /// What the agent still reported of that second, and of its drain.
    begun: Snapshot,
    drained: Snapshot,
}

/// The virtual users who were due on a lost agent and never started.
#[derive(Debug, Default)]
pub(crate) struct Missed(Vec<(Portion, u64, u64)>);

impl Missed {
    /// Nobody has this before `until_ns` of the measured part.
    pub(crate) fn add(&mut self, left: &[Left], until_ns: u64) {
        self.0.extend(left.iter().map(|left| (left.portion, left.since_ns, until_ns)));
    }

    /// How many they are in a measured part that has lasted so long, in nanoseconds. Leaves out populations that begin after others: only the lost
    /// agent knew when.
    pub(crate) fn count(&self, plan: &Plan, measured_ns: u64) -> u64 {
        let populations = plan.scenarios.iter().flat_map(|scenarios| scenarios.populations.iter().enumerate());
        let open = populations.filter(|(_, population)| population.is_open() && population.after.is_none());
        let missed = open.flat_map(|(place, population)| {
            self.0.iter().flat_map(move |(portion, since_ns, until_ns)| {
                let until_ns = (*until_ns).min(measured_ns);
                let theirs = portion
                    .shares()
                    .map(move |share| UserArrivals::for_population(population, place, plan.seed, share));
                theirs.map(move |all| all.skip_while(|at| at < since_ns).take_while(|at| *at < until_ns).count() as u64)
            })
        });
        missed.sum()
    }
}

/// What an agent reported last, of a second that it did not finish and of its drain.
#[derive(Debug, Default)]
pub(crate) struct LastSeconds {
    /// How long its measured part was, in nanoseconds.
    pub(crate) measured_ns: u64,
    /// The second that it did not finish.
    pub(crate) begun: Snapshot,
    /// What came after it.
    pub(crate) drained: Snapshot,
    /// From when on it has sent nothing, in nanoseconds of the measured part; none if it has sent nothing after what it reported.
    pub(crate) horizon_ns: Option<u64>,
    /// Calls that it reported as ended and not as due yet: it closed its last second a little late.
    pub(crate) ahead: u64,
}

impl Lost {
    /// The agent with this number, which has reported seconds of the measured part up to `next`, and perhaps something after
    /// them. The run was changed to a profile, if it was. `left` is what it has not accounted for, and others do not take over before `until_ns` (of the measured part), if at all.
    /// None if none of it is due until then: it has reported all of the measured part, or there is no timetable.
    pub(crate) fn new(
        plan: &Plan,
        changed: Option<&Profile>,
        left: &[Left],
        until_ns: u64,
        machine: u32,
        next: u64,
        last: &LastSeconds,
    ) -> Option<Self> {
        let mut lost = Self {
            machine,
            schedules: Vec::new(),
            beyond: Vec::new(),
            accounted_ns: 0,
            horizon_ns: last.horizon_ns.unwrap_or(0),
            ahead: last.ahead,
            unmade: 0,
            is_counted: plan.stop.requests.is_some(),
            next,
            begun: last.begun.clone(),
            drained: last.drained.clone(),
        };
        for left in left {
            lost.add(plan, changed, left, until_ns);
        }
        // Who is to make its requests may decline.
        let has_numbers = plan.load == Load::Closed {} && plan.scenarios.is_none() && lost.is_counted;
        (has_numbers || !lost.schedules.is_empty()).then_some(lost)
    }

    /// The run goes on by this profile, from a time on that is not over.
    pub(crate) fn change(&mut self, profile: &Profile) {
        self.schedules.iter_mut().for_each(|schedule| schedule.change(profile));
        self.beyond.iter_mut().for_each(|(arrivals, _)| arrivals.change(profile));
    }

    /// Nobody does this before `until_ns`, either.
    pub(crate) fn add(&mut self, plan: &Plan, changed: Option<&Profile>, left: &Left, until_ns: u64) {
        let Load::Open { profile, arrivals } = &plan.load else {
            if until_ns == u64::MAX {
                self.unmade += left.numbers.iter().map(|numbers| numbers.count()).sum::<u64>();
            }
            return;
        };
        let until_ns = until_ns.min(plan.duration_ns().unwrap_or(u64::MAX));
        if plan.scenarios.is_some() || left.since_ns >= until_ns {
            return;
        }
        for share in left.portion.shares() {
            let mut of_share = Arrivals::new(profile.clone(), *arrivals, share, plan.seed, plan.stop.requests);
            if let Some(profile) = changed {
                of_share.change(profile);
            }
            of_share.pass(left.since_ns);
            self.beyond.push((of_share.clone(), until_ns));
            self.schedules.push(Schedule::new(of_share, 0, until_ns));
        }
    }

    /// The agent tells of what it had due before `accounted_ns` of the measured part, after it was found lost; and of all that it made, if it
    /// `has_ended`.
    pub(crate) fn amend(&mut self, mut told: Snapshot, accounted_ns: u64, has_ended: bool) {
        if self.schedules.is_empty() {
            // Without a timetable nobody has counted them yet.
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
            let due = self.schedules.iter_mut().map(|schedule| schedule.come_due(end)).sum();
            seconds.push(self.interval(SECOND_NS, Snapshot::with_numbers([(Counter::Due, due)])));
        }
        seconds
    }

    /// When a measured part ends that lasted so long for the others. One of a number of requests ends with the last of them, whoever was to make it.
    pub(crate) fn end_ns(&self, measured_ns: u64, is_whole: bool) -> u64 {
        let numbered = self.beyond.iter().filter(|_| is_whole && self.is_counted);
        numbered.filter_map(|(arrivals, until_ns)| after_last(arrivals, *until_ns)).fold(measured_ns, u64::max)
    }

    /// The rest, once the measured part has ended after so long: what was due, and was never sent or perhaps was. With `is_whole`, all requests of a number of them were
    /// to be made by then.
    pub(crate) fn end(mut self, measured_ns: u64, is_whole: bool) -> Vec<Interval> {
        // The last second is reported with what was never sent in it.
        let mut seconds = self.until(measured_ns.saturating_sub(1));
        let (mut rest, mut by_due) = (Snapshot::default(), DueLog::default());
        // Of these, how many were due after the end of the measured part.
        let mut late = 0;
        for _ in 0..self.ahead {
            // The end of the first calls that are left is known.
            let first = self.schedules.iter_mut().filter(|schedule| schedule.due().is_some());
            let taken = first.min_by_key(|schedule| schedule.due()).and_then(Schedule::take);
            late += u64::from(taken.is_some_and(|(due, _)| due >= measured_ns.max(self.accounted_ns)));
        }
        for schedule in &mut self.schedules {
            schedule.end_at(measured_ns);
            schedule.skip(self.accounted_ns, |_, _| {});
            let (mut unknown, mut unsent) = (0, 0);
            schedule.skip(self.horizon_ns, |due, count| {
                unknown += count;
                // They move no percentile, and mark those that they could have moved.
                rest.times.record_bounds(Timing::Response, 0, count);
                by_due.untold(due, count);
            });
            schedule.drop_overdue(measured_ns, |due, count| {
                unsent += count;
                let waited_ns = measured_ns.saturating_sub(due);
                rest.times.record_bounds(Timing::Response, waited_ns, count);
                by_due.untold(due, count);
            });
            rest.numbers.add(Counter::Unsent, unsent);
            rest.numbers.add(Counter::Unknown, unknown);
            rest.numbers.add(Counter::Due, schedule.come_due(measured_ns));
        }
        if is_whole {
            // When each would have been due nobody knows: they move no percentile, and mark those that they could have moved.
            rest.times.record_bounds(Timing::Response, 0, self.unmade);
            rest.numbers.add(Counter::Due, self.unmade);
            // How many it made until its horizon is not known: calls of the closed model are as fast as the target.
            let counter = if self.horizon_ns > 0 { Counter::Unknown } else { Counter::Unsent };
            rest.numbers.add(counter, self.unmade);
        }
        for (arrivals, _) in &mut self.beyond {
            arrivals.pass(measured_ns.max(self.accounted_ns));
        }
        for _ in 0..late {
            let next = |(arrivals, _): &&mut (Arrivals, u64)| arrivals.clone().next().map(|one| one.due_ns);
            let first = self.beyond.iter_mut().filter(|one| next(one).is_some()).min_by_key(next);
            // It is counted as due since it was taken, and the agent reported how it ended.
            first.and_then(|(arrivals, _)| arrivals.next());
        }
        for (arrivals, until_ns) in &mut self.beyond {
            let calls = arrivals.pass(self.horizon_ns.min(*until_ns));
            // The run had ended, and the agent did not know: they belong to no second of it.
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

/// When the last of these arrivals before `until_ns` is over, in nanoseconds; none if no arrival is due before.
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
mod tests {
    use brunt_plan::arrivals::Spread;
    use brunt_plan::plan::{ProtocolOptions, Stop};
    use brunt_plan::target::Url;
    use proptest::prelude::*;

    use super::*;

    fn plan(profile: &str, arrivals: Spread, stop: Stop) -> Plan {
        let target = Url::parse("http://127.0.0.1/").unwrap().target;
        let load = Load::Open { profile: profile.parse().unwrap(), arrivals };
        Plan { load, stop, seed: 5, ..Plan::of_calls(target, ProtocolOptions::default()) }
    }

    fn left(portion: Portion, since_ns: u64) -> [Left; 1] {
        [Left { portion, numbers: Vec::new(), since_ns }]
    }

    #[test]
    fn what_others_take_over_is_not_unsent() {
        let plan = plan("100", Spread::Uniform, Stop { duration_ns: Some(5 * SECOND_NS), requests: None });
        let half = |index| left(Portion::new(index, 1, 2).unwrap(), SECOND_NS);
        let mut lost = Lost::new(&plan, None, &half(0), 3_500_000_000, 0, 1, &LastSeconds::default()).unwrap();
        // Who was to do the other half declines.
        lost.add(&plan, None, &Left { since_ns: 4 * SECOND_NS, ..half(1)[0].clone() }, u64::MAX);
        let mut seconds = lost.until(4 * SECOND_NS);
        seconds.extend(lost.end(5 * SECOND_NS, true));
        let due: Vec<_> = seconds.iter().map(|one| (one.second, one.snapshot.numbers.get(Counter::Due))).collect();
        assert_eq!(due, [(1, 50), (2, 50), (3, 25), (4, 50)]);
        assert_eq!(seconds.iter().map(|one| one.snapshot.numbers.get(Counter::UnsentLost)).sum::<u64>(), 175);
    }

    proptest! {
        /// What one machine would have had due is due on the agents together, whichever of them is lost and when.
        #[test]
        fn nothing_that_was_due_is_forgotten(
            poisson: bool, workers in prop::collection::vec(1_u32..4, 1..7), lost: prop::sample::Index, next in 0_u64..5,
            length_ns in 4_000_000_000_u64..6_000_000_000,
        ) {
            let spread = if poisson { Spread::Poisson } else { Spread::Uniform };
            let plan = plan("200..700/6s", spread, Stop { duration_ns: Some(length_ns), requests: None });
            let of = workers.iter().sum();
            let lost = lost.index(workers.len());
            let portion = Portion::new(workers[..lost].iter().sum(), workers[lost], of).unwrap();
            let Load::Open { profile, .. } = &plan.load else { unreachable!() };
            let due_in = |from: u64, until: u64| -> u64 {
                let mut due = 0;
                for share in portion.shares() {
                    let mut arrivals = Arrivals::new(profile.clone(), spread, share, plan.seed, None);
                    arrivals.pass(from);
                    due += arrivals.pass(until);
                }
                due
            };
            let left = left(portion, next * SECOND_NS);
            let Some(mut timetable) = Lost::new(&plan, None, &left, u64::MAX, lost as u32, next, &LastSeconds::default()) else {
                prop_assert!(next * SECOND_NS >= length_ns);
                return Ok(());
            };
            let mut seconds = timetable.until(3 * SECOND_NS);
            seconds.extend(timetable.end(length_ns, true));
            for second in &seconds {
                let begin = second.second * SECOND_NS;
                prop_assert_eq!(second.snapshot.numbers.get(Counter::Due), due_in(begin, begin + second.length_ns), "second {}", second.second);
            }
            let total = seconds.iter().fold(Snapshot::default(), |mut total, second| {
                total.merge(&second.snapshot);
                total
            });
            prop_assert_eq!(total.numbers.get(Counter::Due), due_in(next * SECOND_NS, length_ns));
            prop_assert_eq!((total.numbers.get(Counter::Unsent), total.numbers.get(Counter::UnsentLost)), (total.numbers.get(Counter::Due), total.numbers.get(Counter::Due)));
            prop_assert_eq!(total.times.bounds(Timing::Response).count(), total.numbers.get(Counter::Due));
            prop_assert_eq!(seconds.last().map(|last| last.second), Some((length_ns - 1) / SECOND_NS));
            prop_assert!(seconds.iter().all(|second| second.length_ns > 0));
        }
    }

    #[test]
    fn what_an_agent_said_last_is_counted_in_its_second() {
        let plan = plan("100", Spread::Uniform, Stop { duration_ns: Some(3 * SECOND_NS), requests: None });
        let last = LastSeconds {
            measured_ns: 1_250_000_000,
            begun: Snapshot::with_numbers([(Counter::Due, 25)]),
            drained: Snapshot::with_numbers([(Counter::Unfinished, 2)]),
            horizon_ns: None,
            ahead: 0,
        };
        let left = left(Portion::whole(1), last.measured_ns);
        let seconds = Lost::new(&plan, None, &left, u64::MAX, 0, 1, &last).unwrap().end(3 * SECOND_NS, true);
        let told: Vec<_> =
            seconds.iter().map(|one| (one.phase, one.second, one.snapshot.numbers.get(Counter::Due))).collect();
        assert_eq!(told, [(Phase::Measured, 1, 100), (Phase::Measured, 2, 100), (Phase::Drain, 0, 0)]);
        assert_eq!(seconds.iter().map(|one| one.snapshot.numbers.get(Counter::Unsent)).sum::<u64>(), 175);
        assert_eq!(seconds[2].snapshot.numbers.get(Counter::Unfinished), 2);
    }

    #[test]
    fn users_who_come_nowhere_are_counted() {
        let population = |steps: serde_json::Value| serde_json::json!({"scenarios": [], "steps": steps});
        let rate = serde_json::json!([{"kind": "rate", "from": 10.0, "to": 10.0, "seconds": 6.0}]);
        let mut after = population(rate.clone());
        after["after"] = 0.into();
        let closed = population(serde_json::json!([{"kind": "users", "from": 5.0, "to": 5.0, "seconds": 6.0}]));
        let scenarios = serde_json::json!({"files": [], "populations": [population(rate), after, closed]});
        let plan = Plan {
            scenarios: Some(serde_json::from_value(scenarios).unwrap()),
            ..plan("100", Spread::Uniform, Stop::default())
        };
        let mut missed = Missed::default();
        // The users with the numbers 1, 4, 7 and so on, ten of all a second: 22 to 37 in these two seconds.
        missed.add(&left(Portion::new(1, 1, 3).unwrap(), 2 * SECOND_NS), 4 * SECOND_NS);
        assert_eq!((missed.count(&plan, 9 * SECOND_NS), missed.count(&plan, 3 * SECOND_NS)), (6, 3));
        // Nobody else has its last second, either.
        missed.add(&left(Portion::new(1, 1, 3).unwrap(), 5 * SECOND_NS), u64::MAX);
        assert_eq!(missed.count(&plan, 9 * SECOND_NS), 9);
    }

    #[test]
    fn requests_that_nobody_makes_are_due_at_the_end() {
        let mut plan = plan("100", Spread::Uniform, Stop { duration_ns: None, requests: Some(90) });
        plan.load = Load::Closed {};
        let portion = Portion::new(0, 1, 3).unwrap();
        let numbers =
            vec![brunt_plan::share::Numbers { from: 10, ..brunt_plan::share::Numbers::owned_by(portion, Some(90)) }];
        let left = [Left { portion, numbers, since_ns: 2 * SECOND_NS }];
        let of = |until_ns, is_whole, end_ns| {
            let seconds =
                Lost::new(&plan, None, &left, until_ns, 0, 2, &LastSeconds::default()).unwrap().end(end_ns, is_whole);
            let of = |one: &Interval, counter| one.snapshot.numbers.get(counter);
            let sum = |counter| seconds.iter().map(|one| of(one, counter)).sum::<u64>();
            let sums = (sum(Counter::Due), sum(Counter::Unsent), sum(Counter::UnsentLost));
            assert!(seconds.iter().all(|one| one.phase == Phase::Drain || one.length_ns > 0));
            (seconds.iter().map(|one| (one.phase, one.second)).collect::<Vec<_>>(), sums)
        };
        let measured = |second| (Phase::Measured, second);
        assert_eq!(of(u64::MAX, true, 3_500_000_000), (vec![measured(2), measured(3)], (20, 20, 20)));
        // Others make them, or the run ended before they were to be made.
        assert_eq!(of(3 * SECOND_NS, true, 3_500_000_000).1, (0, 0, 0));
        assert_eq!(of(u64::MAX, false, 3_500_000_000).1, (0, 0, 0));
        assert_eq!(of(u64::MAX, true, 2 * SECOND_NS), (vec![(Phase::Drain, 0)], (20, 20, 20)));
    }

    #[test]
    fn a_number_of_requests_of_a_rate_ends_with_the_last_of_them() {
        for spread in [Spread::Uniform, Spread::Poisson] {
            let plan = plan("100", spread, Stop { duration_ns: None, requests: Some(400) });
            let portion = Portion::new(2, 1, 3).unwrap();
            let left = left(portion, SECOND_NS);
            let last = LastSeconds { horizon_ns: Some(2 * SECOND_NS), ..LastSeconds::default() };
            let new = |until_ns| Lost::new(&plan, None, &left, until_ns, 2, 1, &last).unwrap();
            let Load::Open { profile, .. } = &plan.load else { unreachable!() };
            let share = portion.shares().next().unwrap();
            let all: Vec<u64> =
                Arrivals::new(profile.clone(), spread, share, plan.seed, Some(400)).map(|one| one.due_ns).collect();
            let end_ns = new(u64::MAX).end_ns(3 * SECOND_NS, true);
            assert_eq!(end_ns, all.last().unwrap() + 1, "{spread:?}");
            let due: u64 = new(u64::MAX).end(end_ns, true).iter().map(|second| second.snapshot.due()).sum();
            assert_eq!(due, all.iter().filter(|due| **due >= SECOND_NS).count() as u64, "{spread:?}");
            // Others make the rest, or somebody has ended the run.
            assert_eq!(new(2 * SECOND_NS).end_ns(3 * SECOND_NS, true), 3 * SECOND_NS);
            assert_eq!(new(u64::MAX).end_ns(3 * SECOND_NS, false), 3 * SECOND_NS);
        }
    }

    #[test]
    fn what_may_have_been_sent_is_unknown_until_the_agent_tells() {
        let plan = plan("100", Spread::Uniform, Stop { duration_ns: Some(5 * SECOND_NS), requests: None });
        let left = left(Portion::whole(1), SECOND_NS);
        let last = LastSeconds { horizon_ns: Some(3_500_000_000), ..LastSeconds::default() };
        let sums = |mut lost: Lost| {
            let mut seconds = lost.until(3 * SECOND_NS);
            seconds.extend(lost.end(5 * SECOND_NS, false));
            let total = seconds.into_iter().fold(Snapshot::default(), |mut total, second| {
                total.merge(&second.snapshot);
                total
            });
            assert_eq!(total.times.bounds(Timing::Response).count() + total.statuses.total(), total.due());
            let of = |counter| total.numbers.get(counter);
            (total.due(), total.statuses.total(), of(Counter::Unknown), of(Counter::Unsent), of(Counter::UnsentLost))
        };
        let lost = || Lost::new(&plan, None, &left, u64::MAX, 0, 1, &last).unwrap();
        assert_eq!(sums(lost()), (400, 0, 250, 150, 150));
        let told = || {
            let mut told = Snapshot::with_numbers([(Counter::Due, 100)]);
            (0..100).for_each(|_| told.statuses.record(200));
            told
        };
        let mut amended = lost();
        amended.amend(told(), 2 * SECOND_NS, false);
        assert_eq!(sums(amended), (400, 100, 150, 150, 150));
        let mut ended = lost();
        ended.amend(told(), 2 * SECOND_NS, true);
        assert_eq!(sums(ended), (400, 100, 0, 300, 300));
    }

    #[test]
    fn the_closed_model_has_no_timetable() {
        let mut plan = plan("100", Spread::Uniform, Stop { duration_ns: Some(SECOND_NS), requests: None });
        plan.load = Load::Closed {};
        assert!(Lost::new(&plan, None, &left(Portion::whole(1), 0), u64::MAX, 0, 0, &LastSeconds::default()).is_none());
    }
}
