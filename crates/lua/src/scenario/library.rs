//! A worker's state of a script, which holds its users' coroutines.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use brunt_plan::plan::Sandbox;
use brunt_plan::scenario::{File, Step};
use brunt_protocol::scenario::Value;
use brunt_record::figures::OwnFigures;
use brunt_record::time::Tick;
use brunt_script::{
    AssignedLocal, EndedEarly, Library, Met, MetKind, Operation, Resumption, ScriptClient, ScriptError, UnlikelyValue,
    Unreached, UnsetGlobal, Verdict,
};
use mlua::{Function, Lua, Table};

use super::host::{Declared, Host};
use super::operation::{self, Returned};
use super::resources::Resources;
use super::{data, nils, value, written};
use crate::error::{from_lua, lacking, with_whole_name};
use crate::{memory, state};

/// The parts of the library, in the order in which they run.
pub(super) const LIBRARY: [(&str, &str); 20] = [
    ("errors", include_str!("library/errors.lua")),
    ("users", include_str!("library/users.lua")),
    ("encodings", include_str!("library/encodings.lua")),
    ("random", include_str!("library/random.lua")),
    ("digests", include_str!("library/digests.lua")),
    ("clock", include_str!("library/clock.lua")),
    ("calls", include_str!("library/calls.lua")),
    ("reading", include_str!("library/reading.lua")),
    ("conversations", include_str!("library/conversations.lua")),
    ("streams", include_str!("library/streams.lua")),
    ("tasks", include_str!("library/tasks.lua")),
    ("written", include_str!("library/written.lua")),
    ("flow", include_str!("library/flow.lua")),
    ("load", include_str!("library/load.lua")),
    ("own", include_str!("library/own.lua")),
    ("data", include_str!("library/data.lua")),
    ("rehearsal", include_str!("library/rehearsal.lua")),
    ("locals", include_str!("library/locals.lua")),
    ("globals", include_str!("library/globals.lua")),
    ("names", include_str!("library/names.lua")),
];

/// A state in which a script of scenarios was run.
pub(super) struct LuaLibrary {
    lua: Lua,
    pub(super) file: String,
    host: Host,
    /// The table that the library's parts share, with the functions called from here.
    table: Table,
    step: Function,
    answered: Function,
    begin: Function,
    forget: Function,
    leave_groups: Function,
    take_passes: Function,
    judge: Function,
    /// What was made of tracebacks.
    explained: RefCell<HashMap<String, String>>,
}

/// The most tracebacks whose explanation is remembered.
const MOST_EXPLAINED: usize = 100;

impl LuaLibrary {
    /// The state of a worker in which the script was run.
    pub(super) fn begin(file: &File, common: &Arc<Resources>, worker: u32) -> Result<Self, ScriptError> {
        let library = Self::empty(file, common, worker)?;
        library.confine().map_err(|error| library.failed(&error))?;
        library.run(file)?;
        Ok(library)
    }

    /// A state in which the script was run, for [`LuaLibrary::rehearse`] alone.
    pub(super) fn begin_rehearsal(file: &File, common: &Arc<Resources>) -> Result<Self, ScriptError> {
        let library = Self::empty(file, common, 0)?;
        let withheld = library.table.get::<Function>("withhold").and_then(|withhold| withhold.call::<()>(()));
        withheld.and_then(|()| library.confine()).map_err(|error| library.failed(&error))?;
        library.run(file)?;
        Ok(library)
    }

    /// Closes the sandbox, if the script runs in one.
    fn confine(&self) -> mlua::Result<()> {
        if self.host.common.sandbox == Sandbox::Open {
            return Ok(());
        }
        state::close(&self.lua, self.host.module(&self.lua)?)
    }

    /// A state with the module `brunt`, ready to run the script in `file`.
    fn empty(file: &File, common: &Arc<Resources>, worker: u32) -> Result<Self, ScriptError> {
        let wrong = |error: mlua::Error| from_lua("preparing the script", &file.name, &error);
        let lua = state::everything();
        let host = Host {
            common: Arc::clone(common),
            declared: Arc::new(Mutex::new(Declared::default())),
            script: file.content.0.as_slice().into(),
        };
        Self::prepare(lua, file, host, worker).map_err(wrong)
    }

