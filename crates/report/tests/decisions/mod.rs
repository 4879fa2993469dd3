//! Decisions over made-up runs.

use brunt_model::SECOND_NS;
use brunt_model::arrivals::Spread;
use brunt_model::capacity::{Answer, Capacity, Length, Next, Settings, Trial, next};
use brunt_model::evidence::Evidence;
use brunt_model::histogram::AtLeast;
use brunt_model::plan::{Load, Plan};
use brunt_model::threshold::ThresholdResult;
use brunt_model::verdict::Judgement;

use crate::fixtures;

const MS: u64 = 1_000_000;

/// A run of `seconds` in which `per_s` calls a second were answered around `typical_ns`.
pub fn evidence(per_s: f64, seconds: u64, typical_ns: u64) -> Evidence {
    let due = (per_s * seconds as f64).round() as u64;
    let time = |share: f64| Some(AtLeast::exactly((typical_ns as f64 * share) as u64));
    Evidence {
        started_unix_ms: 1_767_225_600_000,
        measured_ns: seconds * SECOND_NS,
        due,
        answered: due,
        ok: due,
        failed: 0,
        error_ratio: 0.0,
        answered_per_s: per_s,
        mean_ns: Some(AtLeast::exactly(typical_ns as f64 * 1.2)),
        p50_ns: time(1.0),
        p90_ns: time(1.5),
        p99_ns: time(3.0),
        p99_9_ns: time(6.0),
        service_p50_ns: time(1.0),
        waited_for_connection: 0,
        behind_ratio: 0.0,
        judgement: Judgement::Trustworthy,
        verdict: "trustworthy".into(),
        thresholds: Vec::new(),
        failure: String::new(),
        interrupted: false,
    }
}

fn plan() -> Plan {
    let mut plan = fixtures::clean().run.plan;
    plan.load = Load::Open { profile: "100".parse().unwrap(), arrivals: Spread::Uniform };
    plan.stop.duration_ns = Some(5 * SECOND_NS);
    plan.warmup_ns = SECOND_NS;
    plan.thresholds = vec!["p99<50ms".parse().unwrap()];
    plan
}

/// A trial of a target that takes 2000 calls a second, by a generator that makes at most `generator`.
fn trial(settings: &Settings, step: i32, length: Length, generator: f64) -> Trial {
    let rate = settings.rate(step);
    let over = (rate / 2000.0 - 1.0).max(0.0);
    let seconds = if length == Length::Full { 5 } else { 1 };
    let mut run = evidence(rate, seconds, 2 * MS + (over * 5e9) as u64);
    let held = over == 0.0;
    run.thresholds.push(ThresholdResult {
        threshold: "p99<50ms".into(),
        got: if held { "6.00ms".into() } else { "≥150.0ms".into() },
        held,
    });
    if !held {
        run.p99_ns = run.p99_ns.map(|p99| AtLeast { value: p99.value, at_least: true });
        run.failed = run.due - 2000 * seconds;
        run.answered -= run.failed;
        run.ok -= run.failed;
        run.error_ratio = run.failed as f64 / run.due as f64;
        run.answered_per_s = 2000.0;
        run.failure = "unsent".into();
        run.waited_for_connection = run.due / 2;
    }
    if rate > generator {
        run.judgement = Judgement::GeneratorBound;
        run.verdict = "generator-bound: throughput is a lower bound (a worker used 99 % of a CPU)".into();
    }
    Trial::of(settings, step, length, run)
}

fn search(settings: Settings, generator: f64) -> Capacity {
    let mut trials = Vec::new();
    let answer = loop {
        match next(&settings, &trials) {
            Next::Done(answer) => break answer,
            Next::Try { step, length } => trials.push(trial(&settings, step, length, generator)),
        }
    };
    Capacity { settings, answer, trials }
}

/// Of each kind one.
pub fn capacities() -> Vec<(&'static str, Plan, Capacity)> {
    let settings = Settings { precision_ratio: 0.05, repeats: 3, ..Settings::default() };
    let found = search(settings, 1e6);
    assert!(matches!(found.answer, Answer::Between { .. }));
    let mut poisson = plan();
    poisson.load = Load::Open { profile: "100".parse().unwrap(), arrivals: Spread::Poisson };
    let mut interrupted = search(settings, 1e6);
    interrupted.trials.truncate(7);
    interrupted.answer = Answer::Interrupted { met_per_s: Some(1500.0), failed_per_s: Some(2100.0) };
    let answered = |answer| Capacity { settings, answer, trials: Vec::new() };
    let slower = Answer::Connections {
        met_per_s: 3100.0,
        at_per_s: 3255.0,
        service_p50_ns: 21 * MS,
        unloaded_service_p50_ns: 20 * MS,
    };
    vec![
        ("found", plan(), found),
        ("generator", poisson, search(settings, 1900.0)),
        ("interrupted", plan(), interrupted),
        ("connections", plan(), answered(slower)),
        ("silent", plan(), answered(Answer::NeverAnswered { failure: "connect: connection \u{1b}[31mrefused".into() })),
    ]
}
