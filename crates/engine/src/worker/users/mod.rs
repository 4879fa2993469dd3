//! Virtual users on a worker: who there is, what each waits for, and what they are called by.
//!
//! A user is a coroutine of the script, which [`Library`] holds; here are its slot, its calls and its connections.
//! [`crowd`] says when users come and iterate, [`resuming`] goes on with them and does what they want, [`calling`] takes
//! their calls to connections and brings the answers back.

pub(crate) mod among_workers;
mod calling;
mod crowd;
mod held;
mod names;
mod resuming;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use brunt_model::figures::NameId;
use brunt_model::outcome::{Failure, OkStatus};
use brunt_model::plan::Plan;
use brunt_model::profile::Profile;
use brunt_model::random::Random;
use brunt_model::scenario::Scenarios;
use brunt_model::target::Target;

use self::among_workers::AmongWorkers;
use self::crowd::Crowd;
use self::held::Held;
use self::names::Names;
use super::connection::{Call, NEVER};
use super::recorder::Recorder;
use crate::protocol::Kept;
use crate::protocol::scenario::{Answered, Encoded};
use crate::script::ScriptError;
use crate::script::scenario::{Library, ScriptClient, Way};
use crate::trace::{Trace, Traced};
use crate::user::{Heart, Message, Refusal};

/// What a worker's heart says while a script's function runs.
pub(crate) const IN_SCENARIO: u8 = 100;
/// How often it is looked whether a population is over on the other workers, in nanoseconds.
const LOOK_NS: u64 = 1_000_000;
/// Of how many steps of users one has its time taken.
const TIMED: u32 = 16;

/// Why a user is gone on with.
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
}

/// How an iteration has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// Its function has returned; the next begins so long after this one began.
    Returned { pacing_ns: u64 },
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
    /// How many of these have not ended.
    pending: usize,
    /// Whether it waits for them.
    waits: bool,
    /// How its iteration has ended, while calls that it began have not.
    outcome: Option<Outcome>,
    /// Calls in a row that came to no connection.
    fruitless: u32,
}

/// Where in its life a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// There is none in this slot.
    Vacant,
    /// It waits: for the throttle, for the way to its origin, for a connection.
    Waiting,
    /// It is on a connection.
    OnConnection,
    /// It was answered.
    Answered(u16),
    /// It has failed.
    Failed(Failure),
}

/// A call of a user.
#[derive(Debug)]
struct UserCall {
    state: State,
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
    way: Way,
    /// Whether the script is shown each answer, and says whether it is the last.
    judged: bool,
    encoded: Encoded,
    /// What it asks for after an answer that was not the last.
    next: Encoded,
    /// The answers before the last, where somebody wants to see them.
    before: Vec<u8>,
    /// What it sends instead, if that was prepared.
    prepared: Option<u32>,
    call: Call,
    ended: u64,
    kept: Kept,
    reason: String,
    /// Bytes that its connection had received when it was sent.
    bytes_before: u64,
}

/// A call that is made as often as it is the same.
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
    library: Library,
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
    /// Connections with a call that is sent once the users who are gone on with now have been.
    gathered: Vec<usize>,
    /// Whether calls are gathered.
    gathers: bool,
    ready: VecDeque<(u32, u32, Wake)>,
    timers: BinaryHeap<Reverse<Timer>>,
    timers_set: u64,
    names: Names,
    throttle: Option<Throttle>,
    ok_status: OkStatus,
    random: Random,
    /// The number of the next user, and how far the one after it is.
    next_id: u64,
    workers: u32,
    heart: Heart,
    steps: u32,
    busy: Duration,
    /// How long users may go on after the end of a closed injection, in nanoseconds.
    grace_ns: u64,
    /// The first error that ended an iteration.
    first_error: Option<String>,
    /// Sees everything that users do.
    trace: Option<Arc<dyn Trace>>,
}

impl VirtualUsers {
    /// The users of worker `number`, who live in `library`.
    ///
    /// # Errors
    /// When the script has none of the scenarios that the plan names.
    pub(crate) fn new(
        library: Library,
        plan: &Plan,
        scenarios: &Scenarios,
        among: &AmongWorkers,
        number: u32,
    ) -> Result<Self, ScriptError> {
        let mut crowds = Vec::new();
        for (place, population) in scenarios.populations.iter().enumerate() {
            crowds.push(Crowd::new(population, place, &library, plan, number, among.quota(place))?);
        }
        Ok(Self::with(library, plan, scenarios.throttle.clone(), crowds, among.clone(), number))
    }

    /// One user, who goes once through the scenario with this place in the script.
    pub(crate) fn once(library: Library, plan: &Plan, place: u32, name: &str) -> Self {
        let crowd = Crowd::once(place, name);
        Self::with(library, plan, None, vec![crowd], AmongWorkers::of_one(), 0)
    }

