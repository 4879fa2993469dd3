//! Seconds that look one way or another, and what is said of them.

use brunt_plan::arrivals::Spread;
use brunt_plan::connections::Connections;
use brunt_plan::plan::Load;
use brunt_plan::scenario::{Population, Scenarios, Step};
use brunt_record::RECEIVE_BUFFER_BYTES;
use brunt_record::SECOND_NS;
use brunt_record::catalogue::{Counter, Numbers, Timing};
use brunt_record::instrument::{ArrivalTime, CallTimes};
use brunt_record::outcome::{Failure, OkStatus};
use brunt_record::series::Series;

use super::*;
use crate::fixtures::run;
use crate::summary::Summary;

const MS: u64 = 1_000_000;

/// Calls that took the target `taken_ns`, were sent `sending_ns` late, and read `receiving_ns` late, all by the kernel's
/// clock.
fn calls(second: &mut Snapshot, n: u64, taken_ns: u64, sending_ns: u64, receiving_ns: u64) {
    let at = sending_ns + taken_ns;
    let (arrived, read) = (ArrivalTime::At(at), at + receiving_ns);
    let call = CallTimes { due: 0, ready: 0, sent: sending_ns, exposed: u64::MAX, first_byte: Some(at), arrived, read };
    for _ in 0..n {
        second.statuses.record(200);
        second.arrived(&call, 1);
    }
    second.numbers.add(Counter::Due, n);
    second.times.record_n(Timing::Response, read, n);
    second.times.record_n(Timing::Service, read - sending_ns, n);
    second.times.record_n(Timing::Lag, sending_ns, n);
}

fn health(cpu_ns: u64, starved_ns: u64) -> Numbers {
    Numbers::of_health(SECOND_NS, cpu_ns, starved_ns)
}

/// A run of so many seconds whose every second has 1,000 calls of 0.8 ms and what `fault` makes of it.
fn summary_of(load: Load, seconds: u64, fault: impl Fn(u64, &mut Snapshot)) -> Summary {
    let (mut plan, mut run) = run();
    plan.load = load;
    run.measured = Snapshot::default();
    run.series = Series::default();
    for i in 0..seconds {
        let mut second = Snapshot { numbers: health(400 * MS, 0), ..Default::default() };
        calls(&mut second, 1000, 800_000, 20_000, 15_000);
        fault(i, &mut second);
        run.series.push(SECOND_NS, &second, &OkStatus::default());
        run.measured.merge(&second);
    }
    run.measured_ns = seconds * SECOND_NS;
    run.measured.numbers.set(Counter::ConnectionsMade, u64::from(plan.connections.most()));
    Summary::new(plan, run)
}

fn verdict_of(fault: impl Fn(u64, &mut Snapshot)) -> Verdict {
    summary_of(Load::Closed {}, 10, fault).verdict
}

fn open() -> Load {
    Load::Open { profile: "1000".parse().unwrap(), arrivals: Spread::Uniform }
}

fn names(verdict: &Verdict, holds: bool) -> Vec<&str> {
    verdict.figures.iter().filter(|f| f.holds == holds).map(|f| f.figure.name()).collect()
}

#[test]
fn a_clean_run_has_nothing_to_say() {
    let verdict = verdict_of(|_, _| ());
    assert_eq!((verdict.judgement, verdict.findings.as_slice()), (Judgement::Trustworthy, [].as_slice()));
    assert_eq!(names(&verdict, true), ["p50", "p90", "p99"]);
}

#[test]
fn a_slow_target_is_not_the_generators_fault() {
    let verdict = verdict_of(|_, second| {
        calls(second, 1000, 2 * SECOND_NS, 0, 10_000);
        second.numbers.set(Counter::WaitedForConnection, 1000);
    });
    assert!(verdict.is_trustworthy() && verdict.findings.is_empty(), "{verdict:?}");
}

#[test]
fn a_saturated_worker_bounds_the_rate() {
    let verdict = verdict_of(|_, second| second.numbers.set_health(&health(990 * MS, 0)));
    assert_eq!(verdict.judgement, Judgement::GeneratorBound);
    assert_eq!(
        verdict.sentence.to_string(),
        "brunt was the limit: throughput is a lower bound (a worker used 99% of a CPU)"
    );
}

