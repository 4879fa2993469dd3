//! Sending: heads and bodies on streams, as far as flow control and the socket allow, and ends of streams.

use std::ops::Range;
use std::sync::Arc;

use brunt_quic::record::{Kind, Record};

use super::{AT_ONCE_BYTES, Http3Connection, PAYLOAD_BYTES};
use crate::error_code::Http3Code;
use crate::frame::{FrameHead, kind};
use crate::stream::Stream;
use crate::varint;

impl<T> Http3Connection<T> {
    /// Opens a client's stream with a field section, which ends our side with `end`; its position is the last. `bodiless` says that the
    /// answer has no body even if its head states a length.
    pub fn start(&mut self, section: &[u8], end: bool, bodiless: bool, data: T, out: &mut Vec<u8>) {
        let id = self.next_id;
        self.next_id += 4;
        self.write_section(id, section, end, out);
        let mut stream = Stream::new(id, data);
        (stream.is_sent, stream.bodiless) = (end, bodiless);
        self.streams.push_back(stream);
    }

    /// Sends a head on a server's stream, which ends our side with `end`. Interim answers (1xx) come before the final one.
    pub fn respond(&mut self, position: usize, section: &[u8], end: bool, out: &mut Vec<u8>) {
        let Some(stream) = self.streams.get_mut(position).filter(|stream| !stream.is_sent) else { return };
        stream.is_sent = end;
        let id = stream.id;
        self.write_section(id, section, end, out);
    }

    #[inline]
    fn write_section(&mut self, id: u64, section: &[u8], end: bool, out: &mut Vec<u8>) {
        self.counters.section_bytes += section.len() as u64;
        let head = FrameHead { kind: kind::HEADERS, length: section.len() as u64 };
        Record::data(id, end, head.bytes() + section.len()).write(out);
        head.write(out);
        out.extend_from_slice(section);
    }

    /// Sends a part of a body, as far as flow control allows; the rest is kept and follows. `end` ends our side.
    pub fn send(&mut self, position: usize, bytes: &[u8], end: bool, out: &mut Vec<u8>) {
        let sent = self.send_now(position, bytes, end, out);
        if let Some(rest) = bytes.get(sent..)
            && (!rest.is_empty() || !self.is_sent(position, end))
        {
            self.keep(position, rest.into(), 0..rest.len(), end);
        }
    }

    /// Sends a part of bytes that many streams share, which are not copied before they are sent.
    pub fn send_shared(&mut self, position: usize, of: &Arc<[u8]>, range: Range<usize>, end: bool, out: &mut Vec<u8>) {
        let sent = self.send_now(position, of.get(range.clone()).unwrap_or(&[]), end, out);
        let rest = range.start + sent..range.end;
        if !rest.is_empty() || !self.is_sent(position, end) {
            self.keep(position, Arc::clone(of), rest, end);
        }
    }

    fn is_sent(&self, position: usize, end: bool) -> bool {
        !end || self.streams.get(position).is_none_or(|stream| stream.is_sent)
    }

    /// Sends as much as can be sent at once, if no data waits on the stream; returns how much.
    fn send_now(&mut self, position: usize, bytes: &[u8], end: bool, out: &mut Vec<u8>) -> usize {
        let Some(stream) = self.streams.get_mut(position) else { return bytes.len() };
        if stream.is_sent {
            return bytes.len();
        }
        if stream.outgoing.is_some() || stream.is_blocked || self.is_stalled {
            return 0;
        }
        let sent = write_data(stream, bytes, end, AT_ONCE_BYTES, out);
        self.idle_frames = 0;
        sent
    }

    #[cold]
    fn keep(&mut self, position: usize, of: Arc<[u8]>, range: Range<usize>, end: bool) {
        let Some(stream) = self.streams.get_mut(position) else { return };
        self.waiting += usize::from(stream.outgoing.is_none());
        let outgoing = stream.outgoing.get_or_insert_default();
        outgoing.push(of, range);
        outgoing.ends |= end;
    }

    /// Whether our side of a stream has ended: everything was given to QUIC, or the peer reads no more.
    pub fn is_answered(&self, position: usize) -> bool {
        self.streams.get(position).is_some_and(|stream| stream.is_sent)
    }

    /// The number of bytes of a body that wait on a stream.
    pub fn waiting(&self, position: usize) -> usize {
        self.streams.get(position).and_then(|stream| stream.outgoing.as_ref()).map_or(0, |outgoing| outgoing.len())
    }

    /// Whether data waits that could be sent now.
    #[inline]
    pub fn has_more(&self) -> bool {
        self.waiting > 0 && !self.is_stalled && self.streams.iter().any(can_send)
    }

