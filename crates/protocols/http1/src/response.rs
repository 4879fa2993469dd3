//! The answers of HTTP/1.1: a pure parser that takes bytes in whatever pieces they come.

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::sync::{Arc, OnceLock};

use super::chunked::{Chunked, Chunks};
use brunt_protocol::messages::{Message, Reader};
use brunt_protocol::{Kept, Malformed};

/// The most bytes a status line with its header section may have.
pub const MOST_HEAD_BYTES: usize = 64 * 1024;
/// Why a call has failed whose answer came as messages, without the one that was to be the last.
pub(super) const ENDED_EARLY: &str = "the stream ended without its last message";
/// The most bytes of a body that is kept.
const MOST_KEPT_BYTES: usize = 64 * 1024 * 1024;
/// A head of up to this size is parsed anew with each piece that arrives, and remembered once it is whole.
const SHORT_HEAD_BYTES: usize = 512;
/// The most header fields an answer may have.
pub const MOST_HEADERS: usize = 128;
/// The most that is noted of where a redirect leads, in characters.
const MOST_LOCATION: usize = 1000;
/// The most interim answers (1xx) before the final one.
const MOST_INTERIM: u8 = 16;

/// What bytes meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// All bytes were taken and the answer is not complete.
    More,
    /// A message of the answer is complete.
    Message {
        /// The answer's status code.
        status: u16,
    },
    /// The answer is complete.
    Done {
        /// Its status code.
        status: u16,
        /// Whether the connection stays open after it.
        reusable: bool,
    },
    /// The same, and the answer came as messages without the one that was to be the last.
    EndedEarly {
        /// Whether the connection stays open after it.
        reusable: bool,
    },
}

/// What follows the head that was read.
#[derive(Debug)]
enum Body {
    /// Nothing: a head is being read.
    Head,
    /// So many more bytes.
    Length(u64),
    /// Chunks.
    Chunked(Chunked),
    /// Everything until the connection ends.
    UntilClose,
}

/// Reads one answer after the other.
#[derive(Debug)]
pub struct Parser {
    body: Body,
    status: u16,
    reusable: bool,
    interim: u8,
    /// The beginning of a head whose end has not come yet.
    partial: Vec<u8>,
    /// The answer as it came, where answers are kept.
    kept: Option<Keeping>,
    /// Where the first redirect led, if that is noted.
    redirect: Option<Arc<OnceLock<String>>>,
    /// What cuts bodies into messages, of answers that come so.
    reader: Option<Box<Reader>>,
    /// Whether the body that is being read is cut into messages.
    is_streaming: bool,
    /// The last byte of the body was read with a message, and not taken yet.
    is_read_ahead: bool,
}

/// The answer, kept for scripts and `--once`.
#[derive(Debug, Default)]
struct Keeping {
    answer: Kept,
    /// Whether nobody wants to see its body.
    discards: bool,
}

impl Keeping {
    fn begin(&mut self, head: &[u8]) {
        let Kept { head: kept, body } = &mut self.answer;
        kept.clear();
        kept.extend_from_slice(head);
        body.clear();
        // What one large answer took is not held for ever.
        body.shrink_to(1 << 20);
    }

    fn add(&mut self, body: &[u8]) -> Result<(), Malformed> {
        if self.discards {
            return Ok(());
        }
        if self.answer.body.len() + body.len() > MOST_KEPT_BYTES {
            return Err(Malformed::because("a body of more than 64 MiB, which a script would have to hold in memory"));
        }
        self.answer.body.extend_from_slice(body);
        Ok(())
    }
}

impl Default for Parser {
    fn default() -> Self {
        Self {
            body: Body::Head,
            status: 0,
            reusable: true,
            interim: 0,
            partial: Vec::new(),
            kept: None,
            redirect: None,
            reader: None,
            is_streaming: false,
            is_read_ahead: false,
        }
    }
}

/// What a head says about what follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    bytes: usize,
    status: u16,
    reusable: bool,
    length: Option<u64>,
    coding: Coding,
}

/// The transfer coding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    None,
    /// Chunked is the last coding.
    Chunked,
    /// There is a coding, and its last is not chunked.
    Other,
}

impl Parser {
    /// A parser that keeps each answer until the next begins.
    pub fn keeping() -> Self {
        Self { kept: Some(Keeping::default()), ..Self::default() }
    }

