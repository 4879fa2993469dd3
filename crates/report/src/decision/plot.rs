//! Plots of figures against what they depend on, a line for each value: any number of values fits, and a terminal's
//! usual 80 columns are enough.

use brunt_model::units::Duration;

/// A scale on which equal ratios are equally far apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Logarithmic {
    low: f64,
    high: f64,
    width: usize,
}

impl Logarithmic {
    /// A scale `width` columns wide that holds all of `values`; none if there is no value above 0.
    pub fn of(values: impl IntoIterator<Item = f64>, width: usize) -> Option<Self> {
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

    /// A line with a mark where each value lies, joined from the first to the last of them. Of two in one place, the
    /// later is seen.
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

    /// What stands at its ends, for durations in nanoseconds.
    pub fn legend(self) -> String {
        let (low, high) = (Duration(self.low as u64).to_string(), Duration(self.high as u64).to_string());
        let room = self.width.saturating_sub(low.chars().count());
        format!("{low}{high:>room$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_ratios_are_equally_far_apart() {
        let scale = Logarithmic::of([1e6, 1e8], 11).unwrap();
        assert_eq!(scale.line(&[(1e6, 'o'), (1e7, '•'), (1e8, '●')]), "o────•────●");
        assert_eq!(scale.line(&[(1e7, 'o')]), "     o");
        assert_eq!(scale.legend(), "1.00ms100.0ms");
        assert!(Logarithmic::of([0.0], 10).is_none());
        assert_eq!(Logarithmic::of([5.0], 3).unwrap().line(&[(5.0, 'o')]), "o");
    }
}
