//! A script of scenarios, and the flags of `brunt run`, into a plan.

use std::sync::Arc;

use anyhow::{Result, bail};
use brunt_lua::scenario::{self, Asking, LoadOptions, Loaded};
use brunt_plan::arrivals::Spread;
use brunt_plan::environment::Environment;
use brunt_plan::plan::{Load, MAX_ERROR_RATIO, PLAN_VERSION, Plan, ProtocolOptions, Stop};
use brunt_plan::scenario::{Population, Scenarios, Step, Weighted};
use brunt_plan::secret::{Template, is_secret_header};
use brunt_protocol::Registry;
use brunt_record::outcome::OkStatus;

use super::asking::Asker;
use super::{DEFAULT_TIMEOUT_NS, cores, fresh_seed, origin, tls, transport};
use crate::args::run::{Change, Run};

/// The plan that the script and the flags ask for.
///
/// # Errors
/// Which flag, file or line is wrong, and what to do about it.
pub fn of(run: &Run, registry: &Registry) -> Result<Plan> {
    let Loaded { mut scenarios, thresholds, target, names } = loaded(run, registry)?;
    let Some(target) = target else {
        bail!(
            "{}: no client has a base, so nothing says what is aimed at: give one, as in brunt.http{{ base = \
             \"http://127.0.0.1:8080\" }}, or --base-url",
            run.file.display()
        );
    };
    let stop = change(&mut scenarios, &run.change, &names);
    let (timeout_ns, connect_timeout_ns) = timeouts(run);
    let workers = if run.change.once { 1 } else { run.load.threads.unwrap_or_else(cores) };
    let plan = Plan {
        version: PLAN_VERSION,
        protocol: ProtocolOptions::default(),
        target,
        script: None,
        scenarios: Some(scenarios),
        // Users make their own.
        connections: workers.into(),
        workers,
        stop,
        load: Load::Closed {},
        warmup_ns: 0,
        timeout_ns,
        connect_timeout_ns,
        drain_ns: run.load.drain.unwrap_or(timeout_ns),
        seed: run.load.seed.unwrap_or_else(fresh_seed),
        reconnect: false,
        pipeline: 1,
        transport: transport(&run.connecting, tls(&run.tls)?)?,
        ok_status: run.load.ok_status.clone().unwrap_or_else(OkStatus::of_scenarios),
        thresholds: thresholds.into_iter().chain(run.output.thresholds.iter().cloned()).collect(),
        max_error_ratio: run.output.max_error_rate.unwrap_or(MAX_ERROR_RATIO),
        origin: origin(&run.saving),
        sandbox: run.confinement.of_named(),
        environment: Environment::default(),
    };
    plan.validate()?;
    Ok(plan)
}

/// What the script says, with the changes that the flags make of who comes.
///
/// # Errors
/// Which file or line is wrong.
pub fn loaded(run: &Run, registry: &Registry) -> Result<Loaded> {
    let Change { env, base_url, inject, only, .. } = &run.change;
    let (timeout_ns, connect_timeout_ns) = timeouts(run);
    let asker =
        Arc::new(Asker::new(transport(&run.connecting, tls(&run.tls)?)?, timeout_ns, connect_timeout_ns, registry));
    let asking = Arc::clone(&asker);
    let options = LoadOptions {
        env: env.iter().map(|(name, value)| (name.clone(), value_of(name, value))).collect(),
        base_url: base_url.clone(),
        sandbox: run.confinement.of_named(),
        injections: inject.clone(),
        only: only.clone(),
        asking: Asking::by(Arc::new(move |to, first, call| asking.ask(to, first, call))),
    };
    asker.told(scenario::load(&run.file, &options, registry))
}

/// How long calls and connecting may take, in nanoseconds.
fn timeouts(run: &Run) -> (u64, u64) {
    (run.load.timeout.unwrap_or(DEFAULT_TIMEOUT_NS), run.load.connect_timeout.unwrap_or(DEFAULT_TIMEOUT_NS))
}

/// A value of `--env`: what its name tells to be a secret is not shown or stored.
fn value_of(name: &str, value: &str) -> Template {
    if is_secret_header(name) { Template::secret(value) } else { Template::open(value) }
}

/// Changes the load as the flags say; what ends the run besides its users.
fn change(scenarios: &mut Scenarios, change: &Change, names: &[String]) -> Stop {
    if change.once {
        let names: Vec<_> = names.iter().filter(|name| comes(change, name)).cloned().collect();
        make_single(scenarios, &names);
    } else if let Some(factor) = change.scale {
        scenarios.scale(factor);
    }
    let mut stop = Stop::default();
    if let Some(duration_ns) = change.duration {
        if scenarios.seconds() > 0.0 {
            scenarios.stretch(duration_ns as f64 / 1e9);
        } else {
            stop.duration_ns = Some(duration_ns);
        }
    }
    stop
}

/// Whether `--only` lets the users of this scenario come.
fn comes(change: &Change, name: &String) -> bool {
    change.only.is_empty() || change.only.contains(name)
}

/// One user who goes through each of these scenarios once.
pub(super) fn make_single(scenarios: &mut Scenarios, names: &[String]) {
    scenarios.populations = names.iter().enumerate().map(|(place, name)| once(place, name)).collect();
    scenarios.throttle = None;
}

/// One user who goes through a scenario once, after the one before.
fn once(place: usize, name: &str) -> Population {
    Population {
        scenarios: vec![Weighted { scenario: name.to_owned(), weight: 1.0 }],
        steps: vec![Step::IterationsEach { users: 1.0, iterations: 1.0 }],
        arrivals: Spread::Uniform,
        most_alive: None,
        after: place.checked_sub(1),
    }
}
