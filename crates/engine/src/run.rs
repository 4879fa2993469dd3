//! A run: a plan's parts put together on the drivers of a [`Machine`], and carried out by workers.
//!
//! Production and tests share all of this: only [`Machine`] decides where sockets and time come from.

mod replay;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use brunt_plan::connections::Connections;
use brunt_plan::plan::{Load, Plan};
use brunt_plan::scenario::Scenarios;
use brunt_plan::secret::shown_url;
use brunt_plan::share::{Portion, Share};
use brunt_plan::stop::StopHandle;
use brunt_record::live::Live;
use brunt_record::recording::{AbortCause, LifecycleFigures, Recording};

use crate::coordinator::Coordinator;
use crate::error::EngineError;
use crate::flood::{Flood, Quotas};
use crate::network::Workload;
use crate::network::growth::first_connections;
use crate::network::origins::{MakeClient, Origins};
use crate::scenarios::{ScenarioRuntime, WorkerUsers};
use crate::trace::{FloodTrace, Sight, Trace};
use crate::transport::route::{Route, RouteError};
use crate::transport::tls::TlsRoute;
use crate::transport::{Address, Machine};
use crate::users::VirtualUsers;
use crate::watchdog::Watchdog;
use crate::worker::{self, Report, Shared, Worker};
use crate::{Finished, Observer, RunShare, RunningTotal, ScriptLifecycle, limits};
use brunt_protocol::meter::Meter;
use brunt_protocol::scenario::Value;
use brunt_protocol::{Prepared, Registry, Scheme};
use brunt_script::{Begun, FloodPlace, FloodScript, ScriptHost, Scripted, Session};

use self::replay::replay_parts;
pub(crate) use self::replay::run_replay;

/// The inputs of a run besides its plan.
pub(crate) struct RunInputs<'a, M> {
    pub(crate) machine: &'a M,
    /// This machine's part of the run.
    pub(crate) part: RunShare,
    pub(crate) registry: &'a Registry,
    pub(crate) scripts: &'a dyn ScriptHost,
    pub(crate) stop: &'a StopHandle,
    /// Sees every action of users, or all bytes of connections.
    pub(crate) trace: Option<Arc<dyn Trace>>,
}

/// Carries `plan` out; [`crate::run`] says more.
pub(crate) fn run<M: Machine>(
    plan: &Plan,
    given: RunInputs<'_, M>,
    observer: &mut dyn Observer,
) -> Result<Finished, EngineError> {
    let mut plan = Plan { workers: given.part.portion.workers(), ..plan.clone() };
    if plan.scenarios.is_some() {
        // Users have connections of their own.
        plan.connections = plan.workers.into();
    }
    let plan = &plan;
    if let Some(gate) = &given.part.gate {
        gate.keep_time(given.machine.clock());
    }
    let finished = match &plan.scenarios {
        Some(scenarios) => run_scenarios(plan, scenarios, given, observer),
        None => run_flood(plan, given, observer),
    };
    finished.map_err(|error| error.without(&plan.secrets()))
}

/// Carries out a plan whose calls are all alike, or come from wrk's script.
fn run_flood<M: Machine>(
    plan: &Plan,
    given: RunInputs<'_, M>,
    observer: &mut dyn Observer,
) -> Result<Finished, EngineError> {
    let checked = examine(plan, given.registry, given.scripts)?;
    flood(plan, checked, given, observer)
}

/// Makes the first call of `plan` and shows its answer to `keep`.
pub(crate) fn ask<M: Machine>(
    plan: &Plan,
    given: RunInputs<'_, M>,
    keep: impl FnOnce(Arc<dyn Prepared>) -> Arc<dyn Prepared>,
) -> Result<Recording, EngineError> {
    let CheckedPlan { scheme, prepared, tls, script } = examine(plan, given.registry, given.scripts)?;
    let checked = CheckedPlan { scheme, prepared: keep(prepared), tls, script };
    Ok(flood(plan, checked, given, &mut NoObserver)?.run)
}

/// An observer that looks at nothing.
struct NoObserver;

impl Observer for NoObserver {
    fn second(&mut self, _second: &Live, _so_far: &RunningTotal<'_>) -> ControlFlow<AbortCause> {
        ControlFlow::Continue(())
    }
}

