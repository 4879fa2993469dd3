//! `brunt sweep URL`: a run for each of several values of a flag.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use brunt_decide::evidence::Evidence;
use brunt_decide::sweep::{Axis, Step, Steps, StepsError, Sweep as Found};
use brunt_plan::plan::Plan;
use brunt_plan::units::{Duration, Number};
use brunt_record::SECOND_NS;
use brunt_report::decision::Decision;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use crate::args::words::{Lengths, Words};
use crate::args::{Program, repeat};
use crate::decision_output::DecisionOutput;
use crate::exit::Exit;
use crate::plan::length_ns;
use crate::runs::{NOBODY_LEFT, Ran, Runs};
use crate::scripts::SCRIPTS;
use crate::{console, plan};

const EXAMPLES: &str = "\
Values are 1..4096 (doubling; the last is always among them), 100..1000+100, 1,8,64, or,
for connections, 100..max: as many as the limit on file descriptors allows.

Examples:
  brunt sweep -c 1..4096 http://localhost:8080/
  brunt sweep -c 100..max ws://localhost:8081/
  brunt sweep -r 1k..64k --threshold 'p99<50ms' --stop-at-failure URL
  brunt sweep --vary message=16..65536B ws://localhost:8081/     any other flag, with its unit

Exit status:
  0  done, and every threshold held at every value
  1  one did not, or a value had no answer
  2  the command line or a file was wrong
  3  the target never answered
  4  an agent was lost: the run was made again, or left out
  130  Ctrl-C ended the sweep early, with the values so far; pressed twice, at once (143: SIGTERM)";

/// The flags that can have several values: their ids, and whether they limit the calls in flight.
const AXES: [(&str, bool); 5] =
    [("connections", true), ("rate", false), ("threads", false), ("pipeline", false), ("streams", false)];

/// Of the run for each value.
const LENGTHS: Lengths = Lengths { duration_ns: 5 * SECOND_NS, warmup_ns: SECOND_NS };

/// Run once for each of several values of a flag, and find where throughput bends
#[derive(Debug, Args)]
#[command(override_usage = "brunt sweep -c 1..4096 [OPTIONS] URL")]
#[command(mut_arg("duration", |arg| LENGTHS.told_of_duration(arg)), mut_arg("warmup", |arg| LENGTHS.told_of_warmup(arg)))]
#[command(after_long_help = EXAMPLES)]
pub struct Sweep {
    #[command(flatten)]
    pub words: Swept,
    /// Vary another flag that takes a number, without its dashes, with the unit of all values at the end:
    /// message=16..65536B, timeout=1..8s
    #[arg(long, value_name = "FLAG=VALUES", value_parser = vary, help_heading = "Sweep")]
    pub vary: Option<Vary>,
    /// Stop at the first value that has no answer or misses a threshold
    #[arg(long, help_heading = "Sweep")]
    pub stop_at_failure: bool,
    /// Write the whole result of each run into this directory, as JSON
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    pub keep: Option<PathBuf>,
}

/// The units of values, the longer ones first. `k` and `M` are parts of numbers.
const UNITS: [&str; 7] = ["KB", "MB", "us", "ms", "B", "s", "%"];

/// A flag that takes one value after the other in a sweep.
#[derive(Debug, Clone)]
pub struct Vary {
    /// Its name, without dashes.
    pub flag: String,
    pub values: Steps,
    /// The unit behind each value: `B`, `ms`.
    pub unit: String,
}

fn vary(text: &str) -> Result<Vary, String> {
    let (flag, values) = text.split_once('=').ok_or("expected a flag and its values, such as message=16..65536B")?;
    let flag = flag.trim_start_matches('-');
    if flag.is_empty() {
        return Err("expected the name of a flag before the =".to_owned());
    }
    let unit = UNITS.into_iter().find(|unit| values.ends_with(unit)).unwrap_or_default();
    let numbers = values.strip_suffix(unit).unwrap_or(values);
    let steps = numbers.parse().map_err(|e: StepsError| e.to_string())?;
    Ok(Vary { flag: flag.to_owned(), values: steps, unit: unit.to_owned() })
}

