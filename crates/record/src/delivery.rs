//! What reached a place elsewhere to which figures of a run went while it went on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a receiver got of a run's figures.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delivery {
    /// Kind of receiver and its URL, without secrets: `otlp http://127.0.0.1:4318/`.
    pub to: String,
    /// What the run is called there.
    pub run_id: String,
    /// Seconds of the run that it took in, those of the warm-up and the drain among them.
    pub seconds_delivered: u64,
    /// Seconds of the run that it did not.
    pub seconds_missed: u64,
    /// Points of delivered seconds that it refused all the same.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub points_rejected: u64,
    /// Events, such as findings and the run's end, that it did not take in.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub events_missed: u64,
    /// What went wrong last; missing if nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Kinds of names of which there were too many to tell each apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crowded: Vec<String>,
}

/// For `skip_serializing_if`, which passes a reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}