fn flood<M: Machine>(
    plan: &Plan,
    CheckedPlan { scheme, mut prepared, tls, script }: CheckedPlan,
    given: RunInputs<'_, M>,
    observer: &mut dyn Observer,
) -> Result<Finished, EngineError> {
    let clock = given.machine.clock();
    let trace = given.trace.filter(|trace| trace.sight() == Sight::Everything);
    let seen = trace.map(|trace| Arc::new(FloodTrace::new(Arc::clone(&prepared), trace, clock)));
    if let Some(seen) = &seen {
        prepared = Arc::clone(seen) as Arc<dyn Prepared>;
    }
    let targets = prepared.targets();
    let plan = &limits::make_room(plan, given.part.portion, targets.len().max(1) as u32)?;
    let mut routes = Vec::new();
    for target in &targets {
        let there = Plan { target: target.clone(), ..plan.clone() };
        let (_, scheme) = given.registry.named(&target.scheme)?;
        let tls = scheme
            .tls
            .then(|| TlsRoute::prepare(&there, prepared.alpn(), prepared.is_safe()))
            .transpose()
            .map_err(RouteError::Tls)?;
        routes.push(route_to(&there, scheme, tls, given.machine)?);
    }
    if routes.is_empty() {
        routes.push(route_to(plan, scheme, tls, given.machine)?);
    }
    // Aborting this run must not stop others.
    let shared = Shared::new(Arc::new(plan.clone()), &given.stop.of_run(), given.part.gate.clone());
    let shared = Arc::new(shared.changed_by(&given.part.control));
    let (mut session, scripted) = match begin_script(script.as_deref(), &shared, routes.first(), scheme)? {
        Some(Begun { session, workers }) => (Some(session), workers),
        None => (None, Vec::new()),
    };
    let mut watchdog = Watchdog::new(scripted.iter().map(|worker| worker.heart.clone()));
    let portion = given.part.portion;
    let own_calls = |share| plan.own_times.then(|| prepared.own_calls(share)).flatten();
    let own: Vec<_> = portion.shares().map_while(own_calls).collect();
    let mut run = match routes.first().filter(|_| scripted.is_empty() && !own.is_empty()) {
        Some(route) => {
            let parts = replay_parts(&shared, portion, &prepared, route, own, false);
            carry_out(given.machine, &shared, parts, &mut watchdog, observer)?
        }
        None if matches!(plan.load, Load::Replay(_)) => return Err(EngineError::NoLog),
        None => {
            let quotas = Quotas::from_plan(plan, portion, &given.part.supply);
            let parts = flood_parts(&shared, portion, &quotas, &prepared, &routes, scripted);
            carry_out(given.machine, &shared, parts, &mut watchdog, observer)?
        }
    };
    run.status_names = prepared.status_names();
    run.timelines = prepared.timelines();
    run.redirected_to = prepared.redirected_to().map(|to| plan.secrets().hide(&absolute(plan, &to)).into_owned());
    if let Some(seen) = seen {
        seen.finish(&run);
    }
    if let Some(session) = &mut session {
        (0..plan.workers).filter(|worker| watchdog.has_given_up(*worker)).for_each(|worker| session.give_up(worker));
    }
    Ok(Finished { plan: plan.clone(), run, script: session })
}

/// The way to the plan's target.
fn route_to<M: Machine>(plan: &Plan, scheme: Scheme, tls: Option<TlsRoute>, machine: &M) -> Result<Route, RouteError> {
    Route::find(plan, scheme.default_port, tls, &machine.resolve())
}

/// The location that a redirect leads to, without parts that may be secret: a path is relative to the target (RFC 3986
/// §4.2).
fn absolute(plan: &Plan, to: &str) -> String {
    let target = &plan.target;
    let whole = match to {
        _ if to.starts_with("//") => format!("{}:{to}", target.scheme),
        _ if to.starts_with('/') => format!("{}://{}{to}", target.scheme, target.authority()),
        _ => to.to_owned(),
    };
    shown_url(&whole).into_owned()
}

/// The inputs of a worker.
struct WorkerPart<W> {
    load: W,
    origins: Origins,
    /// The connections that it will have, if that is known.
    connections: usize,
    /// What its protocol measures by itself.
    meter: Option<Box<dyn Meter>>,
}

