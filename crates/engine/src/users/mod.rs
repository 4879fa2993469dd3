//! Virtual users on a worker: who they are, what each waits for, and the names by which they are counted.
//!
//! A user is a coroutine of a [`script`]; here are its slot, its calls and its connections. Read the life of a user in
//! [`living`] and the life of its call in [`calling`], each from top to bottom. Each other file has one thing that both
//! need: when users come ([`population_share`]), what they are resumed for ([`agenda`]), where calls go ([`clients`]).

mod agenda;
pub(crate) mod among_workers;
mod begun;
mod call;
mod calling;
mod clients;
mod ids;
mod kin;
mod links;
mod living;
mod loading;
mod numbered_names;
mod population_share;
mod presence;
mod rendezvous;
mod script;
mod throttle;
mod traces;
mod user;
mod watch;

use std::sync::Arc;

use brunt_plan::plan::Plan;
use brunt_plan::profile::Profile;
use brunt_plan::scenario::Scenarios;
use brunt_plan::share::Share;
use brunt_plan::threshold::Selection;
use brunt_record::figures::FigureByName as _;
use brunt_record::messages;
use brunt_record::outcome::Failure;
use brunt_record::snapshot::Phase;
use brunt_record::time::Tick;

use self::agenda::{Agenda, TimedWake, Wake};
use self::among_workers::AmongWorkers;
use self::call::UserCall;
use self::calling::NOTHING_CAME;
use self::clients::Clients;
use self::ids::UserId;
use self::loading::Loading;
use self::numbered_names::NumberedNames;
use self::population_share::PopulationShares;
use self::rendezvous::RendezvousPoints;
use self::script::Script;
use self::throttle::Throttle;
use self::traces::Traces;
use self::user::{Users, VirtualUser};
use self::watch::Watch;
use crate::control::Control;
use crate::gate::GrantedUntil;
use crate::network::{
    AnswerOf, Call, CallId, End, Gone, Judgement, Keeper, LoadEnd, MessageOf, Nature, Network, Recorder, Workload,
};
use crate::rules::{Rule, is_broken};
use crate::slots::Slots;
use crate::trace::Trace;
use crate::transport::{ConnectionId, Driver};
use brunt_protocol::source::{Heartbeat, Message, SourceEnd};
use brunt_script::{Library, Placement, ScriptClient, ScriptError};

/// The time between two looks at whether enough users have come to a meeting, in nanoseconds.
const LOOK_NS: u64 = 1_000_000;

/// The network of virtual users, whose calls are known by the slots that hold them.
type UsersNetwork<D> = Network<D, u32>;