    /// Runs the script.
    fn run(&self, file: &File) -> Result<(), ScriptError> {
        let is_open = self.host.common.sandbox == Sandbox::Open;
        let chunk = state::load(&self.lua, &file.name, &file.content.0, is_open)?;
        self.learn_checks(file).map_err(|error| self.failed(&error))?;
        chunk.call::<()>(()).map_err(|error| {
            let missing = self.host.declared().missing_value.take();
            lacking(from_lua("the script", &file.name, &error), missing)
        })
    }

    /// Gives the library the checks in the script's text.
    fn learn_checks(&self, file: &File) -> mlua::Result<()> {
        let tables = written::to_lua(&self.lua, &file.content.0)?;
        self.table.get::<Function>("learn_checks")?.call((format!("@{}", file.name), tables))
    }

    fn prepare(lua: Lua, file: &File, host: Host, worker: u32) -> mlua::Result<Self> {
        state::keep_inner(&lua)?;
        let arrays = value::prepare_arrays(&lua)?;
        let functions = host.table(&lua)?;
        functions.raw_set("arrays", arrays)?;
        functions.raw_set("integers", value::prepare_integers(&lua)?)?;
        functions.raw_set("operations", operation::numbers(&lua)?)?;
        functions.raw_set("by_place", host.common.by_place)?;
        let (brunt, core, table) = (lua.create_table()?, lua.create_table()?, lua.create_table()?);
        for (name, part) in LIBRARY {
            let chunk = state::own(&lua, &format!("=brunt.{name}"), part)?;
            chunk.call::<()>((&functions, &brunt, &core, &table))?;
        }
        for (dialect, _) in &host.common.dialects {
            let chunk = state::own(&lua, &format!("=brunt.{}", dialect.name()), dialect.library())?;
            brunt.set(dialect.name(), chunk.call::<mlua::Value>((&core, dialect.name()))?)?;
        }
        table.get::<Function>("complete")?.call::<()>(())?;
        let math: Table = lua.globals().get("math")?;
        math.get::<Function>("randomseed")?.call::<()>(data::lua_seed(host.common.seed, worker))?;
        Ok(Self {
            step: table.get("step")?,
            answered: table.get("answered")?,
            begin: table.get("begin")?,
            forget: table.get("forget")?,
            leave_groups: table.get("leave_groups")?,
            take_passes: table.get("take_passes")?,
            judge: table.get("judge")?,
            file: file.name.clone(),
            explained: RefCell::default(),
            host,
            table,
            lua,
        })
    }

    /// Takes the script's declarations.
    pub(super) fn take_declared(&self) -> Declared {
        std::mem::take(&mut *self.host.declared())
    }

    fn failed(&self, error: &mlua::Error) -> ScriptError {
        from_lua("a scenario", &self.file, error)
    }

    /// An error's text with the paths of the script and its modules whole.
    fn with_whole_names(&self, text: String) -> String {
        let text = with_whole_name(text, &self.file);
        self.host.common.files.names().iter().fold(text, |text, name| with_whole_name(text, name))
    }

    /// The names of the scenarios, in their order.
    pub(super) fn names(&self) -> Result<Vec<String>, ScriptError> {
        let names = self.table.get::<Function>("names").and_then(|names| names.call(()));
        names.map_err(|error| self.failed(&error))
    }

    /// The steps of an injection as written on a command line, or the problem with them.
    pub(super) fn steps(&self, text: &str) -> Result<Vec<Step>, String> {
        let read = self.table.get::<Function>("steps").and_then(|steps| steps.call((text,)));
        let (problem, steps): (Option<String>, mlua::Value) = read.map_err(|error| self.failed(&error).to_string())?;
        if let Some(problem) = problem {
            return Err(problem);
        }
        let json = value::lua_to_json(&self.lua, &steps)?;
        serde_json::from_slice(&json).map_err(|error| error.to_string())
    }

    /// Rehearses a scenario: runs it once with made-up answers and without effects outside of the script. The state
    /// comes from [`LuaLibrary::begin_rehearsal`], and cannot be used for anything else.
    ///
    /// # Errors
    /// The file and line of a misspelling.
    pub(super) fn rehearse(&self, place: u32) -> Result<(), ScriptError> {
        match self.rehearsed(place, false)? {
            (Some(problem), _) => Err(ScriptError::failed("the script", &problem)),
            (None, _) => Ok(()),
        }
    }

