//! `brunt [bench] URL`: a plan, a run, a result.

use std::net::IpAddr;
use std::sync::Arc;

use anyhow::Result;
use brunt_engine::trace::Trace;
use brunt_plan::plan::Plan;

use crate::args::{Bench, Program, repeat};
use crate::exit::Exit;
use crate::kept::Keep;
use crate::results::Results;
use crate::scripts::SCRIPTS;
use crate::trace::Printer;
use crate::{console, plan, single};

pub fn run(args: &Bench, program: &Program) -> Result<Exit> {
    let mut plan = plan::from_flags(args, program)?;
    // A plan written into a file may be edited, and is run by that file's name.
    if args.kept.write_plan.is_none() {
        plan.origin.command = repeat::of_process(program, args.kept.plan.is_none().then_some(plan.seed));
        if args.load.profile.is_some() {
            plan.origin.command = repeat::with_rates(program, &plan);
        }
    }
    let results = Results::writable(&args.output)?;
    if args.kept.dry_run || args.kept.write_plan.is_some() {
        brunt_engine::check(&plan, &program.registry, SCRIPTS)?;
    }
    if let Some(path) = &args.kept.write_plan {
        single::write_plan(&plan, path)?;
    }
    if args.kept.dry_run {
        return Ok(Exit::Done);
    }
    if !args.output.quiet {
        note_proxy(&plan);
    }
    let mut keep = Keep::from_flags(&args.saving, args.output.quiet);
    let mut trace: Option<Arc<dyn Trace>> = None;
    if args.trial.once {
        // A single call is only a trial.
        keep = Keep::Nothing;
        trace = Some(Arc::new(Printer::new(&plan, args.trial.show_secrets, results.is_for_people())));
    }
    let by = single::CarriedBy {
        machines: &args.machines,
        threads: args.load.threads,
        allow_write: &args.confinement.allow_write,
    };
    single::carry_out(&plan, &program.registry, &results, &args.output, &keep, trace, &by)
}

/// Notes that a proxy in the environment is not used, where other clients would use it.
fn note_proxy(plan: &Plan) {
    let host = plan.target.host.as_str();
    let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let transport = &plan.transport;
    if is_here || transport.proxy.is_some() || transport.unix_socket.is_some() || transport.connect_to.is_some() {
        return;
    }
    let names = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if let Some(name) = names.into_iter().find(is_set) {
        console::note(&format!(
            "note: {name} is set and not used: brunt connects to {host} directly, or through --proxy"
        ));
    }
}
