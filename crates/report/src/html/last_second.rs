//! The last second of a run that goes on, as the page gets it.

use brunt_record::histogram::AtLeast;
use brunt_record::live::AgentSecond;

/// Facts that only the last second has.
#[derive(Debug, Clone, Default)]
pub(super) struct LastSecond {
    pub(super) phase: &'static str,
    pub(super) elapsed_ns: u64,
    /// When the phase ends, and whether that is an estimate.
    pub(super) end: Option<(u64, bool)>,
    /// How far a replay is in its log, in words.
    pub(super) in_log: Option<String>,
    pub(super) planned_requests: Option<u64>,
    pub(super) open_connections: u64,
    pub(super) in_flight: u64,
    pub(super) users: Option<u64>,
    pub(super) answered_per_s: f64,
    pub(super) not_ok: u64,
    pub(super) p50: Option<AtLeast<u64>>,
    pub(super) p99: Option<AtLeast<u64>>,
    /// Calls that were due and not sent.
    pub(super) backlog: u64,
    /// How long the oldest unended call had been due; `None` if all had ended.
    pub(super) oldest_ns: Option<u64>,
    /// Each agent's part in the last second.
    pub(super) agents: Vec<Agent>,
    /// Seconds that are in no figure.
    pub(super) missed: u64,
}

/// An agent's part in the last second.
#[derive(Debug, Clone)]
pub(super) struct Agent {
    pub(super) name: String,
    pub(super) answered: u64,
    pub(super) not_ok: u64,
    pub(super) p99: Option<AtLeast<u64>>,
    pub(super) lag_p99_ns: Option<u64>,
    pub(super) is_saturated: bool,
    pub(super) is_silent: bool,
}

impl Agent {
    pub(super) fn new(second: &AgentSecond) -> Self {
        Self {
            name: second.name.to_string(),
            answered: second.answered,
            not_ok: second.not_ok,
            p99: second.p99_ns,
            lag_p99_ns: second.lag_p99_ns,
            is_saturated: second.is_saturated,
            is_silent: second.is_silent,
        }
    }
}
