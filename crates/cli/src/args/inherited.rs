//! Inherited flags, which a run has without them being on its command line: from variables `BRUNT_*` of the
//! environment, and from a `brunt.toml` beside its script. The command line comes before the environment, that before
//! the file.

mod file;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use file::BARRED;
pub use file::{COMMANDS, is_repeatable};

use crate::args::program::nearest;
use crate::files;

/// The name of the file beside a script.
pub const FILE: &str = "brunt.toml";
/// The variable that names another file, or disables the file.
pub const FILE_VARIABLE: &str = "BRUNT_CONFIG";
/// How names of variables begin.
const PREFIX: &str = "BRUNT_";
/// Variables that are mere defaults, which a repeated command does not name. The code that needs one reads it.
const DEFAULTS: [&str; 2] = ["no-save", "max-error-rate"];

/// Where a flag comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A variable of the environment.
    Variable(String),
    /// A line of a file.
    Line(PathBuf, usize),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "{name}"),
            Self::Line(path, line) => write!(f, "{}, line {line}", path.display()),
        }
    }
}

/// A flag with its inherited values.
#[derive(Debug, Clone)]
pub struct Flag {
    /// Its long name.
    pub name: String,
    /// Its id in clap.
    pub id: String,
    /// Its values; empty for a switch.
    pub values: Vec<OsString>,
    /// Where it comes from.
    pub source: Source,
    /// The reason if it has no effect.
    pub idle: Option<String>,
}

/// The inheritance of a command line.
#[derive(Debug, Default)]
pub struct Inherited {
    /// Where inherited words go among the arguments.
    place: usize,
    /// Each flag, those that have no effect included.
    pub flags: Vec<Flag>,
    /// Variables that name no flag of any run.
    pub unknown: Vec<Unknown>,
}

/// A variable that names no flag of any run, and has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Its name.
    pub variable: String,
    /// The long name of the flag that it probably means, by a slip of the fingers.
    pub meant: Option<String>,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has no effect: it names no flag of a run", self.variable)?;
        self.meant.as_ref().map_or(Ok(()), |flag| write!(f, "; did you mean {}?", variable_of(flag)))
    }
}

/// The environment that flags are taken from.
pub type Variables = Vec<(String, OsString)>;

/// The variables of this process that may name flags.
pub fn variables() -> Variables {
    let named = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value));
    let mut all: Variables =
        std::env::vars_os().filter_map(named).filter(|(name, _)| name.starts_with(PREFIX)).collect();
    all.sort();
    all
}

impl Inherited {
    /// The flags that `words`, beginning with the program's name, inherit. `definitions` have the flags of their command, and `whole`
    /// returns those of all.
    ///
    /// # Errors
    /// When the file cannot be read, or names an unknown flag.
    pub fn read(
        definitions: &Command,
        whole: &dyn Fn() -> Result<Command>,
        words: &[OsString],
        variables: &Variables,
    ) -> Result<Self> {
        // Mistakes in the words themselves are reported when all are read.
        let Ok(matches) = definitions.clone().ignore_errors(true).try_get_matches_from(words) else {
            return Ok(Self::default());
        };
        let mut definitions = definitions.clone();
        definitions.build();
        let (name, command, given, place) = match matches.subcommand() {
            None => ("bench", &definitions, &matches, 1),
            Some((name, given)) if COMMANDS.contains(&name) => match definitions.find_subcommand(name) {
                Some(command) => (name, command, given, 2),
                None => return Ok(Self::default()),
            },
            Some(_) => return Ok(Self::default()),
        };
        let mut inherited = Self { place, ..Self::default() };
        for (variable, value) in variables.iter().filter(|(name, value)| name != FILE_VARIABLE && !value.is_empty()) {
            inherited.take_variable(whole, command, variable, value)?;
        }
        if let Some(path) = path(given, variables) {
            let text = files::read_text(&path)?;
            let all = whole()?;
            let entries =
                file::entries(&text, name, &|flag| known(&all, flag)).with_context(|| path.display().to_string())?;
            for (entry, line) in entries {
                if let Some(arg) = flag(command, &entry.name) {
                    let values = entry.values(arg).with_context(|| format!("{}, line {line}", path.display()))?;
                    let source = Source::Line(path.clone(), line);
                    inherited.flags.extend(values.map(|values| Flag::new(arg, values, source)));
                }
            }
        }
        inherited.settle(command, given);
        Ok(inherited)
    }

