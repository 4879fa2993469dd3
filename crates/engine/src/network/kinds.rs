//! Kinds of answers, sampled.

use brunt_protocol::Answer;

use super::answer_sampler::SampleRequest;
use super::examples::shown;
use super::{Network, Workload};
use crate::transport::{ConnectionId, Driver};

impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// An answer has come on a connection that looks at this answer, or has to look at the next.
    #[cold]
    pub(super) fn look<W: Workload<D, Tag = T>>(
        &mut self,
        load: &W,
        token: ConnectionId,
        answer: &Answer,
        came: &[u8],
    ) {
        let connection = &mut self.connections[token];
        let call = connection.calls.get(answer.position).and_then(|id| self.calls.get(*id));
        let is_pending = connection.link.look == SampleRequest::Pending;
        if is_pending && connection.link.client.take_sample().is_none() && connection.link.client.request_sample() {
            // Of several calls under way another one is looked at, whose answer is still to come.
            return;
        }
        if is_pending
            && let Some(call) = call.filter(|call| call.measured)
            && self.recorder.is_ok(answer.status)
        {
            let name = load.request_name(call.tag, connection.number).unwrap_or_default();
            let due_ns = self.recorder.measured_at(call.due);
            let client = &connection.link.client;
            if let Some(look) = client.take_sample() {
                let said = || {
                    let pieces = [look.beginning, client.excerpt(came), client.parts().body];
                    pieces.into_iter().find(|piece| !piece.is_empty()).map(shown).unwrap_or_default()
                };
                self.recorder.snapshot.kinds.add(name, answer.status, look, due_ns, said);
            }
        }
        self.connections[token].link.look = SampleRequest::None;
        // A connection that ends now leaves the look to the next one that is made.
        if answer.reusable && !self.connections[token].carries_one {
            self.look_at_next(token);
        }
    }

    /// Looks at the next answer on this connection, if one is wanted.
    #[inline]
    pub(super) fn look_at_next(&mut self, token: ConnectionId) {
        if self.recorder.looks.wants_one() {
            let connection = &mut self.connections[token];
            if connection.link.client.request_sample() {
                connection.link.look = SampleRequest::Pending;
            }
            self.recorder.looks.space_out();
        }
    }
}
