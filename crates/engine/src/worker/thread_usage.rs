//! The state of a worker's thread: CPU time used, and time for which it was ready without a CPU.

use super::HEARTBEAT_NS;
use crate::transport::thread_clock::ThreadClock;
use brunt_record::catalogue::{Counter, Numbers};
use brunt_record::time::Tick;

/// How much later than planned a heartbeat may come before the worker counts as having stood still, in nanoseconds.
const TOLERATED_NS: u64 = 20_000_000;

/// The time of the next heartbeat: half of one to a whole one away. A worker that is woken more often for other reasons never
/// wakes for this. It changes rarely, as arming a timer is a system call.
fn next_heartbeat(now: Tick) -> Tick {
    let half = HEARTBEAT_NS / 2;
    now.before(now.ns() % half) + 2 * half
}

/// The running totals of the current thread.
pub(super) struct ThreadUsage {
    /// `None` in simulated time, where CPU time means nothing.
    clock: Option<ThreadClock>,
    lap_began: Tick,
    cpu_ns: u64,
    spun_ns: u64,
    starved_ns: u64,
    /// The loop's last heartbeat, and when the next one is to come at the latest.
    beat: Tick,
    next_beat: Tick,
    /// How long the worker stood still since the last lap, and when that was last over.
    still_ns: u64,
    still_until: Tick,
    /// When it was last asked how long the worker stood still, and its CPU time then.
    looked: (Tick, u64),
}

impl ThreadUsage {
    /// Begins to watch the current thread, at `now`.
    pub(super) fn new(now: Tick, is_real_time: bool) -> Self {
        let mut vitals = Self {
            clock: is_real_time.then(ThreadClock::open),
            lap_began: now,
            cpu_ns: 0,
            spun_ns: 0,
            starved_ns: 0,
            beat: now,
            next_beat: Tick::EPOCH,
            still_ns: 0,
            still_until: now,
            looked: (now, 0),
        };
        vitals.cpu_ns = vitals.cpu_ns();
        vitals.looked.1 = vitals.cpu_ns;
        vitals.starved_ns = vitals.starved_ns();
        vitals
    }

    /// The loop has come round. It does so at least every heartbeat, unless something keeps the whole thread from
    /// running: a stopped process, a machine that sleeps, a hypervisor with other guests. The scheduler's own figures
    /// do not show those.
    #[inline]
    pub(super) fn beat(&mut self, now: Tick) {
        let planned = self.beat + HEARTBEAT_NS;
        if now > planned + TOLERATED_NS {
            self.still_ns += now - planned;
            self.still_until = now;
        }
        self.beat = now;
        if now + HEARTBEAT_NS / 2 >= self.next_beat {
            self.next_beat = next_heartbeat(now);
        }
    }

    /// When the loop comes round at the latest, to look whether it should stop.
    #[inline]
    pub(super) fn next_beat(&self) -> Tick {
        self.next_beat
    }

    /// For how much of the time by which the worker is `late` it did not run, in nanoseconds: for the rest it was busy.
    /// An upper bound, since time in which it waited before it became late is counted as well.
    #[cold]
    pub(super) fn stood_still(&mut self, now: Tick, late: u64) -> u64 {
        let cpu_ns = self.cpu_ns();
        let (then, cpu_then) = std::mem::replace(&mut self.looked, (now, cpu_ns));
        let idle_ns = now.since(then).saturating_sub(cpu_ns.saturating_sub(cpu_then));
        late.min(idle_ns)
    }

    /// Figures since the last lap, until `end`, which may be past. The worker has waited awake for `spun_ns` so far, which is no work: it
    /// would have done any.
    pub(super) fn lap(&mut self, end: Tick, spun_ns: u64) -> Numbers {
        let (cpu_ns, starved_ns) = (self.cpu_ns(), self.starved_ns());
        let wall = end.since(self.lap_began);
        let spun = spun_ns.saturating_sub(self.spun_ns);
        let cpu = cpu_ns.saturating_sub(self.cpu_ns).saturating_sub(spun);
        // Standing still after the end belongs to the next lap.
        let later = self.still_until.since(end).min(self.still_ns);
        let still = (self.still_ns - later).min(wall.saturating_sub(cpu));
        let starved = starved_ns.saturating_sub(self.starved_ns).max(still);
        (self.lap_began, self.cpu_ns, self.starved_ns, self.still_ns) = (end, cpu_ns, starved_ns, later);
        self.spun_ns = spun_ns;
        let mut numbers = Numbers::of_health(wall, cpu, starved);
        numbers.add(Counter::WorkersSpun, spun);
        numbers
    }

    fn starved_ns(&self) -> u64 {
        self.clock.as_ref().map_or(0, ThreadClock::starved_ns)
    }

    fn cpu_ns(&self) -> u64 {
        self.clock.as_ref().map_or(0, ThreadClock::cpu_ns)
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn standing_still_counts_in_the_seconds_in_which_it_was() {
        let mut vitals = ThreadUsage::new(Tick::EPOCH, true);
        for at in (0..=1200).step_by(50) {
            vitals.beat(Tick::from_ns(at * MS));
            if at == 1000 {
                let health = vitals.lap(Tick::from_ns(1000 * MS), 0);
                assert!(health.ratio(Counter::MostStarvedWorker) < 0.1, "{health:?}");
            }
        }
        vitals.beat(Tick::from_ns(3450 * MS));
        let share = |health: Numbers| (health.ratio(Counter::MostStarvedWorker) * 20.0).round() / 20.0;
        // The heartbeat planned for 1.25 s came at 3.45 s.
        assert_eq!([2000, 3000, 4000].map(|end| share(vitals.lap(Tick::from_ns(end * MS), 0))), [0.75, 1.0, 0.45]);
        assert!(share(vitals.lap(Tick::from_ns(5000 * MS), 0)) < 0.1);
    }
}
