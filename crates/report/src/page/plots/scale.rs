//! Scales: which share of an axis a value lies at, and where the axis has lines.

use brunt_plan::units::{ExactDuration, Number, percent};

/// Up to this many decades an axis has lines at 1, 2 and 5 of each power of ten, beyond that at the powers only.
const FEW_DECADES: f64 = 2.5;

/// The unit of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Nanoseconds.
    Ns,
    /// Something a second.
    PerSecond,
    /// Plain numbers.
    Count,
    /// Shares, 0 to 1.
    Share,
    /// The change in per cent, as a ratio.
    Change,
}

impl Unit {
    /// A value on an axis, as short as possible.
    pub(crate) fn tick(self, value: f64) -> String {
        match self {
            Self::Ns => ExactDuration(value.max(0.0).round() as u64).to_string(),
            Self::PerSecond => format!("{}/s", short(value)),
            Self::Count => short(value),
            Self::Share => percent(value),
            Self::Change => change(value, 0),
        }
    }
}

/// The difference of a ratio from 1: `+8.7%`, `−4%`.
pub(crate) fn change(ratio: f64, decimals: usize) -> String {
    let percent = (ratio - 1.0) * 100.0;
    let text = format!("{:.decimals$}", percent.abs());
    match text.chars().all(|c| matches!(c, '0' | '.')) {
        true => "0%".to_owned(),
        false if percent < 0.0 => format!("−{text}%"),
        false => format!("+{text}%"),
    }
}

/// `p50`, `p99.9`, of the share of calls that took longer.
pub(crate) fn percentile(tail: f64) -> String {
    let decimals = ((1.0 / tail).log10() - 1e-9).ceil() as i32 - 2;
    let decimals = decimals.clamp(0, 9) as usize;
    format!("p{:.decimals$}", 100.0 * (1.0 - tail))
}

/// `2.5k` rather than `2.50k`.
fn short(value: f64) -> String {
    let text = Number(value).to_string();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text.get(digits.len()..).unwrap_or_default();
    if digits.contains('.') { format!("{}{unit}", digits.trim_end_matches('0').trim_end_matches('.')) } else { text }
}

/// From which value to which an axis goes, and how.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) is_logarithmic: bool,
}

impl Scale {
    /// A scale with as much room for each doubling; `low` is above zero.
    pub(crate) fn logarithmic(low: f64, high: f64) -> Self {
        let low = low.max(f64::MIN_POSITIVE);
        Self { low, high: high.max(low * (1.0 + 1e-9)), is_logarithmic: true }
    }

    /// A scale with as much room for each step.
    pub(crate) fn linear(low: f64, high: f64) -> Self {
        Self { low, high: if high > low { high } else { low + 1.0 }, is_logarithmic: false }
    }

    /// The share of the axis at which a value lies; outside of 0 to 1 where it lies beyond it.
    pub(crate) fn share(self, value: f64) -> f64 {
        if self.is_logarithmic {
            (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }

    /// Whether a value lies on it.
    pub(crate) fn holds(self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Round values on it, in growing order; of a linear one about `at_most`.
    pub(crate) fn round(self, at_most: usize) -> Vec<f64> {
        if !self.is_logarithmic {
            return self.even(at_most);
        }
        let steps: &[f64] = if (self.high / self.low).log10() < FEW_DECADES { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let powers = (-6..=18).map(|power| 10_f64.powi(power));
        let values = powers.flat_map(|power| steps.iter().map(move |step| step * power));
        let values: Vec<_> = values.filter(|value| self.holds(*value)).collect();
        // Where hardly any lies on it, every step is as good.
        if values.len() < 2 { self.even(at_most.min(4)) } else { values }
    }

    fn even(self, at_most: usize) -> Vec<f64> {
        let (length, at_most) = (self.high - self.low, at_most.max(1) as f64);
        let power = 10_f64.powf((length / at_most).log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0, 20.0].map(|step| step * power);
        let Some(step) = steps.into_iter().find(|step| (length / step + 1e-9).floor() <= at_most) else {
            return Vec::new();
        };
        let (first, last) = ((self.low / step).ceil() as i64, (self.high / step).floor() as i64);
        (first..=last).map(|nth| nth as f64 * step).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stand_at_round_values() {
        assert_eq!(Scale::linear(0.0, 300.0).round(2), [0.0, 200.0]);
        assert_eq!(Scale::linear(0.0, 480.0).round(2), [0.0, 200.0, 400.0]);
        assert_eq!(Scale::linear(-0.04, 0.13).round(4), [0.0, 0.05, 0.1]);
        assert_eq!(Scale::logarithmic(3e6, 3e7).round(9), [5e6, 1e7, 2e7]);
        assert_eq!(Scale::logarithmic(2.1e6, 2.9e6).round(9), [2.2e6, 2.4e6, 2.6e6, 2.8e6]);
        assert_eq!(Scale::logarithmic(1e6, 1e9).round(9), [1e6, 1e7, 1e8, 1e9]);
        assert!(Scale::linear(0.0, 0.0).share(0.0).is_finite());
    }

    #[test]
    fn percentiles_have_as_many_digits_as_they_need() {
        let named = [1.0, 0.5, 0.1, 0.01, 0.001, 0.000_1].map(percentile);
        assert_eq!(named, ["p0", "p50", "p90", "p99", "p99.9", "p99.99"]);
    }

    #[test]
    fn values_on_an_axis_are_short() {
        assert_eq!(Unit::PerSecond.tick(2500.0), "2,500/s");
        assert_eq!(Unit::PerSecond.tick(25_000.0), "25k/s");
        assert_eq!(Unit::Ns.tick(5e6), "5ms");
        assert_eq!((Unit::Change.tick(1.08), Unit::Change.tick(0.96)), ("+8%".to_owned(), "−4%".to_owned()));
        assert_eq!(change(1.0, 0), "0%");
    }
}
