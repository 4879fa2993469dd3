//! Records: what happens on a connection's streams, as bytes in one order.
//!
//! A record is a head of [`HEAD_BYTES`] bytes (kind, stream, value) and, for data, the data. The channel writes records of what came;
//! the protocol above writes records of what it sends. Both ends live in one program, so numbers are in the machine's order.
//!
//! | kind | to the protocol | from the protocol | value |
//! | --- | --- | --- | --- |
//! | [`Data`](Kind::Data), [`Last`](Kind::Last) | data came; the peer's side ends with [`Last`](Kind::Last) | the same for our side; the first opens the stream | length of the data that follows |
//! | [`Open`](Kind::Open) | the peer has opened the stream | | |
//! | [`Reset`](Kind::Reset) | the peer ended its side early (`RESET_STREAM`) | ours ends early | error code |
//! | [`Stop`](Kind::Stop) | the peer reads no more of our side (`STOP_SENDING`), which has ended | we read no more | error code |
//! | [`Streams`](Kind::Streams) | so many streams in both directions may be opened, in all | | their number |
//! | [`Blocked`](Kind::Blocked) | flow control or the send window holds back what was written | | |
//! | [`Writable`](Kind::Writable) | all of it was taken | | |
//! | [`Close`](Kind::Close) | the peer's protocol has ended the connection | the connection ends | error code of the protocol |
//!
//! Streams have QUIC's ids (RFC 9000, section 2.1), which a protocol counts itself: its own are 0, 4, 8, … in both directions and
//! 2, 6, 10, … in one (a server's are those plus 1), opened in this order.

/// The size of a record's head, in bytes.
pub const HEAD_BYTES: usize = 17;

/// What a record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A part of a stream.
    Data,
    /// The last part of a stream, which may be empty.
    Last,
    /// A stream of the peer begins.
    Open,
    /// A side of a stream ended early.
    Reset,
    /// A side of a stream is not read any more.
    Stop,
    /// How many streams may be opened.
    Streams,
    /// What was written to a stream waits.
    Blocked,
    /// Nothing that was written to a stream waits.
    Writable,
    /// The connection ends.
    Close,
}

const KINDS: [Kind; 9] = [
    Kind::Data,
    Kind::Last,
    Kind::Open,
    Kind::Reset,
    Kind::Stop,
    Kind::Streams,
    Kind::Blocked,
    Kind::Writable,
    Kind::Close,
];

/// The head of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// What it says.
    pub kind: Kind,
    /// The stream; 0 where it is about none.
    pub stream: u64,
    /// A length, an error code or a number, by the kind.
    pub value: u64,
}

impl Record {
    /// A record.
    pub const fn new(kind: Kind, stream: u64, value: u64) -> Self {
        Self { kind, stream, value }
    }

    /// Data of this length, which ends the stream's side if it is the `last`.
    pub const fn data(stream: u64, last: bool, length: usize) -> Self {
        Self { kind: if last { Kind::Last } else { Kind::Data }, stream, value: length as u64 }
    }

    /// The length of the data behind the head, in bytes.
    #[inline]
    pub fn length(&self) -> usize {
        if matches!(self.kind, Kind::Data | Kind::Last) { self.value as usize } else { 0 }
    }

    /// Its bytes.
    #[inline]
    pub fn bytes(&self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        let [kind, rest @ ..] = &mut bytes;
        let (stream, value) = rest.split_at_mut(8);
        *kind = self.kind as u8;
        stream.copy_from_slice(&self.stream.to_ne_bytes());
        value.copy_from_slice(&self.value.to_ne_bytes());
        bytes
    }

    /// Appends it to `out`.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes());
    }

    /// The head at the beginning of `bytes`; `None` if there are too few of them, or it is none.
    #[inline]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (stream, rest) = rest.split_first_chunk()?;
        let value = rest.first_chunk()?;
        let kind = *KINDS.get(usize::from(*kind))?;
        Some(Self { kind, stream: u64::from_ne_bytes(*stream), value: u64::from_ne_bytes(*value) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_record_is_read_back(kind in 0..KINDS.len(), stream in any::<u64>(), value in any::<u64>()) {
            let record = Record::new(KINDS[kind], stream, value);
            let bytes = record.bytes();
            prop_assert_eq!(Record::read(&bytes), Some(record));
            prop_assert_eq!(Record::read(&bytes[..HEAD_BYTES - 1]), None);
            prop_assert_eq!(usize::from(bytes[0]), kind);
        }
    }

    #[test]
    fn what_is_no_kind_is_no_record() {
        assert_eq!(Record::read(&[9; HEAD_BYTES]), None);
        assert_eq!(Record::data(4, true, 7).length(), 7);
        assert_eq!(Record::new(Kind::Reset, 4, 7).length(), 0);
    }
}
