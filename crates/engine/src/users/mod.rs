//! Virtual users on a worker: who they are, what each waits for, and the names by which they are counted.
//!
//! A user is a coroutine of the script, which [`Library`] holds; here are its slot, its calls and its connections.
//! [`crowd`] says when users come and iterate, [`resuming`] resumes them and does what they want, [`calling`] takes
//! their calls to connections, and [`outcomes`] brings back what came of them.

mod absences;
pub(crate) mod among_workers;
mod calling;
mod changing;
mod crowd;
mod delivering;
mod held;
mod names;
mod outcomes;
mod placing;
mod resuming;
mod showing;
mod slots;
mod stopping;
mod streaming;
mod tasks;
mod traces;
mod waiting;
mod workload;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use brunt_plan::plan::Plan;
use brunt_plan::profile::Profile;
use brunt_plan::scenario::Scenarios;
use brunt_plan::share::Share;
use brunt_plan::threshold::Selection;
use brunt_plan::timetable::Timetable;
use brunt_record::figures::NameId;
use brunt_record::outcome::OkStatus;
use brunt_record::time::Tick;

use self::absences::Presence;
use self::among_workers::AmongWorkers;
use self::calling::Throttle;
use self::crowd::Crowd;
use self::held::Held;
use self::names::Names;
use self::slots::{Chain, PreparedCall, State, UserCall};
use self::tasks::Meeting;
use self::traces::Traces;
use self::waiting::WaitingCalls;
use crate::control::Heard;
use crate::gate::{Horizon, Reach};
use crate::network::LoadEnd;
use crate::network::Network;
use crate::network::origins::OriginId;
use crate::slots::{Recycle, Slots};
use crate::trace::Trace;
use crate::transport::ConnectionId;
use brunt_protocol::scenario::Encoded;
use brunt_protocol::user::Heart;
use brunt_script::{Hook, Library, ScriptClient, ScriptError};

/// The network of virtual users, whose calls are known by the slots that hold them.
type UsersNetwork<D> = Network<D, u32>;

/// The state of a worker's heart while a script's function runs.
pub(crate) const IN_SCENARIO: u8 = Hook::Scenario as u8;
/// The time between two looks at whether a population has ended on the other workers, in nanoseconds.
const LOOK_NS: u64 = 1_000_000;
/// One step of users in this many is timed.
const TIMED: u32 = 16;

/// Why a user is resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wake {
    /// An iteration begins.
    Begin,
    /// Its pause is over.
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
    /// Its iterations are over, and it runs its last function; `true` if it stands between two iterations.
    Stop(bool),
    /// The wait of this number, for a message of the stream in this slot, has timed out.
    Late(u32, u64),
}

/// An event that is due at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Timer {
    at: Tick,
    /// Orders timers of the same time.
    number: u64,
    user: u32,
    /// The generation of the user: its slot may have become another user's.
    generation: u32,
    wake: TimedWake,
}

/// The purpose of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TimedWake {
    Begin,
    Go,
    Release(u32),
    /// The wait of this number for other users has timed out.
    Joined(u32),
    /// The wait of this number for a message has timed out.
    Late {
        slot: u32,
        wait: u64,
    },
}

/// How an iteration has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// Its function has returned. The next iteration begins `pacing_ns` after this one began. `ok`: whether all of its
    /// calls were ok.
    Returned { pacing_ns: u64, ok: bool },
    /// An error ended it. The next iteration begins `pacing_ns` after this one began.
    Failed { pacing_ns: u64 },
    /// The user ended itself.
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
    /// Other users: the wait of this number among those of its worker.
    Others(u32),
    /// The next message of the stream in this slot.
    Message(u32),
}

/// The current activity of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// It stands between two iterations, or has not begun the first.
    Nothing,
    /// An iteration.
    Iteration,
    /// Its iterations are over, and it runs its script's last function, or is about to.
    Last,
}

