//! brunt's engine: carries a [`Plan`] out and returns what happened as a [`Recording`].
//!
//! [`run`] finds the target's addresses, starts the workers and gathers their reports. A worker (`worker`) is a thread
//! with its own connections. It asks the plan's pace when a call is due, the protocol ([`Registry`]) for the call's
//! bytes, and the transport (`transport`) to send them; then it records the outcome.
//!
//! ```
//! use brunt_engine::{EngineError, Observer, StopHandle, run};
//! use brunt_plan::plan::Plan;
//! use brunt_protocol::Registry;
//! use brunt_record::recording::Recording;
//! use brunt_script::ScriptHost;
//!
//! /// Blocks until the run is over. `stop` ends it from another thread; `observer` sees each second.
//! fn carried_out(
//!     plan: &Plan,
//!     protocols: &Registry,
//!     scripts: &dyn ScriptHost,
//!     observer: &mut dyn Observer,
//!     stop: &StopHandle,
//! ) -> Result<Recording, EngineError> {
//!     Ok(run(plan, protocols, scripts, observer, stop)?.run)
//! }
//! ```
//!
//! | module | does |
//! | --- | --- |
//! | `run`, `worker`, `coordinator` | begins and ends a run, drives the connections of a thread, gathers what the threads report |
//! | `flood`, `users`, `replay` | three kinds of load: requests from a source, virtual users, a log |
//! | `pace`, `gate`, `control` | when calls are due, when all begin, what changes meanwhile |
//! | `channel`, `slots` | a connection with its protocol, and the calls in flight on it |
//! | `transport` | sockets, TLS, epoll, the kernel's arrival times: the only module with I/O |
//! | `simulated` | a network and a clock in memory, by which tests run whole runs in no time |
//!
//! A worker never blocks but in its `Driver`'s wait, and allocates nothing for a call of a flood.

mod channel;
mod control;
mod coordinator;
mod error;
mod flood;
mod gate;
mod limits;
mod network;
mod pace;
mod replay;
mod rules;
mod run;
mod scenarios;
mod shared_counters;
#[cfg(feature = "simulation")]
pub mod simulated;
mod single_call;
mod slots;
pub mod trace;
mod transport;
mod users;
mod watchdog;
mod worker;

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use brunt_plan::plan::Plan;
use brunt_plan::share::Portion;
use brunt_record::recording::{LifecycleFigures, Recording};
use brunt_record::time::Tick;

use brunt_protocol::Registry;
use brunt_protocol::replay::WorkerReplay;
use brunt_protocol::scenario::Value;
use brunt_script::{ScriptHost, Session};

use crate::coordinator::Coordinator;
use crate::run::RunInputs;
use crate::trace::Trace;
use crate::transport::Clock;
use crate::transport::epoll::Epolls;
use crate::watchdog::Watchdog;

pub use brunt_plan::stop::StopHandle;
pub use brunt_record::observer::{Observer, RunningTotal};
pub use brunt_record::recording::AbortCause;

pub use crate::control::{Changeable, Control, ControlError};
pub use crate::error::EngineError;
pub use crate::gate::Gate;
pub use crate::limits::{descriptors_besides, most_connections, most_growing_connections};
pub use crate::pace::Supply;
pub use crate::scenarios::plan_to;
pub use crate::shared_counters::{SharedCounter, SharedCounters};
pub use crate::single_call::{AskError, ask};
pub use crate::transport::has_arrival_times;
use crate::transport::pacing;
pub use crate::transport::pacing::NoSpareCpu;
pub use crate::transport::route::{RouteError, ports_in};
pub use crate::transport::tls::TlsError;
pub use crate::users::among_workers::over_on;
pub use crate::worker::Report;

/// A finished run.
pub struct Finished {
    /// The plan as carried out here: with this part's workers, and as many connections as there was room for.
    pub plan: Plan,
    /// What happened.
    pub run: Recording,
    /// The script's function for the result, if it has one.
    pub script: Option<Box<dyn Session>>,
}