    fn take_variable(
        &mut self,
        whole: &dyn Fn() -> Result<Command>,
        command: &Command,
        variable: &str,
        value: &OsStr,
    ) -> Result<()> {
        let name = variable.strip_prefix(PREFIX).unwrap_or(variable).to_lowercase().replace('_', "-");
        let Some(arg) = flag(command, &name) else {
            let all = whole()?;
            if !is_known(&all, &name) {
                let meant = nearest_flag(&all, &name).map(str::to_owned);
                self.unknown.push(Unknown { variable: variable.to_owned(), meant });
            }
            return Ok(());
        };
        let source = Source::Variable(variable.to_owned());
        if arg.get_action().takes_values() {
            self.flags.push(Flag::new(arg, vec![value.to_owned()], source));
            return Ok(());
        }
        match &*value.to_string_lossy() {
            "1" | "true" | "yes" => self.flags.push(Flag::new(arg, Vec::new(), source)),
            "0" | "false" | "no" => {}
            other => bail!("{variable}={other}: --{name} takes no value: set {variable}=1, or leave it out"),
        }
        Ok(())
    }

    /// Marks each flag that an earlier source leaves without effect.
    fn settle(&mut self, command: &Command, given: &ArgMatches) {
        let written: Vec<&Arg> = command.get_arguments().filter(|arg| is_given(given, arg.get_id().as_str())).collect();
        let mut before: Vec<(String, Source)> = Vec::new();
        for flag in &mut self.flags {
            let same = |arg: &&&Arg| arg.get_id().as_str() == flag.id;
            let stands_against = |arg: &&&Arg| conflict(command, arg.get_id().as_str(), &flag.id);
            flag.idle = if written.iter().any(|arg| same(&arg)) {
                Some("the command line has it".to_owned())
            } else if let Some(arg) = written.iter().find(stands_against) {
                let name = arg.get_long().map_or_else(|| arg.get_id().to_string(), |long| format!("--{long}"));
                Some(format!("it cannot stand beside {name} of the command line"))
            } else if let Some((_, source)) =
                before.iter().find(|(id, _)| *id == flag.id || conflict(command, id, &flag.id))
            {
                Some(format!("{source} comes before it"))
            } else {
                before.push((flag.id.clone(), flag.source.clone()));
                None
            };
        }
    }

    /// The flags that have an effect.
    pub fn used(&self) -> impl Iterator<Item = &Flag> {
        self.flags.iter().filter(|flag| flag.idle.is_none())
    }

    /// The words with their inherited flags.
    pub fn applied(&self, words: Vec<OsString>) -> Vec<OsString> {
        let mut words = words;
        let more: Vec<OsString> =
            self.used().filter(|flag| !DEFAULTS.contains(&&*flag.name)).flat_map(Flag::words).collect();
        let place = self.place.min(words.len());
        words.splice(place..place, more);
        words
    }

    /// Remarks on variables without effect. One that nearly names a flag is a slip, and is reported even with `quiet`.
    pub fn ignored(&self, quiet: bool) -> impl Iterator<Item = String> {
        let said = self.unknown.iter().filter(move |unknown| !quiet || unknown.meant.is_some());
        said.map(|unknown| format!("note: {unknown}"))
    }

    /// The file that affects the run, and the flags from it.
    pub fn note(&self) -> Option<String> {
        let mut names = self.used().filter_map(|flag| match &flag.source {
            Source::Line(path, _) => Some((path, format!("--{}", flag.name))),
            Source::Variable(_) => None,
        });
        let (path, first) = names.next()?;
        let names: Vec<_> = std::iter::once(first).chain(names.map(|(_, name)| name)).collect();
        Some(format!("note: {} gives {} (brunt config shows all)", path.display(), names.join(", ")))
    }

