//! A connection's state. Sending and receiving have files of their own.

mod control;
mod heads;
mod receiving;
mod sending;

use std::collections::VecDeque;

use crate::frame::{ErrorCode, PAYLOAD_BYTES, PREFACE, setting, write_settings, write_window_update};
use crate::head::Meaning;
use crate::hpack::{Decoder, Encoder, Fields, MOST_LIST_BYTES, REMEMBERED};
use crate::stream::Stream;

/// The largest window (RFC 9113, section 6.9.1), in bytes.
const MOST_WINDOW: i64 = 0x7fff_ffff;
/// The initial size of every window, in bytes.
const FIRST_WINDOW: i64 = 65_535;
/// The table that our peer may use, in bytes.
const TABLE_BYTES: usize = 4096;
/// The most bytes of a header block, and the most CONTINUATION frames of one.
const MOST_BLOCK_BYTES: usize = MOST_LIST_BYTES;
const MOST_CONTINUATIONS: usize = 64;
/// The most interim answers (1xx) before the final one.
const MOST_INTERIM: u8 = 16;
/// The most frames in a row that carry no part of an answer.
const MOST_IDLE_FRAMES: u32 = 100_000;
/// The most SETTINGS whose acknowledgements may wait for the socket.
const MOST_OWED_ACKS: u32 = 1000;
/// The most data appended at once, in bytes; the rest follows by [`Connection::more`].
const AT_ONCE_BYTES: usize = 64 * 1024;

/// A connection's requirements for its peer.
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

/// The meaning of received bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'b> {
    /// Nothing for a stream: all bytes were taken, or a frame of the connection itself.
    Aside,
    /// The peer's first SETTINGS: its limit on streams is known.
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
        /// The number of padding bytes behind the part that were taken with it.
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
    /// The stream's bytes are malformed; the peer was told, and the stream has ended.
    Malformed {
        /// The stream's place.
        position: usize,
        /// Why.
        reason: &'static str,
    },
    /// The peer takes no more streams on this connection. It has not processed those from position `unprocessed` on and
    /// will not: they are forgotten here.
    GoAway {
        /// Why.
        code: ErrorCode,
        /// The position of the first unprocessed stream; the number of streams if all were processed.
        unprocessed: usize,
    },
}

/// The longest text of a GOAWAY that is kept, in bytes: the same few texts, as gRPC's servers have them.
const LONGEST_SAID: usize = 64;

/// A violation of the protocol by the peer. The connection cannot be used after it; GOAWAY was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Violation {
    /// The error code sent to the peer.
    pub code: ErrorCode,
    /// The violation in words.
    pub reason: &'static str,
}

impl Violation {
    /// The peer speaks HTTP/1.1.
    pub const HTTP_1: Self = protocol_error("the target answers in HTTP/1.1");
}

/// Counts since they were last taken ([`Connection::take_counters`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// GOAWAY frames.
    pub goaways: u64,
    /// `RST_STREAM` frames of the peer, by the code's number; the last place for codes without a name.
    pub resets: [u64; ErrorCode::NAMED + 1],
    /// Bytes of header blocks sent.
    pub block_bytes: u64,
}

/// The peer's limits.
#[derive(Debug)]
struct Peer {
    streams: u32,
    stream_window: i64,
    payload: usize,
}

/// A DATA frame whose payload is under way.
#[derive(Debug, Clone, Copy)]
struct Incoming {
    /// Its stream; `None` if nobody wants it.
    stream: Option<u32>,
    /// Whether the length of padding is still to come.
    is_padded: bool,
    /// The remaining bytes of its data, and of its padding.
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

/// The client's side of a connection. `T` is data that belongs to a stream.
///
/// **Order.** [`open`](Self::open) once, first, and [`Event::Opened`] before the first [`start`](Self::start).
///
/// **Positions.** A stream is named by its position among those that have not ended: 0 is the oldest. A stream that
/// ends by an event (`end`, [`Event::Trailers`], [`Event::Reset`], [`Event::Malformed`]) keeps its position until it is
/// taken ([`take`](Self::take)), which has to be done at once.
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
    /// The meanings of the blocks that the decoder remembers.
    meanings: [Meaning; REMEMBERED],
    /// Streams that have not ended, by their ids, which only grow.
    streams: VecDeque<Stream<T>>,
    next_id: u32,
    /// The highest stream that was reset, by either side: frames on it, or on an earlier one, may be late. They concern
    /// that stream only (RFC 9113, section 5.1).
    abandoned: u32,
    window_out: i64,
    window_in: i64,
    unacknowledged: u32,
    /// How many streams have data that waits.
    waiting: usize,
    /// The position of the stream that sends data next.
    turn: usize,
    /// An incomplete frame, or frame head.
    partial: Vec<u8>,
    incoming: Option<Incoming>,
    block: Vec<u8>,
    continued: Option<Continued>,
    is_open: bool,
    is_leaving: bool,
    /// What it said besides, if that is short and can be shown.
    said: String,
    /// Whether the socket takes no bytes, and the answers owed to the peer meanwhile.
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
            said: String::new(),
            is_stalled: false,
            owed_acks: 0,
            owed_pong: None,
            idle_frames: 0,
            counters: Counters::default(),
        }
    }

    /// Appends the connection's preface (RFC 9113, section 3.4).
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

    /// How many streams may be open at once, by the peer's limit and the remaining ids.
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

    /// Whether there are no streams.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// The encoder of header blocks. A block must be given to [`start`](Self::start) before another is begun.
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

    /// The position of the stream with this id; `None` if it has ended.
    pub fn place(&self, id: u32) -> Option<usize> {
        self.position(id).ok().flatten()
    }

    /// The data of a stream.
    pub fn data(&self, position: usize) -> Option<&T> {
        self.streams.get(position).map(|stream| &stream.data)
    }

    /// The data of a stream, to change it.
    pub fn data_mut(&mut self, position: usize) -> Option<&mut T> {
        self.streams.get_mut(position).map(|stream| &mut stream.data)
    }

    /// Whether the peer's settings have come, so that it speaks HTTP/2.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// What the peer said in words when it announced the connection's end; empty where that is long or no text.
    pub fn said(&self) -> &str {
        &self.said
    }

    /// Returns the counts since the last time.
    pub fn take_counters(&mut self) -> Counters {
        std::mem::take(&mut self.counters)
    }
}

const fn protocol_error(reason: &'static str) -> Violation {
    Violation { code: ErrorCode::PROTOCOL_ERROR, reason }
}
