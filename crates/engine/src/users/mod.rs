//! Virtual users on a worker: who there is, what each waits for, and what they are called by.
//!
//! A user is a coroutine of the script, which [`Library`] holds; here are its slot, its calls and its connections.
//! [`crowd`] says when users come and iterate, [`resuming`] resumes them and does what they want, [`calling`] takes
//! their calls to connections, and [`outcomes`] brings back what came of them.

pub(crate) mod among_workers;
mod calling;
mod changing;
mod crowd;
mod delivering;
mod held;
mod names;
mod outcomes;
mod phases;
mod placing;
mod resuming;
mod showing;
mod slots;
mod stopping;
mod streaming;
mod tasks;
mod waiting;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use brunt_plan::plan::Plan;
use brunt_plan::profile::Profile;
use brunt_plan::scenario::Scenarios;
use brunt_plan::share::Share;
use brunt_plan::target::Target;
use brunt_plan::threshold::Selection;
use brunt_plan::timetable::Timetable;
use brunt_record::figures::NameId;
use brunt_record::outcome::OkStatus;

use self::among_workers::AmongWorkers;
use self::calling::Throttle;
use self::crowd::Crowd;
use self::held::Held;
use self::names::Names;
use self::slots::{Chain, State, UserCall};
use self::tasks::Meeting;
use self::waiting::WaitingCalls;
use crate::control::Heard;
use crate::gate::{Horizon, Reach};
use crate::network::Network;
use crate::trace::Trace;
use crate::worker::Leaving;
use brunt_protocol::scenario::Encoded;
use brunt_protocol::user::Heart;
use brunt_script::{Hook, Library, ScriptClient, ScriptError};

/// The network of virtual users, whose calls are known by the slots that hold them.
type UsersNetwork<D> = Network<D, u32>;

/// What a worker's heart says while a script's function runs.
pub(crate) const IN_SCENARIO: u8 = Hook::Scenario as u8;
/// How often it is looked whether a population is over on the other workers, in nanoseconds.
const LOOK_NS: u64 = 1_000_000;
/// Of how many steps of users one has its time taken.
const TIMED: u32 = 16;

/// Why a user is resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wake {
    /// An iteration begins.
    Begin,
    /// What it paused for is over.
    Go,
    /// The call in this slot has ended.
    Ended(u32),
    /// All calls that it had begun have ended.
    AllEnded,
    /// The call in this slot may be made now, under the throttle.
    Release(u32),
    /// The stream in this slot has a message, or has ended.
    Streamed(u32),
    /// The stream that it waited for was left by another task of its user.
    StreamOver,
    /// Its iterations are over, and it does what it does last; whether it stands between two.
    Stop(bool),
    /// The wait of this number for a message of the stream in this slot has taken long enough.
    Late(u32, u64),
}

/// Something that is due at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Timer {
    at: u64,
    /// Keeps those of the same time in order.
    number: u64,
    user: u32,
    /// Whose it is: a user's slot may have become another's.
    generation: u32,
    wake: TimedWake,
}

/// What a timer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TimedWake {
    Begin,
    Go,
    Release(u32),
    /// What it waits for others to do, by its number, has taken too long.
    Joined(u32),
    /// The wait of this number for a message has.
    Late {
        slot: u32,
        wait: u64,
    },
}

/// How an iteration has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// Its function has returned; the next begins so long after this one began. Whether all of its calls were ok.
    Returned { pacing_ns: u64, ok: bool },
    /// By an error; the next begins so long after this one began, as above.
    Failed { pacing_ns: u64 },
    /// The user ends itself.
    Left,
}

/// What a user waits for: one thing at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// Nothing, or the end of a pause.
    Nothing,
    /// The end of the call in this slot.
    Call(u32),
    /// The ends of all calls that it has begun.
    AllCalls,
    /// What others do: the wait of this number among those of its worker.
    Others(u32),
    /// The next message of the stream in this slot.
    Message(u32),
}

/// What a user is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// It stands between two iterations, or has not begun the first.
    Nothing,
    /// An iteration.
    Iteration,
    /// Its iterations are over, and it does what its script wants done last, or is about to.
    Last,
}

/// A virtual user.
#[derive(Debug)]
struct VirtualUser {
    generation: u32,
    /// Its number among all users of the run, from 1; 0 for a slot without a user.
    id: u64,
    /// Its population, and the place of its scenario in the script.
    crowd: usize,
    place: u32,
    /// What its scenario is counted by.
    scenario: NameId,
    /// When what it does began.
    began: u64,
    doing: Doing,
    /// When it came, while its first call is not made.
    arrived: Option<u64>,
    /// How many iterations it has left, if they are counted.
    iterations: Option<u64>,
    /// Its connections.
    connections: Vec<usize>,
    /// Those that it has for itself.
    held: Vec<Held>,
    /// Calls that wait for one of them.
    waiting: WaitingCalls,
    /// Calls whose answers it may read.
    delivered: Vec<u32>,
    /// Calls that it has begun, in their order.
    started: Vec<u32>,
    /// Streams whose ends it has not come to.
    streams: Vec<u32>,
    /// Calls whose answers led on, by their tickets; and the one with which its next call goes on.
    chains: Vec<(u64, Chain)>,
    continues: Option<Chain>,
    /// How many of the calls that it has begun have not ended.
    pending: usize,
    /// What it waits for.
    wait: Wait,
    /// How its iteration has ended, while calls that it began, or its tasks, have not.
    outcome: Option<Outcome>,
    /// Whether its last call came to no connection.
    found_nobody: bool,
    /// Whose task it is, if it is one.
    home: Option<u32>,
    /// Its tasks.
    tasks: Vec<u32>,
    /// Whether it is a task that goes no further.
    cancelled: bool,
}

