//! HTTP/3 for the same routes: each stream is a [`Session`] of its own, as with HTTP/2. The protocol is brunt's own, by its server's side:
//! other clients and servers keep it honest.

use std::fmt;
use std::time::Duration;

use brunt_http3::{Fields, Http3Code, Http3Connection, Http3Event};
use http::HeaderMap;

use super::http2::{Part, Reader};
use super::session::Session;
use super::site::Site;
use crate::service::OUTPUT;

/// A stream whose answer goes on.
struct Stream {
    session: Session,
    reader: Reader,
    /// The part of the request that the session has not taken, in the form of HTTP/1.1.
    request: Vec<u8>,
    /// Whether its body comes without a length.
    is_chunked: bool,
    /// Whether all of the request has come.
    is_whole: bool,
    /// The field section of trailers that follow the body.
    trailers: Option<Vec<u8>>,
    /// Whether the session has said everything.
    is_said: bool,
}

/// The server's side of one connection, over records of its streams.
pub(crate) struct Http3 {
    connection: Http3Connection<Option<Box<Stream>>>,
    /// Answers decided on.
    decided: u64,
    section: Vec<u8>,
}

impl fmt::Debug for Http3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http3").field("streams", &self.connection.len()).finish_non_exhaustive()
    }
}

impl Http3 {
    /// A connection. Its first records are appended.
    pub(crate) fn new(out: &mut Vec<u8>) -> Self {
        let mut connection = Http3Connection::server();
        connection.open(out);
        Self { connection, decided: 0, section: Vec::new() }
    }

    /// The connection is gone, and with it whoever waits for answers.
    pub(crate) fn leave(&mut self, site: &mut Site) {
        for position in 0..self.connection.len() {
            if let Some(Some(stream)) = self.connection.data_mut(position) {
                stream.session.leave(site);
            }
        }
    }

    /// When the next piece of an answer is due.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        let roomy = (0..self.connection.len()).filter(|position| self.connection.waiting(*position) < OUTPUT);
        roomy.filter_map(|position| self.connection.data(position)?.as_ref()?.session.next_due()).min()
    }

    /// Whether there is more of bodies to send.
    pub(crate) fn has_more(&self) -> bool {
        self.connection.has_more()
    }

    /// Appends more of bodies.
    pub(crate) fn more(&mut self, out: &mut Vec<u8>) {
        self.connection.more(out);
    }

    /// Takes records. Those to send are appended.
    pub(crate) fn receive(&mut self, records: &[u8], site: &mut Site, out: &mut Vec<u8>) {
        let mut rest = records;
        while !rest.is_empty() {
            // The end of a connection that breaks the rules was appended.
            let Ok((taken, event)) = self.connection.receive(rest, out) else { return };
            rest = rest.get(taken..).unwrap_or_default();
            match event {
                Http3Event::Request { position, end } => {
                    let stream = Stream::new(self.connection.fields(), end);
                    if let Some(place) = self.connection.data_mut(position) {
                        *place = Some(Box::new(stream));
                    }
                    self.decided += 1;
                    if self.decided == site.service.close_after {
                        // The client ends the connection once all are answered: an end from here would take unsent answers with it.
                        self.connection.leave(out);
                    }
                }
                Http3Event::Data { position, bytes, end, .. } => {
                    if let Some(Some(stream)) = self.connection.data_mut(position) {
                        stream.body(bytes, end);
                    }
                }
                Http3Event::Trailers { position } => {
                    if let Some(Some(stream)) = self.connection.data_mut(position) {
                        stream.body(&[], true);
                    }
                }
                Http3Event::Reset { position, .. } | Http3Event::Malformed { position, .. } => {
                    if let Some(Some(mut stream)) = self.connection.take(position, out) {
                        stream.session.leave(site);
                    }
                }
                _ => {}
            }
        }
    }

    /// Lets each stream answer what is due, and appends it.
    pub(crate) fn pump(&mut self, site: &mut Site, out: &mut Vec<u8>) {
        let mut text = Vec::new();
        let mut position = 0;
        while position < self.connection.len() {
            if self.answer(position, site, &mut text, out) {
                position += 1;
            }
        }
    }

    /// Lets a stream answer. False if it is answered, and gone.
    fn answer(&mut self, position: usize, site: &mut Site, text: &mut Vec<u8>, out: &mut Vec<u8>) -> bool {
        let has_room = self.connection.waiting(position) < OUTPUT;
        let Some(Some(stream)) = self.connection.data_mut(position) else { return true };
        if !stream.is_said && (has_room || !stream.request.is_empty()) {
            stream.session.pump(site, text);
            let request = std::mem::take(&mut stream.request);
            stream.session.receive(&request, site, text);
            // An answer that is due at once waits in the session's queue.
            stream.session.pump(site, text);
            stream.reader.take(text);
            text.clear();
            if !self.say(position, out) {
                return false;
            }
        }
        let Some(Some(stream)) = self.connection.data_mut(position) else { return true };
        let is_whole = stream.is_whole;
        if let Some(trailers) = stream.trailers.take() {
            if self.connection.waiting(position) > 0 {
                if let Some(Some(stream)) = self.connection.data_mut(position) {
                    stream.trailers = Some(trailers);
                }
                return true;
            }
            self.connection.respond(position, &trailers, true, out);
        }
        if !self.connection.is_answered(position) {
            return true;
        }
        if is_whole {
            self.connection.take(position, out);
        } else {
            // The rest of the request is not read (RFC 9114, section 4.1).
            self.connection.reset(position, Http3Code::H3_NO_ERROR, out);
        }
        false
    }

    /// Says what a stream's session has said. False if its answer is torn, and the stream gone.
    fn say(&mut self, position: usize, out: &mut Vec<u8>) -> bool {
        let mut next = self.next_part(position);
        while let Some(part) = next {
            next = self.next_part(position);
            let is_last = next.is_none() && self.is_done(position);
            match part {
                Part::Head(head) => {
                    let status = head.status();
                    self.begin_section();
                    self.field(b":status", status.as_str().as_bytes());
                    self.fields(head.headers());
                    self.connection.respond(position, &self.section, is_last, out);
                }
                Part::Data(data) => self.connection.send(position, &data, is_last, out),
                Part::Trailers(trailers) => {
                    self.begin_section();
                    self.fields(&trailers);
                    let section = self.section.clone();
                    if let Some(Some(stream)) = self.connection.data_mut(position) {
                        (stream.trailers, stream.is_said) = (Some(section), true);
                    }
                    return true;
                }
            }
        }
        let is_done = self.is_done(position);
        let Some(Some(stream)) = self.connection.data_mut(position) else { return true };
        if stream.session.closing().is_some() && stream.reader.is_torn() {
            self.connection.reset(position, Http3Code::H3_INTERNAL_ERROR, out);
            return false;
        }
        if is_done {
            stream.is_said = true;
            if !self.connection.is_answered(position) && self.connection.waiting(position) == 0 {
                self.connection.send(position, &[], true, out);
            }
        }
        true
    }

    fn next_part(&mut self, position: usize) -> Option<Part> {
        self.connection.data_mut(position)?.as_mut()?.reader.next()
    }

    fn is_done(&self, position: usize) -> bool {
        let Some(Some(stream)) = self.connection.data(position) else { return false };
        stream.reader.is_done(stream.session.closing().is_some())
    }

    fn begin_section(&mut self) {
        self.section.clear();
        self.connection.encoder().begin(&mut self.section);
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        self.connection.encoder().field(name, value, &mut self.section);
    }

    fn fields(&mut self, fields: &HeaderMap) {
        for (name, value) in fields {
            self.field(name.as_str().as_bytes(), value.as_bytes());
        }
    }
}

