//! Scenarios in Lua: the declarations of a script of virtual users, and the state in which each worker's users live.
//!
//! `library/` is the module `brunt` and holds the coroutines; `host` is its interface to Rust while the script is
//! loaded; `operation` has the operations that users yield. The engine carries them out.

mod by_flags;
mod charset;
mod data;
mod digests;
mod host;
mod library;
mod nils;
mod operation;
mod outline;
mod pack;
mod place;
mod reading;
mod redis;
mod resources;
#[cfg_attr(not(feature = "json-schema"), path = "without_schema.rs")]
mod schema;
mod sqlite;
mod stream;
mod table;
mod tokens;
pub mod types;
mod urls;
mod value;
pub(crate) mod written;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use brunt_plan::content::Content;
use brunt_plan::environment::Environment;
use brunt_plan::plan::{Plan, Sandbox};
use brunt_plan::scenario::{File, Scenarios};
use brunt_plan::secret::Template;
use brunt_plan::secrets::secrets_in;
use brunt_plan::share::Portion;
use brunt_record::redaction::Secrets;
use bstr::ByteSlice as _;

use self::library::LuaLibrary;
use self::resources::Resources;
use brunt_protocol::Registry;
use brunt_script::{Files, Library, LoadOptions, Loaded, OwnRules, Program, ScriptError};

pub use self::outline::outline;
pub use self::place::{TextPosition, place};

/// Loads the script at `path` from disk, with the modules that it requires and the data that it reads.
///
/// # Errors
/// The file and line of an error.
pub fn load(path: &Path, options: &LoadOptions, registry: &Registry) -> Result<Loaded, ScriptError> {
    let name = path.display().to_string();
    let content = std::fs::read(path).map_err(|e| ScriptError::new(&name, format!("cannot be read: {e}")))?;
    let directory = path.parent().unwrap_or(Path::new("")).to_owned();
    let script = File { name, content: Content(content) };
    let confined = options.sandbox != Sandbox::Open;
    read(script, Files::Disk { directory, confined, seen: Mutex::default() }, options, registry)
}

/// Reads a script that has these files.
///
/// # Errors
/// The file and line of an error, without secrets.
pub fn read(script: File, files: Files, options: &LoadOptions, registry: &Registry) -> Result<Loaded, ScriptError> {
    let environment = Environment::default();
    let secrets = secrets_in(options.env.values(), options.base_url.as_deref(), |name| environment.value(name));
    loaded(script, files, options, registry, &secrets).map_err(|error| error.without(&secrets))
}

fn loaded(
    script: File,
    files: Files,
    options: &LoadOptions,
    registry: &Registry,
    secrets: &Secrets,
) -> Result<Loaded, ScriptError> {
    let env = revealed(&script.name, &options.env, &Environment::default())?;
    let common = Arc::new(
        Resources::new(files, by_flags::dialects(registry), env, options.base_url.clone(), 0)
            .within(options.sandbox)
            .asking(options.asking.clone())
            .hiding(secrets.clone())
            .streaming(directory_of(&script), None),
    );
    let library = LuaLibrary::begin(&script, &common, 0)?;
    let names = library.names()?;
    let assigned_locals = library.assigned_locals()?;
    let declared = library.take_declared();
    let target = declared.clients.iter().find_map(|client| client.base.clone());
    let own = declared.own_figures();
    for threshold in &declared.thresholds {
        let checked =
            threshold.check_own(&own.iter().collect::<Vec<_>>()).and_then(|()| threshold.check_scenario(&names));
        checked.map_err(|e| ScriptError::new(&script.name, format!("brunt.expect: {e}")))?;
    }
    let mut files = vec![script];
    if let Files::Disk { seen, .. } = &common.files {
        files.append(&mut seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    }
    let in_lua: Vec<File> = files
        .iter()
        .enumerate()
        .filter(|(place, file)| *place == 0 || is_lua(&file.name))
        .map(|(_, file)| file.clone())
        .collect();
    let unset_globals = library.unset_globals(&in_lua)?;
    let mut scenarios = Scenarios {
        files,
        streamed: common.take_streamed(),
        env: options.env.clone(),
        base_url: options.base_url.clone(),
        populations: declared.populations,
        throttle: declared.throttle,
        smallest_pool: declared.clients.iter().filter(|client| !client.grows).filter_map(|client| client.pool).min(),
        hosts: declared.hosts,
        trace_ratio: None,
        setup_timeout_ns: None,
        teardown_timeout_ns: None,
        own,
    };
    change_users(&mut scenarios, &library, options, &names)?;
    Ok(Loaded {
        scenarios,
        thresholds: declared.thresholds,
        target,
        clients: declared.kinds,
        names,
        assigned_locals,
        unset_globals,
        own_rules: OwnRules::default(),
        is_insecure: false,
        notes: Vec::new(),
    })
}

/// Whether a file of this name is a module in Lua.
fn is_lua(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "lua")
}

