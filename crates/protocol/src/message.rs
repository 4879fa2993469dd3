//! Calls as bytes: what a user hands to a client.

use std::sync::Arc;

/// One call, encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Message<'a> {
    /// What the protocol sends for it.
    pub bytes: &'a [u8],
    /// What is sent after them as it is: a body so large that a copy for each connection would cost too much memory.
    /// For protocols only that change nothing in what they send.
    pub tail: Option<Tail<'a>>,
    /// Whether it may be sent again, by asking for the same number once more, when a connection dies before any of its
    /// answer came.
    pub idempotent: bool,
    /// What its client must know to read the answer; the protocol's own.
    pub hint: u32,
    /// Whether the next call belongs to the same batch, to be sent on the same connection without waiting for an answer.
    pub more: bool,
}

/// A part of bytes that many calls have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail<'a> {
    /// What it is a part of.
    pub of: &'a Arc<[u8]>,
    /// Where it begins in that, in bytes.
    pub from: usize,
    /// Where it ends in that, in bytes.
    pub to: usize,
}

impl Tail<'_> {
    /// The part itself.
    pub fn bytes(&self) -> &[u8] {
        self.of.get(self.from..self.to).unwrap_or(&[])
    }
}
