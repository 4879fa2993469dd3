//! The life of a virtual user, from top to bottom: it comes, is resumed, does what its script wants, iterates, runs tasks
//! and meets others, and goes.

use brunt_plan::bodies::shown_beginning;
use brunt_plan::threshold::Traits;
use brunt_record::catalogue::Timing;
use brunt_record::figures::{Example, LONGEST_EXAMPLE, NameId};
use brunt_record::outcome::Failure;
use brunt_record::time::Tick;

use super::agenda::{TimedWake, Wake};
use super::call::{AnswerReceiver, State, UserCall, slot_of};
use super::ids::{UserId, WaitId};
use super::population_share::{Admission, Arrival, CutOffUsers};
use super::presence::Presence;
use super::user::{CurrentActivity, Outcome, VirtualUser, Wait};
use super::{UsersNetwork, VirtualUsers};
use crate::network::{Core, Peer, Recorder};
use crate::trace::{Level, Traced};
use crate::transport::Driver;
use brunt_protocol::scenario::{CompleteAnswer, Value};
use brunt_script::{Labelled, Operation, Resumption, Wanted};

/// Users resumed before I/O is polled.
const MOST_AT_ONCE: usize = 512;
/// Users resumed before the calls that they want are sent, one after the other: the target is woken once
/// for all of them instead of for each.
const MOST_GATHERED: usize = 16;
/// The time after which fewer gathered calls are sent too, in nanoseconds: with a slow script, a call waits no longer
/// than this and one more user's function.
const LONGEST_GATHERED_NS: u64 = 30_000;
/// An iteration shorter than this, in nanoseconds, that reached no connection delays the next one.
const SHORT_NS: u64 = 50_000_000;

/// Coming.
impl VirtualUsers {
    /// Looks for changes of the run.
    #[inline]
    pub(super) fn hear(&mut self) {
        if self.loading.hear() {
            self.take_changes();
        }
    }

    /// Applies the changes. Kept apart from the look, which every tick makes.
    #[cold]
    fn take_changes(&mut self) {
        self.populations.change(&self.loading.changed_users());
        if let Some(throttle) = &mut self.throttle {
            throttle.change(self.loading.changes());
        }
    }

    /// Admits the users who are due at `now`.
    fn admit(&mut self, now: Tick, recorder: &mut Recorder) {
        for place in self.populations.places() {
            if self.populations.opens(place, now) {
                self.admit_to(place, now, recorder);
            }
            if self.populations.runs_out_of_time(place, now) {
                self.call_in(place);
            }
            self.populations.announce(place);
        }
    }

    /// Admits the users arriving at a rate who were due before `until`, which has passed: a second has all users that
    /// were due in it, however late it is closed.
    pub(super) fn admit_before(&mut self, until: Tick, recorder: &mut Recorder) {
        for place in self.populations.places() {
            if self.populations.came_before(place, until) {
                self.admit_to(place, until.before(1), recorder);
            }
        }
    }

    fn admit_to(&mut self, place: usize, now: Tick, recorder: &mut Recorder) {
        loop {
            match self.populations.admit(place, now, &self.loading, recorder) {
                Admission::Comes(arrival) => self.come(&arrival),
                Admission::CallsIn => return self.call_in(place),
                Admission::Retires(idle) => return self.retire(idle),
                Admission::Nothing => return,
            }
        }
    }

    /// A user comes, for the first time or again.
    fn come(&mut self, arrival: &Arrival) {
        let user = arrival.again.unwrap_or_else(|| self.users.settle(arrival.who));
        if let Some(of) = self.users.get_mut(user) {
            (of.arrived, of.iterations) = (arrival.due, arrival.iterations);
            of.presence = Presence::new(arrival.due.is_none());
        }
        self.make_ready(user, Wake::Begin);
    }

    /// Ends users who are idle, as nobody arrives any more.
    fn retire(&mut self, idle: impl IntoIterator<Item = UserId>) {
        for user in idle {
            self.make_ready(user, Wake::Stop(true));
        }
    }

    /// Tells users between two iterations that no other iteration follows.
    fn call_in(&mut self, place: usize) {
        for user in self.users.ids() {
            if self.user(user).is_some_and(|of| of.who.population == place && of.activity == CurrentActivity::Nothing) {
                self.make_ready(user, Wake::Begin);
            }
        }
    }
}

/// Being resumed.
impl VirtualUsers {
    /// Handles everything that is due by time: pauses that are over, users who arrive, hosts that were looked up.
    pub(super) fn wake<D: Driver>(&mut self, network: &mut UsersNetwork<D>, now: Tick) {
        self.admit(now, network.recorder_mut());
        if self.loading.holds_back(now) {
            return;
        }
        if self.loading.lets_go(now) {
            self.send_held(network);
        }
        self.cut_off_late(network, now);
        while let Some((at, user, wake)) = self.agenda.due(&self.users, now) {
            let wake = match wake {
                TimedWake::Begin => Wake::Begin,
                TimedWake::Go => Wake::Go,
                TimedWake::Release(slot) => Wake::Release(slot),
                TimedWake::Late { slot, wait } => Wake::Late(slot, wait),
                TimedWake::Joined(wait) => {
                    self.rendezvous_points.leave(wait);
                    self.joined(user, wait);
                    continue;
                }
            };
            // Timers are the generator's own to keep: their delay is its own doing.
            network.recorder_mut().snapshot.times.record(Timing::Lag, now - at);
            self.make_ready(user, wake);
        }
        self.look_at_meetings();
        if network.origins().are_sought() {
            self.take_found(network, now);
        }
    }

