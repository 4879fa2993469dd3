//! What falls due on a lost agent, held against its timetable.

use brunt_plan::arrivals::Spread;
use brunt_plan::plan::{Load, ProtocolOptions, StopRule};
use brunt_plan::target::Url;
use proptest::prelude::*;

use super::*;

fn plan(profile: &str, arrivals: Spread, stop: StopRule) -> Plan {
    let target = Url::parse("http://127.0.0.1/").unwrap().target;
    let load = Load::Open { profile: profile.parse().unwrap(), arrivals };
    Plan { load, stop, seed: 5, ..Plan::of_calls(target, ProtocolOptions::default()) }
}

fn since(portion: Portion, since_ns: u64) -> Unaccounted {
    Unaccounted { portion, requests: 0, due: u64::MAX, since_ns }
}

proptest! {
    /// What one machine would have had due is due on the agents together, whichever of them is lost and when.
    #[test]
    fn nothing_that_was_due_is_forgotten(
        poisson: bool, workers in prop::collection::vec(1_u32..4, 1..7), lost: prop::sample::Index, next in 0_u64..5,
        length_ns in 4_000_000_000_u64..6_000_000_000,
    ) {
        let spread = if poisson { Spread::Poisson } else { Spread::Uniform };
        let plan = plan("200..700/6s", spread, StopRule { duration_ns: Some(length_ns), requests: None });
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
        let left = since(portion, next * SECOND_NS);
        let Some(mut timetable) = LostTimetable::new(&plan, None, &left, lost as u32, next, &LastSeconds::default()) else {
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
    let plan = plan("100", Spread::Uniform, StopRule { duration_ns: Some(3 * SECOND_NS), requests: None });
    let last = LastSeconds {
        is_drained: false,
        measured_ns: 1_250_000_000,
        begun: Snapshot::with_numbers([(Counter::Due, 25)]),
        drained: Snapshot::with_numbers([(Counter::Unfinished, 2)]),
        horizon_ns: None,
        ahead: 0,
    };
    let left = since(Portion::whole(1), last.measured_ns);
    let seconds = LostTimetable::new(&plan, None, &left, 0, 1, &last).unwrap().end(3 * SECOND_NS, true);
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
        ..plan("100", Spread::Uniform, StopRule::default())
    };
    // The users with the numbers 1, 4, 7 and so on, ten of all a second: 22 to 37 in these two seconds.
    let lost = since(Portion::new(1, 1, 3).unwrap(), 2 * SECOND_NS);
    assert_eq!((lost.users(&plan, 4 * SECOND_NS), lost.users(&plan, 3 * SECOND_NS)), (6, 3));
    // The population comes to its end.
    assert_eq!(lost.users(&plan, 9 * SECOND_NS), lost.users(&plan, 6 * SECOND_NS));
}

#[test]
fn requests_that_nobody_makes_are_due_at_the_end() {
    let mut plan = plan("100", Spread::Uniform, StopRule { duration_ns: None, requests: Some(90) });
    plan.load = Load::Closed {};
    let portion = Portion::new(0, 1, 3).unwrap();
    let left = Unaccounted { portion, requests: 20, due: 0, since_ns: 2 * SECOND_NS };
    let of = |is_whole, end_ns| {
        let seconds =
            LostTimetable::new(&plan, None, &left, 0, 2, &LastSeconds::default()).unwrap().end(end_ns, is_whole);
        let of = |one: &Interval, counter| one.snapshot.numbers.get(counter);
        let sum = |counter| seconds.iter().map(|one| of(one, counter)).sum::<u64>();
        let sums = (sum(Counter::Due), sum(Counter::Unsent), sum(Counter::UnsentLost));
        assert!(seconds.iter().all(|one| one.phase == Phase::Drain || one.length_ns > 0));
        (seconds.iter().map(|one| (one.phase, one.second)).collect::<Vec<_>>(), sums)
    };
    let measured = |second| (Phase::Measured, second);
    assert_eq!(of(true, 3_500_000_000), (vec![measured(2), measured(3)], (20, 20, 20)));
    // The run ended before they were to be made.
    assert_eq!(of(false, 3_500_000_000).1, (0, 0, 0));
    assert_eq!(of(true, 2 * SECOND_NS), (vec![(Phase::Drain, 0)], (20, 20, 20)));
}

#[test]
fn a_number_of_requests_of_a_rate_ends_with_the_last_of_them() {
    for spread in [Spread::Uniform, Spread::Poisson] {
        let plan = plan("100", spread, StopRule { duration_ns: None, requests: Some(400) });
        let portion = Portion::new(2, 1, 3).unwrap();
        let left = since(portion, SECOND_NS);
        let last = LastSeconds { horizon_ns: Some(2 * SECOND_NS), ..LastSeconds::default() };
        let new = || LostTimetable::new(&plan, None, &left, 2, 1, &last).unwrap();
        let Load::Open { profile, .. } = &plan.load else { unreachable!() };
        let share = portion.shares().next().unwrap();
        let all: Vec<u64> =
            Arrivals::new(profile.clone(), spread, share, plan.seed, Some(400)).map(|one| one.due_ns).collect();
        let end_ns = new().end_ns(3 * SECOND_NS, true);
        assert_eq!(end_ns, all.last().unwrap() + 1, "{spread:?}");
        let due: u64 = new().end(end_ns, true).iter().map(|second| second.snapshot.due()).sum();
        assert_eq!(due, all.iter().filter(|due| **due >= SECOND_NS).count() as u64, "{spread:?}");
        // Somebody has ended the run.
        assert_eq!(new().end_ns(3 * SECOND_NS, false), 3 * SECOND_NS);
    }
}

#[test]
fn what_may_have_been_sent_is_unknown_until_the_agent_tells() {
    let plan = plan("100", Spread::Uniform, StopRule { duration_ns: Some(5 * SECOND_NS), requests: None });
    let left = since(Portion::whole(1), SECOND_NS);
    let last = LastSeconds { horizon_ns: Some(3_500_000_000), ..LastSeconds::default() };
    let sums = |mut lost: LostTimetable| {
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
    let lost = || LostTimetable::new(&plan, None, &left, 0, 1, &last).unwrap();
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
    let mut plan = plan("100", Spread::Uniform, StopRule { duration_ns: Some(SECOND_NS), requests: None });
    plan.load = Load::Closed {};
    let mut lost =
        LostTimetable::new(&plan, None, &since(Portion::whole(1), 0), 0, 0, &LastSeconds::default()).unwrap();
    assert!(lost.until(SECOND_NS).iter().all(|second| second.snapshot == Snapshot::default()));
    // What it still reports counts.
    lost.amend(Snapshot::with_numbers([(Counter::Due, 3), (Counter::Unfinished, 3)]), SECOND_NS, true);
    let due: u64 = lost.end(SECOND_NS, true).iter().map(|second| second.snapshot.due()).sum();
    assert_eq!(due, 3);
}

#[test]
fn seconds_that_an_agent_left_out_are_unknown() {
    let plan = plan("100", Spread::Uniform, StopRule { duration_ns: Some(4 * SECOND_NS), requests: None });
    for (is_drained, since_ns, expected) in [(false, 2 * SECOND_NS, 60 + 200), (true, 4 * SECOND_NS, 260)] {
        let left = Unaccounted { portion: Portion::whole(1), requests: 0, due: 140, since_ns };
        let horizon_ns = Some(10 * SECOND_NS);
        let last = LastSeconds { horizon_ns, is_drained, ..LastSeconds::default() };
        let lost = LostTimetable::new(&plan, None, &left, 0, since_ns / SECOND_NS, &last).unwrap();
        let seconds = lost.end(4 * SECOND_NS, true);
        let sum = |counter| seconds.iter().map(|second| second.snapshot.numbers.get(counter)).sum::<u64>();
        assert_eq!((sum(Counter::Due), sum(Counter::Unknown)), (expected, expected));
    }
    let all = Unaccounted { portion: Portion::whole(1), requests: 0, due: 400, since_ns: 4 * SECOND_NS };
    let last = LastSeconds { is_drained: true, ..LastSeconds::default() };
    assert!(LostTimetable::new(&plan, None, &all, 0, 4, &last).is_none());
}
