//! Calls as bytes between who makes them and their connection: a head, which becomes a header block, and framed messages.
//!
//! A head is lines `name: value`, in the order of the block; before it stands its length in four bytes.

use std::fmt::{self, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use brunt_http2_calls::Sections;
use brunt_plan::target::Target;
use brunt_protocol::OptionsError;
use prost_reflect::MethodDescriptor;

use crate::options::Compression;
use crate::status;

/// The port of `grpc://`: that of gRPC's own examples.
pub(crate) const DEFAULT_PORT: u16 = 50_051;
/// The longest number in `grpc-timeout` (gRPC over HTTP/2, "Request-Headers").
const MOST_TIMEOUT: u64 = 99_999_999;
/// Fields that are gRPC's or HTTP/2's own, and cannot be given.
const OWN_FIELDS: [&str; 9] = [
    "content-type",
    "content-length",
    "te",
    "connection",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
    "trailer",
];

/// What all calls of a flood or of a scenario's client share.
#[derive(Debug, Clone)]
pub(crate) struct Envelope {
    before_path: String,
    behind_path: String,
}

impl Envelope {
    /// The envelope of calls to `target`, with these fields as metadata, and with a deadline in nanoseconds from their
    /// start if there is one.
    ///
    /// # Errors
    /// Says which field is wrong, and never shows its value.
    pub(crate) fn new(
        target: &Target,
        metadata: &[(String, String)],
        compress: Option<Compression>,
        deadline_ns: Option<u64>,
    ) -> Result<Self, OptionsError> {
        let is_secure = target.scheme == "grpcs";
        let scheme = if is_secure { "https" } else { "http" };
        let mut authority = match target.port {
            None if is_secure => target.host_field(),
            port => format!("{}:{}", target.host_field(), port.unwrap_or(DEFAULT_PORT)),
        };
        let mut agent = concat!("grpc-brunt/", env!("CARGO_PKG_VERSION")).to_owned();
        let mut custom = String::new();
        for (name, value) in metadata {
            match name.to_ascii_lowercase().as_str() {
                "host" => authority.clone_from(value),
                "user-agent" => agent.clone_from(value),
                name => add_metadata(name, value.as_bytes(), &mut custom)?,
            }
        }
        let before_path = format!(":method: POST\n:scheme: {scheme}\n:path: ");
        let mut behind_path = format!(
            "\n:authority: {authority}\nte: trailers\ncontent-type: application/grpc\nuser-agent: {agent}\n\
             grpc-accept-encoding: gzip\n"
        );
        if compress.is_some() {
            behind_path.push_str("grpc-encoding: gzip\n");
        }
        if let Some(deadline_ns) = deadline_ns {
            let _ = writeln!(behind_path, "grpc-timeout: {}", timeout(deadline_ns));
        }
        behind_path.push_str(&custom);
        Ok(Self { before_path, behind_path })
    }

    /// Appends the head of a call to the method at `path`, with its length and its own metadata.
    pub(crate) fn write_head(&self, path: &str, own: &str, out: &mut Vec<u8>) {
        let length = self.before_path.len() + path.len() + self.behind_path.len() + own.len();
        out.extend_from_slice(&(length as u32).to_be_bytes());
        for part in [&self.before_path, path, &self.behind_path, own] {
            out.extend_from_slice(part.as_bytes());
        }
    }
}

/// Writes a call into `with`, with one more line of metadata in its head.
pub(crate) fn add_line(call: &[u8], name: &str, value: &impl fmt::Display, with: &mut Vec<u8>) {
    let Some((length, rest)) = call.split_first_chunk::<4>() else { return };
    let Some((head, messages)) = rest.split_at_checked(u32::from_be_bytes(*length) as usize) else { return };
    let line = format!("{name}: {value}\n");
    with.clear();
    with.extend_from_slice(&((head.len() + line.len()) as u32).to_be_bytes());
    for part in [head, line.as_bytes(), messages] {
        with.extend_from_slice(part);
    }
}

/// Appends the head of a later message of a call to the method at `path`: that path alone.
pub(crate) fn write_path(path: &str, out: &mut Vec<u8>) {
    const NAME: &str = ":path: ";
    out.extend_from_slice(&((NAME.len() + path.len()) as u32).to_be_bytes());
    out.extend_from_slice(NAME.as_bytes());
    out.extend_from_slice(path.as_bytes());
}

/// Appends a line of metadata, whose name is in lower case.
///
/// # Errors
/// When the name is not one for metadata, or a `-bin` value is not base64.
pub(crate) fn add_metadata(name: &str, value: &[u8], lines: &mut String) -> Result<(), OptionsError> {
    if name.starts_with("grpc-") || OWN_FIELDS.contains(&name) {
        let instead = if name == "grpc-timeout" { ": the timeout gives it" } else { "" };
        return Err(OptionsError(format!("metadata {name} is gRPC's own, leave it out{instead}")));
    }
    if name.ends_with("-bin") {
        let Some(value) = binary(value) else {
            return Err(OptionsError(format!(
                "metadata {name}: the value of a name in -bin is base64, hex: and hexadecimal digits, or raw: and the bytes themselves"
            )));
        };
        let _ = writeln!(lines, "{name}: {}", STANDARD_NO_PAD.encode(value));
        return Ok(());
    }
    let value = String::from_utf8_lossy(value);
    if value.contains(['\n', '\r', '\0']) {
        return Err(OptionsError(format!("metadata {name}: its value has a line end or NUL in it")));
    }
    let _ = writeln!(lines, "{name}: {value}");
    Ok(())
}

/// The bytes of a value whose name ends in `-bin`, as users write it; `None` if it is not written so. No base64 has a `:`.
fn binary(value: &[u8]) -> Option<Vec<u8>> {
    if let Some(raw) = value.strip_prefix(b"raw:") {
        return Some(raw.to_vec());
    }
    let Some(digits) = value.strip_prefix(b"hex:") else { return status::binary(value) };
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    digits.chunks(2).map(pair).collect()
}

/// The path of a method's calls.
pub(crate) fn path(method: &MethodDescriptor) -> String {
    format!("/{}/{}", method.parent_service().full_name(), method.name())
}

/// The value of `grpc-timeout` for this many nanoseconds: in the finest unit that needs no more than eight digits,
/// rounded up.
pub(crate) fn timeout(ns: u64) -> String {
    let units = [(1, 'n'), (1_000, 'u'), (1_000_000, 'm'), (1_000_000_000, 'S'), (60_000_000_000, 'M')];
    let fits =
        units.into_iter().map(|(unit, name)| (ns.div_ceil(unit), name)).find(|(value, _)| *value <= MOST_TIMEOUT);
    let (value, name) = fits.unwrap_or((MOST_TIMEOUT, 'M'));
    format!("{value}{name}")
}

/// Splits a call's bytes into its head and its messages.
#[inline]
pub(crate) fn parts(call: &[u8]) -> (&[u8], &[u8]) {
    let Some((length, rest)) = call.split_first_chunk() else { return (&[], &[]) };
    rest.split_at_checked(u32::from_be_bytes(*length) as usize).unwrap_or((&[], &[]))
}

/// The fields of a head.
pub(crate) fn fields(head: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    head.split(|byte| *byte == b'\n').filter_map(|line| {
        let at = line.windows(2).position(|two| two == b": ")?;
        Some((line.get(..at)?, line.get(at + 2..)?))
    })
}

/// Writes heads as header blocks of one connection. The block of a repeated head is copied.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    head: Vec<u8>,
    block: Vec<u8>,
    /// The number of changes to the table when the block was complete; `None` if the block itself changed the table.
    changes: Option<u64>,
}

