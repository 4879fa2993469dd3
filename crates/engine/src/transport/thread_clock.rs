//! What the system knows of the current thread: CPU time used, and time for which it was ready without a CPU.

/// The clock of the thread that made it.
pub(crate) struct ThreadClock {
    #[cfg(target_os = "linux")]
    schedstat: Option<std::fs::File>,
}

impl ThreadClock {
    /// Opens the clock of the current thread.
    pub(crate) fn open() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            schedstat: std::fs::File::open("/proc/thread-self/schedstat").ok(),
        }
    }

    /// CPU time used, in nanoseconds. Asked on the thread itself.
    #[expect(clippy::unused_self, reason = "it is the clock of the thread that opened it")]
    pub(crate) fn cpu_ns(&self) -> u64 {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    /// Time on a run queue, in nanoseconds: the second figure of schedstat (Linux, Documentation/scheduler/sched-stats). 0 where the system
    /// does not tell it.
    #[cfg(target_os = "linux")]
    pub(crate) fn starved_ns(&self) -> u64 {
        use std::os::unix::fs::FileExt;

        let mut text = [0; 96];
        let read = self.schedstat.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
        let text = std::str::from_utf8(text.get(..read).unwrap_or(&[])).unwrap_or("");
        text.split_ascii_whitespace().nth(1).and_then(|figure| figure.parse().ok()).unwrap_or(0)
    }

    /// Other systems do not tell it.
    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "elsewhere the clock's file tells it")]
    pub(crate) fn starved_ns(&self) -> u64 {
        0
    }
}