    /// Rehearses a scenario, and counts a missing global or method as an error, too. Without this it is none, as
    /// another function may define it first.
    ///
    /// # Errors
    /// The file and line of a misspelling.
    pub(super) fn rehearse_strictly(&self, place: u32) -> Result<(), ScriptError> {
        let (misspelt, missing) = self.rehearsed(place, true)?;
        misspelt.or(missing).map_or(Ok(()), |problem| Err(ScriptError::failed("the script", &problem)))
    }

    fn rehearsed(&self, place: u32, watches: bool) -> Result<(Option<String>, Option<String>), ScriptError> {
        let problems = self.table.get::<Function>("rehearse").and_then(|rehearse| rehearse.call((place, watches)));
        let whole = |problem: Option<String>| problem.map(|problem| self.with_whole_names(problem));
        problems.map(|(misspelt, missing)| (whole(misspelt), whole(missing))).map_err(|error| self.failed(&error))
    }

    /// The locals at the script's top that its scenarios assign. The users of a thread share them.
    pub(super) fn assigned_locals(&self) -> Result<Vec<AssignedLocal>, ScriptError> {
        let read = |table: Table| {
            let (name, file) = (table.get("name")?, table.get("file")?);
            Ok(AssignedLocal { name, field: table.get("field")?, file, line: table.get("line")? })
        };
        self.listed("assigned_locals", read)
    }

    /// The globals that these files of the script read, in Lua, and nothing sets.
    pub(super) fn unset_globals(&self, files: &[File]) -> Result<Vec<UnsetGlobal>, ScriptError> {
        let given = || {
            let all = self.lua.create_table()?;
            for file in files {
                let table = self.lua.create_table()?;
                table.raw_set("name", file.name.as_str())?;
                table.raw_set("text", self.lua.create_string(&file.content.0)?)?;
                all.raw_push(table)?;
            }
            self.table.get::<Function>("unset_globals")?.call::<Vec<Table>>(all)
        };
        let read = |table: Table| {
            Ok(UnsetGlobal { file: table.get("file")?, line: table.get("line")?, problem: table.get("problem")? })
        };
        let all = given().and_then(|all| all.into_iter().map(read).collect());
        all.map_err(|error| self.failed(&error))
    }

    /// The lines that [`rehearse_strictly`](Self::rehearse_strictly) did not reach.
    pub(super) fn unreached(&self) -> Result<Vec<Unreached>, ScriptError> {
        let read = |table: Table| {
            Ok(Unreached { file: table.get("file")?, first: table.get("first")?, last: table.get("last")? })
        };
        self.listed("unreached", read)
    }

    /// The values that are hardly meant, as far as the script's top and its rehearsals came to them.
    pub(super) fn unlikely(&self) -> Result<Vec<UnlikelyValue>, ScriptError> {
        let read = |table: Table| {
            Ok(UnlikelyValue { file: table.get("file")?, line: table.get("line")?, problem: table.get("problem")? })
        };
        self.listed("unlikely", read)
    }

    /// The functions that ended by an error in a rehearsal.
    pub(super) fn ended_early(&self) -> Result<Vec<EndedEarly>, ScriptError> {
        let secrets = &self.host.common.secrets;
        let read = |table: Table| {
            let problem = secrets.hide(&self.explained(table.get("problem")?)).into_owned();
            Ok(EndedEarly { scenario: table.get("scenario")?, problem })
        };
        self.listed("ended_early", read)
    }

    /// The calls, groups and checks of every [`rehearse`](Self::rehearse) so far, each once.
    pub(super) fn met(&self) -> Result<Vec<Met>, ScriptError> {
        let secrets = &self.host.common.secrets;
        let read = |table: Table| {
            let kind = match table.get::<String>("kind")?.as_str() {
                "group" => MetKind::Group,
                "check" => MetKind::Check,
                _ => MetKind::Call,
            };
            let name = secrets.hide(&table.get::<String>("name")?).into_owned();
            let tags: Vec<String> = table.get("tags")?;
            let tags = tags.iter().map(|tag| secrets.hide(tag).into_owned()).collect();
            Ok(Met { kind, name, tags, scenario: table.get("scenario")?, base: table.get("base")? })
        };
        self.listed("met", read)
    }

