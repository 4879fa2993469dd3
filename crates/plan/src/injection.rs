//! The times at which the users of a population come: arithmetic from an index to a time, so that they never drift.

use crate::arrivals::{Arrivals, Spread};
use crate::profile::{Profile, Segment};
use crate::random::mix;
use crate::scenario::{Population, Step};
use crate::share::Share;

/// The number of users who have come, or who are there, over time: the steps of an injection, one after the other.
#[derive(Debug, Clone)]
pub struct Curve {
    steps: Vec<Step>,
    /// Users who have come before each step; one longer than `steps`.
    users_before: Vec<f64>,
    /// Seconds before each step; one longer than `steps`.
    seconds_before: Vec<f64>,
}

/// How many users a step of an open injection brings.
fn users_of(step: &Step) -> f64 {
    match *step {
        Step::AtOnce { users } | Step::Peak { users, .. } => users,
        Step::Rate { from, to, seconds } => f64::midpoint(from, to) * seconds,
        _ => 0.0,
    }
}

/// The time, in seconds after a step's beginning, by which `users` of its users have come.
fn time_of(step: &Step, users: f64) -> f64 {
    match *step {
        Step::Rate { from, to, seconds } => Segment { from, to, seconds }.time_of(users).min(seconds),
        // The inverse of y = 3x² − 2x³ on [0, 1] is x = 1/2 − sin(asin(1 − 2y) / 3), by the triple-angle formula.
        Step::Peak { users: all, seconds } => {
            let share = (users / all).clamp(0.0, 1.0);
            (0.5 - ((1.0 - 2.0 * share).asin() / 3.0).sin()) * seconds
        }
        _ => 0.0,
    }
}

impl Curve {
    /// The curve of these steps.
    pub fn new(steps: &[Step]) -> Self {
        let (mut users, mut seconds) = (0.0, 0.0);
        let (mut users_before, mut seconds_before) = (vec![0.0], vec![0.0]);
        for step in steps {
            users += users_of(step);
            seconds += step.seconds();
            users_before.push(users);
            seconds_before.push(seconds);
        }
        Self { steps: steps.to_vec(), users_before, seconds_before }
    }

    /// How long it lasts, in seconds.
    pub fn seconds(&self) -> f64 {
        self.seconds_before.last().copied().unwrap_or(0.0)
    }

    /// Closed: the time after `seconds` at which the wanted whole number of users changes, in seconds.
    pub fn next_change(&self, seconds: f64) -> f64 {
        for (step, before) in self.steps.iter().zip(&self.seconds_before) {
            let end = before + step.seconds();
            if seconds >= end {
                continue;
            }
            let Step::Users { from, to, seconds: length } = *step else { return end };
            if from == to {
                return end;
            }
            let slope = (to - from) / length;
            let users = from + slope * (seconds - before).max(0.0);
            let next = if slope > 0.0 { (users + 1e-6).floor() + 1.0 } else { (users + 1e-6).ceil() - 1.0 };
            return (before + (next - from) / slope).max(seconds + 1e-6).min(end);
        }
        self.seconds()
    }

    /// Closed: the most users that are wanted at any time from `from` to `to`, in seconds; at its last moment where both
    /// are after its end.
    pub fn most_users(&self, from: f64, to: f64) -> f64 {
        let from = from.min(self.seconds()).max(0.0);
        let ends = self.steps.iter().zip(&self.seconds_before).filter_map(|(step, before)| match *step {
            Step::Users { from: first, to: last, seconds } if from <= before + seconds && to >= *before => {
                let at = |second: f64| first + (last - first) * ((second - before) / seconds).clamp(0.0, 1.0);
                Some(at(from).max(at(to)))
            }
            _ => None,
        });
        ends.fold(0.0, f64::max)
    }

    /// Closed: how many users are wanted after `seconds`.
    pub fn users_at(&self, seconds: f64) -> f64 {
        for (step, before) in self.steps.iter().zip(&self.seconds_before) {
            let within = seconds - before;
            if within < step.seconds() {
                return match *step {
                    Step::Users { from, to, seconds } => from + (to - from) * (within / seconds).max(0.0),
                    _ => 0.0,
                };
            }
        }
        0.0
    }
}

