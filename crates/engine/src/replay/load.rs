//! A replay as the load of its network.

use brunt_protocol::replay::Ended;
use brunt_protocol::user::{Message, Refusal};
use brunt_record::time::Tick;

use super::{ReplayNetwork, Replaying, Tag};
use crate::network::{Call, CallId, End, Gone, Load};
use crate::transport::{ConnectionId, Driver};

impl<D: Driver> Load<D> for Replaying {
    type Tag = Tag;

    #[inline]
    fn message(&mut self, tag: Tag) -> Result<Message<'_>, Refusal> {
        self.log.call(tag.number)
    }

    fn request_name(&self, tag: Tag) -> Option<&str> {
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
        self.record_by_name(network, call, end, now);
        match (end, call.connection()) {
            (End::Answered(status), Some(token)) => {
                let at = network.recorder.ended_at(call, None, now);
                let (took_ns, parts) = (call.service_ns(at), network.connections[token].link.client.parts());
                self.log.ended(number, Ended::Answered { status, took_ns, parts });
            }
            (End::Answered(_) | End::Failed(..), _) => self.log.ended(number, Ended::Failed),
            (End::Unfinished | End::Unsent | End::Withdrawn, _) => self.log.ended(number, Ended::Cut),
        }
        self.free(slot, number, now);
    }

    fn next_calls(&mut self, network: &mut ReplayNetwork<D>, token: ConnectionId, now: Tick) {
        let Some(slot) = self.owners.get(token.place()).copied().flatten() else { return };
        if self.loading {
            self.serve(network, slot);
            self.sessions.rest(slot, now);
        }
    }

    fn draining(&mut self, _network: &mut ReplayNetwork<D>, token: ConnectionId, _now: Tick) {
        // The next call of the session gets another connection.
        let owner = self.disown(token);
        if let Some(session) = owner.and_then(|slot| self.sessions.get(slot)) {
            session.connection = None;
        }
    }

    fn turned_away(&mut self, network: &mut ReplayNetwork<D>, calls: Vec<CallId>, _now: Tick) {
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
        let owner = self.disown(gone.token);
        network.vacate(gone.token);
        if let Some(slot) = owner {
            if let Some(session) = self.sessions.get(slot) {
                session.connection = None;
            }
            self.ready.push(slot);
        }
    }
}

impl Replaying {
    /// Records an ended call under its name.
    fn record_by_name<D: Driver>(&mut self, network: &mut ReplayNetwork<D>, call: &Call<Tag>, end: End<'_>, now: Tick) {
        let (place, name) = self.log.name(call.tag.number);
        let place = place as usize;
        if place >= self.names.len() {
            self.names.resize(place + 1, None);
        }
        let Some(known) = self.names.get_mut(place) else { return };
        let is_excused = if let End::Answered(status) = end { self.log.excuses(call.tag.number, status) } else { false };
        let recorder = &mut network.recorder;
        let id = *known.get_or_insert_with(|| recorder.snapshot.figures.requests.id(name));
        recorder.ended_by_name(id, call, end, is_excused, now);
    }
}
