//! What requests must have in common to share an answer.

use std::cell::Cell;
use std::hash::BuildHasher as _;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::fields::Common;
use crate::sync::Hasher;

/// What requests must have in common to share an answer, and the other headers that an answer may vary by.
///
/// The parts stand one after the other, each behind its name and its length: first the headers, and then the target's parts. Read
/// from the start, this is unambiguous, so two requests have the same parts if and only if they have the same bytes. Keys are
/// compared byte by byte; the hash only finds the place in the table.
///
/// It is moved about more often than it is read, so it is a box.
#[derive(Debug, Clone)]
pub(crate) struct Key(Box<Parts>);

#[derive(Debug, Clone, Default)]
struct Parts {
    key: Tape,
    /// The headers that are not in the key.
    others: Tape,
    /// Room for what is derived from a header.
    derived: Vec<u8>,
    /// Where the headers of the key end.
    headers: usize,
    /// Where the key ended before it was split.
    unsplit: usize,
    /// The number of writes to the URI before the request. It must be equal, too.
    epoch: u64,
    max_age: Option<u64>,
    place: u64,
    hash: u64,
}

/// The parts of a key apart from headers.
#[derive(Clone, Copy, Default)]
pub(crate) struct Target<'a> {
    /// The number of the method, which is less than 16.
    pub(crate) method: u32,
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

/// A key in the making. Headers come first, as they are found on the way through the request.
pub(crate) struct KeyWriter(Box<Parts>);

impl KeyWriter {
    #[inline]
    pub(crate) fn new() -> Self {
        let mut parts = SPARE.take().unwrap_or_default();
        (parts.key.written, parts.others.written) = (0, 0);
        Self(parts)
    }

    /// Adds a header to the key.
    pub(crate) fn header(&mut self, common: Option<Common>, name: &HeaderName, value: &HeaderValue) {
        write_header(&mut self.0.key, common, name, value.as_bytes());
    }

    /// Adds a header with a common name to the key.
    #[inline]
    pub(crate) fn common(&mut self, common: Common, value: &HeaderValue) {
        self.0.key.write(common.number.into(), value.as_bytes());
    }

    /// Adds a header that is not in the key, and that an answer may vary by.
    pub(crate) fn other(&mut self, common: Option<Common>, name: &HeaderName, value: &HeaderValue) {
        write_header(&mut self.0.others, common, name, value.as_bytes());
    }

    /// Adds such a header with a common name.
    #[inline]
    pub(crate) fn other_common(&mut self, common: Common, value: &HeaderValue) {
        self.0.others.write(common.number.into(), value.as_bytes());
    }

    /// Adds what is derived from a header, under a name that no header has.
    pub(crate) fn derived(
        &mut self,
        common: Option<Common>,
        name: &HeaderName,
        write_value: impl FnOnce(&mut Vec<u8>),
    ) {
        let Parts { key, derived, .. } = &mut *self.0;
        derived.clear();
        write_value(derived);
        match common {
            Some(common) => key.write(DERIVED + u32::from(common.number), derived),
            None => write_named(key, &format!("{name}:"), derived),
        }
    }

    /// Leaves the memory to the thread's next key.
    pub(crate) fn discard(self) {
        SPARE.set(Some(self.0));
    }

    /// The key; `None` if it is too long to encode, which no server accepts anyway.
    #[inline]
    pub(crate) fn finish(self, target: Target<'_>, max_age: Option<u64>) -> Option<Key> {
        let Self(mut parts) = self;
        parts.headers = parts.key.written;
        let key = &mut parts.key;
        match target.path_and_query {
            Some(path) => key.write(PATH + target.method, path.as_bytes()),
            None => key.write(NO_PATH + target.method, b""),
        }
        if let Some(host) = target.host {
            key.write(HOST, host.as_bytes());
        }
        if target.scheme.is_some() || target.authority.is_some() || target.own.is_some() {
            write_rarer(key, target.scheme, target.authority, target.own);
        }
        // No part is longer than the whole, and so no length was cut short.
        if parts.key.written.max(parts.others.written) >= IS_NUMBER as usize {
            return None;
        }
        (parts.unsplit, parts.max_age) = (parts.key.written, max_age);
        (parts.epoch, parts.place, parts.hash) = (target.epoch, target.place, 0);
        Some(Key(parts))
    }
}

