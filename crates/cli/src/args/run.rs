//! The flags of `brunt run`.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::path::PathBuf;

use brunt_engine::trace::Level;
use brunt_record::outcome::OkStatus;
use clap::Args;

use super::bench::{Confinement, Connecting, Output, Saving, Tls};
use super::machines::Machines;
use super::values;

#[derive(Debug, Default, Args)]
pub struct Run {
    /// The scenarios: a script in Lua. It is a program, which may do whatever you may do, also with --dry-run: see
    /// --sandbox
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub change: Change,
    #[command(flatten)]
    pub confinement: Confinement,
    #[command(flatten)]
    pub load: UserLoad,
    #[command(flatten)]
    pub connecting: Connecting,
    #[command(flatten)]
    pub tls: Tls,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub saving: Saving,
    #[command(flatten)]
    pub machines: Machines,
    #[command(flatten)]
    pub written_down: WrittenDown,
    #[command(flatten)]
    pub kept: KeptRun,
}

/// What is written down while users do what they do.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Log")]
pub struct WrittenDown {
    /// Write into this file what the script says by brunt.log
    #[arg(long, value_name = "FILE", conflicts_with = "once")]
    pub log: Option<PathBuf>,
    /// The least that is written: debug, info, warn or error [default: info]
    #[arg(long, value_name = "LEVEL", requires = "log", value_parser = values::level)]
    pub log_level: Option<Level>,
    /// With --log: write down this share of the calls that fail too, whole, secrets left out: 1%
    #[arg(long, value_name = "SHARE", requires = "log", value_parser = values::share)]
    pub debug: Option<f64>,
}

/// What is changed without editing the file.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Change the script's load")]
pub struct Change {
    /// So many times the users, rates and shared iterations: 2x, 0.5x
    #[arg(long, value_name = "FACTOR", value_parser = values::factor)]
    pub scale: Option<f64>,
    /// The whole load profile in this time, each length in proportion; what has no lengths ends after it
    #[arg(short, long, value_name = "T", value_parser = values::positive_duration)]
    pub duration: Option<u64>,
    /// What stands for the base of the script's first client
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// Only the users of this scenario, repeatable
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// Users of a scenario by these steps instead of the script's, repeatable: buy='rate(50, 1m)'
    #[arg(long, value_name = "NAME=STEPS", value_parser = values::assignment)]
    pub inject: Vec<(String, String)>,
    /// Print the file's scenarios and their users, and stop
    #[arg(long)]
    pub list: bool,
    /// What brunt.env(K) gives, repeatable; @NAME takes V from the environment
    #[arg(long, value_name = "K=V", value_parser = values::assignment)]
    pub env: Vec<(String, String)>,
    /// Go through each scenario once, with one user, and print every request, answer and check
    #[arg(long)]
    pub once: bool,
    /// With --once: print secrets (authorization, cookies) as they are
    #[arg(long, requires = "once")]
    pub show_secrets: bool,
}

/// How users are run.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Load")]
pub struct UserLoad {
    /// Worker threads, which share the users [default: cores]
    #[arg(short, long, value_name = "N", value_parser = values::threads)]
    pub threads: Option<u32>,
    /// What every random choice starts from; printed, so that a run can be repeated [default: random]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// How long a call may take from when it was sent, where the script does not say [default: 10s]
    #[arg(long, value_name = "T", value_parser = values::positive_duration)]
    pub timeout: Option<u64>,
    /// How long connecting may take, TLS included [default: 10s]
    #[arg(long, value_name = "T", value_parser = values::positive_duration)]
    pub connect_timeout: Option<u64>,
    /// How long users may still go on after the end of a closed load, and calls in flight after the end of all [default:
    /// the timeout]
    #[arg(long, value_name = "T", value_parser = values::duration)]
    pub drain: Option<u64>,
    /// The statuses that are a success: 2xx, 200-399, 200,404 [default: 0,100-399]
    #[arg(long, value_name = "LIST")]
    pub ok_status: Option<OkStatus>,
}

/// Plans that are kept.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Plan")]
pub struct KeptRun {
    /// Write the plan of this run into a file, with the script and its files: brunt --plan FILE runs it
    #[arg(long, value_name = "FILE")]
    pub write_plan: Option<PathBuf>,
    /// Check everything, write the plan if asked to, and stop before the load
    #[arg(long)]
    pub dry_run: bool,
}
