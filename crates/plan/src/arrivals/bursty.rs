//! Arrivals in bursts: gaps by a gamma distribution.
//!
//! In units of calls the gaps have mean 1 and shape s, so that their standard deviation is 1 / √s: with s = 1 they are those of a Poisson
//! process, below it bursts with silences between them, above it evener. The k-th arrival is due where the integral of the profile
//! reaches the sum of the first k gaps. Each share draws all gaps, since the sum needs them, and takes the arrivals with its own numbers.

use super::{Arrival, nanoseconds};
use crate::profile::Profile;
use crate::random::Random;
use crate::share::Share;

/// One share's position in its arrivals.
#[derive(Debug, Clone)]
pub(super) struct Bursty {
    share: Share,
    shape: f64,
    random: Random,
    /// The arrivals drawn of all shares, and the sum of their gaps.
    drawn: u64,
    sum: f64,
    /// The share's own arrivals that are past, and the first number that is no arrival of the run.
    own: u64,
    limit: u64,
    /// The place of the last one in the profile.
    hint: usize,
    /// The next one, if it was drawn or given back; and the last.
    next: Option<Arrival>,
    last: Option<Arrival>,
}

impl Bursty {
    pub(super) fn new(share: Share, shape: f64, seed: u64, requests: Option<u64>) -> Self {
        Self {
            share,
            shape,
            random: Random::new(seed, 0xb0_257),
            drawn: 0,
            sum: 0.0,
            own: 0,
            limit: requests.unwrap_or(u64::MAX),
            hint: 0,
            next: None,
            last: None,
        }
    }

    fn peek(&mut self, profile: &Profile) -> Option<Arrival> {
        if self.next.is_none() {
            let index = self.share.number(self.own).filter(|index| *index < self.limit)?;
            while self.drawn <= index {
                self.sum += gamma(self.shape, &mut self.random);
                self.drawn += 1;
            }
            let seconds = profile.time_of(self.sum, &mut self.hint)?;
            self.own += 1;
            self.next = Some(Arrival { due_ns: nanoseconds(seconds), index });
        }
        self.next
    }

    pub(super) fn next(&mut self, profile: &Profile) -> Option<Arrival> {
        self.peek(profile)?;
        self.last = self.next.take();
        self.last
    }

    /// The profile has changed: calls due before the change keep their times.
    pub(super) fn change(&mut self, profile: &Profile) {
        self.hint = 0;
        // What was drawn and not taken is due by the new profile.
        if let Some(next) = &mut self.next
            && let Some(seconds) = profile.time_of(self.sum, &mut self.hint)
        {
            next.due_ns = nanoseconds(seconds);
        }
    }

    /// Takes back the last arrival, which is then the next one again.
    pub(super) fn give_back(&mut self) {
        self.next = self.last.take().or(self.next);
    }

    pub(super) fn pass(&mut self, profile: &Profile, until_ns: u64) -> u64 {
        let mut passed = 0;
        while self.peek(profile).is_some_and(|next| next.due_ns < until_ns) {
            self.last = self.next.take();
            passed += 1;
        }
        passed
    }
}

/// A gap of mean 1 (Marsaglia and Tsang, "A simple method for generating gamma variables", 2000).
fn gamma(shape: f64, random: &mut Random) -> f64 {
    // Below 1, of the next larger shape by a power of a uniform number.
    let (larger, power) = if shape < 1.0 { (shape + 1.0, random.unit().powf(1.0 / shape)) } else { (shape, 1.0) };
    let d = larger - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = random.normal();
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && random.unit().ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v * power / shape;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::share::Portion;

    #[test]
    fn gaps_have_their_mean_and_deviation() {
        for shape in [0.1, 0.5, 1.0, 4.0] {
            let mut random = Random::new(3, 0);
            let gaps: Vec<f64> = (0..200_000).map(|_| gamma(shape, &mut random)).collect();
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
            assert!((mean - 1.0).abs() < 0.02, "{shape}: {mean}");
            assert!((deviation * shape.sqrt() - 1.0).abs() < 0.03, "{shape}: {deviation}");
        }
    }

    #[test]
    fn shares_make_up_one_sequence() {
        let profile: Profile = "100..300/4s".parse().unwrap();
        let of = |workers: u32| {
            let mut all: Vec<Arrival> = Vec::new();
            for share in Portion::whole(workers).shares() {
                let mut bursty = Bursty::new(share, 0.3, 5, Some(700));
                all.extend(std::iter::from_fn(|| bursty.next(&profile)));
            }
            all.sort_by_key(|arrival| arrival.index);
            all
        };
        let one = of(1);
        assert!(one.windows(2).all(|two| two[0].due_ns <= two[1].due_ns) && one.len() <= 700 && one.len() > 400);
        assert_eq!(one, of(3));
        let mut bursty = Bursty::new(Share::WHOLE, 0.3, 5, None);
        let passed = bursty.pass(&profile, 1_000_000_000);
        let next = bursty.next(&profile);
        assert_eq!(
            (passed, next),
            (one.iter().filter(|one| one.due_ns < 1_000_000_000).count() as u64, one.get(passed as usize).copied())
        );
        bursty.give_back();
        assert_eq!(bursty.next(&profile), next);
    }
}
