//! A single run: carried out, seen while it goes on, judged, written and kept.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use brunt_engine::trace::{Sight, Trace};
use brunt_engine::{Control, Finished, Observer, RunningTotal, StopHandle};
use brunt_judge::abort::AbortWatch;
use brunt_judge::summary::Summary;
use brunt_plan::plan::Plan;
use brunt_plan::secret::REDACTED;
use brunt_protocol::Registry;
use brunt_protocol::replay::Replay;
use brunt_record::catalogue::Counter;
use brunt_record::live::{InLog, Live};
use brunt_record::recording::Ending;
use brunt_record::replayed::Replayed;
use brunt_record::snapshot::Phase;
use brunt_record::watched::Watched;

use crate::args::Output;
use crate::args::machines::Machines;
use crate::carrier::{Carried, Carrier};
use crate::ctl::CtlServer;
use crate::exit::Exit;
use crate::kept::Keep;
use crate::results::Results;
use crate::scripts::SCRIPTS;
use crate::sinks::{Sinks, subject};
use crate::watching::Watching;
use crate::{console, files, handled, losses, ready, signals, wrk_totals};

/// The most checks that are named in a line.
const MOST_NAMED: usize = 5;

/// Who carries a run out.
pub struct CarriedBy<'a> {
    /// As the flags say.
    pub machines: &'a Machines,
    /// Workers of each machine, if their number was given.
    pub threads: Option<u32>,
    /// Where the script may write what it makes of the result.
    pub allow_write: &'a [PathBuf],
}

/// Carries the plan out, shows it as it goes, and writes what came of it. `trace`, if any, sees everything that its users
/// do.
pub fn carry_out(
    plan: &Plan,
    registry: &Registry,
    results: &Results,
    args: &Output,
    keep: &Keep,
    trace: Option<Arc<dyn Trace>>,
    by: &CarriedBy<'_>,
) -> Result<Exit> {
    let stop = StopHandle::default();
    signals::stop_at_first(stop.clone())?;
    if trace.is_some() && by.machines.bus.nats.is_some() {
        bail!("--once and --log look at users of this machine: leave --nats out");
    }
    let carrier = Carrier::from_flags(by.machines, by.threads, args.quiet, &stop)?;
    let traced = trace.as_ref().is_some_and(|trace| trace.sight() == Sight::Everything);
    let run_id = subject::run_id()?;
    let control = Control::default();
    let mut sinks = Sinks::from_flags(plan, results, args, &run_id, &control, &stop, traced)?;
    let ctl = trace.is_none().then(|| CtlServer::listen(plan, &run_id, &control));
    if let Some(Err(problem)) = &ctl
        && args.verbose
    {
        console::note(&format!("note: brunt ctl cannot reach this run: {problem:#}"));
    }
    let carried = match trace {
        None => carrier.run(plan, registry, &mut sinks, &control, &stop),
        Some(trace) => ready::wait(plan, registry, &stop, !args.quiet).and_then(|()| {
            let watching = &mut Watching::begin(plan, true, !args.quiet, &mut sinks)?;
            brunt_engine::run_traced(plan, registry, SCRIPTS, &mut AbortWatch::new(plan, watching), &stop, trace)
                .map(|Finished { plan, run, script }| Carried { plan, run, script })
                .map_err(Into::into)
        }),
    };
    // They are free for others as soon as the load is over.
    drop((carrier, ctl));
    sinks.load_ended();
    if traced && results.is_for_people() {
        // The result stands apart from what it is of.
        drop(console::print(b"\n"));
    }
    conclude(carried?, sinks, results, keep, &stop, |summary| {
        never_counted(summary);
        if traced { Ok(()) } else { handled::write(summary, registry, by.allow_write) }
    })
}

/// What a replay takes its calls from.
pub struct Logs<'a> {
    /// A log for each worker.
    pub of_workers: Vec<Box<dyn Replay>>,
    /// How far they are after so many nanoseconds.
    pub in_log: &'a dyn Fn(u64) -> InLog,
}

/// Replays logs, shows the run as it goes, and writes what came of it. `told` says what was taken of them.
pub fn replay(
    plan: &Plan,
    logs: Logs<'_>,
    registry: &Registry,
    results: &Results,
    args: &Output,
    keep: &Keep,
    told: impl FnOnce() -> Replayed,
) -> Result<Exit> {
    let stop = StopHandle::default();
    signals::stop_at_first(stop.clone())?;
    // Its calls are due when the log has them: nobody changes that while it goes on.
    let mut sinks = Sinks::from_flags(plan, results, args, &subject::run_id()?, &Control::default(), &stop, false)?;
    let carried = ready::wait(plan, registry, &stop, !args.quiet).and_then(|()| {
        let watching = &mut Watching::begin(plan, true, !args.quiet, &mut sinks)?;
        let observer = &mut InLogs { in_log: logs.in_log, next: AbortWatch::new(plan, watching) };
        Ok(brunt_engine::run_replay(plan, logs.of_workers, registry, SCRIPTS, observer, &stop)?)
    });
    sinks.load_ended();
    let Finished { plan, mut run, script } = carried?;
    run.replayed = Some(Box::new(told()));
    conclude(Carried { plan, run, script }, sinks, results, keep, &stop, |_| Ok(()))
}

/// Says how far a replay is in its log, and shows its seconds to another observer.
struct InLogs<'a, O> {
    in_log: &'a dyn Fn(u64) -> InLog,
    next: O,
}

