//! Writes: no answer to a request from before a write is given to a request from after it (RFC 9111, section 4.4).
//!
//! Each URI has an epoch, which is in the key of its flights, and grows when an unsafe request starts and when it ends.
//! That
//! closes earlier flights to new requests without a search for them. URIs whose hashes collide share an epoch: a write
//! to one
//! of them closes the other's flights as well, which costs one more call and is otherwise harmless.

use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::Uri;

use crate::sync::Hasher;

/// Number of epochs.
const EPOCHS: usize = 4096;

/// The epochs of all URIs.
#[derive(Debug)]
pub(crate) struct Epochs {
    hasher: Hasher,
    epochs: Box<[AtomicU64]>,
}

impl Epochs {
    pub(crate) fn new() -> Self {
        Self { hasher: Hasher::default(), epochs: (0..EPOCHS).map(|_| AtomicU64::new(0)).collect() }
    }

    /// The hash of a path and query. The host is left out, as one host has several spellings.
    #[inline]
    fn place(&self, uri: &Uri) -> u64 {
        let target = uri.path_and_query().map_or("", |target| target.as_str());
        self.hasher.hash_one(target.as_bytes())
    }

    #[inline]
    fn epoch(&self, place: u64) -> Option<&AtomicU64> {
        self.epochs.get(place as usize % EPOCHS)
    }

    /// The epoch of a URI now, and the URI's hash.
    #[inline]
    pub(crate) fn now(&self, uri: &Uri) -> (u64, u64) {
        let place = self.place(uri);
        (self.epoch(place).map_or(0, |epoch| epoch.load(Ordering::Acquire)), place)
    }
}

/// An unsafe request. It closes its URI's flights to new requests when it starts, and when it ends, however it does.
#[derive(Debug)]
pub(crate) struct Write {
    epochs: Arc<Epochs>,
    place: u64,
}

impl Write {
    pub(crate) fn starts(epochs: &Arc<Epochs>, uri: &Uri) -> Self {
        let write = Self { epochs: Arc::clone(epochs), place: epochs.place(uri) };
        write.closes_flights();
        write
    }

    /// Closes the flights of the URI: later requests are not answered by earlier ones.
    pub(crate) fn closes_flights(&self) {
        if let Some(epoch) = self.epochs.epoch(self.place) {
            epoch.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Drop for Write {
    fn drop(&mut self) {
        self.closes_flights();
    }
}
