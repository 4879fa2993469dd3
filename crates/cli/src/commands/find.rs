//! `brunt find URL`: the highest rate that meets the thresholds.

use anyhow::{Result, bail};
use brunt_decide::capacity::{self, Answer, Capacity, Length, Next, Outcome, Settings, Trial};
use brunt_decide::evidence::Evidence;
use brunt_plan::arrivals::Spread;
use brunt_plan::plan::{Load, Origin, Plan};
use brunt_plan::profile::Profile;
use brunt_plan::units::ExactDuration;
use brunt_protocol::Registry;
use brunt_report::decision::Decision;

use crate::args::words::Words;
use crate::args::{Find, repeat};
use crate::decided::Decided;
use crate::exit::Exit;
use crate::runs::{Ran, Runs};
use crate::{console, plan};

pub fn run(args: &Find, registry: &Registry) -> Result<Exit> {
    let base = base(args, registry)?;
    let settings = Settings {
        from_per_s: args.from,
        highest_per_s: args.highest,
        precision_ratio: args.precision,
        repeats: args.repeats,
    };
    let decided = Decided::of(&args.words.shown)?;
    brunt_engine::check(&base, registry)?;
    if args.words.shown.dry_run {
        return Ok(Exit::Done);
    }
    let threads = args.words.texts("threads").first().and_then(|text| text.parse().ok());
    let mut runs = Runs::new(registry, "find", &args.words.shown, args.keep.as_deref(), threads)?;
    let capacity = search(&base, &args.words, settings, &mut runs, registry);
    runs.clear();
    let capacity = capacity?;
    runs.finish(Decision::Capacity(&base, &capacity), &decided)?;
    let exit = exit_of(&capacity.answer);
    if exit != Exit::Done && !decided.is_for_people() {
        console::note("error: the capacity is not known; --format text says why");
    }
    Ok(exit)
}

/// The plan of every trial but for its rate, and the length of short ones.
fn base(args: &Find, registry: &Registry) -> Result<Plan> {
    for (id, flag, why) in [
        ("rate", "-r", "the rate is what is searched for: give the first one tried with --from"),
        ("requests", "-n", "each trial takes a time: give it with -d"),
    ] {
        if args.words.has(id) {
            bail!("{flag} cannot be used with brunt find: {why}");
        }
    }
    if args.highest < args.from {
        bail!("--highest {} is below --from {}: the first rate tried must be allowed", args.highest, args.from);
    }
    let words = args.words.or("duration", "--duration", "5s").or("warmup", "--warmup", "1s");
    let mut plan = plan::of(&words.with(&[format!("--rate={}", args.from)], registry)?, registry)?;
    if plan.thresholds.is_empty() {
        bail!(
            "brunt find needs to know what the target must meet: give --threshold 'p99<50ms' and \
             --threshold 'error_rate<0.1%', say"
        );
    }
    plan.origin = plan::origin(&args.words.shown.saving);
    plan.origin.command = repeat::of_process(registry, Some(plan.seed));
    Ok(plan)
}

fn search(
    base: &Plan,
    words: &Words,
    settings: Settings,
    runs: &mut Runs<'_>,
    registry: &Registry,
) -> Result<Capacity> {
    let mut trials = Vec::new();
    let answer = loop {
        let (step, trial_length) = match capacity::next(&settings, &trials) {
            Next::Done(answer) => break answer,
            Next::Try { step, length } => (step, length),
        };
        let mut plan = trial_plan(base, settings.rate(step), trial_length)?;
        if !words.has("threads") {
            plan.workers = plan::default_workers(&plan.load, plan.script.is_some(), plan.connections.most());
        }
        let rate = format!("--rate={}", settings.rate(step));
        let length = plan.stop.duration_ns.map(|ns| format!("--duration={}", ExactDuration(ns)));
        plan.origin.command =
            repeat::of_run(words, &[Some(rate), length].into_iter().flatten().collect::<Vec<_>>(), &plan, registry)?;
        let number = trials.len() + 1;
        let what = format!("trial {number}: {}/s", settings.rate(step));
        let so_far = Capacity { settings, answer: interrupted(&trials), trials: trials.clone() };
        runs.show(Decision::Capacity(base, &so_far), &what);
        let summary = match runs.carry_out(&plan, &what, left_ns(base, &settings, &trials, trial_length))? {
            Ran::Whole(summary) => summary,
            Ran::Interrupted => break interrupted(&trials),
            Ran::Impossible(reason) if trials.is_empty() => break Answer::NeverAnswered { failure: reason },
            Ran::Impossible(_) => break Answer::StoppedAnswering { at_per_s: settings.rate(step) },
        };
        let trial = Trial::of(&settings, step, trial_length, Evidence::of(&summary));
        runs.note(&format!("{what} {}", told(&trial)));
        trials.push(trial);
    };
    Ok(Capacity { settings, answer, trials })
}

fn told(trial: &Trial) -> String {
    match trial.outcome {
        Outcome::Met => "met".to_owned(),
        Outcome::Failed => format!("failed: {}", trial.why),
        Outcome::Spoiled if trial.evidence.is_trustworthy() => format!("spoiled: {}", trial.why),
        Outcome::Spoiled => format!("spoiled: {}; {}", trial.why, trial.evidence.verdict),
    }
}

fn trial_plan(base: &Plan, rate: f64, length: Length) -> Result<Plan> {
    let mut plan = Plan { origin: Origin::default(), ..base.clone() };
    let arrivals = match base.load {
        Load::Open { arrivals, .. } => arrivals,
        Load::Closed {} => Spread::Uniform,
    };
    plan.load = Load::Open { profile: Profile::constant(rate)?, arrivals };
    plan.stop.duration_ns = plan.stop.duration_ns.map(|asked| capacity::trial_ns(asked, length, rate, arrivals));
    Ok(plan)
}

/// About how long the trials after the next take, in nanoseconds.
fn left_ns(base: &Plan, settings: &Settings, trials: &[Trial], length: Length) -> u64 {
    let (mut short, mut full) = capacity::trials_left(settings, trials);
    match length {
        Length::Short => short = short.saturating_sub(1),
        Length::Full => full = full.saturating_sub(1),
    }
    // Rates to come are about as high as the last one.
    let rate = trials.last().map_or(settings.from_per_s, |trial| trial.rate_per_s);
    let arrivals = match base.load {
        Load::Open { arrivals, .. } => arrivals,
        Load::Closed {} => Spread::Uniform,
    };
    let takes = |length| base.warmup_ns + capacity::trial_ns(base.duration_ns().unwrap_or(0), length, rate, arrivals);
    u64::from(short) * takes(Length::Short) + u64::from(full) * takes(Length::Full)
}

fn interrupted(trials: &[Trial]) -> Answer {
    let rates = |met: bool| {
        trials.iter().filter(move |trial| (trial.outcome == Outcome::Met) == met).map(|trial| trial.rate_per_s)
    };
    let failed_per_s = rates(false).min_by(f64::total_cmp);
    let below = |rate: &f64| failed_per_s.is_none_or(|failed| *rate < failed);
    Answer::Interrupted { met_per_s: rates(true).filter(below).max_by(f64::total_cmp), failed_per_s }
}

fn exit_of(answer: &Answer) -> Exit {
    match answer {
        answer if answer.is_known() => Exit::Done,
        Answer::NeverAnswered { .. } => Exit::NoAnswer,
        _ => Exit::ThresholdFailed,
    }
}
