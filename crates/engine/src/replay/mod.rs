//! Replays a log: its calls are due at its times, and each session makes them one after the other on its own
//! connection.
//!
//! Calls without a session share connections: each goes on a free one, or on a new one. A call that follows from the end of another
//! takes its connection, and is due some time after that end.

mod sessions;
mod workload;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use brunt_plan::plan::Plan;
use brunt_plan::share::Share;
use brunt_protocol::replay::{Following, LoggedCall, ReplayedEnd, Upcoming, WorkerReplay};
use brunt_record::SECOND_NS;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::figures::NameId;
use brunt_record::outcome::Failure;
use brunt_record::snapshot::Phase;
use brunt_record::time::Tick;

use self::sessions::{Session, Sessions};
use crate::flood::own_delay;
use crate::gate::{DispatchWindow, GrantedUntil};
use crate::network::origins::OriginId;
use crate::network::{Call, CallId, Counted, End, Keeper, Network, Place};
use crate::rules::{Rule, is_broken};
use crate::transport::Driver;

/// The time after which the idle connection of a session is closed, in nanoseconds.
const IDLE_NS: u64 = 60 * SECOND_NS;
/// The time between two looks at whether the log has been read further, in nanoseconds.
const LOOK_NS: u64 = 1_000_000;
/// The reason for the failure of a call whose turn does not come in time.
const NO_TURN: &str = "its session's calls before it took all of its time";
/// The reason for the failure of a call whose session never got a connection.
const NO_PLACE: &str = "other sessions had every connection for all of its time";

/// The tag of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag {
    /// The number of the call in the log.
    number: u64,
    /// The slot of its session.
    slot: u32,
}

type ReplayNetwork<D> = Network<D, Tag>;

/// A session that waits for its user's next call, with `--think`; the earliest first.
type Thinking = Reverse<(Tick, u32)>;

/// One worker's part of a log.
#[expect(clippy::struct_excessive_bools, reason = "independent properties of one state")]
pub(crate) struct Replaying {
    log: Box<dyn WorkerReplay>,
    /// The next call, once the log has it.
    next: Option<LoggedCall>,
    is_over: bool,
    failed: Option<String>,
    /// When the measured part began, and when it ends at the latest: calls due at the end or later are not part of it.
    began: Tick,
    until: Tick,
    loading: bool,
    /// The part of the run that began last.
    phase: Phase,
    /// Whether the time between a session's calls is kept instead of their due times.
    thinks: bool,
    /// Whether the protocol says when calls are due: turns follow from answers.
    has_own_times: bool,
    timeout_ns: u64,
    sessions: Sessions,
    /// Sessions that may have a call to make.
    ready: Vec<u32>,
    thinking: BinaryHeap<Thinking>,
    /// Calls that have begun, in the order of their due times; some were sent or have ended since.
    waiting: VecDeque<CallId>,
    /// Sessions that found no place for a connection.
    starved: VecDeque<u32>,
    /// The most connections.
    most: usize,
    /// The recorder's ids of names, by the log's numbers for them.
    names: Vec<Option<NameId>>,
    /// The horizon up to which calls may be made; and the time until which due calls are never sent, as they had waited
    /// for the horizon to move on.
    reach: DispatchWindow,
    held_until: Tick,
}

impl Replaying {
    /// One worker's part of the log, with the calls of `log`.
    pub(crate) fn new(log: Box<dyn WorkerReplay>, plan: &Plan, share: Share, thinks: bool) -> Self {
        Self {
            log,
            next: None,
            is_over: false,
            failed: None,
            began: Tick::EPOCH,
            until: Tick::NEVER,
            loading: false,
            phase: Phase::Measured,
            thinks,
            has_own_times: plan.own_times,
            timeout_ns: plan.timeout_ns,
            sessions: Sessions::default(),
            ready: Vec::new(),
            thinking: BinaryHeap::new(),
            waiting: VecDeque::new(),
            starved: VecDeque::new(),
            most: share.part_of(u64::from(plan.connections.most())).max(1) as usize,
            names: Vec::new(),
            reach: DispatchWindow::default(),
            held_until: Tick::EPOCH,
        }
    }

    /// The same part, with calls only up to this horizon.
    pub(crate) fn within(self, horizon: GrantedUntil) -> Self {
        Self { reach: horizon.into(), ..self }
    }

    /// Takes the log's next call, if none was taken yet; `false` while it is still being read.
    fn look_ahead(&mut self) -> bool {
        if self.next.is_some() || self.is_over || self.failed.is_some() {
            return true;
        }
        match self.log.next() {
            Upcoming::Call(call) => self.next = Some(call),
            Upcoming::NotYet => return false,
            Upcoming::Over => self.is_over = true,
            Upcoming::Failed(reason) => self.failed = Some(reason),
        }
        true
    }

    /// When the next call of the measured part is due, on the network's clock.
    fn due(&self) -> Option<Tick> {
        self.next.map(|call| self.began.saturating_add(call.due_ns)).filter(|due| *due < self.until)
    }

