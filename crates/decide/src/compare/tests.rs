//! False alarms and misses, counted over seeded trials on series such as machines make them.

use brunt_plan::random::Random;
use brunt_record::SECOND_NS;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::histogram::{AtLeast, Histogram};
use brunt_record::messages::MessageArrival;
use brunt_record::outcome::OkStatus;
use brunt_record::series::Series;
use brunt_record::snapshot::Snapshot;

use super::*;

/// A machine whose speed wanders: each step keeps `memory` of where the last was, and a trend goes through all of it.
struct Machine {
    random: Random,
    memory: f64,
    /// How far a step goes, and how far the trend does; as logarithms of a ratio.
    step: f64,
    trend: f64,
    at: f64,
}

impl Machine {
    fn new(seed: u64, memory: f64, step: f64, trend: f64) -> Self {
        let mut machine = Self { random: Random::new(seed, 3), memory, step, trend, at: 0.0 };
        // From wherever it wanders to in the long run.
        machine.at = machine.normal() * step / (1.0 - memory * memory).sqrt();
        machine
    }

    /// Normal with mean 0 and standard deviation 1 (G. E. P. Box, M. E. Muller, 1958).
    fn normal(&mut self) -> f64 {
        let (a, b) = (self.random.unit(), self.random.unit());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    /// A run of something that takes `cost` times as long as it usually does.
    fn run(&mut self, cost: f64) -> ComparedFigures {
        self.at = self.at * self.memory + self.normal() * self.step;
        self.trend *= 1.02;
        let slow = (self.at + self.trend).exp() * cost;
        // Percentiles move together, and the further out they are the more they move by themselves.
        let times = [1.0, 0.9, 2.0, 5.0, 12.0].map(|share| share * 1e6 * slow);
        let own = [0.01, 0.01, 0.015, 0.04, 0.1].map(|noise| (self.normal() * noise).exp());
        let noise = (self.normal() * 0.005).exp();
        ComparedFigures {
            count: 50_000,
            rate: 20_000.0 / slow * noise,
            times: std::array::from_fn(|at| Some(AtLeast::exactly(times[at] * own[at]))),
            error_rate: 0.0,
            messages: None,
            unreliable: Vec::new(),
            own: Vec::new(),
        }
    }

    /// Rounds in which B takes `cost` times as long as A.
    fn rounds(&mut self, n: u32, cost: f64) -> Vec<(ComparedFigures, ComparedFigures)> {
        let seed = self.random.next_u64();
        let round = |round: u32| {
            if a_goes_first(seed, round) {
                let a = self.run(1.0);
                (a, self.run(cost))
            } else {
                let b = self.run(cost);
                (self.run(1.0), b)
            }
        };
        (0..n).map(round).collect()
    }
}

const TRIALS: u64 = 1000;

/// What is promised: of equal sides at most this share is called different.
const CALLED_DIFFERENT: f64 = 0.05;
/// A test's own false alarm: one in 10,000.
const BY_CHANCE: f64 = 1e-4;

/// The most alarms in so many trials that keep the promise: X of Binomial(n, 5%) exceeds it once in 10,000. It is the least
/// k with Σ over i > k of C(n, i) · 0.05^i · 0.95^(n − i) ≤ 0.0001: 77 of 1000, 23 of 200.
fn most_alarms(trials: u64) -> u64 {
    let (n, p) = (trials as f64, CALLED_DIFFERENT);
    let mut exactly = (1.0 - p).powf(n);
    let mut beyond = 1.0 - exactly;
    let mut k = 0.0;
    while beyond > BY_CHANCE {
        exactly *= (n - k) / (k + 1.0) * p / (1.0 - p);
        k += 1.0;
        beyond -= exactly;
    }
    k as u64
}

#[test]
fn chance_has_its_room() {
    assert_eq!((most_alarms(1000), most_alarms(200)), (77, 23));
}

/// Of how many of [`TRIALS`] comparisons something is said to differ.
fn alarms(mut compare: impl FnMut(u64) -> Comparison) -> u64 {
    (0..TRIALS).filter(|seed| compare(*seed).differs()).count() as u64
}

/// Machines that are steady, noisy, drifting, and wandering with a long memory.
const MACHINES: [(f64, f64, f64); 6] =
    [(0.0, 0.0, 0.0), (0.0, 0.05, 0.0), (0.5, 0.03, 0.0), (0.9, 0.03, 0.02), (0.99, 0.02, 0.0), (0.0, 0.01, 0.2)];

#[test]
fn rounds_of_the_same_are_called_different_in_at_most_one_of_twenty() {
    let mut all = 0;
    let mut trials = 0;
    for (memory, step, trend) in MACHINES {
        for rounds in [LEAST_ROUNDS, 20] {
            let alarms = alarms(|seed| {
                let rounds = Machine::new(seed, memory, step, trend).rounds(rounds, 1.0);
                Comparison::of_rounds(&rounds).unwrap()
            });
            assert!(
                alarms <= most_alarms(TRIALS),
                "{alarms} of {TRIALS} on {:?}, {rounds} rounds",
                (memory, step, trend)
            );
            all += alarms;
            trials += TRIALS;
        }
    }
    assert!(all <= trials / 20, "{all} of {trials}");
}

#[test]
fn rounds_find_a_tenth() {
    for (memory, step, trend) in MACHINES {
        let found = alarms(|seed| {
            let rounds = Machine::new(seed, memory, step, trend).rounds(LEAST_ROUNDS, 1.1);
            let comparison = Comparison::of_rounds(&rounds).unwrap();
            let rate = comparison.difference(Metric::Rate).unwrap();
            assert!(!(rate.differs && rate.ratio > 1.0), "slower is not faster");
            comparison
        });
        let least = if step >= 0.05 { TRIALS * 8 / 10 } else { TRIALS * 95 / 100 };
        assert!(found >= least, "{found} of {TRIALS} on {:?}", (memory, step, trend));
    }
}

/// The conditions of `action/gate.sh` where none are given, read from the comment at its head.
fn gates_conditions() -> Vec<FailIf> {
    let gate = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../action/gate.sh")).unwrap();
    let line = gate.lines().find(|line| line.starts_with("#   GATE_FAIL_IF")).unwrap();
    let (_, list) = line.trim_end_matches(']').split_once('[').unwrap();
    let conditions: Vec<_> = list.split(", ").map(|text| text.parse().unwrap()).collect();
    let used = gate.split("${GATE_FAIL_IF:-").nth(1).and_then(|rest| rest.split('}').next()).unwrap();
    assert_eq!(used.lines().map(|text| text.parse().unwrap()).collect::<Vec<FailIf>>(), conditions);
    conditions
}

#[test]
fn the_gate_fails_equal_builds_once_in_a_hundred_and_finds_a_fifth() {
    let conditions = gates_conditions();
    for (memory, step, trend) in MACHINES {
        let failed = |cost: f64| {
            let failed = (0..TRIALS).filter(|seed| {
                let rounds = Machine::new(*seed, memory, step, trend).rounds(LEAST_ROUNDS, cost);
                let comparison = Comparison::of_rounds(&rounds).unwrap();
                conditions.iter().any(|condition| comparison.judge(condition).failed)
            });
            failed.count() as u64
        };
        let (equal, slower) = (failed(1.0), failed(1.21));
        assert!(equal <= TRIALS / 100, "{equal} of {TRIALS} equal builds on {:?}", (memory, step, trend));
        assert!(slower >= TRIALS * 9 / 10, "{slower} of {TRIALS} slower builds on {:?}", (memory, step, trend));
    }
}

#[test]
fn the_gate_finds_a_slower_tenth_behind_an_equal_median() {
    let conditions = gates_conditions();
    let found = (0..TRIALS).filter(|seed| {
        let mut rounds = Machine::new(*seed, 0.5, 0.03, 0.0).rounds(LEAST_ROUNDS, 1.0);
        for (_, b) in &mut rounds {
            b.times[2] = b.times[2].map(|time| AtLeast::exactly(time.value * 3.0));
        }
        let comparison = Comparison::of_rounds(&rounds).unwrap();
        conditions.iter().any(|condition| comparison.judge(condition).failed)
    });
    assert_eq!(found.count() as u64, TRIALS);
}

#[test]
fn two_rounds_tell_about_how_many_are_needed() {
    let condition: FailIf = "p50 > 1.1x".parse().unwrap();
    let pilot = |seed: u64, step: f64| Machine::new(seed, 0.0, step, 0.0).rounds(2, 1.0);
    let median = |of: &dyn Fn(u64) -> f64| {
        let mut all: Vec<_> = (0..TRIALS).map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    // Runs that differ by 5%, and p50 by 1% of its own: 2 · 2.8² · 0.051² ÷ ln(1.1)² = 4.5 rounds; and by 20%: 69.
    for (step, needed) in [(0.05, 4.5), (0.2, 69.0)] {
        let told = median(&|seed| rounds_to_decide(&condition, &pilot(seed, step)).unwrap().into());
        assert!((needed * 0.5..needed * 1.5).contains(&told), "{told} of {needed}");
        // As many show equal sides to be within the limit in about four of five comparisons.
        let rounds = needed.ceil() as u32;
        let decided = (0..TRIALS).filter(|seed| {
            let all = Machine::new(*seed, 0.0, step, 0.0).rounds(rounds, 1.0);
            Comparison::of_rounds(&all).unwrap().judge(&condition).undecided.is_none()
        });
        let decided = decided.count() as u64;
        assert!((TRIALS * 6 / 10..=TRIALS * 95 / 100).contains(&decided), "{decided} of {TRIALS} by {rounds} rounds");
    }
    let seen = median(&|seed| ratio_to_see(Metric::P50, 10, &pilot(seed, 0.05)).unwrap());
    assert!((1.03..1.09).contains(&seen), "{seen}");
    assert_eq!(rounds_to_decide(&"error_rate > +1%".parse().unwrap(), &pilot(1, 0.05)), None);
    assert_eq!(rounds_to_decide(&condition, &pilot(1, 0.05)[..1]), None);
    assert_eq!(rounds_to_decide(&"p50 > 1x".parse().unwrap(), &pilot(1, 0.05)), None, "no number of rounds does");
}

#[test]
fn the_interval_holds_the_true_ratio() {
    let held = (0..TRIALS).filter(|seed| {
        let rounds = Machine::new(*seed, 0.5, 0.03, 0.0).rounds(LEAST_ROUNDS, 1.25);
        let comparison = Comparison::of_rounds(&rounds).unwrap();
        let p99 = comparison.difference(Metric::P99).unwrap();
        p99.low_ratio <= 1.25 && 1.25 <= p99.high_ratio
    });
    let held = held.count() as u64;
    assert!((TRIALS * 93 / 100..=TRIALS * 99 / 100).contains(&held), "{held} of {TRIALS}");
}

#[test]
fn runs_made_by_themselves_are_compared_as_such() {
    let several = |seed: u64, stream: u64, cost: f64| -> Vec<_> {
        // Each on a machine of its own day.
        (0..8).map(|run| Machine::new(seed * 1000 + stream * 100 + run, 0.5, 0.01, 0.0).run(cost)).collect()
    };
    let false_alarms = alarms(|seed| Comparison::of_runs(&several(seed, 0, 1.0), &several(seed, 1, 1.0)).unwrap());
    assert!(false_alarms <= most_alarms(TRIALS), "{false_alarms}");
    let found = alarms(|seed| Comparison::of_runs(&several(seed, 0, 1.0), &several(seed, 1, 1.1)).unwrap());
    assert!(found >= TRIALS * 95 / 100, "{found}");
}

/// Simulated runs of A and B, alternating while both have runs left. B's times are `cost` times A's.
fn kept(seed: u64, machine: (f64, f64, f64), sides: (usize, usize), cost: f64) -> Comparison {
    let (memory, step, trend) = machine;
    let mut machine = Machine::new(seed, memory, step, trend);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    while a.len() < sides.0 || b.len() < sides.1 {
        // The side with more runs left goes next.
        if sides.0 - a.len() > sides.1 - b.len() { a.push(machine.run(1.0)) } else { b.push(machine.run(cost)) }
    }
    Comparison::of_runs(&a, &b).unwrap()
}

/// Machines whose runs differ by a few percent: steady, noisy, drifting, and wandering.
const DAYS: [(f64, f64, f64); 4] = [(0.0, 0.0, 0.0), (0.0, 0.01, 0.0), (0.0, 0.01, 0.2), (0.9, 0.01, 0.0)];

#[test]
fn kept_runs_of_the_same_are_called_different_in_at_most_one_of_twenty() {
    let (mut all, mut trials, mut most) = (0, 0, Vec::new());
    for machine in DAYS.into_iter().chain(MACHINES) {
        for sides in [(3, 3), (3, 1), (1, 3), (4, 2), (5, 1), (8, 8)] {
            let alarms = (0..200).filter(|seed| kept(*seed, machine, sides, 1.0).differs()).count();
            most.push((alarms, sides, machine));
            (all, trials) = (all + alarms, trials + 200);
        }
    }
    most.sort_by_key(|(alarms, ..)| std::cmp::Reverse(*alarms));
    assert!(
        all <= trials / 20 && most.iter().all(|(alarms, ..)| *alarms as u64 <= most_alarms(200)),
        "{all} of {trials}: {most:?}"
    );
}

#[test]
fn kept_runs_find_a_fifth() {
    let mut least = Vec::new();
    for machine in DAYS {
        for sides in [(3, 3), (5, 1), (1, 8), (4, 2)] {
            let found = (0..200).filter(|seed| kept(*seed, machine, sides, 1.2).differs()).count();
            least.push((found, sides, machine));
        }
    }
    least.sort_by_key(|(found, ..)| *found);
    assert!(least.iter().all(|(found, ..)| *found >= 160), "of 200: {least:?}");
}

#[test]
fn a_single_run_has_the_spread_of_the_others() {
    let of = |rates: &[f64]| rates.iter().map(|rate| figures(*rate)).collect::<Vec<_>>();
    let compared = |a: &[f64], b: &[f64]| Comparison::of_runs(&of(a), &of(b)).unwrap();
    // Student's t of two samples with 3 degrees of freedom: 3.182 times 1.291 times the root of 1 + 1/4, in percent of 100.
    let rate = compared(&[98.5, 99.5, 100.5, 101.5], &[103.0]).differences.remove(0);
    let half = 3.1824 * 0.012_910 * 1.25_f64.sqrt() * SINGLE;
    assert!(((rate.high_ratio / rate.ratio).ln() - half).abs() < 2e-4, "{rate:?}");
    assert!(compared(&[98.5, 99.5, 100.5, 101.5], &[140.0]).differences[0].differs);
    assert!(compared(&[140.0], &[98.5, 99.5, 100.5, 101.5]).differences[0].ratio < 1.0);
    assert_eq!(Comparison::of_runs(&of(&[1.0]), &of(&[1.0])), None);
    // A failed call in ten thousand is chance, also where others had none.
    let with = |share: f64| ComparedFigures { error_rate: share, count: 10_000, ..figures(100.0) };
    let failed = |share: f64| Comparison::of_runs(&vec![with(0.0); 3], &[with(share)]).unwrap().errors.unwrap().differs;
    assert!(!failed(0.0001) && failed(0.05));
}

/// The seconds of a run, on a machine that wanders.
fn seconds(seed: u64, n: usize, memory: f64, cost: f64) -> Series {
    let mut machine = Machine::new(seed, memory, 0.03, 0.0);
    let mut series = Series::default();
    for _ in 0..n {
        let slow = machine.run(cost).times[1].unwrap().value;
        let mut second = Snapshot::default();
        let answers = (2e9 / slow) as u64;
        second.numbers.set(Counter::Due, answers);
        (0..answers).for_each(|_| second.statuses.record(200));
        second.count_ends(&OkStatus::default());
        for share in 1..=50 {
            second.times.record_n(Timing::Response, (slow * f64::from(share) / 25.0) as u64, answers.div_ceil(50));
        }
        series.push(SECOND_NS, &second, &OkStatus::default());
    }
    series
}

#[test]
fn blocks_of_the_same_are_called_different_in_at_most_one_of_twenty() {
    for (n, memory) in [(10, 0.0), (10, 0.5), (10, 0.7), (20, 0.7), (30, 0.7), (60, 0.9)] {
        let trials = 200;
        let mut alarms = 0;
        for seed in 0..trials {
            let a = blocks(seconds(2 * seed, n, memory, 1.0).points(), &[]).unwrap();
            let b = blocks(seconds(2 * seed + 1, n, memory, 1.0).points(), &[]).unwrap();
            alarms += u64::from(Comparison::of_blocks(&a, &b).unwrap().differs());
        }
        assert!(alarms <= most_alarms(trials), "{alarms} of {trials} at {n} s, {memory}");
    }
}

#[test]
fn blocks_find_a_tenth() {
    let found = (0..100).filter(|seed| {
        let a = blocks(seconds(2 * seed, 60, 0.5, 1.0).points(), &[]).unwrap();
        let b = blocks(seconds(2 * seed + 1, 60, 0.5, 1.1).points(), &[]).unwrap();
        Comparison::of_blocks(&a, &b).unwrap().differs()
    });
    let found = found.count();
    assert!(found >= 85, "{found} of 100");
}

#[test]
fn ten_seconds_find_a_fifth_where_seconds_are_independent() {
    let found = (0..100).filter(|seed| {
        let a = blocks(seconds(2 * seed, 10, 0.0, 1.0).points(), &[]).unwrap();
        let b = blocks(seconds(2 * seed + 1, 10, 0.0, 1.2).points(), &[]).unwrap();
        Comparison::of_blocks(&a, &b).unwrap().differs()
    });
    let found = found.count();
    assert!(found >= 80, "{found} of 100");
}

#[test]
fn a_run_that_is_too_short_is_not_cut_into_blocks() {
    assert!(blocks(seconds(1, 9, 0.0, 1.0).points(), &[]).is_none());
    assert_eq!(blocks(seconds(1, 10, 0.0, 1.0).points(), &[]).unwrap().each.len(), BLOCKS);
    assert_eq!(blocks(seconds(1, 34, 0.0, 1.0).points(), &[]).unwrap().each.len(), BLOCKS);
    assert!(blocks(&[], &[]).is_none());
}

fn figures(rate: f64) -> ComparedFigures {
    let mut response = Histogram::new();
    response.record_n(1_000_000, 1000);
    let response = brunt_record::histogram::Censored::from(response);
    ComparedFigures::new(rate, 1000, 0.0, &response)
}

#[test]
fn what_cannot_be_compared_is_left_out_and_said() {
    let mut late = figures(100.0);
    late.times[3] = late.times[3].map(|p99| AtLeast { at_least: true, ..p99 });
    let rounds = vec![(figures(100.0), late), (figures(100.0), figures(100.0))];
    let comparison = Comparison::of_rounds(&rounds).unwrap();
    let left_out = |metric| comparison.left_out.iter().find(|left_out| left_out.metric == metric);
    assert_eq!(left_out(Metric::P99).unwrap().why, "only a lower bound is known in 1 of 2");
    assert_eq!(left_out(Metric::P99_9).unwrap().why, "too few calls in 2 of 2");
    let causes = [Metric::P99, Metric::P99_9].map(|metric| left_out(metric).unwrap().cause);
    assert_eq!(causes, [Some(LeftOutCause::LowerBoundOnly), Some(LeftOutCause::TooFewCalls)]);
    // Files of older versions have the words alone.
    let older: LeftOut = serde_json::from_str(r#"{ "metric": "p99.9", "why": "too few calls in 2 of 2" }"#).unwrap();
    assert_eq!(older, LeftOut { cause: None, ..left_out(Metric::P99_9).unwrap().clone() });
    assert!(comparison.difference(Metric::P90).is_some() && !comparison.differs());
    assert_eq!(Comparison::of_rounds(&rounds[..1]), None);
}

#[test]
fn messages_are_compared_where_there_are_some() {
    let with = |first_ms: u64, jitter: u64| {
        let mut messages = Snapshot::default();
        for call in 0..1000_u64 {
            let first = MessageArrival {
                after_ns: first_ms * 1_000_000 + call * 100 + jitter,
                is_first: true,
                is_together: false,
            };
            messages.came(&first);
            messages.came(&MessageArrival { after_ns: 2_000_000 + jitter, is_first: false, is_together: false });
        }
        ComparedFigures { messages: MessageFigures::new(messages.messages(), 1000.0), ..figures(100.0) }
    };
    let rounds: Vec<_> = (0..10).map(|i| (with(10, i * 1000), with(12, (i * 7 % 10) * 1000))).collect();
    let comparison = Comparison::of_rounds(&rounds).unwrap();
    for metric in [Metric::FirstMessageP50, Metric::FirstMessageP99] {
        let found = comparison.difference(metric).unwrap();
        assert!(found.differs && (1.15..1.25).contains(&found.ratio), "{found:?}");
    }
    assert!(!comparison.difference(Metric::MessageGapP99).unwrap().differs);
    assert_eq!(comparison.difference(Metric::MessageRate).unwrap().a.round(), 1000.0);
    assert!(comparison.judge(&"first_message.p99 > 1.05x".parse().unwrap()).failed);
    // One side without any says so, and two say nothing.
    let one: Vec<_> = rounds.iter().map(|(a, _)| (a.clone(), figures(100.0))).collect();
    let left_out = Comparison::of_rounds(&one).unwrap().left_out;
    let why = &left_out.iter().find(|left_out| left_out.metric == Metric::MessageGapP99).unwrap().why;
    assert_eq!(why, "no messages came in 10 of 10");
    let none = Comparison::of_rounds(&vec![(figures(100.0), figures(100.0)); 3]).unwrap();
    assert!(none.left_out.iter().all(|left_out| !left_out.metric.is_of_messages()));
}

#[test]
fn errors_are_compared_by_their_difference() {
    let with = |share: f64| ComparedFigures { error_rate: share, ..figures(100.0) };
    let rounds: Vec<_> = (0..10).map(|i| (with(0.0), with(0.02 + 0.001 * f64::from(i % 3)))).collect();
    let comparison = Comparison::of_rounds(&rounds).unwrap();
    let errors = comparison.errors.as_ref().unwrap();
    assert!(errors.differs && errors.low > 0.02 && errors.high < 0.022, "{errors:?}");
    let judge = |text: &str| comparison.judge(&text.parse().unwrap());
    assert!(judge("error_rate > +1%").failed && !judge("error_rate > 3%").failed);
    assert_eq!(judge("error_rate > 3%").got, "+2.090% [+2.027, +2.153]");
    let same: Vec<_> = (0..10).map(|_| (figures(100.0), figures(100.0))).collect();
    let same = Comparison::of_rounds(&same).unwrap();
    assert!(same.errors.is_none() && !same.judge(&"error_rate > 0%".parse().unwrap()).failed);
}

#[test]
fn a_condition_is_true_only_beyond_the_interval() {
    let rounds: Vec<_> = (0..10).map(|i| (figures(100.0), figures(105.0 + f64::from(i % 3)))).collect();
    let comparison = Comparison::of_rounds(&rounds).unwrap();
    for (text, failed) in [
        ("rate > 1.00x", true),
        ("rate > 1.05x", true),
        ("rate>1.058x", false),
        ("rate < 1.1x", true),
        ("rate < 1.06x", false),
        ("p50 > 1.01x", false),
        ("p99.9 > 2x", true),
    ] {
        assert_eq!(comparison.judge(&text.parse().unwrap()).failed, failed, "{text}");
    }
    let result = comparison.judge(&"p99.9 > 2x".parse().unwrap());
    assert_eq!(result.got, "cannot be judged: too few calls in 10 of 10; try a longer -d");
}

/// Runs of two sides with this result, none of which failed.
fn compared(comparison: Option<Comparison>) -> ComparedRuns {
    ComparedRuns {
        origin: Origin::default(),
        a: "a".to_owned(),
        b: "b".to_owned(),
        how: String::new(),
        differing: Vec::new(),
        comparison,
        conditions: Vec::new(),
        interrupted: false,
        runs: Vec::new(),
        lacking: Lacking::default(),
    }
}

#[test]
fn what_could_not_be_judged_is_no_failure() {
    let rounds: Vec<_> = (0..10).map(|i| (figures(100.0), figures(105.0 + f64::from(i % 3)))).collect();
    let comparison = Comparison::of_rounds(&rounds).unwrap();
    let judged = |texts: &[&str]| {
        let conditions: Vec<FailIf> = texts.iter().map(|text| text.parse().unwrap()).collect();
        compared(Some(comparison.clone())).with_conditions(&conditions).is_unjudged()
    };
    assert!(judged(&["p99.9 > 2x"]) && judged(&["p99.9 > 2x", "rate < 0.5x"]), "its figure is unknown");
    assert!(!judged(&["p99.9 > 2x", "rate > 1.00x"]), "one failed for sure");
    assert!(!judged(&["rate < 0.5x"]) && !judged(&[]), "all was judged");
    assert!(compared(None).with_conditions(&[]).is_unjudged(), "there was too little");
}

#[test]
fn conditions_that_are_nonsense_are_refused_with_a_way_out() {
    for (text, expected) in [
        ("p99", "there must be one of < and > in it"),
        ("p99 >= 1.05x", "there is < and >"),
        ("p99 > 1.05", "expected a factor such as 1.05x"),
        ("p99 > 0x", "expected a factor such as 1.05x"),
        ("p99 > 50ms", "expected a factor"),
        (
            "p75 > 1.1x",
            "'p75' is not a figure that is compared; there are rate, mean, p50, p90, p99, p99.9, message_rate, first_message.p50, \
             first_message.p99, message_gap.p99 and error_rate",
        ),
        ("error_rate > 1.05x", "expected a share"),
        ("a < b > c", "one of < and >"),
    ] {
        let error = text.parse::<FailIf>().unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn a_condition_that_could_not_have_been_seen_says_so() {
    // p99 is anything from a tenth to ten times as long.
    let with = |factor: f64| {
        let mut of = figures(100.0);
        of.times[3] = Some(AtLeast::exactly(1e6 * factor));
        of
    };
    let rounds: Vec<_> = (0..10).map(|i| (with(1.0), with(if i % 2 == 0 { 0.03 } else { 33.0 }))).collect();
    let wide = Comparison::of_rounds(&rounds).unwrap();
    let judge = |comparison: &Comparison, text: &str| comparison.judge(&text.parse().unwrap());
    let result = judge(&wide, "p99 > 1.1x");
    assert!(!result.failed && result.got.ends_with("12.") || result.got.contains("[0.0"), "{result:?}");
    let seen_from: f64 = result.undecided.unwrap().strip_suffix('x').unwrap().parse().unwrap();
    assert!(seen_from > 10.0, "{seen_from}");
    assert!(judge(&wide, "p99 < 0.9x").undecided.is_some());
    // Where the interval lies wholly on the good side, it is ruled out; where on the other, it is true.
    let rounds: Vec<_> = (0..10).map(|i| (with(1.0), with(1.0 + 0.01 * f64::from(i % 3)))).collect();
    let narrow = Comparison::of_rounds(&rounds).unwrap();
    assert_eq!(judge(&narrow, "p99 > 1.1x").undecided, None);
    assert!(judge(&narrow, "p99 > 1.01x").undecided.is_some_and(|from| from.starts_with("1.0")));
    assert!(judge(&narrow, "p99 < 1.1x").failed);
}

#[test]
fn rounds_that_the_generator_spoiled_count_for_neither_side() {
    let spoiled = |rate: f64, metric| ComparedFigures { unreliable: vec![metric], ..figures(rate) };
    let mut rounds: Vec<_> = (0..10).map(|i| (figures(100.0), figures(100.0 + f64::from(i % 2)))).collect();
    rounds[3].1 = spoiled(5000.0, Metric::Rate);
    rounds[5].0 = spoiled(1.0, Metric::Rate);
    let comparison = Comparison::of_rounds(&rounds).unwrap();
    let rate = comparison.difference(Metric::Rate).unwrap();
    assert!(rate.ratio > 1.0 && rate.ratio < 1.01, "{rate:?}");
    assert_eq!(comparison.discarded, [Discarded { metric: Metric::Rate, count: 2, of: 10 }]);
    assert!(comparison.difference(Metric::P99).is_some());
    // Where most are spoiled, there is nothing to compare.
    rounds.iter_mut().take(8).for_each(|(a, _)| *a = spoiled(100.0, Metric::Rate));
    let comparison = Comparison::of_rounds(&rounds).unwrap();
    assert!(comparison.difference(Metric::Rate).is_none() && comparison.discarded.is_empty());
    let left_out = comparison.left_out.iter().find(|left_out| left_out.metric == Metric::Rate).unwrap();
    assert_eq!(left_out.why, "brunt's own delays spoil it in 8 of 10");
}
