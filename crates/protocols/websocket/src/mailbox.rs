//! What a virtual user's connection has received: its unread messages, and the answer of the last call.

use std::borrow::Cow;
use std::collections::VecDeque;

use brunt_protocol::AnswerParts;

/// The most unread messages. One more drops the oldest.
const MOST_WAITING: usize = 1000;
/// The most bytes of unread messages. One longer message is kept nevertheless.
const MOST_WAITING_BYTES: usize = 1 << 20;

/// What has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    #[default]
    Binary,
    /// Frames that are not messages, where the user hears of them.
    Ping,
    Pong,
    Close,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Text, Self::Binary, Self::Ping, Self::Pong, Self::Close];

    /// The head of its parts.
    fn head(self) -> &'static [u8] {
        match self {
            Self::Text => b"text message",
            Self::Binary => b"binary message",
            Self::Ping => b"ping",
            Self::Pong => b"pong",
            Self::Close => b"close",
        }
    }

    /// By the head of its parts.
    pub(super) fn from_head(head: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.head() == head)
    }
}

/// The hint of a call: flags that say what it does.
pub(super) mod hint {
    /// Sends the handshake; the message's bytes are its request up to the key.
    pub(crate) const CONNECT: u32 = 1;
    /// Sends a text message.
    pub(crate) const TEXT: u32 = 2;
    /// Sends a binary message.
    pub(crate) const BINARY: u32 = 4;
    /// Waits for the next message.
    pub(crate) const RECEIVE: u32 = 8;
    /// With `RECEIVE`: waits for a message that comes from now on.
    pub(crate) const NEW: u32 = 16;
    /// With `RECEIVE`: puts the last message back for other calls, and receives one that came later.
    pub(crate) const PUT_BACK: u32 = 32;
    /// Sends a Close frame with the message's bytes, and waits for the peer's.
    pub(crate) const CLOSE: u32 = 64;
    /// With `RECEIVE`: takes only a message that no other call takes.
    pub(crate) const LISTEN: u32 = 128;
    /// Sends a ping, and waits for its pong.
    pub(crate) const PING: u32 = 256;
    /// With `CONNECT`: pings, pongs and the peer's Close frame are received as messages are, and no call waits for one.
    pub(crate) const HEARS_ALL: u32 = 512;
}

/// A received message.
#[derive(Debug, Default)]
struct ReceivedMessage {
    /// The number of messages that came earlier on the connection.
    number: u64,
    kind: Kind,
    body: Vec<u8>,
}

/// What a call in flight waits for.
#[derive(Debug)]
enum Waiter {
    /// A message.
    Message {
        /// The number of the first message that the call has not seen.
        from: u64,
        /// Whether the call takes only messages that no other call takes.
        listens: bool,
    },
    /// The goodbye of the peer.
    Goodbye,
    /// The pong to the ping with this payload.
    Pong([u8; 8]),
}

/// The messages of one connection, the calls that wait for one, and the answer of the last call.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    /// The calls in flight, oldest first.
    waiters: VecDeque<Waiter>,
    /// Unread messages, oldest first.
    inbox: VecDeque<ReceivedMessage>,
    inbox_bytes: usize,
    /// The number of messages that have come.
    came: u64,
    /// What the last call was answered with, besides a message's body: the head of a handshake, or the type of a
    /// message.
    head: Cow<'static, [u8]>,
    last: ReceivedMessage,
    /// The message that was put back last.
    put_back: Option<u64>,
    /// Unread messages that had to make room for newer ones, since they were last reported.
    dropped: u64,
    /// Whether pings, pongs and Close frames are received, too.
    hears_all: bool,
}

impl Mailbox {
    /// Begins a call, or its next message. The last message is put back for other calls, or dropped. Returns the number
    /// of the first message that the call may take.
    pub(super) fn begin(&mut self, puts_back: bool) -> u64 {
        self.head = Cow::Borrowed(&[]);
        let last = std::mem::take(&mut self.last);
        if !puts_back {
            return 0;
        }
        let number = last.number;
        self.put_back = Some(number);
        self.put(last);
        number + 1
    }

    /// Gives the call that has begun the oldest unread message whose number is at least `from`; false if there is none.
    pub(super) fn take(&mut self, from: u64) -> bool {
        match self.inbox.iter().position(|message| message.number >= from).and_then(|at| self.remove(at)) {
            Some(message) => {
                self.give(message);
                true
            }
            None => false,
        }
    }

