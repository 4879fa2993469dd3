//! Virtual users through the phases of a run, as their worker takes them.

use std::cmp::Reverse;

use brunt_record::figures::Figure as _;
use brunt_record::snapshot::Phase;
use brunt_record::time::Tick;

#[cfg(feature = "simulation")]
use super::Owner;
use super::crowd::Crowd;
use super::{LOOK_NS, TIMED, UsersNetwork, VirtualUsers};
use crate::transport::Driver;
use crate::worker::{Leaving, Phases};

impl<D: Driver> Phases<D> for VirtualUsers {
    fn begin(&mut self, network: &mut UsersNetwork<D>, phase: Phase, began: Tick, _until: Tick) {
        // Users come with the measured part; a warm-up of users is a population of its own.
        if phase != Phase::Measured {
            return;
        }
        self.loading = true;
        self.began = began;
        if self.traces.are_wanted() {
            network.recorder.keep_slowest();
        }
        if let Some(throttle) = &mut self.throttle {
            throttle.began = began;
        }
        for crowd in &mut self.crowds {
            crowd.begin_first(began);
        }
    }

    fn tick(&mut self, network: &mut UsersNetwork<D>, now: Tick) {
        if self.loading {
            self.hear();
            self.wake(network, now);
        }
    }

    fn turn(&mut self, network: &mut UsersNetwork<D>) {
        let mut freed = std::mem::take(&mut network.freed);
        if self.is_loading() {
            for (token, _) in freed.drain(..) {
                self.serve_waiting(network, token);
            }
        }
        freed.clear();
        freed.append(&mut network.freed);
        network.freed = freed;
        self.run_users(network);
    }

    fn next_wake(&self, now: Tick) -> Tick {
        // The next heartbeat checks whether the horizon has moved on.
        match self.loading {
            true if self.reach.ends_before(now) => self.reach.resumes(now),
            true => self.next_wake_of_users(now),
            false => Tick::NEVER,
        }
    }

    fn is_over(&self, _network: &UsersNetwork<D>, now: Tick) -> bool {
        self.have_ended(now)
    }

    #[cfg(feature = "simulation")]
    fn audit(&self, network: &UsersNetwork<D>, _now: Tick) {
        let own = self.users.iter().flat_map(|(_, user)| user.waiting.all());
        let held = self.users.iter().flat_map(|(_, user)| user.waiting_on_held());
        let held = held.filter_map(|slot| self.calls.get(slot)?.id.as_ref());
        network.audit(Some(own.chain(held).chain(network.origins.waiting())), None);
        for token in network.connections.ids() {
            let is_idle = network.connections[token].is_idle();
            let is_taken = matches!(self.owner(token), Owner::User(_) | Owner::Pool);
            assert!(!(is_idle && is_taken), "place {token:?} has no connection, and none is made");
        }
    }

    fn leaving(&self) -> Option<Leaving> {
        self.leaving.clone()
    }

    fn end_load(&mut self, network: &mut UsersNetwork<D>, end: Tick) {
        if self.loading {
            self.drop_unsent(network, end);
            self.end_presence(network, end);
        }
        self.loading = false;
    }

    fn end_drain(&mut self, network: &mut UsersNetwork<D>, now: Tick) {
        self.end_users(&mut network.recorder, now);
    }

    fn hand_over(&mut self, network: &mut UsersNetwork<D>, until: Tick) {
        if self.loading {
            self.hear();
            self.admit_before(until, &mut network.recorder);
            self.count_presence(network, until);
        }
        // Passes that the script counts by itself.
        for (check, passes) in self.library.take_passes() {
            self.names.passed(&mut network.recorder, check, passes);
        }
        for (name, own) in self.library.take_own() {
            network.recorder.snapshot.figures.own.named(&name).merge(&own);
        }
    }

    /// The approximate time that scripts were busy since the last call, in nanoseconds.
    fn take_busy_ns(&mut self) -> u64 {
        std::mem::take(&mut self.busy).as_nanos() as u64 * u64::from(TIMED)
    }

    fn may_hang(&self) -> bool {
        true
    }
}

impl VirtualUsers {
    /// The time of the next event that depends on time alone.
    fn next_wake_of_users(&self, now: Tick) -> Tick {
        if !self.ready.is_empty() {
            return now;
        }
        let mut timer = self.timers.peek().map_or(Tick::NEVER, |Reverse(timer)| timer.at);
        if self.somebody_waits() {
            timer = timer.min(now + LOOK_NS);
        }
        let wake = |crowd: &Crowd| {
            let before = crowd.follows().and_then(|before| Some((before, self.crowds.get(before)?)));
            match before {
                _ if crowd.is_over() && !crowd.announced => now,
                Some((place, before)) if before.is_over() => {
                    if self.among.is_over(place) {
                        now
                    } else {
                        now + LOOK_NS
                    }
                }
                _ => crowd.next_wake(now),
            }
        };
        self.crowds.iter().map(wake).fold(timer, Tick::min)
    }

    /// Whether every population has ended and its users are gone, or had their time to finish.
    fn have_ended(&self, now: Tick) -> bool {
        let over = self.crowds.iter().all(Crowd::is_over);
        let cut = |crowd: &Crowd| crowd.is_over() || crowd.ends().is_some_and(|end| now >= end + self.grace_ns);
        over && self.alive == 0 || self.crowds.iter().all(cut)
    }
}