    fn with(
        library: Library,
        plan: &Plan,
        throttle: Option<Profile>,
        crowds: Vec<Crowd>,
        among: AmongWorkers,
        number: u32,
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
            gathers: false,
            ready: VecDeque::new(),
            timers: BinaryHeap::new(),
            timers_set: 0,
            names: Names::default(),
            throttle: throttle.map(|profile| Throttle {
                profile,
                workers: f64::from(plan.workers),
                began: 0,
                calls: f64::from(number),
                hint: 0,
            }),
            ok_status: plan.ok_status.clone(),
            random: Random::new(plan.seed ^ 0xca11, u64::from(number)),
            next_id: u64::from(number) + 1,
            workers: plan.workers,
            heart: Heart::default(),
            steps: 0,
            busy: Duration::ZERO,
            grace_ns: plan.drain_ns,
            first_error: None,
            trace: None,
        }
    }

    /// Shows `trace` everything that the users do.
    pub(crate) fn show(&mut self, trace: &Arc<dyn Trace>) {
        self.library.trace();
        self.trace = Some(Arc::clone(trace));
    }

    fn see(&self, traced: &Traced<'_>) {
        if let Some(trace) = &self.trace {
            trace.see(traced);
        }
    }

    /// Shows what came of a call.
    fn see_call(&self, slot: u32) {
        let (Some(_), Some(of)) = (&self.trace, self.calls.get(slot as usize)) else { return };
        let Some(client) = self.clients.get(of.client) else { return };
        let name = self.names.get(of.label).map_or("", |label| label.name.as_str());
        let request = &client.caller.shown_call(self.message(of));
        match of.state {
            State::Answered(status) => {
                let parts = of.kept.parts();
                let answer = Answered { status, parts };
                let head = &client.caller.shown_head(&answer);
                let body = &[of.before.as_slice(), &client.caller.shown_answer(&answer)].concat();
                let service_ns = of.ended.saturating_sub(of.call.sent);
                self.see(&Traced::Answered { name, request, status, head, body, service_ns });
            }
            State::Failed(failure) => self.see(&Traced::Failed { name, request, failure, reason: &of.reason }),
            State::Vacant | State::Waiting | State::OnConnection => {}
        }
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

    /// The script's state, and the first error that ended an iteration.
    pub(crate) fn into_library(self) -> (Library, Option<String>) {
        (self.library, self.first_error)
    }

    /// The load begins.
    pub(super) fn begin(&mut self, now: u64) {
        if let Some(throttle) = &mut self.throttle {
            throttle.began = now;
        }
        for crowd in &mut self.crowds {
            crowd.begin_first(now);
        }
    }

    fn user(&mut self, user: u32) -> Option<&mut VirtualUser> {
        self.users.get_mut(user as usize).filter(|user| user.id > 0)
    }

    fn slot(&mut self, call: u32) -> Option<&mut UserCall> {
        self.calls.get_mut(call as usize).filter(|call| call.state != State::Vacant)
    }

    /// What a call sends.
    #[inline]
    fn message<'a>(&'a self, call: &'a UserCall) -> &'a Encoded {
        let prepared = call.prepared.and_then(|prepared| self.prepared.get(prepared as usize));
        prepared.map_or(&call.encoded, |prepared| &prepared.encoded)
    }

    /// The bytes of the call with this number, which is that of its slot.
    #[inline]
    pub(super) fn call(&mut self, index: u64) -> Result<Message<'_>, Refusal> {
        let call = self.calls.get(index as usize).ok_or(Refusal::Done)?;
        let Encoded { bytes, idempotent, hint, .. } = self.message(call);
        Ok(Message { bytes, idempotent: *idempotent, hint: *hint, ..Message::default() })
    }

    #[inline]
    pub(super) fn timeout_ns(&self, index: u64) -> Option<u64> {
        self.calls.get(index as usize).and_then(|call| call.timeout_ns)
    }

    /// About how long scripts were busy since this was last asked, in nanoseconds.
    pub(super) fn take_busy_ns(&mut self) -> u64 {
        std::mem::take(&mut self.busy).as_nanos() as u64 * u64::from(TIMED)
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

    /// When something is due by time alone.
    pub(super) fn next_wake(&self, now: u64) -> u64 {
        if !self.ready.is_empty() {
            return now;
        }
        let timer = self.timers.peek().map_or(NEVER, |Reverse(timer)| timer.at);
        let wake = |crowd: &Crowd| {
            let before = crowd.follows().and_then(|before| Some((before, self.crowds.get(before)?)));
            match before {
                _ if crowd.is_over() && !crowd.announced => now,
                Some((place, before)) if before.is_over() => {
                    if self.among.is_over(place) {
                        now
                    } else {
                        now + LOOK_NS
                    }
                }
                _ => crowd.next_wake(now),
            }
        };
        self.crowds.iter().map(wake).fold(timer, u64::min)
    }

    /// Writes down what the script counts by itself.
    pub(super) fn hand_over(&mut self, recorder: &mut Recorder) {
        for (check, passes) in self.library.take_passes() {
            self.names.passed(recorder, check, passes);
        }
    }

    /// A slot for a call, which is empty.
    fn vacant_call(&mut self) -> u32 {
        if let Some(slot) = self.vacant_calls.pop() {
            return slot;
        }
        self.calls.push(UserCall {
            state: State::Vacant,
            serial: 0,
            user: 0,
            client: 0,
            origin: 0,
            label: 0,
            awaited: true,
            timeout_ns: None,
            way: Way::Any,
            judged: false,
            encoded: Encoded::default(),
            next: Encoded::default(),
            before: Vec::new(),
            prepared: None,
            call: Call::new(0, 0, false),
            ended: 0,
            kept: Kept::default(),
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

    /// Whether every population is through and nobody is left, or those who are have had time enough.
    fn have_ended(&self, now: u64) -> bool {
        let over = self.crowds.iter().all(Crowd::is_over);
        let cut = |crowd: &Crowd| crowd.is_over() || crowd.ends().is_some_and(|end| now >= end + self.grace_ns);
        over && self.alive == 0 || self.crowds.iter().all(cut)
    }
}
