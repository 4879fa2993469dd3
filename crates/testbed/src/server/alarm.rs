//! A wake-up call for the event loop, finer than the millisecond that its own timeout is rounded
//! to: a timerfd on Linux, the timeout elsewhere.

use std::io;
use std::time::Duration;

use mio::{Registry, Token};

#[cfg(target_os = "linux")]
pub(super) use linux::Alarm;
#[cfg(not(target_os = "linux"))]
pub(super) use portable::Alarm;

#[cfg(target_os = "linux")]
mod linux {
    use std::os::fd::{AsRawFd, OwnedFd};

    use mio::Interest;
    use mio::unix::SourceFd;
    use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};

    use super::{Duration, Registry, Token, io};

    /// See the module's words.
    #[derive(Debug)]
    pub(in super::super) struct Alarm {
        timer: OwnedFd,
        set: Option<Duration>,
    }

    impl Alarm {
        pub(in super::super) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)?;
            // Edge triggered: each expiry is a new event, so the timer never has to be read.
            registry.register(&mut SourceFd(&timer.as_raw_fd()), token, Interest::READABLE)?;
            Ok(Self { timer, set: None })
        }

        /// Makes the loop wake at `due`, on the clock that `now` reads; returns the timeout to wait
        /// with.
        pub(in super::super) fn set(
            &mut self,
            due: Option<Duration>,
            now: impl Fn() -> Duration,
        ) -> io::Result<Option<Duration>> {
            if self.set == due {
                return Ok(None);
            }
            self.set = due;
            // Zero would disarm; what is due already is due in a nanosecond.
            let wait = due.map(|due| due.saturating_sub(now()).max(Duration::from_nanos(1)));
            let spec = Itimerspec {
                it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
                it_value: timespec(wait.unwrap_or_default()),
            };
            rustix::time::timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &spec)?;
            Ok(None)
        }
    }

    fn timespec(length: Duration) -> Timespec {
        Timespec {
            tv_sec: i64::try_from(length.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(length.subsec_nanos()),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use super::{Duration, Registry, Token, io};

    /// See the module's words.
    #[derive(Debug)]
    pub(in super::super) struct Alarm;

    impl Alarm {
        pub(in super::super) fn new(_: &Registry, _: Token) -> io::Result<Self> {
            Ok(Self)
        }

        pub(in super::super) fn set(
            &mut self,
            due: Option<Duration>,
            now: impl Fn() -> Duration,
        ) -> io::Result<Option<Duration>> {
            Ok(due.map(|due| due.saturating_sub(now())))
        }
    }
}
