//! Frames: what travels over the bus, each in one NATS message.
//!
//! | bytes | what |
//! | --- | --- |
//! | 4 | `BRNT` |
//! | 2 | [`CLUSTER_VERSION`], big-endian |
//! | 1 | what the payload is: 0 nothing, 1 a part of a message, 2 the last part of one, 3 a note |
//! | 8 | the session, big-endian |
//! | 8 | the part's number within its session, from 1; 0 where it is no part |
//! | 8 | how many of the peer's parts have arrived without a gap |
//! | the rest | the payload |
//!
//! A note acknowledges too, so that who has both to say wakes the other once.
//!
//! This layout is the same in every version, so that one of another version is told apart from noise.

use bytes::Bytes;

/// The version of what controllers and agents say to each other. Both must have the same.
pub const CLUSTER_VERSION: u16 = 5;

const MAGIC: &[u8; 4] = b"BRNT";
/// Bytes of a frame besides its payload.
pub(crate) const HEAD_BYTES: usize = 4 + 2 + 1 + 8 + 8 + 8;

/// What a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing: it acknowledges.
    Nothing,
    /// A part of a message, which more parts follow.
    Part,
    /// The last part of a message, or all of it.
    Last,
    /// A note: said once, and lost if it does not arrive.
    Note,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Self> {
        [Self::Nothing, Self::Part, Self::Last, Self::Note].get(usize::from(byte)).copied()
    }
}

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: Kind,
    pub(crate) session: u64,
    pub(crate) number: u64,
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
    /// A note that acknowledges nothing. `session` is 0 for one that belongs to no session.
    pub(crate) fn note(session: u64, payload: Vec<u8>) -> Self {
        Self { kind: Kind::Note, session, number: 0, arrived: 0, payload: payload.into() }
    }

    pub(crate) fn to_bytes(&self) -> Bytes {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + self.payload.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&CLUSTER_VERSION.to_be_bytes());
        bytes.push(self.kind as u8);
        for number in [self.session, self.number, self.arrived] {
            bytes.extend_from_slice(&number.to_be_bytes());
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

    /// A frame with its version. Whoever announces itself is understood by all versions, so that each can say which the others have.
    pub(crate) fn of_any_version(bytes: &Bytes) -> Result<(u16, Self), FrameError> {
        let foreign = FrameError::Foreign(bytes.len());
        let mut rest = bytes.strip_prefix(MAGIC).ok_or(foreign)?;
        let version = u16::from_be_bytes(take(&mut rest).ok_or(foreign)?);
        let [kind] = take(&mut rest).ok_or(foreign)?;
        let mut number = || take(&mut rest).map(u64::from_be_bytes).ok_or(foreign);
        let (session, number, arrived) = (number()?, number()?, number()?);
        let kind = Kind::from_byte(kind).ok_or(foreign)?;
        Ok((version, Self { kind, session, number, arrived, payload: bytes.slice_ref(rest) }))
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
        let mut bytes = Frame::note(7, vec![1, 2]).to_bytes().to_vec();
        bytes[5] = 9;
        let bytes = Bytes::from(bytes);
        assert_eq!(Frame::from_bytes(&bytes), Err(FrameError::Version(9)));
        assert_eq!(Frame::of_any_version(&bytes), Ok((9, Frame::note(7, vec![1, 2]))));
        assert_eq!(Frame::from_bytes(&Bytes::from_static(b"PING\r\n")), Err(FrameError::Foreign(6)));
    }

    proptest! {
        #[test]
        fn a_frame_arrives_as_it_was_sent(
            kind in 0_u8..4, numbers: [u64; 3], payload in prop::collection::vec(any::<u8>(), 0..50), cut in 0_usize..31,
        ) {
            let [session, number, arrived] = numbers;
            let frame =
                Frame { kind: Kind::from_byte(kind).unwrap(), session, number, arrived, payload: payload.into() };
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
