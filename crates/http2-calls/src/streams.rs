//! What calls need of a connection with streams, whichever version of HTTP it is.

use std::ops::Range;
use std::sync::Arc;

use brunt_http2::frame::{HEAD_BYTES, Head, flag, kind, write_ping};
use brunt_http2::{Counters, ErrorCode, Event, Fields, Violation, hpack};
use brunt_http3::qpack;

/// How many frames are looked ahead through to see whether an answer is all there.
const MOST_AHEAD: usize = 4;

/// Writes header blocks, by HPACK or QPACK.
pub trait Sections {
    /// A block begins.
    fn begin(&mut self, out: &mut Vec<u8>);

    /// Appends a field, whose name is in lower case. With `index` it may enter a table: for fields that come again.
    fn field(&mut self, name: &[u8], value: &[u8], index: bool, out: &mut Vec<u8>);

    /// The number of changes of the table: while it stays the same, a block can be copied.
    fn changes(&self) -> u64;
}

impl Sections for hpack::Encoder {
    #[inline]
    fn begin(&mut self, out: &mut Vec<u8>) {
        hpack::Encoder::begin(self, out);
    }

    #[inline]
    fn field(&mut self, name: &[u8], value: &[u8], index: bool, out: &mut Vec<u8>) {
        hpack::Encoder::field(self, name, value, index, out);
    }

    #[inline]
    fn changes(&self) -> u64 {
        hpack::Encoder::changes(self)
    }
}

impl Sections for qpack::SectionEncoder {
    #[inline]
    fn begin(&mut self, out: &mut Vec<u8>) {
        qpack::SectionEncoder::begin(*self, out);
    }

    #[inline]
    fn field(&mut self, name: &[u8], value: &[u8], _index: bool, out: &mut Vec<u8>) {
        qpack::SectionEncoder::field(*self, name, value, out);
    }

    /// There is no table.
    #[inline]
    fn changes(&self) -> u64 {
        0
    }
}

/// Why bytes end a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// The peer broke a rule.
    Violation(Violation),
    /// The peer closed the connection with this code of HTTP/3.
    Closed(brunt_http3::Http3Code),
}

/// A client's side of a connection with streams, each with data `T`: HTTP/2's or HTTP/3's. Both have events in the terms of HTTP/2.
pub trait Streams<T>: Send {
    /// Writes header blocks.
    type Encoder: Sections;

    /// Why a call has failed that was refused too often.
    const REFUSED_TOO_OFTEN: &'static str;

