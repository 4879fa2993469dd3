//! What a replay took of its log, and how what came differs from what the log had.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A replay beside its log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Replayed {
    /// Lines read, without those that are empty or comments.
    pub lines: u64,
    /// Requests that were due by the time the run ended, copies included.
    pub requests: u64,
    /// Lines that were not replayed, by reason.
    #[serde(default)]
    pub skipped: BTreeMap<String, u64>,
    /// Requests that write and had no body in the log: they were sent without one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub without_body: u64,
    /// Sessions that were seen.
    pub sessions: u64,
    /// The time of the first request that was replayed, in milliseconds since 1970-01-01 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_unix_ms: Option<i64>,
    /// The time of the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_unix_ms: Option<i64>,
    /// All requests beside the log.
    pub all: AgainstLog,
    /// Those of each template.
    pub templates: Vec<AgainstLog>,
    /// What `--fail-if` asked, and what came of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A condition under which a replay fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Condition {
    /// As it was given.
    pub condition: String,
    /// Whether it holds: the replay failed.
    pub holds: bool,
    /// What there was, in words.
    pub got: String,
}

/// Requests of one kind beside what the log had.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgainstLog {
    /// The template: a method, and a path whose ids are folded; `(all)` for everything.
    pub name: String,
    /// Requests that ended.
    pub calls: u64,
    /// Of these, those that were answered.
    pub answered: u64,
    /// Answers whose status the log had, too.
    pub compared_status: u64,
    /// Those of them with another status.
    pub other_status: u64,
    /// The most frequent pairs of other statuses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statuses: Vec<OtherStatus>,
    /// Answers whose size the log had, too.
    pub compared_size: u64,
    /// Those of them whose size is another.
    pub other_size: u64,
    /// Bytes of these answers' bodies in the log.
    pub logged_bytes: u64,
    /// Bytes of these answers' bodies now.
    pub came_bytes: u64,
    /// Answers whose duration the log had, too.
    pub compared_duration: u64,
    /// The median of these durations in the log, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logged_p50_ns: Option<u64>,
    /// Its 95th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logged_p95_ns: Option<u64>,
    /// The median from sent to answered now, of the same requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub came_p50_ns: Option<u64>,
    /// Its 95th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub came_p95_ns: Option<u64>,
}

/// Answers with another status than in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OtherStatus {
    /// That of the log.
    pub logged: u16,
    /// That which came.
    pub came: u16,
    /// How often.
    pub count: u64,
}

/// Why a line, or the request in it, is not replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Skip {
    /// It is longer than a line may be.
    TooLong,
    /// It is not UTF-8, or holds control characters.
    Binary,
    /// It ends before all that the format has.
    Incomplete,
    /// It is not written as the format is.
    Malformed,
    /// It has no time, where others have.
    NoTime,
    /// Its time cannot be read.
    BadTime,
    /// It has no method and path: a handshake of TLS on a plain port, a scan.
    NoRequest,
    /// Its time is far from those around it.
    Jump,
    /// It came later than the window in which lines are sorted.
    TooLate,
    /// It is outside of `--window`.
    Outside,
    /// `--filter` leaves it out.
    Filtered,
    /// Its method writes, and `--unsafe` is not given.
    Writes,
    /// It went to another host than the target.
    OtherHost,
    /// A scale below 1 leaves its session out.
    Sampled,
}

impl Skip {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Self; 14] = [
        Self::TooLong,
        Self::Binary,
        Self::Incomplete,
        Self::Malformed,
        Self::NoTime,
        Self::BadTime,
        Self::NoRequest,
        Self::Jump,
        Self::TooLate,
        Self::Outside,
        Self::Filtered,
        Self::Writes,
        Self::OtherHost,
        Self::Sampled,
    ];

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|skip| skip.name() == name)
    }

    /// The name by which it is counted in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooLong => "too_long",
            Self::Binary => "binary",
            Self::Incomplete => "incomplete",
            Self::Malformed => "malformed",
            Self::NoTime => "no_time",
            Self::BadTime => "bad_time",
            Self::NoRequest => "no_request",
            Self::Jump => "time_jump",
            Self::TooLate => "out_of_order",
            Self::Outside => "outside_window",
            Self::Filtered => "filtered",
            Self::Writes => "writes",
            Self::OtherHost => "other_host",
            Self::Sampled => "sampled_out",
        }
    }

    /// What it says of a line.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::TooLong => "longer than 1 MiB",
            Self::Binary => "not text",
            Self::Incomplete => "cut off before the end",
            Self::Malformed => "not in the log's format",
            Self::NoTime => "without a time",
            Self::BadTime => "with a time that is none",
            Self::NoRequest => "without a method and a path",
            Self::Jump => "with a time far from its neighbours'",
            Self::TooLate => "out of order by more than the sort window",
            Self::Outside => "outside of --window",
            Self::Filtered => "left out by --filter",
            Self::Writes => "with a method that writes (--unsafe sends them)",
            Self::OtherHost => "for another host (--from-host says which stand for the target)",
            Self::Sampled => "of sessions that --scale leaves out",
        }
    }

    /// Whether something is wrong with the line, and not only unwanted.
    pub const fn is_defect(self) -> bool {
        !matches!(self, Self::Outside | Self::Filtered | Self::Writes | Self::OtherHost | Self::Sampled)
    }
}

/// For `skip_serializing_if`, which passes a reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
