//! Parser of ready-made requests: finds where each ends, and what is wrong with an incomplete one.

use std::fmt;
use std::mem::MaybeUninit;

use bstr::ByteSlice as _;

/// The most header fields of such a request.
pub(super) const MOST_HEADERS: usize = 256;

/// One request among the bytes given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// The length in bytes.
    pub(super) length: usize,
    /// Whether its method is idempotent.
    pub(super) idempotent: bool,
}

/// Why bytes are not whole requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Incomplete {
    problem: &'static str,
    /// Line and column of the first byte that does not fit, from 1.
    line: usize,
    column: usize,
}

impl fmt::Display for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at line {}, column {}", self.problem, self.line, self.column)
    }
}

impl Incomplete {
    /// `problem` at the byte `at`.
    fn at(bytes: &[u8], at: usize, problem: &'static str) -> Self {
        let before = bytes.get(..at).unwrap_or(bytes);
        let mut lines = before.split(|byte| *byte == b'\n').rev();
        let column = lines.next().map_or(0, <[u8]>::len) + 1;
        Self { problem, line: lines.count() + 1, column }
    }
}

/// Reads requests. Most have the header fields of the one before, so these are remembered: equal ones are compared, and only
/// others are parsed.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// The fields of the last request, with the empty line behind them; nothing before there is one, and where its body
    /// is in chunks.
    fields: Vec<u8>,
    /// The length of a body behind them, in bytes.
    body: usize,
}

impl Reader {
    /// Splits `bytes` into whole requests, at least one, and gives each to `take`.
    ///
    /// # Errors
    /// When a request breaks the grammar of HTTP/1.1, or the last one is incomplete.
    pub(super) fn read(&mut self, bytes: &[u8], mut take: impl FnMut(Piece)) -> Result<(), Incomplete> {
        let mut from = 0;
        loop {
            let rest = bytes.get(from..).unwrap_or(&[]);
            let piece = self.read_one(rest).map_err(|(at, problem)| Incomplete::at(bytes, from + at, problem))?;
            from += piece.length;
            take(piece);
            if from >= bytes.len() {
                return Ok(());
            }
        }
    }

    /// The first request in `bytes`.
    ///
    /// # Errors
    /// The place where it breaks the grammar or ends too early, and the problem.
    pub(super) fn read_one(&mut self, bytes: &[u8]) -> Result<Piece, (usize, &'static str)> {
        self.read_like_last(bytes).map_or_else(|| self.read_anew(bytes), Ok)
    }

    /// The first request in `bytes`, if it is whole, has the last one's fields, and a request line that is surely right.
    fn read_like_last(&self, bytes: &[u8]) -> Option<Piece> {
        let end = bytes.find_byte(b'\n')? + 1;
        let (line, rest) = bytes.split_at_checked(end)?;
        if self.fields.is_empty() || !rest.starts_with(&self.fields) {
            return None;
        }
        let length = end + self.fields.len() + self.body;
        let (method, target) = line.strip_suffix(b" HTTP/1.1\r\n")?.split_at_checked(method_in(line)?)?;
        let target = target.strip_prefix(b" ")?;
        let is_right = !target.is_empty() && target.iter().all(|byte| is_plain(*byte));
        (is_right && length <= bytes.len()).then(|| Piece { length, idempotent: is_idempotent(method) })
    }

    /// The first request in `bytes`, whose fields are remembered.
    fn read_anew(&mut self, bytes: &[u8]) -> Result<Piece, (usize, &'static str)> {
        self.fields.clear();
        let (piece, head, chunked) = read_one(bytes)?;
        // Empty lines before a request are not part of it, and not remembered.
        if !chunked && bytes.first().is_some_and(u8::is_ascii_alphabetic) {
            let head = bytes.get(..head).unwrap_or(&[]);
            let line = head.find_byte(b'\n').map_or(head.len(), |end| end + 1);
            self.fields.extend_from_slice(head.get(line..).unwrap_or(&[]));
            self.body = piece.length.saturating_sub(head.len());
        }
        Ok(piece)
    }
}

/// The length in bytes of the method that a request line begins with, if it is one of those in common use.
fn method_in(line: &[u8]) -> Option<usize> {
    match line {
        [b'G', b'E', b'T', b' ', ..] | [b'P', b'U', b'T', b' ', ..] => Some(3),
        [b'P', b'O', b'S', b'T', b' ', ..] | [b'H', b'E', b'A', b'D', b' ', ..] => Some(4),
        _ => [&b"PATCH "[..], b"DELETE ", b"OPTIONS "]
            .iter()
            .find(|known| line.starts_with(known))
            .map(|known| known.len() - 1),
    }
}

