//! A replay as the workload of its worker and its network.

use std::cmp::Reverse;

use brunt_protocol::replay::ReplayedEnd;
use brunt_protocol::source::{Message, SourceEnd};
use brunt_record::catalogue::Counter;
use brunt_record::samples::Texts;
use brunt_record::snapshot::Phase;
use brunt_record::time::Tick;

use super::{IDLE_NS, LOOK_NS, ReplayNetwork, Replaying, Tag};
#[cfg(feature = "simulation")]
use crate::network::State;
use crate::network::{Call, CallId, End, Gone, Keeper, LoadEnd, Nature, Place, RowContext, Workload};
use crate::transport::{ConnectionId, Driver};

impl<D: Driver> Workload<D> for Replaying {
    type Tag = Tag;

    fn nature(&self) -> Nature {
        Nature { calls_at_once: false, may_hang: false }
    }

    fn prepare(&mut self, _network: &mut ReplayNetwork<D>, _now: Tick) -> Option<Tick> {
        // The log has to be read ahead of the load.
        (!self.look_ahead()).then_some(Tick::NEVER)
    }

    fn begin(&mut self, network: &mut ReplayNetwork<D>, phase: Phase, began: Tick, until: Tick) {
        self.log.begin(phase);
        if self.phase == Phase::Warmup {
            // What was to come later in the warm-up never does.
            (self.next, self.is_over) = (None, false);
        }
        (self.began, self.until, self.loading) = (began, until, true);
        self.phase = phase;
        if phase == Phase::Measured && self.log.traces() {
            network.recorder_mut().keep_slowest();
        }
    }

    fn tick(&mut self, network: &mut ReplayNetwork<D>, now: Tick) {
        if !self.loading {
            return;
        }
        self.begin_due(network, now);
        self.begin_thought(network, now);
        if !self.thinks {
            self.expire_waiting(network, now);
        }
        self.close_old(network, now);
        self.serve_ready(network);
    }

    fn turn(&mut self, network: &mut ReplayNetwork<D>) {
        let mut freed = network.take_roomy();
        freed.clear();
        network.keep_roomy(freed);
        if self.loading {
            self.serve_ready(network);
        }
    }

    fn next_wake(&self, now: Tick) -> Tick {
        if !self.loading {
            return Tick::NEVER;
        }
        if !self.ready.is_empty() {
            return now;
        }
        // Beyond the horizon, the next heartbeat checks whether it has moved on.
        let due = match self.due() {
            Some(due) if self.reach.ends_before(due) => Tick::NEVER,
            Some(due) => due,
            // The next call is due after the end.
            None if self.is_over || self.next.is_some() => Tick::NEVER,
            None => now + LOOK_NS,
        };
        let thought = self.thinking.peek().map_or(Tick::NEVER, |Reverse((at, _))| *at);
        let thought = if thought >= self.until || self.reach.ends_before(thought) { Tick::NEVER } else { thought };
        let idle = self.sessions.rested_since().map_or(Tick::NEVER, |since| since.saturating_add(IDLE_NS));
        due.min(thought).min(idle)
    }

    fn is_over(&self, network: &ReplayNetwork<D>, _now: Tick) -> bool {
        self.is_over
            && self.next.is_none()
            // Also those of a warm-up, from whose ends others may follow.
            && network.calls_alive() == 0
            && self.thinking.is_empty()
            && self.ready.is_empty()
    }

    fn next_due(&self) -> Tick {
        if !self.loading {
            return Tick::NEVER;
        }
        let thought = self.thinking.peek().map_or(Tick::NEVER, |Reverse((at, _))| *at);
        self.due().unwrap_or(Tick::NEVER).min(thought)
    }

    fn load_end(&self) -> Option<LoadEnd> {
        self.failed.clone().map(LoadEnd::Failed)
    }

    fn end_load(&mut self, network: &mut ReplayNetwork<D>, end: Tick) {
        if !self.loading {
            return;
        }
        // Calls that were due a moment ago begin before the load ends.
        self.begin_due(network, end);
        self.begin_thought(network, end);
        self.hold_rest(network, end);
        self.loading = false;
        // Conversations go on from a warm-up.
        if self.phase == Phase::Warmup {
            return;
        }
        let starved =
            self.sessions.all().filter(|session| session.is_starved).map(|session| session.queue.len() as u64);
        let starved = starved.sum();
        network.recorder_mut().snapshot.numbers.add(Counter::WaitedForConnection, starved);
        let waiting: Vec<_> = self.sessions.all().flat_map(|session| session.queue.drain(..)).collect();
        for id in waiting {
            if network.call(id).is_some_and(|call| call.place == Place::Waiting) {
                network.complete(self, id, End::Unsent, end);
            }
        }
    }

    /// Begins what the log has due before the second ends, so that a worker which comes to it late counts it in that second.
    fn hand_over(&mut self, network: &mut ReplayNetwork<D>, until: Tick) {
        if self.loading {
            self.begin_due(network, until.before(1));
            self.begin_thought(network, until.before(1));
        }
    }

