use brunt_record::outcome::OkStatus;
use brunt_record::snapshot::Snapshot;
use proptest::prelude::*;

use super::*;

/// A call: whether it is ok, how long it took in ms, whether its check held.
type Call = (bool, u64, bool);

fn snapshot(calls: &[Call]) -> Snapshot {
    let mut snapshot = Snapshot::with_numbers([(Counter::Due, calls.len() as u64)]);
    let figures = &mut snapshot.figures;
    for &(ok, ms, holds) in calls {
        let status = if ok { 200 } else { 500 };
        snapshot.statuses.record(status);
        snapshot.times.record(Timing::Response, ms * 1_000_000);
        let home = figures.requests.named("home");
        home.due();
        home.answered(status, ms * 1_000_000, ms * 1_000_000);
        let check = figures.checks.named("home: fine");
        if holds {
            check.passed(Some("home"), "fine");
        } else {
            check.failed(Some("home"), "fine", brunt_record::figures::Example::default);
        }
    }
    snapshot.count_ends(&OkStatus::default());
    snapshot
}

fn standing<'a>(snapshot: &'a Snapshot, ok: &'a OkStatus, seconds: u64) -> FigureSource<'a> {
    FigureSource {
        total: snapshot,
        measured: snapshot,
        measured_ns: seconds * 1_000_000_000,
        due_ns: seconds * 1_000_000_000,
        ok,
        most_users: 0,
        flood_connections: None,
        plan: Box::leak(Box::new(crate::fixtures::plan())),
    }
}

fn is_beyond(text: &str, calls: &[Call], remaining: f64) -> bool {
    let (snapshot, ok) = (snapshot(calls), OkStatus::default());
    let outlook = Outlook { remaining_calls: remaining, planned_ns: Some(10_000_000_000) };
    standing(&snapshot, &ok, 1).is_beyond_repair(&text.parse().unwrap(), outlook)
}

#[test]
fn a_threshold_is_beyond_repair_when_nothing_can_mend_it() {
    let good = (true, 1, true);
    let bad = (false, 100, false);
    let calls: Vec<_> = std::iter::repeat_n(good, 80).chain(std::iter::repeat_n(bad, 20)).collect();
    for (text, at_100, at_9900) in [
        ("error_rate<1%", true, false),
        ("error_rate<0.2%", true, true),
        ("error_rate<=0.2%", true, false),
        ("error_rate<0.1%", true, true),
        ("home:error_rate<0.1%", true, true),
        ("p95<50ms", true, false),
        ("p95>5ms", false, false),
        ("home:p99.9<50ms", true, true),
        ("mean<10ms", true, false),
        ("mean<25ms", false, false),
        ("max<50ms", true, true),
        ("checks>99%", true, false),
        ("home: fine:checks>99.9%", true, true),
        ("fails<20", true, true),
        ("fails<21", false, false),
        ("timeout==0", false, false),
        ("rate>100", true, false),
        ("rate<5", true, true),
        ("unknown:p99<1ms", false, false),
    ] {
        assert_eq!(is_beyond(text, &calls, 100.0), at_100, "{text} with 100 to come");
        assert_eq!(is_beyond(text, &calls, 9_900.0), at_9900, "{text} with 9900 to come");
    }
    assert!(!is_beyond("error_rate<0.1%", &calls, f64::INFINITY));
}

#[test]
fn the_outlook_follows_the_plan() {
    let mut plan = crate::fixtures::plan();
    let outlook = |plan: &Plan, elapsed_s: u64, due| {
        let measured = Snapshot::with_numbers([(Counter::Due, due)]);
        Outlook::new(plan, elapsed_s * 1_000_000_000, &measured, 0)
    };
    assert_eq!(outlook(&plan, 1, 100).remaining_calls, 1800.0, "twice the pace so far, for nine seconds");
    plan.stop.requests = Some(500);
    assert_eq!(outlook(&plan, 1, 100), Outlook { remaining_calls: 400.0, planned_ns: None });
    plan.stop.requests = None;
    plan.load = Load::Open { profile: "0..100/10s".parse().unwrap(), arrivals: brunt_plan::arrivals::Spread::Uniform };
    let remaining = outlook(&plan, 1, 5).remaining_calls;
    assert!((495.0..650.0).contains(&remaining), "{remaining}");
}