/// What is used and what is waited for leave no time together, however it is shared out between them.
#[test]
fn used_and_waited_are_judged_together() {
    for (cpu, starved, bound) in
        [(949, 20, true), (958, 0, true), (600, 380, true), (700, 200, false), (930, 10, false)]
    {
        let verdict = verdict_of(|_, second| second.numbers.set_health(&health(cpu * MS, starved * MS)));
        assert_eq!(verdict.judgement == Judgement::GeneratorBound, bound, "{cpu} {starved}: {verdict:?}");
    }
    let verdict = verdict_of(|_, second| second.numbers.set_health(&health(250 * MS, 740 * MS)));
    assert_eq!(verdict.findings[0].cause, VerdictCause::CpuStarved);
    assert!(
        verdict.sentence.to_string().contains("ready to run and had no CPU for 74% of the time"),
        "{}",
        verdict.sentence
    );
}

/// A process that was stopped, a machine that slept: no call was made meanwhile.
#[test]
fn time_that_was_lost_is_named_though_every_answer_was_timed() {
    let verdict = verdict_of(|i, second| {
        if i == 3 || i == 4 {
            second.numbers.set_health(&health(10 * MS, 600 * MS));
            calls(second, 4, 800_000, 20_000, 600 * MS);
        }
    });
    assert_eq!(verdict.judgement, Judgement::GeneratorBound);
    let finding = &verdict.findings[0];
    assert_eq!(
        (finding.cause, finding.seconds.as_slice()),
        (VerdictCause::CpuStarved, [Seconds { first: 3, last: 4 }].as_slice())
    );
}

/// Connections without a server wait for that one, and not for a worker that has no CPU.
#[test]
fn lost_time_that_no_connection_waited_for_limits_nothing() {
    let lost = |receiving_ns, without_ns| {
        verdict_of(move |_, second| {
            second.numbers.set_health(&health(10 * MS, 600 * MS));
            calls(second, 10, 800_000, 20_000, receiving_ns);
            second.numbers.add(Counter::WithoutServer, without_ns);
        })
    };
    assert!(lost(30 * MS, 0).is_brunt_the_limit());
    for verdict in [lost(30 * MS, 9 * SECOND_NS), lost(MS, 0)] {
        assert!(!verdict.is_brunt_the_limit(), "{verdict:?}");
        assert_eq!((verdict.findings[0].cause, verdict.findings[0].decisive), (VerdictCause::CpuStarved, false));
    }
}

/// Users who come at times of their own have all come and gone.
#[test]
fn users_who_came_as_asked_were_limited_by_nothing() {
    let with = |steps: Vec<Step>, not_admitted: u64, users: u64| {
        let (mut plan, mut run) = run();
        let scenarios = serde_json::json!({"files": [], "populations": []});
        let scenarios: Scenarios = serde_json::from_value(scenarios).unwrap();
        plan.scenarios = Some(Scenarios { populations: vec![Population { steps, ..Default::default() }], ..scenarios });
        (run.measured, run.series) = Default::default();
        for i in 0..10 {
            let mut second = Snapshot { numbers: health(10 * MS, 600 * MS), ..Default::default() };
            calls(&mut second, 100, 800_000, 0, 10 * MS);
            let shop = second.figures.scenarios.named("shop");
            (shop.users_started, shop.not_admitted) = (100, not_admitted);
            shop.users_ended = if i == 0 { 100 - users } else { 100 };
            (0..100).for_each(|_| shop.iteration(MS));
            run.series.push(SECOND_NS, &second, &OkStatus::default());
            run.measured.merge(&second);
        }
        run.measured_ns = 10 * SECOND_NS;
        Summary::new(plan, run).verdict.is_brunt_the_limit()
    };
    let rate = || vec![Step::Rate { from: 100.0, to: 100.0, seconds: 10.0 }];
    assert_eq!((with(rate(), 0, 1), with(rate(), 5, 1)), (false, true));
    // Of users who are always there, those who pause wait for little of what brunt does.
    let always = || vec![Step::Users { from: 5.0, to: 5.0, seconds: 10.0 }];
    assert_eq!((with(always(), 0, 5), with(always(), 0, 100)), (true, false));
}

#[test]
fn a_busy_worker_that_sends_in_time_bounds_nothing() {
    let verdict = summary_of(open(), 10, |_, second| second.numbers.set_health(&health(970 * MS, 0))).verdict;
    assert!(verdict.is_trustworthy(), "{verdict:?}");
    assert_eq!((verdict.findings[0].cause, verdict.findings[0].decisive), (VerdictCause::CpuSaturated, false));
}

