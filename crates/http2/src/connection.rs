//! A connection's state.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use crate::frame::{
    ErrorCode, HEAD_BYTES, Head, PAYLOAD_BYTES, PREFACE, flag, kind, setting, write_goaway, write_pong, write_reset,
    write_settings, write_settings_ack, write_window_update,
};
use crate::head::Meaning;
use crate::hpack::{Decoder, Encoder, Fields, MOST_LIST_BYTES, REMEMBERED};
use crate::stream::Stream;

/// The largest window (RFC 9113, section 6.9.1), in bytes.
const MOST_WINDOW: i64 = 0x7fff_ffff;
/// Every window at first, in bytes.
const FIRST_WINDOW: i64 = 65_535;
/// The table that our peer may use, in bytes.
const TABLE_BYTES: usize = 4096;
/// The most bytes of a header block, and the most CONTINUATION frames of one.
const MOST_BLOCK_BYTES: usize = MOST_LIST_BYTES;
const MOST_CONTINUATIONS: usize = 64;
/// The most interim answers (1xx) before the final one.
const MOST_INTERIM: u8 = 16;
/// The most frames in a row that bring no answer further.
const MOST_IDLE_FRAMES: u32 = 100_000;
/// The most SETTINGS whose acknowledgements wait for the socket.
const MOST_OWED_ACKS: u32 = 1000;
/// The most data appended at once, in bytes; what is left follows by [`Connection::more`].
const AT_ONCE_BYTES: usize = 64 * 1024;

/// What a connection asks of its peer.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// The window of each stream, in bytes, up to 2³¹ − 1.
    pub stream_window: u32,
    /// The window of the connection, in bytes, from 65,535 to 2³¹ − 1.
    pub connection_window: u32,
}

impl Default for Config {
    /// Windows that hold no peer back.
    fn default() -> Self {
        Self { stream_window: 1 << 24, connection_window: 1 << 30 }
    }
}

/// What bytes meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'b> {
    /// Nothing that a stream has to hear of; all bytes were taken, or a frame of the connection's own.
    Aside,
    /// The peer's first SETTINGS: how many streams it takes is known.
    Opened,
    /// A final head; its fields are [`Connection::fields`].
    Head {
        /// The stream's place among those that have not ended.
        position: usize,
        /// Its :status.
        status: u16,
        /// Whether the stream has ended with it.
        end: bool,
    },
    /// A part of a body.
    Data {
        /// The stream's place.
        position: usize,
        /// The part; may be empty where it ends the stream.
        bytes: &'b [u8],
        /// How many bytes of padding behind the part were taken with it.
        behind: usize,
        /// Whether the data of its DATA frame ends with it.
        ends_frame: bool,
        /// Whether the stream has ended with it.
        end: bool,
    },
    /// Trailers, with which the stream has ended; their fields are [`Connection::fields`].
    Trailers {
        /// The stream's place.
        position: usize,
    },
    /// The peer has ended the stream before its answer was complete.
    Reset {
        /// The stream's place.
        position: usize,
        /// Why.
        code: ErrorCode,
    },
    /// What came on the stream is malformed; the peer was told, and the stream has ended.
    Malformed {
        /// The stream's place.
        position: usize,
        /// Why.
        reason: &'static str,
    },
    /// The peer takes no more streams on this connection. Those from the place `unprocessed` on it has not processed and will not:
    /// they are forgotten here.
    GoAway {
        /// Why.
        code: ErrorCode,
        /// The place of the first that was not processed; how many there are if all were.
        unprocessed: usize,
    },
}

/// What a peer must not do. The connection is of no use after it; GOAWAY was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Violation {
    /// What the peer was told.
    pub code: ErrorCode,
    /// What it did.
    pub reason: &'static str,
}

impl Violation {
    /// The peer speaks HTTP/1.1.
    pub const HTTP_1: Self = protocol_error("the target answers in HTTP/1.1");
}

/// What has come and gone, since it was last taken ([`Connection::take_counters`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// GOAWAY frames.
    pub goaways: u64,
    /// `RST_STREAM` frames of the peer, by the code's number; the last place for codes without a name.
    pub resets: [u64; ErrorCode::NAMED + 1],
    /// Bytes of header blocks sent.
    pub block_bytes: u64,
}

/// What the peer allows.
#[derive(Debug)]
struct Peer {
    streams: u32,
    stream_window: i64,
    payload: usize,
}

/// A DATA frame whose payload is under way.
#[derive(Debug, Clone, Copy)]
struct Incoming {
    /// Its stream; none if nobody wants it.
    stream: Option<u32>,
    /// Whether the length of padding is still to come.
    is_padded: bool,
    /// What is left of its data, and of its padding.
    left: usize,
    padding: usize,
    end: bool,
}

