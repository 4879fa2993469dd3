//! The piece of input that a user's call waits for, and its form in a hint.

use brunt_plan::content::Content;

use super::options::{AnswerFraming, LengthPrefix};

/// The input that a call waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// None: the call ends when it is sent.
    None,
    /// A piece that ends as a flood's answers do.
    Framed(AnswerFraming),
    /// Everything until the peer closes its side.
    Rest,
    /// None, and none will be sent: our side is closed.
    Finish,
}

impl Piece {
    /// Packs itself into a hint; a part that does not fit goes behind the call's bytes.
    pub(super) fn pack(&self, bytes: &mut Vec<u8>) -> u32 {
        let packed = |kind: u32, number: usize| kind | (number as u32) << 3;
        match self {
            Self::None | Self::Framed(AnswerFraming::None) => 0,
            Self::Framed(AnswerFraming::Until(end)) => {
                bytes.extend_from_slice(&end.0);
                packed(1, end.0.len())
            }
            Self::Framed(AnswerFraming::Bytes(count)) => packed(2, *count as usize),
            Self::Framed(AnswerFraming::LengthPrefix(prefix)) => {
                packed(3, usize::from(prefix.bytes) << 1 | usize::from(prefix.little_endian))
            }
            Self::Rest => 4,
            Self::Finish => 5,
        }
    }

    /// The piece that was packed into a hint, and the call's bytes without it.
    pub(super) fn unpack(hint: u32, bytes: &[u8]) -> (Self, &[u8]) {
        let number = hint >> 3;
        match hint & 7 {
            1 => {
                let (bytes, end) =
                    bytes.split_at_checked(bytes.len().saturating_sub(number as usize)).unwrap_or((bytes, &[]));
                (Self::Framed(AnswerFraming::Until(Content(end.to_vec()))), bytes)
            }
            2 => (Self::Framed(AnswerFraming::Bytes(number)), bytes),
            3 => {
                let prefix = LengthPrefix { bytes: (number >> 1) as u8, little_endian: number & 1 == 1 };
                (Self::Framed(AnswerFraming::LengthPrefix(prefix)), bytes)
            }
            4 => (Self::Rest, bytes),
            5 => (Self::Finish, bytes),
            _ => (Self::None, bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_packed_into_hints() {
        let framed = |framing| Piece::Framed(framing);
        let until = framed(AnswerFraming::Until(Content(b"\r\n".to_vec())));
        let prefixed = |text| framed(AnswerFraming::LengthPrefix(LengthPrefix::parse(text).unwrap()));
        let bytes = framed(AnswerFraming::Bytes(16 << 20));
        for piece in [Piece::None, until, bytes, prefixed("4le"), prefixed("1"), Piece::Rest, Piece::Finish] {
            let mut packed = b"call".to_vec();
            let hint = piece.pack(&mut packed);
            assert_eq!(Piece::unpack(hint, &packed), (piece, b"call".as_slice()));
        }
    }
}