/// A run's flags; some may have several values.
#[derive(Debug, Clone, Default)]
pub struct Swept(pub Words);

impl Swept {
    /// Takes out the flag with several values. Returns the axis and the values.
    ///
    /// # Errors
    /// When no flag has several, or more than one has.
    pub fn take_axis(&mut self, vary: Option<&Vary>) -> Result<(Axis, Steps), String> {
        let mut found = Vec::new();
        for (id, is_concurrency) in AXES {
            let meant = self.0.texts(id).iter().any(|text| Steps::is_meant_by(text));
            if !meant {
                continue;
            }
            let text = self.0.take(id).join(",");
            let steps = text.parse::<Steps>().map_err(|e| format!("--{id}: {e}"))?;
            found.push((Axis { name: id.to_owned(), is_concurrency }, steps));
        }
        found.extend(vary.map(|vary| (Axis { name: vary.flag.clone(), is_concurrency: false }, vary.values.clone())));
        match found.len() {
            1 => found.pop().ok_or_else(String::new),
            0 => Err("brunt sweep needs several values of one flag: -c 1..4096, say, or -r, -t, --pipeline, --streams, --vary"
                .to_owned()),
            _ => {
                let names: Vec<_> = found.iter().map(|(axis, _)| axis.name.as_str()).collect();
                Err(format!("one flag is varied at a time, and these have several values: {}", names.join(", ")))
            }
        }
    }
}

