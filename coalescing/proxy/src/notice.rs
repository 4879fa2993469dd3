//! What a proxy tells its operator beside its metrics and its access log.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Something that the operator of a proxy should know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Notice {
    /// The upstream did not answer a request.
    #[error("{error}{}", and_more(*.more))]
    UpstreamFailed {
        /// The failure of the last such request.
        error: String,
        /// Such requests since the last notice, this one aside.
        more: u64,
    },
    /// Lines of the access log were lost. The next notice comes after a line could be written again.
    #[error("the access log cannot be written: {error}; its lines are lost, and counted")]
    LogFailed {
        /// The error of the operating system.
        error: String,
    },
    /// The access log could not be opened again: lines go where they went before.
    #[error("the access log cannot be opened again: {error}; lines go to the file that was open")]
    LogNotReopened {
        /// The error of the operating system.
        error: String,
    },
}

fn and_more(more: u64) -> String {
    if more == 0 { String::new() } else { format!(" (and {more} more requests failed)") }
}

/// Receives notices, on the thread where they come up: it must not block for long.
pub type Notify = fn(&Notice);

/// The shortest time between two notices about the upstream.
const PAUSE: Duration = Duration::from_secs(10);

/// Passes notices on, and not one for each request of an outage.
#[derive(Debug)]
pub(crate) struct Notices {
    notify: Notify,
    upstream: Mutex<(Option<Instant>, u64)>,
}

impl Notices {
    pub(crate) fn new(notify: Notify) -> Self {
        Self { notify, upstream: Mutex::default() }
    }

    pub(crate) fn tell(&self, notice: &Notice) {
        (self.notify)(notice);
    }

    pub(crate) fn upstream_failed(&self, error: &str) {
        if let Some(more) = self.count_failure(Instant::now()) {
            self.tell(&Notice::UpstreamFailed { error: error.to_owned(), more });
        }
    }

    /// The failures that were not told before this one; `None` if the last notice was only just given.
    fn count_failure(&self, now: Instant) -> Option<u64> {
        let mut upstream = self.upstream.lock().unwrap_or_else(PoisonError::into_inner);
        let (told, untold) = &mut *upstream;
        if told.is_some_and(|told| now.duration_since(told) < PAUSE) {
            *untold += 1;
            return None;
        }
        *told = Some(now);
        Some(std::mem::take(untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_told_at_once_and_then_now_and_again() {
        let notices = Notices::new(|_| {});
        let began = Instant::now();
        let told: Vec<_> =
            (0..300).map(|tenth| notices.count_failure(began + Duration::from_millis(100) * tenth)).collect();
        assert_eq!(told.iter().flatten().collect::<Vec<_>>(), [&0, &99, &99]);
        let notice = Notice::UpstreamFailed { error: "no answer".to_owned(), more: 99 };
        assert_eq!(notice.to_string(), "no answer (and 99 more requests failed)");
    }
}
