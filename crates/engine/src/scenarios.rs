//! The runtime of a run's scenarios: the script's states, its setup and teardown, the ways to the hosts that it calls.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use brunt_plan::plan::{Load, Plan, StopRule};
use brunt_plan::scenario::{ASIDE_TIMEOUT_NS, Scenarios};
use brunt_plan::setting::Setting;
use brunt_plan::share::{Portion, Share};
use brunt_plan::stop::StopHandle;
use brunt_plan::target::Target;
use brunt_record::outcome::Failure;
use brunt_record::recording::LifecycleFigures;

use crate::error::EngineError;
use crate::limits;
use crate::network::origins::{Find, Origins};
use crate::shared_counters::SharedCounters;
use crate::trace::Trace;
use crate::transport::route::{Route, RouteError};
use crate::transport::tls::TlsRoute;
use crate::transport::{Machine, Resolve};
use crate::users::VirtualUsers;
use crate::users::among_workers::AmongWorkers;
use crate::worker::{self, Report, Shared, Worker};
use brunt_protocol::Registry;
use brunt_protocol::scenario::Value;
use brunt_script::{Library, Program, ScriptClient, ScriptError, ScriptHost};

/// How often to look whether setup or teardown should be left behind.
const LOOK: Duration = Duration::from_millis(20);
/// How long setup may still take to return once the user wants the run to end.
const RETURN: Duration = Duration::from_secs(10);
/// How long a script that was cut off may take to return.
const PATIENCE: Duration = Duration::from_secs(1);

/// A worker's users, and the origins that they are known to call.
pub(crate) struct WorkerUsers {
    pub(crate) users: VirtualUsers,
    pub(crate) origins: Origins,
}

/// The runtime of a run's scenarios.
pub(crate) struct ScenarioRuntime<'a> {
    plan: &'a Plan,
    scenarios: &'a Scenarios,
    script: Box<dyn Program>,
    /// Whether a feeder of the script gives each row out only once.
    given: Value<'static>,
    /// What setup has left.
    left: LifecycleFigures,
    /// Sees every action of users, those of setup and teardown included.
    trace: Option<Arc<dyn Trace>>,
    portion: Portion,
}

impl<'a> ScenarioRuntime<'a> {
    /// Checks the script of `plan` by running it once.
    ///
    /// # Errors
    /// With file and line of what is wrong.
    pub(crate) fn prepare(
        plan: &'a Plan,
        scenarios: &'a Scenarios,
        registry: &Registry,
        scripts: &dyn ScriptHost,
        portion: Portion,
    ) -> Result<Self, EngineError> {
        // Misspellings are found before anything is sent, as far as made-up answers lead.
        let all = scenarios.populations.iter().flat_map(|population| &population.scenarios);
        let names: Vec<&str> = all.map(|one| one.scenario.as_str()).collect();
        scripts.program(plan, scenarios, registry, portion)?.rehearse(&names)?;
        let script = scripts.program(plan, scenarios, registry, portion)?;
        Ok(Self { plan, scenarios, script, given: Value::Nil, left: LifecycleFigures::default(), trace: None, portion })
    }

    /// Shows `trace` everything that users do from now on.
    pub(crate) fn show(&mut self, trace: Arc<dyn Trace>) {
        self.trace = Some(trace);
    }

