//! Requests as header blocks.

use std::borrow::Cow;

use brunt_http2_calls::Sections;

use crate::chunked::Chunked;

/// Puts requests of HTTP/1.1, as this crate or a script writes them, into header blocks of one connection. A repeated head is compared and copied.
#[derive(Debug)]
pub(super) struct Writer {
    scheme: &'static str,
    /// The head that was written last; nothing before there is one, or if it had no end.
    head: Vec<u8>,
    /// Its length, in bytes.
    head_bytes: usize,
    block: Vec<u8>,
    /// The encoder's number of changes when the block was complete; `None` if the block itself changed the table.
    changes: Option<u64>,
    shape: Shape,
    /// Memory for a field's name in lower case.
    name: Vec<u8>,
    /// The content of a body that was given in chunks.
    content: Vec<u8>,
    /// How many requests had fields that only HTTP/1.1 has.
    trimmed: u64,
}

/// The parts of a head outside its header block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Shape {
    is_head: bool,
    /// The body behind it is in chunks.
    is_chunked: bool,
    /// It has fields that only HTTP/1.1 has.
    is_trimmed: bool,
}

/// A request that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written<'w> {
    /// Its header block, which may be sent once.
    pub(super) block: &'w [u8],
    pub(super) body: &'w [u8],
    /// Whether its method is HEAD.
    pub(super) is_head: bool,
    /// The size of its head in HTTP/1.1, in bytes.
    pub(super) head_bytes: usize,
}

impl Writer {
    pub(super) fn new() -> Self {
        Self {
            scheme: "http",
            head: Vec::new(),
            head_bytes: 0,
            block: Vec::new(),
            changes: None,
            shape: Shape::default(),
            name: Vec::new(),
            content: Vec::new(),
            trimmed: 0,
        }
    }

    /// The scheme of all requests.
    pub(super) fn set_scheme(&mut self, scheme: &'static str) {
        self.scheme = scheme;
    }

    /// Writes a request.
    #[inline]
    pub(super) fn write<'w>(&'w mut self, message: &'w [u8], encoder: &mut impl Sections) -> Written<'w> {
        let again = !self.head.is_empty() && message.starts_with(&self.head);
        if !again || self.changes != Some(encoder.changes()) {
            self.write_anew(message, again, encoder);
        }
        self.trimmed += u64::from(self.shape.is_trimmed);
        let mut body = message.get(self.head_bytes..).unwrap_or(&[]);
        if self.shape.is_chunked {
            self.join(body);
            body = &self.content;
        }
        Written { block: &self.block, body, is_head: self.shape.is_head, head_bytes: self.head_bytes }
    }

    /// How many requests since the last time had fields that only HTTP/1.1 has, and were sent without them.
    pub(super) fn take_trimmed(&mut self) -> u64 {
        std::mem::take(&mut self.trimmed)
    }

    /// Repeated fields enter the table, but a path only once it was repeated.
    fn write_anew(&mut self, message: &[u8], again: bool, encoder: &mut impl Sections) {
        let before = encoder.changes();
        let (block, name) = (&mut self.block, &mut self.name);
        block.clear();
        encoder.begin(block);
        let request = Request::parse(message);
        encoder.field(b":method", request.method, true, block);
        encoder.field(b":scheme", self.scheme.as_bytes(), true, block);
        encoder.field(b":path", &request.path, again, block);
        let host = || request.fields().find(|(name, _)| name.eq_ignore_ascii_case(b"host")).map(|(_, host)| host);
        if let Some(authority) = request.authority.or_else(host) {
            encoder.field(b":authority", authority, true, block);
        }
        self.shape = Shape { is_head: request.method == b"HEAD", ..Shape::default() };
        for (given, value) in request.fields() {
            name.clear();
            name.extend_from_slice(given);
            name.make_ascii_lowercase();
            if is_of_http1(name, value) {
                self.shape.is_trimmed |= name != b"host";
                self.shape.is_chunked |=
                    name == b"transfer-encoding" && value.to_ascii_lowercase().ends_with(b"chunked");
            } else {
                // Fields that no other request has stay out of the table.
                let is_index = name != b"traceparent" && (again || name != b"content-length");
                encoder.field(name, value, is_index, block);
            }
        }
        self.changes = (encoder.changes() == before).then_some(before);
        // Without the empty line at its end, a head would be the beginning of longer ones.
        self.head.clear();
        if request.is_whole {
            self.head.extend_from_slice(message.get(..request.body).unwrap_or(message));
        }
        self.head_bytes = request.body;
    }

