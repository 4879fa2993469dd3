//! A replay through the phases of a run, as its worker takes it.

use std::cmp::Reverse;

use brunt_record::snapshot::Phase;
use brunt_record::time::Tick;

use super::{IDLE_NS, LOOK_NS, ReplayNetwork, Replaying};
use crate::network::{End, Place};
use crate::transport::Driver;
use crate::worker::{Leaving, Phases};

impl<D: Driver> Phases<D> for Replaying {
    fn prepare(&mut self, _network: &mut ReplayNetwork<D>, _now: Tick) -> bool {
        // The log has to be read ahead of the load.
        self.look_ahead()
    }

    fn begin(&mut self, network: &mut ReplayNetwork<D>, phase: Phase, began: Tick, until: Tick) {
        if phase == Phase::Measured {
            (self.began, self.until, self.loading) = (began, until, true);
            if self.log.traces() {
                network.recorder.keep_slowest();
            }
        }
    }

    fn tick(&mut self, network: &mut ReplayNetwork<D>, now: Tick) {
        if !self.loading {
            return;
        }
        self.begin_due(network, now);
        self.begin_thought(network, now);
        if !self.thinks {
            self.expire_waiting(network, now);
        }
        self.close_old(network, now);
        self.serve_ready(network);
    }

    fn turn(&mut self, network: &mut ReplayNetwork<D>) {
        network.freed.clear();
        if self.loading {
            self.serve_ready(network);
        }
    }

    fn next_wake(&self, now: Tick) -> Tick {
        if !self.loading {
            return Tick::NEVER;
        }
        if !self.ready.is_empty() {
            return now;
        }
        // Beyond the horizon, the next heartbeat checks whether it has moved on.
        let due = match self.due() {
            Some(due) if self.reach.ends_before(due) => Tick::NEVER,
            Some(due) => due,
            // The next call is due after the end.
            None if self.is_over || self.next.is_some() => Tick::NEVER,
            None => now + LOOK_NS,
        };
        let thought = self.thinking.peek().map_or(Tick::NEVER, |Reverse((at, _))| *at);
        let thought = if thought >= self.until || self.reach.ends_before(thought) { Tick::NEVER } else { thought };
        let idle = self.sessions.rested_since().map_or(Tick::NEVER, |since| since.saturating_add(IDLE_NS));
        due.min(thought).min(idle)
    }

    fn is_over(&self, network: &ReplayNetwork<D>, _now: Tick) -> bool {
        self.is_over
            && self.next.is_none()
            && network.under_way() == 0
            && self.thinking.is_empty()
            && self.ready.is_empty()
    }

    fn next_due(&self) -> Tick {
        if self.loading { self.due().unwrap_or(Tick::NEVER) } else { Tick::NEVER }
    }

    fn leaving(&self) -> Option<Leaving> {
        self.failed.clone().map(Leaving::Failed)
    }

    fn end_load(&mut self, network: &mut ReplayNetwork<D>, end: Tick) {
        if !self.loading {
            return;
        }
        // Calls that were due a moment ago begin before the load ends.
        self.begin_due(network, end);
        self.hold_rest(network, end);
        self.loading = false;
        let waiting: Vec<_> = self.sessions.all().flat_map(|session| session.queue.drain(..)).collect();
        for id in waiting {
            if network.call(id).is_some_and(|call| call.place == Place::Waiting) {
                network.complete(self, id, End::Unsent, end);
            }
        }
    }

    fn hand_over(&mut self, _network: &mut ReplayNetwork<D>, _until: Tick) {}

    fn take_busy_ns(&mut self) -> u64 {
        0
    }

    fn may_hang(&self) -> bool {
        false
    }
}
