//! What is said on one connection, apart from how bytes come and go: request bytes in, answer bytes
//! out.

use std::collections::VecDeque;
use std::time::Duration;

use super::events;
use super::head::Persistence;
use super::request::{BodyReader, Framing, Head, MAX_HEAD, Parsed, Refusal, Version, parse};
use super::response::{Body, CONTINUE, Content, Piece, head};
use super::routes::{Route, route};
use super::shop;
use super::site::Site;
use crate::service::{Closing, Kind, OUTPUT};

/// The longest body that is echoed, in bytes.
const MAX_ECHO: usize = 1024 * 1024;

/// No more is read while this many pieces wait on one connection.
const MAX_QUEUE: usize = 1024;

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
    /// The most of its body that is kept, if any is.
    fn most_kept(&self) -> Option<usize> {
        match self.route {
            Some(Route::Echo) => Some(MAX_ECHO),
            Some(Route::Events(_)) => Some(events::MAX_BODY),
            Some(Route::Shop(_)) => Some(shop::MAX_BODY),
            _ => None,
        }
    }
}

#[derive(Debug)]
enum State {
    Head,
    Body(BodyReader, Request),
    /// Whatever else comes is not looked at.
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

    /// Everything was said: the connection can end once its output is sent.
    pub(crate) fn closing(&self) -> Option<Closing> {
        self.closing.filter(|_| self.queue.is_empty())
    }

    /// Nothing waits to be said.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Too much waits for a peer that does not read, or does not wait for its answers.
    pub(crate) fn is_full(&self) -> bool {
        self.queue.len() >= MAX_QUEUE || self.held >= MAX_HELD
    }

    /// When the next piece is due, if one waits.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.queue.front().map(|piece| piece.due)
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

    /// A head from the start of the input; how much of that it took.
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

