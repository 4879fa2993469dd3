//! Decisions over made-up runs.

use brunt_decide::capacity::{Answer, Capacity, Length, Next, Searched, Settings, Trial, next};
use brunt_decide::compare::{
    Blocks, ComparedFigures, ComparedRun, ComparedRuns, Comparison, FailIf, MessageFigures, a_goes_first,
};
use brunt_decide::evidence::Evidence;
use brunt_decide::outline::{Outline, tail};
use brunt_decide::short::Lacking;
use brunt_decide::sweep::{Axis, Sweep, SweepStep};
use brunt_judge::thresholds::{JudgedCondition, ThresholdResult};
use brunt_judge::verdict::Judgement;
use brunt_plan::arrivals::Spread;
use brunt_plan::plan::{Load, MAX_LESS_RATIO, Origin, Plan};
use brunt_plan::random::Random;
use brunt_record::SECOND_NS;
use brunt_record::histogram::{AtLeast, Censored, Histogram};
use brunt_record::machine::Machine;
use brunt_record::messages::MessageArrival;
use brunt_record::snapshot::Snapshot;

use crate::fixtures;

const MS: u64 = 1_000_000;

/// A run of `seconds` in which `per_s` calls a second were answered around `typical_ns`.
pub fn evidence(per_s: f64, seconds: u64, typical_ns: u64) -> Evidence {
    let due = (per_s * seconds as f64).round() as u64;
    let time = |share: f64| Some(AtLeast::exactly((typical_ns as f64 * share) as u64));
    Evidence {
        started_unix_ms: 1_767_225_600_000,
        measured_ns: seconds * SECOND_NS,
        machine: Some(Machine {
            hostname: "bench-3".into(),
            cpu: "AMD EPYC".into(),
            cores: 8,
            kernel: "Linux 6.1.0".into(),
        }),
        agents: 0,
        due,
        answered: due,
        mismatched: 0,
        ok: due,
        failed: 0,
        error_rate: 0.0,
        answered_per_s: per_s,
        ok_per_s: per_s,
        mean_ns: Some(AtLeast::exactly(typical_ns as f64 * 1.2)),
        p50_ns: time(1.0),
        p90_ns: time(1.5),
        p99_ns: time(3.0),
        p99_9_ns: time(6.0),
        service_p50_ns: time(1.0),
        waited_for_connection: 0,
        behind_ratio: 0.0,
        unreliable: Vec::new(),
        is_mean_reliable: true,
        is_load_as_asked: true,
        is_rate_believed: true,
        judgement: Judgement::Trustworthy,
        verdict: "trustworthy".into(),
        thresholds: Vec::new(),
        failure: String::new(),
        interrupted: false,
        watched: Vec::new(),
        leading: Vec::new(),
        outline: outline(due, typical_ns, seconds),
    }
}

/// Of so many calls half took `typical_ns`, and one in ten twice as long as one in a hundred.
fn outline(calls: u64, typical_ns: u64, seconds: u64) -> Outline {
    let places = 0..;
    let tails = places.take_while(|place| *place == 0 || tail(*place) * calls as f64 >= 1.0);
    Outline {
        tails_ns: tails.map(|place| typical_ns + typical_ns * place as u64 / 8).collect(),
        stretch_ns: SECOND_NS,
        p99_ns: (0..seconds).map(|second| Some(typical_ns * (30 + second) / 10)).collect(),
    }
}

fn plan() -> Plan {
    let mut plan = fixtures::clean().plan;
    plan.load = Load::Open { profile: "100".parse().unwrap(), arrivals: Spread::Uniform };
    plan.stop.duration_ns = Some(5 * SECOND_NS);
    plan.warmup_ns = SECOND_NS;
    plan.thresholds = vec!["p99<50ms".parse().unwrap()];
    plan
}

/// A trial of a target that takes 2000 calls a second, by a generator that makes at most `generator`.
fn trial(settings: &Settings, step: i32, length: Length, generator: f64) -> Trial {
    let rate = settings.level(step);
    let over = (rate / 2000.0 - 1.0).max(0.0);
    let seconds = if length == Length::Full { 5 } else { 1 };
    let mut run = evidence(rate, seconds, 2 * MS + (over * 5e9) as u64);
    let held = over == 0.0;
    run.thresholds.push(ThresholdResult {
        condition: JudgedCondition::Threshold("p99<50ms".parse().unwrap()),
        value: Some(if held { AtLeast::exactly(6e6) } else { AtLeast { value: 150e6, at_least: true } }),
        got: if held { "6.00ms".into() } else { "≥150.0ms".into() },
        held,
        sure: true,
    });
    if !held {
        run.p99_ns = run.p99_ns.map(|p99| AtLeast { value: p99.value, at_least: true });
        run.failed = run.due - 2000 * seconds;
        run.answered -= run.failed;
        run.ok -= run.failed;
        run.error_rate = run.failed as f64 / run.due as f64;
        (run.answered_per_s, run.ok_per_s) = (2000.0, 2000.0);
        run.failure = "unsent".into();
        run.waited_for_connection = run.due / 2;
    }
    if rate > generator {
        run.judgement = Judgement::GeneratorBound;
        (run.is_load_as_asked, run.is_rate_believed) = (false, false);
        run.verdict = "brunt was the limit: throughput is a lower bound (a worker used 99% of a CPU)".into();
    }
    Trial::new(settings, step, length, run)
}