/// How long the target would have taken for a call that brunt had no time to send is unknown: a percentile that such calls decide
/// says nothing of the target, and neither does a threshold on it.
#[test]
fn percentiles_of_calls_that_brunt_left_unsent_are_unreliable() {
    let with = |unsent: u64, cpu_ms: u64| {
        summary_of(open(), 10, move |_, second| {
            second.numbers.set_health(&health(cpu_ms * MS, 0));
            second.numbers.add(Counter::Due, unsent);
            second.numbers.add(Counter::Unsent, unsent);
            second.times.record_bounds(Timing::Response, 2 * SECOND_NS, unsent);
        })
    };
    let p99 = |summary: &Summary| summary.times.response.clone().unwrap().at(Percentile::P99).unwrap().clone();
    let most = with(4_000, 990);
    assert_eq!(names(&most.verdict, false), ["p50", "p90", "p99"], "{:?}", most.verdict);
    assert_eq!(p99(&most).interval.unwrap().instrument_low_ns / 100_000, 8, "the answered ones bound it from below");
    assert!(most.verdict.is_brunt_the_limit(), "{:?}", most.verdict);
    let few = with(100, 990);
    assert_eq!((names(&few.verdict, true), names(&few.verdict, false)), (vec!["p50", "p90"], vec!["p99"]));
    // A target that takes none of them is the reason itself.
    let of_target = with(4_000, 400);
    assert_eq!(names(&of_target.verdict, true), ["p50", "p90", "p99"], "{:?}", of_target.verdict);
}

/// A replay makes all calls of its log, and so leaves none unsent that would tell of its own slowness.
#[test]
fn a_replay_that_comes_to_its_calls_late_is_the_limit_itself() {
    let replayed = |cpu_ms: u64, late_ms: u64| {
        let log = brunt_plan::replay::LogReplay::new("a.log", "combined");
        summary_of(Load::Replay(Box::new(log)), 10, |i, second| {
            second.numbers.set_health(&health(cpu_ms * MS, 0));
            second.numbers.add(Counter::Due, if i < 5 { 1_000 } else { 0 });
            calls(second, 500, 800_000, late_ms * MS, 15_000);
        })
    };
    let late = replayed(970, 4_000);
    assert!(late.verdict.is_brunt_the_limit(), "{:?}", late.verdict);
    assert!(late.remarks.is_empty(), "{:?}", late.remarks);
    for (cpu_ms, late_ms) in [(970, 100), (300, 4_000)] {
        let in_time = replayed(cpu_ms, late_ms);
        assert!(!in_time.verdict.is_brunt_the_limit(), "{:?}", in_time.verdict);
    }
}

#[test]
fn a_slow_script_is_named_only_where_it_is_the_limit() {
    let with = |cpu_ms, script_ms| {
        verdict_of(move |_, second| {
            second.numbers.set_health(&health(cpu_ms * MS, 0));
            second.numbers.set(Counter::WorkersScript, script_ms * MS);
        })
    };
    let slow = with(990, 800);
    assert_eq!(slow.judgement, Judgement::GeneratorBound);
    assert_eq!(slow.findings[0].cause, VerdictCause::SlowScript);
    assert!(slow.sentence.to_string().contains("the script's hooks took 81% of the CPU time"), "{}", slow.sentence);
    assert!(with(990, 300).findings.iter().all(|finding| finding.cause != VerdictCause::SlowScript));
    assert!(with(500, 450).is_trustworthy(), "a busy script on an idle worker is no limit");
    // Most of next to nothing is nothing, late calls or not.
    let verdict = summary_of(open(), 10, |_, second| {
        second.numbers.set_health(&health(60 * MS, 0));
        second.numbers.set(Counter::WorkersScript, 40 * MS);
        calls(second, 200, 800_000, 5 * MS, 0);
    });
    assert!(verdict.verdict.findings.iter().all(|finding| finding.cause != VerdictCause::SlowScript));
}

#[test]
fn answers_that_were_read_late_and_timed_spoil_nothing() {
    let verdict = verdict_of(|_, second| {
        second.numbers.set_health(&health(30 * MS, 200 * MS));
        calls(second, 500, 800_000, 20_000, 8 * MS);
    });
    assert!(verdict.is_trustworthy(), "the kernel told when they came: {verdict:?}");
    assert!(verdict.findings.is_empty());
}

