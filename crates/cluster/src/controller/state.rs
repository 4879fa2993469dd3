//! The states of a controller, each with its data.

use std::collections::{BTreeSet, HashSet, VecDeque};

use brunt_engine::StopHandle;
use brunt_plan::plan::Plan;
use brunt_plan::share::Portion;
use brunt_protocol::scenario::Value;
use brunt_record::recording::LifecycleFigures;

use super::contact::Contact;
use super::progress::InProgress;
use super::waits::WaitLimits;
use super::{ChosenAgents, ClusterError, ClusterOptions, Command, Order};
use crate::messages::Announcement;

/// A controller's state. Each has the data that it needs, and decides which comes next.
pub(super) enum State {
    /// It asks for agents, until there are enough.
    Gathering(Gathering),
    /// It waits for agents to confirm that they are its own.
    Claiming(Claiming),
    /// It releases agents.
    Releasing(Releasing),
    /// The agents are its own, and wait for a run.
    Resting,
    /// It waits for agents that may take part in the next run, too.
    Joining(Box<Joining>),
    /// It brings agents to the start of a run.
    Starting(Box<Starting>),
    /// It waits for agents to end their work for a run that does not begin.
    Settling(Box<Settling>),
    /// It sees a run through.
    Running(Box<Running>),
    /// An agent runs the script's teardown.
    TearingDown(Box<TearingDown>),
    /// It compares clocks with all agents that are there, until this time.
    Comparing(u64),
    /// It has nothing more to do.
    Over,
}

/// The state that follows when time has passed.
pub(super) enum Next {
    /// It waits.
    Stays(State),
    /// This state is advanced, too.
    Moves(State),
}

/// A controller.
pub(crate) struct Controller {
    pub(super) contact: Contact,
    pub(super) terms: ClusterOptions,
    /// Whether messages on the way to its server are private.
    pub(super) is_private: bool,
    pub(super) state: State,
    /// Orders that it carries out once it rests.
    pub(super) orders: VecDeque<Command>,
    /// Ends the wait for agents.
    pub(super) stop: StopHandle,
    /// The result of taking agents, once that is known.
    pub(super) taken: Option<Result<ChosenAgents, ClusterError>>,
    /// The places of agents whose machines work for the run that begins.
    pub(super) working: BTreeSet<usize>,
    /// The plan that the agents have, in wire form's hash.
    pub(super) sent_plan: Option<String>,
    /// The names of agents that were lost, and may come back; and whether it has looked for them before the run that is to
    /// begin.
    pub(super) missing: BTreeSet<String>,
    pub(super) has_looked: bool,
    /// The reason if the bus is gone for good.
    pub(super) gone: Option<String>,
}

/// An agent by its name and its process.
pub(super) type AgentProcess = (String, u64);

/// Agents are being asked for.
pub(super) struct Gathering {
    pub(super) began: u64,
    /// Since when it listens, and when it asked last.
    pub(super) since: u64,
    pub(super) called: Option<u64>,
    /// Until when it lists agents, where none are to be claimed.
    pub(super) lists_until: Option<u64>,
    /// Agents that did not answer a claim: others come before them.
    pub(super) silent: HashSet<AgentProcess>,
}

/// Agents were claimed.
pub(super) struct Claiming {
    pub(super) gathering: Gathering,
    pub(super) since: u64,
    /// The places of agents that have not answered.
    pub(super) missing: BTreeSet<usize>,
    pub(super) is_busy: bool,
}

/// Agents are let go.
pub(super) struct Releasing {
    pub(super) since: u64,
    /// The next state, if there is one.
    pub(super) then: Option<Gathering>,
}

impl Gathering {
    pub(super) fn begin(now: u64) -> Self {
        Self { began: now, since: now, called: None, lists_until: None, silent: HashSet::new() }
    }

    pub(super) fn list(now: u64, until: u64) -> Self {
        Self { lists_until: Some(until), ..Self::begin(now) }
    }

    pub(super) fn is_silent(&self, agent: &Announcement) -> bool {
        self.silent.contains(&(agent.name.clone(), agent.instance))
    }

    /// Asks anew.
    pub(super) fn again(self, now: u64) -> Self {
        Self { since: now, called: None, ..self }
    }
}

/// A run that is to begin once all are there.
pub(super) struct Joining {
    pub(super) order: Order,
    pub(super) since: u64,
    pub(super) called: Option<u64>,
    /// The names of agents that were claimed and have not confirmed that, once some were.
    pub(super) claimed: Option<BTreeSet<String>>,
}

/// A run that is to begin.
pub(super) struct Starting {
    pub(super) run: u32,
    pub(super) order: Order,
    pub(super) plan: Plan,
    pub(super) announced: Vec<Announcement>,
    pub(super) portions: Vec<Portion>,
    /// The value that setup has returned, as soon as it has: it has to be torn down in any case.
    pub(super) given: SetupValue,
    /// The counts of setup.
    pub(super) left: LifecycleFigures,
    pub(super) stage: StartStage,
}

/// What a run waits for before it begins.
pub(super) enum StartStage {
    /// The agents at these places have yet to say that they have the plan, whose hash is this. They last got on with it
    /// at this time.
    Planning { missing: BTreeSet<usize>, hash: String, got_on: u64, left: usize },
    /// The script's setup is to return.
    SettingUp { since: u64 },
    /// Those at these places have yet to make their connections.
    Preparing { missing: BTreeSet<usize>, since: u64 },
}

/// A run that does not begin, for this reason. Agents end their work for it.
pub(super) struct Settling {
    pub(super) run: u32,
    pub(super) order: Order,
    pub(super) error: ClusterError,
    pub(super) given: SetupValue,
    pub(super) since: Option<u64>,
}

/// A run under way.
pub(super) struct Running {
    pub(super) order: Order,
    pub(super) progress: InProgress,
    /// Since when agents are to stop, and the same in the time for which the bus let messages through.
    pub(super) stopping_since: Option<u64>,
    pub(super) stopping_audible: u64,
    /// The limits of what its agents owe, and when it began, in the time for which the bus let messages through.
    pub(super) limits: WaitLimits,
    pub(super) began: u64,
}

/// The script's teardown.
pub(super) struct TearingDown {
    pub(super) run: u32,
    pub(super) given: Value<'static>,
    /// The place of the agent that runs it, once it was told.
    pub(super) place: Option<usize>,
    /// Since when it runs, in the time for which the bus let messages through.
    pub(super) since: u64,
    /// Since when its user wants it to end, on the controller's clock.
    pub(super) stopping_since: Option<u64>,
    pub(super) after: TeardownResult,
}

/// The result to report once a script is torn down.
pub(super) enum TeardownResult {
    /// The run did not begin, for this reason.
    NotBegun(Box<(Order, ClusterError)>),
    /// The run is over.
    Ran(Box<Running>),
}

impl TearingDown {
    pub(super) fn state(run: u32, given: Value<'static>, after: TeardownResult) -> State {
        State::TearingDown(Box::new(Self { run, given, place: None, since: 0, stopping_since: None, after }))
    }
}

/// The value to tear down after a run that does not begin, or has ended.
pub(super) type SetupValue = Option<Value<'static>>;

/// Answers an order that could not be carried out. Its sender may be gone.
pub(super) fn refuse(order: &Order, error: ClusterError) {
    let _ = order.begun.send(Err(error));
}
