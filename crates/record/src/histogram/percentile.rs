//! The percentiles that are reported.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A percentile that is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Percentile {
    /// The median.
    P50,
    /// The 75th.
    P75,
    /// The 90th.
    P90,
    /// The 95th.
    P95,
    /// The 99th.
    P99,
    /// The 99.9th.
    #[serde(rename = "p99.9")]
    P99_9,
    /// The 99.99th.
    #[serde(rename = "p99.99")]
    P99_99,
}

impl Percentile {
    /// All of them, in growing order.
    pub const ALL: [Self; 7] = [Self::P50, Self::P75, Self::P90, Self::P95, Self::P99, Self::P99_9, Self::P99_99];

    const fn name_and_share(self) -> (&'static str, f64) {
        match self {
            Self::P50 => ("p50", 0.5),
            Self::P75 => ("p75", 0.75),
            Self::P90 => ("p90", 0.9),
            Self::P95 => ("p95", 0.95),
            Self::P99 => ("p99", 0.99),
            Self::P99_9 => ("p99.9", 0.999),
            Self::P99_99 => ("p99.99", 0.9999),
        }
    }

    /// As thresholds call it, such as `p99.9`.
    pub const fn name(self) -> &'static str {
        self.name_and_share().0
    }

    /// The share of all values that do not exceed it, 0 to 1.
    pub const fn share(self) -> f64 {
        self.name_and_share().1
    }
}

impl fmt::Display for Percentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_share_and_that_of_files() {
        for percentile in Percentile::ALL {
            let of_share = format!("p{}", (percentile.share() * 1e6).round() / 1e4);
            assert_eq!(percentile.name(), of_share);
            assert_eq!(serde_json::to_value(percentile).unwrap(), of_share);
        }
    }
}