    /// The value that setup has returned.
    pub(crate) fn given(&self) -> &Value<'static> {
        &self.given
    }

    /// What setup has left.
    pub(crate) fn left(&self) -> &LifecycleFigures {
        &self.left
    }

    /// Takes over the value that setup has returned elsewhere.
    pub(crate) fn give(&mut self, given: Value<'static>) {
        self.given = given;
    }

    /// Runs the script's setup, if it has one. A run that is stopped meanwhile waits a while for it to return, so that
    /// what it has made can be torn down.
    ///
    /// # Errors
    /// When it fails, or has not returned although the run is to end: nothing is torn down then.
    pub(crate) fn setup<M: Machine>(&mut self, machine: &M, stop: &StopHandle) -> Result<(), EngineError> {
        if let Some((library, left)) = self.run("setup", machine, stop, RETURN)? {
            self.given = library.given()?;
            self.left = left;
        }
        Ok(())
    }

    /// Runs the script's teardown, if it has one. Returns what it leaves. A stopped run is torn down all the same, unless
    /// it is to leave.
    ///
    /// # Errors
    /// When it fails, or has not returned although the run is to leave.
    pub(crate) fn teardown<M: Machine>(&self, machine: &M, stop: &StopHandle) -> Result<LifecycleFigures, EngineError> {
        let done = self.run("teardown", machine, stop, Duration::MAX)?;
        Ok(done.map(|(_, left)| left).unwrap_or_default())
    }

    /// The users of each worker of a run.
    ///
    /// # Errors
    /// When the script is wrong, or a host that its clients call has no address.
    pub(crate) fn cast(
        &self,
        machine: &impl Machine,
        counters: &SharedCounters,
        shared: &Shared,
    ) -> Result<Vec<WorkerUsers>, EngineError> {
        limits::raise_descriptors_fully();
        let among = AmongWorkers::new(self.scenarios, self.portion, counters);
        let mut routes = Vec::new();
        let find = finder(self.plan, machine.resolve());
        self.portion
            .shares()
            .map(|share| {
                let library = self.script.begin(share.index() as u32)?;
                library.give(&self.given)?;
                let users = VirtualUsers::new(library, self.plan, self.scenarios, &among, share)?;
                let mut users = users.within(shared.line.horizon()).changed_by(&shared.control);
                self.trace.iter().for_each(|trace| users.show(trace));
                let origins = origins(&find, users.clients(), share, &mut routes)?;
                Ok(WorkerUsers { users, origins })
            })
            .collect()
    }

    /// Lets one user go through setup or teardown. Returns the state in which it did and what it leaves, if the script has
    /// such a function. The user is cut off when its time is over, `patience` after the run was stopped, and at once where the
    /// run is to leave.
    fn run<M: Machine>(
        &self,
        which: &'static str,
        machine: &M,
        stop: &StopHandle,
        patience: Duration,
    ) -> Result<Option<AfterReturn>, EngineError> {
        // Random numbers that no worker's users draw as well.
        let library = self.script.begin(if which == "setup" { u32::MAX } else { u32::MAX - 1 })?;
        let Some(place) = library.once(which)? else { return Ok(None) };
        let named = library.written_at(place).map_or_else(|| which.to_owned(), |at| format!("{which} ({at})"));
        let (limit_ns, setting) = match which {
            "setup" => (self.scenarios.setup_timeout_ns, Setting::SetupTimeout),
            _ => (self.scenarios.teardown_timeout_ns, Setting::TeardownTimeout),
        };
        let limit_ns = limit_ns.unwrap_or(ASIDE_TIMEOUT_NS);
        library.give(&self.given)?;
        let plan = Plan {
            scenarios: None,
            workers: 1,
            connections: 1.into(),
            load: Load::Closed {},
            stop: StopRule::default(),
            own_times: false,
            own: Vec::new(),
            thresholds: Vec::new(),
            guards: Vec::new(),
            watches: Vec::new(),
            ..self.plan.clone()
        };
        let mut users = VirtualUsers::once(library, &plan, place, which);
        self.trace.iter().for_each(|trace| users.show(trace));
        let find = finder(self.plan, machine.resolve());
        let origins = origins(&find, users.clients(), Share::WHOLE, &mut Vec::new())?;
        let cut = StopHandle::default();
        let shared = Arc::new(Shared::new(Arc::new(plan), &cut, None));
        let driver = worker::make_driver(machine, 0)?;
        let (reports, reported) = channel();
        let (done, ended) = channel();
        let spawned = thread::Builder::new().name(which.to_owned()).spawn(move || {
            let worker = Worker::new(shared, driver, origins, 0, users, reports);
            // Nobody listens any more if it was left behind.
            let _ = done.send(worker.run());
        });
        spawned.map_err(|source| EngineError::System { what: "start a thread", source })?;
        let (mut stopped, mut cut_off): (Option<Instant>, Option<Instant>) = (None, None);
        let (began, mut is_late) = (Instant::now(), false);
        let users = loop {
            match ended.recv_timeout(LOOK) {
                Ok(users) => {
                    break users.map_err(|source| EngineError::System { what: "wait for events", source })?;
                }
                Err(RecvTimeoutError::Disconnected) => return Err(EngineError::Defect),
                Err(RecvTimeoutError::Timeout) if cut_off.is_some_and(|since| since.elapsed() >= PATIENCE) => {
                    return Err(ScriptError::stuck(&named).into());
                }
                Err(RecvTimeoutError::Timeout) if cut_off.is_some() => {}
                Err(RecvTimeoutError::Timeout) if began.elapsed() >= Duration::from_nanos(limit_ns) => {
                    is_late = true;
                    cut.leave();
                    cut_off = Some(Instant::now());
                }
                Err(RecvTimeoutError::Timeout) if stop.is_stopped() => {
                    if stop.leaves() || stopped.get_or_insert_with(Instant::now).elapsed() >= patience {
                        cut.leave();
                        cut_off = Some(Instant::now());
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        if cut_off.is_some() && !users.has_finished() {
            return Err(if is_late {
                EngineError::TookTooLong { what: named, limit_ns, setting }
            } else {
                ScriptError::cut_off(&named).into()
            });
        }
        match users.into_library() {
            (_, Some(problem)) => Err(ScriptError::failed(which, &problem).into()),
            (library, None) => Ok(Some((library, left(&reported)))),
        }
    }
}

/// Lets one user of a plan's script go through a function beside any load, with a value. Returns the value that it leaves.
///
/// # Errors
/// When the function fails, or does not return in time.
pub(crate) fn run_aside<M: Machine>(
    machine: &M,
    plan: &Plan,
    (registry, scripts): (&Registry, &dyn ScriptHost),
    which: &'static str,
    given: Value<'static>,
) -> Result<Option<Value<'static>>, EngineError> {
    let Some(scenarios) = &plan.scenarios else { return Ok(None) };
    let portion = Portion::whole(1);
    let script = scripts.program(plan, scenarios, registry, portion)?;
    let left = LifecycleFigures::default();
    let runtime = ScenarioRuntime { plan, scenarios, script, given, left, trace: None, portion };
    let done = runtime.run(which, machine, &StopHandle::default(), RETURN)?;
    done.map(|(library, _)| library.given()).transpose().map_err(Into::into)
}

/// The state in which setup or teardown has returned, and what it leaves.
type AfterReturn = (Box<dyn Library>, LifecycleFigures);

/// What the user of setup or teardown leaves.
fn left(reported: &Receiver<Report>) -> LifecycleFigures {
    let mut left = LifecycleFigures::default();
    for report in reported.try_iter() {
        match report {
            Report::Interval(interval) | Report::Part(interval) => {
                left.figures.checks.merge(&interval.snapshot.figures.checks);
                left.figures.own.merge(&interval.snapshot.figures.own);
            }
            Report::Finished { stopped, .. } => left.stopped = stopped,
            Report::Unconnected(_) => {}
        }
    }
    left
}

/// A way that was found, or why none leads there.
type RouteResult = Result<Route, (Failure, String)>;

/// The origins of the clients' bases. `routes` has the ways that were found already. Calls to a host that is blocked
/// fail.
fn origins(
    find: &Arc<Find>,
    clients: &[ScriptClient],
    share: Share,
    routes: &mut Vec<RouteResult>,
) -> Result<Origins, EngineError> {
    let mut origins = Origins::of_users(Arc::clone(find), share);
    let based = clients.iter().enumerate().filter_map(|(place, client)| Some((place, client, client.base.as_ref()?)));
    for (found, (place, client, base)) in based.enumerate() {
        if found >= routes.len() {
            routes.push(match find(base, client) {
                Err(error) if is_calls_failure(&error, client) => Err((error.failure(), error.to_string())),
                found => Ok(found?),
            });
        }
        match routes.get(found) {
            Some(Ok(route)) => drop(origins.add_known(place, base, client, route.clone())),
            Some(Err(lost)) => origins.add_lost(place, base, client, lost.clone()),
            None => {}
        }
    }
    Ok(origins)
}

/// Whether calls fail by this error, rather than the run.
fn is_calls_failure(error: &RouteError, client: &ScriptClient) -> bool {
    matches!(error, RouteError::Blocked { .. }) || client.is_base_found && error.is_no_address()
}

/// Finds the way to a target, with connections as `plan` wants them.
fn finder(plan: &Plan, resolve: Resolve) -> Arc<Find> {
    // Of the scenarios, only the rules for hosts matter here.
    let hosts = plan.scenarios.as_ref().map(|scenarios| scenarios.hosts.clone());
    let scenarios = hosts.map(|hosts| Scenarios { hosts, ..Scenarios::default() });
    let plan = Plan { scenarios, ..plan.clone() };
    Arc::new(move |target: &Target, client: &ScriptClient| {
        let scheme = client.schemes.iter().find(|scheme| scheme.name == target.scheme);
        let scheme = scheme.ok_or_else(|| RouteError::Scheme { scheme: target.scheme.clone() })?;
        let mut plan = plan_to(&plan, target, scheme.default_port);
        if let Some(identity) = client.identities.iter().find(|identity| identity.is_for(&target.host)) {
            let tls = &mut plan.transport.tls;
            tls.certificate_pem = Some(identity.certificate_pem.clone());
            tls.key_pem = Some(identity.key_pem.clone());
        }
        let tls = scheme.tls.then(|| TlsRoute::prepare(&plan, client.caller.alpn(), false)).transpose()?;
        Route::find(&plan, scheme.default_port, tls, &resolve)
    })
}

/// The plan for one of the targets that users call, whose scheme has this default port. Settings for reaching the
/// plan's own target (other addresses, a Unix socket, another name in TLS) apply to no other target.
pub fn plan_to(plan: &Plan, target: &Target, default_port: u16) -> Plan {
    let mut to = plan.clone();
    let place = |target: &Target| (target.scheme.clone(), target.host.clone(), target.port.unwrap_or(default_port));
    if place(target) != place(&plan.target) {
        to.transport.addresses.clear();
        to.transport.connect_to = None;
        to.transport.unix_socket = None;
        to.transport.tls.server_name = None;
    }
    let hosts = plan.scenarios.as_ref().map(|scenarios| &scenarios.hosts);
    let port = target.port.unwrap_or(default_port);
    if let Some(instead) = hosts.and_then(|hosts| hosts.instead_of(&target.host, port)) {
        to.transport.addresses.clear();
        to.transport.unix_socket = None;
        to.transport.connect_to = Some(instead);
    }
    to.target.clone_from(target);
    to
}
