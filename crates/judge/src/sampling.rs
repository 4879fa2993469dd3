//! The uncertainty of a figure because a run is a sample: another run of the same length would give another value.
//!
//! Calls are not independent, so their number is not the sample size. The estimate rests on the differences between the
//! run's seconds, and on how long these persist ([`Estimate::of_time`]).
//!
//! - A **quantile's** interval is that of the share of calls below it, read off the distribution (R. S. Woodruff,
//!   "Confidence intervals for medians and other position measures", Journal of the American Statistical Association 47,
//!   1952). The share's comes from the seconds as clusters of calls: a ratio estimate, with an
//!   interval that holds near 0 and 1 as well ([`share_interval`]).
//! - A **mean's** and a **rate's** is that of the mean over seconds.
//! - Of **some of the calls**, those with one name, seconds are not kept apart. They are taken to depend on each other as all
//!   calls of the run do: as many of them count as one (the *design effect*, L. Kish, "Survey Sampling", 1965, section 8.2).
//!   That is more than enough where they are spread over the run as the others are, since fewer of them share a second, and
//!   too little for a name that drifts while the rest stands still.
//!
//! Coverage is tested on latencies that follow an AR(1) process within seconds and from second to second (`tests`).

use brunt_record::histogram::{Censored, Percentile};
use brunt_record::packed::Packed;
use brunt_record::series::Point;

use crate::statistics::{Estimate, LEAST_OF_TIME, extreme_interval, share_interval};

/// The seconds of a run as clusters of its calls: calls of one second are alike, so that uncertainty counts seconds and not calls.
#[derive(Debug, Clone)]
pub struct Clusters<'a> {
    seconds: Vec<Cluster<'a>>,
}

/// The calls of one second.
#[derive(Debug, Clone, Copy)]
struct Cluster<'a> {
    /// The times of calls that ended in it.
    times: &'a Packed,
    /// Times of failed calls among these, which count as lower bounds.
    failing: Option<&'a Packed>,
    /// Lower bounds of calls that did not end.
    bounds: Option<&'a Packed>,
}

impl Cluster<'_> {
    fn calls(&self) -> u64 {
        self.times.count() + self.bounds.map_or(0, Packed::count)
    }

    /// For each of `limits`: the calls known to have taken at most that, and the calls for which it is known whether
    /// they did. It is unknown for a lower bound below the limit.
    fn shares_up_to<const N: usize>(&self, limits: [u64; N]) -> [(u64, u64); N] {
        let up_to = |times: Option<&Packed>| times.map_or([0; N], |times| counts_up_to(times, limits));
        let (ended, failing, bounds) = (up_to(Some(self.times)), up_to(self.failing), up_to(self.bounds));
        let mut shares = [(0, 0); N];
        for (share, ((ended, failing), bounds)) in shares.iter_mut().zip(ended.into_iter().zip(failing).zip(bounds)) {
            *share = (ended.saturating_sub(failing), self.calls().saturating_sub(failing + bounds));
        }
        shares
    }
}

impl<'a> Clusters<'a> {
    /// Clusters of response times; `None` if the run is too short.
    pub fn of_response(points: &'a [Point]) -> Option<Self> {
        Self::new(points.iter().map(|point| Cluster {
            times: &point.response,
            failing: Some(&point.failing),
            bounds: Some(&point.response_bounds),
        }))
    }

    /// Clusters of service times; `None` if the run is too short.
    pub fn of_service(points: &'a [Point]) -> Option<Self> {
        Self::new(points.iter().map(|point| Cluster { times: &point.service, failing: None, bounds: None }))
    }

    /// The dependence of calls around the quantiles of all of them, whose values are `values`.
    pub fn dependence(&self, values: [u64; Percentile::ALL.len()]) -> Dependence {
        Dependence { estimates: self.share_up_to(values), calls: self.count() }
    }

