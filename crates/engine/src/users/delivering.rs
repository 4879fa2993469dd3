//! Answers, messages and readings delivered to users.

use brunt_record::time::Tick;

use super::slots::UserCall;
use super::{Doing, State, VirtualUsers, Wait};
use crate::trace::Traced;
use brunt_protocol::scenario::{CompleteAnswer, Value};
use brunt_script::{Operation, Resumption};

impl VirtualUsers {
    /// The result of an ended call, as its user is told of it.
    pub(super) fn result(&self, slot: u32, goes_on: bool) -> Resumption<'_> {
        let Some(call) = self.calls.get(slot) else { return Resumption::Nothing };
        let ticket = self.ticket(slot);
        match call.state {
            State::Answered(status) => {
                let answered = CompleteAnswer { status, parts: call.kept.parts() };
                let flags = self.clients.get(call.client).map_or(0, |client| client.caller.flags(&answered));
                Resumption::Answered { ticket, status, ok: self.is_success(call, status), flags, goes_on }
            }
            State::Failed(failure) => Resumption::Failed { ticket, failure: failure.name(), reason: &call.reason },
            State::Throttled | State::UnderWay => Resumption::Nothing,
        }
    }

    /// Resumes a user.
    pub(super) fn go(&mut self, user: u32, now: Tick, with: Resumption<'_>) -> Operation {
        let timer = self.begin_step();
        let (operation, _) = self.library.resume(user, now, with);
        self.end_step(timer);
        operation
    }

    pub(super) fn begin_iteration(&mut self, user: u32, now: Tick) -> Operation {
        let Some(of) = self.user(user) else { return Operation::End };
        of.began = now;
        of.doing = Doing::Iteration;
        let (id, place, crowd) = (of.id, of.place, of.crowd);
        if self.trace.is_some()
            && let Some(scenario) = self.crowds.get(crowd).and_then(|crowd| crowd.scenario(place))
        {
            self.see(&Traced::Begun { scenario });
        }
        let timer = self.begin_step();
        let operation = self.library.begin_iteration(user, now, id, place);
        self.end_step(timer);
        operation
    }

    /// Tells a user the result of the call that it waited for, whose answer it may read until its next call. Returns
    /// the operation that it wants then, and whether it has begun its next iteration for it.
    pub(super) fn deliver(&mut self, user: u32, slot: u32, now: Tick) -> (Operation, bool) {
        let goes_on = self.may_go_on(user);
        if let Some(of) = self.user(user) {
            of.wait = Wait::Nothing;
            of.delivered.push(slot);
        }
        let timer = self.begin_step();
        let resumed = self.library.resume(user, now, self.result(slot, goes_on));
        self.end_step(timer);
        resumed
    }

    /// Whether a user would begin another iteration at once if its current one ended now.
    fn may_go_on(&mut self, user: u32) -> bool {
        let traced = self.trace.is_some();
        let Some(of) = self.users.get(user) else { return false };
        let Some(crowd) = self.crowds.get(of.crowd) else { return false };
        !traced
            && of.doing != Doing::Last
            && of.home.is_none()
            && of.tasks.is_empty()
            && of.pending == 0
            && of.started.is_empty()
            && of.streams.is_empty()
            && !of.found_nobody
            && crowd.wants_all()
    }

    /// Tells a user the results of all the calls that it had begun.
    pub(super) fn deliver_all(&mut self, user: u32, now: Tick) -> Operation {
        let Some(of) = self.user(user) else { return Operation::End };
        of.wait = Wait::Nothing;
        let started = std::mem::take(&mut of.started);
        let timer = self.begin_step();
        let results = started.iter().map(|slot| self.result(*slot, false)).collect();
        let (operation, _) = self.library.resume(user, now, Resumption::Results(results));
        self.end_step(timer);
        if let Some(of) = self.user(user) {
            of.delivered.extend(started);
        }
        operation
    }

    /// Reads a part of an answer for a user.
    pub(super) fn read(&mut self, user: u32, ticket: u64, what: &str, now: Tick) -> Operation {
        let timer = self.begin_step();
        let operation = match self.part(ticket, what) {
            Ok(value) => self.library.resume(user, now, Resumption::Read(value)),
            Err(problem) => self.library.resume(user, now, Resumption::Unread(&problem)),
        };
        self.end_step(timer);
        operation.0
    }

    fn part(&self, ticket: u64, what: &str) -> Result<Value<'_>, String> {
        let Some(call) = self.ticketed(ticket) else {
            return Err(format!(
                "the {what} of this answer is gone: what is not read until the user's next call or pause is not kept, so \
                 read it before (local {what} = answer.{what})"
            ));
        };
        if what == "timings" {
            return Ok(timings(call));
        }
        match (call.state, self.clients.get(call.client)) {
            (State::Answered(status), Some(client)) => {
                let answered = CompleteAnswer { status, parts: call.kept.parts() };
                client.caller.read(what, &answered).map_err(|e| e.0)
            }
            _ => Err(format!("there is no answer to have a {what}: {}", call.reason)),
        }
    }

    /// Forgets the answers that a user may have read.
    pub(super) fn forget_answers(&mut self, user: u32) {
        while let Some(slot) = self.user(user).and_then(|of| of.delivered.pop()) {
            self.calls.free(slot);
        }
    }
}

/// The times of a call, in seconds.
fn timings(call: &UserCall) -> Value<'static> {
    let seconds = |from: Tick, to: Tick| Value::Number(to.since(from) as f64 / 1e9);
    let Some((times, end)) = &call.ended else { return Value::Nil };
    let (due, sent) = call.chain.map_or((times.due, times.sent), |chain| (chain.due, chain.sent));
    let mut entries = vec![(Value::text("response"), seconds(due, *end))];
    if times.was_sent() {
        entries.push((Value::text("service"), seconds(sent, *end)));
        if times.first_byte.is_set() {
            entries.push((Value::text("first_byte"), seconds(sent, times.first_byte)));
        }
    }
    Value::Table(entries)
}
