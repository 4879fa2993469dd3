//! `brunt run FILE`: scenarios of virtual users.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, bail};
use brunt_engine::trace::{Level, Trace};
use brunt_plan::environment::Environment;
use brunt_plan::plan::{Load, MAX_ERROR_RATE, MAX_LESS_RATIO, PLAN_VERSION, Plan, ProtocolOptions, StopRule};
use brunt_plan::profile::Profile;
use brunt_plan::scenario::{ConstantLoad, Scenarios};
use brunt_plan::secret::{Template, is_secret_header};
use brunt_plan::threshold::Guard;
use brunt_protocol::Registry;
use brunt_record::outcome::OkStatus;
use brunt_report::text::scenario_list;
use brunt_script::{Asking, AssignedLocal, ClientKind, LoadOptions, Loaded};
use clap::Args;

use crate::args::bench::{Confinement, Connecting};
use crate::args::machines::Machines;
use crate::args::{Limits, Output, Program, Saving, Scripted, Tls, repeat, values};
use crate::exit::Exit;
use crate::journal::Journal;
use crate::kept::Keep;
use crate::plan;
use crate::plan::asking::Probe;
use crate::results::Results;
use crate::scripts::{self, SCRIPTS};
use crate::trace::Printer;
use crate::{console, foreign, single};

/// Put load on a target by virtual users, who follow the scenarios of a script
#[derive(Debug, Default, Args)]
pub struct Run {
    /// The script: scenarios in Lua, or a k6 script (.js). It runs with all your rights, even with --dry-run: see --sandbox
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub change: Change,
    #[command(flatten)]
    pub scripted: Scripted,
    #[command(flatten)]
    pub confinement: Confinement,
    #[command(flatten)]
    pub load: UserLoad,
    #[command(flatten)]
    pub limits: Limits,
    #[command(flatten)]
    pub connecting: Connecting,
    #[command(flatten)]
    pub tls: Tls,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub saving: Saving,
    #[command(flatten)]
    pub machines: Machines,
    #[command(flatten)]
    pub written_down: WrittenDown,
    #[command(flatten)]
    pub kept: KeptRun,
}

/// What is written down while users do what they do.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Log")]
pub struct WrittenDown {
    /// Write the script's brunt.log lines into this file
    #[arg(long, value_name = "FILE", conflicts_with = "once")]
    pub log: Option<PathBuf>,
    /// The lowest level written: debug, info, warn or error [default: info]
    #[arg(long, value_name = "LEVEL", requires = "log", value_parser = values::level)]
    pub log_level: Option<Level>,
    /// With --log: also write this share of the failed calls, with request and answer, without secrets: 1%
    #[arg(long, value_name = "SHARE", requires = "log", value_parser = values::share)]
    pub debug: Option<f64>,
}

/// What is changed without editing the file.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Change the script's load")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct Change {
    /// Multiply users, rates and shared iterations: 0.5x
    #[arg(long, value_name = "FACTOR", value_parser = values::factor)]
    pub scale: Option<f64>,
    /// Stretch or shrink the load profile to this length; an injection without a length ends after it
    #[arg(short, long, value_name = "T", value_parser = values::positive_duration)]
    pub duration: Option<u64>,
    /// Begin iterations at this constant rate a second in place of the script's load, for the duration: 50
    #[arg(short, long, value_name = "R", conflicts_with_all = ["scale", "inject", "vus", "iterations", "stages"])]
    pub rate: Option<Profile>,
    /// Inject users of a scenario by these steps instead of the script's, repeatable: buy='rate(50, 1m)'
    #[arg(long, value_name = "NAME=STEPS", value_parser = values::assignment)]
    pub inject: Vec<(String, String)>,
    /// Of a k6 script: how many users
    #[arg(short = 'u', long, value_name = "N")]
    pub vus: Option<u64>,
    /// Of a k6 script: how many iterations, which its users share
    #[arg(short = 'i', long, value_name = "N")]
    pub iterations: Option<u64>,
    /// Of a k6 script: how the number of users changes, repeatable: 30s:10
    #[arg(short = 's', long = "stage", value_name = "T:N")]
    pub stages: Vec<String>,
    /// Of a k6 script: its thresholds alone say whether the run failed, as in k6
    #[arg(long)]
    pub k6_exit: bool,
    /// Print the file's scenarios and their users, and stop
    #[arg(long)]
    pub list: bool,
    /// Go through each scenario once, with one user, and print every request, answer and check
    #[arg(long)]
    pub once: bool,
    /// With --once: print secrets (authorization, cookies) as they are
    #[arg(long, requires = "once")]
    pub show_secrets: bool,
}