#[test]
fn the_outlook_of_scenarios_follows_their_injection() {
    let population = |steps: &[Step]| Population {
        scenarios: vec![brunt_plan::scenario::Weighted { scenario: "shop".into(), weight: 1.0 }],
        steps: steps.to_vec(),
        ..Population::default()
    };
    let ramp = population(&[
        Step::AtOnce { users: 10.0 },
        Step::NothingFor { seconds: 5.0 },
        Step::Rate { from: 0.0, to: 36.0, seconds: 10.0 },
        Step::Peak { users: 10.0, seconds: 2.0 },
    ]);
    for (seconds, share) in [(0.0, 0.05), (5.0, 0.05), (10.0, 0.275), (15.0, 0.95), (16.0, 0.975), (60.0, 1.0)] {
        assert!((share_done(&ramp, seconds, 0.0) - share).abs() < 1e-9, "{seconds}");
    }
    let users = population(&[Step::Users { from: 10.0, to: 10.0, seconds: 10.0 }]);
    assert!((share_done(&users, 4.0, 0.0) - 0.4).abs() < 1e-9);
    let later = Population { start_seconds: 2.0, ..users.clone() };
    assert_eq!([1.0, 6.0].map(|seconds| share_done(&later, seconds, 0.0)), [0.0, 0.4]);
    let each = population(&[Step::IterationsEach { users: 5.0, iterations: 20.0 }]);
    assert!((share_done(&each, 4.0, 25.0) - 0.25).abs() < 1e-9);
    assert!((iterations_of(&ramp, 0.5) - (10.0 + 180.0 + 10.0)).abs() < 1e-9);
    assert!((iterations_of(&users, 0.5) - 200.0).abs() < 1e-9 && (iterations_of(&each, 0.5) - 100.0).abs() < 1e-9);
    let next = Population { after: Some(0), ..users.clone() };

    let scenarios = Scenarios {
        streamed: Vec::new(),
        files: Vec::new(),
        env: std::collections::BTreeMap::new(),
        base_url: None,
        populations: vec![users, ramp],
        throttle: None,
        smallest_pool: None,
        hosts: brunt_plan::hosts::Hosts::default(),
        trace_ratio: None,
        setup_timeout_ns: None,
        teardown_timeout_ns: None,
        own: Vec::new(),
    };
    let mut measured = Snapshot::with_numbers([(Counter::Due, 100)]);
    assert!(remaining_of(&scenarios, 10_000_000_000, &measured, 8).is_infinite(), "no iteration has ended");
    (0..20).for_each(|_| measured.figures.scenarios.named("shop").iteration(1));
    let remaining = remaining_of(&scenarios, 10_000_000_000, &measured, 8);
    assert!((remaining - 2.0 * (100.0 * 0.725 / 0.275 + 8.0 * 5.0)).abs() < 1e-6, "{remaining}");

    // Twenty iterations of half a second, five calls each: users who come after others may have two hundred yet.
    let mut scenarios = Scenarios { populations: vec![scenarios.populations[0].clone(), next], ..scenarios };
    measured.figures.scenarios = brunt_record::figures::NamedFigures::default();
    (0..20).for_each(|_| measured.figures.scenarios.named("shop").iteration(500_000_000));
    let remaining = remaining_of(&scenarios, 10_000_000_000, &measured, 8);
    assert!((remaining - 2.0 * (8.0 + 200.0) * 5.0).abs() < 1e-6, "{remaining}");
    scenarios.populations[0].steps = vec![Step::IterationsEach { users: 1.0, iterations: 40.0 }];
    let remaining = remaining_of(&scenarios, 10_000_000_000, &measured, 8);
    assert!((remaining - 2.0 * (100.0 + (8.0 + 200.0) * 5.0)).abs() < 1e-6, "{remaining}");
}

