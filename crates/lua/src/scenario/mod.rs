//! Scenarios in Lua: what a script of virtual users says, and the state of each worker in which they live.
//!
//! `library/` is the module `brunt` and holds the coroutines; `host` is what it asks of Rust while the script is
//! loaded; `operation` is what users yield. The engine carries the operations out.

mod by_flags;
mod data;
mod digests;
mod host;
mod operation;
mod pack;
mod reading;
mod redis;
mod sqlite;
mod stream;
mod table;
mod tokens;
pub mod types;
mod value;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use brunt_plan::content::Content;
use brunt_plan::environment::Environment;
use brunt_plan::plan::{Plan, ProtocolOptions, Sandbox};
use brunt_plan::scenario::{File, Scenarios, Step};
use brunt_plan::secret::Template;
use brunt_plan::share::Portion;
use brunt_plan::target::Target;
use brunt_plan::threshold::Threshold;
use brunt_record::figures::OwnFigures;
use mlua::{Function, Lua, Table};

use self::host::{Common, Declared, Host};
use self::operation::Returned;
use crate::{ScriptError, memory, state};
use brunt_protocol::Registry;
use brunt_protocol::asking::Reply;
use brunt_protocol::scenario::Value;

pub use self::host::{Files, ScriptClient};
pub use self::operation::{Operation, Placement, Resumption, Verdict, Wanted};

/// The parts of the library, in the order in which they are run.
const LIBRARY: [(&str, &str); 16] = [
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
    ("flow", include_str!("library/flow.lua")),
    ("load", include_str!("library/load.lua")),
    ("own", include_str!("library/own.lua")),
    ("data", include_str!("library/data.lua")),
    ("rehearsal", include_str!("library/rehearsal.lua")),
];

/// What a script says of a run.
#[derive(Debug)]
pub struct Loaded {
    /// The script with its files, and who comes when.
    pub scenarios: Scenarios,
    /// Its `brunt.expect`.
    pub thresholds: Vec<Threshold>,
    /// The base of its first client that has one.
    pub target: Option<Target>,
    /// The names of its scenarios, in their order.
    pub names: Vec<String>,
}

/// Asks the target at the first address, in a run whose own is the second, as [`Ask`](brunt_protocol::asking::Ask) says; in words why
/// there is no answer.
pub type AskAt = dyn Fn(&Target, &Target, &ProtocolOptions) -> Result<Reply, String> + Send + Sync;

/// Who asks targets on behalf of clients while a script is loaded, if anybody does.
#[derive(Clone, Default)]
pub struct Asking(Option<Arc<AskAt>>);

impl Asking {
    /// By this function.
    pub fn by(ask: Arc<AskAt>) -> Self {
        Self(Some(ask))
    }
}

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Asking").field(&self.0.is_some()).finish()
    }
}

/// What a script is loaded with besides its files.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// What `brunt.env` gives.
    pub env: BTreeMap<String, Template>,
    /// What stands for the base of its first client.
    pub base_url: Option<String>,
    /// Users who come by these steps in place of the script's: the scenario, and the steps as they are written
    /// (`rate(50, 1m)`).
    pub injections: Vec<(String, String)>,
    /// The scenarios whose users come; those of all where it is empty.
    pub only: Vec<String>,
    /// What it may do.
    pub sandbox: Sandbox,
    /// What asks targets for what clients cannot be made without.
    pub asking: Asking,
}

/// Loads the script at `path` from disk, with the modules that it requires and the data that it reads.
///
/// # Errors
/// With file and line of what is wrong.
pub fn load(path: &Path, options: &LoadOptions, registry: &Registry) -> Result<Loaded, ScriptError> {
    let name = path.display().to_string();
    let content = std::fs::read(path).map_err(|e| ScriptError::new(&name, format!("cannot be read: {e}")))?;
    let directory = path.parent().unwrap_or(Path::new("")).to_owned();
    let script = File { name, content: Content(content) };
    let confined = options.sandbox != Sandbox::Open;
    read(script, Files::Disk { directory, confined, seen: Mutex::default() }, options, registry)
}

