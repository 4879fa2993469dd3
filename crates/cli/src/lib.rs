//! The command line of brunt, as a library: a program with protocols of its own is `brunt::main_with(registry)`.
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! fn main() -> ExitCode {
//!     let mut registry = brunt::built_in();
//!     // registry.register(MyProtocol);
//!     brunt::main_with(registry)
//! }
//! ```
//!
//! | place | has |
//! | --- | --- |
//! | `commands/` | a file for each subcommand |
//! | `args/`, `parser/` | groups of flags, and how command line, `brunt.toml` and environment become values |
//! | `plan/` | flags as a plan |
//! | `single.rs`, `runs.rs`, `executor.rs` | one run, several behind a decision, on this machine or by agents |
//! | `live/`, `sinks/`, `results.rs`, `kept.rs` | what is shown, sent on, written and kept |
//! | `machine/`, `watching/` | what the machine and the target do meanwhile |
//! | `guide/`, `site/` | help pages, manual and site, from `docs/` |

mod args;
mod commands;
mod console;
mod ctl;
mod decision_output;
mod executor;
mod exit;
mod files;
mod foreign;
mod guide;
mod https;
mod journal;
mod kept;
mod live;
mod logs;
mod losses;
mod machine;
mod manifest;
mod parser;
mod plan;
mod progress;
mod protocols;
mod result_file;
mod results;
mod runs;
mod scripts;
mod signals;
mod single;
mod sinks;
mod site;
mod stored;
mod summary_hook;
mod terminal;
mod trace;
mod ui;
mod version;
mod view;
mod wait_for_target;
mod watching;
mod wording;
mod wrk_totals;

use std::process::ExitCode;

use brunt_protocol::Registry;

pub use protocols::built_in;

use args::Program;
use commands::wrk;
use exit::Exit;
use wording::Settings;

/// Carries out the process's arguments with the protocols of `registry`, and returns the exit status: 0 done and every
/// threshold held, 1 a threshold failed, 2 the command line or a file was wrong, 3 the target never answered, 130 and
/// 143 ended by Ctrl-C and SIGTERM. Called as `wrk`, it takes wrk's arguments.
pub fn main_with(registry: Registry) -> ExitCode {
    if wrk::is_called(std::env::args_os().next().as_deref()) {
        let words = std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned());
        return match parser::definitions(&registry) {
            Ok(definitions) => ended(wrk::run(words, &Program { registry, definitions, given: None }), Settings::Flags),
            Err(error) => ended(Err(error), Settings::Flags),
        };
    }
    let (definitions, read) = match parser::parsed(&registry) {
        Ok(parsed) => parsed,
        Err(error) => return ended(Err(error), Settings::Flags),
    };
    let (args, given) = match read {
        Ok((args, given)) => (args, Some(given)),
        Err(error) => return parser::shown(&error).unwrap_or_else(|| console::usage(&error)),
    };
    if given.as_ref().is_some_and(parser::prints_for_programs) {
        console::set_output_apart();
    }
    let settings = args.settings();
    ended(args.run(&Program { registry, definitions, given }), settings)
}

/// The exit status, after reporting an error.
fn ended(done: anyhow::Result<Exit>, settings: Settings) -> ExitCode {
    let exit = done.unwrap_or_else(|error| {
        console::complain(&error, settings);
        Exit::from_error(&error)
    });
    exit.after_signal(signals::first()).into()
}
