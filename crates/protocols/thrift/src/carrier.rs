//! What carries messages: nothing, a length, `THeader`'s frames, or HTTP.
//!
//! Binary and compact messages that follow each other, with or without a length, are read token by token
//! ([`super::reply`]). Everything else is first put together here: a [`Carrier`] cuts whole messages out of what arrives.

use std::io::Write as _;

use brunt_plan::target::Target;
use brunt_protocol::Malformed;

use super::options::{TransportName, WireName};
use super::reply::{Fault, ReplyFraming};

/// The longest head of an HTTP answer, and the longest line between chunks, in bytes.
const MOST_HEAD_BYTES: usize = 16 * 1024;
/// The most header fields of an HTTP answer.
const MOST_FIELDS: usize = 64;
/// The first two bytes of `THeader`'s frames, behind their length.
const HEADER_MAGIC: [u8; 2] = [0x0f, 0xff];
/// The bytes of `THeader`'s frame before its header: magic, flags, sequence id, and the header's length in words.
const HEADER_FIXED: usize = 10;

/// How messages travel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Transport {
    /// Each has its length before it.
    Framed,
    /// They follow each other.
    Unframed,
    /// Each is in a frame of `THeader`.
    Header,
    /// Each is a request of HTTP/1.1. Its head up to the length of its body.
    Http(Vec<u8>),
}

impl Transport {
    /// The transport of this name, to this target.
    pub(super) fn new(name: TransportName, target: &Target) -> Self {
        match name {
            TransportName::Framed => Self::Framed,
            TransportName::Unframed => Self::Unframed,
            TransportName::Header => Self::Header,
            TransportName::Http => {
                let (path, host, version) = (&target.path, target.authority(), env!("CARGO_PKG_VERSION"));
                let head = format!(
                    "POST {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: brunt/{version}\r\n\
                     Accept: application/x-thrift\r\nContent-Type: application/x-thrift\r\nContent-Length: "
                );
                Self::Http(head.into_bytes())
            }
        }
    }

    /// How messages are cut, where that takes no carrier.
    pub(super) fn framing(&self, wire: WireName) -> Option<ReplyFraming> {
        match (self, wire) {
            (Self::Framed, WireName::Binary | WireName::Compact) => Some(ReplyFraming::Framed),
            (Self::Unframed, WireName::Binary | WireName::Compact) => Some(ReplyFraming::Unframed),
            _ => None,
        }
    }

    /// Appends what stands before a message of so many bytes.
    #[inline]
    pub(super) fn write_head(&self, length: usize, sequence: i32, wire: WireName, out: &mut Vec<u8>) {
        match self {
            Self::Unframed => {}
            Self::Framed => out.extend_from_slice(&(length as u32).to_be_bytes()),
            Self::Header => {
                let protocol = if wire == WireName::Compact { 2 } else { 0 };
                // The header: the protocol's id, no transforms, no further fields, to a whole word.
                let header = [protocol, 0, 0, 0];
                out.extend_from_slice(&((HEADER_FIXED + header.len() + length) as u32).to_be_bytes());
                out.extend_from_slice(&HEADER_MAGIC);
                out.extend_from_slice(&[0, 0]);
                out.extend_from_slice(&sequence.to_be_bytes());
                out.extend_from_slice(&[0, (header.len() / 4) as u8]);
                out.extend_from_slice(&header);
            }
            Self::Http(head) => {
                out.extend_from_slice(head);
                // Writing to a vector cannot fail.
                let _ = write!(out, "{length}\r\n\r\n");
            }
        }
    }

    /// The message in a request or an answer that is complete. Bodies in chunks are left alone.
    pub(super) fn message<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            Self::Unframed => Some(bytes),
            Self::Framed => bytes.get(4..),
            Self::Header => bytes.get(4..).and_then(|frame| frame.get(payload(frame).ok()?..)),
            Self::Http(_) => {
                let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
                bytes.get(end + 4..)
            }
        }
    }
}

/// A message that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arrived {
    /// The status of the HTTP answer that carried it; 200 elsewhere.
    pub(super) status: u16,
    /// Whether the connection goes on.
    pub(super) reusable: bool,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// JSON, which ends with its last bracket.
    Json { depth: u32, in_text: bool, escaped: bool },
    /// The four bytes of a frame's length.
    Length,
    /// So many bytes of the message.
    Sized(usize),
    /// The head of an HTTP answer.
    Head,
    /// The line with a chunk's length.
    ChunkLength,
    /// So many bytes of a chunk.
    Chunk(usize),
    /// The end of the line behind a chunk.
    ChunkEnd,
    /// The lines behind the last chunk.
    Trailers,
    /// Everything until the peer closes.
    ToEnd,
    /// The message is complete.
    Done,
}

