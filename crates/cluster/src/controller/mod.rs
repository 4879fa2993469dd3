//! A controller: takes agents, lets them carry out runs together, and merges their reports.
//!
//! [`Cluster`] is its public side. Below it, on a thread of its own, [`drive`] has the connection to the bus and the
//! clock. It drives the [`machine`], which is pure: [`contact`] exchanges messages, [`gathering`] takes agents,
//! [`startup`] brings them to the start of a run, [`execution`] sees the run through, and [`progress`] keeps its
//! accounts.

mod allowance;
mod among;
mod contact;
mod dealing;
mod drive;
mod execution;
mod following;
mod gathering;
mod in_run;
mod inspection;
mod iterations;
mod joining;
mod log_due;
pub(crate) mod machine;
mod peer;
mod progress;
mod startup;
pub(crate) mod state;
mod waits;

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use brunt_engine::{Agents, Control, Observer, Report, StopHandle};
use brunt_plan::plan::Plan;
use brunt_plan::wire::WireError;
use brunt_protocol::replay::LogTimetable;
use brunt_record::agents::AgentPart;
use brunt_record::recording::LifecycleFigures;
use brunt_record::recording::Recording;
use brunt_record::replayed::LogRead;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use self::drive::Drive;
pub use self::waits::{Awaited, Notice, Waiting};
use crate::bus::{Bus, BusError};
use crate::clock::Offset;
use crate::messages::Announcement;
use crate::roster::{RosterError, WantedAgents, Workers};

/// How often a controller looks after its agents, in nanoseconds.
const LOOK_NS: u64 = 50_000_000;
/// How often it asks who is there, in nanoseconds.
const CALL_NS: u64 = 400_000_000;
/// How long to listen for agents whose number is not known, in nanoseconds.
const LISTEN_NS: u64 = 1_500_000_000;
/// How often clocks are compared, in nanoseconds: before a run, and from then on. The latter is a little more than a second, so that each second
/// that an agent reports is acknowledged with the next comparison.
const COMPARE_AT_FIRST_NS: u64 = 20_000_000;
const COMPARE_NS: u64 = 1_100_000_000;
/// The interval during a load, as each note grants how far the agent may make calls; and with more agents than
/// [`MANY`].
const GRANT_NS: u64 = 250_000_000;
const GRANT_MANY_NS: u64 = 500_000_000;
const MANY: usize = 200;
/// How far ahead of the newest answered note the load is granted, in nanoseconds: where the run goes on without a lost
/// agent, and where a loss ends it.
const AHEAD_NS: u64 = 8_000_000_000;
const AHEAD_BRIEFLY_NS: u64 = 3_500_000_000;
/// Comparisons before a run begins.
const COMPARISONS: usize = 8;
/// How long after all are ready a run begins, in nanoseconds: time for the message to reach all.
const LEAD_NS: u64 = 250_000_000;
/// How long agents may take to take a claim or to be released, in nanoseconds.
const MANNERS_NS: u64 = 5_000_000_000;
/// Messages taken before it looks after its agents again.
const MOST_AT_ONCE: usize = 512;
/// How often whoever gave an order looks whether the controller is still there.
const LOOK: Duration = Duration::from_nanos(LOOK_NS);
/// How often a NATS server that is not there is tried again, on average.
const AGAIN: Duration = Duration::from_millis(300);
/// How long the last flush of a controller may take: an absent bus is not waited for.
const LAST_FLUSH: Duration = Duration::from_millis(400);

/// What happens to a run that loses an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnLost {
    /// The others go on. Calls due on the lost one count as unsent, or as unknown where it may have sent them.
    #[default]
    Continue,
    /// It ends.
    Abort,
}

/// How agents carry runs out.
#[derive(Debug, Clone)]
pub struct ClusterOptions {
    /// Which agents.
    pub wanted: WantedAgents,
    /// How long to wait for them.
    pub patience: Duration,
    /// What happens to a run that loses an agent.
    pub on_lost: OnLost,
    /// Whether references to the environment are looked up on each agent, and not here.
    pub secrets_from_agents: bool,
    /// The controller's name, for agents that another controller asks.
    pub name: String,
    /// Hears news, on the controller's thread.
    pub notice: fn(&Notice),
}

