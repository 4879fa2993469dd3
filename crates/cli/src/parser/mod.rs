//! The whole command line: the program's own flags, its commands, and the help.

mod foreign_flags;
mod short;

use std::ffi::OsString;

use anyhow::Result;
use brunt_protocol::Registry;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser};

pub use short::shown;

use crate::args::inherited::{self, Inherited};
use crate::args::program::nearest;
use crate::args::{Bench, Program, ProtocolFlags, flags, secrets};
use crate::commands::{self, Command, bench};
use crate::console;
use crate::exit::Exit;
use crate::version;
use crate::wording::Settings;

const EXAMPLES: &str = "\
Examples:
  brunt demo                          see it work, without a server
  brunt http://localhost:8080/        64 connections, as fast as it goes, 10 s
  brunt -r 2000 -d 30s URL            2,000 requests a second, come what may
  brunt -r 0..5k/1m --threshold 'p99<50ms' URL
                                      ramp up; exit status 1 at 50 ms or more
  brunt -n 10k -o run.json URL        10,000 requests, every figure into a file

Exit status:
  0    done, and every threshold held
  1    a threshold failed, or more than 1% of calls failed
  2    the command line or a file was wrong
  3    the target never answered
  4    an agent was lost (without --on-lost-agent continue), or too few joined
  130  Ctrl-C ended the run early, with its full report; pressed twice, at once (143: SIGTERM)";

/// Puts load on a network service and tells the truth about what happened
#[derive(Debug, Parser)]
#[command(name = "brunt", bin_name = "brunt", version, about, after_help = EXAMPLES)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, arg_required_else_help = true)]
#[command(disable_help_subcommand = true, max_term_width = 80, override_usage = USAGE)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    bench: Bench,
}

/// The formats of results that are printed for people.
const FOR_PEOPLE: [&str; 2] = ["text", "wrk"];

/// Whether the command prints its result for a program.
pub fn prints_for_programs(given: &ArgMatches) -> bool {
    let given = given.subcommand().map_or(given, |(_, given)| given);
    let format = given.try_get_raw("format").ok().flatten().and_then(|mut formats| formats.next_back());
    format.is_some_and(|format| !FOR_PEOPLE.iter().any(|name| format == *name))
}

const USAGE: &str = "brunt [bench] [OPTIONS] URL\n       brunt [bench] --plan FILE [OPTIONS]\n       brunt COMMAND …";

impl Args {
    /// The place of the settings of the command's run.
    pub fn settings(&self) -> Settings {
        let bench = match &self.command {
            None => &self.bench,
            Some(Command::Bench(bench)) => bench,
            Some(_) => return Settings::Flags,
        };
        if bench.kept.plan.is_some() { Settings::PlanFile } else { Settings::Flags }
    }

    /// Runs the command.
    ///
    /// # Errors
    /// For any mistake in the command line or a file, and any failure of a run.
    pub fn run(self, program: &Program) -> Result<Exit> {
        match self.command {
            None => bench::run(&self.bench, program),
            Some(command) => command.run(program),
        }
    }
}

/// The definitions, with the flags of the registry's protocols.
///
/// # Errors
/// When a protocol wants a flag that is taken.
pub fn definitions(registry: &Registry) -> Result<clap::Command> {
    completed(Args::command(), registry, |_| true)
}

/// The same, where of the commands only the one that these words name has its flags; the others have their names alone. `None` if that
/// one looks at the others.
fn definitions_for(registry: &Registry, words: &[OsString]) -> Option<clap::Command> {
    let mut command = Args::command();
    let named = words.get(1).and_then(|word| command.find_subcommand(word)).map(|named| named.get_name().to_owned());
    if named.as_deref().is_some_and(|named| commands::LOOK_AT_OTHERS.contains(&named)) {
        return None;
    }
    let is_named = |name: &str| named.as_deref() == Some(name);
    for below in command.get_subcommands_mut().filter(|below| !is_named(below.get_name())) {
        let aliases: Vec<_> = below.get_all_aliases().map(str::to_owned).collect();
        *below = clap::Command::new(below.get_name().to_owned()).aliases(aliases);
    }
    completed(command, registry, is_named).ok()
}

/// Adds what the derived definitions lack; to the commands that are `wanted` only.
fn completed(command: clap::Command, registry: &Registry, wanted: impl Fn(&str) -> bool) -> Result<clap::Command> {
    flags::check(&command, registry)?;
    let command = command.version(version::short()).long_version(version::long(registry));
    let with = |command| flags::add(command, registry);
    let with_runs = commands::WITH_RUNS.into_iter().filter(|name| wanted(name));
    let command = with_runs.fold(with(command), |command, name| command.mut_subcommand(name, with));
    Ok(short::apply(commands::curl::defined(command)))
}