#[test]
fn a_moment_without_a_cpu_is_no_share_of_a_run() {
    let verdict = verdict_of(|i, second| {
        let health = if i == 0 { Numbers::of_health(3 * MS, MS / 100, 2 * MS) } else { Numbers::default() };
        second.numbers.set_health(&health);
    });
    assert!(verdict.findings.is_empty(), "{verdict:?}");
}

#[test]
fn late_calls_spoil_the_percentiles_that_they_reach() {
    let summary = summary_of(open(), 10, |_, second| {
        second.numbers.set_health(&health(30 * MS, 120 * MS));
        calls(second, 40, 800_000, 5 * MS, 0);
    });
    let verdict = &summary.verdict;
    assert_eq!((names(verdict, true), names(verdict, false)), (vec!["p50", "p90"], vec!["p99"]));
    assert_eq!(verdict.judgement, Judgement::LatencyUnreliable);
    assert!(
        verdict
            .sentence
            .to_string()
            .starts_with("p99 is unreliable; p50 and p90 hold: a worker waited for a CPU for 12% of")
    );
    assert!(verdict.sentence.to_string().contains("p99 is between 800.0µs and 5.8"), "{}", verdict.sentence);
    // At 3% of a CPU nobody is told to use fewer calls.
    assert!(verdict.findings.iter().all(|f| f.advice != Advice::FewerCallsEach), "{:?}", verdict.findings);
    assert!(verdict.is_load_as_asked, "4% of the calls late: still the arrival process that was asked for");
}

#[test]
fn what_no_one_asked_for_does_not_decide() {
    // Five late calls of 500 a second: p99 holds by what is beyond it, p99.9 does not.
    let summary = summary_of(open(), 10, |_, second| calls(second, 5, 800_000, 5 * MS, 0));
    let spoiled = summary.times.response.as_ref().unwrap();
    assert!(spoiled.quantiles[5].is_spoiled() && !spoiled.quantiles[4].is_spoiled());
    assert!(summary.verdict.is_trustworthy(), "{:?}", summary.verdict);
    // Where a threshold names it, it does.
    let mut plan = summary.plan;
    plan.thresholds = vec!["p99.9<10ms".parse().unwrap()];
    let verdict = Summary::new(plan, summary.run).verdict;
    assert_eq!(names(&verdict, false), ["p99.9"]);
    assert!(!verdict.is_trustworthy());
}

#[test]
fn calls_sent_late_are_a_finding_of_their_own() {
    // Beside answers of 60 ms a lag of 8 ms spoils no percentile by more than a tenth of two of them.
    let verdict = summary_of(open(), 10, |_, second| {
        *second = Snapshot { numbers: health(100 * MS, 0), ..Default::default() };
        calls(second, 900, 60 * MS, 10_000, 0);
        calls(second, 100, 60 * MS, 8 * MS, 0);
    })
    .verdict;
    assert_eq!(names(&verdict, false), ["p99"]);
    let late = verdict.findings.iter().find(|finding| finding.cause == VerdictCause::Lag).unwrap();
    assert!(
        late.decisive
            && late.spoils == Spoils::Arrivals
            && late.message.to_string().contains("10% of calls were sent late, by 6.00ms")
    );
    assert!(!verdict.is_load_as_asked);
    // Not so beside answers of a second: the target cannot tell.
    let verdict = summary_of(open(), 10, |_, second| {
        *second = Snapshot { numbers: health(100 * MS, 0), ..Default::default() };
        calls(second, 900, SECOND_NS, 10_000, 0);
        calls(second, 100, SECOND_NS, 8 * MS, 0);
    })
    .verdict;
    assert!(verdict.is_trustworthy() && verdict.findings.is_empty(), "{verdict:?}");
}

#[test]
fn a_stall_of_the_machine_is_no_reason_for_fewer_calls() {
    let verdict = summary_of(open(), 10, |_, second| calls(second, 100, 800_000, 30 * MS, 0)).verdict;
    let (advice, sent) = advice(&verdict);
    assert!(advice.iter().all(|advice| **advice == Advice::QuieterMachine) && sent == 1, "{advice:?}");
}

/// A run in whose fifth second 200 connections are made and 100 calls are sent 40 ms late, with this much CPU time.
fn connecting(cpu_ns: u64, starved_ns: u64) -> Summary {
    summary_of(open(), 10, |i, second| {
        if i == 4 {
            calls(second, 100, 800_000, 40 * MS, 0);
            second.numbers.set_health(&health(cpu_ns, starved_ns));
            second.numbers.set(Counter::ConnectionsMade, 200);
        }
    })
}

