//! Answers: the ones rendered before the first request, and the pieces of those made on demand.

use std::fmt::Write as _;
use std::time::Duration;

use super::events::Events;
use super::head::{Persistence, reason};
use crate::llm::Answer;
use crate::service::{Kind, OUTPUT};

/// Body bytes repeat with this period: byte `i` of any filler body is `ALPHABET[i % 64]`.
pub(crate) const ALPHABET: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

/// Data bytes in one chunk of a chunked body.
const CHUNK: usize = 8 * 1024;

/// A whole answer, rendered.
#[derive(Debug)]
pub(crate) struct Rendered {
    bytes: Vec<u8>,
    /// Length of the head: what HEAD is answered with.
    head: usize,
}

impl Rendered {
    fn new(head: String, body: &[u8]) -> Self {
        let length = head.len();
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body);
        Self { bytes, head: length }
    }

    #[inline]
    pub(crate) fn bytes(&self, no_body: bool) -> &[u8] {
        if no_body { self.bytes.get(..self.head).unwrap_or_default() } else { &self.bytes }
    }
}

/// The same answer for each [`Persistence`].
#[derive(Debug)]
struct Trio {
    implied: Rendered,
    announced: Rendered,
    close: Rendered,
}

impl Trio {
    fn new(render: impl Fn(Persistence) -> Rendered) -> Self {
        Self {
            implied: render(Persistence::Implied),
            announced: render(Persistence::Announced),
            close: render(Persistence::Close),
        }
    }
}

/// Answers that are rendered before the first request.
#[derive(Debug)]
pub(crate) struct Answers {
    default: Trio,
    unavailable: Trio,
    /// The length of the part of the default body that is not in `default`, because it is too long
    /// to be kept three times over: it is made as it is sent.
    pub(crate) streamed: u64,
    filler: Vec<u8>,
}

impl Answers {
    pub(crate) fn new(body_bytes: u64) -> Self {
        let filler: Vec<u8> = ALPHABET.iter().copied().cycle().take(OUTPUT + ALPHABET.len()).collect();
        let kept = usize::try_from(body_bytes).ok().filter(|&length| length <= OUTPUT / 2);
        let body = kept.and_then(|length| filler.get(..length)).unwrap_or_default();
        let default = Trio::new(|persistence| Rendered::new(head(200, Body::Length(body_bytes), persistence), body));
        let sorry = b"unavailable, as asked for\n";
        let unavailable =
            Trio::new(|persistence| Rendered::new(head(503, Body::Length(sorry.len() as u64), persistence), sorry));
        let streamed = if kept.is_some() { 0 } else { body_bytes };
        Self { default, unavailable, streamed, filler }
    }

    #[inline]
    pub(crate) fn get(&self, kind: Kind, persistence: Persistence) -> &Rendered {
        let trio = match kind {
            Kind::Default => &self.default,
            Kind::Unavailable => &self.unavailable,
        };
        match persistence {
            Persistence::Implied => &trio.implied,
            Persistence::Announced => &trio.announced,
            Persistence::Close => &trio.close,
        }
    }

    /// Filler from position `at` of a body, at most `most` bytes and never more than [`OUTPUT`].
    fn filler(&self, at: u64, most: u64) -> &[u8] {
        let start = (at % ALPHABET.len() as u64) as usize;
        let length = usize::try_from(most).unwrap_or(OUTPUT).min(OUTPUT);
        self.filler.get(start..start + length).unwrap_or_default()
    }
}

/// How the head delimits the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    Length(u64),
    Chunked,
    UntilClose,
    /// No body and no length, for 204 and 304.
    None,
}

/// An answer's head, blank line included.
pub(crate) fn head(status: u16, body: Body, persistence: Persistence) -> String {
    let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    if body != Body::None {
        head.push_str("Content-Type: text/plain\r\n");
    }
    match body {
        // Writing to a String cannot fail.
        Body::Length(length) => drop(write!(head, "Content-Length: {length}\r\n")),
        Body::Chunked => head.push_str("Transfer-Encoding: chunked\r\nTrailer: X-Bytes\r\n"),
        Body::UntilClose | Body::None => {}
    }
    head.push_str(persistence.header());
    head.push_str("\r\n");
    head
}

/// The interim answer to `Expect: 100-continue`.
pub(crate) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// A piece of output that waits on a connection.
#[derive(Debug)]
pub(crate) struct Piece {
    /// The earliest time for it, since the server's start; zero for at once.
    pub(crate) due: Duration,
    /// With this piece an answer is complete.
    pub(crate) ends_answer: bool,
    pub(crate) content: Content,
}

/// An answer of a language model, and how it is delimited.
#[derive(Debug)]
pub(crate) struct ModelAnswer {
    pub(crate) answer: Answer,
    pub(crate) persistence: Persistence,
    pub(crate) chunked: bool,
}

