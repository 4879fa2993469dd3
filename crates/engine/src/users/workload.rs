//! Virtual users as the workload of their worker and its network.

use std::cmp::Reverse;

use brunt_record::figures::Figure as _;
use brunt_record::messages;
use brunt_record::outcome::Failure;
use brunt_record::snapshot::Phase;
use brunt_record::time::Tick;

use super::crowd::Crowd;
use super::outcomes::NOTHING_CAME;
use super::{LOOK_NS, Owner, TIMED, UsersNetwork, VirtualUsers};
use crate::network::{AnswerOf, Call, CallId, End, Gone, Judgement, LoadEnd, MessageOf, Nature, Recorder, Workload};
use crate::rules::{Rule, is_broken};
use crate::transport::{ConnectionId, Driver};
use brunt_protocol::scenario::Encoded;
use brunt_protocol::user::{Message, Refusal};
use brunt_script::Placement;

impl<D: Driver> Workload<D> for VirtualUsers {
    /// The slot that holds the call.
    type Tag = u32;

    fn nature(&self) -> Nature {
        Nature { calls_at_once: false, may_hang: true }
    }

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

    fn leaving(&self) -> Option<LoadEnd> {
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

    #[inline]
    fn message(&mut self, slot: u32) -> Result<Message<'_>, Refusal> {
        let call = self
            .calls
            .get(slot)
            .filter(|call| call.inbox.as_ref().is_none_or(|inbox| !inbox.is_partial))
            .ok_or(Refusal::Done)?;
        let Encoded { bytes, idempotent, hint, .. } = self.encoded(call);
        Ok(Message { bytes, idempotent: *idempotent, hint: *hint, ..Message::default() })
    }

    #[inline]
    fn timeout_ns(&self, slot: u32) -> Option<u64> {
        self.calls.get(slot).and_then(|call| call.timeout_ns)
    }

    fn request_name(&self, slot: u32) -> Option<&str> {
        self.names.name(self.calls.get(slot)?.label)
    }

    fn trace_id(&self, slot: u32) -> Option<String> {
        self.calls.get(slot)?.trace.map(|ids| ids.trace_id())
    }

    fn keeps_to_connection(&self, slot: u32) -> bool {
        self.calls.get(slot).is_none_or(|call| matches!(call.way, Placement::On(_)))
    }

    fn excuses(&self, slot: u32, status: u16) -> bool {
        self.calls.get(slot).is_some_and(|call| self.expects(call, status) == Some(true))
    }

    #[inline]
    fn judge(&mut self, network: &mut UsersNetwork<D>, answer: &AnswerOf<u32>) -> Judgement {
        if self.calls.get(answer.tag).is_some_and(|call| call.judged) {
            self.judge_in_flight(network, answer)
        } else {
            Judgement::Ended
        }
    }

    #[inline]
    fn ended(&mut self, network: &mut UsersNetwork<D>, call: &Call<u32>, end: End<'_>, now: Tick) {
        match end {
            End::Answered(status) => self.answered(network, call, status, now),
            End::Failed(failure, reason) => self.failed(&mut network.recorder, call, failure, reason, now),
            End::Withdrawn => self.tell_failed(call, Failure::Timeout, NOTHING_CAME, now),
            End::Unfinished | End::Unsent => self.cut_short(&mut network.recorder, call, now),
        }
    }

    #[inline]
    fn streamed(&mut self, network: &mut UsersNetwork<D>, message: &MessageOf<u32>) {
        self.message_came(network, message);
    }

    fn stream_ended(&mut self, recorder: &mut Recorder, call: &Call<u32>, ended: &messages::StreamEnd) {
        if let Some(slot) = self.calls.get(call.tag) {
            self.names.record(recorder, slot.label, |calls| calls.stream_ended(ended));
        }
    }

    fn next_calls(&mut self, network: &mut UsersNetwork<D>, token: ConnectionId, now: Tick) {
        let is_idle = network.connections[token].is_idle() && !is_broken(Rule::IdlePlacesAreGivenBack);
        if is_idle && matches!(self.owner(token), Owner::User(_) | Owner::Pool) {
            // Its calls have timed out while it waited to be made again: others may have its place.
            self.give_back(network, token, false, now);
        } else if self.is_loading() {
            self.serve_waiting(network, token);
        }
    }

    fn draining(&mut self, network: &mut UsersNetwork<D>, token: ConnectionId, now: Tick) {
        // A draining connection no longer blocks another one, unless as many drain as there may be.
        let origin = network.connections[token].origin;
        if self.owner(token) == Owner::Pool
            && let Some(pool) = network.origins.get(origin).and_then(|there| there.pool.as_mut())
            && pool.begins_to_leave()
        {
            self.place_next(network, Owner::Pool, origin, now);
        }
    }

    fn turned_away(&mut self, network: &mut UsersNetwork<D>, calls: Vec<CallId>, now: Tick) {
        for id in calls {
            if let Some(slot) = network.call(id).map(|call| call.tag) {
                self.place(network, slot, now);
            }
        }
    }

    fn gone(&mut self, network: &mut UsersNetwork<D>, gone: Gone<'_>, now: Tick) {
        let holder = self.owner(gone.token);
        self.give_back(network, gone.token, gone.drained, now);
        if let Owner::Held(user) = holder {
            self.keep_remains(network, user, gone, now);
        }
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
