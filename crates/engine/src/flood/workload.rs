//! A flood as the workload of its worker and its network.

use brunt_record::catalogue::Counter;
use brunt_record::outcome::Failure;
use brunt_record::samples::Texts;
use brunt_record::snapshot::Phase;
use brunt_record::time::Tick;

use super::call_names::CallNames;
use super::{CONNECTING_PATIENCE_NS, Flood, FloodNetwork, Pace};
use crate::network::origins::OriginId;
use crate::network::{Call, CallId, Counted, End, FailedAttempt, Gone, LoadEnd, Nature, RowContext, Workload};
use crate::rules::{Rule, is_broken};
use crate::transport::{ConnectionId, Driver};
use brunt_protocol::source::{Message, SourceEnd};

impl<D: Driver> Workload<D> for Flood {
    type Tag = u64;

    fn nature(&self) -> Nature {
        Nature { calls_at_once: true, may_hang: self.plan.script.is_some() }
    }

    fn prepare(&mut self, network: &mut FloodNetwork<D>, now: Tick) -> Option<Tick> {
        if self.ahead.begun == 0 {
            self.names = CallNames::new(self.user.names(), network.recorder_mut());
            if self.user.traces() {
                network.recorder_mut().keep_slowest();
            }
            network.share_attempts(self.share.count());
        }
        let is_ready = self.connect_ahead(network, now);
        (!is_ready).then(|| network.signs().last_connected() + CONNECTING_PATIENCE_NS)
    }

    fn begin(&mut self, network: &mut FloodNetwork<D>, phase: Phase, began: Tick, until: Tick) {
        self.begin_calls(network, phase, began, until);
    }

    fn tick(&mut self, network: &mut FloodNetwork<D>, now: Tick) {
        if self.part.is_on() {
            self.go_on(network, now);
            self.dispatch(network);
            if self.lists.have_none_ready() {
                self.await_connection(network, now);
            } else {
                self.short_since = Tick::NEVER;
            }
        }
    }

    fn turn(&mut self, network: &mut FloodNetwork<D>) {
        self.call_again(network);
    }

    fn next_wake(&self, now: Tick) -> Tick {
        match &self.pace {
            // Beyond the horizon, the next heartbeat looks whether the horizon has moved on.
            Pace::Open(schedule) if self.part.is_on() && !self.lists.have_none_ready() => {
                schedule.due().filter(|due| !self.part.ends_before(*due)).unwrap_or(Tick::NEVER)
            }
            Pace::Open(_) if self.is_held() => Tick::NEVER,
            Pace::Open(_) if self.part.is_on() => {
                self.growth.as_ref().map_or(Tick::NEVER, |growth| growth.next_look).min(self.outage.next_look)
            }
            Pace::Closed(_) if self.part.is_on() => self.part.resumes(now),
            Pace::Open(_) | Pace::Closed(_) => Tick::NEVER,
        }
    }

    fn is_over(&self, network: &FloodNetwork<D>, _now: Tick) -> bool {
        network.under_way() == 0
            && self.plan.stop.requests.is_some()
            && match &self.pace {
                Pace::Closed(quota) => quota.is_used_up(),
                // A pause may end.
                Pace::Open(schedule) => schedule.due().is_none() && !self.part.is_paused(),
            }
    }

    fn next_due(&self) -> Tick {
        match &self.pace {
            Pace::Open(schedule) if self.part.is_on() => schedule.due().unwrap_or(Tick::NEVER),
            Pace::Open(_) | Pace::Closed(_) => Tick::NEVER,
        }
    }

    fn load_end(&self) -> Option<LoadEnd> {
        match self.refusal.as_ref()? {
            SourceEnd::Done => Some(LoadEnd::Done),
            SourceEnd::Failed(reason) => Some(LoadEnd::Failed(reason.clone())),
        }
    }

    fn end_load(&mut self, network: &mut FloodNetwork<D>, end: Tick) {
        self.hear();
        self.part.end();
        network.end_watch(end);
        if self.part.is_measured() {
            self.drop_unsent(network, end);
        }
    }

    fn interrupted(&mut self, network: &mut FloodNetwork<D>, end: Tick) {
        if !is_broken(Rule::InterruptedCallsAreSent) {
            self.keep_waiting(network, end);
        }
    }

    fn hand_over(&mut self, network: &mut FloodNetwork<D>, until: Tick) {
        self.hear();
        if let Pace::Open(schedule) = &mut self.pace {
            network.recorder_mut().snapshot.numbers.add(Counter::Due, schedule.come_due(until));
        }
    }

    fn gathers(&self) -> bool {
        self.part.is_on() && self.pipeline > 1 && matches!(self.pace, Pace::Closed(_))
    }

    #[cfg(feature = "simulation")]
    fn audit(&self, network: &FloodNetwork<D>, now: Tick) {
        self.audit_step(network, now);
    }

    fn take_busy_ns(&mut self) -> u64 {
        self.user.take_busy_ns()
    }

