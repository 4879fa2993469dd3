//! Scripts written in Rust: a small implementation of the whole contract, for tests of whoever calls scripts.
//!
//! A user's function is a closure, called with what came of the operation before and returning the next.
//!
//! ```
//! use brunt_protocol::plan::plan::{Plan, ProtocolOptions};
//! use brunt_protocol::plan::scenario::Scenarios;
//! use brunt_protocol::plan::share::Portion;
//! use brunt_protocol::plan::target::Url;
//! use brunt_protocol::Registry;
//! use brunt_protocol::record::time::Tick;
//! use brunt_script::native::{Native, single_call};
//! use brunt_script::{Operation, Resumption, ScriptHost};
//!
//! let host = Native::default().with_scenario("s", |_user| single_call(0, "home", Vec::new()));
//!
//! let plan = Plan::of_calls(Url::parse("http://127.0.0.1/")?.target, ProtocolOptions::default());
//! let scenarios = Scenarios {
//!     files: Vec::new(),
//!     streamed: Vec::new(),
//!     env: Default::default(),
//!     base_url: None,
//!     populations: Vec::new(),
//!     throttle: None,
//!     smallest_pool: None,
//!     hosts: Default::default(),
//!     trace_ratio: None,
//!     setup_timeout_ns: None,
//!     teardown_timeout_ns: None,
//!     own: Default::default(),
//! };
//! let program = host.program(&plan, &scenarios, &Registry::default(), Portion::whole(1))?;
//! program.rehearse(&["s"])?;
//! let library = program.begin(0)?;
//! let place = library.place("s")?;
//!
//! // The user in slot 0 asks for the number of a name, then calls by that name.
//! assert!(matches!(library.begin_iteration(0, Tick::EPOCH, 1, place), Operation::Label(named) if named.name == "home"));
//! let (operation, _) = library.resume(0, Tick::EPOCH, Resumption::Number(7));
//! assert!(matches!(operation, Operation::Call(wanted) if wanted.label == 7));
//! let answered = Resumption::Answered { ticket: 1.0, status: 200, ok: true, flags: 0, goes_on: false };
//! assert!(matches!(library.resume(0, Tick::EPOCH, answered), (Operation::Iterated { ok: true, .. }, false)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::cell::RefCell;
use std::sync::Arc;

use brunt_protocol::plan::plan::Plan;
use brunt_protocol::plan::scenario::Scenarios;
use brunt_protocol::plan::share::Portion;
use brunt_protocol::plan::stop::StopHandle;
use brunt_protocol::record::figures::OwnFigures;
use brunt_protocol::record::time::Tick;
use brunt_protocol::scenario::Value;
use brunt_protocol::source::{Heartbeat, RequestSource};
use brunt_protocol::{Prepared, Registry};

use crate::{
    Begun, FloodPlace, FloodScript, Labelled, Library, Operation, Placement, Program, Resumption, ScriptClient,
    ScriptError, ScriptHost, Scripted, Session, Totals, Verdict, Wanted,
};

/// Stands for the name of a file.
const FILE: &str = "a native script";