/// A header block that goes on in CONTINUATION frames.
#[derive(Debug, Clone, Copy)]
struct Continued {
    stream: u32,
    end: bool,
    frames: usize,
}

/// The client's side of a connection. `T` is what its streams belong to.
///
/// **Order.** [`open`](Self::open) once, first, and [`Event::Opened`] before the first [`start`](Self::start).
///
/// **Places.** A stream is known by its place among those that have not ended, counted from the oldest, which is 0. A stream that ends by
/// an event (`end`, [`Event::Trailers`], [`Event::Reset`], [`Event::Malformed`]) keeps its place until it is taken
/// ([`take`](Self::take)), which is to be done at once.
///
/// # Example
///
/// ```
/// use brunt_http2::{Config, Connection, Event};
///
/// let (mut connection, mut out) = (Connection::new(Config::default()), Vec::new());
/// connection.open(&mut out);
/// // The server's SETTINGS, which are empty.
/// let opened = connection.receive(&[0, 0, 0, 4, 0, 0, 0, 0, 0], &mut out)?;
/// assert_eq!(opened, (9, Event::Opened));
///
/// let mut block = Vec::new();
/// let encoder = connection.encoder();
/// encoder.begin(&mut block);
/// for (name, value) in [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a.example")] {
///     encoder.field(name.as_bytes(), value.as_bytes(), true, &mut block);
/// }
/// connection.start(&block, true, false, "the first", &mut out);
///
/// // HEADERS of stream 1 with `:status: 204`, END_STREAM and END_HEADERS.
/// let (_, event) = connection.receive(&[0, 0, 1, 1, 5, 0, 0, 0, 1, 0x89], &mut out)?;
/// assert_eq!(event, Event::Head { position: 0, status: 204, end: true });
/// assert_eq!(connection.take(0, &mut out), Some("the first"));
/// # Ok::<(), brunt_http2::Violation>(())
/// ```
#[derive(Debug)]
pub struct Connection<T> {
    config: Config,
    peer: Peer,
    encoder: Encoder,
    decoder: Decoder,
    /// What the blocks mean that the decoder remembers.
    meanings: [Meaning; REMEMBERED],
    /// Streams that have not ended, by their ids, which only grow.
    streams: VecDeque<Stream<T>>,
    next_id: u32,
    /// The highest stream that was reset, by us or by the peer: what comes on it, or on one before it, may be late. It concerns that stream
    /// alone (RFC 9113, section 5.1).
    abandoned: u32,
    window_out: i64,
    window_in: i64,
    unacknowledged: u32,
    /// How many streams have data that waits.
    waiting: usize,
    /// Whose turn it is to send data.
    turn: usize,
    /// A frame, or its head, that is not all there.
    partial: Vec<u8>,
    incoming: Option<Incoming>,
    block: Vec<u8>,
    continued: Option<Continued>,
    is_open: bool,
    is_leaving: bool,
    /// Whether the socket takes nothing; what is owed to the peer meanwhile.
    is_stalled: bool,
    owed_acks: u32,
    owed_pong: Option<[u8; 8]>,
    idle_frames: u32,
    counters: Counters,
}

