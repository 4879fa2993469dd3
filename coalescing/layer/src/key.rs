//! What requests must have in common to be answered by one.

use std::cell::Cell;

use http::{HeaderMap, HeaderName, HeaderValue};
use smallvec::SmallVec;

/// What requests must have in common to be answered by one, and what else of them an answer may vary by.
///
/// All of it is written one after the other: the URI's epoch, the target's parts after their lengths, then each header with its lengths before
/// it, so that two requests have the same parts if and only if they have the same bytes. Keys are the same when every byte is: the hash only says where to look.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    /// First the key, then the headers that are not in it.
    bytes: Vec<u8>,
    /// Where the headers of the key begin.
    headers: usize,
    /// Where the key ends.
    end: usize,
    /// Says where to look, once the table has made it.
    pub(crate) hash: u64,
}

/// What a key is made of, headers aside.
#[derive(Default)]
pub(crate) struct Target<'a> {
    pub(crate) method: &'a str,
    pub(crate) scheme: Option<&'a str>,
    /// Of the request target. Handlers may look at either this or the host, so both count.
    pub(crate) authority: Option<&'a str>,
    pub(crate) host: Option<&'a HeaderValue>,
    pub(crate) path_and_query: Option<&'a str>,
    /// What `Forwarded` says of the host and scheme that were asked for.
    pub(crate) forwarded: Option<&'a [u8]>,
    /// What the key function said.
    pub(crate) own: Option<&'a [u8]>,
    /// How often its URI has been written to: what was asked for before a write is no answer to what came after it.
    pub(crate) epoch: u64,
}

/// Headers of a request, in the order in which they came.
pub(crate) type Headers<'a> = SmallVec<[(&'a HeaderName, &'a HeaderValue); 8]>;

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A length that no part has.
const NONE: u32 = u32::MAX;

impl Key {
    /// None if a part is longer than can be written down, as none is that a server takes.
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
        // All lengths first, and at once: most parts are short, or not there.
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

    /// Leaves its memory to the thread's next key, so that a request that meets nobody allocates none for it.
    pub(crate) fn recycle(self) {
        const MOST: usize = 16 * 1024;
        if self.bytes.capacity() <= MOST {
            SPARE.set(self.bytes);
        }
    }

    /// About how much memory a request with this key takes while it waits, in bytes: the key, and the head that it was made of.
    pub(crate) fn weight(&self) -> usize {
        const ITSELF: usize = 256;
        ITSELF + 2 * self.bytes.len()
    }

    /// What must be the same.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.end).unwrap_or_default()
    }

    /// Whether the request that this is of and one with the same key and these headers have the same values of each of
    /// these names (RFC 9111, section 4.1).
    pub(crate) fn has_in_common(&self, names: &[HeaderName], other: &HeaderMap) -> bool {
        let keyed = self.bytes.get(self.headers..self.end).unwrap_or_default();
        let others = self.bytes.get(self.end..).unwrap_or_default();
        names.iter().all(|name| {
            // What is in the key of one is in that of the other, and is the same.
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

/// The values of a header among those that were written down.
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
