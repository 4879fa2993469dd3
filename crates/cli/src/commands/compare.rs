//! `brunt compare`: whether B differs from A, and by how much.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow, bail};
use brunt_decide::compare::{self, ComparedFigures, ComparedRun, ComparedRuns, Comparison, FailIf, Metric};
use brunt_decide::evidence::Evidence;
use brunt_decide::short::Lacking;
use brunt_plan::plan::{Load, Origin, Plan};
use brunt_plan::units::{ExactDuration, count, counted};
use brunt_protocol::Registry;
use brunt_record::SECOND_NS;
use brunt_report::decision::{self, Decision};
use clap::Args;

use super::trial_plan;
use crate::args::runs::{Lengths, RunArgs};
use crate::args::{Program, repeat, values};
use crate::decision_output::DecisionOutput;
use crate::exit::Exit;
use crate::kept::Keep;
use crate::plan::length_ns;
use crate::runs::{Loss, NOBODY_LEFT, Runs, TrialOutcome};
use crate::scripts::SCRIPTS;
use crate::{console, plan, stored};

const EXAMPLES: &str = "\
Examples:
  brunt compare http://old:8080/ http://new:8080/
  brunt compare URL --a '-t 1' --b '-t 2'         one target, two sets of flags
  brunt compare shop.js --a '-e BASE=http://old:8080' --b '-e BASE=http://new:8080'
  brunt compare --users 20 -d 10s old.js new.js   two scripts, by k6 or in Lua
  brunt compare OLD.json NEW.json                 two results, of 10 s or more
  brunt compare nightly/ NEW.json                 three results or more, and one
  brunt compare URL_A URL_B --fail-if 'p99 > 1.05x' -o comparison.md

Exit status:
  0  compared, and no --fail-if condition is met
  1  one is met, a threshold failed in a run, or agents left in the middle of it
  2  the command line or a file was wrong
  3  a target never answered
  4  an agent was lost: the round was made again, or left out
  5  nothing failed, and something could not be judged: too little to compare, or brunt itself can have decided it
  130  Ctrl-C ended it early, with the rounds so far; pressed twice, at once (143: SIGTERM)";

/// Many short runs tell more than few long ones.
const LENGTHS: Lengths = Lengths { duration_ns: 3 * SECOND_NS, warmup_ns: SECOND_NS / 2 };

/// Compare two targets, two ways to load one, or results: does B differ from A?
#[derive(Debug, Args)]
#[command(
    override_usage = "brunt compare [OPTIONS] URL_A URL_B\n       brunt compare [OPTIONS] URL|SCRIPT --a FLAGS --b FLAGS\n       brunt compare [OPTIONS] RESULT_A RESULT_B"
)]
#[command(mut_arg("duration", |arg| LENGTHS.told_of_duration(arg)), mut_arg("warmup", |arg| LENGTHS.told_of_warmup(arg)))]
#[command(after_long_help = EXAMPLES)]
pub struct Compare {
    #[command(flatten)]
    pub run: RunArgs,
    /// Flags of A's runs alone, in quotes: '-t 1'
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true, help_heading = "Comparison")]
    pub a: Option<String>,
    /// Flags of B's runs alone
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true, help_heading = "Comparison")]
    pub b: Option<String>,
    /// How often both run, in turn
    #[arg(long, value_name = "N", value_parser = values::rounds, default_value = "10", help_heading = "Comparison")]
    pub rounds: u32,
    /// Fail condition, repeatable: 'p99 > 1.05x', 'rate < 0.95x', 'error_rate > +0.5%', 'first_message.p99 > 1.05x'. Exit
    /// status 1 where the whole 95% interval meets it
    #[arg(long, value_name = "FIGURE OP FACTOR", help_heading = "Comparison")]
    pub fail_if: Vec<FailIf>,
    /// Write the whole result of each run into this directory, as JSON
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    pub keep: Option<PathBuf>,
}

