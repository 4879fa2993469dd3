//! Runs of known shape, and what is said of them.

use brunt_plan::arrivals::Spread;
use brunt_plan::plan::{Load, Plan};
use brunt_plan::random::Random;
use brunt_record::SECOND_NS;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::outcome::{Failure, OkStatus};
use brunt_record::recording::Recording;
use brunt_record::series::Series;
use brunt_record::snapshot::Snapshot;
use brunt_record::time::Tick;
use brunt_record::timeline::DueLog;

use super::super::{About, Remark};
use crate::fixtures::run;
use crate::summary::Summary;

pub(in super::super) const MS: u64 = 1_000_000;

/// How a call ends: after how long, and as what.
pub(in super::super) enum End {
    Ok(u64),
    Refused(u64),
    Unreached(u64),
    TimedOut(u64),
    /// Its agent was lost, or held it back.
    Untold,
}

/// A run of calls that are due at these times, in order, and end so.
pub(in super::super) fn carried_out(
    seconds: u64,
    due: impl Iterator<Item = u64>,
    mut end: impl FnMut(u64) -> End,
) -> (Plan, Recording) {
    let (mut plan, mut run) = run();
    plan.load = Load::Open { profile: "1".parse().unwrap(), arrivals: Spread::Uniform };
    let mut parts: Vec<Snapshot> = (0..=seconds).map(|_| Snapshot::default()).collect();
    let mut log = DueLog::default();
    let second = |at: u64| ((at / SECOND_NS) as usize).min(seconds as usize);
    for due in due {
        parts[second(due)].numbers.add(Counter::Due, 1);
        let end = end(due);
        let (End::Ok(took) | End::Refused(took) | End::Unreached(took) | End::TimedOut(took)) = end else {
            parts[second(due)].numbers.add(Counter::Unknown, 1);
            parts[second(due)].times.record_bounds(Timing::Response, 0, 1);
            log.exclude(Tick::from_ns(due), 1);
            continue;
        };
        let part = &mut parts[second(due + took)];
        part.times.record(Timing::Response, took);
        if !matches!(end, End::TimedOut(_)) {
            log.completed(Tick::from_ns(due + took));
        }
        match end {
            End::Untold => {}
            End::TimedOut(_) => {
                part.failures.record(Failure::Timeout, "no answer in 1s");
                part.times.record(Timing::Failed, took);
                log.failed(Tick::from_ns(due), took, false);
            }
            End::Ok(_) => {
                part.statuses.record(200);
                log.answered(Tick::from_ns(due), took);
            }
            End::Refused(_) => {
                part.statuses.record(429);
                part.times.record(Timing::Refused, took);
                log.refused(Tick::from_ns(due), took);
            }
            End::Unreached(_) => {
                // A refusal is told at once.
                let lost = (Failure::Closed, "connection reset by the peer");
                let (failure, reason) = if took < MS { (Failure::Connect, "connection refused") } else { lost };
                part.failures.record(failure, reason);
                part.times.record(Timing::Failed, took);
                log.failed(Tick::from_ns(due), took, true);
            }
        }
    }
    (run.measured, run.series, run.measured_ns) = (Snapshot::default(), Series::default(), seconds * SECOND_NS);
    run.drained = parts.pop().unwrap();
    for part in &mut parts {
        part.count_ends(&OkStatus::default());
    }
    for part in &parts {
        run.series.push(SECOND_NS, part, &OkStatus::default());
        run.measured.merge(part);
    }
    run.measured.timeline = log.take();
    (plan, run)
}

/// So many calls a second, for so long.
pub(in super::super) fn evenly(rate: u64, seconds: u64) -> impl Iterator<Item = u64> {
    (0..rate * seconds).map(move |call| call * SECOND_NS / rate)
}

pub(in super::super) fn remarks((plan, run): (Plan, Recording)) -> Vec<Remark> {
    Summary::new(plan, run).remarks
}

pub(in super::super) fn kinds(remarks: &[Remark]) -> Vec<About> {
    remarks.iter().map(|remark| remark.about).collect()
}

