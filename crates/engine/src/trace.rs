//! Everything that one user does, for who wants to see it: `brunt run --once`.

use brunt_model::outcome::Failure;

/// Something that a user did, or that came of it.
#[derive(Debug, Clone, Copy)]
pub enum Traced<'a> {
    /// A user begins an iteration.
    Begun {
        /// Its scenario.
        scenario: &'a str,
    },
    /// A call was answered.
    Answered {
        /// What it is called by.
        name: &'a str,
        /// The call, as its protocol encoded it.
        request: &'a [u8],
        /// The protocol's own status.
        status: u16,
        /// What came before the body.
        head: &'a [u8],
        /// The body.
        body: &'a [u8],
        /// From when it was sent to its end, in nanoseconds.
        service_ns: u64,
    },
    /// A call has failed.
    Failed {
        /// What it is called by.
        name: &'a str,
        /// The call, as its protocol encoded it.
        request: &'a [u8],
        /// How.
        failure: Failure,
        /// Why.
        reason: &'a str,
    },
    /// A check held or did not.
    Checked {
        /// Its name, after that of the call that it is about.
        name: &'a str,
        /// Whether it held.
        held: bool,
    },
    /// An error ended the iteration.
    Error {
        /// Its message and where it came from.
        traceback: &'a str,
    },
}

/// Sees what users do, on the worker's thread.
pub trait Trace: Send + Sync {
    /// It has just happened.
    fn see(&self, traced: &Traced<'_>);
}
