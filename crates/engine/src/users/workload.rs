//! Virtual users as the workload of their worker and its network.

use brunt_record::figures::Figure as _;
use brunt_record::messages;
use brunt_record::outcome::Failure;
use brunt_record::snapshot::Phase;
use brunt_record::time::Tick;

use super::calling::NOTHING_CAME;
use super::ids::UserId;
use super::{UsersNetwork, VirtualUsers};
use crate::network::{
    AnswerOf, Call, CallId, End, Gone, Judgement, Keeper, LoadEnd, MessageOf, Nature, Recorder, Workload,
};
use crate::rules::{Rule, is_broken};
use crate::transport::{ConnectionId, Driver};
use brunt_protocol::user::{Message, Refusal};
use brunt_script::Placement;

/// The time between two looks at whether enough users have come to a meeting, in nanoseconds.
const LOOK_NS: u64 = 1_000_000;

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
        self.loading.begin(began);
        if self.traces.are_wanted() {
            network.recorder.keep_slowest();
        }
        if let Some(throttle) = &mut self.throttle {
            throttle.begin(began);
        }
        self.crowds.begin(began);
    }

    fn tick(&mut self, network: &mut UsersNetwork<D>, now: Tick) {
        if self.loading.is_on() {
            self.hear();
            self.wake(network, now);
        }
    }

    fn turn(&mut self, network: &mut UsersNetwork<D>) {
        let mut freed = std::mem::take(&mut network.freed);
        if self.loading.makes_calls() {
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
        match () {
            () if !self.loading.is_on() => Tick::NEVER,
            // The next heartbeat checks whether the horizon has moved on.
            () if self.loading.ends_before(now) => self.loading.resumes(now),
            () if !self.agenda.has_rest() => now,
            () => {
                let look = if self.meetings.somebody_waits() { now + LOOK_NS } else { Tick::NEVER };
                self.agenda.next_timer().min(look).min(self.crowds.next_wake(now))
            }
        }
    }

    fn is_over(&self, _network: &UsersNetwork<D>, now: Tick) -> bool {
        self.crowds.have_ended(now)
    }

    #[cfg(feature = "simulation")]
    fn audit(&self, network: &UsersNetwork<D>, _now: Tick) {
        let own = self.users.iter().flat_map(|user| user.links.waiting());
        let held = self.users.iter().flat_map(|user| user.links.waiting_on_held());
        let held = held.filter_map(|slot| self.calls.get(slot)?.waiting_id());
        network.audit(Some(own.chain(held).chain(network.pools.waiting())), None);
        for token in network.connections.ids() {
            let is_idle = network.connections[token].is_idle();
            let is_taken = matches!(network.connections[token].keeper(), Keeper::One(_) | Keeper::Everybody);
            assert!(!(is_idle && is_taken), "place {token:?} has no connection, and none is made");
        }
    }

    fn leaving(&self) -> Option<LoadEnd> {
        self.loading.leaving()
    }

    fn end_load(&mut self, network: &mut UsersNetwork<D>, end: Tick) {
        if self.loading.is_on() {
            self.drop_unsent(network, end);
            for user in self.users.iter_mut() {
                user.presence.pauses(&mut network.recorder.snapshot.numbers, end);
            }
        }
        self.loading.end();
    }

    fn end_drain(&mut self, network: &mut UsersNetwork<D>, now: Tick) {
        self.end_users(&mut network.recorder, now);
    }

    fn hand_over(&mut self, network: &mut UsersNetwork<D>, until: Tick) {
        if self.loading.is_on() {
            self.hear();
            self.admit_before(until, &mut network.recorder);
            for user in self.users.iter_mut() {
                user.presence.count(&mut network.recorder.snapshot.numbers, until);
            }
        }
        // Passes that the script counts by itself.
        for (check, passes) in self.script.library().take_passes() {
            self.names.passed(&mut network.recorder, check, passes);
        }
        for (name, own) in self.script.library().take_own() {
            network.recorder.snapshot.figures.own.named(&name).merge(&own);
        }
    }

    /// The approximate time that scripts were busy since the last call, in nanoseconds.
    fn take_busy_ns(&mut self) -> u64 {
        self.script.take_busy_ns()
    }

    #[inline]
    fn message(&mut self, slot: u32) -> Result<Message<'_>, Refusal> {
        let call = self
            .calls
            .get(slot)
            .filter(|call| call.inbox().is_none_or(|inbox| !inbox.is_partial))
            .ok_or(Refusal::Done)?;
        Ok(self.clients.encoded(call).message())
    }

    #[inline]
    fn timeout_ns(&self, slot: u32) -> Option<u64> {
        self.calls.get(slot).and_then(|call| call.asked.timeout_ns)
    }

    fn request_name(&self, slot: u32, _connection: u64) -> Option<&str> {
        self.names.name(self.calls.get(slot)?.asked.label)
    }

    fn trace_id(&self, slot: u32) -> Option<String> {
        self.calls.get(slot)?.trace.map(|ids| ids.trace_id())
    }

    fn keeps_to_connection(&self, slot: u32) -> bool {
        self.calls.get(slot).is_none_or(|call| matches!(call.asked.way, Placement::On(_)))
    }

    fn excuses(&self, slot: u32, status: u16) -> bool {
        self.calls.get(slot).is_some_and(|call| self.expects(call, status) == Some(true))
    }

    #[inline]
    fn judge(&mut self, network: &mut UsersNetwork<D>, answer: &AnswerOf<u32>) -> Judgement {
        if self.calls.get(answer.tag).is_some_and(|call| call.asked.judged) {
            self.judge_in_flight(network, answer)
        } else {
            Judgement::Ended
        }
    }

    #[inline]
    fn ended(&mut self, network: &mut UsersNetwork<D>, call: &Call<u32>, end: End<'_>, now: Tick) {
        // The name of an answered call may depend on its answer.
        if network.recorder.samples.is_some() && !matches!(end, End::Answered(_)) {
            self.write_down(network, call, end, now);
        }
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
            self.names.record(recorder, slot.asked.label, |calls| calls.stream_ended(ended));
        }
    }

    fn next_calls(&mut self, network: &mut UsersNetwork<D>, token: ConnectionId, now: Tick) {
        let connection = &network.connections[token];
        let is_idle = connection.is_idle() && !is_broken(Rule::IdlePlacesAreGivenBack);
        if is_idle && matches!(connection.keeper(), Keeper::One(_) | Keeper::Everybody) {
            // Its calls have timed out while it waited to be made again: others may have its place.
            self.give_back(network, token, false, now);
        } else if self.loading.makes_calls() {
            self.serve_waiting(network, token);
        }
    }

    fn connection_leaves(&mut self, network: &mut UsersNetwork<D>, token: ConnectionId, now: Tick) {
        // A draining connection no longer blocks another one, unless as many drain as there may be.
        let origin = network.connections[token].origin();
        if network.connections[token].keeper() == Keeper::Everybody
            && let Some(shared) = network.pools.shared(origin, &network.origins)
            && shared.leaves()
        {
            self.place_next(network, Keeper::Everybody, origin, now);
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
        let keeper = network.connections[gone.token].keeper();
        self.give_back(network, gone.token, gone.has_left, now);
        if let Keeper::Held(user) = keeper {
            self.keep_remains(network, UserId::in_slot(user), gone, now);
        }
    }
}
