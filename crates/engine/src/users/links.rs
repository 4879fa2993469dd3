//! The calls of a user that wait for its connections, and what is left of connections that it holds for itself.
//!
//! The connections themselves are the network's, which lists them by their keeper.

use std::collections::VecDeque;
use std::fmt;

use brunt_protocol::Client;
use brunt_record::outcome::Failure;

use crate::network::origins::OriginId;
use crate::network::{CallId, End};

/// The most connections that a user may hold at once.
const MOST_HELD: usize = 100;

/// What a user has of its connections, besides those that carry its calls as they come. It is its tasks', too.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// The connections that it holds for itself.
    held: Vec<DedicatedConnection>,
    /// Calls that wait for one of its other connections.
    waiting: WaitingCalls,
}

/// A connection that a user holds. While it is there, the network finds it by its handle.
struct DedicatedConnection {
    /// The script's number for it.
    handle: u32,
    /// What is left of it, once it has ended.
    remains: Option<Remains>,
    /// Calls of the user's tasks that wait for their turn on it, by their slots.
    waiting: VecDeque<u32>,
}

/// What is left of a connection that a user holds.
pub(super) struct Remains {
    /// Its client, which still has the bytes that came before its end.
    pub(super) client: Box<dyn Client>,
    /// How later calls on it end.
    pub(super) lost: AfterConnectionEnd,
}

/// The end of calls that come later than the end of their connection: none of them is an attempt to reach the target. What
/// an earlier call failed of is that call's alone.
#[derive(Debug, Clone)]
pub(super) struct AfterConnectionEnd {
    failure: Failure,
    reason: String,
}

impl AfterConnectionEnd {
    /// Calls end like this.
    pub(super) fn after(end: End<'_>) -> Self {
        let (failure, reason) = end.failure().unwrap_or((Failure::Closed, ""));
        Self { failure, reason: reason.to_owned() }
    }

    /// How a call ends.
    pub(super) fn end(&self) -> End<'_> {
        End::GivenUp(self.failure, &self.reason)
    }
}

impl fmt::Debug for DedicatedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("handle", &self.handle).finish_non_exhaustive()
    }
}

/// Calls that wait for connections which carry calls as they come.
impl Links {
    /// The call waits for a connection to `origin`, behind the others.
    pub(super) fn wait(&mut self, origin: OriginId, id: CallId) {
        self.waiting.push_back(origin, id);
    }

    /// The call, which had its turn, waits again.
    pub(super) fn wait_on(&mut self, origin: OriginId, id: CallId) {
        self.waiting.push_front(origin, id);
    }

    /// The call that has waited longest for a connection to `origin`. It may have ended.
    pub(super) fn next_waiting(&mut self, origin: OriginId) -> Option<CallId> {
        self.waiting.pop_front(origin)
    }

    /// The calls that wait, with their origins.
    #[cfg(feature = "simulation")]
    pub(super) fn waiting(&self) -> impl Iterator<Item = (OriginId, &CallId)> {
        self.waiting.all()
    }
}

/// Connections that the user holds.
impl Links {
    /// Checks that the user may hold one more.
    ///
    /// # Errors
    /// When it holds as many as it may.
    pub(super) fn may_hold(&self) -> Result<(), String> {
        if self.held.len() < MOST_HELD {
            return Ok(());
        }
        Err(format!(
            "this user has {MOST_HELD} connections open, and may have no more: close those that it is done with"
        ))
    }

    /// Holds a connection from now on, by this handle of the script's.
    pub(super) fn hold(&mut self, handle: u32) {
        // A first call that was turned away has held it before.
        if !self.holds(handle) {
            self.held.push(DedicatedConnection { handle, remains: None, waiting: VecDeque::new() });
        }
    }

    fn held(&mut self, handle: u32) -> Option<&mut DedicatedConnection> {
        self.held.iter_mut().find(|held| held.handle == handle)
    }

    /// Whether the user holds the connection of this handle, or what is left of it: the script has not closed it.
    pub(super) fn holds(&self, handle: u32) -> bool {
        self.held.iter().any(|held| held.handle == handle)
    }

    /// What is left of the connection of this handle.
    pub(super) fn remains(&mut self, handle: u32) -> Option<&mut Remains> {
        self.held(handle)?.remains.as_mut()
    }

    /// The call in this slot waits for its turn on the connection of this handle.
    pub(super) fn wait_on_held(&mut self, handle: u32, slot: u32) {
        if let Some(held) = self.held(handle) {
            held.waiting.push_back(slot);
        }
    }

    /// The slot of the next call that waits for the connection of this handle.
    pub(super) fn next_on_held(&mut self, handle: u32) -> Option<u32> {
        self.held(handle)?.waiting.pop_front()
    }

    /// The connection has ended: keeps what had come until the user closes it. Returns the slots of the calls that waited
    /// for it.
    pub(super) fn keep(&mut self, handle: u32, remains: Remains) -> VecDeque<u32> {
        let Some(held) = self.held(handle) else { return VecDeque::new() };
        held.remains = Some(remains);
        std::mem::take(&mut held.waiting)
    }

    /// Holds the connection of this handle no longer. Returns the slots of the calls that waited for it.
    pub(super) fn release(&mut self, handle: u32) -> VecDeque<u32> {
        let at = self.held.iter().position(|held| held.handle == handle);
        at.map(|at| self.held.swap_remove(at).waiting).unwrap_or_default()
    }

    /// The slots of the calls that wait for their turn on one of the held connections.
    #[cfg(feature = "simulation")]
    pub(super) fn waiting_on_held(&self) -> impl Iterator<Item = u32> {
        self.held.iter().flat_map(|held| held.waiting.iter().copied())
    }

    /// Forgets all of it, and keeps its memory.
    pub(super) fn clear(&mut self) {
        self.held.clear();
        self.waiting.0.clear();
    }
}

/// Waiting calls, oldest first, in a queue for each origin: a connection frees a place for calls of its own origin
/// alone. Calls that have ended stay until their turn comes.
#[derive(Debug, Default)]
struct WaitingCalls(Vec<(OriginId, VecDeque<CallId>)>);

impl WaitingCalls {
    /// The queue of an origin. A user calls few origins.
    fn queue(&mut self, origin: OriginId) -> Option<&mut VecDeque<CallId>> {
        self.0.iter_mut().find(|(known, _)| *known == origin).map(|(_, queue)| queue)
    }

    /// Adds a call to `origin` behind the others.
    fn push_back(&mut self, origin: OriginId, id: CallId) {
        match self.queue(origin) {
            Some(queue) => queue.push_back(id),
            None => self.0.push((origin, VecDeque::from([id]))),
        }
    }

    /// Puts back a call that was taken, before the others.
    fn push_front(&mut self, origin: OriginId, id: CallId) {
        match self.queue(origin) {
            Some(queue) => queue.push_front(id),
            None => self.0.push((origin, VecDeque::from([id]))),
        }
    }

    /// Takes the oldest call to `origin` from its queue.
    fn pop_front(&mut self, origin: OriginId) -> Option<CallId> {
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
    fn all(&self) -> impl Iterator<Item = (OriginId, &CallId)> {
        self.0.iter().flat_map(|(origin, queue)| queue.iter().map(|id| (*origin, id)))
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
