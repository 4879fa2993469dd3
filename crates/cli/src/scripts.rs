//! The languages that scripts are written in: Lua, and k6's JavaScript. A script's language is known by its name, or by what it imports.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::Path;

use brunt_engine::EngineError;
use brunt_javascript::{JavaScript, RunResult, SUMMARY, summary_data, summary_texts};
use brunt_judge::summary::Summary;
use brunt_lua::LuaJit;
use brunt_plan::plan::{Plan, Sandbox};
use brunt_plan::scenario::Scenarios;
use brunt_plan::share::Portion;
use brunt_protocol::{Prepared, Registry};
use brunt_report::{Format, Style};
use brunt_script::{FloodScript, LoadOptions, Loaded, Outline, Program, ScriptError, ScriptHost};

use crate::console;

/// The host of the scripts that brunt carries out: wrk's and scenarios in Lua, k6's in JavaScript.
pub const SCRIPTS: &dyn ScriptHost = &Languages;

struct Languages;

impl ScriptHost for Languages {
    fn flood(&self, plan: &Plan, prepared: &dyn Prepared) -> Result<Option<Box<dyn FloodScript>>, ScriptError> {
        LuaJit.flood(plan, prepared)
    }

    fn program(
        &self,
        plan: &Plan,
        scenarios: &Scenarios,
        registry: &Registry,
        portion: Portion,
    ) -> Result<Box<dyn Program>, ScriptError> {
        let host: &dyn ScriptHost = if are_javascript(scenarios) { &JavaScript } else { &LuaJit };
        host.program(plan, scenarios, registry, portion)
    }
}

/// Whether the script at `path` is in JavaScript.
pub fn is_javascript(path: &Path) -> bool {
    is_named_so(path) || std::fs::read(path).is_ok_and(|text| brunt_javascript::is_of_k6(&text))
}

/// Whether there is a script of users at `path`, by its name or by what it imports.
pub fn is_script(path: &Path) -> bool {
    path.is_file() && (path.extension().is_some_and(|extension| extension == "lua") || is_javascript(path))
}

/// Whether a script has a name as those in JavaScript have.
fn is_named_so(path: &Path) -> bool {
    path.extension().is_some_and(|extension| brunt_javascript::EXTENSIONS.iter().any(|known| extension == *known))
}

fn are_javascript(scenarios: &Scenarios) -> bool {
    scenarios
        .files
        .first()
        .is_some_and(|file| is_named_so(Path::new(&file.name)) || brunt_javascript::is_of_k6(&file.content.0))
}

/// Loads the script at `path` with the files that it reads.
///
/// # Errors
/// The file and line of what is wrong.
pub fn load(path: &Path, options: &LoadOptions, registry: &Registry) -> Result<Loaded, ScriptError> {
    if is_javascript(path) {
        brunt_javascript::load(path, options, registry)
    } else {
        brunt_lua::scenario::load(path, options, registry)
    }
}

/// Goes once through a script that was loaded, without a call.
///
/// # Errors
/// The file and line of what is wrong before its scenarios.
pub fn outline(scenarios: &Scenarios, sandbox: Sandbox, registry: &Registry) -> Result<Outline, ScriptError> {
    if are_javascript(scenarios) {
        brunt_javascript::outline(scenarios, sandbox, registry)
    } else {
        brunt_lua::scenario::outline(scenarios, sandbox, registry)
    }
}

/// The checks that stand in the script's text, each with its place, as far as its language tells.
pub fn written_checks(scenarios: &Scenarios) -> Vec<(String, String)> {
    if are_javascript(scenarios) { Vec::new() } else { brunt_lua::scenario::written_checks(scenarios) }
}

/// The texts that the script makes of the run's result, by the names of their files; `None` where it makes none.
///
/// # Errors
/// The file and line of an error.
pub fn handle_summary(
    summary: &Summary,
    scenarios: &Scenarios,
    registry: &Registry,
) -> Result<Option<BTreeMap<String, Vec<u8>>>, ScriptError> {
    if are_javascript(scenarios) {
        let of_plan = summary
            .thresholds
            .iter()
            .filter_map(|result| result.condition.threshold().map(|threshold| (threshold.to_string(), result.held)));
        let result = RunResult {
            figures: &summary.total.figures,
            conditions: of_plan.collect(),
            measured_ns: summary.run.measured_ns,
            is_terminal: std::io::stdout().is_terminal(),
        };
        let made = || -> Result<_, EngineError> {
            let Some(data) = summary_data(&summary.plan, scenarios, &result)? else { return Ok(None) };
            let left = brunt_engine::run_aside(&summary.plan, registry, SCRIPTS, SUMMARY, data)?;
            Ok(left.map(|left| summary_texts(&left)))
        };
        // As in k6, the run's own report takes the place of one that fails, and the exit status is the run's.
        return Ok(made().unwrap_or_else(|error| {
            console::note(&format!("error: {error}"));
            None
        }));
    }
    let document = || {
        let mut json = Vec::new();
        // A buffer takes whatever it is given.
        drop(brunt_report::write(&mut json, Format::Json, summary, Style::default()));
        json
    };
    brunt_lua::scenario::handle_summary(&summary.plan, scenarios, registry, document)
}
