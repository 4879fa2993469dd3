//! What requests tell of their answers beforehand: hints, which the makers of requests set and connections read.

use std::sync::Arc;

use brunt_protocol::Started;
use brunt_protocol::messages::{Framing, MessageOptions};

/// The hint of a request whose answer's body is not read by anybody.
pub(super) const DISCARD: u32 = 1;
/// The hints of a request that is known to ask its peer to close the connection after the answer, and of one that is
/// known not to. Of a request without either, its own words are read.
pub(super) const CLOSES: u32 = 8;
pub(super) const KEEPS: u32 = 16;
/// The hints of requests whose answers come as messages, by their framing.
const STREAMS: [(u32, Framing); 3] = [(2, Framing::Sse), (4, Framing::Lines), (6, Framing::Chunks)];
/// The bits of a hint that have these.
const STREAMS_BITS: u32 = 6;

/// The hint of a request whose answer comes as messages in this framing.
pub(super) fn streams_hint(framing: Framing) -> u32 {
    STREAMS.iter().find(|(_, known)| *known == framing).map_or(0, |(hint, _)| *hint)
}

/// The hint of a request with these header fields: whether it asks its peer to close the connection.
pub(super) fn closing_hint(fields: &[u8]) -> u32 {
    if asks_to_close(fields) { CLOSES } else { KEEPS }
}

/// Whether header fields, or a request with them, ask the peer to close the connection (RFC 9112, section 9.6).
pub(super) fn asks_to_close(request: &[u8]) -> bool {
    let end = memchr::memmem::find(request, b"\r\n\r\n").unwrap_or(request.len());
    let lines = request.get(..end).unwrap_or(request).split(|byte| *byte == b'\n');
    let mut fields = lines.filter_map(|line| line.split_at_checked(memchr::memchr(b':', line)?));
    fields.any(|(name, value)| {
        let value = value.get(1..).unwrap_or(&[]);
        name.eq_ignore_ascii_case(b"connection")
            && value.split(|byte| *byte == b',').any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
    })
}

/// The answers that come as messages, with their options.
#[derive(Debug, Clone, Default)]
pub(super) struct Streaming {
    /// By framing, as in hints; `None` if no answers do.
    by_framing: Option<Arc<[MessageOptions; 3]>>,
    /// The framing of all answers; `None` where the hints of requests have it.
    all: Option<Framing>,
}

impl Streaming {
    /// All answers do.
    pub(super) fn all(messages: &MessageOptions) -> Self {
        Self { all: Some(messages.framing), ..Self::hinted(messages) }
    }

    /// Answers to requests with such a hint. The framing in `messages` does not matter.
    pub(super) fn hinted(messages: &MessageOptions) -> Self {
        let by_framing = STREAMS.map(|(_, framing)| MessageOptions { framing, ..messages.clone() });
        Self { by_framing: Some(Arc::new(by_framing)), all: None }
    }

    /// Whether all answers come as messages.
    pub(super) fn is_of_all(&self) -> bool {
        self.all.is_some()
    }

    /// Whether the hints of requests say which do.
    #[inline]
    pub(super) fn is_hinted(&self) -> bool {
        self.by_framing.is_some() && self.all.is_none()
    }

    /// The options for messages in the answer to a request with this hint, if it has some.
    #[inline]
    pub(super) fn messages(&self, hint: u32) -> Option<&MessageOptions> {
        let by_framing = self.by_framing.as_ref()?;
        let streams = self.all.map_or(hint & STREAMS_BITS, streams_hint);
        if streams == 0 {
            return None;
        }
        by_framing.iter().find(|messages| streams_hint(messages.framing) == streams)
    }

    /// Whether an answer with this status and `Content-Type` is a stream: a success, and where a request of its own asked for
    /// server-sent events, no page in their place.
    pub(super) fn is_stream(&self, framing: Framing, status: u16, content_type: Option<&[u8]>) -> bool {
        let is_page = |kind: &[u8]| memchr::memmem::find(&kind.to_ascii_lowercase(), b"text/event-stream").is_none();
        let may_be_page = self.all.is_none() && framing == Framing::Sse;
        (200..300).contains(&status) && !(may_be_page && content_type.is_some_and(is_page))
    }

    /// What a call with this hint waits for.
    #[inline]
    pub(super) fn started(&self, hint: u32) -> Started {
        self.messages(hint).map_or(Started::Awaited, MessageOptions::started)
    }
}
