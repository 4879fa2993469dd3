//! The search against made-up targets: what it says is held against what they are.

use brunt_judge::thresholds::{JudgedCondition, ThresholdResult};
use brunt_judge::verdict::Judgement;
use brunt_plan::random::Random;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::histogram::AtLeast;
use proptest::prelude::*;

use super::*;

/// A run of a target that met its threshold or not, by a generator that had room to spare or not.
fn evidence(met: bool, trusted: bool) -> Evidence {
    Evidence {
        started_unix_ms: 0,
        measured_ns: 5_000_000_000,
        machine: None,
        agents: 0,
        due: 1000,
        answered: 1000,
        mismatched: 0,
        ok: 1000,
        failed: 0,
        error_rate: 0.0,
        answered_per_s: 200.0,
        ok_per_s: 200.0,
        mean_ns: None,
        p50_ns: None,
        p90_ns: None,
        p99_ns: None,
        p99_9_ns: None,
        service_p50_ns: Some(AtLeast::exactly(if met { 1_000_000 } else { 9_000_000 })),
        waited_for_connection: if met { 0 } else { 900 },
        behind_ratio: 0.0,
        unreliable: Vec::new(),
        is_mean_reliable: true,
        is_load_as_asked: trusted,
        is_rate_believed: trusted,
        judgement: if trusted { Judgement::Trustworthy } else { Judgement::GeneratorBound },
        verdict: String::new(),
        thresholds: vec![ThresholdResult {
            condition: JudgedCondition::Threshold("p99<50ms".parse().unwrap()),
            value: Some(AtLeast::exactly(60e6)),
            got: "60ms".into(),
            held: met,
            sure: true,
        }],
        failure: String::new(),
        interrupted: false,
        watched: Vec::new(),
        leading: Vec::new(),
        outline: crate::outline::Outline::default(),
    }
}

/// Searches a target; `run` gives the outcome of a trial at a rate. Returns the answer and the trials.
fn search(settings: &Settings, mut run: impl FnMut(f64) -> Evidence) -> (Answer, Vec<Trial>) {
    let mut trials = Vec::new();
    loop {
        match next(settings, &trials) {
            Next::Done(answer) => return (answer, trials),
            Next::Try { step, length } => {
                let evidence = run(settings.level(step));
                trials.push(Trial::new(settings, step, length, evidence));
            }
        }
    }
}

#[test]
fn the_grid_is_as_fine_as_asked_and_ends_where_asked() {
    let settings = Settings { from: 250.0, highest: 1000.0, ..Settings::default() };
    assert_eq!((settings.level(0), settings.level(1), settings.level(-1)), (250.0, 255.0, 245.1));
    assert_eq!(settings.doubling(), 36);
    assert!(settings.level(settings.top()) <= 1000.0 && settings.level(settings.top()) > 980.0);
    assert!(settings.level(settings.bottom()) >= LOWEST_RATE && settings.level(settings.bottom()) < 1.02);
    let exact = Settings { from: 500.0, highest: 500.0, ..settings };
    assert_eq!((exact.top(), exact.level(0)), (0, 500.0));
}