#[test]
fn figures_of_a_scripts_own_can_be_beyond_repair() {
    use brunt_record::figures::OwnKind;
    let mut snapshot = snapshot(&[(true, 1, true); 100]);
    for (name, kind, values) in [
        ("coins", OwnKind::Counter, &[4.0; 5][..]),
        ("hits", OwnKind::Rate, &[1.0, 0.0, 0.0, 0.0, 1.0]),
        ("basket", OwnKind::Trend, &[10.0, 10.0, 10.0, 10.0, 90.0]),
        ("queue", OwnKind::Gauge, &[4.0, 9.0, 7.0]),
    ] {
        let own = snapshot.figures.own.named(name);
        *own = OwnFigures::new(kind, "");
        (0..20).flat_map(|_| values).enumerate().for_each(|(at, value)| own.record(*value, at as u64));
    }
    let ok = OkStatus::default();
    for (text, at_100, at_9900) in [
        ("coins:sum < 400", true, true),
        ("coins:sum == 399", true, true),
        ("coins:sum < 401", false, false),
        ("coins:sum > 9000", false, false),
        ("coins:rate < 40", true, true),
        ("figure coins:rate < 41", false, false),
        ("coins:count <= 99", true, true),
        ("hits:share < 10%", true, false),
        ("hits:share < 0.3%", true, true),
        ("hits:share > 75%", true, false),
        ("hits:share > 99.7%", true, true),
        ("basket:p95 < 50", true, false),
        ("basket:p99.9 < 50", true, true),
        ("basket:mean < 10", true, false),
        ("basket:max < 90", true, true),
        ("basket:min > 10", true, true),
        ("queue:max < 9", true, true),
        ("queue:last < 7", false, false),
    ] {
        for (remaining, expected) in [(100.0, at_100), (9_900.0, at_9900)] {
            let outlook = Outlook { remaining_calls: remaining, planned_ns: Some(10_000_000_000) };
            let beyond = standing(&snapshot, &ok, 1).is_beyond_repair(&text.parse().unwrap(), outlook);
            assert_eq!(beyond, expected, "{text} with {remaining} to come");
        }
    }
    let outlook = Outlook { remaining_calls: 0.0, planned_ns: None };
    snapshot.numbers.set(Counter::Due, 0);
    assert!(!standing(&snapshot, &ok, 1).is_beyond_repair(&"hits:share < 1%".parse().unwrap(), outlook), "no calls");
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    prop::collection::vec((any::<bool>(), 1_u64..200, any::<bool>()), 1..60)
}

proptest! {
    /// Whatever comes after, what is beyond repair does not hold in the end.
    #[test]
    fn beyond_repair_is_true(before in calls(), after in calls(), limit in 1_u64..100, slack in 0_usize..20) {
        let all = [before.clone(), after.clone()].concat();
        let (end, ok) = (snapshot(&all), OkStatus::default());
        let end = standing(&end, &ok, 10);
        for text in [
            format!("p90<{limit}ms"),
            format!("p50<={limit}ms"),
            format!("home:p75<{limit}ms"),
            format!("mean<{limit}ms"),
            format!("max<{limit}ms"),
            format!("min>{limit}ms"),
            format!("error_rate<={limit}%"),
            format!("home:error_rate<{limit}%"),
            format!("checks>{limit}%"),
            format!("fails<{limit}"),
            format!("rate>{}", limit as f64 / 10.0),
            format!("rate<{}", limit as f64 / 10.0),
            format!("due>={limit}"),
            format!("home:due<={limit}"),
        ] {
            if is_beyond(&text, &before, (after.len() + slack) as f64) {
                let result = end.judge(&text.parse().unwrap());
                prop_assert!(!result.held, "{text} held in the end: {}", result.got);
            }
        }
    }
}
