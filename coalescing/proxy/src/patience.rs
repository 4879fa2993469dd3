//! The time that one side keeps the other waiting.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

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

    /// Returns once an uninterrupted wait has lasted this long.
    pub(crate) async fn exceeds(&self, most: Duration) {
        loop {
            let since = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match since {
                // A wait that begins during the sleep cannot have lasted long enough before its end.
                None => sleep(most).await,
                Some(since) if since.elapsed() >= most => return,
                Some(since) => sleep_until(since + most).await,
            }
        }
    }
}