/// Cuts whole messages out of received bytes, in whatever pieces they come.
#[derive(Debug)]
pub(super) struct Carrier {
    first: Stage,
    has_header: bool,
    /// The most bytes of a message.
    limit: usize,
    stage: Stage,
    /// A head, a length or a line that is not complete.
    line: Vec<u8>,
    /// The message, with `THeader`'s header before it.
    kept: Vec<u8>,
    from: usize,
    arrived: Arrived,
}

impl Carrier {
    /// The carrier of answers, if they need one.
    pub(super) fn new(transport: &Transport, wire: WireName, limit: u32) -> Option<Self> {
        if transport.framing(wire).is_some() {
            return None;
        }
        let first = match transport {
            Transport::Unframed => Stage::Json { depth: 0, in_text: false, escaped: false },
            Transport::Framed | Transport::Header => Stage::Length,
            Transport::Http(_) => Stage::Head,
        };
        Some(Self {
            first,
            has_header: *transport == Transport::Header,
            limit: limit as usize,
            stage: first,
            line: Vec::new(),
            kept: Vec::new(),
            from: 0,
            arrived: Arrived { status: 200, reusable: true },
        })
    }

    /// The message that came last.
    pub(super) fn message(&self) -> &[u8] {
        self.kept.get(self.from..).unwrap_or_default()
    }

