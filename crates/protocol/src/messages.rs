//! Answers that come as messages: how a body is cut into them, for protocols whose bodies are bytes.
//!
//! [`Reader`] is a pure, bounded reader of three framings:
//!
//! - **server-sent events** (the WHATWG HTML standard, section 9.2.6): what `text/event-stream` has, and what the tokens of language
//!   models come in. Lines end in LF, CR or CRLF, a byte order mark may come first, comments and events without data are no messages;
//! - **lines** that end in LF: newline-delimited JSON. Empty lines are no messages;
//! - **chunks**: what the protocol below cuts the body into (chunks of HTTP/1.1, DATA frames of HTTP/2), none of them empty.
//!
//! A client that reads bodies gives each piece to [`Reader::read`], and tells a message by
//! [`Progress::Message`](crate::Progress::Message).

use std::sync::Arc;

use brunt_plan::units;
use serde::{Deserialize, Serialize};

use crate::client::Malformed;
use crate::flags::{Flag, Given, Takes};
use crate::{OptionsError, Started};

/// The most bytes that a message may have, with the name and the id of an event.
pub const MOST_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
/// What a message keeps of its memory once the next begins, in bytes.
const KEPT_BYTES: usize = 64 * 1024;
/// The longest name of a field that means anything: `event`, `retry`.
const LONGEST_FIELD: usize = 5;
/// A byte order mark in UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// How a body is cut into messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Framing {
    /// Server-sent events.
    Sse,
    /// Lines.
    Lines,
    /// What the protocol below cuts it into.
    Chunks,
}

impl Framing {
    /// All there are, by their names.
    pub const NAMED: [(&'static str, Self); 3] = [("sse", Self::Sse), ("lines", Self::Lines), ("chunks", Self::Chunks)];

    /// By its name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(known, _)| *known == name).map(|(_, framing)| *framing)
    }
}

/// The flag `--messages`: answers come as messages, in this framing.
pub const MESSAGES: Flag = Flag::new(
    "messages",
    Takes::OneOf("HOW", &["sse", "lines", "chunks"]),
    "Time each message of an answer: server-sent events (as language models stream tokens), lines, or chunks",
);

/// The flag `--last-message`: a stream without it has ended early.
pub const LAST_MESSAGE: Flag = Flag::new(
    "last-message",
    Takes::Text("TEXT"),
    "The message that ends a stream, such as [DONE]: it does not count, and a stream without it fails as ended_early",
);

/// The flag `--stall-timeout`: the longest gap.
pub const STALL_TIMEOUT: Flag = Flag::new(
    "stall-timeout",
    Takes::Text("D"),
    "The longest gap between messages: a longer one fails as stalled [default: only the call's --timeout]",
)
.checked(is_gap);

fn is_gap(text: &str) -> Result<(), String> {
    gap(text).map(drop)
}

/// The longest gap that the flag [`STALL_TIMEOUT`] asks for, in nanoseconds.
///
/// # Errors
/// When it is no duration above 0.
pub fn stall_timeout(given: &Given) -> Result<Option<u64>, OptionsError> {
    let stall = given.text("stall-timeout").map(gap).transpose();
    stall.map_err(|problem| OptionsError(format!("--stall-timeout: {problem}")))
}

fn gap(text: &str) -> Result<u64, String> {
    match units::parse_duration(text) {
        Ok(0) => Err("expected a duration above 0, such as 2s".to_owned()),
        Ok(ns) => Ok(ns),
        Err(error) => Err(error.to_string()),
    }
}

/// How answers come as messages: a part of a protocol's options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Messages {
    /// How a body is cut into them.
    pub framing: Framing,
    /// What the message is that ends a stream, and does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// The longest gap between two, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_ns: Option<u64>,
}

impl Messages {
    /// What the flags [`MESSAGES`], [`LAST_MESSAGE`] and [`STALL_TIMEOUT`] ask for.
    ///
    /// # Errors
    /// When the others are given without the first.
    pub fn given(given: &Given) -> Result<Option<Self>, OptionsError> {
        let Some(framing) = given.text("messages").and_then(Framing::from_name) else {
            for name in ["last-message", "stall-timeout"] {
                if given.has(name) {
                    let problem = format!("--{name} is about answers that come as messages: give --messages as well");
                    return Err(OptionsError(problem));
                }
            }
            return Ok(None);
        };
        let last = given.text("last-message").map(str::to_owned);
        Ok(Some(Self { framing, last, stall_ns: stall_timeout(given)? }))
    }