/// One machine's part of a run.
#[derive(Debug, Clone)]
pub struct RunShare {
    /// Its workers.
    pub portion: Portion,
    /// The gate that its workers wait at once their connections are made; without one they begin at once.
    pub gate: Option<Gate>,
    /// Counts that all machines share.
    pub counters: SharedCounters,
    /// Where the script's setup and teardown run.
    pub script_lifecycle: ScriptLifecycle,
    /// Changes while it goes on.
    pub control: Control,
    /// The numbers of its calls, where the plan limits them in the closed model.
    pub supply: Supply,
}

impl RunShare {
    /// All of a run, on this many workers.
    pub fn whole(workers: u32) -> Self {
        Self {
            portion: Portion::whole(workers),
            gate: None,
            counters: SharedCounters::default(),
            script_lifecycle: ScriptLifecycle::Here,
            control: Control::default(),
            supply: Supply::default(),
        }
    }
}

/// Where the script's setup and teardown run.
#[derive(Debug, Clone)]
pub enum ScriptLifecycle {
    /// On this machine, before and after the part.
    Here,
    /// On another machine: the value that setup has returned.
    Elsewhere(Value<'static>),
}

/// Carries `plan` out and returns what happened, on as many workers as its limits allow. Blocks until it is over.
///
/// # Errors
/// When no load could be put on anything: the plan is wrong, its limits cannot be had, or its host has no address.
pub fn run(
    plan: &Plan,
    registry: &Registry,
    scripts: &dyn ScriptHost,
    observer: &mut dyn Observer,
    stop: &StopHandle,
) -> Result<Finished, EngineError> {
    run_part(plan, RunShare::whole(plan.workers_within_limits()), registry, scripts, observer, stop)
}

/// Carries out a part of `plan`, as one of several machines, and returns what happened in it. The number of workers is
/// the part's, whatever the plan says.
///
/// # Errors
/// As [`run`].
pub fn run_part(
    plan: &Plan,
    part: RunShare,
    registry: &Registry,
    scripts: &dyn ScriptHost,
    observer: &mut dyn Observer,
    stop: &StopHandle,
) -> Result<Finished, EngineError> {
    let machine = Epolls::new(plan, pacing::spins(plan, part.portion)?);
    run::run(plan, RunInputs { machine: &machine, part, registry, scripts, stop, trace: None }, observer)
}

/// Replays logs, one for each worker of `plan`, and returns what happened. Blocks until they are over.
///
/// # Errors
/// As [`run`].
pub fn run_replay(
    plan: &Plan,
    logs: Vec<Box<dyn WorkerReplay>>,
    registry: &Registry,
    scripts: &dyn ScriptHost,
    observer: &mut dyn Observer,
    stop: &StopHandle,
) -> Result<Finished, EngineError> {
    run_replay_part(plan, RunShare::whole(plan.workers), logs, registry, scripts, observer, stop)
}

/// The same for a part of a run, as one of several machines: a log for each worker of its portion.
///
/// # Errors
/// As [`run`].
pub fn run_replay_part(
    plan: &Plan,
    part: RunShare,
    logs: Vec<Box<dyn WorkerReplay>>,
    registry: &Registry,
    scripts: &dyn ScriptHost,
    observer: &mut dyn Observer,
    stop: &StopHandle,
) -> Result<Finished, EngineError> {
    let machine = Epolls::new(plan, pacing::spins(plan, part.portion)?);
    run::run_replay(plan, logs, &RunInputs { machine: &machine, part, registry, scripts, stop, trace: None }, observer)
}

/// Runs only the setup of the plan's script, if it has one. Returns the value that it returns, for
/// [`ScriptLifecycle::Elsewhere`], and what it leaves.
///
/// # Errors
/// When the script is wrong, its setup fails, or has not returned although `stop` asks it to.
pub fn setup(
    plan: &Plan,
    registry: &Registry,
    scripts: &dyn ScriptHost,
    stop: &StopHandle,
) -> Result<(Value<'static>, LifecycleFigures), EngineError> {
    run::setup(plan, &Epolls::new(plan, false), registry, scripts, stop)
}

/// Runs only the teardown of the plan's script, if it has one, and returns what it leaves; `given` is the value that its
/// setup returned.
///
/// # Errors
/// As [`setup`].
pub fn teardown(
    plan: &Plan,
    given: Value<'static>,
    registry: &Registry,
    scripts: &dyn ScriptHost,
    stop: &StopHandle,
) -> Result<LifecycleFigures, EngineError> {
    run::teardown(plan, given, &Epolls::new(plan, false), registry, scripts, stop)
}

/// The script of `plan`, if it is wrk's, for its report on a result that others have measured. It is loaded, and none
/// of its threads is set up.
///
/// # Errors
/// When the plan or the script is wrong.
pub fn load_report_script(
    plan: &Plan,
    registry: &Registry,
    scripts: &dyn ScriptHost,
    stop: &StopHandle,
) -> Result<Option<Box<dyn Session>>, EngineError> {
    run::load_report_script(plan, registry, scripts, stop)
}

/// Agents that carry out a run.
#[derive(Debug, Clone, Copy)]
pub struct Agents<'a> {
    /// Their names, in the order of their numbers.
    pub names: &'a [String],
    /// What the script's setup on one of them has left.
    pub left: &'a LifecycleFigures,
}

