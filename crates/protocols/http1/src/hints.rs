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
    // Empty lines before a request are no part of it (RFC 9112, section 2.2).
    let request = request.trim_ascii_start();
    let mut began = 0;
    for end in memchr::memchr_iter(b'\n', request).chain([request.len()]) {
        let line = request.get(began..end).unwrap_or(&[]);
        match line {
            [b'c' | b'C', ..] if is_closing(line) => return true,
            b"" | b"\r" => return false,
            _ => began = end + 1,
        }
    }
    false
}

/// Whether this field asks the peer to close the connection.
fn is_closing(field: &[u8]) -> bool {
    let Some((name, value)) = memchr::memchr(b':', field).and_then(|colon| field.split_at_checked(colon)) else {
        return false;
    };
    let value = value.get(1..).unwrap_or(&[]);
    name.eq_ignore_ascii_case(b"connection")
        && value.split(|byte| *byte == b',').any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
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

#[cfg(test)]
mod tests {
    use super::asks_to_close;

    #[test]
    fn a_head_asks_to_close_and_a_body_does_not() {
        for closing in [
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            "\r\n\r\nGET / HTTP/1.1\r\nCONNECTION:keep-alive, Close \r\n\r\n",
            "COPY /a HTTP/1.1\nConnection: close\n\nbody",
            "connection: close\r\nx: y",
            "x: y\r\nconnection: close",
        ] {
            assert!(asks_to_close(closing.as_bytes()), "{closing:?}");
        }
        for keeping in [
            "GET / HTTP/1.1\r\nHost: a\r\n\r\nConnection: close\r\n\r\n",
            "POST / HTTP/1.1\nHost: a\n\nConnection: close\n\n",
            "GET / HTTP/1.1\r\nConnection: keep-alive\r\nX-Connection: close\r\nCookie: close\r\n\r\n",
            "CLOSE / HTTP/1.1\r\n\r\n",
            "c",
            "",
            "\r\n\r\n",
        ] {
            assert!(!asks_to_close(keeping.as_bytes()), "{keeping:?}");
        }
    }
}
