//! Calls of the open model that are due while no connection is free for them.

use brunt_record::SECOND_NS;
use brunt_record::catalogue::Counter;
use brunt_record::outcome::Failure;
use brunt_record::time::Tick;

use super::call_names::{InTurn, Uncarried};
use super::{Flood, FloodNetwork, Pace};
use crate::network::growth::CONNECTING_AT_ONCE;
use crate::network::origins::OriginId;
use crate::network::{Call, Counted, End, Recorder};
use crate::transport::{ConnectionId, Driver};

/// How long open connections are worth waiting for after one was answered, in nanoseconds.
const ANSWERS_NS: u64 = SECOND_NS;
/// A worker that is later than this, in nanoseconds, may not have read everything that came in time.
const IN_TIME_NS: u64 = 1_000_000;
/// The reason of a call that failed after it had waited for a connection while the target answered nothing.
const UNANSWERED: &str = "no connection was free within the timeout, and none was answered";

impl Flood {
    /// No connection is free at `now`: sees to the calls that are due.
    pub(super) fn await_connection<D: Driver>(&mut self, network: &mut FloodNetwork<D>, now: Tick) {
        self.outage.next_look = Tick::NEVER;
        if !self.is_loading() || self.connects_for_calls() || self.is_held() {
            return;
        }
        self.hear();
        self.try_for_calls(network, now);
        let Pace::Open(schedule) = &self.pace else { return };
        if self.lists.have_none_ready() && schedule.due().is_some_and(|due| due <= now) {
            // In time, connections may have been free for calls that are late by this worker's doing.
            let behind = if network.behind(now) > IN_TIME_NS { network.behind(now) } else { 0 };
            self.short_since = self.short_since.saturating_add(behind).min(now);
            self.wake_dormant(network, now, true);
            self.expire_waiting(network, now);
        }
    }

    /// Whether the open model's next call lies beyond the horizon.
    pub(super) fn is_held(&self) -> bool {
        let Pace::Open(schedule) = &self.pace else { return false };
        schedule.due().is_some_and(|due| self.part.ends_before(due))
    }

    /// Whether there is no connection worth waiting for: none is open and attempts fail, or the open ones are silent
    /// and another is refused.
    pub(super) fn is_out<D: Driver>(&self, network: &FloodNetwork<D>, now: Tick) -> bool {
        let has_failed = self.outage.has_failed(OriginId::FIRST);
        if network.census().taking() == 0 {
            return has_failed || network.census().connecting() == 0;
        }
        has_failed && now.since(network.signs().last_answer().max(network.signs().last_connected())) > ANSWERS_NS
    }

    /// Lets each due call make an attempt of its own, or share the outcome of another.
    fn try_for_calls<D: Driver>(&mut self, network: &mut FloodNetwork<D>, now: Tick) {
        while self.lists.have_none_ready() && self.is_out(network, now) && self.is_loading() {
            let Pace::Open(schedule) = &self.pace else { return };
            let Some(due) = schedule.due() else { return };
            if self.part.ends_before(due) {
                return;
            }
            if due > now {
                self.outage.next_look = due;
                return;
            }
            let free_at = self.outage.attempts.free_at();
            if network.census().connecting() < self.most_half_open()
                && free_at <= now
                && let Some(token) = self.place_to_try(network)
            {
                self.outage.attempts.take(now);
                self.try_for_next(network, token, now);
            } else if !self.share_outcome(network, now) {
                self.outage.next_look = if free_at > now { free_at } else { Tick::NEVER };
                return;
            }
        }
    }

    /// The most connections that this worker makes at once.
    fn most_half_open(&self) -> usize {
        (CONNECTING_AT_ONCE / self.share.count() as usize).max(1)
    }

    /// Connects a place for the next call that is due.
    fn try_for_next<D: Driver>(&mut self, network: &mut FloodNetwork<D>, token: ConnectionId, now: Tick) {
        let Pace::Open(schedule) = &mut self.pace else { return };
        let Some((due, number)) = schedule.take() else { return };
        network.recorder_mut().snapshot.numbers.add(Counter::WaitedForConnection, 1);
        let late = network.behind(now).min(now.since(due));
        let id = network
            .begin(Call { own_delay_ns: late, ..Call::new(number, due, self.part.is_measured(), Counted::Already) });
        network.enqueue(token, id);
        network.connect(self, token, now);
    }

    /// Ends the next due call with the outcome of an attempt that failed just before `now`. Returns false without such an attempt or call.
    pub(super) fn share_outcome<D: Driver>(&mut self, network: &mut FloodNetwork<D>, now: Tick) -> bool {
        let Pace::Open(schedule) = &mut self.pace else { return false };
        let Some(outcome) =
            self.outage.shared(OriginId::FIRST, now).filter(|_| schedule.due().is_some_and(|due| due <= now))
        else {
            return false;
        };
        let Some((due, number)) = schedule.take() else { return false };
        network.recorder_mut().snapshot.numbers.add(Counter::WaitedForConnection, 1);
        let end = now.max(due.saturating_add(outcome.took_ns));
        let call = Call::new(number, due, self.part.is_measured(), Counted::Already);
        let failed = End::Failed(outcome.failure, &outcome.reason);
        let uncarried = Uncarried::new(&*self.user, self.share, &self.plan);
        self.names.failed_overdue(network.recorder_mut(), uncarried, call, failed, end);
        true
    }

