//! Receiving: records in pieces of any size, and the frames of requests' streams in them.

use brunt_http2::head::Meaning;
use brunt_quic::record::{HEAD_BYTES, Kind, Record};

use super::{
    Http3Connection, Http3Event, Http3Violation, Incoming, MOST_IDLE_FRAMES, MOST_INTERIM, MOST_ONE_WAY,
    MOST_SECTION_BYTES, Role, violation,
};
use crate::error_code::Http3Code;
use crate::frame::{FrameHead, kind};
use crate::head;
use crate::stream::{Frames, Inside, OneWay, Purpose, Stream};

/// Where the bytes of a stream go.
enum Whose {
    Request(usize),
    OneWay(usize),
}

impl<T> Http3Connection<T> {
    /// Takes records in pieces of any size. Returns how many bytes it took, at least one, and what they meant. Records to send in return
    /// are appended to `out`.
    ///
    /// # Errors
    /// When the peer breaks a rule or a limit.
    pub fn receive<'b>(
        &mut self,
        bytes: &'b [u8],
        out: &mut Vec<u8>,
    ) -> Result<(usize, Http3Event<'b>), Http3Violation> {
        let mut rest = bytes;
        let outcome = self.take_bytes(&mut rest, out);
        let event = outcome.inspect_err(|violation| Record::new(Kind::Close, 0, violation.code.0).write(out))?;
        Ok((bytes.len() - rest.len(), event))
    }

    #[inline]
    fn take_bytes<'b>(&mut self, rest: &mut &'b [u8], out: &mut Vec<u8>) -> Result<Http3Event<'b>, Http3Violation> {
        while !rest.is_empty() {
            if self.incoming.is_none() {
                let Some(record) = self.take_record(rest)? else { break };
                if let Some(event) = self.begin(record, out)? {
                    return Ok(event);
                }
            }
            if let Some(event) = self.take_data(rest, out)? {
                return Ok(event);
            }
        }
        Ok(Http3Event::Aside)
    }

    /// Takes a record's head, or the available part of it.
    #[inline]
    fn take_record(&mut self, rest: &mut &[u8]) -> Result<Option<Record>, Http3Violation> {
        let (partial, length) = &mut self.head;
        let whole = if *length == 0 && rest.len() >= HEAD_BYTES {
            let (head, after) = rest.split_at(HEAD_BYTES);
            *rest = after;
            Record::read(head)
        } else {
            while *length < HEAD_BYTES
                && let Some((byte, after)) = rest.split_first()
            {
                partial.get_mut(*length).into_iter().for_each(|place| *place = *byte);
                *length += 1;
                *rest = after;
            }
            if *length < HEAD_BYTES {
                return Ok(None);
            }
            *length = 0;
            Record::read(partial)
        };
        whole.map(Some).ok_or(violation(Http3Code::H3_INTERNAL_ERROR, "a record of no known kind"))
    }

    /// Handles a record's head.
    #[inline]
    fn begin(&mut self, record: Record, out: &mut Vec<u8>) -> Result<Option<Http3Event<'static>>, Http3Violation> {
        let Record { kind, stream, value } = record;
        match kind {
            Kind::Data | Kind::Last => {
                self.incoming = Some(Incoming { stream, left: record.length(), last: kind == Kind::Last });
            }
            Kind::Streams => {
                let is_first = self.allowed == 0 && value > 0;
                self.allowed = self.allowed.max(value);
                return Ok(is_first.then_some(Http3Event::Ready));
            }
            Kind::Open => self.opened(stream, out)?,
            Kind::Reset => return self.was_reset(stream, Http3Code(value)),
            Kind::Stop => return self.was_stopped(stream, Http3Code(value)),
            Kind::Blocked | Kind::Writable => self.set_blocked(stream, kind == Kind::Blocked),
            Kind::Close => return Ok(Some(Http3Event::Closed { code: Http3Code(value) })),
        }
        Ok(None)
    }

    /// The peer opens a stream.
    #[cold]
    fn opened(&mut self, id: u64, out: &mut Vec<u8>) -> Result<(), Http3Violation> {
        if id & 2 != 0 {
            // QUIC opens no stream twice.
            if self.one_way.iter().any(|stream| stream.id == id) {
                return Ok(());
            }
            if self.one_way.len() >= MOST_ONE_WAY {
                return Err(violation(Http3Code::H3_EXCESSIVE_LOAD, "more than 64 streams in one direction"));
            }
            self.one_way.push(OneWay { id, purpose: Purpose::Unknown, frames: Frames::NONE });
            return Ok(());
        }
        let Role::Server(make) = self.role else {
            return Err(violation(Http3Code::H3_STREAM_CREATION_ERROR, "a server that opens a stream for requests"));
        };
        if self.is_leaving && id >= self.next_id {
            Record::new(Kind::Stop, id, Http3Code::H3_REQUEST_REJECTED.0).write(out);
            Record::new(Kind::Reset, id, Http3Code::H3_REQUEST_REJECTED.0).write(out);
            return Ok(());
        }
        self.next_id = self.next_id.max(id.saturating_add(4));
        if let Err(place) = self.streams.binary_search_by(|stream| stream.id.cmp(&id)) {
            self.streams.insert(place, Stream::new(id, make()));
        }
        Ok(())
    }

    /// The peer ends its side of a stream early.
    #[cold]
    fn was_reset(&mut self, id: u64, code: Http3Code) -> Result<Option<Http3Event<'static>>, Http3Violation> {
        if let Some(place) = self.one_way.iter().position(|stream| stream.id == id) {
            self.one_way_ended(place)?;
            return Ok(None);
        }
        self.count_reset(code);
        Ok(self.place(id).map(|position| Http3Event::Reset { position, code }))
    }

    /// The peer does not read our side of a stream any more.
    #[cold]
    fn was_stopped(&mut self, id: u64, code: Http3Code) -> Result<Option<Http3Event<'static>>, Http3Violation> {
        if id == self.control_id() {
            return Err(violation(
                Http3Code::H3_CLOSED_CRITICAL_STREAM,
                "a peer that does not read the control stream",
            ));
        }
        let Some(position) = self.place(id) else { return Ok(None) };
        self.set_blocked(id, false);
        if let Some(stream) = self.streams.get_mut(position) {
            stream.is_sent = true;
            self.waiting -= usize::from(stream.outgoing.take().is_some());
        }
        if !self.is_server() {
            // The answer may come all the same (RFC 9114, section 4.1.1).
            return Ok(None);
        }
        self.count_reset(code);
        Ok(Some(Http3Event::Reset { position, code }))
    }

    fn count_reset(&mut self, code: Http3Code) {
        self.counters.resets.get_mut(code.place()).into_iter().for_each(|count| *count += 1);
    }

    fn set_blocked(&mut self, id: u64, is_blocked: bool) {
        if let Some(stream) = self.place(id).and_then(|position| self.streams.get_mut(position))
            && stream.is_blocked != is_blocked
        {
            stream.is_blocked = is_blocked;
            self.blocked = self.blocked + usize::from(is_blocked) - usize::from(!is_blocked);
        }
    }

    /// Something that brings no answer further.
    #[inline]
    pub(super) fn count_idle(&mut self) -> Result<(), Http3Violation> {
        self.idle_frames += 1;
        if self.idle_frames > MOST_IDLE_FRAMES {
            return Err(violation(Http3Code::H3_EXCESSIVE_LOAD, "100,000 frames in a row that belong to no answer"));
        }
        Ok(())
    }

    /// Takes the available data of a record.
    #[inline]
    fn take_data<'b>(
        &mut self,
        rest: &mut &'b [u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Http3Event<'b>>, Http3Violation> {
        let Some(Incoming { stream: id, left, last }) = self.incoming else { return Ok(None) };
        let (mut piece, _) = rest.split_at(left.min(rest.len()));
        let given = piece.len();
        // The peer's side ends where these bytes do.
        let ends = last && given == left;
        let whose = match self.place(id) {
            Some(position) => Some(Whose::Request(position)),
            None => self.one_way.iter().position(|stream| stream.id == id).map(Whose::OneWay),
        };
        let event = match whose {
            Some(Whose::Request(position)) => self.take_request(position, &mut piece, ends, out)?,
            Some(Whose::OneWay(place)) => self.take_one_way(place, &mut piece, ends, out)?,
            None => {
                piece = &[];
                None
            }
        };
        let taken = given - piece.len();
        *rest = rest.get(taken..).unwrap_or(&[]);
        let left = left - taken;
        self.incoming = (left > 0).then_some(Incoming { stream: id, left, last });
        Ok(event)
    }

    /// Takes bytes of a request's stream, up to what is an event. `ends` says that its peer's side ends behind them.
    #[inline]
    fn take_request<'b>(
        &mut self,
        position: usize,
        piece: &mut &'b [u8],
        ends: bool,
        out: &mut Vec<u8>,
    ) -> Result<Option<Http3Event<'b>>, Http3Violation> {
        loop {
            let Some(stream) = self.streams.get_mut(position) else { return Ok(None) };
            match stream.frames.inside {
                Inside::Head => {
                    let Some(head) = take_head(&mut stream.frames.partial, piece) else { break };
                    self.begin_frame(position, head)?;
                }
                Inside::Data(left) => {
                    let length = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
                    if length == 0 {
                        break;
                    }
                    let (data, after) = piece.split_at(length);
                    *piece = after;
                    let left = left - length as u64;
                    stream.frames.inside = if left == 0 { Inside::Head } else { Inside::Data(left) };
                    self.idle_frames = 0;
                    let end = ends && after.is_empty();
                    if end && left > 0 {
                        return Err(CUT);
                    }
                    return Ok(Some(self.data_came(position, data, left == 0, end, out)));
                }
                Inside::Unknown(left) => {
                    let length = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
                    if length == 0 {
                        break;
                    }
                    *piece = piece.get(length..).unwrap_or(&[]);
                    let left = left - length as u64;
                    stream.frames.inside = if left == 0 { Inside::Head } else { Inside::Unknown(left) };
                }
                Inside::Whole(head) => {
                    let length = head.length as usize;
                    let event = if stream.frames.partial.is_empty() && piece.len() >= length {
                        let (section, after) = piece.split_at(length);
                        *piece = after;
                        stream.frames.inside = Inside::Head;
                        self.section_came(position, section, ends && after.is_empty(), out)?
                    } else {
                        let missing = length.saturating_sub(stream.frames.partial.len());
                        let (next, after) = piece.split_at(missing.min(piece.len()));
                        *piece = after;
                        stream.frames.partial.extend_from_slice(next);
                        if stream.frames.partial.len() < length {
                            break;
                        }
                        stream.frames.inside = Inside::Head;
                        let section = std::mem::take(&mut stream.frames.partial);
                        self.section_came(position, &section, ends && after.is_empty(), out)?
                    };
                    if event.is_some() {
                        return Ok(event);
                    }
                }
            }
        }
        if ends && piece.is_empty() { self.side_ended(position, out) } else { Ok(None) }
    }

    /// A frame begins on a request's stream.
    #[inline]
    fn begin_frame(&mut self, position: usize, head: FrameHead) -> Result<(), Http3Violation> {
        let Some(stream) = self.streams.get_mut(position) else { return Ok(()) };
        let inside = match head.kind {
            kind::HEADERS | kind::DATA if stream.has_trailers => {
                return Err(violation(Http3Code::H3_FRAME_UNEXPECTED, "a frame behind the trailers"));
            }
            kind::HEADERS if head.length > MOST_SECTION_BYTES => {
                return Err(violation(Http3Code::H3_EXCESSIVE_LOAD, "a field section of more than 64 KiB"));
            }
            kind::HEADERS => Inside::Whole(head),
            kind::DATA if !stream.has_head => {
                return Err(violation(Http3Code::H3_FRAME_UNEXPECTED, "DATA before the head"));
            }
            kind::DATA => Inside::Data(head.length),
            kind::PUSH_PROMISE if !matches!(self.role, Role::Server(_)) => {
                return Err(violation(Http3Code::H3_ID_ERROR, "PUSH_PROMISE, which was not allowed"));
            }
            kind::CANCEL_PUSH | kind::SETTINGS | kind::PUSH_PROMISE | kind::GOAWAY | kind::MAX_PUSH_ID => {
                return Err(violation(Http3Code::H3_FRAME_UNEXPECTED, "a frame of the control stream on a request's"));
            }
            _ if head.is_reserved() => {
                return Err(violation(Http3Code::H3_FRAME_UNEXPECTED, "a frame of HTTP/2 that HTTP/3 has not"));
            }
            _ => Inside::Unknown(head.length),
        };
        let carries_nothing = matches!(inside, Inside::Data(0) | Inside::Unknown(_));
        stream.frames.inside =
            if matches!(inside, Inside::Data(0) | Inside::Unknown(0)) { Inside::Head } else { inside };
        if carries_nothing { self.count_idle() } else { Ok(()) }
    }

    /// A part of a body has come.
    #[inline]
    fn data_came<'b>(
        &mut self,
        position: usize,
        bytes: &'b [u8],
        ends_frame: bool,
        end: bool,
        out: &mut Vec<u8>,
    ) -> Http3Event<'b> {
        if let Some(left) = self.streams.get_mut(position).and_then(|stream| stream.length_left.as_mut()) {
            match left.checked_sub(bytes.len() as u64) {
                Some(less) if !end || less == 0 => *left = less,
                _ => return self.malformed(position, "a body of another length than its content-length", out),
            }
        }
        Http3Event::Data { position, bytes, ends_frame, end }
    }

    /// The peer's side of a request's stream ends, and no frame says so.
    fn side_ended(
        &mut self,
        position: usize,
        out: &mut Vec<u8>,
    ) -> Result<Option<Http3Event<'static>>, Http3Violation> {
        let Some(stream) = self.streams.get(position) else { return Ok(None) };
        if !stream.frames.is_between() {
            return Err(CUT);
        }
        if stream.has_trailers {
            // That was told with them.
            return Ok(None);
        }
        if !stream.has_head {
            let code = if self.is_server() { Http3Code::H3_REQUEST_INCOMPLETE } else { Http3Code::H3_MESSAGE_ERROR };
            return Ok(Some(self.ended_for(position, code, "a stream that ended without a head", out)));
        }
        Ok(Some(self.data_came(position, &[], true, true, out)))
    }

    /// A field section has come: a head, or trailers.
    #[inline]
    fn section_came(
        &mut self,
        position: usize,
        section: &[u8],
        end: bool,
        out: &mut Vec<u8>,
    ) -> Result<Option<Http3Event<'static>>, Http3Violation> {
        self.idle_frames = 0;
        let read = self.decoder.read(section);
        let read = read.map_err(|reason| violation(Http3Code::QPACK_DECOMPRESSION_FAILED, reason))?;
        let is_server = self.is_server();
        let (Some(stream), Some(known)) = (self.streams.get_mut(position), self.meanings.get_mut(read.place)) else {
            return Ok(None);
        };
        let is_trailers = is_server && stream.has_head;
        if !read.known || known.1 != is_trailers {
            let fields = self.decoder.fields();
            let meaning = if is_server { head::of_request(fields, is_trailers) } else { Meaning::from_fields(fields) };
            *known = (meaning, is_trailers);
        }
        let (meaning, _) = *known;
        if let Some(reason) = meaning.malformed {
            return Ok(Some(self.malformed(position, reason, out)));
        }
        let is_first = !stream.has_head;
        let reason = match (meaning.status, is_first) {
            (None, false) => {
                stream.has_trailers = true;
                if stream.length_left.is_none_or(|left| left == 0) {
                    return Ok(Some(Http3Event::Trailers { position }));
                }
                "a body of another length than its content-length"
            }
            (None, true) if is_server => {
                stream.has_head = true;
                stream.length_left = meaning.length;
                if !end || meaning.length.is_none_or(|length| length == 0) {
                    return Ok(Some(Http3Event::Request { position, end }));
                }
                "a body of another length than its content-length"
            }
            (None, true) => "a head without :status",
            (Some(_), false) => "a second head",
            (Some(101), true) => "status 101, which HTTP/3 has not",
            (Some(100..=199), true) => {
                stream.interim += 1;
                match stream.interim {
                    _ if end => "an interim answer that ends the stream",
                    ..=MOST_INTERIM => return Ok(None),
                    _ => "more than 16 interim answers",
                }
            }
            (Some(status), true) => {
                stream.has_head = true;
                let bodiless = stream.bodiless || matches!(status, 204 | 304);
                stream.length_left = if bodiless { None } else { meaning.length };
                if !end || bodiless || meaning.length.is_none_or(|length| length == 0) {
                    return Ok(Some(Http3Event::Head { position, status, end }));
                }
                "a body of another length than its content-length"
            }
        };
        Ok(Some(self.malformed(position, reason, out)))
    }

    /// Ends a stream whose message is malformed (RFC 9114, section 4.1.2).
    fn malformed(&mut self, position: usize, reason: &'static str, out: &mut Vec<u8>) -> Http3Event<'static> {
        self.ended_for(position, Http3Code::H3_MESSAGE_ERROR, reason, out)
    }

    #[cold]
    fn ended_for(
        &mut self,
        position: usize,
        code: Http3Code,
        reason: &'static str,
        out: &mut Vec<u8>,
    ) -> Http3Event<'static> {
        if let Some(stream) = self.streams.get_mut(position) {
            Record::new(Kind::Stop, stream.id, code.0).write(out);
            if !stream.is_sent {
                Record::new(Kind::Reset, stream.id, code.0).write(out);
                stream.is_sent = true;
            }
        }
        Http3Event::Malformed { position, reason }
    }
}

const CUT: Http3Violation = violation(Http3Code::H3_FRAME_ERROR, "a stream that ended within a frame");

/// Takes a frame's head, of which the beginning may be in `partial`.
#[inline]
pub(super) fn take_head(partial: &mut Vec<u8>, piece: &mut &[u8]) -> Option<FrameHead> {
    if partial.is_empty() {
        if let Some(head) = FrameHead::take(piece) {
            return Some(head);
        }
        partial.extend_from_slice(piece);
        *piece = &[];
        return None;
    }
    while let Some((byte, after)) = piece.split_first() {
        *piece = after;
        partial.push(*byte);
        if let Some(head) = FrameHead::take(&mut partial.as_slice()) {
            partial.clear();
            return Some(head);
        }
    }
    None
}