/// Why agents could not carry a run out.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The bus.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The agents that are there.
    #[error(transparent)]
    Roster(#[from] RosterError),
    /// The plan cannot be sent.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// There are too few.
    #[error("{wanted} are wanted, and {found} came in {}s{}", patience.as_secs_f64(), others(left_out))]
    TooFew {
        /// Which agents.
        wanted: String,
        /// Free ones that came.
        found: usize,
        /// How long was waited.
        patience: Duration,
        /// Other agents that came, with the reasons for which they were not taken.
        left_out: Vec<(String, String)>,
    },
    /// Anyone on the way could read the plan's secrets.
    #[error(
        "the plan has secrets, and the way to the NATS server is not private: use tls://, or --secrets-from-agents to have each \
         agent take them from its own environment"
    )]
    Secrets,
    /// Anyone on the way to an agent could read the plan's secrets.
    #[error(
        "the plan has secrets, and the way from agent '{agent}' to the NATS server is not private: use tls:// there, or \
         --secrets-from-agents to have each agent take them from its own environment"
    )]
    OpenWay {
        /// Its name.
        agent: String,
    },
    /// Between two servers anyone could read the plan's secrets.
    #[error(
        "the plan has secrets, and agent '{agent}' is on another server of the NATS cluster: connect it to the same one, or use \
         --secrets-from-agents to have each agent take them from its own environment"
    )]
    OtherServer {
        /// Its name.
        agent: String,
    },
    /// A file that the plan only names.
    #[error(
        "{file} is streamed from disk, and agents do not have it: leave stream out, so that the plan carries the rows"
    )]
    Streamed {
        /// The file.
        file: String,
    },
    /// An agent cannot do it.
    #[error("agent '{agent}': {problem}")]
    Agent {
        /// Its name.
        agent: String,
        /// Why not.
        problem: String,
        /// Whether the target cannot be reached, or the load is too large for the agent; otherwise the plan is wrong.
        is_impossible: bool,
    },
    /// No agent is left for the run.
    #[error("no agent is left: all were lost, and none came back")]
    NobodyLeft,
    /// An agent was lost before the run began.
    #[error("agent '{agent}' was lost before the run began: {reason}")]
    LostBefore {
        /// Its name.
        agent: String,
        /// The cause.
        reason: String,
        /// How many agents are left.
        left: usize,
    },
    /// It was ended before it began.
    #[error("ended before the agents were ready")]
    Interrupted,
    /// The control thread is gone.
    #[error("the thread that speaks with the agents has ended; this is a defect of brunt, please report it")]
    Defect,
}

fn others(left_out: &[(String, String)]) -> String {
    const NAMED: usize = 10;
    let named = left_out.iter().take(NAMED).map(|(agent, why)| format!("; {agent} {why}"));
    let more = left_out.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!("; and {more} more cannot be taken"));
    named.chain(more).collect()
}

impl ClusterError {
    /// The same where the script's teardown has failed as well.
    fn and_teardown(self, agent: String, failed: &str) -> Self {
        let also = |text: String| format!("{text}; its teardown failed, too: {failed}");
        match self {
            Self::LostBefore { agent, reason, left } => Self::LostBefore { agent, reason: also(reason), left },
            Self::Agent { agent, problem, is_impossible } => {
                Self::Agent { agent, problem: also(problem), is_impossible }
            }
            Self::Interrupted => {
                let problem = format!("the script's teardown failed: {failed}");
                Self::Agent { agent, problem, is_impossible: false }
            }
            other => other,
        }
    }
}

/// The result of a run.
pub struct Outcome {
    /// The plan, with the number of workers that all agents had together.
    pub plan: Plan,
    /// What happened.
    pub run: Recording,
    /// Whether it was ended because an agent was lost.
    pub lost_its_agents: bool,
    /// Agents' accounts of a log, and of their parts, by name. A lost agent may not have sent one.
    pub logs: Vec<(String, LogRead)>,
}

/// Agents that belong to this controller, until it is dropped.
pub struct Cluster {
    commands: UnboundedSender<Command>,
    thread: Option<JoinHandle<()>>,
    agents: Vec<Announcement>,
    left_out: Vec<(String, String)>,
}

/// Agents that were taken, and others that were there, fit, and were not: their names, and why not.
pub(crate) struct ChosenAgents {
    pub(crate) agents: Vec<Announcement>,
    pub(crate) left_out: Vec<(String, String)>,
}

/// An order to the thread that speaks with the agents.
pub(crate) enum Command {
    Run(Box<Order>),
    Release,
}

/// A run to be carried out.
pub(crate) struct Order {
    pub(crate) plan: Plan,
    pub(crate) workers: Workers,
    pub(crate) reports: Sender<Report>,
    pub(crate) control: Control,
    pub(crate) stop: StopHandle,
    pub(crate) begun: Sender<Result<Startup, ClusterError>>,
    pub(crate) over: Sender<RunRemainder>,
    /// The calls of the log, if the plan replays one.
    pub(crate) timetable: Option<Box<dyn LogTimetable>>,
}

/// A run that begins, and the agents that carry it out.
pub(crate) struct Startup {
    pub(crate) agents: Vec<String>,
    /// What the script's setup has left.
    pub(crate) left: LifecycleFigures,
}

/// The rest of a finished run's result.
pub(crate) struct RunRemainder {
    pub(crate) agents: Vec<AgentPart>,
    pub(crate) status_names: BTreeMap<u16, String>,
    pub(crate) redirected_to: Option<String>,
    /// The reason for its failure, besides those that agents report.
    pub(crate) failed: Option<String>,
    /// What the script's teardown has left.
    pub(crate) left: LifecycleFigures,
    pub(crate) lost_its_agents: bool,
    /// Agents' accounts of a log, by name.
    pub(crate) logs: Vec<(String, LogRead)>,
}