    /// Begins every call that is due by `now` and before the horizon. Calls that waited for the horizon to move on are
    /// never sent, as a burst would be a load that nobody asked for.
    fn begin_due<D: Driver>(&mut self, network: &mut ReplayNetwork<D>, now: Tick) {
        while self.look_ahead()
            && let Some(due) = self.due().filter(|due| *due <= now && !self.reach.holds_back(*due))
            && let Some(call) = self.next.take()
        {
            if self.reach.lets_go(due) {
                self.held_until = now;
            }
            if due <= self.held_until {
                self.hold(network, call.number, due, now);
                continue;
            }
            let slot = self.sessions.slot_of(call.session);
            let Some(session) = self.sessions.get(slot) else { return };
            if self.thinks && call.session.is_some() {
                session.planned.push_back(call);
                self.plan_next(slot);
                continue;
            }
            self.begin(network, slot, call.number, due);
        }
    }

    /// Records a due call that was held back: it is never sent.
    fn hold<D: Driver>(&mut self, network: &mut ReplayNetwork<D>, number: u64, due: Tick, now: Tick) {
        network.recorder_mut().snapshot.numbers.add(Counter::Due, 1);
        network.recorder_mut().held_overdue(due, 1, true, now);
        self.log.ended(number, ReplayedEnd::Cut);
    }

    /// Ends every call that is due by `end` and lies beyond the horizon.
    fn hold_rest<D: Driver>(&mut self, network: &mut ReplayNetwork<D>, end: Tick) {
        while self.look_ahead()
            && let Some(due) = self.due().filter(|due| *due <= end)
            && let Some(call) = self.next.take()
        {
            self.hold(network, call.number, due, end);
        }
    }

    /// Begins a call, which is due from then on.
    fn begin<D: Driver>(&mut self, network: &mut ReplayNetwork<D>, slot: u32, number: u64, due: Tick) {
        if !self.log.claim(number) {
            return;
        }
        let id = network.begin(Call::new(Tag { number, slot }, due, self.phase == Phase::Measured, Counted::AtOnce));
        self.waiting.push_back(id);
        if let Some(session) = self.sessions.get(slot) {
            session.queue.push_back(id);
        }
        self.serve(network, slot);
    }

    /// With `--think`: plans the session's next call. It is due once its user has thought as long as in the log, and
    /// not before its logged time.
    fn plan_next(&mut self, slot: u32) {
        let began = self.began;
        let Some(session) = self.sessions.get(slot) else { return };
        if session.is_busy() || session.is_thinking {
            return;
        }
        let Some(call) = session.planned.front() else { return };
        let due = began.saturating_add(call.due_ns);
        let at = session.ended_at.map_or(due, |ended| due.max(ended.saturating_add(session.thought_ns(call))));
        session.is_thinking = true;
        self.thinking.push(Reverse((at, slot)));
    }

    /// Begins the calls whose users have thought long enough. As in [`Self::begin_due`], calls that waited for the
    /// horizon to move on are never sent.
    fn begin_thought<D: Driver>(&mut self, network: &mut ReplayNetwork<D>, now: Tick) {
        while let Some(Reverse((at, slot))) = self.thinking.peek().copied()
            && at <= now
            && at < self.until
            && !self.reach.holds_back(at)
        {
            self.thinking.pop();
            if self.reach.lets_go(at) {
                self.held_until = now;
            }
            let Some(session) = self.sessions.get(slot) else { continue };
            session.is_thinking = false;
            let Some(call) = session.planned.pop_front() else { continue };
            session.last = Some(call);
            if at > self.held_until {
                self.begin(network, slot, call.number, at);
            } else {
                self.hold(network, call.number, at, now);
                self.plan_next(slot);
            }
        }
    }

    /// Makes the session's next call, if it has one and none is under way.
    fn serve<D: Driver>(&mut self, network: &mut ReplayNetwork<D>, slot: u32) {
        loop {
            let Some(session) = self.sessions.get(slot).filter(|session| session.current.is_none()) else { return };
            let Some(id) = session.queue.pop_front() else { return };
            // The call may have ended while it waited.
            let Some(call) = network.call(id) else { continue };
            let number = call.tag.number;
            let now = network.now();
            let own = network.connections().kept(Keeper::One(slot)).next();
            if let Some(token) = own {
                let waits = network.connections()[token].room(1) == 0;
                if !(waits && is_broken(Rule::SessionsKeepTheirConnection)) {
                    session.current = Some(number);
                    let has_waited = session.note_delay(network, id, now);
                    self.note_wait(network, slot, waits || has_waited);
                    return network.carry(self, token, id, now);
                }
                network.connections_mut().release(token);
            }
            if network.places() >= self.most && !self.close_idle(network, now) {
                if let Some(session) = self.sessions.get(slot) {
                    session.queue.push_front(id);
                    session.is_starved = true;
                }
                return self.starved.push_back(slot);
            }
            return self.connect(network, slot, id, number, now);
        }
    }

    /// Makes a connection for a session's call.
    fn connect<D: Driver>(&mut self, network: &mut ReplayNetwork<D>, slot: u32, id: CallId, number: u64, now: Tick) {
        let Some(session) = self.sessions.get(slot) else { return };
        let token = network.add(OriginId::FIRST, Keeper::One(slot));
        session.current = Some(number);
        session.note_delay(network, id, now);
        self.note_wait(network, slot, true);
        network.carry(self, token, id, now);
    }

