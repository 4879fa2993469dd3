//! Plots of figures over the values that they depend on, a line for each value: any number of values fits, and a
//! terminal's usual 80 columns suffice.

use brunt_plan::units::Duration;

/// A scale on which equal ratios are equally far apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Logarithmic {
    low: f64,
    high: f64,
    width: usize,
}

impl Logarithmic {
    /// A scale `width` columns wide that holds all of `values`; `None` if no value is above 0.
    pub fn fit(values: impl IntoIterator<Item = f64>, width: usize) -> Option<Self> {
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for value in values.into_iter().filter(|value| *value > 0.0 && value.is_finite()) {
            low = low.min(value);
            high = high.max(value);
        }
        (high > 0.0 && width > 0).then_some(Self { low, high, width })
    }

    fn column(self, value: f64) -> usize {
        let span = (self.high / self.low).ln();
        let share = if span > 0.0 { (value.max(self.low) / self.low).ln() / span } else { 0.0 };
        ((share * (self.width - 1) as f64).round() as usize).min(self.width - 1)
    }

    /// A line with a mark for each value, joined from the first to the last of them. Of two in one place, the later is
    /// visible.
    pub fn line(self, marks: &[(f64, char)]) -> String {
        let mut line = vec![' '; self.width];
        let columns: Vec<_> = marks.iter().map(|(value, _)| self.column(*value)).collect();
        if let (Some(first), Some(last)) = (columns.iter().min(), columns.iter().max()) {
            line.iter_mut().take(last + 1).skip(*first).for_each(|place| *place = '─');
        }
        for (column, (_, mark)) in columns.into_iter().zip(marks) {
            if let Some(place) = line.get_mut(column) {
                *place = *mark;
            }
        }
        let line: String = line.into_iter().collect();
        line.trim_end().to_owned()
    }

    /// The labels at its ends, for durations in nanoseconds.
    pub fn legend(self) -> String {
        let (low, high) = (Duration(self.low as u64).to_string(), Duration(self.high as u64).to_string());
        let room = self.width.saturating_sub(low.chars().count());
        format!("{low}{high:>room$}")
    }
}

/// A scale of ratios with 1 in its middle, on which a ratio and its inverse are equally far from it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Around {
    /// The ratio at the right end; its inverse is at the left one.
    most: f64,
    width: usize,
}

impl Around {
    /// The least range of a scale to either side.
    const LEAST: f64 = 1.01;

    /// A scale `width` columns wide, which should be odd, that holds all of `ratios`.
    pub fn fit(ratios: impl IntoIterator<Item = f64>, width: usize) -> Self {
        let away = |ratio: f64| if ratio < 1.0 { 1.0 / ratio } else { ratio };
        let ratios = ratios.into_iter().filter(|ratio| *ratio > 0.0 && ratio.is_finite());
        Self { most: ratios.map(away).fold(Self::LEAST, f64::max).min(1e6), width: width.max(3) }
    }

    fn column(self, ratio: f64) -> usize {
        let middle = (self.width / 2) as f64;
        let share = (ratio.max(1e-9).ln() / self.most.ln()).clamp(-1.0, 1.0);
        (middle + share * middle).round() as usize
    }

    /// An interval with its estimate, and a mark at 1.
    pub fn line(self, low: f64, estimate: f64, high: f64) -> String {
        let mut line = vec![' '; self.width];
        let mut put = |column: usize, mark: char| {
            if let Some(place) = line.get_mut(column) {
                *place = mark;
            }
        };
        (self.column(low)..=self.column(high)).for_each(|column| put(column, '─'));
        put(self.column(1.0), '│');
        put(self.column(estimate), '●');
        let line: String = line.into_iter().collect();
        line.trim_end().to_owned()
    }

    /// The labels at its ends and in its middle.
    pub fn legend(self) -> String {
        let (left, right) = (format!("{:.2}", 1.0 / self.most), format!("{:.2}", self.most));
        let half = self.width / 2;
        let right_room = self.width - half - 1;
        format!("{left}{:>room$}{right:>right_room$}", "1", room = (half + 1).saturating_sub(left.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_and_its_inverse_are_equally_far_from_one() {
        let scale = Around::fit([0.5, 1.1], 11);
        assert_eq!(scale.line(0.5, 1.0, 2.0), "─────●─────");
        assert_eq!(scale.line(1.2, 1.3, 1.5), "     │─●─");
        assert_eq!(scale.line(1.0, 1.0, 1.0), "     ●");
        assert_eq!(scale.legend(), "0.50 1 2.00");
        assert_eq!(Around::fit([f64::INFINITY, f64::NAN, 0.0], 11).legend(), "0.99 1 1.01");
    }

    #[test]
    fn equal_ratios_are_equally_far_apart() {
        let scale = Logarithmic::fit([1e6, 1e8], 11).unwrap();
        assert_eq!(scale.line(&[(1e6, 'o'), (1e7, '•'), (1e8, '●')]), "o────•────●");
        assert_eq!(scale.line(&[(1e7, 'o')]), "     o");
        assert_eq!(scale.legend(), "1.00ms100.0ms");
        assert!(Logarithmic::fit([0.0], 10).is_none());
        assert_eq!(Logarithmic::fit([5.0], 3).unwrap().line(&[(5.0, 'o')]), "o");
    }
}
