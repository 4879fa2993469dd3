//! The open model: due calls on connections that are free.

use brunt_record::catalogue::{Counter, Timing};
use brunt_record::time::Tick;

use super::{Flood, FloodNetwork, Pace, home, is_free, own_delay};
use crate::network::growth::ConnectionCounts;
use crate::network::origins::OriginId;
use crate::network::{Call, CallId, Counted, End, State};
use crate::transport::{ConnectionId, Driver};

impl Flood {
    /// Open model: lists the connection among those that can carry a call.
    pub(super) fn offer<D: Driver>(&mut self, network: &mut FloodNetwork<D>, token: ConnectionId, now: Tick) {
        while !self.again.is_empty() && network.connections()[token].room(self.pipeline) > 0 {
            let Some(id) = self.next_again(network) else { break };
            network.send(self, token, id, now);
        }
        let reconnect = self.plan.reconnect;
        let connection = &network.connections()[token];
        let free = match connection.state() {
            State::Open { .. } => connection.room(self.pipeline) > 0,
            State::Idle { .. } => reconnect && connection.carried() == 0,
            _ => false,
        };
        if free && connection.is_unlisted() {
            self.lists.offer(token, network.connections_mut(), now);
        }
        let connection = &network.connections()[token];
        if connection.is_idle() && !reconnect && connection.is_unlisted() {
            network.connect(self, token, now);
        }
    }

    /// The same over several targets: lists the slot of the connection if the slot has no call.
    pub(super) fn offer_slot<D: Driver>(&mut self, network: &mut FloodNetwork<D>, token: ConnectionId, now: Tick) {
        let home = home(network, token);
        if !is_free(network, home) || !network.connections()[home].is_unlisted() {
            return;
        }
        if let Some(id) = self.next_again(network) {
            self.place(network, home, id, now);
            return;
        }
        self.lists.offer(home, network.connections_mut(), now);
    }

    /// Open model: sends due calls on free connections, and adds connections where none is free, if they grow.
    #[inline]
    pub(super) fn dispatch<D: Driver>(&mut self, network: &mut FloodNetwork<D>) {
        if matches!(self.pace, Pace::Open(_)) {
            self.send_due_or_grow(network);
        }
    }

    fn send_due_or_grow<D: Driver>(&mut self, network: &mut FloodNetwork<D>) {
        self.send_due(network);
        if self.growth.is_some() && self.grow(network) && self.connects_for_calls() {
            // With a connection for each call, it is made when there is a call.
            self.send_due(network);
        }
    }

    /// Adds connections for waiting calls, if none is free. Returns whether it did.
    fn grow<D: Driver>(&mut self, network: &mut FloodNetwork<D>) -> bool {
        if !self.lists.have_none_ready() {
            if let Some(growth) = &mut self.growth {
                growth.has_free();
            }
            return false;
        }
        let now = network.now();
        let connects_for_calls = self.connects_for_calls();
        let is_in_vain =
            self.is_held() || !connects_for_calls && (network.newest_is_unusable() || self.is_out(network, now));
        let (Some(growth), Pace::Open(schedule)) = (&mut self.growth, &self.pace) else { return false };
        if is_in_vain {
            growth.next_look = Tick::NEVER;
            return false;
        }
        let standing = ConnectionCounts {
            connections: network.places(),
            connecting: network.census().connecting(),
            taken: schedule.taken(),
            held_up: self.held_up,
            heard: network.recorder().last_arrival(),
            reconnect: connects_for_calls,
        };
        let missing = growth.missing(&standing, now);
        for _ in 0..missing {
            let token = self.add(network);
            network.connections_mut()[token].set_held_up(self.held_up);
            if self.slots.is_some() {
                self.offer_slot(network, token, now);
            } else {
                self.offer(network, token, now);
            }
        }
        missing > 0
    }

    /// Open model: sends due calls on free connections, oldest first.
    fn send_due<D: Driver>(&mut self, network: &mut FloodNetwork<D>) {
        let Pace::Open(schedule) = &self.pace else { return };
        if schedule.due().is_none() {
            return;
        }
        let mut now = network.now();
        self.hear();
        while let Pace::Open(schedule) = &mut self.pace
            && schedule.due().is_some_and(|due| due <= now && !self.part.holds_back(due))
            && let Some(token) = self.lists.take_ready()
        {
            let connection = &mut network.connections_mut()[token];
            let opens = self.plan.reconnect && connection.is_idle() && connection.carried() == 0;
            // A connection that is gone may be listed elsewhere by now, or its place may belong to another.
            let is_here = connection.is_open() || opens || self.slots.is_some();
            if !is_here || !connection.unlist() {
                continue;
            }
            let has_room = match self.slots {
                Some(_) => is_free(network, token),
                None => opens || connection.room(self.pipeline) > 0,
            };
            if !has_room {
                continue;
            }
            let connection = &mut network.connections_mut()[token];
            let ready_since = connection.ready_since();
            let Some((due, number)) = schedule.take() else { break };
            let own = own_delay::measure(due, ready_since, connection.held_up(), now);
            connection.set_held_up(own.held_up);
            self.held_up = own.held_up;
            let snapshot = &mut network.recorder_mut().snapshot;
            snapshot.times.record(Timing::Lag, own.call);
            snapshot.numbers.add(Counter::WaitedForConnection, u64::from(own.has_waited));
            let exposed_ns = self.exposure.of(network, now.before(own.call), now);
            let call = Call::new(number, due, self.part.is_measured(), Counted::Already);
            let id = network.begin(Call { own_delay_ns: own.call, exposed_ns, ..call });
            if self.slots.is_some() {
                self.place(network, token, id, now);
            } else if opens && self.shares_outcome(network, 0, id, due, now) {
                self.offer(network, token, ready_since);
            } else if opens {
                network.enqueue(token, id);
                network.connect(self, token, now);
            } else {
                network.send(self, token, id, now);
                self.offer(network, token, ready_since);
            }
            if self.refusal.is_some() {
                break;
            }
            now = network.now();
            self.hear();
        }
    }

    /// Open model, with connections made for calls: whether the call, which has begun, makes no attempt of its own
    /// because there are too many, and has ended with the outcome of another attempt.
    pub(super) fn shares_outcome<D: Driver>(
        &mut self,
        network: &mut FloodNetwork<D>,
        target: usize,
        id: CallId,
        due: Tick,
        now: Tick,
    ) -> bool {
        let is_open = matches!(self.pace, Pace::Open(_));
        if !is_open || !self.outage.has_failed(OriginId::at(target)) || self.outage.attempts.take(now) {
            return false;
        }
        let Some(outcome) = self.outage.shared(OriginId::at(target), now).cloned() else { return false };
        let end = now.max(due.saturating_add(outcome.took_ns));
        network.complete(self, id, End::Failed(outcome.failure, &outcome.reason), end);
        true
    }
}
