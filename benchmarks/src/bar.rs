//! Bars: requirements of the benchmarks.

use crate::table::Table;

/// Whether a bar was reached.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It was reached.
    Met,
    /// It was not.
    Missed,
    /// It cannot be judged, for this reason.
    Unjudged(String),
}

/// A requirement, with the measured value.
#[derive(Debug, Clone)]
pub struct Bar {
    /// The measured figure.
    pub figure: String,
    /// The required value, for people.
    pub wanted: String,
    /// The measured value, for people.
    pub got: String,
    /// Whether the bar was reached.
    pub outcome: Outcome,
}

impl Bar {
    /// A bar that is reached or not.
    pub fn new(figure: impl Into<String>, wanted: impl Into<String>, got: impl Into<String>, met: bool) -> Self {
        let outcome = if met { Outcome::Met } else { Outcome::Missed };
        Self { figure: figure.into(), wanted: wanted.into(), got: got.into(), outcome }
    }

    /// A bar of something that was not measured, for this reason.
    pub fn not_measured(figure: impl Into<String>, wanted: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            figure: figure.into(),
            wanted: wanted.into(),
            got: "–".to_owned(),
            outcome: Outcome::Unjudged(why.into()),
        }
    }

    /// The same bar, not judged for this reason.
    pub fn unjudged(self, why: &str) -> Self {
        Self { outcome: Outcome::Unjudged(why.to_owned()), ..self }
    }

    /// The same bar; with an excuse, a miss is not judged.
    pub fn excused(self, excuse: Option<String>) -> Self {
        match (&self.outcome, excuse) {
            (Outcome::Missed, Some(excuse)) => Self { outcome: Outcome::Unjudged(excuse), ..self },
            _ => self,
        }
    }
}

/// The bars as a Markdown table.
pub fn table(bars: &[Bar]) -> String {
    let mut table = Table::new(&["bar", "wanted", "got", "outcome"]);
    for bar in bars {
        let outcome = match &bar.outcome {
            Outcome::Met => "PASS".to_owned(),
            Outcome::Missed => "**FAIL**".to_owned(),
            Outcome::Unjudged(why) => format!("not judged: {why}"),
        };
        table.row([bar.figure.clone(), bar.wanted.clone(), bar.got.clone(), outcome]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excuse_counts_only_for_a_miss() {
        let excuse = || Some("the machine was busy".to_owned());
        assert_eq!(Bar::new("x", "", "", true).excused(excuse()).outcome, Outcome::Met);
        assert_eq!(Bar::new("x", "", "", false).excused(None).outcome, Outcome::Missed);
        assert!(matches!(Bar::new("x", "", "", false).excused(excuse()).outcome, Outcome::Unjudged(_)));
    }
}
