//! The search against made-up targets: what it says is held against what they are.

use proptest::prelude::*;

use super::*;
use crate::histogram::AtLeast;
use crate::random::Random;
use crate::threshold::ThresholdResult;
use crate::verdict::Judgement;

/// A run of a target that met its threshold or not, by a generator that had room to spare or not.
fn evidence(met: bool, trusted: bool) -> Evidence {
    Evidence {
        started_unix_ms: 0,
        measured_ns: 5_000_000_000,
        due: 1000,
        answered: 1000,
        ok: 1000,
        failed: 0,
        error_ratio: 0.0,
        answered_per_s: 200.0,
        mean_ns: None,
        p50_ns: None,
        p90_ns: None,
        p99_ns: None,
        p99_9_ns: None,
        service_p50_ns: Some(AtLeast::exactly(if met { 1_000_000 } else { 9_000_000 })),
        waited_for_connection: if met { 0 } else { 900 },
        behind_ratio: 0.0,
        judgement: if trusted { Judgement::Trustworthy } else { Judgement::GeneratorBound },
        verdict: String::new(),
        thresholds: vec![ThresholdResult { threshold: "p99<50ms".into(), got: "60ms".into(), held: met }],
        failure: String::new(),
        interrupted: false,
    }
}

/// Searches a target of which `run` says what a run at a rate comes to; the answer, and the trials it took.
fn search(settings: &Settings, mut run: impl FnMut(f64) -> Evidence) -> (Answer, Vec<Trial>) {
    let mut trials = Vec::new();
    loop {
        match next(settings, &trials) {
            Next::Done(answer) => return (answer, trials),
            Next::Try { step, length } => {
                let evidence = run(settings.rate(step));
                trials.push(Trial::of(settings, step, length, evidence));
            }
        }
    }
}

#[test]
fn the_grid_is_as_fine_as_asked_and_ends_where_asked() {
    let settings = Settings { from_per_s: 250.0, highest_per_s: 1000.0, ..Settings::default() };
    assert_eq!((settings.rate(0), settings.rate(1), settings.rate(-1)), (250.0, 255.0, 245.1));
    assert_eq!(settings.doubling(), 36);
    assert!(settings.rate(settings.top()) <= 1000.0 && settings.rate(settings.top()) > 980.0);
    assert!(settings.rate(settings.bottom()) >= LOWEST_RATE && settings.rate(settings.bottom()) < 1.02);
    let exact = Settings { from_per_s: 500.0, highest_per_s: 500.0, ..settings };
    assert_eq!((exact.top(), exact.rate(0)), (0, 500.0));
}

proptest! {
    #[test]
    fn a_steady_target_is_found_within_the_precision(
        capacity in 1.5_f64..2e6,
        from in 1.0_f64..1e5,
        precision in 0.01_f64..0.1,
        repeats in 1_u32..7,
    ) {
        let settings = Settings { from_per_s: from, precision_ratio: precision, repeats, ..Settings::default() };
        let (answer, trials) = search(&settings, |rate| evidence(rate <= capacity, true));
        let Answer::Between { low_per_s, high_per_s, .. } = answer else { panic!("{answer:?}") };
        prop_assert!(low_per_s <= capacity && capacity < high_per_s, "{low_per_s} {high_per_s}");
        prop_assert!(high_per_s / low_per_s < 1.0 + precision + 0.002);
        prop_assert!(trials.len() <= 45 + 2 * repeats as usize, "{} trials", trials.len());
    }

    #[test]
    fn a_generator_that_gives_out_first_is_no_capacity(capacity in 200_f64..1e5, share in 0.05_f64..0.97) {
        let limit = capacity * share;
        let (answer, trials) = search(&Settings::default(), |rate| evidence(rate <= limit, rate <= limit));
        let Answer::Generator { met_per_s, at_per_s, .. } = answer else { panic!("{answer:?}") };
        prop_assert!(met_per_s.is_some_and(|met| met <= limit) && at_per_s > limit);
        prop_assert!(trials.iter().all(|trial| trial.rate_per_s <= limit || trial.outcome == Outcome::Spoiled));
    }

    #[test]
    fn a_generator_that_gives_out_later_does_not_matter(capacity in 200_f64..1e5, more in 1.1_f64..3.0) {
        let (answer, _) = search(&Settings::default(), |rate| evidence(rate <= capacity, rate <= capacity * more));
        let Answer::Between { low_per_s, high_per_s, .. } = answer else { panic!("{answer:?}") };
        prop_assert!(low_per_s <= capacity && capacity < high_per_s);
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
    let settings = Settings { from_per_s: 100.0, ..Settings::default() };
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
            let Answer::Between { low_per_s, high_per_s, .. } = answer else { continue };
            held += u32::from(low_per_s <= capacity && capacity < high_per_s);
            wide += u32::from(high_per_s / low_per_s > (1.0 + 0.04) * (12.0 * width).exp());
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
    let Answer::Between { low_per_s, high_per_s, .. } = answer else { panic!("{answer:?}") };
    assert!(low_per_s <= 1000.0 && high_per_s > 1000.0, "{low_per_s} {high_per_s}");
    assert!(trials.iter().filter(|trial| trial.step == trials.last().unwrap().step).count() >= 3);
}

#[test]
fn ends_that_cannot_be_passed_are_told() {
    let settings = Settings { from_per_s: 50.0, highest_per_s: 400.0, ..Settings::default() };
    let (answer, trials) = search(&settings, |_| evidence(true, true));
    assert!(
        matches!(answer, Answer::AtLeast { rate_per_s } if rate_per_s > 392.0 && rate_per_s <= 400.0),
        "{answer:?}"
    );
    assert_eq!(trials.iter().filter(|trial| trial.length == Length::Full).count(), 6);
    let (answer, _) = search(&settings, |_| evidence(false, true));
    assert!(matches!(answer, Answer::BelowAll { rate_per_s } if rate_per_s < 1.02), "{answer:?}");
    let (answer, _) = search(&settings, |_| evidence(false, false));
    assert!(matches!(answer, Answer::Generator { met_per_s: None, .. }), "{answer:?}");
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

#[test]
fn a_target_that_falls_behind_does_not_meet_its_rate_though_thresholds_hold() {
    let run = Evidence { behind_ratio: 0.03, ..evidence(true, true) };
    let trial = Trial::of(&Settings::default(), 0, Length::Full, run);
    assert_eq!((trial.outcome, trial.why.as_str()), (Outcome::Failed, "fell behind by 3.0 %"));
}

#[test]
fn what_is_left_shrinks_to_nothing() {
    let settings = Settings::default();
    let mut trials = Vec::new();
    let mut estimates = Vec::new();
    while let Next::Try { step, length } = next(&settings, &trials) {
        estimates.push(trials_left(&settings, &trials));
        let run = evidence(settings.rate(step) <= 5000.0, true);
        trials.push(Trial::of(&settings, step, length, run));
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
            // In one run of five the generator gets no CPU, and what it measures fails.
            let busy = random.unit() < 0.2;
            evidence(rate <= 2000.0 && !busy, !busy)
        });
        if let Answer::Between { low_per_s, high_per_s, .. } = answer {
            assert!(low_per_s <= 2000.0 && high_per_s > 2000.0, "{low_per_s} {high_per_s}");
            found += 1;
        }
        assert!(trials.len() < 60, "{}", trials.len());
    }
    assert!(found >= 180, "{found} of 200");
}
