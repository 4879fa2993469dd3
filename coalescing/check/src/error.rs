//! Reasons for which a check has no findings.

use std::time::Duration;

use brunt_proxy::StartError;
use http::StatusCode;
use tokio::task::JoinError;
use tokio::time::error::Elapsed;

/// The reason for which a check has no findings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The authorities to trust cannot be read.
    #[error(transparent)]
    Trust(#[from] StartError),
    /// The target did not answer the first request.
    #[error("the target does not answer")]
    NoAnswer(#[source] Box<Self>),
    /// An answer took too long.
    #[error("no answer within {within:?}")]
    TimedOut {
        /// The limit.
        within: Duration,
        /// The timer's error.
        source: Elapsed,
    },
    /// A request failed.
    #[error("{request}")]
    Request {
        /// The request, as it was sent.
        request: String,
        /// How it failed.
        source: AskError,
    },
    /// A task that made a request panicked.
    #[error("a request's task failed")]
    Task(#[from] JoinError),
    /// The page that counts origin hits cannot be had.
    #[error("--origin-count: the page is answered with {0}")]
    CountStatus(StatusCode),
    /// The page that counts origin hits shows no number.
    #[error("--origin-count: expected a number on the page, got '{0}'")]
    NoCount(String),
    /// The number of origin hits became less.
    #[error("--origin-count: the number went down")]
    CountWentDown,
}

/// How a request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// It was not answered.
    #[error(transparent)]
    Unanswered(#[from] hyper_util::client::legacy::Error),
    /// Its answer ended too early, or was too long to be kept.
    #[error("the answer broke off: {0}")]
    BrokenOff(String),
}
