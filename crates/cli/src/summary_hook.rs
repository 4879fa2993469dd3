//! The results of a script's `brunt.handle_summary`: texts for files, or for standard output.

use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use brunt_judge::summary::Summary;
use brunt_protocol::Registry;

use crate::{console, files};

/// The name that stands for standard output, as for k6.
const STDOUT: &str = "stdout";
/// The name that stands for standard error, likewise.
const STDERR: &str = "stderr";

/// Writes the results of the script's function for `summary`: files only in these directories.
///
/// # Errors
/// When the script fails, or a file must not be written or cannot be.
pub fn write(summary: &Summary, registry: &Registry, allowed: &[PathBuf]) -> Result<()> {
    let Some(scenarios) = &summary.plan.scenarios else { return Ok(()) };
    let Some(texts) = crate::scripts::handle_summary(summary, scenarios, registry)? else {
        return Ok(());
    };
    for (name, text) in &texts {
        if name == STDOUT {
            console::print(text)?;
        } else if name == STDERR {
            console::note(String::from_utf8_lossy(text).trim_end());
        } else {
            let path = Path::new(name);
            if let Err(error) = check_allowed(path, allowed) {
                // What the run's load has paid for is not lost.
                console::print(text)?;
                return Err(error);
            }
            files::write(path, text).context("brunt.handle_summary")?;
        }
    }
    Ok(())
}

/// Checks that a file lies in one of these directories, links followed.
fn check_allowed(path: &Path, allowed: &[PathBuf]) -> Result<()> {
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let name = path.display();
    let Ok(directory) = directory.canonicalize() else {
        bail!("brunt.handle_summary: cannot write {name}: there is no directory {}", directory.display());
    };
    let is_plain = matches!(path.components().next_back(), Some(Component::Normal(_)));
    let target = path.canonicalize().unwrap_or_else(|_| directory.join(path.file_name().unwrap_or_default()));
    let is_within = |known: &PathBuf| known.canonicalize().is_ok_and(|known| target.starts_with(&known));
    if is_plain && allowed.iter().any(is_within) {
        return Ok(());
    }
    bail!("brunt.handle_summary: the script may not write {name}: allow it by --allow-write {}", directory.display());
}