    /// Checks options that may come from a file.
    ///
    /// # Errors
    /// When no gap would be short enough.
    pub fn check(&self) -> Result<(), OptionsError> {
        match self.stall_ns {
            Some(0) => Err(OptionsError("messages.stall_ns must be above 0; leave it out for no limit".to_owned())),
            _ => Ok(()),
        }
    }

    /// What a call whose answer comes so waits for.
    pub fn started(&self) -> Started {
        Started::Streamed { stall_ns: self.stall_ns.unwrap_or(u64::MAX) }
    }

    /// A reader of such answers. With `keep`, it keeps each message.
    pub fn reader(&self, keep: bool) -> Reader {
        let last = self.last.as_ref().map(|last| Arc::from(last.as_bytes()));
        Reader::new(self.framing, last, keep)
    }
}

/// A message as it was read, where messages are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message {
    /// The name of an event; empty for none, which stands for `message`.
    pub event: Vec<u8>,
    /// Its data: of an event with several data lines, they are joined by LF.
    pub data: Vec<u8>,
    /// The last id that the stream gave, as events keep it.
    pub id: Vec<u8>,
}

/// Which field a line of an event has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Event,
    Data,
    Id,
    /// `retry`, a comment, or one that means nothing.
    Other,
}

impl Field {
    fn named(name: &[u8]) -> Self {
        match name {
            b"event" => Self::Event,
            b"data" => Self::Data,
            b"id" => Self::Id,
            _ => Self::Other,
        }
    }
}

/// Where in an event stream the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// In the byte order mark that may come first, after so many bytes of it.
    Mark(usize),
    /// At the beginning of a line.
    LineStart,
    /// In a field's name, after so many bytes; those beyond [`LONGEST_FIELD`] are not kept.
    Name(usize),
    /// After a field's colon, where one space is dropped.
    Colon(Field),
    /// In a field's value.
    Value(Field),
}

/// Cuts bodies into messages, one body after the other.
///
/// ```
/// use brunt_protocol::messages::{Framing, Reader};
///
/// let mut reader = Reader::new(Framing::Sse, Some((*b"[DONE]").into()), true);
/// let bytes = b"data: one\n\ndata: t";
/// // A message ends with its empty line; what is behind it is given again.
/// assert_eq!(reader.read(bytes, false)?, Some(11));
/// assert_eq!(reader.message().data, b"one");
/// assert_eq!(reader.read(&bytes[11..], false)?, None);
/// assert_eq!(reader.read(b"wo\r\n\r\ndata: [DONE]\n\n", false)?, Some(5));
/// assert_eq!(reader.message().data, b"two");
/// // The last is no message.
/// assert_eq!((reader.read(b"\ndata: [DONE]\n\n", false)?, reader.has_ended()), (None, true));
/// # Ok::<(), brunt_protocol::Malformed>(())
/// ```
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each says something else about the bytes so far")]
pub struct Reader {
    framing: Framing,
    /// The data of the message that ends a stream.
    last: Option<Arc<[u8]>>,
    keep: bool,
    at: At,
    name: [u8; LONGEST_FIELD],
    /// Whether the last line ended in CR, so that an LF right behind it belongs to that.
    after_cr: bool,
    /// Whether the event has data, if an empty one.
    has_data: bool,
    /// The bytes of the message so far.
    size: usize,
    /// The message so far, as much of it as is needed.
    message: Message,
    /// The id that a line under way gives.
    id: Vec<u8>,
    /// Whether the message was given out, and the next bytes begin another.
    is_given: bool,
    has_ended: bool,
}

impl Reader {
    /// A reader of bodies in this framing; the message with the data `last` is no message and ends the stream. With `keep`, it
    /// keeps each message for [`Reader::message`].
    pub fn new(framing: Framing, last: Option<Arc<[u8]>>, keep: bool) -> Self {
        Self {
            framing,
            last,
            keep,
            at: At::Mark(0),
            name: [0; LONGEST_FIELD],
            after_cr: false,
            has_data: false,
            size: 0,
            message: Message::default(),
            id: Vec::new(),
            is_given: false,
            has_ended: false,
        }
    }

