//! A single run: carried out, shown while it goes on, judged, written and kept.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, bail};
use brunt_engine::trace::{Sight, Trace};
use brunt_engine::{Control, Finished, Observer, RunningTotal, StopHandle};
use brunt_judge::abort::{AbortWatch, Reason};
use brunt_judge::summary::Summary;
use brunt_plan::plan::Plan;
use brunt_plan::secret::REDACTED;
use brunt_protocol::Registry;
use brunt_protocol::replay::{LogTimetable, WorkerReplay};
use brunt_record::catalogue::Counter;
use brunt_record::live::{InLog, Live};
use brunt_record::recording::{Ending, Recording};
use brunt_record::replayed::{LogRead, Replayed};
use brunt_record::samples::SampleSink;
use brunt_record::snapshot::Phase;
use brunt_record::watched::Watched;

use crate::args::Output;
use crate::args::machines::Machines;
use crate::ctl::CtlServer;
use crate::executor::{Executor, RunOutcome};
use crate::exit::Exit;
use crate::kept::Keep;
use crate::results::Results;
use crate::scripts::SCRIPTS;
use crate::sinks::{Sinks, subject};
use crate::watching::Watching;
use crate::{console, files, losses, machine, signals, summary_hook, wait_for_target, wrk_totals};

/// The most checks that a line names.
const MOST_NAMED: usize = 5;

/// The machines that carry out a run, and their settings.
pub struct CarriedBy<'a> {
    /// The machines that the flags name.
    pub machines: &'a Machines,
    /// Workers of each machine, if their number was given.
    pub threads: Option<u32>,
    /// The paths where the script may write its texts on the result.
    pub allow_write: &'a [PathBuf],
}

/// Carries out the plan, shows the run as it goes, and writes its result. `trace`, if any, sees everything that its
/// users do.
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
    by_this_machine(args, by.machines)?;
    if trace.is_some() && by.machines.bus.nats.is_some() {
        bail!("--once and --log look at users of this machine: leave --nats out");
    }
    let carrier = Executor::from_flags(by.machines, by.threads, args.quiet, &stop)?;
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
        Some(trace) => wait_for_target::wait(plan, registry, &stop, !args.quiet).and_then(|()| {
            let watching = &mut Watching::begin(plan, true, !args.quiet, &mut sinks)?;
            brunt_engine::run_traced(plan, registry, SCRIPTS, &mut AbortWatch::new(plan, watching), &stop, trace)
                .map(|Finished { plan, run, script }| RunOutcome { plan, run, script })
                .map_err(Into::into)
        }),
    };
    // The agents and the socket of `brunt ctl` are free for others as soon as the load is over.
    drop((carrier, ctl));
    sinks.load_ended();
    if traced && results.is_for_people() {
        // An empty line separates the result from the trace.
        drop(console::print(b"\n"));
    }
    conclude(carried?, sinks, results, keep, &stop, |summary| {
        never_counted(summary);
        if traced { Ok(()) } else { summary_hook::write(summary, registry, by.allow_write) }
    })
}

/// Checks that rows are wanted of calls of this machine alone.
///
/// # Errors
/// When agents make the calls.
fn by_this_machine(args: &Output, machines: &Machines) -> Result<()> {
    if args.samples.is_some() && machines.bus.nats.is_some() {
        bail!(
            "--samples writes the calls of this machine down, and agents make them elsewhere: start the agents with \
             --samples DIR, and each writes its own calls down"
        );
    }
    Ok(())
}

/// The display of a replay, and the destinations of its result.
pub struct Showing<'a> {
    /// The destinations of the result.
    pub results: &'a Results,
    /// The flags of the output.
    pub args: &'a Output,
    /// Whether the result is kept.
    pub keep: &'a Keep,
    /// The progress in the log after a number of nanoseconds.
    pub in_log: &'a dyn Fn(u64) -> InLog,
}