#[test]
fn an_outage_has_its_beginning_its_end_and_its_calls() {
    for rate in [50, 5000] {
        let out = 3 * SECOND_NS..5_500 * MS;
        let end = |due: u64| if out.contains(&due) { End::Unreached(MS / 10) } else { End::Ok(2 * MS) };
        let found = remarks(carried_out(10, evenly(rate, 10), end));
        assert_eq!(kinds(&found), [About::Outage], "{found:?}");
        assert_eq!((found[0].from_ns, found[0].to_ns), (Some(3 * SECOND_NS), Some(5_500 * MS)));
        assert_eq!(found[0].calls, Some(rate * 5 / 2));
        let message = found[0].message.to_string();
        assert!(message.contains("from 0:03 to 0:05.5") && message.contains("(connection refused)"), "{message}");
        let found = remarks(carried_out(10, evenly(rate, 10), |due| {
            if due >= 7 * SECOND_NS { End::Unreached(MS) } else { End::Ok(MS) }
        }));
        assert!(found[0].message.to_string().contains("from 0:07 on, and was not back at 0:10"), "{found:?}");
    }
}

#[test]
fn what_agents_held_back_or_took_with_them_is_no_silence_of_the_target() {
    for untold in [7 * SECOND_NS..10 * SECOND_NS, 3 * SECOND_NS..6 * SECOND_NS] {
        let end = |due: u64| if untold.contains(&due) { End::Untold } else { End::Ok(2 * MS) };
        let found = remarks(carried_out(10, evenly(200, 10), end));
        assert_eq!(kinds(&found), [], "{untold:?}: {found:?}");
    }
}

#[test]
fn an_outage_is_found_by_the_agents_that_are_left() {
    let out = 6 * SECOND_NS..8 * SECOND_NS;
    let end = |due: u64| match due / (10 * MS) % 2 {
        0 if due >= 4 * SECOND_NS => End::Untold,
        _ if out.contains(&due) => End::Unreached(MS / 10),
        _ => End::Ok(2 * MS),
    };
    let found = remarks(carried_out(10, evenly(100, 10), end));
    assert_eq!(kinds(&found), [About::Outage], "{found:?}");
    assert_eq!((found[0].from_ns, found[0].to_ns, found[0].calls), (Some(out.start), Some(out.end), Some(100)));
    assert!(found[0].message.to_string().contains("100 of 100 calls due then failed"), "{found:?}");
}

#[test]
fn a_freeze_has_its_beginning_its_end_and_its_calls() {
    for rate in [50, 5000] {
        let frozen = 4 * SECOND_NS..6 * SECOND_NS;
        let end = |due: u64| End::Ok(MS + if frozen.contains(&due) { frozen.end - due } else { 0 });
        let found = remarks(carried_out(10, evenly(rate, 10), end));
        assert_eq!(kinds(&found), [About::Freeze], "{found:?}");
        let (from, to) = (found[0].from_ns.unwrap(), found[0].to_ns.unwrap());
        assert!(from.abs_diff(frozen.start) <= 100 * MS && to.abs_diff(frozen.end) <= 100 * MS, "{found:?}");
        assert!(found[0].worst_ns.unwrap().abs_diff(2 * SECOND_NS) < 10 * MS, "{found:?}");
        // All that were due in it, but for those that came in its last milliseconds.
        assert!((rate * 2 - rate / 100..=rate * 2).contains(&found[0].calls.unwrap()), "{found:?}");
    }
}

#[test]
fn calls_that_are_slow_beside_a_short_freeze_of_a_long_run_do_not_count() {
    // Points are of 800 ms, and a third of all calls are slow.
    let frozen = 300_500 * MS..301_700 * MS;
    let took = |due: u64| if (due / (20 * MS)).is_multiple_of(3) { 8 * MS } else { MS };
    let end = |due: u64| End::Ok(took(due) + if frozen.contains(&due) { frozen.end - due } else { 0 });
    let found = remarks(carried_out(600, evenly(50, 600), end));
    assert_eq!(kinds(&found), [About::Freeze], "{found:?}");
    assert!((55..=63).contains(&found[0].calls.unwrap()), "{found:?}");
}

