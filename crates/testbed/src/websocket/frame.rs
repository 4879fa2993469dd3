//! Frames from clients, which are masked, and frames to them, which are not (RFC 6455, section 5).

/// What a frame is (section 5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opcode {
    Continuation = 0x0,
    Text = 0x1,
    Binary = 0x2,
    Close = 0x8,
    Ping = 0x9,
    Pong = 0xA,
}

impl Opcode {
    fn from_bits(bits: u8) -> Option<Self> {
        [Self::Continuation, Self::Text, Self::Binary, Self::Close, Self::Ping, Self::Pong]
            .into_iter()
            .find(|opcode| *opcode as u8 == bits)
    }
}

/// A whole frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame<'a> {
    pub(super) opcode: Opcode,
    pub(super) is_final: bool,
    pub(super) is_compressed: bool,
    masked: &'a [u8],
    key: [u8; 4],
}

/// What stands at the beginning of some bytes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Read<'a> {
    /// A frame, and its length with its head.
    Complete(Frame<'a>, usize),
    /// The beginning of one.
    Incomplete,
    /// One that is too long.
    TooBig,
    /// Something that breaks the rules.
    Broken,
}

/// Reads a frame of at most `most` bytes.
#[inline]
pub(super) fn read(bytes: &[u8], most: usize) -> Read<'_> {
    let [first, second, rest @ ..] = bytes else { return Read::Incomplete };
    let Some(opcode) = Opcode::from_bits(first & 0x0F) else { return Read::Broken };
    let (is_final, is_compressed) = (first & 0x80 != 0, first & 0x40 != 0);
    let is_control = opcode as u8 >= 8;
    let short = second & 0x7F;
    let is_masked = second & 0x80 != 0;
    if first & 0x30 != 0 || !is_masked || (is_control && (!is_final || short > 125 || is_compressed)) {
        return Read::Broken;
    }
    let (length, rest) = match short {
        126 => match rest.split_first_chunk::<2>() {
            Some((length, rest)) => (u64::from(u16::from_be_bytes(*length)), rest),
            None => return Read::Incomplete,
        },
        127 => match rest.split_first_chunk::<8>() {
            Some((length, rest)) => (u64::from_be_bytes(*length), rest),
            None => return Read::Incomplete,
        },
        short => (u64::from(short), rest),
    };
    if length > most as u64 {
        return Read::TooBig;
    }
    let Some((key, rest)) = rest.split_first_chunk::<4>() else { return Read::Incomplete };
    let Some(masked) = rest.get(..length as usize) else { return Read::Incomplete };
    let whole = bytes.len() - rest.len() + masked.len();
    Read::Complete(Frame { opcode, is_final, is_compressed, masked, key: *key }, whole)
}

impl<'a> Frame<'a> {
    /// A frame whose payload is not masked.
    pub(super) fn plain(opcode: Opcode, is_compressed: bool, payload: &'a [u8]) -> Self {
        Self { opcode, is_final: true, is_compressed, masked: payload, key: [0; 4] }
    }

    /// The length of its payload.
    pub(super) fn len(&self) -> usize {
        self.masked.len()
    }

    /// Its payload, unmasked (section 5.3).
    pub(super) fn payload(&self) -> impl Iterator<Item = u8> {
        self.masked.iter().zip(self.key.into_iter().cycle()).map(|(byte, key)| byte ^ key)
    }

    /// Appends it, unmasked, as a frame of this kind.
    #[inline]
    pub(super) fn write_as(&self, opcode: Opcode, out: &mut Vec<u8>) {
        let compressed = self.is_compressed && opcode == self.opcode;
        write(opcode, compressed, self.masked, out);
        let from = out.len() - self.masked.len();
        let [a, b, c, d] = self.key;
        let twice = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
        let (words, rest) = out.get_mut(from..).unwrap_or_default().as_chunks_mut::<8>();
        for word in words {
            *word = (u64::from_ne_bytes(*word) ^ twice).to_ne_bytes();
        }
        for (byte, key) in rest.iter_mut().zip(self.key.into_iter().cycle()) {
            *byte ^= key;
        }
    }
}

/// Appends a whole frame.
#[inline]
pub(super) fn write(opcode: Opcode, is_compressed: bool, payload: &[u8], out: &mut Vec<u8>) {
    out.push(0x80 | if is_compressed { 0x40 } else { 0 } | opcode as u8);
    match payload.len() {
        length @ 0..126 => out.push(length as u8),
        length @ 126..0x1_0000 => {
            out.push(126);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            out.push(127);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(payload);
}