impl Compare {
    /// Whether no flag is about runs still to be made.
    fn is_of_results(&self, registry: &Registry) -> bool {
        self.run.is_bare(registry) && self.a.is_none() && self.b.is_none() && self.keep.is_none()
    }
}

pub fn run(args: &Compare, program: &Program) -> Result<Exit> {
    let shown = &args.run.shown;
    let decided = DecisionOutput::writable(shown)?;
    let (compared, exit) = if let Some([a, b]) = stored::sides(&args.run, args.is_of_results(&program.registry))? {
        let mut compared = stored::compare_sides(&a, &b)?.with_conditions(&args.fail_if);
        compared.origin = plan::origin(&shown.saving);
        compared.origin.command = repeat::of_process(program, None);
        let decision = Decision::Comparison(&compared);
        let (kept, store) = ([a.kept, b.kept].concat(), shown.saving.store.as_deref());
        let written = decided.write(decision, decision::Runs { kept: &kept, store, ..decision::Runs::default() });
        // Its runs remain independent: they may be compared with others, too.
        Keep::from_flags(&shown.saving, shown.quiet).keep_decision(decision, &[]);
        written?;
        let exit = decided.explained(decision);
        (compared, exit)
    } else {
        let Some((compared, mut runs)) = live(args, program)? else { return Ok(Exit::Done) };
        let compared = compared.with_conditions(&args.fail_if);
        let exit = runs.finish(Decision::Comparison(&compared), &decided)?;
        (compared, exit)
    };
    if !decided.is_for_people() {
        warn(&compared);
    }
    Ok(exit)
}

/// A side of a comparison of targets.
struct Side {
    name: String,
    plan: Plan,
    /// Its flags: those of both sides, and its own laid over them.
    run: RunArgs,
}

impl Side {
    /// The command of one of its runs.
    fn command(&self, plan: &Plan, registry: &Registry) -> String {
        let run = &self.run;
        // The length of a script's own load is the script's.
        let is_constant = run.scripted.users.is_some() || run.bench.load.rate.is_some();
        let length = plan.load_ns().filter(|_| plan.scenarios.is_some() && is_constant);
        let length: Vec<_> = length.map(|ns| ("duration", ExactDuration(ns).to_string())).into_iter().collect();
        trial_plan::command(run, plan, &length, registry)
    }
}

/// Runs both in turn; `None` for a mere check.
fn live<'a>(args: &Compare, program: &'a Program) -> Result<Option<(ComparedRuns, Runs<'a>)>> {
    let registry = &program.registry;
    let [a, b] = sides(args, program)?;
    for side in [&a, &b] {
        brunt_engine::check(&side.plan, registry, SCRIPTS)?;
        for condition in &args.fail_if {
            is_within_reach(condition, &side.plan)?;
        }
    }
    if args.run.shown.dry_run {
        return Ok(None);
    }
    let threads = args.run.bench.load.threads;
    let mut runs = Runs::new(registry, "compare", &args.run.shown, args.keep.as_deref(), threads)?;
    let origin = plan::origin(&args.run.shown.saving);
    let mut compared = ComparedRuns {
        origin: Origin { command: repeat::of_process(program, Some(a.plan.seed)), ..origin },
        how: how(args.rounds, &a.plan, &b.plan),
        a: a.name.clone(),
        b: b.name.clone(),
        // They were asked for; a reader of the result has to know of them all the same.
        differing: compare::differences(&a.plan, &b.plan),
        comparison: None,
        conditions: Vec::new(),
        interrupted: false,
        runs: Vec::new(),
        lacking: Lacking::default(),
    };
    let rounds = rounds(args.rounds, [&a, &b], &args.fail_if, &mut runs, &mut compared, registry);
    runs.clear();
    compared.comparison = Comparison::of_rounds(&rounds?);
    compared.lacking = runs.lacking();
    // A side that is never answered ends it, and has a sentence of its own.
    let asked = if compared.silent_side().is_some() { compared.runs.len() } else { 2 * args.rounds as usize };
    let most_less_ratio = runs.most_less(a.plan.max_less_ratio.max(b.plan.max_less_ratio));
    Ok(Some((compared.judged(asked, most_less_ratio), runs)))
}

