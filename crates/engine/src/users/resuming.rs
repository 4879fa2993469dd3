//! Resuming users, and performing the operations that they want.

use std::cmp::Reverse;

use brunt_plan::bodies::shown_beginning;
use brunt_plan::threshold::Traits;
use brunt_record::catalogue::Timing;
use brunt_record::figures::{Example, LONGEST_EXAMPLE, NameId};
use brunt_record::outcome::Failure;
use brunt_record::time::Tick;

use super::slots::slot_of;
use super::{Doing, Outcome, State, TimedWake, UsersNetwork, VirtualUsers, Wait, Wake};
use crate::network::LoadEnd;
use crate::network::{Core, Recorder};
use crate::trace::Traced;
use crate::transport::Driver;
use brunt_protocol::scenario::Value;
use brunt_script::{Operation, Resumption, Wanted};

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

impl VirtualUsers {
    /// Handles everything that is due by time: pauses that are over, users who arrive, hosts that were looked up.
    pub(super) fn wake<D: Driver>(&mut self, network: &mut UsersNetwork<D>, now: Tick) {
        self.admit(now, &mut network.recorder);
        if self.reach.holds_back(now) {
            return;
        }
        if self.reach.lets_go(now) {
            self.send_held(network);
        }
        while let Some(Reverse(timer)) = self.timers.peek().copied()
            && timer.at <= now
        {
            self.timers.pop();
            if self.users.of(timer.user, timer.generation).is_none() {
                continue;
            }
            let wake = match timer.wake {
                TimedWake::Begin => Wake::Begin,
                TimedWake::Go => Wake::Go,
                TimedWake::Release(slot) => Wake::Release(slot),
                TimedWake::Late { slot, wait } => Wake::Late(slot, wait),
                TimedWake::Joined(joins) => {
                    self.leave_meeting(joins);
                    self.joined(timer.user, joins);
                    continue;
                }
            };
            // Timers are the generator's own to keep: their delay is its own doing.
            network.recorder.snapshot.times.record(Timing::Lag, now - timer.at);
            self.ready.push_back((timer.user, timer.generation, wake));
        }
        self.look_at_meetings();
        if network.origins.sought > 0 {
            self.take_found(network, now);
        }
    }

