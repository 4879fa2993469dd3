//! A run that replays a log.

use std::sync::Arc;

use brunt_plan::plan::{Load, Plan};
use brunt_plan::share::{Portion, Share};
use brunt_protocol::Prepared;
use brunt_protocol::replay::WorkerReplay;

use super::{CheckedPlan, RunInputs, WorkerPart, absolute, carry_out, examine, route_to};
use crate::error::EngineError;
use crate::limits;
use crate::network::origins::{MakeClient, Origins};
use crate::replay::Replaying;
use crate::transport::Machine;
use crate::transport::route::Route;
use crate::watchdog::Watchdog;
use crate::worker::Shared;
use crate::{Finished, Observer};

/// Carries out a plan with the calls of `logs`, one for each worker.
pub(crate) fn run_replay<M: Machine>(
    plan: &Plan,
    logs: Vec<Box<dyn WorkerReplay>>,
    given: &RunInputs<'_, M>,
    observer: &mut dyn Observer,
) -> Result<Finished, EngineError> {
    let portion = given.part.portion;
    let plan = Plan { workers: portion.workers(), ..plan.clone() };
    if let Some(gate) = &given.part.gate {
        gate.keep_time(given.machine.clock());
    }
    let carried = replay(&plan, logs, given, observer);
    carried.map_err(|error| error.without(&plan.secrets()))
}

fn replay<M: Machine>(
    plan: &Plan,
    logs: Vec<Box<dyn WorkerReplay>>,
    given: &RunInputs<'_, M>,
    observer: &mut dyn Observer,
) -> Result<Finished, EngineError> {
    let CheckedPlan { scheme, prepared, tls, .. } = examine(plan, given.registry, given.scripts)?;
    let portion = given.part.portion;
    let plan = &limits::make_room(plan, portion, 1)?;
    let route = route_to(plan, scheme, tls, given.machine)?;
    let shared = Arc::new(Shared::new(Arc::new(plan.clone()), &given.stop.of_run(), given.part.gate.clone()));
    let thinks = matches!(&plan.load, Load::Replay(replay) if replay.think);
    let parts = replay_parts(&shared, portion, &prepared, &route, logs, thinks);
    let mut run = carry_out(given.machine, &shared, parts, &mut Watchdog::default(), observer)?;
    run.status_names = prepared.status_names();
    run.redirected_to = prepared.redirected_to().map(|to| plan.secrets().hide(&absolute(plan, &to)).into_owned());
    Ok(Finished { plan: plan.clone(), run, script: None })
}

/// The parts of workers that make the calls of `logs`, one for each.
pub(super) fn replay_parts(
    shared: &Shared,
    portion: Portion,
    prepared: &Arc<dyn Prepared>,
    route: &Route,
    logs: Vec<Box<dyn WorkerReplay>>,
    thinks: bool,
) -> Vec<WorkerPart<Replaying>> {
    let part = |(share, log): (Share, Box<dyn WorkerReplay>)| {
        let protocol = Arc::clone(prepared);
        // Answers are compared with the log, or go into the next call.
        let make: Arc<MakeClient> = Arc::new(move |_| protocol.client(true));
        let origins = Origins::of_flood([route.clone()], &make, 1);
        WorkerPart {
            load: Replaying::new(log, &shared.plan, share, thinks).within(shared.line.horizon()),
            origins,
            connections: 0,
            meter: prepared.meter(),
        }
    };
    portion.shares().zip(logs).map(part).collect()
}
