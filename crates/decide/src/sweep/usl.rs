//! The Universal Scalability Law: calls answered a second, X, with N connections (N. J. Gunther, "Guerrilla Capacity
//! Planning", Springer 2007, chapters 4 to 6):
//!
//! X(N) = λN / (1 + σ(N − 1) + κN(N − 1))
//!
//! λ is what one connection gets, σ the share of the work that only one can do at a time (contention), κ what each pair
//! costs (coherency). With κ > 0 there is a peak, at N* = √((1 − σ)/κ); with κ = 0 none, and X tends to λ/σ.
//!
//! Written as N/X = a + b(N − 1) + cN(N − 1), with a = 1/λ, b = σ/λ and c = κ/λ, it is linear in a, b and c. Noise in X is in
//! proportion to X, so the squares of relative errors are made least: weights of 1/(N/X)² (weighted linear regression;
//! N. R. Draper, H. Smith, "Applied Regression Analysis", 3rd edition, chapter 9). So estimates and their covariance are had
//! at once, without a search that could fail. What is a function of a, b and c (σ, κ, the peak, the knee) gets its
//! variance by the delta method (G. Casella, R. L. Berger, "Statistical Inference", 2nd edition, section 5.5.4),
//! positive ones on the scale of logarithms; all intervals are 95%, by Student's t.
//!
//! The knee is where the straight line λN would reach the highest throughput: from there on, more connections
//! mostly wait. Without a peak, that is 1/σ (the asymptotic bounds of E. D. Lazowska et al., "Quantitative System
//! Performance", 1984, chapter 5).

#![expect(clippy::indexing_slicing, reason = "vectors and matrices of three, and every index is below three")]

use serde::{Deserialize, Serialize};

use brunt_judge::statistics::{CONFIDENCE, quantile};

/// The fewest points that a law of three parameters is fitted to.
const LEAST_POINTS: usize = 5;
/// A standard deviation of relative errors above which the fit is poor.
const POOR: f64 = 0.10;

/// A figure and the interval that holds it in 95% of cases.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Estimate"))]
pub struct FitInterval {
    /// The estimate.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// The highest throughput.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Peak {
    /// With how many connections.
    pub connections: FitInterval,
    /// How much, in calls answered a second.
    pub per_s: FitInterval,
    /// Whether it lies beyond the values tried.
    pub is_beyond: bool,
}

/// A fitted law.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fit {
    /// λ: calls a second with one connection.
    pub lambda_per_s: FitInterval,
    /// σ: contention.
    pub sigma: FitInterval,
    /// κ: coherency. Where its interval includes 0, no peak was seen.
    pub kappa: FitInterval,
    /// The peak, if one was seen.
    pub peak: Option<Peak>,
    /// The knee, in connections, if throughput bends at all.
    pub knee: Option<FitInterval>,
    /// The standard deviation of the relative errors of the fit.
    pub residual_ratio: f64,
    /// Whether the fit is too poor for its figures to mean much.
    pub is_poor: bool,
    /// How many points it rests on.
    pub points: usize,
}

/// The reason for which no law was fitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum NoFit {
    /// Too few points are the target's doing.
    #[error("only {points} usable points; the fit needs 5: sweep over more values")]
    TooFew {
        /// Their number.
        points: usize,
    },
    /// The points do not follow the law.
    #[error("throughput does not follow the law: it does not begin with a share for each connection")]
    NotSuch,
}

/// A symmetric 3 × 3 matrix, and vectors of as many.
type Matrix = [[f64; 3]; 3];
type Vector = [f64; 3];

