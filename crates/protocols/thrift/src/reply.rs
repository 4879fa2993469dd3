//! Reads answers, in whatever pieces they come: checks them token by token, and builds only the values that are needed.

use super::value::WireType;
use super::wire::{FieldHead, MOST_NESTED, MessageHead, MessageKind, WireProtocol};
use brunt_protocol::Malformed;

/// How messages follow each other (`thrift-rpc.md`, "Framed vs. unframed transport").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyFraming {
    /// Each message has its length before it, in four bytes.
    Framed,
    /// Each message ends where its struct ends.
    Unframed,
}

/// The most bytes of an exception that are kept for its message.
const MOST_EXCEPTION_BYTES: usize = 16 * 1024;

/// Why an answer cannot be read on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The answer breaks the grammar.
    Malformed(Malformed),
    /// The answer is longer than allowed, or announces that it will be.
    Oversize,
}

impl From<Malformed> for Fault {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

/// A complete answer, with the first field of its struct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// The kind of the message.
    pub kind: MessageKind,
    /// The sequence id.
    pub sequence: i32,
    /// The first field of its struct.
    pub field: Option<(i16, WireType)>,
    /// The number of fields in its struct.
    pub fields: u32,
}

/// The part of an answer that is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The length before the message.
    Frame,
    /// A message's head.
    Head,
    /// The message's struct.
    Body,
}

/// An unfinished container or struct.
#[derive(Debug, Clone, Copy)]
enum Level {
    Struct {
        last: i16,
    },
    Items {
        element: WireType,
        left: u32,
    },
    /// Keys and values in turn: a value comes next where an odd number is left.
    Pairs {
        key: WireType,
        value: WireType,
        left: u64,
    },
}

/// Reads successive answers.
#[derive(Debug)]
pub struct ReplyReader<W> {
    wire: std::marker::PhantomData<W>,
    framing: ReplyFraming,
    /// The most bytes of one message.
    limit: u32,
    keeps: bool,
    place: Place,
    /// The beginning of an incomplete token.
    partial: Vec<u8>,
    stack: Vec<Level>,
    /// The type of the value whose first token comes next; `None` if a field or an element comes next.
    pending: Option<WireType>,
    /// Bytes of a value that need not be looked at.
    skip: u64,
    /// Bytes of the message that were taken.
    taken: u32,
    /// The most bytes of this message: its frame's length, or the limit.
    end: u32,
    reply: Reply,
    name: Vec<u8>,
    /// The message as it came, if it is kept: on request, or because it is an exception.
    kept: Vec<u8>,
    keeping: bool,
    head_bytes: usize,
}

impl<W: WireProtocol> ReplyReader<W> {
    /// A reader of messages of at most `limit` bytes. With `keeps`, each is kept until the next one begins.
    pub fn new(framing: ReplyFraming, limit: u32, keeps: bool) -> Self {
        let reply = Reply { kind: MessageKind::Reply, sequence: 0, field: None, fields: 0 };
        let mut reader = Self {
            wire: std::marker::PhantomData,
            framing,
            limit,
            keeps,
            place: Place::Frame,
            partial: Vec::new(),
            stack: Vec::new(),
            pending: None,
            skip: 0,
            taken: 0,
            end: limit,
            reply,
            name: Vec::new(),
            kept: Vec::new(),
            keeping: keeps,
            head_bytes: 0,
        };
        reader.begin();
        reader
    }

    /// The method's name in the answer that was read last.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Head and struct of the newest answer, as they came. Empty unless answers are kept or it was an exception; of a
    /// long exception only the beginning is kept.
    pub fn kept(&self) -> (&[u8], &[u8]) {
        self.kept.split_at_checked(self.head_bytes).unwrap_or((&[], &[]))
    }

