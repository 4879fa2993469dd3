//! Keeping runs: a failure here does not spoil a run whose result was shown.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use brunt_decide::decision::{Decision, KeptDecision};
use brunt_decide::kept::Label;
use brunt_judge::summary::Summary;
use brunt_plan::plan::ProtocolOptions;
use brunt_record::catalogue::Counter;
use brunt_report::decision::conclusion;
use brunt_store::{Store, StoreError};

use crate::args::{Saving, repeat};
use crate::console;
use crate::wording::{self, Settings};

/// What happens to a run when its result is written.
#[derive(Debug)]
pub enum Keep {
    /// It is not kept.
    Nothing,
    /// Kept under this label, or with a warning that it could not be.
    Run {
        /// The file.
        path: Result<PathBuf>,
        /// Its label.
        label: Label,
        /// Whether its number is printed.
        tells: bool,
    },
}

impl Keep {
    /// The choice of the flags and the environment.
    pub fn from_flags(saving: &Saving, is_quiet: bool) -> Self {
        if saving.no_save || (saving.store.is_none() && is_set("BRUNT_NO_SAVE")) {
            return Self::Nothing;
        }
        // Of several tags with one key the last counts.
        let tags: BTreeMap<_, _> = saving.tags.iter().cloned().collect();
        let label = Label { name: saving.name.clone(), tags: tags.into_iter().collect() };
        let tells = !is_quiet && console::stderr_redraws();
        Self::Run { path: path(saving.store.as_deref()), label, tells }
    }

    /// Keeps the run, or warns that it could not. Returns its number. A run that never began is not kept.
    pub fn keep(&self, summary: &Summary) -> Option<i64> {
        let Self::Run { path, label, tells } = self else { return None };
        if summary.total.numbers.get(Counter::Due) == 0 {
            return None;
        }
        let kept = with_store(path, |store| store.save(summary, label, brunt_report::headline(summary)));
        let number = told(kept, *tells, "run ", "the run was not kept");
        if *tells && number == Some(1) && summary.answered() {
            console::note(&after_the_first(summary));
        }
        number
    }

    /// Keeps one of several runs behind a decision. Returns its number, if it was kept.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn keep_part(&self, summary: &Summary) -> Result<Option<i64>> {
        let Self::Run { path, label, .. } = self else { return Ok(None) };
        if summary.total.numbers.get(Counter::Due) == 0 {
            return Ok(None);
        }
        // The name is the decision's.
        let label = Label { name: None, ..label.clone() };
        with_store(path, |store| store.save(summary, &label, brunt_report::headline(summary))).map(Some)
    }

    /// Keeps the decision over the runs kept under these numbers, or warns that it could not. Returns its number.
    pub fn keep_decision(&self, decision: Decision<'_>, runs: &[i64]) -> Option<i64> {
        let Self::Run { path, label, tells } = self else { return None };
        let decided = KeptDecision::from_decision(decision);
        let kept = with_store(path, |store| store.save_decision(&decided, conclusion(decision), runs, label));
        told(kept, *tells, "", "what was decided was not kept")
    }
}

/// What one does after one's first run, which nothing later prints again.
fn after_the_first(summary: &Summary) -> String {
    // Scenarios have no flag for a rate.
    let next = if summary.plan.scenarios.is_some() {
        "limits that fail a run          brunt help gate".to_owned()
    } else if summary.is_open() {
        // Whoever gave a request of their own gives it again.
        let is_plain = summary.plan.protocol == ProtocolOptions::default();
        let url = if is_plain { repeat::quoted(&summary.plan.target.url()) } else { "…".to_owned() };
        format!("the highest rate that it takes  brunt find --threshold 'p99<50ms' {url}")
    } else {
        // At half of what it took, queues stay short.
        let rate = ((summary.rates.ok_per_s / 2.0) as u64).max(1);
        format!("latency as its users see it     the same with -r {rate}")
    };
    format!(
        "\nThat was your first run. What next:\n  {next}\n  this run as a page              brunt show 1 -o run.html\n  \
         the guide, step by step         brunt help first"
    )
}

/// The number under which something is kept, which is printed if `tells`; or a warning that it is not.
fn told(kept: Result<i64>, tells: bool, what: &str, warning: &str) -> Option<i64> {
    match kept {
        Ok(number) => {
            if tells {
                console::note(&format!("\nkept as {what}{number}: brunt show {number}"));
            }
            Some(number)
        }
        Err(problem) => {
            warn(warning, &problem);
            None
        }
    }
}

/// The settings of a store are flags, wherever those of the run are written.
fn warn(what: &str, problem: &anyhow::Error) {
    console::note(&format!("warning: {what}: {}", wording::render_error(problem, Settings::Flags)));
}

fn with_store(
    path: &Result<PathBuf>,
    act: impl FnOnce(&mut Store) -> std::result::Result<i64, StoreError>,
) -> Result<i64> {
    match path {
        Ok(path) => Store::open(path).and_then(|mut store| act(&mut store)).map_err(Into::into),
        Err(problem) => Err(anyhow!("{problem}")),
    }
}

fn is_set(name: &str) -> bool {
    env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0")
}

/// The file of kept runs: the named one, or the one in the user's state directory
/// (<https://specifications.freedesktop.org/basedir-spec/latest/>).
///
/// # Errors
/// When there is no such directory.
pub fn path(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = named {
        return Ok(path.to_owned());
    }
    state_directory(|name| env::var_os(name))
        .map(|directory| directory.join("brunt/runs.db"))
        .ok_or_else(|| anyhow!("there is no home directory: name a file with --store, or keep nothing with --no-save"))
}

/// By the specification, paths that are not absolute are ignored.
fn state_directory(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_directory_is_where_the_specification_says() {
        let of = |pairs: &[(&str, &str)]| {
            state_directory(|name| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()))
        };
        assert_eq!(of(&[("XDG_STATE_HOME", "/s"), ("HOME", "/h")]), Some("/s".into()));
        assert_eq!(of(&[("XDG_STATE_HOME", "s"), ("HOME", "/h")]), Some("/h/.local/state".into()));
        assert_eq!(of(&[("XDG_STATE_HOME", ""), ("HOME", "")]), None);
        assert_eq!(of(&[]), None);
    }
}
