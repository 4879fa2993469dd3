//! Virtual users on a worker: who there is, what each waits for, and what they are called by.
//!
//! A user is a coroutine of the script, which [`Library`] holds; here are its slot, its calls and its connections.
//! [`crowd`] says when users come and iterate, [`resuming`] resumes them and does what they want, [`calling`] takes
//! their calls to connections, and [`outcomes`] brings back what came of them.

pub(crate) mod among_workers;
mod calling;
mod crowd;
mod held;
mod names;
mod outcomes;
mod phases;
mod resuming;
mod streaming;
mod tasks;

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
use brunt_record::figures::NameId;
use brunt_record::outcome::{Failure, OkStatus};

use self::among_workers::AmongWorkers;
use self::crowd::Crowd;
use self::held::Held;
use self::names::Names;
use self::resuming::slot_of;
use self::streaming::Inbox;
use self::tasks::Meeting;
use crate::gate::{Horizon, Reach};
use crate::network::{Call, CallId, Network};
use crate::trace::{Level, Sight, Trace, Traced};
use crate::worker::Leaving;
use brunt_protocol::KeptAnswer;
use brunt_protocol::scenario::{CompleteAnswer, Encoded};
use brunt_protocol::user::Heart;
use brunt_script::{Hook, Library, Placement, ScriptClient, ScriptError};

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
    /// When the iteration began, and whether it is under way.
    began: u64,
    iterates: bool,
    /// When it came, while its first call is not made.
    arrived: Option<u64>,
    /// How many iterations it has left, if they are counted.
    iterations: Option<u64>,
    /// Its connections.
    connections: Vec<usize>,
    /// Those that it has for itself.
    held: Vec<Held>,
    /// Calls that wait for one of them.
    waiting: VecDeque<u32>,
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
    /// Whether it waits for them.
    waits: bool,
    /// How its iteration has ended, while calls that it began, or its tasks, have not.
    outcome: Option<Outcome>,
    /// Calls in a row that came to no connection.
    fruitless: u32,
    /// The call that it waits for.
    awaits: Option<u32>,
    /// Whose task it is, if it is one.
    home: Option<u32>,
    /// Its tasks.
    tasks: Vec<u32>,
    /// Whether it is a task that goes no further.
    cancelled: bool,
    /// The number of what it waits for others to do; 0 for nothing.
    joins: u32,
}

impl VirtualUser {
    /// The user with this number, of a population and a scenario, who has done nothing so far.
    fn new(id: u64, crowd: usize, place: u32, scenario: NameId) -> Self {
        Self {
            generation: 0,
            id,
            crowd,
            place,
            scenario,
            began: 0,
            iterates: false,
            arrived: None,
            iterations: None,
            connections: Vec::new(),
            held: Vec::new(),
            waiting: VecDeque::new(),
            delivered: Vec::new(),
            started: Vec::new(),
            streams: Vec::new(),
            chains: Vec::new(),
            continues: None,
            pending: 0,
            waits: false,
            outcome: None,
            fruitless: 0,
            awaits: None,
            home: None,
            tasks: Vec::new(),
            cancelled: false,
            joins: 0,
        }
    }
}

/// What a call's slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing.
    Vacant,
    /// A call that the throttle holds back, or that is about to begin.
    Throttled,
    /// A call that has begun and not ended: the network has it.
    UnderWay,
    /// It was answered.
    Answered(u16),
    /// It has failed.
    Failed(Failure),
}

/// What came before of a call whose answers led on to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Chain {
    /// When its first request was due, and sent.
    due: u64,
    sent: u64,
    /// How many answers have led on.
    hops: usize,
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