/// How users are run.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Load")]
pub struct UserLoad {
    /// Worker threads, which share the users [default: cores]
    #[arg(short, long, value_name = "N", value_parser = values::threads)]
    pub threads: Option<u32>,
    /// Statuses that count as success: 2xx, 200-399, 200,404 [default: 0,100-399]
    #[arg(long, value_name = "LIST")]
    pub ok_status: Option<OkStatus>,
    /// How long the script's setup may take [default: 60s]
    #[arg(long, value_name = "T", value_parser = values::positive_duration)]
    pub setup_timeout: Option<u64>,
    /// How long the script's teardown may take [default: 60s]
    #[arg(long, value_name = "T", value_parser = values::positive_duration)]
    pub teardown_timeout: Option<u64>,
    /// Send a traceparent (W3C Trace Context), sampled, on this share of calls by HTTP, gRPC, and WebSocket as it connects: 1%.
    /// Its id stands with failed and slow calls in the report
    #[arg(long, value_name = "SHARE", value_parser = brunt_protocol::traced::share)]
    pub trace: Option<f64>,
}

/// Plans that are kept.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Plan")]
pub struct KeptRun {
    /// Write the plan of this run into a file, with the script and its files: brunt --plan FILE runs it
    #[arg(long, value_name = "FILE")]
    pub write_plan: Option<PathBuf>,
    /// Check everything, write the plan if asked to, and stop before the load
    #[arg(long)]
    pub dry_run: bool,
}

pub fn run(args: &Run, program: &Program) -> Result<Exit> {
    let registry = &program.registry;
    if args.change.list {
        return list(args, registry);
    }
    let mut plan = planned(args, registry)?;
    // A plan written into a file is meant to be changed, and is run by that file's name.
    if args.kept.write_plan.is_none() {
        plan.origin.command = repeat::of_process(program, Some(plan.seed));
    }
    let results = Results::writable(&args.output)?;
    if args.kept.dry_run || args.kept.write_plan.is_some() {
        brunt_engine::check(&plan, registry, SCRIPTS)?;
    }
    if let Some(path) = &args.kept.write_plan {
        single::write_plan(&plan, path)?;
    }
    if args.kept.dry_run {
        return Ok(Exit::Done);
    }
    let trace: Option<Arc<dyn Trace>> = if args.change.once {
        Some(Arc::new(Printer::new(&plan, args.change.show_secrets, results.is_for_people())))
    } else {
        None
    };
    let journal = journal(args, &plan)?;
    let trace = trace.or_else(|| journal.clone().map(|journal| journal as Arc<dyn Trace>));
    // A run through a script with --once only tries it, so no result is kept.
    let keep = if args.change.once { Keep::Nothing } else { Keep::from_flags(&args.saving, args.output.quiet) };
    let by = single::CarriedBy {
        machines: &args.machines,
        threads: args.load.threads,
        allow_write: &args.confinement.allow_write,
    };
    let exit = single::carry_out(&plan, registry, &results, &args.output, &keep, trace, &by);
    if let Some(journal) = journal {
        journal.flush();
    }
    exit
}

/// The file of `--log`, if the flag is given.
fn journal(args: &Run, plan: &Plan) -> Result<Option<Arc<Journal>>> {
    let WrittenDown { log, log_level, debug } = &args.written_down;
    let Some(path) = log else { return Ok(None) };
    let journal = Journal::create(path, plan, log_level.unwrap_or(Level::Info), debug.unwrap_or(0.0))?;
    Ok(Some(Arc::new(journal)))
}

