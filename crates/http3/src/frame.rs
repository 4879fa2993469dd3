//! Frames and streams in one direction (RFC 9114, sections 6.2 and 7).

use crate::varint;

/// Types of frames (RFC 9114, section 7.2).
pub mod kind {
    /// A part of a body.
    pub const DATA: u64 = 0x0;
    /// A head or trailers.
    pub const HEADERS: u64 = 0x1;
    /// A push is not wanted.
    pub const CANCEL_PUSH: u64 = 0x3;
    /// Settings of the connection.
    pub const SETTINGS: u64 = 0x4;
    /// An answer without a request.
    pub const PUSH_PROMISE: u64 = 0x5;
    /// No more requests.
    pub const GOAWAY: u64 = 0x7;
    /// How many pushes there may be.
    pub const MAX_PUSH_ID: u64 = 0xd;
}

/// Types of streams in one direction (RFC 9114, section 6.2; RFC 9204, section 4.2).
pub mod stream {
    /// Frames of the connection.
    pub const CONTROL: u64 = 0x0;
    /// An answer without a request.
    pub const PUSH: u64 = 0x1;
    /// What enters the table of the peer's decoder.
    pub const QPACK_ENCODER: u64 = 0x2;
    /// What the peer's decoder has read.
    pub const QPACK_DECODER: u64 = 0x3;
}

/// Settings (RFC 9114, section 7.2.4.1; RFC 9204, section 5).
pub mod setting {
    /// The largest dynamic table of QPACK, in bytes.
    pub const QPACK_MAX_TABLE_CAPACITY: u64 = 0x1;
    /// The most that a field section may take, in bytes.
    pub const MAX_FIELD_SECTION_SIZE: u64 = 0x6;
    /// How many streams may wait for the dynamic table.
    pub const QPACK_BLOCKED_STREAMS: u64 = 0x7;
}

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHead {
    /// Its type, which need not be known.
    pub kind: u64,
    /// The length of its payload, in bytes.
    pub length: u64,
}

impl FrameHead {
    /// Takes the head at the beginning of `bytes`; `None` if it is incomplete.
    #[inline]
    pub fn take(bytes: &mut &[u8]) -> Option<Self> {
        let mut rest = *bytes;
        let (kind, length) = (varint::take(&mut rest)?, varint::take(&mut rest)?);
        *bytes = rest;
        Some(Self { kind, length })
    }

    /// Appends it to `out`.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        varint::write(self.kind, out);
        varint::write(self.length, out);
    }

    /// How many bytes it takes.
    #[inline]
    pub fn bytes(&self) -> usize {
        varint::length(self.kind) + varint::length(self.length)
    }

    /// Whether it is a type of HTTP/2 that HTTP/3 forbids (RFC 9114, section 7.2.8).
    pub fn is_reserved(&self) -> bool {
        matches!(self.kind, 0x2 | 0x6 | 0x8 | 0x9)
    }
}