    /// Takes bytes. Returns how many it took, and the answer that they completed.
    ///
    /// # Errors
    /// When the bytes break the grammar or the limit. The bytes after that have no meaning.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(usize, Option<Reply>), Fault> {
        let mut at = 0;
        loop {
            self.advance()?;
            if self.place == Place::Body && self.stack.is_empty() && self.skip == 0 && self.pending.is_none() {
                return Ok((at, Some(self.complete()?)));
            }
            let rest = self.window(bytes.get(at..).unwrap_or(&[]));
            if rest.is_empty() {
                self.expect_more()?;
                return Ok((at, None));
            }
            at += if self.skip > 0 {
                self.skip_over(rest)
            } else if self.partial.is_empty() {
                self.token(rest)?
            } else {
                self.token_in_pieces(rest)?
            };
        }
    }

    /// The part of `rest` that belongs to this message.
    fn window<'a>(&self, rest: &'a [u8]) -> &'a [u8] {
        if self.place == Place::Frame {
            return rest;
        }
        let left = (self.end as usize).saturating_sub(self.taken as usize + self.partial.len());
        rest.get(..left).unwrap_or(rest)
    }

    /// Checks that the message may have more bytes.
    fn expect_more(&self) -> Result<(), Fault> {
        if self.place == Place::Frame || (self.taken as usize + self.partial.len()) < self.end as usize {
            return Ok(());
        }
        Err(self.beyond("a frame that ends within its message"))
    }

    fn beyond(&self, in_frame: &'static str) -> Fault {
        match self.framing {
            ReplyFraming::Framed => Malformed::because(in_frame).into(),
            ReplyFraming::Unframed => Fault::Oversize,
        }
    }

    fn skip_over(&mut self, rest: &[u8]) -> usize {
        let passed = rest.get(..usize::try_from(self.skip).unwrap_or(usize::MAX)).unwrap_or(rest);
        self.skip -= passed.len() as u64;
        self.passed(passed);
        passed.len()
    }

    /// Counts bytes of the message, and keeps them where wanted.
    #[inline]
    fn passed(&mut self, bytes: &[u8]) {
        self.taken += bytes.len() as u32;
        if self.keeping {
            let most = if self.keeps { self.limit as usize } else { MOST_EXCEPTION_BYTES };
            let room = most.saturating_sub(self.kept.len());
            self.kept.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        }
    }

    /// Reads a token from the beginning of `rest`, or keeps the beginning of an incomplete one.
    #[inline]
    fn token(&mut self, rest: &[u8]) -> Result<usize, Fault> {
        let Some(taken) = self.step(rest)? else {
            self.partial.extend_from_slice(rest);
            return Ok(rest.len());
        };
        self.token_taken(rest.get(..taken).unwrap_or(rest));
        Ok(taken)
    }

    /// Completes a token whose beginning was kept, with as few bytes as it needs.
    fn token_in_pieces(&mut self, rest: &[u8]) -> Result<usize, Fault> {
        let mut partial = std::mem::take(&mut self.partial);
        for (index, byte) in rest.iter().enumerate() {
            partial.push(*byte);
            if self.step(&partial)?.is_some() {
                self.token_taken(&partial);
                partial.clear();
                self.partial = partial;
                return Ok(index + 1);
            }
        }
        self.partial = partial;
        Ok(rest.len())
    }

    #[inline]
    fn token_taken(&mut self, token: &[u8]) {
        match self.place {
            Place::Frame => self.place = Place::Head,
            Place::Head => {
                self.kept.clear();
                self.keeping = self.keeps;
                self.passed(token);
                self.head_bytes = self.kept.len();
                // An exception is kept, since its message is shown.
                self.keeping |= self.reply.kind == MessageKind::Exception;
                self.place = Place::Body;
            }
            Place::Body => self.passed(token),
        }
    }

    /// Reads one token; `None` if it is incomplete.
    fn step(&mut self, bytes: &[u8]) -> Result<Option<usize>, Fault> {
        match self.place {
            Place::Frame => self.frame(bytes),
            Place::Head => self.head(bytes),
            Place::Body => match self.pending {
                Some(wire_type) => self.value(wire_type, bytes),
                None => self.field(bytes),
            },
        }
    }

    fn frame(&mut self, bytes: &[u8]) -> Result<Option<usize>, Fault> {
        let Some(length) = bytes.first_chunk() else { return Ok(None) };
        match u32::try_from(i32::from_be_bytes(*length)) {
            Err(_) => Err(Malformed::because("no frame: its length is negative").into()),
            Ok(length) if length > self.limit => Err(Fault::Oversize),
            Ok(length) => {
                self.end = length;
                Ok(Some(4))
            }
        }
    }

    fn head(&mut self, bytes: &[u8]) -> Result<Option<usize>, Fault> {
        let Some((MessageHead { kind, name, sequence }, taken)) = W::message(bytes)? else { return Ok(None) };
        self.reply = Reply { kind, sequence, field: None, fields: 0 };
        self.name.clear();
        self.name.extend_from_slice(name);
        self.stack.push(Level::Struct { last: 0 });
        Ok(Some(taken))
    }

    /// Reads the head of a field in the innermost struct, or its end.
    #[inline]
    fn field(&mut self, bytes: &[u8]) -> Result<Option<usize>, Fault> {
        let Some(Level::Struct { last }) = self.stack.last_mut() else { return Ok(None) };
        let Some((head, taken)) = W::field(bytes, *last)? else { return Ok(None) };
        let (id, wire_type, is_bool) = match head {
            FieldHead::Stop => {
                self.stack.pop();
                return Ok(Some(taken));
            }
            FieldHead::Bool { id, .. } => (id, WireType::Bool, true),
            FieldHead::Field { id, wire_type } => (id, wire_type, false),
        };
        *last = id;
        if self.stack.len() == 1 {
            self.reply.field.get_or_insert((id, wire_type));
            self.reply.fields = self.reply.fields.saturating_add(1);
        }
        if !is_bool {
            self.begin_value(wire_type)?;
        }
        Ok(Some(taken))
    }

    /// A value comes next.
    #[inline]
    fn begin_value(&mut self, wire_type: WireType) -> Result<(), Fault> {
        if let Some(size) = W::fixed_size(wire_type) {
            self.skip = u64::from(size);
        } else if wire_type == WireType::Struct {
            self.push(Level::Struct { last: 0 })?;
        } else {
            if matches!(wire_type, WireType::List | WireType::Set | WireType::Map) {
                self.go_deeper()?;
            }
            self.pending = Some(wire_type);
        }
        Ok(())
    }

    fn push(&mut self, level: Level) -> Result<(), Fault> {
        self.go_deeper()?;
        self.stack.push(level);
        Ok(())
    }

    /// Enters a container, even if its content is skipped.
    fn go_deeper(&self) -> Result<(), Fault> {
        if self.stack.len() >= MOST_NESTED {
            return Err(Malformed::because("values nested more than 64 deep").into());
        }
        Ok(())
    }

    /// Reads the first token of a value that has no fixed size.
    fn value(&mut self, wire_type: WireType, bytes: &[u8]) -> Result<Option<usize>, Fault> {
        let taken = match wire_type {
            WireType::I16 => W::i16(bytes)?.map(|(_, taken)| taken),
            WireType::I32 => W::i32(bytes)?.map(|(_, taken)| taken),
            WireType::I64 => W::i64(bytes)?.map(|(_, taken)| taken),
            WireType::Bytes => match W::length(bytes)? {
                Some((length, taken)) => {
                    self.foresee(u64::from(length))?;
                    self.skip = u64::from(length);
                    Some(taken)
                }
                None => None,
            },
            WireType::List | WireType::Set => match W::list(bytes)? {
                Some(((element, length), taken)) => {
                    self.begin_items(element, length)?;
                    Some(taken)
                }
                None => None,
            },
            WireType::Map => match W::map(bytes)? {
                Some(((types, length), taken)) => {
                    self.begin_pairs(types, length)?;
                    Some(taken)
                }
                None => None,
            },
            // These have a fixed size, or no first token.
            WireType::Bool | WireType::I8 | WireType::Double | WireType::Uuid | WireType::Struct => Some(0),
        };
        if taken.is_some() {
            self.pending = None;
        }
        Ok(taken)
    }

    /// Checks that the message may have this many more bytes.
    fn foresee(&self, bytes: u64) -> Result<(), Fault> {
        if u64::from(self.taken) + bytes > u64::from(self.end) {
            return Err(self.beyond("a length beyond the end of its frame"));
        }
        Ok(())
    }

    fn begin_items(&mut self, element: WireType, length: u32) -> Result<(), Fault> {
        self.foresee(u64::from(length))?;
        if let Some(size) = W::fixed_size(element) {
            let bytes = u64::from(size) * u64::from(length);
            self.foresee(bytes)?;
            self.skip = bytes;
            return Ok(());
        }
        self.push(Level::Items { element, left: length })
    }

    fn begin_pairs(&mut self, types: Option<(WireType, WireType)>, length: u32) -> Result<(), Fault> {
        let Some((key, value)) = types else { return Ok(()) };
        self.foresee(2 * u64::from(length))?;
        self.push(Level::Pairs { key, value, left: 2 * u64::from(length) })
    }

    /// Goes on to the next element where a value has ended.
    #[inline]
    fn advance(&mut self) -> Result<(), Fault> {
        while self.skip == 0 && self.pending.is_none() {
            let element = match self.stack.last_mut() {
                None | Some(Level::Struct { .. }) => return Ok(()),
                Some(Level::Items { left: 0, .. } | Level::Pairs { left: 0, .. }) => {
                    self.stack.pop();
                    continue;
                }
                Some(Level::Items { element, left }) => {
                    *left -= 1;
                    *element
                }
                Some(Level::Pairs { key, value, left }) => {
                    *left -= 1;
                    if *left % 2 == 1 { *key } else { *value }
                }
            };
            self.begin_value(element)?;
            if element == WireType::Struct {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The message has ended.
    fn complete(&mut self) -> Result<Reply, Fault> {
        if self.framing == ReplyFraming::Framed && self.taken < self.end {
            return Err(Malformed::because("a frame that is longer than its message").into());
        }
        self.begin();
        Ok(self.reply)
    }

    /// Prepares for the next message. What was kept stays until that one's head has come.
    fn begin(&mut self) {
        self.place = if self.framing == ReplyFraming::Framed { Place::Frame } else { Place::Head };
        self.taken = 0;
        self.end = self.limit;
    }
}

#[cfg(test)]
mod tests;
