//! The heads of HTTP/1.1 requests (RFC 9112) as pure functions over bytes; [`super::request_body`] has the bodies.
//!
//! Nothing here reads a socket or keeps what it has seen. A head that is not all there yet is
//! [`Parsed::Incomplete`]; the caller keeps the bytes and asks again with more of them.

use memchr::{memchr, memrchr};

/// The longest request head taken, in bytes, blank lines before it included.
pub(super) const MAX_HEAD: usize = 16 * 1024;

/// Why a request is refused. The connection closes after each of these, because what follows the
/// refused bytes cannot be told apart from their continuation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    RequestLine,
    Version,
    HeaderLine,
    MissingHost,
    ContentLength,
    LengthAndEncoding,
    TransferEncoding,
    HeadTooLong,
    Chunk,
    BodyTooLong,
}

impl Refusal {
    /// The status code this is answered with.
    pub(super) fn status(self) -> u16 {
        match self {
            Self::Version => 505,
            Self::TransferEncoding => 501,
            Self::HeadTooLong => 431,
            Self::BodyTooLong => 413,
            _ => 400,
        }
    }

    /// What was expected, for the answer's body.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::RequestLine => "expected a request line: METHOD SP target SP HTTP/1.1",
            Self::Version => "expected HTTP/1.0 or HTTP/1.1",
            Self::HeaderLine => "expected a header line: name, colon, value without control characters",
            Self::MissingHost => "expected a Host header, which HTTP/1.1 requires",
            Self::ContentLength => "expected one Content-Length of decimal digits",
            Self::LengthAndEncoding => "expected either Content-Length or Transfer-Encoding, got both",
            Self::TransferEncoding => "expected no transfer coding other than chunked, sent once, in HTTP/1.1",
            Self::HeadTooLong => "expected a request head of at most 16384 bytes",
            Self::Chunk => "expected a chunk: size in hexadecimal, CR LF, that many bytes, CR LF",
            Self::BodyTooLong => "expected a body of at most 1048576 bytes to echo",
        }
    }
}

/// The two versions that are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    Http10,
    Http11,
}

/// How the request body is delimited (RFC 9112, section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    None,
    /// A body of this many bytes, at least one.
    Length(u64),
    Chunked,
}

/// The part of a request head that the server needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head<'a> {
    /// The head as it came, from the method up to and without the final blank line.
    pub(super) bytes: &'a [u8],
    pub(super) target: &'a [u8],
    /// The method is HEAD: the answer has no body.
    pub(super) no_body: bool,
    pub(super) version: Version,
    /// The client wants to go on using the connection (RFC 9112, section 9.3).
    pub(super) keep_alive: bool,
    pub(super) framing: Framing,
    pub(super) expects_continue: bool,
}

/// The result of looking for a head at the start of some input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parsed<'a> {
    /// A head, and the number of input bytes that it took.
    Complete(Head<'a>, usize),
    /// So far no fault, and no end either. Fewer than [`MAX_HEAD`] bytes.
    Incomplete,
    Refused(Refusal),
}

/// Looks for a request head at the start of `input`.
///
/// How the bytes were cut on their way makes no difference: calling this with ever longer prefixes
/// ends in the same answer as calling it once with everything.
pub(super) fn parse(input: &[u8]) -> Parsed<'_> {
    let within = input.get(..MAX_HEAD).unwrap_or(input);
    match head(within) {
        Ok(Some((head, used))) => Parsed::Complete(head, used),
        Ok(None) if input.len() >= MAX_HEAD => Parsed::Refused(Refusal::HeadTooLong),
        Ok(None) => Parsed::Incomplete,
        Err(refusal) => Parsed::Refused(refusal),
    }
}

