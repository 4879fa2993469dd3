//! A flood: one user's calls on equal connections, as soon as these are free (closed model) or at due times (open model).

#[cfg(feature = "simulation")]
mod audit;
mod call_names;
mod changing;
mod exposure;
mod lists;
mod open;
mod outage;
pub(crate) mod own_delay;
mod phase;
mod waiting;
mod workload;

use std::collections::VecDeque;
use std::sync::Arc;

use brunt_plan::plan::Plan;
use brunt_plan::share::{Portion, Share};
use brunt_record::snapshot::Phase;
use brunt_record::time::Tick;

use self::call_names::{CallNames, InTurn, Uncarried};
use self::exposure::Exposure;
use self::lists::Lists;
use self::outage::Outage;
use self::phase::FloodPhase;
use crate::gate::GrantedUntil;
use crate::network::growth::{CONNECTING_AT_ONCE, Growth};
use crate::network::origins::OriginId;
use crate::network::pool::KeptUp;
use crate::network::{Call, CallId, Counted, End, Keeper, Network, Pause, State};
use crate::pace::{Quota, Schedule, Supply};
use crate::transport::{ConnectionId, Driver};
use brunt_protocol::source::{Hooks, RequestSource, SourceEnd};

/// The time before the end of the load in which a free connection may get no further call, in nanoseconds.
const ENDING_NS: u64 = 100_000_000;
/// The longest wait for a new connection before the load begins without the missing ones, in nanoseconds.
const CONNECTING_PATIENCE_NS: u64 = brunt_record::SECOND_NS;

/// The network of a flood, whose calls are known by their numbers among all calls.
type FloodNetwork<D> = Network<D, u64>;

/// When calls are due.
enum Pace {
    /// Each connection calls again as soon as it is answered.
    Closed(Quota),
    /// At times of their own.
    Open(Box<Schedule>),
}

/// The call numbers of a flood's workers, in the closed model.
#[derive(Debug, Clone)]
pub(crate) struct Quotas {
    /// For the warm-up, which ends by time.
    pub(crate) warmup: Quota,
    /// For the measured part.
    pub(crate) measured: Quota,
}

impl Quotas {
    /// The quotas of `plan` for the workers of this portion. Numbers of the measured part come from `supply`.
    pub(crate) fn from_plan(plan: &Plan, portion: Portion, supply: &Supply) -> Self {
        Self {
            warmup: Quota::new(None, portion),
            measured: Quota::by_connection(plan.stop.requests, portion, plan.connections.most(), supply.clone()),
        }
    }
}

/// The connections that a flood begins with.
struct Ahead {
    connections: usize,
    /// How many of them have been begun.
    begun: usize,
}

impl Ahead {
    /// The next of them to be begun.
    fn next(&mut self) -> Option<ConnectionId> {
        let next = (self.begun < self.connections).then(|| ConnectionId::at(self.begun));
        self.begun += usize::from(next.is_some());
        next
    }

    fn are_begun(&self) -> bool {
        self.begun == self.connections
    }
}

/// The connection that stands for the slot of this one.
fn home<D: Driver>(network: &FloodNetwork<D>, token: ConnectionId) -> ConnectionId {
    network.connections().kept(network.connections()[token].keeper()).next().unwrap_or(token)
}

/// Whether no call is on any connection of this one's slot.
fn is_free<D: Driver>(network: &FloodNetwork<D>, token: ConnectionId) -> bool {
    let connections = network.connections();
    connections.kept(connections[token].keeper()).all(|token| connections[token].carried() == 0)
}