impl Writer {
    /// The header block of a head, which may be sent once.
    #[inline]
    pub(crate) fn write(&mut self, head: &[u8], encoder: &mut impl Sections) -> &[u8] {
        let again = self.head == head;
        if !again || self.changes != Some(encoder.changes()) {
            self.write_anew(head, again, encoder);
        }
        &self.block
    }

    /// Writes the block of a head. Fields of every call enter the table; metadata does only when its head is repeated.
    fn write_anew(&mut self, head: &[u8], again: bool, encoder: &mut impl Sections) {
        let before = encoder.changes();
        self.block.clear();
        encoder.begin(&mut self.block);
        for (name, value) in fields(head) {
            let is_own = matches!(
                name,
                b":method" | b":scheme" | b":path" | b":authority" | b"te" | b"content-type" | b"user-agent"
            ) || name.starts_with(b"grpc-");
            encoder.field(name, value, is_own || again, &mut self.block);
        }
        self.changes = (encoder.changes() == before).then_some(before);
        self.head.clear();
        self.head.extend_from_slice(head);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_has_eight_digits_at_most() {
        assert_eq!(timeout(1), "1n");
        assert_eq!(timeout(99_999_999), "99999999n");
        assert_eq!(timeout(100_000_001), "100001u");
        assert_eq!(timeout(10_000_000_000), "10000000u");
        assert_eq!(timeout(u64::MAX), "99999999M");
        assert_eq!(timeout(200_000_000_000), "200000m");
    }

    #[test]
    fn heads_come_apart_again() {
        let target = brunt_plan::target::Url::parse("grpc://shop.example:50051/").unwrap().target;
        let metadata = [("X-User".to_owned(), "a: b".to_owned()), ("Host".to_owned(), "other".to_owned())];
        let envelope = Envelope::new(&target, &metadata, Some(Compression::Gzip), Some(1_000_000_000)).unwrap();
        let mut call = Vec::new();
        envelope.write_head("/shop.Cart/Add", "x-own: 1\n", &mut call);
        call.extend_from_slice(b"body");
        let (head, body) = parts(&call);
        assert_eq!(body, b"body");
        let fields: Vec<_> =
            fields(head).map(|(n, v)| (std::str::from_utf8(n).unwrap(), std::str::from_utf8(v).unwrap())).collect();
        assert_eq!(
            fields,
            [
                (":method", "POST"),
                (":scheme", "http"),
                (":path", "/shop.Cart/Add"),
                (":authority", "other"),
                ("te", "trailers"),
                ("content-type", "application/grpc"),
                ("user-agent", concat!("grpc-brunt/", env!("CARGO_PKG_VERSION"))),
                ("grpc-accept-encoding", "gzip"),
                ("grpc-encoding", "gzip"),
                ("grpc-timeout", "1000000u"),
                ("x-user", "a: b"),
                ("x-own", "1"),
            ]
        );
        assert_eq!(parts(b"\0\0\0\x09abc"), (&b""[..], &b""[..]));
    }

    #[test]
    fn a_line_more_changes_nothing_else_of_a_call() {
        let target = brunt_plan::target::Url::parse("grpc://shop.example/").unwrap().target;
        let (mut call, mut with) = (Vec::new(), b"what was there before".to_vec());
        Envelope::new(&target, &[], None, None).unwrap().write_head("/shop.Cart/Add", "", &mut call);
        call.extend_from_slice(b"body");
        add_line(&call, "traceparent", &"00-a-b-01", &mut with);
        let ((before, _), (head, body)) = (parts(&call), parts(&with));
        assert_eq!(body, b"body");
        let mut expected: Vec<_> = fields(before).collect();
        expected.push((b"traceparent", b"00-a-b-01"));
        assert_eq!(fields(head).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn metadata_that_is_not_is_refused_without_its_value() {
        let error =
            |name: &str, value: &str| add_metadata(name, value.as_bytes(), &mut String::new()).unwrap_err().to_string();
        assert!(error("grpc-timeout", "1S").contains("the timeout gives it"));
        assert!(error("te", "x").contains("gRPC's own"));
        let binary = error("key-bin", "hunter2!");
        assert!(binary.contains("base64") && !binary.contains("hunter2"), "{binary}");
        assert!(error("key-bin", "hex:0").contains("hexadecimal"));
        for (value, sent) in [("AQI", "AQI"), ("AQI=", "AQI"), ("hex:0102", "AQI"), ("raw:AQI", "QVFJ"), ("raw:", "")] {
            let mut lines = String::new();
            add_metadata("key-bin", value.as_bytes(), &mut lines).unwrap();
            assert_eq!(lines, format!("key-bin: {sent}\n"), "{value}");
        }
    }
}
