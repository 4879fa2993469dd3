//! A worker's users: the engine's side of the contract.

use std::cell::RefCell;
use std::mem::{replace, take};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use brunt_protocol::record::figures::OwnFigures;
use brunt_protocol::record::time::Tick;
use brunt_protocol::scenario::Value;
use brunt_protocol::source::Heartbeat;
use brunt_script::{Library, Operation, Resumption, ScriptClient, ScriptError, Verdict};

use crate::outcome::{Answer, Outcome};
use crate::shared::Shared;
use crate::stack::{Input, Moved, Stack};
use crate::user::User;
use crate::worker::{Event, Task, TaskState, Worker};

/// The users of one worker.
pub(crate) struct JavaScriptLibrary(Moved<Users>);

struct Users {
    worker: Rc<Worker>,
    /// By slot.
    stacks: RefCell<Vec<Option<Stack>>>,
}

impl JavaScriptLibrary {
    /// The state of a worker, in which the script's top has run once.
    pub(crate) fn begin(program: &Arc<Shared>, number: u32) -> Result<Self, ScriptError> {
        let worker = Worker::new(Arc::clone(program), number);
        let user = User::new(&worker);
        user.with_script(|_| ()).map_err(|problem| ScriptError::from_text(&problem))?;
        Ok(Self(Moved(Users { worker, stacks: RefCell::default() })))
    }

    pub(crate) fn worker(&self) -> &Worker {
        &self.0.0.worker
    }

    fn is_there(&self, slot: u32) -> bool {
        matches!(self.0.0.stacks.borrow().get(slot as usize), Some(Some(_)))
    }

    fn is_task(&self, slot: u32) -> bool {
        let tasks = self.worker().tasks.borrow();
        !tasks.is_empty() && tasks.contains_key(&slot)
    }

    fn keep(&self, slot: u32, stack: Stack) {
        let mut stacks = self.0.0.stacks.borrow_mut();
        let place = slot as usize;
        if stacks.len() <= place {
            stacks.resize_with(place + 1, || None);
        }
        if let Some(free) = stacks.get_mut(place) {
            *free = Some(stack);
        }
    }

    /// Lets the user in this slot go on.
    fn go(&self, slot: u32, now: Tick, input: Input) -> Operation {
        self.worker().resume(now.ns());
        // Nothing that the script does comes back here before it suspends: natives know the worker alone.
        let mut stacks = self.0.0.stacks.borrow_mut();
        let Some(Some(stack)) = stacks.get_mut(slot as usize) else { return Operation::End };
        stack.resume(input).unwrap_or(Operation::End)
    }

    /// What a task wants next.
    fn go_beside(&self, slot: u32, outcome: Outcome) -> Operation {
        let mut tasks = self.worker().tasks.borrow_mut();
        let Some(task) = tasks.get_mut(&slot) else { return Operation::TaskEnded };
        if let Some(operation) = task.go(outcome) {
            return operation;
        }
        if let Some(task) = tasks.remove(&slot) {
            task.owner.under_way.set(task.owner.under_way.get().saturating_sub(1));
        }
        Operation::TaskEnded
    }
}

impl Task {
    /// The next operation; `None` once the task has ended.
    fn go(&mut self, outcome: Outcome) -> Option<Operation> {
        let (mut answer, mut read): (Answer, Vec<_>) = match (replace(&mut self.state, TaskState::Calls), outcome) {
            (TaskState::Begins(operation), _) => return Some(operation),
            (TaskState::Calls, Outcome::Read(message)) => {
                let event = Event {
                    id: self.id,
                    http: None,
                    answer: None,
                    parts: vec!["message".into()],
                    read: vec![Some(message)],
                };
                self.owner.events.borrow_mut().push_back(event);
                return None;
            }
            (TaskState::Calls, Outcome::Ended(answer)) => (answer, Vec::new()),
            (TaskState::Reads { answer, mut read }, outcome) => {
                read.push(match outcome {
                    Outcome::Read(value) => Some(value),
                    _ => None,
                });
                (answer, read)
            }
            (TaskState::Calls, Outcome::Refused(reason)) => (Answer::refused(reason), Vec::new()),
            (TaskState::Calls, _) => (Answer::refused("the call came to no end".to_owned()), Vec::new()),
        };
        if answer.failure.is_some() {
            read.resize_with(self.parts.len(), || None);
        }
        if let Some(what) = self.parts.get(read.len()) {
            let ticket = answer.ticket as u64;
            self.state = TaskState::Reads { answer, read };
            return Some(Operation::Read { ticket, what: what.clone().into_owned() });
        }
        // Its ticket is not for the script: the answer goes with the task.
        answer.ticket = 0.0;
        let event = Event { id: self.id, http: self.http, answer: Some(answer), parts: take(&mut self.parts), read };
        self.owner.events.borrow_mut().push_back(event);
        None
    }
}

impl Library for JavaScriptLibrary {
    fn clients(&self) -> Vec<ScriptClient> {
        self.worker().program.clients.clone()
    }

