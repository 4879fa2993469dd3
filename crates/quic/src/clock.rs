//! The time of quinn-proto, made of the caller's.

use std::time::{Duration, Instant};

/// How far the origin lies behind the clock's first reading, so that what subtracts from early times stays in range.
const MARGIN: Duration = Duration::from_secs(3600);

/// Turns the caller's time, in nanoseconds since an epoch of its own, into instants and back. The clock of the machine is read once,
/// for an origin; it means nothing.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Instant,
}

impl Default for Clock {
    fn default() -> Self {
        Self { origin: Instant::now() + MARGIN }
    }
}

impl Clock {
    /// The instant of a time in nanoseconds.
    #[inline]
    pub(crate) fn instant(self, ns: u64) -> Instant {
        self.origin + Duration::from_nanos(ns)
    }

    /// The time of an instant, in nanoseconds.
    #[inline]
    pub(crate) fn ns(self, instant: Instant) -> u64 {
        u64::try_from(instant.saturating_duration_since(self.origin).as_nanos()).unwrap_or(u64::MAX)
    }
}
