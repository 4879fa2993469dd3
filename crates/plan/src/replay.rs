//! A log of requests whose times a run keeps.

use serde::{Deserialize, Serialize};

/// How logs are replayed. The logs themselves do not travel with a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own, and a field of the plan")]
pub struct LogReplay {
    /// The logs' files, whose requests are replayed together, by time.
    pub logs: Vec<String>,
    /// Its format, by its name.
    pub format: String,
    /// The divisor of the log's time.
    pub speed: f64,
    /// The factor of its requests, session by session.
    pub scale: f64,
    /// By less than this the copies of a session are shifted, in nanoseconds.
    pub shift_ns: u64,
    /// The key of a session: `client`, `cookie:NAME`, `field:NAME` or `none`.
    pub session: String,
    /// Whether the time between requests of a session is kept where an answer comes late, and not the due times.
    pub think: bool,
    /// Whether methods that write are sent.
    pub writes: bool,
    /// Whether the log begins anew at its end.
    pub repeats: bool,
    /// Whether an answer with the status that the log has is a success, whatever it is.
    pub logged_is_ok: bool,
    /// The part of the log, as given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// Conditions on requests, as given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<String>,
    /// Changes of paths, as given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rewrites: Vec<String>,
    /// Hosts in the log that stand for the target; `any` for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from_hosts: Vec<String>,
    /// The layout of a line, if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<String>,
    /// The places of fields, if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<String>,
    /// The offset of times without a zone, in seconds, if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone_s: Option<i32>,
    /// The stretch of the log within which lines are sorted, in nanoseconds, if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort_ns: Option<u64>,
    /// Requests a second of a log without times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// The share of calls that have a `traceparent`, above 0 and up to 1, if some have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_ratio: Option<f64>,
    /// The fingerprint of the log, where several machines read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
}

/// Tells a log from others without reading all of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Fingerprint {
    /// How much of the file belongs to the replay, in bytes: all that there was when the run was planned.
    pub bytes: u64,
    /// A digest of the beginning and the end of these bytes, and of blocks between them.
    pub digest: String,
}

impl LogReplay {
    /// A log of this format without changes, with a session for each client.
    pub fn new(log: &str, format: &str) -> Self {
        Self {
            logs: vec![log.to_owned()],
            format: format.to_owned(),
            speed: 1.0,
            scale: 1.0,
            shift_ns: 0,
            session: "client".to_owned(),
            think: false,
            writes: false,
            repeats: false,
            logged_is_ok: true,
            window: None,
            filters: Vec::new(),
            rewrites: Vec::new(),
            from_hosts: Vec::new(),
            layout: None,
            fields: None,
            zone_s: None,
            sort_ns: None,
            rate: None,
            trace_ratio: None,
            fingerprint: None,
        }
    }

    /// In a few words: `replay of access.log (combined) at 2x, pauses kept`. Without `pauses kept` its times are.
    pub fn title(&self) -> String {
        let speed = if self.speed == 1.0 { String::new() } else { format!(" at {}x", self.speed) };
        let scale = if self.scale == 1.0 { String::new() } else { format!(", {}x the requests", self.scale) };
        let pace = if self.think { ", pauses kept" } else { "" };
        format!("replay of {} ({}){speed}{scale}{pace}", self.logs.join(" "), self.format)
    }
}