impl Key {
    /// Leaves the key's memory to the thread's next key, so that a request without a flight to join allocates none.
    #[inline]
    pub(crate) fn recycle(self) {
        const MOST: usize = 16 * 1024;
        if self.0.key.room.len().max(self.0.others.room.len()) <= MOST {
            SPARE.with(|spare| spare.set(Some(self.0)));
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
        ITSELF + 2 * (self.0.key.written + self.0.others.written)
    }

    /// The part that was the key before it was split.
    pub(crate) fn unsplit(&self) -> &[u8] {
        self.bytes().get(..self.0.unsplit).unwrap_or_default()
    }

    /// The part that must be equal, beside the epoch.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.key.bytes()
    }

    /// Whether this key's request and one with the same key and these headers have equal values of each of these names
    /// (RFC 9111, section 4.1).
    pub(crate) fn has_in_common(&self, names: &[HeaderName], other: &HeaderMap) -> bool {
        names.iter().all(|name| {
            let theirs = other.get_all(name).iter();
            match self.keyed(name) {
                _ if *name == http::header::HOST => true,
                0 => values(self.0.others.bytes(), name).eq(theirs.map(HeaderValue::as_bytes)),
                // A line in the key is equal in both requests; of some headers there may be harmless lines beside it.
                keyed => keyed == theirs.count() && values(self.0.others.bytes(), name).next().is_none(),
            }
        })
    }

    /// Adds the values of these names to the key, so that requests with other values of them get other keys.
    pub(crate) fn split_by(mut self, names: &[HeaderName]) -> Option<Self> {
        for name in names {
            if *name == http::header::HOST || self.keyed(name) > 0 {
                continue;
            }
            let Parts { key, others, .. } = &mut *self.0;
            write_named(key, &format!("{name}="), b"");
            for value in values(others.bytes(), name) {
                write_header(key, Common::of(name), name, value);
            }
        }
        (self.0.key.written < IS_NUMBER as usize).then_some(self)
    }

    /// The number of lines of a header that are in the key.
    fn keyed(&self, name: &HeaderName) -> usize {
        values(self.bytes().get(..self.0.headers).unwrap_or_default(), name).count()
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.0.epoch == other.0.epoch && self.bytes() == other.bytes()
    }
}

impl Eq for Key {}

/// What is written of a key.
#[derive(Debug, Clone, Default)]
struct Tape {
    /// Memory that is written to from the start. It is not cleared in between.
    room: Vec<u8>,
    written: usize,
}

/// The longest value that is copied in two pieces, which saves a call for most.
const SHORT: usize = 128;

/// The bytes in which name and length of a value stand.
const HEAD: usize = 8;

impl Tape {
    fn bytes(&self) -> &[u8] {
        self.room.get(..self.written).unwrap_or_default()
    }

    /// Writes a part behind the number that stands for its name.
    #[inline]
    fn write(&mut self, number: u32, value: &[u8]) {
        let head = (value.len() as u64) << 32 | u64::from(IS_NUMBER | number);
        let room = self.room.get_mut(self.written..).and_then(<[u8]>::first_chunk_mut::<{ HEAD + SHORT }>);
        match room.and_then(|room| room.split_first_chunk_mut::<HEAD>()) {
            Some((at, room)) if value.len() <= SHORT => {
                *at = head.to_le_bytes();
                copy_short(room, value);
                self.written += HEAD + value.len();
            }
            _ => self.write_long(head, value),
        }
    }

    #[inline(never)]
    fn write_long(&mut self, head: u64, value: &[u8]) {
        let began = self.written;
        self.append(&head.to_le_bytes());
        self.append(value);
        debug_assert_eq!(self.written, began + HEAD + value.len());
    }

    fn append(&mut self, bytes: &[u8]) {
        let ends = self.written + bytes.len();
        if ends + HEAD + SHORT > self.room.len() {
            self.room.resize((2 * ends).max(256), 0);
        }
        if let Some(room) = self.room.get_mut(self.written..ends) {
            room.copy_from_slice(bytes);
        }
        self.written = ends;
    }
}

