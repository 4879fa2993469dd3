//! A log of the time at which each message was sent, to compare with a client's measurement.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A file with a line for each message: the number of its call, a comma, and the time at which it was sent, in
/// nanoseconds since the start.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    started: Instant,
    calls: AtomicU64,
}

impl Log {
    /// Creates the log in this file, and overwrites it.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::create(path)?, started: Instant::now(), calls: AtomicU64::new(0) })
    }

    /// The part of the log for a new call.
    pub(super) fn begin(log: &Arc<Self>) -> CallMessages {
        CallMessages { call: log.calls.fetch_add(1, Ordering::Relaxed), log: Arc::clone(log) }
    }
}

/// The messages of one call.
#[derive(Debug)]
pub(super) struct CallMessages {
    log: Arc<Log>,
    call: u64,
}

impl CallMessages {
    /// A message is sent now.
    pub(super) fn sent(&self) {
        let line = format!("{},{}\n", self.call, self.log.started.elapsed().as_nanos());
        // If the log cannot be written it is incomplete, which its reader notices.
        let _ = (&self.log.file).write_all(line.as_bytes());
    }
}
