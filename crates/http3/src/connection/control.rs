//! The peer's streams in one direction: control, QPACK's, and unknown ones (RFC 9114, section 6.2).

use brunt_quic::record::{Kind, Record};

use super::receiving::take_head;
use super::{Http3Connection, Http3Event, Http3Violation, violation};
use crate::error_code::Http3Code;
use crate::frame::{FrameHead, kind, stream};
use crate::stream::{Inside, OneWay, Purpose};
use crate::varint;

/// The most bytes of a frame of the control stream that is read as a whole.
const MOST_CONTROL_BYTES: u64 = 16 * 1024;
/// The most bytes of an integer of QPACK's that continues.
const MOST_INTEGER_BYTES: u64 = 10;

const CLOSED: Http3Violation =
    violation(Http3Code::H3_CLOSED_CRITICAL_STREAM, "a stream was closed that the connection needs");
const WRONG_SIZE: Http3Violation = violation(Http3Code::H3_FRAME_ERROR, "a frame of the wrong size for its kind");

impl<T> Http3Connection<T> {
    /// Takes bytes of a stream in one direction, up to what is an event. `ends` says that it ends behind them.
    #[cold]
    pub(super) fn take_one_way(
        &mut self,
        place: usize,
        piece: &mut &[u8],
        ends: bool,
        out: &mut Vec<u8>,
    ) -> Result<Option<Http3Event<'static>>, Http3Violation> {
        loop {
            let Some(stream) = self.one_way.get_mut(place) else {
                *piece = &[];
                return Ok(None);
            };
            match stream.purpose {
                Purpose::Unknown => {
                    let Some(of) = take_type(stream, piece) else { break };
                    if !self.begin_one_way(place, of, out)? {
                        *piece = &[];
                        return Ok(None);
                    }
                }
                Purpose::Encoder => {
                    // Only a table of 0 bytes was allowed: all that can be said is that it has that size.
                    if std::mem::take(piece).iter().any(|byte| *byte != 0x20) {
                        let reason = "QPACK: an entry for the dynamic table, which was not offered";
                        return Err(violation(Http3Code::QPACK_ENCODER_STREAM_ERROR, reason));
                    }
                    break;
                }
                Purpose::Decoder => {
                    take_decoder(stream, piece)?;
                    break;
                }
                Purpose::Control => {
                    let event = self.take_control(place, piece, out)?;
                    if ends && piece.is_empty() {
                        return Err(CLOSED);
                    }
                    if event.is_some() {
                        return Ok(event);
                    }
                    if piece.is_empty() {
                        break;
                    }
                }
            }
        }
        if ends && piece.is_empty() {
            self.one_way_ended(place)?;
        }
        Ok(None)
    }

    /// A stream's type has come. False if it is not read.
    fn begin_one_way(&mut self, place: usize, of: u64, out: &mut Vec<u8>) -> Result<bool, Http3Violation> {
        let (critical, purpose) = match of {
            stream::CONTROL => (0, Purpose::Control),
            stream::QPACK_ENCODER => (1, Purpose::Encoder),
            stream::QPACK_DECODER => (2, Purpose::Decoder),
            stream::PUSH if self.is_server() => {
                return Err(violation(Http3Code::H3_STREAM_CREATION_ERROR, "a client that pushes"));
            }
            stream::PUSH => return Err(violation(Http3Code::H3_ID_ERROR, "a push, which was not allowed")),
            _ => {
                self.count_idle()?;
                if place < self.one_way.len() {
                    let stream = self.one_way.swap_remove(place);
                    Record::new(Kind::Stop, stream.id, Http3Code::H3_STREAM_CREATION_ERROR.0).write(out);
                }
                return Ok(false);
            }
        };
        if self.has_critical.get_mut(critical).is_some_and(|has| std::mem::replace(has, true)) {
            let reason = "a second control stream, or one of QPACK's";
            return Err(violation(Http3Code::H3_STREAM_CREATION_ERROR, reason));
        }
        self.one_way.get_mut(place).into_iter().for_each(|stream| stream.purpose = purpose);
        Ok(true)
    }

    /// A stream in one direction has ended.
    pub(super) fn one_way_ended(&mut self, place: usize) -> Result<(), Http3Violation> {
        if self.one_way.get(place).is_some_and(|stream| stream.purpose != Purpose::Unknown) {
            return Err(CLOSED);
        }
        if place < self.one_way.len() {
            self.one_way.swap_remove(place);
        }
        Ok(())
    }

    /// Takes a part of the control stream: the rest of a frame's head, or of a frame.
    fn take_control(
        &mut self,
        place: usize,
        piece: &mut &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Http3Event<'static>>, Http3Violation> {
        let Some(stream) = self.one_way.get_mut(place) else { return Ok(None) };
        let frames = &mut stream.frames;
        match frames.inside {
            Inside::Head => {
                let Some(head) = take_head(&mut frames.partial, piece) else { return Ok(None) };
                if !self.is_open && head.kind != kind::SETTINGS {
                    let reason = "the control stream does not begin with SETTINGS";
                    return Err(violation(Http3Code::H3_MISSING_SETTINGS, reason));
                }
                frames.inside = match head.kind {
                    kind::DATA | kind::HEADERS | kind::PUSH_PROMISE => {
                        return Err(violation(
                            Http3Code::H3_FRAME_UNEXPECTED,
                            "a request's frame on the control stream",
                        ));
                    }
                    _ if head.is_reserved() => {
                        let reason = "a frame of HTTP/2 that HTTP/3 has not";
                        return Err(violation(Http3Code::H3_FRAME_UNEXPECTED, reason));
                    }
                    kind::SETTINGS | kind::GOAWAY | kind::CANCEL_PUSH | kind::MAX_PUSH_ID => {
                        if head.length > MOST_CONTROL_BYTES {
                            return Err(violation(Http3Code::H3_EXCESSIVE_LOAD, "a control frame of more than 16 KiB"));
                        }
                        if head.length == 0 {
                            return self.control_frame(head, &[], out);
                        }
                        Inside::Whole(head)
                    }
                    _ if head.length == 0 => Inside::Head,
                    _ => Inside::Unknown(head.length),
                };
                self.count_idle()?;
                Ok(None)
            }
            Inside::Unknown(left) | Inside::Data(left) => {
                let length = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
                *piece = piece.get(length..).unwrap_or(&[]);
                let left = left - length as u64;
                frames.inside = if left == 0 { Inside::Head } else { Inside::Unknown(left) };
                Ok(None)
            }
            Inside::Whole(head) => {
                let missing = (head.length as usize).saturating_sub(frames.partial.len());
                let (next, after) = piece.split_at(missing.min(piece.len()));
                *piece = after;
                frames.partial.extend_from_slice(next);
                if frames.partial.len() < head.length as usize {
                    return Ok(None);
                }
                frames.inside = Inside::Head;
                let payload = std::mem::take(&mut frames.partial);
                self.control_frame(head, &payload, out)
            }
        }
    }

    /// Handles a whole frame of the control stream.
    fn control_frame(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Http3Event<'static>>, Http3Violation> {
        if head.kind == kind::SETTINGS {
            if std::mem::replace(&mut self.is_open, true) {
                return Err(violation(Http3Code::H3_FRAME_UNEXPECTED, "SETTINGS twice"));
            }
            check_settings(payload)?;
            return Ok(Some(Http3Event::Opened));
        }
        let mut rest = payload;
        let id = varint::take(&mut rest).filter(|_| rest.is_empty()).ok_or(WRONG_SIZE)?;
        match head.kind {
            kind::GOAWAY => self.goaway(id, out),
            // The highest push is 0 - 1: none was allowed, and none was promised.
            kind::CANCEL_PUSH => Err(violation(Http3Code::H3_ID_ERROR, "CANCEL_PUSH of a push that there was not")),
            kind::MAX_PUSH_ID if !self.is_server() => {
                Err(violation(Http3Code::H3_FRAME_UNEXPECTED, "MAX_PUSH_ID from a server"))
            }
            _ => Ok(None),
        }
    }

    /// The peer takes no more requests, and has processed none from the stream `id` on (RFC 9114, section 5.2).
    fn goaway(&mut self, id: u64, out: &mut Vec<u8>) -> Result<Option<Http3Event<'static>>, Http3Violation> {
        self.counters.goaways += 1;
        if self.is_server() {
            // It is about pushes, which we do not make.
            return Ok(None);
        }
        if !id.is_multiple_of(4) || self.going_away.is_some_and(|before| id > before) {
            return Err(violation(Http3Code::H3_ID_ERROR, "GOAWAY with a stream that cannot be"));
        }
        self.going_away = Some(id);
        let unprocessed = self.streams.partition_point(|stream| stream.id < id);
        while self.streams.len() > unprocessed {
            self.reset(self.streams.len() - 1, Http3Code::H3_REQUEST_CANCELLED, out);
        }
        Ok(Some(Http3Event::GoAway { unprocessed }))
    }
}

