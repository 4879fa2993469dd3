//! A flood over several targets. The number of calls in flight is fixed, or grows: each call has a *slot*, which keeps
//! a connection to every target that it has called.

use crate::network::Connections;
use crate::transport::ConnectionId;

/// The slots of a worker.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// The slot of each connection.
    of: Vec<usize>,
    /// The connections of each slot, by target. The first one stands for the slot where slots are listed.
    connections: Vec<Vec<Option<ConnectionId>>>,
}

impl Slots {
    /// A slot whose first connection has this place.
    pub(super) fn open(&mut self, token: ConnectionId) {
        self.belongs(token, self.connections.len());
        self.connections.push(vec![Some(token)]);
    }

    fn belongs(&mut self, token: ConnectionId, slot: usize) {
        if self.of.len() <= token.place() {
            self.of.resize(token.place() + 1, slot);
        }
        if let Some(of) = self.of.get_mut(token.place()) {
            *of = slot;
        }
    }

    /// The connection that stands for the slot of this one.
    pub(super) fn home(&self, token: ConnectionId) -> ConnectionId {
        let slot = self.of.get(token.place()).and_then(|slot| self.connections.get(*slot));
        slot.and_then(|all| all.first().copied().flatten()).unwrap_or(token)
    }

    /// The connection to `target` in the slot of `token`. `add` makes one if the slot has none.
    pub(super) fn to(
        &mut self,
        target: usize,
        token: ConnectionId,
        add: impl FnOnce() -> ConnectionId,
    ) -> ConnectionId {
        let Some(slot) = self.of.get(token.place()).copied() else { return token };
        let Some(all) = self.connections.get_mut(slot) else { return token };
        if all.len() <= target {
            all.resize(target + 1, None);
        }
        if let Some(known) = all.get(target).copied().flatten() {
            return known;
        }
        let added = add();
        if let Some(place) = all.get_mut(target) {
            *place = Some(added);
        }
        self.belongs(added, slot);
        added
    }

    /// Whether no call is on any connection of this one's slot.
    pub(super) fn is_free(&self, token: ConnectionId, connections: &Connections) -> bool {
        let slot = self.of.get(token.place()).and_then(|slot| self.connections.get(*slot));
        let all = slot.into_iter().flatten().flatten();
        all.into_iter().all(|token| connections[*token].carried() == 0)
    }
}
