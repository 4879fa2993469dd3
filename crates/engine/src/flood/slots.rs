//! A flood over several targets. The number of calls in flight is fixed, or grows: each call has a *slot*, which keeps
//! a connection to every target that it has called.

use crate::network::Connections;

/// The slots of a worker.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// The slot of each connection.
    of: Vec<usize>,
    /// The connections of each slot, by target. The first one stands for the slot where slots are listed.
    connections: Vec<Vec<Option<usize>>>,
}

impl Slots {
    /// A slot whose first connection has this place.
    pub(super) fn open(&mut self, token: usize) {
        self.belongs(token, self.connections.len());
        self.connections.push(vec![Some(token)]);
    }

    fn belongs(&mut self, token: usize, slot: usize) {
        if self.of.len() <= token {
            self.of.resize(token + 1, slot);
        }
        if let Some(of) = self.of.get_mut(token) {
            *of = slot;
        }
    }

    /// The connection that stands for the slot of this one.
    pub(super) fn home(&self, token: usize) -> usize {
        let slot = self.of.get(token).and_then(|slot| self.connections.get(*slot));
        slot.and_then(|all| all.first().copied().flatten()).unwrap_or(token)
    }

    /// The connection to `target` in the slot of `token`. `add` makes one if the slot has none.
    pub(super) fn to(&mut self, target: usize, token: usize, add: impl FnOnce() -> usize) -> usize {
        let Some(slot) = self.of.get(token).copied() else { return token };
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
    pub(super) fn is_free(&self, token: usize, connections: &Connections) -> bool {
        let slot = self.of.get(token).and_then(|slot| self.connections.get(*slot));
        let all = slot.into_iter().flatten().flatten();
        all.into_iter().all(|token| connections[*token].carried() == 0)
    }
}
