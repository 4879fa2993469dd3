//! Pseudo-random numbers that can be repeated from a seed.
//!
//! `SplitMix64` (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014): a full-period
//! 64-bit generator of three multiply–xor rounds. Its stateless form, [`mix`], turns a call's index into its
//! random choice, so that the choice does not depend on which worker makes the call.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by numbers that brunt itself has made. Hashing costs a [`mix`], a third of the standard hash; an attacker who
/// could choose the numbers could make them collide.
pub type ByNumber<V> = HashMap<u64, V, BuildHasherDefault<NumberHasher>>;

/// Hashes one number by [`mix`].
#[derive(Debug, Default, Clone, Copy)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = mix(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mix(self.0 ^ number);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Mixes one 64-bit value into another that looks unrelated.
pub fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The random choice that belongs to call `index` under `seed`: the same on every worker and machine.
pub fn choice(seed: u64, index: u64) -> u64 {
    mix(mix(seed) ^ index)
}

/// The same choice as a number between 0 and 1, uniform.
pub fn unit(seed: u64, index: u64) -> f64 {
    unit_of(choice(seed, index))
}

/// The number in the open interval (0, 1) that random bits stand for: never 0, so that its logarithm exists. It grows
/// with the upper 53 bits.
#[inline]
pub(crate) fn unit_of(bits: u64) -> f64 {
    ((bits >> 11) as f64 + 0.5) * (1.0 / (1_u64 << 53) as f64)
}

/// A stream of pseudo-random numbers.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Stream number `stream` of the run's `seed`. Different streams do not overlap in practice.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self { state: mix(mix(seed).wrapping_add(stream)) }
    }

    /// The 64 bits that [`Random::next_u64`] returns after `count` others, computed directly: the state is a counter.
    #[inline]
    pub fn nth_u64(&self, count: u64) -> u64 {
        mix(self.state.wrapping_add(count.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let value = mix(self.state);
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        value
    }

    /// Uniform in the open interval (0, 1): never 0, so that its logarithm exists.
    pub fn unit(&mut self) -> f64 {
        unit_of(self.next_u64())
    }

    /// Normal with mean 0 and deviation 1 (Box and Muller, "A note on the generation of random normal deviates", 1958).
    pub fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.unit(), self.unit());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    /// Exponential with mean 1: −ln(U).
    pub fn exponential(&mut self) -> f64 {
        -self.unit().ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_from_their_seed_and_differ_from_each_other() {
        let draw = |seed, stream| {
            let mut random = Random::new(seed, stream);
            [random.next_u64(), random.next_u64(), random.next_u64()]
        };
        assert_eq!(draw(7, 0), draw(7, 0));
        assert_ne!(draw(7, 0), draw(7, 1));
        assert_ne!(draw(7, 0), draw(8, 0));
    }

    #[test]
    fn a_map_by_number_finds_what_it_has() {
        let map: ByNumber<u64> = (0..1000).map(|number| (number << 32, number)).collect();
        assert!((0..1000).all(|number| map.get(&(number << 32)) == Some(&number)) && !map.contains_key(&1));
    }

    #[test]
    fn a_later_number_is_had_at_once() {
        let mut random = Random::new(7, 3);
        let later = random.nth_u64(2);
        assert_eq!([random.next_u64(), random.next_u64(), random.next_u64()][2], later);
    }

    #[test]
    fn exponentials_have_mean_one() {
        let mut random = Random::new(1, 0);
        let n = 200_000;
        let mean = (0..n).map(|_| random.exponential()).sum::<f64>() / f64::from(n);
        assert!((mean - 1.0).abs() < 0.01, "mean {mean}");
    }
}
