//! The gate before a run on several machines: the workers of each wait at it until all machines begin together, and make calls
//! only while their lease is renewed.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use crate::network::NEVER;
use crate::transport::Clock;

/// Until when a part may make calls, in the time of the run's clock: for ever, unless somebody renews it from time to time.
///
/// Whoever renews it knows that no call is begun after it has run out, even by a process that stood still in between. Calls that
/// are under way still end.
#[derive(Debug, Clone)]
pub(crate) struct Lease(Arc<AtomicU64>);

impl Default for Lease {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(NEVER)))
    }
}

impl Lease {
    /// Whether no call may be begun at `now`.
    #[inline]
    pub(crate) fn has_run_out(&self, now: u64) -> bool {
        now >= self.0.load(Ordering::Relaxed)
    }
}

/// A worker's view of its lease: calls wait while it has run out.
#[derive(Debug, Default)]
pub(crate) struct Leased {
    lease: Lease,
    /// Whether a call waits for the renewal.
    has_held: bool,
}

impl Leased {
    /// Whether no call may be begun at `now`.
    #[inline]
    pub(crate) fn has_run_out(&self, now: u64) -> bool {
        self.lease.has_run_out(now)
    }

    /// Whether a call must wait at `now`. Remembers that one does.
    #[inline]
    pub(crate) fn holds_back(&mut self, now: u64) -> bool {
        let holds_back = self.lease.has_run_out(now);
        self.has_held |= holds_back;
        holds_back
    }

    /// Whether waiting calls may go on at `now`. True once for each wait.
    #[inline]
    pub(crate) fn lets_go(&mut self, now: u64) -> bool {
        let lets_go = self.has_held && !self.lease.has_run_out(now);
        self.has_held &= !lets_go;
        lets_go
    }
}

impl From<Lease> for Leased {
    fn from(lease: Lease) -> Self {
        Self { lease, has_held: false }
    }
}

/// Holds the workers of a run back until it is opened.
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<Inner>);

#[derive(Default)]
struct Inner {
    clock: OnceLock<Clock>,
    is_ready: AtomicBool,
    /// When the load begins on the run's clock, in nanoseconds; 0 while that is not known.
    at: AtomicU64,
    lease: Lease,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("is_ready", &self.is_ready).field("at", &self.at).finish_non_exhaustive()
    }
}

impl Gate {
    /// Tells the gate the run's clock, before workers come to it.
    pub(crate) fn keep_time(&self, clock: Clock) {
        // A gate is for one run; a second one keeps the time of the first.
        let _ = self.0.clock.set(clock);
    }

    /// All workers have come.
    pub(crate) fn arrive(&self) {
        self.0.is_ready.store(true, Ordering::Release);
    }

    /// When the load begins, in the time of the run's clock; none while the gate is closed.
    pub(crate) fn time(&self) -> Option<u64> {
        match self.0.at.load(Ordering::Acquire) {
            0 => None,
            at => Some(at),
        }
    }

    /// Lets a part join a load that has begun, at this time even if it is past. False before there is a run.
    pub fn join_at(&self, begin: Instant) -> bool {
        let Some(clock) = self.0.clock.get() else { return false };
        let (now_ns, now) = (clock(), Instant::now());
        let ahead_ns = begin.saturating_duration_since(now).as_nanos() as u64;
        let late_ns = now.saturating_duration_since(begin).as_nanos() as u64;
        self.0.at.store((now_ns + ahead_ns).saturating_sub(late_ns).max(1), Ordering::Release);
        true
    }

    /// Until when calls may be made.
    pub(crate) fn lease(&self) -> Lease {
        self.0.lease.clone()
    }

    /// Lets calls be made until this time, and none from then on unless it is renewed. Without effect before there is a run.
    pub fn renew(&self, until: Instant) {
        if let Some(clock) = self.0.clock.get() {
            let (now_ns, now) = (clock(), Instant::now());
            let ahead_ns = until.saturating_duration_since(now).as_nanos() as u64;
            self.0.lease.0.store(now_ns + ahead_ns, Ordering::Relaxed);
        }
    }

    /// Whether all workers wait at it: their connections are made.
    pub fn is_ready(&self) -> bool {
        self.0.is_ready.load(Ordering::Acquire)
    }

    /// Lets the load begin at this time, or at once if it is past. How late it is then, in nanoseconds; none before there is a run.
    pub fn open_at(&self, begin: Instant) -> Option<u64> {
        let now_ns = self.0.clock.get()?();
        let now = Instant::now();
        let ahead_ns = begin.saturating_duration_since(now).as_nanos() as u64;
        let late_ns = now.saturating_duration_since(begin).as_nanos() as u64;
        self.0.at.store((now_ns + ahead_ns).max(1), Ordering::Release);
        Some(late_ns)
    }
}