/// Fits the law to connections and calls answered a second.
///
/// # Errors
/// When there are too few points, or they follow no such law.
pub fn fit(points: &[(f64, f64)]) -> Result<Fit, NoFit> {
    let mut tried: Vec<_> = points.iter().map(|(n, _)| *n).collect();
    tried.sort_by(f64::total_cmp);
    tried.dedup();
    if tried.len() < LEAST_POINTS {
        return Err(NoFit::TooFew { points: tried.len() });
    }
    let regression = Regression::fit(points, 3).ok_or(NoFit::NotSuch)?;
    let [a, b, c] = regression.estimate;
    if a <= 0.0 {
        return Err(NoFit::NotSuch);
    }
    let largest = tried.last().copied().unwrap_or(1.0);
    let kappa = regression.interval([-c / (a * a), 0.0, 1.0 / a], c / a);
    let has_peak = kappa.low > 0.0 && a > b;
    let (peak, knee) = if has_peak {
        (Some(regression.peak(largest)), regression.positive(knee_at_peak))
    } else {
        // Points without a downward bend are fitted without the term that makes one: σ alone says where they bend.
        let without = Regression::fit(points, 2).ok_or(NoFit::NotSuch)?;
        let [a, b, _] = without.estimate;
        let sigma = without.interval([-b / (a * a), 1.0 / a, 0.0], b / a);
        (None, if sigma.low > 0.0 { without.positive(|[a, b, _]| a / b) } else { None })
    };
    Ok(Fit {
        lambda_per_s: regression.positive(|[a, ..]| 1.0 / a).ok_or(NoFit::NotSuch)?,
        sigma: regression.interval([-b / (a * a), 1.0 / a, 0.0], b / a),
        kappa,
        peak,
        knee,
        residual_ratio: regression.residual,
        is_poor: regression.residual > POOR,
        points: points.len(),
    })
}

/// N* = √((1 − σ)/κ) = √((a − b)/c).
fn peak_at([a, b, c]: Vector) -> f64 {
    ((a - b) / c).sqrt()
}

fn throughput([a, b, c]: Vector, n: f64) -> f64 {
    n / (a + b * (n - 1.0) + c * n * (n - 1.0))
}

/// X(N*)/λ.
fn knee_at_peak(parameters: Vector) -> f64 {
    throughput(parameters, peak_at(parameters)) * parameters[0]
}

/// N/X over 1, N − 1 and N(N − 1), by weighted least squares.
struct Regression {
    estimate: Vector,
    covariance: Matrix,
    /// Of relative errors.
    residual: f64,
    degrees_of_freedom: f64,
}

impl Regression {
    /// The regression with the first `terms` terms, 2 or 3; `None` where the points do not determine it.
    fn fit(points: &[(f64, f64)], terms: usize) -> Option<Self> {
        // Each row is divided by N/X, so that its left side is 1 and its error is relative. Columns are of like size,
        // so that the sums lose no digits.
        let largest = points.iter().map(|(n, _)| *n).fold(1.0, f64::max);
        let scale = [1.0, 1.0 / largest, 1.0 / (largest * largest)];
        let row = |&(n, x): &(f64, f64)| {
            let terms_of = [1.0, n - 1.0, n * (n - 1.0)];
            std::array::from_fn::<_, 3, _>(|i| if i < terms { terms_of[i] * scale[i] * x / n } else { 0.0 })
        };
        let mut normal: Matrix = [[0.0; 3]; 3];
        let mut right: Vector = [0.0; 3];
        for row in points.iter().map(row) {
            for (i, normal_row) in normal.iter_mut().enumerate() {
                for (j, sum) in normal_row.iter_mut().enumerate() {
                    *sum += row[i] * row[j];
                }
                right[i] += row[i];
            }
        }
        if terms < 3 {
            normal[2][2] = 1.0;
        }
        let inverse = inverse(&normal)?;
        let scaled: Vector = std::array::from_fn(|i| (0..3).map(|j| inverse[i][j] * right[j]).sum());
        let residuals = points.iter().map(row).map(|row| 1.0 - (0..3).map(|i| row[i] * scaled[i]).sum::<f64>());
        let squares: f64 = residuals.map(|residual| residual * residual).sum();
        let degrees_of_freedom = points.len().checked_sub(terms).filter(|df| *df > 0)? as f64;
        let variance = squares / degrees_of_freedom;
        let used = |i: usize| if i < terms { scale[i] } else { 0.0 };
        Some(Self {
            estimate: std::array::from_fn(|i| scaled[i] * used(i)),
            covariance: std::array::from_fn(|i| std::array::from_fn(|j| inverse[i][j] * variance * used(i) * used(j))),
            residual: variance.sqrt(),
            degrees_of_freedom,
        })
    }