    /// Notes where the first redirect leads in `redirect`, which several parsers may share.
    pub(super) fn note_redirect(&mut self, redirect: Arc<OnceLock<String>>) {
        self.redirect = Some(redirect);
    }

    /// The head and the body of the answer read last, without transfer coding; empty unless answers are kept.
    pub fn kept(&self) -> (&[u8], &[u8]) {
        self.kept.as_ref().map_or((&[], &[]), |kept| (&kept.answer.head, &kept.answer.body))
    }

    /// Whether the body of the answers that begin from now on is kept, where answers are.
    pub(super) fn keep_body(&mut self, keep: bool) {
        if let Some(kept) = &mut self.kept {
            kept.discards = !keep;
        }
    }

    /// Cuts the bodies of the answers that begin from now on into messages, if they are a success (2xx).
    pub fn cut_body(&mut self, reader: Option<Box<Reader>>) {
        self.reader = reader;
    }

    /// Exchanges the answer that is kept for `kept`, which is forgotten.
    pub(super) fn hand_over(&mut self, kept: &mut Kept) {
        if let Some(keeping) = &mut self.kept {
            std::mem::swap(&mut keeping.answer, kept);
            // What was kept of a body that is cut into messages is one of these.
            if self.is_streaming {
                kept.body.clear();
            }
        }
    }

    /// Takes bytes of the answer to a request (`head_request` if its method was HEAD); returns how many it took.
    ///
    /// # Errors
    /// When they break the grammar or a limit. The parser is of no use after that.
    pub fn receive(&mut self, bytes: &[u8], head_request: bool) -> Result<(usize, Step), Malformed> {
        let mut taken = 0;
        loop {
            let rest = bytes.get(taken..).unwrap_or(&[]);
            if rest.is_empty() {
                return Ok((taken, Step::More));
            }
            let (n, step) =
                if self.is_streaming { self.receive_streaming(rest)? } else { self.receive_whole(rest, head_request)? };
            taken += n;
            if step != Step::More {
                return Ok((taken, step));
            }
        }
    }

    /// Takes bytes of an answer that does not come as messages, or of its head.
    #[inline]
    fn receive_whole(&mut self, rest: &[u8], head_request: bool) -> Result<(usize, Step), Malformed> {
        Ok(match &mut self.body {
            Body::Head => self.receive_head(rest, head_request)?,
            Body::Length(left) => {
                let n = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= n as u64;
                if let Some(kept) = &mut self.kept {
                    kept.add(rest.get(..n).unwrap_or(&[]))?;
                }
                let complete = *left == 0;
                (n, self.step(complete))
            }
            Body::Chunked(chunked) => {
                let (n, read) = match &mut self.kept {
                    None => chunked.receive(rest, |_, _| Ok(None))?,
                    Some(kept) => chunked.receive(rest, |data, _| kept.add(data).map(|()| None))?,
                };
                (n, self.step(read == Chunks::Complete))
            }
            Body::UntilClose => {
                if let Some(kept) = &mut self.kept {
                    kept.add(rest)?;
                }
                (rest.len(), Step::More)
            }
        })
    }

    /// Takes bytes of a body that is cut into messages, up to the end of one.
    fn receive_streaming(&mut self, rest: &[u8]) -> Result<(usize, Step), Malformed> {
        let Some(reader) = &mut self.reader else { return Ok((rest.len(), Step::More)) };
        let message = Step::Message { status: self.status };
        let (n, step) = match &mut self.body {
            Body::Length(left) => {
                let n = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                let read_ahead = std::mem::take(&mut self.is_read_ahead);
                let ended = if read_ahead { None } else { reader.read(rest.get(..n).unwrap_or(&[]), false)? };
                match ended {
                    // The answer ends with the same byte, which is taken next.
                    Some(ended) if ended as u64 == *left => {
                        (*left, self.is_read_ahead) = (1, true);
                        (ended - 1, message)
                    }
                    Some(ended) => {
                        *left -= ended as u64;
                        (ended, message)
                    }
                    None => {
                        *left -= n as u64;
                        let complete = *left == 0;
                        (n, self.step(complete))
                    }
                }
            }
            Body::Chunked(chunked) => {
                let (n, read) = chunked.receive(rest, |data, ends| reader.read(data, ends))?;
                (n, if read == Chunks::Stopped { message } else { self.step(read == Chunks::Complete) })
            }
            Body::UntilClose => match reader.read(rest, false)? {
                Some(ended) => (ended, message),
                None => (rest.len(), Step::More),
            },
            Body::Head => (0, Step::More),
        };
        if step == message {
            self.keep_message();
        }
        Ok((n, step))
    }