/// Prints the scenarios of the file, each with its injection.
fn list(args: &Run, registry: &Registry) -> Result<Exit> {
    let loaded = loaded(args, registry)?;
    console::print(scenario_list(&loaded.names, &loaded.scenarios).as_bytes())?;
    Ok(Exit::Done)
}

/// The plan of the script and the flags.
///
/// # Errors
/// The wrong flag, file or line, and what to do about it.
pub(super) fn planned(run: &Run, registry: &Registry) -> Result<Plan> {
    let loaded = loaded(run, registry)?;
    let Loaded { mut scenarios, thresholds, target, clients, names, assigned_locals, own_rules, is_insecure, .. } =
        loaded;
    for global in loaded.unset_globals {
        console::note(&format!("note: {}:{}: {}", global.file, global.line, global.problem));
    }
    for what in loaded.notes {
        console::note(&format!("note: {}: {what}", run.file.display()));
    }
    for local in assigned_locals {
        console::note(&format!("note: {}:{}: {}", local.file, local.line, shared_local(&local)));
    }
    let Some(target) = target else {
        bail!(
            "{}: no client has a base, so nothing says what is aimed at: give one, as in brunt.http{{ base = \
             \"http://127.0.0.1:8080\" }}, or --base-url",
            run.file.display()
        );
    };
    let conditions = run.output.thresholds.iter().chain(run.output.guards.iter().map(Guard::condition));
    conditions.into_iter().try_for_each(|threshold| threshold.check_scenario(&names))?;
    let is_javascript = scripts::is_javascript(&run.file);
    let constant = constant(run, is_javascript)?;
    let stop = change(&mut scenarios, run, &names, constant.is_none() && !is_javascript);
    if let Some(load) = constant.filter(|_| !run.change.once) {
        let seconds = run.change.duration.map_or_else(|| scenarios.seconds(), |ns| ns as f64 / 1e9);
        if seconds <= 0.0 {
            bail!("the script has no duration: give one with -d");
        }
        scenarios.make_constant(load, seconds)?;
    }
    if run.load.trace.is_some() {
        check_trace(&clients)?;
    }
    scenarios.trace_ratio = run.load.trace;
    scenarios.setup_timeout_ns = run.load.setup_timeout.or(scenarios.setup_timeout_ns);
    scenarios.teardown_timeout_ns = run.load.teardown_timeout.or(scenarios.teardown_timeout_ns);
    let limits = &run.limits;
    let workers = workers(run, &scenarios)?;
    let mut transport = plan::transport(&run.connecting, plan::tls(&run.tls)?)?;
    transport.tls.insecure |= is_insecure;
    let plan = Plan {
        version: PLAN_VERSION,
        protocol: ProtocolOptions::default(),
        target,
        script: None,
        scenarios: Some(scenarios),
        // Users make their own connections.
        connections: workers.into(),
        workers,
        stop,
        load: Load::Closed {},
        warmup_ns: 0,
        timeout_ns: limits.timeout_ns(),
        connect_timeout_ns: limits.connect_timeout_ns(),
        drain_ns: limits.drain_ns(),
        seed: limits.seed.unwrap_or_else(plan::fresh_seed),
        reconnect: false,
        pipeline: 1,
        transport,
        ok_status: run.load.ok_status.clone().unwrap_or_else(OkStatus::of_scenarios),
        own_times: false,
        own: Vec::new(),
        thresholds: thresholds.into_iter().chain(run.output.thresholds.iter().cloned()).collect(),
        guards: run.output.guards.clone(),
        guard_action: run.output.guard_action.unwrap_or_default(),
        watches: run.output.watches.clone(),
        max_error_rate: run.output.most_errors()?.unwrap_or(if own_rules.errors || run.change.k6_exit {
            1.0
        } else {
            MAX_ERROR_RATE
        }),
        max_less_ratio: run.output.allow_less.unwrap_or(if own_rules.load || run.change.k6_exit {
            1.0
        } else {
            MAX_LESS_RATIO
        }),
        origin: plan::origin(&run.saving),
        sandbox: run.confinement.of_named(),
        environment: Environment::default(),
    };
    plan.validate()?;
    Ok(plan)
}