    /// The list of tables that a function of the library returns.
    fn listed<T>(&self, function: &str, read: impl Fn(Table) -> mlua::Result<T>) -> Result<Vec<T>, ScriptError> {
        let all = self.table.get::<Function>(function).and_then(|listed| listed.call::<Vec<Table>>(()));
        let all = all.and_then(|all| all.into_iter().map(read).collect());
        all.map_err(|error| self.failed(&error))
    }

    /// The texts that the script makes of a run's result, a JSON document, by the names of their files, in the order of
    /// these. `None` where the script makes none.
    ///
    /// # Errors
    /// The file and line of an error.
    pub(super) fn handle_summary(&self, document: &[u8]) -> Result<Option<BTreeMap<String, Vec<u8>>>, ScriptError> {
        let document = self.lua.create_string(document);
        let handled = document.and_then(|document| {
            let texts: Option<Table> = self.table.get::<Function>("handle_summary")?.call(document)?;
            let Some(texts) = texts else { return Ok(None) };
            let texts = texts.pairs::<String, mlua::LuaString>();
            texts
                .map(|pair| pair.map(|(name, text)| (name, text.as_bytes().to_vec())))
                .collect::<mlua::Result<_>>()
                .map(Some)
        });
        handled.map_err(|error| from_lua("brunt.handle_summary", &self.file, &error))
    }

    /// A traceback, with where a value comes from that is nil in it.
    fn explained(&self, traceback: String) -> String {
        let mut known = self.explained.borrow_mut();
        if let Some(explained) = known.get(&traceback) {
            return explained.clone();
        }
        let source = |file: &str| {
            if file == self.file {
                Some(self.host.script.to_vec())
            } else {
                self.host.common.files.find(file).ok().flatten()
            }
        };
        let whole = self.with_whole_names(traceback.clone());
        let explained = nils::explained(&whole, source).unwrap_or(whole);
        if known.len() < MOST_EXPLAINED {
            known.insert(traceback, explained.clone());
        }
        explained
    }

    // What a step returned is looked at where it lies: an operation and the values are dear to move.
    #[expect(clippy::needless_pass_by_value, reason = "the values end here")]
    fn returned(&self, returned: mlua::Result<Returned>) -> (Operation, bool) {
        match &returned {
            Ok(values) => {
                let mut wanted = operation::returned(values);
                if let Operation::Failed { problem, wrong, .. } = &mut wanted.0 {
                    (*problem, *wrong) = self.explain(std::mem::take(problem), *wrong);
                }
                wanted
            }
            Err(error) => {
                (Operation::Failed { problem: self.failed(error).to_string(), wrong: true, pacing_ns: 0 }, false)
            }
        }
    }

    /// A problem as its user reads it, and whether it is the script's own.
    #[cold]
    fn explain(&self, problem: String, wrong: bool) -> (String, bool) {
        // The script keeps its memory, so no later iteration would have more room.
        if memory::is_full(&problem) {
            let problem = format!("{problem}\n{}", memory::full());
            return (ScriptError::failed("a scenario", &problem).to_string(), true);
        }
        (if wrong { self.with_whole_names(problem) } else { self.explained(problem) }, wrong)
    }
}

impl Library for LuaLibrary {
    fn clients(&self) -> Vec<ScriptClient> {
        self.host.declared().clients.clone()
    }

    fn place(&self, name: &str) -> Result<u32, ScriptError> {
        let place = self.table.get::<Function>("place").and_then(|place| place.call::<Option<u32>>(name));
        let place = place.map_err(|error| self.failed(&error))?;
        place.ok_or_else(|| ScriptError::new(&self.file, format!("there is no scenario '{name}'")))
    }

    fn written_at(&self, place: u32) -> Option<String> {
        self.table.get::<Function>("written_at").and_then(|written_at| written_at.call(place)).ok()
    }

    fn once(&self, which: &str) -> Result<Option<u32>, ScriptError> {
        let place = self.table.get::<Function>("once").and_then(|once| once.call(which));
        place.map_err(|error| self.failed(&error))
    }