/// Takes the type of a stream in one direction.
fn take_type(stream: &mut OneWay, piece: &mut &[u8]) -> Option<u64> {
    let partial = &mut stream.frames.partial;
    while let Some((byte, after)) = piece.split_first() {
        *piece = after;
        partial.push(*byte);
        if let Some(of) = varint::take(&mut partial.as_slice()) {
            partial.clear();
            return Some(of);
        }
    }
    None
}

/// Reads settings (RFC 9114, section 7.2.4.1). None of a peer's matters to one who uses no dynamic table.
fn check_settings(payload: &[u8]) -> Result<(), Http3Violation> {
    let mut rest = payload;
    let mut seen = Vec::new();
    while !rest.is_empty() {
        let (Some(name), Some(_)) = (varint::take(&mut rest), varint::take(&mut rest)) else { return Err(WRONG_SIZE) };
        if matches!(name, 0x2..=0x5) {
            return Err(violation(Http3Code::H3_SETTINGS_ERROR, "a setting of HTTP/2 that HTTP/3 has not"));
        }
        seen.push(name);
    }
    seen.sort_unstable();
    if seen.windows(2).any(|two| two.first() == two.last()) {
        return Err(violation(Http3Code::H3_SETTINGS_ERROR, "a setting twice"));
    }
    Ok(())
}

/// Reads instructions of the peer's decoder (RFC 9204, section 4.4). We never use its table: it can only tell of streams that it has given up.
fn take_decoder(stream: &mut OneWay, piece: &mut &[u8]) -> Result<(), Http3Violation> {
    let wrong = violation(Http3Code::QPACK_DECODER_STREAM_ERROR, "QPACK: an acknowledgement of what was not sent");
    for byte in std::mem::take(piece) {
        stream.frames.inside = match stream.frames.inside {
            Inside::Unknown(MOST_INTEGER_BYTES..) => return Err(wrong),
            Inside::Unknown(count) if byte & 0x80 != 0 => Inside::Unknown(count + 1),
            Inside::Unknown(_) => Inside::Head,
            _ if byte & 0xc0 != 0x40 => return Err(wrong),
            _ if *byte == 0x7f => Inside::Unknown(1),
            _ => Inside::Head,
        };
    }
    Ok(())
}
