//! brunt's engine: carries a [`Plan`] out and returns what happened as a [`Recording`].
//!
//! [`run`] finds the target's addresses, starts the workers and gathers what they report. A worker (`worker`) is a thread
//! with its own connections; it asks the plan's pace when a call is due, the protocol ([`Registry`]) which bytes that
//! is, the transport (`transport`) to send them, and writes down what came of it.

mod asking;
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
mod run;
mod scenarios;
#[cfg(feature = "simulation")]
pub mod simulated;
mod tally;
pub mod trace;
mod transport;
mod users;
mod watchdog;
mod worker;

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use brunt_plan::plan::Plan;
use brunt_plan::share::{Numbers, Portion};
use brunt_record::figures::Figures;
use brunt_record::recording::Recording;

use brunt_protocol::Registry;
use brunt_protocol::replay::Replay;
use brunt_protocol::scenario::Value;
use brunt_script::{ScriptHost, Session};

use crate::coordinator::Coordinator;
use crate::run::Given;
use crate::trace::Trace;
use crate::transport::Clock;
use crate::transport::epoll::Epolls;
use crate::watchdog::Watchdog;

pub use brunt_plan::stop::StopHandle;
pub use brunt_record::observer::{Observer, RunningTotal};

pub use crate::asking::{AskError, ask};
pub use crate::control::{Control, ControlError};
pub use crate::error::EngineError;
pub use crate::gate::Gate;
pub use crate::limits::{descriptors_besides, most_connections, most_growing_connections};
pub use crate::scenarios::plan_to;
pub use crate::tally::{Tallies, Tally};
pub use crate::transport::has_arrival_times;
pub use crate::transport::route::{RouteError, ports_in};
pub use crate::transport::tls::TlsError;
pub use crate::users::among_workers::over_on;
pub use crate::worker::Report;

/// A run that is over.
pub struct Finished {
    /// The plan as it was carried out here: with this part's workers, and as many connections as there was room for.
    pub plan: Plan,
    /// What happened.
    pub run: Recording,
    /// What the plan's script may still have to say about it.
    pub script: Option<Box<dyn Session>>,
}

/// What of a run one machine carries out.
#[derive(Debug, Clone)]
pub struct Part {
    /// Which workers it has.
    pub portion: Portion,
    /// What its workers wait at once their connections are made; without it they begin at once.
    pub gate: Option<Gate>,
    /// What all machines count together.
    pub tallies: Tallies,
    /// Where the script's setup and teardown run.
    pub surroundings: Surrounded,
    /// What it takes over from a part that came to an end early, if it does.
    pub takeover: Option<Takeover>,
    /// What is changed about it while it goes on.
    pub control: Control,
}

/// How a part joins a run that is under way. It has no warm-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Takeover {
    /// How long the measured part has lasted when it begins, in nanoseconds. Calls of a rate that were due before are not its own.
    pub after_ns: u64,
    /// Which calls it makes, where the plan limits their number in the closed model.
    pub numbers: Vec<Numbers>,
}

impl Part {
    /// All of a run, with so many workers.
    pub fn whole(workers: u32) -> Self {
        Self {
            portion: Portion::whole(workers),
            gate: None,
            tallies: Tallies::default(),
            surroundings: Surrounded::Here,
            takeover: None,
            control: Control::default(),
        }
    }
}

/// Where the script's setup and teardown run.
#[derive(Debug, Clone)]
pub enum Surrounded {
    /// Before and after the part, as a part of it.
    Here,
    /// Elsewhere: this is what setup has returned.
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
    run_part(plan, Part::whole(plan.workers_within_limits()), registry, scripts, observer, stop)
}

/// Carries a part of `plan` out, as one of several machines, and returns what happened in it. The number of workers is the
/// part's, whatever the plan says.
///
/// # Errors
/// As [`run`].
pub fn run_part(
    plan: &Plan,
    part: Part,
    registry: &Registry,
    scripts: &dyn ScriptHost,
    observer: &mut dyn Observer,
    stop: &StopHandle,
) -> Result<Finished, EngineError> {
    let missed_ns = part.takeover.as_ref().map_or(0, |takeover| takeover.after_ns);
    let machine = Epolls::begun_before(plan.transport.arrival_times, missed_ns);
    run::run(plan, Given { machine: &machine, part, registry, scripts, stop, trace: None }, observer)
}