proptest! {
    #[test]
    fn a_steady_target_is_found_within_the_precision(
        capacity in 1.5_f64..2e6,
        from in 1.0_f64..1e5,
        precision in 0.01_f64..0.1,
        repeats in 1_u32..7,
    ) {
        let settings = Settings { from, precision_ratio: precision, repeats, ..Settings::default() };
        let (answer, trials) = search(&settings, |rate| evidence(rate <= capacity, true));
        let Answer::Between { low, high, .. } = answer else { panic!("{answer:?}") };
        prop_assert!(low <= capacity && capacity < high, "{low} {high}");
        prop_assert!(high / low < 1.0 + precision + 0.002);
        prop_assert!(trials.len() <= 45 + 2 * repeats as usize, "{} trials", trials.len());
    }

    #[test]
    fn the_most_connections_are_found_within_the_precision(
        capacity in 1_u32..60_000,
        from in 1_u32..5000,
        precision in 0.01_f64..0.1,
    ) {
        let settings = Settings {
            searched: Searched::Connections,
            from: f64::from(from),
            highest: 65_000.0,
            precision_ratio: precision,
            repeats: 2,
        };
        let (answer, trials) = search(&settings, |connections| evidence(connections <= f64::from(capacity), true));
        let Answer::Between { low, high, .. } = answer else { panic!("{answer:?}") };
        prop_assert!(low <= f64::from(capacity) && f64::from(capacity) < high, "{low} {high}");
        prop_assert!(high - low <= (low * precision).round().max(1.0) + 1.0, "{low} {high}");
        prop_assert!(trials.iter().all(|trial| trial.level.fract() == 0.0 && (1.0..=65_000.0).contains(&trial.level)));
        prop_assert!(trials.len() <= 45, "{} trials", trials.len());
    }

    #[test]
    fn a_generator_that_gives_out_first_is_no_capacity(capacity in 200_f64..1e5, share in 0.05_f64..0.97) {
        let limit = capacity * share;
        let (answer, trials) = search(&Settings::default(), |rate| evidence(rate <= limit, rate <= limit));
        let Answer::Generator { met, at, .. } = answer else { panic!("{answer:?}") };
        prop_assert!(met.is_some_and(|met| met <= limit) && at > limit);
        prop_assert!(trials.iter().all(|trial| trial.level <= limit || trial.outcome == Outcome::Spoiled));
    }

    #[test]
    fn a_generator_that_gives_out_later_does_not_matter(capacity in 200_f64..1e5, more in 1.1_f64..3.0) {
        let (answer, _) = search(&Settings::default(), |rate| evidence(rate <= capacity, rate <= capacity * more));
        let Answer::Between { low, high, .. } = answer else { panic!("{answer:?}") };
        prop_assert!(low <= capacity && capacity < high);
    }

    #[test]
    fn the_search_ends_whatever_comes(seed in any::<u64>(), repeats in 1_u32..7) {
        let mut random = Random::new(seed, 0);
        let settings = Settings { repeats, ..Settings::default() };
        let (_, trials) = search(&settings, |_| {
            let mut run = evidence(random.unit() < 0.6, random.unit() < 0.7);
            run.answered = u64::from(random.unit() < 0.95);
            run
        });
        prop_assert!(trials.len() <= 100);
    }
}

/// Of a target that meets a rate by chance, the more often the lower the rate is, the interval holds the rate that is
/// met half of the time, nearly always.
#[test]
fn the_interval_holds_the_capacity_of_a_noisy_target() {
    let settings = Settings { from: 100.0, ..Settings::default() };
    for width in [0.005, 0.02, 0.05] {
        let mut held = 0;
        let mut wide = 0;
        for seed in 0..400 {
            let mut random = Random::new(seed, 1);
            let capacity = 1000.0 * (1.0 + 4.0 * random.unit());
            let (answer, _) = search(&settings, |rate| {
                let chance = 1.0 / (1.0 + ((rate / capacity).ln() / width).exp());
                evidence(random.unit() < chance, true)
            });
            let Answer::Between { low, high, .. } = answer else { continue };
            held += u32::from(low <= capacity && capacity < high);
            wide += u32::from(high / low > (1.0 + 0.04) * (12.0 * width).exp());
        }
        assert!(held >= 380, "{held} of 400 at {width}");
        assert!(wide <= 40, "{wide} of 400 are too wide at {width}");
    }
}

#[test]
fn a_rate_that_is_met_by_luck_is_put_in_doubt() {
    let settings = Settings { repeats: 3, ..Settings::default() };
    let mut lucky = 1;
    let (answer, trials) = search(&settings, |rate| {
        let luck = rate > 1000.0 && rate < 1030.0 && lucky > 0;
        if luck {
            lucky -= 1;
        }
        evidence(rate <= 1000.0 || luck, true)
    });
    let Answer::Between { low, high, .. } = answer else { panic!("{answer:?}") };
    assert!(low <= 1000.0 && high > 1000.0, "{low} {high}");
    assert!(trials.iter().filter(|trial| trial.step == trials.last().unwrap().step).count() >= 3);
}

