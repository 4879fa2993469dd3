//! Frames: what travels over the bus, each in one NATS message.
//!
//! | bytes | what |
//! | --- | --- |
//! | 4 | `BRNT` |
//! | 2 | [`CLUSTER_VERSION`], big-endian |
//! | 1 | what the payload is: 0 nothing, 1 a piece of the session's bytes, 3 a note |
//! | 8 | the first half of the session's id, big-endian; 0 where the frame belongs to no session |
//! | 8 | where the piece begins among the bytes of its session; 0 where it is no piece |
//! | 8 | how many of the peer's bytes have arrived without a gap |
//! | 8 | the second half of the session's id; only where the first is not 0 |
//! | the rest | the payload |
//!
//! A note acknowledges too, so that who has both to say wakes the other once.
//!
//! Frames of no session have had this layout in every version, so that one of another version is told apart from noise and can be named.

use bytes::Bytes;

/// The version of what controllers and agents say to each other. Both must have the same.
pub const CLUSTER_VERSION: u16 = 12;

const MAGIC: &[u8; 4] = b"BRNT";
/// Bytes of a frame besides its payload.
pub(crate) const HEAD_BYTES: usize = 4 + 2 + 1 + 8 + 8 + 8 + 8;

/// The content of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An acknowledgement only.
    Nothing,
    /// A piece of the bytes of a session.
    Piece,
    /// A note: sent once, and lost if it does not arrive.
    Note,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Nothing),
            1 => Some(Self::Piece),
            3 => Some(Self::Note),
            _ => None,
        }
    }

    const fn to_byte(self) -> u8 {
        match self {
            Self::Nothing => 0,
            Self::Piece => 1,
            Self::Note => 3,
        }
    }
}

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: Kind,
    /// The session's id, whose first half is not 0; 0 for a frame of no session.
    pub(crate) session: u128,
    /// The position of a piece among the bytes of its session.
    pub(crate) offset: u64,
    /// How many of the peer's bytes have arrived.
    pub(crate) arrived: u64,
    pub(crate) payload: Bytes,
}

/// Bytes that are no frame of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    /// Something else.
    #[error("expected a frame of brunt's, got {0} bytes of something else")]
    Foreign(usize),
    /// A frame of another version.
    #[error("expected version {CLUSTER_VERSION} of what controllers and agents say, got {0}: run one brunt everywhere")]
    Version(u16),
}

impl Frame {
    /// A note without an acknowledgement. `session` is 0 for one that belongs to no session.
    pub(crate) fn note(session: u128, payload: Vec<u8>) -> Self {
        Self { kind: Kind::Note, session, offset: 0, arrived: 0, payload: payload.into() }
    }

    pub(crate) fn to_bytes(&self) -> Bytes {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + self.payload.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&CLUSTER_VERSION.to_be_bytes());
        bytes.push(self.kind.to_byte());
        let (first, second) = ((self.session >> 64) as u64, self.session as u64);
        for number in [first, self.offset, self.arrived] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        if first != 0 {
            bytes.extend_from_slice(&second.to_be_bytes());
        }
        bytes.extend_from_slice(&self.payload);
        bytes.into()
    }

    pub(crate) fn from_bytes(bytes: &Bytes) -> Result<Self, FrameError> {
        match Self::of_any_version(bytes)? {
            (CLUSTER_VERSION, frame) => Ok(frame),
            (version, _) => Err(FrameError::Version(version)),
        }
    }

    /// A frame with its version. Announcements are understood by all versions, so that each can report the version of
    /// the others.
    pub(crate) fn of_any_version(bytes: &Bytes) -> Result<(u16, Self), FrameError> {
        let foreign = FrameError::Foreign(bytes.len());
        let mut rest = bytes.strip_prefix(MAGIC).ok_or(foreign)?;
        let version = u16::from_be_bytes(take(&mut rest).ok_or(foreign)?);
        let [kind] = take(&mut rest).ok_or(foreign)?;
        let mut number = || take(&mut rest).map(u64::from_be_bytes).ok_or(foreign);
        let (first, offset, arrived) = (number()?, number()?, number()?);
        let second = if first != 0 { number()? } else { 0 };
        let session = u128::from(first) << 64 | u128::from(second);
        let kind = Kind::from_byte(kind).ok_or(foreign)?;
        Ok((version, Self { kind, session, offset, arrived, payload: bytes.slice_ref(rest) }))
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*taken)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn another_version_is_told_from_noise() {
        for version in [1, 5, CLUSTER_VERSION as u8 + 1] {
            let mut bytes = Frame::note(0, vec![1, 2]).to_bytes().to_vec();
            bytes[5] = version;
            let bytes = Bytes::from(bytes);
            let version = u16::from(version);
            assert_eq!(Frame::from_bytes(&bytes), Err(FrameError::Version(version)));
            assert_eq!(Frame::of_any_version(&bytes), Ok((version, Frame::note(0, vec![1, 2]))));
        }
        assert_eq!(Frame::from_bytes(&Bytes::from_static(b"PING\r\n")), Err(FrameError::Foreign(6)));
    }

    proptest! {
        #[test]
        fn a_frame_arrives_as_it_was_sent(
            kind in prop::sample::select(vec![Kind::Nothing, Kind::Piece, Kind::Note]), has_session: bool, numbers: [u64; 4],
            payload in prop::collection::vec(any::<u8>(), 0..50), cut in 0_usize..31,
        ) {
            let [first, second, offset, arrived] = numbers;
            let session = if has_session { u128::from(first.max(1)) << 64 | u128::from(second) } else { 0 };
            let frame = Frame { kind, session, offset, arrived, payload: payload.into() };
            let bytes = frame.to_bytes();
            prop_assert_eq!(Frame::from_bytes(&bytes), Ok(frame));
            prop_assert!(Frame::from_bytes(&bytes.slice(..cut)).is_err());
        }

        #[test]
        fn noise_is_no_frame(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            prop_assert!(Frame::from_bytes(&bytes.into()).is_err());
        }
    }
}