    /// Resumes the users who have an event.
    pub(super) fn run_users<D: Driver>(&mut self, network: &mut UsersNetwork<D>) {
        for _ in 0..MOST_AT_ONCE / MOST_GATHERED {
            if self.ready.is_empty() {
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
            if !self.is_loading() {
                return;
            }
            let now = network.driver.now();
            if now > *until.get_or_insert(now.saturating_add(LONGEST_GATHERED_NS)) || self.reach.ends_before(now) {
                return;
            }
            let Some((user, generation, wake)) = self.ready.pop_front() else { return };
            if self.users.of(user, generation).is_none() {
                continue;
            }
            self.run_user(network, user, wake, now);
        }
    }

    fn run_user<D: Driver>(&mut self, network: &mut UsersNetwork<D>, user: u32, wake: Wake, now: Tick) {
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
            Wake::Begin if self.user(user).is_none_or(|user| user.doing != Doing::Nothing) => return,
            Wake::Begin if self.is_surplus(user) => return self.stop_or_end(network, user, true),
            Wake::Stop(between) => match self.begin_stop(user, between, now) {
                Some(operation) => operation,
                None => return self.end_user(network, user, between),
            },
            Wake::Begin => {
                if let Some(due) = self.user(user).and_then(|user| user.arrived) {
                    network.recorder.snapshot.times.record(Timing::Lag, now.since(due));
                }
                self.begin_iteration(user, now)
            }
            Wake::Go => self.go(user, now, Resumption::Nothing),
            Wake::Ended(slot) => {
                let (operation, again) = self.deliver(user, slot, now);
                if again {
                    self.iterated_at_once(&mut network.recorder, user, now);
                }
                operation
            }
            Wake::AllEnded => {
                if let Some(outcome) = self.user(user).and_then(|user| user.outcome.take()) {
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

    /// Performs an operation of a user. Returns the next one, if the user goes on at once.
    fn perform<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        user: u32,
        operation: Operation,
        now: Tick,
    ) -> Option<Operation> {
        match operation {
            Operation::Call(wanted) => {
                self.forget_answers(user);
                let asked = self.ask(network, user, &wanted, true, now);
                asked.err().map(|problem| self.go(user, now, Resumption::Refused(&problem)))
            }
            Operation::CallPrepared { prepared, label, timeout_ns } => {
                self.forget_answers(user);
                let asked = self.ask_prepared(network, user, (prepared, label, timeout_ns), now);
                asked.err().map(|problem| self.go(user, now, Resumption::Refused(&problem)))
            }
            Operation::Prepare(wanted) => {
                let prepared = self.prepare_call(&wanted);
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
                self.go_on_with(user, ticket);
                Some(self.go(user, now, Resumption::Nothing))
            }
            Operation::LeaveStream(ticket) => Some(self.leave_stream(network, user, slot_of(ticket), now)),
            Operation::Wait => {
                self.forget_answers(user);
                let of = self.user(user)?;
                if of.pending > 0 {
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
            Operation::Iterated { pacing_ns, ok } => {
                self.finish(network, user, Outcome::Returned { pacing_ns, ok }, now);
                None
            }
            Operation::End => {
                self.finish(network, user, Outcome::Left, now);
                None
            }
            Operation::Exhausted => {
                self.exhaust(user);
                if let Some(of) = self.user(user) {
                    let scenario = of.scenario;
                    network.recorder.snapshot.figures.scenarios.at(scenario).out_of_rows += 1;
                }
                if self.home(user) != user {
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
                // Users who end the load again while it is ending add nothing.
                self.leaving.get_or_insert(LoadEnd::Stopped(reason));
                None
            }
            Operation::Spawn
            | Operation::Join(_)
            | Operation::Cancel(_)
            | Operation::TaskEnded
            | Operation::Meet { .. } => self.perform_with_others(network, user, operation, now),
            counted => Some(self.count(&mut network.recorder, user, &counted, now)),
        }
    }

    /// Begins a call for which a user waits later, together with all others that it has begun.
    fn start<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        user: u32,
        wanted: &Wanted,
        now: Tick,
    ) -> Option<Operation> {
        // The call may fail at once.
        self.user(user)?.pending += 1;
        match self.ask(network, user, wanted, false, now) {
            Err(problem) => {
                let of = self.user(user)?;
                of.pending = of.pending.saturating_sub(1);
                Some(self.go(user, now, Resumption::Problem(&problem)))
            }
            Ok(slot) => {
                if let Some(of) = self.user(user) {
                    of.started.push(slot);
                }
                Some(self.go(user, now, Resumption::Nothing))
            }
        }
    }

    /// Records what a user has counted, or gives it the number that it asks for.
    fn count(&mut self, recorder: &mut Recorder, user: u32, operation: &Operation, now: Tick) -> Operation {
        let figures = &mut recorder.snapshot.figures;
        let number = match operation {
            Operation::Label { name, tags, place: (scenario, group), ok } => {
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
        let ended = call.and_then(|call| call.ended).map_or(Tick::EPOCH, |(_, now)| now);
        let status = call.and_then(|call| match call.state {
            State::Answered(status) => Some(status),
            _ => None,
        });
        self.names.failed(recorder, check, || {
            // Of a call that failed otherwise than by its answer, what was kept is an answer that it did not take.
            let no_answer = call.and_then(|call| match call.state {
                State::Failed(Failure::Mismatch) if !call.kept.body.is_empty() => None,
                State::Failed(failure) if call.reason.is_empty() => Some(failure.name().to_owned()),
                State::Failed(failure) => Some(format!("{}: {}", failure.name(), call.reason)),
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
        user: u32,
        problem: String,
        wrong: bool,
        pacing_ns: u64,
        now: Tick,
    ) {
        self.first_error.get_or_insert_with(|| problem.clone());
        if let Some(trace) = self.seer() {
            trace.see(&Traced::Error { traceback: &problem });
        }
        if wrong {
            self.leaving = Some(LoadEnd::Failed(problem));
            return;
        }
        if let Some(of) = self.user(user) {
            let (scenario, is_last) = (of.scenario, of.doing == Doing::Last);
            let figures = network.recorder.snapshot.figures.scenarios.at(scenario);
            if is_last {
                figures.stop_error(&problem);
            } else {
                figures.script_error(&problem);
            }
        }
        self.finish(network, user, Outcome::Failed { pacing_ns }, now);
    }

    /// Records an iteration that ended normally, after which the user began the next without asking.
    fn iterated_at_once(&mut self, recorder: &mut Recorder, user: u32, now: Tick) {
        self.forget_answers(user);
        let Some(of) = self.user(user) else { return };
        of.chains.clear();
        let took = now.since(of.began);
        of.began = now;
        let scenario = of.scenario;
        recorder.snapshot.figures.scenarios.at(scenario).iteration(took);
    }

    /// Ends an iteration: the next begins, or the user ends.
    fn finish<D: Driver>(&mut self, network: &mut UsersNetwork<D>, user: u32, outcome: Outcome, now: Tick) {
        self.leave_streams(network, user, now);
        self.forget_answers(user);
        if self.user(user).is_some_and(|of| !of.tasks.is_empty()) {
            self.cancel_tasks(network, user, now);
        }
        let Some(of) = self.user(user) else { return };
        if of.pending > 0 || !of.tasks.is_empty() {
            of.outcome = Some(outcome);
            return;
        }
        let started = std::mem::take(&mut of.started);
        let (began, scenario, found_nobody) = (of.began, of.scenario, of.found_nobody);
        let stopping = of.doing == Doing::Last;
        if !stopping {
            of.doing = Doing::Nothing;
        }
        of.arrived = None;
        of.chains.clear();
        of.continues = None;
        self.ended += u64::from(outcome != Outcome::Left && !stopping);
        for slot in started {
            self.calls.free(slot);
        }
        let figures = &mut network.recorder.snapshot.figures;
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
            for (id, with, without) in self.library.leave_groups(user, now) {
                let group = figures.groups.at(NameId::from_number(id));
                if matches!(outcome, Outcome::Failed { .. }) {
                    group.ended(with, without, false);
                } else {
                    group.unfinished(with, without);
                }
            }
        }
        if stopping || !self.goes_on(user, outcome) {
            return self.stop_or_end(network, user, matches!(outcome, Outcome::Returned { .. }));
        }
        let pacing_ns = match outcome {
            Outcome::Returned { pacing_ns, .. } | Outcome::Failed { pacing_ns } => pacing_ns,
            Outcome::Left => 0,
        };
        let paced = began.saturating_add(pacing_ns);
        // A user with pauses of its own makes its calls at its own times.
        let is_spinning = found_nobody && took < SHORT_NS && paced <= now;
        let at = if is_spinning { network.attempts.retry_at(user as usize, now) } else { paced };
        if at > now {
            if !is_spinning {
                self.pause(network, user, now);
            }
            self.set_timer(at, user, TimedWake::Begin);
        } else {
            self.make_ready(user, Wake::Begin);
        }
    }

    /// Ends a user. `between`: whether it is outside an iteration.
    pub(super) fn end_user<D: Driver>(&mut self, network: &mut UsersNetwork<D>, user: u32, between: bool) {
        self.library.forget(user, between);
        let now = network.driver.now();
        self.pause(network, user, now);
        let Some(of) = self.user(user) else { return };
        let (connections, held) = (std::mem::take(&mut of.connections), std::mem::take(&mut of.held));
        let (scenario, crowd) = (of.scenario, of.crowd);
        network.recorder.snapshot.figures.scenarios.at(scenario).users_ended += 1;
        self.users.free(user);
        self.alive -= 1;
        self.among.went();
        if let Some(crowd) = self.crowds.get_mut(crowd) {
            crowd.alive -= 1;
        }
        self.close_connections(network, connections);
        self.close_held(network, held);
    }

    /// Ends the users who are left when the run is over.
    pub(super) fn end_users(&mut self, recorder: &mut Recorder, now: Tick) {
        for user in 0..self.users.len() as u32 {
            let Some(of) = self.user(user) else { continue };
            let (began, scenario, is_task) = (of.began, of.scenario, of.home.is_some());
            let iterates = of.doing == Doing::Iteration;
            let figures = &mut recorder.snapshot.figures;
            if iterates && !is_task {
                figures.scenarios.at(scenario).unfinished_iteration(now.since(began));
            }
            for (id, with, without) in self.library.leave_groups(user, now) {
                figures.groups.at(NameId::from_number(id)).unfinished(with, without);
            }
            figures.scenarios.at(scenario).users_ended += u64::from(!is_task);
            self.users.free(user);
        }
        self.library.flush();
    }
}
