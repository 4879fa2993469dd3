//! What requests must have in common to share an answer.

use std::cell::Cell;
use std::hash::BuildHasher as _;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::fields::Common;
use crate::sync::Hasher;

/// What requests must have in common to share an answer, and the other headers that an answer may vary by.
///
/// The parts stand one after the other: each header behind its lengths, the target's parts and their lengths, the length of
/// all headers, and the URI's epoch. Read from the end, this is unambiguous, so two requests have the same parts if
/// and only if they have the same bytes. Keys are compared byte by byte; the hash only finds the place in the table.
///
/// It is moved about more often than it is read, so it is a box.
#[derive(Debug, Clone)]
pub(crate) struct Key(Box<Parts>);

#[derive(Debug, Clone, Default)]
struct Parts {
    bytes: Vec<u8>,
    /// The headers that are not in the key.
    others: Vec<u8>,
    /// Where the headers of the key end.
    headers: usize,
    /// Where the key ended before it was split.
    unsplit: usize,
    max_age: Option<u64>,
    place: u64,
    hash: u64,
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
    /// The hash of path and query, which is not in the key.
    pub(crate) place: u64,
}

thread_local! {
    /// Memory for the thread's next key.
    static SPARE: Cell<Option<Box<Parts>>> = const { Cell::new(None) };
}

/// A length that no part has.
const NONE: u32 = u32::MAX;

/// A key in the making. Headers come first, as they are found on the way through the request.
pub(crate) struct KeyWriter(Box<Parts>);

impl KeyWriter {
    pub(crate) fn new() -> Self {
        let mut parts = SPARE.take().unwrap_or_default();
        parts.bytes.clear();
        parts.others.clear();
        Self(parts)
    }

    /// Adds a header to the key.
    pub(crate) fn header(&mut self, common: Option<Common>, name: &HeaderName, value: &HeaderValue) {
        match common {
            Some(common) => self.common(common, value),
            None => write_named(&mut self.0.bytes, name.as_str(), value.as_bytes()),
        }
    }

    /// Adds a header with a common name to the key.
    #[inline]
    pub(crate) fn common(&mut self, common: Common, value: &HeaderValue) {
        write_common(&mut self.0.bytes, common, value.as_bytes());
    }

    /// Adds a header that is not in the key, and that an answer may vary by.
    pub(crate) fn other(&mut self, common: Option<Common>, name: &HeaderName, value: &HeaderValue) {
        match common {
            Some(common) => self.other_common(common, value),
            None => write_named(&mut self.0.others, name.as_str(), value.as_bytes()),
        }
    }

    /// Adds such a header with a common name.
    #[inline]
    pub(crate) fn other_common(&mut self, common: Common, value: &HeaderValue) {
        write_common(&mut self.0.others, common, value.as_bytes());
    }

    /// Adds what is derived from a header, under a name that no header has.
    pub(crate) fn derived(&mut self, name: &HeaderName, write_value: impl FnOnce(&mut Vec<u8>)) {
        let mut derived = Vec::new();
        write_value(&mut derived);
        write_named(&mut self.0.bytes, &format!("{name}:"), &derived);
    }

    /// Leaves the memory to the thread's next key.
    pub(crate) fn discard(self) {
        SPARE.set(Some(self.0));
    }

    /// The key; `None` if it is too long to encode, which no server accepts anyway.
    pub(crate) fn finish(self, target: &Target<'_>, max_age: Option<u64>) -> Option<Key> {
        let Self(mut key) = self;
        let Parts { bytes, others, .. } = &mut *key;
        let headers = bytes.len();
        let mut write = |part: Option<&[u8]>| {
            part.map_or(NONE, |part| {
                bytes.extend_from_slice(part);
                part.len() as u32
            })
        };
        let method = write(Some(target.method.as_bytes()));
        let path = write(target.path_and_query.map(str::as_bytes));
        let host = write(target.host.map(HeaderValue::as_bytes));
        // All of this is absent most often.
        let [scheme, authority, own] = match (target.scheme, target.authority, target.own) {
            (None, None, None) => [NONE; 3],
            (scheme, authority, own) => [scheme.map(str::as_bytes), authority.map(str::as_bytes), own].map(write),
        };
        let [early, late] = [target.epoch as u32, (target.epoch >> 32) as u32];
        let words = [method, path, host, scheme, authority, own, headers as u32, early, late];
        bytes.extend_from_slice(words.map(u32::to_le_bytes).as_flattened());
        // No part is longer than the whole, and so no length was cut short.
        if bytes.len().max(others.len()) >= IS_COMMON as usize {
            return None;
        }
        (key.headers, key.unsplit) = (headers, bytes.len());
        (key.max_age, key.place, key.hash) = (max_age, target.place, 0);
        Some(Key(key))
    }
}

impl Key {
    /// Leaves the key's memory to the thread's next key, so that a request without a flight to join allocates none.
    pub(crate) fn recycle(self) {
        const MOST: usize = 16 * 1024;
        if self.0.bytes.capacity().max(self.0.others.capacity()) <= MOST {
            SPARE.set(Some(self.0));
        }
    }