impl RunRemainder {
    /// Completes a recording that was merged from agents' reports.
    pub(crate) fn complete(self, run: Recording) -> Recording {
        let Self { agents, mut status_names, redirected_to, failed, left, .. } = self;
        // Each agent knows the names that its own calls met.
        status_names.extend(run.measured.figures.status_names().shown());
        let mut run = Recording { agents, status_names, redirected_to, ..run };
        run.torn_down(left);
        if let Some(reason) = failed {
            run.fail(reason);
        }
        run
    }
}

/// The agents that are there, and within `patience`.
///
/// # Errors
/// When the bus cannot be used.
pub fn list(bus: &Bus, patience: Duration) -> Result<Vec<(Announcement, Option<Offset>)>, ClusterError> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let mut drive = Drive::connect(bus, "list").await?;
        let mut controller = drive.list(patience);
        drive.until_over(&mut controller).await?;
        Ok(controller.agents())
    })
}

fn runtime() -> Result<tokio::runtime::Runtime, ClusterError> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|error| BusError::Ended { problem: error.to_string() }.into())
}

impl Cluster {
    /// Waits for agents and takes them.
    ///
    /// # Errors
    /// When there are too few, or they cannot be used.
    pub fn take(bus: &Bus, terms: &ClusterOptions, stop: &StopHandle) -> Result<Self, ClusterError> {
        let (commands, orders) = unbounded_channel();
        let (taken, answer) = channel();
        let (bus, terms, stop) = (bus.clone(), terms.clone(), stop.clone());
        let work = move || {
            let done = runtime().map(|runtime| {
                runtime.block_on(async move {
                    match Drive::connect_within(&bus, &terms, &stop).await {
                        Err(error) => drop(taken.send(Err(error))),
                        Ok(mut drive) => {
                            let mut controller = drive.controller(terms, stop);
                            drive.serve(&mut controller, orders, &taken).await;
                        }
                    }
                });
            });
            drop(done);
        };
        let thread =
            std::thread::Builder::new().name("agents".to_owned()).spawn(work).map_err(|_| ClusterError::Defect)?;
        let ChosenAgents { agents, left_out } = answer.recv().map_err(|_| ClusterError::Defect)??;
        Ok(Self { commands, thread: Some(thread), agents, left_out })
    }

    /// The agents, in the order of their numbers.
    pub fn agents(&self) -> &[Announcement] {
        &self.agents
    }

    /// Agents that were there, suitable and not taken, with the reasons; empty where only a number of agents was asked
    /// for.
    pub fn left_out(&self) -> &[(String, String)] {
        &self.left_out
    }

    /// Lets the agents carry out `plan`, which `control` changes while it goes on, and returns what happened. Blocks
    /// until it is over. A plan that replays a log needs that log's timetable.
    ///
    /// # Errors
    /// When no load could be put on anything.
    pub fn run(
        &self,
        plan: &Plan,
        workers: Workers,
        timetable: Option<Box<dyn LogTimetable>>,
        observer: &mut dyn Observer,
        control: &Control,
        stop: &StopHandle,
    ) -> Result<Outcome, ClusterError> {
        let ((reports, reported), (begun, beginning), (over, ending)) = (channel(), channel(), channel());
        // Aborting this run must not stop others.
        let stop = &stop.of_run();
        let epoch = Instant::now();
        control.ready_elsewhere(plan, move || epoch.elapsed().as_nanos() as u64);
        let (plan_of, control_of, stop_of) = (plan.clone(), control.clone(), stop.clone());
        let order =
            Order { plan: plan_of, workers, reports, control: control_of, stop: stop_of, begun, over, timetable };
        self.commands.send(Command::Run(Box::new(order))).map_err(|_| ClusterError::Defect)?;
        let Startup { agents, left } = beginning.recv().map_err(|_| ClusterError::Defect)??;
        let started_unix_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        let agents = Agents { names: &agents, left: &left };
        let run = brunt_engine::gather(plan, agents, &reported, observer, control, stop, started_unix_ms);
        let mut over = await_over(&ending)?;
        let logs = std::mem::take(&mut over.logs);
        // The run is shown with its total number of threads.
        let workers = over.agents.iter().map(|agent| agent.workers).sum();
        let lost_its_agents = over.lost_its_agents;
        let run = over.complete(run);
        Ok(Outcome { plan: Plan { workers, ..plan.clone() }, run, lost_its_agents, logs })
    }
}

fn await_over(ending: &Receiver<RunRemainder>) -> Result<RunRemainder, ClusterError> {
    loop {
        match ending.recv_timeout(LOOK) {
            Ok(over) => return Ok(over),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(ClusterError::Defect),
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // A dead thread has released nobody; the agents give up by themselves.
        let _ = self.commands.send(Command::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
