//! Points in time, as types: a time of one kind is never taken for a length, or for a time of another kind.
//!
//! Lengths are plain integers of nanoseconds, and say so in their names (`timeout_ns`), as in plans and figures.

use std::ops::{Add, AddAssign, Sub};

/// A point on a run's clock: nanoseconds since the run's epoch, which all workers of a machine share.
///
/// Two of them are a length apart, and a length later there is another:
///
/// ```
/// use brunt_record::time::Tick;
///
/// let sent = Tick::from_ns(1_500);
/// assert_eq!(sent + 300, Tick::from_ns(1_800));
/// assert_eq!((sent + 300) - sent, 300);
/// assert_eq!(sent.since(sent + 300), 0);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Tick(u64);

impl Tick {
    /// The run's epoch.
    pub const EPOCH: Self = Self(0);
    /// In an endless future: what is due then is not due, and what happened then has not happened.
    pub const NEVER: Self = Self(u64::MAX);
    /// The last moment of the clock.
    pub const LAST: Self = Self(u64::MAX - 1);

    /// So many nanoseconds after the epoch.
    #[inline]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the epoch.
    #[inline]
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// Whether it is a moment of the clock, and not [`Tick::NEVER`].
    #[inline]
    pub const fn is_set(self) -> bool {
        self.0 != u64::MAX
    }

    /// Nanoseconds since an earlier time; 0 if that is later.
    #[inline]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// So many nanoseconds later, or [`Tick::NEVER`] beyond the end of the clock.
    #[inline]
    #[must_use]
    pub const fn saturating_add(self, ns: u64) -> Self {
        Self(self.0.saturating_add(ns))
    }

    /// So many nanoseconds earlier, or the epoch.
    #[inline]
    #[must_use]
    pub const fn before(self, ns: u64) -> Self {
        Self(self.0.saturating_sub(ns))
    }

    /// This time in a run whose measured part began, or will begin, at `began` on the same clock.
    #[inline]
    pub const fn measured_from(self, began: Self) -> MeasuredTime {
        MeasuredTime(self.0 as i64 - began.0 as i64)
    }
}

/// A time in a run of any machine: nanoseconds since the measured part began, negative in the warm-up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct MeasuredTime(i64);

impl MeasuredTime {
    /// So many nanoseconds after the measured part began.
    #[inline]
    pub const fn from_ns(ns: i64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the measured part began.
    #[inline]
    pub const fn ns(self) -> i64 {
        self.0
    }

    /// On a clock on which the measured part began, or will begin, at `began`. Times before the clock's epoch are the epoch.
    #[inline]
    pub const fn on_clock(self, began: Tick) -> Tick {
        Tick(began.0.saturating_add_signed(self.0))
    }
}

/// So many nanoseconds later.
impl Add<u64> for Tick {
    type Output = Self;

    #[inline]
    fn add(self, ns: u64) -> Self {
        Self(self.0 + ns)
    }
}

impl AddAssign<u64> for Tick {
    #[inline]
    fn add_assign(&mut self, ns: u64) {
        self.0 += ns;
    }
}

/// Nanoseconds since an earlier time.
impl Sub for Tick {
    type Output = u64;

    #[inline]
    fn sub(self, earlier: Self) -> u64 {
        self.0 - earlier.0
    }
}
