//! The short help: what fits a screen. `--help` has the rest.

use std::process::ExitCode;

use brunt_protocol::Registry;
use clap::error::ErrorKind;
use clap::{Command, Subcommand as _};

use crate::args::words::run_flags;
use crate::commands;
use crate::console;
use crate::exit::Exit;

/// What `brunt -h` says.
pub const HELP: &str = "\
brunt puts load on network services and tells the truth about what happened.

Usage: brunt [bench] [OPTIONS] URL
       brunt COMMAND …

Load
  -c N              connections kept open [default: 64; with -r, what it takes]
  -t N              threads [default: cores; with -r, what it takes]
  -d T              stop after this time [default: 10s]
  -n N              stop after this many requests
  -r R              requests a second, whatever the answers take: 2000, 0..5k/1m
  -w T              warm-up before it, which is in no figure
Request
  -m M              method [default: GET, or POST with a body]
  -H 'K: V'         header field
  --body TEXT|@F    body; --json TEXT|@F for one in JSON
  --basic U:P       user and password
  -k                take any certificate
Results
  --once            make one request and print it with its answer
  --threshold T     what must hold: 'p99<50ms', 'error_rate<0.1%'; else exit 1
  -o FILE           write the result: .json, .csv, .xml (JUnit), .html, .txt
  -v                every figure, and a line for each second
Commands
  run, new, types   users by a script in Lua
  find              the highest rate that meets thresholds
  compare, sweep    A against B; a run for each of several values
  runs, show, report, ui runs that were kept, here or in a browser
  serve, demo       the built-in target; watch it freeze
  grpc              services and messages that a gRPC server has
  proxy, coalesce-check  serve identical requests in flight once
  config            where flags come from: brunt.toml, BRUNT_*
  completions, man  for your shell
  schema            of what -o FILE.json holds

brunt http://localhost:8080/               as fast as it goes, for 10 s
brunt -r 2000 -d 30s http://localhost:8080/
brunt help                                 topics of the guide
brunt --help                               all flags, by protocol
";

/// The flags of a run that the short help of other commands has, by how they are called in their definitions.
const FLAGS: [&str; 11] =
    ["url", "connections", "threads", "duration", "rate", "thresholds", "outputs", "html", "once", "scale", "env"];

/// Leaves in the short help of commands that make runs what most calls need.
pub fn apply(command: Command, registry: &Registry) -> Command {
    let run = run_flags(registry);
    let of_runs: Vec<_> = run.get_arguments().map(clap::Arg::get_id).collect();
    let brief = |command: Command| {
        command.mut_args(|arg| {
            let is_short = !of_runs.contains(&arg.get_id()) || FLAGS.contains(&arg.get_id().as_str());
            arg.hide_short_help(!is_short)
        })
    };
    ["run", "find", "sweep", "compare"].into_iter().fold(command, |command, name| command.mut_subcommand(name, brief))
}

/// Prints the short help where it was asked for, or nothing was; none if clap has something else to say.
pub fn shown(error: &clap::Error) -> Option<ExitCode> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let is_top = words.first().is_none_or(|word| word == "bench" || !commands::Command::has_subcommand(word));
    match error.kind() {
        ErrorKind::DisplayHelp if is_top && !words.iter().any(|word| word == "--help") => {
            Some(console::print(HELP.as_bytes()).map_or(Exit::Wrong, |()| Exit::Done).into())
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand if words.is_empty() => {
            console::note(HELP.trim_end());
            Some(Exit::Wrong.into())
        }
        _ => None,
    }
}
