//! Data waiting to be sent on a stream.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// A part of bytes that may belong to others, too.
#[derive(Debug)]
struct Piece {
    of: Arc<[u8]>,
    rest: Range<usize>,
}

/// Data of a stream that the peer's windows hold back.
#[derive(Debug, Default)]
pub struct Outgoing {
    pieces: VecDeque<Piece>,
    /// Whether our side of the stream ends with it.
    pub ends: bool,
}

impl Outgoing {
    /// Adds a part of `of`.
    pub fn push(&mut self, of: Arc<[u8]>, range: Range<usize>) {
        if !range.is_empty() {
            self.pieces.push_back(Piece { of, rest: range });
        }
    }

    /// The number of remaining bytes.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(|piece| piece.rest.len()).sum()
    }

    /// Whether no bytes remain.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Whether the next piece is the last.
    pub fn is_last(&self) -> bool {
        self.pieces.len() <= 1
    }

    /// The next piece.
    pub fn next(&self) -> &[u8] {
        self.pieces.front().and_then(|piece| piece.of.get(piece.rest.clone())).unwrap_or(&[])
    }

    /// The first `bytes` of [`Self::next`] were sent.
    pub fn sent(&mut self, bytes: usize) {
        if let Some(piece) = self.pieces.front_mut() {
            piece.rest.start += bytes;
            if piece.rest.is_empty() {
                self.pieces.pop_front();
            }
        }
    }
}
