//! The wish that a run ends before its time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends a run early, from any thread or signal handler. Calls in flight still end within the drain.
#[derive(Debug, Clone, Default)]
pub struct StopHandle(Arc<AtomicBool>);

impl StopHandle {
    /// Asks the run to end.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked to.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
