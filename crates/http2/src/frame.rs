//! Frames (RFC 9113, sections 4 and 6).

use std::fmt;

/// The size of a frame's head, in bytes.
pub const HEAD_BYTES: usize = 9;
/// The largest payload that every peer takes, and that we do, in bytes.
pub const PAYLOAD_BYTES: usize = 16_384;
/// The first bytes of a client.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Types of frames (RFC 9113, section 6).
pub mod kind {
    /// A part of a body.
    pub const DATA: u8 = 0;
    /// A head or trailers.
    pub const HEADERS: u8 = 1;
    /// Obsolete advice.
    pub const PRIORITY: u8 = 2;
    /// The end of a stream.
    pub const RST_STREAM: u8 = 3;
    /// Settings of the connection.
    pub const SETTINGS: u8 = 4;
    /// An answer without a request.
    pub const PUSH_PROMISE: u8 = 5;
    /// Are you there?
    pub const PING: u8 = 6;
    /// No more streams.
    pub const GOAWAY: u8 = 7;
    /// More of a window.
    pub const WINDOW_UPDATE: u8 = 8;
    /// More of a head.
    pub const CONTINUATION: u8 = 9;
}

/// Flags of frames.
pub mod flag {
    /// Of SETTINGS and PING: an acknowledgement.
    pub const ACK: u8 = 1;
    /// Of DATA and HEADERS: the stream's last.
    pub const END_STREAM: u8 = 1;
    /// Of HEADERS and CONTINUATION: the block's last.
    pub const END_HEADERS: u8 = 4;
    /// Of DATA and HEADERS: a length of padding comes first.
    pub const PADDED: u8 = 8;
    /// Of HEADERS: five bytes of priority come first.
    pub const PRIORITY: u8 = 0x20;
}

/// Settings (RFC 9113, section 6.5.2).
pub mod setting {
    /// The size of the table that its sender reads header blocks with, in bytes.
    pub const HEADER_TABLE_SIZE: u16 = 1;
    /// Whether `PUSH_PROMISE` may be sent.
    pub const ENABLE_PUSH: u16 = 2;
    /// How many streams may be open at once.
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    /// A new stream's window, in bytes.
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    /// The largest payload of a frame, in bytes.
    pub const MAX_FRAME_SIZE: u16 = 5;
    /// The most that the fields of a head may take, in bytes.
    pub const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// Why a stream or a connection ends (RFC 9113, section 7).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// No error.
    pub const NO_ERROR: Self = Self(0);
    /// A rule was broken.
    pub const PROTOCOL_ERROR: Self = Self(1);
    /// The peer is out of order.
    pub const INTERNAL_ERROR: Self = Self(2);
    /// More was sent than a window allows.
    pub const FLOW_CONTROL_ERROR: Self = Self(3);
    /// A frame came on a stream that had ended.
    pub const STREAM_CLOSED: Self = Self(5);
    /// A frame has the wrong size.
    pub const FRAME_SIZE_ERROR: Self = Self(6);
    /// The stream was not processed.
    pub const REFUSED_STREAM: Self = Self(7);
    /// The stream is not needed any more.
    pub const CANCEL: Self = Self(8);
    /// A header block cannot be read.
    pub const COMPRESSION_ERROR: Self = Self(9);
    /// The peer asks for too much.
    pub const ENHANCE_YOUR_CALM: Self = Self(11);

    /// How many codes have a name.
    pub const NAMED: usize = NAMES.len();

    /// Its name, if it has one.
    pub fn name(self) -> Option<&'static str> {
        NAMES.get(self.0 as usize).copied()
    }
}

const NAMES: [&str; 14] = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
];

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name().unwrap_or("an unknown error code"))
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The payload's length, in bytes.
    pub length: usize,
    /// One of [`kind`], or an unknown one.
    pub kind: u8,
    /// Those of [`flag`] that its kind has.
    pub flags: u8,
    /// The stream; 0 is the connection.
    pub stream: u32,
}

impl Head {
    /// Reads the frame head at the beginning of `bytes`; `None` if it is incomplete.
    #[inline]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (&[length @ .., kind], rest) = bytes.split_first_chunk::<4>()?;
        let (&[flags, stream @ ..], _) = rest.split_first_chunk::<5>()?;
        let [high, middle, low] = length;
        Some(Self {
            length: u32::from_be_bytes([0, high, middle, low]) as usize,
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & 0x7fff_ffff,
        })
    }

    /// Appends it to `out`.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut head = [0; HEAD_BYTES];
        let (length, rest) = head.split_at_mut(3);
        let [_, of_length @ ..] = (self.length as u32).to_be_bytes();
        length.copy_from_slice(&of_length);
        let (about, stream) = rest.split_at_mut(2);
        about.copy_from_slice(&[self.kind, self.flags]);
        stream.copy_from_slice(&self.stream.to_be_bytes());
        out.extend_from_slice(&head);
    }

    /// Whether it has this flag.
    #[inline]
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends a frame with a payload of four bytes.
fn write_number(kind: u8, stream: u32, number: u32, out: &mut Vec<u8>) {
    Head { length: 4, kind, flags: 0, stream }.write(out);
    out.extend_from_slice(&number.to_be_bytes());
}

/// Appends `RST_STREAM`.
pub fn write_reset(stream: u32, code: ErrorCode, out: &mut Vec<u8>) {
    write_number(kind::RST_STREAM, stream, code.0, out);
}

/// Appends `WINDOW_UPDATE`.
pub fn write_window_update(stream: u32, increment: u32, out: &mut Vec<u8>) {
    write_number(kind::WINDOW_UPDATE, stream, increment, out);
}

/// Appends GOAWAY, of a peer that has opened no streams.
pub fn write_goaway(code: ErrorCode, out: &mut Vec<u8>) {
    Head { length: 8, kind: kind::GOAWAY, flags: 0, stream: 0 }.write(out);
    out.extend_from_slice(&0_u32.to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// Appends an acknowledgement of PING with these bytes.
pub fn write_pong(payload: [u8; 8], out: &mut Vec<u8>) {
    Head { length: 8, kind: kind::PING, flags: flag::ACK, stream: 0 }.write(out);
    out.extend_from_slice(&payload);
}

/// Appends a PING with these bytes.
pub fn write_ping(payload: [u8; 8], out: &mut Vec<u8>) {
    Head { length: 8, kind: kind::PING, flags: 0, stream: 0 }.write(out);
    out.extend_from_slice(&payload);
}

/// Appends an acknowledgement of SETTINGS.
pub fn write_settings_ack(out: &mut Vec<u8>) {
    Head { length: 0, kind: kind::SETTINGS, flags: flag::ACK, stream: 0 }.write(out);
}

/// Appends SETTINGS.
pub fn write_settings(settings: &[(u16, u32)], out: &mut Vec<u8>) {
    Head { length: settings.len() * 6, kind: kind::SETTINGS, flags: 0, stream: 0 }.write(out);
    for (name, value) in settings {
        out.extend_from_slice(&name.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}
