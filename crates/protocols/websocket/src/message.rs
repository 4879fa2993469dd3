//! Messages from a server: its frames are joined, checked and decompressed, however they are split into pieces.

use std::borrow::Cow;

use super::deflate::Inflater;
use super::frame::{Head, MOST_HEAD_BYTES, Opcode, read_head};
use brunt_protocol::Malformed;

/// The longest message that is accepted, in bytes, compressed or not.
pub const MOST_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
/// The part of its buffer that a connection keeps between messages, in bytes.
const KEPT_BYTES: usize = 1024;

/// What the bytes contained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadStep<'a> {
    /// No complete frame yet.
    More,
    /// A message.
    Message {
        /// Whether the message is text (UTF-8) or binary.
        text: bool,
        /// The message's content.
        body: &'a [u8],
    },
    /// A ping, with the payload that its pong must repeat.
    Ping(&'a [u8]),
    /// A pong, even one without a ping, with its payload.
    Pong(&'a [u8]),
    /// The peer closes.
    Close(Close<'a>),
}

/// The content of a Close frame (RFC 6455, section 5.5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Close<'a> {
    /// The status code; `None` if the frame has none (reported as 1005).
    pub code: Option<u16>,
    /// Why, for people.
    pub reason: &'a str,
}

/// A Close frame's status code in words (RFC 6455, section 7.4.1, and the IANA registry of WebSocket close codes).
pub fn close_name(code: Option<u16>) -> Cow<'static, str> {
    let name = match code {
        Some(1000) => "1000 normal closure",
        Some(1001) => "1001 going away",
        Some(1002) => "1002 protocol error",
        Some(1003) => "1003 unsupported data",
        None => "1005 no status",
        Some(1007) => "1007 invalid payload",
        Some(1008) => "1008 policy violation",
        Some(1009) => "1009 message too big",
        Some(1010) => "1010 extension wanted",
        Some(1011) => "1011 internal error",
        Some(1012) => "1012 service restart",
        Some(1013) => "1013 try again later",
        Some(1014) => "1014 bad gateway",
        Some(3000) => "3000 unauthorized",
        Some(3003) => "3003 forbidden",
        Some(3008) => "3008 timeout",
        Some(code @ 4000..) => return Cow::Owned(format!("{code}, a private code")),
        Some(code) => return Cow::Owned(format!("{code}, a registered code")),
    };
    Cow::Borrowed(name)
}

impl Close<'_> {
    /// Its code in words, and what its sender says besides.
    pub fn words(&self) -> String {
        let mut words = close_name(self.code).into_owned();
        if !self.reason.is_empty() {
            words.push_str(": ");
            words.extend(self.reason.chars().filter(|c| !c.is_control()));
        }
        words
    }
}

/// The message that is being received.
#[derive(Debug, Clone, Copy)]
struct Message {
    text: bool,
    compressed: bool,
}

/// Reads the frames of one connection.
#[derive(Debug, Default)]
pub struct FrameReader {
    /// The beginning of an incomplete head.
    carry: [u8; MOST_HEAD_BYTES],
    carried: u8,
    /// The frame whose payload is being read, and the bytes that are missing from it.
    frame: Option<(Head, u64)>,
    message: Option<Message>,
    /// The received part of the current message's payload.
    body: Vec<u8>,
    /// The payload of a control frame under way.
    control: Vec<u8>,
    /// Whether `body` and `control` were handed out.
    given: bool,
    /// There once permessage-deflate was agreed upon.
    inflater: Option<Box<Inflater>>,
}

impl FrameReader {
    /// Accepts compressed messages from now on. `takes_over`: whether the server keeps its context from message to
    /// message.
    pub fn accept_compressed(&mut self, takes_over: bool) {
        self.inflater = Some(Box::new(Inflater::new(takes_over)));
    }

