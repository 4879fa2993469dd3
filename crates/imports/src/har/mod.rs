//! Recordings of browsers (HAR 1.2): requests by page with think times, and values of earlier answers carried on.

mod archive;
mod carry;
mod choice;
mod clock;
mod html;
mod source;
mod telling;
mod written;

use crate::script::Script;
use crate::value::Value;
use crate::{ImportError, Imported};

/// Options for the part of a recording that is moved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether the files that pages load are kept.
    pub assets: bool,
    /// Hosts of other sites whose requests are kept.
    pub hosts: Vec<String>,
}

/// The scenario for a recording.
pub(crate) fn import(bytes: &[u8], name: &str, options: &Options) -> Result<Imported, ImportError> {
    let document = Value::from_json(bytes)?;
    let archive = archive::read(&document)
        .ok_or_else(|| ImportError::Other("it is JSON, but not an HTTP archive: it has no log.entries".to_owned()))?;
    drop(document);
    let mut script = Script::default();
    let choice = choice::choose(&archive.entries, options, &mut script).ok_or_else(|| {
        let more = script.left.first().map_or_else(String::new, |left| format!(": {left}"));
        ImportError::Nothing(format!("no request in it can be made{more}"))
    })?;
    Ok(written::write(&archive, &choice, options, script, name))
}

#[cfg(test)]
mod tests;