fn sides(args: &Compare, program: &Program) -> Result<[Side; 2]> {
    let registry = &program.registry;
    let targets = args.run.targets.as_slice();
    let [a_url, b_url] = match targets {
        [one] if args.a.is_some() || args.b.is_some() => [one, one],
        [a, b] => [a, b],
        [] => bail!("brunt compare needs two targets, one target with --a and --b, or two results"),
        [one] if trial_plan::script(&args.run.aimed_at(one)).is_some() => bail!(
            "what is to be compared with it? Give each side its flags, such as --a '-e BASE=http://old' --b '-e BASE=http://new', or a second script"
        ),
        [_] => {
            bail!(
                "what is to be compared with it? Give a second target, such as brunt compare http://old/ http://new/, or the flags of each side: --a '--http 1.1' --b '--http 2'"
            )
        }
        more => bail!("expected two targets or results, got {}", more.len()),
    };
    let side = |url: &OsString, flags: Option<&String>, flag: &'static str| -> Result<Side> {
        let words = match flags {
            Some(text) => shlex::split(text).ok_or_else(|| anyhow!("{flag}: a quote is not closed"))?,
            None => Vec::new(),
        };
        // The flags themselves may be secret.
        let whose = || if flags.is_some() { flag } else { "the flags" };
        let mut run = args.run.aimed_at(url).over(&words, registry).with_context(whose)?;
        let script = trial_plan::script(&run);
        if script.is_none() {
            LENGTHS.give(&mut run.bench.load);
        } else if run.scripted.users.is_some() || run.bench.load.rate.is_some() {
            run.bench.load.duration.get_or_insert(LENGTHS.duration_ns);
        }
        let plan = trial_plan::from_flags(&run, program)?;
        let flags =
            (!words.is_empty()).then(|| repeat::shown_flags(&words, registry)).transpose().with_context(whose)?;
        let of_script = script.map(|file| file.display().to_string());
        let name = [Some(of_script.unwrap_or_else(|| plan.target.url())), flags]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" ");
        Ok(Side { name, plan, run })
    };
    let (a, mut b) = (side(a_url, args.a.as_ref(), "--a")?, side(b_url, args.b.as_ref(), "--b")?);
    if args.run.bench.limits.seed.is_none() {
        b.plan.seed = a.plan.seed;
    }
    Ok([a, b])
}

/// Refuses a condition that no run of `plan` can decide, since its calls are too few: before the load, and not after it.
fn is_within_reach(condition: &FailIf, plan: &Plan) -> Result<()> {
    let Some(fewest) = compare::fewest_calls(condition) else { return Ok(()) };
    let seconds = plan.duration_ns().map(|ns| ns as f64 / 1e9);
    let due = match &plan.load {
        Load::Open { profile, .. } => seconds.map(|seconds| (profile.calls_until(seconds), "-d")),
        _ => None,
    };
    let asked = plan.stop.requests.map(|requests| (requests as f64, "-n"));
    let Some((calls, flag)) = due.into_iter().chain(asked).min_by(|a, b| a.0.total_cmp(&b.0)) else { return Ok(()) };
    // Arrivals by chance are some more or fewer.
    if calls >= fewest as f64 * 0.9 {
        return Ok(());
    }
    let give = match (flag, seconds) {
        // In tenths of a second, never too few.
        ("-d", Some(seconds)) if calls > 0.0 => {
            let tenths = (seconds * fewest as f64 / calls * 10.0).ceil() as u64;
            format!("-d {}", ExactDuration(tenths * (SECOND_NS / 10)))
        }
        _ => format!("{flag} {fewest}"),
    };
    bail!(
        "--fail-if '{condition}' needs {} in each run, and there are {}: give {give}",
        counted(fewest, "call"),
        count(calls.round() as u64)
    )
}

/// The result of a round.
enum Round {
    /// Both sides ran.
    Made(Box<(ComparedFigures, ComparedFigures)>),
    /// The side that ran was not answered.
    Silent,
    /// It was ended early.
    Interrupted,
    /// A side lost an agent.
    Lost(Loss),
}

