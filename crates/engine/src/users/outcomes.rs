//! Outcomes of users' calls, as their network reports them.

use brunt_record::outcome::Failure;
use brunt_record::time::Tick;

use super::{Chain, State, UserCall, UsersNetwork, VirtualUsers, Wait, Wake};
use crate::network::{Call, Core, CoreAnswer, Durations, Recorder};
use crate::transport::Driver;
use brunt_protocol::scenario::CompleteAnswer;

/// The most calls of a user whose answers led on and that it has not continued.
const MOST_CHAINS: usize = 1000;
/// The reason shown for an optional call whose answer did not come.
pub(super) const NOTHING_CAME: &str = "nothing came within the timeout";

impl UserCall {
    /// The call's response and service time up to `now`, in nanoseconds. They include the answers that led on.
    fn times_until(&self, call: &Call<u32>, now: Tick) -> (u64, u64) {
        match self.chain {
            Some(Chain { due, sent, .. }) => (now.since(due), now.since(sent)),
            None => (call.response_ns(now), call.service_ns(now)),
        }
    }

    /// The target's part of the call's times, which ended at `at` as noticed at `now`. It includes the answers that led on.
    fn durations(&self, call: &Call<u32>, at: Tick, now: Tick) -> Durations {
        let durations = Recorder::durations(call, at, now);
        match self.chain {
            Some(Chain { due, sent, .. }) => {
                let late = call.response_ns(at).saturating_sub(durations.response);
                Durations { response: at.since(due).saturating_sub(late), service: at.since(sent) }
            }
            None => durations,
        }
    }
}

impl VirtualUsers {
    /// Marks a call of `user` as ended.
    fn call_ended(&mut self, slot: u32, awaited: bool, user: u32) {
        self.see_call(slot);
        if awaited {
            self.make_ready(user, Wake::Ended(slot));
            return;
        }
        if self.calls.get(slot).is_some_and(|call| call.inbox.is_some()) {
            return self.stream_call_ended(slot);
        }
        let Some(user_of_call) = self.user(user) else { return };
        user_of_call.pending = user_of_call.pending.saturating_sub(1);
        if user_of_call.pending == 0 && (user_of_call.wait == Wait::AllCalls || user_of_call.outcome.is_some()) {
            self.make_ready(user, Wake::AllEnded);
        }
    }

    /// Records under its name a call that is still under way when the run ends.
    pub(super) fn cut_short(&mut self, recorder: &mut Recorder, call: &Call<u32>, now: Tick) {
        let Some(slot) = self.calls.get(call.tag) else { return };
        if recorder.counts(call) {
            let (response, service) = slot.times_until(call, now);
            self.names.record(recorder, slot.label, |calls| {
                calls.due();
                if call.was_sent() {
                    calls.unfinished(response, service);
                } else {
                    calls.unsent(response);
                }
            });
        }
        self.calls.free(call.tag);
    }

    /// The label of an answer that leads on, and its call's chain up to it; `None` for a call's last answer.
    fn led_on(&mut self, recorder: &mut Recorder, call: &Call<u32>, status: u16) -> Option<(u32, Chain)> {
        let ended = self.calls.get(call.tag).filter(|ended| ended.inbox.is_none())?;
        let answered = CompleteAnswer { status, parts: ended.kept.parts() };
        let word = self.clients.get(ended.client)?.caller.leads_on(self.encoded(ended), &answered)?;
        let before = ended.chain.unwrap_or(Chain { due: call.due, sent: call.sent, hops: 0, trace: ended.trace });
        let chain = Chain { hops: before.hops + 1, ..before };
        let label = self.names.hop(&mut recorder.snapshot.figures, ended.label, word, chain.hops)?;
        Some((label, chain))
    }

    /// Lets the next call of `user` continue the one whose answer has this ticket.
    pub(super) fn go_on_with(&mut self, user: u32, ticket: u64) {
        let Some(of) = self.user(user) else { return };
        let place = of.chains.iter().position(|(known, _)| *known == ticket);
        of.continues = place.map(|place| of.chains.swap_remove(place).1);
    }

