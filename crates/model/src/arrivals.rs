//! When the calls of the open model are due.

use serde::{Deserialize, Serialize};

use crate::profile::Profile;
use crate::random::Random;

/// How due times are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spread {
    /// Evenly: the k-th call is due where the integral of the profile reaches k.
    #[default]
    Uniform,
    /// As independent users arrive: exponential gaps, a Poisson process with the profile as its intensity.
    Poisson,
}

/// One worker's share of a run's due times: an endless or finite, growing sequence. Pure arithmetic from the
/// profile, so it neither drifts nor loses an intended start, however late it is asked.
#[derive(Debug, Clone)]
pub struct Arrivals {
    profile: Profile,
    spread: Spread,
    worker: u64,
    workers: u64,
    random: Random,
    /// How many arrivals this worker has drawn.
    drawn: u64,
    /// Poisson only: the sum of unit exponentials so far.
    unit_time: f64,
    hint: usize,
    /// How many arrivals this worker may draw.
    limit: u64,
}

/// One arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When it is due, in nanoseconds after the profile's start.
    pub due_ns: u64,
    /// Its number among all workers' arrivals.
    pub index: u64,
}

impl Arrivals {
    /// The arrivals of `worker` out of `workers`, at most its share of `requests` of them.
    ///
    /// Uniform arrivals are one sequence over all workers, of which worker w takes every W-th. Poisson arrivals are
    /// a stream of their own on each worker at a W-th of the rate (the superposition of independent Poisson
    /// processes is one at the sum of their rates), drawn by time rescaling: unit exponentials mapped through the
    /// inverse integral of the profile (Brown et al., Neural Computation 14(2), 2002).
    pub fn new(profile: Profile, spread: Spread, worker: u32, workers: u32, seed: u64, requests: Option<u64>) -> Self {
        let (worker, workers) = (u64::from(worker), u64::from(workers.max(1)));
        Self {
            profile,
            spread,
            worker,
            workers,
            random: Random::new(seed, worker),
            drawn: 0,
            unit_time: 0.0,
            hint: 0,
            limit: requests.map_or(u64::MAX, |n| share_of(n, worker, workers)),
        }
    }

    /// Skips `count` arrivals. For Poisson the skipped stretch takes its expected length, so this costs nothing.
    pub fn skip_ahead(&mut self, count: u64) {
        self.drawn = self.drawn.saturating_add(count);
        self.unit_time += count as f64;
    }
}

/// How much of `total` falls to `worker` out of `workers`: differs by at most one between workers.
pub fn share_of(total: u64, worker: u64, workers: u64) -> u64 {
    total / workers + u64::from(worker < total % workers)
}

impl Iterator for Arrivals {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        if self.drawn >= self.limit {
            return None;
        }
        let index = self.drawn.checked_mul(self.workers)?.checked_add(self.worker)?;
        let calls = match self.spread {
            Spread::Uniform => index as f64,
            Spread::Poisson => {
                self.unit_time += self.random.exponential();
                self.unit_time * self.workers as f64
            }
        };
        let seconds = self.profile.time_of(calls, &mut self.hint)?;
        self.drawn += 1;
        Some(Arrival { due_ns: (seconds * 1e9) as u64, index })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(profile: &str, spread: Spread, workers: u32, seed: u64) -> Vec<Arrival> {
        let mut arrivals: Vec<_> = (0..workers)
            .flat_map(|w| Arrivals::new(profile.parse().unwrap(), spread, w, workers, seed, None))
            .collect();
        arrivals.sort_by_key(|arrival| (arrival.due_ns, arrival.index));
        arrivals
    }

    #[test]
    fn uniform_arrivals_are_the_same_however_many_workers_share_them() {
        let one = all("100..300/2s,50/1s", Spread::Uniform, 1, 0);
        assert_eq!(one.len(), 450);
        assert_eq!(one, all("100..300/2s,50/1s", Spread::Uniform, 3, 0));
    }

