//! The server's side of one HTTP/1.1 connection without I/O: request bytes in, answer bytes out.

use std::collections::VecDeque;
use std::time::Duration;

use super::events;
use super::head::Persistence;
use super::model;
use super::request::{Framing, Head, MAX_HEAD, Parsed, Refusal, Version, parse};
use super::request_body::BodyReader;
use super::response::{Body, CONTINUE, Content, ModelAnswer, Piece, head};
use super::routes::{Route, path, route};
use super::shop;
use super::site::Site;
use crate::llm;
use crate::service::{Closing, Kind, OUTPUT};

/// The longest body that is echoed, in bytes.
const MAX_ECHO: usize = 1024 * 1024;
/// The most pieces that wait on one connection before reading pauses.
const MAX_QUEUE: usize = 1024;
/// When a piece is due that waits for something else than a time.
const NEVER: Duration = Duration::MAX;
/// Nor while the pieces hold this much memory, in bytes.
const MAX_HELD: usize = 1024 * 1024;

/// A request whose body is still being read, or that is about to be answered.
#[derive(Debug)]
struct Request {
    route: Option<Route>,
    no_body: bool,
    version: Version,
    keep_alive: bool,
    /// Its body, where the answer depends on it.
    kept: Vec<u8>,
}

impl Request {
    /// The most bytes of its body that are kept; `None` if it is not kept.
    fn most_kept(&self) -> Option<usize> {
        match self.route {
            Some(Route::Echo) => Some(MAX_ECHO),
            Some(Route::Events(_)) => Some(events::MAX_BODY),
            Some(Route::Shop(_)) => Some(shop::MAX_BODY),
            Some(Route::Model(_)) => Some(llm::MAX_BODY),
            _ => None,
        }
    }
}

#[derive(Debug)]
enum State {
    Head,
    Body(BodyReader, Request),
    /// Further input is ignored.
    Over,
}

/// One connection's conversation.
///
/// An answer goes straight to the output when it is due at once and nothing waits before it;
/// otherwise it queues in pieces, so that answers keep the order of their requests.
#[derive(Debug)]
pub(crate) struct Session {
    state: State,
    /// The beginning of a head that was not all there; shorter than [`MAX_HEAD`].
    carry: Vec<u8>,
    queue: VecDeque<Piece>,
    /// Bytes of memory that the queued pieces hold.
    held: usize,
    /// Answers decided on, the queued ones included.
    decided: u64,
    closing: Option<Closing>,
}

impl Session {
    pub(crate) fn new() -> Self {
        Self { state: State::Head, carry: Vec::new(), queue: VecDeque::new(), held: 0, decided: 0, closing: None }
    }

    /// How the connection ends, once all answers are given.
    pub(crate) fn closing(&self) -> Option<Closing> {
        self.closing.filter(|_| self.queue.is_empty())
    }

    /// Whether no answer waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether so much waits that reading pauses: the peer does not read, or sends without waiting for answers.
    pub(crate) fn is_full(&self) -> bool {
        self.queue.len() >= MAX_QUEUE || self.held >= MAX_HELD
    }

