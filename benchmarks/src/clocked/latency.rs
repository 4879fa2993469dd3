//! How long our own target takes for an answer.

use std::f64::consts::TAU;
use std::time::Duration;

use anyhow::{Context as _, bail};

/// The latency of answers, and its dependence on the one before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Latency {
    /// Answers go out at once.
    None,
    /// Latencies whose logarithms follow a stationary autoregressive process of first order over the requests:
    /// log-normal, and each close to the one before.
    Ar1 {
        /// The median, in microseconds.
        median_us: u64,
        /// The standard deviation of the logarithms.
        sigma: f64,
        /// The correlation of the logarithms of neighbours, from 0 to 1.
        memory: f64,
        /// The seed of the sequence.
        seed: u64,
    },
}

impl Latency {
    /// The words of the command line for it.
    pub fn words(self) -> Vec<String> {
        match self {
            Self::None => vec!["none".to_owned()],
            Self::Ar1 { median_us, sigma, memory, seed } => {
                vec!["ar1".to_owned(), median_us.to_string(), sigma.to_string(), memory.to_string(), seed.to_string()]
            }
        }
    }

    /// Reads it from such words.
    pub fn read(words: &[String]) -> anyhow::Result<Self> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["none"] => Ok(Self::None),
            ["ar1", median_us, sigma, memory, seed] => Ok(Self::Ar1 {
                median_us: median_us.parse().context("the median is not a number of microseconds")?,
                sigma: sigma.parse().context("the standard deviation is not a number")?,
                memory: memory.parse().context("the correlation is not a number")?,
                seed: seed.parse().context("the seed is not a number")?,
            }),
            _ => bail!("a latency is 'none' or 'ar1 MEDIAN_US SIGMA MEMORY SEED'"),
        }
    }

    /// The latency of the population at the standard normal quantile `z`, in nanoseconds.
    pub fn at(self, z: f64) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Ar1 { median_us, sigma, .. } => median_us as f64 * 1e3 * (sigma * z).exp(),
        }
    }
}

/// A sequence of latencies.
pub(super) struct Latencies {
    latency: Latency,
    random: fastrand::Rng,
    /// Where the process is, in standard deviations.
    at: f64,
}

impl Latencies {
    pub(super) fn new(latency: Latency) -> Self {
        let seed = if let Latency::Ar1 { seed, .. } = latency { seed } else { 0 };
        let mut random = fastrand::Rng::with_seed(seed);
        // The process starts in its stationary state, so the first latency has the same distribution as all others.
        let at = normal(&mut random);
        Self { latency, random, at }
    }

    /// The next latency; `None` if the answer is sent at once.
    pub(super) fn next(&mut self) -> Option<Duration> {
        let Latency::Ar1 { memory, .. } = self.latency else { return None };
        self.at = self.at * memory + normal(&mut self.random) * (1.0 - memory * memory).sqrt();
        Some(Duration::from_nanos(self.latency.at(self.at) as u64))
    }
}

/// Normal with mean 0 and standard deviation 1 (G. E. P. Box, M. E. Muller, "A note on the generation of random normal
/// deviates", Annals of Mathematical Statistics 29, 1958).
fn normal(random: &mut fastrand::Rng) -> f64 {
    let (a, b) = (1.0 - random.f64(), random.f64());
    (-2.0 * a.ln()).sqrt() * (TAU * b).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATENCY: Latency = Latency::Ar1 { median_us: 5000, sigma: 0.8, memory: 0.5, seed: 3 };

    #[test]
    fn words_are_read_back() {
        for latency in [LATENCY, Latency::None] {
            assert_eq!(Latency::read(&latency.words()).unwrap(), latency);
        }
        assert!(Latency::read(&["ar1".to_owned()]).is_err());
    }

    #[test]
    fn latencies_have_the_population_s_quantiles_and_memory() {
        let mut latencies = Latencies::new(LATENCY);
        let drawn: Vec<f64> = (0..200_000).map(|_| latencies.next().unwrap().as_nanos() as f64).collect();
        let logarithms: Vec<f64> = drawn.iter().map(|ns| (ns / 5e6).ln() / 0.8).collect();
        let products: f64 = logarithms.iter().zip(logarithms.iter().skip(1)).map(|(a, b)| a * b).sum();
        let memory = products / drawn.len() as f64;
        assert!((memory - 0.5).abs() < 0.02, "{memory}");
        for (share, z) in [(0.5, 0.0), (0.99, 2.326_347_874)] {
            let below = drawn.iter().filter(|ns| **ns <= LATENCY.at(z)).count() as f64 / drawn.len() as f64;
            assert!((below - share).abs() < 0.01, "{share}: {below}");
        }
    }
}
