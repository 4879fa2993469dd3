//! `brunt find URL`: the highest rate that meets the thresholds.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::path::PathBuf;

use anyhow::{Result, bail};
use brunt_decide::capacity::{self, Answer, Capacity, Length, Next, Outcome, PRECISION, Settings, Trial};
use brunt_decide::evidence::Evidence;
use brunt_plan::arrivals::Spread;
use brunt_plan::plan::{Load, Origin, Plan};
use brunt_plan::profile::Profile;
use brunt_plan::units::ExactDuration;
use brunt_protocol::Registry;
use brunt_record::SECOND_NS;
use brunt_report::decision::Decision;
use clap::Args;

use crate::args::words::{Lengths, Words};
use crate::args::{Program, repeat, values};
use crate::decision_output::DecisionOutput;
use crate::exit::Exit;
use crate::runs::{Ran, Runs};
use crate::scripts::SCRIPTS;
use crate::{console, plan};

const EXAMPLES: &str = "\
Example:
  brunt serve http --service-time 2ms --servers 4      (answers 2,000 a second, no more)
  brunt find --threshold 'p99<50ms' --threshold 'error_rate<0.1%' http://127.0.0.1:8080/

Exit status:
  0  the capacity is known, or as much of it as brunt can ask for
  1  it is not: no rate was met, the target was not steady, or the search was interrupted
  2  the command line or a file was wrong
  3  the target never answered
  4  an agent was lost: the run was made again, or left out
Ctrl-C ends the search early, with what it found so far; pressed twice, it exits at once with 130";

/// Of each trial.
const LENGTHS: Lengths = Lengths { duration_ns: 5 * SECOND_NS, warmup_ns: SECOND_NS };

/// Find the highest rate that meets thresholds
#[derive(Debug, Args)]
#[command(override_usage = "brunt find --threshold 'p99<50ms' [OPTIONS] URL")]
#[command(mut_arg("duration", |arg| LENGTHS.told_of_duration(arg)), mut_arg("warmup", |arg| LENGTHS.told_of_warmup(arg)))]
#[command(after_help = "brunt find --help has every flag, examples and exit statuses", after_long_help = EXAMPLES)]
pub struct Find {
    #[command(flatten)]
    pub words: Words,
    /// The first rate tried, in calls a second; from there it doubles, or halves
    #[arg(long, value_name = "R", value_parser = values::rate, default_value = "100", help_heading = "Search")]
    pub from: f64,
    /// Try no rate above this
    #[arg(long, value_name = "R", value_parser = values::rate, default_value = "10M", help_heading = "Search")]
    pub highest: f64,
    /// How far apart rates lie at the edge: 2% or 0.02
    #[arg(long, value_name = "SHARE", value_parser = precision, default_value = "2%", help_heading = "Search")]
    pub precision: f64,
    /// How often each end of the answer must be seen the same way
    #[arg(long, value_name = "N", value_parser = values::repeats, default_value = "6", help_heading = "Search")]
    pub repeats: u32,
    /// Write the whole result of each run into this directory, as JSON
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    pub keep: Option<PathBuf>,
}

fn precision(text: &str) -> Result<f64, String> {
    let share = values::ratio(text)?;
    if (PRECISION.0..=PRECISION.1).contains(&share) {
        return Ok(share);
    }
    Err(format!("expected a share from {}% to {}%", PRECISION.0 * 100.0, PRECISION.1 * 100.0))
}

pub fn run(args: &Find, program: &Program) -> Result<Exit> {
    let registry = &program.registry;
    let base = base(args, program)?;
    let settings = Settings {
        from_per_s: args.from,
        highest_per_s: args.highest,
        precision_ratio: args.precision,
        repeats: args.repeats,
    };
    let decided = DecisionOutput::writable(&args.words.shown)?;
    brunt_engine::check(&base, registry, SCRIPTS)?;
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
    Ok(runs.exit(exit, decided.is_for_people()))
}

/// The plan of every trial but for its rate, and the length of short ones.
fn base(args: &Find, program: &Program) -> Result<Plan> {
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
    let mut bench = args.words.with(&[format!("--rate={}", args.from)], &program.registry)?;
    LENGTHS.give(&mut bench.load);
    let mut plan = plan::from_flags(&bench, program)?;
    if plan.thresholds.is_empty() {
        bail!(
            "brunt find needs to know what the target must meet: give --threshold 'p99<50ms' and \
             --threshold 'error_rate<0.1%', say"
        );
    }
    plan.origin = plan::origin(&args.words.shown.saving);
    plan.origin.command = repeat::of_process(program, Some(plan.seed));
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
        let (answer, losses) = (interrupted(&trials), runs.losses());
        let so_far = Capacity { settings, answer, trials: trials.clone(), losses };
        runs.show(Decision::Capacity(base, &so_far), &what);
        let summary = match runs.carry_out(&plan, &what, left_ns(base, &settings, &trials, trial_length))? {
            Ran::Whole(summary) => summary,
            Ran::Interrupted => break interrupted(&trials),
            // The rate is tried again, as long as there are agents: each loss leaves fewer.
            Ran::Lost(loss) => {
                runs.left_out(&what, &loss.how);
                if loss.goes_on {
                    continue;
                }
                break interrupted(&trials);
            }
            Ran::Impossible(reason) if trials.is_empty() => break Answer::NeverAnswered { failure: reason },
            Ran::Impossible(_) => break Answer::StoppedAnswering { at_per_s: settings.rate(step) },
        };
        let trial = Trial::new(&settings, step, trial_length, Evidence::from_summary(&summary));
        runs.note(&format!("{what} {}", told(&trial)));
        trials.push(trial);
    };
    Ok(Capacity { settings, answer, trials, losses: runs.losses() })
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
