//! Inference about a mean from a few values: estimates, intervals and tests with Student's t.

use std::f64::consts::PI;

use statrs::distribution::{Binomial, ChiSquared, ContinuousCDF as _, DiscreteCDF as _, Normal, StudentsT};
use statrs::function::beta::checked_beta_reg;

/// The share of cases in which an interval holds the true value.
pub const CONFIDENCE: f64 = 0.95;
/// The probability with which a difference has to be found, where the smallest detectable one is stated.
const POWER: f64 = 0.8;

/// The fewest values in the order of time that allow an estimate of their mean's error.
pub const LEAST_OF_TIME: usize = 5;

/// A mean with its standard error and degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// Degrees of freedom of that.
    pub degrees_of_freedom: f64,
}

impl Estimate {
    /// The mean of independent values; `None` if there are fewer than two. A standard deviation below `resolution`,
    /// which the values cannot have, is raised to it.
    pub fn from_values(values: &[f64], resolution: f64) -> Option<Self> {
        let n = values.len() as f64;
        if values.len() < 2 || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let stdev = variance.sqrt().max(resolution);
        Some(Self { mean, standard_error: stdev / n.sqrt(), degrees_of_freedom: n - 1.0 })
    }

    /// How much larger the mean of `values` is than that of `others`, all of which vary alike: where one side has too few values to
    /// show a spread of its own, the other's stands for it (Student's t for two samples; of a single value against several it is the
    /// interval of prediction: G. J. Hahn, "Factors for calculating two-sided prediction intervals for samples from a normal
    /// distribution", Journal of the American Statistical Association 64, 1969). `None` if neither side has two.
    pub fn of_common_spread(values: &[f64], others: &[f64], resolution: f64) -> Option<Self> {
        let is_finite = values.iter().chain(others).all(|value| value.is_finite());
        let degrees_of_freedom = (values.len() + others.len()).checked_sub(2).filter(|df| *df > 0 && is_finite)? as f64;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let squares = |values: &[f64]| values.iter().map(|value| (value - mean(values)).powi(2)).sum::<f64>();
        let stdev = ((squares(values) + squares(others)) / degrees_of_freedom).sqrt().max(resolution);
        let standard_error = stdev * (1.0 / values.len() as f64 + 1.0 / others.len() as f64).sqrt();
        Some(Self { mean: mean(values) - mean(others), standard_error, degrees_of_freedom })
    }

    /// The mean of values that follow each other in time, so that one tells something of the next. They count as fewer:
    /// as n·(1 − r)/(1 + r), where r is the correlation of neighbours (G. V. Bayley, J. M. Hammersley, "The 'effective'
    /// number of independent observations in an autocorrelated time series", Journal of the Royal Statistical
    /// Society, Supplement 8, 1946). Seen in n values r comes out too low by (1 + 3r)/n on average, which is put back
    /// (F. H. C. Marriott, J. A. Pope, "Bias in the estimation of autocorrelations", Biometrika 41, 1954).
    /// `doubt` is added to r, for series in which little of it can be seen.
    pub fn of_series(values: &[f64], resolution: f64, doubt: f64) -> Option<Self> {
        let naive = Self::from_values(values, resolution)?;
        let n = values.len() as f64;
        let from_mean = |value: &f64| value - naive.mean;
        let squares: f64 = values.iter().map(|value| from_mean(value).powi(2)).sum();
        let products: f64 = values.iter().zip(values.iter().skip(1)).map(|(a, b)| from_mean(a) * from_mean(b)).sum();
        let seen = if squares > 0.0 { products / squares } else { 0.0 };
        let r = (seen + (1.0 + 3.0 * seen) / n + doubt).clamp(0.0, 0.9);
        let inflation = (1.0 + r) / (1.0 - r);
        Some(Self {
            standard_error: naive.standard_error * inflation.sqrt(),
            degrees_of_freedom: (n / inflation - 1.0).max(1.0),
            ..naive
        })
    }