    /// When the next piece is due, if one waits.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.queue.front().map(|piece| piece.due).filter(|due| *due < NEVER)
    }

    /// The connection is gone, and with it whoever waits for answers.
    pub(crate) fn leave(&mut self, site: &mut Site) {
        let now = site.service.now();
        if let Some(model) = &mut site.model {
            for piece in &mut self.queue {
                if let Content::Model(answer) = &mut piece.content {
                    model.leave(&mut answer.answer, now);
                }
            }
        }
    }

    /// Takes bytes from the client and appends what can be answered at once to `out`.
    pub(crate) fn receive(&mut self, input: &[u8], site: &mut Site, out: &mut Vec<u8>) {
        let mut rest = input;
        while !rest.is_empty() {
            let used = match self.state {
                State::Head if self.carry.is_empty() => self.head(rest, site, out),
                State::Head => self.carried_head(rest, site, out),
                State::Body(..) => self.body(rest, site, out),
                State::Over => return,
            };
            rest = rest.get(used..).unwrap_or_default();
        }
    }

    /// Reads a head from the start of the input; returns the number of bytes that it took.
    #[inline]
    fn head(&mut self, input: &[u8], site: &mut Site, out: &mut Vec<u8>) -> usize {
        match parse(input) {
            Parsed::Complete(head, used) => {
                self.begin(&head, site, out);
                used
            }
            Parsed::Incomplete => {
                self.carry.extend_from_slice(input);
                input.len()
            }
            Parsed::Refused(refusal) => {
                self.refuse(refusal, site, out);
                input.len()
            }
        }
    }

    /// Reads a head that began in an earlier read; returns the number of bytes that it took.
    fn carried_head(&mut self, input: &[u8], site: &mut Site, out: &mut Vec<u8>) -> usize {
        let mut carry = std::mem::take(&mut self.carry);
        let before = carry.len();
        let room = MAX_HEAD.saturating_sub(before);
        carry.extend_from_slice(input.get(..room).unwrap_or(input));
        match parse(&carry) {
            Parsed::Complete(head, used) => {
                self.begin(&head, site, out);
                used.saturating_sub(before)
            }
            Parsed::Incomplete => {
                self.carry = carry;
                input.len()
            }
            Parsed::Refused(refusal) => {
                self.refuse(refusal, site, out);
                input.len()
            }
        }
    }

    #[inline]
    fn begin(&mut self, head: &Head<'_>, site: &mut Site, out: &mut Vec<u8>) {
        let request = Request {
            route: match &site.model {
                Some(model) => Some(Route::Model(model.ask(path(head.target), head.bytes))),
                None => route(head),
            },
            no_body: head.no_body,
            version: head.version,
            keep_alive: head.keep_alive,
            kept: Vec::new(),
        };
        if head.framing == Framing::None {
            self.answer(request, site, out);
            return;
        }
        let most = request.most_kept().unwrap_or(usize::MAX);
        if matches!(head.framing, Framing::Length(length) if length > most as u64) {
            self.refuse_body(request.route.as_ref(), site, out);
            return;
        }
        if head.expects_continue && head.version == Version::Http11 {
            self.push(Duration::ZERO, Content::own(CONTINUE), false);
        }
        self.state = State::Body(BodyReader::new(head.framing), request);
    }

    /// Reads the next part of a request body; returns the number of bytes that it took.
    fn body(&mut self, input: &[u8], site: &mut Site, out: &mut Vec<u8>) -> usize {
        let State::Body(reader, request) = &mut self.state else {
            return 0;
        };
        let step = match reader.step(input) {
            Ok(step) => step,
            Err(refusal) => {
                self.refuse(refusal, site, out);
                return input.len();
            }
        };
        if let Some(most) = request.most_kept() {
            if request.kept.len() + step.data.len() > most {
                let route = request.route.take();
                self.refuse_body(route.as_ref(), site, out);
                return input.len();
            }
            request.kept.extend_from_slice(step.data);
        }
        if reader.is_done()
            && let State::Body(_, request) = std::mem::replace(&mut self.state, State::Head)
        {
            self.answer(request, site, out);
        }
        step.used
    }

    /// Chooses the answer to a complete request.
    #[inline]
    fn answer(&mut self, request: Request, site: &mut Site, out: &mut Vec<u8>) {
        self.decided += 1;
        let keep_alive = request.keep_alive && self.decided < site.service.close_after;
        if !keep_alive {
            self.state = State::Over;
            self.closing = Some(if request.keep_alive { Closing::Ours } else { Closing::Asked });
        }
        let persistence = Persistence::new(request.version, keep_alive);
        match request.route {
            None => self.answer_default(persistence, request.no_body, site, out),
            Some(route) => {
                let answer = Answer { session: self, persistence, no_body: request.no_body };
                answer.route(route, request.version, &request.kept, site);
            }
        }
    }

    #[inline]
    fn answer_default(&mut self, persistence: Persistence, no_body: bool, site: &mut Site, out: &mut Vec<u8>) {
        let due = site.service.due();
        let kind = site.service.kind();
        let streamed = if kind == Kind::Default && !no_body { site.answers.streamed } else { 0 };
        if due.is_zero() && streamed == 0 && self.queue.is_empty() && out.len() < OUTPUT {
            out.extend_from_slice(site.answers.get(kind, persistence).bytes(no_body));
            site.service.answered += 1;
            return;
        }
        self.push(due, Content::Rendered { kind, persistence, no_body, sent: 0 }, streamed == 0);
        if streamed > 0 {
            self.push(Duration::ZERO, Content::Filler { at: 0, left: streamed }, true);
        }
    }

    /// Answers with the reason of a refusal, and ends the connection.
    fn refuse(&mut self, refusal: Refusal, site: &mut Site, out: &mut Vec<u8>) {
        self.state = State::Over;
        self.closing = Some(Closing::Ours);
        let text = format!("{}\n", refusal.reason());
        let mut answer = Answer { session: self, persistence: Persistence::Close, no_body: false };
        answer.text(refusal.status(), text.as_bytes());
        self.pump(site, out);
    }

    /// The same for a body that is too long, in the words of its route.
    fn refuse_body(&mut self, route: Option<&Route>, site: &mut Site, out: &mut Vec<u8>) {
        let (Some(Route::Model(ask)), Some(model)) = (route, &site.model) else {
            self.refuse(Refusal::BodyTooLong, site, out);
            return;
        };
        let document = model.too_long(ask);
        self.state = State::Over;
        self.closing = Some(Closing::Ours);
        self.push(Duration::ZERO, Content::own(model::document(&document, Persistence::Close, false)), true);
        self.pump(site, out);
    }

    fn push(&mut self, due: Duration, content: Content, ends_answer: bool) {
        self.held += content.held();
        self.queue.push_back(Piece { due, ends_answer, content });
    }

    /// Appends due output to `out`, until that is full.
    #[inline]
    pub(crate) fn pump(&mut self, site: &mut Site, out: &mut Vec<u8>) {
        if !self.queue.is_empty() {
            self.pump_queue(site, out);
        }
    }

    fn pump_queue(&mut self, site: &mut Site, out: &mut Vec<u8>) {
        while let Some(piece) = self.queue.front_mut() {
            if let (Content::Model(answer), Some(model)) = (&piece.content, &site.model) {
                piece.due = model.due(&answer.answer).unwrap_or(NEVER);
            }
            if out.len() >= OUTPUT || !site.service.is_due(piece.due) {
                return;
            }
            if let Content::Model(answer) = &mut piece.content {
                let rendered = model::render(answer, site, out);
                if rendered == model::Rendered::More {
                    continue;
                }
                site.service.answered += 1;
                self.queue.pop_front();
                if rendered == model::Rendered::Torn {
                    self.leave(site);
                    self.queue.clear();
                    self.state = State::Over;
                    self.closing = Some(Closing::Ours);
                }
                continue;
            }
            if piece.content.render(&site.answers, out) {
                self.held = self.held.saturating_sub(piece.content.held());
                site.service.answered += u64::from(piece.ends_answer);
                self.queue.pop_front();
            } else if let Content::Events(events) = &piece.content {
                // From the time at which this event was due, so that a late event does not delay the others.
                piece.due += site.service.draw(events.gap());
            }
        }
    }
}