    /// Keeps a message, where answers are kept.
    fn keep_message(&mut self) {
        if let Some((kept, reader)) = self.kept.as_mut().zip(self.reader.as_ref()) {
            keep_message(reader.message(), &mut kept.answer.body);
        }
    }

    /// The peer closed its side; gives the answer that is complete by that, if one is. One that came as messages is not without
    /// the one that was to be the last.
    pub fn closed(&mut self) -> Option<Step> {
        let is_complete = matches!(self.body, Body::UntilClose);
        is_complete.then(|| self.step(true)).filter(|step| !matches!(step, Step::EndedEarly { .. }))
    }

    /// Whether nothing of the next answer has come yet.
    pub fn is_between_answers(&self) -> bool {
        matches!(self.body, Body::Head) && self.partial.is_empty() && self.interim == 0
    }

    fn step(&mut self, complete: bool) -> Step {
        if !complete {
            return Step::More;
        }
        self.body = Body::Head;
        self.interim = 0;
        if std::mem::take(&mut self.is_streaming) {
            if let Some(kept) = &mut self.kept {
                kept.answer.body.clear();
            }
            if self.reader.as_ref().is_some_and(|reader| !reader.has_ended()) {
                return Step::EndedEarly { reusable: self.reusable };
            }
        }
        Step::Done { status: self.status, reusable: self.reusable }
    }

    fn receive_head(&mut self, bytes: &[u8], head_request: bool) -> Result<(usize, Step), Malformed> {
        let before = self.partial.len();
        let head = if before == 0 {
            read_head(bytes)?
        } else {
            // A long head is parsed only once its end is there, so that one in many small pieces costs no more than a
            // whole one; a short one at once, so that garbage is seen for what it is.
            let from = before.saturating_sub(3);
            self.partial.extend_from_slice(bytes.get(..bytes.len().min(MOST_HEAD_BYTES)).unwrap_or(bytes));
            let ended = has_head_end(self.partial.get(from..).unwrap_or(&[]));
            let parsed = ended || !(SHORT_HEAD_BYTES..MOST_HEAD_BYTES).contains(&self.partial.len());
            if parsed { parse_head(&self.partial)? } else { None }
        };
        let Some(head) = head else {
            if before == 0 {
                self.partial.extend_from_slice(bytes);
            }
            if self.partial.len() >= MOST_HEAD_BYTES {
                return Err(Malformed::because("a header section of more than 64 KiB"));
            }
            return Ok((bytes.len(), Step::More));
        };
        let taken = head.bytes.saturating_sub(before);
        if matches!(head.status, 301..=303 | 307 | 308) {
            self.redirected(if before == 0 { bytes } else { &self.partial });
        }
        if let Some(kept) = &mut self.kept {
            let whole = if before == 0 { bytes } else { &self.partial };
            kept.begin(whole.get(..head.bytes).unwrap_or(&[]));
        }
        self.partial = Vec::new();
        let step = self.begin_body(&head, head_request)?;
        Ok((taken, step))
    }

    /// Notes where the first redirect leads (RFC 9110 §10.2.2). `head` begins with the whole head.
    #[cold]
    fn redirected(&self, head: &[u8]) {
        let Some(redirect) = self.redirect.as_ref().filter(|redirect| redirect.get().is_none()) else { return };
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        // It was parsed before.
        if response.parse(head).is_err() {
            return;
        }
        let location = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case("location"));
        if let Some(location) = location {
            note_location(redirect, location.value);
        }
    }

    /// Decides what follows a head (RFC 9112 §6.3).
    fn begin_body(&mut self, head: &Head, head_request: bool) -> Result<Step, Malformed> {
        match head.status {
            101 => return Err(Malformed::because("status 101: nobody asked to switch protocols")),
            100..=199 => {
                self.interim += 1;
                if self.interim > MOST_INTERIM {
                    return Err(Malformed::because("more than 16 interim answers"));
                }
                return Ok(Step::More);
            }
            _ => {}
        }
        self.status = head.status;
        self.reusable = head.reusable;
        if let Some(reader) = self.reader.as_mut().filter(|_| (200..300).contains(&head.status)) {
            reader.begin();
            self.is_streaming = true;
        }
        let bodiless = head_request || matches!(head.status, 204 | 304);
        match (bodiless, head.coding, head.length) {
            (true, ..) | (_, Coding::None, Some(0)) => return Ok(self.step(true)),
            (_, Coding::Chunked, length) => {
                // With both, chunked rules and the connection is not to be trusted any further (RFC 9112 §6.3, 3.).
                self.reusable &= length.is_none();
                self.body = Body::Chunked(Chunked::new());
            }
            (_, Coding::None, Some(length)) => self.body = Body::Length(length),
            (_, Coding::Other, _) | (_, Coding::None, None) => {
                self.reusable = false;
                self.body = Body::UntilClose;
            }
        }
        Ok(Step::More)
    }
}