#[test]
fn ends_that_cannot_be_passed_are_told() {
    let settings = Settings { from: 50.0, highest: 400.0, ..Settings::default() };
    let (answer, trials) = search(&settings, |_| evidence(true, true));
    assert!(matches!(answer, Answer::AtLeast { level } if level > 392.0 && level <= 400.0), "{answer:?}");
    assert_eq!(trials.iter().filter(|trial| trial.length == Length::Full).count(), 6);
    let (answer, _) = search(&settings, |_| evidence(false, true));
    assert!(matches!(answer, Answer::BelowAll { level } if level < 1.02), "{answer:?}");
    let (answer, _) = search(&settings, |_| evidence(false, false));
    assert!(matches!(answer, Answer::Generator { met: None, .. }), "{answer:?}");
}

#[test]
fn connections_end_where_they_are_told_to_and_where_brunt_is_the_limit() {
    let settings =
        Settings { searched: Searched::Connections, from: 1.0, highest: 100.0, repeats: 2, ..Settings::default() };
    let (answer, trials) = search(&settings, |_| evidence(true, true));
    assert_eq!(answer, Answer::AtLeast { level: 100.0 });
    let tried: Vec<_> = trials.iter().map(|trial| trial.level).collect();
    assert_eq!(tried, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0, 100.0, 100.0]);
    let (answer, _) = search(&settings, |_| evidence(false, true));
    assert_eq!(answer, Answer::BelowAll { level: 1.0 });
    // What brunt's own limit let them ask for is met, and says nothing; what is missed all the same is the target's.
    let limited = |met: bool, connections: f64| {
        let mut run = evidence(met, true);
        run.is_rate_believed = connections <= 40.0;
        run
    };
    let (answer, _) = search(&settings, |connections| limited(true, connections));
    assert!(matches!(answer, Answer::Generator { met: Some(40.0), at: 41.0, .. }), "{answer:?}");
    let (answer, _) = search(&settings, |connections| limited(connections <= 30.0, connections));
    assert!(matches!(answer, Answer::Between { low: 30.0, high: 31.0, .. }), "{answer:?}");
}

/// A target that lets so many calls a second through and turns the rest away at once: fast failures meet any limit of latency, so the
/// share that failed decides.
#[test]
fn a_limit_of_the_rate_is_the_capacity() {
    for limit in [100.0, 430.0, 7_000.0] {
        let (answer, _) = search(&Settings { from: limit / 3.0, ..Settings::default() }, |rate| {
            let mut run = evidence(true, true);
            run.error_rate = (1.0 - limit / rate).max(0.0);
            run.thresholds.push(ThresholdResult {
                condition: JudgedCondition::Default("error_rate<=1%".parse().unwrap()),
                value: Some(AtLeast::exactly(run.error_rate)),
                got: "".into(),
                held: run.error_rate <= 0.01,
                sure: true,
            });
            run
        });
        let Answer::Between { low, high, .. } = answer else { panic!("{answer:?}") };
        assert!(low >= limit * 0.98 && high <= limit * 1.035, "{limit}: {low} {high}");
    }
}

#[test]
fn connections_that_are_missing_are_no_capacity() {
    let (answer, _) = search(&Settings::default(), |rate| {
        let mut run = evidence(rate <= 3200.0, true);
        run.service_p50_ns = Some(AtLeast::exactly(20_000_000));
        run
    });
    assert!(matches!(answer, Answer::Connections { unloaded_service_p50_ns: 20_000_000, .. }), "{answer:?}");
}

#[test]
fn a_target_that_does_not_answer_is_not_asked_for_long() {
    let silent = || Evidence { answered: 0, failure: "connect".into(), ..evidence(false, true) };
    let (answer, trials) = search(&Settings::default(), |_| silent());
    assert_eq!(answer, Answer::NeverAnswered { failure: "connect".into() });
    assert_eq!(trials.len(), 2);
    let mut runs = 0;
    let (answer, _) = search(&Settings::default(), |_| {
        runs += 1;
        if runs > 3 { silent() } else { evidence(true, true) }
    });
    assert!(matches!(answer, Answer::StoppedAnswering { .. }));
}

