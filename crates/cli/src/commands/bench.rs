//! `brunt [bench] URL`: a plan, a run, a result.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use brunt_engine::trace::{Sight, Trace};
use brunt_engine::{Finished, StopHandle};
use brunt_judge::abort::AbortWatch;
use brunt_judge::summary::Summary;
use brunt_plan::plan::Plan;
use brunt_plan::secret::REDACTED;
use brunt_protocol::Registry;
use brunt_record::catalogue::Counter;
use brunt_record::recording::Ending;

use crate::args::machines::Machines;
use crate::args::{Bench, Output, repeat};
use crate::carrier::{Carried, Carrier};
use crate::exit::Exit;
use crate::kept::Keep;
use crate::results::Results;
use crate::trace::Printer;
use crate::watch::Watch;
use crate::{console, files, plan, signals, wrk_totals};

pub fn run(args: &Bench, registry: &Registry) -> Result<Exit> {
    let mut plan = plan::of(args, registry)?;
    // A plan that is written into a file is there to be changed, and run by that file's name.
    if args.kept.write_plan.is_none() {
        plan.origin.command = repeat::of_process(registry, args.kept.plan.is_none().then_some(plan.seed));
    }
    let results = Results::of(&args.output)?;
    if args.kept.dry_run || args.kept.write_plan.is_some() {
        brunt_engine::check(&plan, registry)?;
    }
    if let Some(path) = &args.kept.write_plan {
        write_plan(&plan, path)?;
    }
    if args.kept.dry_run {
        return Ok(Exit::Done);
    }
    if !args.output.quiet {
        note_proxy(&plan);
    }
    let mut keep = Keep::of(&args.saving, args.output.quiet);
    let mut trace: Option<Arc<dyn Trace>> = None;
    if args.trial.once {
        // To make one call is to try it.
        keep = Keep::Nothing;
        trace = Some(Arc::new(Printer::of(&plan, args.trial.show_secrets, results.is_for_people())?));
    }
    let by = CarriedBy { machines: &args.machines, threads: args.load.threads };
    carry_out(&plan, registry, &results, &args.output, &keep, trace, &by)
}

/// Who carries a run out.
pub struct CarriedBy<'a> {
    /// As the flags say.
    pub machines: &'a Machines,
    /// Workers of each machine, if their number was given.
    pub threads: Option<u32>,
}

/// Says that a proxy that the environment names is not used, where other clients would use it.
fn note_proxy(plan: &Plan) {
    let host = plan.target.host.as_str();
    let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    if is_here || plan.transport.unix_socket.is_some() || plan.transport.connect_to.is_some() {
        return;
    }
    let names = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if let Some(name) = names.into_iter().find(is_set) {
        console::note(&format!("note: {name} is set and not used: brunt connects to {host} directly"));
    }
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
    let carrier = Carrier::of(by.machines, by.threads, args.quiet, &stop)?;
    let mut watch = Watch::of(plan, results, args, &stop)?;
    let traced = trace.as_ref().is_some_and(|trace| trace.sight() == Sight::Everything);
    let carried = match trace {
        None => carrier.run(plan, registry, &mut watch, &stop),
        Some(trace) => brunt_engine::run_traced(plan, registry, &mut AbortWatch::new(plan, &mut watch), &stop, trace)
            .map(|Finished { plan, run, script }| Carried { plan, run, script })
            .map_err(Into::into),
    };
    // They are free for others as soon as the load is over.
    drop(carrier);
    watch.clear();
    if traced && results.is_for_people() {
        // The result stands apart from what it is of.
        drop(console::print(b"\n"));
    }
    let Carried { plan, run, script } = carried?;
    let summary = Summary::of(plan, run);
    let written = results.write(&summary);
    // A result that could not be written is all the more worth keeping.
    let kept = keep.keep(&summary);
    watch.finish(&summary, kept);
    written?;
    let exit = Exit::of_run(&summary);
    // A script that failed has nothing more to say.
    if let Some(script) = script
        && !matches!(exit, Exit::Wrong | Exit::AgentsLost)
    {
        script.done(wrk_totals::totals(&summary), &stop)?;
    }
    // Who reads the result sees it there.
    if !results.is_for_people() {
        explain(exit, &summary);
    }
    watch.linger(&stop);
    Ok(exit)
}

/// Says why the exit status is not 0.
fn explain(exit: Exit, summary: &Summary) {
    match exit {
        Exit::NoAnswer => console::note(&never_answered(summary)),
        Exit::ThresholdFailed => {
            if let Ending::Aborted(reason) = &summary.run.ending {
                console::note(&format!("error: aborted: {reason}"));
            }
            for failed in summary.thresholds.iter().filter(|result| !result.held) {
                let whose = if failed.implicit { "default threshold" } else { "threshold" };
                console::note(&format!("error: the {whose} {} failed: {}", failed.threshold, failed.got));
            }
        }
        Exit::Wrong | Exit::AgentsLost => {
            if let Ending::Failed(reason) | Ending::AgentsLost(reason) = &summary.run.ending {
                console::note(&format!("error: {reason}"));
            }
        }
        Exit::Done | Exit::Interrupted(_) | Exit::AsWrk => {}
    }
}

/// The most frequent failure tells why.
fn never_answered(summary: &Summary) -> String {
    let failures = &summary.total.failures;
    let worst = failures.counted().max_by_key(|(_, count)| *count).map(|(failure, _)| {
        let reason = failures.reasons(failure).first().map_or(String::new(), |(reason, _)| format!(" ({reason})"));
        format!(": {}{reason}", failure.name())
    });
    let text = format!("error: {} never answered{}", summary.plan.target.url(), worst.unwrap_or_default());
    text.chars().filter(|c| !c.is_control()).collect()
}

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