    /// Appends the first bytes of the connection.
    fn open(&mut self, out: &mut Vec<u8>);
    /// How many streams may be open at once.
    fn capacity(&self) -> usize;
    /// Whether no stream will ever be opened again, because ids are used up.
    fn is_exhausted(&self) -> bool;
    /// How many streams have not ended.
    fn len(&self) -> usize;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The encoder of header blocks.
    fn encoder(&mut self) -> &mut Self::Encoder;
    /// The fields of the head or the trailers that came last.
    fn fields(&self) -> &Fields;
    /// The id of the stream at a position.
    fn id(&self, position: usize) -> Option<u64>;
    /// The position of a stream; `None` if it has ended.
    fn place(&self, id: u64) -> Option<usize>;
    /// The data of a stream, to change it.
    fn data_mut(&mut self, position: usize) -> Option<&mut T>;
    /// Opens a stream with a header block; its position is the last.
    fn start(&mut self, block: &[u8], end: bool, bodiless: bool, data: T, out: &mut Vec<u8>);
    /// Sends a part of a body. `end` ends our side.
    fn send(&mut self, position: usize, bytes: &[u8], end: bool, out: &mut Vec<u8>);
    /// Sends a part of a body that many streams share.
    fn send_shared(&mut self, position: usize, of: &Arc<[u8]>, range: Range<usize>, end: bool, out: &mut Vec<u8>);
    /// How many bytes of a body wait on a stream.
    fn waiting(&self, position: usize) -> usize;
    /// Takes bytes: returns how many, at least one, and what they meant.
    ///
    /// # Errors
    /// When they end the connection.
    fn receive<'b>(&mut self, bytes: &'b [u8], out: &mut Vec<u8>) -> Result<(usize, Event<'b>), Broken>;
    /// Whether the stream of the last event, with this id, ends within the bytes behind it.
    fn is_completed(&self, id: u64, rest: &[u8]) -> bool;
    /// Removes a stream that has ended by an event.
    fn take(&mut self, position: usize, out: &mut Vec<u8>) -> Option<T>;
    /// Ends a stream that is not needed any more.
    fn cancel(&mut self, position: usize, out: &mut Vec<u8>) -> Option<T>;
    /// A code in words.
    fn code_text(code: ErrorCode) -> String;
    /// Whether the peer speaks this version.
    fn is_open(&self) -> bool;
    /// What the peer said in words when it announced the end.
    fn said(&self) -> &str;
    /// Whether data waits that could be sent now.
    fn has_more(&self) -> bool;
    /// Whether data waits, and flow control holds all of it back.
    fn is_blocked(&self) -> bool;
    /// Appends waiting data.
    fn more(&mut self, out: &mut Vec<u8>);
    /// The socket takes no bytes for now.
    fn stalled(&mut self);
    /// The socket takes bytes again.
    fn resumed(&mut self, out: &mut Vec<u8>);
    /// Asks the peer for a sign of life.
    fn ping(&mut self, out: &mut Vec<u8>);
    /// Announces the end of the connection.
    fn close(&mut self, out: &mut Vec<u8>);
    /// Notes events since the last time, and returns the counts that protocols have a use for.
    fn note_events(&mut self, note: &mut dyn FnMut(&str, u64)) -> Counters;
}

impl<T: Send> Streams<T> for brunt_http2::Connection<T> {
    type Encoder = hpack::Encoder;

    const REFUSED_TOO_OFTEN: &'static str = "the peer refused the call's stream 9 times (REFUSED_STREAM)";

    fn open(&mut self, out: &mut Vec<u8>) {
        Self::open(self, out);
    }

    #[inline]
    fn capacity(&self) -> usize {
        Self::capacity(self)
    }

    #[inline]
    fn is_exhausted(&self) -> bool {
        Self::is_exhausted(self)
    }

    #[inline]
    fn len(&self) -> usize {
        Self::len(self)
    }

    #[inline]
    fn encoder(&mut self) -> &mut hpack::Encoder {
        Self::encoder(self)
    }

    #[inline]
    fn fields(&self) -> &Fields {
        Self::fields(self)
    }

    #[inline]
    fn id(&self, position: usize) -> Option<u64> {
        Self::id(self, position).map(u64::from)
    }

    #[inline]
    fn place(&self, id: u64) -> Option<usize> {
        Self::place(self, u32::try_from(id).ok()?)
    }

    #[inline]
    fn data_mut(&mut self, position: usize) -> Option<&mut T> {
        Self::data_mut(self, position)
    }

    #[inline]
    fn start(&mut self, block: &[u8], end: bool, bodiless: bool, data: T, out: &mut Vec<u8>) {
        Self::start(self, block, end, bodiless, data, out);
    }

    fn send(&mut self, position: usize, bytes: &[u8], end: bool, out: &mut Vec<u8>) {
        Self::send(self, position, bytes, end, out);
    }

    fn send_shared(&mut self, position: usize, of: &Arc<[u8]>, range: Range<usize>, end: bool, out: &mut Vec<u8>) {
        Self::send_shared(self, position, of, range, end, out);
    }

    fn waiting(&self, position: usize) -> usize {
        Self::waiting(self, position)
    }

