//! `brunt compare`: whether B differs from A, and by how much.

use std::ffi::OsString;

use anyhow::{Context as _, Result, anyhow, bail};
use brunt_decide::compare::{self, Compared, ComparedRun, Comparison, Figures};
use brunt_decide::evidence::Evidence;
use brunt_plan::plan::{Load, Origin, Plan};
use brunt_plan::units::ExactDuration;
use brunt_protocol::Registry;
use brunt_record::SECOND_NS;
use brunt_report::decision::Decision;

use super::show::found;
use crate::args::words::Words;
use crate::args::{Bench, Compare, repeat};
use crate::decided::Decided;
use crate::exit::Exit;
use crate::kept::Keep;
use crate::plan::length_ns;
use crate::runs::{Ran, Runs};
use crate::{console, plan, stored};

const DEFAULT_DURATION_NS: u64 = 3 * SECOND_NS;
const DEFAULT_WARMUP_NS: u64 = SECOND_NS / 2;

pub fn run(args: &Compare, registry: &Registry) -> Result<Exit> {
    let shown = &args.words.shown;
    let decided = Decided::of(shown)?;
    let compared = if let Some([a, b]) = stored::sides(args)? {
        let mut compared = stored::compare_sides(&a, &b)?.with_conditions(&args.fail_if);
        compared.origin = plan::origin(&shown.saving);
        compared.origin.command = repeat::of_process(registry, None);
        let decision = Decision::Comparison(&compared);
        let written = decided.write(decision, found(&[a.kept, b.kept].concat(), shown.saving.store.as_deref()));
        // Its runs stay what they are: they may be compared with others, too.
        Keep::of(&shown.saving, shown.quiet).keep_decision(decision, &[]);
        written?;
        compared
    } else {
        let Some((compared, mut runs)) = live(args, registry)? else { return Ok(Exit::Done) };
        let compared = compared.with_conditions(&args.fail_if);
        runs.finish(Decision::Comparison(&compared), &decided)?;
        compared
    };
    let exit = exit_of(&compared);
    if !decided.is_for_people() {
        explain(&compared, exit);
    }
    Ok(exit)
}

/// A side of a comparison of targets.
struct Side {
    name: String,
    plan: Plan,
    /// The flags of both sides, aimed at this one's target.
    line: Words,
    /// Those of this side alone.
    words: Vec<OsString>,
}

impl Side {
    /// The command of one of its runs.
    fn command(&self, plan: &Plan, registry: &Registry) -> Result<String> {
        repeat::of_run(&self.line, &self.words, plan, registry)
    }
}

/// Runs both in turn; none if that was only to be checked.
fn live<'a>(args: &Compare, registry: &'a Registry) -> Result<Option<(Compared, Runs<'a>)>> {
    let [a, b] = sides(args, registry)?;
    for side in [&a, &b] {
        brunt_engine::check(&side.plan, registry)?;
    }
    if args.words.shown.dry_run {
        return Ok(None);
    }
    let threads = args.words.texts("threads").first().and_then(|text| text.parse().ok());
    let mut runs = Runs::new(registry, "compare", &args.words.shown, args.keep.as_deref(), threads)?;
    let origin = plan::origin(&args.words.shown.saving);
    let mut compared = Compared {
        origin: Origin { command: repeat::of_process(registry, Some(a.plan.seed)), ..origin },
        how: how(args.rounds, &a.plan, &b.plan),
        a: a.name.clone(),
        b: b.name.clone(),
        // What differs was asked for, and stands in the names.
        differing: Vec::new(),
        comparison: None,
        conditions: Vec::new(),
        interrupted: false,
        runs: Vec::new(),
    };
    let rounds = rounds(args.rounds, [&a, &b], &mut runs, &mut compared, registry);
    runs.clear();
    compared.comparison = Comparison::of_rounds(&rounds?);
    Ok(Some((compared, runs)))
}

