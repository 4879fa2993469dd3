//! How many connections a run keeps open.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Connections of a run, over all workers of all machines.
///
/// A fixed number is written as that number, a growing one as its limit:
///
/// ```
/// use brunt_plan::connections::Connections;
///
/// assert_eq!(serde_json::from_str::<Connections>("64")?, Connections::Fixed(64));
/// assert_eq!(serde_json::from_str::<Connections>(r#"{"up_to": 5000}"#)?, Connections::UpTo(5000));
/// assert_eq!(Connections::UpTo(5000).to_string(), "up to 5000");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "Stored", into = "Stored")]
pub enum Connections {
    /// This many, from the beginning to the end.
    Fixed(u32),
    /// As many as the rate needs: a few at first, and another whenever a due call finds none free, up to this many.
    UpTo(u32),
}

/// Connections kept open, over all workers of all machines: a number, or the limit up to which they grow with the rate.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ConnectionsKept"))]
#[serde(untagged, expecting = "expected a number of connections, or {\"up_to\": NUMBER}")]
enum Stored {
    Fixed(u32),
    Growing(Growing),
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Growing {
    /// The most connections.
    up_to: u32,
}

impl Connections {
    /// The most there can be.
    pub const fn most(self) -> u32 {
        match self {
            Self::Fixed(number) | Self::UpTo(number) => number,
        }
    }

    /// Whether their number follows the load.
    pub const fn is_growing(self) -> bool {
        matches!(self, Self::UpTo(_))
    }

    /// Limits it to `most`.
    #[must_use]
    pub fn capped(self, most: u32) -> Self {
        match self {
            Self::Fixed(number) => Self::Fixed(number.min(most)),
            Self::UpTo(number) => Self::UpTo(number.min(most)),
        }
    }
}

impl From<u32> for Connections {
    fn from(number: u32) -> Self {
        Self::Fixed(number)
    }
}

impl From<Stored> for Connections {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::Fixed(number) => Self::Fixed(number),
            Stored::Growing(Growing { up_to }) => Self::UpTo(up_to),
        }
    }
}

impl From<Connections> for Stored {
    fn from(connections: Connections) -> Self {
        match connections {
            Connections::Fixed(number) => Self::Fixed(number),
            Connections::UpTo(up_to) => Self::Growing(Growing { up_to }),
        }
    }
}

impl fmt::Display for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(number) => write!(f, "{number}"),
            Self::UpTo(number) => write!(f, "up to {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_come_back_as_they_were_written() {
        for connections in [Connections::Fixed(64), Connections::UpTo(21_174)] {
            let json = serde_json::to_string(&connections).unwrap();
            assert_eq!(serde_json::from_str::<Connections>(&json).unwrap(), connections, "{json}");
        }
        assert_eq!(serde_json::to_string(&Connections::UpTo(7)).unwrap(), r#"{"up_to":7}"#);
    }

    #[test]
    fn only_a_rate_grows_them() {
        let mut plan = crate::plan::tests::plan();
        plan.connections = Connections::UpTo(100);
        let refused = plan.validate().unwrap_err().to_string();
        assert!(refused.starts_with("connections and the load cannot go together"), "{refused}");
        plan.load =
            crate::plan::Load::Open { profile: "100".parse().unwrap(), arrivals: crate::arrivals::Spread::Uniform };
        assert_eq!(plan.validate(), Ok(()));
    }

    #[test]
    fn anything_else_is_refused_with_what_is_expected() {
        for wrong in [r#"{"up_to": 7, "from": 1}"#, r#""64""#, "-1", "1.5", "{}"] {
            let error = serde_json::from_str::<Connections>(wrong).unwrap_err().to_string();
            assert!(error.contains("a number of connections, or"), "{wrong}: {error}");
        }
    }
}
