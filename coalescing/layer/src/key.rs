//! What requests must have in common to share an answer.

use std::cell::Cell;

use http::{HeaderMap, HeaderName, HeaderValue};

/// What requests must have in common to share an answer, and the other headers that an answer may vary by.
///
/// The parts stand one after the other: each header behind its length, the number of headers, the lengths of the target's
/// parts and those parts, and the URI's epoch. Read from the end, this is unambiguous, so two requests have the same parts if
/// and only if they have the same bytes. Keys are compared byte by byte; the hash only finds the place in the table.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    /// The key, followed by the headers that are not in it.
    bytes: Vec<u8>,
    /// Where the headers of the key end.
    headers: usize,
    /// Where the key ends.
    end: usize,
    /// Where it ended before it was split.
    unsplit: usize,
    /// The greatest age, in seconds, of an earlier answer that the client takes.
    pub(crate) max_age: Option<u64>,
    /// The hash of the key, once the table has computed it.
    pub(crate) hash: u64,
}

/// The parts of a key apart from headers.
#[derive(Default)]
pub(crate) struct Target<'a> {
    pub(crate) method: &'a str,
    pub(crate) scheme: Option<&'a str>,
    /// Of the request target. Handlers may look at either this or the host, so both count.
    pub(crate) authority: Option<&'a str>,
    pub(crate) host: Option<&'a HeaderValue>,
    pub(crate) path_and_query: Option<&'a str>,
    /// The result of the key function.
    pub(crate) own: Option<&'a [u8]>,
    /// The number of writes to the URI: a request from before a write must not answer one from after it.
    pub(crate) epoch: u64,
}

/// Memory for a thread's next key: for its bytes, and for the headers that are not in it.
type Spare = (Vec<u8>, Vec<u8>);

thread_local! {
    static SPARE: Cell<Spare> = const { Cell::new((Vec::new(), Vec::new())) };
}

/// A length that no part has.
const NONE: u32 = u32::MAX;

/// A key in the making. Headers come first, as they are found on the way through the request.
pub(crate) struct KeyWriter {
    bytes: Vec<u8>,
    headers: u32,
    /// Headers that an answer may vary by.
    others: Vec<u8>,
}

impl KeyWriter {
    pub(crate) fn new() -> Self {
        let (mut bytes, mut others) = SPARE.take();
        bytes.clear();
        others.clear();
        Self { bytes, headers: 0, others }
    }

    /// Adds a header to the key; `None` if it is too long to encode, which no server accepts anyway.
    #[inline]
    pub(crate) fn header(&mut self, name: &HeaderName, value: &HeaderValue) -> Option<()> {
        self.headers += 1;
        write_header(&mut self.bytes, name.as_str(), value.as_bytes())
    }

    /// Adds a header that is not in the key, and that an answer may vary by.
    #[inline]
    pub(crate) fn other(&mut self, name: &HeaderName, value: &HeaderValue) -> Option<()> {
        write_header(&mut self.others, name.as_str(), value.as_bytes())
    }

    /// Adds what is derived from a header, under a name that no header has.
    pub(crate) fn derived(&mut self, name: &HeaderName, write_value: impl FnOnce(&mut Vec<u8>)) -> Option<()> {
        let mut derived = Vec::new();
        write_value(&mut derived);
        self.headers += 1;
        write_header(&mut self.bytes, &format!("{name}:"), &derived)
    }

    /// Leaves the memory to the thread's next key.
    pub(crate) fn discard(self) {
        SPARE.set((self.bytes, self.others));
    }

    /// The key; `None` if a part is too long to encode.
    pub(crate) fn finish(mut self, target: &Target<'_>, max_age: Option<u64>) -> Option<Key> {
        let bytes = &mut self.bytes;
        let headers = bytes.len();
        let parts = [
            Some(target.method.as_bytes()),
            target.scheme.map(str::as_bytes),
            target.authority.map(str::as_bytes),
            target.host.map(HeaderValue::as_bytes),
            target.path_and_query.map(str::as_bytes),
            target.own,
        ];
        if parts.iter().flatten().map(|part| part.len()).sum::<usize>() >= NONE as usize {
            return None;
        }
        parts.into_iter().flatten().for_each(|part| bytes.extend_from_slice(part));
        // All lengths come together: most parts are short or absent.
        let lengths = parts.map(|part| part.map_or(NONE, |part| part.len() as u32).to_le_bytes());
        bytes.extend_from_slice(lengths.as_flattened());
        bytes.extend_from_slice(&self.headers.to_le_bytes());
        bytes.extend_from_slice(&target.epoch.to_le_bytes());
        let end = bytes.len();
        bytes.extend_from_slice(&self.others);
        SPARE.set((Vec::new(), self.others));
        Some(Key { bytes: self.bytes, headers, end, unsplit: end, max_age, hash: 0 })
    }
}

