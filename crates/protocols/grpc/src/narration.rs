//! A connection in words, as `--once` shows it: frames, messages by the names of the schema, statuses with the servers'
//! messages.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use brunt_http2::frame_text::{FrameReader, FrameText as Frame};
use brunt_protocol::{Direction, Narration, Narrator};
use prost_reflect::{DynamicMessage, MessageDescriptor, MethodDescriptor};

use crate::fitting::shown;
use crate::framing::{PREFIX_BYTES, decompressed, messages};
use crate::schema::{Schema, Sources, compile};
use crate::status;

/// The most concurrent streams whose methods are remembered.
const MOST_STREAMS: usize = 1000;
/// The most bytes of a message that are shown, or waited for.
const MOST_BYTES: usize = 64 * 1024;
/// The definitions of Google's error details (`google.rpc`), for schemas without them.
const DETAILS: &str = include_str!("error_details.proto");

/// Both sides of a connection.
pub(crate) struct GrpcNarrator {
    schema: Arc<Schema>,
    sent: FrameReader,
    received: FrameReader,
    /// The streams, each with its method and the received part of a message in each direction.
    streams: BTreeMap<u32, Stream>,
}

struct Stream {
    method: Option<MethodDescriptor>,
    sent: Vec<u8>,
    received: Vec<u8>,
}

impl GrpcNarrator {
    pub(crate) fn new(schema: Arc<Schema>) -> Self {
        Self { schema, sent: FrameReader::default(), received: FrameReader::default(), streams: BTreeMap::new() }
    }

    fn told(&mut self, direction: Direction, frame: Frame) -> Narration {
        let Frame { mut head, body } = frame;
        let Some(id) = stream_of(&head) else { return Narration { head, body } };
        if let Some(path) = field(&head, ":path") {
            if self.streams.len() >= MOST_STREAMS {
                self.streams.pop_first();
            }
            let method = self.schema.method(path).ok();
            self.streams.insert(id, Stream { method, sent: Vec::new(), received: Vec::new() });
        }
        if let Some(words) = status_words(&head, &self.schema) {
            head.push_str(&words);
        }
        let Some(stream) = self.streams.get_mut(&id).filter(|_| head.starts_with("DATA")) else {
            return Narration { head, body };
        };
        let (body, compressions) = stream.told(direction, &body);
        head.push_str(&compressions);
        Narration { head, body }
    }
}

impl Narrator for GrpcNarrator {
    fn narrate(&mut self, direction: Direction, bytes: &[u8]) -> Option<Vec<Narration>> {
        let reader = match direction {
            Direction::Sent => &mut self.sent,
            Direction::Received => &mut self.received,
        };
        let frames = reader.take(bytes);
        Some(frames.into_iter().map(|frame| self.told(direction, frame)).collect())
    }
}

impl Stream {
    /// The messages that these bytes complete, as JSON, or as bytes if their method is unknown; and how they were
    /// compressed.
    fn told(&mut self, direction: Direction, bytes: &[u8]) -> (Vec<u8>, String) {
        let Some(method) = &self.method else { return (bytes.to_vec(), String::new()) };
        let (pending, message_type) = match direction {
            Direction::Sent => (&mut self.sent, method.input()),
            Direction::Received => (&mut self.received, method.output()),
        };
        pending.extend_from_slice(bytes);
        if pending.len() > MOST_BYTES {
            pending.clear();
            return (bytes.to_vec(), String::new());
        }
        let taken: usize = messages(pending).map(|(_, message)| PREFIX_BYTES + message.len()).sum();
        let (words, compressions) = in_words(&message_type, messages(pending));
        pending.drain(..taken);
        (words.into_bytes(), compressions)
    }
}

/// Messages as JSON (several as a list), so that secrets in them are recognised by the names of their fields; and lines
/// that say how they were compressed.
pub(crate) fn in_words<'m>(
    message_type: &MessageDescriptor,
    messages: impl Iterator<Item = (bool, &'m [u8])>,
) -> (String, String) {
    let (mut all, mut compressions) = (Vec::new(), String::new());
    for (is_compressed, message) in messages {
        if is_compressed {
            let _ = write!(compressions, "\n  a message of {} bytes in gzip", message.len());
        }
        let plain = if is_compressed { decompressed(message, MOST_BYTES as u32).ok() } else { Some(message.to_vec()) };
        let words = plain.and_then(|plain| shown(message_type, &plain));
        all.push(
            words.unwrap_or_else(|| format!("\"{} bytes that are no {}\"", message.len(), message_type.full_name())),
        );
    }
    let words = if all.len() > 1 { format!("[{}]", all.join(",\n")) } else { all.concat() };
    (words, compressions)
}

