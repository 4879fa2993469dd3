//! Records and their frames in words, for people who inspect a connection.

use std::collections::BTreeMap;
use std::fmt::Write as _;

pub use brunt_http2::frame_text::FrameText;
use brunt_quic::record::{HEAD_BYTES, Kind, Record};

use crate::error_code::Http3Code;
use crate::frame::{FrameHead, kind, setting};
use crate::qpack::SectionDecoder;
use crate::varint;

/// The most bytes of a stream that are buffered, for a frame that is not complete.
const MOST_FRAME_BYTES: u64 = 1 << 16;
/// The most streams that are followed at once.
const MOST_STREAMS: usize = 1000;

/// Reads the records that one side of a connection sends.
#[derive(Debug, Default)]
pub struct RecordReader {
    buffer: Vec<u8>,
    streams: BTreeMap<u64, Reading>,
    decoder: SectionDecoder,
}

/// How far one side of a stream is read.
#[derive(Debug, Default)]
struct Reading {
    /// The type of a stream in one direction (RFC 9114, section 6.2), once it has come.
    of: Option<u64>,
    /// What has come of the next frame.
    buffer: Vec<u8>,
    /// How much is still to come of a frame that was told without its content.
    skipped: u64,
}

impl RecordReader {
    /// Takes the next records, and returns the frames that they complete.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<FrameText> {
        let mut all = Vec::new();
        self.buffer.extend_from_slice(bytes);
        while let Some(record) = Record::read(&self.buffer) {
            let Some(data) = self.buffer.get(HEAD_BYTES..HEAD_BYTES + record.length()).map(<[u8]>::to_vec) else {
                break;
            };
            self.buffer.drain(..HEAD_BYTES + record.length());
            self.record(&record, &data, &mut all);
        }
        all
    }

    fn record(&mut self, record: &Record, data: &[u8], all: &mut Vec<FrameText>) {
        let stream = record.stream;
        let told = match record.kind {
            Kind::Data | Kind::Last => return self.data(stream, data, record.kind == Kind::Last, all),
            Kind::Reset => format!("RESET_STREAM, stream {stream}: {}", Http3Code(record.value)),
            Kind::Stop => format!("STOP_SENDING, stream {stream}: {}", Http3Code(record.value)),
            Kind::Close => format!("CONNECTION_CLOSE: {}", Http3Code(record.value)),
            // What QUIC says of itself.
            Kind::Open | Kind::Streams | Kind::Blocked | Kind::Writable => return,
        };
        all.push(FrameText { head: told, body: Vec::new() });
    }

    fn data(&mut self, stream: u64, data: &[u8], last: bool, all: &mut Vec<FrameText>) {
        if self.streams.len() >= MOST_STREAMS {
            self.streams.clear();
        }
        let Reading { mut of, mut buffer, mut skipped } = self.streams.remove(&stream).unwrap_or_default();
        buffer.extend_from_slice(data);
        let mut rest = buffer.as_slice();
        let is_one_way = stream & 2 != 0;
        if is_one_way && of.is_none() {
            of = varint::take(&mut rest);
            let name = match of {
                Some(0) => Some("control"),
                Some(2) => Some("QPACK's encoder"),
                Some(3) => Some("QPACK's decoder"),
                Some(_) => Some("of an unknown type"),
                None => None,
            };
            all.extend(name.map(|name| FrameText { head: format!("stream {stream}: {name}"), body: Vec::new() }));
        }
        let is_framed = !is_one_way || of == Some(0);
        // The content of other streams is not frames, nor is it kept; the type itself may still be to come.
        if !is_framed && of.is_some() {
            rest = &[];
        }
        if is_framed {
            (rest, skipped) = self.frames(stream, rest, skipped, last, all);
        }
        if last {
            if rest.is_empty() && data.is_empty() {
                all.push(FrameText { head: format!("stream {stream} ends"), body: Vec::new() });
            }
            return;
        }
        let reading = Reading { of, buffer: rest.to_vec(), skipped };
        self.streams.insert(stream, reading);
    }

    /// The frames that are whole in `rest`, whose first `skipped` bytes are of one that is too long to show. Returns what is left of both.
    fn frames<'a>(
        &mut self,
        stream: u64,
        mut rest: &'a [u8],
        mut skipped: u64,
        last: bool,
        all: &mut Vec<FrameText>,
    ) -> (&'a [u8], u64) {
        loop {
            let here = usize::try_from(skipped).unwrap_or(usize::MAX).min(rest.len());
            rest = rest.get(here..).unwrap_or_default();
            skipped -= here as u64;
            let mut after = rest;
            let Some(head) = FrameHead::take(&mut after) else { return (rest, skipped) };
            if head.length > MOST_FRAME_BYTES {
                let head_text = self.frame(stream, &head, &[], false).head;
                all.push(FrameText { head: format!("{head_text} (too long to show)"), body: Vec::new() });
                (rest, skipped) = (after, head.length);
                continue;
            }
            let Some((payload, after)) =
                usize::try_from(head.length).ok().and_then(|length| after.split_at_checked(length))
            else {
                return (rest, skipped);
            };
            rest = after;
            let ends = last && rest.is_empty();
            all.push(self.frame(stream, &head, payload, ends));
        }
    }

    fn frame(&mut self, stream: u64, head: &FrameHead, payload: &[u8], ends: bool) -> FrameText {
        let name = match head.kind {
            kind::DATA => "DATA",
            kind::HEADERS => "HEADERS",
            kind::SETTINGS => "SETTINGS",
            kind::GOAWAY => "GOAWAY",
            kind::MAX_PUSH_ID => "MAX_PUSH_ID",
            kind::CANCEL_PUSH => "CANCEL_PUSH",
            kind::PUSH_PROMISE => "PUSH_PROMISE",
            _ => "frame of an unknown kind",
        };
        let last = if ends { ", the stream's last" } else { "" };
        let mut told =
            FrameText { head: format!("{name}, stream {stream}{last}, {} bytes", head.length), body: Vec::new() };
        match head.kind {
            kind::DATA => told.body = payload.to_vec(),
            kind::HEADERS if payload.len() as u64 == head.length => match self.decoder.read(payload) {
                Ok(_) => {
                    for (name, value) in self.decoder.fields().iter() {
                        let (name, value) = (String::from_utf8_lossy(name), String::from_utf8_lossy(value));
                        let _ = write!(told.head, "\n{name}: {value}");
                    }
                }
                Err(problem) => {
                    let _ = write!(told.head, "\n{problem}");
                }
            },
            kind::GOAWAY => {
                let mut rest = payload;
                if let Some(id) = varint::take(&mut rest) {
                    let _ = write!(told.head, ": nothing from stream {id} on is processed");
                }
            }
            kind::SETTINGS => {
                let mut rest = payload;
                while let (Some(name), Some(value)) = (varint::take(&mut rest), varint::take(&mut rest)) {
                    let _ = match name {
                        setting::QPACK_MAX_TABLE_CAPACITY => write!(told.head, "\n  QPACK_MAX_TABLE_CAPACITY {value}"),
                        setting::MAX_FIELD_SECTION_SIZE => write!(told.head, "\n  MAX_FIELD_SECTION_SIZE {value}"),
                        setting::QPACK_BLOCKED_STREAMS => write!(told.head, "\n  QPACK_BLOCKED_STREAMS {value}"),
                        _ => write!(told.head, "\n  setting {name:#x} {value}"),
                    };
                }
            }
            _ => {}
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Http3Connection;

    #[test]
    fn a_request_reads_as_its_frames() {
        let (mut connection, mut out) = (Http3Connection::client(), Vec::new());
        connection.open(&mut out);
        connection.start(&[0, 0, 0xd1, 0xc1], false, false, (), &mut out);
        connection.send(0, b"hi", true, &mut out);
        Record::new(Kind::Stop, 0, 0x10c).write(&mut out);
        let expected = [
            "stream 2: control",
            "SETTINGS, stream 2, 5 bytes\n  MAX_FIELD_SECTION_SIZE 65536",
            "HEADERS, stream 0, 4 bytes\n:method: GET\n:path: /",
            "DATA, stream 0, the stream's last, 2 bytes",
            "STOP_SENDING, stream 0: H3_REQUEST_CANCELLED",
        ];
        for size in [1, 7, out.len()] {
            let mut reader = RecordReader::default();
            let told: Vec<_> = out.chunks(size).flat_map(|piece| reader.take(piece)).collect();
            let heads: Vec<_> = told.iter().map(|frame| frame.head.as_str()).collect();
            assert_eq!(heads, expected, "in pieces of {size}");
            assert_eq!(told[3].body, b"hi");
        }
    }

    /// What one side says on a stream, told in pieces of this size.
    fn told(stream: u64, bytes: &[u8], size: usize) -> Vec<String> {
        let mut reader = RecordReader::default();
        let mut heads = Vec::new();
        for piece in bytes.chunks(size) {
            let mut record = Vec::new();
            Record::data(stream, false, piece.len()).write(&mut record);
            record.extend_from_slice(piece);
            heads.extend(reader.take(&record).into_iter().map(|frame| frame.head));
        }
        heads
    }

    #[test]
    fn streams_in_one_direction_are_told_once_in_pieces_of_any_size() {
        for size in 1..=4 {
            // QPACK's encoder stream has no frames: its bytes look like some.
            assert_eq!(told(3, &[2, 0, 1, 7, 1, 0], size), ["stream 3: QPACK's encoder"], "{size}");
            assert_eq!(told(7, &[0x40, 0x54, 0, 1, 7], size), ["stream 7: of an unknown type"], "{size}");
            let control = told(3, &[0, 4, 0, 7, 1, 8], size);
            assert_eq!(control[0], "stream 3: control");
            assert_eq!(control.len(), 3, "{size}: {control:?}");
        }
    }

    #[test]
    fn frames_that_are_too_long_to_show_are_passed_over() {
        let length = 100_000_usize;
        // DATA with a length of four bytes, then one of two bytes.
        let mut bytes = vec![0];
        bytes.extend_from_slice(&(0x8000_0000 | length as u32).to_be_bytes());
        bytes.extend(std::iter::repeat_n(1, length));
        bytes.extend_from_slice(&[0, 2, b'h', b'i']);
        for size in [1_000, 65_536, bytes.len()] {
            let expected = ["DATA, stream 0, 100000 bytes (too long to show)", "DATA, stream 0, 2 bytes"];
            assert_eq!(told(0, &bytes, size), expected, "{size}");
        }
    }
}