    fn given(&self) -> Result<Value<'static>, ScriptError> {
        let given = self.table.get::<Function>("given").and_then(|given| given.call::<mlua::Value>(()));
        let given = given.map_err(|error| self.failed(&error))?;
        value::given_of_lua(&self.lua, &given)
            .map_err(|problem| ScriptError::new(&self.file, format!("what setup returns: {problem}")))
    }

    fn give(&self, given: &Value<'_>) -> Result<(), ScriptError> {
        let give = value::given_to_lua(&self.lua, given)
            .and_then(|given| self.table.get::<Function>("give").and_then(|give| give.call::<()>(given)));
        give.map_err(|error| self.failed(&error))
    }

    fn trace(&self) {
        // Without the function, passed checks are not shown, and everything else is.
        let _ = self.table.get::<Function>("trace").and_then(|trace| trace.call::<()>(()));
    }

    fn begin_iteration(&self, slot: u32, now: Tick, id: u64, place: u32) -> Operation {
        self.returned(self.begin.call::<Returned>((slot, now.ns() as f64, id as f64, place))).0
    }

    fn stops(&self) -> bool {
        self.table.get("stops").unwrap_or(false)
    }

    fn begin_stop(&self, slot: u32, now: Tick, between: bool) -> Option<Operation> {
        let begun = self.table.get::<Function>("begin_stop").and_then(|begin| {
            let begun: Returned = begin.call((slot, now.ns() as f64, between))?;
            Ok(begun)
        });
        match begun {
            Ok((mlua::Value::Nil, ..)) => None,
            begun => Some(self.returned(begun).0),
        }
    }

    fn resume(&self, slot: u32, now: Tick, with: Resumption<'_>) -> (Operation, bool) {
        let now = now.ns() as f64;
        let returned = match with {
            Resumption::Nothing => self.step.call::<Returned>((slot, now)),
            Resumption::Number(number) => self.step.call((slot, now, number)),
            Resumption::Begun { ticket } => self.step.call((slot, now, ticket)),
            Resumption::Answered { ticket, status, ok, flags, goes_on } => {
                self.answered.call((slot, now, goes_on, ticket, status, ok, flags))
            }
            Resumption::Failed { ticket, failure, reason } => {
                self.step.call((slot, now, ticket, 0, false, 0, failure, reason))
            }
            Resumption::Refused(problem) => self.step.call((slot, now, mlua::Value::Nil, problem)),
            Resumption::Problem(problem) => self.step.call((slot, now, problem)),
            Resumption::Read(value) => match value::to_lua(&self.lua, &value) {
                Ok(value) => self.step.call((slot, now, true, value)),
                Err(error) => Err(error),
            },
            Resumption::Unread(problem) => self.step.call((slot, now, false, problem)),
            Resumption::Results(results) => match operation::results(&self.lua, &results) {
                Ok(results) => self.step.call((slot, now, results)),
                Err(error) => Err(error),
            },
        };
        self.returned(returned)
    }

    fn judge(&self, slot: u32, now: Tick, body: &[u8], flags: u32, status: u16) -> Verdict {
        let judged = self.lua.create_string(body).and_then(|body| {
            self.judge.call::<(mlua::Value, mlua::MultiValue)>((slot, now.ns() as f64, body, flags, status))
        });
        match judged {
            Ok(judged) => operation::verdict(&judged),
            Err(error) => Verdict::Broken(self.failed(&error).to_string()),
        }
    }

    fn forget(&self, slot: u32, between: bool) {
        // A function that cannot be called any more has nothing to forget.
        let _ = self.forget.call::<()>((slot, between));
    }

    fn leave_groups(&self, slot: u32, now: Tick) -> Vec<(u32, u64, u64)> {
        let ended: Vec<f64> = self.leave_groups.call((slot, now.ns() as f64)).unwrap_or_default();
        ended
            .chunks_exact(3)
            .filter_map(|group| match *group {
                [id, with, without] => Some((id as u32, with as u64, without as u64)),
                _ => None,
            })
            .collect()
    }

    fn take_passes(&self) -> Vec<(u32, u64)> {
        let taken: Vec<f64> = self.take_passes.call(()).unwrap_or_default();
        let pair = |pair: &[f64]| Some((*pair.first()? as u32, *pair.get(1)? as u64));
        taken.chunks_exact(2).filter_map(pair).collect()
    }

    fn take_own(&self) -> Vec<(String, OwnFigures)> {
        self.host.take_own()
    }

    fn flush(&self) {
        state::flush(&self.lua);
    }
}
