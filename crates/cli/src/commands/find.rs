//! `brunt find URL`: the highest rate, or the most connections, that meet the thresholds.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use brunt_decide::capacity::{self, Answer, Capacity, Length, Next, Outcome, PRECISION, Searched, Settings, Trial};
use brunt_decide::evidence::Evidence;
use brunt_plan::arrivals::Spread;
use brunt_plan::connections::Connections;
use brunt_plan::plan::{Load, MAX_LESS_RATIO, MOST_CONNECTIONS, Origin, Plan};
use brunt_plan::profile::Profile;
use brunt_plan::scenario::ConstantLoad;
use brunt_plan::steps::Steps;
use brunt_plan::units::{ExactDuration, counted};
use brunt_protocol::Registry;
use brunt_record::SECOND_NS;
use brunt_report::decision::Decision;
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use super::trial_plan;
use crate::args::Program;
use crate::args::repeat::{self, Setting};
use crate::args::runs::{self, Lengths, RunArgs};
use crate::args::values::{self, Levels};
use crate::decision_output::DecisionOutput;
use crate::exit::Exit;
use crate::runs::{Runs, TrialOutcome};
use crate::scripts::SCRIPTS;
use crate::{console, plan};

const EXAMPLES: &str = "\
With -c FROM..TO it searches for the most connections in the closed model: as many users without pauses as the
target takes. Of a script it searches for the most iterations a second, or with --users FROM..TO for the most users.

Examples:
  brunt serve http --service-time 2ms --servers 4      (answers 2,000 a second, no more)
  brunt find --threshold 'p99<50ms' --threshold 'error_rate<0.1%' http://127.0.0.1:8080/
  brunt find -c 1..1000 --threshold 'p99<50ms' http://127.0.0.1:8080/
  brunt find -c 1..max --threshold 'p99<50ms' http://127.0.0.1:8080/     (as many as descriptors allow)
  brunt find -e BASE=http://127.0.0.1:8080 shop.js     (thresholds as in the script, of k6 or in Lua, or by --threshold)
  brunt find --users 1..500 --threshold 'p99<50ms' shop.js

Exit status:
  0  the capacity is known
  1  it is not: brunt was the limit (unless --allow-less), nothing was met, the target was not steady, the search
     was interrupted, or agents left in the middle of it
  2  the command line or a file was wrong
  3  the target never answered
  4  an agent was lost: the run was made again, or left out
Ctrl-C ends the search early, with what it found so far; pressed twice, it exits at once with 130";

/// The ids of the flags that may be a range.
const CONNECTIONS: &str = "connections";
const USERS: &str = "users";

/// The first rate tried of a script, in iterations a second.
const FIRST_OF_SCRIPT: f64 = 10.0;

/// Of each trial.
const LENGTHS: Lengths = Lengths { duration_ns: 5 * SECOND_NS, warmup_ns: SECOND_NS };

