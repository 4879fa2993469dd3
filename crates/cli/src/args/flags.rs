//! The flags of protocols, which stand on the command line beside brunt's own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use brunt_plan::content::Content;
use brunt_plan::secret::REDACTED;
use brunt_protocol::flags::{Flag, FlagValue, FlagValues, ValueKind};
use brunt_protocol::{Protocol, Registry};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::files;

/// The values of protocols' flags, as written.
#[derive(Debug, Default, Clone)]
pub struct ProtocolFlags(Vec<(&'static str, Vec<OsString>)>);

/// Checks that every protocol's flags are compatible with those of `command`.
///
/// # Errors
/// When a protocol wants a flag that is taken.
pub fn check(command: &Command, registry: &Registry) -> Result<()> {
    for arg in args(registry) {
        let long = arg.get_long();
        let taken = |known: &&Arg| {
            known.get_long() == long || known.get_short().is_some_and(|short| Some(short) == arg.get_short())
        };
        if let Some(known) = command.get_arguments().find(taken) {
            bail!(
                "a protocol of this program declares --{}, which is taken by --{}: give it another name or letter",
                long.unwrap_or_default(),
                known.get_long().unwrap_or_default()
            );
        }
    }
    Ok(())
}

/// The definitions of a command that takes a run's flags, with every protocol's.
pub fn add(command: Command, registry: &Registry) -> Command {
    let args = args(registry);
    let ids: Vec<_> = args.iter().map(|arg| arg.get_id().clone()).collect();
    let bodies: Vec<_> = ids.iter().filter(|id| BODIES.contains(&id.as_str())).cloned().collect();
    command
        .args(args)
        .mut_arg("plan", |plan| plan.conflicts_with_all(ids))
        .mut_arg("json", |json| json.conflicts_with_all(bodies))
}

/// The flags that give requests a body.
const BODIES: [&str; 3] = [BODY, BODY_FILE, "body-lines"];
/// The flag whose value may name a file by `@`, and the flag that it stands for then.
const BODY: &str = "body";
const BODY_FILE: &str = "body-file";

/// Each flag once, with its schemes.
fn flags(registry: &Registry) -> Vec<(Flag, Vec<&'static str>)> {
    let mut all: Vec<(Flag, Vec<&'static str>)> = Vec::new();
    for protocol in registry.protocols() {
        for flag in protocol.flags() {
            match all.iter_mut().find(|(known, _)| known.name == flag.name) {
                Some((_, names)) => names.push(protocol.name()),
                None => all.push((*flag, vec![protocol.name()])),
            }
        }
    }
    all
}

/// The definitions of every protocol's flags.
fn args(registry: &Registry) -> Vec<Arg> {
    let flags = flags(registry);
    let is_known = |name: &str| flags.iter().any(|(flag, _)| flag.name == name);
    let mut args: Vec<_> = flags
        .iter()
        .map(|(flag, names)| {
            let conflicts = flag.conflicts.iter().copied().filter(|name| is_known(name));
            arg(flag).help_heading(names.join(", ")).conflicts_with_all(conflicts)
        })
        .collect();
    // Flags of several protocols come first.
    args.sort_by_key(|arg| std::cmp::Reverse(arg.get_help_heading().map(|heading| heading.matches(',').count())));
    args
}

fn arg(flag: &Flag) -> Arg {
    let mut arg = Arg::new(flag.name).long(flag.name).help(flag.help);
    // The names that curl and others use.
    arg = match flag.name {
        BODY => arg.aliases(["data", "data-raw", "data-binary"]).help(BODY_HELP),
        "method" => arg.short_alias('X').alias("request"),
        "basic" => arg.short_alias('u').alias("user"),
        _ => arg,
    };
    if let Some(short) = flag.short {
        arg = arg.short(short);
    }
    let arg = match flag.value {
        ValueKind::Nothing => return arg.action(ArgAction::SetTrue),
        ValueKind::Text(name) => arg.value_name(name),
        // A text may be a bare number.
        ValueKind::TextOrFile(name) => arg.value_name(name).allow_negative_numbers(true),
        ValueKind::Texts(name) => arg.value_name(name).action(ArgAction::Append),
        ValueKind::OneOf(name, texts) => return arg.value_name(name).value_parser(PossibleValuesParser::new(texts)),
        ValueKind::File(name) => return arg.value_name(name).value_parser(value_parser!(PathBuf)),
    };
    match flag.check {
        // The error would show the text: the check happens when the protocol gets it.
        Some(_) if flag.may_be_secret() => arg,
        Some(check) => arg.value_parser(move |text: &str| check(text).map(|()| text.to_owned())),
        None => arg,
    }
}

const BODY_HELP: &str = "The body of every request; @FILE is a file's content, - standard input, @@ a plain @";

impl ProtocolFlags {
    /// The texts of a flag.
    pub fn texts(&self, name: &str) -> impl Iterator<Item = &OsString> {
        self.0.iter().filter(move |(given, _)| *given == name).flat_map(|(_, texts)| texts)
    }

    /// The values in `matches`.
    pub fn new(matches: &ArgMatches, registry: &Registry) -> Self {
        let written = |flag: &Flag| -> Option<Vec<OsString>> {
            match flag.value {
                ValueKind::Nothing => matches.get_flag(flag.name).then(Vec::new),
                ValueKind::File(_) => matches.get_one::<PathBuf>(flag.name).map(|path| vec![path.clone().into()]),
                _ => Some(matches.get_many::<String>(flag.name)?.map(Into::into).collect()),
            }
        };
        Self(flags(registry).iter().filter_map(|(flag, _)| Some((flag.name, written(flag)?))).collect())
    }

    /// Adds this flag.
    pub fn with(mut self, name: &'static str, texts: impl IntoIterator<Item = String>) -> Self {
        let texts: Vec<OsString> = texts.into_iter().map(Into::into).collect();
        if !texts.is_empty() {
            self.0.push((name, texts));
        }
        self
    }

    /// These values with `others` laid over them: each replaces the one here, or adds to it where it is repeatable.
    #[must_use]
    pub fn overlaid(mut self, others: Self, registry: &Registry) -> Self {
        let all = flags(registry);
        for (name, texts) in others.0 {
            let adds = all.iter().any(|(flag, _)| flag.name == name && matches!(flag.value, ValueKind::Texts(_)));
            match self.0.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) if adds => known.extend(texts),
                Some((_, known)) => *known = texts,
                None => self.0.push((name, texts)),
            }
        }
        self
    }

    /// The values for the protocol of the URL's scheme, with the files that flags name.
    ///
    /// # Errors
    /// A flag of another protocol, or a file that cannot be read.
    pub fn given(&self, protocol: &dyn Protocol, scheme: &str, registry: &Registry) -> Result<FlagValues> {
        let mut given = FlagValues::default();
        for (name, texts) in &self.0 {
            let Some(flag) = protocol.flags().iter().find(|flag| flag.name == *name) else {
                bail!("--{name} belongs to {}, and the URL's scheme is {scheme}: leave it out", owners(name, registry));
            };
            if texts.is_empty() {
                given.push(*name, FlagValue::Set);
            }
            for text in texts {
                check_secret(flag, text)?;
                let is_elsewhere = *name == BODY && protocol.flags().iter().any(|flag| flag.name == BODY_FILE);
                match if is_elsewhere { body(text)? } else { Body::Text(value(flag, text)?) } {
                    Body::Text(value) => given.push(*name, value),
                    Body::Elsewhere(value) => given.push(BODY_FILE, value),
                }
            }
        }
        Ok(given)
    }
}

/// Checks a text that an error must not show.
fn check_secret(flag: &Flag, text: &OsString) -> Result<()> {
    let (Some(check), true) = (flag.check, flag.may_be_secret()) else { return Ok(()) };
    let text = text.to_string_lossy();
    let problem = check(&text).err().map(|problem| problem.replace(&*text, REDACTED));
    problem.map_or(Ok(()), |problem| bail!("--{}: {problem}", flag.name))
}

/// The schemes of the protocols that have the flag, such as `ws://, wss://`.
fn owners(name: &str, registry: &Registry) -> String {
    let owners = registry.protocols().filter(|protocol| protocol.flags().iter().any(|flag| flag.name == name));
    let schemes = owners.flat_map(|protocol| protocol.schemes()).map(|scheme| format!("{}://", scheme.name));
    schemes.collect::<Vec<_>>().join(", ")
}

fn value(flag: &Flag, text: &OsString) -> Result<FlagValue> {
    let as_text = text.to_string_lossy();
    match (flag.value, as_text.strip_prefix('@')) {
        (ValueKind::File(_), _) if as_text == "-" => standard_input(),
        (ValueKind::File(_), _) => file(Path::new(text)),
        (ValueKind::TextOrFile(_), Some(rest)) if rest.starts_with('@') => Ok(FlagValue::Text(rest.to_owned())),
        (ValueKind::TextOrFile(_), Some(path)) => file(Path::new(path)),
        _ => Ok(FlagValue::Text(as_text.into_owned())),
    }
}

/// Where a body stands.
enum Body {
    /// On the command line.
    Text(FlagValue),
    /// In a file, or on standard input.
    Elsewhere(FlagValue),
}

/// A body as curl writes it: a text, `@FILE`, or `-` for standard input.
fn body(text: &OsString) -> Result<Body> {
    let as_text = text.to_string_lossy();
    match as_text.strip_prefix('@') {
        _ if as_text == "-" || as_text == "@-" => standard_input().map(Body::Elsewhere),
        None => Ok(Body::Text(FlagValue::Text(as_text.into_owned()))),
        Some(rest) if rest.starts_with('@') => Ok(Body::Text(FlagValue::Text(rest.to_owned()))),
        Some(path) => file(Path::new(path)).map(Body::Elsewhere),
    }
}

fn standard_input() -> Result<FlagValue> {
    let content = Content(files::read_stdin()?.to_vec());
    Ok(FlagValue::File { name: "standard input".to_owned(), content })
}

fn file(path: &Path) -> Result<FlagValue> {
    Ok(FlagValue::File { name: path.display().to_string(), content: Content(files::read(path)?) })
}

#[cfg(test)]
mod tests {
    use clap::Args as _;

    use super::*;
    use crate::args::Bench;

    #[test]
    fn a_flag_that_is_taken_is_refused() {
        struct Greedy(Flag);
        impl Protocol for Greedy {
            fn name(&self) -> &'static str {
                "Greedy"
            }
            fn schemes(&self) -> &[brunt_protocol::Scheme] {
                &[]
            }
            fn flags(&self) -> &[Flag] {
                std::slice::from_ref(&self.0)
            }
            fn options(
                &self,
                _: &FlagValues,
            ) -> Result<brunt_plan::plan::ProtocolOptions, brunt_protocol::OptionsError> {
                Ok(brunt_plan::plan::ProtocolOptions::default())
            }
            fn prepare(
                &self,
                _: &brunt_plan::plan::Plan,
            ) -> Result<std::sync::Arc<dyn brunt_protocol::Prepared>, brunt_protocol::OptionsError> {
                Err(brunt_protocol::OptionsError(String::new()))
            }
        }
        for flag in [Flag::new("rate", ValueKind::Nothing, ""), Flag::new("fresh", ValueKind::Nothing, "").short('r')] {
            let mut registry = crate::built_in();
            registry.register(Greedy(flag));
            let error = check(&Bench::augment_args(Command::new("bench")), &registry).unwrap_err().to_string();
            assert!(error.contains("taken by --rate"), "{error}");
        }
    }
}
