//! Requests to end a run early.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Requests to a run, each of which asks for more than the one before.
const STOPS: u8 = 1;
const LEAVES: u8 = 2;

/// Ends a run early, from any thread or signal handler. Calls in flight still end within the drain, and the script's
/// teardown is carried out, unless the run is asked to leave as well.
///
/// The user's stop and a run's own are separate: [`StopHandle::of_run`] makes one that its run may set, such as for a
/// threshold that aborts it, without ending later runs.
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
    own: Arc<AtomicU8>,
    /// Whose wish ends this run as well.
    above: Option<Arc<Self>>,
}

impl StopHandle {
    /// A handle for one run, which is stopped with this one and may be stopped alone.
    #[must_use]
    pub fn of_run(&self) -> Self {
        Self { own: Arc::default(), above: Some(Arc::new(self.clone())) }
    }

    /// Asks the run to end.
    pub fn stop(&self) {
        self.own.fetch_max(STOPS, Ordering::Relaxed);
    }

    /// Asks the run to end at once, without waiting for calls or teardown.
    pub fn leave(&self) {
        self.own.fetch_max(LEAVES, Ordering::Relaxed);
    }

    /// Whether it was asked to end.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.asks(STOPS)
    }

    /// Whether it was asked to end at once.
    #[inline]
    pub fn leaves(&self) -> bool {
        self.asks(LEAVES)
    }

    /// Whether the user asked for the end, rather than the run itself.
    pub fn is_stopped_by_user(&self) -> bool {
        self.above.as_ref().map_or_else(|| self.is_stopped(), |above| above.is_stopped_by_user())
    }

    #[inline]
    fn asks(&self, what: u8) -> bool {
        // A loop, since workers ask before each call, and a closure would not be inlined where this crate is optimised
        // for size.
        let mut asked = self;
        loop {
            if asked.own.load(Ordering::Relaxed) >= what {
                return true;
            }
            let Some(above) = &asked.above else { return false };
            asked = above;
        }
    }
}