    /// Resumes the users who have an event.
    pub(super) fn run_users<D: Driver>(&mut self, network: &mut UsersNetwork<D>) {
        for _ in 0..MOST_AT_ONCE / MOST_GATHERED {
            if self.agenda.has_rest() {
                return;
            }
            self.gathers = true;
            self.run_some_users(network);
            self.gathers = false;
            self.send_gathered(network);
        }
    }

    fn run_some_users<D: Driver>(&mut self, network: &mut UsersNetwork<D>) {
        let mut until = None;
        for _ in 0..MOST_GATHERED {
            if !self.loading.makes_calls() || self.agenda.has_rest() {
                return;
            }
            let now = network.now();
            if now > *until.get_or_insert(now.saturating_add(LONGEST_GATHERED_NS)) || self.loading.ends_before(now) {
                return;
            }
            let Some((user, wake)) = self.agenda.next(&self.users) else { return };
            self.run_user(network, user, wake, now);
        }
    }

    fn run_user<D: Driver>(&mut self, network: &mut UsersNetwork<D>, user: UserId, wake: Wake, now: Tick) {
        if self.end_if_cancelled(network, user, now) {
            return;
        }
        if matches!(wake, Wake::Begin | Wake::Go)
            && let Some(user) = self.user(user)
        {
            user.presence.goes_on(now);
        }
        let mut operation = match wake {
            // The user may have been told twice.
            Wake::Begin if self.user(user).is_none_or(|user| user.activity != CurrentActivity::Nothing) => return,
            Wake::Begin if self.is_surplus(user, now) => return self.stop_or_end(network, user, true),
            Wake::Stop(between) => match self.begin_stop(user, between, now) {
                Some(operation) => operation,
                None => return self.end_user(network, user, between),
            },
            Wake::Begin => {
                if let Some(due) = self.user(user).and_then(|user| user.arrived) {
                    network.recorder_mut().snapshot.times.record(Timing::Lag, now.since(due));
                }
                self.begin_iteration(user, now)
            }
            Wake::Go => self.go(user, now, Resumption::Nothing),
            Wake::Ended(slot) => {
                let (operation, again) = self.deliver(user, slot, now);
                if again {
                    self.iterated_at_once(network.recorder_mut(), user, now);
                }
                operation
            }
            Wake::AllEnded => {
                if let Some(outcome) = self.user(user).and_then(VirtualUser::take_outcome) {
                    return self.finish(network, user, outcome, now);
                }
                self.deliver_all(user, now)
            }
            Wake::Release(slot) => return self.make_due(network, slot, now),
            Wake::Streamed(slot) => match self.next_message(user, slot, now) {
                Some(operation) => operation,
                None => return,
            },
            Wake::StreamOver => self.go(user, now, Resumption::Read(Value::Nil)),
            Wake::Late(slot, wait) => match self.message_is_late(user, slot, wait, now) {
                Some(operation) => operation,
                None => return,
            },
        };
        while let Some(next) = self.perform(network, user, operation, now) {
            operation = next;
        }
    }

    /// Whether this user, as one too many or too late, begins no other iteration.
    #[inline]
    fn is_surplus(&self, user: UserId, now: Tick) -> bool {
        self.users.get(user).is_some_and(|of| self.populations.has_surplus(of.who.population, now))
    }

    fn begin_iteration(&mut self, user: UserId, now: Tick) -> Operation {
        let Some(of) = self.users.get_mut(user) else { return Operation::End };
        of.activity = CurrentActivity::iteration(now);
        of.iteration += 1;
        if let Some(trace) = self.watch.all()
            && let Some(scenario) = self.populations.scenario(&of.who)
        {
            trace.see(&Traced::Begun { scenario });
        }
        let who = of.who;
        self.script.step(who.place, |library| library.begin_iteration(user.slot(), now, who.id, who.place))
    }

    /// Resumes a user.
    pub(super) fn go(&self, user: UserId, now: Tick, with: Resumption<'_>) -> Operation {
        self.script.step(self.place_of(user), |library| library.resume(user.slot(), now, with)).0
    }

    /// Tells a user the result of the call that it waited for, whose answer it may read until its next call. Returns
    /// the operation that it wants then, and whether it has begun its next iteration for it.
    fn deliver(&mut self, user: UserId, slot: u32, now: Tick) -> (Operation, bool) {
        let goes_on = self.may_go_on(user);
        if let Some(of) = self.user(user) {
            of.wait = Wait::Nothing;
            of.begun.deliver([slot]);
        }
        self.script.step(self.place_of(user), |library| library.resume(user.slot(), now, self.result(slot, goes_on)))
    }

    /// Whether a user would begin another iteration at once if its current one ended now.
    fn may_go_on(&self, user: UserId) -> bool {
        let Some(of) = self.users.get(user) else { return false };
        !self.watch.sees_everything()
            && !matches!(of.activity, CurrentActivity::Last(_))
            && !of.kin.is_task()
            && !of.kin.has_tasks()
            && of.begun.is_nothing()
            && !of.found_nobody
            && !self.clients.end_with_iterations()
            && self.populations.wants_all(of.who.population)
    }