    #[inline]
    fn receive<'b>(&mut self, bytes: &'b [u8], out: &mut Vec<u8>) -> Result<(usize, Event<'b>), Broken> {
        Self::receive(self, bytes, out).map_err(Broken::Violation)
    }

    /// Whether the stream ends within the complete frames at the beginning of `rest`.
    #[inline]
    fn is_completed(&self, id: u64, mut rest: &[u8]) -> bool {
        for _ in 0..MOST_AHEAD {
            let Some(head) = Head::read(rest) else { return false };
            let Some(after) = rest.get(HEAD_BYTES + head.length..) else { return false };
            let may_end = matches!(head.kind, kind::DATA | kind::HEADERS);
            if may_end && u64::from(head.stream) == id && head.has(flag::END_STREAM) {
                return true;
            }
            rest = after;
        }
        false
    }

    #[inline]
    fn take(&mut self, position: usize, out: &mut Vec<u8>) -> Option<T> {
        Self::take(self, position, out)
    }

    fn cancel(&mut self, position: usize, out: &mut Vec<u8>) -> Option<T> {
        self.reset(position, ErrorCode::CANCEL, out)
    }

    fn code_text(code: ErrorCode) -> String {
        code.to_string()
    }

    fn is_open(&self) -> bool {
        Self::is_open(self)
    }

    fn said(&self) -> &str {
        Self::said(self)
    }

    #[inline]
    fn has_more(&self) -> bool {
        Self::has_more(self)
    }

    #[inline]
    fn is_blocked(&self) -> bool {
        Self::is_blocked(self)
    }

    fn more(&mut self, out: &mut Vec<u8>) {
        Self::more(self, out);
    }

    fn stalled(&mut self) {
        Self::stalled(self);
    }

    fn resumed(&mut self, out: &mut Vec<u8>) {
        Self::resumed(self, out);
    }

    fn ping(&mut self, out: &mut Vec<u8>) {
        write_ping(*b"brunt is", out);
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        Self::close(self, out);
    }

    fn note_events(&mut self, note: &mut dyn FnMut(&str, u64)) -> Counters {
        let counters = self.take_counters();
        if counters.goaways > 0 {
            note("GOAWAY", counters.goaways);
        }
        for (code, count) in (0..).zip(counters.resets).filter(|(_, count)| *count > 0) {
            note(&format!("RST_STREAM {}", ErrorCode(code)), count);
        }
        counters
    }
}

/// A code of HTTP/3 in the place of one of HTTP/2: only the one for refused streams is told apart.
fn as_http2(code: brunt_http3::Http3Code) -> ErrorCode {
    match code {
        brunt_http3::Http3Code::H3_REQUEST_REJECTED => ErrorCode::REFUSED_STREAM,
        other => ErrorCode(u32::try_from(other.0).unwrap_or(u32::MAX)),
    }
}

impl<T: Send> Streams<T> for brunt_http3::Http3Connection<T> {
    type Encoder = qpack::SectionEncoder;

    const REFUSED_TOO_OFTEN: &'static str = "the peer refused the call's stream 9 times (H3_REQUEST_REJECTED)";

    fn open(&mut self, out: &mut Vec<u8>) {
        Self::open(self, out);
    }

    #[inline]
    fn capacity(&self) -> usize {
        Self::capacity(self)
    }

    /// There are 2^60 of them.
    fn is_exhausted(&self) -> bool {
        false
    }

    #[inline]
    fn len(&self) -> usize {
        Self::len(self)
    }

    #[inline]
    fn encoder(&mut self) -> &mut qpack::SectionEncoder {
        Self::encoder(self)
    }

    #[inline]
    fn fields(&self) -> &Fields {
        Self::fields(self)
    }

    #[inline]
    fn id(&self, position: usize) -> Option<u64> {
        Self::id(self, position)
    }

    #[inline]
    fn place(&self, id: u64) -> Option<usize> {
        Self::place(self, id)
    }

    #[inline]
    fn data_mut(&mut self, position: usize) -> Option<&mut T> {
        Self::data_mut(self, position)
    }

    #[inline]
    fn start(&mut self, block: &[u8], end: bool, bodiless: bool, data: T, out: &mut Vec<u8>) {
        Self::start(self, block, end, bodiless, data, out);
    }