/// A virtual user.
#[derive(Debug)]
struct VirtualUser {
    /// Its number among all users of the run, from 1.
    id: u64,
    /// Its population, and the place of its scenario in the script.
    crowd: usize,
    place: u32,
    /// The name by which its scenario is counted.
    scenario: NameId,
    /// When its current activity began.
    began: Tick,
    doing: Doing,
    /// When it arrived, until its first call is made.
    arrived: Option<Tick>,
    /// The number of iterations left, if they are counted.
    iterations: Option<u64>,
    /// Its connections.
    connections: Vec<ConnectionId>,
    /// The connections that it holds for itself.
    held: Vec<Held>,
    /// Calls that wait for one of its connections.
    waiting: WaitingCalls,
    /// Calls whose answers it may read.
    delivered: Vec<u32>,
    /// Calls that it has begun, in their order.
    started: Vec<u32>,
    /// Streams that it has not read to the end.
    streams: Vec<u32>,
    /// Calls whose answers led on, by their tickets; and the one that its next call continues.
    chains: Vec<(u64, Chain)>,
    continues: Option<Chain>,
    /// The number of calls that it has begun and that have not ended.
    pending: usize,
    /// What it waits for.
    wait: Wait,
    /// The outcome of its iteration, while calls that it began, or its tasks, have not ended.
    outcome: Option<Outcome>,
    /// Whether its last call reached no connection.
    found_nobody: bool,
    /// Its time, and how much of that it had no server.
    presence: Presence,
    /// The user whose task it is, if it is one.
    home: Option<u32>,
    /// Its tasks.
    tasks: Vec<u32>,
    /// Whether it is a cancelled task.
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

    /// A user with this number, of a population and a scenario, who has done nothing so far.
    fn new(id: u64, crowd: usize, place: u32, scenario: NameId) -> Self {
        Self {
            id,
            crowd,
            place,
            scenario,
            began: Tick::EPOCH,
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
            presence: Presence::new(false),
            home: None,
            tasks: Vec::new(),
            cancelled: false,
        }
    }
}

impl Recycle for VirtualUser {
    fn recycle(&mut self) {
        fn emptied<T>(list: &mut Vec<T>) -> Vec<T> {
            list.clear();
            std::mem::take(list)
        }
        *self = Self {
            connections: emptied(&mut self.connections),
            held: emptied(&mut self.held),
            delivered: emptied(&mut self.delivered),
            started: emptied(&mut self.started),
            streams: emptied(&mut self.streams),
            chains: emptied(&mut self.chains),
            tasks: emptied(&mut self.tasks),
            ..Self::new(0, self.crowd, self.place, self.scenario)
        };
    }
}

/// The owner of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// There is no connection.
    Nobody,
    /// A virtual user.
    User(u32),
    /// A virtual user who holds it for itself until it closes it, and names it in its calls.
    Held(u32),
    /// All users.
    Pool,
}

