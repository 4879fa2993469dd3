//! brunt's engine: carries a [`Plan`] out and returns what happened as a [`Run`].
//!
//! [`run`] finds the target's addresses, starts the workers and gathers what they report. A worker (`worker`) is a thread
//! with its own connections; it asks the plan's pace when a call is due, the protocol ([`protocol`]) which bytes that
//! is, the transport (`transport`) to send them, and writes down what came of it.

mod coordinator;
mod limits;
pub mod protocol;
mod scenarios;
pub mod script;
pub mod trace;
mod transport;
pub mod user;
mod watchdog;
mod worker;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use brunt_model::arrivals::share_of;
use brunt_model::live::Live;
use brunt_model::plan::{Plan, PlanError};
use brunt_model::scenario::Scenarios;
use brunt_model::summary::Run;

use crate::coordinator::Coordinator;
use crate::protocol::{OptionsError, Prepared, Registry, Scheme};
use crate::scenarios::{Cast, NoProtocol, Surroundings};
use crate::script::{Beginning, Begun, ScriptError, Scripted, Session};
use crate::trace::{FloodTrace, Trace};
use crate::transport::Address;
use crate::transport::epoll::Epoll;
use crate::transport::route::{Route, addresses, sources};
use crate::transport::tls::TlsRoute;
use crate::watchdog::Watchdog;
use crate::worker::origins::Origins;
use crate::worker::{Shared, Source, Worker};

pub use crate::limits::most_connections;
pub use crate::transport::tls::TlsError;

/// Sees a run while it goes on.
pub trait Observer {
    /// A second is over (or a phase, with what is left of its last second).
    fn second(&mut self, live: &Live);
}

/// Ends a run early, from any thread or signal handler. Calls in flight still end within the drain.
#[derive(Debug, Clone, Default)]
pub struct StopHandle(Arc<AtomicBool>);

impl StopHandle {
    /// Asks the run to end.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked to.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Why a plan could not be carried out at all.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Something in the plan is wrong.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Something in its protocol part is wrong.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// Something in its TLS part is wrong.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// No protocol has this scheme.
    #[error("no protocol is called '{scheme}'; there are {known}")]
    Scheme {
        /// The scheme asked for.
        scheme: String,
        /// Those that there are.
        known: String,
    },
    /// The URL names no port, and its scheme has none of its own.
    #[error(
        "the URL names no port, and {scheme}:// has none of its own: write it behind the host, such as {scheme}://localhost:7"
    )]
    NoPort {
        /// The target's scheme.
        scheme: &'static str,
    },
    /// The target has no address.
    #[error("'{host}' cannot be resolved: {problem}")]
    Resolve {
        /// The host asked for.
        host: String,
        /// The resolver's words.
        problem: String,
    },
    /// A host that a script calls cannot be reached.
    #[error("{problem}")]
    Unreachable {
        /// Which, and why.
        problem: String,
    },
    /// An address to connect from is not one of this machine's.
    #[error("cannot connect from {address}; --source-ip takes addresses of this machine")]
    Source {
        /// The address.
        address: std::net::IpAddr,
        /// The system's words.
        source: io::Error,
    },
    /// More connections than this process may have.
    #[error(
        "{connections} connections need {needed} file descriptors, and the limit is {limit}: ask for fewer (-c), or raise \
         the hard limit (ulimit -Hn)"
    )]
    Descriptors {
        /// Connections asked for.
        connections: u32,
        /// Descriptors that takes.
        needed: u64,
        /// Descriptors there are.
        limit: u64,
    },
    /// The operating system refused something that a run cannot do without.
    #[error("cannot {what}")]
    System {
        /// What was refused.
        what: &'static str,
        /// The system's words.
        source: io::Error,
    },
    /// The protocol's calls are not such as scripts make.
    #[error(
        "a script makes HTTP/1.1 requests, and {scheme}:// takes none: leave the script out, or aim at http:// or https://"
    )]
    Unscriptable {
        /// The target's scheme.
        scheme: &'static str,
    },
    /// The plan's script is wrong, or failed before the load began.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// A defect of brunt.
    #[error("a worker came to an unplanned end; this is a defect of brunt, please report it")]
    Defect,
}

/// A run that is over.
pub struct Finished {
    /// What happened.
    pub run: Run,
    /// What the plan's script may still have to say about it.
    pub script: Option<Session>,
}

