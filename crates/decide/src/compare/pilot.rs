//! How many rounds a difference takes, said after the first two of them.
//!
//! Two groups of n values with the standard deviation s show a true difference x in 80% of cases where n = 2 (1.96 + 0.84)² s² ÷ x²
//! (J. Cohen, "Statistical Power Analysis for the Behavioral Sciences", 2nd edition, 1988, section 2.4; normal values, two-sided at 5%).
//! Values are logarithms, so that x is that of a ratio. Two rounds have two degrees of freedom: n comes out between a twentieth and three times of
//! what it is in 90% of cases (χ² with two).

use super::figures::{self, ComparedFigures};
use super::{FailIf, Metric};

/// 1.96 + 0.84: quantiles of the normal distribution for 5% of false alarms and 80% of differences found.
const POWERED: f64 = 1.96 + 0.84;
/// What a figure is at least off by, as a logarithm: two rounds that agree by chance do not make the third useless.
const LEAST_SPREAD: f64 = 0.002;

/// The spread of a metric's logarithms within the sides of these rounds; `None` where it was not measured in all of them, or there are fewer than two.
fn spread(metric: Metric, rounds: &[(ComparedFigures, ComparedFigures)]) -> Option<f64> {
    let (a, b): (Vec<_>, Vec<_>) = rounds.iter().cloned().unzip();
    let all = vec![true; rounds.len()];
    let sides = [figures::logarithms(metric, &a, &all).ok()?, figures::logarithms(metric, &b, &all).ok()?];
    let freedom = (2 * rounds.len()).checked_sub(2).filter(|freedom| *freedom > 0)?;
    let squares = sides.iter().map(|side| {
        let mean = side.iter().sum::<f64>() / side.len() as f64;
        side.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
    });
    Some((squares.sum::<f64>() / freedom as f64).sqrt().max(LEAST_SPREAD))
}

/// About how many rounds like these decide `condition`: equal sides are shown to be within its limit in 80% of cases. `None` for conditions on
/// failures, and where its figure was not measured.
pub fn rounds_to_decide(condition: &FailIf, rounds: &[(ComparedFigures, ComparedFigures)]) -> Option<u32> {
    let (metric, limit) = condition.limit_ratio()?;
    let needed = 2.0 * (POWERED * spread(metric, rounds)? / limit.ln()).powi(2);
    needed.is_finite().then(|| (needed.ceil() as u32).max(2))
}

/// The smallest difference that `n` rounds like these show in 80% of cases, as a ratio above 1.
pub fn ratio_to_see(metric: Metric, n: u32, rounds: &[(ComparedFigures, ComparedFigures)]) -> Option<f64> {
    Some((POWERED * spread(metric, rounds)? * (2.0 / f64::from(n.max(1))).sqrt()).exp())
}