/// What a script says that has these files.
pub fn read(script: File, files: Files, options: &LoadOptions, registry: &Registry) -> Result<Loaded, ScriptError> {
    let env = revealed(&script.name, &options.env, &Environment::default())?;
    let common = Arc::new(
        Common::new(files, by_flags::dialects(registry), env, options.base_url.clone(), 0)
            .within(options.sandbox)
            .asking(options.asking.clone())
            .streaming(directory_of(&script), None),
    );
    let library = Library::begin(&script, &common, 0)?;
    let names = library.names()?;
    let declared = library.take_declared();
    let target = declared.clients.iter().find_map(|client| client.base.clone());
    let mut files = vec![script];
    if let Files::Disk { seen, .. } = &common.files {
        files.append(&mut seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    }
    let mut scenarios = Scenarios {
        files,
        streamed: common.take_streamed(),
        env: options.env.clone(),
        base_url: options.base_url.clone(),
        populations: declared.populations,
        throttle: declared.throttle,
    };
    change_users(&mut scenarios, &library, options, &names)?;
    Ok(Loaded { scenarios, thresholds: declared.thresholds, target, names })
}

/// Changes who comes, as the options say.
fn change_users(
    scenarios: &mut Scenarios,
    library: &Library,
    options: &LoadOptions,
    names: &[String],
) -> Result<(), ScriptError> {
    let wrong = |problem: String| ScriptError::new(&library.file, problem);
    for name in options.only.iter().chain(options.injections.iter().map(|(name, _)| name)) {
        let is_mix = scenarios.populations.iter().any(|population| population.name() == *name);
        if !is_mix && !names.contains(name) {
            return Err(wrong(format!("there is no scenario '{name}'; there are {}", names.join(", "))));
        }
    }
    for (name, steps) in &options.injections {
        let steps = library.steps(steps).map_err(|problem| wrong(format!("the injection of '{name}': {problem}")))?;
        scenarios.inject(name, steps);
    }
    if !options.only.is_empty() {
        scenarios.keep(&options.only);
        if scenarios.populations.is_empty() {
            return Err(wrong(format!("nobody is injected into {}: give users by --inject", options.only.join(", "))));
        }
    }
    Ok(())
}

/// Where a script stands, by its name in the plan.
fn directory_of(script: &File) -> PathBuf {
    Path::new(&script.name).parent().unwrap_or(Path::new("")).to_owned()
}

fn revealed(
    file: &str,
    env: &BTreeMap<String, Template>,
    environment: &Environment,
) -> Result<BTreeMap<String, String>, ScriptError> {
    let reveal = |(name, value): (&String, &Template)| {
        let value = value.reveal(|variable| environment.value(variable));
        value.map(|value| (name.clone(), value)).map_err(|e| ScriptError::new(file, format!("the value '{name}': {e}")))
    };
    env.iter().map(reveal).collect()
}

/// A plan's script, before any state runs it.
pub struct Script {
    file: File,
    common: Arc<Common>,
}

impl Script {
    /// The script of `plan`, for the workers of this portion.
    ///
    /// # Errors
    /// When it lacks what it needs.
    pub fn of(plan: &Plan, scenarios: &Scenarios, registry: &Registry, portion: Portion) -> Result<Self, ScriptError> {
        let file =
            scenarios.files.first().cloned().ok_or_else(|| ScriptError::new("the plan", "there is no script"))?;
        let env = revealed(&file.name, &scenarios.env, &plan.environment)?;
        let files = Files::Plan(scenarios.files.get(1..).unwrap_or(&[]).to_vec());
        let common = Common::new(files, by_flags::dialects(registry), env, scenarios.base_url.clone(), plan.seed);
        let common = common
            .within(plan.sandbox)
            .dealing(portion)
            .streaming(directory_of(&file), Some(scenarios.streamed.clone()));
        Ok(Self { file, common: Arc::new(common) })
    }

    /// The state of a worker, in which the script has been run.
    ///
    /// # Errors
    /// With file, line and traceback of what is wrong.
    pub fn begin(&self, worker: u32) -> Result<Library, ScriptError> {
        Library::begin(&self.file, &self.common, worker)
    }

    /// A state in which the script has been run, for [`Library::rehearse`] alone.
    ///
    /// # Errors
    /// As [`Script::begin`].
    pub fn begin_rehearsal(&self) -> Result<Library, ScriptError> {
        let library = Library::empty(&self.file.name, &self.common, 0)?;
        let withheld = library.table.get::<Function>("withhold").and_then(|withhold| withhold.call::<()>(()));
        withheld.and_then(|()| library.confine()).map_err(|error| library.failed(&error))?;
        library.run(&self.file)?;
        Ok(library)
    }
}

/// A state in which a script of scenarios has been run.
pub struct Library {
    lua: Lua,
    file: String,
    host: Host,
    /// What the library's parts have in common, and what is called of it.
    table: Table,
    step: Function,
    answered: Function,
    begin: Function,
    forget: Function,
    leave_groups: Function,
    take_passes: Function,
    judge: Function,
}

impl Library {
    fn begin(file: &File, common: &Arc<Common>, worker: u32) -> Result<Self, ScriptError> {
        let library = Self::empty(&file.name, common, worker)?;
        library.confine().map_err(|error| library.failed(&error))?;
        library.run(file)?;
        Ok(library)
    }

    /// Closes the sandbox, if the script is to run in one.
    fn confine(&self) -> mlua::Result<()> {
        if self.host.common.sandbox == Sandbox::Open {
            return Ok(());
        }
        state::close(&self.lua, self.host.module(&self.lua)?)
    }

    /// A state with the module `brunt`, in which the script called `file` can be run.
    fn empty(file: &str, common: &Arc<Common>, worker: u32) -> Result<Self, ScriptError> {
        let wrong = |error: mlua::Error| ScriptError::from_lua("preparing the script", file, &error);
        let lua = state::everything();
        let host = Host { common: Arc::clone(common), declared: Arc::new(Mutex::new(Declared::default())) };
        Self::prepare(lua, file, host, worker).map_err(wrong)
    }

    /// Runs the script.
    fn run(&self, file: &File) -> Result<(), ScriptError> {
        let is_open = self.host.common.sandbox == Sandbox::Open;
        let chunk = state::load(&self.lua, &file.name, &file.content.0, is_open)?;
        chunk.call::<()>(()).map_err(|error| {
            let missing = self.host.declared().missing_value.take();
            ScriptError::from_lua("the script", &file.name, &error).lacking(missing)
        })
    }

    fn prepare(lua: Lua, file: &str, host: Host, worker: u32) -> mlua::Result<Self> {
        state::keep_inner(&lua)?;
        value::prepare_arrays(&lua)?;
        let functions = host.table(&lua)?;
        functions.raw_set("operations", operation::numbers(&lua)?)?;
        let (brunt, core, table) = (lua.create_table()?, lua.create_table()?, lua.create_table()?);
        for (name, part) in LIBRARY {
            let chunk = lua.load(part).set_name(format!("=brunt.{name}"));
            chunk.call::<()>((&functions, &brunt, &core, &table))?;
        }
        for (dialect, _) in &host.common.dialects {
            let chunk = lua.load(dialect.library()).set_name(format!("=brunt.{}", dialect.name()));
            brunt.set(dialect.name(), chunk.call::<mlua::Value>((&core, dialect.name()))?)?;
        }
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
            file: file.to_owned(),
            host,
            table,
            lua,
        })
    }

    fn take_declared(&self) -> Declared {
        std::mem::take(&mut *self.host.declared())
    }

    /// The clients that the script has made, in the order of their numbers, from 1.
    pub fn clients(&self) -> Vec<ScriptClient> {
        self.host.declared().clients.clone()
    }

    fn failed(&self, error: &mlua::Error) -> ScriptError {
        ScriptError::from_lua("a scenario", &self.file, error)
    }

    /// The names of the scenarios, in their order.
    fn names(&self) -> Result<Vec<String>, ScriptError> {
        let names = self.table.get::<Function>("names").and_then(|names| names.call(()));
        names.map_err(|error| self.failed(&error))
    }

    /// The steps of an injection as they are written on a command line; a problem, if they are none.
    fn steps(&self, text: &str) -> Result<Vec<Step>, String> {
        let read = self.table.get::<Function>("steps").and_then(|steps| steps.call((text,)));
        let (problem, steps): (Option<String>, mlua::Value) = read.map_err(|error| self.failed(&error).to_string())?;
        if let Some(problem) = problem {
            return Err(problem);
        }
        let json = value::lua_to_json(&self.lua, &steps)?;
        serde_json::from_slice(&json).map_err(|error| error.to_string())
    }

    /// The place of a scenario, by its name.
    ///
    /// # Errors
    /// When there is none.
    pub fn place(&self, name: &str) -> Result<u32, ScriptError> {
        let place = self.table.get::<Function>("place").and_then(|place| place.call::<Option<u32>>(name));
        let place = place.map_err(|error| self.failed(&error))?;
        place.ok_or_else(|| ScriptError::new(&self.file, format!("there is no scenario '{name}'")))
    }

    /// Goes through a scenario once with answers that are made up, and nothing done outside of the script; in a state of
    /// [`Script::begin_rehearsal`], which is good for nothing else.
    ///
    /// # Errors
    /// With file and line of what is misspelt in it.
    pub fn rehearse(&self, place: u32) -> Result<(), ScriptError> {
        let problem =
            self.table.get::<Function>("rehearse").and_then(|rehearse| rehearse.call::<Option<String>>(place));
        match problem.map_err(|error| self.failed(&error))? {
            Some(problem) => Err(ScriptError::failed("the script", &problem)),
            None => Ok(()),
        }
    }

    /// Whether a feeder gives each row out only once (`:queue()`, `:per_user()` without repeating).
    pub fn gives_rows_once(&self) -> bool {
        self.host.gives_rows_once()
    }

    /// Makes setup or teardown a scenario, of this place; none if the script has none.
    pub fn once(&self, which: &str) -> Result<Option<u32>, ScriptError> {
        let place = self.table.get::<Function>("once").and_then(|once| once.call(which));
        place.map_err(|error| self.failed(&error))
    }

    /// What setup has given.
    ///
    /// # Errors
    /// When it is more than plain values.
    pub fn given(&self) -> Result<Value<'static>, ScriptError> {
        let given = self.table.get::<Function>("given").and_then(|given| given.call::<mlua::Value>(()));
        let given = given.map_err(|error| self.failed(&error))?;
        value::of_lua(&given).map_err(|problem| ScriptError::new(&self.file, format!("what setup returns: {problem}")))
    }

    /// Gives the scenarios what setup has given.
    pub fn give(&self, given: &Value<'_>) -> Result<(), ScriptError> {
        let give = value::to_lua(&self.lua, given)
            .and_then(|given| self.table.get::<Function>("give").and_then(|give| give.call::<()>(given)));
        give.map_err(|error| self.failed(&error))
    }

    /// Lets the script tell of each check that holds.
    pub fn trace(&self) {
        // Where it cannot, the checks that hold are not seen, and all else is.
        let _ = self.table.get::<Function>("trace").and_then(|trace| trace.call::<()>(()));
    }

    /// Begins an iteration of the user with this slot; of a new one, with this number and scenario.
    pub fn begin_iteration(&self, slot: u32, now: u64, id: u64, place: u32) -> Operation {
        self.returned(self.begin.call::<Returned>((slot, now as f64, id as f64, place))).0
    }

    /// Goes on with a user: what it wants next, and whether it has ended its iteration and begun the next before, which
    /// happens only where [`Resumption::Answered`] lets it.
    pub fn resume(&self, slot: u32, now: u64, with: Resumption<'_>) -> (Operation, bool) {
        let now = now as f64;
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

    fn returned(&self, returned: mlua::Result<Returned>) -> (Operation, bool) {
        match returned.map(Operation::of) {
            // What a script keeps it keeps: no later iteration would have more room.
            Ok((Operation::Failed { problem, pacing_ns, .. }, again)) if memory::is_full(&problem) => {
                let problem = format!("{problem}\n{}", memory::full());
                let problem = ScriptError::failed("a scenario", &problem).to_string();
                (Operation::Failed { problem, wrong: true, pacing_ns }, again)
            }
            Ok(returned) => returned,
            Err(error) => {
                (Operation::Failed { problem: self.failed(&error).to_string(), wrong: true, pacing_ns: 0 }, false)
            }
        }
    }

    /// Shows the judge of a user's call an answer's body, flags and status.
    pub fn judge(&self, slot: u32, now: u64, body: &[u8], flags: u32, status: u16) -> Verdict {
        let judged = self.lua.create_string(body).and_then(|body| {
            self.judge.call::<(mlua::Value, mlua::MultiValue)>((slot, now as f64, body, flags, status))
        });
        match judged {
            Ok(judged) => Verdict::of(&judged),
            Err(error) => Verdict::Broken(self.failed(&error).to_string()),
        }
    }

    /// Forgets a user; `between` says that it stands between two iterations.
    pub fn forget(&self, slot: u32, between: bool) {
        // What cannot be called any more has nothing to be forgotten.
        let _ = self.forget.call::<()>((slot, between));
    }

    /// Ends the groups that a user is in: number, time with pauses, time without, in nanoseconds, of each.
    pub fn leave_groups(&self, slot: u32, now: u64) -> Vec<(u32, u64, u64)> {
        let ended: Vec<f64> = self.leave_groups.call((slot, now as f64)).unwrap_or_default();
        ended
            .chunks_exact(3)
            .filter_map(|group| match *group {
                [id, with, without] => Some((id as u32, with as u64, without as u64)),
                _ => None,
            })
            .collect()
    }

    /// How often checks have held since this was last asked, by their numbers.
    pub fn take_passes(&self) -> Vec<(u32, u64)> {
        let taken: Vec<f64> = self.take_passes.call(()).unwrap_or_default();
        let pair = |pair: &[f64]| Some((*pair.first()? as u32, *pair.get(1)? as u64));
        taken.chunks_exact(2).filter_map(pair).collect()
    }

    /// What was recorded of the script's own figures since this was last asked, by their names.
    pub fn take_own(&self) -> Vec<(String, OwnFigures)> {
        self.host.take_own()
    }

    /// Lets what the script has printed go where it belongs.
    pub fn flush(&self) {
        state::flush(&self.lua);
    }
}