impl FromArgMatches for Swept {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Words::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl Args for Swept {
    fn augment_args(command: Command) -> Command {
        // A single value is parsed by its flag's own definition later.
        let several = |arg: Arg| arg.value_parser(clap::value_parser!(String)).value_name("VALUES");
        AXES.into_iter().fold(Words::augment_args(command), |command, (id, _)| command.mut_arg(id, several))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

pub fn run(args: &Sweep, program: &Program) -> Result<Exit> {
    let registry = &program.registry;
    let decided = DecisionOutput::writable(&args.words.0.shown)?;
    let (axis, plans) = plans(args, program)?;
    let Some((_, first)) = plans.first() else { return Err(anyhow!("a sweep needs a value")) };
    let mut base = first.clone();
    base.origin = plan::origin(&args.words.0.shown.saving);
    base.origin.command = repeat::of_process(program, Some(base.seed));
    for (_, plan) in &plans {
        brunt_engine::check(plan, registry, SCRIPTS)?;
    }
    if args.words.0.shown.dry_run {
        return Ok(Exit::Done);
    }
    let threads = args.words.0.texts("threads").first().and_then(|text| text.parse().ok());
    let mut runs = Runs::new(registry, "sweep", &args.words.0.shown, args.keep.as_deref(), threads)?;
    let sweep = carry_out(axis, &base, &plans, args.stop_at_failure, &mut runs);
    runs.clear();
    let sweep = sweep?;
    runs.finish(Decision::Sweep(&base, &sweep), &decided)?;
    let exit = exit_of(&sweep);
    if !decided.is_for_people() {
        explain(&sweep, exit);
    }
    Ok(runs.exit(exit, decided.is_for_people()))
}

/// A plan for each value.
fn plans(args: &Sweep, program: &Program) -> Result<(Axis, Vec<(u64, Plan)>)> {
    let registry = &program.registry;
    let mut words = args.words.clone();
    let (axis, steps) = words.take_axis(args.vary.as_ref()).map_err(|e| anyhow!("{e}"))?;
    let most = if axis.name == "connections" { u64::from(brunt_engine::most_connections()) } else { 0 };
    let values = steps.values(most).with_context(|| format!("--{}", axis.name))?;
    // A flag given by `--vary` has its own unit; the others are plain numbers.
    let unit = args.vary.as_ref().map_or("", |vary| vary.unit.as_str());
    let mut seed = None;
    let mut plans = Vec::new();
    for value in values {
        let flag = format!("--{}={value}{unit}", axis.name);
        let shown = flag.clone();
        let mut bench = words.0.with(&[&flag], registry).with_context(|| flag.clone())?;
        LENGTHS.give(&mut bench.load);
        if axis.is_concurrency
            && let (Some(threads), Some(connections)) = (&mut bench.load.threads, bench.load.connections)
        {
            // A sweep may begin with fewer connections than threads.
            *threads = (*threads).min(connections);
        }
        let mut plan = plan::from_flags(&bench, program).with_context(|| flag)?;
        if !words.0.has("seed") {
            plan.seed = *seed.get_or_insert(plan.seed);
        }
        plan.origin.command = repeat::of_run(&words.0, &[&shown], &plan, registry)?;
        plans.push((value, plan));
    }
    Ok((axis, plans))
}

fn carry_out(
    axis: Axis,
    base: &Plan,
    plans: &[(u64, Plan)],
    stop_at_failure: bool,
    runs: &mut Runs<'_>,
) -> Result<Found> {
    let mut steps: Vec<Step> = Vec::new();
    let mut ended = String::new();
    let planned: Vec<_> = plans.iter().map(|(value, _)| *value).collect();
    for (done, (value, plan)) in plans.iter().enumerate() {
        let what = format!("{} {value} ({} of {})", axis.name, done + 1, plans.len());
        let after = plans.iter().skip(done + 1).map(|(_, plan)| length_ns(plan)).sum();
        let so_far = Found::new(axis.clone(), planned.clone(), steps.clone(), String::new());
        let so_far = so_far.with_losses(runs.losses());
        runs.show(Decision::Sweep(base, &so_far), &what);
        let step = match runs.carry_out(plan, &what, after)? {
            Ran::Whole(summary) => Step::new(*value, Evidence::from_summary(&summary)),
            Ran::Impossible(why) => Step::impossible(*value, why),
            Ran::Interrupted => {
                ended = format!("interrupted at {value}: these are the values so far");
                break;
            }
            Ran::Lost(loss) => {
                let why = runs.left_out(&what, &loss.how);
                steps.push(Step::impossible(*value, why));
                if loss.goes_on {
                    continue;
                }
                ended = format!("ended at {value}: {NOBODY_LEFT}");
                break;
            }
        };
        runs.note(&format!("{what}: {}", told(&step)));
        let is_good = step.is_good();
        steps.push(step);
        if stop_at_failure && !is_good && done + 1 < plans.len() {
            ended = format!("stopped at {value}, as told: the values above it were not tried");
            break;
        }
    }
    Ok(Found::new(axis, planned, steps, ended).with_losses(runs.losses()))
}

fn told(step: &Step) -> String {
    let Some(run) = step.evidence.as_ref().filter(|_| step.problem.is_empty()) else { return step.problem.clone() };
    let p99 = run
        .p99_ns
        .map_or(String::new(), |p99| format!(", p99 {}{}", if p99.at_least { "≥" } else { "" }, Duration(p99.value)));
    let failed = if run.failed > 0 { format!(", {} failed", run.failed) } else { String::new() };
    let verdict = if run.is_trustworthy() { String::new() } else { format!("; {}", run.verdict) };
    format!("{}/s{p99}{failed}{verdict}", Number(run.ok_per_s().round()))
}

fn exit_of(sweep: &Found) -> Exit {
    if sweep.steps.is_empty() || sweep.steps.iter().all(Step::is_good) {
        Exit::Done
    } else if sweep.steps.iter().any(Step::is_answered) {
        Exit::ThresholdFailed
    } else {
        Exit::NoAnswer
    }
}

/// Explains an exit status other than 0.
fn explain(sweep: &Found, exit: Exit) {
    if exit == Exit::Done {
        return;
    }
    for step in sweep.steps.iter().filter(|step| !step.is_good()) {
        let missed = step.evidence.iter().flat_map(|run| &run.thresholds).filter(|result| !result.held);
        let missed = missed.map(|result| format!("{} was {}", result.threshold.trim(), result.got));
        let all: Vec<_> = std::iter::once(step.problem.clone()).filter(|p| !p.is_empty()).chain(missed).collect();
        let text: String = all.join("; ").chars().filter(|c| !c.is_control()).collect();
        console::note(&format!("error: {} {}: {text}", sweep.axis.name, step.value));
    }
}