    /// The mean of values at equal distances in time, whatever their correlation, as long as it fades within the run.
    /// Its variance comes only from the slow part of the series: the mean square of its first B cosine terms, with B =
    /// 0.4·n^⅔ degrees of freedom. This accounts for correlation over many values, where a single correlation of
    /// neighbours does not (E. Lazarus, D. J. Lewis, J. H. Stock, M. W. Watson, "HAR Inference: Recommendations for
    /// Practice", Journal of Business & Economic Statistics 36, 2018). `None` if there are fewer than [`LEAST_OF_TIME`]
    /// values.
    pub fn of_time(values: &[f64]) -> Option<Self> {
        if values.len() < LEAST_OF_TIME || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let terms = ((0.4 * n.powf(2.0 / 3.0)).round() as u32).max(2);
        let term = |j: u32| {
            let at = |i: usize| (PI * f64::from(j) * (i as f64 + 0.5) / n).cos();
            (2.0 / n).sqrt() * values.iter().enumerate().map(|(i, value)| at(i) * (value - mean)).sum::<f64>()
        };
        let variance = (1..=terms).map(|j| term(j).powi(2)).sum::<f64>() / f64::from(terms);
        Some(Self { mean, standard_error: (variance / n).sqrt(), degrees_of_freedom: f64::from(terms) })
    }

    /// How much larger this mean is than `other`, which was found independently (B. L. Welch, "The generalization of
    /// 'Student's' problem when several different population variances are involved", Biometrika 34, 1947).
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let (a, b) = (self.standard_error.powi(2), other.standard_error.powi(2));
        let spread = a * a / self.degrees_of_freedom + b * b / other.degrees_of_freedom;
        let degrees_of_freedom = if spread > 0.0 { (a + b).powi(2) / spread } else { self.degrees_of_freedom };
        Self { mean: self.mean - other.mean, standard_error: (a + b).sqrt(), degrees_of_freedom }
    }

    /// The interval that holds the true mean in [`CONFIDENCE`] of cases.
    pub fn interval(&self) -> (f64, f64) {
        let half = quantile(f64::midpoint(1.0, CONFIDENCE), self.degrees_of_freedom) * self.standard_error;
        (self.mean - half, self.mean + half)
    }

    /// The probability of a mean at least this far from 0 if the true one is 0.
    pub fn p_value(&self) -> f64 {
        if self.standard_error <= 0.0 {
            return if self.mean == 0.0 { 1.0 } else { 0.0 };
        }
        let t = (self.mean / self.standard_error).abs();
        let below = StudentsT::new(0.0, 1.0, self.degrees_of_freedom).map_or(0.5, |t_of| t_of.cdf(t));
        (2.0 * (1.0 - below)).clamp(0.0, 1.0)
    }

    /// How far from 0 a true mean must be to be found in 80% of cases, in a test that gives a false alarm in a share
    /// `alpha` of cases (H. S. Bloom, "Minimum detectable effects", Evaluation Review 19, 1995).
    pub fn detectable(&self, alpha: f64) -> f64 {
        let quantiles = quantile(1.0 - alpha / 2.0, self.degrees_of_freedom) + quantile(POWER, self.degrees_of_freedom);
        quantiles * self.standard_error
    }
}

/// The interval that holds a share of a population in [`CONFIDENCE`] of cases, of which `share` was seen (0 to 1, not
/// included) with an estimate whose standard error and degrees of freedom are those of `of`, among `count` cases.
///
/// The cases count as as many independent ones as would give this standard error, fewer for few degrees of freedom, and never
/// as more than there are; the interval is Clopper and Pearson's for that number (E. L. Korn, B. I. Graubard, "Confidence
/// intervals for proportions with small expected number of positive counts estimated from survey data", Survey
/// Methodology 24, 1998). With thousands of cases on both sides it is Wilson's, from which it does not differ then (E. B.
/// Wilson, "Probable inference, the law of succession, and statistical inference", Journal of the American Statistical
/// Association 22, 1927). None where nothing can be said.
pub fn share_interval(share: f64, of: &Estimate, count: u64) -> Option<(f64, f64)> {
    /// The normal distribution's 97.5%.
    const NORMAL: f64 = 1.959_963_984_540_054;
    /// With this many cases on either side, the normal distribution is as good.
    const MANY: f64 = 5000.0;
    if !(share > 0.0 && share < 1.0) || count == 0 {
        return None;
    }
    let (tail, variance) = ((1.0 - CONFIDENCE) / 2.0, share * (1.0 - share));
    let independent = if of.standard_error > 0.0 { variance / of.standard_error.powi(2) } else { f64::INFINITY };
    let few = (NORMAL / quantile(1.0 - tail, of.degrees_of_freedom)).powi(2);
    let n = (independent * few).min(count as f64);
    let (inside, outside) = (n * share, n * (1.0 - share));
    if inside.min(outside) < MANY {
        return Some((beta_quantile(inside, outside + 1.0, tail)?, beta_quantile(inside + 1.0, outside, 1.0 - tail)?));
    }
    let spread = NORMAL * NORMAL / n;
    let center = (share + spread / 2.0) / (1.0 + spread);
    let half = (spread * variance + spread * spread / 4.0).sqrt() / (1.0 + spread);
    Some((center - half, center + half))
}

