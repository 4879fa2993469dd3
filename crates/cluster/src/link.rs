//! A link: messages between a controller and an agent, each once and in order, over a bus that may lose, double and
//! reorder them.
//!
//! Core NATS delivers a message at most once, and none while it is being restarted. So the messages of a side are a
//! sequence of bytes, each message with its length before it. The sequence is sent in pieces, each with its position. A
//! piece is kept until the other side has acknowledged all bytes up to its end. Pieces that wait too long are lost: the
//! oldest is sent again alone, and the others as that is acknowledged. Since bytes are counted, not pieces, the pieces
//! can be cut anew when the bus takes shorter messages than before. The link does no I/O and reads no clock.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use crate::frame::{Frame, HEAD_BYTES, Kind};
use crate::rules::{Rule, is_broken};

/// The most bytes of a session in one frame.
const PIECE_BYTES: usize = 64 << 10;
/// The number of pieces on their way: at first, and at most. A subscriber that stops reading for a while is then far
/// from the point where the server cuts it off.
const FIRST_WINDOW: usize = 4;
const MOST_WINDOW: usize = 32;
/// The most pieces that are kept while earlier ones are missing.
const MOST_EARLY: usize = 4 * MOST_WINDOW;
/// Bytes of a message's length.
const LENGTH_BYTES: usize = 4;
/// The shortest and the longest time to wait for an acknowledgement before a piece is sent again, in nanoseconds.
const LEAST_PATIENCE_NS: u64 = 300_000_000;
const MOST_PATIENCE_NS: u64 = 8_000_000_000;
/// For how long pieces may queue on their way before fewer are sent at once, in nanoseconds.
const QUEUEING_NS: u64 = 200_000_000;

/// A piece that was sent and not acknowledged yet.
#[derive(Debug)]
struct Outgoing {
    offset: u64,
    payload: Bytes,
    sent_ns: u64,
    /// Whether it was sent more than once: an acknowledgement may then be for either copy.
    is_resent: bool,
    /// Whether it waited too long, and was not sent again yet.
    is_lost: bool,
}

impl Outgoing {
    fn end(&self) -> u64 {
        self.offset + self.payload.len() as u64
    }
}

/// How long to wait for acknowledgements, and how much to send without one: RFC 6298, with a window that keeps queues
/// on the way short.
#[derive(Debug)]
struct Pace {
    /// The smoothed round trip and its deviation, once there is one; in nanoseconds.
    smoothed: Option<(u64, u64)>,
    least_ns: u64,
    patience_ns: u64,
    window: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self { smoothed: None, least_ns: u64::MAX, patience_ns: LEAST_PATIENCE_NS, window: FIRST_WINDOW }
    }
}

impl Pace {
    /// Counts acknowledged pieces. `took_ns` is the round trip of the last one; `None` if it was sent twice, as it is
    /// then unknown which copy was acknowledged.
    fn acknowledged(&mut self, pieces: usize, took_ns: Option<u64>) {
        let Some(took_ns) = took_ns else {
            // Something arrives again after everything was lost.
            self.window = (self.window + pieces).clamp(1, MOST_WINDOW);
            return;
        };
        let (mean, deviation) = match self.smoothed {
            None => (took_ns, took_ns / 2),
            Some((mean, deviation)) => ((7 * mean + took_ns) / 8, (3 * deviation + mean.abs_diff(took_ns)) / 4),
        };
        self.smoothed = Some((mean, deviation));
        self.least_ns = self.least_ns.min(took_ns);
        self.patience_ns = mean.saturating_add(4 * deviation).clamp(LEAST_PATIENCE_NS, MOST_PATIENCE_NS);
        self.window = match took_ns - self.least_ns {
            queued_ns if queued_ns < QUEUEING_NS => self.window + pieces,
            _ => self.window - 1,
        };
        self.window = self.window.clamp(1, MOST_WINDOW);
    }

    /// Nothing was acknowledged in time.
    fn timed_out(&mut self) {
        self.patience_ns = (2 * self.patience_ns).min(MOST_PATIENCE_NS);
        self.window = 1;
    }
}

/// More than a message may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message of more than {most} bytes came over the bus")]
pub(crate) struct TooLong {
    most: usize,
}

/// One side of a link.
#[derive(Debug)]
pub(crate) struct Link {
    session: u128,
    /// Limit on an incoming message, in bytes.
    most_bytes: usize,
    piece_bytes: usize,
    /// Bytes to be sent for the first time, and their position.
    waiting: VecDeque<Bytes>,
    next: u64,
    outgoing: VecDeque<Outgoing>,
    pace: Pace,
    /// Since when the oldest piece on its way waits for an acknowledgement, in nanoseconds.
    waits_since: u64,
    /// How many of the peer's bytes have arrived without a gap.
    arrived: u64,
    /// Pieces that came before missing ones, by their positions.
    early: BTreeMap<u64, Bytes>,
    /// The bytes of an incomplete message.
    begun: Vec<u8>,
    owes_acknowledgement: bool,
}

