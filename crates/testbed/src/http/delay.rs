//! Chance: a small generator, and the lengths of delays drawn from it.

use std::time::Duration;

use super::config::Delay;

/// `SplitMix64` (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
#[derive(Debug, Clone)]
pub(super) struct Random {
    state: u64,
}

impl Random {
    /// The generator of one worker: each has its own sequence, fixed by the seed.
    pub(super) fn new(seed: u64, worker: usize) -> Self {
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
    pub(super) fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

impl Delay {
    /// The length of the next delay.
    ///
    /// Exponential: −mean · ln(1 − u), with u in 0..1, so that the logarithm is never of zero.
    pub(super) fn draw(self, random: &mut Random) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::Fixed(length) => length,
            Self::Uniform { min, max } => min + max.saturating_sub(min).mul_f64(random.uniform()),
            Self::Exponential { mean } => mean.mul_f64(-(-random.uniform()).ln_1p()),
        }
    }
}
