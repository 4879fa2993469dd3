//! What surrounds the users of a run: the script's states, its setup and teardown, the ways to where it calls.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use brunt_model::outcome::Failure;
use brunt_model::plan::{Load, Plan, Stop};
use brunt_model::scenario::Scenarios;
use brunt_model::target::Target;

use crate::protocol::scenario::Value;
use crate::protocol::{Client, Prepared, Registry};
use crate::script::ScriptError;
use crate::script::scenario::{Library, Script, ScriptClient};
use crate::trace::Trace;
use crate::transport::epoll::Epoll;
use crate::transport::route::{Route, addresses, sources};
use crate::transport::tls::TlsRoute;
use crate::user::User;
use crate::worker::origins::{Find, NoClient, Origins};
use crate::worker::pace::Quota;
use crate::worker::users::VirtualUsers;
use crate::worker::users::among_workers::AmongWorkers;
use crate::worker::{Shared, Source, StartingLine, Worker};
use crate::{EngineError, StopHandle, limits};

/// How often it is looked whether setup or teardown should be left behind.
const LOOK: Duration = Duration::from_millis(20);
/// How long it may still take once the run is to end.
const PATIENCE: Duration = Duration::from_secs(1);

/// A worker's users, and the origins that they are known to call.
pub(crate) struct Cast {
    pub(crate) users: VirtualUsers,
    pub(crate) origins: Origins,
}

/// What surrounds the users of a run.
pub(crate) struct Surroundings<'a> {
    plan: &'a Plan,
    scenarios: &'a Scenarios,
    script: Script,
    find: Arc<Find>,
    given: Value<'static>,
    /// Sees everything that users do, those of setup and teardown too.
    trace: Option<Arc<dyn Trace>>,
}

impl<'a> Surroundings<'a> {
    /// Checks the script of `plan` by running it once.
    ///
    /// # Errors
    /// With file and line of what is wrong.
    pub(crate) fn of(plan: &'a Plan, scenarios: &'a Scenarios, registry: &Registry) -> Result<Self, EngineError> {
        let script = Script::of(plan, scenarios, registry)?;
        let library = script.begin_rehearsal()?;
        for population in &scenarios.populations {
            for one in &population.scenarios {
                // What is misspelt is found before anything is sent, as far as made-up answers lead.
                let place = library.place(&one.scenario)?;
                library.rehearse(place)?;
            }
        }
        let find = finder(plan);
        Ok(Self {
            plan,
            scenarios,
            script: Script::of(plan, scenarios, registry)?,
            find,
            given: Value::Nil,
            trace: None,
        })
    }

    /// Shows `trace` everything that users do from now on.
    pub(crate) fn show(&mut self, trace: Arc<dyn Trace>) {
        self.trace = Some(trace);
    }

    /// Runs the script's setup, if it has one.
    ///
    /// # Errors
    /// When it fails, or has not come back although the run is to end.
    pub(crate) fn setup(&mut self, stop: &StopHandle) -> Result<(), EngineError> {
        limits::raise_descriptors_fully();
        if let Some(library) = self.run("setup", stop)? {
            self.given = library.given()?;
        }
        Ok(())
    }

    /// Runs the script's teardown, if it has one.
    ///
    /// # Errors
    /// When it fails, or has not come back although the run is to end.
    pub(crate) fn teardown(&self, stop: &StopHandle) -> Result<(), EngineError> {
        // A run that was ended early is torn down all the same: only what comes now counts.
        let stopped_before = stop.is_stopped();
        let never = StopHandle::default();
        self.run("teardown", if stopped_before { &never } else { stop }).map(drop)
    }

    /// The users of each worker.
    ///
    /// # Errors
    /// When the script is wrong, or a host that its clients call has no address.
    pub(crate) fn cast(&self) -> Result<Vec<Cast>, EngineError> {
        let among = AmongWorkers::new(self.scenarios, self.plan.workers);
        let mut routes = Vec::new();
        (0..self.plan.workers)
            .map(|number| {
                let library = self.script.begin(number)?;
                library.give(&self.given)?;
                let mut users = VirtualUsers::new(library, self.plan, self.scenarios, &among, number)?;
                self.trace.iter().for_each(|trace| users.show(trace));
                let origins = self.origins(users.clients(), number, self.plan.workers, &mut routes)?;
                Ok(Cast { users, origins })
            })
            .collect()
    }

    /// The origins of the clients' bases. `routes` has the ways that were found already.
    fn origins(
        &self,
        clients: &[ScriptClient],
        number: u32,
        workers: u32,
        routes: &mut Vec<Route>,
    ) -> Result<Origins, EngineError> {
        let mut origins = Origins::of_users(Arc::clone(&self.find), number, workers);
        let based =
            clients.iter().enumerate().filter_map(|(place, client)| Some((place, client, client.base.as_ref()?)));
        for (found, (place, client, base)) in based.enumerate() {
            if found >= routes.len() {
                let route = (self.find)(base, client);
                routes.push(route.map_err(|(_, problem)| EngineError::Unreachable { problem })?);
            }
            if let Some(route) = routes.get(found) {
                origins.add_known(place, base, client, route.clone());
            }
        }
        Ok(origins)
    }