/// The definitions by which the process's arguments were parsed, with the parsed arguments and the values given.
pub type Parsed = (clap::Command, Result<(Args, ArgMatches), clap::Error>);

/// Parses the arguments of the process. A mistake in them, and the help that they ask for, are clap's message.
///
/// # Errors
/// When a protocol wants a flag that is taken.
pub fn parsed(registry: &Registry) -> Result<Parsed> {
    let words: Vec<OsString> = std::env::args_os().collect();
    if let [_, word] = words.as_slice()
        && ["-V", "--version"].iter().any(|version| word == version)
    {
        let command = clap::Command::new("brunt").version(version::short()).long_version(version::long(registry));
        if let Err(version) = command.clone().try_get_matches_from(&words) {
            return Ok((command, Err(version)));
        }
    }
    // Making all definitions takes longer than parsing by them. Messages name flags of other commands, and need them.
    if let Some(definitions) = definitions_for(registry, &words)
        && let Ok(read) = read(&definitions, registry, words.clone())
    {
        return Ok((definitions, Ok(read)));
    }
    let definitions = definitions(registry)?;
    let read = read(&definitions, registry, words);
    Ok((definitions, read))
}

/// The parsed arguments of the process, and the values given.
///
/// # Errors
/// clap's message: a mistake in them, or the help that they ask for.
fn read(
    definitions: &clap::Command,
    registry: &Registry,
    words: Vec<OsString>,
) -> Result<(Args, ArgMatches), clap::Error> {
    let command = words.get(1).and_then(|word| word.to_str()).and_then(|word| definitions.find_subcommand(word));
    let command = command.map(clap::Command::get_name);
    // The words of a curl command are curl's.
    if let Some(said) =
        foreign_flags::refused(&words, command, &long_flags(definitions)).filter(|_| command != Some("curl"))
    {
        return Err(clap::Error::raw(ErrorKind::UnknownArgument, said + "\n"));
    }
    let curl = commands::curl::expanded(&words)
        .map_err(|error| clap::Error::raw(ErrorKind::ValueValidation, format!("{error:#}\n")))?;
    let words = curl.unwrap_or(words);
    let words = commands::llm::expanded(&words, commands::llm::has_key()).unwrap_or(words);
    let whole = || self::definitions(registry);
    let inherited = Inherited::read(definitions, &whole, &words, &inherited::variables())
        .map_err(|error| clap::Error::raw(ErrorKind::ValueValidation, format!("{error:#}\n")))?;
    let words = inherited.applied(words);
    let matches = definitions.clone().try_get_matches_from(&words).map_err(|error| {
        let source = invalid(&error).and_then(|named| inherited.source(named));
        let error = with_suggestion(foreign_flags::with_way(error, &words, command), &long_flags(definitions));
        with_source(secrets::without_secrets(error, registry), source)
    })?;
    let args = args(&matches, registry)?;
    let run = matches.subcommand().map_or(&matches, |(_, below)| below);
    let quiet = matches!(run.try_get_one("quiet"), Ok(Some(true)));
    let notes = inherited.note().filter(|_| !quiet).into_iter().chain(inherited.ignored(quiet));
    notes.for_each(|note| console::note(&note));
    Ok((args, matches))
}

/// The flag that an error is about.
fn invalid(error: &clap::Error) -> Option<&str> {
    match error.get(ContextKind::InvalidArg)? {
        ContextValue::String(named) => Some(named),
        ContextValue::Strings(named) => named.first().map(String::as_str),
        _ => None,
    }
}

/// Adds the source of the error's flag, unless that is the command line.
fn with_source(error: clap::Error, source: Option<String>) -> clap::Error {
    let Some(source) = source else { return error };
    let said = error.to_string();
    let said = said.strip_prefix("error: ").unwrap_or(&said);
    clap::Error::raw(error.kind(), format!("{}\n{source}\n", said.trim_end()))
}

/// The arguments in `matches`, protocols' flags included.
fn args(matches: &ArgMatches, registry: &Registry) -> Result<Args, clap::Error> {
    let mut args = Args::from_arg_matches(matches)?;
    match (&mut args.command, matches.subcommand()) {
        (Some(command), Some((_, matches))) => command.fill(matches, registry),
        _ => args.bench.protocol = ProtocolFlags::new(matches, registry),
    }
    Ok(args)
}