fn head(input: &[u8]) -> Result<Option<(Head<'_>, usize)>, Refusal> {
    let start = skip_blank_lines(input);
    let mut lines = Lines { rest: start };
    let Some(line) = lines.next() else {
        // Otherwise a peer that speaks another protocol (such as TLS) would wait forever.
        return match start.first() {
            Some(&first) if !is_token(first) && first != b'\r' => Err(Refusal::RequestLine),
            _ => Ok(None),
        };
    };
    let (method, target, version) = request_line(line)?;
    let mut fields = Fields::default();
    let mut body_of_head = start;
    loop {
        let before = lines.rest;
        let Some(line) = lines.next() else { return Ok(None) };
        if line.is_empty() {
            let length = start.len() - before.len();
            body_of_head = body_of_head.get(..length).unwrap_or_default();
            break;
        }
        fields.take(line)?;
    }
    let head = Head {
        bytes: body_of_head,
        target,
        no_body: method == b"HEAD",
        version,
        keep_alive: match fields.connection {
            ConnectionOption::None => version == Version::Http11,
            ConnectionOption::KeepAlive => true,
            ConnectionOption::Close => false,
        },
        framing: fields.framing(version)?,
        expects_continue: fields.expects_continue,
    };
    Ok(Some((head, input.len() - lines.rest.len())))
}

/// RFC 9112, section 2.2: empty lines before the request line are ignored.
fn skip_blank_lines(mut input: &[u8]) -> &[u8] {
    while let Some(rest) = input.strip_prefix(b"\r\n").or_else(|| input.strip_prefix(b"\n")) {
        input = rest;
    }
    input
}

/// The lines of the input without their ends, CR LF or a bare LF (RFC 9112, section 2.2).
struct Lines<'a> {
    rest: &'a [u8],
}

impl<'a> Lines<'a> {
    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let end = memchr(b'\n', self.rest)?;
        let line = self.rest.get(..end)?;
        self.rest = self.rest.get(end + 1..)?;
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

fn request_line(line: &[u8]) -> Result<(&[u8], &[u8], Version), Refusal> {
    let parts = memchr(b' ', line).and_then(|first| {
        let last = memrchr(b' ', line)?;
        Some((line.get(..first)?, line.get(first + 1..last)?, line.get(last + 1..)?))
    });
    let (method, target, version) = parts.ok_or(Refusal::RequestLine)?;
    if method.is_empty() || !method.iter().copied().all(is_token) {
        return Err(Refusal::RequestLine);
    }
    if target.is_empty() || target.iter().any(|&byte| byte <= b' ' || byte == 0x7f) {
        return Err(Refusal::RequestLine);
    }
    match version {
        b"HTTP/1.1" => Ok((method, target, Version::Http11)),
        b"HTTP/1.0" => Ok((method, target, Version::Http10)),
        other if other.starts_with(b"HTTP/") => Err(Refusal::Version),
        _ => Err(Refusal::RequestLine),
    }
}

/// What the `Connection` fields ask for; if they ask for several, the last one in this list (RFC 9112, section 9.3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum ConnectionOption {
    #[default]
    None,
    KeepAlive,
    Close,
}

/// The content of the header fields read so far.
#[derive(Default)]
struct Fields {
    host: bool,
    connection: ConnectionOption,
    expects_continue: bool,
    chunked: bool,
    length: Option<u64>,
}

