//! `brunt.toml`: names of flags without their dashes, for all commands that make runs, and in a table for one of them.

use std::borrow::Cow;
use std::ffi::OsString;
use std::ops::Range;

use anyhow::{Result, anyhow, bail};
use clap::{Arg, ArgAction};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The commands that make runs: only these inherit flags. Each has a table of its own in `brunt.toml`.
pub const COMMANDS: [&str; 5] = ["bench", "run", "find", "compare", "sweep"];
/// Flags that only the command line may have: the target of the run, and help.
pub const BARRED: [&str; 7] = ["script", "plan", "a", "b", "help", "help-all", "version"];

/// Whether a flag may be given several times.
pub fn is_repeatable(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Append)
}

/// An entry: the name of a flag, and its value.
#[derive(Debug)]
pub struct Entry {
    pub name: String,
    value: Value,
}

#[derive(Debug)]
enum Value {
    Switch(bool),
    Text(String),
    List(Vec<String>),
}

/// Whether a run has a flag of this name; otherwise the nearest one.
pub type Known<'a> = dyn Fn(&str) -> Result<(), Option<&'a str>> + 'a;

/// The entries for a command, each with its line; those of its own table come first.
///
/// # Errors
/// For text that is not TOML, or a name that is not a flag of a run, with its line.
pub fn entries(text: &str, command: &str, known: &Known<'_>) -> Result<Vec<(Entry, usize)>> {
    let whole = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or_else(String::new, |span| format!("{}: ", position(text, &span)));
        anyhow!("{at}{}", error.message())
    })?;
    let mut own = Vec::new();
    let mut common = Vec::new();
    for (key, value) in whole.get_ref() {
        let name: &str = key.get_ref();
        let place = || position(text, &key.span());
        match value.get_ref() {
            DeValue::Table(table) if COMMANDS.contains(&name) => {
                let read = in_table(text, table, known)?;
                if name == command {
                    own = read;
                }
            }
            DeValue::Table(_) => {
                bail!("{}: [{name}] is not a command that makes runs; those are {}", place(), COMMANDS.join(", "))
            }
            _ => common.push(entry(text, key, value, known)?),
        }
    }
    own.extend(common);
    Ok(own)
}

fn in_table(text: &str, table: &DeTable, known: &Known<'_>) -> Result<Vec<(Entry, usize)>> {
    table.iter().map(|(key, value)| entry(text, key, value, known)).collect()
}

fn entry(
    text: &str,
    key: &Spanned<Cow<'_, str>>,
    value: &Spanned<DeValue<'_>>,
    known: &Known<'_>,
) -> Result<(Entry, usize)> {
    let name: &str = key.get_ref();
    let place = position(text, &key.span());
    if BARRED.contains(&name) {
        bail!("{place}: {name} belongs on the command line");
    }
    if let Err(meant) = known(name) {
        match meant {
            Some(meant) => bail!("{place}: {name} is not a flag of a run; did you mean {meant}?"),
            None => {
                bail!("{place}: {name} is not a flag of a run: brunt --help-all and brunt run --help-all have them")
            }
        }
    }
    let at = |span: Range<usize>| position(text, &span);
    let value = match value.get_ref() {
        DeValue::Boolean(is_on) => Value::Switch(*is_on),
        DeValue::Array(list) => Value::List(
            list.iter()
                .map(|item| scalar(item.get_ref()).ok_or_else(|| anyhow!("{}: {WANTED}", at(item.span()))))
                .collect::<Result<_>>()?,
        ),
        other => Value::Text(scalar(other).ok_or_else(|| anyhow!("{}: {WANTED}", at(value.span())))?),
    };
    Ok((Entry { name: name.to_owned(), value }, line(text, key.span().start)))
}

const WANTED: &str = "expected a text, a number, true or false, or a list of texts and numbers";

fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.clone().into_owned()),
        // The digits as written, without the underscores that TOML allows.
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().replace('_', "")),
        DeValue::Float(number) => Some(number.as_str().replace('_', "")),
        _ => None,
    }
}

impl Entry {
    /// The values for the flag; `None` for a switch that is off.
    ///
    /// # Errors
    /// When the flag takes no such value.
    pub fn values(self, arg: &Arg) -> Result<Option<Vec<OsString>>> {
        let name = self.name;
        match (self.value, arg.get_action().takes_values()) {
            (Value::Switch(is_on), false) => Ok(is_on.then(Vec::new)),
            (Value::Text(text), true) => Ok(Some(vec![text.into()])),
            (Value::List(list), true) if is_repeatable(arg) => {
                Ok((!list.is_empty()).then(|| list.into_iter().map(Into::into).collect()))
            }
            (Value::List(_), true) => bail!("{name} takes one value, not a list"),
            (Value::Switch(_), true) => bail!("{name} takes a value, in quotes, not true or false"),
            (_, false) => bail!("{name} is true or false"),
        }
    }
}

fn line(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// The line and column of a place, from 1.
fn position(text: &str, span: &Range<usize>) -> String {
    let before = text.get(..span.start).unwrap_or(text);
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("line {}, column {column}", line(text, span.start))
}
