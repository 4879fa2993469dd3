//! Large bodies that the calls of many users have in common.

use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Bodies of at least this many bytes are shared. A smaller one is copied faster than it is found.
pub const LEAST_SHARED_BYTES: usize = 64 << 10;
/// The most bodies that are known at a time. Others are not shared.
const MOST_KNOWN: usize = 64;

/// The bodies of calls that have not ended.
static KNOWN: Mutex<Vec<Weak<[u8]>>> = Mutex::new(Vec::new());

/// A copy of `body`, or the one that a call of this process has already: while many users send a large body, it is in
/// memory once. Bodies are told apart by all of their bytes.
///
/// ```
/// use std::sync::Arc;
/// use brunt_protocol::scenario::shared_body;
///
/// let (first, other) = (shared_body(&[1; 100_000]), shared_body(&[2; 100_000]));
/// assert!(Arc::ptr_eq(&first, &shared_body(&[1; 100_000])) && !Arc::ptr_eq(&first, &other));
/// ```
pub fn shared_body(body: &[u8]) -> Arc<[u8]> {
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    // Compared without the lock, which other workers wait for.
    let alive: Vec<Arc<[u8]>> = {
        let mut known = known();
        known.retain(|body| body.strong_count() > 0);
        known.iter().filter_map(Weak::upgrade).filter(|known| known.len() == body.len()).collect()
    };
    if let Some(same) = alive.into_iter().find(|known| known[..] == *body) {
        return same;
    }
    let own: Arc<[u8]> = body.into();
    let mut known = known();
    if known.len() < MOST_KNOWN {
        known.push(Arc::downgrade(&own));
    }
    own
}
