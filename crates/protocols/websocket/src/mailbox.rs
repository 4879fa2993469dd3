//! What a virtual user's connection has received: the messages that nobody has read yet, and the last answer.

use std::borrow::Cow;
use std::collections::VecDeque;

use brunt_protocol::AnswerParts;

/// The most messages that wait for somebody to receive them; the oldest is forgotten for one more.
const MOST_WAITING: usize = 1000;
/// The same in bytes, as far as it is more than one message.
const MOST_WAITING_BYTES: usize = 1 << 20;

/// The head of a text message's parts.
pub(super) const TEXT_HEAD: &[u8] = b"text message";
const BINARY_HEAD: &[u8] = b"binary message";

/// What a call asks for, in its hint.
pub(super) mod hint {
    /// The handshake; the message's bytes are its request, as far as the key.
    pub(crate) const CONNECT: u32 = 1;
    /// A text message is sent.
    pub(crate) const TEXT: u32 = 2;
    /// A binary message is sent.
    pub(crate) const BINARY: u32 = 4;
    /// The next message is waited for.
    pub(crate) const RECEIVE: u32 = 8;
    /// With `RECEIVE`: one that comes from now on.
    pub(crate) const NEW: u32 = 16;
    /// The last message that was received is put back for others.
    pub(crate) const PUT_BACK: u32 = 32;
    /// A Close frame with the message's bytes is sent, and the one that answers it waited for.
    pub(crate) const CLOSE: u32 = 64;
}

/// A message that came.
#[derive(Debug, Default)]
struct ReceivedMessage {
    text: bool,
    body: Vec<u8>,
}

/// The messages of one connection, and the answer of its last call.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    /// The call in flight waits for a message.
    waits: bool,
    /// The call in flight has sent something: what comes for it after its timeout would be taken for the next one's.
    has_sent: bool,
    /// Messages that nobody has received, oldest first.
    inbox: VecDeque<ReceivedMessage>,
    inbox_bytes: usize,
    /// What the last call was answered with.
    head: Cow<'static, [u8]>,
    last: ReceivedMessage,
}

impl Mailbox {
    /// A call begins.
    pub(super) fn begin(&mut self, puts_back: bool, sends: bool) {
        self.head = Cow::Borrowed(&[]);
        self.has_sent = sends;
        let last = std::mem::take(&mut self.last);
        if puts_back {
            self.put(last);
        }
    }

    /// Gives the oldest message not yet received to the call in flight; false if the mailbox is empty.
    pub(super) fn take(&mut self) -> bool {
        match self.pop() {
            Some(message) => {
                self.give(message);
                true
            }
            None => false,
        }
    }

    /// The call in flight waits for the next message.
    pub(super) fn wait(&mut self) {
        self.waits = true;
    }

    /// Whether the call in flight waits for a message.
    pub(super) fn waits(&self) -> bool {
        self.waits
    }

    /// A message came: true if it answers the call in flight; otherwise it is kept.
    pub(super) fn receive(&mut self, text: bool, body: &[u8]) -> bool {
        let message = ReceivedMessage { text, body: body.to_vec() };
        if std::mem::take(&mut self.waits) {
            self.give(message);
            return true;
        }
        self.put(message);
        false
    }

    /// The handshake was answered with this head.
    pub(super) fn shake_hands(&mut self, head: &[u8]) {
        self.head = Cow::Owned(head.to_vec());
        self.last = ReceivedMessage::default();
    }

    /// Nobody waits any more. True if nothing can come that belongs to the call that did.
    pub(super) fn give_up(&mut self) -> bool {
        std::mem::take(&mut self.waits) && !self.has_sent
    }

    /// The last answer.
    pub(super) fn parts(&self) -> AnswerParts<'_> {
        AnswerParts { head: &self.head, body: &self.last.body }
    }

    fn put(&mut self, message: ReceivedMessage) {
        self.inbox_bytes += message.body.len();
        self.inbox.push_back(message);
        while self.inbox.len() > MOST_WAITING || self.inbox.len() > 1 && self.inbox_bytes > MOST_WAITING_BYTES {
            self.pop();
        }
    }

    fn pop(&mut self) -> Option<ReceivedMessage> {
        let message = self.inbox.pop_front()?;
        self.inbox_bytes -= message.body.len();
        Some(message)
    }

    fn give(&mut self, message: ReceivedMessage) {
        self.head = Cow::Borrowed(if message.text { TEXT_HEAD } else { BINARY_HEAD });
        self.last = message;
    }
}
