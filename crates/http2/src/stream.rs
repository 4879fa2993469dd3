//! The state of one stream.

use crate::outgoing::Outgoing;

/// A stream that has not ended.
#[derive(Debug)]
pub(crate) struct Stream<T> {
    pub(crate) id: u32,
    /// How much may be sent on it; negative where the peer has reduced its window (RFC 9113, section 6.9.2).
    pub(crate) window_out: i64,
    /// How much may come on it, and how much of that was read since the peer was last told.
    pub(crate) window_in: i64,
    pub(crate) unacknowledged: u32,
    /// The remaining bytes of a body, where a content-length states its size.
    pub(crate) length_left: Option<u64>,
    /// The data that waits for a window.
    pub(crate) outgoing: Option<Box<Outgoing>>,
    /// Whether our side has ended.
    pub(crate) is_sent: bool,
    /// Whether the final head has come.
    pub(crate) has_head: bool,
    /// Whether the answer has no body, whatever its head states: that to HEAD.
    pub(crate) bodiless: bool,
    /// The number of 1xx heads that came.
    pub(crate) interim: u8,
    /// Data of the code that opened it.
    pub(crate) data: T,
}