/// A threshold with this figure that did not hold.
fn missed(threshold: &str, value: Option<f64>) -> ThresholdResult {
    let condition = JudgedCondition::Threshold(threshold.parse().unwrap());
    ThresholdResult { condition, value: value.map(AtLeast::exactly), got: "".into(), held: false, sure: true }
}

#[test]
fn a_figure_that_is_not_measured_ends_the_search_at_its_first_full_trial() {
    for threshold in ["tls.p50<1s", "503:p99<1s", "mean<1s"] {
        let run = || Evidence { thresholds: vec![missed(threshold, None)], ..evidence(true, true) };
        let (answer, trials) = search(&Settings::default(), |_| run());
        let expected =
            Answer::Unjudged { level: 100.0, threshold: threshold.to_owned(), calls: 1000, fewest_calls: None };
        assert_eq!((answer, trials.len()), (expected, 2));
        // One that is measured, and fails beside it, says what the target cannot do.
        let both = || Evidence { thresholds: vec![missed(threshold, None), missed("p50<1ms", Some(2e6))], ..run() };
        let (answer, _) = search(&Settings::default(), |_| both());
        assert!(matches!(answer, Answer::BelowAll { .. }), "{answer:?}");
    }
}

#[test]
fn a_percentile_of_too_few_calls_is_not_judged() {
    // Of five calls a second, one was slow: that says nothing of the slowest one in a thousand.
    let run = |rate: f64, p50_ms: u64, p99_ms: f64| Evidence {
        due: (rate * 5.0) as u64,
        p50_ns: Some(AtLeast::exactly(p50_ms * 1_000_000)),
        thresholds: vec![missed("p99.9<50ms", Some(p99_ms * 1e6))],
        ..evidence(true, true)
    };
    let settings = Settings { from: 4.0, repeats: 2, ..Settings::default() };
    let (answer, _) = search(&settings, |rate| run(rate, 1, 60.0));
    let Answer::Unjudged { level, calls, fewest_calls, .. } = answer else { panic!("{answer:?}") };
    assert_eq!((calls, fewest_calls), (5, Some(2995)));
    assert!(level < 1.02, "{level}");
    // Where half of them are over the limit, no more of them are needed.
    let (answer, _) = search(&settings, |rate| run(rate, 55, 60.0));
    assert!(matches!(answer, Answer::BelowAll { .. }), "{answer:?}");
    // An answer that rests on few calls says so.
    let capacity = |calls_of: f64| {
        let (answer, trials) = search(&settings, |rate| Evidence {
            due: (rate * calls_of) as u64,
            thresholds: vec![ThresholdResult { held: rate < 10.0, ..missed("p99<50ms", Some(60e6)) }],
            ..evidence(rate < 10.0, true)
        });
        Capacity { settings, answer, trials, lacking: Lacking::default() }
    };
    for (seconds, few) in [(5.0, true), (100.0, false)] {
        let capacity = capacity(seconds);
        let Answer::Between { low, .. } = &capacity.answer else { panic!("{:?}", capacity.answer) };
        assert_eq!(capacity.judged_by_few(*low).map(|(_, _, fewest)| fewest), few.then_some(299), "{seconds}");
    }
}

#[test]
fn a_target_that_falls_behind_does_not_meet_its_rate_though_thresholds_hold() {
    let run = Evidence { behind_ratio: 0.03, ..evidence(true, true) };
    let trial = Trial::new(&Settings::default(), 0, Length::Full, run);
    assert_eq!((trial.outcome, trial.why.as_str()), (Outcome::Failed, "the backlog grew by 3.0% of the rate"));
}

