//! The command line as it is written: raw flags, typed but not yet checked against each other. [`crate::plan`] makes
//! one validated plan of them.

pub mod bench;
pub mod coalesce_check;
pub mod compare;
pub mod find;
pub mod flags;
pub mod kept;
pub mod proxy;
pub mod run;
pub mod serve;
pub mod sweep;
pub mod values;
pub mod words;
pub mod wrk;

use std::path::PathBuf;

use anyhow::Result;
use brunt_engine::protocol::Registry;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use clap_complete::Shell;

pub use bench::{Bench, Load, Output, Saving, Tls};
pub use compare::Compare;
pub use find::Find;
pub use flags::ProtocolFlags;
pub use kept::{Report, Runs, Show};
pub use serve::{Http, Serve, ServeTls, Server, Thrift, Ws};
pub use sweep::Sweep;

const EXAMPLES: &str = "\
Examples:
  brunt demo                          see it work, without a server
  brunt http://localhost:8080/        64 connections, as fast as it goes, 10 s
  brunt -r 2000 -d 30s URL            2,000 requests a second, come what may
  brunt -r 0..5k/1m --threshold 'p99<50ms' URL
                                      ramp up; exit status 1 at 50 ms or more
  brunt -n 10k -o run.json URL        10,000 requests, every figure into a file

Exit status:
  0  done, and every threshold held
  1  a threshold failed
  2  the command line or a file was wrong
  3  the target never answered
Ctrl-C ends a run early, with its full report; pressed twice, it exits at once.";

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
    /// Run a reverse proxy that can serve identical requests in flight once
    Proxy(Box<proxy::Proxy>),
    /// Say whether a server or proxy coalesces identical requests, and whether that is safe
    CoalesceCheck(coalesce_check::CoalesceCheck),
    /// Start the built-in target in this process and put load on it
    Demo(Demo),
    /// List the runs that were kept, or forget some
    Runs(Runs),
    /// Print a run that was kept, in any format
    Show(Show),
    /// Make the report page of a run that was kept
    Report(Report),
    /// Print a completion script for a shell
    Completions(Completions),
    /// Print the manual pages
    Man(Man),
}

/// The definitions, with the flags of the registry's protocols.
///
/// # Errors
/// When a protocol wants a flag that is taken.
pub fn command(registry: &Registry) -> Result<clap::Command> {
    flags::add(Args::command(), registry)
}

/// What the process's arguments ask for.
///
/// # Errors
/// What clap has to say: what is wrong with them, or the help that they ask for.
pub fn read(command: clap::Command, registry: &Registry) -> Result<Args, clap::Error> {
    of(&command.try_get_matches()?, registry)
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

#[derive(Debug, clap::Args)]
pub struct Demo {
    /// Connections kept open
    #[arg(short, long, value_name = "N", value_parser = values::connections, default_value = "64")]
    pub connections: u32,
    /// Worker threads [default: all cores but one, which the target gets]
    #[arg(short, long, value_name = "N", value_parser = values::threads)]
    pub threads: Option<u32>,
    /// How long
    #[arg(short, long, value_name = "T", value_parser = values::positive_duration, default_value = "3s")]
    pub duration: u64,
    /// Calls a second, or a profile; without it, as fast as it goes
    #[arg(short, long, value_name = "R")]
    pub rate: Option<brunt_model::profile::Profile>,
    /// No colours
    #[arg(long)]
    pub no_color: bool,
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
pub struct Man {
    /// Write a page for each command into this directory instead (brunt.1, brunt-serve-http.1, …)
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}