    /// The greatest age, in seconds, of an earlier answer that the client takes.
    pub(crate) fn max_age(&self) -> Option<u64> {
        self.0.max_age
    }

    /// The hash of the wanted path and query: all requests that may share an answer have it, and many that may not.
    pub(crate) fn place(&self) -> u64 {
        self.0.place
    }

    /// The hash of the key, once the table has computed it.
    pub(crate) fn hash(&self) -> u64 {
        self.0.hash
    }

    /// Computes the hash of the key.
    pub(crate) fn hash_by(&mut self, hasher: &Hasher) -> u64 {
        self.0.hash = hasher.hash_one(self.bytes());
        self.0.hash
    }

    /// The approximate memory of a waiting request, in bytes: its key, and the head that the key was made from.
    pub(crate) fn weight(&self) -> usize {
        const ITSELF: usize = 256;
        ITSELF + 2 * (self.0.bytes.len() + self.0.others.len())
    }

    /// The part that was the key before it was split.
    pub(crate) fn unsplit(&self) -> &[u8] {
        self.0.bytes.get(..self.0.unsplit).unwrap_or_default()
    }

    /// The part that must be equal.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// Whether this key's request and one with the same key and these headers have equal values of each of these names
    /// (RFC 9111, section 4.1).
    pub(crate) fn has_in_common(&self, names: &[HeaderName], other: &HeaderMap) -> bool {
        names.iter().all(|name| {
            let theirs = other.get_all(name).iter();
            match self.keyed(name) {
                _ if *name == http::header::HOST => true,
                0 => values(&self.0.others, name).eq(theirs.map(HeaderValue::as_bytes)),
                // A line in the key is equal in both requests; of some headers there may be harmless lines beside it.
                keyed => keyed == theirs.count() && values(&self.0.others, name).next().is_none(),
            }
        })
    }

    /// Adds the values of these names to the key, so that requests with other values of them get other keys.
    pub(crate) fn split_by(mut self, names: &[HeaderName]) -> Option<Self> {
        let began = self.0.bytes.len();
        for name in names {
            if *name == http::header::HOST || self.keyed(name) > 0 {
                continue;
            }
            write_named(&mut self.0.bytes, &format!("{name}="), b"");
            for value in values(&self.0.others, name) {
                match Common::of(name) {
                    Some(common) => write_common(&mut self.0.bytes, common, value),
                    None => write_named(&mut self.0.bytes, name.as_str(), value),
                }
            }
        }
        let length = u32::try_from(self.0.bytes.len() - began).ok().filter(|length| *length < IS_COMMON)?;
        self.0.bytes.extend_from_slice(&length.to_le_bytes());
        self.0.bytes.extend_from_slice(&NONE.to_le_bytes());
        Some(self)
    }

    /// The number of lines of a header that are in the key.
    fn keyed(&self, name: &HeaderName) -> usize {
        values(self.0.bytes.get(..self.0.headers).unwrap_or_default(), name).count()
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Key {}

/// In the place of a name's length: what follows is no name, but the number of a common one.
const IS_COMMON: u32 = 1 << 31;

/// Writes the number of a common name, the length of the value, and the value.
#[inline]
fn write_common(bytes: &mut Vec<u8>, common: Common, value: &[u8]) {
    write_lengths(bytes, IS_COMMON | u32::from(common.number), value);
    bytes.extend_from_slice(value);
}

/// Writes the lengths of a name and of a value, and both.
fn write_named(bytes: &mut Vec<u8>, name: &str, value: &[u8]) {
    write_lengths(bytes, name.len() as u32, value);
    bytes.extend_from_slice(name.as_bytes());
    bytes.extend_from_slice(value);
}

#[inline]
fn write_lengths(bytes: &mut Vec<u8>, name: u32, value: &[u8]) {
    let lengths = (value.len() as u64) << 32 | u64::from(name);
    bytes.extend_from_slice(&lengths.to_le_bytes());
}

/// The encoded values of a header.
fn values<'a>(headers: &'a [u8], name: &'a HeaderName) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = headers;
    let wanted = Common::of(name).map_or(Named::Text(name.as_str().as_bytes()), |common| Named::Number(common.number));
    let pairs = std::iter::from_fn(move || read(&mut rest));
    pairs.filter_map(move |(named, value)| (named == wanted).then_some(value))
}

/// The name of an encoded header.
#[derive(PartialEq, Eq)]
enum Named<'a> {
    Number(u8),
    Text(&'a [u8]),
}

/// The next name with its value.
fn read<'a>(rest: &mut &'a [u8]) -> Option<(Named<'a>, &'a [u8])> {
    let (lengths, after) = rest.split_first_chunk::<8>()?;
    let lengths = u64::from_le_bytes(*lengths);
    let (name, length) = (lengths as u32, (lengths >> 32) as usize);
    let (named, after) = match name & IS_COMMON {
        0 => after.split_at_checked(name as usize).map(|(text, after)| (Named::Text(text), after))?,
        _ => (Named::Number(name as u8), after),
    };
    let (value, after) = after.split_at_checked(length)?;
    *rest = after;
    Some((named, value))
}