#[test]
fn what_is_left_shrinks_to_nothing() {
    let settings = Settings::default();
    let mut trials = Vec::new();
    let mut estimates = Vec::new();
    while let Next::Try { step, length } = next(&settings, &trials) {
        estimates.push(trials_left(&settings, &trials));
        let run = evidence(settings.level(step) <= 5000.0, true);
        trials.push(Trial::new(&settings, step, length, run));
    }
    assert_eq!(*estimates.last().unwrap(), (0, 1));
    assert!(estimates.iter().all(|(short, full)| short + full < 40));
}

#[test]
fn a_machine_that_is_busy_now_and_then_spoils_trials_and_no_answer() {
    let mut found = 0;
    for seed in 0..200 {
        let mut random = Random::new(seed, 2);
        let (answer, trials) = search(&Settings::default(), |rate| {
            // In one run of five the generator gets no CPU, and what it measures is met or not whatever the target does.
            let busy = random.unit() < 0.2;
            evidence(if busy { random.unit() < 0.5 } else { rate <= 2000.0 }, !busy)
        });
        if let Answer::Between { low, high, .. } = answer {
            assert!(low <= 2000.0 && high > 2000.0, "{low} {high}");
            found += 1;
        }
        assert!(trials.len() < 60, "{}", trials.len());
    }
    assert!(found >= 180, "{found} of 200");
}

#[test]
fn what_own_delays_can_have_decided_is_neither_met_nor_failed() {
    let outcome = |held, sure| {
        let mut run = evidence(held, true);
        run.thresholds[0].sure = sure;
        // A verdict on figures that no threshold is about does not matter.
        run.judgement = Judgement::LatencyUnreliable;
        Trial::new(&Settings::default(), 0, Length::Full, run).outcome
    };
    assert_eq!(outcome(true, true), Outcome::Met);
    assert_eq!(outcome(false, true), Outcome::Failed);
    assert_eq!((outcome(true, false), outcome(false, false)), (Outcome::Spoiled, Outcome::Spoiled));
    // A second threshold that surely failed decides by itself.
    let mut run = evidence(false, true);
    run.thresholds.push(ThresholdResult { sure: false, ..run.thresholds[0].clone() });
    assert_eq!(Trial::new(&Settings::default(), 0, Length::Full, run).outcome, Outcome::Failed);
    // Met, but not at the rate that was asked for.
    assert_eq!(Trial::new(&Settings::default(), 0, Length::Full, evidence(true, false)).outcome, Outcome::Spoiled);
}