    /// Receives pings, pongs and Close frames, too, from now on.
    pub(super) fn hear_all(&mut self) {
        self.hears_all = true;
    }

    /// Whether pings, pongs and Close frames are received as messages are.
    pub(super) fn hears_all(&self) -> bool {
        self.hears_all
    }

    /// The number of the next message.
    pub(super) fn next_number(&self) -> u64 {
        self.came
    }

    /// Makes the call that has begun wait for a message whose number is at least `from`.
    pub(super) fn wait(&mut self, from: u64, listens: bool) {
        self.waiters.push_back(Waiter::Message { from, listens });
    }

    /// Makes the call that has begun wait for the peer's Close frame.
    pub(super) fn await_goodbye(&mut self) {
        self.waiters.push_back(Waiter::Goodbye);
    }

    /// Makes the call that has begun wait for the pong to a ping with this payload.
    pub(super) fn await_pong(&mut self, payload: u64) {
        self.waiters.push_back(Waiter::Pong(payload.to_be_bytes()));
    }

    /// Takes a pong. Returns the position of the call that waits for it.
    pub(super) fn receive_pong(&mut self, payload: &[u8]) -> Option<usize> {
        let position = self
            .waiters
            .iter()
            .position(|waiter| matches!(waiter, Waiter::Pong(sent) if sent.as_slice() == payload))?;
        self.waiters.remove(position)?;
        Some(position)
    }

    /// The number of unread messages dropped since the last time.
    pub(super) fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    /// Whether calls are in flight.
    pub(super) fn waits(&self) -> bool {
        !self.waiters.is_empty()
    }

    /// Takes a message that came. Returns the position of the call that it answers; `None` if it is kept.
    pub(super) fn receive(&mut self, kind: Kind, body: &[u8]) -> Option<usize> {
        let message = ReceivedMessage { number: self.came, kind, body: body.to_vec() };
        self.came += 1;
        let Some(position) = self.next_waiter(message.number) else {
            self.put(message);
            return None;
        };
        self.give(message);
        Some(position)
    }

    /// Gives a message that a call has put back to another call that waits for it, and returns the position of that
    /// call.
    pub(super) fn pass_on(&mut self) -> Option<usize> {
        let number = self.put_back.take()?;
        let at = self.inbox.iter().position(|message| message.number == number)?;
        let position = self.next_waiter(number)?;
        let message = self.remove(at)?;
        self.give(message);
        Some(position)
    }

    /// Removes the oldest call that waits for a message and has not seen the one of this number, and returns its
    /// position. Calls that listen come after all others.
    fn next_waiter(&mut self, number: u64) -> Option<usize> {
        let wants = |waiter: &Waiter, turn: bool| matches!(waiter, Waiter::Message { from, listens, .. } if *from <= number && *listens == turn);
        let position =
            [false, true].into_iter().find_map(|turn| self.waiters.iter().position(|waiter| wants(waiter, turn)))?;
        self.waiters.remove(position)?;
        Some(position)
    }

    /// Takes the peer's Close frame. Returns the position of the call that waits for it.
    pub(super) fn say_goodbye(&mut self) -> Option<usize> {
        let position = self.waiters.iter().position(|waiter| matches!(waiter, Waiter::Goodbye))?;
        self.waiters.remove(position)?;
        Some(position)
    }

    /// The handshake was answered with this head.
    pub(super) fn shake_hands(&mut self, head: &[u8]) {
        self.head = Cow::Owned(head.to_vec());
        self.last = ReceivedMessage::default();
    }

    /// Ends the wait of the call at this position. A message that comes later in answer to what it sent can be received
    /// as any other. Returns false where no message is waited for.
    pub(super) fn give_up(&mut self, position: usize) -> bool {
        // No other call waits for the pong to the same payload.
        if !matches!(self.waiters.get(position), Some(Waiter::Message { .. } | Waiter::Pong(_))) {
            return false;
        }
        self.waiters.remove(position).is_some()
    }