/// The stream that is named in a frame's first line.
fn stream_of(head: &str) -> Option<u32> {
    let first = head.lines().next()?;
    let (_, behind) = first.split_once(", stream ")?;
    behind.split([',', ':']).next()?.parse().ok()
}

fn field<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().skip(1).find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// A status in lines: its name, its message and its details; `None` if there is no status.
pub(crate) fn status_words(head: &str, schema: &Schema) -> Option<String> {
    let number = status::number(field(head, "grpc-status")?.as_bytes())?;
    let mut words = format!("\n  status {number} {}", status::name(number).unwrap_or("without a name"));
    if let Some(message) = field(head, "grpc-message").filter(|message| !message.is_empty()) {
        let _ = write!(words, ": {}", status::message(message.as_bytes()).escape_debug());
    }
    if let Some(value) = field(head, "grpc-status-details-bin") {
        words.push_str(&detail_words(value.as_bytes(), schema));
    }
    Some(words)
}

/// The details of a status, a line each.
fn detail_words(value: &[u8], schema: &Schema) -> String {
    let Some(details) = status::details(value) else { return "\n  details that are no google.rpc.Status".to_owned() };
    let mut words = String::new();
    for detail in details.details {
        let name = detail.type_name();
        let shown = detail_type(name, schema).and_then(|known| shown(&known, &detail.value));
        let shown = shown.unwrap_or_else(|| format!("{} bytes of a type that the schema has not", detail.value.len()));
        let _ = write!(words, "\n  {name} {shown}");
    }
    words
}

/// The type of a detail, if it is known.
fn detail_type(name: &str, schema: &Schema) -> Option<MessageDescriptor> {
    schema.pool().get_message_by_name(name).or_else(|| google_rpc()?.pool().get_message_by_name(name))
}

/// A detail as a message, if its type is known and the bytes fit it.
pub(crate) fn detail(name: &str, value: &[u8], schema: &Schema) -> Option<DynamicMessage> {
    DynamicMessage::decode(detail_type(name, schema)?, value).ok()
}

/// The types of Google's error details.
fn google_rpc() -> Option<&'static Schema> {
    static SCHEMA: OnceLock<Option<Schema>> = OnceLock::new();
    let compiled = SCHEMA.get_or_init(|| {
        let name = "google/rpc/error_details.proto";
        compile(&[name.to_owned()], &Sources::from([(name.to_owned(), DETAILS.to_owned())])).ok()
    });
    compiled.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_told_with_their_details() {
        use prost_reflect::prost::Message as _;
        let schema = google_rpc().expect("the details' own schema compiles");
        // BadRequest { field_violations: [{ field: "sku", description: "no" }] }
        let bad_request = vec![0x0a, 0x09, 0x0a, 0x03, b's', b'k', b'u', 0x12, 0x02, b'n', b'o'];
        let unknown = status::Detail { type_url: "t/shop.Secret".into(), value: vec![1, 2] };
        let known = status::Detail { type_url: "t/google.rpc.BadRequest".into(), value: bad_request };
        let details = status::Details { code: 3, message: String::new(), details: vec![known, unknown] };
        let value = base64::Engine::encode(&base64::engine::general_purpose::STANDARD_NO_PAD, details.encode_to_vec());
        let head = format!(
            "HEADERS, stream 1, the stream's last\ngrpc-status: 3\ngrpc-message: no%20sku\ngrpc-status-details-bin: {value}"
        );
        assert_eq!(
            status_words(&head, schema).unwrap(),
            "\n  status 3 INVALID_ARGUMENT: no sku\
             \n  google.rpc.BadRequest {\"field_violations\":[{\"field\":\"sku\",\"description\":\"no\"}]}\
             \n  shop.Secret 2 bytes of a type that the schema has not"
        );
        assert_eq!(status_words("HEADERS, stream 1\na: b", schema), None);
    }
}