impl Link {
    /// A link over a bus that takes messages of `most_payload` bytes, which takes in messages of `most_bytes`.
    pub(crate) fn new(session: u128, most_bytes: usize, most_payload: usize) -> Self {
        let mut link = Self {
            session,
            most_bytes,
            piece_bytes: PIECE_BYTES,
            waiting: VecDeque::new(),
            next: 0,
            outgoing: VecDeque::new(),
            pace: Pace::default(),
            waits_since: 0,
            arrived: 0,
            early: BTreeMap::new(),
            begun: Vec::new(),
            owes_acknowledgement: false,
        };
        link.fit(most_payload);
        link
    }

    /// The bus takes messages of this many bytes from now on: longer ones on their way are cut anew.
    pub(crate) fn fit(&mut self, most_payload: usize) {
        self.piece_bytes = most_payload.saturating_sub(HEAD_BYTES).clamp(1, PIECE_BYTES);
        for piece in std::mem::take(&mut self.outgoing) {
            let Outgoing { mut offset, mut payload, sent_ns, is_resent, is_lost } = piece;
            while !payload.is_empty() {
                let most = if is_broken(Rule::PiecesFitTheServer) { usize::MAX } else { self.piece_bytes };
                let cut = payload.split_to(payload.len().min(most));
                let length = cut.len() as u64;
                self.outgoing.push_back(Outgoing { offset, payload: cut, sent_ns, is_resent, is_lost });
                offset += length;
            }
        }
    }

    pub(crate) fn session(&self) -> u128 {
        self.session
    }

    /// Whether the peer has everything that was sent.
    pub(crate) fn is_acknowledged(&self) -> bool {
        self.outgoing.is_empty() && self.waiting.is_empty()
    }

    /// Bytes on their way.
    pub(crate) fn in_flight(&self) -> usize {
        self.outgoing.iter().filter(|piece| !piece.is_lost).map(|piece| piece.payload.len()).sum()
    }

    /// Bytes that the peer has not acknowledged, sent or not.
    pub(crate) fn bytes_left(&self) -> usize {
        let waiting: usize = self.waiting.iter().map(Bytes::len).sum();
        waiting + self.outgoing.iter().map(|piece| piece.payload.len()).sum::<usize>()
    }

    /// Sends a message with the next [`Link::poll`].
    pub(crate) fn send(&mut self, message: impl Into<Bytes>) {
        let message = message.into();
        // No valid message is that long.
        let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
        self.waiting.extend([Bytes::copy_from_slice(&length.to_be_bytes()), message]);
    }

    fn has_timed_out(&self, now_ns: u64) -> bool {
        !self.outgoing.is_empty() && now_ns >= self.waits_since.saturating_add(self.pace.patience_ns)
    }

    fn has_room(&self) -> bool {
        self.outgoing.iter().filter(|piece| !piece.is_lost).count() < self.pace.window
    }

    /// Whether the peer waits for an acknowledgement that no other frame carries.
    pub(crate) fn only_acknowledges(&self, now_ns: u64) -> bool {
        let has_more = self.has_timed_out(now_ns) || self.has_room() && !self.waiting.is_empty();
        self.owes_acknowledgement && !has_more
    }

    /// A note of this session, which acknowledges everything that has come.
    pub(crate) fn note(&mut self, payload: Vec<u8>) -> Frame {
        self.owes_acknowledgement = false;
        Frame { arrived: self.arrived, ..Frame::note(self.session, payload) }
    }

    /// Takes in that the peer has this many bytes.
    pub(crate) fn acknowledge(&mut self, arrived: u64, now_ns: u64) {
        let (mut pieces, mut took_ns) = (0, None);
        while self.outgoing.front().is_some_and(|piece| {
            let end = if is_broken(Rule::WholePiecesAreAcknowledged) { piece.offset } else { piece.end() };
            end <= arrived
        }) {
            let Some(piece) = self.outgoing.pop_front() else { break };
            pieces += 1;
            took_ns = (!piece.is_resent).then(|| now_ns.saturating_sub(piece.sent_ns));
        }
        if pieces > 0 {
            self.waits_since = now_ns;
            self.pace.acknowledged(pieces, took_ns);
        }
    }

