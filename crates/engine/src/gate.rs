//! The gate before a run on several machines: the workers of each wait at it until all machines begin together. They
//! make calls only up to their horizon, which the opener of the gate moves on.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use brunt_record::time::Tick;

use crate::transport::Clock;

/// How far on its timetable a part may make calls, in the time of the run's clock. There is no end unless one is set.
///
/// A call of the open model is made only if its due time is before the horizon; a call of the closed model, or of a
/// user, only while the clock is. A horizon only moves forward. So no call due at the last horizon or later is ever
/// made, whatever stands still meanwhile. Calls that are under way still end.
#[derive(Debug, Clone)]
pub(crate) struct GrantedUntil(Arc<AtomicU64>);

impl Default for GrantedUntil {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(Tick::NEVER.ns())))
    }
}

impl GrantedUntil {
    /// A horizon that lets no call be made yet.
    fn closed() -> Self {
        Self(Arc::new(AtomicU64::new(0)))
    }

    /// Whether no call of this due time may be made.
    #[inline]
    pub(crate) fn is_before(&self, due: Tick) -> bool {
        due >= self.until()
    }

    /// The due time from which on no call may be made.
    #[inline]
    fn until(&self) -> Tick {
        Tick::from_ns(self.0.load(Ordering::Relaxed))
    }
}

/// A worker's view of its horizon. Calls due beyond it wait, and so do calls due in a pause.
#[derive(Debug, Default)]
pub(crate) struct DispatchWindow {
    horizon: GrantedUntil,
    /// The pauses, each from a time of the run's clock to another; [`Tick::NEVER`] where the end is not known.
    pauses: Vec<(Tick, Tick)>,
    /// Whether a call waits for the horizon to move on.
    has_held: bool,
}

impl DispatchWindow {
    /// Whether no call of this due time may be made.
    #[inline]
    pub(crate) fn ends_before(&self, due: Tick) -> bool {
        self.horizon.is_before(due) || self.is_paused(due)
    }

    /// Sets the pauses on the run's clock, each from a time to another or to [`Tick::NEVER`].
    pub(crate) fn pause(&mut self, pauses: Vec<(Tick, Tick)>) {
        self.pauses = pauses;
    }

    /// Whether the run is paused at this time.
    #[inline]
    pub(crate) fn is_paused(&self, at: Tick) -> bool {
        !self.pauses.is_empty() && self.pauses.iter().any(|(from, until)| (*from..*until).contains(&at))
    }

    /// When the pause at `now` ends: [`Tick::NEVER`] without a pause, or if its end is not known.
    pub(crate) fn resumes(&self, now: Tick) -> Tick {
        self.pauses.iter().find(|(from, until)| (*from..*until).contains(&now)).map_or(Tick::NEVER, |(_, until)| *until)
    }

    /// The due time from which on no call may be made.
    pub(crate) fn until(&self) -> Tick {
        self.horizon.until()
    }

    /// Whether a call of this due time must wait. Remembers that one waits.
    #[inline]
    pub(crate) fn holds_back(&mut self, due: Tick) -> bool {
        let holds_back = self.ends_before(due);
        self.has_held |= holds_back;
        holds_back
    }

    /// Whether calls have waited, and those of this due time may be made now. True once for each wait.
    #[inline]
    pub(crate) fn lets_go(&mut self, due: Tick) -> bool {
        let lets_go = self.has_held && !self.ends_before(due);
        self.has_held &= !lets_go;
        lets_go
    }
}

impl From<GrantedUntil> for DispatchWindow {
    fn from(horizon: GrantedUntil) -> Self {
        Self { horizon, pauses: Vec::new(), has_held: false }
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
    horizon: GrantedUntil,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("is_ready", &self.is_ready).field("at", &self.at).finish_non_exhaustive()
    }
}

impl Gate {
    /// Tells the gate the run's clock, before workers come to it.
    pub(crate) fn keep_time(&self, clock: Clock) {
        // A gate is for one run; for a second run it keeps the clock of the first.
        let _ = self.0.clock.set(clock);
    }

    /// All workers have arrived.
    pub(crate) fn arrive(&self) {
        self.0.is_ready.store(true, Ordering::Release);
    }

    /// When the load begins, in the time of the run's clock; `None` while the gate is closed.
    pub(crate) fn time(&self) -> Option<Tick> {
        match self.0.at.load(Ordering::Acquire) {
            0 => None,
            at => Some(Tick::from_ns(at)),
        }
    }

    /// A gate whose part makes no call before [`Gate::extend`] allows it.
    pub fn with_horizon() -> Self {
        Self(Arc::new(Inner { horizon: GrantedUntil::closed(), ..Inner::default() }))
    }

    /// How far calls may be made.
    pub(crate) fn horizon(&self) -> GrantedUntil {
        self.0.horizon.clone()
    }

    /// Lets calls be made that are due in the first `load_ns` nanoseconds after the gate opened. Never takes back what
    /// was granted before. Without effect while the gate is closed.
    pub fn extend(&self, load_ns: u64) {
        if let Some(at) = self.time() {
            self.0.horizon.0.fetch_max(at.saturating_add(load_ns).ns(), Ordering::Relaxed);
        }
    }

    /// Whether all workers wait at it: their connections are made.
    pub fn is_ready(&self) -> bool {
        self.0.is_ready.load(Ordering::Acquire)
    }

    /// Lets the load begin at this time, or at once if it is past. Returns how late that is, in nanoseconds; `None`
    /// before there is a run.
    pub fn open_at(&self, begin: Instant) -> Option<u64> {
        let opens = self.0.clock.get()?();
        let now = Instant::now();
        let ahead_ns = begin.saturating_duration_since(now).as_nanos() as u64;
        let late_ns = now.saturating_duration_since(begin).as_nanos() as u64;
        self.0.at.store((opens + ahead_ns).ns().max(1), Ordering::Release);
        Some(late_ns)
    }
}