#[test]
fn a_machine_that_others_use_is_given_up_after_fourteen_spoiled_trials() {
    // Other programs spoil each second trial, whatever the rate; or all of them from the fifth on.
    for spoils in [|nth: usize| nth % 2 == 1, |nth: usize| nth > 4] {
        for repeats in [1, 3, 6] {
            let mut nth = 0;
            let settings = Settings { repeats, ..Settings::default() };
            let (answer, trials) = search(&settings, |rate| {
                nth += 1;
                evidence(rate <= 2000.0, !spoils(nth) || rate > 2000.0)
            });
            let spoiled = trials.iter().filter(|trial| trial.outcome == Outcome::Spoiled).count();
            assert!(spoiled <= 14, "{spoiled} spoiled trials, {answer:?}");
            match answer {
                Answer::Generator { met: Some(met), at, .. } => assert!(met < at && met <= 2000.0, "{met} {at}"),
                Answer::Between { low, high, .. } => assert!(low <= 2000.0 && high > 2000.0, "{low} {high}"),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn the_chance_of_error_grows_with_the_rates_tried() {
    let settings = Settings { repeats: 6, ..Settings::default() };
    let (answer, trials) = search(&settings, |rate| evidence(rate <= 2000.0, true));
    let capacity = Capacity { settings, answer, trials, lacking: Lacking::default() };
    let tried = capacity.rates_tried();
    assert!((2..8).contains(&tried), "{tried}");
    assert!((capacity.chance_of_error() - tried as f64 / 64.0).abs() < 1e-12);
}

#[test]
fn a_search_that_brunt_limits_has_not_found_the_capacity_unless_that_is_allowed() {
    for precision_ratio in [0.005, 0.02, 0.05] {
        let settings = Settings { repeats: 3, precision_ratio, ..Settings::default() };
        let (answer, trials) = search(&settings, |rate| evidence(rate <= 2000.0, rate < 900.0));
        assert!(matches!(answer, Answer::Generator { met: Some(_), .. }), "{answer:?}");
        let found = |max_less_ratio: f64| {
            let (answer, trials) = (answer.clone(), trials.clone());
            Capacity { settings, answer, trials, lacking: Lacking::default() }.judged(max_less_ratio, max_less_ratio)
        };
        let limited = found(MAX_LESS_RATIO);
        assert!(!limited.is_found(), "{limited:?}");
        let [Made { of: Asked::Level, asked, made, why }] = &limited.lacking.short[..] else {
            panic!("{:?}", limited.lacking.short)
        };
        assert!(made < asked && why[0].shortage == Shortage::Generator, "{:?}", limited.lacking.short);
        let allowed = found(0.06);
        assert!(allowed.is_found() && allowed.lacking.short.is_empty(), "{:?}", allowed.lacking.short);
    }
}

mod queues {
    //! Targets that are queues with a capacity by construction, whose calls are simulated one by one.

    use brunt_plan::arrivals::Spread;
    use brunt_plan::plan::{Load, Plan};
    use brunt_plan::profile::Profile;
    use brunt_record::SECOND_NS;
    use brunt_record::histogram::Histogram;
    use brunt_record::outcome::OkStatus;
    use brunt_record::series::Series;
    use brunt_record::snapshot::Snapshot;

    use super::*;
    use crate::evidence::falls_behind;

    /// So many servers that each take a call after the other, in order of arrival.
    #[derive(Debug, Clone, Copy)]
    struct Queue {
        servers: usize,
        service_ns: u64,
        is_exponential: bool,
    }

    impl Queue {
        fn new(capacity: f64, servers: usize) -> Self {
            Self { servers, service_ns: (servers as f64 * 1e9 / capacity).round() as u64, is_exponential: false }
        }

        fn capacity(self) -> f64 {
            self.servers as f64 * 1e9 / self.service_ns as f64
        }

        /// When each of the calls that come at `due` ends.
        fn serve(self, due: &[u64], random: &mut Random) -> Vec<u64> {
            let mut free = vec![0_u64; self.servers];
            let serve = |due: &u64| {
                let first = free.iter_mut().min().unwrap();
                let takes = if self.is_exponential { random.exponential() } else { 1.0 } * self.service_ns as f64;
                *first = (*first).max(*due) + takes as u64;
                *first
            };
            due.iter().map(serve).collect()
        }

        /// A run of `length_ns` after a second of warm-up.
        fn run(self, rate: f64, spread: Spread, length_ns: u64, random: &mut Random) -> Evidence {
            let (mut due, mut at) = (Vec::new(), 0.0);
            while at < (SECOND_NS + length_ns) as f64 {
                due.push(at as u64);
                at += 1e9 / rate * if spread == Spread::Poisson { random.exponential() } else { 1.0 };
            }
            let ends = self.serve(&due, random);
            let mut series = Series::default();
            let mut all = Histogram::new();
            let seconds: Vec<_> = (0..length_ns.div_ceil(SECOND_NS))
                .map(|i| (SECOND_NS * i, (SECOND_NS * (i + 1)).min(length_ns)))
                .collect();
            let mut snapshots: Vec<_> = seconds.iter().map(|_| Snapshot::default()).collect();
            for (due, end) in due.iter().zip(ends).filter(|(due, _)| **due >= SECOND_NS) {
                all.record(end - due);
                for (snapshot, (from, to)) in snapshots.iter_mut().zip(&seconds) {
                    let within = |time: u64| (*from..*to).contains(&(time - SECOND_NS));
                    snapshot.numbers.add(Counter::Due, u64::from(within(*due)));
                    if within(end) {
                        snapshot.times.record(Timing::Response, end - due);
                    }
                }
            }
            for (snapshot, (from, to)) in snapshots.iter().zip(&seconds) {
                series.push(to - from, snapshot, &OkStatus::default());
            }
            let load = Load::Open { profile: Profile::constant(rate).unwrap(), arrivals: spread };
            let plan = Plan { load, ..brunt_judge::fixtures::plan() };
            let limit = 20 * self.service_ns + SECOND_NS;
            let behind_ratio = falls_behind(&plan, series.points());
            Evidence { behind_ratio, ..evidence(all.quantile(0.99).is_none_or(|p99| p99 < limit), true) }
        }

        /// Searches it with trials of five seconds.
        fn search(self, from: f64, spread: Spread, seed: u64) -> (Answer, usize) {
            let settings = Settings { from, ..Settings::default() };
            let mut random = Random::new(seed, 8);
            let mut trials = Vec::new();
            loop {
                match next(&settings, &trials) {
                    Next::Done(answer) => return (answer, trials.len()),
                    Next::Try { step, length } => {
                        let rate = settings.level(step);
                        let length_ns = trial_ns(5 * SECOND_NS, length, rate, spread);
                        let run = self.run(rate, spread, length_ns, &mut random);
                        trials.push(Trial::new(&settings, step, length, run));
                    }
                }
            }
        }
    }

    /// Four servers that take 20 ms each: `find` once answered 204 to 208.
    #[test]
    fn four_servers_of_20_ms_take_200_a_second() {
        let queue = Queue { servers: 4, service_ns: 20_000_000, is_exponential: false };
        let (answer, _) = queue.search(50.0, Spread::Uniform, 1);
        let Answer::Between { low, high, .. } = answer else { panic!("{answer:?}") };
        assert_eq!((low, high), (200.0, 204.0));
    }

    #[test]
    fn uniform_arrivals_find_the_capacity_within_the_precision() {
        for capacity in [5.0, 13.0, 50.0, 333.0, 2_000.0, 20_000.0] {
            for servers in [1, 4] {
                let queue = Queue::new(capacity, servers);
                for from in [3.7, 100.0] {
                    let (answer, trials) = queue.search(from, Spread::Uniform, 1);
                    let Answer::Between { low, high, .. } = answer else { panic!("{answer:?} of {queue:?}") };
                    // What is met may fall behind by a quarter of the precision.
                    let met = low <= queue.capacity() * 1.0055;
                    assert!(met && queue.capacity() < high, "{low} {high} of {queue:?}");
                    assert!(high / low < 1.023, "{low} {high} of {queue:?}");
                    assert!(trials < 50, "{trials} trials from {from} for {queue:?}");
                }
            }
        }
    }

    #[test]
    fn random_arrivals_find_an_interval_that_holds_the_capacity() {
        let (mut all_answers, mut all_held) = (0, 0);
        for (capacity, seeds) in [(5.0, 40), (50.0, 40), (200.0, 40), (2_000.0, 20), (20_000.0, 3)] {
            for is_exponential in [false, true] {
                let queue = Queue { is_exponential, ..Queue::new(capacity, 4) };
                let (mut answers, mut held, mut widest) = (0, 0, 1.0_f64);
                for seed in 0..seeds {
                    let (answer, _) = queue.search(capacity / 4.0, Spread::Poisson, seed);
                    if let Answer::Between { low, high, .. } = answer {
                        answers += 1;
                        held += u32::from(low <= capacity * 1.0055 && capacity * 0.9945 <= high);
                        widest = widest.max(high / low);
                    }
                }
                assert!(answers * 10 >= seeds as u32 * 9, "{answers} of {seeds} at {capacity}");
                assert!(held * 100 >= answers * 92, "{held} of {answers} at {capacity}");
                assert!(capacity < 2_000.0 || widest < 1.2, "{widest}");
                (all_answers, all_held) = (all_answers + answers, all_held + held);
            }
        }
        assert!(all_held * 100 >= all_answers * 97, "{all_held} of {all_answers}");
    }
}
