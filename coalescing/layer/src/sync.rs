//! The primitives that flights are built on. The model in `tests/loom.rs` replaces them.

pub(crate) use hashbrown::DefaultHashBuilder as Hasher;
pub(crate) use std::sync::{Mutex, MutexGuard};

/// The number of parts of the table, so that threads seldom wait for each other.
pub(crate) const SHARDS: usize = 32;