impl Fields {
    #[inline]
    fn take(&mut self, line: &[u8]) -> Result<(), Refusal> {
        let colon = memchr(b':', line).ok_or(Refusal::HeaderLine)?;
        let name = line.get(..colon).unwrap_or_default();
        let value = line.get(colon + 1..).unwrap_or_default();
        if name.is_empty() || !name.iter().copied().all(is_token) || has_control(value) {
            return Err(Refusal::HeaderLine);
        }
        // The length alone tells most names from the few relevant ones.
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => self.host = true,
            6 if name.eq_ignore_ascii_case(b"expect") => {
                self.expects_continue |= value.trim_ascii().eq_ignore_ascii_case(b"100-continue");
            }
            10 if name.eq_ignore_ascii_case(b"connection") => self.connection(value),
            14 if name.eq_ignore_ascii_case(b"content-length") => self.content_length(value)?,
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => self.transfer_encoding(value)?,
            _ => {}
        }
        Ok(())
    }

    fn connection(&mut self, value: &[u8]) {
        for option in value.split(|&byte| byte == b',') {
            let option = match option.trim_ascii() {
                close if close.eq_ignore_ascii_case(b"close") => ConnectionOption::Close,
                keep_alive if keep_alive.eq_ignore_ascii_case(b"keep-alive") => ConnectionOption::KeepAlive,
                _ => continue,
            };
            self.connection = self.connection.max(option);
        }
    }

    fn content_length(&mut self, value: &[u8]) -> Result<(), Refusal> {
        let digits = value.trim_ascii();
        let length = decimal(digits).ok_or(Refusal::ContentLength)?;
        match self.length.replace(length) {
            Some(earlier) if earlier != length => Err(Refusal::ContentLength),
            _ => Ok(()),
        }
    }

    fn transfer_encoding(&mut self, value: &[u8]) -> Result<(), Refusal> {
        if self.chunked || !value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
            return Err(Refusal::TransferEncoding);
        }
        self.chunked = true;
        Ok(())
    }

    /// The body's framing, once every field is known.
    fn framing(&self, version: Version) -> Result<Framing, Refusal> {
        if version == Version::Http11 && !self.host {
            return Err(Refusal::MissingHost);
        }
        match (self.chunked, self.length) {
            (true, Some(_)) => Err(Refusal::LengthAndEncoding),
            (true, None) if version == Version::Http10 => Err(Refusal::TransferEncoding),
            (true, None) => Ok(Framing::Chunked),
            (false, None | Some(0)) => Ok(Framing::None),
            (false, Some(length)) => Ok(Framing::Length(length)),
        }
    }
}

/// Decimal digits and nothing else, within u64.
pub(super) fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// `tchar` of RFC 9110, section 5.6.2.
#[inline]
fn is_token(byte: u8) -> bool {
    matches!(byte,
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'!' | b'#' | b'$' | b'%' | b'&'
        | b'\'' | b'*' | b'+' | b'^' | b'`' | b'|' | b'~')
}

