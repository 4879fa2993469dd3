//! Calls whose answers come as messages: the times of messages, and late ones.

use brunt_record::outcome::Failure;
use brunt_record::time::Tick;

use super::call::{End, LATE, Place};
use super::calls::CallId;
use super::recorder::Core;
use super::{MessageOf, Network, Workload};
use crate::transport::{ConnectionId, Driver};

/// The reason of a call that its user left before any message had come.
const LEFT: &str = "its user left the stream before its first message";
/// The reason of a connection closed because nobody reads a stream on it.
const CUT: &str = "the user of a stream left it before its end";

impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// A message for the call in flight at this position has come and was read at `now`. False if the connection is
    /// gone.
    pub(super) fn message_came<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        position: usize,
        status: u16,
        now: Tick,
    ) -> bool {
        let connection = &mut self.connections[token];
        connection.has_served();
        self.last_answer = now;
        let generation = connection.generation;
        let found = connection.calls.get(position).copied();
        let (at, read) = (self.recorder.arrival(now), self.recorder.reads_so_far());
        let Some((id, (call, stream))) = found.and_then(|id| Some((id, self.calls.streaming(id)?))) else {
            self.broken(load, token, Failure::Protocol, "a message of no stream in flight", now);
            return false;
        };
        call.receive(now);
        let came = stream.came(call, at, read, status);
        let (tag, expires) = (call.tag, call.expires);
        let counts = self.recorder.counts(call);
        self.calls.watch(id, expires);
        if counts {
            self.recorder.snapshot.came(&came);
        }
        self.recorder.message_by_end(Core::All, at);
        load.streamed(self, &MessageOf { token, id, tag, status, came, at, counts, now });
        self.connections[token].generation == generation
    }

    /// The failure of a late call: it has stalled, or timed out as a whole.
    pub(super) fn lateness(&self, id: CallId) -> (Failure, &'static str) {
        let streaming = self.calls.get(id).filter(|call| call.streams).zip(self.calls.stream(id));
        streaming.and_then(|(call, stream)| stream.lateness(call)).unwrap_or((Failure::Timeout, LATE))
    }

    /// The user of a call leaves its answer. With a reason, the call fails for it. Without one, it counts as answered,
    /// with the status of its last message; if no message has come, it fails. The connection is closed, unless the
    /// protocol can cancel a single call.
    pub(crate) fn leave<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        id: CallId,
        reason: Option<(Failure, &str)>,
        now: Tick,
    ) {
        let Some(place) = self.calls.get(id).map(|call| call.place) else { return };
        let end = match (reason, self.calls.streaming(id)) {
            (Some((failure, reason)), _) => End::Failed(failure, reason),
            (None, stream) => match stream.and_then(|(_, stream)| stream.leave()) {
                Some(status) => End::Answered(status),
                None => End::Failed(Failure::Closed, LEFT),
            },
        };
        match place {
            Place::Waiting => self.complete(load, id, end, now),
            Place::Queued(token) => {
                self.connections[token].queue.retain(|queued| *queued != id);
                self.complete(load, id, end, now);
            }
            Place::InFlight(token) => self.leave_in_flight(load, token, id, end, now),
        }
    }

    fn leave_in_flight<W: Workload<D, Tag = T>>(
        &mut self,
        load: &mut W,
        token: ConnectionId,
        id: CallId,
        end: End<'_>,
        now: Tick,
    ) {
        let Some(call) = self.calls.get(id).copied() else { return };
        let connection = &mut self.connections[token];
        let sent = connection.has_sent(&call);
        let Some(position) = connection.calls.iter().position(|known| *known == id) else { return };
        let goes_on = sent && connection.link.client.give_up(position, &mut self.outgoing);
        connection.take_call(position);
        if goes_on {
            self.flush_aside(token);
            self.complete(load, id, end, now);
            self.send_waiting(load, token, now);
            self.freed.push((token, now));
        } else {
            self.outgoing.clear();
            let generation = connection.generation;
            self.complete(load, id, end, now);
            if self.connections[token].generation == generation {
                self.lost(load, token, Failure::Closed, CUT, now);
            }
        }
    }
}