impl VirtualUser {
    /// The call that it waits for.
    fn awaited(&self) -> Option<u32> {
        match self.wait {
            Wait::Call(slot) => Some(slot),
            Wait::Nothing | Wait::AllCalls | Wait::Others(_) | Wait::Message(_) => None,
        }
    }

    /// The user with this number, of a population and a scenario, who has done nothing so far.
    fn new(id: u64, crowd: usize, place: u32, scenario: NameId) -> Self {
        Self {
            generation: 0,
            id,
            crowd,
            place,
            scenario,
            began: 0,
            doing: Doing::Nothing,
            arrived: None,
            iterations: None,
            connections: Vec::new(),
            held: Vec::new(),
            waiting: WaitingCalls::default(),
            delivered: Vec::new(),
            started: Vec::new(),
            streams: Vec::new(),
            chains: Vec::new(),
            continues: None,
            pending: 0,
            wait: Wait::Nothing,
            outcome: None,
            found_nobody: false,
            home: None,
            tasks: Vec::new(),
            cancelled: false,
        }
    }
}

/// Whose a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// There is no connection.
    Nobody,
    /// A virtual user.
    User(u32),
    /// A virtual user who has it for itself until it closes it, and calls on it by name.
    Held(u32),
    /// Every user.
    Pool,
}

/// A call encoded once and reused.
#[derive(Debug)]
struct PreparedCall {
    client: usize,
    encoded: Encoded,
    /// Where it goes, if not to the client's base.
    target: Option<Target>,
    /// The origin that this is, once it is known.
    origin: Option<usize>,
}

/// The virtual users of a worker.
pub(crate) struct VirtualUsers {
    library: Box<dyn Library>,
    clients: Vec<ScriptClient>,
    /// The origins of the clients' bases, as far as they are known.
    bases: Vec<Option<usize>>,
    crowds: Vec<Crowd>,
    among: AmongWorkers,
    users: Vec<VirtualUser>,
    vacant_users: Vec<u32>,
    alive: usize,
    prepared: Vec<PreparedCall>,
    calls: Vec<UserCall>,
    vacant_calls: Vec<u32>,
    /// Connections with a call to be sent after this round of resumed users.
    gathered: Vec<usize>,
    /// The number of the last wait for a message.
    waits: u64,
    /// Whether calls are gathered.
    gathers: bool,
    /// Whose the network's connections are, by their numbers.
    owners: Vec<Owner>,
    /// Whether calls are made, and until when at most.
    loading: bool,
    reach: Reach,
    /// What was changed about the run, and when its measured part began on its clock.
    heard: Heard,
    began: u64,
    /// Why the load ends, if a script has ended it.
    leaving: Option<Leaving>,
    ready: VecDeque<(u32, u32, Wake)>,
    timers: BinaryHeap<Reverse<Timer>>,
    timers_set: u64,
    names: Names,
    throttle: Option<Throttle>,
    ok_status: OkStatus,
    /// Users who wait for others.
    meetings: Vec<Meeting>,
    /// How often somebody has waited for what others do.
    joins: u32,
    /// The number of the next user, and how far the one after it is.
    next_id: u64,
    share: Share,
    heart: Heart,
    steps: u32,
    busy: Duration,
    /// How long users may go on after the end of a closed injection, in nanoseconds.
    grace_ns: u64,
    /// The first error that ended an iteration.
    first_error: Option<String>,
    /// Iterations that have come to their end, in error or not.
    ended: u64,
    /// Sees everything that users do.
    trace: Option<Arc<dyn Trace>>,
    /// Sees what the script writes down, and, if so, which calls failed.
    witness: Option<Arc<dyn Trace>>,
    shows_failures: bool,
}

impl VirtualUsers {
    /// One worker's share of the users, who live in `library`.
    ///
    /// # Errors
    /// When the script has none of the scenarios that the plan names.
    pub(crate) fn new(
        library: Box<dyn Library>,
        plan: &Plan,
        scenarios: &Scenarios,
        among: &AmongWorkers,
        share: Share,
    ) -> Result<Self, ScriptError> {
        let mut crowds = Vec::new();
        for (place, population) in scenarios.populations.iter().enumerate() {
            crowds.push(Crowd::new(population, place, library.as_ref(), plan, share, among.quota(place))?);
        }
        Ok(Self::with(library, plan, scenarios.throttle.clone(), crowds, among.clone(), share))
    }