    /// Takes bytes, up to the end of a message at most. Returns how many it took, and whether the message is complete.
    ///
    /// # Errors
    /// When the bytes break the grammar or the limit. The bytes after that have no meaning.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Result<(usize, Option<Arrived>), Fault> {
        if self.stage == Stage::Done {
            self.begin();
        }
        let mut at = 0;
        while let Some(rest) = bytes.get(at..)
            && !rest.is_empty()
        {
            at += self.take(rest)?;
            if self.stage == Stage::Done {
                self.open()?;
                return Ok((at, Some(self.arrived)));
            }
        }
        Ok((at, None))
    }

    /// The peer has closed: the message that is complete by that.
    pub(super) fn closed(&mut self) -> Option<Arrived> {
        (self.stage == Stage::ToEnd).then(|| {
            self.stage = Stage::Done;
            self.arrived
        })
    }

    fn begin(&mut self) {
        self.stage = self.first;
        self.line.clear();
        self.kept.clear();
        self.from = 0;
        self.arrived = Arrived { status: 200, reusable: true };
    }

    /// Finds the message within what was kept.
    fn open(&mut self) -> Result<(), Malformed> {
        if self.has_header {
            self.from = payload(&self.kept)?;
        }
        Ok(())
    }

    /// Takes some of the bytes, at least one.
    fn take(&mut self, rest: &[u8]) -> Result<usize, Fault> {
        match self.stage {
            Stage::Json { depth, in_text, escaped } => self.json(rest, depth, in_text, escaped),
            Stage::Length => {
                let length = rest.get(..4 - self.line.len().min(3)).unwrap_or(rest);
                self.line.extend_from_slice(length);
                if let Some(bytes) = self.line.first_chunk() {
                    let whole = u32::from_be_bytes(*bytes) as usize;
                    if whole > self.limit.saturating_add(MOST_HEAD_BYTES) {
                        return Err(Fault::Oversize);
                    }
                    self.stage = sized(whole, Stage::Done, Stage::Sized);
                }
                Ok(length.len())
            }
            Stage::Sized(left) => self.keep(rest, left, Stage::Done, Stage::Sized),
            Stage::Head => self.head(rest),
            Stage::ChunkLength => self.in_lines(rest, Self::chunk),
            Stage::Chunk(left) => self.keep(rest, left, Stage::ChunkEnd, Stage::Chunk),
            Stage::ChunkEnd => self.in_lines(rest, |carrier, line| {
                carrier.stage = Stage::ChunkLength;
                if line.is_empty() { Ok(()) } else { Err(Malformed::because("a chunk that is longer than its length")) }
            }),
            Stage::Trailers => self.in_lines(rest, |carrier, line| {
                carrier.stage = if line.is_empty() { Stage::Done } else { Stage::Trailers };
                Ok(())
            }),
            Stage::ToEnd => self.keep(rest, rest.len().saturating_add(1), Stage::ToEnd, |_| Stage::ToEnd),
            Stage::Done => Ok(rest.len()),
        }
    }

    /// Keeps up to `left` bytes; what comes next is `then` behind the last of them, and else what `more` says.
    fn keep(&mut self, rest: &[u8], left: usize, then: Stage, more: fn(usize) -> Stage) -> Result<usize, Fault> {
        let own = rest.get(..left).unwrap_or(rest);
        let header = if self.has_header { MOST_HEAD_BYTES } else { 0 };
        if self.kept.len() + own.len() > self.limit.saturating_add(header) {
            return Err(Fault::Oversize);
        }
        self.kept.extend_from_slice(own);
        self.stage = sized(left - own.len(), then, more);
        Ok(own.len())
    }

    fn json(&mut self, rest: &[u8], mut depth: u32, mut in_text: bool, mut escaped: bool) -> Result<usize, Fault> {
        let mut taken = rest.len();
        for (index, byte) in rest.iter().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_text => escaped = true,
                b'"' if depth > 0 => in_text = !in_text,
                _ if in_text => {}
                b'[' | b'{' => depth = depth.saturating_add(1),
                b']' | b'}' if depth == 1 => {
                    depth = 0;
                    taken = index + 1;
                    break;
                }
                b']' | b'}' if depth > 1 => depth -= 1,
                b' ' | b'\t' | b'\r' | b'\n' => {}
                _ if depth == 0 => return Err(Malformed::because("no message of the JSON protocol").into()),
                _ => {}
            }
        }
        let is_done = depth == 0 && matches!(rest.get(taken - 1), Some(b']' | b'}'));
        let more = Stage::Json { depth, in_text, escaped };
        self.keep(rest, taken, Stage::Done, Stage::Sized)?;
        self.stage = if is_done { Stage::Done } else { more };
        Ok(taken)
    }

    /// Reads a line, which ends with a line feed and is given without its end.
    fn in_lines(
        &mut self,
        rest: &[u8],
        read: impl FnOnce(&mut Self, &[u8]) -> Result<(), Malformed>,
    ) -> Result<usize, Fault> {
        let end = rest.iter().position(|byte| *byte == b'\n');
        let own = end.and_then(|end| rest.get(..=end)).unwrap_or(rest);
        self.line.extend_from_slice(own);
        if self.line.len() > MOST_HEAD_BYTES {
            return Err(Malformed::because("a line of more than 16 KiB between chunks").into());
        }
        if end.is_some() {
            let line = std::mem::take(&mut self.line);
            read(self, line.trim_ascii_end())?;
        }
        Ok(own.len())
    }

    fn chunk(&mut self, line: &[u8]) -> Result<(), Malformed> {
        let number = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        let number = std::str::from_utf8(number).ok().filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()));
        let length = number.and_then(|text| usize::from_str_radix(text, 16).ok());
        let length = length.ok_or(Malformed::because("a chunk without a length"))?;
        self.stage = sized(length, Stage::Trailers, Stage::Chunk);
        Ok(())
    }

    fn head(&mut self, rest: &[u8]) -> Result<usize, Fault> {
        let before = self.line.len();
        self.line.extend_from_slice(rest);
        let line = std::mem::take(&mut self.line);
        let end = self.parse_head(&line)?;
        if end.unwrap_or(line.len()) > MOST_HEAD_BYTES {
            return Err(Malformed::because("a head of an HTTP answer of more than 16 KiB").into());
        }
        if end.is_none() {
            self.line = line;
        }
        Ok(end.map_or(rest.len(), |end| end.saturating_sub(before)))
    }

    /// Reads the head of an answer that begins with these bytes. Returns its length, if it is complete.
    fn parse_head(&mut self, bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
        let mut answer = httparse::Response::new(&mut fields);
        let length_of_head = match answer.parse(bytes) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(Malformed::because("an answer that is not HTTP/1.1")),
        };
        let values = |name: &'static str| {
            let named = answer.headers.iter().filter(move |field| field.name.eq_ignore_ascii_case(name));
            named.map(|field| String::from_utf8_lossy(field.value).trim().to_ascii_lowercase())
        };
        let lists = |name, token: &str| values(name).any(|value| value.split(',').any(|part| part.trim() == token));
        let status = answer.code.unwrap_or(0);
        if (100..200).contains(&status) {
            // An interim answer: the final one follows.
            return Ok(Some(length_of_head));
        }
        let keeps =
            if answer.version == Some(0) { lists("connection", "keep-alive") } else { !lists("connection", "close") };
        let mut lengths = values("content-length");
        let length = lengths.next().map(|text| text.parse::<usize>());
        self.stage = match length {
            _ if matches!(status, 204 | 304) => Stage::Done,
            _ if lists("transfer-encoding", "chunked") => Stage::ChunkLength,
            Some(Ok(length)) if lengths.next().is_none() => sized(length, Stage::Done, Stage::Sized),
            Some(_) => return Err(Malformed::because("an answer whose Content-Length is no number")),
            None => Stage::ToEnd,
        };
        self.arrived = Arrived { status, reusable: keeps && self.stage != Stage::ToEnd };
        Ok(Some(length_of_head))
    }
}

