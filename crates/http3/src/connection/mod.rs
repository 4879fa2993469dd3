//! A connection's state. Receiving, the connection's own streams and sending have files of their own.

mod control;
mod receiving;
mod sending;

use std::collections::VecDeque;

use brunt_http2::Fields;
use brunt_http2::head::Meaning;
use brunt_http2::hpack::{MOST_LIST_BYTES, REMEMBERED};
use brunt_quic::record::{HEAD_BYTES, Kind, Record};

use crate::error_code::Http3Code;
use crate::frame::{FrameHead, kind, setting, stream};
use crate::qpack::{SectionDecoder, SectionEncoder};
use crate::stream::{OneWay, Stream};
use crate::varint;

/// The most bytes of a field section, before it is decoded.
const MOST_SECTION_BYTES: u64 = MOST_LIST_BYTES as u64;
/// The most interim answers (1xx) before the final one.
const MOST_INTERIM: u8 = 16;
/// The most frames in a row that carry no part of an answer.
const MOST_IDLE_FRAMES: u32 = 100_000;
/// The most streams in one direction of the peer.
const MOST_ONE_WAY: usize = 64;
/// The most data appended at once, in bytes; the rest follows by [`Http3Connection::more`].
const AT_ONCE_BYTES: usize = 64 * 1024;
/// The most data of one frame and record, in bytes.
const PAYLOAD_BYTES: usize = 16 * 1024;

/// The meaning of received records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Http3Event<'b> {
    /// Nothing for a request: all bytes were taken, or something of the connection itself.
    Aside,
    /// The peer's SETTINGS.
    Opened,
    /// The first streams of a client are allowed: it can send requests.
    Ready,
    /// A request's head, for a server; its fields are [`Http3Connection::fields`].
    Request {
        /// The stream's place among those that have not ended.
        position: usize,
        /// Whether the peer's side of the stream has ended with it.
        end: bool,
    },
    /// A final head, for a client; its fields are [`Http3Connection::fields`].
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
        /// Whether its DATA frame ends with it.
        ends_frame: bool,
        /// Whether the stream has ended with it.
        end: bool,
    },
    /// Trailers, with which the stream has ended; their fields are [`Http3Connection::fields`].
    Trailers {
        /// The stream's place.
        position: usize,
    },
    /// The peer has ended the stream before its message was complete; for a server also: it does not read the answer.
    Reset {
        /// The stream's place.
        position: usize,
        /// Why.
        code: Http3Code,
    },
    /// The stream's message is malformed; the peer was told, and the stream has ended.
    Malformed {
        /// The stream's place.
        position: usize,
        /// Why.
        reason: &'static str,
    },
    /// The peer takes no more requests on this connection. It has not processed those from position `unprocessed` on and will not: they
    /// are forgotten here.
    GoAway {
        /// The position of the first unprocessed stream; the number of streams if all were processed.
        unprocessed: usize,
    },
    /// The peer has closed the connection, for this reason.
    Closed {
        /// Why.
        code: Http3Code,
    },
}

/// A violation of the protocol by the peer. The connection cannot be used after it; its end was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Http3Violation {
    /// The error code sent to the peer.
    pub code: Http3Code,
    /// The violation in words.
    pub reason: &'static str,
}

/// Counts since they were last taken ([`Http3Connection::take_counters`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Http3Counters {
    /// GOAWAY frames.
    pub goaways: u64,
    /// Streams that the peer ended early, by the code's [`place`](Http3Code::place).
    pub resets: [u64; Http3Code::NAMED + 1],
    /// Bytes of field sections sent.
    pub section_bytes: u64,
}

impl Default for Http3Counters {
    fn default() -> Self {
        Self { goaways: 0, resets: [0; Http3Code::NAMED + 1], section_bytes: 0 }
    }
}

/// Data of a record, under way.
#[derive(Debug, Clone, Copy)]
struct Incoming {
    stream: u64,
    left: usize,
    /// Whether the peer's side ends with it.
    last: bool,
}