/// The rounds after which it is said how many are needed.
const PILOTS: usize = 2;

/// What all of `n` rounds will show, by the spread of the first: which conditions they decide, else which differences are seen.
fn outlook(n: u32, conditions: &[FailIf], rounds: &[(ComparedFigures, ComparedFigures)]) -> Option<String> {
    let (mut within, mut beyond) = (Vec::new(), Vec::new());
    for condition in conditions {
        match compare::rounds_to_decide(condition, rounds) {
            Some(needed) if needed <= n => within.push(condition.to_string()),
            Some(needed) => beyond.push(format!("{condition} needs about {needed} (--rounds {needed})")),
            None => {}
        }
    }
    if !within.is_empty() {
        let are = if within.len() == 1 { "is" } else { "are" };
        within = vec![format!("{} {are} decided by {n}", within.join(", "))];
    }
    let each = [within, beyond].concat();
    if !each.is_empty() {
        return Some(format!("after {PILOTS} rounds: {}", each.join("; ")));
    }
    let seen = [Metric::P50, Metric::P99].into_iter().filter_map(|metric| {
        let ratio = compare::ratio_to_see(metric, n, rounds)?;
        Some(format!("{:.1}% or more at {}", (ratio - 1.0) * 100.0, metric.name()))
    });
    let seen: Vec<_> = seen.collect();
    (!seen.is_empty()).then(|| format!("after {PILOTS} rounds: {n} show a difference of about {}", seen.join(" and ")))
}

fn rounds(
    n: u32,
    sides: [&Side; 2],
    conditions: &[FailIf],
    runs: &mut Runs<'_>,
    compared: &mut ComparedRuns,
    registry: &Registry,
) -> Result<Vec<(ComparedFigures, ComparedFigures)>> {
    let mut rounds = Vec::new();
    for number in 0..n {
        compared.comparison = Comparison::of_rounds(&rounds);
        let what = format!("round {} of {n}:", number + 1);
        let mut round = one_round(number, n, sides, runs, compared, registry)?;
        // Both sides of a round are carried out by the same agents.
        if let Round::Lost(Loss { how, goes_on: true }) = &round {
            runs.made_again(&what, how);
            round = one_round(number, n, sides, runs, compared, registry)?;
        }
        match round {
            Round::Made(figures) => {
                rounds.push(*figures);
                if rounds.len() == PILOTS
                    && let Some(outlook) = outlook(n, conditions, &rounds)
                {
                    runs.note(&outlook);
                }
            }
            Round::Silent => return Ok(rounds),
            Round::Interrupted => {
                compared.interrupted = true;
                return Ok(rounds);
            }
            Round::Lost(Loss { how, goes_on }) => {
                runs.left_out(&what, &how);
                if !goes_on {
                    runs.note(NOBODY_LEFT);
                    compared.interrupted = true;
                    return Ok(rounds);
                }
            }
        }
    }
    Ok(rounds)
}

