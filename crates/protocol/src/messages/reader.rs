//! A pure, bounded reader that cuts bodies into messages.

use std::sync::Arc;

use super::{Framing, KeptMessage};
use crate::client::Malformed;

/// Limit on a message with the name and the id of its event, in bytes.
pub const MOST_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
/// Memory that a message keeps when the next begins, in bytes.
const KEPT_BYTES: usize = 64 * 1024;
/// The longest name of a field that means anything: `event`, `retry`.
const LONGEST_FIELD: usize = 5;
/// A byte order mark in UTF-8.
pub(super) const MARK: &[u8] = b"\xef\xbb\xbf";

/// Which field a line of an event has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Event,
    Data,
    Id,
    /// `retry`, a comment, or an unknown field.
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

/// How far the message is that bytes are read of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No data yet.
    Empty,
    /// An event with data, even if that is empty.
    Data,
    /// Handed out: the next bytes begin another message.
    Given,
}

/// Where in an event stream the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// In the optional byte order mark, after this many of its bytes.
    Mark(usize),
    /// At the beginning of a line.
    LineStart,
    /// In a field's name, after this many bytes; those beyond [`LONGEST_FIELD`] are not kept.
    Name(usize),
    /// After a field's colon, where one space is dropped.
    Colon(Field),
    /// In a field's value.
    Value(Field),
}

/// Cuts bodies into messages, one body after the other.
///
/// ```
/// use brunt_protocol::messages::{Framing, MessageReader};
///
/// let mut reader = MessageReader::new(Framing::Sse, Some((*b"[DONE]").into()), true);
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
pub struct MessageReader {
    framing: Framing,
    /// The data of the message that ends a stream.
    last: Option<Arc<[u8]>>,
    keep: bool,
    at: At,
    name: [u8; LONGEST_FIELD],
    /// Whether the last line ended in CR, so that an LF right behind it belongs to its end.
    after_cr: bool,
    stage: Stage,
    /// The bytes of the message so far.
    size: usize,
    /// The message so far, as much of it as is needed.
    message: KeptMessage,
    /// The id that a line under way gives.
    pub(super) id: Vec<u8>,
    has_ended: bool,
}

impl MessageReader {
    /// A reader of bodies in this framing. A message with the data `last` ends the stream and does not count. With
    /// `keep`, the reader keeps each message for [`MessageReader::message`].
    pub fn new(framing: Framing, last: Option<Arc<[u8]>>, keep: bool) -> Self {
        Self {
            framing,
            last,
            keep,
            at: At::Mark(0),
            name: [0; LONGEST_FIELD],
            after_cr: false,
            stage: Stage::Empty,
            size: 0,
            message: KeptMessage::default(),
            id: Vec::new(),
            has_ended: false,
        }
    }

    /// Its framing.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Begins another body.
    pub fn begin(&mut self) {
        let message = std::mem::take(&mut self.message);
        *self = Self::new(self.framing, self.last.take(), self.keep);
        self.message = message;
        self.message.id.clear();
        self.clear();
    }

    /// Takes bytes of a body. Returns how many it took up to the end of a message; `None` if it took them all without
    /// reaching one. `ends_chunk` says that the last byte ends a chunk of the protocol below.
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
                self.stage = Stage::Given;
                return Ok(Some(taken));
            }
        }
    }

    /// The message that ended last, where messages are kept, until the next bytes are read.
    pub fn message(&self) -> &KeptMessage {
        &self.message
    }

    /// Whether the stream's last message has come, or none is expected.
    pub fn has_ended(&self) -> bool {
        self.has_ended || self.last.is_none()
    }

    fn ends_stream(&self) -> bool {
        self.last.as_ref().is_some_and(|last| **last == *self.message.data)
    }

    /// Forgets the message.
    fn clear(&mut self) {
        self.stage = Stage::Empty;
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
            // One byte more than `last` has tells a longer message from it.
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
        if self.stage == Stage::Given {
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
            if self.stage == Stage::Given {
                self.clear();
            }
            let end = memchr::memchr(b'\n', rest);
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
            if self.stage == Stage::Given {
                self.clear();
            }
            if let At::Mark(seen) = self.at {
                if MARK.get(seen) == Some(&byte) {
                    self.at = if seen + 1 == MARK.len() { At::LineStart } else { At::Mark(seen + 1) };
                    taken += 1;
                    continue;
                }
                // What looked like a mark is the beginning of an unknown field's name.
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

    /// Takes bytes of a line, of which the first is no line end. Returns how many.
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
                let end = memchr::memchr2(b'\n', b'\r', bytes).unwrap_or(bytes.len());
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
            Field::Data if std::mem::replace(&mut self.stage, Stage::Data) == Stage::Data => self.add_data(b"\n"),
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

    /// Ends a line. Returns whether an event ended with it.
    fn end_line(&mut self) -> Result<bool, Malformed> {
        match std::mem::replace(&mut self.at, At::LineStart) {
            At::Mark(_) | At::LineStart => {
                if self.stage == Stage::Data {
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
        // An id with a NUL is ignored.
        if field == Field::Id && !self.id.contains(&0) {
            std::mem::swap(&mut self.message.id, &mut self.id);
        }
    }
}