/// The interval of a share of which none, or all, of `count` cases were seen: Clopper and Pearson's, of cases that are
/// independent, since nothing that was seen tells of another. None without cases.
pub fn extreme_interval(is_all: bool, count: u64) -> Option<(f64, f64)> {
    let beyond = 1.0 - f64::powf((1.0 - CONFIDENCE) / 2.0, 1.0 / count as f64);
    (count > 0).then_some(if is_all { (1.0 - beyond, 1.0) } else { (0.0, beyond) })
}

/// The value that a beta distribution stays below with probability `p`, by halving: statrs' own search does not end for all
/// parameters.
fn beta_quantile(a: f64, b: f64, p: f64) -> Option<f64> {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if checked_beta_reg(a, b, middle).ok()? < p { low = middle } else { high = middle }
    }
    Some(f64::midpoint(low, high))
}

/// The probability that a normal value is above `z`.
pub fn normal_tail(z: f64) -> f64 {
    Normal::new(0.0, 1.0).map_or(0.5, |normal| normal.sf(z))
}

/// The probability that the sum of this many squared standard normal values is less than `sum`.
pub fn probability_of_less(sum: f64, degrees_of_freedom: f64) -> f64 {
    ChiSquared::new(degrees_of_freedom).map_or(1.0, |chi_squared| chi_squared.cdf(sum))
}

/// The probability of `part` or more among `all`, each with this probability.
pub fn binomial_tail(part: u64, all: u64, probability: f64) -> f64 {
    let Some(less) = part.checked_sub(1) else { return 1.0 };
    Binomial::new(probability, all).map_or(1.0, |binomial| binomial.sf(less))
}

/// The value that Student's t stays below with probability `p`.
pub fn quantile(p: f64, degrees_of_freedom: f64) -> f64 {
    // From here on it equals the normal distribution to six digits, and the search for its inverse would not end.
    StudentsT::new(0.0, 1.0, degrees_of_freedom.min(1e6)).map_or(f64::NAN, |t| t.inverse_cdf(p))
}

