use std::ops::ControlFlow;

use brunt_record::figures::FigureByName as _;
use brunt_record::observer::Observer;
use brunt_record::outcome::Failure;
use brunt_record::recording::Ending;
use brunt_record::watched::{WatchedFigure, WatchedUnit};

use super::*;
use crate::abort::{AbortWatch, Reason};
use crate::summary::Summary;

const MS: u64 = 1_000_000;

struct Nobody;

impl Observer for Nobody {
    fn second(&mut self, _second: &Live, _so_far: &RunningTotal<'_>) -> ControlFlow<AbortCause> {
        ControlFlow::Continue(())
    }
}

/// A second of 100 calls: so many of them fail, the others take so long; and so many are open at its end.
#[derive(Debug, Clone, Copy)]
struct Calls {
    ended: u64,
    failed: u64,
    took: u64,
    open: u64,
}

const GOOD: Calls = Calls { ended: 100, failed: 0, took: 5 * MS, open: 1 };

fn plan(guards: &[&str]) -> Plan {
    Plan { guards: guards.iter().map(|guard| guard.parse().unwrap()).collect(), ..crate::fixtures::plan() }
}

fn live(phase: Phase, ended_s: u64, calls: Calls) -> Live {
    let mut snapshot = Snapshot::with_numbers([(Counter::Due, calls.ended)]);
    for call in 0..calls.ended {
        snapshot.times.record(Timing::Response, calls.took);
        if call < calls.failed {
            snapshot.times.record(Timing::Failed, calls.took);
            snapshot.failures.record(Failure::Closed, "gone");
        } else {
            snapshot.statuses.record(200);
        }
    }
    snapshot.count_ends(&brunt_record::outcome::OkStatus::default());
    Live {
        phase,
        elapsed_ns: ended_s * SECOND_NS,
        planned_ns: Some(10 * SECOND_NS),
        in_log: None,
        planned_requests: None,
        length_ns: SECOND_NS,
        snapshot,
        open_connections: 1,
        in_flight: calls.open,
        waiting: 0,
        oldest_ns: 0,
        users: None,
        changes: Vec::new(),
        agents: Vec::new(),
    }
}

/// After which second the run was aborted, and why.
fn fired(guards: &[&str], phase: Phase, seconds: &[Calls]) -> Option<(usize, String)> {
    let (plan, mut nobody) = (plan(guards), Nobody);
    let mut watch = AbortWatch::new(&plan, &mut nobody);
    let mut measured = Snapshot::default();
    seconds.iter().enumerate().find_map(|(second, calls)| {
        let live = live(phase, second as u64 + 1, *calls);
        measured.merge(&live.snapshot);
        let measured_ns = (second as u64 + 1) * SECOND_NS;
        let so_far = RunningTotal { measured: &measured, measured_ns, users: 0, most_users: 0 };
        match watch.second(&live, &so_far) {
            ControlFlow::Break(cause) => Some((second + 1, Reason(&cause).to_string())),
            ControlFlow::Continue(()) => None,
        }
    })
}

#[test]
fn a_guard_fires_with_the_second_that_fills_its_window() {
    let slow = Calls { took: 900 * MS, ..GOOD };
    let (second, why) = fired(&["p50>500ms for 3s"], Phase::Measured, &[GOOD, GOOD, GOOD, slow, slow, slow]).unwrap();
    assert_eq!(second, 5, "more than half of three seconds");
    assert_eq!(why, "the guard 'p50>500ms for 3s' fired at 0:05: p50 was 900.0ms over 3s, with 1 call open");
    let early = fired(&["p50>500ms for 3s"], Phase::Measured, &[slow, slow, slow]).unwrap();
    assert_eq!(early.0, 3, "not before there are three seconds");
    assert_eq!(fired(&["p50>500ms for 3s"], Phase::Measured, &[slow, GOOD, GOOD, GOOD]), None);
}

#[test]
fn what_came_before_the_window_is_forgotten() {
    let failing = Calls { failed: 20, ..GOOD };
    let long_and_good = [[GOOD; 30].as_slice(), &[failing; 2]].concat();
    assert_eq!(fired(&["error_rate>5% for 2s"], Phase::Measured, &long_and_good).map(|(at, _)| at), Some(31));
    let bad_once = [[failing].as_slice(), &[GOOD; 30]].concat();
    assert_eq!(fired(&["error_rate>5% for 5s"], Phase::Measured, &bad_once), None);
}

#[test]
fn answers_that_fail_a_check_or_are_excused_count_as_they_do_in_the_run() {
    let plan = plan(&["error_rate>5% for 1s"]);
    let fires = |answered: fn(&mut Snapshot)| {
        let mut snapshot = Snapshot::with_numbers([(Counter::Due, 1)]);
        answered(&mut snapshot);
        let live = Live { snapshot: snapshot.clone(), ..live(Phase::Measured, 1, GOOD) };
        let so_far = RunningTotal { measured: &snapshot, measured_ns: SECOND_NS, users: 0, most_users: 0 };
        Guards::new(&plan).second(&live, &so_far).is_some()
    };
    assert!(!fires(|snapshot| snapshot.statuses.record(200)));
    assert!(fires(|snapshot| snapshot.statuses.record(404)));
    assert!(fires(|snapshot| {
        snapshot.statuses.record(200);
        snapshot.failed_check.record(200);
    }));
    assert!(!fires(|snapshot| {
        snapshot.statuses.record(404);
        snapshot.excused.record(404);
    }));
}

