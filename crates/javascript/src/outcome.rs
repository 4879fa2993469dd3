//! Results of operations with texts of their own: a user's stack outlives what they were borrowed from.

use brunt_protocol::scenario::Value;
use brunt_script::Resumption;

/// The failure of a call that could not be made.
const REFUSED: &str = "refused";

/// The result of an operation.
pub(crate) enum Outcome {
    /// No result.
    Nothing,
    /// A number that was asked for.
    Number(u32),
    /// A stream was begun, with this ticket.
    Begun(f64),
    /// A call has ended.
    Ended(Answer),
    /// A call could not be made, or a part not be read.
    Refused(String),
    /// A part of an answer.
    Read(Value<'static>),
    /// The ends of all calls that were begun, in their order.
    Results(Vec<Outcome>),
}

/// The end of a call.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// The ticket by which its parts are read.
    pub(crate) ticket: f64,
    /// The protocol's status; 0 for a call that failed without an answer.
    pub(crate) status: u16,
    /// Whether it is a success.
    pub(crate) ok: bool,
    /// The protocol's flags.
    pub(crate) flags: u32,
    /// The failure's name, and why.
    pub(crate) failure: Option<Box<(String, String)>>,
}

impl Answer {
    /// The end of a call that could not be made.
    pub(crate) fn refused(reason: String) -> Self {
        Self { ticket: 0.0, status: 0, ok: false, flags: 0, failure: Some(Box::new((REFUSED.to_owned(), reason))) }
    }
}

impl Outcome {
    /// The resumption with texts of its own.
    pub(crate) fn of(resumption: Resumption<'_>) -> Self {
        match resumption {
            Resumption::Nothing => Self::Nothing,
            Resumption::Begun { ticket } => Self::Begun(ticket),
            Resumption::Number(number) => Self::Number(number),
            Resumption::Answered { ticket, status, ok, flags, goes_on: _ } => {
                Self::Ended(Answer { ticket, status, ok, flags, failure: None })
            }
            Resumption::Failed { ticket, failure, reason } => Self::Ended(Answer {
                ticket,
                status: 0,
                ok: false,
                flags: 0,
                failure: Some(Box::new((failure.to_owned(), reason.to_owned()))),
            }),
            Resumption::Refused(problem) | Resumption::Problem(problem) | Resumption::Unread(problem) => {
                Self::Refused(problem.to_owned())
            }
            Resumption::Read(value) => Self::Read(value.into_owned()),
            Resumption::Results(results) => Self::Results(results.into_iter().map(Self::of).collect()),
        }
    }
}