#[test]
fn dropped_connections_have_their_moment() {
    for rate in [50, 5000] {
        // Those that were under way at 4 s and at 7.5 s.
        let cut = |due: u64| [4_000 * MS, 7_500 * MS].into_iter().find(|at| (at - 120 * MS..*at).contains(&due));
        let end = |due: u64| cut(due).map_or(End::Ok(2 * MS), |at| End::Unreached(at - due));
        let found = remarks(carried_out(10, evenly(rate, 10), end));
        assert_eq!(kinds(&found), [About::Drops, About::Drops], "{found:?}");
        assert_eq!(found[0].calls, Some(rate * 12 / 100));
        assert!(found[0].message.to_string().starts_with("the target dropped connections at 0:04: "), "{found:?}");
    }
    // Again and again, and all along.
    let again = |due: u64| if due % SECOND_NS < 20 * MS { End::Unreached(MS) } else { End::Ok(2 * MS) };
    let found = remarks(carried_out(10, evenly(500, 10), again));
    assert_eq!(kinds(&found), [About::Drops]);
    assert!(
        found[0].message.to_string().starts_with("the target dropped connections 10 times: 100 calls failed"),
        "{found:?}"
    );
    let along = |due: u64| if (due / MS).is_multiple_of(50) { End::Unreached(MS) } else { End::Ok(2 * MS) };
    assert_eq!(kinds(&remarks(carried_out(10, evenly(500, 10), along))), []);
}

#[test]
fn connections_that_were_never_made_are_not_dropped() {
    let moment = 4_000 * MS..4_100 * MS;
    // All of them are an outage, each second one is none.
    for (rate, each) in [(100, 1), (2000, 1), (100, 2), (2000, 2)] {
        let is_hit = |due: u64| moment.contains(&due) && (due * rate / SECOND_NS).is_multiple_of(each);
        let end = |due: u64| if is_hit(due) { End::Unreached(MS / 10) } else { End::Ok(2 * MS) };
        let found = remarks(carried_out(10, evenly(rate, 10), end));
        let said = found.iter().map(|remark| remark.message.to_string()).collect::<Vec<_>>();
        assert!(said.iter().all(|message| !message.contains("dropped")) && !said.is_empty(), "{said:?}");
    }
    // Of a target that was never there nothing happened at a moment.
    assert_eq!(kinds(&remarks(carried_out(1, evenly(75, 1), |_| End::Unreached(MS / 10)))), []);
}

#[test]
fn a_freeze_that_does_not_end_is_one_whatever_brunt_gives_up() {
    for rate in [50, 5000] {
        let end = |due: u64| if due >= 4 * SECOND_NS { End::TimedOut(SECOND_NS) } else { End::Ok(MS) };
        let found = remarks(carried_out(10, evenly(rate, 10), end));
        assert_eq!(kinds(&found), [About::Freeze], "{found:?}");
        assert!(found[0].message.to_string().contains(" on, and was not back at "), "{found:?}");
        assert!(found[0].from_ns.unwrap().abs_diff(4 * SECOND_NS) <= 100 * MS, "{found:?}");
        assert!(found[0].calls.unwrap().abs_diff(6 * rate) <= rate / 10, "{found:?}");
    }
}

#[test]
fn a_silence_whose_calls_were_all_given_up_is_no_freeze() {
    let silent = 3 * SECOND_NS..4 * SECOND_NS;
    let told = |given_up: bool| {
        remarks(carried_out(8, evenly(50, 8), |due| match due {
            due if !silent.contains(&due) => End::Ok(2 * MS),
            // Nobody asks again before the silence is over by itself.
            due if given_up => End::TimedOut(silent.end - due),
            due => End::Ok(silent.end - due),
        }))
    };
    assert!(!kinds(&told(true)).contains(&About::Freeze), "{:?}", told(true));
    assert_eq!(kinds(&told(false)), [About::Freeze]);
}

#[test]
fn a_freeze_at_the_start_is_one() {
    let end = |due: u64| End::Ok(MS + (2 * SECOND_NS).saturating_sub(due));
    let found = remarks(carried_out(10, evenly(50, 10), end));
    assert_eq!(kinds(&found), [About::Freeze], "{found:?}");
    assert_eq!((found[0].from_ns, found[0].to_ns), (Some(0), Some(2 * SECOND_NS)));
}

#[test]
fn pauses_at_a_steady_distance_are_one_thing() {
    // 400 ms in every 2 s.
    let end = |due: u64| {
        let within = due % (2 * SECOND_NS);
        End::Ok(MS + if within >= SECOND_NS { (1_400 * MS).saturating_sub(within) } else { 0 })
    };
    let found = remarks(carried_out(20, evenly(500, 20), end));
    assert_eq!(kinds(&found), [About::Freeze], "{found:?}");
    assert!(
        found[0].message.to_string().starts_with("the target paused 10 times, for 401ms every 2.0s: "),
        "{found:?}"
    );
}

