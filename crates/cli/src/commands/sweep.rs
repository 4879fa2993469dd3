//! `brunt sweep URL`: a run for each of several values of a flag.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow, bail};
use brunt_decide::evidence::Evidence;
use brunt_decide::sweep::{Axis, Sweep as Found, SweepStep};
use brunt_plan::plan::Plan;
use brunt_plan::profile::Profile;
use brunt_plan::units::{Duration, ExactDuration, Number};
use brunt_protocol::Registry;
use brunt_record::SECOND_NS;
use brunt_report::decision::Decision;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use super::trial_plan;
use crate::args::runs::{self, Lengths, RunArgs, run_flags};
use crate::args::values::{self, Levels};
use crate::args::{Program, repeat};
use crate::decision_output::DecisionOutput;
use crate::exit::Exit;
use crate::plan;
use crate::plan::length_ns;
use crate::runs::{NOBODY_LEFT, Runs, TrialOutcome};
use crate::scripts::SCRIPTS;
use brunt_plan::steps::{Steps, StepsError};

const EXAMPLES: &str = "\
Values are 1..4096 (doubling; the last is always among them), 100..1000+100, 1,8,64, or,
for connections, 100..max: as many as the limit on file descriptors allows.

Examples:
  brunt sweep -c 1..4096 http://localhost:8080/
  brunt sweep -c 100..max ws://localhost:8081/
  brunt sweep -r 1k..64k --threshold 'p99<50ms' --stop-at-failure URL
  brunt sweep --vary message=16..65536B ws://localhost:8081/     any other flag, with its unit
  brunt sweep --users 1..64 shop.js                              users of a script; -r is its iterations/s
  brunt sweep --vary ITEMS=1..64 shop.js                         a variable of a script: __ENV.ITEMS

Exit status:
  0  done, and every threshold held at every value
  1  one did not, a value had no answer, or agents left in the middle of it
  2  the command line or a file was wrong
  3  the target never answered
  4  an agent was lost: the run was made again, or left out
  130  Ctrl-C ended the sweep early, with the values so far; pressed twice, at once (143: SIGTERM)";

/// A flag that can have several values.
struct Several {
    /// Its id.
    id: &'static str,
    /// Whether it limits the calls in flight.
    is_concurrency: bool,
    /// Gives it the parser of one value or several.
    defined: fn(Arg) -> Arg,
    /// Takes its value from the flags given. One value is that of every run.
    taken: fn(&Self, &mut ArgMatches) -> Option<Levels<Setter>>,
    /// Sets it to one of several values.
    set: fn(&mut RunArgs, u64) -> Result<(), String>,
}

/// Sets a flag to the one value that it was given.
type Setter = Box<dyn FnOnce(&mut RunArgs)>;

/// A [`Several`] whose values are numbers within a range.
macro_rules! number {
    ($($place:ident).+, $field:ident, $is_concurrency:literal, $parse:path, $range:path) => {
        Several {
            id: stringify!($field),
            is_concurrency: $is_concurrency,
            defined: |arg| arg.value_parser(values::levels($parse)),
            taken: |several, matches| {
                Some(match matches.remove_one::<Levels<u32>>(several.id)? {
                    Levels::One(number) => Levels::One(Box::new(move |run| run.$($place).+.$field = Some(number))),
                    Levels::Several(steps) => Levels::Several(steps),
                })
            },
            set: |run, value| {
                run.$($place).+.$field = Some(values::within(value, &$range)?);
                Ok(())
            },
        }
    };
}

const AXES: [Several; 6] = [
    number!(bench.load, connections, true, values::connections, values::CONNECTIONS),
    Several {
        id: "rate",
        is_concurrency: false,
        defined: |arg| {
            arg.value_parser(values::levels(|text| text.parse::<Profile>().map_err(|error| error.to_string())))
        },
        taken: |several, matches| {
            Some(match matches.remove_one::<Levels<Profile>>(several.id)? {
                Levels::One(profile) => Levels::One(Box::new(move |run| run.bench.load.rate = Some(profile))),
                Levels::Several(steps) => Levels::Several(steps),
            })
        },
        set: |run, value| {
            run.bench.load.rate = Some(Profile::constant(value as f64).map_err(|error| error.to_string())?);
            Ok(())
        },
    },
    number!(scripted, users, false, values::users, values::USERS),
    number!(bench.load, threads, false, values::threads, values::THREADS),
    number!(bench.load, pipeline, false, values::pipeline, values::PIPELINE),
    number!(bench.load, streams, false, values::pipeline, values::PIPELINE),
];

/// Of the run for each value.
const LENGTHS: Lengths = Lengths { duration_ns: 5 * SECOND_NS, warmup_ns: SECOND_NS };