/// One worker's share of a flood.
pub(crate) struct Flood {
    plan: Arc<Plan>,
    /// The worker's share of the run.
    share: Share,
    user: Box<dyn RequestSource>,
    interests: Hooks,
    /// Names of its calls, if they are told apart.
    names: CallNames,
    /// Why the user asks for no more calls.
    refusal: Option<SourceEnd>,
    quotas: Quotas,
    pace: Pace,
    /// The most calls in flight on one connection.
    pipeline: usize,
    part: FloodPhase,
    lists: Lists,
    outage: Outage,
    /// Since when calls of the open model wait for a connection, delays of this worker aside; [`Tick::NEVER`] if none do.
    short_since: Tick,
    /// Replacements of draining connections, deferred until one of those has closed.
    deferred_replacements: usize,
    /// Calls that a peer has not processed, to be made again; some may have ended since.
    again: VecDeque<CallId>,
    /// Where there are several targets: how many calls are made at once. Each has a *slot*, which keeps a connection to every
    /// target that it has called; the first of them stands for the slot where slots are listed.
    slots: Option<u32>,
    ahead: Ahead,
    /// Their growth, if they grow.
    growth: Option<Growth>,
    exposure: Exposure,
    /// The delay of the open model's last call, in nanoseconds: a connection made for later calls starts with it.
    held_up: u64,
}

impl Flood {
    /// A worker's share of `plan`, with this many connections at first. `user` is the source of its calls, which go to
    /// one target or several.
    pub(crate) fn new(
        plan: Arc<Plan>,
        share: Share,
        connections: usize,
        user: Box<dyn RequestSource>,
        quotas: Quotas,
        has_several_targets: bool,
    ) -> Self {
        let most = share.part_of(u64::from(plan.connections.most())) as usize;
        Self {
            growth: plan.connections.is_growing().then(|| Growth::new(most)),
            share,
            interests: user.hooks(),
            names: CallNames::default(),
            user,
            refusal: None,
            pace: Pace::Closed(quotas.warmup.clone()),
            quotas,
            pipeline: plan.pipeline as usize,
            part: FloodPhase::before_all(),
            exposure: Exposure::new(share == Share::WHOLE),
            held_up: 0,
            lists: Lists::default(),
            outage: Outage::new(share.count()),
            short_since: Tick::NEVER,
            deferred_replacements: 0,
            again: VecDeque::new(),
            slots: has_several_targets.then_some(0),
            ahead: Ahead { connections, begun: 0 },
            plan,
        }
    }

    /// Limits its calls to this horizon.
    pub(crate) fn within(self, horizon: GrantedUntil) -> Self {
        Self { part: self.part.within(horizon), ..self }
    }

    /// Resumes once the horizon has moved on, or numbers have come: nothing else would wake connections that were freed
    /// meanwhile. Calls that came due meanwhile stay unsent, as a burst would be a load that nobody asked for.
    fn go_on<D: Driver>(&mut self, network: &mut FloodNetwork<D>, now: Tick) {
        self.hear();
        let due = if let Pace::Open(schedule) = &self.pace { schedule.due().unwrap_or(now) } else { now };
        let is_fed = if let Pace::Closed(quota) = &mut self.pace { quota.is_fed() } else { false };
        if !self.part.lets_go(due) && !is_fed {
            return;
        }
        let measured = self.part.is_measured();
        if let Pace::Open(schedule) = &mut self.pace {
            let uncarried = Uncarried::new(&*self.user, self.share, &self.plan);
            let mut named = InTurn::new(&self.names, uncarried, schedule);
            schedule.skip(now, |due, calls| {
                network.recorder_mut().held_overdue(due, calls, measured, now);
                named.never_sent(network.recorder_mut(), calls, now.since(due), false);
            });
        }
        for token in network.connections().ids() {
            if network.connections()[token].state() != State::Vacant {
                self.give_work(network, token, now);
            }
        }
    }

    /// Which of its user's names the call with this number has, on the connection with that number among the worker's
    /// from 1; 0 without one.
    fn name(&self, call: u64, connection: u64) -> usize {
        let number = connection.checked_sub(1).and_then(|nth| self.share.number(nth));
        match number {
            Some(number) => self.user.connection_name(number).unwrap_or_else(|| self.user.name(call)),
            None => Uncarried::new(&*self.user, self.share, &self.plan).name(call),
        }
    }

    /// Whether new calls are made.
    fn is_loading(&self) -> bool {
        self.part.is_on() && self.refusal.is_none()
    }