/// The checks whose names are in the text of a script and of its modules, each with the file and the line where it is
/// first.
pub fn written_checks(scenarios: &Scenarios) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    // The first file is the script, whatever its name.
    let files = scenarios.files.iter().enumerate().filter(|(place, file)| *place == 0 || is_lua(&file.name));
    for (_, file) in files {
        for (name, line) in written::names(&file.content.0) {
            if !all.iter().any(|(known, _)| *known == name) {
                all.push((name, format!("{}:{line}", file.name)));
            }
        }
    }
    all
}

/// The texts that the script of `plan` makes of the result of its run, a JSON document, by `brunt.handle_summary`, by
/// the names of their files. `None` where the script has no such function. For it, the script's top is run once more in
/// a separate state.
///
/// # Errors
/// The file and line of an error.
pub fn handle_summary(
    plan: &Plan,
    scenarios: &Scenarios,
    registry: &Registry,
    document: impl FnOnce() -> Vec<u8>,
) -> Result<Option<BTreeMap<String, Vec<u8>>>, ScriptError> {
    // A script that does not mention it costs nothing.
    if !scenarios.files.iter().any(|file| file.content.0.find(b"handle_summary").is_some()) {
        return Ok(None);
    }
    let script = Script::prepare(plan, scenarios, registry, Portion::whole(plan.workers))?;
    LuaLibrary::begin(&script.file, &script.common, 0)?.handle_summary(&document())
}

/// Changes the injections as the options say.
fn change_users(
    scenarios: &mut Scenarios,
    library: &LuaLibrary,
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

/// The directory of a script, by its name in the plan.
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
pub(crate) struct Script {
    file: File,
    common: Arc<Resources>,
}

impl Script {
    /// The script of `plan`, for the workers of this portion.
    ///
    /// # Errors
    /// When something that it needs is missing.
    pub(crate) fn prepare(
        plan: &Plan,
        scenarios: &Scenarios,
        registry: &Registry,
        portion: Portion,
    ) -> Result<Self, ScriptError> {
        let file =
            scenarios.files.first().cloned().ok_or_else(|| ScriptError::new("the plan", "there is no script"))?;
        let env = revealed(&file.name, &scenarios.env, &plan.environment)?;
        let files = Files::Plan(scenarios.files.get(1..).unwrap_or(&[]).to_vec());
        let common = Resources::new(files, by_flags::dialects(registry), env, scenarios.base_url.clone(), plan.seed);
        let common = common
            .within(plan.sandbox)
            .hiding(plan.secrets())
            .counting_for(plan)
            .dealing(portion)
            .streaming(directory_of(&file), Some(scenarios.streamed.clone()));
        Ok(Self { file, common: Arc::new(common) })
    }
}

impl Program for Script {
    fn rehearse(&self, scenarios: &[&str]) -> Result<(), ScriptError> {
        let library = LuaLibrary::begin_rehearsal(&self.file, &self.common)?;
        for name in scenarios {
            library.rehearse(library.place(name)?)?;
        }
        for which in ["setup", "teardown"] {
            library.once(which)?.map_or(Ok(()), |place| library.rehearse(place))?;
        }
        Ok(())
    }

    fn begin(&self, worker: u32) -> Result<Box<dyn Library>, ScriptError> {
        Ok(Box::new(LuaLibrary::begin(&self.file, &self.common, worker)?))
    }
}