    #[test]
    fn a_constant_rate_never_drifts() {
        let profile = Profile::constant(3.0).unwrap();
        let mut arrivals = Arrivals::new(profile, Spread::Uniform, 0, 1, 0, None);
        arrivals.skip_ahead(3 * 86_400);
        assert_eq!(arrivals.next().map(|a| a.due_ns), Some(86_400 * 1_000_000_000));
    }

    #[test]
    fn requests_are_shared_out_exactly() {
        let profile = Profile::constant(1000.0).unwrap();
        let drawn: usize =
            (0..7).map(|w| Arrivals::new(profile.clone(), Spread::Poisson, w, 7, 1, Some(100)).count()).sum();
        assert_eq!(drawn, 100);
    }

    #[test]
    fn a_seed_repeats_its_arrivals() {
        assert_eq!(all("500/4s", Spread::Poisson, 2, 42), all("500/4s", Spread::Poisson, 2, 42));
        assert_ne!(all("500/4s", Spread::Poisson, 2, 42), all("500/4s", Spread::Poisson, 2, 43));
    }

    /// One-sample Kolmogorov–Smirnov: the largest distance between the empirical distribution and `cdf`, against
    /// the critical value 1.95/√n of α = 0.001 (Smirnov 1948).
    fn kolmogorov_smirnov(mut sample: Vec<f64>, cdf: impl Fn(f64) -> f64) {
        sample.sort_by(f64::total_cmp);
        let n = sample.len() as f64;
        let distance = sample
            .iter()
            .enumerate()
            .map(|(i, &x)| (cdf(x) - i as f64 / n).abs().max((cdf(x) - (i + 1) as f64 / n).abs()))
            .fold(0.0, f64::max);
        assert!(distance < 1.95 / n.sqrt(), "distance {distance} over {n} values");
    }

    #[test]
    fn poisson_gaps_over_all_workers_are_exponential() {
        let due: Vec<_> = all("2000/20s", Spread::Poisson, 4, 9).iter().map(|a| a.due_ns as f64 / 1e9).collect();
        let gaps = due.windows(2).map(|pair| pair[1] - pair[0]).collect();
        kolmogorov_smirnov(gaps, |gap| 1.0 - (-2000.0 * gap).exp());
    }

    #[test]
    fn poisson_arrivals_follow_a_ramp() {
        // On a ramp from 0 the arrival times are distributed as the square of time.
        let due: Vec<_> = all("0..4000/10s", Spread::Poisson, 3, 5).iter().map(|a| a.due_ns as f64 / 1e9).collect();
        kolmogorov_smirnov(due, |t| (t / 10.0).powi(2));
    }

    proptest! {
        #[test]
        fn arrivals_grow_and_their_count_is_the_integral(
            from in 0_u32..2000, to in 0_u32..2000, hold in 1_u32..1000, workers in 1_u32..5, seed: u64,
        ) {
            let text = format!("{from}..{to}/3s,{hold}/2s");
            let expected = f64::from(from + to) * 1.5 + f64::from(hold) * 2.0;
            let uniform = all(&text, Spread::Uniform, workers, seed);
            prop_assert!((uniform.len() as f64 - expected).abs() <= 1.0, "{} of {expected}", uniform.len());
            prop_assert!(uniform.windows(2).all(|pair| pair[0].index < pair[1].index));
            let poisson = all(&text, Spread::Poisson, workers, seed);
            // Six standard deviations of a Poisson count.
            prop_assert!((poisson.len() as f64 - expected).abs() <= 6.0 * expected.sqrt() + 6.0);
            for w in 0..workers {
                let own: Vec<_> = Arrivals::new(text.parse().unwrap(), Spread::Poisson, w, workers, seed, None).collect();
                prop_assert!(own.windows(2).all(|pair| pair[0].due_ns <= pair[1].due_ns));
            }
        }
    }
}
