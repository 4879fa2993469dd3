//! The held pieces of a body: those that a reader has yet to read, and those for requests that may still join.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use smallvec::SmallVec;

use crate::body::Piece;

/// The bytes that all flights of a layer hold together: pieces of bodies, keys and heads.
#[derive(Debug, Default)]
pub(crate) struct HeldBytes {
    bytes: AtomicUsize,
    flights: AtomicUsize,
}

impl HeldBytes {
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The part of these bytes that each flight may have to itself, whatever others hold.
    pub(crate) fn share_of(&self, bytes: usize) -> usize {
        bytes / self.flights.load(Ordering::Relaxed).max(1)
    }

    /// Counts this many bytes until the result is dropped.
    pub(crate) fn charge(held: &Arc<Self>, bytes: usize) -> Charge {
        held.bytes.fetch_add(bytes, Ordering::Relaxed);
        Charge { held: Arc::clone(held), bytes }
    }
}

/// Bytes that count as held for as long as this is there.
#[derive(Debug)]
pub(crate) struct Charge {
    held: Arc<HeldBytes>,
    bytes: usize,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.held.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A flight with a share of the limit, and the memory of its key.
#[derive(Debug)]
pub(crate) struct FlightAccount(Charge);

impl FlightAccount {
    pub(crate) fn new(held: &Arc<HeldBytes>, bytes: usize) -> Self {
        held.flights.fetch_add(1, Ordering::Relaxed);
        Self(HeldBytes::charge(held, bytes))
    }
}

impl Drop for FlightAccount {
    fn drop(&mut self) {
        self.0.held.flights.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Entry {
    piece: Piece,
    weight: usize,
    /// The number of readers that have yet to read it.
    unread: usize,
}

/// The pieces that are held, of a body whose pieces are numbered from 0.
#[derive(Debug)]
pub(crate) struct Pieces {
    entries: VecDeque<Entry>,
    /// The number of the first held piece.
    first: u64,
    bytes: usize,
    /// Whether all pieces are kept, even those that all have read.
    keeps: bool,
    all: Arc<HeldBytes>,
}

impl Pieces {
    pub(crate) fn new(keeps: bool, all: Arc<HeldBytes>) -> Self {
        Self { entries: VecDeque::new(), first: 0, bytes: 0, keeps, all }
    }

    /// The number that the next piece will have.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// The approximate memory of the pieces, in bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether a reader may begin with the first piece of the body.
    pub(crate) fn are_all_kept(&self) -> bool {
        self.keeps
    }

    /// Adds a piece that this many will read.
    pub(crate) fn push(&mut self, piece: Piece, readers: usize) {
        let weight = piece.weight();
        self.bytes += weight;
        self.all.bytes.fetch_add(weight, Ordering::Relaxed);
        self.entries.push_back(Entry { piece, weight, unread: readers });
        self.trim();
    }

    /// Adds a reader, which will read all pieces.
    pub(crate) fn join(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.unread += 1);
    }

    /// Takes the piece with this number for a reader; `None` if it has yet to come.
    pub(crate) fn read(&mut self, number: u64) -> Option<Piece> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let entry = self.entries.get_mut(at)?;
        entry.unread = entry.unread.saturating_sub(1);
        let piece = entry.piece.clone();
        self.trim();
        Some(piece)
    }

    /// Removes a reader whose next piece would have been this one.
    pub(crate) fn leave(&mut self, next: u64) {
        let from = usize::try_from(next.saturating_sub(self.first)).unwrap_or(usize::MAX);
        self.entries.iter_mut().skip(from).for_each(|entry| entry.unread = entry.unread.saturating_sub(1));
        self.trim();
    }

    /// Ends the time for joining: drops the pieces that all have read.
    pub(crate) fn keep_no_more(&mut self) {
        self.keeps = false;
        self.trim();
    }

    /// All pieces from the first.
    pub(crate) fn all(&self) -> SmallVec<[Piece; 1]> {
        self.entries.iter().map(|entry| entry.piece.clone()).collect()
    }

    fn trim(&mut self) {
        if self.keeps {
            return;
        }
        while self.entries.front().is_some_and(|entry| entry.unread == 0) {
            if let Some(entry) = self.entries.pop_front() {
                self.release(entry.weight);
                self.first += 1;
            }
        }
    }

    fn release(&mut self, bytes: usize) {
        self.bytes -= bytes;
        self.all.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        self.release(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(text: &'static str) -> Piece {
        Piece::Data(text.as_bytes().into())
    }

    #[test]
    fn a_piece_goes_when_all_have_read_it() {
        let held = Arc::new(HeldBytes::default());
        let mut pieces = Pieces::new(false, Arc::clone(&held));
        pieces.push(data("one"), 2);
        pieces.push(data("two"), 2);
        assert_eq!(pieces.read(0).unwrap().data(), 3);
        assert_eq!(pieces.bytes(), held.bytes());
        let both = pieces.bytes();
        assert!(pieces.read(0).is_some());
        assert!(pieces.bytes() < both);
        assert!(pieces.read(0).is_none() && pieces.read(2).is_none());
        pieces.leave(1);
        assert!(pieces.read(1).is_some());
        assert_eq!((pieces.bytes(), pieces.end(), held.bytes()), (0, 2, 0));
    }

    #[test]
    fn what_is_kept_can_be_joined() {
        let held = Arc::new(HeldBytes::default());
        let mut pieces = Pieces::new(true, Arc::clone(&held));
        pieces.push(data("one"), 1);
        assert!(pieces.read(0).is_some());
        pieces.join();
        pieces.keep_no_more();
        assert!(pieces.read(0).is_some());
        assert_eq!(held.bytes(), 0);
        pieces.push(data("two"), 3);
        assert!(held.bytes() > 0);
        drop(pieces);
        assert_eq!(held.bytes(), 0);
    }
}
