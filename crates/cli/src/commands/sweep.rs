//! `brunt sweep URL`: a run for each of several values of a flag.

use anyhow::{Context as _, Result, anyhow};
use brunt_decide::evidence::Evidence;
use brunt_decide::sweep::{Axis, Step, Sweep};
use brunt_plan::plan::Plan;
use brunt_plan::units::{Duration, Number};
use brunt_protocol::Registry;
use brunt_record::SECOND_NS;
use brunt_report::decision::Decision;

use crate::args::{self, Bench, repeat};
use crate::decided::Decided;
use crate::exit::Exit;
use crate::plan::length_ns;
use crate::runs::{Ran, Runs};
use crate::{console, plan};

const DEFAULT_DURATION_NS: u64 = 5 * SECOND_NS;
const DEFAULT_WARMUP_NS: u64 = SECOND_NS;

pub fn run(args: &args::Sweep, registry: &Registry) -> Result<Exit> {
    let decided = Decided::of(&args.words.0.shown)?;
    let (axis, plans) = plans(args, registry)?;
    let Some((_, first)) = plans.first() else { return Err(anyhow!("a sweep needs a value")) };
    let mut base = first.clone();
    base.origin = plan::origin(&args.words.0.shown.saving);
    base.origin.command = repeat::of_process(registry, Some(base.seed));
    for (_, plan) in &plans {
        brunt_engine::check(plan, registry)?;
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
    Ok(exit)
}

/// A plan for each value.
fn plans(args: &args::Sweep, registry: &Registry) -> Result<(Axis, Vec<(u64, Plan)>)> {
    let mut words = args.words.clone();
    let (axis, steps) = words.take_axis(args.vary.as_ref()).map_err(|e| anyhow!("{e}"))?;
    let most = if axis.name == "connections" { u64::from(brunt_engine::most_connections()) } else { 0 };
    let values = steps.values(most).with_context(|| format!("--{}", axis.name))?;
    // An axis of its own has the unit that the flag takes; the others are plain numbers.
    let unit = args.vary.as_ref().map_or("", |vary| vary.unit.as_str());
    let mut seed = None;
    let mut plans = Vec::new();
    for value in values {
        let flag = format!("--{}={value}{unit}", axis.name);
        let shown = flag.clone();
        let mut bench = words.0.with(&[&flag], registry).with_context(|| flag.clone())?;
        defaults(&mut bench);
        if axis.is_concurrency
            && let (Some(threads), Some(connections)) = (&mut bench.load.threads, bench.load.connections)
        {
            // A sweep may begin with fewer connections than threads.
            *threads = (*threads).min(connections);
        }
        let mut plan = plan::of(&bench, registry).with_context(|| flag)?;
        if !words.0.has("seed") {
            plan.seed = *seed.get_or_insert(plan.seed);
        }
        plan.origin.command = repeat::of_run(&words.0, &[&shown], &plan, registry)?;
        plans.push((value, plan));
    }
    Ok((axis, plans))
}

fn defaults(bench: &mut Bench) {
    let load = &mut bench.load;
    let ends = load.rate.as_ref().is_some_and(|profile| profile.duration_ns().is_some());
    if load.duration.is_none() && load.requests.is_none() && !ends {
        load.duration = Some(DEFAULT_DURATION_NS);
    }
    load.warmup.get_or_insert(DEFAULT_WARMUP_NS);
}

fn carry_out(
    axis: Axis,
    base: &Plan,
    plans: &[(u64, Plan)],
    stop_at_failure: bool,
    runs: &mut Runs<'_>,
) -> Result<Sweep> {
    let mut steps: Vec<Step> = Vec::new();
    let mut ended = String::new();
    let planned: Vec<_> = plans.iter().map(|(value, _)| *value).collect();
    for (done, (value, plan)) in plans.iter().enumerate() {
        let what = format!("{} {value} ({} of {})", axis.name, done + 1, plans.len());
        let after = plans.iter().skip(done + 1).map(|(_, plan)| length_ns(plan)).sum();
        let so_far = Sweep::of(axis.clone(), planned.clone(), steps.clone(), String::new());
        runs.show(Decision::Sweep(base, &so_far), &what);
        let step = match runs.carry_out(plan, &what, after)? {
            Ran::Whole(summary) => Step::of(*value, Evidence::of(&summary)),
            Ran::Impossible(why) => Step::impossible(*value, why),
            Ran::Interrupted => {
                ended = format!("interrupted at {value}: these are the values so far");
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
    Ok(Sweep::of(axis, planned, steps, ended))
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

fn exit_of(sweep: &Sweep) -> Exit {
    let answered = |step: &Step| step.evidence.as_ref().is_some_and(Evidence::is_answered);
    if sweep.steps.is_empty() || sweep.steps.iter().all(Step::is_good) {
        Exit::Done
    } else if sweep.steps.iter().any(answered) {
        Exit::ThresholdFailed
    } else {
        Exit::NoAnswer
    }
}

/// Says why the exit status is not 0.
fn explain(sweep: &Sweep, exit: Exit) {
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
