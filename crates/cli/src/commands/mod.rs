//! What brunt does: one file for each subcommand.

pub mod agent;
pub mod agents;
pub mod bench;
pub mod coalesce_check;
pub mod compare;
pub mod completions;
pub mod demo;
pub mod find;
pub mod grpc;
pub mod help;
pub mod man;
pub mod manifest;
pub mod new;
pub mod proxy;
pub mod report;
pub mod run;
pub mod runs;
pub mod serve;
pub mod show;
pub mod sweep;
pub mod types;
pub mod ui;
pub mod wrk;

use std::process::ExitCode;

use brunt_cluster::ClusterError;
use brunt_engine::EngineError;

use crate::plan::asking::NoAnswer;

/// How it went, as the exit status says it. What is wrong with the command line or a file is an error, and becomes
/// [`Exit::Wrong`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, and every threshold held.
    Done,
    /// A threshold failed.
    ThresholdFailed,
    /// The command line or a file was wrong.
    Wrong,
    /// The target never answered.
    NoAnswer,
    /// A signal of this number ended it early, and no threshold had failed.
    Interrupted(u8),
    /// An agent was lost, and the run was to end then; or too few agents came.
    AgentsLost,
    /// wrk's command line was wrong: the status is wrk's.
    AsWrk,
}

impl Exit {
    /// The status of a command that failed with `error`.
    pub fn of(error: &anyhow::Error) -> Self {
        if let Some(error) = error.downcast_ref() {
            return match error {
                ClusterError::TooFew { .. } | ClusterError::LostBefore { .. } => Self::AgentsLost,
                ClusterError::Agent { is_impossible: true, .. } => Self::NoAnswer,
                // A signal did it, which makes the status its own.
                ClusterError::Interrupted => Self::Done,
                _ => Self::Wrong,
            };
        }
        if error.is::<NoAnswer>() {
            return Self::NoAnswer;
        }
        match error.downcast_ref() {
            Some(EngineError::Route(route)) if route.is_no_address() => Self::NoAnswer,
            _ => Self::Wrong,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::ThresholdFailed | Exit::AsWrk => 1,
            Exit::Wrong => 2,
            Exit::NoAnswer => 3,
            Exit::AgentsLost => 4,
            Exit::Interrupted(signal) => 128_u8.saturating_add(signal),
        })
    }
}