    /// Tells a user the results of all the calls that it had begun.
    fn deliver_all(&mut self, user: UserId, now: Tick) -> Operation {
        let Some(of) = self.user(user) else { return Operation::End };
        of.wait = Wait::Nothing;
        let started = of.begun.take_started();
        let (operation, _) = self.script.step(self.place_of(user), |library| {
            let results = started.iter().map(|slot| self.result(*slot, false)).collect();
            library.resume(user.slot(), now, Resumption::Results(results))
        });
        if let Some(of) = self.user(user) {
            of.begun.deliver(started);
        }
        operation
    }

    /// The result of an ended call, as its user is told of it.
    pub(super) fn result(&self, slot: u32, goes_on: bool) -> Resumption<'_> {
        let Some(call) = self.calls.get(slot) else { return Resumption::Nothing };
        let ticket = self.ticket(slot);
        match call.state {
            State::Answered(status, _) => {
                let answered = CompleteAnswer { status, parts: call.kept.parts() };
                let flags = self.clients.get(call.asked.client).map_or(0, |client| client.caller.flags(&answered));
                Resumption::Answered { ticket, status, ok: self.is_success(call, status), flags, goes_on }
            }
            State::Failed(failure, _) => Resumption::Failed { ticket, failure: failure.name(), reason: &call.reason },
            State::Throttled { .. } | State::UnderWay(_) => Resumption::Nothing,
        }
    }

    /// Reads a part of an answer for a user.
    fn read(&self, user: UserId, ticket: u64, what: &str, now: Tick) -> Operation {
        match self.part(ticket, what) {
            Ok(value) => self.go(user, now, Resumption::Read(value)),
            Err(problem) => self.go(user, now, Resumption::Unread(&problem)),
        }
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
        match (call.status(), self.clients.get(call.asked.client)) {
            (Some(status), Some(client)) => {
                let answered = CompleteAnswer { status, parts: call.kept.parts() };
                if what == "exchange" {
                    return Ok(exchange(call, client.caller.read("proto", &answered).unwrap_or(Value::Nil)));
                }
                client.caller.read(what, &answered).map_err(|e| e.0)
            }
            _ => Err(format!("there is no answer to have a {what}: {}", call.reason)),
        }
    }

    /// Forgets the answers that a user may have read.
    pub(super) fn forget_answers(&mut self, user: UserId) {
        while let Some(slot) = self.user(user).and_then(|of| of.begun.take_delivered()) {
            self.calls.free(slot);
        }
    }
}

/// The times of a call, in seconds.
fn timings(call: &UserCall) -> Value<'static> {
    let seconds = |from: Tick, to: Tick| Value::Number(to.since(from) as f64 / 1e9);
    let Some(times) = call.times() else { return Value::Nil };
    let (due, sent) = call.chain.map_or((times.due, times.sent), |chain| (chain.due, chain.sent));
    let mut entries = vec![(Value::text("response"), seconds(due, times.ended))];
    if times.sent.is_set() {
        entries.push((Value::text("service"), seconds(sent, times.ended)));
        if times.first_byte.is_set() {
            entries.push((Value::text("first_byte"), seconds(sent, times.first_byte)));
        }
    }
    Value::Table(entries)
}

/// How a call went, as a list: seconds from due to its end, from sent to its end, and from sent to the first byte of its answer; seconds of
/// connecting and of the TLS handshake, 0 on a connection that was there before; the peer's address and port; the protocol, as the peer has named
/// it; the version of TLS and the cipher suite; seconds until the socket took the last byte of it, 0 where it took all at once. What does not
/// apply is `Nil`.
fn exchange<'a>(call: &UserCall, proto: Value<'a>) -> Value<'a> {
    let Some(times) = call.times() else { return Value::Nil };
    let seconds = |from: Tick, to: Tick| {
        let is_known = from.is_set() && to.is_set();
        if is_known { Value::Number(to.since(from) as f64 / 1e9) } else { Value::Nil }
    };
    let Peer { address, security, connect_ns, handshake_ns, caught_up } = call.peer;
    // An answer may begin before its request has gone.
    let until = if times.first_byte.is_set() { times.first_byte } else { times.ended };
    let sending =
        caught_up.filter(|_| times.sent.is_set()).map_or(0, |caught_up| caught_up.min(until).since(times.sent));
    let text = |name: Option<&str>| name.map_or(Value::Nil, |name| Value::Text(name.to_owned().into_bytes().into()));
    Value::list([
        seconds(times.due, times.ended),
        seconds(times.sent, times.ended),
        seconds(times.sent, times.first_byte),
        Value::Number(connect_ns as f64 / 1e9),
        Value::Number(handshake_ns as f64 / 1e9),
        address.map_or(Value::Nil, |address| Value::Text(address.ip().to_string().into_bytes().into())),
        address.map_or(Value::Nil, |address| Value::Number(f64::from(address.port()))),
        proto,
        text(security.and_then(|(version, _)| version.as_str())),
        text(security.and_then(|(_, suite)| suite.as_str())),
        Value::Number(sending as f64 / 1e9),
    ])
}