/// Run once for each of several values of a flag, and find where throughput bends
#[derive(Debug, Args)]
#[command(override_usage = "brunt sweep -c 1..4096 [OPTIONS] URL\n       brunt sweep --users 1..64 [OPTIONS] SCRIPT")]
#[command(mut_args(runs::aimed_at_scripts_too))]
#[command(mut_arg("duration", |arg| LENGTHS.told_of_duration(arg)), mut_arg("warmup", |arg| LENGTHS.told_of_warmup(arg)))]
#[command(after_long_help = EXAMPLES)]
pub struct Sweep {
    #[command(flatten)]
    pub run: SweepArgs,
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

/// A run's flags; one of them may have several values.
#[derive(Debug, Clone, Default)]
pub struct SweepArgs {
    pub run: RunArgs,
    /// The flags that have several values, by their ids.
    several: Vec<(&'static str, Steps)>,
}

impl SweepArgs {
    /// The axis and its values.
    ///
    /// # Errors
    /// When no flag has several values, or more than one has.
    fn axis(&self, vary: Option<&Vary>) -> Result<(Axis, Steps)> {
        // A rate decides how many calls are answered, and no law of connections.
        let is_free = self.run.bench.load.rate.is_none();
        let is_concurrency = |id: &str| is_free && AXES.iter().any(|axis| axis.id == id && axis.is_concurrency);
        let axis = |name: &str, steps: &Steps| {
            (Axis { name: name.to_owned(), is_concurrency: is_concurrency(name) }, steps.clone())
        };
        let mut found: Vec<_> = self.several.iter().map(|(id, steps)| axis(id, steps)).collect();
        found.extend(vary.map(|vary| (Axis { name: vary.flag.clone(), is_concurrency: false }, vary.values.clone())));
        match found.as_slice() {
            [only] => Ok(only.clone()),
            [] => bail!(
                "brunt sweep needs several values of one flag: -c 1..4096, say, or -r, --users, -t, --pipeline, --streams, --vary"
            ),
            more => {
                let names: Vec<_> = more.iter().map(|(axis, _)| axis.name.as_str()).collect();
                bail!("one flag is varied at a time, and these have several values: {}", names.join(", "))
            }
        }
    }
}

impl FromArgMatches for SweepArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut rest = matches.clone();
        let (mut single, mut several) = (Vec::new(), Vec::new());
        for axis in &AXES {
            match (axis.taken)(axis, &mut rest) {
                Some(Levels::One(set)) => single.push(set),
                Some(Levels::Several(steps)) => several.push((axis.id, steps)),
                None => {}
            }
        }
        let mut run = RunArgs::of(matches, rest)?;
        for set in single {
            set(&mut run);
        }
        Ok(Self { run, several })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for SweepArgs {
    fn augment_args(command: Command) -> Command {
        let several =
            |command: Command, axis: &Several| command.mut_arg(axis.id, |arg| (axis.defined)(arg).value_name("VALUES"));
        AXES.iter().fold(RunArgs::augment_args(command), several)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

pub fn run(args: &Sweep, program: &Program) -> Result<Exit> {
    let registry = &program.registry;
    let decided = DecisionOutput::writable(&args.run.run.shown)?;
    let (axis, plans) = plans(args, program)?;
    let Some((_, first)) = plans.first() else { return Err(anyhow!("a sweep needs a value")) };
    let mut base = first.clone();
    base.origin = plan::origin(&args.run.run.shown.saving);
    base.origin.command = repeat::of_process(program, Some(base.seed));
    for (_, plan) in &plans {
        brunt_engine::check(plan, registry, SCRIPTS)?;
    }
    if args.run.run.shown.dry_run {
        return Ok(Exit::Done);
    }
    let threads = args.run.run.bench.load.threads;
    let mut runs = Runs::new(registry, "sweep", &args.run.run.shown, args.keep.as_deref(), threads)?;
    let sweep = carry_out(axis, &base, &plans, args.stop_at_failure, &mut runs);
    runs.clear();
    let sweep = sweep?;
    runs.finish(Decision::Sweep(&base, &sweep), &decided)
}

/// Refuses a variable that no file of the script names: its values would differ by chance alone.
fn is_read(variable: &str, plan: &Plan) -> Result<()> {
    let Some(scenarios) = &plan.scenarios else { return Ok(()) };
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    // One that is looked up by a name of its own may be any.
    let is_dynamic = |text: &str| ["ENV[", "ENV)", "env[", "env)"].iter().any(|way| text.contains(way));
    let may_read = |text: &str| is_dynamic(text) || text.split(|c: char| !is_part(c)).any(|word| word == variable);
    if !scenarios.files.iter().any(|file| may_read(&String::from_utf8_lossy(&file.content.0))) {
        let file = plan.script_name().unwrap_or("the script");
        bail!(
            "--vary {variable}: no flag has this name, and {file} never reads a variable called {variable}, so each value would be the same run. \
             A script reads one as brunt.env.{variable} in Lua, and as __ENV.{variable} in JavaScript"
        );
    }
    Ok(())
}

/// A plan for each value.
fn plans(args: &Sweep, program: &Program) -> Result<(Axis, Vec<(u64, Plan)>)> {
    let registry = &program.registry;
    let is_script = trial_plan::script(&args.run.run).is_some();
    let (axis, steps) = args.run.axis(args.vary.as_ref())?;
    // Of `AXES`, each value is the field's; a flag that `--vary` names is laid over the others.
    let varied = AXES.iter().find(|known| known.id == axis.name && args.vary.is_none());
    let are_connections = axis.name == "connections";
    let most = if are_connections { u64::from(brunt_engine::most_connections()) } else { 0 };
    let values = steps.values(most).with_context(|| format!("--{}", axis.name))?;
    let mut seed = args.run.run.bench.limits.seed;
    // The name of no flag is that of a script's variable.
    let is_variable = is_script && args.vary.as_ref().is_some_and(|vary| !is_flag(&vary.flag, registry));
    let mut plans = Vec::new();
    for value in values {
        let flag = match &args.vary {
            Some(vary) if is_variable => {
                format!("--env={}={value}{}", vary.flag, vary.unit)
            }
            Some(vary) => format!("--{}={value}{}", vary.flag, vary.unit),
            None => format!("--{}={value}", axis.name),
        };
        let (mut run, mut settings) = (args.run.run.clone(), Vec::new());
        match varied {
            Some(varied) => {
                (varied.set)(&mut run, value).map_err(|error| anyhow!("{flag}: {error}"))?;
                settings.push((varied.id, value.to_string()));
            }
            None => run = run.over(&[&flag], registry).with_context(|| flag.clone())?,
        }
        let load = &mut run.bench.load;
        if !is_script {
            LENGTHS.give(load);
        } else if load.rate.is_some() || run.scripted.users.is_some() {
            load.duration.get_or_insert(LENGTHS.duration_ns);
        }
        if are_connections && let (Some(threads), Some(connections)) = (&mut load.threads, load.connections) {
            // A sweep may begin with fewer connections than threads.
            *threads = (*threads).min(connections);
        }
        let mut plan = trial_plan::from_flags(&run, program).with_context(|| flag)?;
        plan.seed = *seed.get_or_insert(plan.seed);
        if let Some(vary) = args.vary.as_ref().filter(|_| is_variable && plans.is_empty()) {
            is_read(&vary.flag, &plan)?;
        }
        if is_script {
            settings.extend(run.bench.load.duration.map(|ns| ("duration", ExactDuration(ns).to_string())));
        }
        plan.origin.command = trial_plan::command(&run, &plan, &settings, registry);
        plans.push((value, plan));
    }
    Ok((axis, plans))
}

fn is_flag(name: &str, registry: &Registry) -> bool {
    run_flags(registry).get_arguments().any(|arg| arg.get_long() == Some(name))
}

fn carry_out(
    axis: Axis,
    base: &Plan,
    plans: &[(u64, Plan)],
    stop_at_failure: bool,
    runs: &mut Runs<'_>,
) -> Result<Found> {
    let mut steps: Vec<SweepStep> = Vec::new();
    let mut ended = String::new();
    let planned: Vec<_> = plans.iter().map(|(value, _)| *value).collect();
    for (done, (value, plan)) in plans.iter().enumerate() {
        let what = format!("{} {value} ({} of {})", axis.name, done + 1, plans.len());
        let after = plans.iter().skip(done + 1).map(|(_, plan)| length_ns(plan)).sum();
        let so_far = Found::new(axis.clone(), planned.clone(), steps.clone(), String::new());
        let so_far = Found { lacking: runs.lacking(), ..so_far };
        runs.show(Decision::Sweep(base, &so_far), &what);
        let step = match runs.carry_out(plan, &what, after)? {
            TrialOutcome::Whole(summary) => SweepStep::new(*value, Evidence::from_summary(&summary)),
            TrialOutcome::Impossible(why) => SweepStep::impossible(*value, why),
            TrialOutcome::Interrupted => {
                ended = format!("interrupted at {value}: these are the values so far");
                break;
            }
            TrialOutcome::Lost(loss) => {
                let why = runs.left_out(&what, &loss.how);
                steps.push(SweepStep::impossible(*value, why));
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
    let found = Found { lacking: runs.lacking(), ..Found::new(axis, planned, steps, ended) };
    Ok(found.judged(runs.most_less(base.max_less_ratio)))
}

fn told(step: &SweepStep) -> String {
    let Some(run) = step.evidence.as_ref().filter(|_| step.problem.is_empty()) else { return step.problem.clone() };
    let p99 = run
        .p99_ns
        .map_or(String::new(), |p99| format!(", p99 {}{}", if p99.at_least { "≥" } else { "" }, Duration(p99.value)));
    let failed = if run.failed > 0 { format!(", {} failed", run.failed) } else { String::new() };
    let verdict = if run.is_trustworthy() { String::new() } else { format!("; {}", run.verdict) };
    format!("{}/s{p99}{failed}{verdict}", Number(run.ok_per_s.round()))
}
