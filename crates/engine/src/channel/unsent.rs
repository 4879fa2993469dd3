//! Bytes that a socket did not take yet.

use std::collections::VecDeque;
use std::sync::Arc;

use brunt_protocol::source::Tail;

/// Capacity that a buffer of waiting bytes keeps once they have been sent, in bytes.
const KEPT_BYTES: usize = 4096;

/// A piece of the waiting bytes, and how much of it has been sent.
#[derive(Debug)]
enum Piece {
    Own {
        bytes: Vec<u8>,
        sent: usize,
    },
    /// Bytes that many connections send are in memory once.
    Shared {
        bytes: Arc<[u8]>,
        sent: usize,
        end: usize,
    },
}

impl Piece {
    fn rest(&self) -> &[u8] {
        match self {
            Self::Own { bytes, sent } => bytes.get(*sent..),
            Self::Shared { bytes, sent, end } => bytes.get(*sent..*end),
        }
        .unwrap_or(&[])
    }
}

/// Bytes that a socket did not take yet, in the order in which they go out.
#[derive(Debug, Default)]
pub(crate) struct Unsent {
    pieces: VecDeque<Piece>,
    bytes: usize,
}

impl Unsent {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// How many bytes wait.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// The bytes that go out next; empty only if nothing waits.
    pub(crate) fn next(&self) -> &[u8] {
        self.pieces.front().map_or(&[], Piece::rest)
    }

    /// Adds bytes of its own.
    #[inline]
    pub(crate) fn push(&mut self, more: &[u8]) {
        if more.is_empty() {
            return;
        }
        self.bytes += more.len();
        if let Some(Piece::Own { bytes, .. }) = self.pieces.back_mut() {
            bytes.extend_from_slice(more);
        } else {
            self.pieces.push_back(Piece::Own { bytes: more.to_vec(), sent: 0 });
        }
    }

    /// Adds bytes that others have, too.
    pub(crate) fn push_shared(&mut self, tail: Tail<'_>) {
        if !tail.bytes().is_empty() {
            let bytes = Arc::clone(tail.of);
            self.bytes += tail.bytes().len();
            self.pieces.push_back(Piece::Shared { bytes, sent: tail.from, end: tail.to });
        }
    }

    /// The first `count` of [`Self::next`] are sent.
    pub(crate) fn sent(&mut self, count: usize) {
        let Some(first) = self.pieces.front_mut() else { return };
        let count = count.min(first.rest().len());
        self.bytes -= count;
        match first {
            Piece::Own { sent, .. } | Piece::Shared { sent, .. } => *sent += count,
        }
        if first.rest().is_empty() {
            self.pieces.pop_front();
            if self.pieces.is_empty() {
                self.pieces.shrink_to(KEPT_BYTES / size_of::<Piece>());
            }
        }
    }

    /// Drops all waiting bytes.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_goes_in_comes_out_however_it_is_taken(
            pieces in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..40)), 0..12),
            takes in prop::collection::vec(1..50_usize, 1..20),
        ) {
            let (mut unsent, mut expected) = (Unsent::default(), Vec::new());
            for (shared, bytes) in &pieces {
                if *shared {
                    // A part of what is shared, from its middle.
                    let all: Arc<[u8]> = [b"<", bytes.as_slice(), b">"].concat().into();
                    unsent.push_shared(Tail { of: &all, from: 1, to: 1 + bytes.len() });
                } else {
                    unsent.push(bytes);
                }
                expected.extend_from_slice(bytes);
            }
            let mut got = Vec::new();
            for take in takes.iter().cycle() {
                let next = unsent.next();
                prop_assert_eq!(next.is_empty(), unsent.is_empty());
                prop_assert_eq!(got.len() + unsent.len(), expected.len());
                if next.is_empty() {
                    break;
                }
                let count = (*take).min(next.len());
                got.extend_from_slice(&next[..count]);
                unsent.sent(count);
            }
            prop_assert_eq!(got, expected);
        }
    }

    #[test]
    fn what_is_shared_is_there_once() {
        let all: Arc<[u8]> = vec![0; 100].into();
        let mut unsent = Unsent::default();
        unsent.push_shared(Tail { of: &all, from: 0, to: 100 });
        assert_eq!((unsent.next().as_ptr(), Arc::strong_count(&all)), (all.as_ptr(), 2));
        unsent.clear();
        assert_eq!(Arc::strong_count(&all), 1);
    }
}
