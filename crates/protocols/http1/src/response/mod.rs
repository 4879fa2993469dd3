//! The answers of HTTP/1.1: a pure parser for bytes in pieces of any size.

mod body;
mod head;
mod sink;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use super::chunked::Decoded;
use super::expected::Search;
use super::hints::Streaming;
use super::seen::{Seen, shown_location};
use brunt_protocol::messages::MessageReader;
use brunt_protocol::{KeptAnswer, Malformed};
use brunt_record::kinds::AnswerSample;

use body::BodyDecoder;
use head::{Coding, CompleteHead, Head, HeadReader, MOST_HEADERS};
use sink::Sink;
pub(super) use sink::keep_message;

/// The reason of a call whose answer came as messages without the last one.
pub(super) const ENDED_EARLY: &str = "the stream ended without its last message";

/// The meaning of received bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadStep {
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

/// Reads one answer after the other: heads, then bodies, whose content goes to one sink.
#[derive(Debug, Default)]
pub struct Parser {
    head: HeadReader,
    /// The body under way; `None` while a head is being read.
    body: Option<BodyDecoder>,
    sink: Sink,
    /// The answer under way, or the one read last: its status, and whether its connection stays open.
    status: u16,
    reusable: bool,
    /// The location of the first redirect, if it is noted.
    redirect: Option<Arc<OnceLock<String>>>,
    looking: Looking,
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

impl Parser {
    /// A parser that keeps each answer until the next begins.
    pub fn keeping() -> Self {
        Self { sink: Sink::keeping(), ..Self::default() }
    }

    /// Looks in bodies for a text that is expected there.
    pub(super) fn search_bodies(&mut self, search: Search) {
        self.sink.search_bodies(search);
    }

    /// The search of the body of the answer read last.
    pub(super) fn search(&self) -> Option<&Search> {
        self.sink.search()
    }

    /// The next head is looked at.
    pub(super) fn look(&mut self) {
        self.looking = Looking::Next;
    }

    /// The number of answers since the last time whose header fields were folded, or had a blank before their colon.
    pub(super) fn take_untidy(&mut self) -> u64 {
        self.head.take_untidy()
    }

    /// The look at the sampled answer.
    pub(super) fn looked(&self) -> Option<AnswerSample<'_>> {
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
        self.sink.kept()
    }

    /// Whether the body of the answers that begin from now on is kept, where answers are.
    pub(super) fn keep_body(&mut self, keep: bool) {
        self.sink.keep_body(keep);
    }

    /// Cuts the bodies of the answers that begin from now on into messages, if they are streams.
    pub fn cut_body(&mut self, reader: Option<Box<MessageReader>>) {
        self.sink.cut_body(reader);
    }

    /// Takes what decides which answers are streams.
    pub(super) fn know_streams(&mut self, streaming: Streaming) {
        self.sink.know_streams(streaming);
    }

    /// Exchanges the kept answer for `kept`, whose content is dropped.
    pub(super) fn hand_over(&mut self, kept: &mut KeptAnswer) {
        self.sink.hand_over(kept);
    }

    /// Takes bytes of the answer to a request (`head_request` if its method was HEAD); returns how many it took.
    ///
    /// # Errors
    /// When they break the grammar or a limit. The parser cannot be used after that.
    pub fn receive(&mut self, bytes: &[u8], head_request: bool) -> Result<(usize, ReadStep), Malformed> {
        let mut taken = 0;
        loop {
            let rest = bytes.get(taken..).unwrap_or(&[]);
            if rest.is_empty() {
                return Ok((taken, ReadStep::More));
            }
            let (n, step) = match &mut self.body {
                None => self.receive_head(rest, head_request)?,
                Some(body) => {
                    let (n, decoded) = if self.sink.is_idle() {
                        body.decode(rest, |_, _| Ok(None))?
                    } else {
                        body.decode(rest, |content, ends_chunk| self.sink.take(content, ends_chunk))?
                    };
                    let step = match decoded {
                        Decoded::More => ReadStep::More,
                        Decoded::Stopped => ReadStep::Message { status: self.status },
                        Decoded::Complete => self.complete(),
                    };
                    (n, step)
                }
            };
            taken += n;
            if step != ReadStep::More {
                return Ok((taken, step));
            }
        }
    }

    /// The peer closed its side. Returns the answer that is complete by that, if there is one.
    pub fn closed(&mut self) -> Option<ReadStep> {
        let is_complete = matches!(self.body, Some(BodyDecoder::UntilClose));
        is_complete.then(|| self.complete())
    }

    /// Whether no byte of the next answer has come yet.
    pub fn is_between_answers(&self) -> bool {
        self.body.is_none() && self.head.is_at_start()
    }

    /// The answer under way is complete.
    #[inline]
    fn complete(&mut self) -> ReadStep {
        self.body = None;
        self.head.begin();
        if self.sink.end_body() {
            return ReadStep::EndedEarly { reusable: self.reusable };
        }
        ReadStep::Done { status: self.status, reusable: self.reusable }
    }

    fn receive_head(&mut self, bytes: &[u8], head_request: bool) -> Result<(usize, ReadStep), Malformed> {
        let Some(CompleteHead { taken, head, text }) = self.head.read(bytes)? else {
            return Ok((bytes.len(), ReadStep::More));
        };
        if matches!(head.status, 301..=303 | 307 | 308) {
            self.redirected(&text);
        }
        self.sink.begin_head(&text);
        if matches!(self.looking, Looking::Next) && head.status >= 200 {
            self.looking = Looking::Done(Box::new(see(&text)));
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
    fn begin_body(&mut self, head: &Head, head_request: bool) -> Result<ReadStep, Malformed> {
        match head.status {
            101 => return Err(Malformed::because("status 101: nobody asked to switch protocols")),
            100..=199 => {
                self.head.note_interim()?;
                return Ok(ReadStep::More);
            }
            _ => {}
        }
        self.status = head.status;
        self.reusable = head.reusable;
        self.sink.begin_body(head.status);
        let bodiless = head_request || matches!(head.status, 204 | 304);
        match (bodiless, head.coding, head.length) {
            (true, ..) | (_, Coding::None, Some(0)) => return Ok(self.complete()),
            (_, Coding::Chunked, length) => {
                // With both, chunked takes precedence, and the connection cannot be trusted any further (RFC 9112 §6.3,
                // 3.).
                self.reusable &= length.is_none();
                self.body = Some(BodyDecoder::chunked());
            }
            (_, Coding::None, Some(length)) => self.body = Some(BodyDecoder::of_length(length)),
            (_, Coding::Other, _) | (_, Coding::None, None) => {
                self.reusable = false;
                self.body = Some(BodyDecoder::UntilClose);
            }
        }
        Ok(ReadStep::More)
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

/// Notes the location of a redirect, if it is the first.
pub(super) fn note_location(redirect: &OnceLock<String>, location: &[u8]) {
    if redirect.get().is_none()
        && let Ok(location) = std::str::from_utf8(location)
    {
        // Another connection may have been first.
        let _ = redirect.set(shown_location(location));
    }
}