impl<O: Observer> Observer for InLogs<'_, O> {
    fn watched(&mut self, phase: Phase, elapsed_ns: u64, length_ns: u64) -> Watched {
        self.next.watched(phase, elapsed_ns, length_ns)
    }

    fn in_log(&mut self, elapsed_ns: u64) -> Option<InLog> {
        Some((self.in_log)(elapsed_ns))
    }

    fn second(&mut self, second: &Live, so_far: &RunningTotal<'_>) -> ControlFlow<String> {
        self.next.second(second, so_far)
    }
}

/// Writes what came of a run, and keeps it. `besides` is done once it is written.
fn conclude(
    carried: Carried,
    mut sinks: Sinks,
    results: &Results,
    keep: &Keep,
    stop: &StopHandle,
    besides: impl FnOnce(&Summary) -> Result<()>,
) -> Result<Exit> {
    let Carried { plan, run, script } = carried;
    let mut summary = Summary::new(plan, run);
    sinks.judged(&summary);
    summary.deliveries = sinks.deliveries();
    let written = results.write(&summary);
    // A result that could not be written is all the more worth keeping.
    let kept = keep.keep(&summary);
    sinks.written(&summary, kept);
    written?;
    besides(&summary)?;
    let exit = Exit::of_run(&summary);
    // A script that failed has nothing more to say.
    if let Some(script) = script
        && !matches!(summary.run.ending, Ending::Failed(_) | Ending::AgentsLost(_))
    {
        script.done(wrk_totals::totals(&summary), stop)?;
    }
    // Who reads the result sees it there.
    if !results.is_for_people() {
        explain(exit, &summary);
    }
    sinks.linger(stop);
    Ok(exit)
}

/// Names the checks that the script has in its text and that were never counted: no threshold and no error rate knows of them.
fn never_counted(summary: &Summary) {
    let Some(scenarios) = &summary.plan.scenarios else { return };
    // What was counted in a warm-up is in no figure.
    if summary.plan.warmup_ns > 0 {
        return;
    }
    let counted = |name: &str| summary.total.figures.checks.iter().any(|(_, check)| check.check == name);
    let missing: Vec<_> = brunt_lua::scenario::written_checks(scenarios)
        .into_iter()
        .filter(|(name, _)| !counted(name))
        .map(|(name, place)| format!("'{name}' ({place})"))
        .collect();
    if let Some((first, others)) = missing.split_first() {
        let (what, was) = if others.is_empty() { ("check", "was") } else { ("checks", "were") };
        let more = others.len().saturating_sub(MOST_NAMED - 1);
        let named =
            std::iter::once(first).chain(others.iter().take(MOST_NAMED - 1)).cloned().collect::<Vec<_>>().join(", ");
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        console::note(&format!("note: the {what} {named}{more} {was} never counted: no iteration came that far"));
    }
}

/// Says why the exit status is not 0.
fn explain(exit: Exit, summary: &Summary) {
    match exit {
        Exit::NoAnswer => console::note(&never_answered(summary)),
        Exit::ThresholdFailed => {
            if let Ending::Aborted(reason) = &summary.run.ending {
                console::note(&format!("error: aborted: {reason}"));
            }
            let failed = summary.thresholds.iter().filter(|result| !result.held);
            for failed in failed.filter(|result| !summary.is_said_by_ending(result)) {
                let whose = if failed.implicit { "default threshold" } else { "threshold" };
                console::note(&format!("error: the {whose} {} failed: {}", failed.threshold, failed.got));
            }
            let is_said = summary.thresholds.iter().any(|result| !result.held);
            if !is_said && summary.total.numbers.get(Counter::Due) == 0 {
                console::note(&format!("error: {}", brunt_report::no_call(summary)));
            } else if let Some(paused) = brunt_report::paused_to_end(summary) {
                console::note(&format!("error: {paused}"));
            } else if !is_said && summary.run.ending == Ending::Completed {
                console::note(&no_answer_as_expected(summary));
            }
        }
        Exit::Wrong => {
            if let Ending::Failed(reason) = &summary.run.ending {
                console::note(&format!("error: {reason}"));
            }
        }
        Exit::AgentsLost => {
            let is_ended = matches!(summary.run.ending, Ending::AgentsLost(_));
            let advice = if is_ended { "" } else { "; --on-lost-agent says whether a run may go on without it" };
            if let Some(reason) = losses::sentence(&summary.run) {
                console::note(&format!("error: {reason}{advice}"));
            }
        }
        Exit::Done | Exit::Interrupted(_) | Exit::AsWrk => {}
    }
}

/// The target answered nothing, and why.
fn never_answered(summary: &Summary) -> String {
    shown(&format!("error: {} never answered{}", summary.plan.target.url(), worst_failure(summary)))
}

/// All that came were answers of another kind than asked for.
fn no_answer_as_expected(summary: &Summary) -> String {
    shown(&format!("error: no answer was as expected{}", worst_failure(summary)))
}

/// `: timeout (no answer in 10s)`, the most frequent failure with its most frequent reason; empty if nothing failed.
fn worst_failure(summary: &Summary) -> String {
    let failures = &summary.total.failures;
    let Some((failure, _)) = failures.counted().max_by_key(|(_, count)| *count) else { return String::new() };
    let reason = failures.reasons(failure).first().map_or(String::new(), |(reason, _)| format!(" ({reason})"));
    format!(": {}{reason}", failure.name())
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// Writes `plan` into a file, which holds no secrets, and says so where it has left some out.
///
/// # Errors
/// When the file cannot be written.
pub fn write_plan(plan: &Plan, path: &Path) -> Result<()> {
    let mut json = serde_json::to_string_pretty(plan).context("cannot write the plan")?;
    json.push('\n');
    if json.contains(REDACTED) {
        console::note(&format!(
            "note: {} holds no secrets, so it cannot be run as it is: give them as @NAME, from the environment",
            path.display()
        ));
    }
    files::write(path, json.as_bytes())
}