    /// How it cuts bodies.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Another body begins.
    pub fn begin(&mut self) {
        let message = std::mem::take(&mut self.message);
        *self = Self::new(self.framing, self.last.take(), self.keep);
        self.message = message;
        self.message.id.clear();
        self.clear();
    }

    /// Takes bytes of a body; how many, up to the end of a message, or none if they were all taken without one ending.
    /// `ends_chunk` says that the protocol below ends a chunk with the last of them.
    ///
    /// # Errors
    /// When a message has more than [`MOST_MESSAGE_BYTES`].
    pub fn read(&mut self, bytes: &[u8], ends_chunk: bool) -> Result<Option<usize>, Malformed> {
        let mut taken = 0;
        loop {
            let rest = bytes.get(taken..).unwrap_or(&[]);
            let ended = match self.framing {
                Framing::Sse => self.read_event(rest)?,
                Framing::Lines => self.read_line(rest)?,
                Framing::Chunks => self.read_chunk(rest, ends_chunk)?,
            };
            let Some(ended) = ended else { return Ok(None) };
            taken += ended;
            if self.ends_stream() {
                self.has_ended = true;
                self.clear();
            } else {
                self.is_given = true;
                return Ok(Some(taken));
            }
        }
    }

    /// The message that ended last, where messages are kept, until the next bytes are read.
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// Whether the message that is to be the last has come, or none is.
    pub fn has_ended(&self) -> bool {
        self.has_ended || self.last.is_none()
    }

    fn ends_stream(&self) -> bool {
        self.last.as_ref().is_some_and(|last| **last == *self.message.data)
    }

    /// Forgets the message.
    fn clear(&mut self) {
        self.is_given = false;
        self.has_data = false;
        self.size = 0;
        for part in [&mut self.message.event, &mut self.message.data] {
            part.clear();
            part.shrink_to(KEPT_BYTES);
        }
    }

    /// More of the message.
    fn add_data(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        self.grow(bytes.len())?;
        if self.keep {
            self.message.data.extend_from_slice(bytes);
        } else if let Some(last) = &self.last {
            // One byte more than the last has tells it from that.
            let room = (last.len() + 1).saturating_sub(self.message.data.len());
            self.message.data.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        }
        Ok(())
    }

    fn grow(&mut self, bytes: usize) -> Result<(), Malformed> {
        self.size += bytes;
        if self.size > MOST_MESSAGE_BYTES {
            return Err(Malformed::because("a message of more than 16 MiB"));
        }
        Ok(())
    }

    fn read_chunk(&mut self, bytes: &[u8], ends: bool) -> Result<Option<usize>, Malformed> {
        if bytes.is_empty() {
            return Ok(None);
        }
        if self.is_given {
            self.clear();
        }
        self.add_data(bytes)?;
        Ok(ends.then_some(bytes.len()))
    }

    fn read_line(&mut self, bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        let mut taken = 0;
        loop {
            let rest = bytes.get(taken..).unwrap_or(&[]);
            if rest.is_empty() {
                return Ok(None);
            }
            if self.is_given {
                self.clear();
            }
            let end = rest.iter().position(|byte| *byte == b'\n');
            let text = rest.get(..end.unwrap_or(rest.len())).unwrap_or(rest);
            // A CR before the LF is part of the line's end; it is only known with the next byte.
            if std::mem::take(&mut self.after_cr) && !(text.is_empty() && end.is_some()) {
                self.add_data(b"\r")?;
            }
            let text = match text.strip_suffix(b"\r") {
                Some(before) => {
                    self.after_cr = end.is_none();
                    before
                }
                None => text,
            };
            self.add_data(text)?;
            let Some(end) = end else { return Ok(None) };
            taken += end + 1;
            if self.size > 0 {
                return Ok(Some(taken));
            }
        }
    }