/// Whether a byte may stand in any request's target.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'/' | b'?' | b'=' | b'&' | b'%' | b'-' | b'_' | b'.' | b'~' | b'+' | b':' | b',' | b';' | b'@'
        )
}

/// Whether a method is idempotent (RFC 9110, section 9.2.2).
fn is_idempotent(method: &[u8]) -> bool {
    matches!(method, b"GET" | b"HEAD" | b"PUT" | b"DELETE" | b"OPTIONS" | b"TRACE")
}

/// The first request in `bytes`, the length of its head in bytes, and whether its body is in chunks.
///
/// # Errors
/// The place where it breaks the grammar or ends too early, and the problem.
fn read_one(bytes: &[u8]) -> Result<(Piece, usize, bool), (usize, &'static str)> {
    let mut headers = [const { MaybeUninit::uninit() }; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut []);
    let head = match request.parse_with_uninit_headers(bytes, &mut headers) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) => return Err((bytes.len(), "the request is not complete: it ends")),
        Err(error) => return Err((first_wrong(bytes), words(error))),
    };
    let mut length = 0_usize;
    let mut chunked = false;
    for header in request.headers.iter() {
        if header.name.eq_ignore_ascii_case("content-length") {
            let value = std::str::from_utf8(header.value).ok().and_then(|value| value.trim().parse().ok());
            length = value.ok_or((offset(bytes, header.value), "a Content-Length that is not a number"))?;
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            chunked = header.value.to_ascii_lowercase().ends_with(b"chunked");
        }
    }
    let body = bytes.get(head..).unwrap_or(&[]);
    let length = if chunked { chunks(head, body)? } else { length };
    if body.len() < length {
        return Err((bytes.len(), "the body is shorter than its Content-Length: it ends"));
    }
    let idempotent = request.method.is_some_and(|method| is_idempotent(method.as_bytes()));
    Ok((Piece { length: head + length, idempotent }, head, chunked))
}

/// The length in bytes of a chunked body (RFC 9112, section 7.1).
fn chunks(head: usize, body: &[u8]) -> Result<usize, (usize, &'static str)> {
    let broken = (head, "the chunks are broken in the body that begins");
    let missing = (head + body.len(), "the last chunk is missing: the request ends");
    let mut at = 0;
    loop {
        let rest = body.get(at..).unwrap_or(&[]);
        let (line, size) = match httparse::parse_chunk_size(rest) {
            Ok(httparse::Status::Complete(found)) => found,
            Ok(httparse::Status::Partial) => return Err(missing),
            Err(_) => return Err(broken),
        };
        at += line;
        if size == 0 {
            let trailers = body.get(at..).unwrap_or(&[]);
            return match httparse::parse_headers(trailers, &mut [httparse::EMPTY_HEADER; MOST_HEADERS]) {
                Ok(httparse::Status::Complete((length, _))) => Ok(at + length),
                Ok(httparse::Status::Partial) => Err(missing),
                Err(_) => Err(broken),
            };
        }
        let end = usize::try_from(size).ok().and_then(|size| at.checked_add(size)).ok_or(broken)?;
        match body.get(end..).and_then(|after| after.get(..2)) {
            None => return Err(missing),
            Some(b"\r\n") => at = end + 2,
            Some(_) => return Err(broken),
        }
    }
}

/// The offset of `part`, a slice of `bytes`, in `bytes`.
fn offset(bytes: &[u8], part: &[u8]) -> usize {
    (part.as_ptr() as usize).saturating_sub(bytes.as_ptr() as usize)
}

/// The first byte that breaks the grammar: the end of the shortest prefix that is wrong. Every longer prefix is wrong,
/// too.
fn first_wrong(bytes: &[u8]) -> usize {
    let (mut right, mut wrong) = (0, bytes.len());
    while right + 1 < wrong {
        let middle = usize::midpoint(right, wrong);
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let fits = httparse::Request::new(&mut headers).parse(bytes.get(..middle).unwrap_or(bytes)).is_ok();
        *(if fits { &mut right } else { &mut wrong }) = middle;
    }
    wrong.saturating_sub(1)
}

fn words(error: httparse::Error) -> &'static str {
    match error {
        httparse::Error::HeaderName => "a byte that cannot stand in the name of a header field",
        httparse::Error::HeaderValue => "a byte that cannot stand in the value of a header field",
        httparse::Error::NewLine => "a line that does not end as it must",
        httparse::Error::Token => "a byte that cannot stand in the request line",
        httparse::Error::TooManyHeaders => "more than 256 header fields",
        httparse::Error::Version => "a version that is not HTTP/1.0 or HTTP/1.1",
        httparse::Error::Status => "a line that is not a request line",
    }
}

