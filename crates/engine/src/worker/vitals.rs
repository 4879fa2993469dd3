//! How a worker's thread itself fares: CPU time used, and time it stood ready without a CPU.

use brunt_model::snapshot::Health;

/// The running totals of the current thread.
pub(super) struct Vitals {
    #[cfg(target_os = "linux")]
    schedstat: Option<std::fs::File>,
    wall_ns: u64,
    cpu_ns: u64,
    starved_ns: u64,
}

impl Vitals {
    /// Begins to watch the current thread, at `now`.
    pub(super) fn new(now: u64) -> Self {
        let mut vitals = Self {
            #[cfg(target_os = "linux")]
            schedstat: std::fs::File::open("/proc/thread-self/schedstat").ok(),
            wall_ns: now,
            cpu_ns: 0,
            starved_ns: 0,
        };
        vitals.cpu_ns = cpu_ns();
        vitals.starved_ns = vitals.starved_ns();
        vitals
    }

    /// What happened since the last time, until `now`.
    pub(super) fn lap(&mut self, now: u64) -> Health {
        let (cpu, starved) = (cpu_ns(), self.starved_ns());
        let health = Health::of_interval(
            now.saturating_sub(self.wall_ns),
            cpu.saturating_sub(self.cpu_ns),
            starved.saturating_sub(self.starved_ns),
        );
        (self.wall_ns, self.cpu_ns, self.starved_ns) = (now, cpu, starved);
        health
    }

    /// The second figure of schedstat: time on a run queue, in nanoseconds (Linux, Documentation/scheduler/sched-stats).
    #[cfg(target_os = "linux")]
    fn starved_ns(&self) -> u64 {
        use std::os::unix::fs::FileExt;

        let mut text = [0; 96];
        let read = self.schedstat.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
        let text = std::str::from_utf8(text.get(..read).unwrap_or(&[])).unwrap_or("");
        text.split_ascii_whitespace().nth(1).and_then(|figure| figure.parse().ok()).unwrap_or(0)
    }

    /// Elsewhere it is not known.
    #[cfg(not(target_os = "linux"))]
    fn starved_ns(&self) -> u64 {
        self.starved_ns
    }
}

fn cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
