//! What becomes of the content of answers: it is counted by whoever reads the socket, kept, searched, or cut into
//! messages.

use crate::expected::Search;
use crate::fields::fields_of;
use crate::hints::Streaming;
use brunt_protocol::messages::{KeptMessage, MessageReader};
use brunt_protocol::{KeptAnswer, Malformed};

/// Limit on a kept body, in bytes.
const MOST_KEPT_BYTES: usize = 64 * 1024 * 1024;

/// Takes the heads of answers and the content of their bodies.
#[derive(Debug, Default)]
pub(super) struct Sink {
    /// The answer as received, where answers are kept or searched.
    kept: Option<Keeping>,
    /// The reader of messages, for answers that come as messages.
    reader: Option<Box<MessageReader>>,
    /// Which answers are streams.
    streaming: Streaming,
    /// Whether the current body is cut into messages.
    is_cutting: bool,
}

/// The answer, kept for scripts and `--once`.
#[derive(Debug, Default)]
struct Keeping {
    answer: KeptAnswer,
    /// Whether nobody wants to see its body.
    discards: bool,
    /// What looks for a text in bodies, if one is expected.
    search: Option<Search>,
}

impl Keeping {
    fn begin(&mut self, head: &[u8]) {
        let KeptAnswer { head: kept, body } = &mut self.answer;
        kept.clear();
        kept.extend_from_slice(head);
        body.clear();
        // The memory of one large answer is not held for ever.
        body.shrink_to(1 << 20);
        if let Some(search) = &mut self.search {
            search.begin();
        }
    }

    fn add(&mut self, body: &[u8]) -> Result<(), Malformed> {
        if let Some(search) = &mut self.search {
            search.take(body);
        }
        if self.discards {
            return Ok(());
        }
        if self.answer.body.len() + body.len() > MOST_KEPT_BYTES {
            return Err(Malformed::because("a body of more than 64 MiB, which a script would have to hold in memory"));
        }
        self.answer.body.extend_from_slice(body);
        Ok(())
    }
}

impl Sink {
    /// Keeps each answer until the next begins.
    pub(super) fn keeping() -> Self {
        Self { kept: Some(Keeping::default()), ..Self::default() }
    }

    /// Looks in bodies for a text that is expected there.
    pub(super) fn search_bodies(&mut self, search: Search) {
        self.kept.get_or_insert_default().search = Some(search);
    }

    /// The search of the body of the answer read last.
    pub(super) fn search(&self) -> Option<&Search> {
        self.kept.as_ref()?.search.as_ref()
    }

    /// Whether the body of the answers that begin from now on is kept, where answers are.
    pub(super) fn keep_body(&mut self, keep: bool) {
        if let Some(kept) = &mut self.kept {
            kept.discards = !keep;
        }
    }

    /// Takes what decides which answers are streams.
    pub(super) fn know_streams(&mut self, streaming: Streaming) {
        self.streaming = streaming;
    }

    /// Cuts the bodies of the answers that begin from now on into messages, if they are streams.
    pub(super) fn cut_body(&mut self, reader: Option<Box<MessageReader>>) {
        self.reader = reader;
    }

    /// The head and the body of the answer read last, without transfer coding; empty unless answers are kept.
    pub(super) fn kept(&self) -> (&[u8], &[u8]) {
        self.kept.as_ref().map_or((&[], &[]), |kept| (&kept.answer.head, &kept.answer.body))
    }

    /// Exchanges the kept answer for `kept`, whose content is dropped.
    pub(super) fn hand_over(&mut self, kept: &mut KeptAnswer) {
        if let Some(keeping) = &mut self.kept {
            std::mem::swap(&mut keeping.answer, kept);
            // The kept part of a body that is cut into messages is one message.
            if self.is_cutting {
                kept.body.clear();
            }
        }
    }

    /// A head has come, of an interim answer (1xx) too.
    #[inline]
    pub(super) fn begin_head(&mut self, head: &[u8]) {
        if let Some(kept) = &mut self.kept {
            kept.begin(head);
        }
    }

    /// The content of an answer with this status follows.
    #[inline]
    pub(super) fn begin_body(&mut self, status: u16) {
        let Some(reader) = &mut self.reader else { return };
        let head = self.kept.as_ref().map_or(&[][..], |kept| &kept.answer.head);
        let kind = fields_of(head).find(|(name, _)| name.eq_ignore_ascii_case(b"content-type")).map(|(_, kind)| kind);
        if self.streaming.is_stream(reader.framing(), status, kind) {
            reader.begin();
            self.is_cutting = true;
        }
    }

    /// Whether content goes nowhere.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        !self.is_cutting && self.kept.is_none()
    }

    /// Takes content; `ends_chunk` if a chunk of the transfer coding ends with it. Returns the number of bytes after
    /// which a message ended.
    #[inline]
    pub(super) fn take(&mut self, content: &[u8], ends_chunk: bool) -> Result<Option<usize>, Malformed> {
        if self.is_cutting {
            return self.cut(content, ends_chunk);
        }
        if let Some(kept) = &mut self.kept {
            kept.add(content)?;
        }
        Ok(None)
    }

    fn cut(&mut self, content: &[u8], ends_chunk: bool) -> Result<Option<usize>, Malformed> {
        let Some(reader) = &mut self.reader else { return Ok(None) };
        let ended = reader.read(content, ends_chunk)?;
        if let (Some(_), Some(kept)) = (ended, &mut self.kept) {
            keep_message(reader.message(), &mut kept.answer.body);
        }
        Ok(ended)
    }

    /// The content is complete. Returns whether it was to come as messages and the last one did not.
    #[inline]
    pub(super) fn end_body(&mut self) -> bool {
        if !std::mem::take(&mut self.is_cutting) {
            return false;
        }
        if let Some(kept) = &mut self.kept {
            kept.answer.body.clear();
        }
        self.reader.as_ref().is_some_and(|reader| !reader.has_ended())
    }
}

/// Writes a message as a body: the first line is its event, the second its id, the rest its data.
pub(crate) fn keep_message(message: &KeptMessage, body: &mut Vec<u8>) {
    body.clear();
    for part in [&message.event, &message.id] {
        body.extend_from_slice(part);
        body.push(b'\n');
    }
    body.extend_from_slice(&message.data);
}
