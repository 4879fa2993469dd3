//! Sending: heads and data of streams, as far as windows and the socket allow, and ends of streams.

use std::ops::Range;
use std::sync::Arc;

use super::{AT_ONCE_BYTES, Connection};
use crate::frame::{ErrorCode, Head, flag, kind, write_goaway, write_pong, write_reset, write_settings_ack};
use crate::stream::Stream;

impl<T> Connection<T> {
    /// Opens a stream with a header block, which ends our side with `end`; its position is the last. `bodiless` says
    /// that the answer has no body even if its head states a length.
    pub fn start(&mut self, block: &[u8], end: bool, bodiless: bool, data: T, out: &mut Vec<u8>) {
        let id = self.next_id;
        self.next_id += 2;
        self.counters.block_bytes += block.len() as u64;
        let (first, mut rest) = block.split_at(block.len().min(self.peer.payload));
        let end_stream = if end { flag::END_STREAM } else { 0 };
        let end_headers = if rest.is_empty() { flag::END_HEADERS } else { 0 };
        Head { length: first.len(), kind: kind::HEADERS, flags: end_stream | end_headers, stream: id }.write(out);
        out.extend_from_slice(first);
        while !rest.is_empty() {
            let (next, after) = rest.split_at(rest.len().min(self.peer.payload));
            let flags = if after.is_empty() { flag::END_HEADERS } else { 0 };
            Head { length: next.len(), kind: kind::CONTINUATION, flags, stream: id }.write(out);
            out.extend_from_slice(next);
            rest = after;
        }
        self.streams.push_back(Stream {
            id,
            window_out: self.peer.stream_window,
            window_in: i64::from(self.config.stream_window),
            unacknowledged: 0,
            length_left: None,
            outgoing: None,
            is_sent: end,
            has_head: false,
            bodiless,
            interim: 0,
            data,
        });
    }

    /// Sends data on a stream, as far as windows allow; the rest is kept and follows. `end` ends our side.
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

    pub(super) fn is_sent(&self, position: usize, end: bool) -> bool {
        !end || self.streams.get(position).is_none_or(|stream| stream.is_sent)
    }

