//! What requests must have in common to share an answer.

use std::cell::Cell;

use http::{HeaderMap, HeaderName, HeaderValue};
use smallvec::SmallVec;

/// What requests must have in common to share an answer, and the other headers that an answer may vary by.
///
/// The parts stand one after the other: the URI's epoch, the lengths of the target's parts and those parts, then each
/// header behind its lengths. So
/// two requests have the same parts if and only if they have the same bytes. Keys are compared byte by byte; the hash
/// only finds the place in the table.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    /// The key, followed by the headers that are not in it.
    bytes: Vec<u8>,
    /// Where the headers of the key begin.
    headers: usize,
    /// Where the key ends.
    end: usize,
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
    /// Host and scheme according to `Forwarded`.
    pub(crate) forwarded: Option<&'a [u8]>,
    /// The result of the key function.
    pub(crate) own: Option<&'a [u8]>,
    /// The number of writes to the URI: a request from before a write must not answer one from after it.
    pub(crate) epoch: u64,
}

/// Headers of a request, in their order.
pub(crate) type Headers<'a> = SmallVec<[(&'a HeaderName, &'a HeaderValue); 8]>;

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A length that no part has.
const NONE: u32 = u32::MAX;

impl Key {
    /// The key; `None` if a part is too long to encode, which no server accepts anyway.
    pub(crate) fn new(target: &Target<'_>, keyed: &Headers<'_>, others: &Headers<'_>) -> Option<Self> {
        let mut bytes = SPARE.take();
        bytes.clear();
        let parts = [
            Some(target.method.as_bytes()),
            target.scheme.map(str::as_bytes),
            target.authority.map(str::as_bytes),
            target.host.map(HeaderValue::as_bytes),
            target.path_and_query.map(str::as_bytes),
            target.forwarded,
            target.own,
        ];
        // All lengths come first, together: most parts are short or absent.
        if parts.iter().flatten().map(|part| part.len()).sum::<usize>() >= NONE as usize {
            return None;
        }
        let lengths = parts.map(|part| part.map_or(NONE, |part| part.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&target.epoch.to_le_bytes());
        bytes.extend_from_slice(lengths.as_flattened());
        parts.into_iter().flatten().for_each(|part| bytes.extend_from_slice(part));
        let headers = bytes.len();
        for (name, value) in keyed {
            write_header(&mut bytes, name, value)?;
        }
        let end = bytes.len();
        for (name, value) in others {
            write_header(&mut bytes, name, value)?;
        }
        Some(Self { bytes, headers, end, hash: 0 })
    }

    /// Leaves the key's memory to the thread's next key, so that a request without a flight to join allocates none.
    pub(crate) fn recycle(self) {
        const MOST: usize = 16 * 1024;
        if self.bytes.capacity() <= MOST {
            SPARE.set(self.bytes);
        }
    }

    /// The approximate memory of a waiting request, in bytes: its key, and the head that the key was made from.
    pub(crate) fn weight(&self) -> usize {
        const ITSELF: usize = 256;
        ITSELF + 2 * self.bytes.len()
    }

    /// The part that must be equal.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.end).unwrap_or_default()
    }

    /// Whether this key's request and one with the same key and these headers have equal values of each of these names
    /// (RFC 9111, section 4.1).
    pub(crate) fn has_in_common(&self, names: &[HeaderName], other: &HeaderMap) -> bool {
        let keyed = self.bytes.get(self.headers..self.end).unwrap_or_default();
        let others = self.bytes.get(self.end..).unwrap_or_default();
        names.iter().all(|name| {
            // A header in the key is equal in both requests.
            *name == http::header::HOST
                || values(keyed, name).next().is_some()
                || values(others, name).eq(other.get_all(name).iter().map(HeaderValue::as_bytes))
        })
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Key {}

fn write(bytes: &mut Vec<u8>, part: &[u8]) -> Option<()> {
    let length = u32::try_from(part.len()).ok().filter(|&length| length != NONE)?;
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(part);
    Some(())
}

fn write_header(bytes: &mut Vec<u8>, name: &HeaderName, value: &HeaderValue) -> Option<()> {
    write(bytes, name.as_str().as_bytes())?;
    write(bytes, value.as_bytes())
}

/// The encoded values of a header.
fn values<'a>(headers: &'a [u8], name: &'a HeaderName) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = headers;
    let pairs = std::iter::from_fn(move || Some((read(&mut rest)?, read(&mut rest)?)));
    pairs.filter_map(move |(other, value)| (other == name.as_str().as_bytes()).then_some(value))
}

fn read<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let (part, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *rest = after;
    Some(part)
}