    /// Joins the chunks of a body. What is no chunk ends it: scripts' requests are checked before they are sent.
    #[cold]
    fn join(&mut self, body: &[u8]) {
        let content = &mut self.content;
        content.clear();
        let _ = Chunked::new().receive(body, |chunk, _| {
            content.extend_from_slice(chunk);
            Ok(None)
        });
    }
}

/// Whether a field, with its name in lower case, is specific to HTTP/1.1 (RFC 9113, section 8.2.2), or goes elsewhere.
fn is_of_http1(name: &[u8], value: &[u8]) -> bool {
    match name {
        b"host" | b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade" => true,
        b"te" => !value.eq_ignore_ascii_case(b"trailers"),
        _ => false,
    }
}

/// A request of HTTP/1.1.
struct Request<'m> {
    method: &'m [u8],
    path: Cow<'m, [u8]>,
    /// The host and port of a target that is a whole URL.
    authority: Option<&'m [u8]>,
    /// The lines behind the first.
    section: &'m [u8],
    /// Where its body begins.
    body: usize,
    /// Whether an empty line ends its head.
    is_whole: bool,
}

impl<'m> Request<'m> {
    /// Lines may end with LF alone, and empty ones may stand before the first (RFC 9112, section 2.2).
    fn parse(message: &'m [u8]) -> Self {
        let begin = message.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(message.len());
        let (mut at, mut line_end, mut is_whole) = (begin, None, false);
        while let Some(length) = memchr::memchr(b'\n', message.get(at..).unwrap_or(&[])) {
            let line = message.get(at..at + length).unwrap_or(&[]);
            at += length + 1;
            if line_end.is_some() && matches!(line, b"" | b"\r") {
                is_whole = true;
                break;
            }
            line_end.get_or_insert(at);
        }
        let line_end = line_end.unwrap_or(message.len());
        let line = message.get(begin..line_end).unwrap_or(&[]).trim_ascii_end();
        let mut words = line.split(|byte| *byte == b' ');
        let method = words.next().unwrap_or(b"GET");
        let (authority, path) = split(words.next().unwrap_or(b"/"));
        Self { method, path, authority, section: message.get(line_end..at).unwrap_or(&[]), body: at, is_whole }
    }

    fn fields(&self) -> impl Iterator<Item = (&'m [u8], &'m [u8])> + use<'m> {
        let lines = self.section.split(|byte| *byte == b'\n');
        lines.filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            Some((line.get(..colon)?, line.get(colon + 1..)?.trim_ascii()))
        })
    }
}

/// A request's target as authority and path: it may be a whole URL (RFC 9112, section 3.2.2).
fn split(target: &[u8]) -> (Option<&[u8]>, Cow<'_, [u8]>) {
    let Some(rest) = [&b"http://"[..], b"https://"].iter().find_map(|scheme| target.strip_prefix(*scheme)) else {
        return (None, target.into());
    };
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, b""));
    let path = if path.starts_with(b"/") { path.into() } else { [b"/", path].concat().into() };
    (Some(authority), path)
}

#[cfg(test)]
mod tests {
    use brunt_http2::hpack::{Decoder, Encoder};
    use proptest::prelude::*;

    use super::*;

    fn fields(decoder: &mut Decoder, block: &[u8]) -> String {
        decoder.read(block).unwrap();
        let fields = decoder.fields().iter();
        let lines: Vec<_> = fields
            .map(|(name, value)| format!("{}={}", String::from_utf8_lossy(name), String::from_utf8_lossy(value)))
            .collect();
        lines.join(" ")
    }

    #[test]
    fn a_request_is_its_fields() {
        let (mut writer, mut encoder, mut decoder) = (Writer::new(), Encoder::new(), Decoder::new(4096));
        writer.set_scheme("https");
        let message =
            b"POST /a?b=c HTTP/1.1\r\nHost: h:1\r\nConnection: close\r\nX-A:  1 \r\nTE: gzip\r\nte: trailers\r\n\
                        Content-Length: 2\r\n\r\nhi";
        let expected = ":method=POST :scheme=https :path=/a?b=c :authority=h:1 x-a=1 te=trailers content-length=2";
        for _ in 0..4 {
            let written = writer.write(message, &mut encoder);
            assert_eq!(fields(&mut decoder, written.block), expected);
            assert_eq!((written.body, written.is_head), (b"hi".as_slice(), false));
        }
        let written = writer.write(b"HEAD / HTTP/1.1\r\n\r\n", &mut encoder);
        assert_eq!((written.head_bytes, written.body, written.is_head), (19, b"".as_slice(), true));
        assert_eq!((writer.take_trimmed(), writer.take_trimmed()), (4, 0));
    }