/// Writes a message as a body: the first line is its event, the second its id, the rest its data.
pub(super) fn keep_message(message: &Message, body: &mut Vec<u8>) {
    body.clear();
    for part in [&message.event, &message.id] {
        body.extend_from_slice(part);
        body.push(b'\n');
    }
    body.extend_from_slice(&message.data);
}

/// Notes where a redirect leads, if it is the first.
pub(super) fn note_location(redirect: &OnceLock<String>, location: &[u8]) {
    if redirect.get().is_none()
        && let Ok(location) = std::str::from_utf8(location)
    {
        // Another connection may have been first.
        let _ = redirect.set(location.chars().filter(|c| !c.is_control()).take(MOST_LOCATION).collect());
    }
}

/// Whether `bytes` hold the empty line that ends a head.
fn has_head_end(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|pair| pair == b"\n\n") || bytes.windows(3).any(|triple| triple == b"\n\r\n")
}

/// The short head read last on this thread.
struct LastHead {
    bytes: Vec<u8>,
    head: Option<Head>,
}

thread_local! {
    // Servers say the same head again and again: to parse each took 2 % of the flood's CPU.
    static LAST_HEAD: RefCell<LastHead> = const { RefCell::new(LastHead { bytes: Vec::new(), head: None }) };
}

/// Reads a head, if it is complete. One that begins as the last one on this thread is not parsed again: what a complete
/// head means depends on nothing that follows it.
fn read_head(bytes: &[u8]) -> Result<Option<Head>, Malformed> {
    LAST_HEAD.with_borrow_mut(|last| {
        if let Some(head) = last.head
            && bytes.starts_with(&last.bytes)
        {
            return Ok(Some(head));
        }
        let parsed = parse_head(bytes)?;
        if let Some(head) = parsed
            && head.bytes <= SHORT_HEAD_BYTES
        {
            last.bytes.clear();
            last.bytes.extend_from_slice(bytes.get(..head.bytes).unwrap_or(&[]));
            last.head = Some(head);
        }
        Ok(parsed)
    })
}

/// Reads a head, if it is complete.
fn parse_head(bytes: &[u8]) -> Result<Option<Head>, Malformed> {
    let mut headers = [const { MaybeUninit::uninit() }; MOST_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let parsed =
        httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut response, bytes, &mut headers);
    let taken = match parsed {
        Ok(httparse::Status::Complete(taken)) => taken,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => match other_protocol(bytes) {
            Other::MayBe => return Ok(None),
            Other::Is(way_out) => return Err(Malformed::because(way_out)),
            Other::Unknown => return Err(malformed_head(error)),
        },
    };
    let (Some(status), Some(version)) = (response.code, response.version) else {
        return Err(Malformed::because("bad status line"));
    };
    if !(100..=999).contains(&status) {
        return Err(Malformed::because("a status code under 100"));
    }
    // HTTP/1.1 connections stay open unless told otherwise, HTTP/1.0 ones only when told (RFC 9112 §9.3).
    let mut head = Head { bytes: taken, status, reusable: version == 1, length: None, coding: Coding::None };
    for header in response.headers.iter() {
        match header.name.len() {
            10 if header.name.eq_ignore_ascii_case("connection") => connection(header.value, &mut head),
            14 if header.name.eq_ignore_ascii_case("content-length") => {
                head.length = Some(content_length(header.value, head.length)?);
            }
            17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                let last = header.value.rsplit(|&b| b == b',').next().unwrap_or(&[]).trim_ascii();
                head.coding = if last.eq_ignore_ascii_case(b"chunked") { Coding::Chunked } else { Coding::Other };
            }
            _ => {}
        }
    }
    Ok(Some(head))
}

