//! What all users of a script share, on all workers.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use brunt_record::redaction::Secrets;
use brunt_script::ScriptClient;

use crate::modules::Modules;

/// The functions that run once, beside the load.
pub(crate) const ASIDE: [&str; 3] = ["setup", "teardown", SUMMARY];
/// The function that makes texts of a run's result.
pub const SUMMARY: &str = "handleSummary";

/// What users share.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Shared {
    pub(crate) modules: Arc<Modules>,
    /// The values of `__ENV`.
    pub(crate) env: Vec<(String, String)>,
    /// The script's options, as JSON; `None` until they are known.
    pub(crate) options: Option<String>,
    /// The figures that thresholds and a summary ask for, as JSON.
    pub(crate) wanted: String,
    /// Whether a threshold or a summary takes samples of checks.
    pub(crate) samples_checks: bool,
    /// The scenarios with the names of their functions, and those of [`ASIDE`] behind them.
    pub(crate) functions: Vec<(String, String)>,
    /// The executors of the scenarios.
    pub(crate) executors: Vec<String>,
    pub(crate) has_setup: bool,
    pub(crate) has_teardown: bool,
    pub(crate) has_summary: bool,
    /// The least time of an iteration, in nanoseconds.
    pub(crate) pacing_ns: u64,
    pub(crate) clients: Vec<ScriptClient>,
    /// The schemas of its last clients, which speak gRPC.
    pub(crate) schemas: Vec<Schema>,
    pub(crate) seed: u64,
    pub(crate) secrets: Secrets,
    /// Whether what the script's top prints is shown.
    pub(crate) shows_top: bool,
    /// Whether the script prints nothing, since it is rehearsed.
    pub(crate) is_silent: bool,
    /// Iterations begun, by scenario.
    pub(crate) begun: Vec<AtomicU64>,
    /// How many iterations have ended, and how many users are alive.
    pub(crate) ended: AtomicU64,
    pub(crate) users: AtomicU64,
    pub(crate) started: Instant,
    /// The same moment, in milliseconds since 1970.
    pub(crate) started_at_ms: f64,
    /// How long each scenario takes, in seconds, and how many iterations it has, as far as its options say.
    pub(crate) extents: Vec<(f64, f64)>,
    /// Arrays that all users share, by name.
    pub(crate) arrays: Mutex<HashMap<String, Arc<Vec<String>>>>,
}

/// Where the schema of a client of gRPC comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Schema {
    /// Files, and the directories of those that they import.
    Files(Vec<String>, Vec<String>),
    /// A descriptor set in a file.
    Set(String),
    /// The server at this URL.
    Server(String),
}

impl Shared {
    /// The name of the function of this place.
    pub(crate) fn function(&self, place: u32) -> &str {
        self.functions.get(place as usize).map_or("default", |(_, function)| function)
    }

    /// The name of the scenario of this place; empty beside the load.
    pub(crate) fn scenario(&self, place: u32) -> &str {
        if (place as usize) < self.begun.len() {
            self.functions.get(place as usize).map_or("", |(scenario, _)| scenario)
        } else {
            ""
        }
    }

    /// The place of a function beside the load, if the script has it.
    pub(crate) fn once(&self, which: &str) -> Option<u32> {
        let behind = ASIDE.iter().position(|known| *known == which)?;
        let has = [self.has_setup, self.has_teardown, self.has_summary];
        has.get(behind)?.then(|| (self.begun.len() + behind) as u32)
    }

    /// The same program, whose script prints nothing.
    pub(crate) fn silenced(mut self) -> Self {
        self.is_silent = true;
        self
    }

    /// Prints what the script says, on standard error: what it prints never meets a result.
    pub(crate) fn print(&self, level: &str, text: &str) {
        if self.is_silent {
            return;
        }
        let text = self.secrets.hide(text);
        let mut line = String::with_capacity(text.len() + 1);
        if matches!(level, "warn" | "error" | "debug") {
            line.push_str(level);
            line.push_str(": ");
        }
        for c in text.chars() {
            match c {
                '\t' | '\n' => line.push(c),
                c if c.is_control() => line.extend(c.escape_default()),
                c => line.push(c),
            }
        }
        line.push('\n');
        // Nobody reads it: there is nothing to be done about that.
        drop(std::io::stderr().lock().write_all(line.as_bytes()));
    }

    /// The share of a scenario that is over, `seconds` after the beginning and with so many iterations begun.
    pub(crate) fn progress(&self, place: u32, seconds: f64, begun: u64) -> f64 {
        let (length, iterations) = self.extents.get(place as usize).copied().unwrap_or_default();
        let share = if length > 0.0 { seconds / length } else { begun as f64 / iterations.max(1.0) };
        share.clamp(0.0, 1.0)
    }

    /// Keeps an array for all users, unless somebody has kept one of this name.
    pub(crate) fn share(&self, name: String, items: Vec<String>) {
        let mut arrays = self.arrays.lock().unwrap_or_else(PoisonError::into_inner);
        arrays.entry(name).or_insert_with(|| Arc::new(items));
    }

    /// The array of this name that all users share.
    pub(crate) fn shared(&self, name: &str) -> Option<Arc<Vec<String>>> {
        self.arrays.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}