/// Notes which clients of a script cannot have the `traceparent` of `--trace`.
///
/// # Errors
/// When no client can have one.
fn check_trace(clients: &[ClientKind]) -> Result<()> {
    let without: Vec<_> = clients.iter().filter(|client| !client.traces).map(|client| client.name.as_str()).collect();
    if without.is_empty() {
        return Ok(());
    }
    let without = without.join(", ");
    if !clients.iter().any(|client| client.traces) {
        bail!(
            "--trace: calls of {without} have no header fields for a traceparent, and the script has no other clients; \
             brunt.http, brunt.grpc and brunt.ws have them: leave --trace out"
        );
    }
    console::note(&format!("note: --trace: calls of {without} have no header fields, and so no traceparent"));
    Ok(())
}

/// The warning about a local at the script's top that its scenarios assign, or a field of whose table they assign.
pub(super) fn shared_local(local: &AssignedLocal) -> String {
    let name = &local.name;
    let (assigned, what, own) = match &local.field {
        Some(field) => (format!("{name}.{field}"), "a field of a table", format!("{name} = {{ {field} = … }}")),
        None => (name.clone(), "a local", name.clone()),
    };
    format!(
        "scenarios assign '{assigned}', {what} of the script's top, which all users of a thread share; a user's own value belongs in \
         brunt.user.{own}"
    )
}

/// The number of threads for the users: the flag's, or the number of cores, within the script's limits.
///
/// # Errors
/// When the flag asks for more than a limit allows.
fn workers(run: &Run, scenarios: &Scenarios) -> Result<u32> {
    let wanted = if run.change.once { 1 } else { run.load.threads.unwrap_or_else(plan::cores) };
    let Some((most, limit)) = scenarios.most_workers().filter(|(most, _)| *most < wanted) else { return Ok(wanted) };
    if run.machines.bus.nats.is_some() {
        // Agents have their own threads, which are dealt out within the same limit.
        return Ok(most);
    }
    let why = format!("the script's {limit} = {most} holds for all threads together");
    if run.load.threads.is_some() {
        bail!("-t {wanted} is too many: {why}; give -t {most} or fewer, or raise the limit");
    }
    console::note(&format!("threads: {most}, not {wanted}: {why}"));
    Ok(most)
}

/// Loads the script, with the flags' changes of its injections.
///
/// # Errors
/// The wrong file or line.
pub(super) fn loaded(run: &Run, registry: &Registry) -> Result<Loaded> {
    if let Some(way) = foreign::scenario(&run.file) {
        bail!("{way}");
    }
    let (Change { inject, .. }, Scripted { env, base_url, only, .. }) = (&run.change, &run.scripted);
    let shortcuts = shortcuts(run)?;
    let limits = &run.limits;
    let (timeout_ns, connect_timeout_ns) = (limits.timeout_ns(), limits.connect_timeout_ns());
    let transport = plan::transport(&run.connecting, plan::tls(&run.tls)?)?;
    let asker = Arc::new(Probe::new(transport, timeout_ns, connect_timeout_ns, registry));
    let asking = Arc::clone(&asker);
    let options = LoadOptions {
        env: env.iter().chain(&shortcuts).map(|(name, value)| (name.clone(), value_of(name, value))).collect(),
        base_url: base_url.clone(),
        sandbox: run.confinement.of_named(),
        injections: inject.clone(),
        only: only.clone(),
        asking: Asking::by(Arc::new(move |to, first, call| asking.ask(to, first, call))),
    };
    asker.told(scripts::load(&run.file, &options, registry))
}