/// Doing what its script wants.
impl VirtualUsers {
    /// Performs an operation of a user. Returns the next one, if the user goes on at once.
    #[inline]
    fn perform<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        user: UserId,
        operation: Operation,
        now: Tick,
    ) -> Option<Operation> {
        match operation {
            Operation::CallPrepared { prepared, label, timeout_ns } => {
                self.forget_answers(user);
                let asked = self.ask_prepared(network, user, (prepared, label, timeout_ns), now);
                asked.err().map(|problem| self.go(user, now, Resumption::Refused(&problem)))
            }
            Operation::Iterated { pacing_ns, ok } => {
                self.finish(network, user, Outcome::Returned { pacing_ns, ok }, now);
                None
            }
            other => self.perform_other(network, user, other, now),
        }
    }

    /// The same for what users do less often, or is more work.
    fn perform_other<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        user: UserId,
        operation: Operation,
        now: Tick,
    ) -> Option<Operation> {
        match operation {
            Operation::Call(wanted) => {
                self.forget_answers(user);
                let asked = self.ask(network, user, &wanted, AnswerReceiver::Waiting, now);
                asked.err().map(|problem| self.go(user, now, Resumption::Refused(&problem)))
            }
            Operation::Prepare(wanted) => {
                let prepared = self.clients.prepare(&wanted);
                Some(match prepared {
                    Ok(number) => self.go(user, now, Resumption::Number(number)),
                    Err(problem) => self.go(user, now, Resumption::Refused(&problem)),
                })
            }
            Operation::Start(wanted) => self.start(network, user, &wanted, now),
            Operation::Stream(wanted) => Some(self.begin_stream(network, user, &wanted, now)),
            Operation::NextMessage { ticket, part, most_ns } => {
                self.forget_answers(user);
                self.want_message(user, slot_of(ticket), (part, most_ns), now)
            }
            Operation::Say { ticket, values } => {
                self.forget_answers(user);
                Some(self.say(network, user, slot_of(ticket), &values, now))
            }
            Operation::Continue(ticket) => {
                self.user(user)?.begun.go_on_with(ticket);
                Some(self.go(user, now, Resumption::Nothing))
            }
            Operation::LeaveStream(ticket) => Some(self.leave_stream(network, user, slot_of(ticket), now)),
            Operation::Wait => {
                self.forget_answers(user);
                let of = self.user(user)?;
                if of.begun.is_under_way() {
                    of.wait = Wait::AllCalls;
                    None
                } else {
                    Some(self.deliver_all(user, now))
                }
            }
            Operation::Pause(length) => {
                self.forget_answers(user);
                self.user(user)?.arrived = None;
                self.pause(network, user, now);
                self.set_timer(now.saturating_add(length), user, TimedWake::Go);
                None
            }
            Operation::End => {
                self.finish(network, user, Outcome::Left, now);
                None
            }
            Operation::Exhausted => {
                let of = self.users.get(user)?;
                let (is_task, idle) = (of.kin.is_task(), self.populations.exhaust(of.who.population));
                network.recorder_mut().snapshot.figures.scenarios.at(of.who.scenario).out_of_rows += 1;
                self.retire(idle);
                if is_task {
                    return Some(self.go(user, now, Resumption::Nothing));
                }
                self.finish(network, user, Outcome::Left, now);
                None
            }
            Operation::Failed { problem, wrong, pacing_ns } => {
                self.script_failed(network, user, problem, wrong, pacing_ns, now);
                None
            }
            Operation::Read { ticket, what } => Some(self.read(user, ticket, &what, now)),
            Operation::Release(handle) => {
                self.release(network, user, handle);
                Some(self.go(user, now, Resumption::Nothing))
            }
            Operation::Stop(reason) => {
                self.loading.stop(reason);
                None
            }
            Operation::Spawn
            | Operation::Join(_)
            | Operation::Cancel(_)
            | Operation::TaskEnded
            | Operation::Meet { .. } => self.perform_with_others(network, user, operation, now),
            counted => Some(self.count(network.recorder_mut(), user, &counted, now)),
        }
    }

    /// Begins a call for which a user waits later, together with all others that it has begun.
    fn start<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        user: UserId,
        wanted: &Wanted,
        now: Tick,
    ) -> Option<Operation> {
        // The call may fail at once.
        self.user(user)?.begun.starts();
        match self.ask(network, user, wanted, AnswerReceiver::Later, now) {
            Err(problem) => {
                self.user(user)?.begun.ended_one();
                Some(self.go(user, now, Resumption::Problem(&problem)))
            }
            Ok(slot) => {
                if let Some(of) = self.user(user) {
                    of.begun.started(slot);
                }
                Some(self.go(user, now, Resumption::Nothing))
            }
        }
    }

    /// Records what a user has counted, or gives it the number that it asks for.
    fn count(&mut self, recorder: &mut Recorder, user: UserId, operation: &Operation, now: Tick) -> Operation {
        let figures = &mut recorder.snapshot.figures;
        let number = match operation {
            Operation::Label(named) => {
                let Labelled { name, tags, place: (scenario, group), ok } = &**named;
                Some(self.names.label(figures, &Traits { name, tags, scenario, group }, ok.as_ref()))
            }
            Operation::Check { label, name, is_reason } => Some(self.names.check(figures, *label, name, *is_reason)),
            Operation::Group(path) => Some(figures.groups.id(path).number()),
            Operation::GroupEnded { id, with_pauses_ns, without_pauses_ns, ok } => {
                let group = figures.groups.at(NameId::from_number(*id));
                group.ended(*with_pauses_ns, *without_pauses_ns, *ok);
                None
            }
            Operation::Excuse { label, status } => {
                recorder.snapshot.excused.record(*status);
                self.names.record_answered(recorder, *label, *status, |calls| calls.excused(*status));
                self.names.each_core(*label, Some(*status), |core| recorder.excuse_end(core, now));
                recorder.excuse_end(Core::All, now);
                None
            }
            Operation::Log { level, text } => {
                self.see_log(user, level, text);
                None
            }
            Operation::CheckPassed(id) => {
                self.see_check(*id, true);
                None
            }
            Operation::CheckFailed { id, ticket, label, first, reason } => {
                self.see_check(*id, false);
                self.see_failed_check(*id, *ticket);
                self.check_failed(recorder, *id, *ticket, (*label, *first), reason.as_deref());
                None
            }
            _ => None,
        };
        self.go(user, now, number.map_or(Resumption::Nothing, Resumption::Number))
    }

    /// Records that a check did not hold for the call with this label. `first`: whether it is the call's first failed
    /// check; `reason`: the error that the check raised, if any.
    fn check_failed(
        &mut self,
        recorder: &mut Recorder,
        check: u32,
        ticket: u64,
        (label, first): (u32, bool),
        reason: Option<&str>,
    ) {
        let call = self.ticketed(ticket);
        let ended = call.and_then(UserCall::times).map_or(Tick::EPOCH, |times| times.ended);
        let status = call.and_then(UserCall::status);
        self.names.failed(recorder, check, || {
            // Of a call that failed otherwise than by its answer, what was kept is an answer that it did not take.
            let no_answer = call.and_then(|call| match call.state {
                State::Failed(Failure::Mismatch, _) if !call.kept.body.is_empty() => None,
                State::Failed(failure, _) if call.reason.is_empty() => Some(failure.name().to_owned()),
                State::Failed(failure, _) => Some(format!("{}: {}", failure.name(), call.reason)),
                _ => None,
            });
            let body = call.map_or(&[][..], |call| &call.kept.body);
            let shown = reason.or(no_answer.as_deref()).map_or(body, str::as_bytes);
            let (beginning, is_cut) = shown_beginning(shown, LONGEST_EXAMPLE);
            Example::new(status, &beginning, is_cut)
        });
        // A call without an answer is no success anyway.
        if first && let Some(status) = status {
            recorder.snapshot.failed_check.record(status);
            self.names.record_answered(recorder, label, status, |calls| calls.failed_check(status));
            let is_ok = self.names.expects(label, status).unwrap_or_else(|| recorder.is_ok(status));
            if is_ok {
                self.names.each_core(label, Some(status), |core| recorder.revoke_end(core, ended));
                recorder.revoke_end(Core::All, ended);
            }
        }
    }

    /// Records the error that a scenario's function has raised.
    fn script_failed<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        user: UserId,
        problem: String,
        wrong: bool,
        pacing_ns: u64,
        now: Tick,
    ) {
        self.first_error.get_or_insert_with(|| problem.clone());
        if let Some(trace) = self.watch.said() {
            trace.see(&Traced::Error { traceback: &problem });
        }
        if wrong {
            return self.loading.fail(problem);
        }
        if let Some(of) = self.user(user) {
            let (scenario, is_last) = (of.who.scenario, matches!(of.activity, CurrentActivity::Last(_)));
            let figures = network.recorder_mut().snapshot.figures.scenarios.at(scenario);
            if is_last {
                figures.stop_error(&problem);
            } else {
                figures.script_error(&problem);
            }
        }
        self.finish(network, user, Outcome::Failed { pacing_ns }, now);
    }

    /// Records an iteration that ended normally, after which the user began the next without asking.
    fn iterated_at_once(&mut self, recorder: &mut Recorder, user: UserId, now: Tick) {
        self.forget_answers(user);
        let Some(of) = self.user(user) else { return };
        of.begun.forget_chains();
        let took = if let CurrentActivity::Iteration(activity) = of.activity { now.since(activity.began) } else { 0 };
        of.activity = CurrentActivity::iteration(now);
        of.iteration += 1;
        let scenario = of.who.scenario;
        recorder.snapshot.figures.scenarios.at(scenario).iteration(took);
    }
}

