//! The state of one stream.

use crate::outgoing::Outgoing;

/// A stream that has not ended.
#[derive(Debug)]
pub(crate) struct Stream<T> {
    pub(crate) id: u32,
    /// How much may be sent on it; below 0 where the peer has taken some back (RFC 9113, section 6.9.2).
    pub(crate) window_out: i64,
    /// How much may come on it, and how much of that was given since its peer was last told.
    pub(crate) window_in: i64,
    pub(crate) unacknowledged: u32,
    /// How much of a body is still to come, where a content-length said so.
    pub(crate) length_left: Option<u64>,
    /// The data that waits for a window.
    pub(crate) outgoing: Option<Box<Outgoing>>,
    /// Whether our side has ended.
    pub(crate) is_sent: bool,
    /// Whether the final head has come.
    pub(crate) has_head: bool,
    /// Whether the answer has no body, whatever its head says: that to HEAD.
    pub(crate) bodiless: bool,
    /// Heads of 1xx that came.
    pub(crate) interim: u8,
    /// What belongs to whoever opened it.
    pub(crate) data: T,
}