/// What comes where so many bytes are left.
fn sized(left: usize, then: Stage, more: fn(usize) -> Stage) -> Stage {
    if left == 0 { then } else { more(left) }
}

/// Where the message begins in a frame of `THeader`. A frame without a header is the message itself.
fn payload(frame: &[u8]) -> Result<usize, Malformed> {
    if frame.first_chunk() != Some(&HEADER_MAGIC) {
        return Ok(0);
    }
    let wrong = || Malformed::because("a frame of THeader that ends within its header");
    let words = frame.get(HEADER_FIXED - 2..).and_then(<[u8]>::first_chunk).ok_or_else(wrong)?;
    let length = usize::from(u16::from_be_bytes(*words)) * 4;
    let header = frame.get(HEADER_FIXED..HEADER_FIXED + length).ok_or_else(wrong)?;
    // Two numbers begin it: the protocol's id, which is the one that was asked by, and how many transforms follow.
    let mut numbers = header.split_inclusive(|byte| byte & 0x80 == 0);
    match numbers.nth(1) {
        Some([0]) => Ok(HEADER_FIXED + length),
        Some(_) => Err(Malformed::because("a frame of THeader that is compressed, which was not asked for")),
        None => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn http() -> Transport {
        Transport::Http(b"POST / HTTP/1.1\r\nContent-Length: ".to_vec())
    }

    /// The messages that come of these bytes, cut at these places, and how they arrived.
    fn arrived(
        transport: &Transport,
        wire: WireName,
        bytes: &[u8],
        cuts: &[usize],
    ) -> Result<Vec<(Vec<u8>, Arrived)>, Fault> {
        let mut carrier = Carrier::new(transport, wire, 1000).unwrap();
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).chain([bytes.len()]).collect();
        ends.sort_unstable();
        let (mut messages, mut from) = (Vec::new(), 0);
        for end in ends {
            let mut piece = &bytes[from..end];
            from = end;
            while !piece.is_empty() {
                let (taken, one) = carrier.receive(piece)?;
                assert!(taken > 0);
                piece = &piece[taken..];
                messages.extend(one.map(|arrived| (carrier.message().to_vec(), arrived)));
            }
        }
        messages.extend(carrier.closed().map(|arrived| (carrier.message().to_vec(), arrived)));
        Ok(messages)
    }

    fn told(transport: &Transport, wire: WireName, bytes: &[u8]) -> Vec<(String, u16, bool)> {
        let messages = arrived(transport, wire, bytes, &[]).unwrap();
        let one = |(message, arrived): (Vec<u8>, Arrived)| {
            (String::from_utf8(message).unwrap(), arrived.status, arrived.reusable)
        };
        messages.into_iter().map(one).collect()
    }

    #[test]
    fn answers_of_http_end_by_length_by_chunks_or_with_the_connection() {
        let bytes = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc\
            HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nA: b\r\n\r\n\
            HTTP/1.1 500 Oh\r\ncontent-length: 0\r\nConnection: close\r\n\r\nHTTP/1.0 200 OK\r\n\r\nall the rest";
        let expected = [("abc", 200, true), ("abcde", 200, true), ("", 500, false), ("all the rest", 200, false)];
        let expected = expected.map(|(text, status, reusable)| (text.to_owned(), status, reusable));
        assert_eq!(told(&http(), WireName::Binary, bytes), expected);
    }

    #[test]
    fn json_ends_with_its_last_bracket() {
        let bytes = br#" [1,"a]\"[",{"1":{"str":"\\"}}]
            [2,{}]"#;
        let expected = [r#" [1,"a]\"[",{"1":{"str":"\\"}}]"#, "\n            [2,{}]"];
        let got = told(&Transport::Unframed, WireName::Json, bytes);
        assert_eq!(got.iter().map(|(text, ..)| text.as_str()).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_frame_of_theader_holds_what_was_written_into_it() {
        let mut bytes = Vec::new();
        for message in [&b"first"[..], b"second"] {
            Transport::Header.write_head(message.len(), 7, WireName::Compact, &mut bytes);
            bytes.extend_from_slice(message);
        }
        // The frame of a server that does not speak THeader.
        bytes.extend_from_slice(b"\0\0\0\x05plain");
        let got = told(&Transport::Header, WireName::Compact, &bytes);
        assert_eq!(got.iter().map(|(text, ..)| text.as_str()).collect::<Vec<_>>(), ["first", "second", "plain"]);
        assert_eq!(bytes[..18], *b"\0\0\0\x13\x0f\xff\0\0\0\0\0\x07\0\x01\x02\0\0\0");
    }

    #[test]
    fn what_is_beyond_the_limit_or_broken_is_refused() {
        let of = |transport: &Transport, wire, bytes: &[u8]| arrived(transport, wire, bytes, &[]).unwrap_err();
        let long = [b"[\"".as_slice(), &[b'x'; 1001]].concat();
        assert_eq!(of(&Transport::Unframed, WireName::Json, &long), Fault::Oversize);
        assert_eq!(of(&Transport::Header, WireName::Binary, b"\x7f\xff\xff\xff"), Fault::Oversize);
        let announced = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n";
        assert_eq!(of(&http(), WireName::Binary, &[announced.as_slice(), &[0; 1001]].concat()), Fault::Oversize);
        for (transport, wire, bytes) in [
            (Transport::Unframed, WireName::Json, &b"HTTP/1.1 400"[..]),
            (http(), WireName::Binary, b"\x80\x01\0\x02\0\0\0\x01a\0\0\0\0"),
            (http(), WireName::Json, b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
            (http(), WireName::Json, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+5\r\n"),
            (http(), WireName::Json, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n"),
            (Transport::Header, WireName::Binary, b"\0\0\0\x0e\x0f\xff\0\0\0\0\0\x07\0\x01\0\x01\x01\0"),
            (Transport::Header, WireName::Binary, b"\0\0\0\x0a\x0f\xff\0\0\0\0\0\x07\0\x01"),
        ] {
            assert!(matches!(of(&transport, wire, bytes), Fault::Malformed(_)), "{bytes:?}");
        }
    }

    #[test]
    fn a_head_ends_where_its_fields_do() {
        // The line feed of a field may stand alone (RFC 9112, section 2.2), and a body has lines of its own.
        let bytes = b"HTTP/1.1 200 OK\r\nX: y\n\r\na\r\n\r\nb";
        let every: Vec<usize> = (0..bytes.len()).collect();
        for cuts in [&[][..], &every] {
            let messages = arrived(&http(), WireName::Binary, bytes, cuts).unwrap();
            assert_eq!(messages, [(b"a\r\n\r\nb".to_vec(), Arrived { status: 200, reusable: false })], "{cuts:?}");
        }
    }

    proptest! {
        #[test]
        fn how_bytes_are_cut_changes_nothing(
            which in 0_usize..4,
            bodies in prop::collection::vec("[ -~]{0,40}", 1..4),
            noise in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
            cuts in prop::collection::vec(any::<usize>(), 0..60),
        ) {
            let (transport, wire) = match which {
                0 => (Transport::Unframed, WireName::Json),
                1 => (Transport::Framed, WireName::Json),
                2 => (Transport::Header, WireName::Binary),
                _ => (http(), WireName::Binary),
            };
            let mut bytes = Vec::new();
            for (number, body) in bodies.iter().enumerate() {
                let body = if which == 0 { format!("[{}]", serde_json::json!(body)) } else { body.clone() };
                match which {
                    3 if number % 2 == 0 => bytes.extend_from_slice(
                        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).as_bytes(),
                    ),
                    3 => bytes.extend_from_slice(
                        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{{\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len().max(1))
                            .as_bytes(),
                    ),
                    _ => {
                        transport.write_head(body.len(), 5, wire, &mut bytes);
                        bytes.extend_from_slice(body.as_bytes());
                    }
                }
            }
            if let Some((at, byte)) = noise {
                let at = at.index(bytes.len().max(1));
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
            let whole = arrived(&transport, wire, &bytes, &[]);
            let every: Vec<usize> = (0..bytes.len()).collect();
            for cuts in [cuts, every] {
                // Which of two faults is met first may depend on the cuts.
                match (&whole, arrived(&transport, wire, &bytes, &cuts)) {
                    (Ok(whole), cut) => prop_assert_eq!(&Ok(whole.clone()), &cut),
                    (Err(_), cut) => prop_assert!(cut.is_err()),
                }
            }
        }
    }
}
