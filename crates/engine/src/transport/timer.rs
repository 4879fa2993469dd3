//! What wakes a worker. A poll's own timeout has steps of a millisecond; a timerfd, on Linux, has none.

use std::io;
use std::time::Duration;

use mio::Registry;

use brunt_record::time::Tick;

/// The token of the timer among a poll's events.
pub(super) const TIMER: mio::Token = mio::Token(usize::MAX);

#[cfg(target_os = "linux")]
mod system {
    use std::os::fd::{AsRawFd, OwnedFd};

    use mio::Interest;
    use mio::unix::SourceFd;
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
    };

    use super::{Duration, Registry, TIMER, Tick, io};

    /// A timer of nanoseconds that wakes the poll it is registered with.
    pub(in super::super) struct Timer {
        fd: OwnedFd,
        armed_for: Tick,
    }

    impl Timer {
        pub(in super::super) fn new(registry: &Registry) -> io::Result<Self> {
            let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
            registry.register(&mut SourceFd(&fd.as_raw_fd()), TIMER, Interest::READABLE)?;
            Ok(Self { fd, armed_for: Tick::NEVER })
        }

        /// Makes a poll end at `until`. Returns the timeout to poll with.
        pub(in super::super) fn arm(&mut self, until: Tick, now: Tick) -> io::Result<Option<Duration>> {
            if until <= now {
                return Ok(Some(Duration::ZERO));
            }
            // Most waits end at the same time as the one before: arming again would waste a system call.
            if until != self.armed_for {
                let wait = until - now;
                let value = Timespec { tv_sec: (wait / 1_000_000_000) as i64, tv_nsec: (wait % 1_000_000_000) as i64 };
                let interval = Timespec { tv_sec: 0, tv_nsec: 0 };
                let once = Itimerspec { it_interval: interval, it_value: value };
                timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &once)?;
                self.armed_for = until;
            }
            Ok(None)
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::{Duration, Registry, Tick, io};

    /// Elsewhere the poll's own timeout has to do, in steps of a millisecond.
    pub(in super::super) struct Timer;

    impl Timer {
        pub(in super::super) fn new(_registry: &Registry) -> io::Result<Self> {
            Ok(Self)
        }

        pub(in super::super) fn arm(&mut self, until: Tick, now: Tick) -> io::Result<Option<Duration>> {
            Ok(Some(Duration::from_nanos(until.saturating_sub(now))))
        }
    }
}

pub(super) use system::Timer;