/// Carries `plan` out and returns what happened. Blocks until it is over.
///
/// # Errors
/// When no load could be put on anything: the plan is wrong, its limits cannot be had, or its host has no address.
pub fn run(
    plan: &Plan,
    registry: &Registry,
    observer: &mut dyn Observer,
    stop: &StopHandle,
) -> Result<Finished, EngineError> {
    run_with(plan, registry, observer, stop, None)
}

/// Carries out a plan as [`run`] does, and shows `trace` everything that its users do, or what its connections send and
/// receive. For a few users, and one call: it is slow.
///
/// # Errors
/// As [`run`].
pub fn run_traced(
    plan: &Plan,
    registry: &Registry,
    observer: &mut dyn Observer,
    stop: &StopHandle,
    trace: Arc<dyn Trace>,
) -> Result<Finished, EngineError> {
    run_with(plan, registry, observer, stop, Some(trace))
}

fn run_with(
    plan: &Plan,
    registry: &Registry,
    observer: &mut dyn Observer,
    stop: &StopHandle,
    trace: Option<Arc<dyn Trace>>,
) -> Result<Finished, EngineError> {
    if let Some(scenarios) = &plan.scenarios {
        return run_scenarios(plan, scenarios, registry, observer, stop, trace);
    }
    let Checked { scheme, mut prepared, tls } = examine(plan, registry)?;
    let epoch = Instant::now();
    let clock = move || u64::try_from(epoch.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let seen = trace.map(|trace| Arc::new(FloodTrace::new(Arc::clone(&prepared), trace, clock)));
    if let Some(seen) = &seen {
        prepared = Arc::clone(seen) as Arc<dyn Prepared>;
    }
    limits::raise_descriptors(plan.connections, plan.workers)?;
    let addresses = addresses(plan, scheme.default_port)?;
    let route = Route { sources: sources(plan, &addresses)?, addresses, tls };
    let shared = Arc::new(scenarios::shared(plan.clone(), prepared, stop));
    let (mut session, scripted) = match begin_script(&shared, &route, scheme)? {
        Some(Begun { session, workers }) => (Some(session), workers),
        None => (None, Vec::new()),
    };
    let mut watchdog = Watchdog::new(scripted.iter().map(|worker| worker.heart.clone()));
    let parts = flood_parts(&shared, &route, scripted);
    let mut run = carry_out(&shared, parts, &mut watchdog, observer)?;
    run.status_names = shared.prepared.status_names();
    if let Some(seen) = seen {
        seen.finish(&run);
    }
    if let Some(session) = &mut session {
        (0..plan.workers).filter(|worker| watchdog.has_given_up(*worker)).for_each(|worker| session.give_up(worker));
    }
    Ok(Finished { run, script: session })
}

/// The parts of a flood's workers.
fn flood_parts(shared: &Shared, route: &Route, scripted: Vec<Scripted>) -> Vec<Part> {
    let plan = &shared.plan;
    let mut scripted = scripted.into_iter();
    let part = |number: u32| {
        let theirs = scripted.next();
        let mut route = route.clone();
        if let Some(address) = theirs.as_ref().and_then(|scripted| scripted.address) {
            route.addresses = vec![Address::Tcp(address)];
        }
        let user = theirs.map_or_else(|| shared.prepared.user(), |scripted| scripted.user);
        let connections = share_of(u64::from(plan.connections), u64::from(number), u64::from(plan.workers)) as usize;
        Part { source: Source::Calls(user), origins: Origins::of_flood(route), connections }
    };
    (0..plan.workers).map(part).collect()
}

/// Carries out a plan whose calls are made by virtual users.
fn run_scenarios(
    plan: &Plan,
    scenarios: &Scenarios,
    registry: &Registry,
    observer: &mut dyn Observer,
    stop: &StopHandle,
    trace: Option<Arc<dyn Trace>>,
) -> Result<Finished, EngineError> {
    plan.validate()?;
    let mut surroundings = Surroundings::of(plan, scenarios, registry)?;
    if let Some(trace) = trace {
        surroundings.show(trace);
    }
    surroundings.setup(stop)?;
    let cast = surroundings.cast()?;
    let mut watchdog = Watchdog::new(cast.iter().map(|cast| cast.users.heart()));
    let shared = Arc::new(scenarios::shared(plan.clone(), Arc::new(NoProtocol), stop));
    let parts = cast.into_iter().map(|Cast { users, origins }| {
        let source = Source::Users(Box::new(users));
        Part { source, origins, connections: 0 }
    });
    let mut run = carry_out(&shared, parts.collect(), &mut watchdog, observer)?;
    let mut figures = run.measured.figures.clone();
    figures.merge(&run.drained.figures);
    run.status_names = figures.status_names();
    surroundings.teardown(stop)?;
    Ok(Finished { run, script: None })
}

/// Does what the plan's script does before the load, if there is one.
fn begin_script(shared: &Shared, route: &Route, scheme: Scheme) -> Result<Option<Begun>, EngineError> {
    let plan = &shared.plan;
    let (Some(script), Some(start)) = (&plan.script, shared.prepared.script_start()) else { return Ok(None) };
    let tcp = route.addresses.iter().filter_map(|address| match address {
        Address::Tcp(address) => Some(*address),
        Address::Unix(_) => None,
    });
    let target = || (plan.target.host.clone(), plan.target.port.unwrap_or(scheme.default_port));
    let beginning = Beginning {
        script,
        start,
        addresses: tcp.collect(),
        host: plan.transport.connect_to.clone().unwrap_or_else(target),
        workers: plan.workers,
    };
    Ok(Some(script::begin(&beginning, &shared.stop)?))
}

/// Checks everything about `plan` that can be checked without touching the network.
///
/// # Errors
/// When something in it is wrong.
pub fn check(plan: &Plan, registry: &Registry) -> Result<(), EngineError> {
    if let Some(scenarios) = &plan.scenarios {
        plan.validate()?;
        return Surroundings::of(plan, scenarios, registry).map(drop);
    }
    examine(plan, registry).map(drop)
}

/// What a worker begins with.
struct Part {
    source: Source,
    origins: Origins,
    connections: usize,
}

/// A plan whose parts were found right, and what was made of them.
struct Checked {
    scheme: Scheme,
    prepared: Arc<dyn Prepared>,
    tls: Option<TlsRoute>,
}

fn examine(plan: &Plan, registry: &Registry) -> Result<Checked, EngineError> {
    plan.validate()?;
    let (protocol, scheme) = registry.named(&plan.target.scheme)?;
    let transport = &plan.transport;
    let has_port = plan.target.port.is_some() || transport.connect_to.is_some() || transport.unix_socket.is_some();
    if scheme.default_port == 0 && !has_port {
        return Err(EngineError::NoPort { scheme: scheme.name });
    }
    let prepared = protocol.prepare(plan)?;
    if let Some(script) = &plan.script {
        if prepared.script_start().is_none() {
            return Err(EngineError::Unscriptable { scheme: scheme.name });
        }
        script::check(script)?;
    }
    let tls = scheme.tls.then(|| TlsRoute::prepare(plan, prepared.alpn())).transpose()?;
    Ok(Checked { scheme, prepared, tls })
}

fn carry_out(
    shared: &Arc<Shared>,
    parts: Vec<Part>,
    watchdog: &mut Watchdog,
    observer: &mut dyn Observer,
) -> Result<Run, EngineError> {
    let plan = &shared.plan;
    let epoch = Instant::now();
    let started_unix_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    let (sender, reports) = channel();
    let mut drivers = Vec::new();
    for (number, part) in (0..).zip(parts) {
        let driver = Epoll::new(epoch, part.connections)
            .map_err(|source| EngineError::System { what: "wait for events", source })?;
        drivers.push((number, part, driver));
    }
    let mut threads = Vec::new();
    for (number, part, driver) in drivers {
        let (their_shared, sender) = (Arc::clone(shared), sender.clone());
        let Part { source, origins, connections } = part;
        let spawned = thread::Builder::new().name(format!("worker-{number}")).spawn(move || {
            Worker::new(their_shared, driver, origins, number, connections, source, sender).run().map(drop)
        });
        match spawned {
            Ok(thread) => threads.push((number, thread)),
            Err(source) => {
                // Those that run already wait for the others; they see this and end.
                shared.stop.stop();
                return Err(EngineError::System { what: "start a thread", source });
            }
        }
    }
    drop(sender);
    let run = Coordinator::new(plan, observer, watchdog, &shared.stop).gather(&reports, started_unix_ms);
    for (number, thread) in threads {
        // One that was given up never ends.
        if watchdog.has_given_up(number) {
            continue;
        }
        match thread.join() {
            Ok(Ok(())) => {}
            Ok(Err(source)) => return Err(EngineError::System { what: "wait for events", source }),
            Err(_) => return Err(EngineError::Defect),
        }
    }
    Ok(run)
}