    /// Makes connections ahead of the load, some at a time. True once they are made, or no more can be.
    fn connect_ahead<D: Driver>(&mut self, network: &mut FloodNetwork<D>, now: Tick) -> bool {
        while network.connections().len() < self.ahead.connections {
            self.add(network);
        }
        if self.connects_for_calls() {
            return true;
        }
        while network.census().connecting() < CONNECTING_AT_ONCE
            && let Some(token) = self.ahead.next()
        {
            network.connect(self, token, now);
        }
        // Ahead of the load, no connection is tried twice.
        let settled = self.ahead.are_begun() && network.census().connecting() == 0;
        settled || now >= network.signs().last_connected() + CONNECTING_PATIENCE_NS
    }

    /// A place for another connection, or for the first one of another slot.
    fn add<D: Driver>(&mut self, network: &mut FloodNetwork<D>) -> ConnectionId {
        match &mut self.slots {
            Some(slots) => {
                *slots += 1;
                network.add(OriginId::FIRST, Keeper::One(*slots - 1))
            }
            None => network.add(OriginId::FIRST, Keeper::Everybody),
        }
    }

    /// As many connections as there were, but for those that leave and are not replaced yet.
    fn kept_up<D: Driver>(&self, network: &FloodNetwork<D>) -> KeptUp {
        let there = network.places() - network.census().draining();
        KeptUp { most: there + self.deferred_replacements, there, draining: network.census().draining() }
    }

    /// Whether connections are made for calls, and not ahead of them.
    fn connects_for_calls(&self) -> bool {
        self.plan.reconnect || self.slots.is_some()
    }

    /// The load of a phase begins at `began`: in the closed model every connection calls.
    fn begin_calls<D: Driver>(&mut self, network: &mut FloodNetwork<D>, phase: Phase, began: Tick, until: Tick) {
        let is_measured = phase == Phase::Measured;
        let measured_began = if is_measured { began } else { began.saturating_add(self.plan.warmup_ns) };
        self.part.begin(is_measured, began, until, measured_began);
        self.pace = match self.plan.profile(phase).zip(self.plan.arrivals(phase, self.share)) {
            None if is_measured => Pace::Closed(self.quotas.measured.clone()),
            None => Pace::Closed(self.quotas.warmup.clone()),
            Some((profile, mut arrivals)) => {
                arrivals.change(&self.part.follow(profile));
                if let Some(growth) = &mut self.growth {
                    growth.begin(arrivals.clone(), began);
                }
                Pace::Open(Box::new(Schedule::new(arrivals, began, until)))
            }
        };
        self.change();
        let now = network.now();
        let watches = is_measured && self.slots.is_none() && matches!(self.pace, Pace::Closed(_));
        network.watch_for_server(watches.then_some(began));
        self.fail_refused(network, now);
        for token in network.connections().ids() {
            if network.connections()[token].state() != State::Vacant {
                let ready_since = network.connections()[token].ready_since().clamp(began.min(now), now);
                self.give_work(network, token, now);
                // The connection was free before the load began: the worker's delay since then is no wait.
                let connection = &mut network.connections_mut()[token];
                if !connection.is_unlisted() {
                    connection.note_ready_at(ready_since);
                }
            }
        }
        self.wake_dormant(network, now, true);
        self.dispatch(network);
    }

    /// Closed model: each connection that its peer refused ahead of the load was the attempt of a call.
    fn fail_refused<D: Driver>(&mut self, network: &mut FloodNetwork<D>, now: Tick) {
        for _ in 0..std::mem::take(&mut self.outage.refused_ahead) {
            let Some((failure, reason)) = self.outage.last_failure(OriginId::FIRST) else { return };
            let Pace::Closed(quota) = &mut self.pace else { return };
            let Some(number) = quota.take() else { return };
            let id = network.begin(Call::new(number, now, self.part.is_measured(), Counted::OnceSent));
            network.complete(self, id, End::Failed(failure, &reason), now);
        }
    }

    /// Gives a connection that may be free its next work.
    fn give_work<D: Driver>(&mut self, network: &mut FloodNetwork<D>, token: ConnectionId, now: Tick) {
        if !self.is_loading() {
            return self.give_again(network, token, now);
        }
        match self.pace {
            Pace::Closed(_) if self.slots.is_some() => self.refill_slot(network, token, now),
            Pace::Closed(_) => self.refill(network, token, now),
            Pace::Open(_) if self.slots.is_some() => self.offer_slot(network, token, now),
            Pace::Open(_) => self.offer(network, token, now),
        }
    }