    /// Counts a call that waited for a connection. A conversation makes its own with its first turn, and is done with it before the next
    /// turn is due: it has waited only where others had every connection.
    fn note_wait<D: Driver>(&mut self, network: &mut ReplayNetwork<D>, slot: u32, has_waited: bool) {
        let is_starved = self.sessions.get(slot).is_some_and(|session| std::mem::take(&mut session.is_starved));
        let counts = if self.has_own_times { is_starved } else { has_waited };
        network.recorder_mut().snapshot.numbers.add(Counter::WaitedForConnection, u64::from(counts));
    }

    /// Closes the connection that has been idle for longest, if there is one. Returns whether there is now room for
    /// another.
    fn close_idle<D: Driver>(&mut self, network: &mut ReplayNetwork<D>, now: Tick) -> bool {
        self.close_rested(network, Tick::NEVER, now)
    }

    /// Forgets sessions that have been idle since `since` or before, the longest idle first, until one of them had a
    /// connection, which is closed. Returns whether one had.
    fn close_rested<D: Driver>(&mut self, network: &mut ReplayNetwork<D>, since: Tick, now: Tick) -> bool {
        while let Some(slot) = self.sessions.take_idle(since) {
            let connection = network.connections().kept(Keeper::One(slot)).next();
            if let Some(token) = connection {
                network.close(self, token, now);
                network.vacate(token);
                return true;
            }
        }
        false
    }

    /// Closes connections that have been idle for too long.
    fn close_old<D: Driver>(&mut self, network: &mut ReplayNetwork<D>, now: Tick) {
        while self.close_rested(network, now.before(IDLE_NS), now) {}
    }

    /// Ends calls that have waited for their turn as long as a call may take.
    fn expire_waiting<D: Driver>(&mut self, network: &mut ReplayNetwork<D>, now: Tick) {
        while let Some(id) = self.waiting.front().copied() {
            let waits = network.call(id).filter(|call| call.place == Place::Waiting);
            if let Some(expires) = waits.map(|call| call.due.saturating_add(self.timeout_ns)) {
                if expires > now {
                    return;
                }
                let slot = network.call(id).map(|call| call.tag.slot);
                let is_starved =
                    slot.and_then(|slot| self.sessions.get(slot)).is_some_and(|session| session.is_starved);
                let reason = if is_starved { NO_PLACE } else { NO_TURN };
                network.recorder_mut().snapshot.numbers.add(Counter::WaitedForConnection, u64::from(is_starved));
                network.complete(self, id, End::Failed(Failure::Timeout, reason), expires);
            }
            self.waiting.pop_front();
        }
    }

    /// Serves every session that may have a call to make.
    fn serve_ready<D: Driver>(&mut self, network: &mut ReplayNetwork<D>) {
        let mut ready = std::mem::take(&mut self.ready);
        for slot in ready.drain(..) {
            self.serve(network, slot);
            if self.thinks {
                self.plan_next(slot);
            }
            self.sessions.rest(slot, network.now());
        }
        ready.append(&mut self.ready);
        self.ready = ready;
        while !self.starved.is_empty()
            && (network.places() < self.most || {
                let now = network.now();
                self.close_idle(network, now)
            })
            && let Some(slot) = self.starved.pop_front()
        {
            // So far the session waited for others' connections, and not for this worker.
            if let Some(session) = self.sessions.get(slot) {
                session.ready_since = network.now();
            }
            self.serve(network, slot);
        }
    }

    /// Plans what follows from the end of a call, some time after `ended`.
    fn plan_following(&mut self, slot: u32, following: Following, ended: Tick) {
        let Some(session) = self.sessions.get(slot) else { return };
        session.planned.push_back(LoggedCall { number: following.number, due_ns: 0, session: None, logged_ns: 0 });
        session.is_thinking = true;
        self.thinking.push(Reverse((ended.saturating_add(following.after_ns), slot)));
    }

    /// Marks the session's current call as ended, or as going elsewhere.
    fn free(&mut self, slot: u32, number: u64, now: Tick) {
        if let Some(session) = self.sessions.get(slot).filter(|session| session.current == Some(number)) {
            session.current = None;
            session.ended(now);
            self.ready.push(slot);
        }
    }
}

impl Session {
    /// Records how late a call is by this worker's own doing, at the time when it is sent, or when its connection is
    /// begun. Returns whether it has waited for the session's connection.
    fn note_delay<D: Driver>(&mut self, network: &mut ReplayNetwork<D>, id: CallId, now: Tick) -> bool {
        let Some(call) = network.call_mut(id) else { return false };
        let own = own_delay::measure(call.due, self.ready_since, self.held_up, now);
        self.held_up = own.held_up;
        (call.own_delay_ns, call.exposed_ns) = (own.call, own.call);
        network.recorder_mut().snapshot.times.record(Timing::Lag, own.call);
        own.has_waited
    }
}
