//! The wish that a run ends before its time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends a run early, from any thread or signal handler. Calls in flight still end within the drain.
///
/// The user's stop and a run's are two: [`StopHandle::of_run`] makes one that its run may set, for a threshold that aborts
/// it, without an end to the runs that come after it.
///
/// ```
/// use brunt_plan::stop::StopHandle;
///
/// let user = StopHandle::default();
/// let (aborted, next) = (user.of_run(), user.of_run());
/// aborted.stop();
/// assert!(aborted.is_stopped() && !next.is_stopped() && !user.is_stopped());
/// user.stop();
/// assert!(next.is_stopped());
/// ```
#[derive(Debug, Clone, Default)]
pub struct StopHandle {
    own: Arc<AtomicBool>,
    /// Whose wish ends this run as well.
    above: Option<Arc<Self>>,
}

impl StopHandle {
    /// A handle for one run, which ends with this one and may end before it.
    #[must_use]
    pub fn of_run(&self) -> Self {
        Self { own: Arc::default(), above: Some(Arc::new(self.clone())) }
    }

    /// Asks the run to end.
    pub fn stop(&self) {
        self.own.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked to.
    pub fn is_stopped(&self) -> bool {
        self.own.load(Ordering::Relaxed) || self.above.as_ref().is_some_and(|above| above.is_stopped())
    }
}
