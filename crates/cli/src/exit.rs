//! How a command ended, and the exit status that says so.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use brunt_cluster::ClusterError;
use brunt_engine::EngineError;
use brunt_judge::summary::Summary;
use brunt_record::agents::AgentPart;
use brunt_record::catalogue::Counter;
use brunt_record::recording::Ending;

/// How it went, as the exit status says it. What is wrong with the command line or a file is an error, and becomes
/// [`Exit::Wrong`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, and every threshold held.
    Done,
    /// A threshold failed, implicit ones among them, or one that aborts ended the run.
    ThresholdFailed,
    /// The command line or a file was wrong.
    Wrong,
    /// The target never answered.
    NoAnswer,
    /// A signal of this number ended it early.
    Interrupted(u8),
    /// An agent was lost, and nobody had said that the run may go on without it; or too few agents came.
    AgentsLost,
    /// wrk's command line was wrong: the status is wrk's.
    AsWrk,
}

impl Exit {
    /// The status of a run: what comes first of a failure of its script, lost agents, a target that never answered, and thresholds.
    pub fn of_run(summary: &Summary) -> Self {
        let due = summary.total.numbers.get(Counter::Due);
        let misses_agents = summary.run.agents.iter().any(AgentPart::is_missed);
        match &summary.run.ending {
            Ending::Failed(_) => Self::Wrong,
            Ending::AgentsLost(_) => Self::AgentsLost,
            _ if misses_agents => Self::AgentsLost,
            Ending::Unreached(_) => Self::NoAnswer,
            // Ended before the measured part: nothing is known of the target, good or bad.
            Ending::Interrupted if due == 0 => Self::Done,
            _ if due > 0 && !summary.answered() => Self::NoAnswer,
            Ending::Aborted(_) => Self::ThresholdFailed,
            _ if summary.thresholds_held() => Self::Done,
            _ => Self::ThresholdFailed,
        }
    }

    /// The same after a signal of this number, if one came while something went on: who sent it must not take half a run for a whole
    /// one, whatever it came to.
    #[must_use]
    pub fn after_signal(self, signal: Option<u8>) -> Self {
        match signal {
            // wrk's status is wrk's.
            Some(signal) if self != Self::AsWrk => Self::Interrupted(signal),
            _ => self,
        }
    }

    /// The status of a command that failed with `error`.
    pub fn from_error(error: &anyhow::Error) -> Self {
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