#[test]
fn a_target_that_falls_behind_is_said_to() {
    // 970/s are due all along, and it takes 500/s from the sixth second on.
    let mut free = 0;
    let end = |due: u64| {
        free = if due < 6 * SECOND_NS { due + MS } else { free.max(due) + 2 * MS };
        End::Ok(free - due)
    };
    let found = remarks(carried_out(12, evenly(970, 12), end));
    assert_eq!(kinds(&found), [About::Overload], "{found:?}");
    let message = found[0].message.to_string();
    assert!(
        message.starts_with("from 0:06 on the target answered 500 calls/s (95%: ")
            && message.contains(") while 970/s were due"),
        "{message}"
    );
}

#[test]
fn a_rate_limit_is_no_slowness() {
    let mut taken = (0, 0);
    let end = |due: u64| {
        let second = due / SECOND_NS;
        taken = if taken.0 == second { (second, taken.1 + 1) } else { (second, 1) };
        if taken.1 <= 100 { End::Ok(2 * MS) } else { End::Refused(MS) }
    };
    let found = remarks(carried_out(10, evenly(400, 10), end));
    assert_eq!(kinds(&found), [About::RateLimit], "{found:?}");
    assert!(
        found[0].message.to_string().starts_with("the target let 100 calls/s through and refused 3,000 others"),
        "{found:?}"
    );
}

#[test]
fn a_rate_limit_counts_what_it_refused() {
    // Each window is two seconds long, and the run nine.
    let mut taken = (0, 0);
    let found = remarks(carried_out(9, evenly(200, 9), |due| {
        let second = due / SECOND_NS;
        taken = if taken.0 == second { (second, taken.1 + 1) } else { (second, 1) };
        if taken.1 <= 30 { End::Ok(2 * MS) } else { End::Refused(MS) }
    }));
    assert!(
        found[0].message.to_string().starts_with("the target let 30 calls/s through and refused 1,530 others"),
        "{found:?}"
    );
    // One call was refused later, and is none of these.
    let mut taken = (0, 0);
    let found = remarks(carried_out(10, evenly(400, 10), |due| {
        let second = due / SECOND_NS;
        taken = if taken.0 == second { (second, taken.1 + 1) } else { (second, 1) };
        match second {
            2..7 if taken.1 > 100 => End::Refused(MS),
            9 if taken.1 == 7 => End::Refused(MS),
            _ => End::Ok(2 * MS),
        }
    }));
    let limit = found.iter().find(|remark| remark.about == About::RateLimit).unwrap_or_else(|| panic!("{found:?}"));
    let expected = "the target let 100 calls/s through from 0:02 to 0:07 and refused 1,500 others";
    assert!(limit.message.to_string().starts_with(expected), "{limit:?}");
}

/// Steady targets of all kinds of services, under calls that come evenly or at random: nothing is found.
#[test]
fn steady_runs_have_no_episodes() {
    let mut false_alarms = Vec::new();
    for seed in 0..300 {
        let mut random = Random::new(seed, 7);
        let (rate, seconds) = [(5, 3), (50, 10), (500, 10), (2000, 4)][seed as usize % 4];
        let mean = [1.0, 20.0, 150.0][seed as usize % 3] * MS as f64;
        let is_poisson = seed % 2 == 0;
        let mut at = 0.0;
        let due: Vec<u64> = std::iter::from_fn(|| {
            at += if is_poisson { -(1.0 - random.unit()).ln() } else { 1.0 } * 1e9 / f64::from(rate);
            (at < f64::from(seconds) * 1e9).then_some(at as u64)
        })
        .collect();
        let mut random = Random::new(seed, 8);
        // Exponential, lognormal, or always the same.
        let took = |_| {
            let [one, two] = [random.unit(), random.unit()];
            let normal = (-2.0 * (1.0 - one).ln()).sqrt() * (std::f64::consts::TAU * two).cos();
            End::Ok((mean * [-(1.0 - one).ln(), normal.exp(), 1.0][seed as usize % 5 % 3]) as u64)
        };
        let mut found = remarks(carried_out(u64::try_from(seconds).unwrap(), due.into_iter(), took));
        // A short run without a warm-up is cut off, whatever the target does.
        found.retain(|remark| remark.about != About::CutOff);
        if !found.is_empty() {
            false_alarms.push((seed, found));
        }
    }
    assert!(false_alarms.len() <= 1, "{} {false_alarms:#?}", false_alarms.len());
}