/// What to do about each finding, and how many of them send to `brunt doctor`.
fn advice(verdict: &Verdict) -> (Vec<&Advice>, usize) {
    let all = verdict.findings.iter().map(|finding| match &finding.advice {
        Advice::SeeDoctor(advice) => (&**advice, 1),
        advice => (advice, 0),
    });
    let (all, sent): (Vec<_>, Vec<_>) = all.unzip();
    assert!(!all.is_empty());
    (all, sent.into_iter().sum())
}

#[test]
fn a_burst_of_connections_is_no_fault_of_the_machine() {
    let mut summary = connecting(500 * MS, 20 * MS);
    let (fixed, sent) = advice(&summary.verdict);
    let is_slower = |advice: &&Advice| **advice == Advice::ConnectSlower { made: 200 };
    assert!(fixed.iter().all(is_slower) && sent == 0, "{fixed:?}");
    // Where they grow with the rate they can be opened before the load.
    summary.plan.connections = Connections::UpTo(1000);
    let grown = Summary::new(summary.plan, summary.run).verdict;
    let (grown, _) = advice(&grown);
    assert!(grown.iter().all(|advice| **advice == Advice::ConnectEarlier { made: 200, open: 200 }), "{grown:?}");
}

#[test]
fn connections_that_took_little_cpu_time_explain_no_late_call() {
    for (cpu_ns, starved_ns, says) in [(410 * MS, 0, Advice::QuieterMachine), (500 * MS, 70 * MS, Advice::KeepOffCores)]
    {
        let summary = connecting(cpu_ns, starved_ns);
        let (advice, _) = advice(&summary.verdict);
        assert!(advice.iter().all(|advice| **advice == says), "{advice:?}");
    }
}

#[test]
fn more_calls_are_no_burst_of_connections() {
    let summary = summary_of(open(), 10, |i, second| {
        if i == 4 {
            calls(second, 800, 800_000, 20_000, 0);
            calls(second, 200, 800_000, 40 * MS, 0);
            second.numbers.set_health(&health(700 * MS, 0));
            second.numbers.set(Counter::ConnectionsMade, 25);
        }
    });
    let (advice, _) = advice(&summary.verdict);
    assert!(advice.iter().all(|advice| **advice == Advice::QuieterMachine), "{advice:?}");
}

#[test]
fn datagrams_that_found_no_room_spoil_latency() {
    let dropping_of = |n: u64, missing: u64| {
        verdict_of(move |i, second| {
            second.numbers.add(Counter::DatagramsDropped, if i == 2 { n } else { 0 });
            second.numbers.set(Counter::ReceiveBufferMissing, if i == 2 { missing } else { 0 });
        })
    };
    let dropping = |n| dropping_of(n, 0);
    let verdict = dropping_of(400, RECEIVE_BUFFER_BYTES - 212_992);
    let message = verdict.findings[0].message.to_string();
    assert!(message.contains("(receive buffers have 208 KiB of the 4,096 KiB asked for)"), "{message}");
    let finding = &verdict.findings[0];
    assert_eq!((verdict.judgement, finding.cause), (Judgement::LatencyUnreliable, VerdictCause::FullBuffers));
    assert_eq!((&finding.advice, &finding.seconds), (&Advice::LargerBuffers, &vec![Seconds { first: 2, last: 2 }]));
    // Where as much as was asked for was too little, the system's limit is not the reason.
    assert_eq!(dropping(400).findings[0].advice, Advice::LessAtOnce);
    // One is mentioned.
    let verdict = dropping(1);
    let message = verdict.findings[0].message.to_string();
    assert!(verdict.is_trustworthy() && message.starts_with("this machine dropped 1 datagram:"), "{message}");
}

#[test]
fn exhausted_ports_and_descriptors_are_named() {
    for (failure, cause) in [(Failure::Ports, VerdictCause::Ports), (Failure::Descriptors, VerdictCause::Descriptors)] {
        let failing = |n: u64| {
            verdict_of(move |i, second| {
                if i == 0 {
                    (0..n).for_each(|_| second.failures.record(failure, ""));
                    second.numbers.add(Counter::Due, n);
                }
            })
        };
        let verdict = failing(30);
        assert_eq!(verdict.judgement, Judgement::GeneratorBound);
        assert_eq!(verdict.findings[0].cause, cause);
        assert!(matches!(verdict.findings[0].advice, Advice::SeeDoctor(_)) && !verdict.is_load_as_asked);
        // One of ten thousand is mentioned.
        let verdict = failing(1);
        assert!(
            verdict.is_trustworthy() && verdict.findings[0].message.to_string().contains("1 call was never sent"),
            "{verdict:?}"
        );
        assert!(!matches!(verdict.findings[0].advice, Advice::SeeDoctor(_)), "it spoils nothing: {verdict:?}");
        // So are connections that could not be made and cost no call.
        let verdict = verdict_of(move |_, second| second.troubles.record(failure, ""));
        let message = verdict.findings[0].message.to_string();
        assert!(verdict.is_trustworthy() && message.contains("attempts to connect failed"), "{message}");
    }
}

