//! The connections of a user: those that carry its calls as they come, those that it holds for itself, and the calls
//! that wait for either.

use std::collections::VecDeque;
use std::fmt;

use brunt_protocol::Client;
use brunt_record::outcome::Failure;

use crate::network::CallId;
use crate::network::origins::OriginId;
use crate::transport::ConnectionId;

/// The most connections that a user may hold at once.
const MOST_HELD: usize = 100;

/// The connections of a user. They are its tasks', too.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// Those that carry its calls as they come.
    connections: Vec<ConnectionId>,
    /// Those that it holds for itself.
    held: Vec<Held>,
    /// Calls that wait for one of its connections.
    waiting: WaitingCalls,
}

/// A connection that a user holds.
struct Held {
    /// The script's number for it.
    handle: u32,
    connection: HeldConnection,
    /// Calls of the user's tasks that wait for their turn on it, by their slots.
    waiting: VecDeque<u32>,
}

/// A connection that a user holds, during its life and after.
pub(super) enum HeldConnection {
    /// The connection exists or is being made.
    Open(ConnectionId),
    /// It has ended, for this reason. Its client still has the bytes that came before.
    Gone { client: Box<dyn Client>, failure: Failure, reason: String },
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl Held {
    fn is_open_at(&self, token: ConnectionId) -> bool {
        matches!(self.connection, HeldConnection::Open(known) if known == token)
    }
}

/// Connections that carry calls as they come.
impl Links {
    pub(super) fn add(&mut self, token: ConnectionId) {
        self.connections.push(token);
    }

    /// The connection is gone.
    pub(super) fn forget(&mut self, token: ConnectionId) {
        self.connections.retain(|known| *known != token);
    }

    pub(super) fn connections(&self) -> &[ConnectionId] {
        &self.connections
    }

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

    /// The calls that wait for a connection that carries calls as they come.
    #[cfg(feature = "simulation")]
    pub(super) fn waiting(&self) -> impl Iterator<Item = &CallId> {
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
    pub(super) fn hold(&mut self, handle: u32, token: ConnectionId) {
        self.held.push(Held { handle, connection: HeldConnection::Open(token), waiting: VecDeque::new() });
    }

    fn by_handle(&mut self, handle: u32) -> Option<&mut Held> {
        self.held.iter_mut().find(|held| held.handle == handle)
    }

    /// The connection of this handle, or what is left of it; `None` once the script has closed it.
    pub(super) fn held(&mut self, handle: u32) -> Option<&mut HeldConnection> {
        self.by_handle(handle).map(|held| &mut held.connection)
    }

    /// The call in this slot waits for its turn on the connection of this handle.
    pub(super) fn wait_on_held(&mut self, handle: u32, slot: u32) {
        if let Some(held) = self.by_handle(handle) {
            held.waiting.push_back(slot);
        }
    }

    /// The handle of this connection, and the slot of the next call that waits for it.
    pub(super) fn next_on_held(&mut self, token: ConnectionId) -> Option<(u32, u32)> {
        let held = self.held.iter_mut().find(|held| held.is_open_at(token))?;
        held.waiting.pop_front().map(|slot| (held.handle, slot))
    }

    /// The connection has ended: keeps what had come until the user closes it. Returns its handle, and the slots of the
    /// calls that waited for it.
    pub(super) fn keep_remains(
        &mut self,
        token: ConnectionId,
        remains: HeldConnection,
    ) -> Option<(u32, VecDeque<u32>)> {
        let held = self.held.iter_mut().find(|held| held.is_open_at(token))?;
        held.connection = remains;
        Some((held.handle, std::mem::take(&mut held.waiting)))
    }

    /// Holds the connection of this handle no longer. Returns it if it is still there, and the slots of the calls that
    /// waited for it.
    pub(super) fn release(&mut self, handle: u32) -> Option<(Option<ConnectionId>, VecDeque<u32>)> {
        let at = self.held.iter().position(|held| held.handle == handle)?;
        let Held { connection, waiting, .. } = self.held.swap_remove(at);
        let open = if let HeldConnection::Open(token) = connection { Some(token) } else { None };
        Some((open, waiting))
    }

    /// The slots of the calls that wait for their turn on one of the held connections.
    #[cfg(feature = "simulation")]
    pub(super) fn waiting_on_held(&self) -> impl Iterator<Item = u32> {
        self.held.iter().flat_map(|held| held.waiting.iter().copied())
    }
}

impl Links {
    /// The user is gone: all connections that it had, held ones last.
    pub(super) fn take_all(&mut self) -> Vec<ConnectionId> {
        let open = self.held.drain(..).filter_map(|held| match held.connection {
            HeldConnection::Open(token) => Some(token),
            HeldConnection::Gone { .. } => None,
        });
        let mut all = std::mem::take(&mut self.connections);
        all.extend(open);
        all
    }

    /// Forgets all of it, and keeps its memory.
    pub(super) fn clear(&mut self) {
        self.connections.clear();
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
    fn all(&self) -> impl Iterator<Item = &CallId> {
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
