//! Letting answers gather before they are read.
//!
//! A worker that wakes for each answer pays a wake-up, a read and a write for it. Where one connection carries many calls, a pause that is
//! short beside the time a call takes lets several answers come: they share all three, and so do the calls that follow. The target still
//! has nearly all calls meanwhile. Where the kernel tells when answers arrive, the pause is in no figure but the next call's time.

/// The pause is this part of what a call usually takes, so that the rate suffers by half as much at most.
const PART: u64 = 32;
/// The longest pause, in nanoseconds.
const MOST_NS: u64 = 100_000;
/// The shortest that is worth falling asleep for, in nanoseconds.
const LEAST_NS: u64 = 10_000;
/// Fewer answers than this in a pause are not worth it.
const LEAST_ANSWERS: u64 = 2;

/// How long to pause, in nanoseconds, while so many calls are in flight that usually take so long; 0 if that is not known.
#[inline]
pub(super) fn pause(usual_ns: u64, in_flight: u64) -> Option<u64> {
    // By Little's law (J. D. C. Little, "A Proof for the Queuing Formula L = λW", Operations Research 9, 1961), this part of all calls
    // in flight is answered in this part of their time.
    let pause = (usual_ns / PART).min(MOST_NS);
    let answers = pause.saturating_mul(in_flight) / usual_ns.max(1);
    (pause >= LEAST_NS && answers >= LEAST_ANSWERS).then_some(pause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_gather_where_many_come_in_a_short_time() {
        assert_eq!(pause(1_280_000, 100), Some(40_000));
        assert_eq!(pause(12_000_000, 1_000), Some(100_000));
        assert_eq!(pause(0, 1_000), None, "nothing is known");
        assert_eq!(pause(1_280_000, 10), None, "one answer in three pauses");
        assert_eq!(pause(12_000_000, 100), None, "a pause is cut, and less than one answer comes in it");
        assert_eq!(pause(100_000, 1_000), None, "too short to sleep");
        assert_eq!(pause(u64::MAX, u64::MAX), None);
    }
}