    /// Lets one user go through setup or teardown; the state in which it did, if the script has such a function.
    fn run(&self, which: &'static str, stop: &StopHandle) -> Result<Option<Library>, EngineError> {
        let library = self.script.begin(0)?;
        let Some(place) = library.once(which)? else { return Ok(None) };
        library.give(&self.given)?;
        let plan = Plan {
            scenarios: None,
            workers: 1,
            connections: 1,
            load: Load::Closed {},
            stop: Stop::default(),
            thresholds: Vec::new(),
            ..self.plan.clone()
        };
        let mut users = VirtualUsers::once(library, &plan, place, which);
        self.trace.iter().for_each(|trace| users.show(trace));
        let origins = self.origins(users.clients(), 0, 1, &mut Vec::new())?;
        let shared = Arc::new(shared(plan, Arc::new(NoProtocol), stop));
        let driver =
            Epoll::new(Instant::now(), 0).map_err(|source| EngineError::System { what: "wait for events", source })?;
        let (reports, _unread) = channel();
        let (done, ended) = channel();
        let spawned = thread::Builder::new().name(which.to_owned()).spawn(move || {
            let worker = Worker::new(shared, driver, origins, 0, 0, Source::Users(Box::new(users)), reports);
            // Nobody listens any more once it was left behind.
            let _ = done.send(worker.run());
        });
        spawned.map_err(|source| EngineError::System { what: "start a thread", source })?;
        let mut stopped: Option<Instant> = None;
        let source = loop {
            match ended.recv_timeout(LOOK) {
                Ok(source) => {
                    break source.map_err(|source| EngineError::System { what: "wait for events", source })?;
                }
                Err(RecvTimeoutError::Disconnected) => return Err(EngineError::Defect),
                Err(RecvTimeoutError::Timeout) if stop.is_stopped() => {
                    if stopped.get_or_insert_with(Instant::now).elapsed()
                        >= PATIENCE + Duration::from_nanos(self.plan.drain_ns)
                    {
                        return Err(ScriptError::stuck(which).into());
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        let Source::Users(users) = source else { return Ok(None) };
        match users.into_library() {
            (_, Some(problem)) => Err(ScriptError::failed(which, &problem).into()),
            (library, None) => Ok(Some(library)),
        }
    }
}

/// What workers of a run have in common.
pub(crate) fn shared(plan: Plan, prepared: Arc<dyn Prepared>, stop: &StopHandle) -> Shared {
    Shared {
        prepared,
        line: StartingLine::default(),
        warmup_quota: Quota::new(None, plan.workers),
        quota: Quota::new(plan.stop.requests, plan.workers),
        stop: stop.clone(),
        ended: std::sync::atomic::AtomicBool::new(false),
        plan,
    }
}

/// What finds the way to a target, as `plan` wants connections made.
fn finder(plan: &Plan) -> Arc<Find> {
    let plan = Plan { scenarios: None, ..plan.clone() };
    Arc::new(move |target: &Target, client: &ScriptClient| {
        let scheme = client.schemes.iter().find(|scheme| scheme.name == target.scheme);
        let scheme = scheme.ok_or_else(|| (Failure::Resolve, format!("there is no way to '{}://'", target.scheme)))?;
        let plan = plan_to(&plan, target, scheme.default_port);
        let addresses = addresses(&plan, scheme.default_port).map_err(|error| (Failure::Resolve, error.to_string()))?;
        let tls = scheme.tls.then(|| TlsRoute::prepare(&plan, client.caller.alpn())).transpose();
        let sources = sources(&plan, &addresses).map_err(|error| (Failure::Connect, error.to_string()))?;
        Ok(Route { addresses, sources, tls: tls.map_err(|error| (Failure::Tls, error.to_string()))? })
    })
}

/// The plan for one of the targets that users call. What is said of how the plan's own is reached (other addresses, a Unix
/// socket, another name in TLS) is said of no other.
fn plan_to(plan: &Plan, target: &Target, default_port: u16) -> Plan {
    let mut to = plan.clone();
    let place = |target: &Target| (target.scheme.clone(), target.host.clone(), target.port.unwrap_or(default_port));
    if place(target) != place(&plan.target) {
        to.transport.addresses.clear();
        to.transport.connect_to = None;
        to.transport.unix_socket = None;
        to.transport.tls.server_name = None;
    }
    to.target.clone_from(target);
    to
}

/// The protocol of a run whose calls are all made by users, through the clients of their script.
pub(crate) struct NoProtocol;

impl Prepared for NoProtocol {
    fn client(&self, _keep: bool) -> Box<dyn Client> {
        Box::new(NoClient)
    }

    fn user(&self) -> Box<dyn User> {
        Box::new(Nobody)
    }
}

/// Asks for nothing.
struct Nobody;

impl User for Nobody {
    fn call(&mut self, _index: u64) -> Result<crate::user::Message<'_>, crate::user::Refusal> {
        Err(crate::user::Refusal::Done)
    }
}
