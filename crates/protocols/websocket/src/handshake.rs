//! The opening handshake (RFC 6455, section 4): an HTTP/1.1 request to upgrade, and its answer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use brunt_plan::target::Target;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use super::options::Options;
use brunt_protocol::headers::{authorization, header_value, is_token};
use brunt_protocol::{Malformed, OptionsError};

/// The status of an answer that accepts the handshake.
pub(super) const SWITCHING: u16 = 101;
/// The longest head of an answer, in bytes.
const MOST_HEAD_BYTES: usize = 16 * 1024;
/// The most interim answers before the final one.
const MOST_INTERIM: u8 = 16;
/// The most header fields of an answer.
const MOST_FIELDS: usize = 64;
/// The text that is appended to the key before it is hashed (section 1.3).
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Fields that are the handshake's own, and cannot be given.
const OWN_FIELDS: [&str; 7] = [
    "upgrade",
    "connection",
    "sec-websocket-key",
    "sec-websocket-version",
    "sec-websocket-accept",
    "sec-websocket-extensions",
    "sec-websocket-protocol",
];

/// A request without its key, and the answers that are acceptable.
#[derive(Debug)]
pub(super) struct Request {
    /// The request up to the key, with the key's field name.
    bytes: Vec<u8>,
    subprotocols: Vec<String>,
    deflate: bool,
}

/// The parameters that both sides agreed upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Agreement {
    /// Whether permessage-deflate is in use, and then whether the server keeps its context from message to message.
    pub(super) deflate: Option<bool>,
}

/// The outcome of a handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// The connection speaks WebSocket from here on.
    Agreed(Agreement),
    /// The server denied the handshake with this HTTP status.
    Denied(u16),
    /// The answer breaks the protocol; says how.
    Refused(&'static str),
}

impl Request {
    /// The request for these options. `env` looks secrets up.
    ///
    /// # Errors
    /// Says which option is wrong.
    pub(super) fn prepare(
        options: &Options,
        target: &Target,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, OptionsError> {
        let mut fields = Vec::new();
        if let Some(basic) = &options.basic {
            fields.push(("Authorization".to_owned(), authorization(basic, &env)?));
        }
        for header in &options.headers {
            fields.push((header.name().to_owned(), header_value(header, &env)?));
        }
        Self::with_fields(target, &fields, &options.subprotocols, options.deflate)
    }

    /// The request to this target with these header fields.
    ///
    /// # Errors
    /// Says which field or subprotocol is wrong.
    pub(super) fn with_fields(
        target: &Target,
        fields: &[(String, String)],
        subprotocols: &[String],
        deflate: bool,
    ) -> Result<Self, OptionsError> {
        let mut bytes = format!("GET {} HTTP/1.1\r\n", target.path).into_bytes();
        let mut field = |name: &str, value: &str| bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        let sets = |name: &str| fields.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        if let Some(own) = OWN_FIELDS.into_iter().find(|own| sets(own)) {
            let instead = match own {
                "sec-websocket-protocol" => ": give --subprotocol, or subprotocols in a scenario",
                "sec-websocket-extensions" => ": give --deflate, or deflate in a scenario",
                _ => "",
            };
            return Err(OptionsError(format!("header {own} is the handshake's own, leave it out{instead}")));
        }
        if !sets("host") {
            field("Host", &target.authority());
        }
        if !sets("user-agent") {
            field("User-Agent", concat!("brunt/", env!("CARGO_PKG_VERSION")));
        }
        for (name, value) in fields {
            field(name, value);
        }
        if let Some(name) = subprotocols.iter().find(|name| name.is_empty() || !name.chars().all(is_token)) {
            return Err(OptionsError(format!("the subprotocol '{name}' is not one: expected letters, digits and -")));
        }
        if !subprotocols.is_empty() {
            field("Sec-WebSocket-Protocol", &subprotocols.join(", "));
        }
        if deflate {
            field("Sec-WebSocket-Extensions", "permessage-deflate; client_no_context_takeover");
        }
        field("Upgrade", "websocket");
        field("Connection", "Upgrade");
        field("Sec-WebSocket-Version", "13");
        bytes.extend_from_slice(b"Sec-WebSocket-Key: ");
        Ok(Self { bytes, subprotocols: subprotocols.to_vec(), deflate })
    }

    /// The request with these bytes, which end with the name of the key's field.
    pub(super) fn sent(bytes: &[u8]) -> Self {
        let value = |wanted: &str| {
            let mut lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
            lines.find_map(|line| {
                line.split_once(": ").filter(|(name, _)| *name == wanted).map(|(_, value)| value.trim())
            })
        };
        let subprotocols = value("Sec-WebSocket-Protocol")
            .map_or_else(Vec::new, |names| names.split(", ").map(str::to_owned).collect());
        Self { bytes: Vec::new(), subprotocols, deflate: value("Sec-WebSocket-Extensions").is_some() }
    }

    /// Appends the request with this nonce; returns the key that the answer is checked by.
    pub(super) fn write(&self, nonce: [u8; 16], out: &mut Vec<u8>) -> String {
        write_key(&self.bytes, nonce, out)
    }

    /// The request up to the key.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Checks the answer to the request with this key (section 4.1).
    fn judge(&self, answer: &httparse::Response<'_, '_>, key: &str) -> Answer {
        let refused = Answer::Refused;
        let status = answer.code.unwrap_or(0);
        if status != SWITCHING {
            return Answer::Denied(status);
        }
        let values = |name: &'static str| {
            let named = answer.headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
            named.map(|header| String::from_utf8_lossy(header.value).trim().to_owned())
        };
        let lists = |name, token: &str| {
            values(name).any(|value| value.split(',').any(|part| part.trim().eq_ignore_ascii_case(token)))
        };
        if !lists("upgrade", "websocket") || !lists("connection", "upgrade") {
            return refused("the 101 has no Upgrade: websocket with Connection: Upgrade");
        }
        if !values("sec-websocket-accept").eq([accept(key)]) {
            return refused("the 101 has a Sec-WebSocket-Accept that does not belong to the key");
        }
        let mut subprotocols = values("sec-websocket-protocol");
        if let Some(chosen) = subprotocols.next()
            && (!self.subprotocols.contains(&chosen) || subprotocols.next().is_some())
        {
            return refused("the 101 names a subprotocol that was not asked for");
        }
        let extensions: Vec<_> = values("sec-websocket-extensions").collect();
        match self.extension(&extensions.join(", ")) {
            Ok(deflate) => Answer::Agreed(Agreement { deflate }),
            Err(reason) => refused(reason),
        }
    }

