//! The failure of leaders, as their followers are told of it.

use thiserror::Error;

/// An extension of the answer 500 to a request whose leaders have all failed. The leaders' own errors are theirs: a service's
/// error need not be one that can be given to many.
///
/// A layer around this one may make another answer of it:
///
/// ```
/// use brunt_coalesce::LeaderFailed;
/// use http::{Response, StatusCode};
///
/// fn unavailable<B>(mut answer: Response<B>) -> Response<B> {
///     if let Some(failed) = answer.extensions().get::<LeaderFailed>() {
///         eprintln!("{failed}");
///         *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
///     }
///     answer
/// }
/// # let mut answer = Response::new(());
/// # assert_eq!(unavailable(answer).status(), 200);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("expected an answer to the request that this one waited for, got {failure} from the last of {leaders} leaders")]
#[non_exhaustive]
pub struct LeaderFailed {
    /// How the last leader's call failed.
    pub failure: Failure,
    /// How many led, one after the other, and failed.
    pub leaders: u32,
}

/// How a leader's call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Failure {
    /// The service returned an error, which its leader has.
    #[error("an error")]
    Error,
    /// The service panicked.
    #[error("a panic")]
    Panic,
}
