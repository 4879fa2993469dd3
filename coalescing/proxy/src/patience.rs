//! The time that one side keeps the other waiting.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The beginning of the current wait. Whoever waits sets it; whoever enforces the limit reads it.
#[derive(Debug, Default)]
pub(crate) struct WaitClock(Mutex<Option<Instant>>);

impl WaitClock {
    /// Begins a wait.
    pub(crate) fn begins(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Ends the wait.
    pub(crate) fn ends(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// How much longer an uninterrupted wait may last: `None` once it has lasted for `most`. A wait that has not begun has all
    /// of its time.
    pub(crate) fn left(&self, most: Duration) -> Option<Duration> {
        let since = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = most.saturating_sub(since.map_or(Duration::ZERO, |since| since.elapsed()));
        (!left.is_zero()).then_some(left)
    }

    /// Returns once an uninterrupted wait has lasted this long.
    pub(crate) async fn exceeds(&self, most: Duration) {
        while let Some(left) = self.left(most) {
            sleep(left).await;
        }
    }
}
