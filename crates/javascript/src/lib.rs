//! k6's scripts for brunt: `QuickJS`, a stack for each user, and k6's modules.
//!
//! The engine knows the contract of `brunt-script` alone. A script's top runs in a runtime for each user, as in k6; a function of k6's that waits
//! suspends its user's stack (`stack.rs`) in the midst of the script. What k6 calls its modules is JavaScript in `library/`, on the functions of
//! `brunt:native` (`native.rs`).
//!
//! ```text
//! options ──▶ populations, thresholds     script's function ──▶ k6/http (JavaScript) ──▶ native ──Operation──▶ engine
//! ```

mod bounded;
mod bytes;
mod callable;
mod duration;
mod error;
mod functions;
mod html;
mod library;
mod load;
mod loader;
mod members;
mod memory;
mod modules;
mod native;
mod options;
mod outcome;
mod program;
mod rehearsal;
mod responses;
mod runtime;
mod shared;
mod shortcuts;
mod sources;
mod stack;
mod summary;
mod system;
mod thresholds;
mod trace;
mod user;
mod values;
mod worker;
mod wrong_option;

use brunt_plan::plan::Plan;
use brunt_plan::scenario::Scenarios;
use brunt_plan::share::Portion;
use brunt_protocol::{Prepared, Registry};
use brunt_script::{FloodScript, Program, ScriptError, ScriptHost};

pub use self::load::{load, outline};
pub use self::shared::SUMMARY;
pub use self::summary::{RunResult, summary_data, summary_texts};

/// The extensions of the names of scripts in JavaScript.
pub const EXTENSIONS: [&str; 4] = ["js", "mjs", "cjs", "ts"];

/// Whether a text imports one of k6's modules, whatever its file is called.
pub fn is_of_k6(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text.get(..text.len().min(MOST_READ)).unwrap_or(text));
    text.lines().map(str::trim).any(|line| {
        line.starts_with("import ")
            && ["'k6'", "\"k6\"", "'k6/", "\"k6/"].iter().any(|module| line.contains(&format!("from {module}")))
    })
}

/// The bytes of a file's beginning that tell whose it is.
const MOST_READ: usize = 64 << 10;

/// The host of scripts in JavaScript, for virtual users.
#[derive(Debug, Clone, Copy, Default)]
pub struct JavaScript;

impl ScriptHost for JavaScript {
    fn flood(&self, _: &Plan, _: &dyn Prepared) -> Result<Option<Box<dyn FloodScript>>, ScriptError> {
        Ok(None)
    }

    fn program(
        &self,
        plan: &Plan,
        scenarios: &Scenarios,
        registry: &Registry,
        _: Portion,
    ) -> Result<Box<dyn Program>, ScriptError> {
        Ok(Box::new(program::JavaScriptProgram::prepare(plan, scenarios, registry)?))
    }
}