/// The parts of a flood's workers.
fn flood_parts(
    shared: &Shared,
    portion: Portion,
    quotas: &Quotas,
    prepared: &Arc<dyn Prepared>,
    routes: &[Route],
    scripted: Vec<Scripted>,
) -> Vec<WorkerPart<Flood>> {
    let plan = &shared.plan;
    let horizon = shared.line.horizon();
    let first = u64::from(match (plan.connections, &plan.load) {
        (Connections::UpTo(_), Load::Open { profile, .. }) => first_connections(plan, profile),
        (connections, _) => connections.most(),
    });
    let mut scripted = scripted.into_iter();
    let part = |share: Share| {
        let theirs = scripted.next();
        let mut routes = routes.to_vec();
        if let (Some(address), [route]) = (theirs.as_ref().and_then(|scripted| scripted.address), routes.as_mut_slice())
        {
            route.lead_to(address);
        }
        let user = theirs.map_or_else(|| prepared.user(), |scripted| scripted.user);
        // A rate that grows its connections begins with one, however small the share.
        let connections = share.part_of(first).max(u64::from(plan.connections.is_growing())) as usize;
        let (protocol, keep) = (Arc::clone(prepared), user.hooks().answers);
        let several = routes.len() > 1;
        let make: Arc<MakeClient> = Arc::new(move |nth| protocol.client_of(share.number(nth).unwrap_or(nth), keep));
        let origins = Origins::of_flood(routes, &make, plan.pipeline as usize);
        let load =
            Flood::new(Arc::clone(plan), share, connections, user, quotas.clone(), several).within(horizon.clone());
        let load = load.changed_by(&shared.control);
        WorkerPart { load, origins, connections, meter: prepared.meter() }
    };
    portion.shares().map(part).collect()
}

/// Carries out a plan whose calls are made by virtual users.
fn run_scenarios<M: Machine>(
    plan: &Plan,
    scenarios: &Scenarios,
    mut given: RunInputs<'_, M>,
    observer: &mut dyn Observer,
) -> Result<Finished, EngineError> {
    plan.validate()?;
    let mut runtime = ScenarioRuntime::prepare(plan, scenarios, given.registry, given.scripts, given.part.portion)?;
    if let Some(trace) = given.trace.take() {
        runtime.show(trace);
    }
    let surrounded_here = match std::mem::replace(&mut given.part.script_lifecycle, ScriptLifecycle::Here) {
        ScriptLifecycle::Here => {
            runtime.setup(given.machine, given.stop)?;
            true
        }
        ScriptLifecycle::Elsewhere(given) => {
            runtime.give(given);
            false
        }
    };
    let carried = with_users(plan, &runtime, &given, observer);
    if !surrounded_here {
        return carried.map(|run| Finished { plan: plan.clone(), run, script: None });
    }
    // Whatever happened to the load, the teardown removes what setup has made.
    let torn_down = runtime.teardown(given.machine, given.stop);
    let mut run = carried?;
    match torn_down {
        Ok(left) => run.torn_down(left),
        // A failing teardown does not discard the measurements.
        Err(error) => run.fail(error.without(&plan.secrets()).to_string()),
    }
    Ok(Finished { plan: plan.clone(), run, script: None })
}

/// Lets users make their calls, between setup and teardown.
fn with_users<M: Machine>(
    plan: &Plan,
    runtime: &ScenarioRuntime<'_>,
    given: &RunInputs<'_, M>,
    observer: &mut dyn Observer,
) -> Result<Recording, EngineError> {
    // Aborting this run must not stop others.
    let shared = Shared::new(Arc::new(plan.clone()), &given.stop.of_run(), given.part.gate.clone());
    let shared = Arc::new(shared.changed_by(&given.part.control));
    let cast = runtime.cast(given.machine, &given.part.counters, &shared)?;
    let mut watchdog = Watchdog::new(cast.iter().map(|cast| cast.users.heart()))
        .knowing(cast.first().map(|cast| cast.users.functions()).unwrap_or_default());
    let parts: Vec<WorkerPart<VirtualUsers>> = cast
        .into_iter()
        .map(|WorkerUsers { users, origins }| WorkerPart { load: users, origins, connections: 0, meter: None })
        .collect();
    let left = runtime.left();
    if left.stopped.is_some() {
        shared.end();
    }
    let mut run = carry_out_after(given.machine, &shared, parts, left, &mut watchdog, observer)?;
    let mut figures = run.measured.figures.clone();
    figures.merge(&run.drained.figures);
    run.status_names = figures.status_names().shown();
    Ok(run)
}