/// Copies at most [`SHORT`] bytes: the first ones, and the last ones, which may be among the first.
#[inline(always)]
fn copy_short(to: &mut [u8], value: &[u8]) {
    #[inline(always)]
    fn in_two<const N: usize>(to: &mut [u8], value: &[u8]) -> bool {
        let (Some(first), Some(last)) = (value.first_chunk::<N>(), value.last_chunk::<N>()) else { return false };
        if let Some(to) = to.first_chunk_mut() {
            *to = *first;
        }
        if let Some(to) = to.get_mut(value.len() - N..).and_then(<[u8]>::first_chunk_mut) {
            *to = *last;
        }
        true
    }
    let _ = if value.len() > 16 {
        in_two::<64>(to, value) || in_two::<32>(to, value) || in_two::<16>(to, value)
    } else {
        in_two::<8>(to, value) || in_two::<4>(to, value) || in_two::<2>(to, value) || in_two::<1>(to, value)
    };
}

/// In the place of a name's length: what stands there is not the length of a name, but the number of a common one or of a part.
const IS_NUMBER: u32 = 1 << 31;

// The parts that are no headers. Their numbers are beyond those of common names.
/// The path and query. The last digit says the method.
const PATH: u32 = 0x100;
/// That a request has no path and query, as one of `OPTIONS *` or `CONNECT`.
const NO_PATH: u32 = 0x110;
const HOST: u32 = 0x120;
const SCHEME: u32 = 0x130;
const AUTHORITY: u32 = 0x140;
const OWN: u32 = 0x150;
/// Beyond this, what is derived from a header with a common name, by the name's number.
const DERIVED: u32 = 0x200;

/// Writes a header, by its number if its name is a common one.
fn write_header(tape: &mut Tape, common: Option<Common>, name: &HeaderName, value: &[u8]) {
    match common {
        Some(common) => tape.write(common.number.into(), value),
        None => write_named(tape, name.as_str(), value),
    }
}

/// Writes a part behind its lengths and its name.
fn write_named(tape: &mut Tape, name: &str, value: &[u8]) {
    let lengths = (value.len() as u64) << 32 | name.len() as u64;
    tape.append(&lengths.to_le_bytes());
    tape.append(name.as_bytes());
    tape.append(value);
}

/// Writes the parts of a target that most lack.
#[cold]
fn write_rarer(tape: &mut Tape, scheme: Option<&str>, authority: Option<&str>, own: Option<&[u8]>) {
    let rarer = [(SCHEME, scheme.map(str::as_bytes)), (AUTHORITY, authority.map(str::as_bytes)), (OWN, own)];
    for (number, value) in rarer {
        if let Some(value) = value {
            tape.write(number, value);
        }
    }
}

/// The encoded values of a header.
fn values<'a>(headers: &'a [u8], name: &'a HeaderName) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = headers;
    let wanted =
        Common::of(name).map_or(Named::Text(name.as_str().as_bytes()), |common| Named::Number(common.number.into()));
    let pairs = std::iter::from_fn(move || read(&mut rest));
    pairs.filter_map(move |(named, value)| (named == wanted).then_some(value))
}

/// The name of an encoded part.
#[derive(PartialEq, Eq)]
enum Named<'a> {
    Number(u32),
    Text(&'a [u8]),
}

/// The next name with its value.
fn read<'a>(rest: &mut &'a [u8]) -> Option<(Named<'a>, &'a [u8])> {
    let (head, after) = rest.split_first_chunk::<HEAD>()?;
    let head = u64::from_le_bytes(*head);
    let (name, length) = (head as u32, (head >> 32) as usize);
    let (named, after) = match name & IS_NUMBER {
        0 => after.split_at_checked(name as usize).map(|(text, after)| (Named::Text(text), after))?,
        _ => (Named::Number(name & !IS_NUMBER), after),
    };
    let (value, after) = after.split_at_checked(length)?;
    *rest = after;
    Some((named, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_each_length_is_written_whole_and_read_back() {
        let text: Vec<u8> = (1..=2000).map(|at| at as u8).collect();
        let (mut tape, lengths) = (Tape::default(), (0..80).chain([500, 2000]));
        for length in lengths.clone() {
            tape.write(7, text.get(..length).unwrap());
            write_named(&mut tape, "x-zqw", text.get(..length).unwrap());
        }
        let mut rest = tape.bytes();
        for length in lengths {
            let value = text.get(..length).unwrap();
            assert!(read(&mut rest) == Some((Named::Number(7), value)), "{length}");
            assert!(read(&mut rest) == Some((Named::Text(b"x-zqw"), value)), "{length}");
        }
        assert!(rest.is_empty());
    }
}
