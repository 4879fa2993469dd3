//! Pauses in which answers gather before they are read.
//!
//! A worker that wakes for each answer pays a wake-up, a read and a write for it. Where one connection carries many
//! calls, a pause that is short beside the duration of a call lets several answers come: they share all three, and so
//! do the calls that follow. The target still has nearly all calls meanwhile. The kernel tells when the last answer of
//! a read arrived, so the pause makes calls seem longer by at most the time between the first and the last of them.

/// The divisor of a call's usual duration that gives the pause: the rate suffers by half as much at most.
const PART: u64 = 32;
/// The longest pause, in nanoseconds.
const MOST_NS: u64 = 100_000;
/// The shortest pause worth sleeping for, in nanoseconds.
const LEAST_NS: u64 = 10_000;
/// The fewest answers that make a pause worth while.
const LEAST_ANSWERS: u64 = 2;

/// Pauses after which it is known whether the system wakes a worker in time, and by how much a sleep may exceed the
/// time asked for.
const PAUSES: u32 = 64;
const TOO_LONG: u64 = 8;

/// Decides on pauses.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    /// Whether the system's sleeps are too long.
    is_off: bool,
    /// Pauses since the last evaluation, and whether one of them was as short as asked for.
    pauses: u32,
    was_in_time: bool,
}

impl Gathering {
    /// The length of the next pause, in nanoseconds, with this many calls in flight whose usual duration is `usual_ns`
    /// (0 if it is unknown).
    #[inline]
    pub(super) fn pause(&self, usual_ns: u64, in_flight: u64) -> Option<u64> {
        // By Little's law (J. D. C. Little, "A Proof for the Queuing Formula L = λW", Operations Research 9, 1961), this part of all
        // calls in flight is answered in this part of their time.
        let pause = (usual_ns / PART).min(MOST_NS);
        let answers = pause.saturating_mul(in_flight) / usual_ns.max(1);
        (!self.is_off && pause >= LEAST_NS && answers >= LEAST_ANSWERS).then_some(pause)
    }

    /// Notes that a pause of `asked` took `took`, both in nanoseconds. Where timers are coarse, all pauses take too
    /// long. A worker that merely waits for its CPU now and then continues: answers gather then anyway.
    pub(super) fn paused(&mut self, asked: u64, took: u64) {
        self.was_in_time |= took <= asked.saturating_mul(TOO_LONG);
        self.pauses += 1;
        if self.pauses == PAUSES {
            *self = Self { is_off: !self.was_in_time, ..Self::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_gather_where_many_come_in_a_short_time() {
        let pause = |usual_ns, in_flight| Gathering::default().pause(usual_ns, in_flight);
        assert_eq!(pause(1_280_000, 100), Some(40_000));
        assert_eq!(pause(12_000_000, 1_000), Some(100_000));
        assert_eq!(pause(0, 1_000), None, "nothing is known");
        assert_eq!(pause(1_280_000, 10), None, "one answer in three pauses");
        assert_eq!(pause(12_000_000, 100), None, "a pause is cut, and less than one answer comes in it");
        assert_eq!(pause(100_000, 1_000), None, "too short to sleep");
        assert_eq!(pause(u64::MAX, u64::MAX), None);
    }

    #[test]
    fn where_the_system_sleeps_too_long_there_is_no_pause() {
        let after = |took: &[u64]| {
            let mut gathering = Gathering::default();
            for took in took {
                gathering.paused(40_000, *took);
            }
            gathering.pause(1_280_000, 100)
        };
        assert_eq!(after(&[1_000_000; 63]), Some(40_000), "not yet known");
        assert_eq!(after(&[1_000_000; 64]), None);
        let busy: Vec<_> = (0..64).map(|pause| if pause == 17 { 50_000 } else { 3_000_000 }).collect();
        assert_eq!(after(&busy), Some(40_000), "it waits for a CPU");
    }
}