fn malformed_head(error: httparse::Error) -> Malformed {
    Malformed::because(match error {
        httparse::Error::TooManyHeaders => "more than 128 header fields",
        httparse::Error::HeaderName => "bad header name",
        httparse::Error::HeaderValue => "bad header value",
        httparse::Error::Version => "bad status line: not HTTP/1.x",
        httparse::Error::Status => "bad status line: bad status code or reason",
        httparse::Error::NewLine => "bad line end in the header section",
        httparse::Error::Token => "bad status line",
    })
}

/// First bytes of other protocols, a set for each byte (an empty one holds all), and what to say of them.
const OTHERS: [(&[&[u8]], &str); 3] = [
    // A TLS alert or handshake record of any version (RFC 8446 §5.1).
    (&[&[21, 22], &[3]], "the target speaks TLS: use https:// (or wss://)"),
    // A frame of HTTP/2 that belongs to the whole connection: SETTINGS, with which a server begins, or GOAWAY (RFC 9113
    // §3.4, §4.1).
    (&[&[0], &[], &[], &[4, 7], &[], &[0], &[0], &[0], &[0]], "the target speaks HTTP/2: give --http 2"),
    (&[b"S", b"S", b"H", b"-"], "the target speaks SSH"),
];

/// What the first bytes of a connection say of other protocols.
enum Other {
    /// It is one; the way out.
    Is(&'static str),
    /// More bytes may make it one.
    MayBe,
    /// It is none of those that are known.
    Unknown,
}

fn other_protocol(bytes: &[u8]) -> Other {
    let is_like =
        |first: &[&[u8]]| first.iter().zip(bytes).all(|(known, byte)| known.is_empty() || known.contains(byte));
    match OTHERS.iter().find(|(first, _)| is_like(first)) {
        Some((first, _)) if bytes.len() < first.len() => Other::MayBe,
        Some((_, way_out)) => Other::Is(way_out),
        None => Other::Unknown,
    }
}

fn connection(value: &[u8], head: &mut Head) {
    for option in value.split(|&b| b == b',').map(<[u8]>::trim_ascii) {
        if option.eq_ignore_ascii_case(b"close") {
            head.reusable = false;
        } else if option.eq_ignore_ascii_case(b"keep-alive") {
            head.reusable = true;
        }
    }
}

/// A Content-Length, which may be repeated, in one field or several, if it is always the same (RFC 9110 §8.6).
fn content_length(value: &[u8], known: Option<u64>) -> Result<u64, Malformed> {
    let mut length = known;
    for part in value.split(|&b| b == b',').map(<[u8]>::trim_ascii) {
        let digits = !part.is_empty() && part.len() <= 18 && part.iter().all(u8::is_ascii_digit);
        if !digits {
            return Err(Malformed::because("bad Content-Length"));
        }
        let number = part.iter().fold(0, |number: u64, digit| number * 10 + u64::from(digit - b'0'));
        if length.is_some_and(|known| known != number) {
            return Err(Malformed::because("conflicting Content-Length"));
        }
        length = Some(number);
    }
    length.ok_or(Malformed::because("bad Content-Length"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use brunt_protocol::messages::Framing;

    /// What a whole connection's bytes mean: the answers, and how it ended.
    fn read(pieces: &[&[u8]], head_request: bool) -> Result<Vec<(u16, bool)>, String> {
        let mut parser = Parser::default();
        let mut answers = Vec::new();
        for piece in pieces {
            let mut rest = *piece;
            while !rest.is_empty() {
                let (taken, step) = parser.receive(rest, head_request).map_err(|e| e.to_string())?;
                assert!(taken > 0 && taken <= rest.len());
                rest = &rest[taken..];
                match step {
                    Step::Done { status, reusable } => answers.push((status, reusable)),
                    Step::More => assert!(rest.is_empty(), "More while {} bytes are left", rest.len()),
                    Step::Message { .. } | Step::EndedEarly { .. } => unreachable!("nothing is cut into messages"),
                }
            }
        }
        if let Some(Step::Done { status, reusable }) = parser.closed() {
            answers.push((status, reusable));
        } else if !parser.is_between_answers() {
            return Err("incomplete".to_owned());
        }
        Ok(answers)
    }

    fn whole(bytes: &str) -> Result<Vec<(u16, bool)>, String> {
        read(&[bytes.as_bytes()], false)
    }

    /// What a connection means whose answers come as messages.
    fn read_messages(pieces: &[&[u8]], framing: Framing, last: Option<&str>) -> Result<Vec<String>, String> {
        let mut parser = Parser::keeping();
        parser.cut_body(Some(Box::new(Reader::new(framing, last.map(|last| last.as_bytes().into()), true))));
        let mut seen = Vec::new();
        for piece in pieces {
            let mut rest = *piece;
            while !rest.is_empty() {
                let (taken, step) = parser.receive(rest, false).map_err(|e| e.to_string())?;
                rest = &rest[taken..];
                match step {
                    Step::Message { status } => {
                        let body = String::from_utf8_lossy(parser.kept().1).into_owned();
                        seen.push(format!("{status} {}", body.split('\n').collect::<Vec<_>>().join("|")));
                    }
                    Step::Done { status, reusable } => seen.push(format!("done {status} {reusable}")),
                    Step::EndedEarly { reusable } => seen.push(format!("early {reusable}")),
                    Step::More => assert!(rest.is_empty()),
                }
            }
        }
        match parser.closed() {
            Some(Step::Done { status, .. }) => seen.push(format!("closed {status}")),
            Some(_) => unreachable!(),
            None if parser.is_between_answers() => {}
            None => seen.push("incomplete".to_owned()),
        }
        Ok(seen)
    }

    const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

    #[test]
    fn answers_come_as_messages_in_every_transfer_coding() {
        let sse = |body: &str, last| read_messages(&[body.as_bytes()], Framing::Sse, last).unwrap();
        let events = "id: 1\nevent: tick\ndata: a\n\ndata: b\n\n";
        let length = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{events}", events.len());
        assert_eq!(sse(&length, None), ["200 tick|1|a", "200 |1|b", "done 200 true"]);
        assert_eq!(sse(&format!("HTTP/1.1 200 OK\r\n\r\n{events}"), None), ["200 tick|1|a", "200 |1|b", "closed 200"]);
        // An event over two chunks, two events in one, and the end in one of its own.
        let chunked = format!("{CHUNKED}9\r\ndata: a\n\n\r\n3\r\ndat\r\nf\r\na: b\n\ndata: c\n\n\r\n0\r\n\r\n");
        assert_eq!(sse(&chunked, None), ["200 ||a", "200 ||b", "200 ||c", "done 200 true"]);
        assert_eq!(sse(&chunked, Some("c")), ["200 ||a", "200 ||b", "done 200 true"]);
        assert_eq!(sse(&chunked, Some("[DONE]")).last().map(String::as_str), Some("early true"));
        assert_eq!(sse("HTTP/1.1 200 OK\r\n\r\ndata: a\n\n", Some("x")), ["200 ||a"], "it ends as the connection does");
        let chunks = read_messages(&[chunked.as_bytes()], Framing::Chunks, None).unwrap();
        assert_eq!(chunks, ["200 ||data: a||", "200 ||dat", "200 ||a: b||data: c||", "done 200 true"]);
        // What is no success is no stream.
        assert_eq!(sse(&length.replace("200 OK", "503 Busy"), Some("x")), ["done 503 true"]);
    }

    /// Connections of answers that come as messages.
    fn streams() -> impl Strategy<Value = String> {
        let answer = prop::sample::select(vec![
            "HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\ndata: a\n\ndata: b\n\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: a\n\n\r\na\r\ndata: b\r\n\r\r\n1\r\n\n\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nx\ny\r\n2\r\nz\n\r\n0\r\n\r\n",
            "HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\ndata: a\n\n",
            "HTTP/1.1 204 No\r\n\r\n",
            "HTTP/1.0 200 OK\r\n\r\ndata: a\r\rdata: b\n\ndata",
        ]);
        prop::collection::vec(answer, 1..4).prop_map(|answers| answers.concat())
    }

    proptest! {
        #[test]
        fn how_streams_are_split_changes_nothing(
            bytes in streams(), framing in prop::sample::select(Framing::NAMED.to_vec()),
            last in prop::sample::select(vec![None, Some("b"), Some("z")]),
        ) {
            // A head without a body that is followed by more bytes ends with the connection.
            let (bytes, framing) = (bytes.as_bytes(), framing.1);
            let whole = read_messages(&[bytes], framing, last);
            for cut in 0..=bytes.len() {
                prop_assert_eq!(&read_messages(&[&bytes[..cut], &bytes[cut..]], framing, last), &whole);
            }
            let single: Vec<_> = bytes.chunks(1).collect();
            prop_assert_eq!(&read_messages(&single, framing, last), &whole);
        }
    }

    #[test]
    fn a_head_that_only_begins_as_the_last_is_another() {
        let last = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n";
        let ends = ["\r\n", "Content-Length: 2\r\n\r\n", "Connection: close\r\n\r\n", "\rX\r\n\r\n", " 2\r\n\r\n"];
        // Each after each, and in the end the first again.
        for (before, after) in ends.iter().flat_map(|before| ends.map(|after| (*before, after))) {
            for end in [ends[0], before, after] {
                let head = format!("{last}{end}");
                let read = read_head(head.as_bytes()).map_err(|e| e.to_string());
                let parsed = parse_head(head.as_bytes()).map_err(|e| e.to_string());
                assert_eq!(read, parsed, "{head} after {before}");
                assert_eq!(read_head(last.as_bytes()), Ok(None));
            }
        }
    }

    #[test]
    fn an_answer_is_kept_until_the_next() {
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let bytes = format!("{OK}{chunked}2\r\nab\r\n1;x\r\nc\r\n0\r\nT: v\r\n\r\n");
        for size in 1..bytes.len() {
            let mut parser = Parser::keeping();
            let mut seen = Vec::new();
            for piece in bytes.as_bytes().chunks(size) {
                let mut rest = piece;
                while !rest.is_empty() {
                    let (taken, step) = parser.receive(rest, false).unwrap();
                    rest = &rest[taken..];
                    if step != Step::More {
                        let (head, body) = parser.kept();
                        seen.push((head.to_vec(), body.to_vec()));
                    }
                }
            }
            let ok_head = OK.trim_end_matches("hello");
            let expected =
                [(ok_head, "hello"), (chunked, "abc")].map(|(h, b)| (h.as_bytes().to_vec(), b.as_bytes().to_vec()));
            assert_eq!(seen, expected, "pieces of {size}");
        }
    }

    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

    #[test]
    fn bodies_end_as_the_rfc_says() {
        for (bytes, expected) in [
            (OK, (200, true)),
            ("HTTP/1.1 200 OK\r\ncontent-length: 5, 5\r\nContent-Length: 5\r\n\r\nhello", (200, true)),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: Close\r\n\r\n", (200, false)),
            ("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", (200, true)),
            ("HTTP/1.1 204 No Content\r\n\r\n", (204, true)),
            ("HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n", (304, true)),
            ("HTTP/1.1 200 OK\r\n\r\nuntil the end", (200, false)),
            ("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", (200, false)),
            ("HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nhi", (200, true)),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=\"b\"\r\nhello\r\nA \r\n0123456789\r\n0\r\n\r\n",
                (200, true),
            ),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\nX: y\r\nZ: a\r\n\r\n", (200, true)),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nuntil the end", (200, false)),
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", (200, false)),
            (
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 201 C\r\nContent-Length: 0\r\n\r\n",
                (201, true),
            ),
        ] {
            assert_eq!(whole(bytes), Ok(vec![expected]), "{bytes}");
        }
    }

    #[test]
    fn an_answer_to_head_has_no_body() {
        let bytes = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(read(&[bytes.as_bytes()], true), Ok(vec![(200, true), (404, true)]));
    }

    #[test]
    fn other_protocols_are_named_however_their_bytes_are_cut() {
        for (bytes, named) in [
            (b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64".as_slice(), "HTTP/2"),
            (b"\x15\x03\x03\0\x02\x02\x46", "TLS"),
            (b"SSH-2.0-x\r\n", "SSH"),
            (b"\0\0\x06\x05\0\0\0\0\0", "bad status line"),
        ] {
            for size in 1..=bytes.len() {
                let pieces: Vec<_> = bytes.chunks(size).collect();
                let error = read(&pieces, false).unwrap_err();
                assert!(error.contains(named), "{size}: {error}");
            }
        }
    }

    #[test]
    fn what_breaks_the_grammar_is_named() {
        for (bytes, reason) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "conflicting Content-Length"),
            ("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", "bad Content-Length"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999\r\n\r\n", "bad Content-Length"),
            ("HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", "bad Content-Length"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "bad chunk size"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", "bad chunk size"),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1000000000000000\r\n",
                "a chunk size of more than 15 digits",
            ),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", "a chunk longer than its size"),
            ("HTTP/2 200 OK\r\n\r\n", "bad status line: not HTTP/1.x"),
            ("220 smtp.example.org ESMTP\r\n", "bad status line: not HTTP/1.x"),
            ("HTTP/1.1 2x0 OK\r\n\r\n", "bad status line: bad status code or reason"),
            ("HTTP/1.1 099 OK\r\n\r\n", "a status code under 100"),
            ("HTTP/1.1 101 Switching\r\n\r\n", "status 101: nobody asked to switch protocols"),
            ("HTTP/1.1 200 OK\r\nbad name: x\r\n\r\n", "bad header name"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", "incomplete"),
        ] {
            assert_eq!(whole(bytes), Err(reason.to_owned()), "{bytes}");
        }
    }

    #[test]
    fn heads_are_bounded_in_size_and_number_of_fields() {
        let long = format!("HTTP/1.1 200 OK\r\nX: {}", "a".repeat(MOST_HEAD_BYTES));
        let expected = Err("a header section of more than 64 KiB".to_owned());
        assert_eq!(whole(&long), expected);
        let pieces: Vec<_> = long.as_bytes().chunks(100).collect();
        assert_eq!(read(&pieces, false), expected);
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(MOST_HEADERS + 1));
        assert_eq!(whole(&many), Err("more than 128 header fields".to_owned()));
        let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(17);
        assert_eq!(whole(&interim), Err("more than 16 interim answers".to_owned()));
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let aside = format!("{chunked}1;{}", "x".repeat(70_000));
        assert_eq!(whole(&aside), Err("more than 64 KiB of chunk extensions or trailers".to_owned()));
    }

    /// Connections of a few answers of every kind, some of them broken.
    fn connections() -> impl Strategy<Value = String> {
        let answer = prop::sample::select(vec![
            OK,
            "HTTP/1.1 204 No Content\r\nServer: x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n10\r\n0123456789abcdef\r\n0\r\nT: v\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 3\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nuntil the end",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n",
            "garbage\r\n\r\n",
        ]);
        prop::collection::vec(answer, 1..4).prop_map(|answers| answers.concat())
    }

    proptest! {
        #[test]
        fn how_it_is_split_changes_nothing(bytes in connections(), mut cuts in prop::collection::vec(0.0_f64..1.0, 0..8)) {
            let bytes = bytes.as_bytes();
            cuts.sort_by(f64::total_cmp);
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                let to = (cut * bytes.len() as f64) as usize;
                pieces.push(&bytes[from..to]);
                from = to;
            }
            pieces.push(&bytes[from..]);
            prop_assert_eq!(read(&pieces, false), read(&[bytes], false));
        }

        #[test]
        fn every_single_cut_and_byte_by_byte_mean_the_same(bytes in connections()) {
            let bytes = bytes.as_bytes();
            let expected = read(&[bytes], false);
            for cut in 0..=bytes.len() {
                prop_assert_eq!(&read(&[&bytes[..cut], &bytes[cut..]], false), &expected);
            }
            let single: Vec<_> = bytes.chunks(1).collect();
            prop_assert_eq!(&read(&single, false), &expected);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), prefix in connections()) {
            let _ = read(&[prefix.as_bytes(), &bytes], false);
            let _ = read(&[&bytes], true);
        }
    }

    #[test]
    fn another_protocol_is_named_with_the_way_out() {
        for (bytes, named) in [
            ([21, 3, 1, 0, 2, 2, 70].as_slice(), "https://"),
            (&[0, 0, 18, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100], "HTTP/2"),
            (b"SSH-2.0-OpenSSH_9.2\r\n", "SSH"),
        ] {
            let error = read(&[bytes], false).unwrap_err();
            assert!(error.contains(named), "{bytes:?}: {error}");
        }
        assert_eq!(read(&[b"220 mail.example ESMTP\r\n"], false).unwrap_err(), "bad status line: not HTTP/1.x");
    }

    #[test]
    fn the_first_redirect_is_noted() {
        let noted = Arc::new(OnceLock::new());
        let mut parser = Parser::default();
        parser.note_redirect(Arc::clone(&noted));
        for (status, location) in [(200, "/no"), (302, "/login"), (301, "/later")] {
            let head = format!("HTTP/1.1 {status} X\r\nlocation: {location}\r\nContent-Length: 0\r\n\r\n");
            for piece in head.as_bytes().chunks(7) {
                parser.receive(piece, false).unwrap();
            }
        }
        assert_eq!(noted.get().map(String::as_str), Some("/login"));
    }
}
