//! A log of requests whose times a run keeps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a log is replayed, as far as a result tells it. The log itself does not travel with a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The log's file.
    pub log: String,
    /// Its format, by its name.
    pub format: String,
    /// By what the log's time is divided.
    pub speed: f64,
    /// By what its requests are multiplied, session by session.
    pub scale: f64,
    /// By less than this the copies of a session are shifted, in nanoseconds.
    pub shift_ns: u64,
    /// What makes a session: `client`, `cookie:NAME`, `field:NAME` or `none`.
    pub session: String,
    /// Whether the time between requests of a session is kept where an answer comes late, and not the due times.
    pub think: bool,
    /// Whether methods that write are sent.
    pub writes: bool,
    /// Whether the log begins anew at its end.
    pub repeats: bool,
    /// The part of the log, as it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// What requests must be, as it was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<String>,
}

impl Replay {
    /// In a few words: `replay of access.log (combined) at 2x`.
    pub fn title(&self) -> String {
        let speed = if self.speed == 1.0 { String::new() } else { format!(" at {}x", self.speed) };
        let scale = if self.scale == 1.0 { String::new() } else { format!(", {}x the requests", self.scale) };
        format!("replay of {} ({}){speed}{scale}", self.log, self.format)
    }
}