    #[inline]
    fn message(&mut self, number: u64) -> Result<Message<'_>, SourceEnd> {
        let Self { user, refusal, .. } = self;
        user.request(number).inspect_err(|refused| *refusal = Some(refused.clone()))
    }

    fn next_of_batch(&mut self, call: &Call<u64>) -> Option<Call<u64>> {
        // It has a number of its own, and is due with the first call.
        self.hear();
        let (due, number, counted) = match &mut self.pace {
            Pace::Closed(quota) => (call.due, quota.take()?, Counted::OnceSent),
            Pace::Open(schedule) => {
                schedule.due().filter(|due| !self.part.ends_before(*due))?;
                let (due, number) = schedule.take_ahead(call.due)?;
                (due, number, Counted::Already)
            }
        };
        Some(Call::new(number, due, call.measured, counted))
    }

    #[inline]
    fn ended(&mut self, network: &mut FloodNetwork<D>, call: &Call<u64>, end: End<'_>, now: Tick) {
        if network.recorder().samples.is_some() {
            let connection = network.connection_number(call);
            let name = Workload::<D>::request_name(self, call.tag, connection).unwrap_or_default();
            let texts = Texts { name, tags: "" };
            network.write_down(call, end, now, &RowContext { texts, ..RowContext::default() });
        }
        if !self.names.is_empty() {
            let name = self.name(call.tag, network.connection_number(call));
            self.names.record(network.recorder_mut(), name, call, end, now);
        }
        // Scripts see the calls that count while the load is on, and only those.
        if let End::Answered(status) = end
            && self.interests.answers
            && self.is_loading()
            && let Some(token) = call.connection()
            && let Err(refusal) = self.user.answered(status, network.connections()[token].client().parts())
        {
            self.refusal = Some(refusal);
        }
    }

    fn request_name(&self, number: u64, connection: u64) -> Option<&str> {
        if self.names.is_empty() {
            return None;
        }
        self.user.names().get(self.name(number, connection)).map(String::as_str)
    }

    fn trace_id(&self, number: u64) -> Option<String> {
        self.user.trace(number).map(|ids| ids.trace_id())
    }

    fn next_calls(&mut self, network: &mut FloodNetwork<D>, token: ConnectionId, now: Tick) {
        let connection = &network.connections()[token];
        if connection.is_open() {
            self.outage.made(connection.origin());
            if let Some(growth) = &mut self.growth {
                growth.made();
            }
        }
        self.give_work(network, token, now);
    }

    /// Fails calls that wait for a connection, if there is no other connection.
    fn connect_failed(&mut self, network: &mut FloodNetwork<D>, attempt: &FailedAttempt<'_>, now: Tick) -> bool {
        self.outage.failed(attempt, now);
        // The peer took the connection and refused the protocol: that is an answer, which another attempt would get again.
        if self.part.is_ahead() && attempt.failure == Failure::Handshake {
            self.outage.refused_ahead += 1;
        }
        let mut has_cost = false;
        self.hear();
        while self.is_loading()
            && !self.connects_for_calls()
            && self.lists.have_none_ready()
            && self.is_out(network, now)
            && self.share_outcome(network, now)
        {
            has_cost = true;
        }
        has_cost
    }

    fn connection_leaves(&mut self, network: &mut FloodNetwork<D>, token: ConnectionId, now: Tick) {
        // The slot keeps its place, which is connected again for the next call.
        if self.slots.is_some() {
            return;
        }
        // Another connection takes the place of one that leaves, which keeps up their number.
        self.deferred_replacements += 1;
        if !self.kept_up(network).has_place() && !is_broken(Rule::LeavingIsOwed) {
            return;
        }
        self.deferred_replacements -= 1;
        let fresh = self.add(network);
        if !network.inherit(token, fresh, now) {
            self.give_work(network, fresh, now);
        }
    }

    fn refused_unprocessed(&mut self, network: &mut FloodNetwork<D>, calls: Vec<CallId>, now: Tick) {
        self.again.extend(calls);
        // An idle connection takes calls only when it is given work. If all are idle, these calls would wait for ever.
        if (self.slots.is_none() || !self.is_loading()) && !is_broken(Rule::TurnedAwayIsSentAgain) {
            self.serve_again(network, now);
        }
    }

    fn gone(&mut self, network: &mut FloodNetwork<D>, gone: Gone<'_>, now: Tick) {
        let token = gone.token;
        let is_open = matches!(self.pace, Pace::Open(_));
        if let Some(growth) = self.growth.as_mut().filter(|_| !gone.was_ready) {
            growth.refused(now);
        }
        if gone.has_left && self.slots.is_none() {
            let never_answered = network.connections()[token].never_answered();
            network.vacate(token);
            if self.kept_up(network).has_place() {
                self.deferred_replacements -= 1;
                let fresh = network.add_after(OriginId::FIRST, never_answered);
                if !network.back_off(fresh, now) {
                    self.give_work(network, fresh, now);
                }
            }
            return;
        }
        // In the open model the next call makes an attempt of its own where there is no other connection.
        let tries_for_calls = is_open && self.is_loading();
        if tries_for_calls && self.connects_for_calls() {
            return self.give_work(network, token, now);
        }
        if tries_for_calls && network.connections()[token].never_answered() {
            let grows = self.growth.is_some();
            if grows && (network.census().taking() > 0 && !gone.was_ready || network.places() > self.ahead.connections)
            {
                return network.vacate(token);
            }
            if network.census().taking() == 0 {
                return self.rest(network, token);
            }
        }
        if !network.back_off(token, now) {
            self.give_work(network, token, now);
        }
    }
}