/// The virtual users of a worker.
pub(crate) struct VirtualUsers {
    script: Script,
    clients: Clients,
    populations: PopulationShares,
    users: Users,
    calls: Slots<UserCall>,
    agenda: Agenda,
    loading: Loading,
    /// Connections with a call to be sent after this round of resumed users; and whether calls are gathered.
    gathered: Vec<ConnectionId>,
    gathers: bool,
    names: NumberedNames,
    throttle: Option<Throttle>,
    traces: Traces,
    rendezvous_points: RendezvousPoints,
    watch: Watch,
    /// The number of iterations that have ended, in error or not; and the first error that ended one.
    ended: u64,
    first_error: Option<String>,
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
        let populations = PopulationShares::new(scenarios, library.as_ref(), plan, share, among)?;
        Ok(Self::with(library, plan, scenarios.throttle.clone(), populations, among.clone(), share))
    }

    /// One user, who goes once through the scenario with this place in the script.
    pub(crate) fn once(library: Box<dyn Library>, plan: &Plan, place: u32, name: &str) -> Self {
        let populations = PopulationShares::once(place, name, plan);
        Self::with(library, plan, None, populations, AmongWorkers::of_one(), Share::WHOLE)
    }

    fn with(
        library: Box<dyn Library>,
        plan: &Plan,
        throttle: Option<Profile>,
        populations: PopulationShares,
        among: AmongWorkers,
        share: Share,
    ) -> Self {
        Self {
            clients: Clients::new(library.as_ref(), plan),
            script: Script::new(library),
            populations,
            users: Users::default(),
            calls: Slots::default(),
            agenda: Agenda::default(),
            loading: Loading::default(),
            gathered: Vec::new(),
            gathers: false,
            names: NumberedNames::selecting(Selection::all(plan.conditions())),
            throttle: throttle.map(|profile| Throttle::new(profile, share)),
            traces: Traces::from_plan(plan),
            rendezvous_points: RendezvousPoints::new(among),
            watch: Watch::default(),
            ended: 0,
            first_error: None,
        }
    }

    /// The same users, who make calls only up to this horizon.
    pub(crate) fn within(self, horizon: GrantedUntil) -> Self {
        Self { loading: self.loading.within(horizon), ..self }
    }

    /// The same users in a run that `control` changes.
    pub(crate) fn changed_by(self, control: &Control) -> Self {
        Self { loading: self.loading.changed_by(control), ..self }
    }

    /// Shows `trace` what the users do, as far as its sight goes.
    pub(crate) fn show(&mut self, trace: &Arc<dyn Trace>) {
        self.watch = Watch::of(trace);
        if self.watch.sees_everything() {
            self.script.library().trace();
        }
    }

    /// The heart, which shows whether the script returns.
    pub(crate) fn heart(&self) -> Heartbeat {
        self.script.heart()
    }

    /// The functions of its scenarios, by the scenarios' numbers.
    pub(crate) fn functions(&self) -> Vec<(u32, String)> {
        let function = |(place, name): (u32, &str)| {
            let at = self.script.library().written_at(place).map_or_else(String::new, |at| format!(" ({at})"));
            (place, format!("the function of scenario '{name}'{at}"))
        };
        self.populations.scenarios().map(function).collect()
    }

    /// The clients of the script.
    pub(crate) fn clients(&self) -> &[ScriptClient] {
        self.clients.all()
    }

    /// Whether an iteration has come to its end, in error or not.
    pub(crate) fn has_finished(&self) -> bool {
        self.ended > 0
    }

    /// The script's state, and the first error that ended an iteration.
    pub(crate) fn into_library(self) -> (Box<dyn Library>, Option<String>) {
        (self.script.into_library(), self.first_error)
    }

    #[inline]
    fn user(&mut self, user: UserId) -> Option<&mut VirtualUser> {
        self.users.get_mut(user)
    }

    /// The user whose connections and iteration `user` shares: itself, or the user whose task it is.
    #[inline]
    fn home(&self, user: UserId) -> UserId {
        self.users.home(user)
    }

    /// The place in the script of a user's scenario.
    #[inline]
    fn place_of(&self, user: UserId) -> u32 {
        self.users.get(user).map_or(0, |user| user.who.place)
    }

    /// The call that a ticket names, if its answer is still there.
    fn ticketed(&self, ticket: u64) -> Option<&UserCall> {
        call::ticketed(&self.calls, ticket)
    }

    /// The ticket of the call in this slot.
    fn ticket(&self, slot: u32) -> f64 {
        call::ticket(&self.calls, slot)
    }

    fn set_timer(&mut self, at: Tick, user: UserId, wake: TimedWake) {
        self.agenda.set_timer(&self.users, at, user, wake);
    }

    #[inline]
    fn make_ready(&mut self, user: UserId, wake: Wake) {
        self.agenda.wake(&self.users, user, wake);
    }
}

impl<D: Driver> Workload<D> for VirtualUsers {
    /// The slot that holds the call.
    type Tag = u32;

    fn nature(&self) -> Nature {
        Nature { calls_at_once: false, may_hang: true }
    }

    fn begin(&mut self, network: &mut UsersNetwork<D>, phase: Phase, began: Tick, _until: Tick) {
        // Users come with the measured part; a warm-up of users is a population of its own.
        if phase != Phase::Measured {
            return;
        }
        self.loading.begin(began);
        if self.traces.are_wanted() {
            network.recorder_mut().keep_slowest();
        }
        if let Some(throttle) = &mut self.throttle {
            throttle.begin(began);
        }
        self.populations.begin(began);
    }

