//! The state of one request's stream, and of those in one direction.

use brunt_http2::Outgoing;

use crate::frame::FrameHead;

/// Where in its frames a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inside {
    /// Between frames, or in a frame's head, of which the beginning is in [`Frames::partial`].
    Head,
    /// In DATA, with so many bytes to come.
    Data(u64),
    /// In a frame that is read as a whole, of which the beginning is in [`Frames::partial`].
    Whole(FrameHead),
    /// In a frame that is not known, with so many bytes to come.
    Unknown(u64),
}

/// What a stream's frames have come to.
#[derive(Debug)]
pub(crate) struct Frames {
    pub(crate) inside: Inside,
    pub(crate) partial: Vec<u8>,
}

impl Frames {
    pub(crate) const NONE: Self = Self { inside: Inside::Head, partial: Vec::new() };

    /// Whether the stream may end here.
    pub(crate) fn is_between(&self) -> bool {
        self.inside == Inside::Head && self.partial.is_empty()
    }
}

/// A request's stream that has not ended.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each becomes true by itself, in any order")]
pub(crate) struct Stream<T> {
    pub(crate) id: u64,
    pub(crate) frames: Frames,
    /// The remaining bytes of a body, where a content-length states its size.
    pub(crate) length_left: Option<u64>,
    /// The body that is still to be sent.
    pub(crate) outgoing: Option<Box<Outgoing>>,
    /// Whether flow control holds back what was written.
    pub(crate) is_blocked: bool,
    /// Whether our side has ended.
    pub(crate) is_sent: bool,
    /// Whether the final head has come.
    pub(crate) has_head: bool,
    /// Whether trailers have come, behind which there is nothing.
    pub(crate) has_trailers: bool,
    /// Whether the answer has no body, whatever its head states: that to HEAD.
    pub(crate) bodiless: bool,
    /// The number of 1xx heads that came.
    pub(crate) interim: u8,
    /// Data of the code that opened it.
    pub(crate) data: T,
}

impl<T> Stream<T> {
    pub(crate) fn new(id: u64, data: T) -> Self {
        Self {
            id,
            frames: Frames::NONE,
            length_left: None,
            outgoing: None,
            is_blocked: false,
            is_sent: false,
            has_head: false,
            has_trailers: false,
            bodiless: false,
            interim: 0,
            data,
        }
    }
}

/// What a stream in one direction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Its type has not come.
    Unknown,
    /// Frames of the connection.
    Control,
    /// Instructions of the peer's encoder.
    Encoder,
    /// Instructions of the peer's decoder.
    Decoder,
}

/// A stream of the peer in one direction.
#[derive(Debug)]
pub(crate) struct OneWay {
    pub(crate) id: u64,
    pub(crate) purpose: Purpose,
    pub(crate) frames: Frames,
}