#[test]
fn of_nothing_there_is_no_trust() {
    let (plan, mut run) = run();
    run.measured = Snapshot::with_numbers([(Counter::Due, 10)]);
    (0..10).for_each(|_| run.measured.failures.record(Failure::Connect, "connection refused"));
    run.measured.times.record_n(Timing::Response, 30_000, 10);
    let verdict = Summary::new(plan, run).verdict;
    assert_eq!(verdict.judgement, Judgement::NothingMeasured);
    assert!(!verdict.is_trustworthy() && verdict.figures.is_empty());
}

#[test]
fn one_bad_second_of_ten_is_named_and_does_not_decide() {
    let verdict = verdict_of(|i, second| {
        if i == 4 {
            second.numbers.set_health(&health(400 * MS, 590 * MS));
        }
    });
    assert!(verdict.is_trustworthy());
    assert_eq!(
        (verdict.findings.len(), verdict.findings[0].seconds.as_slice()),
        (1, [Seconds { first: 4, last: 4 }].as_slice())
    );
}

/// A folded point is spoiled by its time, not by its worst moment.
#[test]
fn folded_points_are_judged_by_time() {
    let saturated = |seconds: &[u64]| {
        let (mut series, ok) = (Series::default(), OkStatus::default());
        for cpu_ms in seconds {
            let mut second = Snapshot { numbers: health(cpu_ms * MS, 0), ..Default::default() };
            calls(&mut second, 10, MS, 0, 0);
            series.push(SECOND_NS / 4, &second, &ok);
        }
        series.points().iter().map(is_saturated).collect::<Vec<_>>()
    };
    // Four stretches become one point.
    assert_eq!(saturated(&[999, 100, 100, 100]), [true], "each stretch counts as a second of worker time here");
    assert_eq!(saturated(&[100, 100, 100, 100]), [false]);
}

mod as_read {
    //! Results without times of arrival: of before they were asked for, or where nothing tells them.

    use super::*;

    fn verdict_of(fault: impl Fn(u64, &mut Snapshot)) -> Verdict {
        let (mut plan, mut run) = run();
        plan.load = open();
        run.measured = Snapshot::default();
        run.series = Series::default();
        for i in 0..10 {
            let mut second = Snapshot { numbers: health(400 * MS, 0), ..Default::default() };
            (0..1000).for_each(|_| second.statuses.record(200));
            second.times.record_n(Timing::Response, 800_000, 1000);
            second.times.record_n(Timing::Lag, 20_000, 1000);
            fault(i, &mut second);
            run.series.push(SECOND_NS, &second, &OkStatus::default());
            run.measured.merge(&second);
        }
        run.measured_ns = 10 * SECOND_NS;
        Summary::new(plan, run).verdict
    }

    #[test]
    fn a_starved_worker_spoils_latency() {
        let verdict = verdict_of(|_, second| second.numbers.set_health(&health(400 * MS, 300 * MS)));
        assert_eq!(verdict.judgement, Judgement::LatencyUnreliable);
        assert_eq!(verdict.findings[0].cause, VerdictCause::CpuStarved);
    }

    #[test]
    fn lag_bounds_the_percentiles_that_it_can_reach() {
        let late = verdict_of(|_, second| {
            second.times.record_n(Timing::Lag, 2 * MS, 30);
            second.times.record_n(Timing::Response, 3 * MS, 30);
        });
        assert_eq!((names(&late, true), names(&late, false)), (vec!["p50", "p90"], vec!["p99"]));
        let hidden = verdict_of(|_, second| {
            second.times.record_n(Timing::Lag, 2 * MS, 30);
            second.times.record_n(Timing::Response, SECOND_NS, 1000);
        });
        assert!(hidden.is_trustworthy(), "{hidden:?}");
    }
}