/// What the flags say of a k6 script's users, as the variables by which k6 takes it.
///
/// # Errors
/// For a script in Lua, with what to write instead.
fn shortcuts(run: &Run) -> Result<Vec<(String, String)>> {
    let Change { vus, iterations, stages, duration, .. } = &run.change;
    let is_javascript = scripts::is_javascript(&run.file);
    if !is_javascript {
        for (flag, is_given, instead) in [
            ("--vus", vus.is_some(), "users(10, 30s)"),
            ("--iterations", iterations.is_some(), "iterations_shared(10, 200)"),
            ("--stage", !stages.is_empty(), "ramp_users(0, 20, 1m)"),
        ] {
            if is_given {
                bail!(
                    "{flag} is for scripts of k6; a scenario in Lua says who its users are, and --inject says it anew: --inject 'buy={instead}'"
                );
            }
        }
        return Ok(Vec::new());
    }
    let mut variables = Vec::new();
    let mut set = |name: &str, value: Option<String>| variables.extend(value.map(|value| (name.to_owned(), value)));
    set("K6_VUS", vus.map(|vus| vus.to_string()));
    set("K6_ITERATIONS", iterations.map(|iterations| iterations.to_string()));
    set("K6_STAGES", (!stages.is_empty()).then(|| stages.join(",")));
    // A constant load has the length by itself, and keeps the script's scenarios.
    let is_constant = run.change.rate.is_some() || run.scripted.users.is_some();
    set("K6_DURATION", duration.filter(|_| !is_constant).map(|ns| format!("{ns}ns")));
    Ok(variables)
}

/// A value of `--env`. A value whose name suggests a secret is neither shown nor stored.
fn value_of(name: &str, value: &str) -> Template {
    if is_secret_header(name) { Template::secret(value) } else { Template::open(value) }
}

/// The most users of k6 at a time where a rate takes the place of the script's load: each has a JavaScript engine of its own.
const MOST_OF_K6: u64 = 5_000;

/// The load in place of the script's, by `--rate` or `--users`.
///
/// # Errors
/// When the rate is not constant.
pub(super) fn constant(run: &Run, is_javascript: bool) -> Result<Option<ConstantLoad>> {
    let users = run.scripted.users;
    let change = &run.change;
    let others = [
        ("--scale", change.scale.is_some()),
        ("--inject", !change.inject.is_empty()),
        ("--vus", change.vus.is_some()),
        ("--iterations", change.iterations.is_some()),
        ("--stage", !change.stages.is_empty()),
    ];
    if let Some((other, _)) = others.iter().find(|(_, is_given)| users.is_some() && *is_given) {
        bail!("--users takes the place of the script's load, which {other} changes: give one of the two");
    }
    let Some(rate) = &run.change.rate else { return Ok(users.map(|users| ConstantLoad::Users(users.into()))) };
    let per_s = rate.highest_rate();
    if Profile::constant(per_s).ok().as_ref() != Some(rate) {
        bail!("-r {rate}: a script takes one rate, such as -r 50; write ramps in the script");
    }
    let most_alive = users.map(u64::from).or(is_javascript.then_some(MOST_OF_K6));
    Ok(Some(ConstantLoad::Iterations { per_s, most_alive, reuse_users: is_javascript }))
}

/// Changes the load as the flags say, and its length if `may_stretch`. Returns the conditions that end the run besides its users.
fn change(scenarios: &mut Scenarios, run: &Run, names: &[String], may_stretch: bool) -> StopRule {
    let change = &run.change;
    if change.once {
        let names: Vec<_> = names.iter().filter(|name| comes(&run.scripted, name)).cloned().collect();
        scenarios.make_single(&names);
    } else if let Some(factor) = change.scale {
        scenarios.scale(factor);
    }
    let mut stop = StopRule::default();
    if let Some(duration_ns) = change.duration.filter(|_| may_stretch) {
        if scenarios.seconds() > 0.0 {
            scenarios.stretch(duration_ns as f64 / 1e9);
        } else {
            stop.duration_ns = Some(duration_ns);
        }
    }
    stop
}

/// Whether `--only` admits the users of this scenario.
fn comes(scripted: &Scripted, name: &String) -> bool {
    scripted.only.is_empty() || scripted.only.contains(name)
}
