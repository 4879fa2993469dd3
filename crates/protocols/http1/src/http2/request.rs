//! Requests as header blocks.

use brunt_http2_calls::Sections;

/// Puts requests of HTTP/1.1 into header blocks of one connection. A repeated request is compared and copied.
#[derive(Debug)]
pub(super) struct Writer {
    scheme: &'static str,
    /// The request that was written last.
    message: Vec<u8>,
    block: Vec<u8>,
    /// The encoder's number of changes when the block was complete; `None` if the block itself changed the table.
    changes: Option<u64>,
    shape: Shape,
    /// Memory for a field's name in lower case.
    name: Vec<u8>,
}

/// The parts of a request outside its header block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Shape {
    /// Where its body begins.
    pub(super) body: usize,
    /// Whether its method is HEAD.
    pub(super) is_head: bool,
}

impl Writer {
    pub(super) fn new() -> Self {
        Self {
            scheme: "http",
            message: Vec::new(),
            block: Vec::new(),
            changes: None,
            shape: Shape::default(),
            name: Vec::new(),
        }
    }

    /// The scheme of all requests.
    pub(super) fn set_scheme(&mut self, scheme: &'static str) {
        self.scheme = scheme;
    }

    /// The header block of a request, which may be sent once.
    #[inline]
    pub(super) fn write(&mut self, message: &[u8], encoder: &mut impl Sections) -> (&[u8], Shape) {
        let again = self.message == message;
        if !again || self.changes != Some(encoder.changes()) {
            self.write_anew(message, again, encoder);
        }
        (&self.block, self.shape)
    }

    /// Repeated fields enter the table, but a path only once it was repeated.
    fn write_anew(&mut self, message: &[u8], again: bool, encoder: &mut impl Sections) {
        let before = encoder.changes();
        let (block, name) = (&mut self.block, &mut self.name);
        block.clear();
        encoder.begin(block);
        let mut request = Request::parse(message);
        encoder.field(b":method", request.method, true, block);
        encoder.field(b":scheme", self.scheme.as_bytes(), true, block);
        encoder.field(b":path", request.path, again, block);
        if let Some(host) = request.fields().find(|(name, _)| name.eq_ignore_ascii_case(b"host")) {
            encoder.field(b":authority", host.1, true, block);
        }
        for (given, value) in request.fields() {
            name.clear();
            name.extend_from_slice(given);
            name.make_ascii_lowercase();
            if !is_of_http1(name, value) {
                // Fields that no other request has stay out of the table.
                let is_index = name != b"traceparent" && (again || name != b"content-length");
                encoder.field(name, value, is_index, block);
            }
        }
        self.shape = Shape { body: request.body, is_head: request.method == b"HEAD" };
        self.changes = (encoder.changes() == before).then_some(before);
        self.message.clear();
        self.message.extend_from_slice(message);
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

/// A request of HTTP/1.1 as this crate writes it.
struct Request<'m> {
    method: &'m [u8],
    path: &'m [u8],
    /// The lines behind the first.
    section: &'m [u8],
    body: usize,
}

impl<'m> Request<'m> {
    fn parse(message: &'m [u8]) -> Self {
        let end = message.windows(4).position(|four| four == b"\r\n\r\n");
        let body = end.map_or(message.len(), |end| end + 4);
        let head = message.get(..end.unwrap_or(message.len())).unwrap_or(message);
        let line_end = head.iter().position(|byte| *byte == b'\r').unwrap_or(head.len());
        let (line, section) = head.split_at(line_end);
        let mut words = line.split(|byte| *byte == b' ');
        Self { method: words.next().unwrap_or(b"GET"), path: words.next().unwrap_or(b"/"), section, body }
    }

    fn fields(&mut self) -> impl Iterator<Item = (&'m [u8], &'m [u8])> + use<'m> {
        let lines = self.section.split(|byte| *byte == b'\n');
        lines.filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            Some((line.get(..colon)?, line.get(colon + 1..)?.trim_ascii()))
        })
    }
}

#[cfg(test)]
mod tests {
    use brunt_http2::hpack::{Decoder, Encoder};

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
            let (block, shape) = writer.write(message, &mut encoder);
            assert_eq!(fields(&mut decoder, block), expected);
            assert_eq!((&message[shape.body..], shape.is_head), (b"hi".as_slice(), false));
        }
        let (_, shape) = writer.write(b"HEAD / HTTP/1.1\r\n\r\n", &mut encoder);
        assert_eq!((shape.body, shape.is_head), (19, true));
    }

    #[test]
    fn what_comes_again_is_a_byte_a_field() {
        let (mut writer, mut encoder, mut decoder) = (Writer::new(), Encoder::new(), Decoder::new(4096));
        let message = b"GET /a HTTP/1.1\r\nHost: h\r\nUser-Agent: brunt\r\n\r\n";
        let sizes: Vec<_> = (0..4).map(|_| writer.write(message, &mut encoder).0.to_vec()).collect();
        for block in &sizes {
            assert_eq!(fields(&mut decoder, block), ":method=GET :scheme=http :path=/a :authority=h user-agent=brunt");
        }
        assert_eq!(sizes.iter().skip(2).map(Vec::len).collect::<Vec<_>>(), [5, 5]);
        // A peer without a table is told the same in words each time.
        encoder.limit_table(0);
        let mut decoder = Decoder::new(4096);
        for _ in 0..3 {
            let (block, _) = writer.write(message, &mut encoder);
            assert_eq!(fields(&mut decoder, block), ":method=GET :scheme=http :path=/a :authority=h user-agent=brunt");
        }
    }

    #[test]
    fn paths_that_vary_take_no_place_from_what_stays() {
        let (mut writer, mut encoder, mut decoder) = (Writer::new(), Encoder::new(), Decoder::new(4096));
        for number in 0..1000 {
            let message = format!("GET /{number}/{} HTTP/1.1\r\nHost: h\r\n\r\n", "x".repeat(100));
            let (block, _) = writer.write(message.as_bytes(), &mut encoder);
            let read = fields(&mut decoder, block);
            assert!(read.contains(&format!(":path=/{number}/x")) && read.ends_with(":authority=h"), "{read}");
        }
        assert_eq!(encoder.changes(), 1);
    }
}