    fn read_event(&mut self, bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        let mut taken = 0;
        while let Some(&byte) = bytes.get(taken) {
            if std::mem::take(&mut self.after_cr) && byte == b'\n' {
                taken += 1;
                continue;
            }
            if self.is_given {
                self.clear();
            }
            if let At::Mark(seen) = self.at {
                if MARK.get(seen) == Some(&byte) {
                    self.at = if seen + 1 == MARK.len() { At::LineStart } else { At::Mark(seen + 1) };
                    taken += 1;
                    continue;
                }
                // What looked like one is the beginning of a name that means nothing.
                self.at = if seen == 0 { At::LineStart } else { At::Name(LONGEST_FIELD + 1) };
            }
            if matches!(byte, b'\n' | b'\r') {
                taken += 1;
                self.after_cr = byte == b'\r';
                if self.end_line()? {
                    return Ok(Some(taken));
                }
                continue;
            }
            taken += self.read_in_line(bytes.get(taken..).unwrap_or(&[]), byte)?;
        }
        Ok(None)
    }

    /// Takes bytes of a line, the first of which ends none; how many.
    fn read_in_line(&mut self, bytes: &[u8], first: u8) -> Result<usize, Malformed> {
        match self.at {
            At::Mark(_) | At::LineStart | At::Name(_) => {
                let length = if let At::Name(length) = self.at { length } else { 0 };
                self.at = if first == b':' {
                    At::Colon(Field::named(self.name.get(..length).unwrap_or(b"")))
                } else {
                    if let Some(place) = self.name.get_mut(length) {
                        *place = first;
                    }
                    At::Name((length + 1).min(LONGEST_FIELD + 1))
                };
                Ok(1)
            }
            At::Colon(field) => {
                self.begin_value(field)?;
                Ok(usize::from(first == b' '))
            }
            At::Value(field) => {
                let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(bytes.len());
                let value = bytes.get(..end).unwrap_or(bytes);
                match field {
                    Field::Data => self.add_data(value)?,
                    Field::Event => {
                        self.grow(value.len())?;
                        if self.keep {
                            self.message.event.extend_from_slice(value);
                        }
                    }
                    Field::Id => {
                        self.grow(value.len())?;
                        if self.keep {
                            self.id.extend_from_slice(value);
                        }
                    }
                    Field::Other => {}
                }
                Ok(end)
            }
        }
    }

    /// A field's value begins.
    fn begin_value(&mut self, field: Field) -> Result<(), Malformed> {
        self.at = At::Value(field);
        match field {
            // Lines of data are joined by LF.
            Field::Data if std::mem::replace(&mut self.has_data, true) => self.add_data(b"\n"),
            Field::Event => {
                self.message.event.clear();
                Ok(())
            }
            Field::Id => {
                self.id.clear();
                Ok(())
            }
            Field::Data | Field::Other => Ok(()),
        }
    }

    /// A line has ended; whether an event has with it.
    fn end_line(&mut self) -> Result<bool, Malformed> {
        match std::mem::replace(&mut self.at, At::LineStart) {
            At::Mark(_) | At::LineStart => {
                if self.has_data {
                    return Ok(true);
                }
                self.clear();
            }
            // A line without a colon is a field without a value.
            At::Name(length) => {
                let field = Field::named(self.name.get(..length).unwrap_or(b""));
                self.begin_value(field)?;
                self.end_value(field);
            }
            At::Colon(field) => {
                self.begin_value(field)?;
                self.end_value(field);
            }
            At::Value(field) => self.end_value(field),
        }
        self.at = At::LineStart;
        Ok(false)
    }

