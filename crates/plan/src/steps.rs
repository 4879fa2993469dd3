//! The values of a sweep as people write them: `1..4096` doubles from 1 to 4096, `100..1000+100` adds 100 each time,
//! `1,2,8` is a list; `100..max` ends at the largest value there is.

use std::fmt;
use std::str::FromStr;

use crate::units;

/// The most values of a sweep.
const MOST: usize = 1000;

/// How one value follows another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Growth {
    Doubling,
    Adding(u64),
}

/// Values of a sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Steps {
    /// These, in growing order.
    Listed(Vec<u64>),
    /// From one to another; the last is always among them.
    Range(Range),
}

/// Values from one to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    from: u64,
    /// The last value; `None` for `max`.
    to: Option<u64>,
    growth: Growth,
}

/// Values that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected values such as 1..4096 (doubling), 100..1000+100, 100..max or 1,8,64, got '{got}': {problem}")]
pub struct StepsError {
    /// The text as written.
    pub got: String,
    /// What is wrong with it.
    pub problem: String,
}

impl Steps {
    /// Whether `text` stands for several values and not for one.
    pub fn is_meant_by(text: &str) -> bool {
        (text.contains("..") || text.contains(',')) && !text.contains('/')
    }

    /// Whether it has a first and a last value alone, and no step: `1..1000`, `1..max`.
    pub fn is_from_to(&self) -> bool {
        matches!(self, Self::Range(Range { growth: Growth::Doubling, .. }))
    }

    /// The values; `most` is the value of `max`.
    ///
    /// # Errors
    /// When they are too many, or end before they begin.
    pub fn values(&self, most: u64) -> Result<Vec<u64>, StepsError> {
        let problem = |problem: String| StepsError { got: self.to_string(), problem };
        let Range { from, to, growth } = match self {
            Self::Listed(values) => return Ok(values.clone()),
            Self::Range(range) => range,
        };
        let to = to.unwrap_or(most);
        if *from > to {
            return Err(problem(format!("{from} is more than {to}, where it ends")));
        }
        let mut values = Vec::new();
        let mut value = *from;
        while value < to {
            values.push(value);
            if values.len() >= MOST {
                return Err(problem(format!("that is more than {MOST} values")));
            }
            value = match growth {
                Growth::Doubling => value.saturating_mul(2),
                Growth::Adding(step) => value.saturating_add(*step),
            };
        }
        values.push(to);
        Ok(values)
    }
}

impl FromStr for Steps {
    type Err = StepsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = |problem: &str| StepsError { got: text.to_owned(), problem: problem.to_owned() };
        let count = |text: &str| match units::parse_count(text.trim()) {
            Ok(0) => Err(error("a value must be above 0")),
            Ok(count) => Ok(count),
            Err(problem) => Err(error(&problem.to_string())),
        };
        let Some((from, rest)) = text.split_once("..") else {
            let mut values = text.split(',').map(count).collect::<Result<Vec<_>, _>>()?;
            values.sort_unstable();
            values.dedup();
            if values.len() > MOST {
                return Err(error(&format!("that is more than {MOST} values")));
            }
            return Ok(Self::Listed(values));
        };
        let (to, growth) = match rest.split_once('+') {
            Some((to, step)) => (to, Growth::Adding(count(step)?)),
            None => (rest, Growth::Doubling),
        };
        let from = count(from)?;
        let to = if to.trim() == "max" { None } else { Some(count(to)?) };
        if to.is_some_and(|to| from > to) {
            return Err(error("it ends before it begins"));
        }
        Ok(Self::Range(Range { from, to, growth }))
    }
}

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listed(values) => {
                let values: Vec<_> = values.iter().map(u64::to_string).collect();
                f.write_str(&values.join(","))
            }
            Self::Range(Range { from, to, growth }) => {
                write!(f, "{from}..")?;
                match to {
                    Some(to) => write!(f, "{to}")?,
                    None => f.write_str("max")?,
                }
                if let Growth::Adding(step) = growth { write!(f, "+{step}") } else { Ok(()) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(text: &str) -> Vec<u64> {
        text.parse::<Steps>().unwrap().values(20_000).unwrap()
    }

    #[test]
    fn values_double_or_are_added_to_or_listed() {
        assert_eq!(values("1..16"), [1, 2, 4, 8, 16]);
        assert_eq!(values("100..1k"), [100, 200, 400, 800, 1000]);
        assert_eq!(values("100..500+150"), [100, 250, 400, 500]);
        assert_eq!(values("64,1,8,8"), [1, 8, 64]);
        assert_eq!(values("5..5"), [5]);
        assert_eq!(values("5000..max"), [5000, 10_000, 20_000]);
    }

    #[test]
    fn one_value_and_a_profile_are_not_meant() {
        for (text, meant) in [("64", false), ("1..4", true), ("1,2", true), ("1k..2k/60s", false), ("1/1s,2/1s", false)]
        {
            assert_eq!(Steps::is_meant_by(text), meant, "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused_with_a_way_out() {
        for (text, expected) in [
            ("0..4", "a value must be above 0"),
            ("4..1", "it ends before it begins"),
            ("1..", "expected a whole number"),
            ("1,,2", "expected a whole number"),
            ("1..8+0", "a value must be above 0"),
            ("a..b", "expected a whole number"),
        ] {
            let error = text.parse::<Steps>().unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("100..1000+100"), "{text}: {error}");
        }
        assert!("1..1M+1".parse::<Steps>().unwrap().values(0).unwrap_err().to_string().contains("more than 1000"));
        assert!("50..max".parse::<Steps>().unwrap().values(20).unwrap_err().to_string().contains("50 is more than 20"));
    }

    proptest! {
        #[test]
        fn values_grow_from_the_first_to_the_last(from in 1_u64..1000, more in 0_u64..100_000, step in 200_u64..1000) {
            for text in [format!("{from}..{}", from + more), format!("{from}..{}+{step}", from + more)] {
                let steps: Steps = text.parse().unwrap();
                prop_assert_eq!(steps.to_string(), text);
                let values = steps.values(0).unwrap();
                prop_assert!(values.windows(2).all(|pair| pair[0] < pair[1]));
                prop_assert_eq!((values[0], *values.last().unwrap()), (from, from + more));
            }
        }
    }
}
