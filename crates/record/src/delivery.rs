//! What reached a receiver outside, to which figures of a run were sent while it went on.

use serde::{Deserialize, Serialize};

/// An account of the figures that a receiver got.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Delivery {
    /// Kind of receiver and its URL, without secrets: `otlp http://127.0.0.1:4318/`.
    pub to: String,
    /// The run's name there.
    pub run_id: String,
    /// Seconds of the run that it accepted, those of the warm-up and the drain included.
    pub seconds_delivered: u64,
    /// Seconds of the run that it did not accept.
    pub seconds_missed: u64,
    /// Points that it refused within accepted seconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub points_rejected: u64,
    /// Events, such as findings and the run's end, that it did not accept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub events_missed: u64,
    /// The last error; missing if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Kinds of names with too many names to tell each apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crowded: Vec<String>,
}

/// For `skip_serializing_if`, which passes a reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}
