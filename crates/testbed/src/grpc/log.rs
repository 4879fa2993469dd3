//! When each message was sent, written down for whoever measures the same from the other side.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A file with a line for each message: the number of its call, a comma, and when it was sent, in nanoseconds since the start.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    started: Instant,
    calls: AtomicU64,
}

impl Log {
    /// A log in this file, in place of what was there.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::create(path)?, started: Instant::now(), calls: AtomicU64::new(0) })
    }

    /// A call's part of it.
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
        // A log that cannot be written is short, which its reader sees.
        let _ = (&self.log.file).write_all(line.as_bytes());
    }
}