    #[test]
    fn requests_as_scripts_write_them_are_the_same_in_streams() {
        let (mut writer, mut encoder, mut decoder) = (Writer::new(), Encoder::new(), Decoder::new(4096));
        let chunks = "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nSum: 1\r\n\r\n";
        let posted = ":method=POST :scheme=http :path=/a :authority=h";
        for (message, expected, body) in [
            ("GET /a HTTP/1.1\nHost: h\nX: 1\n\n", ":method=GET :scheme=http :path=/a :authority=h x=1", ""),
            ("\r\n\nPUT /a HTTP/1.0\r\n\nb\n\n", ":method=PUT :scheme=http :path=/a", "b\n\n"),
            (
                "GET http://o:1/p?q HTTP/1.1\r\nHost: h\r\n\r\n",
                ":method=GET :scheme=http :path=/p?q :authority=o:1",
                "",
            ),
            ("GET https://o HTTP/1.1\r\n\r\n", ":method=GET :scheme=http :path=/ :authority=o", ""),
            ("GET http://o?q HTTP/1.1\r\n\r\n", ":method=GET :scheme=http :path=/?q :authority=o", ""),
            ("GET /a HTTP/1.1\n", ":method=GET :scheme=http :path=/a", ""),
            ("GET /a HTTP/1.1\nHost: h\n\nb", ":method=GET :scheme=http :path=/a :authority=h", "b"),
            ("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", ":method=OPTIONS :scheme=http :path=* :authority=h", ""),
            (chunks, posted, "abcde"),
            (chunks, posted, "abcde"),
            ("POST /a HTTP/1.1\r\nHost: h\r\n\r\n", posted, ""),
        ] {
            let written = writer.write(message.as_bytes(), &mut encoder);
            assert_eq!(fields(&mut decoder, written.block), expected, "{message:?}");
            assert_eq!(written.body, body.as_bytes(), "{message:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_written(messages in prop::collection::vec("(GET|P ) ?(/a|http://b)?( HTTP/1.1)?(\r?\n(Host: |a:|[ :x]|transfer-encoding:chunked)){0,3}(\r?\n){0,3}[0-9a\r\n]{0,9}", 1..5)) {
            let (mut writer, mut encoder, mut decoder) = (Writer::new(), Encoder::new(), Decoder::new(4096));
            for message in messages {
                let expected = { fields(&mut Decoder::new(4096), Writer::new().write(message.as_bytes(), &mut Encoder::new()).block) };
                let written = writer.write(message.as_bytes(), &mut encoder);
                prop_assert!(written.head_bytes + written.body.len() <= message.len());
                prop_assert_eq!(fields(&mut decoder, written.block), expected);
            }
        }
    }

    #[test]
    fn what_comes_again_is_a_byte_a_field() {
        let (mut writer, mut encoder, mut decoder) = (Writer::new(), Encoder::new(), Decoder::new(4096));
        let message = b"GET /a HTTP/1.1\r\nHost: h\r\nUser-Agent: brunt\r\n\r\n";
        let sizes: Vec<_> = (0..4).map(|_| writer.write(message, &mut encoder).block.to_vec()).collect();
        for block in &sizes {
            assert_eq!(fields(&mut decoder, block), ":method=GET :scheme=http :path=/a :authority=h user-agent=brunt");
        }
        assert_eq!(sizes.iter().skip(2).map(Vec::len).collect::<Vec<_>>(), [5, 5]);
        // A peer without a table is told the same in words each time.
        encoder.limit_table(0);
        let mut decoder = Decoder::new(4096);
        for _ in 0..3 {
            let block = writer.write(message, &mut encoder).block;
            assert_eq!(fields(&mut decoder, block), ":method=GET :scheme=http :path=/a :authority=h user-agent=brunt");
        }
    }

    #[test]
    fn paths_that_vary_take_no_place_from_what_stays() {
        let (mut writer, mut encoder, mut decoder) = (Writer::new(), Encoder::new(), Decoder::new(4096));
        for number in 0..1000 {
            let message = format!("GET /{number}/{} HTTP/1.1\r\nHost: h\r\n\r\n", "x".repeat(100));
            let block = writer.write(message.as_bytes(), &mut encoder).block;
            let read = fields(&mut decoder, block);
            assert!(read.contains(&format!(":path=/{number}/x")) && read.ends_with(":authority=h"), "{read}");
        }
        assert_eq!(encoder.changes(), 1);
    }
}