    /// The source of a flag that an error names; `None` for the command line.
    pub fn source(&self, named: &str) -> Option<String> {
        let flag = self.used().find(|flag| {
            named
                .strip_prefix("--")
                .and_then(|rest| rest.split([' ', '=']).next())
                .is_some_and(|long| long == flag.name)
        })?;
        Some(format!("--{} comes from {}", flag.name, flag.source))
    }
}

impl Flag {
    fn new(arg: &Arg, values: Vec<OsString>, source: Source) -> Self {
        let name = arg.get_long().unwrap_or_default().to_owned();
        Self { name, id: arg.get_id().to_string(), values, source, idle: None }
    }

    /// The flag as on a command line.
    fn words(&self) -> Vec<OsString> {
        let flag = OsString::from(format!("--{}", self.name));
        if self.values.is_empty() {
            return vec![flag];
        }
        let with = |value: &OsString| {
            let mut word = flag.clone();
            word.push("=");
            word.push(value);
            word
        };
        self.values.iter().map(with).collect()
    }
}

/// The file of the run's flags, if there is one.
fn path(given: &ArgMatches, variables: &Variables) -> Option<PathBuf> {
    if let Some((_, named)) = variables.iter().find(|(name, _)| name == FILE_VARIABLE) {
        return (!named.is_empty()).then(|| PathBuf::from(named));
    }
    let first = |id: &str| given.try_get_raw(id).ok().flatten()?.next();
    let script = first("file").or_else(|| first("script"));
    // A script may stand where a URL does.
    let script = script.or_else(|| first("url").filter(|url| Path::new(url).is_file()))?;
    let beside = Path::new(script).parent().unwrap_or(Path::new("")).join(FILE);
    beside.is_file().then_some(beside)
}

/// The flag of a command by its long name, unless only the command line has it.
pub fn flag<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|arg| arg.get_long() == Some(name) && !BARRED.contains(&name))
}

/// The commands that inherit flags, by name.
pub fn commands(all: &Command) -> impl Iterator<Item = (&'static str, &Command)> {
    COMMANDS.into_iter().filter_map(|name| Some((name, all.find_subcommand(name)?)))
}

/// Whether any command that makes runs has this flag.
fn is_known(all: &Command, name: &str) -> bool {
    commands(all).any(|(_, command)| flag(command, name).is_some())
}

/// Whether a flag of this name exists; otherwise the nearest one.
fn known<'a>(all: &'a Command, name: &str) -> Result<(), Option<&'a str>> {
    if is_known(all, name) { Ok(()) } else { Err(nearest_flag(all, name)) }
}

/// The flag of a command that makes runs that this name is a slip of the fingers away from.
fn nearest_flag<'a>(all: &'a Command, name: &str) -> Option<&'a str> {
    let flags = commands(all).flat_map(|(_, command)| command.get_arguments());
    let flags = flags.filter(|arg| !arg.is_hide_set()).filter_map(Arg::get_long).filter(|long| !BARRED.contains(long));
    nearest(name, flags)
}

/// The variable that gives this flag.
fn variable_of(flag: &str) -> String {
    format!("{PREFIX}{}", flag.to_uppercase().replace('-', "_"))
}

/// Whether the command line has it.
pub fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches.try_contains_id(id).is_ok() && matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// Whether two different arguments cannot stand beside each other.
pub(super) fn conflict(command: &Command, one: &str, other: &str) -> bool {
    let bars = |one: &str, other: &str| {
        let arg = command.get_arguments().find(|arg| arg.get_id() == one);
        arg.is_some_and(|arg| command.get_arg_conflicts_with(arg).iter().any(|barred| barred.get_id() == other))
    };
    one != other && (bars(one, other) || bars(other, one))
}

#[cfg(test)]
mod tests;