    /// The load is over: gives a connection that may be free the calls that a peer has turned away.
    fn give_again<D: Driver>(&mut self, network: &mut FloodNetwork<D>, token: ConnectionId, now: Tick) {
        while !self.again.is_empty() {
            if self.slots.is_some() {
                let home = home(network, token);
                if !is_free(network, home) {
                    return;
                }
                let Some(id) = self.next_again(network) else { return };
                return self.place(network, home, id, now);
            }
            let connection = &network.connections()[token];
            let is_idle = connection.is_idle() && connection.carried() == 0;
            if !is_idle && connection.room(self.pipeline) == 0 {
                return;
            }
            let Some(id) = self.next_again(network) else { return };
            if is_idle {
                network.connections_mut()[token].unlist();
                network.enqueue(token, id);
                return network.connect(self, token, now);
            }
            network.send(self, token, id, now);
        }
    }

    /// Sends calls that a peer has turned away again, as far as a connection has room or can be made for them.
    fn serve_again<D: Driver>(&mut self, network: &mut FloodNetwork<D>, now: Tick) {
        for token in network.connections().ids() {
            if self.again.is_empty() {
                return;
            }
            let connection = &network.connections()[token];
            if connection.is_idle() || connection.room(self.pipeline) > 0 {
                self.give_work(network, token, now);
            }
        }
    }

    /// Closed model: calls until the connection has as many in flight as it may.
    fn refill<D: Driver>(&mut self, network: &mut FloodNetwork<D>, token: ConnectionId, now: Tick) {
        if now >= self.part.until() || self.part.holds_back(now) {
            return;
        }
        let mut composed = false;
        loop {
            let connection = &network.connections()[token];
            let open = connection.is_open();
            let carried = connection.carried();
            let room = match connection.state() {
                State::Open { .. } => connection.room(self.pipeline),
                State::Backoff { .. } | State::Draining { .. } | State::Vacant => 0,
                // One call suffices to have a connection made for it.
                _ => 1_usize.saturating_sub(carried),
            };
            // A connection whose peer takes no call at all has one waiting for it.
            let waits = open && room == 0 && carried == 0;
            if room == 0 && !waits || self.interests.pauses && carried == 0 && self.pauses(network, token, now) {
                break;
            }
            let Some(id) = self.next_call(network, now) else { break };
            if waits {
                network.await_room(self, token, id);
            } else if open {
                composed |= network.compose(self, token, id, now);
            } else {
                network.enqueue(token, id);
            }
            // A call that was sent alone has taken the only room that there was.
            if room <= 1 || self.refusal.is_some() {
                break;
            }
        }
        if composed {
            network.flush(self, token);
        }
        let connection = &network.connections()[token];
        if connection.is_idle() && connection.carried() > 0 {
            network.connect(self, token, now);
        }
    }

    /// The same over several targets: the next call of a slot without one, whatever its target.
    fn refill_slot<D: Driver>(&mut self, network: &mut FloodNetwork<D>, token: ConnectionId, now: Tick) {
        if is_free(network, token)
            && now < self.part.until()
            && !self.part.holds_back(now)
            && let Some(id) = self.next_call(network, now)
        {
            self.place(network, token, id, now);
        }
    }

    /// Several targets: sends a call on the connection to its target in the slot of `token`, or queues it there.
    fn place<D: Driver>(&mut self, network: &mut FloodNetwork<D>, token: ConnectionId, id: CallId, now: Tick) {
        let Some(call) = network.call(id) else { return };
        let (target, due) = (self.user.target(call.tag), call.due);
        let (keeper, origin) = (network.connections()[token].keeper(), OriginId::at(target));
        let own = network.connections().kept_to(keeper, origin).next();
        let token = own.unwrap_or_else(|| network.add(origin, keeper));
        let connection = &network.connections()[token];
        let is_idle = connection.is_idle();
        // That a target which refuses connections is left alone for a moment is no time of the call.
        if let State::Backoff { until } = connection.state()
            && matches!(self.pace, Pace::Closed(_))
            && let Some(call) = network.call_mut(id)
        {
            call.put_off(until);
        }
        if is_idle && self.shares_outcome(network, target, id, due, now) {
            self.offer_slot(network, token, now);
        } else {
            network.carry(self, token, id, now);
        }
    }