/// Find the highest rate, or the most connections or users, that meet thresholds
#[derive(Debug, Args)]
#[command(override_usage = "brunt find --threshold 'p99<50ms' [OPTIONS] URL\n       brunt find [OPTIONS] SCRIPT")]
#[command(mut_args(runs::aimed_at_scripts_too))]
#[command(mut_arg("duration", |arg| LENGTHS.told_of_duration(arg)), mut_arg("warmup", |arg| LENGTHS.told_of_warmup(arg)))]
#[command(after_long_help = EXAMPLES)]
pub struct Find {
    #[command(flatten)]
    pub run: SearchArgs,
    /// The first rate tried, in calls or iterations a second; from there it doubles, or halves
    /// [default: 100, or 10 of a script]
    #[arg(long, value_name = "R", value_parser = values::rate, help_heading = "Search")]
    pub from: Option<f64>,
    /// Try no rate above this [default: 10M]
    #[arg(long, value_name = "R", value_parser = values::rate, help_heading = "Search")]
    pub highest: Option<f64>,
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

/// The flags of trials; `-c` or `--users` may be a range.
#[derive(Debug, Clone, Default)]
pub struct SearchArgs {
    pub run: RunArgs,
    /// The numbers of connections, or of users, among which the most is searched for.
    pub range: Option<(Searched, Steps)>,
}

impl FromArgMatches for SearchArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut rest = matches.clone();
        let (connections, users) = (rest.remove_one(CONNECTIONS), rest.remove_one(USERS));
        let mut run = RunArgs::of(matches, rest)?;
        let mut ranges = Vec::new();
        for (searched, given, one) in [
            (Searched::Connections, connections, &mut run.bench.load.connections),
            (Searched::Users, users, &mut run.scripted.users),
        ] {
            match given {
                Some(Levels::Several(range)) => ranges.push((searched, range)),
                Some(Levels::One(number)) => *one = Some(number),
                None => {}
            }
        }
        if ranges.len() > 1 {
            let text = "a search is for connections of a URL (-c), or for users of a script (--users)\n";
            return Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
        }
        Ok(Self { run, range: ranges.pop() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for SearchArgs {
    fn augment_args(command: Command) -> Command {
        const HELP: &str = "Connections of each trial [default: as many as the rate takes]; FROM..TO (1..1000, 1..max) \
                            searches for the most";
        const OF_USERS: &str = "Of a script: the most users at a time [default: 5,000 of k6, the script's limit in Lua]; \
                                FROM..TO (1..500) searches for the most users, each beginning anew when it has ended";
        let ranged =
            |arg: Arg| arg.value_parser(values::levels(values::connections)).value_name("N|FROM..TO").help(HELP);
        let of_users =
            |arg: Arg| arg.value_parser(values::levels(values::users)).value_name("N|FROM..TO").help(OF_USERS);
        RunArgs::augment_args(command).mut_arg(CONNECTIONS, ranged).mut_arg(USERS, of_users)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn precision(text: &str) -> Result<f64, String> {
    let share = values::ratio(text)?;
    if (PRECISION.0..=PRECISION.1).contains(&share) {
        return Ok(share);
    }
    Err(format!("expected a share from {}% to {}%", PRECISION.0 * 100.0, PRECISION.1 * 100.0))
}

pub fn run(args: &Find, program: &Program) -> Result<Exit> {
    let (registry, shown) = (&program.registry, &args.run.run.shown);
    let settings = settings(args)?;
    let base = base(args, settings, program)?;
    let decided = DecisionOutput::writable(shown)?;
    brunt_engine::check(&base, registry, SCRIPTS)?;
    if shown.dry_run {
        return Ok(Exit::Done);
    }
    let threads = args.run.run.bench.load.threads;
    let mut runs = Runs::new(registry, "find", shown, args.keep.as_deref(), threads)?;
    let capacity = search(&base, &args.run.run, settings, &mut runs, registry);
    runs.clear();
    let capacity = capacity?;
    runs.finish(Decision::Capacity(&base, &capacity), &decided)
}

/// The settings of the search: for connections or users where a flag is a range, otherwise for a rate.
fn settings(args: &Find) -> Result<Settings> {
    let Find { precision: precision_ratio, repeats, .. } = *args;
    let is_script = trial_plan::script(&args.run.run).is_some();
    let Some((searched, range)) = &args.run.range else {
        let defaults = Settings { precision_ratio, repeats, ..Settings::default() };
        let from = args.from.unwrap_or(if is_script { FIRST_OF_SCRIPT } else { defaults.from });
        let highest = args.highest.unwrap_or(defaults.highest);
        if highest < from {
            bail!("--highest {highest} is below --from {from}: the first rate tried must be allowed");
        }
        return Ok(Settings { from, highest, ..defaults });
    };
    let (flag, what) = match searched {
        Searched::Users => ("--users", "users"),
        Searched::Rate | Searched::Connections => ("-c", "connections"),
    };
    if is_script != (*searched == Searched::Users) {
        bail!(
            "{flag} {range}: a search for {what} needs a {}",
            if is_script { "URL: of a script, --users FROM..TO searches for users" } else { "script" }
        );
    }
    if args.from.is_some() || args.highest.is_some() {
        bail!(
            "--from and --highest are rates, and {flag} {range} searches for {what}: the range says where it begins and ends"
        );
    }
    if !range.is_from_to() {
        bail!("{flag} {range}: a search needs the first and the last number alone, such as 1..1000");
    }
    let most = MOST_CONNECTIONS.min(brunt_engine::most_connections());
    let values = range.values(most.into()).context(flag)?;
    let (Some(from), Some(highest)) = (values.first().copied(), values.last().copied()) else {
        bail!("{flag} {range} has no number")
    };
    // The limits of agents are unknown here.
    if highest > u64::from(most) && args.run.run.shown.machines.bus.nats.is_none() {
        bail!("{flag} {range}: this machine can open {most} connections at most (ulimit -n): give {from}..max");
    }
    let (from, highest) = (from as f64, highest.min(u64::from(MOST_CONNECTIONS)) as f64);
    Ok(Settings { searched: *searched, from, highest, precision_ratio, repeats })
}

/// A level as a flag of a run, for display.
fn shown_level(settings: &Settings, level: f64) -> Setting {
    match settings.searched {
        Searched::Rate => ("rate", level.to_string()),
        Searched::Connections => (CONNECTIONS, level.to_string()),
        Searched::Users => (USERS, level.to_string()),
    }
}

/// The plan of every trial except its level, and the length of short ones.
fn base(args: &Find, settings: Settings, program: &Program) -> Result<Plan> {
    let rate = match settings.searched {
        Searched::Rate => "the rate is what is searched for: give the first one tried with --from",
        Searched::Connections => "with -c FROM..TO each connection makes its next call when the last one has ended",
        Searched::Users => "with --users FROM..TO each user begins its next iteration when the last one has ended",
    };
    let mut run = args.run.run.clone();
    let is_script = trial_plan::script(&run).is_some();
    let load = &mut run.bench.load;
    for (is_given, flag, why) in
        [(load.rate.is_some(), "-r", rate), (load.requests.is_some(), "-n", "each trial takes a time: give it with -d")]
    {
        if is_given {
            bail!("{flag} cannot be used with brunt find: {why}");
        }
    }
    match settings.searched {
        Searched::Rate => load.rate = Some(Profile::constant(settings.from)?),
        Searched::Connections => {
            let connections = settings.from as u32;
            // A search may begin with fewer connections than threads.
            load.threads = load.threads.map(|threads| threads.min(connections));
            load.connections = Some(connections);
        }
        Searched::Users => run.scripted.users = Some(settings.from as u32),
    }
    if is_script {
        load.duration.get_or_insert(LENGTHS.duration_ns);
    } else {
        LENGTHS.give(load);
    }
    let mut plan = trial_plan::from_flags(&run, program)?;
    let given = &run.bench.output.thresholds;
    if is_script && !given.is_empty() {
        // What a whole run must meet, such as a number of iterations, need not be what a search is for.
        let left_out = plan.thresholds.len() - given.len();
        if left_out > 0 && !run.shown.quiet {
            let conditions = counted(left_out as u64, "threshold");
            console::note(&format!("note: --threshold takes the place of {conditions} of the script"));
        }
        plan.thresholds.clone_from(given);
    }
    if is_script {
        // A script that judges its own whole load does not judge that of trials.
        plan.max_less_ratio = run.bench.output.allow_less.unwrap_or(MAX_LESS_RATIO);
    }
    if plan.thresholds.is_empty() {
        bail!(
            "brunt find needs to know what the target must meet: give --threshold 'p99<50ms' and \
             --threshold 'error_rate<0.1%', say"
        );
    }
    plan.origin = plan::origin(&args.run.run.shown.saving);
    plan.origin.command = repeat::of_process(program, Some(plan.seed));
    Ok(plan)
}

fn search(
    base: &Plan,
    run: &RunArgs,
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
        let level = settings.level(step);
        let mut plan = plan_of_trial(base, &settings, level, trial_length)?;
        let mut shown = vec![shown_level(&settings, level)];
        if plan.scenarios.is_some() {
            shown.extend(plan.load_ns().map(|ns| ("duration", ExactDuration(ns).to_string())));
        } else {
            plan.workers = match run.bench.load.threads {
                Some(threads) => threads.min(plan.connections.most()),
                None => plan::default_workers(&plan.load, plan.script.is_some(), plan.connections.most()),
            };
        }
        plan.origin.command = trial_plan::command(run, &plan, &shown, registry);
        let number = trials.len() + 1;
        let what = format!("trial {number}: {}", told_level(&settings, level));
        let (answer, lacking) = (interrupted(&trials), runs.lacking());
        let so_far = Capacity { settings, answer, trials: trials.clone(), lacking };
        runs.show(Decision::Capacity(base, &so_far), &what);
        let summary = match runs.carry_out(&plan, &what, left_ns(base, &settings, &trials, trial_length))? {
            TrialOutcome::Whole(summary) => summary,
            TrialOutcome::Interrupted => break interrupted(&trials),
            // The rate is tried again, as long as there are agents: each loss leaves fewer.
            TrialOutcome::Lost(loss) => {
                runs.left_out(&what, &loss.how);
                if loss.goes_on {
                    continue;
                }
                break interrupted(&trials);
            }
            TrialOutcome::Impossible(reason) if trials.is_empty() => break Answer::NeverAnswered { failure: reason },
            TrialOutcome::Impossible(_) => break Answer::StoppedAnswering { at: level },
        };
        let trial = Trial::new(&settings, step, trial_length, Evidence::from_summary(&summary));
        runs.note(&format!("{what} {}", told(&trial)));
        trials.push(trial);
    };
    let allowed = base.max_less_ratio;
    Ok(Capacity { settings, answer, trials, lacking: runs.lacking() }.judged(allowed, runs.most_less(allowed)))
}

fn told_level(settings: &Settings, level: f64) -> String {
    settings.searched.counted().map_or_else(|| format!("{level}/s"), |unit| counted(level as u64, unit))
}

fn told(trial: &Trial) -> String {
    match trial.outcome {
        Outcome::Met => "met".to_owned(),
        Outcome::Failed => format!("failed: {}", trial.why),
        Outcome::Spoiled if trial.evidence.is_trustworthy() => format!("spoiled: {}", trial.why),
        Outcome::Spoiled => format!("spoiled: {}; {}", trial.why, trial.evidence.verdict),
    }
}

fn plan_of_trial(base: &Plan, settings: &Settings, level: f64, length: Length) -> Result<Plan> {
    let mut plan = Plan { origin: Origin::default(), ..base.clone() };
    if let Some(scenarios) = &mut plan.scenarios {
        let seconds = trial_ns(base, settings, base.load_ns().unwrap_or(0), level, length) as f64 / 1e9;
        let reuse_users = scenarios.populations.iter().any(|population| population.reuse_users);
        let load = match settings.searched {
            // The base has the limit of users, and their kind.
            Searched::Rate => ConstantLoad::Iterations { per_s: level, most_alive: None, reuse_users },
            Searched::Connections | Searched::Users => ConstantLoad::Users(level),
        };
        scenarios.make_constant(load, seconds)?;
        return Ok(plan);
    }
    match settings.searched {
        Searched::Rate => plan.load = Load::Open { profile: Profile::constant(level)?, arrivals: arrivals(base) },
        Searched::Connections | Searched::Users => plan.connections = Connections::Fixed(level as u32),
    }
    plan.stop.duration_ns = plan.stop.duration_ns.map(|asked| trial_ns(base, settings, asked, level, length));
    Ok(plan)
}

fn arrivals(base: &Plan) -> Spread {
    let of_users = base.scenarios.as_ref().and_then(|scenarios| scenarios.populations.first());
    match base.load {
        Load::Open { arrivals, .. } => arrivals,
        Load::Closed {} | Load::Replay(_) => of_users.map_or(Spread::Uniform, |population| population.arrivals),
    }
}

fn trial_ns(base: &Plan, settings: &Settings, asked_ns: u64, level: f64, length: Length) -> u64 {
    let rate = match settings.searched {
        Searched::Rate => level,
        // The number of calls that connections or users will make is unknown.
        Searched::Connections | Searched::Users => f64::INFINITY,
    };
    capacity::trial_ns(asked_ns, length, rate, arrivals(base))
}

/// An estimate of the time for the trials after the next, in nanoseconds.
fn left_ns(base: &Plan, settings: &Settings, trials: &[Trial], length: Length) -> u64 {
    let (mut short, mut full) = capacity::trials_left(settings, trials);
    match length {
        Length::Short => short = short.saturating_sub(1),
        Length::Full => full = full.saturating_sub(1),
    }
    // Further levels are about as high as the last one.
    let level = trials.last().map_or(settings.from, |trial| trial.level);
    let asked_ns = base.load_ns().unwrap_or(0);
    let takes = |length| base.warmup_ns + trial_ns(base, settings, asked_ns, level, length);
    u64::from(short) * takes(Length::Short) + u64::from(full) * takes(Length::Full)
}

fn interrupted(trials: &[Trial]) -> Answer {
    let rates =
        |met: bool| trials.iter().filter(move |trial| (trial.outcome == Outcome::Met) == met).map(|trial| trial.level);
    let failed = rates(false).min_by(f64::total_cmp);
    let below = |rate: &f64| failed.is_none_or(|failed| *rate < failed);
    Answer::Interrupted { met: rates(true).filter(below).max_by(f64::total_cmp), failed }
}