/// Runs the setup of the plan's script, if it has one. Returns the value that it returns, and what it leaves.
pub(crate) fn setup<M: Machine>(
    plan: &Plan,
    machine: &M,
    registry: &Registry,
    scripts: &dyn ScriptHost,
    stop: &StopHandle,
) -> Result<(Value<'static>, LifecycleFigures), EngineError> {
    let Some(scenarios) = &plan.scenarios else { return Ok((Value::Nil, LifecycleFigures::default())) };
    let set_up = || {
        let mut runtime = ScenarioRuntime::prepare(plan, scenarios, registry, scripts, Portion::whole(1))?;
        runtime.setup(machine, stop)?;
        Ok((runtime.given().clone(), runtime.left().clone()))
    };
    set_up().map_err(|error: EngineError| error.without(&plan.secrets()))
}

/// Runs the teardown of the plan's script, if it has one, and returns what it leaves; `given` is the value that its setup
/// returned.
pub(crate) fn teardown<M: Machine>(
    plan: &Plan,
    given: Value<'static>,
    machine: &M,
    registry: &Registry,
    scripts: &dyn ScriptHost,
    stop: &StopHandle,
) -> Result<LifecycleFigures, EngineError> {
    let Some(scenarios) = &plan.scenarios else { return Ok(LifecycleFigures::default()) };
    let tear_down = || {
        let mut runtime = ScenarioRuntime::prepare(plan, scenarios, registry, scripts, Portion::whole(1))?;
        runtime.give(given);
        runtime.teardown(machine, stop)
    };
    tear_down().map_err(|error| error.without(&plan.secrets()))
}

/// Runs the part of the plan's script that comes before the load, if there is a script.
fn begin_script(
    script: Option<&dyn FloodScript>,
    shared: &Shared,
    route: Option<&Route>,
    scheme: Scheme,
) -> Result<Option<Begun>, EngineError> {
    let plan = &shared.plan;
    let Some(script) = script else { return Ok(None) };
    let tcp = route.into_iter().flat_map(|route| &route.addresses).filter_map(Address::of_network);
    let target = || (plan.target.host.clone(), plan.target.port.unwrap_or(scheme.default_port));
    let place = FloodPlace {
        addresses: tcp.collect(),
        host: plan.transport.connect_to.clone().unwrap_or_else(target),
        workers: plan.workers,
    };
    Ok(Some(script.begin(&place, &shared.stop)?))
}

/// The plan's script without any thread of its own.
pub(crate) fn load_report_script(
    plan: &Plan,
    registry: &Registry,
    scripts: &dyn ScriptHost,
    stop: &StopHandle,
) -> Result<Option<Box<dyn Session>>, EngineError> {
    if plan.script.is_none() {
        return Ok(None);
    }
    let CheckedPlan { scheme, script, .. } = examine(plan, registry, scripts)?;
    // A run that ended early still gets the script's report.
    let never = StopHandle::default();
    let stop = if stop.is_stopped() { &never } else { stop };
    let shared = Shared::new(Arc::new(Plan { workers: 0, ..plan.clone() }), stop, None);
    Ok(begin_script(script.as_deref(), &shared, None, scheme)?.map(|begun| begun.session))
}

/// Checks everything about `plan` that can be checked without touching the network.
///
/// # Errors
/// When something in it is wrong.
pub(crate) fn check(plan: &Plan, registry: &Registry, scripts: &dyn ScriptHost) -> Result<(), EngineError> {
    if let Some(scenarios) = &plan.scenarios {
        plan.validate()?;
        let runtime = ScenarioRuntime::prepare(plan, scenarios, registry, scripts, Portion::whole(1));
        return runtime.map(drop).map_err(|error| error.without(&plan.secrets()));
    }
    examine(plan, registry, scripts).map(drop).map_err(|error| error.without(&plan.secrets()))
}

/// A plan whose parts are valid, with the values made of them.
struct CheckedPlan {
    scheme: Scheme,
    prepared: Arc<dyn Prepared>,
    tls: Option<TlsRoute>,
    script: Option<Box<dyn FloodScript>>,
}