    /// Closed model: the next call, due now, or one that has to be made again.
    #[inline]
    fn next_call<D: Driver>(&mut self, network: &mut FloodNetwork<D>, now: Tick) -> Option<CallId> {
        if !self.again.is_empty()
            && let Some(id) = self.next_again(network)
        {
            return Some(id);
        }
        let Pace::Closed(quota) = &mut self.pace else { return None };
        let number = quota.take()?;
        Some(network.begin(Call::new(number, now, self.part.is_measured(), Counted::OnceSent)))
    }

    /// A call that a peer has not processed and that has not ended since.
    fn next_again<D: Driver>(&mut self, network: &FloodNetwork<D>) -> Option<CallId> {
        std::iter::from_fn(|| self.again.pop_front()).find(|id| network.call(*id).is_some())
    }

    /// Whether the user lets the connection pause before its next call. The user is asked once a call.
    fn pauses<D: Driver>(&mut self, network: &mut FloodNetwork<D>, token: ConnectionId, now: Tick) -> bool {
        match network.connections_mut()[token].pause_at(now) {
            Pause::None => {}
            Pause::Over => return false,
            // The user is asked once the connection is ready.
            Pause::UnderWay => return true,
        }
        match self.user.pause() {
            Ok(0) => false,
            Ok(pause) => {
                network.pause(token, now.saturating_add(pause).min(Tick::LAST));
                true
            }
            Err(refusal) => {
                self.refusal = Some(refusal);
                true
            }
        }
    }

    /// Gives the connections that were answered their next calls. Everything that has come is read first: each answer
    /// is then timed when it came, and the code of one step stays in the processor's cache for all connections.
    fn call_again<D: Driver>(&mut self, network: &mut FloodNetwork<D>) {
        if self.interests.answers
            && self.refusal.is_none()
            && let Err(refusal) = self.user.settle()
        {
            self.refusal = Some(refusal);
        }
        let mut freed = network.take_roomy();
        let certain = self.certain_calls(&freed);
        if let Some(growth) = &mut self.growth {
            growth.answered(freed.len(), network.places());
        }
        self.user.expect(certain);
        for (at, &(token, since)) in freed.iter().enumerate() {
            if let Some((next, _)) = freed.get(at + 1) {
                network.foresee(*next, freed.get(at + 2).map(|(token, _)| *token));
            }
            if network.connections()[token].is_open() {
                // A call of the closed model is due when it is made. A connection of the open model has been free since
                // its answer.
                let closed = matches!(self.pace, Pace::Closed(_));
                let now = if closed { network.now() } else { since };
                self.give_work(network, token, now);
            }
        }
        freed.clear();
        self.user.expect(0);
        if !self.lists.have_none_dormant() && network.census().taking() > 0 && !self.outage.has_failed(OriginId::FIRST)
        {
            let now = network.now();
            self.wake_dormant(network, now, network.signs().last_answer() < network.signs().last_connected());
        }
        // Calls that end when they are sent have freed connections meanwhile: those have their turn after the next
        // read.
        network.keep_roomy(freed);
        if self.is_loading() {
            self.dispatch(network);
        }
    }

    /// The number of calls that will be made at once for the free connections, as far as it is certain.
    fn certain_calls(&self, freed: &[(ConnectionId, Tick)]) -> usize {
        let Some(&(_, since)) = freed.last() else { return 0 };
        let unlimited = matches!(self.pace, Pace::Closed(_)) && self.plan.stop.requests.is_none();
        let certain = unlimited && !self.interests.pauses && self.is_loading() && since + ENDING_NS < self.part.until();
        if certain { freed.len() } else { 0 }
    }
}