    /// The last answer.
    pub(super) fn parts(&self) -> AnswerParts<'_> {
        AnswerParts { head: &self.head, body: &self.last.body }
    }

    fn put(&mut self, message: ReceivedMessage) {
        self.inbox_bytes += message.body.len();
        let at = self.inbox.partition_point(|known| known.number < message.number);
        self.inbox.insert(at, message);
        while self.inbox.len() > MOST_WAITING || self.inbox.len() > 1 && self.inbox_bytes > MOST_WAITING_BYTES {
            self.remove(0);
            self.dropped += 1;
        }
    }

    fn remove(&mut self, at: usize) -> Option<ReceivedMessage> {
        let message = self.inbox.remove(at)?;
        self.inbox_bytes -= message.body.len();
        Some(message)
    }

    fn give(&mut self, message: ReceivedMessage) {
        self.head = Cow::Borrowed(message.kind.head());
        self.last = message;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call that has passed by the last message waits for the next.
    fn pass_by(mailbox: &mut Mailbox) {
        let from = mailbox.begin(true);
        assert!(!mailbox.take(from));
        mailbox.wait(from, false);
    }

    #[test]
    fn a_message_that_a_call_passes_by_is_shown_to_each_other_once() {
        let mut mailbox = Mailbox::default();
        for _ in 0..3 {
            assert_eq!(mailbox.begin(false), 0);
            mailbox.wait(0, false);
        }
        assert_eq!(mailbox.receive(Kind::Text, b"a"), Some(0));
        pass_by(&mut mailbox);
        assert_eq!((mailbox.pass_on(), mailbox.parts().body), (Some(0), b"a".as_slice()));
        pass_by(&mut mailbox);
        assert_eq!(mailbox.pass_on(), Some(0));
        pass_by(&mut mailbox);
        assert_eq!(mailbox.pass_on(), None, "the three have seen it");
        // The next one is new to them; the first that waits has it, and those who come later have what is left.
        assert_eq!(mailbox.receive(Kind::Binary, b"b"), Some(0));
        assert_eq!(mailbox.begin(false), 0);
        assert!(mailbox.take(0));
        assert_eq!(mailbox.parts(), AnswerParts { head: b"text message", body: b"a" });
        assert!(!mailbox.take(0), "b was taken");
    }

    #[test]
    fn calls_keep_their_positions_beside_a_goodbye() {
        let mut mailbox = Mailbox::default();
        mailbox.await_goodbye();
        mailbox.wait(0, false);
        mailbox.wait(0, false);
        assert!(!mailbox.give_up(0), "a goodbye may still come");
        assert_eq!(mailbox.receive(Kind::Text, b"a"), Some(1));
        assert!(mailbox.give_up(1));
        assert_eq!((mailbox.say_goodbye(), mailbox.waits()), (Some(0), false));
    }

    #[test]
    fn a_pong_is_the_answer_to_its_ping() {
        let mut mailbox = Mailbox::default();
        mailbox.wait(0, false);
        mailbox.await_pong(1);
        mailbox.await_pong(2);
        assert_eq!(mailbox.receive_pong(&2_u64.to_be_bytes()), Some(2));
        assert_eq!(mailbox.receive_pong(b"unasked"), None);
        assert!(mailbox.give_up(1), "a late pong is nobody's");
        assert_eq!((mailbox.receive_pong(&1_u64.to_be_bytes()), mailbox.receive(Kind::Text, b"a")), (None, Some(0)));
    }

    #[test]
    fn who_listens_has_what_no_other_call_takes() {
        let mut mailbox = Mailbox::default();
        mailbox.wait(0, true);
        mailbox.wait(0, false);
        assert_eq!(mailbox.receive(Kind::Text, b"a"), Some(1), "the call that asks comes first");
        pass_by(&mut mailbox);
        assert_eq!(mailbox.pass_on(), Some(0), "then the one that listens");
        assert_eq!(mailbox.receive(Kind::Text, b"b"), Some(0));
    }

    #[test]
    fn what_nobody_takes_is_bounded() {
        let mut mailbox = Mailbox::default();
        for number in 0..2_000_u32 {
            assert_eq!(mailbox.receive(Kind::Text, &number.to_be_bytes()), None);
        }
        assert_eq!((mailbox.inbox.len(), mailbox.inbox_bytes), (MOST_WAITING, 4 * MOST_WAITING));
        assert_eq!([mailbox.take_dropped(), mailbox.take_dropped()], [1_000, 0]);
        // One that is put back behind those that went is the oldest.
        assert!(mailbox.take(0));
        assert_eq!(mailbox.parts().body, 1_000_u32.to_be_bytes());
        let from = mailbox.begin(true);
        assert!(mailbox.take(from));
        assert_eq!(mailbox.parts().body, 1_001_u32.to_be_bytes());
    }
}