    fn t(&self) -> f64 {
        quantile(f64::midpoint(1.0, CONFIDENCE), self.degrees_of_freedom)
    }

    fn variance(&self, gradient: Vector) -> f64 {
        let product = |i: usize| (0..3).map(|j| gradient[i] * self.covariance[i][j] * gradient[j]).sum::<f64>();
        (0..3).map(product).sum::<f64>().max(0.0)
    }

    /// A function of the parameters with this value and gradient.
    fn interval(&self, gradient: Vector, value: f64) -> FitInterval {
        let half = self.t() * self.variance(gradient).sqrt();
        FitInterval { value, low: value - half, high: value + half }
    }

    /// A positive function of the parameters, on the scale of logarithms. Its gradient is taken by differences.
    fn positive(&self, function: impl Fn(Vector) -> f64) -> Option<FitInterval> {
        let value = function(self.estimate);
        if !(value > 0.0 && value.is_finite()) {
            return None;
        }
        let gradient: Vector = std::array::from_fn(|i| {
            let step = self.covariance[i][i].sqrt() * 1e-4 + self.estimate[i].abs() * 1e-9;
            if step <= 0.0 {
                return 0.0;
            }
            let at = |step: f64| {
                let mut moved = self.estimate;
                moved[i] += step;
                function(moved).max(f64::MIN_POSITIVE).ln()
            };
            (at(step) - at(-step)) / (2.0 * step)
        });
        let half = self.t() * self.variance(gradient).sqrt();
        half.is_finite().then(|| FitInterval { value, low: value * (-half).exp(), high: value * half.exp() })
    }

    fn peak(&self, largest: f64) -> Peak {
        let unknown = |value| FitInterval { value, low: 0.0, high: f64::INFINITY };
        let at = peak_at(self.estimate);
        let per_s = |parameters| throughput(parameters, peak_at(parameters));
        Peak {
            connections: self.positive(peak_at).unwrap_or_else(|| unknown(at)),
            per_s: self.positive(per_s).unwrap_or_else(|| unknown(per_s(self.estimate))),
            is_beyond: at > largest,
        }
    }
}

/// The inverse by cofactors; `None` if the matrix is singular, or nearly so.
fn inverse(matrix: &Matrix) -> Option<Matrix> {
    let at = |row: usize, column: usize| matrix[row % 3][column % 3];
    let cofactor = |row: usize, column: usize| {
        at(row + 1, column + 1) * at(row + 2, column + 2) - at(row + 1, column + 2) * at(row + 2, column + 1)
    };
    let determinant: f64 = (0..3).map(|column| at(0, column) * cofactor(0, column)).sum();
    let size = at(0, 0) * at(1, 1) * at(2, 2);
    let is_regular = determinant.abs() > 1e-13 * size.abs() && determinant.is_finite();
    is_regular.then(|| std::array::from_fn(|i| std::array::from_fn(|j| cofactor(j, i) / determinant)))
}

#[cfg(test)]
mod tests {
    use brunt_plan::random::Random;
    use proptest::prelude::*;

    use super::*;

