//! Frames in words, for people who inspect a connection.

use std::fmt::Write as _;

use crate::frame::{ErrorCode, HEAD_BYTES, Head, PREFACE, flag, kind};
use crate::hpack::Decoder;

/// Limit on a buffered frame, in bytes; a larger one ends the reading.
const MOST_FRAME_BYTES: usize = 1 << 16;
const KINDS: [&str; 10] = [
    "DATA",
    "HEADERS",
    "PRIORITY",
    "RST_STREAM",
    "SETTINGS",
    "PUSH_PROMISE",
    "PING",
    "GOAWAY",
    "WINDOW_UPDATE",
    "CONTINUATION",
];
const SETTINGS: [&str; 7] = [
    "",
    "HEADER_TABLE_SIZE",
    "ENABLE_PUSH",
    "MAX_CONCURRENT_STREAMS",
    "INITIAL_WINDOW_SIZE",
    "MAX_FRAME_SIZE",
    "MAX_HEADER_LIST_SIZE",
];

/// A frame in words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FrameText {
    /// The frame in one line; then header fields, a line each.
    pub head: String,
    /// Its data.
    pub body: Vec<u8>,
}

/// Reads the frames that one side of a connection sends.
#[derive(Debug)]
pub struct FrameReader {
    buffer: Vec<u8>,
    /// A header block that goes on.
    block: Vec<u8>,
    /// `None` once header blocks or frames can no longer be followed.
    decoder: Option<Decoder>,
}

impl Default for FrameReader {
    fn default() -> Self {
        Self { buffer: Vec::new(), block: Vec::new(), decoder: Some(Decoder::new(1 << 16)) }
    }
}

impl FrameReader {
    /// Takes the next bytes, and returns the frames that they complete.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<FrameText> {
        let mut all = Vec::new();
        self.buffer.extend_from_slice(bytes);
        if let Some(rest) = self.buffer.strip_prefix(PREFACE) {
            self.buffer = rest.to_vec();
            all.push(FrameText { head: "the preface of HTTP/2".to_owned(), body: Vec::new() });
        }
        while let Some(head) = Head::read(&self.buffer) {
            if head.length > MOST_FRAME_BYTES || self.decoder.is_none() {
                all.push(FrameText { head: "bytes that are no frames brunt can follow".to_owned(), body: Vec::new() });
                self.buffer.clear();
                break;
            }
            let whole = HEAD_BYTES + head.length;
            let Some(payload) = self.buffer.get(HEAD_BYTES..whole).map(<[u8]>::to_vec) else { break };
            self.buffer.drain(..whole);
            all.push(self.frame(&head, &payload));
        }
        all
    }

    fn frame(&mut self, head: &Head, payload: &[u8]) -> FrameText {
        let name =
            KINDS.get(usize::from(head.kind)).map_or_else(|| format!("frame {}", head.kind), |name| (*name).to_owned());
        let mut told = FrameText { head: name, body: Vec::new() };
        if head.stream > 0 {
            let _ = write!(told.head, ", stream {}", head.stream);
        }
        let is_ack = matches!(head.kind, kind::SETTINGS | kind::PING) && head.has(flag::ACK);
        let ends = matches!(head.kind, kind::DATA | kind::HEADERS) && head.has(flag::END_STREAM);
        for (holds, words) in [(is_ack, ", acknowledged"), (ends, ", the stream's last")] {
            told.head.push_str(if holds { words } else { "" });
        }
        let _ = write!(told.head, ", {} bytes", head.length);
        let number = |from: usize| {
            let bytes = payload.get(from..).and_then(<[u8]>::first_chunk).copied();
            bytes.map_or(0, u32::from_be_bytes)
        };
        match head.kind {
            kind::DATA => told.body = without_padding(head, payload).to_vec(),
            kind::HEADERS => {
                let block = without_padding(head, payload);
                let skipped = if head.has(flag::PRIORITY) { 5 } else { 0 };
                self.block = block.get(skipped..).unwrap_or(&[]).to_vec();
                self.fields(head, &mut told.head);
            }
            kind::CONTINUATION => {
                self.block.extend_from_slice(payload);
                self.block.truncate(MOST_FRAME_BYTES);
                self.fields(head, &mut told.head);
            }
            kind::RST_STREAM => {
                let _ = write!(told.head, ": {}", ErrorCode(number(0)));
            }
            kind::GOAWAY => {
                let last = number(0) & 0x7fff_ffff;
                let _ = write!(told.head, ": {}, processed up to stream {last}", ErrorCode(number(4)));
            }
            kind::WINDOW_UPDATE => {
                let _ = write!(told.head, ": {} bytes more", number(0) & 0x7fff_ffff);
            }
            kind::SETTINGS => {
                for [name_high, name_low, value @ ..] in payload.as_chunks::<6>().0 {
                    let number = u16::from_be_bytes([*name_high, *name_low]);
                    let name = SETTINGS.get(usize::from(number)).copied().filter(|name| !name.is_empty());
                    let name = name.map_or_else(|| format!("setting {number}"), str::to_owned);
                    let _ = write!(told.head, "\n  {name} {}", u32::from_be_bytes(*value));
                }
            }
            _ => {}
        }
        told
    }

    /// Writes the fields of a complete block.
    fn fields(&mut self, head: &Head, text: &mut String) {
        if !head.has(flag::END_HEADERS) {
            return;
        }
        let block = std::mem::take(&mut self.block);
        let Some(decoder) = &mut self.decoder else { return };
        if let Err(problem) = decoder.read(&block) {
            let _ = write!(text, "\n{problem}");
            self.decoder = None;
            return;
        }
        for (name, value) in decoder.fields().iter() {
            let (name, value) = (String::from_utf8_lossy(name), String::from_utf8_lossy(value));
            let _ = write!(text, "\n{name}: {value}");
        }
    }
}

fn without_padding<'p>(head: &Head, payload: &'p [u8]) -> &'p [u8] {
    match payload.split_first() {
        Some((padding, rest)) if head.has(flag::PADDED) => {
            rest.get(..rest.len().saturating_sub(usize::from(*padding))).unwrap_or(&[])
        }
        _ => payload,
    }
}
