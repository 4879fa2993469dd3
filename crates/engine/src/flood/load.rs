//! A flood as its worker and its network see it.

use brunt_record::catalogue::Counter;
use brunt_record::outcome::Failure;
use brunt_record::snapshot::Phase;

use super::{CONNECTING_PATIENCE_NS, Flood, FloodNetwork, Pace};
use crate::network::{Call, CallId, Counted, End, Gone, Load, NEVER, State};
use crate::transport::Driver;
use crate::worker::{Leaving, Phases};
use brunt_protocol::user::{Message, Refusal};

impl<D: Driver> Load<D> for Flood {
    type Tag = u64;

    #[inline]
    fn message(&mut self, number: u64) -> Result<Message<'_>, Refusal> {
        let Self { user, refusal, .. } = self;
        user.call(number).inspect_err(|refused| *refusal = Some(refused.clone()))
    }

    fn next_of_batch(&mut self, call: &Call<u64>) -> Option<Call<u64>> {
        // It has a number of its own, and is due with the first.
        let (due, number, counted) = match &mut self.pace {
            Pace::Closed(quota) => (call.due, quota.take()?, Counted::OnceSent),
            Pace::Open(schedule) => {
                let (due, number) = schedule.take_ahead(call.due)?;
                (due, number, Counted::Already)
            }
        };
        Some(Call::new(number, due, call.measured, counted))
    }

    #[inline]
    fn ended(&mut self, network: &mut FloodNetwork<D>, call: &Call<u64>, end: End<'_>, _now: u64) {
        // Scripts see what counts while the load is on, no more and no less.
        if let End::Answered(status) = end
            && self.interests.answers
            && self.is_loading()
            && let Some(token) = call.connection()
            && let Err(refusal) = self.user.answered(status, network.connections[token].client.parts())
        {
            self.refusal = Some(refusal);
        }
    }

    fn next_calls(&mut self, network: &mut FloodNetwork<D>, token: usize, now: u64) {
        if let Some(growth) = self.growth.as_mut().filter(|_| network.connections[token].state == State::Open) {
            growth.made();
        }
        self.give_work(network, token, now);
    }

    /// If a call is overdue and no connection is there for it, it is that call which has failed.
    fn connect_failed(&mut self, network: &mut FloodNetwork<D>, failure: Failure, reason: &str, now: u64) -> bool {
        // One more than there are could not be had: calls go on waiting for those.
        if self.growth.is_some() && network.connections.open() > 0 {
            return false;
        }
        if let Pace::Open(schedule) = &mut self.pace
            && self.loading
            && self.ready.is_empty()
            && schedule.due().is_some_and(|due| due <= now)
            && let Some((due, _)) = schedule.take()
        {
            network.recorder.failed_overdue(due, self.measured, failure, reason, now);
            return true;
        }
        false
    }

    fn draining(&mut self, network: &mut FloodNetwork<D>, token: usize, now: u64) {
        // A slot's place stays its own, and is connected again for the next call.
        if self.slots.is_some() {
            return;
        }
        // Another takes its place at once, which keeps up the number asked for.
        let fresh = network.add(0);
        if network.inherit_backoff(token, fresh, now) {
            return;
        }
        self.give_work(network, fresh, now);
    }

    fn turned_away(&mut self, network: &mut FloodNetwork<D>, calls: Vec<CallId>, now: u64) {
        self.again.extend(calls);
        if self.slots.is_some() {
            return;
        }
        // An idle connection takes up calls only when it is given work. If all are idle, these calls would wait for ever.
        for token in 0..network.connections.len() {
            if self.again.is_empty() {
                return;
            }
            let connection = &network.connections[token];
            let is_idle = connection.state == State::Idle || connection.room(self.pipeline) > 0;
            if !connection.vacant && is_idle {
                self.give_work(network, token, now);
            }
        }
    }

    fn gone(&mut self, network: &mut FloodNetwork<D>, gone: Gone<'_>, now: u64) {
        if self.slots.is_some() {
            if let Some(growth) = self.growth.as_mut().filter(|_| !gone.was_ready) {
                growth.refused(now);
            }
            // The slot goes on with its next call, whose target may be another.
            network.back_off(gone.token, now);
            self.give_work(network, gone.token, now);
            return;
        }
        let mut is_surplus = false;
        if let Some(growth) = self.growth.as_mut().filter(|_| !gone.was_ready) {
            growth.refused(now);
            is_surplus = !self.plan.reconnect && network.connections.open() > 0;
        }
        if gone.drained || is_surplus {
            network.vacate(gone.token);
        } else if !network.back_off(gone.token, now) {
            self.give_work(network, gone.token, now);
        }
    }
}

impl<D: Driver> Phases<D> for Flood {
    fn prepare(&mut self, network: &mut FloodNetwork<D>, now: u64) -> bool {
        self.connect_ahead(network, now)
    }

    fn prepare_until(&self, network: &FloodNetwork<D>) -> u64 {
        network.last_connected + CONNECTING_PATIENCE_NS
    }

    fn begin(&mut self, network: &mut FloodNetwork<D>, phase: Phase, began: u64, until: u64) {
        self.begin_calls(network, phase, began, until);
    }

    fn tick(&mut self, network: &mut FloodNetwork<D>, now: u64) {
        if self.loading {
            self.go_on(network, now);
            self.dispatch(network);
        }
    }

    fn turn(&mut self, network: &mut FloodNetwork<D>) {
        self.call_again(network);
    }

    fn next_wake(&self, now: u64) -> u64 {
        match &self.pace {
            // The next heartbeat looks whether it was renewed.
            _ if self.lease.has_run_out(now) => NEVER,
            Pace::Open(schedule) if self.loading && !self.ready.is_empty() => schedule.due().unwrap_or(NEVER),
            Pace::Open(_) if self.loading => self.growth.as_ref().map_or(NEVER, |growth| growth.next_look),
            Pace::Open(_) | Pace::Closed(_) => NEVER,
        }
    }

    fn is_over(&self, network: &FloodNetwork<D>, _now: u64) -> bool {
        network.under_way() == 0
            && self.plan.stop.requests.is_some()
            && match &self.pace {
                Pace::Closed(quota) => quota.is_used_up(),
                Pace::Open(schedule) => schedule.due().is_none(),
            }
    }

    fn next_due(&self) -> u64 {
        match &self.pace {
            Pace::Open(schedule) if self.loading => schedule.due().unwrap_or(NEVER),
            Pace::Open(_) | Pace::Closed(_) => NEVER,
        }
    }

    fn leaving(&self) -> Option<Leaving> {
        match self.refusal.as_ref()? {
            Refusal::Done => Some(Leaving::Done),
            Refusal::Failed(reason) => Some(Leaving::Failed(reason.clone())),
        }
    }

    fn end_load(&mut self, network: &mut FloodNetwork<D>, end: u64) {
        self.loading = false;
        if self.measured {
            self.drop_unsent(network, end);
        }
    }

    fn hand_over(&mut self, network: &mut FloodNetwork<D>, until: u64) {
        if let Pace::Open(schedule) = &mut self.pace {
            network.recorder.snapshot.numbers.add(Counter::Due, schedule.come_due(until));
        }
    }

    fn gathers(&self) -> bool {
        self.loading && self.pipeline > 1 && matches!(self.pace, Pace::Closed(_))
    }

    fn take_busy_ns(&mut self) -> u64 {
        self.user.take_busy_ns()
    }

    fn needs_target(&self) -> bool {
        true
    }

    fn may_hang(&self) -> bool {
        self.plan.script.is_some()
    }
}