    fn new(seconds: impl Iterator<Item = Cluster<'a>>) -> Option<Self> {
        let seconds: Vec<_> = seconds.collect();
        let with_calls = seconds.iter().filter(|second| second.calls() > 0).count();
        (with_calls >= LEAST_OF_TIME).then_some(Self { seconds })
    }

    /// The ranks between which the true quantiles lie in 95% of cases, as shares (0 to 1), for each of `quantiles`,
    /// whose values are `values`.
    pub fn ranks<const N: usize>(&self, quantiles: [f64; N], values: [u64; N]) -> [Option<(f64, f64)>; N] {
        let mut ranks = [None; N];
        for ((rank, q), estimate) in ranks.iter_mut().zip(quantiles).zip(self.share_up_to(values)) {
            *rank = estimate.and_then(|estimate| share_interval(q, &estimate, self.count()));
        }
        ranks
    }

    /// The number of calls.
    fn count(&self) -> u64 {
        self.seconds.iter().map(Cluster::calls).sum()
    }

    /// The estimate of the share of calls that took at most `value`.
    fn share_up_to<const N: usize>(&self, values: [u64; N]) -> [Option<Estimate>; N] {
        let shares: Vec<[(u64, u64); N]> = self.seconds.iter().map(|second| second.shares_up_to(values)).collect();
        let mut estimates = [None; N];
        for (at, estimate) in estimates.iter_mut().enumerate() {
            let of = |second: &[(u64, u64); N]| second.get(at).copied().unwrap_or_default();
            *estimate = ratio(shares.iter().map(|s| of(s).0 as f64), shares.iter().map(|s| of(s).1 as f64));
        }
        estimates
    }

    /// The interval of the mean, in nanoseconds.
    pub fn mean(&self) -> Option<(f64, f64)> {
        let sums = self.seconds.iter().map(|second| second.times.values().map(|(ns, n)| ns as f64 * n as f64).sum());
        let sizes = self.seconds.iter().map(|second| second.times.count() as f64);
        ratio(sums, sizes).map(|estimate| estimate.interval())
    }
}

/// How the calls of a run depend on each other.
#[derive(Debug, Clone)]
pub struct Dependence {
    /// The shares of calls up to each of [`Percentile::ALL`], with their errors.
    estimates: [Option<Estimate>; Percentile::ALL.len()],
    /// The number of calls behind it.
    calls: u64,
}

impl Dependence {
    /// The ranks between which the true quantiles at [`Percentile::ALL`] of `count` of the calls lie, as [`Clusters::ranks`]
    /// has them for all.
    fn ranks(&self, count: u64) -> [Option<(f64, f64)>; Percentile::ALL.len()] {
        let fewer = (self.calls as f64 / count.max(1) as f64).sqrt();
        let mut ranks = [None; Percentile::ALL.len()];
        for ((rank, percentile), estimate) in ranks.iter_mut().zip(Percentile::ALL).zip(self.estimates) {
            *rank = estimate.and_then(|all| {
                share_interval(
                    percentile.share(),
                    &Estimate { standard_error: all.standard_error * fewer, ..all },
                    count,
                )
            });
        }
        ranks
    }
}

/// Knowledge about a run's seconds.
#[derive(Debug, Clone, Copy)]
pub enum Sampling<'a> {
    /// Of all its calls.
    Whole(&'a Clusters<'a>),
    /// For this many of its calls, as far as they resemble the others.
    Part(&'a Dependence, u64),
}

impl Sampling<'_> {
    /// The ranks between which the true quantiles at [`Percentile::ALL`] lie, whose values are `values`.
    pub fn ranks(&self, values: [u64; Percentile::ALL.len()]) -> [Option<(f64, f64)>; Percentile::ALL.len()] {
        match self {
            Self::Whole(clusters) => clusters.ranks(Percentile::ALL.map(Percentile::share), values),
            Self::Part(dependence, count) => dependence.ranks(*count),
        }
    }

    /// The interval of the mean, in nanoseconds; for a part of the calls it is not known.
    pub fn mean(&self) -> Option<(f64, f64)> {
        match self {
            Self::Whole(clusters) => clusters.mean(),
            Self::Part(..) => None,
        }
    }
}