    /// A place without a connection, in which one can be tried.
    fn place_to_try<D: Driver>(&mut self, network: &mut FloodNetwork<D>) -> Option<ConnectionId> {
        if let Some(token) = self.lists.take_dormant(network.connections_mut()) {
            return Some(token);
        }
        let may_add = self.growth.as_ref().is_some_and(|growth| network.places() < growth.limit());
        may_add.then(|| self.add(network))
    }

    /// The place's last connection failed, and there is no other: the next due call tries again.
    pub(super) fn rest<D: Driver>(&mut self, network: &mut FloodNetwork<D>, token: ConnectionId) {
        self.lists.rest(token, network.connections_mut());
    }

    /// Connects waiting places to a target that takes connections again; only as often as attempts are allowed, if it
    /// is unknown whether it does.
    pub(super) fn wake_dormant<D: Driver>(&mut self, network: &mut FloodNetwork<D>, now: Tick, is_attempt: bool) {
        while !self.lists.have_none_dormant()
            && network.census().connecting() < self.most_half_open()
            && (!is_attempt || self.outage.attempts.take(now))
            && let Some(token) = self.lists.take_dormant(network.connections_mut())
        {
            network.connect(self, token, now);
        }
    }

    /// Ends calls that waited for as long as a call may take without a free connection, if the target has answered
    /// nothing since they were due.
    fn expire_waiting<D: Driver>(&mut self, network: &mut FloodNetwork<D>, now: Tick) {
        let (timeout_ns, short_since) = (self.plan.timeout_ns, self.short_since);
        let uncarried = Uncarried::new(&*self.user, self.share, &self.plan);
        let Pace::Open(schedule) = &mut self.pace else { return };
        let last_answer = network.signs().last_answer();
        let may_end = |due: &Tick| last_answer < *due && !self.part.ends_before(*due);
        while let Some(due) = schedule.due().filter(may_end) {
            let expires = due.max(short_since).saturating_add(timeout_ns);
            if expires > now {
                self.outage.next_look = self.outage.next_look.min(expires);
                return;
            }
            let Some((_, number)) = schedule.take() else { return };
            network.recorder_mut().snapshot.numbers.add(Counter::WaitedForConnection, 1);
            let call = Call::new(number, due, self.part.is_measured(), Counted::Already);
            let failed = End::Failed(Failure::Timeout, UNANSWERED);
            self.names.failed_overdue(network.recorder_mut(), uncarried, call, failed, expires);
        }
    }

    /// The user ends the run at `end`: calls that wait are sent in the drain, once connections are free or made, as many
    /// as these carry at once. More are not worth a wait of their user's.
    pub(super) fn keep_waiting<D: Driver>(&mut self, network: &mut FloodNetwork<D>, end: Tick) {
        self.hear();
        if !self.is_loading()
            || !self.part.is_measured()
            || network.census().taking() + network.census().connecting() == 0
        {
            return;
        }
        let Pace::Open(schedule) = &mut self.pace else { return };
        let places = (network.census().taking() + network.census().connecting()) * self.pipeline.max(1);
        for _ in 0..places {
            let Some(due) = schedule.due().filter(|due| *due < end && !self.part.ends_before(*due)) else { return };
            let Some((_, number)) = schedule.take() else { return };
            network.recorder_mut().snapshot.numbers.add(Counter::WaitedForConnection, 1);
            let late = network.behind(end).min(end.since(due));
            let call = Call::new(number, due, self.part.is_measured(), Counted::Already);
            self.again.push_back(network.begin(Call { own_delay_ns: late, ..call }));
        }
    }

    /// The measured part ended: due calls without a connection are never sent. They are unsent where connections were
    /// too few, and unfinished where the target has been silent since they were due.
    pub(super) fn drop_unsent<D: Driver>(&mut self, network: &mut FloodNetwork<D>, end: Tick) {
        // Calls that a peer has turned away may still be sent again.
        self.serve_again(network, end);
        let silent_for = end.since(network.signs().last_answer());
        let is_silent = network.census().taking() == 0 || silent_for >= ANSWERS_NS && network.behind(end) <= IN_TIME_NS;
        let silent_since = if is_silent { network.signs().last_answer() } else { Tick::NEVER };
        let uncarried = Uncarried::new(&*self.user, self.share, &self.plan);
        let Pace::Open(schedule) = &mut self.pace else { return };
        let mut named = InTurn::new(&self.names, uncarried, schedule);
        let recorder = network.recorder_mut();
        let waited = |recorder: &mut Recorder, named: &mut InTurn<'_>, due: Tick, calls: u64| {
            let was_silent = due > silent_since;
            if was_silent {
                recorder.unfinished_overdue(due, calls, end);
            } else {
                recorder.unsent_overdue(due, calls, end);
            }
            named.never_sent(recorder, calls, end.since(due), was_silent);
        };
        let horizon = self.part.horizon();
        if horizon < end {
            // Calls before the horizon waited for the target, the others for the horizon.
            schedule.skip(horizon, |due, calls| waited(recorder, &mut named, due, calls));
            schedule.skip(end, |due, calls| {
                recorder.held_overdue(due, calls, true, end);
                named.never_sent(recorder, calls, end.since(due), false);
            });
        }
        schedule.drop_overdue(end, |due, calls| waited(recorder, &mut named, due, calls));
    }
}
