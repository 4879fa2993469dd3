//! Invariants of a flood between two steps of its worker. Tests check them after each step.

use brunt_record::time::Tick;

use super::{Flood, FloodNetwork, Pace};
use crate::transport::Driver;

/// The most bytes of a call of the made-up protocol `mux`: a letter, a number and a dot.
const CALL_BYTES: usize = 8;

impl Flood {
    /// Checks the flood, and the network that it was lent, against their invariants.
    pub(super) fn audit_step<D: Driver>(&self, network: &FloodNetwork<D>, now: Tick) {
        let call_bytes = (self.plan.target.scheme == "mux").then_some(CALL_BYTES);
        network.audit(Some(&self.again), call_bytes);
        let connections = self.plan.connections.most().max(1) as usize;
        let most = self.share.part_of(connections as u64).max(1) as usize;
        let places = network.places();
        assert!(places <= 2 * most || self.slots.is_some(), "{places} places for {most} connections");
        if network.has_work()
            || self.slots.is_some()
            || !self.part.is_on()
            || self.is_held()
            || self.part.ends_before(now)
        {
            return;
        }
        let has_again = self.again.iter().any(|id| network.call(*id).is_some());
        let has_room = network.connections().ids().any(|token| network.connections()[token].room(self.pipeline) > 0);
        assert!(!(has_again && has_room), "a call that was turned away waits although a connection has room");
        match &self.pace {
            Pace::Closed(quota) if now < self.part.until() && !quota.is_empty() && !self.interests.pauses => {
                assert!(!has_room, "a connection has room, and no call");
                for token in network.connections().ids() {
                    assert!(
                        !network.connections()[token].is_idle(),
                        "place {token:?} is idle, and nothing will change that"
                    );
                }
            }
            Pace::Open(schedule) if self.is_loading() => {
                let waits = schedule.due().is_some_and(|due| due <= now);
                assert!(!(waits && has_room), "a due call waits although a connection has room");
                for token in network.connections().ids() {
                    let connection = &network.connections()[token];
                    assert!(
                        connection.room(self.pipeline) == 0 || !connection.is_unlisted(),
                        "{token:?} has room, in no list"
                    );
                }
                let wakes = waits
                    && self.lists.have_none_ready()
                    && network.census().taking() == 0
                    && network.census().connecting() == 0;
                let looks = self.outage.next_look.is_set() || network.next_deadline().is_set();
                assert!(!wakes || looks, "a due call waits for nothing");
            }
            Pace::Closed(_) | Pace::Open(_) => {}
        }
    }
}