/// Iterating, and going.
impl VirtualUsers {
    /// Ends an iteration: the next begins, or the user ends.
    pub(super) fn finish<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        user: UserId,
        outcome: Outcome,
        now: Tick,
    ) {
        self.leave_streams(network, user, now);
        self.forget_answers(user);
        if self.user(user).is_some_and(|of| of.kin.has_tasks()) {
            self.cancel_tasks(network, user, now);
        }
        let Some(of) = self.user(user) else { return };
        if !of.has_nothing_left() {
            return of.ends_with(outcome);
        }
        let started = of.begun.take_started();
        let (activity, scenario, found_nobody) = (of.activity, of.who.scenario, of.found_nobody);
        let stopping = matches!(activity, CurrentActivity::Last(_));
        let began = if let CurrentActivity::Iteration(iteration) = activity { iteration.began } else { now };
        if !stopping {
            of.activity = CurrentActivity::Nothing;
        }
        of.arrived = None;
        of.begun.forget_all_chains();
        self.ended += u64::from(outcome != Outcome::Left && !stopping);
        for slot in started {
            self.calls.free(slot);
        }
        let figures = &mut network.recorder_mut().snapshot.figures;
        let took = now.since(began);
        match outcome {
            _ if stopping => {}
            Outcome::Returned { ok, .. } => {
                let figures = figures.scenarios.at(scenario);
                figures.iteration(took);
                figures.not_ok += u64::from(!ok);
            }
            Outcome::Left => figures.scenarios.at(scenario).unfinished_iteration(took),
            Outcome::Failed { .. } => {}
        }
        if !matches!(outcome, Outcome::Returned { .. }) {
            for (id, with, without) in self.script.library().leave_groups(user.slot(), now) {
                let group = figures.groups.at(NameId::from_number(id));
                if matches!(outcome, Outcome::Failed { .. }) {
                    group.ended(with, without, false);
                } else {
                    group.unfinished(with, without);
                }
            }
        }
        if self.clients.end_with_iterations() {
            self.end_connections_of_iteration(network, user);
        }
        if !stopping && self.waits_for_an_arrival(user, outcome) {
            return;
        }
        if stopping || !self.goes_on(user, outcome, now) {
            return self.stop_or_end(network, user, matches!(outcome, Outcome::Returned { .. }));
        }
        let pacing_ns = match outcome {
            Outcome::Returned { pacing_ns, .. } | Outcome::Failed { pacing_ns } => pacing_ns,
            Outcome::Left => 0,
        };
        let paced = began.saturating_add(pacing_ns);
        // A user with pauses of its own makes its calls at its own times.
        let is_spinning = found_nobody && took < SHORT_NS && paced <= now;
        let at = if is_spinning { network.retry_at(user.slot() as usize, now) } else { paced };
        if at > now {
            if !is_spinning {
                self.pause(network, user, now);
            }
            self.set_timer(at, user, TimedWake::Begin);
        } else {
            self.make_ready(user, Wake::Begin);
        }
    }

    /// Whether a user whose iteration ended with `outcome` is kept for a later arrival.
    fn waits_for_an_arrival(&mut self, user: UserId, outcome: Outcome) -> bool {
        let Some(of) = self.users.get(user) else { return false };
        self.populations.keeps(of.who.population, user, outcome)
    }

    /// Whether a user whose iteration ended with `outcome` begins another.
    fn goes_on(&mut self, user: UserId, outcome: Outcome, now: Tick) -> bool {
        let Some(of) = self.users.get_mut(user) else { return false };
        self.populations.goes_on(of.who.population, outcome, &mut of.iterations, now)
    }

    /// A pause of `user` begins at `now`.
    fn pause<D: Driver>(&mut self, network: &mut UsersNetwork<D>, user: UserId, now: Tick) {
        if let Some(user) = self.user(user) {
            user.presence.pauses(&mut network.recorder_mut().snapshot.numbers, now);
        }
    }

    /// Runs the last function of a user whose iterations are over, or ends the user. Its calls are counted, but it is no
    /// iteration. `between`: whether the user stands between two iterations.
    fn stop_or_end<D: Driver>(&mut self, network: &mut UsersNetwork<D>, user: UserId, between: bool) {
        let may_begin = self.script.library().stops();
        let now = network.now();
        let activity = self.user(user).map(|of| std::mem::replace(&mut of.activity, CurrentActivity::last(now)));
        if may_begin && activity.is_some_and(|activity| !matches!(activity, CurrentActivity::Last(_))) {
            self.make_ready(user, Wake::Stop(between));
        } else {
            self.end_user(network, user, between);
        }
    }

    /// Begins the last function of a user; `None` if the script has none.
    fn begin_stop(&mut self, user: UserId, between: bool, now: Tick) -> Option<Operation> {
        self.user(user)?.activity = CurrentActivity::last(now);
        self.script.step(self.place_of(user), |library| library.begin_stop(user.slot(), now, between))
    }

    /// Ends a user. `between`: whether it is outside an iteration.
    fn end_user<D: Driver>(&mut self, network: &mut UsersNetwork<D>, user: UserId, between: bool) {
        self.script.library().forget(user.slot(), between);
        let now = network.now();
        self.pause(network, user, now);
        let Some(of) = self.user(user) else { return };
        let who = of.who;
        let connections: Vec<_> = network.connections().kept_for(user.slot()).collect();
        network.recorder_mut().snapshot.figures.scenarios.at(who.scenario).users_ended += 1;
        self.users.free(user);
        self.populations.went(who.population);
        self.close_connections(network, connections);
    }

    /// Ends the users who are left when the run is over.
    pub(super) fn end_users(&mut self, recorder: &mut Recorder, now: Tick) {
        for user in self.users.ids() {
            self.leave_unfinished(recorder, user, now);
            let Some(of) = self.users.get(user) else { continue };
            let (scenario, is_task) = (of.who.scenario, of.kin.is_task());
            recorder.snapshot.figures.scenarios.at(scenario).users_ended += u64::from(!is_task);
            self.users.free(user);
        }
        self.script.library().flush();
    }

    /// Records the iteration and the groups of a user, or a task, that ends within them.
    fn leave_unfinished(&self, recorder: &mut Recorder, user: UserId, now: Tick) {
        let Some(of) = self.users.get(user) else { return };
        let figures = &mut recorder.snapshot.figures;
        if let CurrentActivity::Iteration(activity) = of.activity
            && !of.kin.is_task()
        {
            figures.scenarios.at(of.who.scenario).unfinished_iteration(now.since(activity.began));
        }
        for (id, with, without) in self.script.library().leave_groups(user.slot(), now) {
            figures.groups.at(NameId::from_number(id)).unfinished(with, without);
        }
    }
}