/// Replays logs, one for each worker, shows the run as it goes, and writes its result. `replayed` compares the answers
/// with the logs once the run is over.
pub fn replay(
    plan: &Plan,
    logs: Vec<Box<dyn WorkerReplay>>,
    registry: &Registry,
    showing: &Showing<'_>,
    replayed: impl FnOnce(&Recording) -> Replayed,
) -> Result<Exit> {
    let Showing { results, args, keep, in_log } = *showing;
    let stop = StopHandle::default();
    signals::stop_at_first(stop.clone())?;
    // The log sets the due times of the calls: nobody changes them during the run.
    let mut sinks = Sinks::from_flags(plan, results, args, &subject::run_id()?, &Control::default(), &stop, false)?;
    let carried = wait_for_target::wait(plan, registry, &stop, !args.quiet).and_then(|()| {
        let shown = &mut InLogs { in_log, next: &mut sinks };
        let watching = &mut Watching::begin(plan, true, !args.quiet, shown)?;
        let observer = &mut AbortWatch::new(plan, watching);
        Ok(brunt_engine::run_replay(plan, logs, registry, SCRIPTS, observer, &stop)?)
    });
    sinks.load_ended();
    let Finished { plan, mut run, script } = carried?;
    run.replayed = Some(Box::new(replayed(&run)));
    conclude(RunOutcome { plan, run, script }, sinks, results, keep, &stop, |_| Ok(()))
}

/// Replays a log by agents, with `threads` threads each. `timetable` has all calls of the log, and `put_together` adds
/// to the recording the agents' comparisons with the log.
pub fn replay_by_agents(
    plan: &Plan,
    timetable: Box<dyn LogTimetable>,
    registry: &Registry,
    showing: &Showing<'_>,
    machines: &Machines,
    threads: u32,
    put_together: impl FnOnce(&mut Recording, &[(String, LogRead)]),
) -> Result<Exit> {
    let Showing { results, args, keep, in_log } = *showing;
    by_this_machine(args, machines)?;
    let stop = StopHandle::default();
    signals::stop_at_first(stop.clone())?;
    let carrier = Executor::from_flags(machines, Some(threads), args.quiet, &stop)?;
    let control = Control::default();
    let mut sinks = Sinks::from_flags(plan, results, args, &subject::run_id()?, &control, &stop, false)?;
    let observer = &mut InLogs { in_log, next: &mut sinks };
    let carried = carrier.replay(plan, timetable, registry, observer, &control, &stop);
    // The agents are free for others as soon as the load is over.
    drop(carrier);
    sinks.load_ended();
    let (mut carried, logs) = carried?;
    put_together(&mut carried.run, &logs);
    conclude(carried, sinks, results, keep, &stop, |_| Ok(()))
}

/// Adds the progress in the log to a run, and passes its seconds on to another observer.
struct InLogs<'a> {
    in_log: &'a dyn Fn(u64) -> InLog,
    next: &'a mut dyn Observer,
}

impl Observer for InLogs<'_> {
    fn watched(&mut self, phase: Phase, elapsed_ns: u64, length_ns: u64) -> Watched {
        self.next.watched(phase, elapsed_ns, length_ns)
    }

    fn in_log(&mut self, elapsed_ns: u64) -> Option<InLog> {
        Some((self.in_log)(elapsed_ns))
    }

    fn samples(&self) -> Option<Arc<dyn SampleSink>> {
        self.next.samples()
    }

    fn second(&mut self, second: &Live, so_far: &RunningTotal<'_>) -> ControlFlow<brunt_engine::AbortCause> {
        self.next.second(second, so_far)
    }
}