    fn send(&mut self, position: usize, bytes: &[u8], end: bool, out: &mut Vec<u8>) {
        Self::send(self, position, bytes, end, out);
    }

    fn send_shared(&mut self, position: usize, of: &Arc<[u8]>, range: Range<usize>, end: bool, out: &mut Vec<u8>) {
        Self::send_shared(self, position, of, range, end, out);
    }

    fn waiting(&self, position: usize) -> usize {
        Self::waiting(self, position)
    }

    #[inline]
    fn receive<'b>(&mut self, bytes: &'b [u8], out: &mut Vec<u8>) -> Result<(usize, Event<'b>), Broken> {
        use brunt_http3::Http3Event as Event3;

        let received = Self::receive(self, bytes, out);
        let (taken, event) = received
            .map_err(|wrong| Broken::Violation(Violation { code: as_http2(wrong.code), reason: wrong.reason }))?;
        let event = match event {
            Event3::Aside
            | Event3::Opened
            | Event3::Request { .. }
            | Event3::Closed { code: brunt_http3::Http3Code::H3_NO_ERROR } => Event::Aside,
            Event3::Ready => Event::Opened,
            Event3::Head { position, status, end } => Event::Head { position, status, end },
            Event3::Data { position, bytes, ends_frame, end } => {
                Event::Data { position, bytes, behind: 0, ends_frame, end }
            }
            Event3::Trailers { position } => Event::Trailers { position },
            Event3::Reset { position, code } => Event::Reset { position, code: as_http2(code) },
            Event3::Malformed { position, reason } => Event::Malformed { position, reason },
            Event3::GoAway { unprocessed } => Event::GoAway { code: ErrorCode::NO_ERROR, unprocessed },
            Event3::Closed { code } => {
                return Err(Broken::Closed(code));
            }
        };
        Ok((taken, event))
    }

    #[inline]
    fn is_completed(&self, _id: u64, rest: &[u8]) -> bool {
        self.ends_within(rest.len())
    }

    #[inline]
    fn take(&mut self, position: usize, out: &mut Vec<u8>) -> Option<T> {
        Self::take(self, position, out)
    }

    fn cancel(&mut self, position: usize, out: &mut Vec<u8>) -> Option<T> {
        self.reset(position, brunt_http3::Http3Code::H3_REQUEST_CANCELLED, out)
    }

    fn code_text(code: ErrorCode) -> String {
        brunt_http3::Http3Code(u64::from(code.0)).to_string()
    }

    fn is_open(&self) -> bool {
        Self::is_open(self)
    }

    fn said(&self) -> &'static str {
        ""
    }

    #[inline]
    fn has_more(&self) -> bool {
        Self::has_more(self)
    }

    #[inline]
    fn is_blocked(&self) -> bool {
        Self::is_blocked(self)
    }

    fn more(&mut self, out: &mut Vec<u8>) {
        Self::more(self, out);
    }

    fn stalled(&mut self) {
        Self::stalled(self);
    }

    fn resumed(&mut self, _out: &mut Vec<u8>) {
        Self::resumed(self);
    }

    /// QUIC has pings of its own.
    fn ping(&mut self, _out: &mut Vec<u8>) {}

    fn close(&mut self, out: &mut Vec<u8>) {
        Self::close(self, out);
    }

    fn note_events(&mut self, note: &mut dyn FnMut(&str, u64)) -> Counters {
        let counters = self.take_counters();
        if counters.goaways > 0 {
            note("GOAWAY", counters.goaways);
        }
        for (place, count) in counters.resets.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            match brunt_http3::Http3Code::at(place) {
                Some(code) => note(&format!("RESET_STREAM {code}"), count),
                None => note("RESET_STREAM with a code without a name", count),
            }
        }
        Counters { goaways: counters.goaways, block_bytes: counters.section_bytes, ..Counters::default() }
    }
}