impl<T> Connection<T> {
    /// A new connection. It has sent nothing yet: [`Connection::open`] sends the preface.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            peer: Peer { streams: u32::MAX, stream_window: FIRST_WINDOW, payload: PAYLOAD_BYTES },
            encoder: Encoder::new(),
            decoder: Decoder::new(TABLE_BYTES),
            meanings: Default::default(),
            streams: VecDeque::new(),
            next_id: 1,
            abandoned: 0,
            window_out: FIRST_WINDOW,
            window_in: i64::from(config.connection_window).clamp(FIRST_WINDOW, MOST_WINDOW),
            unacknowledged: 0,
            waiting: 0,
            turn: 0,
            partial: Vec::new(),
            incoming: None,
            block: Vec::new(),
            continued: None,
            is_open: false,
            is_leaving: false,
            is_stalled: false,
            owed_acks: 0,
            owed_pong: None,
            idle_frames: 0,
            counters: Counters::default(),
        }
    }

    /// Appends what opens the connection (RFC 9113, section 3.4).
    pub fn open(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(PREFACE);
        let settings = [
            (setting::ENABLE_PUSH, 0),
            (setting::INITIAL_WINDOW_SIZE, self.config.stream_window.min(MOST_WINDOW as u32)),
            (setting::MAX_HEADER_LIST_SIZE, MOST_LIST_BYTES as u32),
        ];
        write_settings(&settings, out);
        let more = self.window_in - FIRST_WINDOW;
        if more > 0 {
            write_window_update(0, more as u32, out);
        }
    }

    /// How many streams may be open at once, by what the peer has said and the ids that are left.
    #[inline]
    pub fn capacity(&self) -> usize {
        if self.is_leaving || self.next_id > MOST_WINDOW as u32 {
            return 0;
        }
        self.peer.streams as usize
    }

    /// Whether all ids are used up.
    pub fn is_exhausted(&self) -> bool {
        self.next_id > MOST_WINDOW as u32
    }

    /// How many streams have not ended.
    pub fn len(&self) -> usize {
        self.streams.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// What writes header blocks. A block must be given to [`start`](Self::start) before another is begun.
    pub fn encoder(&mut self) -> &mut Encoder {
        &mut self.encoder
    }

    /// The fields of the head or the trailers that came last.
    pub fn fields(&self) -> &Fields {
        self.decoder.fields()
    }

    /// The id of a stream.
    #[inline]
    pub fn id(&self, position: usize) -> Option<u32> {
        self.streams.get(position).map(|stream| stream.id)
    }

    /// The place of the stream with this id; none if it has ended.
    pub fn place(&self, id: u32) -> Option<usize> {
        self.position(id).ok().flatten()
    }

    /// What belongs to a stream.
    pub fn data(&self, position: usize) -> Option<&T> {
        self.streams.get(position).map(|stream| &stream.data)
    }

    /// The same, to change it.
    pub fn data_mut(&mut self, position: usize) -> Option<&mut T> {
        self.streams.get_mut(position).map(|stream| &mut stream.data)
    }

    /// What has come and gone since this was last asked.
    pub fn take_counters(&mut self) -> Counters {
        std::mem::take(&mut self.counters)
    }

    /// Opens a stream with a header block, which ends our side with `end`; its place is the last. `bodiless` says that the answer
    /// has no body even if its head tells a length.
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

    /// The same for a part of bytes that many streams send, of which none is copied until it is sent.
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

    /// Sends as much as can be sent at once, if nothing waits on the stream; returns how much.
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

    /// How many bytes of data wait on a stream until they can be sent.
    pub fn waiting(&self, position: usize) -> usize {
        self.streams.get(position).and_then(|stream| stream.outgoing.as_ref()).map_or(0, |outgoing| outgoing.len())
    }

    /// Whether data waits that could be sent now.
    #[inline]
    pub fn has_more(&self) -> bool {
        self.waiting > 0 && !self.is_stalled && self.streams.iter().any(|stream| can_send(stream, self.window_out))
    }

    /// Whether data waits, and the peer's windows hold back all of it.
    #[inline]
    pub fn is_blocked(&self) -> bool {
        self.waiting > 0 && !self.is_stalled && !self.streams.iter().any(|stream| can_send(stream, self.window_out))
    }

    /// Appends data that waits, of each stream in its turn, up to some 64 KiB.
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

    /// Ends a stream before its answer is complete, for `code`, and gives what belonged to it.
    pub fn reset(&mut self, position: usize, code: ErrorCode, out: &mut Vec<u8>) -> Option<T> {
        let stream = self.streams.get(position)?;
        self.abandoned = self.abandoned.max(stream.id);
        write_reset(stream.id, code, out);
        self.remove(position)
    }

    /// A stream has ended by an event: gives what belonged to it. Where our side had not ended, the peer is told that it will not
    /// (RFC 9113, section 8.1).
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

    /// The socket takes nothing for now.
    pub fn stalled(&mut self) {
        self.is_stalled = true;
    }

    /// It takes more. Appends what the peer was owed meanwhile.
    pub fn resumed(&mut self, out: &mut Vec<u8>) {
        self.is_stalled = false;
        for _ in 0..std::mem::take(&mut self.owed_acks) {
            write_settings_ack(out);
        }
        if let Some(payload) = self.owed_pong.take() {
            write_pong(payload, out);
        }
    }

    /// Says that the connection ends.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        if self.is_open {
            write_goaway(ErrorCode::NO_ERROR, out);
        }
    }

    /// Takes bytes that arrived, in whatever pieces: how many it took, at least one, and what they meant. What is to be sent in return
    /// is appended to `out`.
    ///
    /// # Errors
    /// When they break a rule or a limit.
    pub fn receive<'b>(&mut self, bytes: &'b [u8], out: &mut Vec<u8>) -> Result<(usize, Event<'b>), Violation> {
        self.take_bytes(bytes, out).inspect_err(|violation| write_goaway(violation.code, out))
    }

    #[inline]
    fn take_bytes<'b>(&mut self, bytes: &'b [u8], out: &mut Vec<u8>) -> Result<(usize, Event<'b>), Violation> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let event = if self.incoming.is_some() {
                self.take_data(&mut rest, out)?
            } else if self.partial.is_empty() {
                self.take_frame(&mut rest, out)?
            } else {
                self.take_partial(&mut rest, out)?
            };
            if event != Event::Aside {
                return Ok((bytes.len() - rest.len(), event));
            }
        }
        Ok((bytes.len(), Event::Aside))
    }

    /// Takes a whole frame, or what there is of it.
    #[inline]
    fn take_frame<'b>(&mut self, rest: &mut &'b [u8], out: &mut Vec<u8>) -> Result<Event<'b>, Violation> {
        let Some(head) = Head::read(rest) else {
            self.check_beginning(rest)?;
            self.partial.extend_from_slice(rest);
            *rest = &[];
            return Ok(Event::Aside);
        };
        self.check_head(&head, rest)?;
        if head.kind == kind::DATA {
            *rest = rest.get(HEAD_BYTES..).unwrap_or(&[]);
            self.begin_data(&head)?;
            return self.take_data(rest, out);
        }
        let Some((frame, after)) = rest.split_at_checked(HEAD_BYTES + head.length) else {
            self.partial.extend_from_slice(rest);
            *rest = &[];
            return Ok(Event::Aside);
        };
        *rest = after;
        self.frame(&head, frame.get(HEAD_BYTES..).unwrap_or(&[]), out)
    }

    /// Takes what completes the frame of which there is a part.
    #[cold]
    fn take_partial<'b>(&mut self, rest: &mut &'b [u8], out: &mut Vec<u8>) -> Result<Event<'b>, Violation> {
        let head = loop {
            let head = Head::read(&self.partial);
            let whole = HEAD_BYTES + head.map_or(0, |head| head.length);
            let missing = whole.saturating_sub(self.partial.len());
            if let Some(head) = head
                && (missing == 0 || head.kind == kind::DATA)
            {
                break head;
            }
            if rest.is_empty() {
                return Ok(Event::Aside);
            }
            let (next, after) = rest.split_at(missing.min(rest.len()));
            *rest = after;
            self.partial.extend_from_slice(next);
            match Head::read(&self.partial) {
                Some(head) => self.check_head(&head, &self.partial)?,
                None => self.check_beginning(&self.partial)?,
            }
        };
        let mut frame = std::mem::take(&mut self.partial);
        if head.kind == kind::DATA {
            self.begin_data(&head)?;
            // An empty one is complete already.
            return self.take_data(rest, out);
        }
        let event = self.frame(&head, frame.get(HEAD_BYTES..).unwrap_or(&[]), out)?;
        // No event of these frames holds any of their bytes.
        let event = match event {
            Event::Data { .. } | Event::Aside => Event::Aside,
            Event::Opened => Event::Opened,
            Event::Head { position, status, end } => Event::Head { position, status, end },
            Event::Trailers { position } => Event::Trailers { position },
            Event::Reset { position, code } => Event::Reset { position, code },
            Event::Malformed { position, reason } => Event::Malformed { position, reason },
            Event::GoAway { code, unprocessed } => Event::GoAway { code, unprocessed },
        };
        frame.clear();
        self.partial = frame;
        Ok(event)
    }

    /// Whether the first bytes may be those of HTTP/2 at all.
    #[cold]
    fn check_beginning(&self, bytes: &[u8]) -> Result<(), Violation> {
        let http1 = b"HTTP/1.";
        let known = bytes.len().min(http1.len());
        if !self.is_open && known > 3 && bytes.get(..known) == http1.get(..known) {
            return Err(Violation::HTTP_1);
        }
        Ok(())
    }

    /// Checks what must hold for every frame. `bytes` begin with its head.
    #[inline]
    fn check_head(&self, head: &Head, bytes: &[u8]) -> Result<(), Violation> {
        if !self.is_open && (head.kind != kind::SETTINGS || head.has(flag::ACK)) {
            self.check_beginning(bytes)?;
            return Err(protocol_error("the first frame is not SETTINGS"));
        }
        if head.length > PAYLOAD_BYTES {
            return Err(Violation {
                code: ErrorCode::FRAME_SIZE_ERROR,
                reason: "a frame of more than the 16 KiB that were allowed",
            });
        }
        match self.continued {
            Some(continued) if head.kind != kind::CONTINUATION || head.stream != continued.stream => {
                Err(protocol_error("a header block is broken off by another frame"))
            }
            None if head.kind == kind::CONTINUATION => Err(protocol_error("CONTINUATION without a header block")),
            _ => Ok(()),
        }
    }

    /// A frame that brings no answer further.
    #[inline]
    fn count_idle(&mut self) -> Result<(), Violation> {
        self.idle_frames += 1;
        if self.idle_frames > MOST_IDLE_FRAMES {
            return Err(Violation {
                code: ErrorCode::ENHANCE_YOUR_CALM,
                reason: "100,000 frames in a row (SETTINGS, PING and their like) that belong to no answer",
            });
        }
        Ok(())
    }

    /// The place of a stream that has not ended. None for one that has ended, to which something may still come.
    #[inline]
    fn position(&self, id: u32) -> Result<Option<usize>, Violation> {
        if let Some(first) = self.streams.front()
            && first.id == id
        {
            return Ok(Some(0));
        }
        match self.streams.binary_search_by(|stream| stream.id.cmp(&id)) {
            Ok(position) => Ok(Some(position)),
            Err(_) if id.is_multiple_of(2) || id >= self.next_id => {
                Err(protocol_error("a frame for a stream that was never opened"))
            }
            Err(_) => Ok(None),
        }
    }

    /// The same for what must not come any more once a stream has ended.
    #[inline]
    fn live_position(&self, id: u32) -> Result<Option<usize>, Violation> {
        let position = self.position(id)?;
        if position.is_none() && id > self.abandoned {
            return Err(Violation {
                code: ErrorCode::STREAM_CLOSED,
                reason: "DATA or HEADERS on a stream that had ended",
            });
        }
        Ok(position)
    }

    /// A DATA frame begins.
    #[inline]
    fn begin_data(&mut self, head: &Head) -> Result<(), Violation> {
        if head.stream == 0 {
            return Err(protocol_error("DATA without a stream"));
        }
        let position = self.live_position(head.stream)?;
        let length = head.length as i64;
        self.window_in -= length;
        let overrun = self.window_in < 0
            || position.and_then(|at| self.streams.get_mut(at)).is_some_and(|stream| {
                stream.window_in -= length;
                stream.window_in < 0
            });
        if overrun {
            return Err(Violation {
                code: ErrorCode::FLOW_CONTROL_ERROR,
                reason: "more data than the flow-control window allowed",
            });
        }
        let is_padded = head.has(flag::PADDED);
        if is_padded && head.length == 0 {
            return Err(Violation { code: ErrorCode::FRAME_SIZE_ERROR, reason: "padding without a length" });
        }
        if head.length == 0 && !head.has(flag::END_STREAM) {
            self.count_idle()?;
        } else if position.is_some() {
            self.idle_frames = 0;
        }
        self.incoming = Some(Incoming {
            stream: position.map(|_| head.stream),
            is_padded,
            left: head.length,
            padding: 0,
            end: head.has(flag::END_STREAM),
        });
        Ok(())
    }

    /// Takes what there is of a DATA frame's payload.
    #[inline]
    fn take_data<'b>(&mut self, rest: &mut &'b [u8], out: &mut Vec<u8>) -> Result<Event<'b>, Violation> {
        let Some(mut incoming) = self.incoming.take() else { return Ok(Event::Aside) };
        if incoming.is_padded {
            let Some((length, after)) = rest.split_first() else {
                self.incoming = Some(incoming);
                return Ok(Event::Aside);
            };
            *rest = after;
            incoming.is_padded = false;
            incoming.padding = usize::from(*length);
            self.give_back(incoming.stream, 1, out);
            let Some(left) = (incoming.left - 1).checked_sub(incoming.padding) else {
                return Err(protocol_error("more padding than payload"));
            };
            incoming.left = left;
        }
        let (data, after) = rest.split_at(incoming.left.min(rest.len()));
        let (padding, after) = after.split_at(incoming.padding.min(after.len()));
        *rest = after;
        incoming.left -= data.len();
        incoming.padding -= padding.len();
        let is_whole = incoming.left == 0 && incoming.padding == 0;
        if !is_whole {
            self.incoming = Some(incoming);
        }
        let end = is_whole && incoming.end;
        let position = match incoming.stream {
            Some(id) => self.position(id)?,
            None => None,
        };
        let given = (data.len() + padding.len()) as u32;
        self.give_back(if end { None } else { incoming.stream }, given, out);
        let Some(position) = position else { return Ok(Event::Aside) };
        let Some(stream) = self.streams.get_mut(position) else { return Ok(Event::Aside) };
        if !stream.has_head {
            return Ok(self.malformed(position, "DATA before the head", out));
        }
        if let Some(left) = &mut stream.length_left {
            match left.checked_sub(data.len() as u64) {
                Some(less) if !end || less == 0 => *left = less,
                _ => return Ok(self.malformed(position, "a body of another length than its content-length", out)),
            }
        }
        if data.is_empty() && !end {
            return Ok(Event::Aside);
        }
        Ok(Event::Data { position, bytes: data, behind: padding.len(), ends_frame: incoming.left == 0, end })
    }

    /// So many bytes were taken: the peer may send as many more, of which it is told now and then.
    #[inline]
    fn give_back(&mut self, stream: Option<u32>, bytes: u32, out: &mut Vec<u8>) {
        self.unacknowledged += bytes;
        if let Some(increment) = increment(&mut self.unacknowledged, self.config.connection_window) {
            self.window_in += i64::from(increment);
            write_window_update(0, increment, out);
        }
        let Some(id) = stream else { return };
        if let Ok(Some(position)) = self.position(id)
            && let Some(stream) = self.streams.get_mut(position)
        {
            stream.unacknowledged += bytes;
            if let Some(increment) = increment(&mut stream.unacknowledged, self.config.stream_window) {
                stream.window_in += i64::from(increment);
                write_window_update(id, increment, out);
            }
        }
    }

    /// A stream's peer has broken a rule of streams: it ends.
    fn malformed(&mut self, position: usize, reason: &'static str, out: &mut Vec<u8>) -> Event<'static> {
        self.violated(position, protocol_error(reason), out)
    }

    /// The same for another error than a protocol's.
    #[cold]
    fn violated(&mut self, position: usize, violation: Violation, out: &mut Vec<u8>) -> Event<'static> {
        let Violation { code, reason } = violation;
        if let Some(stream) = self.streams.get_mut(position) {
            write_reset(stream.id, code, out);
            self.abandoned = self.abandoned.max(stream.id);
            // It ends for us, too.
            stream.is_sent = true;
        }
        // What is under way of it is nobody's.
        if let Some(incoming) = &mut self.incoming {
            incoming.stream = None;
        }
        Event::Malformed { position, reason }
    }

    /// A frame that is all there, other than DATA.
    #[inline]
    fn frame(&mut self, head: &Head, payload: &[u8], out: &mut Vec<u8>) -> Result<Event<'static>, Violation> {
        match head.kind {
            kind::HEADERS => self.headers(head, payload, out),
            kind::CONTINUATION => self.continuation(head, payload, out),
            _ => {
                self.count_idle()?;
                self.other_frame(head, payload, out)
            }
        }
    }

    fn other_frame(&mut self, head: &Head, payload: &[u8], out: &mut Vec<u8>) -> Result<Event<'static>, Violation> {
        match (head.kind, payload.len()) {
            (kind::SETTINGS, _) => self.settings(head, payload, out),
            (kind::WINDOW_UPDATE, 4) => self.window_update(head, number_at(payload, 0), out),
            (kind::RST_STREAM, 4) => self.rst_stream(head, ErrorCode(number_at(payload, 0))),
            (kind::PING, 8) if head.stream == 0 => {
                if let Some(payload) = payload.first_chunk()
                    && !head.has(flag::ACK)
                {
                    // Of those that come while nothing can be sent, the last is answered.
                    if self.is_stalled { self.owed_pong = Some(*payload) } else { write_pong(*payload, out) }
                }
                Ok(Event::Aside)
            }
            (kind::GOAWAY, 8..) if head.stream == 0 => {
                Ok(self.goaway(number_at(payload, 0) & 0x7fff_ffff, ErrorCode(number_at(payload, 4))))
            }
            (kind::PING | kind::GOAWAY, _) if head.stream != 0 => Err(protocol_error("PING or GOAWAY on a stream")),
            (kind::PUSH_PROMISE, _) => Err(protocol_error("PUSH_PROMISE, which was not allowed")),
            (kind::PRIORITY, 5) if head.stream != 0 => Ok(Event::Aside),
            (kind::WINDOW_UPDATE | kind::RST_STREAM | kind::PING | kind::GOAWAY | kind::PRIORITY, _) => {
                Err(Violation { code: ErrorCode::FRAME_SIZE_ERROR, reason: "a frame of the wrong size for its kind" })
            }
            // What is unknown is ignored (RFC 9113, section 5.5).
            _ => Ok(Event::Aside),
        }
    }

    /// HEADERS: a head, or trailers.
    #[inline]
    fn headers(&mut self, head: &Head, payload: &[u8], out: &mut Vec<u8>) -> Result<Event<'static>, Violation> {
        if head.stream == 0 {
            return Err(protocol_error("HEADERS without a stream"));
        }
        let mut block = payload;
        let mut padding = 0;
        if head.has(flag::PADDED) {
            let (length, rest) = block.split_first().ok_or(CUT)?;
            (padding, block) = (usize::from(*length), rest);
        }
        if head.has(flag::PRIORITY) {
            block = block.get(5..).ok_or(CUT)?;
        }
        let length = block.len().checked_sub(padding).ok_or_else(|| protocol_error("more padding than payload"))?;
        let block = block.get(..length).unwrap_or(&[]);
        let end = head.has(flag::END_STREAM);
        if head.has(flag::END_HEADERS) {
            return self.fields_came(head.stream, block, end, out);
        }
        self.block.clear();
        self.block.extend_from_slice(block);
        self.continued = Some(Continued { stream: head.stream, end, frames: 0 });
        Ok(Event::Aside)
    }

    #[cold]
    fn continuation(&mut self, head: &Head, payload: &[u8], out: &mut Vec<u8>) -> Result<Event<'static>, Violation> {
        let Some(continued) = &mut self.continued else { return Ok(Event::Aside) };
        continued.frames += 1;
        let Continued { stream, end, frames } = *continued;
        if frames > MOST_CONTINUATIONS || self.block.len() + payload.len() > MOST_BLOCK_BYTES {
            return Err(Violation {
                code: ErrorCode::ENHANCE_YOUR_CALM,
                reason: "a header block of more than 64 KiB or 64 CONTINUATION frames",
            });
        }
        self.block.extend_from_slice(payload);
        if !head.has(flag::END_HEADERS) {
            return Ok(Event::Aside);
        }
        self.continued = None;
        let mut block = std::mem::take(&mut self.block);
        let event = self.fields_came(stream, &block, end, out);
        block.clear();
        block.shrink_to(PAYLOAD_BYTES);
        self.block = block;
        event
    }

    /// A whole header block has come.
    #[inline]
    fn fields_came(
        &mut self,
        id: u32,
        block: &[u8],
        end: bool,
        out: &mut Vec<u8>,
    ) -> Result<Event<'static>, Violation> {
        // What nobody wants is read all the same, since it may change the table.
        let read =
            self.decoder.read(block).map_err(|reason| Violation { code: ErrorCode::COMPRESSION_ERROR, reason })?;
        let Some(meaning) = self.meanings.get_mut(read.place) else { return Ok(Event::Aside) };
        if !read.known {
            *meaning = Meaning::of(self.decoder.fields());
        }
        let meaning = *meaning;
        let Some(position) = self.live_position(id)? else {
            self.count_idle()?;
            return Ok(Event::Aside);
        };
        self.idle_frames = 0;
        let Some(stream) = self.streams.get_mut(position) else { return Ok(Event::Aside) };
        let reason = match (meaning.malformed, meaning.status, stream.has_head) {
            (Some(reason), ..) => reason,
            (None, None, false) => "a head without :status",
            (None, Some(_), true) => "a second head",
            (None, None, true) if !end => "trailers that do not end the stream",
            (None, None, true) => {
                if stream.length_left.is_none_or(|left| left == 0) {
                    return Ok(Event::Trailers { position });
                }
                "a body of another length than its content-length"
            }
            (None, Some(101), _) => "status 101, which HTTP/2 has not",
            (None, Some(100..=199), false) => {
                stream.interim += 1;
                match stream.interim {
                    _ if end => "an interim answer that ends the stream",
                    ..=MOST_INTERIM => return Ok(Event::Aside),
                    _ => "more than 16 interim answers",
                }
            }
            (None, Some(status), false) => {
                stream.has_head = true;
                let bodiless = stream.bodiless || matches!(status, 204 | 304);
                stream.length_left = if bodiless { None } else { meaning.length };
                if !end || bodiless || meaning.length.is_none_or(|length| length == 0) {
                    return Ok(Event::Head { position, status, end });
                }
                "a body of another length than its content-length"
            }
        };
        Ok(self.malformed(position, reason, out))
    }

    fn settings(&mut self, head: &Head, payload: &[u8], out: &mut Vec<u8>) -> Result<Event<'static>, Violation> {
        let wrong_size = Violation { code: ErrorCode::FRAME_SIZE_ERROR, reason: "SETTINGS of a wrong size" };
        if head.stream != 0 {
            return Err(protocol_error("SETTINGS on a stream"));
        }
        if head.has(flag::ACK) {
            return if payload.is_empty() { Ok(Event::Aside) } else { Err(wrong_size) };
        }
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(wrong_size);
        }
        for [a, b, c, d, e, f] in settings {
            self.set(u16::from_be_bytes([*a, *b]), u32::from_be_bytes([*c, *d, *e, *f]))?;
        }
        if self.is_stalled {
            self.owed_acks += 1;
            if self.owed_acks > MOST_OWED_ACKS {
                return Err(Violation {
                    code: ErrorCode::ENHANCE_YOUR_CALM,
                    reason: "more than 1,000 SETTINGS while the peer reads nothing",
                });
            }
        } else {
            write_settings_ack(out);
        }
        let first = !std::mem::replace(&mut self.is_open, true);
        Ok(if first { Event::Opened } else { Event::Aside })
    }

    fn set(&mut self, name: u16, value: u32) -> Result<(), Violation> {
        match name {
            setting::HEADER_TABLE_SIZE => self.encoder.limit_table(value as usize),
            setting::ENABLE_PUSH if value != 0 => return Err(protocol_error("a server that wants to be pushed to")),
            setting::MAX_CONCURRENT_STREAMS => self.peer.streams = value,
            setting::INITIAL_WINDOW_SIZE => {
                let window = i64::from(value);
                let by = window - self.peer.stream_window;
                let is_over = |stream: &Stream<T>| stream.window_out + by > MOST_WINDOW;
                if window > MOST_WINDOW || self.streams.iter().any(is_over) {
                    return Err(OVERFLOW);
                }
                self.streams.iter_mut().for_each(|stream| stream.window_out += by);
                self.peer.stream_window = window;
            }
            setting::MAX_FRAME_SIZE => {
                if !(PAYLOAD_BYTES as u32..1 << 24).contains(&value) {
                    return Err(protocol_error("SETTINGS_MAX_FRAME_SIZE out of its range"));
                }
                self.peer.payload = (value as usize).min(AT_ONCE_BYTES);
            }
            _ => {}
        }
        Ok(())
    }

    fn window_update(&mut self, head: &Head, increment: u32, out: &mut Vec<u8>) -> Result<Event<'static>, Violation> {
        let by = i64::from(increment & 0x7fff_ffff);
        if head.stream == 0 {
            if by == 0 {
                return Err(protocol_error("WINDOW_UPDATE by 0"));
            }
            self.window_out += by;
            return if self.window_out > MOST_WINDOW { Err(OVERFLOW) } else { Ok(Event::Aside) };
        }
        let Some(position) = self.position(head.stream)? else { return Ok(Event::Aside) };
        let Some(stream) = self.streams.get_mut(position) else { return Ok(Event::Aside) };
        stream.window_out += by;
        let violation = match by {
            0 => protocol_error("WINDOW_UPDATE by 0"),
            _ if stream.window_out > MOST_WINDOW => OVERFLOW,
            _ => return Ok(Event::Aside),
        };
        Ok(self.violated(position, violation, out))
    }

    fn rst_stream(&mut self, head: &Head, code: ErrorCode) -> Result<Event<'static>, Violation> {
        if head.stream == 0 {
            return Err(protocol_error("RST_STREAM without a stream"));
        }
        let Some(position) = self.position(head.stream)? else { return Ok(Event::Aside) };
        self.abandoned = self.abandoned.max(head.stream);
        if let Some(stream) = self.streams.get_mut(position) {
            stream.is_sent = true;
        }
        if let Some(count) = self.counters.resets.get_mut((code.0 as usize).min(ErrorCode::NAMED)) {
            *count += 1;
        }
        Ok(Event::Reset { position, code })
    }

    /// The peer takes no more streams, and has processed none after `last`.
    fn goaway(&mut self, last: u32, code: ErrorCode) -> Event<'static> {
        self.counters.goaways += 1;
        self.is_leaving = true;
        let unprocessed = self.streams.partition_point(|stream| stream.id <= last);
        for stream in self.streams.drain(unprocessed..) {
            self.abandoned = self.abandoned.max(stream.id);
            self.waiting -= usize::from(stream.outgoing.is_some());
        }
        Event::GoAway { code, unprocessed }
    }
}

