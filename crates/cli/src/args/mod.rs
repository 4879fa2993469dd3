//! The command line as it is written: raw flags, typed but not yet checked against each other. [`crate::plan`] makes
//! one validated plan of them.

pub mod bench;
pub mod compare;
pub mod find;
pub mod flags;
pub mod grpc;
pub mod kept;
pub mod machines;
pub mod repeat;
pub mod run;
pub mod secrets;
pub mod serve;
pub mod short;
pub mod sweep;
pub mod values;
pub mod words;
pub mod wrk;

use std::path::PathBuf;

use anyhow::Result;
use brunt_protocol::Registry;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub use bench::{Bench, Load, Output, Saving, Tls};
pub use compare::Compare;
pub use find::Find;
pub use flags::ProtocolFlags;
pub use kept::{Report, Runs, Show, Ui};
pub use serve::{Grpc, Http, Serve, ServeTls, Server, Thrift, Ws};
pub use sweep::Sweep;

use crate::commands::coalescing;
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
  1    a threshold failed
  2    the command line or a file was wrong
  3    the target never answered
  4    an agent was lost, and the run was to end then; or too few agents came
  130  Ctrl-C ended the run early, with its full report; pressed twice, at once (143: SIGTERM)";

/// Puts load on a network service and tells the truth about what happened
#[derive(Debug, Parser)]
#[command(name = "brunt", bin_name = "brunt", version, about, after_help = EXAMPLES)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, arg_required_else_help = true)]
#[command(disable_help_subcommand = true, max_term_width = 100, override_usage = USAGE)]
pub struct Args {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub bench: Bench,
}

impl Args {
    /// Where the command's run has its settings from.
    pub fn settings(&self) -> Settings {
        let bench = match &self.command {
            None => &self.bench,
            Some(Command::Bench(bench)) => bench,
            Some(_) => return Settings::Flags,
        };
        if bench.kept.plan.is_some() { Settings::PlanFile } else { Settings::Flags }
    }
}

const USAGE: &str = "brunt [bench] [OPTIONS] URL\n       brunt [bench] --plan FILE [OPTIONS]\n       brunt COMMAND …";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Put load on a target (the same as without this word)
    #[command(override_usage = "brunt [bench] [OPTIONS] URL\n       brunt [bench] --plan FILE [OPTIONS]")]
    Bench(Box<Bench>),
    /// Make a run for each of several values of a flag, and find where throughput bends
    #[command(override_usage = "brunt sweep -c 1..4096 [OPTIONS] URL")]
    Sweep(Box<Sweep>),
    /// Find the highest rate that meets thresholds
    #[command(override_usage = "brunt find --threshold 'p99<50ms' [OPTIONS] URL")]
    Find(Box<Find>),
    /// Put load on a target by virtual users, who do what a script of scenarios says
    Run(Box<run::Run>),
    /// Compare two targets, two ways to load one, or results: does B differ from A?
    #[command(
        override_usage = "brunt compare [OPTIONS] URL_A URL_B\n       brunt compare [OPTIONS] URL --a FLAGS --b FLAGS\n       brunt compare [OPTIONS] RESULT_A RESULT_B"
    )]
    Compare(Box<Compare>),
    /// Write a commented scenario to begin with
    New(New),
    /// Write annotations of the scenarios' library, for editors with a Lua language server
    Types(Types),
    /// Run the built-in target, to aim at
    Serve(Serve),
    /// Look at what a gRPC server tells of its schema by reflection
    Grpc(Box<grpc::Inspect>),
    #[command(flatten)]
    Coalescing(coalescing::Command),
    /// Watch a target freeze, by the closed and by the open model: 10 seconds
    Demo(Demo),
    /// Print a topic of the guide, or what a command does
    Help(Help),
    /// Carry out a part of runs that other brunts are told to make: an agent, which waits for them
    Agent(Box<machines::Agent>),
    /// List the agents that wait for runs
    Agents(machines::Agents),
    /// List the runs that were kept, or forget some
    Runs(Runs),
    /// Print a run that was kept, in any format
    Show(Show),
    /// Make the report page of a run that was kept
    Report(Report),
    /// Look through the runs that were kept, in a browser
    Ui(Ui),
    /// Print a completion script for a shell
    Completions(Completions),
    /// Print the manual pages
    Man(Man),
    /// Print the JSON Schema of a document that brunt writes
    Schema(Schema),
}

/// The definitions, with the flags of the registry's protocols.
///
/// # Errors
/// When a protocol wants a flag that is taken.
pub fn command(registry: &Registry) -> Result<clap::Command> {
    Ok(short::apply(flags::add(Args::command(), registry)?, registry))
}