/// The estimate of Σ parts over Σ wholes, of clusters in the order of time: by the residuals part − ratio · whole
/// (W. G. Cochran, "Sampling Techniques", 3rd edition, section 6.3).
fn ratio(parts: impl Iterator<Item = f64>, wholes: impl Iterator<Item = f64>) -> Option<Estimate> {
    let clusters: Vec<_> = parts.zip(wholes).collect();
    let (part, whole) = clusters.iter().fold((0.0, 0.0), |sum, cluster| (sum.0 + cluster.0, sum.1 + cluster.1));
    if whole <= 0.0 {
        return None;
    }
    let (ratio, typical) = (part / whole, whole / clusters.len() as f64);
    let residuals: Vec<_> = clusters.iter().map(|(part, whole)| (part - ratio * whole) / typical).collect();
    Some(Estimate { mean: ratio, ..Estimate::of_time(&residuals)? })
}

/// The number of values up to each of `limits`.
fn counts_up_to<const N: usize>(known: &Packed, limits: [u64; N]) -> [u64; N] {
    let mut counts = [0; N];
    for (value, n) in known.values() {
        for (count, limit) in counts.iter_mut().zip(limits) {
            *count += if value <= limit { n } else { 0 };
        }
    }
    counts
}

/// The interval of calls a second that ended with success, over the points of one length as blocks. `with_in_flight` is
/// the rate if the calls in flight at the end had ended, too: whether they are in it is where the run was cut.
pub fn rate(points: &[Point], with_in_flight: f64) -> Option<(f64, f64)> {
    let usual = points.first()?.length_ns;
    let rates: Vec<_> = points.iter().filter(|point| point.length_ns == usual).map(Point::ok_per_s).collect();
    let (low, high) = Estimate::of_time(&rates)?.interval();
    Some((low.max(0.0), high.max(with_in_flight)))
}

/// The interval of the share of calls that are not a success, `not_ok` of `due`, over the points as clusters. `None` if the run is
/// too short, or if some of them, `unended`, never ended: how many do not is where the run was cut.
pub fn error_rate(points: &[Point], not_ok: u64, unended: u64, due: u64) -> Option<(f64, f64)> {
    if not_ok == 0 || not_ok == due {
        return extreme_interval(not_ok > 0, due);
    }
    let with_calls = points.iter().filter(|point| point.not_ok + point.ok() > 0).count();
    if with_calls < LEAST_OF_TIME || unended > 0 {
        return None;
    }
    let of_all = points.iter().map(|point| (point.not_ok + point.ok()) as f64);
    let estimate = ratio(points.iter().map(|point| point.not_ok as f64), of_all)?;
    share_interval(not_ok as f64 / due as f64, &estimate, due)
}

/// The value of `times` at the share `rank`; `None` where it is known only from below, or lies beyond the largest.
pub fn value_at(times: &Censored, rank: f64) -> Option<u64> {
    // The last of n values stands for all shares beyond 1 − 1/n.
    let is_beyond = rank * times.count() as f64 > times.count() as f64 - 1.0;
    times.quantile(rank).filter(|value| !is_beyond && !value.at_least).map(|value| value.value)
}

#[cfg(test)]
mod tests {
    use brunt_plan::random::Random;
    use brunt_record::SECOND_NS;
    use brunt_record::catalogue::Timing;
    use brunt_record::histogram::Histogram;
    use brunt_record::outcome::OkStatus;
    use brunt_record::series::Series;
    use brunt_record::snapshot::Snapshot;

    use super::*;
    use crate::distribution::Distribution;

