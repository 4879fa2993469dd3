//! `brunt run FILE`: scenarios of virtual users.

use std::sync::Arc;

use anyhow::Result;
use brunt_engine::trace::{Level, Trace};
use brunt_plan::plan::Plan;
use brunt_protocol::Registry;
use brunt_report::text::scenario_list;

use super::bench;
use crate::args::repeat;
use crate::args::run::{Run, WrittenDown};
use crate::console;
use crate::exit::Exit;
use crate::journal::Journal;
use crate::kept::Keep;
use crate::plan;
use crate::results::Results;
use crate::trace::Printer;

pub fn run(args: &Run, registry: &Registry) -> Result<Exit> {
    if args.change.list {
        return list(args, registry);
    }
    let mut plan = plan::scenario::of(args, registry)?;
    // A plan that is written into a file is there to be changed, and run by that file's name.
    if args.kept.write_plan.is_none() {
        plan.origin.command = repeat::of_process(registry, Some(plan.seed));
    }
    let results = Results::of(&args.output)?;
    if args.kept.dry_run || args.kept.write_plan.is_some() {
        brunt_engine::check(&plan, registry)?;
    }
    if let Some(path) = &args.kept.write_plan {
        bench::write_plan(&plan, path)?;
    }
    if args.kept.dry_run {
        return Ok(Exit::Done);
    }
    let trace: Option<Arc<dyn Trace>> = if args.change.once {
        Some(Arc::new(Printer::of(&plan, args.change.show_secrets, results.is_for_people())?))
    } else {
        None
    };
    let journal = journal(args, &plan)?;
    let trace = trace.or_else(|| journal.clone().map(|journal| journal as Arc<dyn Trace>));
    // To go through a script once is to try it.
    let keep = if args.change.once { Keep::Nothing } else { Keep::of(&args.saving, args.output.quiet) };
    let by = bench::CarriedBy { machines: &args.machines, threads: args.load.threads };
    let exit = bench::carry_out(&plan, registry, &results, &args.output, &keep, trace, &by);
    if let Some(journal) = journal {
        journal.flush();
    }
    exit
}

/// The file of `--log`, if there is to be one.
fn journal(args: &Run, plan: &Plan) -> Result<Option<Arc<Journal>>> {
    let WrittenDown { log, log_level, debug } = &args.written_down;
    let Some(path) = log else { return Ok(None) };
    let journal = Journal::create(path, plan, log_level.unwrap_or(Level::Info), debug.unwrap_or(0.0))?;
    Ok(Some(Arc::new(journal)))
}

/// Prints the scenarios of the file, each with who comes to it.
fn list(args: &Run, registry: &Registry) -> Result<Exit> {
    let loaded = plan::scenario::loaded(args, registry)?;
    console::print(scenario_list(&loaded.names, &loaded.scenarios).as_bytes())?;
    Ok(Exit::Done)
}