impl Stream {
    fn new(fields: &Fields, is_whole: bool) -> Self {
        let is_chunked = !is_whole && fields.get("content-length").is_none();
        let is_bodiless = fields.get(":method") == Some(b"HEAD");
        Self {
            session: Session::new(),
            reader: Reader::new(is_bodiless),
            request: text_of(fields, is_chunked),
            is_chunked,
            is_whole,
            trailers: None,
            is_said: false,
        }
    }

    /// Takes a part of the request's body.
    fn body(&mut self, bytes: &[u8], end: bool) {
        // What comes after the answer is dropped.
        if !self.is_said && self.is_chunked && !bytes.is_empty() {
            self.request.extend_from_slice(format!("{:x}\r\n", bytes.len()).as_bytes());
            self.request.extend_from_slice(bytes);
            self.request.extend_from_slice(b"\r\n");
        } else if !self.is_said && !self.is_chunked {
            self.request.extend_from_slice(bytes);
        }
        if end && !std::mem::replace(&mut self.is_whole, true) && self.is_chunked {
            self.request.extend_from_slice(b"0\r\n\r\n");
        }
    }
}

/// A request's head in the form of HTTP/1.1.
fn text_of(fields: &Fields, is_chunked: bool) -> Vec<u8> {
    let named = |name: &str| fields.get(name).unwrap_or_default();
    let mut text = [named(":method"), b" ", named(":path"), b" HTTP/1.1\r\n"].concat();
    let mut field = |name: &[u8], value: &[u8]| {
        for part in [name, b": ", value, b"\r\n"] {
            text.extend_from_slice(part);
        }
    };
    if fields.get("host").is_none() {
        field(b"host", named(":authority"));
    }
    for (name, value) in fields.iter().filter(|(name, _)| !name.starts_with(b":")) {
        if !matches!(name, b"expect" | b"te") {
            field(name, value);
        }
    }
    if is_chunked {
        field(b"transfer-encoding", b"chunked");
    }
    text.extend_from_slice(b"\r\n");
    text
}