/// Being cut off: the population has ended, or wants fewer users, and the grace is over.
impl VirtualUsers {
    /// Cuts off the users who have had their grace.
    fn cut_off_late<D: Driver>(&mut self, network: &mut UsersNetwork<D>, now: Tick) {
        for place in self.populations.places() {
            let beyond = self.populations.beyond_grace(place, now);
            if beyond != CutOffUsers::Nobody {
                self.cut_off_beyond(network, place, beyond, now);
                self.populations.announce(place);
            }
        }
    }

    /// Cuts off users of a population. Where only some have to go, users who stand between two iterations go by
    /// themselves, as do those in their last function, and of the others the last to have come go first.
    #[cold]
    fn cut_off_beyond<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        place: usize,
        beyond: CutOffUsers,
        now: Tick,
    ) {
        let mut present: Vec<(u64, UserId, CurrentActivity)> = Vec::new();
        for user in self.users.ids() {
            let of = self.users.get(user).filter(|of| of.who.population == place && !of.kin.is_task());
            present.extend(of.map(|of| (of.who.id, user, of.activity)));
        }
        if let CutOffUsers::Some(mut users) = beyond {
            for (_, user, _) in present.extract_if(.., |(.., doing)| !matches!(doing, CurrentActivity::Iteration(_))) {
                self.make_ready(user, Wake::Begin);
                users = users.saturating_sub(1);
            }
            present.sort_unstable_by_key(|(id, ..)| std::cmp::Reverse(*id));
            present.truncate(users);
        }
        for (_, user, _) in present {
            self.cut_off(network, user, now);
        }
    }

    /// Ends a user where it stands, with its tasks and its calls, which nobody waits for any more.
    fn cut_off<D: Driver>(&mut self, network: &mut UsersNetwork<D>, user: UserId, now: Tick) {
        let tasks = self.user(user).map(|of| of.kin.tasks().to_vec()).unwrap_or_default();
        for task in tasks {
            self.cut_off_calls(network, task, now);
            self.end_task(network, task, now);
        }
        self.cut_off_calls(network, user, now);
        self.leave_unfinished(network.recorder_mut(), user, now);
        let between = self.user(user).is_some_and(|of| of.activity == CurrentActivity::Nothing);
        self.end_user(network, user, between);
    }
}

