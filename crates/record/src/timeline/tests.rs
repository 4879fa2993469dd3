//! Timelines: merging in any order, silences, and a log that holds few points.

use proptest::prelude::*;

use super::*;
use crate::SECOND_NS;
use crate::time::Tick;

/// When a call was due, how it ended, and how long it took.
type Call = (u64, u8, u64);

fn timeline(calls: &[Call]) -> Timeline {
    let mut log = DueLog::default();
    for &(due, kind, took) in calls {
        match kind {
            0..=3 => log.answered(Tick::from_ns(due), took),
            4 => log.refused(Tick::from_ns(due), took),
            5 => log.failed(Tick::from_ns(due), took, took % 2 == 0),
            6 => log.unfinished(Tick::from_ns(due), took, 1),
            _ => log.unsent(Tick::from_ns(due), took, 3),
        }
        if kind < 6 {
            log.completed(Tick::from_ns(due + took));
        }
    }
    log.take()
}

fn merged<'a>(timelines: impl IntoIterator<Item = &'a Timeline>) -> Timeline {
    let mut all = Timeline::default();
    timelines.into_iter().for_each(|one| all.merge(one));
    all
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    // Up to a long run, so that points are widened.
    let run = prop_oneof![Just(SECOND_NS), Just(100 * SECOND_NS), Just(100_000 * SECOND_NS)];
    run.prop_flat_map(|run| prop::collection::vec((0..run, 0_u8..8, 0..SECOND_NS), 0..80))
}

proptest! {
    #[test]
    fn merging_is_commutative_and_associative(a in calls(), b in calls(), c in calls()) {
        let [a, b, c] = [a, b, c].map(|calls| timeline(&calls));
        prop_assert_eq!(merged([&a, &b]), merged([&b, &a]));
        let (left, right) = (merged([&merged([&a, &b]), &c]), merged([&a, &merged([&b, &c])]));
        prop_assert_eq!(&left, &right);
        prop_assert!(left.points.len() as u64 <= MOST_POINTS);
    }

    #[test]
    fn however_calls_are_dealt_out_the_timeline_is_the_same(calls in calls(), places in 1_usize..5) {
        let mut parts = vec![Vec::new(); places];
        for (at, call) in calls.iter().enumerate() {
            parts[at % places].push(*call);
        }
        let parts: Vec<_> = parts.iter().map(|part| timeline(part)).collect();
        let whole = timeline(&calls);
        prop_assert_eq!(merged(&parts), merged([&whole]));
        let due: u64 = calls.iter().map(|(_, kind, _)| if *kind == 7 { 3 } else { 1 }).sum();
        prop_assert_eq!(whole.points().map(|(_, point)| point.due()).sum::<u64>(), due);
    }

    #[test]
    fn it_is_read_back_as_it_was_written(calls in calls()) {
        let written = timeline(&calls);
        let bytes = crate::bytes::to_bytes(&written);
        prop_assert_eq!(crate::bytes::from_bytes::<Timeline>(&bytes).unwrap(), written);
    }
}

#[test]
fn silences_lie_between_completions() {
    let mut log = DueLog::beginning_at(Tick::from_ns(7));
    for at in (0..20).chain(50..60).chain(62..70) {
        log.completed(Tick::from_ns(7 + at * TICK_NS));
    }
    let timeline = log.take();
    let ticks: Vec<_> = timeline.silences().iter().map(|(from, to)| (from / TICK_NS, to / TICK_NS)).collect();
    assert_eq!(ticks, [(20, 50), (60, 62)]);
    assert_eq!(timeline.last_completion_ns(), 70 * TICK_NS);
}

/// A silence of 300 ms in three hours.
#[test]
fn a_long_run_hides_no_silence() {
    let mut all = Timeline::default();
    let mut log = DueLog::default();
    for second in 0..3 * 3600 {
        for tick in 0..10 {
            if second != 7000 || !(4..7).contains(&tick) {
                log.answered(Tick::from_ns(second * SECOND_NS + tick * TICK_NS), 1_000_000);
                log.completed(Tick::from_ns(second * SECOND_NS + tick * TICK_NS));
            }
        }
        all.merge(&log.take());
    }
    assert_eq!(all.silences(), [(7000 * SECOND_NS + 4 * TICK_NS, 7000 * SECOND_NS + 7 * TICK_NS)]);
    assert!(all.points().count() as u64 <= MOST_POINTS && all.width_ns() == 128 * TICK_NS);
}

/// A target that answers within 5 ms, and stands still from 1 s to 3 s.
#[test]
fn what_ended_and_what_waits_follow_from_when_calls_were_due() {
    let mut log = DueLog::default();
    for call in 0..500 {
        let due = call * SECOND_NS / 100;
        let frozen = (SECOND_NS..3 * SECOND_NS).contains(&due);
        log.answered(Tick::from_ns(due), if frozen { 3 * SECOND_NS - due } else { 5_000_000 });
    }
    let flow = log.take().flow(5 * SECOND_NS, []).unwrap();
    assert_eq!(flow.len(), 50);
    let calls = |from: usize, to: usize, count: fn(&FlowPoint) -> f64| flow[from..to].iter().map(count).sum::<f64>();
    assert!((calls(0, 50, |stretch| stretch.due) - 500.0).abs() < 1e-6);
    assert!((calls(0, 50, |stretch| stretch.ok) - 500.0).abs() < 1.0);
    assert!(calls(12, 28, |stretch| stretch.ok) < 1.0, "nothing ends while it stands still");
    assert!(calls(29, 32, |stretch| stretch.ok) > 200.0, "all that waited ends at once");
    assert!(
        (flow[19].waiting - 100.0).abs() < 2.0,
        "half of the calls wait after half of the time: {}",
        flow[19].waiting
    );
    assert!(flow[40].waiting < 2.0);
}

/// A target that answers 500/s of 1,000/s.
#[test]
fn a_queue_that_grows_ends_evenly() {
    let mut log = DueLog::default();
    (0..4000_u64)
        .for_each(|call| log.answered(Tick::from_ns(call * SECOND_NS / 1000), call * SECOND_NS / 1000 + 2_000_000));
    let flow = log.take().flow(4 * SECOND_NS, []).unwrap();
    assert!(flow[2..].iter().all(|stretch| (stretch.ok - 50.0).abs() < 2.0), "{flow:?}");
}

#[test]
fn calls_that_never_end_wait_until_the_end_and_unsent_ones_until_they_are_given_up() {
    let mut log = DueLog::default();
    log.unfinished(Tick::from_ns(0), 4 * SECOND_NS, 3);
    log.failed(Tick::from_ns(SECOND_NS), SECOND_NS, false);
    log.unsent(Tick::from_ns(2 * SECOND_NS), SECOND_NS, 2);
    let flow = log.take().flow(5 * SECOND_NS, []).unwrap();
    let waiting: Vec<_> = [9, 15, 25, 35, 49].map(|at| flow[at].waiting.round() as u64).into();
    assert_eq!(waiting, [3, 4, 5, 3, 3]);
    assert!(flow.iter().map(|stretch| stretch.not_ok).sum::<f64>() < 1.01, "a call that was never sent has not ended");
    let mut timeline = timeline(&[(0, 0, 1_000)]);
    timeline.points.values_mut().for_each(|point| (point.response, point.bounds) = Default::default());
    assert_eq!(timeline.flow(SECOND_NS, []), None, "nothing is known of when calls ended");
}