/// A call of a user: what the network need not know of it, and what is left of it for its user.
#[derive(Debug)]
struct UserCall {
    state: State,
    /// Its name in the network while it is under way.
    id: Option<CallId>,
    /// When it was due.
    due: u64,
    /// Grows whenever the slot is given to another call.
    serial: u32,
    user: u32,
    client: usize,
    origin: usize,
    label: u32,
    /// Whether its user waits for it, and not for all that it has begun.
    awaited: bool,
    timeout_ns: Option<u64>,
    /// Which connection it goes on.
    way: Placement,
    /// Whether the script is shown each answer, and says whether it is the last.
    judged: bool,
    /// Whether it counts for nothing if no answer comes in time.
    optional: bool,
    /// What came of it before, if it goes on with a call whose answer led on.
    chain: Option<Chain>,
    encoded: Encoded,
    /// What it asks for after an answer that was not the last.
    next: Encoded,
    /// The answers before the last, where somebody wants to see them.
    before: Vec<u8>,
    /// What it sends instead, if that was prepared.
    prepared: Option<u32>,
    /// Messages that its user has not taken, if it takes them one by one.
    inbox: Option<Box<Inbox>>,
    /// Its times, and when it ended.
    ended: Option<(Call<u32>, u64)>,
    kept: KeptAnswer,
    reason: String,
    /// Bytes that its connection had received when it was sent.
    bytes_before: u64,
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

/// Lets no more calls go than a rate allows.
#[derive(Debug)]
struct Throttle {
    profile: Profile,
    /// This worker's share of it.
    workers: f64,
    began: u64,
    /// How many calls were let go, all workers together, if all were like this one.
    calls: f64,
    hint: usize,
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
            leaving: None,
            ready: VecDeque::new(),
            timers: BinaryHeap::new(),
            timers_set: 0,
            names: Names::selecting(Selection::all(&plan.thresholds)),
            throttle: throttle.map(|profile| Throttle {
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

    /// Shows `trace` everything that the users do, or what of it it is to see.
    pub(crate) fn show(&mut self, trace: &Arc<dyn Trace>) {
        match trace.sight() {
            Sight::Everything => {}
            sight @ (Sight::Failures | Sight::Said) => {
                self.witness = Some(Arc::clone(trace));
                self.shows_failures = sight == Sight::Failures;
                return;
            }
        }
        self.library.trace();
        self.trace = Some(Arc::clone(trace));
    }

    fn see(&self, traced: &Traced<'_>) {
        if let Some(trace) = &self.trace {
            trace.see(traced);
        }
    }

    /// Whether a call with this label succeeded that was answered so.
    fn is_success(&self, label: u32, status: u16) -> bool {
        self.names.expects(label, status).unwrap_or_else(|| self.ok_status.holds(status))
    }

    /// Shows what came of a call, to who sees everything, or that it failed to who sees that.
    #[inline]
    fn see_call(&self, slot: u32) {
        if let Some(trace) = &self.trace {
            return self.show_call(trace.as_ref(), slot);
        }
        let Some(witness) = self.witness.as_ref().filter(|_| self.shows_failures) else { return };
        let has_failed = self.calls.get(slot as usize).is_some_and(|call| match call.state {
            State::Answered(status) => !self.is_success(call.label, status),
            State::Failed(_) => !call.optional,
            State::Vacant | State::Throttled | State::UnderWay => false,
        });
        if has_failed {
            self.show_call(witness.as_ref(), slot);
        }
    }

    #[cold]
    fn show_call(&self, trace: &dyn Trace, slot: u32) {
        let Some(call) = self.calls.get(slot as usize) else { return };
        let Some(client) = self.clients.get(call.client) else { return };
        let name = self.names.get(call.label).map_or("", |label| label.name.as_str());
        let request = &client.caller.shown_call(self.encoded(call));
        match call.state {
            State::Answered(status) => {
                let parts = call.kept.parts();
                let answer = CompleteAnswer { status, parts };
                let head = &client.caller.shown_head(&answer);
                let body = &[call.before.as_slice(), &client.caller.shown_answer(self.encoded(call), &answer)].concat();
                let service_ns = call.ended.map_or(0, |(times, end)| times.service_ns(end));
                trace.see(&Traced::Answered { name, request, status, head, body, service_ns });
            }
            State::Failed(failure) => trace.see(&Traced::Failed { name, request, failure, reason: &call.reason }),
            State::Vacant | State::Throttled | State::UnderWay => {}
        }
    }

    /// Shows the answer that failed a check, and which, to who sees failures.
    fn see_failed_check(&self, check: u32, ticket: u64) {
        let Some(witness) = self.witness.as_ref().filter(|_| self.shows_failures) else { return };
        let Some(name) = self.names.check_name(check) else { return };
        let slot = self.ticketed(ticket).map(|_| slot_of(ticket));
        let is_ok = |slot: u32| {
            let call = self.calls.get(slot as usize);
            call.is_some_and(
                |call| matches!(call.state, State::Answered(status) if self.is_success(call.label, status)),
            )
        };
        // What was no success anyway was shown when it came.
        if let Some(slot) = slot.filter(|slot| is_ok(*slot)) {
            self.show_call(witness.as_ref(), slot);
        }
        witness.see(&Traced::Checked { name: &name, held: false });
    }

    /// Who sees what goes wrong, and what the script says.
    fn seer(&self) -> Option<&Arc<dyn Trace>> {
        self.trace.as_ref().or(self.witness.as_ref())
    }

    /// Shows what a script writes down.
    fn see_log(&self, user: u32, level: &str, text: &str) {
        let Some(trace) = self.seer() else { return };
        let Some(of) = self.users.get(self.home(user) as usize) else { return };
        let scenario = self.crowds.get(of.crowd).and_then(|crowd| crowd.scenario(of.place)).unwrap_or_default();
        let level = Level::from_name(level).unwrap_or(Level::Info);
        trace.see(&Traced::Logged { level, user: of.id, scenario, text });
    }

    /// Shows whether a check held.
    fn see_check(&self, check: u32, held: bool) {
        if self.trace.is_some()
            && let Some(name) = self.names.check_name(check)
        {
            self.see(&Traced::Checked { name: &name, held });
        }
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

    fn make_ready(&mut self, user: u32, wake: Wake) {
        let generation = self.users.get(user as usize).map_or(0, |user| user.generation);
        self.ready.push_back((user, generation, wake));
    }

    /// A slot for a call, which is empty.
    fn vacant_call(&mut self) -> u32 {
        if let Some(slot) = self.vacant_calls.pop() {
            return slot;
        }
        self.calls.push(UserCall {
            state: State::Vacant,
            id: None,
            due: 0,
            serial: 0,
            user: 0,
            client: 0,
            origin: 0,
            label: 0,
            awaited: true,
            timeout_ns: None,
            way: Placement::Any,
            judged: false,
            optional: false,
            chain: None,
            encoded: Encoded::default(),
            next: Encoded::default(),
            before: Vec::new(),
            prepared: None,
            inbox: None,
            ended: None,
            kept: KeptAnswer::default(),
            reason: String::new(),
            bytes_before: 0,
        });
        (self.calls.len() - 1) as u32
    }

    /// The call in this slot is forgotten, with its answer.
    fn vacate_call(&mut self, slot: u32) {
        if let Some(call) = self.calls.get_mut(slot as usize)
            && call.state != State::Vacant
        {
            call.state = State::Vacant;
            call.id = None;
            call.ended = None;
            call.inbox = None;
            call.chain = None;
            call.serial = call.serial.wrapping_add(1);
            if call.prepared.take().is_none() {
                call.encoded.clear();
            }
            call.next.clear();
            call.before = Vec::new();
            // What one large answer took is not held for ever.
            call.kept.head.clear();
            call.kept.head.shrink_to(4 * 1024);
            call.kept.body.clear();
            call.kept.body.shrink_to(64 * 1024);
            call.reason.clear();
            self.vacant_calls.push(slot);
        }
    }
}