/// An iteration of a user: returns the next operation, given the result of the one before. It is called with
/// [`Resumption::Nothing`] first, and no more after an operation that ends the iteration.
pub type Iteration = Box<dyn FnMut(&Resumption<'_>) -> Operation + Send>;

type Scenario = Arc<dyn Fn(u64) -> Iteration + Send + Sync>;
type Flood = Arc<dyn Fn(u32) -> Box<dyn RequestSource> + Send + Sync>;
type Done = Arc<dyn Fn(Totals) + Send + Sync>;

/// A script written in Rust, and the host that gives it to every plan, whatever its files say.
///
/// Scenarios named `setup` and `teardown` are those of the run. Setup returns nothing to users; there are no feeders
/// and no judges.
#[derive(Clone, Default)]
pub struct Native {
    clients: Vec<ScriptClient>,
    scenarios: Vec<(String, Scenario)>,
    flood: Option<Flood>,
    done: Option<Done>,
}

impl Native {
    /// Adds a client, whose number is that of the clients before it.
    #[must_use]
    pub fn with_client(mut self, client: ScriptClient) -> Self {
        self.clients.push(client);
        self
    }

    /// Adds a scenario. `begin` makes an iteration of the user with this number (from 1).
    #[must_use]
    pub fn with_scenario(mut self, name: &str, begin: impl Fn(u64) -> Iteration + Send + Sync + 'static) -> Self {
        self.scenarios.push((name.to_owned(), Arc::new(begin)));
        self
    }

    /// Makes it a flood's script: `user` makes the source of calls for the worker with this number (from 0).
    #[must_use]
    pub fn with_flood(self, user: impl Fn(u32) -> Box<dyn RequestSource> + Send + Sync + 'static) -> Self {
        Self { flood: Some(Arc::new(user)), ..self }
    }

    /// Adds a function for the result of a flood.
    #[must_use]
    pub fn with_done(self, done: impl Fn(Totals) + Send + Sync + 'static) -> Self {
        Self { done: Some(Arc::new(done)), ..self }
    }

    fn scenario(&self, name: &str) -> Option<u32> {
        self.scenarios.iter().position(|(known, _)| known == name).map(|place| place as u32)
    }

    fn place(&self, name: &str) -> Result<u32, ScriptError> {
        self.scenario(name).ok_or_else(|| ScriptError::new(FILE, format!("there is no scenario '{name}'")))
    }
}

impl ScriptHost for Native {
    fn flood(&self, plan: &Plan, _prepared: &dyn Prepared) -> Result<Option<Box<dyn FloodScript>>, ScriptError> {
        let is_whole = plan.script.is_some() && self.flood.is_some();
        Ok(is_whole.then(|| Box::new(self.clone()) as Box<dyn FloodScript>))
    }

    fn program(
        &self,
        _plan: &Plan,
        _scenarios: &Scenarios,
        _registry: &Registry,
        _portion: Portion,
    ) -> Result<Box<dyn Program>, ScriptError> {
        Ok(Box::new(self.clone()))
    }
}

impl FloodScript for Native {
    fn begin(&self, place: &FloodPlace, _stop: &StopHandle) -> Result<Begun, ScriptError> {
        let flood = self.flood.as_ref().ok_or_else(|| ScriptError::new(FILE, "it makes no flood"))?;
        let scripted = |worker| Scripted { user: flood(worker), heart: Heartbeat::default(), address: None };
        let workers = (0..place.workers).map(scripted).collect();
        Ok(Begun { session: Box::new(Afterwards(self.done.clone())), workers })
    }
}

/// The part of a native flood that comes after its load.
struct Afterwards(Option<Done>);

impl Session for Afterwards {
    fn give_up(&mut self, _number: u32) {}

    fn has_done(&self) -> bool {
        self.0.is_some()
    }

    fn done(self: Box<Self>, totals: Totals, _stop: &StopHandle) -> Result<(), ScriptError> {
        if let Some(done) = self.0 {
            done(totals);
        }
        Ok(())
    }
}

impl Program for Native {
    fn rehearse(&self, scenarios: &[&str]) -> Result<(), ScriptError> {
        scenarios.iter().try_for_each(|name| self.place(name).map(drop))
    }

    fn begin(&self, _worker: u32) -> Result<Box<dyn Library>, ScriptError> {
        Ok(Box::new(NativeLibrary { script: self.clone(), users: RefCell::default(), given: RefCell::default() }))
    }
}

/// A user in its slot.
struct NativeUser {
    id: u64,
    place: u32,
    iteration: Iteration,
}

struct NativeLibrary {
    script: Native,
    users: RefCell<Vec<Option<NativeUser>>>,
    given: RefCell<Option<Value<'static>>>,
}

fn failed(problem: &str) -> Operation {
    Operation::Failed { problem: problem.to_owned(), wrong: true, pacing_ns: 0 }
}

impl Library for NativeLibrary {
    fn clients(&self) -> Vec<ScriptClient> {
        self.script.clients.clone()
    }

    fn place(&self, name: &str) -> Result<u32, ScriptError> {
        self.script.place(name)
    }

    fn once(&self, which: &str) -> Result<Option<u32>, ScriptError> {
        Ok(self.script.scenario(which))
    }

    fn given(&self) -> Result<Value<'static>, ScriptError> {
        Ok(self.given.borrow().clone().unwrap_or(Value::Nil))
    }

    fn give(&self, given: &Value<'_>) -> Result<(), ScriptError> {
        *self.given.borrow_mut() = Some(given.clone().into_owned());
        Ok(())
    }

    fn trace(&self) {}

    fn begin_iteration(&self, slot: u32, _now: Tick, id: u64, place: u32) -> Operation {
        let mut users = self.users.borrow_mut();
        let slot = slot as usize;
        if slot >= users.len() {
            users.resize_with(slot + 1, || None);
        }
        let Some(user) = users.get_mut(slot) else { return failed("there is no such slot") };
        // A user that stays in its slot keeps its identity.
        let (id, place) = user.as_ref().map_or((id, place), |user| (user.id, user.place));
        let Some((_, begin)) = self.script.scenarios.get(place as usize) else {
            return failed("there is no such scenario");
        };
        let mut iteration = begin(id);
        let operation = iteration(&Resumption::Nothing);
        *user = Some(NativeUser { id, place, iteration });
        operation
    }

    fn resume(&self, slot: u32, _now: Tick, with: Resumption<'_>) -> (Operation, bool) {
        let mut users = self.users.borrow_mut();
        let operation = match users.get_mut(slot as usize) {
            Some(Some(user)) => (user.iteration)(&with),
            _ => failed("native scripts have no tasks"),
        };
        (operation, false)
    }

    fn judge(&self, _slot: u32, _now: Tick, _body: &[u8], _flags: u32, _status: u16) -> Verdict {
        Verdict::Taken
    }

    fn forget(&self, slot: u32, _between: bool) {
        if let Some(user) = self.users.borrow_mut().get_mut(slot as usize) {
            *user = None;
        }
    }

    fn leave_groups(&self, _slot: u32, _now: Tick) -> Vec<(u32, u64, u64)> {
        Vec::new()
    }

    fn take_passes(&self) -> Vec<(u32, u64)> {
        Vec::new()
    }

    fn take_own(&self) -> Vec<(String, OwnFigures)> {
        Vec::new()
    }

    fn flush(&self) {}
}

