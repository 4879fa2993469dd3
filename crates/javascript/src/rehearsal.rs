//! A pass through a script with made-up answers: where it goes, and what it counts.

use std::sync::Arc;
use std::time::Duration;

use brunt_plan::target::{Target, Url};
use brunt_protocol::record::time::Tick;
use brunt_protocol::scenario::Value;
use brunt_script::{EndedEarly, Labelled, Library as _, Met, MetKind, Operation, Resumption, ScriptError, Wanted};

use crate::library::JavaScriptLibrary;
use crate::shared::{Schema, Shared};
use crate::system::cpu_time;
use crate::worker::FIRST_SCHEMA;

/// The most operations of one function.
const MOST_OPERATIONS: usize = 10_000;
/// The most CPU time of one function, which a single stretch may exceed.
const LONGEST: Duration = Duration::from_secs(2);
/// The slot of the first call that runs beside a function; functions have those below it.
const FIRST_TASK: u32 = 1 << 20;

/// What a pass met.
#[derive(Debug, Default)]
pub(crate) struct Rehearsed {
    /// Calls, groups and checks, each once.
    pub(crate) met: Vec<Met>,
    /// Functions that ended by an error, which other answers may not lead to.
    pub(crate) ended: Vec<EndedEarly>,
    /// Where the first call goes.
    pub(crate) target: Option<Target>,
    /// Schemas that no client has yet.
    pub(crate) schemas: Vec<Schema>,
}

/// Goes once through `setup`, each scenario and `teardown`.
///
/// # Errors
/// The file and line of what is wrong at the script's top.
pub(crate) fn rehearse(program: &Arc<Shared>) -> Result<Rehearsed, ScriptError> {
    let library = JavaScriptLibrary::begin(program, 0)?;
    let mut rehearsed = Rehearsed::default();
    let scenarios = (0..program.begun.len() as u32).map(|place| (place, program.scenario(place).to_owned()));
    let setup = program.once("setup").map(|place| (place, "setup".to_owned()));
    let teardown = program.once("teardown").map(|place| (place, "teardown".to_owned()));
    for (slot, (place, name)) in setup.into_iter().chain(scenarios).chain(teardown).enumerate() {
        rehearsed.go_through(&library, slot as u32, place, &name);
    }
    rehearsed.schemas = library.worker().schemas.take();
    Ok(rehearsed)
}

impl Rehearsed {
    fn go_through(&mut self, library: &JavaScriptLibrary, slot: u32, place: u32, scenario: &str) {
        let mut now = Tick::default();
        let mut operation = library.begin_iteration(slot, now, 1, place);
        let mut labels: Vec<String> = vec![String::new()];
        let mut started = Vec::new();
        let mut tasks = Vec::new();
        let begun = cpu_time();
        for _ in 0..MOST_OPERATIONS {
            if cpu_time().saturating_sub(begun) > LONGEST {
                break;
            }
            let with = match operation {
                Operation::Call(wanted) => {
                    self.calls(&wanted);
                    made_up(&wanted)
                }
                Operation::Prepare(wanted) => {
                    self.calls(&wanted);
                    Resumption::Number(1)
                }
                // HTTP alone prepares calls.
                Operation::CallPrepared { .. } => success(200),
                Operation::Start(wanted) => {
                    self.calls(&wanted);
                    started.push(made_up(&wanted));
                    Resumption::Nothing
                }
                Operation::Wait => Resumption::Results(std::mem::take(&mut started)),
                Operation::Read { what, .. } => Resumption::Read(part(&what)),
                Operation::Label(named) => {
                    let Labelled { name, tags, .. } = *named;
                    self.meets(MetKind::Call, &name, tags, scenario);
                    labels.push(name);
                    Resumption::Number(labels.len() as u32 - 1)
                }
                Operation::Check { name, .. } => {
                    self.meets(MetKind::Check, &name, Vec::new(), scenario);
                    Resumption::Number(1)
                }
                Operation::Group(path) => {
                    self.meets(MetKind::Group, &path, Vec::new(), scenario);
                    Resumption::Number(1)
                }
                Operation::Pause(length) => {
                    now = now.saturating_add(length);
                    Resumption::Nothing
                }
                Operation::Failed { problem, .. } => {
                    self.ended.push(EndedEarly { scenario: scenario.to_owned(), problem });
                    break;
                }
                Operation::Spawn => {
                    let task = FIRST_TASK.saturating_add(tasks.len() as u32);
                    tasks.push(task);
                    Resumption::Number(task)
                }
                Operation::Join(most_ns) => {
                    if tasks.is_empty() {
                        now = now.saturating_add(most_ns.unwrap_or(0));
                    }
                    tasks.drain(..).for_each(|task| self.go_beside(library, task, now));
                    Resumption::Nothing
                }
                Operation::Excuse { .. }
                | Operation::CheckFailed { .. }
                | Operation::CheckPassed(_)
                | Operation::GroupEnded { .. }
                | Operation::Log { .. }
                | Operation::Cancel(_)
                | Operation::Release(_) => Resumption::Nothing,
                // What comes as messages is not made up.
                _ => break,
            };
            operation = library.resume(slot, now, with).0;
        }
        library.forget(slot, false);
    }

    /// Goes through a call that runs beside the script.
    fn go_beside(&mut self, library: &JavaScriptLibrary, task: u32, now: Tick) {
        let mut with = Resumption::Nothing;
        loop {
            with = match library.resume(task, now, with).0 {
                Operation::Call(wanted) => {
                    self.calls(&wanted);
                    made_up(&wanted)
                }
                Operation::Read { what, .. } => Resumption::Read(part(&what)),
                _ => return,
            };
        }
    }

    fn calls(&mut self, wanted: &Wanted) {
        if self.target.is_none() {
            // A call of gRPC has its server last.
            let place = if wanted.client < FIRST_SCHEMA { 1 } else { 4 };
            let url = wanted.values.get(place).and_then(Value::as_str);
            self.target = url.and_then(|url| Url::parse(url).ok()).map(|url| url.target);
        }
    }

    fn meets(&mut self, kind: MetKind, name: &str, tags: Vec<String>, scenario: &str) {
        let met = Met { kind, name: name.to_owned(), tags, scenario: scenario.to_owned(), base: None };
        if !self.met.contains(&met) {
            self.met.push(met);
        }
    }
}

/// The success of a call: gRPC's status for it is 0.
fn made_up(wanted: &Wanted) -> Resumption<'static> {
    let status = if wanted.client < FIRST_SCHEMA { 200 } else { 0 };
    success(status)
}

fn success(status: u16) -> Resumption<'static> {
    Resumption::Answered { ticket: 1.0, status, ok: true, flags: 0, goes_on: false }
}

/// A part of a made-up answer.
fn part(what: &str) -> Value<'static> {
    match what {
        "body" => Value::text("{}"),
        json if json.starts_with("json ") => Value::text("{}"),
        "head" => Value::text("HTTP/2 200\r\ncontent-type: application/grpc\r\ngrpc-status: 0\r\n"),
        _ => Value::Table(Vec::new()),
    }
}
