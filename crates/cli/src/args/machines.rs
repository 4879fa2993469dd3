//! The flags of runs that agents carry out, and of the bus that they are on.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::path::PathBuf;

use brunt_cluster::WantedAgents;
use clap::{Args, ValueEnum};

use super::values;

/// The machines that carry out runs.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Agents")]
pub struct Machines {
    #[command(flatten)]
    pub bus: Bus,
    /// The agents that carry out the run: a number, all, or those with tags (zone=eu) [default: all]
    #[arg(long, value_name = "WHICH", requires = "nats")]
    pub agents: Option<WantedAgents>,
    /// How long to wait for them [default: 10s]
    #[arg(long, value_name = "T", requires = "nats", value_parser = values::positive_duration)]
    pub agents_wait: Option<u64>,
    /// When an agent is lost: go on without it, or end the run [default: continue, with exit status 4]
    #[arg(long, value_name = "WHAT", requires = "nats")]
    pub on_lost_agent: Option<OnLost>,
    /// Look @NAME up in each agent's environment, not in this one
    #[arg(long, requires = "nats")]
    pub secrets_from_agents: bool,
}

/// What happens to a run that loses an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnLost {
    /// Go on with the others; what was due on the lost one is never sent
    Continue,
    /// End the run, with exit status 4
    Abort,
}

/// The way to a NATS server.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Agents")]
pub struct Bus {
    /// The NATS server between controllers and agents: nats://HOST:4222, or tls://HOST:4222; @NAME takes it from the
    /// environment
    #[arg(long, value_name = "URL")]
    pub nats: Option<String>,
    /// A file of credentials for the NATS server (a JWT and its key)
    #[arg(long, value_name = "FILE", requires = "nats")]
    pub nats_creds: Option<PathBuf>,
    /// A file with the seed of an nkey for the NATS server
    #[arg(long, value_name = "FILE", requires = "nats")]
    pub nats_nkey: Option<PathBuf>,
    /// Speak TLS with the NATS server, and trust these certificates (PEM) besides the system's
    #[arg(long, value_name = "FILE", requires = "nats")]
    pub nats_ca: Option<PathBuf>,
    /// The client's certificate (PEM) for the NATS server
    #[arg(long, value_name = "FILE", requires = "nats", requires = "nats_key")]
    pub nats_cert: Option<PathBuf>,
    /// The private key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "nats", requires = "nats_cert")]
    pub nats_key: Option<PathBuf>,
    /// The first word of all subjects [default: brunt]
    #[arg(long, value_name = "WORD", requires = "nats")]
    pub nats_prefix: Option<String>,
}