#[test]
fn a_target_that_stands_still_is_slow() {
    let still = |open| Calls { ended: 0, open, ..GOOD };
    let frozen = [GOOD, GOOD, still(100), still(200), still(300)];
    let (second, why) = fired(&["p99>1500ms for 5s"], Phase::Measured, &frozen).unwrap();
    assert_eq!(second, 5);
    assert!(why.contains("p99 was ≥2.00s over 5s, with 300 calls open"), "{why}");
    // One call that is open while others end says nothing.
    assert_eq!(fired(&["p99>100ms for 2s"], Phase::Measured, &[GOOD; 5]), None);
    // Nothing but silence from the first second on.
    let (second, _) = fired(&["p50>1500ms for 3s"], Phase::Measured, &[still(100); 5]).unwrap();
    assert_eq!(second, 3);
    // Nor do calls that time out say anything of how soon others are answered.
    let timed_out = Calls { ended: 100, failed: 100, took: 10 * SECOND_NS, open: 100 };
    let (_, why) = fired(&["p99>4s for 2s"], Phase::Measured, &[timed_out; 2]).unwrap();
    assert!(why.contains("p99 was ≥10.00s over 2s"), "{why}");
    assert_eq!(fired(&["p99>11s for 2s"], Phase::Measured, &[timed_out; 2]), None);
}

/// A target that answers nothing fails no call before its timeout, and is out all the same.
#[test]
fn a_target_that_falls_silent_is_out() {
    let plan = plan(&["error_rate>50% for 3s"]);
    let fires = |before: u64, seconds: u64, oldest_s: u64| {
        let mut guards = Guards::new(&plan);
        let so_far = RunningTotal { measured: &Snapshot::default(), measured_ns: SECOND_NS, users: 0, most_users: 0 };
        let answered = (0..before).map(|_| (GOOD, 0));
        let silent =
            (1..=seconds).map(|second| (Calls { ended: 0, open: 100 * second, ..GOOD }, oldest_s * second / seconds));
        answered.chain(silent).enumerate().find_map(|(nth, (calls, oldest_s))| {
            let live = live(Phase::Measured, nth as u64 + 1, calls);
            guards
                .second(&Live { oldest_ns: oldest_s * SECOND_NS, ..live }, &so_far)
                .map(|fired| Reason(&fired.cause()).to_string())
        })
    };
    let why = fires(5, 3, 3).unwrap();
    assert!(
        why.ends_with("error_rate was 100%, as nothing was answered for 3.00s, over 3s, with 300 calls open"),
        "{why}"
    );
    assert_eq!(fires(5, 2, 2), None, "not before the window is full of it");
    assert_eq!(fires(0, 9, 9), None, "a target that has never answered may be as slow as that");
    assert_eq!(fires(5, 9, 0), None, "nothing was asked of it");
}

#[test]
fn the_warm_up_is_guarded_and_the_drain_is_not() {
    let slow = Calls { took: 900 * MS, ..GOOD };
    let (_, why) = fired(&["p50>500ms for 2s"], Phase::Warmup, &[slow; 3]).unwrap();
    assert!(why.contains("fired 0:02 into the warm-up"), "{why}");
    assert_eq!(fired(&["p50>500ms for 2s"], Phase::Drain, &[slow; 3]), None);
}

/// Nothing is due in a pause: few answers are no sign of the target. What holds is found once the window is full again.
#[test]
fn no_second_of_a_pause_is_judged() {
    let plan = plan(&["rate<10 for 2s"]);
    let none = Calls { ended: 0, ..GOOD };
    let fires = |resumed_ms: Option<i64>, after: &[Calls]| {
        let mut nobody = Nobody;
        let mut watch = AbortWatch::new(&plan, &mut nobody);
        let change = |at_ms: i64, action| Change { at_ns: at_ms * MS as i64, action, by: Author::Ctl };
        let seconds = [[GOOD; 2].as_slice(), &[none; 4], after].concat();
        seconds.into_iter().enumerate().find_map(|(nth, calls)| {
            let mut live = live(Phase::Measured, nth as u64 + 1, calls);
            // Each is told with the second before it takes effect.
            live.changes = match nth {
                1 => vec![change(2_050, Action::Pause)],
                4 => resumed_ms.map(|at_ms| change(at_ms, Action::Resume)).into_iter().collect(),
                _ => Vec::new(),
            };
            let snapshot = live.snapshot.clone();
            let so_far = RunningTotal { measured: &snapshot, measured_ns: SECOND_NS, users: 0, most_users: 0 };
            watch.second(&live, &so_far).is_break().then_some(nth + 1)
        })
    };
    assert_eq!(fires(None, &[none; 20]), None, "paused to the end");
    assert_eq!(fires(Some(5_500), &[GOOD; 9]), None);
    assert_eq!(fires(Some(5_500), &[none; 9]), Some(8), "the first two seconds that were not paused");
}