/// Merges the reports of agents on their parts into a run of `plan`. Ends when all of them have finished, or no sender
/// of reports is left.
///
/// Each agent stands for one worker: its seconds are those of all its workers, and `worker` is its number, from 0.
pub fn gather(
    plan: &Plan,
    agents: Agents<'_>,
    reports: &Receiver<Report>,
    observer: &mut dyn Observer,
    control: &Control,
    stop: &StopHandle,
    started_unix_ms: u64,
) -> Recording {
    let clock: Clock = Arc::new(|| Tick::EPOCH);
    let mut nobody = Watchdog::default();
    Coordinator::new(plan, agents.names.len() as u32, observer, &mut nobody, stop, clock)
        .of_agents(agents.names)
        .changed_by(control)
        .after_setup(agents.left)
        .gather(reports, started_unix_ms)
}

/// Carries out a plan as [`run`] does, and shows `trace` every action of its users, or all bytes of its connections.
/// For a few users, or one call: it is slow.
///
/// # Errors
/// As [`run`].
pub fn run_traced(
    plan: &Plan,
    registry: &Registry,
    scripts: &dyn ScriptHost,
    observer: &mut dyn Observer,
    stop: &StopHandle,
    trace: Arc<dyn Trace>,
) -> Result<Finished, EngineError> {
    let machine = Epolls::new(plan, false);
    run::run(
        plan,
        RunInputs {
            machine: &machine,
            part: RunShare::whole(plan.workers),
            registry,
            scripts,
            stop,
            trace: Some(trace),
        },
        observer,
    )
}

/// Lets one user of a plan's script go through a function beside any load, such as one that is over, with a value. Returns the value that it
/// leaves; `None` where the script has no such function. It may take as long as the script's teardown.
///
/// # Errors
/// When the function fails, or does not return in time.
pub fn run_aside(
    plan: &Plan,
    registry: &Registry,
    scripts: &dyn ScriptHost,
    which: &'static str,
    given: Value<'static>,
) -> Result<Option<Value<'static>>, EngineError> {
    scenarios::run_aside(&Epolls::new(plan, false), plan, (registry, scripts), which, given)
}

/// Checks everything about `plan` that can be checked without touching the network.
///
/// # Errors
/// When something in it is wrong.
pub fn check(plan: &Plan, registry: &Registry, scripts: &dyn ScriptHost) -> Result<(), EngineError> {
    run::check(plan, registry, scripts)
}
