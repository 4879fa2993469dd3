//! What waits to be sent on a stream.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// A part of bytes that may belong to others, too.
#[derive(Debug)]
struct Piece {
    of: Arc<[u8]>,
    rest: Range<usize>,
}

/// The data of a stream that its peer's windows hold back.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    pieces: VecDeque<Piece>,
    /// Whether the stream's side of ours ends with it.
    pub(crate) ends: bool,
}

impl Outgoing {
    /// Adds a part of `of`.
    pub(crate) fn push(&mut self, of: Arc<[u8]>, range: Range<usize>) {
        if !range.is_empty() {
            self.pieces.push_back(Piece { of, rest: range });
        }
    }

    /// How many bytes are left of it.
    pub(crate) fn len(&self) -> usize {
        self.pieces.iter().map(|piece| piece.rest.len()).sum()
    }

    /// Whether nothing is left of it.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Whether what comes next is the last of it.
    pub(crate) fn is_last(&self) -> bool {
        self.pieces.len() <= 1
    }

    /// What comes next, as far as it is in one piece.
    pub(crate) fn next(&self) -> &[u8] {
        self.pieces.front().and_then(|piece| piece.of.get(piece.rest.clone())).unwrap_or(&[])
    }

    /// So many bytes of [`Self::next`] were sent.
    pub(crate) fn sent(&mut self, bytes: usize) {
        if let Some(piece) = self.pieces.front_mut() {
            piece.rest.start += bytes;
            if piece.rest.is_empty() {
                self.pieces.pop_front();
            }
        }
    }
}