    /// Checks the server's extensions. Says whether permessage-deflate is in use (RFC 7692, sections 5.1 and 7.1).
    fn extension(&self, text: &str) -> Result<Option<bool>, &'static str> {
        if text.is_empty() {
            return Ok(None);
        }
        let mut parts = text.split(';').map(str::trim);
        if !self.deflate || parts.next() != Some("permessage-deflate") {
            return Err("the 101 names an extension that was not asked for");
        }
        let mut seen: Vec<&str> = Vec::new();
        for part in parts {
            let (name, value) = part
                .split_once('=')
                .map_or((part, None), |(name, value)| (name.trim_end(), Some(value.trim_start().trim_matches('"'))));
            let known = match name {
                "server_no_context_takeover" | "client_no_context_takeover" => value.is_none(),
                "server_max_window_bits" => {
                    value.is_some_and(|bits| matches!(bits, "8" | "9" | "10" | "11" | "12" | "13" | "14" | "15"))
                }
                // A server may set a window only if the client offered one (section 7.1.2.2).
                _ => false,
            };
            if !known || seen.contains(&name) {
                return Err("the 101 has parameters of permessage-deflate that are none, or not asked for");
            }
            seen.push(name);
        }
        Ok(Some(!seen.contains(&"server_no_context_takeover")))
    }
}

/// Appends the request with a key made of this nonce; returns the key.
pub(super) fn write_key(request: &[u8], nonce: [u8; 16], out: &mut Vec<u8>) -> String {
    let key = STANDARD.encode(nonce);
    out.extend_from_slice(request);
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\r\n\r\n");
    key
}

/// The accept value that a server computes from a key (section 4.2.2).
pub fn accept(key: &str) -> String {
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{GUID}").as_bytes()))
}

/// Reads the answer to one request.
#[derive(Debug)]
pub(super) struct Reader {
    key: String,
    head: Vec<u8>,
    /// The interim answers (1xx but 101) that came before it.
    interim: u8,
}

impl Reader {
    /// For the request with this key.
    pub(super) fn new(key: String) -> Self {
        Self { key, head: Vec::new(), interim: 0 }
    }

    /// The received part of the answer's head.
    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Takes bytes, up to the end of the answer at most. Returns how many it took, and the outcome once the answer is
    /// complete.
    ///
    /// # Errors
    /// When the bytes are no HTTP, or the head is too long.
    pub(super) fn receive(&mut self, bytes: &[u8], request: &Request) -> Result<(usize, Option<Answer>), Malformed> {
        let before = self.head.len();
        // The end may lie across two pieces.
        let from = before.saturating_sub(3);
        self.head.extend_from_slice(bytes);
        let tail = self.head.get(from..).unwrap_or_default();
        let Some(end) = tail.windows(4).position(|four| four == b"\r\n\r\n").map(|at| from + at + 4) else {
            if self.head.len() > MOST_HEAD_BYTES {
                return Err(Malformed::because("a handshake of more than 16 KiB"));
            }
            // Bytes that cannot begin an HTTP answer are an error at once: no more are waited for.
            return self.parse(self.head.len(), request).map(|_| (bytes.len(), None));
        };
        if end > MOST_HEAD_BYTES {
            return Err(Malformed::because("a handshake of more than 16 KiB"));
        }
        self.head.truncate(end);
        match self.parse(end, request)? {
            // Interim answers come before the final one (RFC 9110, section 15.2).
            Some(Answer::Denied(100..=199)) => {
                self.interim += 1;
                if self.interim > MOST_INTERIM {
                    return Err(Malformed::because("a handshake with more than 16 interim answers"));
                }
                self.head.clear();
                Ok((end - before, None))
            }
            Some(answer) => Ok((end - before, Some(answer))),
            None => Err(Malformed::because("a handshake that is not an HTTP/1.1 answer")),
        }
    }

    fn parse(&self, end: usize, request: &Request) -> Result<Option<Answer>, Malformed> {
        let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
        let mut answer = httparse::Response::new(&mut fields);
        // As lenient as with answers of HTTP: folded fields (RFC 9112, section 5.2), and blanks before colons.
        let mut config = httparse::ParserConfig::default();
        config.allow_obsolete_multiline_headers_in_responses(true).allow_spaces_after_header_name_in_responses(true);
        match config.parse_response(&mut answer, self.head.get(..end).unwrap_or_default()) {
            Ok(httparse::Status::Complete(_)) => Ok(Some(request.judge(&answer, &self.key))),
            Ok(httparse::Status::Partial) => Ok(None),
            Err(httparse::Error::TooManyHeaders) => {
                Err(Malformed::because("a handshake with more than 64 header fields"))
            }
            Err(_) => Err(Malformed::because("a handshake that is not an HTTP/1.1 answer")),
        }
    }
}