    /// Takes bytes, up to the end of one frame at most. Returns how many it took, and what they contained.
    ///
    /// # Errors
    /// When the bytes break RFC 6455, RFC 7692 or a limit.
    #[inline]
    pub fn receive<'a>(&'a mut self, bytes: &'a [u8]) -> Result<(usize, ReadStep<'a>), Malformed> {
        self.forget();
        let (head, left, before) = match self.frame {
            Some((head, left)) => (head, left, 0),
            None => match self.head(bytes)? {
                (Some(head), taken) => {
                    self.begin(head)?;
                    (head, head.length, taken)
                }
                (None, taken) => return Ok((taken, ReadStep::More)),
            },
        };
        let rest = bytes.get(before..).unwrap_or_default();
        let there = left.min(rest.len() as u64) as usize;
        let payload = rest.get(..there).unwrap_or_default();
        let taken = before + there;
        let is_whole = there as u64 == left;
        // A message in one piece is handed out without a copy.
        let at_once = is_whole && left == head.length;
        self.frame = if is_whole { None } else { Some((head, left - there as u64)) };
        if head.opcode.is_control() {
            let payload = if at_once { payload } else { keep(&mut self.control, payload) };
            self.given = is_whole;
            return Ok((taken, if is_whole { control(head.opcode, payload)? } else { ReadStep::More }));
        }
        let plain = self.message.is_some_and(|message| !message.compressed);
        if !(at_once && head.is_final && plain && self.body.is_empty()) {
            self.body.extend_from_slice(payload);
            if !(is_whole && head.is_final) {
                return Ok((taken, ReadStep::More));
            }
        }
        let message = self.message.take().unwrap_or(Message { text: false, compressed: false });
        self.given = true;
        if message.compressed {
            self.decompress()?;
        }
        let body = if self.body.is_empty() && !message.compressed { payload } else { &self.body };
        if message.text && std::str::from_utf8(body).is_err() {
            return Err(Malformed::because("a text message that is not UTF-8 (RFC 6455, section 8.1)"));
        }
        Ok((taken, ReadStep::Message { text: message.text, body }))
    }

    /// Drops what was handed out, which has been used by now.
    #[inline]
    fn forget(&mut self) {
        if !self.given {
            return;
        }
        self.given = false;
        self.control = Vec::new();
        // A control frame came between the fragments of a message: its first part is still needed.
        if self.message.is_none() {
            self.body.clear();
            self.body.shrink_to(KEPT_BYTES);
        }
    }

    /// Completes the head from `carry` and the beginning of `bytes`; also says how many bytes it took.
    #[inline]
    fn head(&mut self, bytes: &[u8]) -> Result<(Option<Head>, usize), Malformed> {
        if self.carried == 0
            && let Some((head, taken)) = read_head(bytes)?
        {
            return Ok((Some(head), taken));
        }
        let mut taken = 0;
        for &byte in bytes {
            let Some(place) = self.carry.get_mut(usize::from(self.carried)) else { break };
            *place = byte;
            self.carried += 1;
            taken += 1;
            let carried = self.carry.get(..usize::from(self.carried)).unwrap_or_default();
            if let Some((head, _)) = read_head(carried)? {
                self.carried = 0;
                return Ok((Some(head), taken));
            }
        }
        Ok((None, taken))
    }

    /// Checks that this frame may come now.
    #[inline]
    fn begin(&mut self, head: Head) -> Result<(), Malformed> {
        match (head.opcode, self.message.is_some()) {
            (Opcode::Continuation, false) => {
                Err(Malformed::because("a continuation of no message (RFC 6455, section 5.4)"))
            }
            (Opcode::Text | Opcode::Binary, true) => {
                Err(Malformed::because("a new message within another (RFC 6455, section 5.4)"))
            }
            (Opcode::Text | Opcode::Binary, false) if head.is_compressed && self.inflater.is_none() => {
                Err(Malformed::because("RSV1 without an extension that gives it meaning (RFC 6455, section 5.2)"))
            }
            (Opcode::Close | Opcode::Ping | Opcode::Pong, _) => Ok(()),
            (opcode, _) => {
                if (self.body.len() as u64).saturating_add(head.length) > MOST_MESSAGE_BYTES as u64 {
                    return Err(Malformed::because("a message of more than 16 MiB"));
                }
                if opcode != Opcode::Continuation {
                    self.message = Some(Message { text: opcode == Opcode::Text, compressed: head.is_compressed });
                }
                Ok(())
            }
        }
    }

    fn decompress(&mut self) -> Result<(), Malformed> {
        let Some(inflater) = &mut self.inflater else { return Ok(()) };
        let mut plain = Vec::new();
        inflater.message(&self.body, MOST_MESSAGE_BYTES, &mut plain)?;
        self.body = plain;
        Ok(())
    }
}

fn keep<'a>(control: &'a mut Vec<u8>, payload: &[u8]) -> &'a [u8] {
    control.extend_from_slice(payload);
    control
}

fn control(opcode: Opcode, payload: &[u8]) -> Result<ReadStep<'_>, Malformed> {
    match opcode {
        Opcode::Ping => Ok(ReadStep::Ping(payload)),
        Opcode::Close => close(payload).map(ReadStep::Close),
        _ => Ok(ReadStep::Pong(payload)),
    }
}

fn close(payload: &[u8]) -> Result<Close<'_>, Malformed> {
    let (code, reason) = match payload {
        [] => return Ok(Close { code: None, reason: "" }),
        [high, low, reason @ ..] => (u16::from_be_bytes([*high, *low]), reason),
        [_] => return Err(Malformed::because("a Close frame of one byte (RFC 6455, section 5.5.1)")),
    };
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        return Err(Malformed::because("a Close frame with a code that must not be sent (RFC 6455, section 7.4)"));
    }
    match std::str::from_utf8(reason) {
        Ok(reason) => Ok(Close { code: Some(code), reason }),
        Err(_) => Err(Malformed::because("a Close frame whose reason is not UTF-8 (RFC 6455, section 5.5.1)")),
    }
}