/// Writes the result of a run, and keeps it. `besides` is called once it is written.
fn conclude(
    carried: RunOutcome,
    mut sinks: Sinks,
    results: &Results,
    keep: &Keep,
    stop: &StopHandle,
    besides: impl FnOnce(&Summary) -> Result<()>,
) -> Result<Exit> {
    let RunOutcome { plan, run, script } = carried;
    let mut summary = machine::summary_of(plan, run);
    sinks.judged(&summary);
    summary.run.deliveries = sinks.deliveries();
    summary.run.sampled = sinks.end_rows().map(Box::new);
    let incomplete =
        summary.run.sampled.as_ref().and_then(|sampled| {
            Some(anyhow!("--samples: cannot write {}: {}", sampled.file, sampled.problem.as_ref()?))
        });
    let written = results.write(&summary);
    // A result that could not be written is all the more worth keeping.
    let kept = keep.keep(&summary);
    sinks.written(&summary, kept);
    written?;
    if let Some(incomplete) = incomplete {
        return Err(incomplete);
    }
    besides(&summary)?;
    let exit = Exit::of_run(&summary);
    // After a failure the script's `done` is not called.
    if let Some(script) = script
        && !matches!(summary.run.ending, Ending::Failed(_) | Ending::AgentsLost(_))
    {
        script.done(wrk_totals::totals(&summary), stop)?;
    }
    // Readers of the text result see the reason there.
    if !results.is_for_people() {
        explain(exit, &summary);
    }
    sinks.linger(stop);
    results.repeat_headline(&summary)?;
    Ok(exit)
}

/// Names the checks in the script's text that were never counted: no threshold and no error rate includes them.
fn never_counted(summary: &Summary) {
    let Some(scenarios) = &summary.plan.scenarios else { return };
    // Counts of a warm-up are in no figure.
    if summary.plan.warmup_ns > 0 {
        return;
    }
    let counted = |name: &str| summary.total.figures.checks.iter().any(|(_, check)| check.check == name);
    let missing: Vec<_> = crate::scripts::written_checks(scenarios)
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
        console::note(&format!(
            "note: the {what} {named}{more} {was} never counted: no iteration came that far, or the value was nil each time"
        ));
    }
}

/// Explains an exit status other than 0.
fn explain(exit: Exit, summary: &Summary) {
    match exit {
        Exit::NoAnswer => console::note(&never_answered(summary)),
        Exit::ThresholdFailed => {
            match &summary.run.ending {
                Ending::Aborted(cause) => console::note(&format!("error: aborted: {}", Reason(cause))),
                Ending::GivenUp(reason) => console::note(&shown(&format!("error: given up by the script: {reason}"))),
                _ => {}
            }
            let failed = summary.thresholds.iter().filter(|result| !result.held);
            for failed in failed.filter(|result| summary.ended_by() != Some(*result)) {
                let whose = if failed.is_implicit() { "default threshold" } else { "threshold" };
                let doubt = if failed.sure { "" } else { "; brunt's own delays can have decided it" };
                console::note(&format!("error: the {whose} {} failed: {}{doubt}", failed.condition, failed.got));
            }
            let is_doubtful = summary.thresholds.iter().any(|result| !result.held && !result.sure);
            if is_doubtful && !summary.verdict.is_trustworthy() {
                console::note(&format!("warning: {}", summary.verdict.sentence));
            }
            let is_said = summary.thresholds.iter().any(|result| !result.held);
            let is_said = is_said || matches!(summary.run.ending, Ending::GivenUp(_));
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
        // A single run is judged, or fails.
        Exit::Done | Exit::Interrupted(_) | Exit::AsWrk | Exit::NotJudged => {}
    }
}

/// The error about a target that never answered, with the most frequent failure.
fn never_answered(summary: &Summary) -> String {
    let (target, never) = (summary.plan.target.url(), brunt_report::never(summary));
    shown(&format!("error: {target} {never}{}", worst_failure(summary)))
}

/// The error of a run without a successful answer, with the most frequent failure.
fn no_answer_as_expected(summary: &Summary) -> String {
    shown(&format!("error: no answer was as expected{}", worst_failure(summary)))
}

/// `: timeout (no answer in 10s)`, the most frequent failure with its most frequent reason; empty if nothing failed.
fn worst_failure(summary: &Summary) -> String {
    let failures = &summary.total.failures;
    let Some((failure, _)) = failures.worst() else { return String::new() };
    let reason = failures.reasons(failure).first().map_or(String::new(), |(reason, _)| format!(" ({reason})"));
    format!(": {}{reason}", failure.name())
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// Writes `plan` into a file without its secrets, and notes if some were left out.
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