/// The seed of the random choices of the population at this index in a plan of this seed.
pub const fn population_seed(seed: u64, place: usize) -> u64 {
    seed ^ (place as u64) << 48
}

/// One share of the arrivals of an open population.
///
/// The shares of a run make up one sequence, whatever their number.
#[derive(Debug, Clone)]
pub struct UserArrivals {
    curve: Curve,
    spread: Spread,
    share: Share,
    seed: u64,
    /// The step of the next users, where steps are handled one by one.
    step: usize,
    /// The number of this share's users that have come: of all steps, or of the current step where steps are handled
    /// one by one.
    drawn: u64,
    /// Poisson: the arrivals of this step, if its users come at a random rate.
    random: Option<Arrivals>,
}

impl UserArrivals {
    /// The arrivals of one share. Uniform ones are one sequence over all shares, of which each share has every n-th;
    /// Poisson ones are dealt out as [`Arrivals`] are. Only rates are random: the number of users who come at once, or
    /// in a peak, is fixed.
    pub fn new(steps: &[Step], spread: Spread, share: Share, seed: u64) -> Self {
        let mut arrivals = Self { curve: Curve::new(steps), spread, share, seed, step: 0, drawn: 0, random: None };
        arrivals.begin_step();
        arrivals
    }

    /// The arrivals of one share of the population at this index in a plan of this seed.
    pub fn for_population(population: &Population, place: usize, seed: u64, share: Share) -> Self {
        Self::new(&population.steps, population.arrivals, share, population_seed(seed, place))
    }

    fn uniform(&mut self) -> Option<f64> {
        let users = self.share.number(self.drawn)? as f64;
        while *self.curve.users_before.get(self.step + 1)? <= users {
            self.step += 1;
        }
        self.drawn += 1;
        let (before, begun) = (self.curve.users_before.get(self.step)?, self.curve.seconds_before.get(self.step)?);
        Some(begun + time_of(self.curve.steps.get(self.step)?, users - before))
    }

    fn begin_step(&mut self) {
        self.random = match self.curve.steps.get(self.step) {
            Some(&Step::Rate { from, to, seconds }) if self.spread.is_random() => {
                let seed = mix(self.seed ^ self.step as u64);
                let profile = Profile::new(vec![Segment { from, to, seconds }]);
                // A rate of 0 throughout is not a profile: nobody comes.
                profile.ok().map(|profile| Arrivals::new(profile, self.spread, self.share, seed, None))
            }
            _ => None,
        };
        self.drawn = 0;
    }

    fn by_chance(&mut self) -> Option<f64> {
        loop {
            let step = self.curve.steps.get(self.step)?;
            let begun = self.curve.seconds_before.get(self.step)?;
            let within = if let Step::Rate { .. } = step {
                self.random.as_mut().and_then(Iterator::next).map(|arrival| arrival.due_ns as f64 / 1e9)
            } else {
                // Dealing begins at another share for each step, so that the surplus user does not always go to the
                // same one.
                let number = (self.share.index() + self.step as u64) % self.share.count();
                let users = (self.drawn * self.share.count() + number) as f64;
                (users < users_of(step)).then(|| time_of(step, users))
            };
            if let Some(within) = within {
                self.drawn += 1;
                return Some(begun + within);
            }
            self.step += 1;
            self.begin_step();
        }
    }
}