    /// Takes a frame that came at `now_ns`, or a note. Returns the messages that it completes, in order.
    ///
    /// # Errors
    /// When a message is longer than it may be. The link is of no use then.
    pub(crate) fn receive(&mut self, frame: Frame, now_ns: u64) -> Result<Vec<Vec<u8>>, TooLong> {
        self.acknowledge(frame.arrived, now_ns);
        if frame.kind != Kind::Piece {
            return Ok(Vec::new());
        }
        // A piece that came twice is acknowledged again: the acknowledgement may have been lost.
        self.owes_acknowledgement = true;
        let Frame { offset, payload, .. } = frame;
        let is_near = offset <= self.arrived + (MOST_WINDOW * PIECE_BYTES) as u64 && payload.len() <= PIECE_BYTES;
        let is_next = offset <= self.arrived;
        if is_near && (is_next || self.early.len() < MOST_EARLY) && offset + payload.len() as u64 > self.arrived {
            let known = self.early.entry(offset).or_default();
            if known.len() < payload.len() {
                *known = payload;
            }
        }
        while let Some(piece) = self.early.first_entry().filter(|piece| *piece.key() <= self.arrived) {
            let (offset, payload) = piece.remove_entry();
            // Where pieces were cut anew, a part of it may have come before.
            let known = if is_broken(Rule::TwiceIsOnce) { 0 } else { (self.arrived - offset) as usize };
            let fresh = payload.get(known..).unwrap_or_default();
            self.begun.extend_from_slice(fresh);
            self.arrived += fresh.len() as u64;
        }
        self.complete()
    }

    /// The complete messages.
    fn complete(&mut self) -> Result<Vec<Vec<u8>>, TooLong> {
        let (mut messages, mut rest) = (Vec::new(), self.begun.as_slice());
        while let Some((length, after)) = rest.split_first_chunk::<LENGTH_BYTES>() {
            let length = u32::from_be_bytes(*length) as usize;
            if length > self.most_bytes {
                return Err(TooLong { most: self.most_bytes });
            }
            let Some((message, after)) = after.split_at_checked(length) else { break };
            messages.push(message.to_vec());
            rest = after;
        }
        let taken = self.begun.len() - rest.len();
        self.begun.drain(..taken);
        Ok(messages)
    }

    /// Takes new bytes to be sent, as much as fits into a piece; `None` if all were sent.
    fn next_payload(&mut self) -> Option<Bytes> {
        let first = self.waiting.front_mut()?;
        if first.len() > self.piece_bytes {
            return Some(first.split_to(self.piece_bytes));
        }
        let mut payload = Vec::new();
        while let Some(first) = self.waiting.front_mut().filter(|_| payload.len() < self.piece_bytes) {
            payload.extend_from_slice(&first.split_to(first.len().min(self.piece_bytes - payload.len())));
            if first.is_empty() {
                self.waiting.pop_front();
            }
        }
        Some(payload.into())
    }

    fn frame(&self, piece: &Outgoing) -> Frame {
        let Outgoing { offset, ref payload, .. } = *piece;
        Frame { kind: Kind::Piece, session: self.session, offset, arrived: self.arrived, payload: payload.clone() }
    }

    /// The oldest lost piece, once more.
    fn resend(&mut self, now_ns: u64) -> Option<Frame> {
        let place = self.outgoing.iter().position(|piece| piece.is_lost)?;
        let piece = self.outgoing.get_mut(place)?;
        (piece.sent_ns, piece.is_resent, piece.is_lost) = (now_ns, true, false);
        self.outgoing.get(place).map(|piece| self.frame(piece))
    }

    /// The frames to be sent now, however many bytes they have.
    pub(crate) fn poll_all(&mut self, now_ns: u64) -> Vec<Frame> {
        let mut room = usize::MAX;
        self.poll(now_ns, &mut room)
    }

    /// The frames to be sent now: lost pieces, new ones within `room` bytes, or only an acknowledgement.
    pub(crate) fn poll(&mut self, now_ns: u64, room: &mut usize) -> Vec<Frame> {
        let mut frames = Vec::new();
        if self.has_timed_out(now_ns) {
            self.pace.timed_out();
            self.waits_since = now_ns;
            self.outgoing.iter_mut().for_each(|piece| piece.is_lost = !is_broken(Rule::LostPiecesAreSentAgain));
        }
        while self.has_room()
            && let Some(frame) = self.resend(now_ns)
        {
            *room = room.saturating_sub(frame.payload.len());
            frames.push(frame);
        }
        while self.has_room()
            && *room >= self.piece_bytes
            && let Some(payload) = self.next_payload()
        {
            if self.outgoing.is_empty() {
                self.waits_since = now_ns;
            }
            *room -= payload.len();
            let piece = Outgoing { offset: self.next, payload, sent_ns: now_ns, is_resent: false, is_lost: false };
            self.next = piece.end();
            frames.push(self.frame(&piece));
            self.outgoing.push_back(piece);
        }
        if frames.is_empty() && self.owes_acknowledgement {
            let (session, arrived) = (self.session, self.arrived);
            frames.push(Frame { kind: Kind::Nothing, session, offset: 0, arrived, payload: Bytes::new() });
        }
        self.owes_acknowledgement = false;
        frames
    }
}

#[cfg(test)]
// An example has this file by its path.
#[path = "link/tests.rs"]
mod tests;
