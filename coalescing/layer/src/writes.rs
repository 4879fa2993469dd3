//! What was written to: no answer that was asked for before a write is given to who asks after it (RFC 9111, section 4.4).
//!
//! Each URI has an epoch, which is in the key of its flights and grows as an unsafe request starts and as it ends. So the
//! flights from before are closed to newcomers without being looked for. URIs whose hashes meet share an epoch: one of them
//! that is written to parts the flights of the other once, and nothing worse.

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

    /// By path and query alone: the same host is written in more than one way.
    fn epoch(&self, uri: &Uri) -> Option<&AtomicU64> {
        let target = uri.path_and_query().map_or("", |target| target.as_str());
        self.epochs.get(self.hasher.hash_one(target.as_bytes()) as usize % EPOCHS)
    }

    /// The epoch of a URI now.
    #[inline]
    pub(crate) fn now(&self, uri: &Uri) -> u64 {
        self.epoch(uri).map_or(0, |epoch| epoch.load(Ordering::Acquire))
    }
}

/// An unsafe request, which closes its URI's flights to newcomers as it starts, and as it ends in whatever way.
#[derive(Debug)]
pub(crate) struct Write {
    epochs: Arc<Epochs>,
    uri: Uri,
}

impl Write {
    pub(crate) fn starts(epochs: &Arc<Epochs>, uri: &Uri) -> Self {
        let write = Self { epochs: Arc::clone(epochs), uri: uri.clone() };
        write.closes_flights();
        write
    }

    /// Whoever asks from now on is not answered by what was asked for before.
    pub(crate) fn closes_flights(&self) {
        if let Some(epoch) = self.epochs.epoch(&self.uri) {
            epoch.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Drop for Write {
    fn drop(&mut self) {
        self.closes_flights();
    }
}