/// Which side of a connection this is.
#[derive(Debug, Clone, Copy)]
enum Role<T> {
    Client,
    /// With what makes the data of a request's stream.
    Server(fn() -> T),
}

/// One side of a connection. `T` is data that belongs to a request's stream.
///
/// **Order.** [`open`](Self::open) once, first; a client's first [`start`](Self::start) once [`capacity`](Self::capacity) allows it, which is
/// before the peer's SETTINGS have come.
///
/// **Positions.** A stream is named by its position among those that have not ended: 0 is the oldest. A stream that ends by an event
/// (`end`, [`Http3Event::Trailers`], [`Http3Event::Reset`], [`Http3Event::Malformed`]) keeps its position until it is taken ([`take`](Self::take)): a client
/// does that at once, a server once it has answered.
///
/// # Example
///
/// ```
/// use brunt_http3::{Http3Connection, Http3Event};
/// use brunt_quic::{Kind, Record};
///
/// let (mut connection, mut out) = (Http3Connection::client(), Vec::new());
/// connection.open(&mut out);
/// // The peer allows a request.
/// connection.receive(&Record::new(Kind::Streams, 0, 1).bytes(), &mut out)?;
/// assert_eq!(connection.capacity(), 1);
///
/// let mut section = Vec::new();
/// let encoder = connection.encoder();
/// encoder.begin(&mut section);
/// for (name, value) in [(":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", "a.example")] {
///     encoder.field(name.as_bytes(), value.as_bytes(), &mut section);
/// }
/// connection.start(&section, true, false, "the first", &mut out);
///
/// // HEADERS on stream 0 with `:status: 204`, and the stream's end.
/// let mut answer = Record::data(0, true, 6).bytes().to_vec();
/// answer.extend([1, 4, 0, 0, 0xff, 1]);
/// let (_, event) = connection.receive(&answer, &mut out)?;
/// assert_eq!(event, Http3Event::Head { position: 0, status: 204, end: true });
/// assert_eq!(connection.take(0, &mut out), Some("the first"));
/// # Ok::<(), brunt_http3::Http3Violation>(())
/// ```
#[derive(Debug)]
pub struct Http3Connection<T> {
    role: Role<T>,
    encoder: SectionEncoder,
    decoder: SectionDecoder,
    /// The meanings of the sections that the decoder remembers, and whether it is that of trailers.
    meanings: [(Meaning, bool); REMEMBERED],
    /// Streams that have not ended, by their ids.
    streams: VecDeque<Stream<T>>,
    /// A client's next stream; the first one that a server has not seen.
    next_id: u64,
    /// How many streams a client may open, in all.
    allowed: u64,
    /// The peer's streams in one direction.
    one_way: Vec<OneWay>,
    /// Whether the peer has opened a control stream, one of its encoder, one of its decoder.
    has_critical: [bool; 3],
    /// The beginning of a record's head.
    head: ([u8; HEAD_BYTES], usize),
    incoming: Option<Incoming>,
    is_open: bool,
    /// The first stream that the peer of a client will not process.
    going_away: Option<u64>,
    /// Whether a server takes no more requests.
    is_leaving: bool,
    /// How many streams have data that waits, and how many flow control holds back.
    waiting: usize,
    blocked: usize,
    /// The position of the stream that sends data next.
    turn: usize,
    /// Whether the socket takes no bytes.
    is_stalled: bool,
    idle_frames: u32,
    counters: Http3Counters,
}

impl<T> Http3Connection<T> {
    /// A client's side. It has sent nothing yet.
    pub fn client() -> Self {
        Self::new(Role::Client)
    }

    fn new(role: Role<T>) -> Self {
        Self {
            role,
            encoder: SectionEncoder,
            decoder: SectionDecoder::default(),
            meanings: Default::default(),
            streams: VecDeque::new(),
            next_id: 0,
            allowed: 0,
            one_way: Vec::new(),
            has_critical: [false; 3],
            head: ([0; HEAD_BYTES], 0),
            incoming: None,
            is_open: false,
            going_away: None,
            is_leaving: false,
            waiting: 0,
            blocked: 0,
            turn: 0,
            is_stalled: false,
            idle_frames: 0,
            counters: Http3Counters::default(),
        }
    }

