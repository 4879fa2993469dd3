//! The tables that HPACK's indices point into (RFC 7541, section 2.3).

use std::collections::VecDeque;

/// The static table (RFC 7541, appendix A), from index 1 on.
pub(super) const STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// The size of an entry besides its bytes (RFC 7541, section 4.1).
pub(super) const ENTRY_BYTES: usize = 32;

/// A name and a value in one piece.
#[derive(Debug)]
struct Entry {
    bytes: Box<[u8]>,
    name: usize,
}

impl Entry {
    fn parts(&self) -> (&[u8], &[u8]) {
        self.bytes.split_at(self.name.min(self.bytes.len()))
    }
}

/// The dynamic table of one direction.
#[derive(Debug)]
pub(super) struct Table {
    /// The newest first.
    entries: VecDeque<Entry>,
    /// Their size, as the RFC counts it.
    size: usize,
    most: usize,
}

impl Table {
    pub(super) fn new(most: usize) -> Self {
        Self { entries: VecDeque::new(), size: 0, most }
    }

    /// The maximum size, as the RFC counts it.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// The number of entries.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Sets the maximum size. Entries beyond it are evicted, oldest first.
    pub(super) fn resize(&mut self, most: usize) {
        self.most = most;
        self.evict(0);
    }

    /// Adds an entry as the newest. One that is larger than the table empties it (RFC 7541, section 4.4).
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) {
        let size = name.len() + value.len() + ENTRY_BYTES;
        self.evict(size);
        if size <= self.most {
            self.entries.push_front(Entry { bytes: [name, value].concat().into(), name: name.len() });
            self.size += size;
        }
    }

    fn evict(&mut self, room: usize) {
        while self.size + room > self.most
            && let Some(oldest) = self.entries.pop_back()
        {
            self.size -= oldest.bytes.len() + ENTRY_BYTES;
        }
    }

    /// Name and value at an index of both tables, from 1 on.
    pub(super) fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let place = index.checked_sub(1)?;
        match STATIC.get(place) {
            Some((name, value)) => Some((name.as_bytes(), value.as_bytes())),
            None => self.entries.get(place - STATIC.len()).map(Entry::parts),
        }
    }

    /// The indices of a field and of its name, as far as there are any.
    pub(super) fn find(&self, name: &[u8], value: &[u8]) -> (Option<usize>, Option<usize>) {
        let fixed = STATIC.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let all = fixed.chain(self.entries.iter().map(Entry::parts)).zip(1..);
        let mut named = None;
        for ((known, known_value), index) in all {
            if known == name {
                if known_value == value {
                    return (Some(index), Some(index));
                }
                named = named.or(Some(index));
            }
        }
        (None, named)
    }
}