    fn take_busy_ns(&mut self) -> u64 {
        0
    }

    #[cfg(feature = "simulation")]
    fn audit(&self, network: &ReplayNetwork<D>, _now: Tick) {
        network.audit(Some(self.sessions.waiting()), None);
        for token in network.connections().ids() {
            let connection = &network.connections()[token];
            let is_nobodys = connection.state() != State::Vacant && connection.keeper() == Keeper::Nobody;
            assert!(!is_nobodys || connection.is_draining(), "nobody uses connection {token:?}, which is not leaving");
        }
        let has_place = network.places() < self.most && self.loading && self.ready.is_empty();
        assert!(!has_place || self.starved.is_empty(), "a session waits for a connection, which it may have");
    }

    #[inline]
    fn message(&mut self, tag: Tag) -> Result<Message<'_>, SourceEnd> {
        self.log.call(tag.number)
    }

    fn request_name(&self, tag: Tag, _connection: u64) -> Option<&str> {
        Some(self.log.name(tag.number).1)
    }

    fn excuses(&self, tag: Tag, status: u16) -> bool {
        self.log.excuses(tag.number, status)
    }

    fn trace_id(&self, tag: Tag) -> Option<String> {
        self.log.trace(tag.number).map(|ids| ids.trace_id())
    }

    fn ended(&mut self, network: &mut ReplayNetwork<D>, call: &Call<Tag>, end: End<'_>, now: Tick) {
        let Tag { number, slot } = call.tag;
        if network.recorder_mut().samples.is_some() {
            let texts = Texts { name: self.log.name(number).1, tags: "" };
            let is_ok = matches!(end, End::Answered(status) if self.log.excuses(number, status)).then_some(true);
            network.write_down(call, end, now, &RowContext { texts, is_ok, user: None });
        }
        self.record_by_name(network, call, end, now);
        match (end, call.connection()) {
            (End::Answered(status), Some(token)) => {
                let at = network.recorder_mut().ended_at(call, None, now);
                let (took_ns, parts) = (call.service_ns(at), network.connections()[token].client().parts());
                self.log.ended(number, ReplayedEnd::Answered { status, took_ns, parts });
            }
            (End::Answered(_) | End::Failed(..) | End::ToldByPeer(..) | End::GivenUp(..), _) => {
                self.log.ended(number, ReplayedEnd::Failed);
            }
            (End::Unfinished | End::Unsent | End::Withdrawn, _) => self.log.ended(number, ReplayedEnd::Cut),
        }
        if self.loading
            && let Some(following) = self.log.follows(number)
        {
            let ended = network.recorder_mut().ended_at(call, end.failure().map(|(failure, _)| failure), now);
            self.plan_following(slot, following, ended);
        }
        self.free(slot, number, now);
    }

    fn next_calls(&mut self, network: &mut ReplayNetwork<D>, token: ConnectionId, now: Tick) {
        let Keeper::One(slot) = network.connections()[token].keeper() else { return };
        if self.loading {
            self.serve(network, slot);
            self.sessions.rest(slot, now);
        }
    }

    fn connection_leaves(&mut self, network: &mut ReplayNetwork<D>, token: ConnectionId, _now: Tick) {
        // The next call of the session gets another connection.
        network.connections_mut().release(token);
    }

    fn refused_unprocessed(&mut self, network: &mut ReplayNetwork<D>, calls: Vec<CallId>, _now: Tick) {
        for id in calls {
            let Some(tag) = network.call(id).map(|call| call.tag) else { continue };
            if let Some(session) = self.sessions.get(tag.slot) {
                session.current = None;
                session.queue.push_front(id);
                self.serve(network, tag.slot);
            }
        }
    }

    fn gone(&mut self, network: &mut ReplayNetwork<D>, gone: Gone<'_>, _now: Tick) {
        let keeper = network.connections()[gone.token].keeper();
        network.vacate(gone.token);
        if let Keeper::One(slot) = keeper {
            self.ready.push(slot);
        }
    }
}

impl Replaying {
    /// Records an ended call under its name.
    fn record_by_name<D: Driver>(&mut self, network: &mut ReplayNetwork<D>, call: &Call<Tag>, end: End<'_>, now: Tick) {
        let (place, name) = self.log.name(call.tag.number);
        if name.is_empty() {
            return;
        }
        let place = place as usize;
        if place >= self.names.len() {
            self.names.resize(place + 1, None);
        }
        let Some(known) = self.names.get_mut(place) else { return };
        let is_excused =
            if let End::Answered(status) = end { self.log.excuses(call.tag.number, status) } else { false };
        let recorder = network.recorder_mut();
        let id = *known.get_or_insert_with(|| recorder.snapshot.figures.requests.id(name));
        recorder.ended_by_name(id, call, end, is_excused, now);
    }
}