/// The long flags of a command, or of the one below it that the process's arguments name, without the hidden ones.
fn long_flags(command: &clap::Command) -> Vec<String> {
    let mut named = command;
    for word in std::env::args_os().skip(1) {
        match named.find_subcommand(&word) {
            Some(sub) => named = sub,
            None => break,
        }
    }
    let shown = named.get_arguments().filter(|arg| !arg.is_hide_set());
    shown.filter_map(clap::Arg::get_long).map(str::to_owned).collect()
}

/// Replaces clap's suggestion by one that is near enough (clap suggests --duration for --data), or removes it.
fn with_suggestion(mut error: clap::Error, flags: &[String]) -> clap::Error {
    let unknown = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag)) if error.kind() == ErrorKind::UnknownArgument => flag.clone(),
        _ => return error,
    };
    let Some(word) = unknown.strip_prefix("--") else { return error };
    match nearest(word, flags.iter().map(String::as_str)) {
        Some(flag) => error.insert(ContextKind::SuggestedArg, ContextValue::String(format!("--{flag}"))),
        None => error.remove(ContextKind::SuggestedArg),
    };
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::repeat;

    #[test]
    fn the_definitions_are_consistent() {
        definitions(&crate::built_in()).unwrap().debug_assert();
    }

    #[test]
    fn words_mean_the_same_without_the_flags_of_other_commands() {
        let registry = crate::built_in();
        let whole = definitions(&registry).unwrap();
        let names = whole.get_subcommands().map(|command| command.get_name().to_owned());
        for name in names.chain(["-c".to_owned()]) {
            let words = ["brunt", &name].map(OsString::from);
            let Some(pruned) = definitions_for(&registry, &words) else {
                assert!(commands::LOOK_AT_OTHERS.contains(&&*name), "{name}");
                continue;
            };
            let shown = |command: &clap::Command| {
                let args: Vec<_> = command.get_arguments().map(|arg| format!("{arg:?}")).collect();
                let mut below: Vec<_> = command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
                below.sort();
                (args, below, command.get_all_aliases().map(str::to_owned).collect::<Vec<_>>())
            };
            assert_eq!(shown(&pruned), shown(&whole));
            for one in pruned.get_subcommands() {
                let other = whole.find_subcommand(one.get_name()).unwrap();
                let (one_shown, other_shown) = (shown(one), shown(other));
                assert_eq!(one_shown.2, other_shown.2, "aliases of {}", one.get_name());
                assert!(one.get_name() != name || one_shown == other_shown, "{name}");
                assert!(one.get_name() == name || one_shown.0.len() == 2, "its help alone");
            }
        }
    }

    #[test]
    fn every_command_that_makes_runs_can_be_repeated() {
        let registry = crate::built_in();
        let definitions = definitions(&registry).unwrap();
        for (line, expected) in [
            ("-c 2 http://a/", "brunt --seed 7 -c 2 http://a/"),
            ("bench --seed 9 -c 2 -o a.html http://a/", "brunt -c 2 --seed 9 http://a/"),
            ("sweep -c 1..8 -d1s --html a.html http://a/", "brunt sweep --seed 7 -c 1..8 -d 1s http://a/"),
            ("sweep --vary timeout=1..8s http://a/", "brunt sweep --seed 7 --vary timeout=1..8s http://a/"),
            (
                "find --threshold 'p99<50ms' --from 5 --keep d --name n --basic me:pw http://me:pw@a/",
                "brunt find --seed 7 --threshold 'p99<50ms' --from 5 --basic [redacted] http://[redacted]@a/",
            ),
            (
                "compare --rounds 12 http://a/ http://b/ --fail-if 'p99 > 1.05x'",
                "brunt compare --seed 7 --rounds 12 --fail-if 'p99 > 1.05x' http://a/ http://b/",
            ),
            (
                "compare http://a/ --a '-c 1' --b \"-c 2 -H 'Authorization: Bearer abc'\"",
                "brunt compare --seed 7 --a '-c 1' --b \"-c 2 -H 'Authorization: [redacted]'\" http://a/",
            ),
            (
                "run shop.lua -v --scale 2x --env N=3 --env API_TOKEN=abc --env PASSWORD=@PW --log l --tag a=b",
                "brunt run --seed 7 --scale 2x --env N=3 --env API_TOKEN=[redacted] --env PASSWORD=@PW shop.lua",
            ),
            ("-s a.lua http://a/ -- abcdef 3", "brunt --seed 7 -s a.lua http://a/ -- [redacted] 3"),
        ] {
            let words = ["brunt".to_owned()].into_iter().chain(shlex::split(line).unwrap());
            let given = definitions.clone().try_get_matches_from(words).unwrap();
            let program = Program { registry: registry.clone(), definitions: definitions.clone(), given: Some(given) };
            assert_eq!(repeat::of_process(&program, Some(7)), expected, "{line}");
        }
    }
}