fn examine(plan: &Plan, registry: &Registry, scripts: &dyn ScriptHost) -> Result<CheckedPlan, EngineError> {
    plan.validate()?;
    let (protocol, scheme) = registry.named(&plan.target.scheme)?;
    let transport = &plan.transport;
    let has_port = plan.target.port.is_some() || transport.connect_to.is_some() || transport.unix_socket.is_some();
    if scheme.default_port == 0 && !has_port {
        return Err(EngineError::NoPort { scheme: scheme.name });
    }
    let prepared = protocol.prepare(plan)?;
    let script = scripts.flood(plan, prepared.as_ref())?;
    if plan.script.is_some() && script.is_none() {
        return Err(EngineError::Unscriptable { scheme: scheme.name });
    }
    let tls = scheme
        .tls
        .then(|| TlsRoute::prepare(plan, prepared.alpn(), prepared.is_safe()))
        .transpose()
        .map_err(RouteError::Tls)?;
    Ok(CheckedPlan { scheme, prepared, tls, script })
}

/// Starts a worker for each part and gathers their reports. Measurements are kept whatever happens to a worker.
fn carry_out<M: Machine, W: Workload<M::Driver> + Send + 'static>(
    machine: &M,
    shared: &Arc<Shared>,
    parts: Vec<WorkerPart<W>>,
    watchdog: &mut Watchdog,
    observer: &mut dyn Observer,
) -> Result<Recording, EngineError> {
    carry_out_after(machine, shared, parts, &LifecycleFigures::default(), watchdog, observer)
}

/// The same after a setup that has left this.
fn carry_out_after<M: Machine, W: Workload<M::Driver> + Send + 'static>(
    machine: &M,
    shared: &Arc<Shared>,
    parts: Vec<WorkerPart<W>>,
    left: &LifecycleFigures,
    watchdog: &mut Watchdog,
    observer: &mut dyn Observer,
) -> Result<Recording, EngineError> {
    shared.control.ready(&shared.plan, machine.clock());
    let (clock_ns, unix_now) =
        (machine.clock()().ns(), SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
    let started_unix_ms = unix_now.as_millis() as u64;
    let samples = observer.samples();
    if let Some(samples) = &samples {
        samples.begin(clock_ns, unix_now.as_nanos() as u64);
    }
    let (sender, reports) = channel();
    let mut workers = Vec::new();
    for (number, WorkerPart { load, origins, connections, meter }) in (0..).zip(parts) {
        let driver = worker::make_driver(machine, connections)?;
        let worker = Worker::new(Arc::clone(shared), driver, origins, number, load, sender.clone());
        workers.push((number, worker.sampled_by(samples.as_ref()).metered_by(meter)));
    }
    drop(sender);
    let mut threads = Vec::new();
    for (number, worker) in workers {
        let last_word = PanicReport { number, reports: worker.reports(), stop: shared.stop.clone() };
        let work = move || {
            let _last_word = last_word;
            // An error of the driver is in the worker's last report.
            let _ = worker.run();
        };
        match thread::Builder::new().name(format!("worker-{number}")).spawn(work) {
            Ok(thread) => threads.push((number, thread)),
            Err(source) => {
                // Workers that run already wait for the others; they see this and end.
                shared.stop.stop();
                return Err(EngineError::System { what: "start a thread", source });
            }
        }
    }
    let clock = machine.clock();
    let run = Coordinator::new(&shared.plan, shared.plan.workers, observer, watchdog, &shared.stop, clock)
        .changed_by(&shared.control)
        .after_setup(left)
        .gather(&reports, started_unix_ms);
    for (number, thread) in threads {
        // A worker that was given up never ends; the others have reported how they ended.
        if !watchdog.has_given_up(number) {
            let _ = thread.join();
        }
    }
    Ok(run)
}

/// Reports the end of a worker that panics, so that the run ends and its measurements are kept.
struct PanicReport {
    number: u32,
    reports: Sender<Report>,
    stop: StopHandle,
}

impl Drop for PanicReport {
    fn drop(&mut self) {
        if thread::panicking() {
            self.stop.stop();
            let reason = format!("worker {} panicked; this is a defect of brunt, please report it", self.number);
            let finished = Report::Finished {
                worker: self.number,
                measured_ns: 0,
                interrupted: false,
                failed: Some(reason),
                stopped: None,
                unreached: None,
            };
            // The coordinator may be gone.
            let _ = self.reports.send(finished);
        }
    }
}