/// Adjusted probabilities of several tests: if those below α are called different, at most a share α of cases has a
/// false alarm or more (S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
/// Statistics 6, 1979).
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<_> = p_values.iter().copied().enumerate().collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut last: f64 = 0.0;
    for (rank, (at, p)) in order.into_iter().enumerate() {
        last = last.max((p * (p_values.len() - rank) as f64).min(1.0));
        if let Some(place) = adjusted.get_mut(at) {
            *place = last;
        }
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 5e-4
    }

    /// From the tables of any textbook.
    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (p, df, expected) in [
            (0.975, 1.0, 12.7062),
            (0.975, 9.0, 2.2622),
            (0.975, 30.0, 2.0423),
            (0.995, 9.0, 3.2498),
            (0.8, 9.0, 0.8834),
            (0.975, 4.5, 2.6585),
            (0.975, 1e6, 1.9600),
        ] {
            assert!(near(quantile(p, df), expected), "{p} {df}: {}", quantile(p, df));
        }
    }

    /// The example of Student's own paper ("The probable error of a mean", Biometrika 6, 1908): the hours of sleep
    /// gained by two drugs in ten patients; t = 4.06 on 9 degrees of freedom, two-sided p = 0.0028.
    #[test]
    fn students_sleep() {
        let gained = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let estimate = Estimate::from_values(&gained, 0.0).unwrap();
        assert!(near(estimate.mean, 1.58) && near(estimate.mean / estimate.standard_error, 4.0621));
        assert!((estimate.p_value() - 0.002_833).abs() < 1e-6, "{}", estimate.p_value());
        let (low, high) = estimate.interval();
        assert!(near(low, 0.7001) && near(high, 2.4599), "{low} {high}");
    }

    #[test]
    fn welch_is_as_others_compute_it() {
        // Computed with another program from the definition.
        let a = Estimate::from_values(&[27.5, 21.0, 19.0, 23.6, 17.0, 17.9], 0.0).unwrap();
        let b = Estimate::from_values(&[27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8], 0.0).unwrap();
        let difference = a.minus(&b);
        assert!(near(difference.mean / difference.standard_error, -1.49982), "{difference:?}");
        assert!(near(difference.degrees_of_freedom, 7.42343), "{difference:?}");
    }

    #[test]
    fn values_that_repeat_themselves_count_as_fewer() {
        let series = [1.0, 1.1, 1.2, 1.3, 1.4, 1.4, 1.3, 1.2, 1.1, 1.0];
        let (naive, honest) =
            (Estimate::from_values(&series, 0.0).unwrap(), Estimate::of_series(&series, 0.0, 0.0).unwrap());
        assert!(honest.standard_error > 2.0 * naive.standard_error);
        assert!(honest.degrees_of_freedom < 3.0);
        let zigzag = [1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0];
        let (naive, honest) =
            (Estimate::from_values(&zigzag, 0.0).unwrap(), Estimate::of_series(&zigzag, 0.0, 0.0).unwrap());
        assert_eq!(naive, honest, "but never as more");
    }

    #[test]
    fn what_is_the_same_every_time_is_no_finer_than_it_was_measured() {
        let estimate = Estimate::from_values(&[0.001; 10], 0.01).unwrap();
        assert!(estimate.p_value() > 0.05, "{}", estimate.p_value());
        assert!(Estimate::from_values(&[1.0], 0.0).is_none() && Estimate::from_values(&[1.0, f64::NAN], 0.0).is_none());
        assert_eq!(Estimate::from_values(&[0.0; 3], 0.0).unwrap().p_value(), 1.0);
    }

    #[test]
    fn a_share_of_which_nothing_was_seen_has_an_end() {
        // The rule of three, for both tails: 3.69 / n.
        let (low, high) = extreme_interval(false, 1000).unwrap();
        assert!(low.abs() < f64::EPSILON && (high - 0.003_682).abs() < 1e-6, "{high}");
        let (low, high) = extreme_interval(true, 10).unwrap();
        assert!((low - 0.691_5).abs() < 1e-4 && (high - 1.0).abs() < f64::EPSILON, "{low}");
        assert_eq!(extreme_interval(true, 0), None);
    }

    #[test]
    fn shares_have_clopper_and_pearsons_interval() {
        // Of independent cases it is the exact one: 10 of 100 gives 4.90% to 17.62% (any table).
        let of = Estimate { mean: 0.1, standard_error: (0.1 * 0.9_f64 / 100.0).sqrt(), degrees_of_freedom: 1e6 };
        let (low, high) = share_interval(0.1, &of, 100).unwrap();
        assert!(near(low, 0.0490) && near(high, 0.1762), "{low} {high}");
        // With many cases the two meet.
        let of_many = |n: u64| {
            let of = Estimate { standard_error: (0.25 / n as f64).sqrt(), ..of };
            share_interval(0.5, &of, n).unwrap()
        };
        let (exact, normal) = (of_many(9_999), of_many(10_001));
        assert!((exact.0 - normal.0).abs() < 1e-4 && (exact.1 - normal.1).abs() < 1e-4, "{exact:?} {normal:?}");
        // And of very many, few are beyond.
        let (low, high) = share_interval(0.9999, &Estimate { standard_error: 0.0, ..of }, 1_000_000).unwrap();
        assert!((low - 0.999_878).abs() < 2e-6 && (high - 0.999_919).abs() < 2e-6, "{low} {high}");
        // Cases that come in clusters count as fewer, and those that are too even as no more.
        let clustered = Estimate { standard_error: 0.06, degrees_of_freedom: 9.0, ..of };
        let (low, high) = share_interval(0.1, &of, 100).unwrap();
        let (wide_low, wide_high) = share_interval(0.1, &clustered, 100).unwrap();
        assert!(wide_low < low && wide_high > high);
        let even = Estimate { standard_error: 0.001, ..of };
        assert!(near(share_interval(0.1, &even, 100).unwrap().0, 0.0490));
        assert_eq!(share_interval(1.0, &of, 100), None);
        assert!(near(normal_tail(1.959_964), 0.025));
    }

    #[test]
    fn a_mean_over_time_counts_its_slow_part() {
        let zigzag: Vec<_> = (0..40).map(|i| f64::from(i % 2)).collect();
        let slow: Vec<_> = (0..40).map(|i| f64::from((i / 10) % 2)).collect();
        let error = |values: &[f64]| Estimate::of_time(values).unwrap().standard_error;
        assert!(error(&zigzag) < 0.02 && error(&slow) > 0.1, "{} {}", error(&zigzag), error(&slow));
        assert_eq!(Estimate::of_time(&zigzag).unwrap().degrees_of_freedom, 5.0);
        assert!(Estimate::of_time(&zigzag[..4]).is_none());
    }

    #[test]
    fn holm_steps_down() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [0.03, 0.06, 0.06, 0.02];
        assert!(adjusted.iter().zip(expected).all(|(a, b)| near(*a, b)), "{adjusted:?}");
        assert_eq!(holm(&[0.7, 0.8]), [1.0, 1.0]);
    }
}
