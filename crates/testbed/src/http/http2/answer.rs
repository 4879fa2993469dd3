//! Parses the text of an HTTP/1.1 answer again, for streams of HTTP/2. The text is brunt's own; if it is incomplete,
//! the answer ends there.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

/// The next part of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    /// This many bytes of the body.
    Length(u64),
    /// The line before a chunk.
    ChunkLine,
    /// This many bytes of a chunk, and the line end behind it.
    Chunk(usize),
    Trailers,
    /// Everything until the session ends.
    UntilClose,
    Done,
}

/// A part of an answer.
#[derive(Debug)]
pub(crate) enum Part {
    Head(Response<()>),
    Data(Bytes),
    Trailers(HeaderMap),
}

/// Parses answers.
#[derive(Debug)]
pub(crate) struct Reader {
    state: State,
    /// Whether the answer has no body, whatever its head says: that to HEAD.
    is_bodiless: bool,
    text: Vec<u8>,
}

impl Reader {
    pub(crate) fn new(is_bodiless: bool) -> Self {
        Self { state: State::Head, is_bodiless, text: Vec::new() }
    }

    /// Appends text from the session.
    pub(crate) fn take(&mut self, text: &[u8]) {
        self.text.extend_from_slice(text);
    }

    /// Whether the answer is complete. An answer without a length ends with its session.
    pub(crate) fn is_done(&self, session_ended: bool) -> bool {
        self.state == State::Done || self.state == State::UntilClose && session_ended && self.text.is_empty()
    }

    /// Whether the answer ends here for want of the rest, its session having ended.
    pub(crate) fn is_torn(&self) -> bool {
        !matches!(self.state, State::Done | State::UntilClose)
    }

    /// The next part, if it is complete.
    pub(crate) fn next(&mut self) -> Option<Part> {
        loop {
            match self.state {
                State::Head => {
                    let end = self.text.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
                    let head: Vec<u8> = self.text.drain(..end).collect();
                    return Some(Part::Head(self.head(&head)));
                }
                State::Length(0) => self.state = State::Done,
                State::Length(left) => {
                    let data = self.data(usize::try_from(left).unwrap_or(usize::MAX))?;
                    self.state = State::Length(left - data.len() as u64);
                    return Some(Part::Data(data));
                }
                State::ChunkLine => {
                    let line = self.line()?;
                    let size = line.split(|byte| !byte.is_ascii_hexdigit()).next().unwrap_or_default();
                    let size = std::str::from_utf8(size).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
                    self.state = size.filter(|size| *size > 0).map_or(State::Trailers, State::Chunk);
                }
                State::Chunk(size) => {
                    // Whole, so that a chunk is a DATA frame.
                    if self.text.len() < size + 2 {
                        return None;
                    }
                    let data: Vec<u8> = self.text.drain(..size).collect();
                    self.text.drain(..2);
                    self.state = State::ChunkLine;
                    return Some(Part::Data(data.into()));
                }
                State::Trailers => {
                    let is_there =
                        self.text.starts_with(b"\r\n") || self.text.windows(4).any(|four| four == b"\r\n\r\n");
                    if !is_there {
                        return None;
                    }
                    let mut trailers = HeaderMap::new();
                    while let Some(line) = self.line().filter(|line| !line.is_empty()) {
                        trailers.extend(field(&line));
                    }
                    self.state = State::Done;
                    return (!trailers.is_empty()).then_some(Part::Trailers(trailers));
                }
                State::UntilClose => return self.data(usize::MAX).map(Part::Data),
                State::Done => return None,
            }
        }
    }

    /// The available part of the body, up to this many bytes.
    fn data(&mut self, most: usize) -> Option<Bytes> {
        let length = self.text.len().min(most);
        (length > 0).then(|| self.text.drain(..length).collect::<Vec<_>>().into())
    }

    /// The next line, without its end.
    fn line(&mut self) -> Option<Vec<u8>> {
        let end = self.text.windows(2).position(|two| two == b"\r\n")?;
        let line = self.text.drain(..end + 2).take(end).collect();
        Some(line)
    }

    fn head(&mut self, head: &[u8]) -> Response<()> {
        let mut response = Response::new(());
        let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
        let status = lines.next().and_then(|line| line.get(9..12)).and_then(|code| StatusCode::from_bytes(code).ok());
        *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut state = State::UntilClose;
        for (name, value) in lines.filter_map(field) {
            match name.as_str() {
                "transfer-encoding" => state = State::ChunkLine,
                "connection" | "keep-alive" => {}
                name_of => {
                    let length = value.to_str().ok().and_then(|value| value.parse().ok());
                    if let ("content-length", State::UntilClose, Some(length)) = (name_of, state, length) {
                        state = State::Length(length);
                    }
                    response.headers_mut().append(name, value);
                }
            }
        }
        let has_none = self.is_bodiless || matches!(response.status().as_u16(), 204 | 304);
        self.state = if has_none { State::Done } else { state };
        response
    }
}

/// A line of a head as a field.
fn field(line: impl AsRef<[u8]>) -> Option<(HeaderName, HeaderValue)> {
    let line = line.as_ref();
    let colon = line.iter().position(|byte| *byte == b':')?;
    let name = HeaderName::from_bytes(line.get(..colon)?).ok()?;
    Some((name, HeaderValue::from_bytes(line.get(colon + 1..)?.trim_ascii()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an answer comes to, however it is cut: its status, its fields, its body, its trailers.
    fn read(text: &str, piece: usize, is_bodiless: bool) -> String {
        let mut reader = Reader::new(is_bodiless);
        let mut told: Vec<String> = Vec::new();
        for piece in text.as_bytes().chunks(piece) {
            reader.take(piece);
            while let Some(part) = reader.next() {
                match part {
                    Part::Head(head) => told.push(format!("{} {:?} ", head.status().as_u16(), head.headers())),
                    Part::Data(data) => told.push(String::from_utf8_lossy(&data).into_owned()),
                    Part::Trailers(trailers) => told.push(format!(" {trailers:?}")),
                }
            }
        }
        assert!(reader.is_done(true), "{text}");
        told.concat()
    }

    #[test]
    fn answers_are_read_in_every_framing() {
        let chunked =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n1\r\nd\r\n0\r\nX-Bytes: 4\r\n\r\n";
        for (text, is_bodiless, expected) in [
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
                false,
                r#"200 {"content-length": "2"} ok"#,
            ),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", true, r#"200 {"content-length": "2"} "#),
            ("HTTP/1.1 204 No Content\r\n\r\n", false, "204 {} "),
            ("HTTP/1.1 503 X\r\nConnection: close\r\n\r\nall of it", false, "503 {} all of it"),
            (chunked, false, r#"200 {} abcd {"x-bytes": "4"}"#),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false, "200 {} "),
        ] {
            for piece in [1, 3, 1000] {
                assert_eq!(read(text, piece, is_bodiless), expected, "in pieces of {piece}");
            }
        }
    }
}