/// Tasks, which run beside a user's own function, and other users.
impl VirtualUsers {
    /// Performs an operation on tasks or on other users. Returns the next operation, if the user goes on at once.
    fn perform_with_others<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        user: UserId,
        operation: Operation,
        now: Tick,
    ) -> Option<Operation> {
        match operation {
            Operation::Spawn => {
                let task = self.begin_task(user)?;
                Some(self.go(user, now, Resumption::Number(task.slot())))
            }
            Operation::Join(most_ns) => {
                self.forget_answers(user);
                self.pause(network, user, now);
                self.join(user, most_ns, now);
                None
            }
            Operation::Cancel(task) => {
                let task = UserId::in_slot(task);
                if self.home(task) == self.home(user) && task != user {
                    self.cancel_task(network, task, now);
                }
                Some(self.go(user, now, Resumption::Nothing))
            }
            Operation::TaskEnded => {
                self.end_task(network, user, now);
                None
            }
            Operation::Meet { name, users, most_ns } => {
                self.forget_answers(user);
                self.user(user)?.arrived = None;
                self.pause(network, user, now);
                self.meet(user, &name, users, most_ns, now);
                None
            }
            _ => Some(self.go(user, now, Resumption::Nothing)),
        }
    }

    /// Begins a task of `user`.
    fn begin_task(&mut self, user: UserId) -> Option<UserId> {
        let home = self.home(user);
        let of = self.users.get(home)?;
        let (who, presence) = (of.who, of.presence.of_task());
        let began = match of.activity {
            CurrentActivity::Iteration(activity) | CurrentActivity::Last(activity) => activity.began,
            CurrentActivity::Nothing => Tick::EPOCH,
        };
        let task = self.users.settle(who);
        if let Some(of) = self.user(task) {
            of.kin.becomes_task_of(home);
            (of.activity, of.presence) = (CurrentActivity::iteration(began), presence);
        }
        self.user(home)?.kin.add_task(task);
        self.make_ready(task, Wake::Go);
        Some(task)
    }

    /// Lets `user` wait for the end of any task, or until the time is up.
    fn join(&mut self, user: UserId, most_ns: Option<u64>, now: Tick) {
        let Some(wait) = self.wait_to_join(user) else { return };
        if let Some(most) = most_ns {
            self.set_timer(now.saturating_add(most), user, TimedWake::Joined(wait));
        }
    }

    /// Lets `user` wait for others.
    fn wait_to_join(&mut self, user: UserId) -> Option<WaitId> {
        let wait = self.agenda.new_wait();
        self.user(user)?.wait = Wait::Others(wait);
        Some(wait)
    }

    /// Resumes `user` if it is still in this wait.
    fn joined(&mut self, user: UserId, wait: WaitId) {
        if let Some(of) = self.user(user).filter(|of| of.wait == Wait::Others(wait)) {
            of.wait = Wait::Nothing;
            self.make_ready(user, Wake::Go);
        }
    }

    /// Ends the tasks of a user whose iteration has ended.
    fn cancel_tasks<D: Driver>(&mut self, network: &mut UsersNetwork<D>, user: UserId, now: Tick) {
        let tasks = self.user(user).map(|of| of.kin.tasks().to_vec()).unwrap_or_default();
        for task in tasks {
            self.cancel_task(network, task, now);
        }
    }

    /// Ends a task where it stands: at once, or when its calls under way have ended. An optional call is withdrawn.
    fn cancel_task<D: Driver>(&mut self, network: &mut UsersNetwork<D>, task: UserId, now: Tick) {
        let Some(of) = self.users.get_mut(task) else { return };
        if !of.kin.cancel() {
            return;
        }
        let awaited = of.awaited();
        if let Wait::Others(wait) = of.wait {
            of.wait = Wait::Nothing;
            self.rendezvous_points.leave(wait);
        }
        self.drop_throttled(task);
        if let Some(slot) = awaited
            && let Some(call) = self.calls.get(slot)
        {
            match call.state {
                State::UnderWay(id) if call.asked.optional => network.call_late(self, id, now),
                State::Throttled { .. } => drop(self.calls.free(slot)),
                _ => {}
            }
        }
        self.end_if_cancelled(network, task, now);
    }

    /// Forgets the calls of a task that the throttle still holds back: nobody would release them, and the task would
    /// never end.
    fn drop_throttled(&mut self, task: UserId) {
        let Some(of) = self.users.get_mut(task) else { return };
        let calls = &self.calls;
        for slot in of.begun.drop_started(|slot| calls.get(slot).is_some_and(UserCall::is_throttled)) {
            self.calls.free(slot);
        }
    }

    /// Ends a cancelled task, if no call of it is under way. Returns whether it was cancelled.
    fn end_if_cancelled<D: Driver>(&mut self, network: &mut UsersNetwork<D>, task: UserId, now: Tick) -> bool {
        let Some(of) = self.users.get_mut(task).filter(|of| of.kin.is_cancelled()) else { return false };
        let under_way = |slot: u32| self.calls.get(slot).is_some_and(|call| call.id().is_some());
        if of.begun.is_under_way() {
            // The user or task that waits for its calls ends it.
            of.ends_with(Outcome::Left);
        } else if !of.awaited().is_some_and(under_way) {
            self.end_task(network, task, now);
        }
        true
    }

    /// Ends a task and resumes whoever waits for its end.
    fn end_task<D: Driver>(&mut self, network: &mut UsersNetwork<D>, task: UserId, now: Tick) {
        self.leave_streams(network, task, now);
        self.forget_wait(task);
        self.forget_answers(task);
        self.leave_unfinished(network.recorder_mut(), task, now);
        self.script.library().forget(task.slot(), false);
        self.pause(network, task, now);
        let Some(of) = self.user(task) else { return };
        let (home, started, awaited) = (of.kin.home(), of.begun.take_started(), of.awaited());
        for slot in started.into_iter().chain(awaited) {
            self.calls.free(slot);
        }
        self.users.free(task);
        let Some(home) = home else { return };
        let Some(of) = self.user(home) else { return };
        of.kin.forget_task(task);
        let ends = of.is_ending() && of.has_nothing_left();
        let family: Vec<UserId> = of.kin.tasks().iter().copied().chain([home]).collect();
        for member in family {
            if let Some(Wait::Others(wait)) = self.user(member).map(|of| of.wait) {
                self.joined(member, wait);
            }
        }
        if ends {
            self.make_ready(home, Wake::AllEnded);
        }
    }

    /// Lets `user` wait until `users` have come to the meeting of this name, or the time is up.
    fn meet(&mut self, user: UserId, name: &str, users: u64, most_ns: u64, now: Tick) {
        // A user who goes through a scenario alone, for `--once`, waits for nobody.
        let users = if self.watch.sees_everything() { 1 } else { users.max(1) };
        let Some(wait) = self.wait_to_join(user) else { return };
        self.rendezvous_points.come(name, users, user, wait);
        self.set_timer(now.saturating_add(most_ns), user, TimedWake::Joined(wait));
        self.look_at_meetings();
    }

    /// Resumes the users for whom enough have come.
    fn look_at_meetings(&mut self) {
        for (user, wait) in self.rendezvous_points.take_met() {
            self.joined(user, wait);
        }
    }
}

