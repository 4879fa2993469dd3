//! Why a stream or a connection ends (RFC 9114, section 8.1; RFC 9204, section 6).

use std::fmt;

/// An error code of HTTP/3.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Http3Code(pub u64);

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $name:ident = $value:literal,)*) => {
        impl Http3Code {
            $($(#[doc = $doc])* pub const $name: Self = Self($value);)*

            /// How many codes have a name.
            pub const NAMED: usize = ALL.len();
        }

        /// All codes with a name, as the documents have them.
        const ALL: &[(Http3Code, &str)] = &[$((Http3Code::$name, stringify!($name)),)*];
    };
}

codes! {
    /// No error.
    H3_NO_ERROR = 0x100,
    /// A rule was broken that has no code of its own.
    H3_GENERAL_PROTOCOL_ERROR = 0x101,
    /// The peer is out of order.
    H3_INTERNAL_ERROR = 0x102,
    /// A stream was opened that is not accepted.
    H3_STREAM_CREATION_ERROR = 0x103,
    /// A stream that the connection needs was closed.
    H3_CLOSED_CRITICAL_STREAM = 0x104,
    /// A frame that is not allowed where it came.
    H3_FRAME_UNEXPECTED = 0x105,
    /// A frame that cannot be read, or has the wrong size.
    H3_FRAME_ERROR = 0x106,
    /// The peer asks for too much.
    H3_EXCESSIVE_LOAD = 0x107,
    /// A stream's or a push's id is used incorrectly.
    H3_ID_ERROR = 0x108,
    /// SETTINGS that cannot be.
    H3_SETTINGS_ERROR = 0x109,
    /// The control stream does not begin with SETTINGS.
    H3_MISSING_SETTINGS = 0x10a,
    /// The request was not processed.
    H3_REQUEST_REJECTED = 0x10b,
    /// The request or its answer is not needed any more.
    H3_REQUEST_CANCELLED = 0x10c,
    /// The request's stream ended before the request was complete.
    H3_REQUEST_INCOMPLETE = 0x10d,
    /// A message is malformed.
    H3_MESSAGE_ERROR = 0x10e,
    /// A connection for CONNECT failed.
    H3_CONNECT_ERROR = 0x10f,
    /// The request is to be made over HTTP/1.1.
    H3_VERSION_FALLBACK = 0x110,
    /// A field section cannot be read.
    QPACK_DECOMPRESSION_FAILED = 0x200,
    /// The encoder's stream cannot be read.
    QPACK_ENCODER_STREAM_ERROR = 0x201,
    /// The decoder's stream cannot be read.
    QPACK_DECODER_STREAM_ERROR = 0x202,
}

impl Http3Code {
    /// Its place among the codes with a name, [`Self::NAMED`] for one without.
    pub fn place(self) -> usize {
        ALL.iter().position(|(code, _)| *code == self).unwrap_or(Self::NAMED)
    }

    /// The code at a [`place`](Self::place); `None` for that of codes without a name.
    pub fn at(place: usize) -> Option<Self> {
        ALL.get(place).map(|(code, _)| *code)
    }
}

impl fmt::Display for Http3Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match ALL.get(self.place()) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "error {:#x}", self.0),
        }
    }
}

impl fmt::Debug for Http3Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