/// Whether a field value holds a control character other than a tab (RFC 9110, section 5.5).
#[inline]
fn has_control(value: &[u8]) -> bool {
    value.iter().any(|&byte| (byte < b' ' && byte != b'\t') || byte == 0x7f)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn complete(input: &str) -> (Head<'_>, usize) {
        match parse(input.as_bytes()) {
            Parsed::Complete(head, used) => (head, used),
            other => panic!("{input:?} is {other:?}"),
        }
    }

    fn refused(input: &str) -> Refusal {
        match parse(input.as_bytes()) {
            Parsed::Refused(refusal) => refusal,
            other => panic!("{input:?} is {other:?}"),
        }
    }

    #[test]
    fn a_plain_request() {
        let text = "GET /a?b HTTP/1.1\r\nHost: x\r\n\r\nGET";
        let (head, used) = complete(text);
        assert_eq!(used, text.len() - 3);
        assert_eq!(head.bytes, b"GET /a?b HTTP/1.1\r\nHost: x\r\n");
        assert_eq!(head.target, b"/a?b");
        assert_eq!(head.framing, Framing::None);
        assert!(head.keep_alive && !head.no_body && !head.expects_continue);
    }

    #[test]
    fn blank_lines_before_and_bare_line_feeds_are_taken() {
        let text = "\r\n\nHEAD / HTTP/1.0\nX: y\n\n";
        let (head, used) = complete(text);
        assert_eq!(used, text.len());
        assert_eq!(head.bytes, b"HEAD / HTTP/1.0\nX: y\n");
        assert!(head.no_body && !head.keep_alive);
    }

    #[test]
    fn persistence_by_version_and_header() {
        let keep_alive = |version, connection| {
            let text = format!("GET / {version}\r\nHost: x\r\n{connection}\r\n");
            complete(&text).0.keep_alive
        };
        assert!(keep_alive("HTTP/1.1", ""));
        assert!(!keep_alive("HTTP/1.1", "connection: x , Close\r\n"));
        assert!(!keep_alive("HTTP/1.0", ""));
        assert!(keep_alive("HTTP/1.0", "Connection: Keep-Alive\r\n"));
        assert!(!keep_alive("HTTP/1.0", "Connection: keep-alive\r\nConnection: close\r\n"));
    }

    #[test]
    fn body_framing() {
        let framing = |fields| complete(&format!("PUT / HTTP/1.1\r\nHost: x\r\n{fields}\r\n")).0.framing;
        assert_eq!(framing("Content-Length: 0\r\n"), Framing::None);
        assert_eq!(framing("content-length:\t12 \r\n"), Framing::Length(12));
        assert_eq!(framing("Content-Length: 7\r\nContent-Length: 7\r\n"), Framing::Length(7));
        assert_eq!(framing("Transfer-Encoding: Chunked\r\n"), Framing::Chunked);
    }

    #[test]
    fn each_fault_has_its_refusal() {
        let with = |fields| refused(&format!("PUT / HTTP/1.1\r\nHost: x\r\n{fields}\r\n"));
        assert_eq!(refused("\x16\x03\x01"), Refusal::RequestLine);
        assert_eq!(refused("GET /\r\n\r\n"), Refusal::RequestLine);
        assert_eq!(refused("GET  HTTP/1.1\r\n"), Refusal::RequestLine);
        assert_eq!(refused("GET /a b HTTP/1.1\r\n"), Refusal::RequestLine);
        assert_eq!(refused("G(T / HTTP/1.1\r\n"), Refusal::RequestLine);
        assert_eq!(refused("PRI * HTTP/2.0\r\n"), Refusal::Version);
        assert_eq!(refused("GET / HTTP/1.1\r\n\r\n"), Refusal::MissingHost);
        assert_eq!(with("no colon\r\n"), Refusal::HeaderLine);
        assert_eq!(with("Name : space\r\n"), Refusal::HeaderLine);
        assert_eq!(with(" folded\r\n"), Refusal::HeaderLine);
        assert_eq!(with("X: a\0b\r\n"), Refusal::HeaderLine);
        assert_eq!(with("Content-Length: -1\r\n"), Refusal::ContentLength);
        assert_eq!(with("Content-Length: \r\n"), Refusal::ContentLength);
        assert_eq!(with("Content-Length: 99999999999999999999\r\n"), Refusal::ContentLength);
        assert_eq!(with("Content-Length: 1\r\nContent-Length: 2\r\n"), Refusal::ContentLength);
        assert_eq!(with("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), Refusal::LengthAndEncoding);
        assert_eq!(with("Transfer-Encoding: gzip, chunked\r\n"), Refusal::TransferEncoding);
        assert_eq!(refused("PUT / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), Refusal::TransferEncoding);
    }

    #[test]
    fn a_head_may_be_as_long_as_the_limit_and_no_longer() {
        let of_length = |length: usize| {
            let frame = "GET / HTTP/1.1\r\nHost: x\r\nX: \r\n\r\n".len();
            format!("GET / HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "y".repeat(length - frame))
        };
        assert_eq!(complete(&of_length(MAX_HEAD)).1, MAX_HEAD);
        assert_eq!(refused(&of_length(MAX_HEAD + 1)), Refusal::HeadTooLong);
        assert_eq!(refused(&"\r\n".repeat(MAX_HEAD)), Refusal::HeadTooLong);
        assert_eq!(parse("a".repeat(MAX_HEAD - 1).as_bytes()), Parsed::Incomplete);
    }

    proptest! {
        /// Parsing ever longer prefixes ends where parsing the whole does.
        #[test]
        fn how_a_head_is_cut_makes_no_difference(
            input in "(GET|PUT|G T|\r\n|\n) /[a-z]{0,3}( HTTP/1\\.[012]\r?\n)(((Host|Content-Length|Connection|a b): ?(5|close|\u{1})?\r\n){0,3})(\r\n)?[a-z]{0,3}",
        ) {
            let whole = parse(input.as_bytes());
            for end in 0..=input.len() {
                let part = parse(&input.as_bytes()[..end]);
                prop_assert!(part == Parsed::Incomplete || part == whole, "{end}: {part:?} not {whole:?}");
            }
        }

        #[test]
        fn any_bytes_at_all_parse_without_panic(input in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&input);
        }
    }
}