    fn place(&self, name: &str) -> Result<u32, ScriptError> {
        let program = &self.worker().program;
        let place = program.functions.iter().position(|(scenario, _)| scenario == name);
        let place =
            place.ok_or_else(|| ScriptError::new(program.modules.script(), format!("there is no scenario '{name}'")));
        place.map(|place| place as u32)
    }

    fn written_at(&self, place: u32) -> Option<String> {
        let program = &self.worker().program;
        Some(format!("{}: {}", program.modules.script(), program.function(place)))
    }

    fn once(&self, which: &str) -> Result<Option<u32>, ScriptError> {
        Ok(self.worker().program.once(which))
    }

    fn given(&self) -> Result<Value<'static>, ScriptError> {
        let given = self.worker().given.borrow();
        Ok(given.as_ref().map_or(Value::Nil, |text| Value::Text(text.clone().into_bytes().into())))
    }

    fn give(&self, given: &Value<'_>) -> Result<(), ScriptError> {
        *self.worker().given.borrow_mut() = given.as_str().map(str::to_owned);
        Ok(())
    }

    fn trace(&self) {
        self.worker().traces.set(true);
    }

    fn take_heart(&self, heart: &Heartbeat) {
        *self.worker().heart.borrow_mut() = Some(heart.clone());
    }

    fn begin_iteration(&self, slot: u32, now: Tick, id: u64, place: u32) -> Operation {
        if !self.is_there(slot) {
            self.worker().program.users.fetch_add(1, Ordering::Relaxed);
            let user = User::new(&self.0.0.worker);
            let suspender = Rc::clone(&user.suspender);
            match Stack::new(suspender, move |_, id, place| user.live(id, place)) {
                Ok(stack) => self.keep(slot, stack),
                Err(error) => {
                    let problem = format!("there is no memory for another user: {error}");
                    return Operation::Failed { problem, wrong: true, pacing_ns: 0 };
                }
            }
        }
        self.go(slot, now, Input::Begin { id, place })
    }

    fn resume(&self, slot: u32, now: Tick, with: Resumption<'_>) -> (Operation, bool) {
        let outcome = Outcome::of(with);
        if self.is_task(slot) {
            self.worker().resume(now.ns());
            return (self.go_beside(slot, outcome), false);
        }
        (self.go(slot, now, Input::Result(outcome)), false)
    }

    fn judge(&self, _slot: u32, _now: Tick, _body: &[u8], _flags: u32, _status: u16) -> Verdict {
        Verdict::Taken
    }

    fn forget(&self, slot: u32, _between: bool) {
        if let Some(task) = self.worker().tasks.borrow_mut().remove(&slot) {
            task.owner.under_way.set(task.owner.under_way.get().saturating_sub(1));
        }
        let stack = self.0.0.stacks.borrow_mut().get_mut(slot as usize).and_then(Option::take);
        if stack.is_some() {
            self.worker().program.users.fetch_sub(1, Ordering::Relaxed);
        }
        drop(stack);
    }

    fn leave_groups(&self, _slot: u32, _now: Tick) -> Vec<(u32, u64, u64)> {
        // A group of k6 ends where its function does, also by an error.
        Vec::new()
    }

    fn take_passes(&self) -> Vec<(u32, u64)> {
        self.worker().take_passes()
    }

    fn take_own(&self) -> Vec<(String, OwnFigures)> {
        self.worker().take_own()
    }

    fn flush(&self) {}
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

    use brunt_record::redaction::Secrets;
    use brunt_script::Files;

    use super::*;
    use crate::modules::Modules;
    use crate::program::Source;

    fn library(text: &str) -> JavaScriptLibrary {
        let modules = Arc::new(Modules::new("s.js".to_owned(), text.as_bytes().to_vec(), Files::Plan(Vec::new())));
        let source = Source { modules, env: Vec::new(), seed: 1, secrets: Secrets::default() };
        let probed = source.probe(false).unwrap();
        JavaScriptLibrary::begin(&Arc::new(source.program(&probed, Vec::new())), 0).unwrap()
    }

    #[test]
    fn users_that_end_in_mid_call_leave_nothing_behind() {
        // Whoever waits for ever, and catches whatever can be caught.
        let library = library(
            "import { group, sleep } from 'k6';
             export default function () { for (;;) try { group('g', () => sleep(1)) } catch {} finally { sleep(1) } }",
        );
        let worker = &library.0.0.worker;
        let held = Rc::strong_count(worker);
        for slot in 0..1_000 {
            let mut operation = library.begin_iteration(slot, Tick::default(), u64::from(slot) + 1, 0);
            while !matches!(operation, Operation::Pause(_)) {
                operation = library.resume(slot, Tick::default(), Resumption::Number(1)).0;
            }
        }
        // Each user's functions hold the worker.
        assert!(Rc::strong_count(worker) >= held + 1_000);
        (0..1_000).for_each(|slot| library.forget(slot, false));
        assert_eq!(Rc::strong_count(worker), held);
        assert_eq!(worker.program.users.load(Ordering::Relaxed), 0);
    }
}
