//! Calls of a user that wait for one of its own connections.

use std::collections::VecDeque;

use crate::network::CallId;
use crate::network::origins::OriginId;

/// Waiting calls, oldest first, in a queue for each origin: a connection frees a place for calls of its own origin
/// alone. Calls that have ended stay until their turn comes.
#[derive(Debug, Default)]
pub(super) struct WaitingCalls(Vec<(OriginId, VecDeque<CallId>)>);

impl WaitingCalls {
    /// The queue of an origin. A user calls few origins.
    fn queue(&mut self, origin: OriginId) -> Option<&mut VecDeque<CallId>> {
        self.0.iter_mut().find(|(known, _)| *known == origin).map(|(_, queue)| queue)
    }

    /// Adds a call to `origin` behind the others.
    pub(super) fn push_back(&mut self, origin: OriginId, id: CallId) {
        match self.queue(origin) {
            Some(queue) => queue.push_back(id),
            None => self.0.push((origin, VecDeque::from([id]))),
        }
    }

    /// Puts back a call that was taken, before the others.
    pub(super) fn push_front(&mut self, origin: OriginId, id: CallId) {
        match self.queue(origin) {
            Some(queue) => queue.push_front(id),
            None => self.0.push((origin, VecDeque::from([id]))),
        }
    }

    /// Takes the oldest call to `origin` from its queue.
    pub(super) fn pop_front(&mut self, origin: OriginId) -> Option<CallId> {
        let place = self.0.iter().position(|(known, _)| *known == origin)?;
        let queue = self.0.get_mut(place).map(|(_, queue)| queue)?;
        let id = queue.pop_front();
        if queue.is_empty() {
            self.0.swap_remove(place);
        }
        id
    }

    /// All waiting calls.
    #[cfg(any(feature = "simulation", test))]
    pub(super) fn all(&self) -> impl Iterator<Item = &CallId> {
        self.0.iter().flat_map(|(_, queue)| queue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_wait_by_origin_and_in_their_order() {
        let [a, b, c, d] = [0, 1, 2, 3].map(CallId::numbered);
        let mut waiting = WaitingCalls::default();
        waiting.push_back(OriginId::at(1), a);
        waiting.push_back(OriginId::at(2), b);
        waiting.push_back(OriginId::at(1), c);
        waiting.push_front(OriginId::at(2), d);
        assert_eq!(waiting.all().count(), 4);
        let taken = [2, 1, 1, 1, 3, 2].map(|origin| waiting.pop_front(OriginId::at(origin)));
        assert_eq!(taken, [Some(d), Some(a), Some(c), None, None, Some(b)]);
        assert_eq!(waiting.0.len(), 0, "a queue that is empty is given back");
    }
}