impl Iterator for UserArrivals {
    /// When a user comes, in nanoseconds after the injection began.
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let seconds = match self.spread {
            Spread::Uniform => self.uniform(),
            Spread::Poisson | Spread::Bursty { .. } => self.by_chance(),
        };
        seconds.map(|seconds| (seconds * 1e9) as u64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::share::Portion;

    fn all(steps: &[Step], spread: Spread, workers: u32) -> Vec<u64> {
        let mut times: Vec<_> =
            Portion::whole(workers).shares().flat_map(|share| UserArrivals::new(steps, spread, share, 7)).collect();
        times.sort_unstable();
        times
    }

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn users_come_when_the_steps_say() {
        let steps = [
            Step::AtOnce { users: 3.0 },
            Step::NothingFor { seconds: 2.0 },
            Step::Rate { from: 2.0, to: 2.0, seconds: 1.0 },
        ];
        for workers in [1, 2, 3, 7] {
            assert_eq!(all(&steps, Spread::Uniform, workers), [0, 0, 0, 2 * SECOND, 2 * SECOND + SECOND / 2]);
        }
    }

    #[test]
    fn a_peak_is_steep_in_its_middle() {
        let times = all(&[Step::Peak { users: 1000.0, seconds: 10.0 }], Spread::Uniform, 2);
        let between =
            |from: u64, to: u64| times.iter().filter(|time| (from * SECOND..to * SECOND).contains(time)).count();
        // y(x) = 3x² − 2x³: 2.8% in the first tenth, 14.9% in each of the two in the middle.
        assert!((27..=29).contains(&between(0, 1)), "{}", between(0, 1));
        assert!((148..=150).contains(&between(5, 6)), "{}", between(5, 6));
        assert_eq!(times.len(), 1000);
    }

    #[test]
    fn poisson_users_are_random_only_where_a_rate_is() {
        let steps = [
            Step::Rate { from: 100.0, to: 100.0, seconds: 10.0 },
            Step::AtOnce { users: 10.0 },
            Step::Rate { from: 0.0, to: 100.0, seconds: 10.0 },
        ];
        for workers in [1, 3] {
            let times = all(&steps, Spread::Poisson, workers);
            assert_eq!(times.iter().filter(|time| **time == 10 * SECOND).count(), 10);
            assert!((1350..1650).contains(&times.len()), "{}", times.len());
            assert_ne!(times[1] - times[0], times[2] - times[1]);
        }
    }

    #[test]
    fn so_many_users_are_wanted() {
        let curve = Curve::new(&[
            Step::Users { from: 0.0, to: 10.0, seconds: 10.0 },
            Step::Users { from: 10.0, to: 10.0, seconds: 5.0 },
        ]);
        assert_eq!([0.0, 5.0, 12.0, 15.0].map(|at| curve.users_at(at)), [0.0, 5.0, 10.0, 0.0]);
        let falls = Curve::new(&[
            Step::Users { from: 10.0, to: 0.0, seconds: 10.0 },
            Step::Users { from: 4.0, to: 2.0, seconds: 2.0 },
        ]);
        let most = [(-5.0, 0.0), (0.0, 5.0), (7.0, 9.0), (7.0, 10.0), (9.0, 11.0), (11.0, 15.0), (20.0, 25.0)];
        assert_eq!(most.map(|(from, to)| falls.most_users(from, to)), [10.0, 10.0, 3.0, 4.0, 4.0, 3.0, 2.0]);
        assert_eq!(curve.seconds(), 15.0);
    }

    proptest! {
        #[test]
        fn arrivals_grow_and_are_the_same_however_many_workers_share_them(
            parts in prop::collection::vec((0_u8..4, 0_u32..500, 0_u32..500, 1_u32..50), 1..5), workers in 1_u32..6,
        ) {
            let steps: Vec<_> = parts.iter().map(|&(kind, a, b, tenths)| {
                let (users, seconds) = (f64::from(a + 1), f64::from(tenths) / 10.0);
                match kind {
                    0 => Step::AtOnce { users },
                    1 => Step::NothingFor { seconds },
                    2 => Step::Peak { users, seconds },
                    _ => Step::Rate { from: f64::from(a), to: f64::from(b), seconds },
                }
            }).collect();
            let expected: f64 = steps.iter().map(users_of).sum();
            let poisson = all(&steps, Spread::Poisson, 1);
            for shares in [2, 7, 20] {
                prop_assert_eq!(&poisson, &all(&steps, Spread::Poisson, shares), "{} shares", shares);
            }
            let one = all(&steps, Spread::Uniform, 1);
            prop_assert!((one.len() as f64 - expected.ceil()).abs() <= 1.0, "{} of {expected}", one.len());
            prop_assert_eq!(&one, &all(&steps, Spread::Uniform, workers));
            let end = (Curve::new(&steps).seconds() * 1e9) as u64 + 1;
            prop_assert!(one.iter().all(|time| *time <= end));
            let single: Vec<_> = UserArrivals::new(&steps, Spread::Uniform, Share::WHOLE, 7).collect();
            prop_assert!(single.windows(2).all(|pair| pair[0] <= pair[1] + 1));
        }
    }
}
