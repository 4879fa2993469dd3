//! What this process may have, raised as far as it goes.

use brunt_model::plan::MOST_CONNECTIONS;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::EngineError;

/// Descriptors that a process needs besides its connections.
const SPARE_DESCRIPTORS: u64 = 64;

/// Raises the limit on file descriptors as far as it goes: how many users there will be is not known beforehand.
pub(crate) fn raise_descriptors_fully() {
    let limit = getrlimit(Resource::Nofile);
    // Where it cannot be raised, calls that find no descriptor say so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Raises the limit on file descriptors so far that `connections` fit.
///
/// # Errors
/// When the hard limit is too low for that.
pub(crate) fn raise_descriptors(connections: u32, workers: u32) -> Result<(), EngineError> {
    let needed = u64::from(connections) + u64::from(workers) * 4 + SPARE_DESCRIPTORS;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|maximum| maximum < needed) {
        return Err(EngineError::Descriptors { connections, needed, limit: limit.maximum.unwrap_or(u64::MAX) });
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum: limit.maximum })
        .map_err(|_| EngineError::Descriptors { connections, needed, limit: limit.current.unwrap_or(u64::MAX) })
}

/// The most connections that the hard limit on file descriptors allows this process, with as many workers as there are
/// cores.
pub fn most_connections() -> u32 {
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    let limit = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::from(MOST_CONNECTIONS));
    let left = limit.saturating_sub(workers * 4 + SPARE_DESCRIPTORS).max(1);
    u32::try_from(left).unwrap_or(MOST_CONNECTIONS).min(MOST_CONNECTIONS)
}