#[cfg(test)]
mod tests {
    use bstr::BStr;
    use proptest::prelude::*;

    use super::*;

    fn pieces(bytes: &str) -> Result<Vec<Piece>, String> {
        let mut pieces = Vec::new();
        Reader::default().read(bytes.as_bytes(), |piece| pieces.push(piece)).map_err(|e| e.to_string())?;
        Ok(pieces)
    }

    #[test]
    fn several_requests_are_several() {
        let get = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n";
        let post = "POST / HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc";
        let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        let head = "HEAD / HTTP/1.1\n\n";
        let all = pieces(&[get, post, chunked, head].concat()).unwrap();
        assert_eq!(all.iter().map(|piece| piece.length).collect::<Vec<_>>(), [get, post, chunked, head].map(str::len));
        let idempotent: Vec<_> = all.iter().map(|piece| piece.idempotent).collect();
        assert_eq!(idempotent, [true, false, false, true]);
    }

    #[test]
    fn what_is_not_whole_is_refused_with_its_place() {
        for (bytes, expected) in [
            ("", "the request is not complete: it ends at line 1, column 1"),
            ("GET / HTTP/1.1\r\nHost: a\r\n", "the request is not complete: it ends at line 3, column 1"),
            (
                "GET / HTTP/1.1\r\nBad Name: a\r\n\r\n",
                "a byte that cannot stand in the name of a header field at line 2, column 4",
            ),
            ("GET /a b HTTP/1.1\r\n\r\n", "a version that is not HTTP/1.0 or HTTP/1.1 at line 1, column 8"),
            (
                "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
                "a Content-Length that is not a number at line 2, column 17",
            ),
            (
                "GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\nabc",
                "the body is shorter than its Content-Length: it ends at line 4, column 4",
            ),
            (
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
                "the last chunk is missing: the request ends at line 6, column 1",
            ),
            (
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
                "the chunks are broken in the body that begins at line 4, column 1",
            ),
            ("GET / HTTP/1.1\r\n\r\nhello", "the request is not complete: it ends at line 3, column 6"),
            ("\u{1}\r\n\r\n", "a byte that cannot stand in the request line at line 1, column 1"),
        ] {
            assert_eq!(pieces(bytes), Err(expected.to_owned()), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut length = 0;
            if Reader::default().read(&bytes, |piece| length += piece.length).is_ok() {
                prop_assert_eq!(length, bytes.len());
            }
            let text = [b"POST / HTTP/1.1\r\n", bytes.as_slice(), b"\r\n\r\n"].concat();
            let _ = Reader::default().read(&text, |_| {});
        }

        #[test]
        fn what_is_remembered_changes_nothing(
            requests in prop::collection::vec((0_usize..9, 0_usize..7, 0_usize..6, any::<prop::sample::Index>(), any::<u8>(), 0_u8..4), 1..12),
        ) {
            let lines = [
                "GET /a HTTP/1.1\r\n",
                "GET /item/17?a=b&c=%20 HTTP/1.1\r\n",
                "POST / HTTP/1.1\r\n",
                "TRACE / HTTP/1.1\r\n",
                "DELETE /x HTTP/1.0\r\n",
                "PATCH * HTTP/1.1\n",
                "GET  HTTP/1.1\r\n",
                "\r\nGET / HTTP/1.1\r\n",
                "OPTIONS /[x]|<y> HTTP/1.1\r\n",
            ];
            let fields = [
                "\r\n",
                "Host: a\r\n\r\n",
                "Host: a\r\nContent-Length: 3\r\n\r\n",
                "Host: a\r\nContent-Length: 12\r\n\r\n",
                "Transfer-Encoding: chunked\r\n\r\n",
                "Host: a\n\n",
                "Host: a\r\n",
            ];
            let bodies = ["", "abc", "abcd", "0\r\n\r\n", "3\r\nabc\r\n0\r\n\r\n", "\r\n"];
            let mut reader = Reader::default();
            for (line, field, body, at, byte, kind) in requests {
                let mut text = [lines[line], fields[field], bodies[body]].concat().into_bytes();
                let at = at.index(text.len());
                match kind {
                    0 => text[at] = byte,
                    1 => text.truncate(at),
                    _ => {}
                }
                prop_assert_eq!(reader.read_one(&text), read_one(&text).map(|(piece, ..)| piece), "{:?}", BStr::new(&text));
            }
        }
    }
}