/// The content of a piece, and how far it has been sent.
#[derive(Debug)]
pub(crate) enum Content {
    Rendered {
        kind: Kind,
        persistence: Persistence,
        no_body: bool,
        sent: usize,
    },
    Own {
        bytes: Vec<u8>,
        sent: usize,
    },
    Filler {
        at: u64,
        left: u64,
    },
    Chunks {
        at: u64,
        left: u64,
    },
    /// Events one by one, each when it is due.
    Events(Events),
    /// What a language model answers; [`Session`](super::session::Session) renders it.
    Model(Box<ModelAnswer>),
}

impl Content {
    pub(crate) fn own(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Own { bytes: bytes.into(), sent: 0 }
    }

    /// The memory that it holds beyond its own size, in bytes.
    pub(crate) fn held(&self) -> usize {
        if let Self::Own { bytes, .. } = self { bytes.len() } else { 0 }
    }

    /// Appends the next stretch to `out`, about as much as there is room for below [`OUTPUT`];
    /// true when that was the last of it.
    pub(crate) fn render(&mut self, answers: &Answers, out: &mut Vec<u8>) -> bool {
        let room = OUTPUT.saturating_sub(out.len());
        match self {
            Self::Rendered { kind, persistence, no_body, sent } => {
                let bytes = answers.get(*kind, *persistence).bytes(*no_body);
                append(bytes, sent, room, out)
            }
            Self::Own { bytes, sent } => append(bytes, sent, room, out),
            Self::Filler { at, left } => {
                let bytes = answers.filler(*at, (*left).min(room as u64));
                out.extend_from_slice(bytes);
                *at += bytes.len() as u64;
                *left -= bytes.len() as u64;
                *left == 0
            }
            Self::Events(events) => events.render(out),
            Self::Model(_) => true,
            Self::Chunks { at, left } => {
                if *left > 0 {
                    let data = answers.filler(*at, (*left).min(CHUNK as u64));
                    out.extend_from_slice(format!("{:x};brunt=filler\r\n", data.len()).as_bytes());
                    out.extend_from_slice(data);
                    out.extend_from_slice(b"\r\n");
                    *at += data.len() as u64;
                    *left -= data.len() as u64;
                }
                if *left > 0 {
                    return false;
                }
                out.extend_from_slice(format!("0;brunt=last\r\nX-Bytes: {at}\r\n\r\n").as_bytes());
                true
            }
        }
    }
}

fn append(bytes: &[u8], sent: &mut usize, room: usize, out: &mut Vec<u8>) -> bool {
    let rest = bytes.get(*sent..).unwrap_or_default();
    let now = rest.get(..room).unwrap_or(rest);
    out.extend_from_slice(now);
    *sent += now.len();
    now.len() == rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything a piece of content renders to, taken out whenever the output is full.
    fn render(mut content: Content, answers: &Answers) -> Vec<u8> {
        let (mut all, mut out) = (Vec::new(), Vec::new());
        loop {
            let done = content.render(answers, &mut out);
            assert!(out.len() <= OUTPUT + CHUNK + 64, "{} bytes at once", out.len());
            if done || out.len() >= OUTPUT {
                all.append(&mut out);
            }
            if done {
                return all;
            }
        }
    }

    #[test]
    fn default_answers_say_what_becomes_of_the_connection() {
        let answers = Answers::new(4);
        let text = |persistence, no_body| {
            let bytes = answers.get(Kind::Default, persistence).bytes(no_body);
            String::from_utf8(bytes.to_vec()).unwrap()
        };
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n";
        assert_eq!(text(Persistence::Implied, false), format!("{head}\r\nabcd"));
        assert_eq!(text(Persistence::Implied, true), format!("{head}\r\n"));
        assert_eq!(text(Persistence::Announced, false), format!("{head}Connection: keep-alive\r\n\r\nabcd"));
        assert_eq!(text(Persistence::Close, false), format!("{head}Connection: close\r\n\r\nabcd"));
    }

    #[test]
    fn filler_runs_on_over_the_edge_of_an_output() {
        let answers = Answers::new(0);
        let length = 3 * OUTPUT as u64 + 17;
        let body = render(Content::Filler { at: 0, left: length }, &answers);
        assert_eq!(body.len() as u64, length);
        assert!(body.iter().enumerate().all(|(index, &byte)| byte == ALPHABET[index % 64]));
    }

    #[test]
    fn chunks_have_extensions_and_a_trailer() {
        let answers = Answers::new(0);
        let body = render(Content::Chunks { at: 0, left: 3 }, &answers);
        assert_eq!(body, b"3;brunt=filler\r\nabc\r\n0;brunt=last\r\nX-Bytes: 3\r\n\r\n");
        let body = render(Content::Chunks { at: 0, left: 0 }, &answers);
        assert_eq!(body, b"0;brunt=last\r\nX-Bytes: 0\r\n\r\n");
        let long = render(Content::Chunks { at: 0, left: 10 * CHUNK as u64 }, &answers);
        assert!(long.ends_with(b"\r\n0;brunt=last\r\nX-Bytes: 81920\r\n\r\n"));
    }

    #[test]
    fn long_default_bodies_are_not_kept() {
        let answers = Answers::new(1 << 40);
        assert_eq!(answers.streamed, 1 << 40);
        assert!(answers.get(Kind::Default, Persistence::Implied).bytes(false).len() < 100);
    }
}
