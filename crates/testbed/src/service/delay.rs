//! Chance: a small generator, and the lengths of delays drawn from it.

use std::time::Duration;

use super::config::Delay;

/// `SplitMix64` (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// The generator of one worker: each has its own sequence, fixed by the seed.
    pub(crate) fn new(seed: u64, worker: usize) -> Self {
        let mut mix = Self { state: seed ^ (worker as u64).wrapping_mul(0xd6e8_feb8_6659_fd93) };
        Self { state: mix.next() }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Evenly spread over 0 (included) to 1 (excluded).
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

impl Delay {
    /// The length of the next delay.
    ///
    /// Exponential: −mean · ln(1 − u), with u in 0..1, so that the logarithm is never of zero.
    pub(crate) fn draw(self, random: &mut Random) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::Fixed(length) => length,
            Self::Uniform { min, max } => min + max.saturating_sub(min).mul_f64(random.uniform()),
            Self::Exponential { mean } => mean.mul_f64(-(-random.uniform()).ln_1p()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn draws(delay: Delay, seed: u64) -> Vec<Duration> {
        let mut random = Random::new(seed, 0);
        (0..100_000).map(|_| delay.draw(&mut random)).collect()
    }

    fn mean_ms(draws: &[Duration]) -> f64 {
        draws.iter().sum::<Duration>().as_secs_f64() * 1e3 / draws.len() as f64
    }

    #[test]
    fn fixed_and_none_do_not_vary() {
        assert!(draws(Delay::Fixed(MS(7)), 1).iter().all(|&draw| draw == MS(7)));
        assert!(draws(Delay::None, 1).iter().all(Duration::is_zero));
    }

    #[test]
    fn uniform_stays_between_its_bounds_around_their_middle() {
        let draws = draws(Delay::Uniform { min: MS(10), max: MS(30) }, 1);
        assert!(draws.iter().all(|&draw| (MS(10)..=MS(30)).contains(&draw)));
        assert!((mean_ms(&draws) - 20.0).abs() < 0.1);
    }

    #[test]
    fn exponential_has_its_mean_and_its_median() {
        let mut draws = draws(Delay::Exponential { mean: MS(10) }, 1);
        assert!((mean_ms(&draws) - 10.0).abs() < 0.1);
        draws.sort_unstable();
        // The median of an exponential distribution is ln 2 of its mean.
        let median = draws[draws.len() / 2].as_secs_f64() * 1e3;
        assert!((median - 6.93).abs() < 0.15, "{median}");
    }

    #[test]
    fn the_seed_fixes_the_sequence_and_workers_differ() {
        let delay = Delay::Uniform { min: MS(0), max: MS(100) };
        assert_eq!(draws(delay, 5), draws(delay, 5));
        assert_ne!(draws(delay, 5), draws(delay, 6));
        assert_ne!(Random::new(5, 0).next(), Random::new(5, 1).next());
    }
}