/// Being seen.
impl VirtualUsers {
    /// Shows what a script logs.
    fn see_log(&self, user: UserId, level: &str, text: &str) {
        let Some(trace) = self.watch.said() else { return };
        let Some(of) = self.users.get(self.home(user)) else { return };
        let scenario = self.populations.scenario(&of.who).unwrap_or_default();
        let level = Level::from_name(level).unwrap_or(Level::Info);
        trace.see(&Traced::Logged { level, user: of.who.id, scenario, text });
    }

    /// Shows whether a check held.
    fn see_check(&self, check: u32, held: bool) {
        if let Some(trace) = self.watch.all()
            && let Some(name) = self.names.check_name(check)
        {
            trace.see(&Traced::Checked { name: &name, held });
        }
    }

    /// Shows the failed check and its answer to a trace of failures.
    fn see_failed_check(&self, check: u32, ticket: u64) {
        let Some(trace) = self.watch.failures() else { return };
        let Some(name) = self.names.check_name(check) else { return };
        // An answer that was no success anyway was shown when it came.
        if let Some(call) = self.ticketed(ticket)
            && call.status().is_some_and(|status| self.is_success(call, status))
        {
            self.show_call(trace, slot_of(ticket));
        }
        trace.see(&Traced::Checked { name: &name, held: false });
    }
}