fn sides(args: &Compare, registry: &Registry) -> Result<[Side; 2]> {
    let targets = args.words.targets.as_slice();
    let [a_url, b_url] = match targets {
        [one] if args.a.is_some() || args.b.is_some() => [one, one],
        [a, b] => [a, b],
        [] => bail!("brunt compare needs two targets, one target with --a and --b, or two results"),
        [_] => {
            bail!("what is to be compared with it? Give a second target, or the flags of each side with --a and --b")
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
        let mut bench = args.words.aimed_at(url).with(&words, registry).with_context(whose)?;
        defaults(&mut bench);
        let plan = plan::of(&bench, registry)?;
        let line = args.words.aimed_at(url);
        let flags =
            (!words.is_empty()).then(|| repeat::shown_flags(&words, registry)).transpose().with_context(whose)?;
        let name = [Some(plan.target.url()), flags].into_iter().flatten().collect::<Vec<_>>().join(" ");
        Ok(Side { name, plan, line, words: words.into_iter().map(OsString::from).collect() })
    };
    let (a, mut b) = (side(a_url, args.a.as_ref(), "--a")?, side(b_url, args.b.as_ref(), "--b")?);
    if !args.words.has("seed") {
        b.plan.seed = a.plan.seed;
    }
    Ok([a, b])
}

/// Many short runs tell more than few long ones.
fn defaults(bench: &mut Bench) {
    let ends = bench.load.rate.as_ref().is_some_and(|profile| profile.duration_ns().is_some());
    if bench.load.duration.is_none() && bench.load.requests.is_none() && !ends {
        bench.load.duration = Some(DEFAULT_DURATION_NS);
    }
    bench.load.warmup.get_or_insert(DEFAULT_WARMUP_NS);
}

fn rounds(
    n: u32,
    sides: [&Side; 2],
    runs: &mut Runs<'_>,
    compared: &mut Compared,
    registry: &Registry,
) -> Result<Vec<(Figures, Figures)>> {
    let seed = sides[0].plan.seed;
    let mut rounds = Vec::new();
    for round in 0..n {
        let order = if compare::a_goes_first(seed, round) { [false, true] } else { [true, false] };
        let mut figures: [Option<Figures>; 2] = [None, None];
        let mut evidence = Vec::new();
        for (done, is_b) in order.into_iter().enumerate() {
            let [a_side, b_side] = sides;
            let (a, b) = (&a_side.plan, &b_side.plan);
            let mut plan = if is_b { b } else { a }.clone();
            plan.seed = plan.seed.wrapping_add(u64::from(round));
            plan.origin.command = if is_b { b_side } else { a_side }.command(&plan, registry)?;
            let what = format!("round {} of {n}: {}", round + 1, if is_b { "B" } else { "A" });
            let rest = u64::from(n - round - 1) * (length_ns(a) + length_ns(b));
            let after = rest + if done == 0 { length_ns(if is_b { a } else { b }) } else { 0 };
            compared.comparison = Comparison::of_rounds(&rounds);
            runs.show(Decision::Comparison(compared), &what);
            let summary = match runs.carry_out(&plan, &what, after)? {
                Ran::Whole(summary) => summary,
                Ran::Interrupted => {
                    compared.interrupted = true;
                    return Ok(rounds);
                }
                Ran::Impossible(reason) => bail!("{what}: {reason}"),
            };
            let run = Evidence::of(&summary);
            runs.note(&format!("{what} {}", told(&run)));
            if let Some(place) = figures.get_mut(usize::from(is_b)) {
                *place = Some(Figures::of(&summary));
            }
            let silent = !run.is_answered();
            evidence.push(ComparedRun { is_b, number: round as usize + 1, evidence: run });
            if silent && round == 0 {
                compared.runs.append(&mut evidence);
                return Ok(rounds);
            }
        }
        compared.runs.append(&mut evidence);
        if let [Some(a), Some(b)] = figures {
            rounds.push((a, b));
        }
    }
    Ok(rounds)
}

fn told(run: &Evidence) -> String {
    let p99 = run.p99_ns.map_or(String::new(), |p99| {
        format!(", p99 {}{}", if p99.at_least { "≥" } else { "" }, brunt_plan::units::Duration(p99.value))
    });
    let verdict = if run.is_trustworthy() { String::new() } else { format!("; {}", run.verdict) };
    format!("{}/s{p99}{verdict}", brunt_plan::units::Number(run.ok_per_s().round()))
}

/// How the runs of both sides are made, as far as they are made alike.
fn how(rounds: u32, a: &Plan, b: &Plan) -> String {
    let mut parts = vec![format!("{rounds} rounds in turn (A B B A …)")];
    if a.connections == b.connections && a.workers == b.workers {
        parts.push(brunt_report::text::concurrency(a));
    }
    if a.load == b.load {
        parts.push(match &a.load {
            Load::Closed {} => "closed model".to_owned(),
            Load::Open { profile, .. } => format!("open model, rate {profile}"),
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

/// Whether a side was never answered.
fn silent_side(compared: &Compared) -> Option<&ComparedRun> {
    let side = |is_b: bool| compared.runs.iter().filter(move |run| run.is_b == is_b);
    let is_silent = |is_b: bool| side(is_b).all(|run| !run.evidence.is_answered());
    [false, true].into_iter().filter(|is_b| is_silent(*is_b)).find_map(|is_b| side(is_b).next())
}

/// A run of which more failed than may.
fn failed_run(compared: &Compared) -> Option<&ComparedRun> {
    compared.runs.iter().find(|run| run.evidence.failed_implicitly().next().is_some())
}

fn exit_of(compared: &Compared) -> Exit {
    if silent_side(compared).is_some() {
        Exit::NoAnswer
    } else if compared.comparison.is_none()
        || failed_run(compared).is_some()
        || compared.conditions.iter().any(|condition| condition.failed)
    {
        Exit::ThresholdFailed
    } else {
        Exit::Done
    }
}

/// Says why the exit status is not 0.
fn explain(compared: &Compared, exit: Exit) {
    if let Some(run) = silent_side(compared) {
        let name = if run.is_b { &compared.b } else { &compared.a };
        let failure: String = run.evidence.failure.chars().filter(|c| !c.is_control()).collect();
        console::note(&format!("error: {name} never answered: {failure}"));
    } else if let Some(run) = failed_run(compared) {
        let name = if run.is_b { &compared.b } else { &compared.a };
        for failed in run.evidence.failed_implicitly() {
            console::note(&format!(
                "error: {name}: {} was {} ({})",
                failed.threshold, failed.got, run.evidence.failure
            ));
        }
    } else if exit == Exit::ThresholdFailed && compared.comparison.is_none() {
        console::note("error: there was too little to compare");
    }
    for condition in &compared.conditions {
        let text = condition.condition.trim();
        match &condition.undecided {
            _ if condition.failed => console::note(&format!("error: {text}: {}", condition.got)),
            Some(from) => console::note(&format!(
                "warning: {text}: {}: not ruled out; it would have been seen from {from} on",
                condition.got
            )),
            None => {}
        }
    }
}