    /// One user, who goes once through the scenario with this place in the script.
    pub(crate) fn once(library: Box<dyn Library>, plan: &Plan, place: u32, name: &str) -> Self {
        let crowd = Crowd::once(place, name);
        Self::with(library, plan, None, vec![crowd], AmongWorkers::of_one(), Share::WHOLE)
    }

    fn with(
        library: Box<dyn Library>,
        plan: &Plan,
        throttle: Option<Profile>,
        crowds: Vec<Crowd>,
        among: AmongWorkers,
        share: Share,
    ) -> Self {
        Self {
            bases: vec![None; library.clients().len()],
            clients: library.clients(),
            library,
            crowds,
            among,
            users: Vec::new(),
            vacant_users: Vec::new(),
            alive: 0,
            prepared: Vec::new(),
            calls: Vec::new(),
            vacant_calls: Vec::new(),
            gathered: Vec::new(),
            waits: 0,
            gathers: false,
            owners: Vec::new(),
            loading: false,
            reach: Reach::default(),
            heard: Heard::default(),
            began: 0,
            leaving: None,
            ready: VecDeque::new(),
            timers: BinaryHeap::new(),
            timers_set: 0,
            names: Names::selecting(Selection::all(plan.conditions())),
            throttle: throttle.map(|profile| Throttle {
                planned: Timetable::new(profile.clone()),
                profile,
                workers: share.count() as f64,
                began: 0,
                calls: share.index() as f64,
                hint: 0,
            }),
            ok_status: plan.ok_status.clone(),
            meetings: Vec::new(),
            joins: 0,
            next_id: share.index() + 1,
            share,
            heart: Heart::default(),
            steps: 0,
            busy: Duration::ZERO,
            grace_ns: plan.drain_ns,
            first_error: None,
            ended: 0,
            trace: None,
            witness: None,
            shows_failures: false,
        }
    }

    /// The same, who make calls only up to this horizon.
    pub(crate) fn within(self, horizon: Horizon) -> Self {
        Self { reach: horizon.into(), ..self }
    }

    /// The same, of a share that is taken over once the measured part has lasted so long, in nanoseconds: users due before are
    /// skipped, and a number of users starts afresh.
    pub(crate) fn joining(mut self, after_ns: u64) -> Self {
        let gone: u64 = self.crowds.iter_mut().map(|crowd| crowd.join(after_ns)).sum();
        self.next_id += gone * self.share.count();
        self
    }

    /// Shows whether the script comes back.
    pub(crate) fn heart(&self) -> Heart {
        self.heart.clone()
    }

    /// The clients of the script.
    pub(crate) fn clients(&self) -> &[ScriptClient] {
        &self.clients
    }

    /// Whether an iteration has come to its end, in error or not.
    pub(crate) fn has_finished(&self) -> bool {
        self.ended > 0
    }

    /// The script's state, and the first error that ended an iteration.
    pub(crate) fn into_library(self) -> (Box<dyn Library>, Option<String>) {
        (self.library, self.first_error)
    }

    fn user(&mut self, user: u32) -> Option<&mut VirtualUser> {
        self.users.get_mut(user as usize).filter(|user| user.id > 0)
    }

    /// Whose a connection is.
    fn owner(&self, token: usize) -> Owner {
        self.owners.get(token).copied().unwrap_or(Owner::Nobody)
    }

    fn set_owner(&mut self, token: usize, owner: Owner) {
        if token >= self.owners.len() {
            self.owners.resize(token + 1, Owner::Nobody);
        }
        if let Some(place) = self.owners.get_mut(token) {
            *place = owner;
        }
    }

    /// Whether calls are made.
    fn is_loading(&self) -> bool {
        self.loading && self.leaving.is_none()
    }

    /// What a call sends.
    #[inline]
    fn encoded<'a>(&'a self, call: &'a UserCall) -> &'a Encoded {
        let prepared = call.prepared.and_then(|prepared| self.prepared.get(prepared as usize));
        prepared.map_or(&call.encoded, |prepared| &prepared.encoded)
    }

    /// Whether the time of this step of a user is taken.
    fn begin_step(&mut self) -> Option<Instant> {
        self.heart.enter(IN_SCENARIO);
        self.steps = self.steps.wrapping_add(1);
        self.steps.is_multiple_of(TIMED).then(Instant::now)
    }

    fn end_step(&mut self, began: Option<Instant>) {
        self.heart.leave();
        if let Some(began) = began {
            self.busy += began.elapsed();
        }
    }

    fn set_timer(&mut self, at: u64, user: u32, wake: TimedWake) {
        let generation = self.users.get(user as usize).map_or(0, |user| user.generation);
        self.timers_set += 1;
        self.timers.push(Reverse(Timer { at, number: self.timers_set, user, generation, wake }));
    }

    #[inline]
    fn make_ready(&mut self, user: u32, wake: Wake) {
        let generation = self.users.get(user as usize).map_or(0, |user| user.generation);
        self.ready.push_back((user, generation, wake));
    }
}
