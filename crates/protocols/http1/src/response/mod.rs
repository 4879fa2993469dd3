//! The answers of HTTP/1.1: a pure parser for bytes in pieces of any size.

mod head;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use super::chunked::{Chunked, Chunks};
use super::expected::Search;
use super::seen::{Seen, shown_location};
use brunt_protocol::messages::{Message, Reader};
use brunt_protocol::{KeptAnswer, Malformed};
use brunt_record::kinds::Look;

use head::{Coding, Head, SHORT_HEAD_BYTES, has_head_end, parse_head, read_head, tidied};
pub use head::{MOST_HEAD_BYTES, MOST_HEADERS};

/// The reason of a call whose answer came as messages without the last one.
pub(super) const ENDED_EARLY: &str = "the stream ended without its last message";
/// Limit on a kept body, in bytes.
const MOST_KEPT_BYTES: usize = 64 * 1024 * 1024;
/// The most interim answers (1xx) before the final one.
const MOST_INTERIM: u8 = 16;

/// The meaning of received bytes.
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
    /// The answer came as messages without the last one, and is complete.
    EndedEarly {
        /// Whether the connection stays open after it.
        reusable: bool,
    },
}

/// The rest of an answer after its head.
#[derive(Debug)]
enum Body {
    /// Nothing: a head is being read.
    Head,
    /// This many more bytes.
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
    /// The beginning of an incomplete head.
    partial: Vec<u8>,
    /// The answer as received, where answers are kept.
    kept: Option<Keeping>,
    /// The location of the first redirect, if it is noted.
    redirect: Option<Arc<OnceLock<String>>>,
    /// The reader of messages, for answers that come as messages.
    reader: Option<Box<Reader>>,
    /// Whether the current body is cut into messages.
    is_streaming: bool,
    /// The last byte of the body was read with a message, and not taken yet.
    is_read_ahead: bool,
    looking: Looking,
    /// The heads with fields in a form that is taken and not right, since they were last reported.
    untidy: u64,
}

/// Whether answers are looked at.
#[derive(Debug, Default)]
enum Looking {
    /// No answer is sampled, and none has been since the last request for one.
    #[default]
    Not,
    /// The next answer is sampled.
    Next,
    /// An answer was sampled.
    Done(Box<Seen>),
}

/// The answer, kept for scripts and `--once`.
#[derive(Debug, Default)]
struct Keeping {
    answer: KeptAnswer,
    /// Whether nobody wants to see its body.
    discards: bool,
    /// What looks for a text in bodies, if one is expected.
    search: Option<Search>,
}

impl Keeping {
    fn begin(&mut self, head: &[u8]) {
        let KeptAnswer { head: kept, body } = &mut self.answer;
        kept.clear();
        kept.extend_from_slice(head);
        body.clear();
        // The memory of one large answer is not held for ever.
        body.shrink_to(1 << 20);
        if let Some(search) = &mut self.search {
            search.begin();
        }
    }

    fn add(&mut self, body: &[u8]) -> Result<(), Malformed> {
        if let Some(search) = &mut self.search {
            search.take(body);
        }
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
            looking: Looking::default(),
            untidy: 0,
        }
    }
}

impl Parser {
    /// A parser that keeps each answer until the next begins.
    pub fn keeping() -> Self {
        Self { kept: Some(Keeping::default()), ..Self::default() }
    }

    /// Looks in bodies for a text that is expected there.
    pub(super) fn search_bodies(&mut self, search: Search) {
        self.kept.get_or_insert_default().search = Some(search);
    }

    /// The search of the body of the answer read last.
    pub(super) fn search(&self) -> Option<&Search> {
        self.kept.as_ref()?.search.as_ref()
    }

    /// The next head is looked at.
    pub(super) fn look(&mut self) {
        self.looking = Looking::Next;
    }

    /// The number of answers since the last time whose header fields were folded, or had a blank before their colon.
    pub(super) fn take_untidy(&mut self) -> u64 {
        std::mem::take(&mut self.untidy)
    }

    /// The look at the sampled answer.
    pub(super) fn looked(&self) -> Option<Look<'_>> {
        match &self.looking {
            Looking::Done(seen) => Some(seen.look()),
            Looking::Not | Looking::Next => None,
        }
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

    /// Exchanges the kept answer for `kept`, whose content is dropped.
    pub(super) fn hand_over(&mut self, kept: &mut KeptAnswer) {
        if let Some(keeping) = &mut self.kept {
            std::mem::swap(&mut keeping.answer, kept);
            // The kept part of a body that is cut into messages is one message.
            if self.is_streaming {
                kept.body.clear();
            }
        }
    }

    /// Takes bytes of the answer to a request (`head_request` if its method was HEAD); returns how many it took.
    ///
    /// # Errors
    /// When they break the grammar or a limit. The parser cannot be used after that.
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

    /// The peer closed its side. Returns the answer that is complete by that, if there is one.
    pub fn closed(&mut self) -> Option<Step> {
        let is_complete = matches!(self.body, Body::UntilClose);
        is_complete.then(|| self.step(true))
    }

    /// Whether no byte of the next answer has come yet.
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
            // A long head is parsed only once its end has come, so that one in many small pieces costs no more than a
            // whole one; a short one at once, so that garbage is recognised.
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
        let partial = std::mem::take(&mut self.partial);
        let whole = if before == 0 { bytes } else { &partial };
        let tidy;
        let whole = if head.is_untidy {
            self.untidy += 1;
            tidy = tidied(whole.get(..head.bytes).unwrap_or(&[]))?;
            &tidy
        } else {
            whole.get(..head.bytes).unwrap_or(&[])
        };
        if matches!(head.status, 301..=303 | 307 | 308) {
            self.redirected(whole);
        }
        if let Some(kept) = &mut self.kept {
            kept.begin(whole);
        }
        if matches!(self.looking, Looking::Next) && head.status >= 200 {
            self.looking = Looking::Done(Box::new(see(whole)));
        }
        let step = self.begin_body(&head, head_request)?;
        Ok((taken, step))
    }

    /// Notes where the first redirect leads (RFC 9110 §10.2.2). `head` begins with the whole head.
    #[cold]
    fn redirected(&self, head: &[u8]) {
        let Some(redirect) = self.redirect.as_ref().filter(|redirect| redirect.get().is_none()) else { return };
        with_fields(head, |_, fields| {
            let location = fields.iter().find(|field| field.name.eq_ignore_ascii_case("location"));
            if let Some(location) = location {
                note_location(redirect, location.value);
            }
        });
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
                // With both, chunked takes precedence, and the connection cannot be trusted any further (RFC 9112 §6.3,
                // 3.).
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

/// The look at an answer by its head. `bytes` begin with the whole head.
#[cold]
fn see(bytes: &[u8]) -> Seen {
    with_fields(bytes, |status, fields| {
        let field = |name: &str| fields.iter().find(|field| field.name.eq_ignore_ascii_case(name)).map(|f| f.value);
        Seen::new(status, field)
    })
    .unwrap_or_default()
}

/// Calls `read` with status and fields of a head that was parsed before. `bytes` begin with it.
fn with_fields<R>(bytes: &[u8], read: impl FnOnce(u16, &[httparse::Header<'_>]) -> R) -> Option<R> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    response.parse(bytes).ok()?;
    Some(read(response.code?, response.headers))
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

/// Notes the location of a redirect, if it is the first.
pub(super) fn note_location(redirect: &OnceLock<String>, location: &[u8]) {
    if redirect.get().is_none()
        && let Ok(location) = std::str::from_utf8(location)
    {
        // Another connection may have been first.
        let _ = redirect.set(shown_location(location));
    }
}
