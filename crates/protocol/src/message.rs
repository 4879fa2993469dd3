//! Calls as bytes: what a user hands to a client.

use std::sync::Arc;

/// One call, encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Message<'a> {
    /// The bytes to send.
    pub bytes: &'a [u8],
    /// Further bytes, sent unchanged after those: a body so large that a copy for each connection would cost too much
    /// memory. Only for protocols that send bodies as they are.
    pub tail: Option<Tail<'a>>,
    /// Whether the call may be sent again when a connection dies before any part of its answer came. The user is then
    /// asked for the same number once more.
    pub idempotent: bool,
    /// A value by which the client knows how to read the answer; its meaning is the protocol's own.
    pub hint: u32,
    /// Whether the next call belongs to the same batch, to be sent on the same connection without waiting for an answer.
    pub more: bool,
}

/// A part of bytes that many calls have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail<'a> {
    /// The bytes that it is a part of.
    pub of: &'a Arc<[u8]>,
    /// Where it begins in them, in bytes.
    pub from: usize,
    /// Where it ends in them, in bytes.
    pub to: usize,
}

impl Tail<'_> {
    /// The part itself.
    pub fn bytes(&self) -> &[u8] {
        self.of.get(self.from..self.to).unwrap_or(&[])
    }
}
