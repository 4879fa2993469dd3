//! What flights are built on. The model of `tests/loom.rs` puts its own in its place.

pub(crate) use hashbrown::DefaultHashBuilder as Hasher;
pub(crate) use std::sync::{Mutex, MutexGuard};

/// Into so many parts the table is divided, so that threads seldom wait for each other.
pub(crate) const SHARDS: usize = 32;