/// Runs both sides, in either order.
fn one_round(
    number: u32,
    n: u32,
    sides: [&Side; 2],
    runs: &mut Runs<'_>,
    compared: &mut ComparedRuns,
    registry: &Registry,
) -> Result<Round> {
    let [a_side, b_side] = sides;
    let (a, b) = (&a_side.plan, &b_side.plan);
    let order = if compare::a_goes_first(a.seed, number) { [false, true] } else { [true, false] };
    let mut figures: [Option<ComparedFigures>; 2] = [None, None];
    let mut evidence = Vec::new();
    let kept = runs.kept();
    for (done, is_b) in order.into_iter().enumerate() {
        let mut plan = if is_b { b } else { a }.clone();
        plan.seed = plan.seed.wrapping_add(u64::from(number));
        plan.origin.command = if is_b { b_side } else { a_side }.command(&plan, registry);
        let side = if is_b { "B" } else { "A" };
        let what = format!("round {} of {n}: {side}", number + 1);
        let rest = u64::from(n - number - 1) * (length_ns(a) + length_ns(b));
        let after = rest + if done == 0 { length_ns(if is_b { a } else { b }) } else { 0 };
        compared.lacking = runs.lacking();
        runs.show(Decision::Comparison(compared), &what);
        let summary = match runs.attempt(&plan, &what, after)? {
            TrialOutcome::Whole(summary) => summary,
            TrialOutcome::Interrupted => {
                runs.rests_on(kept);
                return Ok(Round::Interrupted);
            }
            TrialOutcome::Impossible(reason) => bail!("{what}: {reason}"),
            TrialOutcome::Lost(loss) => {
                runs.rests_on(kept);
                return Ok(Round::Lost(Loss { how: format!("{side} {}", loss.how), ..loss }));
            }
        };
        let run = Evidence::from_summary(&summary);
        runs.note(&format!("{what} {}", told(&run)));
        if let Some(place) = figures.get_mut(usize::from(is_b)) {
            *place = Some(ComparedFigures::from_summary(&summary));
        }
        let is_silent = !run.is_answered();
        evidence.push(ComparedRun { is_b, number: number as usize + 1, evidence: run });
        if is_silent && number == 0 {
            compared.runs.append(&mut evidence);
            return Ok(Round::Silent);
        }
    }
    // An agent that was lost can come back between both.
    if !runs.are_by_the_same() {
        runs.rests_on(kept);
        return Ok(Round::Lost(Loss {
            how: "was not made by the same agents on both sides".to_owned(),
            goes_on: true,
        }));
    }
    compared.runs.append(&mut evidence);
    let [a, b] = figures;
    Ok(a.zip(b).map_or(Round::Silent, |both| Round::Made(Box::new(both))))
}

fn told(run: &Evidence) -> String {
    let p99 = run.p99_ns.map_or(String::new(), |p99| {
        format!(", p99 {}{}", if p99.at_least { "≥" } else { "" }, brunt_plan::units::Duration(p99.value))
    });
    let verdict = if run.is_trustworthy() { String::new() } else { format!("; {}", run.verdict) };
    format!("{}/s{p99}{verdict}", brunt_plan::units::Number(run.ok_per_s.round()))
}

/// The common settings of both sides' runs.
fn how(rounds: u32, a: &Plan, b: &Plan) -> String {
    let mut parts = vec![format!("{rounds} rounds in turn (A B B A …)")];
    let populations = |plan: &Plan| plan.scenarios.as_ref().map(|scenarios| scenarios.populations.clone());
    if let Some(of_a) = populations(a) {
        if Some(of_a) == populations(b) {
            parts.extend(brunt_report::text::in_words(a));
        }
        return parts.join(", ");
    }
    if a.connections == b.connections && a.workers == b.workers {
        parts.push(brunt_report::text::concurrency(a));
    }
    if a.load == b.load {
        parts.push(match &a.load {
            Load::Closed {} => "closed model".to_owned(),
            Load::Open { profile, .. } => format!("open model, rate {profile}"),
            Load::Replay(replay) => replay.title(),
        });
    }
    if (a.stop, a.warmup_ns) == (b.stop, b.warmup_ns) {
        let length = a.duration_ns().map(|ns| ExactDuration(ns).to_string());
        let requests = a.stop.requests.map(|n| format!("{n} requests"));
        let lengths: Vec<_> = [length, requests].into_iter().flatten().collect();
        parts.push(format!("{} each after {} of warm-up", lengths.join(" or "), ExactDuration(a.warmup_ns)));
    }
    parts.push(format!("seed {}", a.seed));
    parts.join(", ")
}

/// Warns of conditions that were neither shown nor ruled out.
fn warn(compared: &ComparedRuns) {
    for condition in &compared.conditions {
        if let (false, Some(from)) = (condition.failed, &condition.undecided) {
            let (text, got) = (&condition.condition, &condition.got);
            console::note(&format!("warning: {text}: {got}: not ruled out; it would have been seen from {from} on"));
        }
    }
}