    /// Sends as much as can be sent at once, if no data waits on the stream; returns how much.
    fn send_now(&mut self, position: usize, bytes: &[u8], end: bool, out: &mut Vec<u8>) -> usize {
        let Some(stream) = self.streams.get_mut(position) else { return bytes.len() };
        if stream.is_sent {
            return bytes.len();
        }
        if stream.outgoing.is_some() || self.is_stalled {
            return 0;
        }
        let sent = write_data(stream, &mut self.window_out, self.peer.payload, bytes, end, AT_ONCE_BYTES, out);
        stream.is_sent = end && sent == bytes.len();
        self.has_sent_data(sent);
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

    /// The number of data bytes that wait on a stream.
    pub fn waiting(&self, position: usize) -> usize {
        self.streams.get(position).and_then(|stream| stream.outgoing.as_ref()).map_or(0, |outgoing| outgoing.len())
    }

    /// Whether data waits that could be sent now.
    #[inline]
    pub fn has_more(&self) -> bool {
        self.waiting > 0 && !self.is_stalled && self.streams.iter().any(|stream| can_send(stream, self.window_out))
    }

    /// Whether data waits, and the peer's windows hold all of it back.
    #[inline]
    pub fn is_blocked(&self) -> bool {
        self.waiting > 0 && !self.is_stalled && !self.streams.iter().any(|stream| can_send(stream, self.window_out))
    }

    /// Appends waiting data, of each stream in turn, up to some 64 KiB.
    pub fn more(&mut self, out: &mut Vec<u8>) {
        let mut left = AT_ONCE_BYTES;
        while left > 0 && self.has_more() {
            self.turn = if self.turn < self.streams.len() { self.turn } else { 0 };
            let turn = self.turn;
            self.turn += 1;
            let Some(stream) = self.streams.get_mut(turn) else { return };
            if !can_send(stream, self.window_out) {
                continue;
            }
            let Some(mut outgoing) = stream.outgoing.take() else { continue };
            // One frame, or the rest.
            let next = outgoing.next();
            let piece = next.get(..self.peer.payload).unwrap_or(next);
            let is_last = piece.len() == next.len() && outgoing.is_last();
            let end = is_last && outgoing.ends;
            let sent = write_data(stream, &mut self.window_out, self.peer.payload, piece, end, left, out);
            stream.is_sent = end && sent == piece.len();
            left = left.saturating_sub(sent.max(1));
            outgoing.sent(sent);
            if outgoing.is_empty() && (stream.is_sent || !outgoing.ends) {
                self.waiting -= 1;
            } else {
                stream.outgoing = Some(outgoing);
            }
            self.has_sent_data(sent);
        }
    }

    /// The windows that the peer has opened were of use.
    #[inline]
    fn has_sent_data(&mut self, bytes: usize) {
        if bytes > 0 {
            self.idle_frames = 0;
        }
    }

    /// Ends a stream before its answer is complete, for `code`, and returns its data.
    pub fn reset(&mut self, position: usize, code: ErrorCode, out: &mut Vec<u8>) -> Option<T> {
        let stream = self.streams.get(position)?;
        self.abandoned = self.abandoned.max(stream.id);
        write_reset(stream.id, code, out);
        self.remove(position)
    }

    /// Removes a stream that has ended by an event, and returns its data. If our side had not ended, the peer is told
    /// that it will not (RFC 9113, section 8.1).
    #[inline]
    pub fn take(&mut self, position: usize, out: &mut Vec<u8>) -> Option<T> {
        if self.streams.get(position).is_some_and(|stream| !stream.is_sent) {
            return self.reset(position, ErrorCode::CANCEL, out);
        }
        self.remove(position)
    }

    #[inline]
    fn remove(&mut self, position: usize) -> Option<T> {
        let stream = if position == 0 { self.streams.pop_front() } else { self.streams.remove(position) }?;
        self.waiting -= usize::from(stream.outgoing.is_some());
        Some(stream.data)
    }

    /// The socket takes no bytes for now.
    pub fn stalled(&mut self) {
        self.is_stalled = true;
    }

    /// The socket takes bytes again. Appends the answers owed to the peer.
    pub fn resumed(&mut self, out: &mut Vec<u8>) {
        self.is_stalled = false;
        for _ in 0..std::mem::take(&mut self.owed_acks) {
            write_settings_ack(out);
        }
        if let Some(payload) = self.owed_pong.take() {
            write_pong(payload, out);
        }
    }

    /// Announces the end of the connection.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        if self.is_open {
            write_goaway(ErrorCode::NO_ERROR, out);
        }
    }
}

/// Whether waiting data of the stream can be sent. A mere end needs no window.
fn can_send<T>(stream: &Stream<T>, window: i64) -> bool {
    stream
        .outgoing
        .as_ref()
        .is_some_and(|outgoing| outgoing.is_empty() && outgoing.ends || window > 0 && stream.window_out > 0)
}

/// Appends DATA frames with as much of `bytes` as windows and `most` allow, the last with `END_STREAM` if `end` is set
/// and all bytes fit; returns how much.
fn write_data<T>(
    stream: &mut Stream<T>,
    window: &mut i64,
    payload: usize,
    bytes: &[u8],
    end: bool,
    most: usize,
    out: &mut Vec<u8>,
) -> usize {
    let allowed = usize::try_from((*window).min(stream.window_out)).unwrap_or(0);
    let sent = bytes.len().min(allowed).min(most);
    let ends = end && sent == bytes.len();
    let flags = |last: bool| if last && ends { flag::END_STREAM } else { 0 };
    let mut left = bytes.get(..sent).unwrap_or(&[]);
    if left.is_empty() && ends {
        Head { length: 0, kind: kind::DATA, flags: flag::END_STREAM, stream: stream.id }.write(out);
    }
    while !left.is_empty() {
        let (piece, rest) = left.split_at(left.len().min(payload));
        Head { length: piece.len(), kind: kind::DATA, flags: flags(rest.is_empty()), stream: stream.id }.write(out);
        out.extend_from_slice(piece);
        left = rest;
    }
    *window -= sent as i64;
    stream.window_out -= sent as i64;
    sent
}