const CUT: Violation =
    Violation { code: ErrorCode::FRAME_SIZE_ERROR, reason: "HEADERS too short for their padding or priority" };
const OVERFLOW: Violation =
    Violation { code: ErrorCode::FLOW_CONTROL_ERROR, reason: "a flow-control window beyond 2^31 - 1" };

const fn protocol_error(reason: &'static str) -> Violation {
    Violation { code: ErrorCode::PROTOCOL_ERROR, reason }
}

/// The number of four bytes at this place of a payload.
fn number_at(payload: &[u8], from: usize) -> u32 {
    payload.get(from..).and_then(<[u8]>::first_chunk).copied().map_or(0, u32::from_be_bytes)
}

/// By how much a window is to be opened again: always by a multiple of the same step, a little over half of the window. So what the
/// peer may send depends on how many bytes were read, and not on how they were cut.
#[inline]
fn increment(unacknowledged: &mut u32, window: u32) -> Option<u32> {
    let step = window / 2 + 1;
    if *unacknowledged < step {
        return None;
    }
    let increment = *unacknowledged - *unacknowledged % step;
    *unacknowledged -= increment;
    Some(increment)
}

/// Whether data that waits on the stream can be sent. Its end alone needs no window.
fn can_send<T>(stream: &Stream<T>, window: i64) -> bool {
    stream
        .outgoing
        .as_ref()
        .is_some_and(|outgoing| outgoing.is_empty() && outgoing.ends || window > 0 && stream.window_out > 0)
}

/// Appends DATA frames with as much of `bytes` as windows and `most` allow, the last with `END_STREAM` if it is all and `end` says
/// so; returns how much.
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