    fn is_server(&self) -> bool {
        matches!(self.role, Role::Server(_))
    }

    /// The id of our control stream: the first one in one direction (RFC 9000, section 2.1).
    fn control_id(&self) -> u64 {
        2 + u64::from(self.is_server())
    }

    /// Opens our control stream with SETTINGS (RFC 9114, section 6.2.1). QPACK's are left at 0: there is no dynamic table, and so neither
    /// side of QPACK needs a stream of its own (RFC 9204, section 4.2).
    pub fn open(&mut self, out: &mut Vec<u8>) {
        let settings = varint::length(setting::MAX_FIELD_SECTION_SIZE) + varint::length(MOST_SECTION_BYTES);
        let head = FrameHead { kind: kind::SETTINGS, length: settings as u64 };
        let length = varint::length(stream::CONTROL) + head.bytes() + settings;
        Record::data(self.control_id(), false, length).write(out);
        varint::write(stream::CONTROL, out);
        head.write(out);
        varint::write(setting::MAX_FIELD_SECTION_SIZE, out);
        varint::write(MOST_SECTION_BYTES, out);
    }

    /// How many streams of a client may be open at once, by the peer's limit.
    #[inline]
    pub fn capacity(&self) -> usize {
        if self.going_away.is_some() {
            return 0;
        }
        let left = self.allowed.saturating_sub(self.next_id / 4);
        self.streams.len().saturating_add(usize::try_from(left).unwrap_or(usize::MAX))
    }

    /// How many streams have not ended.
    pub fn len(&self) -> usize {
        self.streams.len()
    }

    /// Whether there are no streams.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// The encoder of field sections.
    pub fn encoder(&mut self) -> &mut SectionEncoder {
        &mut self.encoder
    }

    /// Whether the stream of the last event ends within the next `bytes` that come.
    #[inline]
    pub fn ends_within(&self, bytes: usize) -> bool {
        self.incoming.is_some_and(|incoming| incoming.last && incoming.left <= bytes)
    }

    /// The fields of the head or the trailers that came last.
    pub fn fields(&self) -> &Fields {
        self.decoder.fields()
    }

    /// The id of a stream.
    #[inline]
    pub fn id(&self, position: usize) -> Option<u64> {
        self.streams.get(position).map(|stream| stream.id)
    }

    /// The position of the stream with this id; `None` if it has ended.
    #[inline]
    pub fn place(&self, id: u64) -> Option<usize> {
        if self.streams.front().is_some_and(|first| first.id == id) {
            return Some(0);
        }
        self.streams.binary_search_by(|stream| stream.id.cmp(&id)).ok()
    }

    /// The data of a stream.
    pub fn data(&self, position: usize) -> Option<&T> {
        self.streams.get(position).map(|stream| &stream.data)
    }

    /// The data of a stream, to change it.
    pub fn data_mut(&mut self, position: usize) -> Option<&mut T> {
        self.streams.get_mut(position).map(|stream| &mut stream.data)
    }

    /// Whether the peer's SETTINGS have come, so that it speaks HTTP/3.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Returns the counts since the last time.
    pub fn take_counters(&mut self) -> Http3Counters {
        std::mem::take(&mut self.counters)
    }

    /// Announces the end of the connection.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        Record::new(Kind::Close, 0, Http3Code::H3_NO_ERROR.0).write(out);
    }
}

impl<T: Default> Http3Connection<T> {
    /// A server's side. It has sent nothing yet.
    pub fn server() -> Self {
        Self::new(Role::Server(T::default))
    }
}

const fn violation(code: Http3Code, reason: &'static str) -> Http3Violation {
    Http3Violation { code, reason }
}