/// An iteration of one call by this client, with this name and these values of its protocol, whatever its result.
pub fn single_call(client: usize, name: &str, values: Vec<Value<'static>>) -> Iteration {
    let name = name.to_owned();
    let mut values = Some(values);
    Box::new(move |with| match with {
        Resumption::Nothing => Operation::Label(Box::new(Labelled {
            name: name.clone(),
            tags: Vec::new(),
            place: Default::default(),
            ok: None,
        })),
        Resumption::Number(label) => Operation::Call(Wanted {
            client,
            label: *label,
            timeout_ns: None,
            way: Placement::Any,
            judged: false,
            optional: false,
            streams: false,
            values: values.take().unwrap_or_default(),
        }),
        Resumption::Refused(problem) => failed(problem),
        _ => Operation::Iterated { pacing_ns: 0, ok: true },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_forgotten_and_others_take_their_slots() {
        let script = Native::default()
            .with_scenario("pause", |id| Box::new(move |_| Operation::Pause(id)))
            .with_scenario("end", |_| Box::new(|_| Operation::End));
        let library = Program::begin(&script, 0).unwrap();
        assert_eq!((library.place("end").unwrap(), library.once("setup").unwrap()), (1, None));
        assert!(matches!(library.begin_iteration(2, Tick::EPOCH, 5, 0), Operation::Pause(5)));
        // It is asked for nobody else while it is there.
        assert!(matches!(library.begin_iteration(2, Tick::EPOCH, 6, 1), Operation::Pause(5)));
        library.forget(2, true);
        assert!(matches!(
            library.resume(2, Tick::EPOCH, Resumption::Nothing),
            (Operation::Failed { wrong: true, .. }, false)
        ));
        assert!(matches!(library.begin_iteration(2, Tick::EPOCH, 6, 1), Operation::End));
    }

    #[test]
    fn a_scenario_that_is_not_there_is_named() {
        let error = Program::rehearse(&Native::default(), &["shop"]).unwrap_err();
        assert_eq!(error.to_string(), "a native script: there is no scenario 'shop'");
    }
}
