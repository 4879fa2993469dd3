//! What the page is given of the last second of a run that goes on.

use brunt_record::live::AgentSecond;
use schemars::JsonSchema;
use serde::Serialize;

use super::distribution::Bound;

/// What only the last second tells.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[schemars(rename = "Live")]
pub(super) struct LastSecond {
    pub(super) phase: &'static str,
    pub(super) elapsed_ns: u64,
    pub(super) planned_ns: Option<u64>,
    pub(super) planned_requests: Option<u64>,
    pub(super) open_connections: u64,
    pub(super) in_flight: u64,
    pub(super) users: Option<u64>,
    pub(super) answered_per_s: f64,
    pub(super) not_ok: u64,
    pub(super) p50_ns: Option<Bound>,
    pub(super) p99_ns: Option<Bound>,
    /// Calls that were due and not sent.
    pub(super) backlog: u64,
    /// How long the oldest call had been due that had not ended; none where all had.
    pub(super) oldest_ns: Option<u64>,
    /// What each agent did in the last second.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) agents: Vec<Agent>,
    /// Seconds that are in no figure.
    pub(super) missed: u64,
}

/// What an agent did in the last second.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "AgentSecond")]
pub(super) struct Agent {
    name: String,
    answered: u64,
    not_ok: u64,
    p99_ns: Option<Bound>,
    lag_p99_ns: Option<u64>,
    is_saturated: bool,
    is_silent: bool,
}

impl Agent {
    pub(super) fn new(second: &AgentSecond) -> Self {
        Self {
            name: second.name.to_string(),
            answered: second.answered,
            not_ok: second.not_ok,
            p99_ns: second.p99_ns.map(Bound),
            lag_p99_ns: second.lag_p99_ns,
            is_saturated: second.is_saturated,
            is_silent: second.is_silent,
        }
    }
}