/// The virtual users of a worker.
pub(crate) struct VirtualUsers {
    library: Box<dyn Library>,
    clients: Vec<ScriptClient>,
    /// The origins of the clients' base URLs, as far as they are known.
    bases: Vec<Option<OriginId>>,
    crowds: Vec<Crowd>,
    among: AmongWorkers,
    users: Slots<VirtualUser>,
    alive: usize,
    prepared: Vec<PreparedCall>,
    calls: Slots<UserCall>,
    /// Connections with a call to be sent after this round of resumed users.
    gathered: Vec<ConnectionId>,
    /// The number of the last wait for a message.
    waits: u64,
    /// Whether calls are gathered.
    gathers: bool,
    /// The owners of the network's connections, by their numbers.
    owners: Vec<Owner>,
    /// Whether calls are made, and the horizon up to which they may be.
    loading: bool,
    reach: Reach,
    /// Changes made to the run, and when its measured part began on its clock.
    heard: Heard,
    began: Tick,
    /// Why the load ends, if a script has ended it.
    leaving: Option<LoadEnd>,
    ready: VecDeque<(u32, u32, Wake)>,
    timers: BinaryHeap<Reverse<Timer>>,
    timers_set: u64,
    names: Names,
    throttle: Option<Throttle>,
    traces: Traces,
    ok_status: OkStatus,
    /// By client: the statuses that its protocol calls a success. Empty where the run says which are.
    own_statuses: Vec<Option<OkStatus>>,
    /// Users who wait for others.
    meetings: Vec<Meeting>,
    /// The number of waits for other users so far.
    joins: u32,
    /// The number of the next user, and the distance to the one after it.
    next_id: u64,
    share: Share,
    heart: Heart,
    steps: u32,
    busy: Duration,
    /// How long users may go on after the end of a closed injection, in nanoseconds.
    grace_ns: u64,
    /// The first error that ended an iteration.
    first_error: Option<String>,
    /// The number of iterations that have ended, in error or not.
    ended: u64,
    /// Sees everything that users do.
    trace: Option<Arc<dyn Trace>>,
    /// Sees what the script logs; with `shows_failures` also the calls that failed.
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
        let clients = library.clients();
        let is_default = plan.ok_status == OkStatus::of_scenarios();
        let own_statuses =
            if is_default { clients.iter().map(|client| client.caller.ok_status()).collect() } else { Vec::new() };
        Self {
            bases: vec![None; clients.len()],
            clients,
            library,
            crowds,
            among,
            users: Slots::default(),
            alive: 0,
            prepared: Vec::new(),
            calls: Slots::default(),
            gathered: Vec::new(),
            waits: 0,
            gathers: false,
            owners: Vec::new(),
            loading: false,
            reach: Reach::default(),
            heard: Heard::default(),
            began: Tick::EPOCH,
            leaving: None,
            ready: VecDeque::new(),
            timers: BinaryHeap::new(),
            timers_set: 0,
            names: Names::selecting(Selection::all(plan.conditions())),
            throttle: throttle.map(|profile| Throttle {
                planned: Timetable::new(profile.clone()),
                profile,
                workers: share.count() as f64,
                began: Tick::EPOCH,
                calls: share.index() as f64,
                hint: 0,
            }),
            traces: Traces::from_plan(plan),
            ok_status: plan.ok_status.clone(),
            own_statuses,
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

    /// The same users, who make calls only up to this horizon.
    pub(crate) fn within(self, horizon: Horizon) -> Self {
        Self { reach: horizon.into(), ..self }
    }

    /// The heart, which shows whether the script returns.
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
        self.users.get_mut(user)
    }

    /// The owner of a connection.
    fn owner(&self, token: ConnectionId) -> Owner {
        self.owners.get(token.place()).copied().unwrap_or(Owner::Nobody)
    }

    fn set_owner(&mut self, token: ConnectionId, owner: Owner) {
        if token.place() >= self.owners.len() {
            self.owners.resize(token.place() + 1, Owner::Nobody);
        }
        if let Some(place) = self.owners.get_mut(token.place()) {
            *place = owner;
        }
    }

    /// Whether calls are made.
    fn is_loading(&self) -> bool {
        self.loading && self.leaving.is_none()
    }

    /// The bytes and properties that a call sends.
    #[inline]
    fn encoded<'a>(&'a self, call: &'a UserCall) -> &'a Encoded {
        let prepared = call.prepared.and_then(|prepared| self.prepared.get(prepared as usize));
        prepared.map_or(&call.encoded, |prepared| &prepared.encoded)
    }

    /// Begins a step of a user. Returns the instant if this step is timed.
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

    fn set_timer(&mut self, at: Tick, user: u32, wake: TimedWake) {
        let generation = self.users.generation(user);
        self.timers_set += 1;
        self.timers.push(Reverse(Timer { at, number: self.timers_set, user, generation, wake }));
    }

    #[inline]
    fn make_ready(&mut self, user: u32, wake: Wake) {
        let generation = self.users.generation(user);
        self.ready.push_back((user, generation, wake));
    }
}
