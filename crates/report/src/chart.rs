//! Small charts of block characters.

/// Bars of one to eight eighths of a row.
pub const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const PARTS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// A column for each value, its height in proportion to `full`. It is empty where there is no value or the value is 0;
/// any other value is visible.
pub fn columns(values: impl IntoIterator<Item = Option<f64>>, full: f64) -> String {
    let height = |value: f64| ((value / full * 8.0).round() as usize).clamp(1, 8);
    let block = |value: Option<f64>| {
        let seen = value.filter(|value| *value > 0.0 && full > 0.0);
        seen.and_then(|value| BLOCKS.get(height(value) - 1)).copied().unwrap_or(' ')
    };
    values.into_iter().map(block).collect()
}

/// The value that this share of `values` (0 to 1) does not exceed; `None` without values. A peak far above it is cut
/// off, so that the rest is visible.
pub fn usual(values: impl Iterator<Item = f64>, share: f64) -> Option<f64> {
    let mut sorted: Vec<_> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get((sorted.len().saturating_sub(1) as f64 * share) as usize).copied()
}

/// Times from one power of ten to another, whose columns are as high as their logarithms.
pub struct Scale {
    low: u32,
    high: u32,
}

impl Scale {
    /// Powers of ten around `times`, in nanoseconds; `None` without times.
    pub fn logarithmic(times: impl Iterator<Item = u64> + Clone) -> Option<Self> {
        let (low, high) = (times.clone().min()?.max(1).ilog10(), times.max()?.max(1));
        let above = high.ilog10() + u32::from(high > 10_u64.pow(high.ilog10()));
        Some(Self { low, high: above.max(low + 1).min(u64::MAX.ilog10()) })
    }

    /// The time below all of them, in nanoseconds.
    pub const fn low(&self) -> u64 {
        10_u64.pow(self.low)
    }

    /// The time above all of them, in nanoseconds.
    pub const fn high(&self) -> u64 {
        10_u64.pow(self.high)
    }

    /// Widens the scale to at least this many powers of ten.
    pub fn of_at_least(self, decades: u32) -> Self {
        let high = self.high.max(self.low + decades).min(u64::MAX.ilog10());
        Self { high, ..self }
    }

    /// The height of a bar for a time (in nanoseconds), in eighths of a row, in a chart of `rows` rows; at least 1.
    pub fn eighths(&self, ns: u64, rows: usize) -> usize {
        let share = ((ns.max(1) as f64).log10() - f64::from(self.low)) / f64::from(self.high - self.low);
        ((share * 8.0 * rows as f64).round() as usize).clamp(1, 8 * rows.max(1))
    }

    /// The rows of a chart, counted from the lowest, each with the power of ten at which its bars begin, in
    /// nanoseconds. The highest is left out where there is no row above it.
    pub fn decades(&self, rows: usize) -> Vec<(usize, u64)> {
        let span = (self.high - self.low) as usize;
        let row = |decade: u32| (decade - self.low) as usize * rows / span.max(1);
        let mut labels: Vec<(usize, u64)> = Vec::new();
        for decade in self.low..=self.high {
            let at = row(decade);
            if at < rows && labels.last().is_none_or(|(last, _)| *last < at) {
                labels.push((at, 10_u64.pow(decade)));
            }
        }
        labels
    }

    /// The column of a time, in nanoseconds.
    pub fn block(&self, ns: u64) -> char {
        let share = ((ns.max(1) as f64).log10() - f64::from(self.low)) / f64::from(self.high - self.low);
        let height = ((share * 8.0).ceil() as usize).clamp(1, 8);
        BLOCKS.get(height - 1).copied().unwrap_or(' ')
    }
}

/// A bar `width` characters long, filled by `share` (0 to 1).
pub fn bar(share: f64, width: usize) -> String {
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).floor() as usize;
    let mut bar = "█".repeat(eighths / 8);
    if let Some(part) = (eighths % 8).checked_sub(1).and_then(|part| PARTS.get(part)) {
        bar.push(*part);
    }
    bar.push_str(&"░".repeat(width.saturating_sub(eighths.div_ceil(8))));
    bar
}

/// The filled part of such a bar; any share above 0 is visible.
pub fn filled(share: f64, width: usize) -> String {
    let bar = bar(share, width);
    let bar = bar.trim_end_matches('░');
    if bar.is_empty() && share > 0.0 { "▏".to_owned() } else { bar.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_on_zero() {
        assert_eq!(columns([Some(8.0), Some(4.0), None, Some(0.01), Some(0.0)], 8.0), "█▄ ▁ ");
        assert_eq!(columns([Some(0.0)], 0.0), " ");
    }

    #[test]
    fn logarithmic_columns_lie_between_powers_of_ten() {
        let times = [2_000_000_u64, 40_000_000, 900_000_000];
        let scale = Scale::logarithmic(times.into_iter()).unwrap();
        assert_eq!((scale.low(), scale.high()), (1_000_000, 1_000_000_000));
        assert_eq!(times.map(|ns| scale.block(ns)), ['▁', '▅', '█']);
        let of_one = Scale::logarithmic([1_000_u64].into_iter()).unwrap();
        assert_eq!((of_one.low(), of_one.high()), (1_000, 10_000));
        let widest = Scale::logarithmic([0, u64::MAX].into_iter()).unwrap();
        assert_eq!((widest.low(), widest.block(u64::MAX)), (1, '█'));
        assert!(Scale::logarithmic(std::iter::empty()).is_none());
    }

    #[test]
    fn a_bar_is_as_wide_as_asked() {
        for share in [0.0, 0.1, 0.5, 0.77, 1.0, 2.0] {
            assert_eq!(bar(share, 10).chars().count(), 10, "{share}");
        }
        assert_eq!(bar(0.5, 4), "██░░");
        assert_eq!(bar(0.55, 4), "██▏░");
        assert_eq!([filled(0.55, 4), filled(1e-6, 4), filled(0.0, 4)], ["██▏", "▏", ""]);
    }
}