    /// Normal with mean 0 and standard deviation 1 (G. E. P. Box, M. E. Muller, 1958).
    fn normal(random: &mut Random) -> f64 {
        let (a, b) = (random.unit(), random.unit());
        (-2.0 * a.max(f64::MIN_POSITIVE).ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    /// An autoregressive process of first order, with standard deviation 1, from its long-run state.
    struct Ar1 {
        random: Random,
        memory: f64,
        at: f64,
    }

    impl Ar1 {
        fn new(seed: u64, memory: f64) -> Self {
            let mut random = Random::new(seed, 5);
            let at = normal(&mut random);
            Self { random, memory, at }
        }

        fn next(&mut self) -> f64 {
            self.at = self.at * self.memory + normal(&mut self.random) * (1.0 - self.memory * self.memory).sqrt();
            self.at
        }
    }

    /// How latencies depend on those before them: memory from call to call, memory from second to second, and which
    /// share of the variance the seconds have.
    #[derive(Debug, Clone, Copy)]
    struct Target(f64, f64, f64);

    impl Target {
        /// A run of so many seconds with 200 calls in each, whose latencies' logarithms are standard normal.
        fn run(self, seed: u64, seconds: usize) -> Series {
            let Self(call, second, share) = self;
            let (mut calls, mut levels) = (Ar1::new(2 * seed, call), Ar1::new(2 * seed + 1, second));
            let mut series = Series::default();
            for _ in 0..seconds {
                let level = levels.next() * share.sqrt();
                let mut snapshot = Snapshot::default();
                for _ in 0..200 {
                    let logarithm = level + calls.next() * (1.0 - share).sqrt();
                    snapshot.times.record(Timing::Response, (1e6 * logarithm.exp()) as u64);
                }
                series.push(SECOND_NS, &snapshot, &OkStatus::default());
            }
            series
        }
    }

    /// Of 400 runs, in how many the interval of each of the quantiles 0.5 and 0.99 holds the true one, in percent.
    fn coverage(target: Target, seconds: usize) -> [f64; 2] {
        const RUNS: u64 = 400;
        const TRUE: [(f64, f64); 2] = [(0.5, 0.0), (0.99, 2.326_347_874)];
        let mut held = [0; 2];
        for seed in 0..RUNS {
            let series = target.run(seed, seconds);
            let mut all = Histogram::new();
            series.points().iter().for_each(|point| all.merge(&point.response.unpack()));
            let shares = TRUE.map(|(q, _)| q);
            let values = shares.map(|q| all.quantile(q).unwrap());
            let ranks = Clusters::of_response(series.points()).unwrap().ranks(shares, values);
            for ((held, rank), (_, z)) in held.iter_mut().zip(ranks).zip(TRUE) {
                let (low, high) = rank.unwrap();
                let truth = 1e6 * z.exp();
                let above = all.quantile(low).unwrap() as f64 <= truth;
                *held +=
                    u64::from(above && value_at(&all.clone().into(), high).is_none_or(|high| high as f64 >= truth));
            }
        }
        held.map(|held| held as f64 * 100.0 / RUNS as f64)
    }

    /// What 95% comes to in 400 runs, give or take three standard deviations of a count (1.1%), where all is as the
    /// method supposes; a little less on short runs that remember much, and more on those that remember nothing.
    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        for (target, seconds, least) in [
            (Target(0.0, 0.0, 0.0), 10, 92.0),
            (Target(0.95, 0.0, 0.0), 10, 91.0),
            (Target(0.9, 0.5, 0.2), 30, 91.0),
            (Target(0.95, 0.0, 0.0), 30, 92.0),
            (Target(0.0, 0.0, 0.0), 60, 92.0),
            (Target(0.9, 0.5, 0.2), 60, 92.0),
            (Target(0.9, 0.7, 0.2), 60, 90.0),
        ] {
            for held in coverage(target, seconds) {
                assert!(held >= least, "{held} % on {target:?} in {seconds} s");
            }
        }
    }

    /// Every fourth call has a name: the intervals of its p50 and p99 hold the truth no less often than those of all calls.
    #[test]
    fn intervals_of_some_calls_hold_the_truth_as_well() {
        const RUNS: u64 = 300;
        for target in [Target(0.0, 0.0, 0.0), Target(0.95, 0.0, 0.0), Target(0.9, 0.5, 0.2)] {
            let mut held = [0_u64; 2];
            for seed in 0..RUNS {
                let series = target.run(seed, 40);
                let (mut all, mut named) = (Histogram::new(), Histogram::new());
                for point in series.points() {
                    let second = point.response.unpack();
                    let mut values: Vec<u64> = second.values().flat_map(|(ns, n)| vec![ns; n as usize]).collect();
                    // By their ranks in a random order, the same each time.
                    let mut random = Random::new(seed, point.start_ns);
                    for at in (1..values.len()).rev() {
                        values.swap(at, (random.unit() * (at + 1) as f64) as usize);
                    }
                    values.iter().step_by(4).for_each(|ns| named.record(*ns));
                    all.merge(&second);
                }
                let whole = Distribution::of_known(&all).unwrap();
                let clusters = Clusters::of_response(series.points()).unwrap();
                let ranks = clusters.dependence(whole.values()).ranks(named.count());
                for (held, (at, z)) in held.iter_mut().zip([(0, 0.0_f64), (4, 2.326_347_874)]) {
                    let (low, high) = ranks[at].unwrap();
                    let truth = 1e6 * z.exp();
                    let above = named.quantile(low).unwrap() as f64 <= truth;
                    *held += u64::from(
                        above && value_at(&named.clone().into(), high).is_none_or(|high| high as f64 >= truth),
                    );
                }
            }
            for held in held.map(|held| held as f64 * 100.0 / RUNS as f64) {
                assert!(held >= 91.0, "{held} % on {target:?}");
            }
        }
    }

    #[test]
    fn calls_that_depend_on_each_other_count_as_fewer() {
        let width = |target: Target| {
            let series = target.run(1, 60);
            let mut all = Histogram::new();
            series.points().iter().for_each(|point| all.merge(&point.response.unpack()));
            let median = all.quantile(0.5).unwrap();
            let [rank] = Clusters::of_response(series.points()).unwrap().ranks([0.5], [median]);
            let (low, high) = rank.unwrap();
            high - low
        };
        assert!(width(Target(0.9, 0.7, 0.3)) > 4.0 * width(Target(0.0, 0.0, 0.0)));
        // Of 12,000 independent calls: 2 · 1.96 · √(0.25 / 12,000) = 1.8%.
        assert!((0.015..0.03).contains(&width(Target(0.0, 0.0, 0.0))), "{}", width(Target(0.0, 0.0, 0.0)));
    }

    #[test]
    fn a_short_run_has_no_interval() {
        assert!(Clusters::of_response(Target(0.0, 0.0, 0.0).run(1, 4).points()).is_none());
        assert_eq!(rate(&[], 0.0), None);
    }

    #[test]
    fn means_and_rates_have_intervals_as_well() {
        let mut held = 0;
        for seed in 0..200 {
            let series = Target(0.9, 0.5, 0.2).run(seed, 60);
            let (low, high) = Clusters::of_response(series.points()).unwrap().mean().unwrap();
            // The mean of a log-normal value is e^(1/2).
            held += u32::from((low..=high).contains(&(1e6 * 0.5_f64.exp())));
        }
        assert!((180..=199).contains(&held), "{held} of 200");
        let mut series = Series::default();
        for i in 0..20 {
            let mut second = Snapshot::default();
            (0..100 + i % 3).for_each(|_| second.statuses.record(200));
            second.count_ends(&OkStatus::default());
            series.push(SECOND_NS, &second, &OkStatus::default());
        }
        let (_, with_in_flight) = rate(series.points(), 120.0).unwrap();
        assert!((with_in_flight - 120.0).abs() < 1e-9, "calls in flight can belong to it: {with_in_flight}");
        let (low, high) = rate(series.points(), 101.0).unwrap();
        assert!(low > 99.5 && low < 101.0 && high > 101.0 && high < 102.5, "{low} {high}");
    }
}
