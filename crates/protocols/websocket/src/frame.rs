//! Frames (RFC 6455, section 5): heads read and written, payloads masked.

use brunt_protocol::Malformed;

/// The longest head of a server's frame, in bytes. Servers do not mask.
pub(super) const MOST_HEAD_BYTES: usize = 10;
/// The longest payload of a control frame, in bytes (section 5.5).
pub(super) const MOST_CONTROL_BYTES: u64 = 125;

/// The code of a Close frame where all is well (section 7.4.1).
pub(super) const NORMAL: [u8; 2] = 1000_u16.to_be_bytes();

/// The type of a frame (section 5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opcode {
    /// The next fragment of the current message.
    Continuation,
    /// The beginning of a text message.
    Text,
    /// The beginning of a binary message.
    Binary,
    /// The end of the conversation.
    Close,
    /// A question whether the other side is there.
    Ping,
    /// The answer to a ping.
    Pong,
}

impl Opcode {
    fn from_bits(bits: u8) -> Result<Self, Malformed> {
        Ok(match bits {
            0x0 => Self::Continuation,
            0x1 => Self::Text,
            0x2 => Self::Binary,
            0x8 => Self::Close,
            0x9 => Self::Ping,
            0xA => Self::Pong,
            _ => return Err(Malformed::because("a frame with a reserved opcode (RFC 6455, section 5.2)")),
        })
    }

    const fn bits(self) -> u8 {
        match self {
            Self::Continuation => 0x0,
            Self::Text => 0x1,
            Self::Binary => 0x2,
            Self::Close => 0x8,
            Self::Ping => 0x9,
            Self::Pong => 0xA,
        }
    }

    /// Whether this is a control frame, which may come between the fragments of a message.
    pub(super) const fn is_control(self) -> bool {
        matches!(self, Self::Close | Self::Ping | Self::Pong)
    }
}

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// The frame's type.
    pub(super) opcode: Opcode,
    /// Whether the frame is the last of its message.
    pub(super) is_final: bool,
    /// Whether the frame's message is compressed: RSV1 (RFC 7692, section 6).
    pub(super) is_compressed: bool,
    /// The length of the payload, in bytes.
    pub(super) length: u64,
}

/// Reads the head of a frame from a server. Returns it with its length in bytes; `None` while it is incomplete.
///
/// # Errors
/// When the head breaks a rule.
#[inline]
pub(super) fn read_head(bytes: &[u8]) -> Result<Option<(Head, usize)>, Malformed> {
    let [first, second, rest @ ..] = bytes else { return Ok(None) };
    if first & 0x30 != 0 {
        return Err(Malformed::because("a frame with RSV2 or RSV3, which mean nothing here (RFC 6455, section 5.2)"));
    }
    let opcode = Opcode::from_bits(first & 0x0F)?;
    let (is_final, is_compressed) = (first & 0x80 != 0, first & 0x40 != 0);
    if second & 0x80 != 0 {
        return Err(Malformed::because("a masked frame from a server (RFC 6455, section 5.1)"));
    }
    let (length, taken) = match second & 0x7F {
        126 => match rest {
            [a, b, ..] => (u64::from(u16::from_be_bytes([*a, *b])), 4),
            _ => return Ok(None),
        },
        127 => match rest.first_chunk::<8>() {
            Some(bytes) => (u64::from_be_bytes(*bytes), 10),
            None => return Ok(None),
        },
        short => (u64::from(short), 2),
    };
    let least = match taken {
        4 => 126,
        10 => 1 << 16,
        _ => 0,
    };
    if length < least || length >> 63 != 0 {
        return Err(Malformed::because(
            "a frame whose length is not written as short as can be (RFC 6455, section 5.2)",
        ));
    }
    if opcode.is_control() {
        if !is_final {
            return Err(Malformed::because("a control frame in fragments (RFC 6455, section 5.5)"));
        }
        if length > MOST_CONTROL_BYTES {
            return Err(Malformed::because("a control frame with more than 125 bytes (RFC 6455, section 5.5)"));
        }
    }
    if is_compressed && (opcode.is_control() || opcode == Opcode::Continuation) {
        return Err(Malformed::because("RSV1 where no message begins (RFC 7692, section 6.1)"));
    }
    Ok(Some((Head { opcode, is_final, is_compressed, length }, taken)))
}

/// Appends a whole frame, masked as a client's must be (section 5.3), with a key that whoever calls made by chance.
#[inline]
pub(super) fn write(opcode: Opcode, is_compressed: bool, payload: &[u8], key: u32, out: &mut Vec<u8>) {
    let rsv1 = if is_compressed { 0x40 } else { 0 };
    out.push(0x80 | rsv1 | opcode.bits());
    match payload.len() {
        length @ 0..126 => out.push(0x80 | length as u8),
        length @ 126..0x1_0000 => {
            out.push(0xFE);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            out.push(0xFF);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&key.to_ne_bytes());
    let from = out.len();
    out.extend_from_slice(payload);
    mask(out.get_mut(from..).unwrap_or_default(), key);
}

/// Masks a payload, or removes its mask: byte `i` is combined with byte `i % 4` of the key (section 5.3).
#[inline]
pub(super) fn mask(payload: &mut [u8], key: u32) {
    let key = key.to_ne_bytes();
    let [a, b, c, d] = key;
    let twice = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (words, rest) = payload.as_chunks_mut::<8>();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ twice).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(key.into_iter().cycle()) {
        *byte ^= key;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The examples of RFC 6455, section 5.7, as far as a server sends them, and what breaks the rules.
    #[test]
    fn heads_are_read_by_the_book() {
        let head = |opcode, is_final, length| Head { opcode, is_final, is_compressed: false, length };
        for (bytes, expected) in [
            ([0x81, 0x05].as_slice(), (head(Opcode::Text, true, 5), 2)),
            (&[0x01, 0x03], (head(Opcode::Text, false, 3), 2)),
            (&[0x80, 0x02], (head(Opcode::Continuation, true, 2), 2)),
            (&[0x89, 0x05], (head(Opcode::Ping, true, 5), 2)),
            (&[0x82, 0x7E, 0x01, 0x00], (head(Opcode::Binary, true, 256), 4)),
            (&[0x82, 0x7F, 0, 0, 0, 0, 0, 1, 0, 0], (head(Opcode::Binary, true, 65536), 10)),
        ] {
            assert_eq!(read_head(bytes), Ok(Some(expected)), "{bytes:x?}");
            for short in 0..bytes.len() {
                assert_eq!(read_head(&bytes[..short]), Ok(None), "{bytes:x?} without its end");
            }
        }
    }

    proptest! {
        #[test]
        fn a_frame_is_what_was_put_into_it(payload in prop::collection::vec(any::<u8>(), 0..70_000), key: u32) {
            let mut frame = Vec::new();
            write(Opcode::Binary, false, &payload, key, &mut frame);
            let (head, key_at) = match payload.len() {
                length @ 0..126 => (vec![0x82, 0x80 | length as u8], 2),
                length @ 126..65_536 => ([&[0x82, 0xFE], &(length as u16).to_be_bytes()[..]].concat(), 4),
                length => ([&[0x82, 0xFF], &(length as u64).to_be_bytes()[..]].concat(), 10),
            };
            prop_assert_eq!(&frame[..key_at], &head[..]);
            let key: Vec<u8> = frame[key_at..key_at + 4].to_vec();
            let plain: Vec<u8> = frame[key_at + 4..].iter().enumerate().map(|(i, byte)| byte ^ key[i % 4]).collect();
            prop_assert_eq!(plain, payload);
        }
    }
}