    /// Whether something waits, and flow control holds all of it back.
    #[inline]
    pub fn is_blocked(&self) -> bool {
        self.blocked > 0 && !self.is_stalled && !self.has_more()
    }

    /// Appends waiting data, of each stream in turn, up to some 64 KiB.
    pub fn more(&mut self, out: &mut Vec<u8>) {
        let mut left = AT_ONCE_BYTES;
        while left > 0 && self.has_more() {
            self.turn = if self.turn < self.streams.len() { self.turn } else { 0 };
            let turn = self.turn;
            self.turn += 1;
            let Some(stream) = self.streams.get_mut(turn).filter(|stream| can_send(stream)) else { continue };
            let Some(mut outgoing) = stream.outgoing.take() else { continue };
            // One frame, or the rest.
            let next = outgoing.next();
            let piece = next.get(..PAYLOAD_BYTES).unwrap_or(next);
            let is_last = piece.len() == next.len() && outgoing.is_last();
            let end = is_last && outgoing.ends;
            let sent = write_data(stream, piece, end, left, out);
            left = left.saturating_sub(sent.max(1));
            outgoing.sent(sent);
            if outgoing.is_empty() && (stream.is_sent || !outgoing.ends) {
                self.waiting -= 1;
            } else {
                stream.outgoing = Some(outgoing);
            }
            self.idle_frames = 0;
        }
    }

    /// Ends a stream before its message is complete, for `code`, in both directions, and returns its data.
    pub fn reset(&mut self, position: usize, code: Http3Code, out: &mut Vec<u8>) -> Option<T> {
        let stream = self.streams.get(position)?;
        Record::new(Kind::Stop, stream.id, code.0).write(out);
        if !stream.is_sent {
            Record::new(Kind::Reset, stream.id, code.0).write(out);
        }
        self.remove(position)
    }

    /// Removes a stream that has ended by an event, and returns its data. If our side had not ended, the peer is told that it will not.
    #[inline]
    pub fn take(&mut self, position: usize, out: &mut Vec<u8>) -> Option<T> {
        let stream = self.streams.get(position)?;
        if !stream.is_sent {
            Record::new(Kind::Reset, stream.id, Http3Code::H3_REQUEST_CANCELLED.0).write(out);
        }
        self.remove(position)
    }

    #[inline]
    fn remove(&mut self, position: usize) -> Option<T> {
        let stream = if position == 0 { self.streams.pop_front() } else { self.streams.remove(position) }?;
        self.waiting -= usize::from(stream.outgoing.is_some());
        self.blocked -= usize::from(stream.is_blocked);
        Some(stream.data)
    }

    /// The socket takes no bytes for now.
    pub fn stalled(&mut self) {
        self.is_stalled = true;
    }

    /// The socket takes bytes again.
    pub fn resumed(&mut self) {
        self.is_stalled = false;
    }

    /// A server takes no more requests: the peer is told which it has not seen, and those are refused (RFC 9114, section 5.2).
    pub fn leave(&mut self, out: &mut Vec<u8>) {
        self.is_leaving = true;
        let head = FrameHead { kind: kind::GOAWAY, length: varint::length(self.next_id) as u64 };
        Record::data(self.control_id(), false, head.bytes() + head.length as usize).write(out);
        head.write(out);
        varint::write(self.next_id, out);
    }
}

/// Whether waiting data of the stream can be sent.
fn can_send<T>(stream: &Stream<T>) -> bool {
    stream.outgoing.is_some() && !stream.is_blocked
}

/// Appends DATA frames with as much of `bytes` as `most` allows, a record each; the last ends our side if `end` is set and all bytes fit.
/// Returns how much.
fn write_data<T>(stream: &mut Stream<T>, bytes: &[u8], end: bool, most: usize, out: &mut Vec<u8>) -> usize {
    let sent = bytes.len().min(most);
    let ends = end && sent == bytes.len();
    let mut left = bytes.get(..sent).unwrap_or(&[]);
    if left.is_empty() && ends {
        Record::data(stream.id, true, 0).write(out);
    }
    while !left.is_empty() {
        let (piece, rest) = left.split_at(left.len().min(PAYLOAD_BYTES));
        let head = FrameHead { kind: kind::DATA, length: piece.len() as u64 };
        Record::data(stream.id, ends && rest.is_empty(), head.bytes() + piece.len()).write(out);
        head.write(out);
        out.extend_from_slice(piece);
        left = rest;
    }
    stream.is_sent = ends;
    sent
}
