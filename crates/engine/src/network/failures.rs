//! Why sockets and connections fail, in words.

use std::borrow::Cow;
use std::io;

use brunt_record::outcome::Failure;

/// The reason of calls on a connection that brunt gave up for what another call on it got, or did not get in time: the peer has not dropped
/// them.
pub(super) const GIVEN_UP: &str = "brunt closed the connection, as an earlier call on it had failed";
/// The reason of calls on a connection that brunt closed because nobody waits for another call's answer.
pub(super) const CUT: &str = "brunt closed the connection, as the user of another call on it had left";
/// The reason of calls on a connection that its load had finished with.
pub(super) const FINISHED_WITH: &str = "the connection was closed while the call was on it";

/// The reason of a connection that its peer has reset.
const RESET: &str = "connection reset by the peer";

/// Why a socket takes nothing any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WriteFailure {
    /// Its peer has reset the connection. The kernel says so once, to whoever asks first: a read may see an end in good
    /// order after that.
    Reset,
    /// For another reason.
    Other(String),
    /// What the peer had sent before it was asked for cannot be read.
    Malformed(&'static str),
}

impl WriteFailure {
    /// Of a write that ended with this error.
    pub(super) fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionReset => Self::Reset,
            _ => Self::Other(reason_of(error)),
        }
    }

    /// The failure of the calls on it.
    pub(super) fn failure(&self) -> Failure {
        match self {
            Self::Reset | Self::Other(_) => Failure::Write,
            Self::Malformed(_) => Failure::Protocol,
        }
    }

    /// The reason of the failure.
    pub(super) fn reason(&self) -> Cow<'_, str> {
        match self {
            Self::Reset => Cow::Borrowed(RESET),
            Self::Other(reason) => Cow::Borrowed(reason),
            Self::Malformed(reason) => Cow::Borrowed(reason),
        }
    }
}

/// The system's words for an error, without additions.
pub(super) fn reason_of(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionReset => RESET.to_owned(),
        io::ErrorKind::BrokenPipe => "the peer had closed the connection".to_owned(),
        _ => error.to_string(),
    }
}