    /// Records an answered call and keeps its answer.
    #[inline]
    pub(super) fn answered<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        call: &Call<u32>,
        status: u16,
        now: Tick,
    ) {
        let slot = call.tag;
        let Some(ended) = self.calls.get_mut(slot) else { return };
        let mut bytes_in = 0;
        if let Some(token) = call.connection() {
            let connection = &mut network.connections[token];
            bytes_in = connection.link.bytes_in.saturating_sub(ended.bytes_before);
            // An answer that was judged was handed over for that already.
            if !ended.judged {
                connection.link.client.hand_over(&mut ended.kept);
            }
        }
        ended.state = State::Answered(status);
        ended.id = None;
        ended.ended = Some((*call, now));
        let (user, awaited) = (ended.user, ended.awaited);
        let recorder = &mut network.recorder;
        let hop = self.led_on(recorder, call, status);
        if let (Some((label, _)), Some(ended)) = (hop, self.calls.get_mut(slot)) {
            (ended.label, ended.chain) = (label, None);
        }
        if recorder.counts(call)
            && let Some(ended) = self.calls.get(slot)
        {
            let (label, bytes_out) = (ended.label, self.encoded(ended).bytes.len() as u64);
            let at = recorder.ended_at(call, None, now);
            let durations = ended.durations(call, at, now);
            let is_usual = recorder.is_ok(status);
            let is_ok = self.expects(ended, status).unwrap_or(is_usual);
            if is_usual && !is_ok {
                self.names.unexpected(recorder, label, status);
                recorder.revoke_end(Core::All, at);
            }
            let answer = CoreAnswer { status, durations, is_usual, is_ok, bytes_in, bytes_out };
            self.names.each_core(label, Some(status), |core| {
                recorder.answered_by_end(core, at, is_ok);
                recorder.answered_in(core, &answer);
            });
            if self.names.is_new(label, status) {
                self.name_status(recorder, slot, status);
            }
        }
        let ticket = self.calls.get(slot).map(|_| self.ticket(slot) as u64);
        if let Some(user) = self.user(user) {
            user.found_nobody = false;
            user.presence.answered(&mut network.recorder.snapshot.numbers, call, now);
            if let (Some((_, chain)), Some(ticket)) = (hop, ticket) {
                if user.chains.len() >= MOST_CHAINS {
                    user.chains.remove(0);
                }
                user.chains.push((ticket, chain));
            }
        }
        self.call_ended(slot, awaited, user);
    }

    /// Records a failed call.
    pub(super) fn failed(
        &mut self,
        recorder: &mut Recorder,
        call: &Call<u32>,
        failure: Failure,
        reason: &str,
        now: Tick,
    ) {
        let Some(ended) = self.calls.get(call.tag) else { return };
        let (user, label) = (ended.user, ended.label);
        if recorder.counts(call) {
            let at = recorder.ended_at(call, Some(failure), now);
            let Durations { response, service } = ended.durations(call, at, now);
            let service = call.was_sent().then_some(service);
            self.names.record(recorder, label, |calls| {
                calls.due();
                calls.failed(failure, response, service);
            });
        }
        if let Some(user) = self.user(user) {
            user.found_nobody = !call.was_sent();
            user.presence.failed(&mut recorder.snapshot.numbers, call, (failure, reason), now);
        }
        self.tell_failed(call, failure, reason, now);
    }

    /// Marks a call as failed for its user, with the reason.
    pub(super) fn tell_failed(&mut self, call: &Call<u32>, failure: Failure, reason: &str, now: Tick) {
        let Some(ended) = self.calls.get_mut(call.tag) else { return };
        ended.state = State::Failed(failure);
        ended.id = None;
        ended.ended = Some((*call, now));
        ended.reason.clear();
        ended.reason.push_str(reason);
        let (user, awaited) = (ended.user, ended.awaited);
        self.call_ended(call.tag, awaited, user);
    }

    /// Records the name of an answer's status, if its protocol has one.
    #[cold]
    fn name_status(&self, recorder: &mut Recorder, slot: u32, status: u16) {
        let Some(call) = self.calls.get(slot) else { return };
        let Some(client) = self.clients.get(call.client) else { return };
        if let Some(name) = client.caller.status_name(self.encoded(call), status) {
            self.names.record(recorder, call.label, |calls| calls.name_status(status, &name));
        }
    }
}