#[test]
fn a_guard_that_fired_or_had_nothing_to_watch_has_failed() {
    let results = |guard: &str, ending: Ending| {
        let (_, run) = crate::fixtures::run();
        let summary = Summary::new(plan(&[guard]), brunt_record::recording::Recording { ending, ..run });
        let result =
            summary.thresholds.iter().find(|result| matches!(result.condition, JudgedCondition::Guard(_))).unwrap();
        (result.got.to_string(), result.held)
    };
    let mut cause = AbortCause::Guard {
        place: 0,
        guard: "p99>1s for 2s".to_owned(),
        phase: Phase::Measured,
        elapsed_ns: 2 * SECOND_NS,
        found: "p99 was 2.00s over 2s, with 3 calls open".to_owned(),
    };
    let fired = results("p99>1s for 2s", Ending::Aborted(cause.clone()));
    assert_eq!(fired, ("fired at 0:02: p99 was 2.00s over 2s, with 3 calls open".to_owned(), false));
    // A threshold before it may have ended the run, or another guard of the same words.
    let AbortCause::Guard { place, .. } = &mut cause else { panic!() };
    *place = 1;
    assert_eq!(results("p99>1s for 2s", Ending::Aborted(cause)), ("did not fire".to_owned(), true));
    assert_eq!(results("p99>1s for 2s", Ending::Completed), ("did not fire".to_owned(), true));
    assert_eq!(results("logn:p99>1s for 2s", Ending::Completed), ("nothing has the name 'logn'".to_owned(), false));
}

#[test]
fn a_guard_on_a_source_that_gave_no_value_says_so() {
    let results = |values: &[Option<f64>]| {
        let (_, mut run) = crate::fixtures::run();
        let mut plan = plan(&["watch.queue>5 for 2s"]);
        plan.watches = vec!["queue=http://h/#queue".parse().unwrap()];
        for value in values {
            let second = value.map_or_else(
                || WatchedFigure::missed(WatchedUnit::Number, "refused"),
                |value| WatchedFigure::value(WatchedUnit::Number, value),
            );
            run.measured.watched.named("queue").merge(&second);
        }
        let summary = Summary::new(plan, run);
        let result =
            summary.thresholds.iter().find(|result| matches!(result.condition, JudgedCondition::Guard(_))).unwrap();
        (result.got.to_string(), result.held)
    };
    assert_eq!(results(&[Some(1.0); 3]), ("did not fire".to_owned(), true));
    let some = [Some(1.0), Some(1.0), None];
    assert_eq!(results(&some), ("did not fire; no value in 1 of 3 seconds".to_owned(), true));
    let few = [Some(1.0), None, None];
    assert_eq!(results(&few), ("did not fire; no value in 2 of 3 seconds".to_owned(), false), "it ended early");
    assert_eq!(results(&[None; 3]), ("could not fire: no value in 3 of 3 seconds".to_owned(), false));
    assert_eq!(results(&[]), ("no value".to_owned(), false), "nothing was watched");
}

#[test]
fn an_error_rate_is_a_share_of_the_calls_that_ended_in_the_window() {
    // Two calls are due in a second in which eighty of earlier ones fail, and twenty are answered.
    let late = |phase, ended_s| {
        let mut second = live(phase, ended_s, Calls { failed: 80, ..GOOD });
        second.snapshot.numbers.set(Counter::Due, 2);
        for (call, failed) in [("home", false), ("cart", true)] {
            let calls = second.snapshot.figures.requests.named(call);
            calls.numbers.set(Counter::Due, 1);
            for _ in 0..8 {
                if failed {
                    calls.failures.record(Failure::Timeout, "late");
                } else {
                    calls.statuses.record(200);
                }
            }
        }
        second
    };
    let fires = |guard: &str| {
        let plan = plan(&[guard]);
        let mut guards = Guards::new(&plan);
        let so_far = Snapshot::default();
        let total = RunningTotal { measured: &so_far, measured_ns: 0, users: 0, most_users: 0 };
        guards.second(&late(Phase::Measured, 1), &total).map(|fired| fired.found)
    };
    assert_eq!(fires("error_rate>80% for 1s"), None);
    let found = fires("error_rate>79% for 1s").unwrap();
    assert!(found.starts_with("error_rate was 80% over 1s"), "{found}");
    assert_eq!(fires("cart:error_rate>100% for 1s"), None);
    assert!(fires("cart:error_rate>=100% for 1s").unwrap().contains("was 100%"));
    assert_eq!(fires("home:error_rate>0% for 1s"), None);
}