    fn tick(&mut self, network: &mut UsersNetwork<D>, now: Tick) {
        if self.loading.is_on() {
            self.hear();
            self.wake(network, now);
        }
    }

    fn turn(&mut self, network: &mut UsersNetwork<D>) {
        let mut freed = network.take_roomy();
        if self.loading.makes_calls() {
            for (token, _) in freed.drain(..) {
                self.serve_waiting(network, token);
            }
        }
        freed.clear();
        network.keep_roomy(freed);
        self.run_users(network);
    }

    fn next_wake(&self, now: Tick) -> Tick {
        match () {
            () if !self.loading.is_on() => Tick::NEVER,
            // The next heartbeat checks whether the horizon has moved on.
            () if self.loading.ends_before(now) => self.loading.resumes(now),
            () if !self.agenda.has_rest() => now,
            () => {
                let look = if self.rendezvous_points.somebody_waits() { now + LOOK_NS } else { Tick::NEVER };
                self.agenda.next_timer().min(look).min(self.populations.next_wake(now))
            }
        }
    }

    fn is_over(&self, _network: &UsersNetwork<D>, now: Tick) -> bool {
        self.populations.have_ended(now)
    }

    #[cfg(feature = "simulation")]
    fn audit(&self, network: &UsersNetwork<D>, _now: Tick) {
        let own = self.users.iter().flat_map(|user| user.links.waiting().map(|(_, id)| id));
        let held = self.users.iter().flat_map(|user| user.links.waiting_on_held());
        let held = held.filter_map(|slot| self.calls.get(slot)?.waiting_id());
        network.audit(Some(own.chain(held).chain(network.pools().waiting())), None);
        for user in self.users.ids() {
            let waits = self.users.get(user).into_iter().flat_map(|of| of.links.waiting());
            for (origin, id) in waits.filter(|(_, id)| self.loading.makes_calls() && network.call(**id).is_some()) {
                let has_place = network.has_place(Keeper::One(user.slot()), origin);
                assert!(!has_place, "call {id:?} waits for a connection of its user, who may have another");
            }
        }
        for token in network.connections().ids() {
            let is_idle = network.connections()[token].is_idle();
            let is_taken = matches!(network.connections()[token].keeper(), Keeper::One(_) | Keeper::Everybody);
            assert!(!(is_idle && is_taken), "place {token:?} has no connection, and none is made");
        }
    }

    fn load_end(&self) -> Option<LoadEnd> {
        self.loading.load_end()
    }

    fn end_load(&mut self, network: &mut UsersNetwork<D>, end: Tick) {
        if self.loading.is_on() {
            self.drop_unsent(network, end);
            for user in self.users.iter_mut() {
                user.presence.pauses(&mut network.recorder_mut().snapshot.numbers, end);
            }
        }
        self.loading.end();
    }

    fn end_drain(&mut self, network: &mut UsersNetwork<D>, now: Tick) {
        self.end_users(network.recorder_mut(), now);
    }

    fn hand_over(&mut self, network: &mut UsersNetwork<D>, until: Tick) {
        if self.loading.is_on() {
            self.hear();
            self.admit_before(until, network.recorder_mut());
            for user in self.users.iter_mut() {
                user.presence.count(&mut network.recorder_mut().snapshot.numbers, until);
            }
        }
        // Passes that the script counts by itself.
        for (check, passes) in self.script.library().take_passes() {
            self.names.passed(network.recorder_mut(), check, passes);
        }
        for (name, own) in self.script.library().take_own() {
            network.recorder_mut().snapshot.figures.own.named(&name).merge(&own);
        }
    }

    /// The approximate time that scripts were busy since the last call, in nanoseconds.
    fn take_busy_ns(&mut self) -> u64 {
        self.script.take_busy_ns()
    }