impl Key {
    /// Leaves the key's memory to the thread's next key, so that a request without a flight to join allocates none.
    pub(crate) fn recycle(self) {
        const MOST: usize = 16 * 1024;
        if self.bytes.capacity() <= MOST {
            let (_, others) = SPARE.take();
            SPARE.set((self.bytes, others));
        }
    }

    /// The approximate memory of a waiting request, in bytes: its key, and the head that the key was made from.
    pub(crate) fn weight(&self) -> usize {
        const ITSELF: usize = 256;
        ITSELF + 2 * self.bytes.len()
    }

    /// The part that was the key before it was split.
    pub(crate) fn unsplit(&self) -> &[u8] {
        self.bytes.get(..self.unsplit).unwrap_or_default()
    }

    /// The part that must be equal.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.end).unwrap_or_default()
    }

    /// Whether this key's request and one with the same key and these headers have equal values of each of these names
    /// (RFC 9111, section 4.1).
    pub(crate) fn has_in_common(&self, names: &[HeaderName], other: &HeaderMap) -> bool {
        names.iter().all(|name| {
            let theirs = other.get_all(name).iter();
            match self.keyed(name) {
                _ if *name == http::header::HOST => true,
                0 => values(self.others(), name).eq(theirs.map(HeaderValue::as_bytes)),
                // A line in the key is equal in both requests; of some headers there may be harmless lines beside it.
                keyed => keyed == theirs.count() && values(self.others(), name).next().is_none(),
            }
        })
    }

    /// Adds the values of these names to the key, so that requests with other values of them get other keys.
    pub(crate) fn split_by(mut self, names: &[HeaderName]) -> Option<Self> {
        let mut added = Vec::new();
        for name in names.iter().filter(|name| **name != http::header::HOST && self.keyed(name) == 0) {
            write_header(&mut added, &format!("{name}="), b"")?;
            for value in values(self.others(), name) {
                write_header(&mut added, name.as_str(), value)?;
            }
        }
        let length = u32::try_from(added.len()).ok()?;
        added.extend_from_slice(&length.to_le_bytes());
        added.extend_from_slice(&NONE.to_le_bytes());
        self.bytes.splice(self.end..self.end, added.iter().copied());
        self.end += added.len();
        Some(self)
    }

    fn others(&self) -> &[u8] {
        self.bytes.get(self.end..).unwrap_or_default()
    }

    /// The number of lines of a header that are in the key.
    fn keyed(&self, name: &HeaderName) -> usize {
        values(self.bytes.get(..self.headers).unwrap_or_default(), name).count()
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Key {}

/// Writes the lengths of a name and of a value, and both.
#[inline]
fn write_header(bytes: &mut Vec<u8>, name: &str, value: &[u8]) -> Option<()> {
    let (length, value_length) = (name.len() as u64, value.len() as u64);
    if length.max(value_length) >= u64::from(NONE) {
        return None;
    }
    bytes.extend_from_slice(&((value_length << 32) | length).to_le_bytes());
    bytes.extend_from_slice(name.as_bytes());
    bytes.extend_from_slice(value);
    Some(())
}

/// The encoded values of a header.
fn values<'a>(headers: &'a [u8], name: &'a HeaderName) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = headers;
    let pairs = std::iter::from_fn(move || read(&mut rest));
    pairs.filter_map(move |(other, value)| (other == name.as_str().as_bytes()).then_some(value))
}

/// The next name with its value.
fn read<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let (lengths, after) = rest.split_first_chunk::<8>()?;
    let lengths = u64::from_le_bytes(*lengths);
    let (name, after) = after.split_at_checked((lengths & u64::from(u32::MAX)) as usize)?;
    let (value, after) = after.split_at_checked((lengths >> 32) as usize)?;
    *rest = after;
    Some((name, value))
}
