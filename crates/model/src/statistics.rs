//! What can be said of a mean from a few values: estimates, intervals and tests with Student's t.

use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// The share of cases in which an interval is to hold what it is about.
pub const CONFIDENCE: f64 = 0.95;
/// The probability with which a difference is to be found, where it is said which would have been.
const POWER: f64 = 0.8;

/// A mean, how sure it is, and on how many degrees of freedom that rests.
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
    /// The mean of independent values; none of fewer than two. Values are taken to be no finer than `resolution` (a
    /// standard deviation): their own one is not believed below that.
    pub fn of(values: &[f64], resolution: f64) -> Option<Self> {
        let n = values.len() as f64;
        if values.len() < 2 || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let stdev = variance.sqrt().max(resolution);
        Some(Self { mean, standard_error: stdev / n.sqrt(), degrees_of_freedom: n - 1.0 })
    }

    /// The mean of values that follow each other in time, so that one tells something of the next. They count as fewer:
    /// as n·(1 − r)/(1 + r), where r is the correlation of neighbours (G. V. Bayley, J. M. Hammersley, "The 'effective'
    /// number of independent observations in an autocorrelated time series", Journal of the Royal Statistical
    /// Society, Supplement 8, 1946). Seen in n values r comes out too low by (1 + 3r)/n on average, which is put back
    /// (F. H. C. Marriott, J. A. Pope, "Bias in the estimation of autocorrelations", Biometrika 41, 1954).
    pub fn of_series(values: &[f64], resolution: f64) -> Option<Self> {
        let naive = Self::of(values, resolution)?;
        let n = values.len() as f64;
        let from_mean = |value: &f64| value - naive.mean;
        let squares: f64 = values.iter().map(|value| from_mean(value).powi(2)).sum();
        let products: f64 = values.iter().zip(values.iter().skip(1)).map(|(a, b)| from_mean(a) * from_mean(b)).sum();
        let seen = if squares > 0.0 { products / squares } else { 0.0 };
        let r = (seen + (1.0 + 3.0 * seen) / n).clamp(0.0, 0.9);
        let inflation = (1.0 + r) / (1.0 - r);
        Some(Self {
            standard_error: naive.standard_error * inflation.sqrt(),
            degrees_of_freedom: (n / inflation - 1.0).max(1.0),
            ..naive
        })
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

    /// How far from 0 a true mean must be to be found in 80 % of cases, in a test that gives a false alarm in a share
    /// `alpha` of cases (H. S. Bloom, "Minimum detectable effects", Evaluation Review 19, 1995).
    pub fn detectable(&self, alpha: f64) -> f64 {
        let quantiles = quantile(1.0 - alpha / 2.0, self.degrees_of_freedom) + quantile(POWER, self.degrees_of_freedom);
        quantiles * self.standard_error
    }
}

/// The value that Student's t stays below with probability `p`.
pub fn quantile(p: f64, degrees_of_freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, degrees_of_freedom).map_or(f64::NAN, |t| t.inverse_cdf(p))
}

/// Probabilities of several tests, such that calling different what is below α gives one false alarm or more in at most
/// a share α of cases (S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
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
        let estimate = Estimate::of(&gained, 0.0).unwrap();
        assert!(near(estimate.mean, 1.58) && near(estimate.mean / estimate.standard_error, 4.0621));
        assert!((estimate.p_value() - 0.002_833).abs() < 1e-6, "{}", estimate.p_value());
        let (low, high) = estimate.interval();
        assert!(near(low, 0.7001) && near(high, 2.4599), "{low} {high}");
    }

    #[test]
    fn welch_is_as_others_compute_it() {
        // Computed with another program from the definition.
        let a = Estimate::of(&[27.5, 21.0, 19.0, 23.6, 17.0, 17.9], 0.0).unwrap();
        let b = Estimate::of(&[27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8], 0.0).unwrap();
        let difference = a.minus(&b);
        assert!(near(difference.mean / difference.standard_error, -1.49982), "{difference:?}");
        assert!(near(difference.degrees_of_freedom, 7.42343), "{difference:?}");
    }

    #[test]
    fn values_that_repeat_themselves_count_as_fewer() {
        let series = [1.0, 1.1, 1.2, 1.3, 1.4, 1.4, 1.3, 1.2, 1.1, 1.0];
        let (naive, honest) = (Estimate::of(&series, 0.0).unwrap(), Estimate::of_series(&series, 0.0).unwrap());
        assert!(honest.standard_error > 2.0 * naive.standard_error);
        assert!(honest.degrees_of_freedom < 3.0);
        let zigzag = [1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0];
        let (naive, honest) = (Estimate::of(&zigzag, 0.0).unwrap(), Estimate::of_series(&zigzag, 0.0).unwrap());
        assert_eq!(naive, honest, "but never as more");
    }

    #[test]
    fn what_is_the_same_every_time_is_no_finer_than_it_was_measured() {
        let estimate = Estimate::of(&[0.001; 10], 0.01).unwrap();
        assert!(estimate.p_value() > 0.05, "{}", estimate.p_value());
        assert!(Estimate::of(&[1.0], 0.0).is_none() && Estimate::of(&[1.0, f64::NAN], 0.0).is_none());
        assert_eq!(Estimate::of(&[0.0; 3], 0.0).unwrap().p_value(), 1.0);
    }

    #[test]
    fn holm_steps_down() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [0.03, 0.06, 0.06, 0.02];
        assert!(adjusted.iter().zip(expected).all(|(a, b)| near(*a, b)), "{adjusted:?}");
        assert_eq!(holm(&[0.7, 0.8]), [1.0, 1.0]);
    }
}