fn search(settings: Settings, generator: f64) -> Capacity {
    let mut trials = Vec::new();
    let answer = loop {
        match next(&settings, &trials) {
            Next::Done(answer) => break answer,
            Next::Try { step, length } => trials.push(trial(&settings, step, length, generator)),
        }
    };
    Capacity { settings, answer, trials, lacking: Lacking::default() }.judged(MAX_LESS_RATIO, MAX_LESS_RATIO)
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
    interrupted.answer = Answer::Interrupted { met: Some(1500.0), failed: Some(2100.0) };
    let answered = |answer| Capacity { settings, answer, trials: Vec::new(), lacking: Lacking::default() };
    let unsteady =
        |generator| Capacity { answer: Answer::Unsteady { met: Some(1500.0) }, ..search(settings, generator) };
    let closed = Plan { load: Load::Closed {}, ..plan() };
    let users = Settings { searched: Searched::Connections, from: 1.0, highest: 5000.0, ..settings };
    let slower =
        Answer::Connections { met: 3100.0, at: 3255.0, service_p50_ns: 21 * MS, unloaded_service_p50_ns: 20 * MS };
    vec![
        ("found", Plan { origin: decided_origin(), ..plan() }, found),
        ("generator", poisson, search(settings, 1900.0)),
        ("interrupted", plan(), interrupted),
        ("unsteady", plan(), unsteady(1e6)),
        ("spoiled", plan(), unsteady(1900.0)),
        ("connections", plan(), answered(slower)),
        ("users", closed, search(users, 1e6)),
        ("silent", plan(), answered(Answer::NeverAnswered { failure: "connect: connection \u{1b}[31mrefused".into() })),
    ]
}

/// Figures of a run with such a rate and such response times.
fn figures(per_s: f64, typical_ns: f64, error_rate: f64) -> ComparedFigures {
    let mut known = Histogram::new();
    for share in 1..=6000_u64 {
        known.record((typical_ns * share as f64 / 3000.0) as u64);
    }
    ComparedFigures::new(per_s, 6000, error_rate, &Censored::from(known))
}

/// What a user may call a decision.
pub fn decided_origin() -> Origin {
    Origin {
        name: Some("nightly `build`".to_owned()),
        tags: [("branch".to_owned(), "main".to_owned()), ("note".to_owned(), "a | \"b\", <c>".to_owned())].into(),
        command: "brunt sweep --seed 7 -c 1..64 http://127.0.0.1:8080/".to_owned(),
    }
}

/// Rounds in which B takes `cost` times as long, and a share of its calls fails.
fn compared(rounds: u32, cost: f64, errors: f64) -> ComparedRuns {
    let mut random = Random::new(7, 0);
    let mut pairs = Vec::new();
    let mut runs = Vec::new();
    for round in 0..rounds {
        let mut noise = |width: f64| 1.0 + width * (random.unit() - 0.5);
        let (a, b) = (noise(0.04), noise(0.04) * cost);
        pairs.push((figures(2000.0 / a, 2e6 * a, 0.0), figures(2000.0 / b, 2e6 * b, errors * noise(0.2))));
        let run = |is_b: bool, slow: f64| ComparedRun {
            is_b,
            number: round as usize + 1,
            evidence: evidence((2000.0 / slow).round(), 3, (2e6 * slow) as u64),
        };
        let both = [run(false, a), run(true, b)];
        let both = if a_goes_first(7, round) {
            both
        } else {
            let [a, b] = both;
            [b, a]
        };
        runs.extend(both);
    }
    ComparedRuns {
        origin: decided_origin(),
        a: "http://127.0.0.1:8080/".into(),
        b: "http://127.0.0.1:8081/".into(),
        how: "10 rounds in turn (A B B A …), 64 connections on 2 threads, closed model, 3s each after 500ms of warm-up"
            .into(),
        differing: Vec::new(),
        comparison: Comparison::of_rounds(&pairs),
        conditions: Vec::new(),
        interrupted: false,
        runs,
        lacking: Lacking::default(),
    }
}