    const CONNECTIONS: [f64; 13] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0];

    fn law(lambda: f64, sigma: f64, kappa: f64, n: f64) -> f64 {
        lambda * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0))
    }

    fn noisy(lambda: f64, sigma: f64, kappa: f64, noise: f64, seed: u64) -> Vec<(f64, f64)> {
        let mut random = Random::new(seed, 0);
        let mut normal = || (-2.0 * random.unit().ln()).sqrt() * (std::f64::consts::TAU * random.unit()).cos();
        CONNECTIONS.map(|n| (n, law(lambda, sigma, kappa, n) * (1.0 + noise * normal()))).to_vec()
    }

    #[test]
    fn a_law_without_noise_is_found_exactly() {
        let fit = fit(&noisy(1000.0, 0.02, 1e-5, 0.0, 0)).unwrap();
        let near = |got: f64, expected: f64| (got / expected - 1.0).abs() < 1e-6;
        assert!(near(fit.lambda_per_s.value, 1000.0) && near(fit.sigma.value, 0.02) && near(fit.kappa.value, 1e-5));
        let peak = fit.peak.unwrap();
        assert!(near(peak.connections.value, (0.98_f64 / 1e-5).sqrt()), "{peak:?}");
        assert!(near(peak.per_s.value, law(1000.0, 0.02, 1e-5, peak.connections.value)) && !peak.is_beyond);
        assert!(near(fit.knee.unwrap().value, peak.per_s.value / 1000.0));
        assert!(!fit.is_poor);
    }

    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        let (mut peaks, mut held, mut sigma_held, mut knee_held) = (0, 0, 0, 0);
        for seed in 0..500 {
            let fit = fit(&noisy(1000.0, 0.02, 1e-5, 0.03, seed)).unwrap();
            let holds = |interval: FitInterval, truth: f64| interval.low <= truth && truth <= interval.high;
            sigma_held += i32::from(holds(fit.sigma, 0.02));
            let Some(peak) = fit.peak else { continue };
            peaks += 1;
            let at = (0.98_f64 / 1e-5).sqrt();
            held += i32::from(holds(peak.connections, at));
            knee_held += i32::from(holds(fit.knee.unwrap(), law(1.0, 0.02, 1e-5, at)));
        }
        assert_eq!(peaks, 500);
        for held in [held, sigma_held, knee_held] {
            assert!((460..=495).contains(&held), "{held} of 500");
        }
    }

    #[test]
    fn no_peak_is_named_where_there_is_none() {
        let mut named = 0;
        for seed in 0..500 {
            let fit = fit(&noisy(1000.0, 0.05, 0.0, 0.03, seed)).unwrap();
            assert!(fit.peak.is_some() || fit.kappa.low <= 0.0);
            named += i32::from(fit.peak.is_some());
            if let (None, Some(knee)) = (&fit.peak, fit.knee) {
                assert!((16.0..25.0).contains(&knee.value), "{knee:?}");
            }
        }
        assert!(named <= 25, "{named} of 500");
    }

    #[test]
    fn throughput_without_a_bend_has_no_knee() {
        let named = (0..200).filter(|seed| fit(&noisy(50.0, 0.0, 0.0, 0.02, *seed)).unwrap().knee.is_some()).count();
        assert!(named <= 12, "{named} of 200");
    }

    #[test]
    fn a_poor_fit_is_called_so() {
        let saw: Vec<_> =
            CONNECTIONS.iter().enumerate().map(|(i, n)| (*n, if i % 2 == 0 { 100.0 } else { 300.0 })).collect();
        assert!(fit(&saw).is_ok_and(|fit| fit.is_poor));
    }

    #[test]
    fn what_cannot_be_fitted_is_not() {
        assert_eq!(fit(&[(1.0, 10.0), (2.0, 20.0), (2.0, 21.0)]).unwrap_err(), NoFit::TooFew { points: 2 });
        assert!(fit(&[]).is_err());
    }

    proptest! {
        #[test]
        fn nothing_that_is_measured_makes_it_fail(
            points in proptest::collection::vec((1.0_f64..1e6, 1e-3_f64..1e7), 0..30),
        ) {
            if let Ok(fit) = fit(&points) {
                prop_assert!(fit.lambda_per_s.value > 0.0 && fit.residual_ratio.is_finite());
                if let Some(peak) = fit.peak {
                    prop_assert!(peak.connections.value > 0.0 && peak.connections.low <= peak.connections.value);
                }
            }
        }
    }
}