    fn end_value(&mut self, field: Field) {
        // An id with a NUL in it is none.
        if field == Field::Id && !self.id.contains(&0) {
            std::mem::swap(&mut self.message.id, &mut self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The messages of a body that comes in these pieces, and whether the stream has ended.
    fn read(reader: &mut Reader, pieces: &[&[u8]]) -> (Vec<Message>, bool) {
        let mut messages = Vec::new();
        reader.begin();
        for piece in pieces {
            let mut rest = *piece;
            while !rest.is_empty() {
                match reader.read(rest, false).unwrap() {
                    Some(taken) => {
                        messages.push(reader.message().clone());
                        rest = &rest[taken..];
                    }
                    None => break,
                }
            }
        }
        (messages, reader.has_ended())
    }

    fn events(body: &[u8]) -> Vec<Message> {
        read(&mut Reader::new(Framing::Sse, None, true), &[body]).0
    }

    fn event(event: &str, data: &str, id: &str) -> Message {
        Message { event: event.into(), data: data.into(), id: id.into() }
    }

    /// The standard's own way, of a whole body: decode, split into lines, interpret line by line.
    fn by_the_standard(body: &[u8]) -> Vec<Message> {
        let body = body.strip_prefix(MARK).unwrap_or(body);
        let mut lines: Vec<Vec<u8>> = vec![Vec::new()];
        let mut bytes = body.iter().peekable();
        while let Some(&byte) = bytes.next() {
            if byte == b'\r' {
                bytes.next_if(|next| **next == b'\n');
            }
            if matches!(byte, b'\r' | b'\n') { lines.push(Vec::new()) } else { lines.last_mut().unwrap().push(byte) }
        }
        // A line without an end is discarded.
        lines.pop();
        let (mut messages, mut data, mut name, mut id) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for line in lines {
            if line.is_empty() {
                if !data.is_empty() {
                    data.pop();
                    messages.push(Message { event: name.clone(), data: data.clone(), id: id.clone() });
                }
                (data, name) = (Vec::new(), Vec::new());
                continue;
            }
            let colon = line.iter().position(|byte| *byte == b':');
            let value = colon.map_or(&[][..], |colon| &line[colon + 1..]);
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match &line[..colon.unwrap_or(line.len())] {
                b"data" => {
                    data.extend_from_slice(value);
                    data.push(b'\n');
                }
                b"event" => name = value.to_vec(),
                b"id" if !value.contains(&0) => id = value.to_vec(),
                _ => {}
            }
        }
        messages
    }

    #[test]
    fn the_standards_examples_are_read() {
        assert_eq!(events(b"data: YHOO\ndata: +2\ndata: 10\n\n"), [event("", "YHOO\n+2\n10", "")]);
        let body = b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n";
        assert_eq!(events(body), [event("", "first event", "1"), event("", "second event", "")]);
        assert_eq!(events(b"data\n\ndata\ndata\n\ndata:"), [event("", "", ""), event("", "\n", "")]);
        assert_eq!(events(b"data:test\n\ndata: test\n\n"), [event("", "test", ""), event("", "test", "")]);
    }

    #[test]
    fn marks_comments_ends_and_odd_fields_are_no_messages() {
        assert_eq!(
            events(b"\xef\xbb\xbfevent: a\rdata: 1\r\r:\r\n\r\nevent: b\r\n\r\ndata: 2\r\n\r\n"),
            [event("a", "1", ""), event("", "2", "")]
        );
        assert_eq!(
            events(b"\xef\xbbdata: 1\n\ndatas: x\n\nretry: 10\n\nid: a\0b\n\ndata: 3\n\n"),
            [event("", "3", "")]
        );
        assert_eq!(events(b"id: 7\n\ndata: x\n\ndata: y\n\n"), [event("", "x", "7"), event("", "y", "7")]);
    }

    #[test]
    fn lines_are_messages_but_for_empty_ones() {
        let mut reader = Reader::new(Framing::Lines, None, true);
        let (messages, _) = read(&mut reader, &[b"{\"a\":1}\n\n\r\nx\r", b"\nz\r", b"y\nrest"]);
        let data: Vec<_> = messages.iter().map(|message| String::from_utf8_lossy(&message.data).into_owned()).collect();
        assert_eq!(data, ["{\"a\":1}", "x", "z\ry"]);
    }

    #[test]
    fn a_chunk_is_a_message() {
        let mut reader = Reader::new(Framing::Chunks, None, true);
        assert_eq!(reader.read(b"ab", false), Ok(None));
        assert_eq!(reader.read(b"c", true), Ok(Some(1)));
        assert_eq!(reader.message().data, b"abc");
        assert_eq!((reader.read(b"", true), reader.read(b"d", true)), (Ok(None), Ok(Some(1))));
        assert_eq!(reader.message().data, b"d");
    }

    #[test]
    fn the_last_message_ends_the_stream_and_does_not_count() {
        for keep in [true, false] {
            let mut reader = Reader::new(Framing::Sse, Some((*b"[DONE]").into()), keep);
            let whole: &[u8] = b"data: [DONE\n\ndata: [DONE]]\n\ndata: [DONE]\n\n";
            let (messages, has_ended) = read(&mut reader, &[whole]);
            assert_eq!((messages.len(), has_ended), (2, true));
            assert!(!read(&mut reader, &[b"data: [DONE]\n", b": and then"]).1, "the next body is another");
            let mut lines = Reader::new(Framing::Lines, Some((*b"end").into()), keep);
            assert_eq!((read(&mut lines, &[b"a\nend\n"]).0.len(), lines.has_ended()), (1, true));
        }
        assert!(Reader::new(Framing::Sse, None, false).has_ended(), "nothing says how it is to end");
    }

    #[test]
    fn a_message_without_end_is_refused_and_takes_no_memory() {
        for (framing, begin) in
            [(Framing::Sse, "data: "), (Framing::Sse, "id: "), (Framing::Lines, ""), (Framing::Chunks, "")]
        {
            let mut reader = Reader::new(framing, Some((*b"[DONE]").into()), false);
            assert_eq!(reader.read(begin.as_bytes(), false), Ok(None));
            let piece = vec![b'x'; 1 << 20];
            let refused = (0..20).find_map(|_| reader.read(&piece, false).err());
            assert_eq!(refused.map(|error| error.0.into_owned()).as_deref(), Some("a message of more than 16 MiB"));
            assert!(reader.message().data.capacity() < 64 && reader.id.capacity() < 64);
        }
        // What is thrown away need not end.
        let mut reader = Reader::new(Framing::Sse, None, true);
        let piece = vec![b':'; 1 << 20];
        assert!((0..20).all(|_| reader.read(&piece, false) == Ok(None)));
    }

    #[test]
    fn options_come_from_flags_and_only_with_messages() {
        use crate::flags::FlagValue;

        let mut given = Given::default();
        assert_eq!(Messages::given(&given), Ok(None));
        given.push("stall-timeout", FlagValue::Text("1.5s".to_owned()));
        assert!(Messages::given(&given).unwrap_err().0.contains("give --messages"));
        given.push("messages", FlagValue::Text("sse".to_owned()));
        let messages = Messages::given(&given).unwrap().unwrap();
        assert_eq!(
            (messages.framing, messages.started()),
            (Framing::Sse, Started::Streamed { stall_ns: 1_500_000_000 })
        );
        assert!(Messages { stall_ns: Some(0), ..messages }.check().is_err());
        assert!(is_gap("0s").is_err() && is_gap("soon").is_err());
    }

    /// Bodies of what event streams are made of.
    fn bodies() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop::sample::select(vec![
            "data: x",
            "data",
            "data:",
            "event: e",
            "id: 1",
            "id",
            ": note",
            "\n",
            "\r",
            "\r\n",
            "\n\n",
            "\r\n\r\n",
            " ",
            ":",
            "\0",
            "[DONE]",
            "retry: 5",
            "\u{feff}",
            "eventual: y",
            "data: ü",
        ]);
        prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat().into_bytes())
    }

    proptest! {
        #[test]
        fn events_are_what_the_standard_says(body in bodies()) {
            prop_assert_eq!(events(&body), by_the_standard(&body));
        }

        #[test]
        fn any_bytes_are_what_the_standard_says(body in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(events(&body), by_the_standard(&body));
        }

        #[test]
        fn every_split_means_the_same(body in bodies(), framing in 0..2_usize, keep in any::<bool>()) {
            let framing = Framing::NAMED[framing].1;
            let mut reader = Reader::new(framing, Some((*b"[DONE]").into()), keep);
            let (whole, ended) = read(&mut reader, &[&body]);
            for cut in 0..=body.len() {
                let (messages, has_ended) = read(&mut reader, &[&body[..cut], &body[cut..]]);
                prop_assert_eq!(&messages, &whole);
                prop_assert_eq!(has_ended, ended);
            }
            let single: Vec<_> = body.chunks(1).collect();
            prop_assert_eq!(&read(&mut reader, &single).0, &whole);
        }

        #[test]
        fn as_many_are_read_without_keeping_them(body in bodies()) {
            let count = |keep| read(&mut Reader::new(Framing::Sse, Some((*b"x").into()), keep), &[&body]).0.len();
            prop_assert_eq!(count(true), count(false));
        }
    }
}
