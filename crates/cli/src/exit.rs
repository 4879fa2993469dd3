//! How a command ended, and the exit status that says so.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use brunt_cluster::ClusterError;
use brunt_engine::EngineError;

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

/// Error of a target that gave no answer when it was asked something before the load.
#[derive(Debug)]
pub struct NoAnswer(String);

impl NoAnswer {
    /// `problem` says which question failed, and how.
    pub fn new(problem: String) -> Self {
        Self(problem)
    }
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for NoAnswer {}