    /// The same for a head that began in an earlier read.
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
            route: route(head),
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
            self.refuse(Refusal::BodyTooLong, site, out);
            return;
        }
        if head.expects_continue && head.version == Version::Http11 {
            self.push(Duration::ZERO, Content::own(CONTINUE), false);
        }
        self.state = State::Body(BodyReader::new(head.framing), request);
    }

    /// The next stretch of a request body; how much of the input it took.
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
                self.refuse(Refusal::BodyTooLong, site, out);
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

    /// Decides on the answer to a request that is complete.
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

    /// Says what was wrong, and that this was all.
    fn refuse(&mut self, refusal: Refusal, site: &mut Site, out: &mut Vec<u8>) {
        self.state = State::Over;
        self.closing = Some(Closing::Ours);
        let text = format!("{}\n", refusal.reason());
        let mut answer = Answer { session: self, persistence: Persistence::Close, no_body: false };
        answer.text(refusal.status(), text.as_bytes());
        self.pump(site, out);
    }

    fn push(&mut self, due: Duration, content: Content, ends_answer: bool) {
        self.held += content.held();
        self.queue.push_back(Piece { due, ends_answer, content });
    }

    /// Appends what is due to `out`, until that is full.
    #[inline]
    pub(crate) fn pump(&mut self, site: &mut Site, out: &mut Vec<u8>) {
        if !self.queue.is_empty() {
            self.pump_queue(site, out);
        }
    }

    fn pump_queue(&mut self, site: &mut Site, out: &mut Vec<u8>) {
        while let Some(piece) = self.queue.front_mut() {
            if out.len() >= OUTPUT || !site.service.is_due(piece.due) {
                return;
            }
            if piece.content.render(&site.answers, out) {
                self.held = self.held.saturating_sub(piece.content.held());
                site.service.answered += u64::from(piece.ends_answer);
                self.queue.pop_front();
            } else if let Content::Events(events) = &piece.content {
                // By the time at which this one was due, so that late ones make the others no later.
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
                let head = events::stream_head(chunked, self.persistence);
                self.session.push(Duration::ZERO, Content::own(head), self.no_body);
                if !self.no_body {
                    self.session.push(site.service.now() + after, Content::Events(events), true);
                }
            }
        }
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
mod tests {
    use std::time::Instant;

    use proptest::prelude::*;

    use super::*;
    use crate::service::{Config, Counters, Delay, Service};

    fn site(config: &Config) -> Site {
        let service = Service::new(config, Instant::now(), [Counters::default()].into(), None, 0);
        Site::new(service, config.body_bytes)
    }

    /// All that a session says to these pieces of input, and who ends it.
    fn converse(pieces: &[&[u8]], config: &Config) -> (String, Option<Closing>, u64) {
        let (mut session, mut site) = (Session::new(), site(config));
        let (mut all, mut out) = (Vec::new(), Vec::new());
        for piece in pieces {
            session.receive(piece, &mut site, &mut out);
            while !out.is_empty() || !session.is_idle() {
                all.append(&mut out);
                session.pump(&mut site, &mut out);
            }
        }
        (String::from_utf8(all).unwrap(), session.closing(), site.service.answered)
    }

    const PIPELINE: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n\
        POST /_/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello\
        \r\nHEAD /_/bytes/100 HTTP/1.1\r\nHost: x\r\n\r\n\
        POST /_/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: v\r\n\r\n\
        PUT / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc\
        GET /_/chunked/2 HTTP/1.1\r\nHost: x\r\n\r\n\
        GET /_/status/204 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n\
        GET /ignored HTTP/1.1\r\nHost: x\r\n\r\n";

    fn answers_to_pipeline() -> String {
        let ok = |length, body| {
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{body}")
        };
        [
            ok(13, "abcdefghijklm"),
            ok(5, "hello"),
            ok(100, ""),
            ok(3, "abc"),
            "HTTP/1.1 100 Continue\r\n\r\n".to_owned(),
            ok(13, "abcdefghijklm"),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\
             Trailer: X-Bytes\r\n\r\n2;brunt=filler\r\nab\r\n0;brunt=last\r\nX-Bytes: 2\r\n\r\n"
                .to_owned(),
            "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n".to_owned(),
        ]
        .concat()
    }

    #[test]
    fn pipelined_requests_of_all_kinds_are_answered_in_order() {
        let (said, closing, answered) = converse(&[PIPELINE.as_bytes()], &Config::default());
        assert_eq!(said, answers_to_pipeline());
        assert_eq!(closing, Some(Closing::Asked));
        assert_eq!(answered, 7);
    }

    proptest! {
        #[test]
        fn how_requests_are_cut_makes_no_difference(cuts in proptest::collection::vec(0..PIPELINE.len(), 0..20)) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut start = 0;
            for cut in cuts.into_iter().chain([PIPELINE.len()]) {
                pieces.push(&PIPELINE.as_bytes()[start..cut]);
                start = cut;
            }
            let (said, ..) = converse(&pieces, &Config::default());
            prop_assert_eq!(said, answers_to_pipeline());
        }
    }

    proptest! {
        /// Bytes near enough to requests to get past the first check.
        #[test]
        fn whatever_comes_is_answered_or_waited_for(
            input in proptest::collection::vec(
                prop_oneof![
                    Just("GET ".to_owned()), Just("POST /_/echo ".to_owned()), Just("/_/chunked/3 ".to_owned()),
                    Just("HTTP/1.1\r\n".to_owned()), Just("HTTP/1.0\r\n".to_owned()), Just("Host: x\r\n".to_owned()),
                    Just("Content-Length: 4\r\n".to_owned()), Just("Transfer-Encoding: chunked\r\n".to_owned()),
                    Just("\r\n".to_owned()), Just("4\r\nabcd\r\n0\r\n\r\n".to_owned()), "[ -~]{0,5}",
                ],
                0..30,
            ),
        ) {
            let pieces: Vec<&[u8]> = input.iter().map(String::as_bytes).collect();
            let whole = input.concat();
            let config = Config::default();
            prop_assert_eq!(converse(&pieces, &config), converse(&[whole.as_bytes()], &config));
        }
    }

    #[test]
    fn byte_by_byte_is_the_same() {
        let pieces: Vec<&[u8]> = PIPELINE.as_bytes().chunks(1).collect();
        assert_eq!(converse(&pieces, &Config::default()).0, answers_to_pipeline());
    }

    #[test]
    fn refusals_say_what_was_expected_and_end_it() {
        let big = format!("POST /_/echo HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", MAX_ECHO + 1);
        let endless = "x".repeat(MAX_HEAD);
        for (input, status, text) in [
            ("GET\r\n\r\n", "400 Bad Request", "expected a request line"),
            ("GET / HTTP/1.1\r\n\r\n", "400 Bad Request", "expected a Host header"),
            ("GET / HTTP/3.0\r\n\r\n", "505 HTTP Version Not Supported", "expected HTTP/1.0 or"),
            (&endless, "431 Request Header Fields Too Large", "at most 16384 bytes"),
            (&big, "413 Content Too Large", "at most 1048576 bytes"),
        ] {
            let (said, closing, answered) = converse(&[input.as_bytes(), b"more"], &Config::default());
            assert!(said.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{said}");
            assert!(said.contains("Connection: close\r\n") && said.contains(text), "{said}");
            assert_eq!((closing, answered), (Some(Closing::Ours), 1));
        }
    }

    #[test]
    fn a_chunked_body_too_long_to_echo_is_refused_on_the_way() {
        let head = b"POST /_/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
        let chunk = [format!("{MAX_ECHO:x}\r\n").into_bytes(), vec![b'x'; MAX_ECHO], b"\r\n".to_vec()].concat();
        let (said, closing, _) = converse(&[head, &chunk, b"1\r\nx\r\n"], &Config::default());
        assert!(said.starts_with("HTTP/1.1 413 "), "{said}");
        assert_eq!(closing, Some(Closing::Ours));
    }

    #[test]
    fn the_last_answer_before_a_close_announces_it() {
        let config = Config { close_after: Some(2), body_bytes: 0, ..Config::default() };
        let (said, closing, answered) = converse(&["GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(3).as_bytes()], &config);
        assert_eq!(said.matches("HTTP/1.1 200 OK").count(), 2);
        assert!(said.ends_with("Connection: close\r\n\r\n"), "{said}");
        assert_eq!(said.matches("Connection: close").count(), 1);
        assert_eq!((closing, answered), (Some(Closing::Ours), 2));
    }

    #[test]
    fn the_share_of_errors_is_as_asked_and_fixed_by_the_seed() {
        let requests = "GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(10_000);
        let config = Config { error_share: 0.25, seed: 7, ..Config::default() };
        let (said, ..) = converse(&[requests.as_bytes()], &config);
        let errors = said.matches("HTTP/1.1 503 Service Unavailable").count();
        assert!((2400..2600).contains(&errors), "{errors}");
        assert_eq!(said, converse(&[requests.as_bytes()], &config).0);
        assert_ne!(said, converse(&[requests.as_bytes()], &Config { seed: 8, ..config }).0);
    }

    #[test]
    fn what_is_not_due_waits_and_holds_back_what_follows() {
        let config = Config { delay: Delay::Fixed(Duration::from_secs(3600)), ..Config::default() };
        let (mut session, mut site, mut out) = (Session::new(), site(&config), Vec::new());
        let requests = "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /_/count HTTP/1.1\r\nHost: x\r\n\r\n";
        session.receive(requests.as_bytes(), &mut site, &mut out);
        session.pump(&mut site, &mut out);
        assert!(out.is_empty() && !session.is_idle());
        assert!(session.next_due().unwrap() >= Duration::from_secs(3600));
        assert_eq!(site.service.answered, 0);
    }

    #[test]
    fn a_peer_that_does_not_read_fills_the_session() {
        let config = Config { body_bytes: 1 << 40, ..Config::default() };
        let (mut session, mut site, mut out) = (Session::new(), site(&config), Vec::new());
        let requests = "GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(MAX_QUEUE);
        session.receive(requests.as_bytes(), &mut site, &mut out);
        assert!(session.is_full());
        let head = format!("POST /_/echo HTTP/1.1\r\nHost: x\r\nContent-Length: {MAX_ECHO}\r\n\r\n");
        let mut session = Session::new();
        session.receive(head.as_bytes(), &mut site, &mut out);
        session.receive(&vec![b'x'; MAX_ECHO], &mut site, &mut out);
        assert!(session.is_full());
        while !session.is_idle() {
            out.clear();
            session.pump(&mut site, &mut out);
        }
        assert!(!session.is_full());
    }
}
