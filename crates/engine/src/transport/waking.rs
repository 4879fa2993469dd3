//! Waking up in time. A timer wakes a thread as much too late as the machine takes for it, some 50 µs on virtual ones: a thread that
//! sets its timer that much earlier, and stays awake for the rest, goes on in time.

use brunt_record::time::Tick;

/// The least and the most by which a timer is set earlier, in nanoseconds.
const LEAST_EARLY_NS: u64 = 2_000;
const MOST_EARLY_NS: u64 = 200_000;
/// How long a thread that sleeps may stay awake for being in time: so much in a second, and so much at once, in nanoseconds.
const AWAKE_IN_A_SECOND_NS: u64 = 100_000_000;
const AWAKE_AT_ONCE_NS: u64 = 2_000_000;

/// How a thread waits until a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// By a timer set for this time.
    Asleep(Tick),
    /// Awake.
    Awake,
}

/// What a thread knows of its own waking.
#[derive(Debug)]
pub(super) struct Waking {
    /// Whether it never sleeps.
    spins: bool,
    /// How long waking up has taken: three of four times, it took less.
    takes_ns: u64,
    /// What is left of the time for which it may stay awake, and since when.
    left_ns: u64,
    since: Tick,
    /// For how long it has waited awake.
    spun_ns: u64,
}

impl Waking {
    pub(super) const fn new(spins: bool) -> Self {
        Self { spins, takes_ns: 50_000, left_ns: AWAKE_AT_ONCE_NS, since: Tick::EPOCH, spun_ns: 0 }
    }

    /// How to wait for `until`, which is to come.
    #[inline]
    pub(super) fn wait(&mut self, now: Tick, until: Tick) -> Wait {
        if self.spins {
            return Wait::Awake;
        }
        let earned = now.since(self.since) / (1_000_000_000 / AWAKE_IN_A_SECOND_NS);
        self.left_ns = (self.left_ns + earned).min(AWAKE_AT_ONCE_NS);
        self.since = now;
        if self.left_ns < self.takes_ns {
            return Wait::Asleep(until);
        }
        let timer = until.before(self.takes_ns);
        if timer <= now { Wait::Awake } else { Wait::Asleep(timer) }
    }

    /// A timer set for `timer` has woken the thread.
    pub(super) fn woke(&mut self, timer: Tick, now: Tick) {
        let took = now.since(timer);
        // Steps of 3 to 1 balance where a quarter takes longer.
        let step = (self.takes_ns / 32).max(100);
        self.takes_ns =
            if took > self.takes_ns { self.takes_ns + 3 * step } else { self.takes_ns.saturating_sub(step) };
        self.takes_ns = self.takes_ns.clamp(LEAST_EARLY_NS, MOST_EARLY_NS);
    }

    /// The thread waited awake for so long.
    pub(super) fn spun(&mut self, ns: u64) {
        self.spun_ns += ns;
        self.left_ns = self.left_ns.saturating_sub(ns);
    }

    /// For how long it has waited awake.
    pub(super) const fn spun_ns(&self) -> u64 {
        self.spun_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;

    /// A thread that waits for a time every `gap_ns`, and takes `takes_ns` to wake. Returns by how much it was late each time, and for which
    /// share of the time it was awake.
    fn lateness(gap_ns: u64, takes_ns: impl Fn(u64) -> u64) -> (Vec<u64>, f64) {
        let mut waking = Waking::new(false);
        let mut now = Tick::EPOCH;
        let mut late = Vec::new();
        for number in 1..10_000 {
            let until = Tick::from_ns(number * gap_ns);
            if until > now {
                if let Wait::Asleep(timer) = waking.wait(now, until) {
                    now = timer + takes_ns(number);
                    waking.woke(timer, now);
                }
                if now < until {
                    waking.spun(until.since(now));
                    now = until;
                }
            }
            late.push(now.since(until));
        }
        late.sort_unstable();
        (late, waking.spun_ns() as f64 / now.ns() as f64)
    }

    #[test]
    fn a_thread_wakes_in_time_for_little() {
        // Waking takes 40 to 60 µs, and a millisecond in a hundred times.
        let takes = |number: u64| if number % 100 == 7 { 1_000 * US } else { 40 * US + number % 21 * US };
        let (late, awake) = lateness(1_000 * US, takes);
        assert_eq!(late[late.len() / 2], 0);
        assert!(late[late.len() * 9 / 10] < 10 * US, "{}", late[late.len() * 9 / 10]);
        assert!(awake < 0.03, "{awake}");
    }

    #[test]
    fn it_does_not_stay_awake_for_more_than_a_tenth() {
        // Waking takes longer than there is time.
        let (_, awake) = lateness(50 * US, |_| 60 * US);
        assert!((0.05..=0.11).contains(&awake), "{awake}");
    }

    #[test]
    fn who_spins_never_sleeps() {
        let mut waking = Waking::new(true);
        assert_eq!(waking.wait(Tick::EPOCH, Tick::from_ns(1_000_000_000)), Wait::Awake);
    }
}
