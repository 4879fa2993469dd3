//! The command line of brunt, as a library: a program with protocols of its own is `brunt::main_with(registry)`.

mod args;
mod carrier;
mod commands;
mod console;
mod decided;
mod exit;
mod files;
mod guide;
mod journal;
mod kept;
mod live;
mod plan;
mod progress;
mod protocols;
mod result_file;
mod results;
mod runs;
mod signals;
mod site;
mod stored;
mod trace;
mod ui;
mod watch;
mod wording;
mod wrk_totals;

use std::process::ExitCode;

use brunt_protocol::Registry;

pub use protocols::built_in;

use args::Command;
use commands::{
    bench, coalescing, compare, completions, demo, find, help, man, new, report, run, schema, serve, show, sweep,
    types, wrk,
};
use exit::Exit;
use wording::Settings;

/// Reads the process's arguments, does what they ask for with the protocols of `registry`, and says how it went:
/// 0 done and every threshold held, 1 a threshold failed, 2 the command line or a file was wrong, 3 the target never
/// answered, 130 and 143 ended by Ctrl-C and SIGTERM. Called as `wrk`, it takes wrk's arguments.
pub fn main_with(registry: Registry) -> ExitCode {
    if args::wrk::is_called(std::env::args_os().next().as_deref()) {
        let args = std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned());
        return ended(wrk::run(&args::wrk::read(args), &registry), Settings::Flags);
    }
    let command = match args::command(&registry) {
        Ok(command) => command,
        Err(error) => return ended(Err(error), Settings::Flags),
    };
    let args = match args::read(command, &registry) {
        Ok(args) => args,
        Err(error) => return args::short::shown(&error).unwrap_or_else(|| console::usage(&error)),
    };
    let settings = args.settings();
    let done = match args.command {
        None => bench::run(&args.bench, &registry),
        Some(Command::Bench(bench)) => bench::run(&bench, &registry),
        Some(Command::Compare(compare)) => compare::run(&compare, &registry),
        Some(Command::Sweep(sweep)) => sweep::run(&sweep, &registry),
        Some(Command::Find(find)) => find::run(&find, &registry),
        Some(Command::Run(args)) => run::run(&args, &registry),
        Some(Command::New(new)) => new::run(&new),
        Some(Command::Types(types)) => types::run(&types, &registry),
        Some(Command::Serve(serve)) => serve::run(serve),
        Some(Command::Grpc(inspect)) => commands::grpc::run(&inspect, &registry),
        Some(Command::Coalescing(command)) => coalescing::run(command),
        Some(Command::Demo(demo)) => demo::run(&demo, &registry),
        Some(Command::Help(asked)) => help::run(&asked, &registry),
        Some(Command::Agent(agent)) => commands::agent::run(&agent, registry),
        Some(Command::Agents(agents)) => commands::agents::run(&agents),
        Some(Command::Runs(runs)) => commands::runs::run(&runs),
        Some(Command::Show(show)) => show::run(&show),
        Some(Command::Report(report)) => report::run(&report),
        Some(Command::Ui(ui)) => commands::ui::run(&ui),
        Some(Command::Completions(completions)) => completions::run(&completions, &registry),
        Some(Command::Man(man)) => man::run(&man, &registry),
        Some(Command::Schema(asked)) => schema::run(&asked),
    };
    ended(done, settings)
}

/// The exit status, after saying what went wrong.
fn ended(done: anyhow::Result<Exit>, settings: Settings) -> ExitCode {
    let exit = done.unwrap_or_else(|error| {
        console::complain(&error, settings);
        Exit::of(&error)
    });
    exit.after_signal(signals::first()).into()
}