    #[inline]
    fn message(&mut self, slot: u32) -> Result<Message<'_>, SourceEnd> {
        let call = self
            .calls
            .get(slot)
            .filter(|call| call.inbox().is_none_or(|inbox| !inbox.is_partial))
            .ok_or(SourceEnd::Done)?;
        Ok(self.clients.encoded(call).message())
    }

    #[inline]
    fn timeout_ns(&self, slot: u32) -> Option<u64> {
        self.calls.get(slot).and_then(|call| call.asked.timeout_ns)
    }

    fn request_name(&self, slot: u32, _connection: u64) -> Option<&str> {
        self.names.name(self.calls.get(slot)?.asked.label)
    }

    fn trace_id(&self, slot: u32) -> Option<String> {
        self.calls.get(slot)?.trace.map(|ids| ids.trace_id())
    }

    fn keeps_to_connection(&self, slot: u32) -> bool {
        self.calls.get(slot).is_none_or(|call| matches!(call.asked.placement, Placement::On(_)))
    }

    fn excuses(&self, slot: u32, status: u16) -> bool {
        self.calls.get(slot).is_some_and(|call| self.expects(call, status) == Some(true))
    }

    #[inline]
    fn judge(&mut self, network: &mut UsersNetwork<D>, answer: &AnswerOf<u32>) -> Judgement {
        if self.calls.get(answer.tag).is_some_and(|call| call.asked.judged) {
            self.judge_in_flight(network, answer)
        } else {
            Judgement::Ended
        }
    }

    #[inline]
    fn ended(&mut self, network: &mut UsersNetwork<D>, call: &Call<u32>, end: End<'_>, now: Tick) {
        // The name of an answered call may depend on its answer.
        if network.recorder_mut().samples.is_some() && !matches!(end, End::Answered(_)) {
            self.write_down(network, call, end, now);
        }
        match end {
            End::Answered(status) => self.answered(network, call, status, now),
            End::Failed(..) | End::ToldByPeer(..) | End::GivenUp(..) => {
                self.failed(network.recorder_mut(), call, end, now);
            }
            End::Withdrawn => self.tell_failed(call, Failure::Timeout, NOTHING_CAME, now),
            End::Unfinished | End::Unsent => self.cut_short(network.recorder_mut(), call, end, now),
        }
    }

    #[inline]
    fn streamed(&mut self, network: &mut UsersNetwork<D>, message: &MessageOf<u32>) {
        self.message_came(network, message);
    }

    fn stream_ended(&mut self, recorder: &mut Recorder, call: &Call<u32>, ended: &messages::StreamEnd) {
        if let Some(slot) = self.calls.get(call.tag) {
            self.names.record(recorder, slot.asked.label, |calls| calls.stream_ended(ended));
        }
    }

    fn next_calls(&mut self, network: &mut UsersNetwork<D>, token: ConnectionId, now: Tick) {
        let connection = &network.connections()[token];
        let is_idle = connection.is_idle() && !is_broken(Rule::IdlePlacesAreGivenBack);
        if is_idle && matches!(connection.keeper(), Keeper::One(_) | Keeper::Everybody) {
            // Its calls have timed out while it waited to be made again: others may have its place.
            self.give_back(network, token, false, now);
        } else if self.loading.makes_calls() {
            self.serve_waiting(network, token);
        }
    }

    fn connection_leaves(&mut self, network: &mut UsersNetwork<D>, token: ConnectionId, now: Tick) {
        // One that leaves no longer blocks another, unless as many leave as there may be.
        let (keeper, origin) = (network.connections()[token].keeper(), network.connections()[token].origin());
        if network.is_replaced(token) {
            self.place_next(network, keeper, origin, now);
        }
    }

    fn refused_unprocessed(&mut self, network: &mut UsersNetwork<D>, calls: Vec<CallId>, now: Tick) {
        for id in calls {
            if let Some(slot) = network.call(id).map(|call| call.tag) {
                self.place(network, slot, now);
            }
        }
    }

    fn gone(&mut self, network: &mut UsersNetwork<D>, gone: Gone<'_>, now: Tick) {
        let keeper = network.connections()[gone.token].keeper();
        self.give_back(network, gone.token, gone.has_left, now);
        if let Keeper::Held { user, handle } = keeper {
            self.keep_remains(network, UserId::in_slot(user), handle, gone, now);
        }
    }
}