/// An answer made on demand, queued head first.
struct Answer<'a> {
    session: &'a mut Session,
    persistence: Persistence,
    no_body: bool,
}

impl Answer<'_> {
    fn route(mut self, route: Route, version: Version, body: &[u8], site: &mut Site) {
        match route {
            Route::Echo => self.text(200, body),
            Route::Headers(head) => self.text(200, &head),
            Route::Shop(request) => {
                let reply = site.shop.answer(&request, body);
                let due = if reply.delay.is_zero() { Duration::ZERO } else { site.service.now() + reply.delay };
                self.session.push(due, Content::own(reply.bytes(self.persistence, self.no_body)), true);
            }
            Route::Events(request) => self.events(&request, version, body, site),
            Route::Model(ask) => self.model(&ask, version, body, site),
            Route::Count => self.text(200, site.service.count().to_string().as_bytes()),
            Route::Unknown(text) => self.text(404, text.as_bytes()),
            Route::Status(status @ (204 | 304)) => self.streamed(status, Body::None, None),
            Route::Status(status) => self.text(status, format!("{status}\n").as_bytes()),
            Route::Bytes(length) => {
                self.streamed(200, Body::Length(length), Some(Content::Filler { at: 0, left: length }));
            }
            Route::Chunked(length) if version == Version::Http11 => {
                self.streamed(200, Body::Chunked, Some(Content::Chunks { at: 0, left: length }));
            }
            Route::Chunked(length) | Route::UntilClose(length) => {
                self.persistence = Persistence::Close;
                self.streamed(200, Body::UntilClose, Some(Content::Filler { at: 0, left: length }));
                self.session.state = State::Over;
                self.session.closing = Some(Closing::Ours);
            }
            Route::Delay(delay) => self.text_at(site.service.now() + delay, 200, b"delayed, as asked for\n"),
        }
    }

    fn events(&mut self, request: &events::Request, version: Version, body: &[u8], site: &mut Site) {
        let (tokens, chunked) = (site.service.tokens, version == Version::Http11);
        let reply = events::answer(request, body, &tokens, chunked, |delay| site.service.draw(delay));
        match reply {
            events::Reply::Whole { status, body, after } => {
                let mut bytes = events::document_head(status, body.len(), self.persistence).into_bytes();
                if !self.no_body {
                    bytes.extend_from_slice(body.as_bytes());
                }
                let due = if after.is_zero() { after } else { site.service.now() + after };
                self.session.push(due, Content::own(bytes), true);
            }
            events::Reply::Stream { events, after } => {
                if !chunked {
                    self.persistence = Persistence::Close;
                    self.session.state = State::Over;
                    self.session.closing = Some(Closing::Ours);
                }
                let head = events::stream_head("text/event-stream", chunked, self.persistence);
                self.session.push(Duration::ZERO, Content::own(head), self.no_body);
                if !self.no_body {
                    self.session.push(site.service.now() + after, Content::Events(events), true);
                }
            }
        }
    }

    fn model(&mut self, ask: &llm::Ask, version: Version, body: &[u8], site: &mut Site) {
        let (now, connection) = (site.service.now(), site.connection);
        let Some(model) = &mut site.model else { return };
        let answer = match model.answer(ask, body, now, connection) {
            llm::Reply::Now(document) => {
                let bytes = model::document(&document, self.persistence, self.no_body);
                self.session.push(Duration::ZERO, Content::own(bytes), true);
                return;
            }
            llm::Reply::Later(answer) => *answer,
        };
        let chunked = version == Version::Http11;
        if answer.streams() {
            if !chunked {
                self.persistence = Persistence::Close;
                self.session.state = State::Over;
                self.session.closing = Some(Closing::Ours);
            }
            let head = events::stream_head(answer.content_type(), chunked, self.persistence);
            self.session.push(Duration::ZERO, Content::own(head), false);
        }
        let due = model.due(&answer).unwrap_or(NEVER);
        let answer = ModelAnswer { answer, persistence: self.persistence, chunked };
        self.session.push(due, Content::Model(Box::new(answer)), true);
    }

    fn text(&mut self, status: u16, body: &[u8]) {
        self.text_at(Duration::ZERO, status, body);
    }

    fn text_at(&mut self, due: Duration, status: u16, body: &[u8]) {
        let mut bytes = head(status, Body::Length(body.len() as u64), self.persistence).into_bytes();
        if !self.no_body {
            bytes.extend_from_slice(body);
        }
        self.session.push(due, Content::own(bytes), true);
    }

    fn streamed(&mut self, status: u16, body: Body, content: Option<Content>) {
        let content = content.filter(|_| !self.no_body);
        let head = Content::own(head(status, body, self.persistence));
        self.session.push(Duration::ZERO, head, content.is_none());
        if let Some(content) = content {
            self.session.push(Duration::ZERO, content, true);
        }
    }
}

#[cfg(test)]
mod tests;
