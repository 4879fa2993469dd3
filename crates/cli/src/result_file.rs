//! Files of results, as arguments name them: `FILE`, or `FILE:NUMBER` for one of several runs in a file.

use std::path::Path;

use anyhow::{Context as _, Result};
use brunt_decide::decision::KeptDecision;
use brunt_judge::summary::Summary;
use brunt_report::{decision, json};

use crate::files;

/// The content of a file.
pub enum Written {
    /// A run.
    Run(Box<Summary>),
    /// A decision over several runs.
    Decision(Box<KeptDecision>),
}

/// Reads the file that `argument` names; `None` where it is the number or the name of a kept run instead.
///
/// # Errors
/// When the file cannot be read, has no result, or has several and none is named.
pub fn read(argument: &str) -> Result<Option<Written>> {
    if is_file(argument) {
        let bytes = files::read(Path::new(argument))?;
        let written = match decision::read(&bytes).with_context(|| argument.to_owned())? {
            Some(decided) => Written::Decision(Box::new(decided)),
            None => Written::Run(Box::new(json::read(&bytes).with_context(|| argument.to_owned())?)),
        };
        return Ok(Some(written));
    }
    let Some((path, number)) = argument.rsplit_once(':') else { return Ok(None) };
    let Some(number) = number.parse().ok().filter(|_| is_file(path)) else { return Ok(None) };
    let summary = json::read_number(&files::read(Path::new(path))?, number).with_context(|| path.to_owned())?;
    Ok(Some(Written::Run(Box::new(summary))))
}

/// Whether this is a file rather than the number or the name of a run.
fn is_file(argument: &str) -> bool {
    let path = Path::new(argument);
    argument.parse::<i64>().is_err()
        && (path.is_file() || path.extension().is_some_and(|extension| extension == "json"))
}
