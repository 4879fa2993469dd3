//! A flood over several targets. The number of calls in flight is fixed, or grows: each call has a *slot*, which keeps
//! a connection to every target that it has called.

use crate::network::{Connections, Keeper};
use crate::transport::ConnectionId;

/// The slots of a worker: the connections of each, by target. The first one stands for the slot where slots are listed.
#[derive(Debug, Default)]
pub(super) struct Slots(Vec<Vec<Option<ConnectionId>>>);

impl Slots {
    /// Opens a slot, for which `add` makes the first connection.
    pub(super) fn open(&mut self, add: impl FnOnce(Keeper) -> ConnectionId) -> ConnectionId {
        let token = add(Keeper::One(self.0.len() as u32));
        self.0.push(vec![Some(token)]);
        token
    }

    /// The connections of the slot that has this one.
    fn all(&self, token: ConnectionId, connections: &Connections) -> Option<&Vec<Option<ConnectionId>>> {
        let Keeper::One(slot) = connections[token].keeper() else { return None };
        self.0.get(slot as usize)
    }

    /// The connection that stands for the slot of this one.
    pub(super) fn home(&self, token: ConnectionId, connections: &Connections) -> ConnectionId {
        self.all(token, connections).and_then(|all| all.first().copied().flatten()).unwrap_or(token)
    }

    /// The connection to `target` in the slot of this keeper, if the slot has one. `add` makes one if it has none.
    pub(super) fn to(
        &mut self,
        target: usize,
        keeper: Keeper,
        add: impl FnOnce(Keeper) -> ConnectionId,
    ) -> Option<ConnectionId> {
        let Keeper::One(slot) = keeper else { return None };
        let all = self.0.get_mut(slot as usize)?;
        if all.len() <= target {
            all.resize(target + 1, None);
        }
        all.get_mut(target).map(|place| *place.get_or_insert_with(|| add(keeper)))
    }

    /// Whether no call is on any connection of this one's slot.
    pub(super) fn is_free(&self, token: ConnectionId, connections: &Connections) -> bool {
        let all = self.all(token, connections).into_iter().flatten().flatten();
        all.into_iter().all(|token| connections[*token].carried() == 0)
    }
}
