//! How long one side keeps the other waiting.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

/// Since when something is waited for, as those who wait say, for those who give up on it.
#[derive(Debug, Default)]
pub(crate) struct WaitClock(Mutex<Option<Instant>>);

impl WaitClock {
    /// It is waited for from now on.
    pub(crate) fn begins(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// It is waited for no longer.
    pub(crate) fn ends(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns once it has been waited for without a break for as long as this.
    pub(crate) async fn exceeds(&self, most: Duration) {
        loop {
            let since = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match since {
                // Had it begun since then, it would not be over before this wakes.
                None => sleep(most).await,
                Some(since) if since.elapsed() >= most => return,
                Some(since) => sleep_until(since + most).await,
            }
        }
    }
}