/// What the process's arguments ask for.
///
/// # Errors
/// What clap has to say: what is wrong with them, or the help that they ask for.
pub fn read(command: clap::Command, registry: &Registry) -> Result<Args, clap::Error> {
    let flags = long_flags(&command);
    let matches = command
        .try_get_matches()
        .map_err(|error| secrets::without_secrets(with_suggestion(error, &flags), registry))?;
    of(&matches, registry)
}

/// The long flags of a command, or of the one below it that the process's arguments name, without the hidden ones.
fn long_flags(command: &clap::Command) -> Vec<String> {
    let mut named = command;
    for word in std::env::args().skip(1) {
        match named.find_subcommand(&word) {
            Some(sub) => named = sub,
            None => break,
        }
    }
    let shown = named.get_arguments().filter(|arg| !arg.is_hide_set());
    shown.filter_map(clap::Arg::get_long).map(str::to_owned).collect()
}

/// Puts in the place of clap's suggestion one that is near enough to be meant (clap takes --data for --duration), or none.
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

/// What stands in `matches`, protocols' flags included.
fn of(matches: &clap::ArgMatches, registry: &Registry) -> Result<Args, clap::Error> {
    let mut args = Args::from_arg_matches(matches)?;
    match (&mut args.command, matches.subcommand()) {
        (Some(Command::Bench(bench)), Some((_, matches))) => bench.protocol = ProtocolFlags::of(matches, registry),
        (Some(Command::Find(find)), Some((_, matches))) => find.words.fill(matches, registry),
        (Some(Command::Sweep(sweep)), Some((_, matches))) => sweep.words.0.fill(matches, registry),
        (Some(Command::Compare(compare)), Some((_, matches))) => compare.words.fill(matches, registry),
        (None, _) => args.bench.protocol = ProtocolFlags::of(matches, registry),
        _ => {}
    }
    Ok(args)
}

/// Whether a command is called that.
pub fn is_command(name: &str) -> bool {
    Command::has_subcommand(name)
}

/// The command that is meant by a word that looks like one but for a slip of the fingers.
pub fn mistyped(word: &str) -> Option<String> {
    let commands = Args::command();
    let names = commands.get_subcommands().map(clap::Command::get_name);
    nearest(word, names).map(str::to_owned)
}

/// The one of `known` that `word` is a slip of the fingers away from: one letter in three, at most, is wrong, too many,
/// missing or exchanged with the next.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = (word.chars().count() / 3).clamp(1, 3);
    let near = known.map(|name| (strsim::damerau_levenshtein(word, name), name)).filter(|(slips, _)| *slips <= most);
    near.min().map(|(_, name)| name)
}

#[derive(Debug, clap::Args)]
pub struct Demo {
    /// Connections of the closed model
    #[arg(short, long, value_name = "N", value_parser = values::connections, default_value = "4")]
    pub connections: u32,
    /// Requests a second of the open model
    #[arg(short, long, value_name = "R", value_parser = find::rate, default_value = "1000")]
    pub rate: f64,
    /// How long both run
    #[arg(short, long, value_name = "T", value_parser = values::positive_duration, default_value = "10s")]
    pub duration: u64,
    /// Write the report page of the open model into this file
    #[arg(long, value_name = "FILE", default_value = "brunt-demo.html")]
    pub html: PathBuf,
}

#[derive(Debug, clap::Args)]
pub struct Help {
    /// A topic or a command, with the command below it; without one, the list of them
    #[arg(value_name = "TOPIC")]
    pub words: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub struct New {
    /// The file to write, which must not be there
    #[arg(value_name = "FILE", default_value = "scenario.lua")]
    pub file: PathBuf,
}

#[derive(Debug, clap::Args)]
pub struct Types {
    /// The file to write, beside the scenarios; - for standard output
    #[arg(value_name = "FILE", default_value = "brunt.d.lua")]
    pub file: PathBuf,
}

#[derive(Debug, clap::Args)]
pub struct Completions {
    /// Which shell
    pub shell: Shell,
}

#[derive(Debug, clap::Args)]
pub struct Schema {
    /// Which document
    pub document: Document,
}

/// A document that brunt writes as JSON.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Document {
    /// The result of a run
    Result,
    /// What sweep, find or compare decided
    Decision,
}

#[derive(Debug, clap::Args)]
pub struct Man {
    /// Write a page for each command into this directory instead (brunt.1, brunt-serve-http.1, …)
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}