fn conditions(texts: &[&str]) -> Vec<FailIf> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// Of each kind one.
pub fn comparisons() -> Vec<(&'static str, ComparedRuns)> {
    let slower = compared(10, 1.25, 0.0).with_conditions(&conditions(&["p99 > 1.05x", "rate < 0.5x", "p50 > 1.25x"]));
    let mut few = compared(4, 1.0, 0.0);
    few.interrupted = true;
    few.runs[2].evidence.judgement = Judgement::LatencyUnreliable;
    few.runs[2].evidence.verdict =
        "p50 holds; p90 and p99 are unreliable: a worker waited for a CPU for 22% of a second".into();
    let mut nothing = compared(1, 1.0, 0.0);
    nothing.b = "http://127.0.0.1:8081/ --pipeline '4' | `x`".into();
    let nothing = nothing.with_conditions(&conditions(&["p99 > 1.05x"]));
    let mut blocks = compared(10, 0.9, 0.0);
    blocks.how = String::new();
    blocks.differing = vec!["connections 64 and 128".into()];
    blocks.comparison = Comparison::of_blocks(
        &Blocks { each: (0..10).map(|i| figures(2000.0 + f64::from(i % 3), 2e6, 0.0)).collect(), are_short: false },
        &Blocks { each: (0..10).map(|i| figures(2200.0 - f64::from(i % 4), 1.8e6, 0.0)).collect(), are_short: false },
    );
    let streaming = |first_ms: u64, i: u64| {
        let mut messages = Snapshot::default();
        for call in 0..1000 {
            let first =
                MessageArrival { after_ns: first_ms * MS + call * 1000 + i * 300, is_first: true, is_together: false };
            messages.came(&first);
            messages.came(&MessageArrival { after_ns: 2 * MS + i * 7, is_first: false, is_together: false });
        }
        ComparedFigures {
            messages: MessageFigures::new(messages.messages(), 2000.0 + i as f64),
            ..figures(1000.0, 2e6, 0.0)
        }
    };
    let rounds: Vec<_> = (0..10).map(|i| (streaming(20, i), streaming(26, i * 7 % 10))).collect();
    let mut messages = compared(10, 1.0, 0.0);
    messages.comparison = Comparison::of_rounds(&rounds);
    let messages = messages.with_conditions(&conditions(&["first_message.p99 > 1.05x", "message_gap.p99 > 1.05x"]));
    vec![
        ("messages", messages),
        ("slower", slower),
        ("same", compared(10, 1.0, 0.0)),
        ("failing", compared(10, 1.0, 0.02)),
        ("few", few),
        ("nothing", nothing),
        ("blocks", blocks),
    ]
}

/// Of each kind one.
pub fn sweeps() -> Vec<(&'static str, Plan, Sweep)> {
    let mut closed = plan();
    closed.load = Load::Closed {};
    let connections = || Axis { name: "connections".into(), is_concurrency: true };
    let values: Vec<u64> = (0..13).map(|i| 1 << i).collect();
    let mut random = Random::new(3, 0);
    let mut step = |value: u64, kappa: f64| {
        let n = value as f64;
        let noise = 1.0 + 0.02 * (random.unit() - 0.5);
        let per_s = (1000.0 * n / (1.0 + 0.05 * (n - 1.0) + kappa * n * (n - 1.0)) * noise).round();
        let mut run = evidence(per_s, 5, (n / per_s * 1e9) as u64);
        let (got, held) =
            (brunt_plan::units::Duration(run.p99_ns.unwrap().value).to_string(), run.p99_ns.unwrap().value < 50 * MS);
        run.thresholds.push(ThresholdResult {
            condition: JudgedCondition::Threshold("p99<50ms".parse().unwrap()),
            value: None,
            got: got.into(),
            held,
            sure: true,
        });
        SweepStep::new(value, run)
    };
    let peak: Vec<_> = values.iter().map(|value| step(*value, 2e-6)).collect();
    let mut fallen: Vec<_> = values.iter().take(9).map(|value| step(*value, 0.0)).collect();
    for bound in fallen.iter_mut().take(2) {
        let run = bound.evidence.as_mut().unwrap();
        (run.judgement, run.is_rate_believed) = (Judgement::GeneratorBound, false);
        run.verdict = "brunt was the limit: throughput is a lower bound (a worker used 99% of a CPU)".into();
    }
    let starved = fallen[2].evidence.as_mut().unwrap();
    (starved.judgement, starved.is_rate_believed) = (Judgement::LatencyUnreliable, false);
    starved.verdict = "p50 holds; p90 and p99 are unreliable: a worker waited for a CPU for 22% of a second".into();
    let mut dead = evidence(0.0, 5, MS);
    (dead.due, dead.failed, dead.ok, dead.answered, dead.p50_ns, dead.p99_ns, dead.mean_ns) =
        (512, 512, 0, 0, None, None, None);
    dead.failure = "connect: connection refused".into();
    let silent = Sweep::new(connections(), vec![512], vec![SweepStep::new(512, dead.clone())], String::new());
    fallen.push(SweepStep::new(512, dead));
    fallen
        .push(SweepStep::impossible(1024, "1024 connections need 1096 file descriptors, and the limit is 1024".into()));
    let ended = "stopped at 1024, as told: the values above it were not tried".to_owned();
    let rates = Axis { name: "rate".into(), is_concurrency: false };
    let few: Vec<_> = [1000_u64, 2000].iter().map(|value| step(*value, 0.0)).collect();
    vec![
        ("peak", closed.clone(), Sweep::new(connections(), values.clone(), peak, String::new())),
        ("fallen", closed.clone(), Sweep::new(connections(), values, fallen, ended)),
        ("silent", closed.clone(), silent),
        ("few", closed, Sweep::new(connections(), vec![1000, 2000], few.clone(), String::new())),
        ("rate", plan(), Sweep::new(rates, vec![1000, 2000], few, String::new())),
    ]
}
