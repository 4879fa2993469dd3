//! Subcommands: one file each, with its flags, its help and its code.

pub mod agent;
pub mod agents;
pub mod bench;
pub mod check;
pub mod coalescing;
pub mod compare;
pub mod completions;
pub mod config;
pub mod ctl;
pub mod curl;
pub mod demo;
pub mod doctor;
pub mod find;
pub mod grpc;
pub mod help;
pub mod import;
pub mod init;
pub mod llm;
pub mod man;
pub mod replay;
pub mod report;
pub mod run;
pub mod runs;
pub mod schema;
pub mod serve;
pub mod show;
pub mod sweep;
mod trial_plan;
pub mod types;
pub mod ui;
pub mod wrk;

use anyhow::Result;
use brunt_protocol::Registry;
use clap::{ArgMatches, Subcommand};

use crate::args::{Bench, Program, ProtocolFlags};
use crate::exit::Exit;

/// The commands besides the program's own that take the flags of runs and protocols.
pub const WITH_RUNS: [&str; 7] = ["bench", "curl", "llm", "find", "compare", "sweep", "doctor"];

/// The commands that look at the flags of others, or whose words become those of another.
pub const LOOK_AT_OTHERS: [&str; 9] =
    ["help", "man", "completions", "config", "check", "schema", "init", "curl", "llm"];

/// A subcommand, in the order of the help.
#[derive(Debug, Subcommand)]
pub enum Command {
    // The flags are the program's own, which has other words for them.
    /// Put load on a target (the same as without this word)
    #[command(override_usage = "brunt [bench] [OPTIONS] URL\n       brunt [bench] --plan FILE [OPTIONS]")]
    Bench(Box<Bench>),
    // Its words are made `bench`'s before they are read (`curl::expanded`); what is left is its help.
    /// Run the request of a curl command as load
    #[command(override_usage = "brunt curl 'curl …' [OPTIONS]\n       brunt curl [OPTIONS] -- URL [CURL'S OPTIONS]")]
    Curl(Box<Bench>),
    // Likewise `bench`'s (`llm::expanded`).
    /// Put load on a server of a language model: time to first token, tokens a second, goodput
    #[command(override_usage = "brunt llm [OPTIONS] URL")]
    Llm(Box<Bench>),
    Run(Box<run::Run>),
    Check(check::Check),
    Replay(Box<replay::Replay>),
    Find(Box<find::Find>),
    Compare(Box<compare::Compare>),
    Sweep(Box<sweep::Sweep>),
    Doctor(Box<doctor::Doctor>),
    Import(import::Import),
    Init(init::Init),
    Types(types::Types),
    Runs(runs::Runs),
    Show(show::Show),
    Report(report::Report),
    Ui(ui::Ui),
    Ctl(ctl::Ctl),
    Serve(serve::Serve),
    Demo(demo::Demo),
    Grpc(Box<grpc::Inspect>),
    #[command(flatten)]
    Coalescing(coalescing::Command),
    Help(help::Help),
    Config(config::Config),
    Completions(completions::Completions),
    Man(man::Man),
    Schema(schema::Schema),
    Agent(Box<agent::Agent>),
    Agents(agents::Agents),
}

impl Command {
    /// Runs the command.
    ///
    /// # Errors
    /// For any mistake in the command line or a file, and any failure of a run.
    pub fn run(self, program: &Program) -> Result<Exit> {
        match self {
            Self::Bench(args) | Self::Curl(args) | Self::Llm(args) => bench::run(&args, program),
            Self::Run(args) => run::run(&args, program),
            Self::Check(args) => check::run(&args, program),
            Self::Replay(args) => replay::run(&args, program),
            Self::Find(args) => find::run(&args, program),
            Self::Compare(args) => compare::run(&args, program),
            Self::Sweep(args) => sweep::run(&args, program),
            Self::Doctor(args) => doctor::run(&args, program),
            Self::Import(args) => import::run(&args),
            Self::Init(args) => init::run(&args, program),
            Self::Types(args) => types::run(&args, &program.registry),
            Self::Runs(args) => runs::run(&args),
            Self::Show(args) => show::run(&args),
            Self::Report(args) => report::run(&args),
            Self::Ui(args) => ui::run(&args),
            Self::Ctl(args) => ctl::run(&args),
            Self::Serve(args) => serve::run(args),
            Self::Demo(args) => demo::run(&args, program),
            Self::Grpc(args) => grpc::run(&args, &program.registry),
            Self::Coalescing(command) => coalescing::run(command),
            Self::Help(args) => help::run(&args, program),
            Self::Config(args) => config::run(&args, program),
            Self::Completions(args) => completions::run(&args, program),
            Self::Man(args) => man::run(&args, program),
            Self::Schema(args) => schema::run(&args, &program.definitions),
            Self::Agent(args) => agent::run(&args, &program.registry),
            Self::Agents(args) => agents::run(&args),
        }
    }

    /// Fills in the values of a run's flags, for the commands of [`WITH_RUNS`].
    pub fn fill(&mut self, matches: &ArgMatches, registry: &Registry) {
        match self {
            Self::Bench(bench) | Self::Curl(bench) | Self::Llm(bench) => {
                bench.protocol = ProtocolFlags::new(matches, registry);
            }
            Self::Find(find) => find.run.run.fill(matches, registry),
            Self::Sweep(sweep) => sweep.run.run.fill(matches, registry),
            Self::Compare(compare) => compare.run.fill(matches, registry),
            Self::Doctor(doctor) => doctor.run.fill(matches, registry),
            _ => {}
        }
    }
}