/// Replays logs, one for each worker of `plan`, and returns what happened. Blocks until they are over.
///
/// # Errors
/// As [`run`].
pub fn run_replay(
    plan: &Plan,
    logs: Vec<Box<dyn Replay>>,
    registry: &Registry,
    scripts: &dyn ScriptHost,
    observer: &mut dyn Observer,
    stop: &StopHandle,
) -> Result<Finished, EngineError> {
    let machine = Epolls::new(plan.transport.arrival_times);
    let part = Part::whole(plan.workers);
    run::run_replay(plan, logs, &Given { machine: &machine, part, registry, scripts, stop, trace: None }, observer)
}

/// Runs the setup of the plan's script alone, if it has one, and returns what it returns, for [`Surrounded::Elsewhere`], and what it has
/// counted.
///
/// # Errors
/// When the script is wrong, its setup fails, or has not come back although `stop` asks it to.
pub fn setup(
    plan: &Plan,
    registry: &Registry,
    scripts: &dyn ScriptHost,
    stop: &StopHandle,
) -> Result<(Value<'static>, Figures), EngineError> {
    run::setup(plan, &Epolls::new(plan.transport.arrival_times), registry, scripts, stop)
}

/// Runs the teardown of the plan's script alone, if it has one, and returns what it has counted; `given` is what its setup returned.
///
/// # Errors
/// As [`setup`].
pub fn teardown(
    plan: &Plan,
    given: Value<'static>,
    registry: &Registry,
    scripts: &dyn ScriptHost,
    stop: &StopHandle,
) -> Result<Figures, EngineError> {
    run::teardown(plan, given, &Epolls::new(plan.transport.arrival_times), registry, scripts, stop)
}

/// The script of `plan`, if it is wrk's, for what it says about a result that others have measured: it is loaded, and none of its
/// threads is set up.
///
/// # Errors
/// When the plan or the script is wrong.
pub fn last_words(
    plan: &Plan,
    registry: &Registry,
    scripts: &dyn ScriptHost,
    stop: &StopHandle,
) -> Result<Option<Box<dyn Session>>, EngineError> {
    run::last_words(plan, registry, scripts, stop)
}

/// Who carries a run out elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct Agents<'a> {
    /// Their names, in the order of their numbers.
    pub names: &'a [String],
    /// What the script's setup has counted on one of them.
    pub counted: &'a Figures,
}

/// Puts a run of `plan` together from what agents report of their parts. It ends when all of them have finished, or
/// none is left to report.
///
/// Each agent stands for one worker: the seconds that it reports are those of all its workers, and `worker` is its number, from 0.
pub fn gather(
    plan: &Plan,
    agents: Agents<'_>,
    reports: &Receiver<Report>,
    observer: &mut dyn Observer,
    control: &Control,
    stop: &StopHandle,
    started_unix_ms: u64,
) -> Recording {
    let clock: Clock = Arc::new(|| 0);
    let mut nobody = Watchdog::default();
    Coordinator::new(plan, agents.names.len() as u32, observer, &mut nobody, stop, clock)
        .of_agents(agents.names)
        .changed_by(control)
        .after_setup(agents.counted)
        .gather(reports, started_unix_ms)
}

/// Carries out a plan as [`run`] does, and shows `trace` everything that its users do, or what its connections send and
/// receive. For a few users, and one call: it is slow.
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
    let machine = Epolls::new(plan.transport.arrival_times);
    run::run(
        plan,
        Given { machine: &machine, part: Part::whole(plan.workers), registry, scripts, stop, trace: Some(trace) },
        observer,
    )
}

/// Checks everything about `plan` that can be checked without touching the network.
///
/// # Errors
/// When something in it is wrong.
pub fn check(plan: &Plan, registry: &Registry, scripts: &dyn ScriptHost) -> Result<(), EngineError> {
    run::check(plan, registry, scripts)
}

/// The same as [`check`], and that other machines can go on where a part of `plan` is lost ([`Takeover`]), although nobody knows how far that part
/// has come.
///
/// # Errors
/// When something in it is wrong, or virtual users would do something twice that is to be done once.
pub fn check_takeover(plan: &Plan, registry: &Registry, scripts: &dyn ScriptHost) -> Result<(), EngineError> {
    run::check_takeover(plan, registry, scripts)
}
