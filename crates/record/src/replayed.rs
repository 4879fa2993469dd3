//! What a replay took of its log, and how what came differs from what the log had.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// A replay beside its log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Replayed {
    /// Lines read, without those that are empty or comments.
    pub lines: u64,
    /// Requests that were due by the time the run ended, copies included.
    pub requests: u64,
    /// Lines that were not replayed, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Requests that write and had no body in the log: they were sent without one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub without_body: u64,
    /// Header fields that the log had redacted: they were not sent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub redacted: u64,
    /// Requests whose duration in the log cannot be read: their times are taken as they stand there.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unread_durations: u64,
    /// Sessions of which a request was due by the time the run ended, copies included. A log's first million are counted.
    pub sessions: u64,
    /// The time of the first request that was replayed, in milliseconds since 1970-01-01 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_unix_ms: Option<i64>,
    /// The time of the last one that was read, some thousand requests ahead of those that were due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_unix_ms: Option<i64>,
    /// All requests beside the log.
    pub all: AgainstLog,
    /// Those of each template.
    pub templates: Vec<AgainstLog>,
    /// What `--fail-if` asked, and what came of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ReplayCondition>,
}

/// A condition under which a replay fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReplayCondition {
    /// As it was given.
    pub condition: String,
    /// Whether it holds: the replay failed.
    pub holds: bool,
    /// What there was, in words.
    pub got: String,
}

/// Requests of one kind beside what the log had.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OtherStatus {
    /// That of the log.
    pub logged: u16,
    /// That which came.
    pub came: u16,
    /// How often.
    pub count: u64,
}

/// Requests of one template beside what the log had: sums, which merge over workers and machines.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ComparedTemplate {
    /// Its sums, and all pairs of statuses that are told apart. Its quantiles are empty.
    pub sums: AgainstLog,
    /// Durations in the log, in nanoseconds.
    pub logged: Histogram,
    /// The same requests' durations now.
    pub came: Histogram,
}

/// The most pairs of statuses of a template that are told apart.
const MOST_PAIRS: usize = 64;
/// How many of them a result shows.
const SHOWN_PAIRS: usize = 5;

impl ComparedTemplate {
    /// An answer had another status than the log.
    pub fn other_status(&mut self, logged: u16, came: u16, count: u64) {
        let pairs = &mut self.sums.statuses;
        if let Some(pair) = pairs.iter_mut().find(|pair| (pair.logged, pair.came) == (logged, came)) {
            pair.count = pair.count.saturating_add(count);
        } else if pairs.len() < MOST_PAIRS {
            pairs.push(OtherStatus { logged, came, count });
        }
    }

    /// Adds what another worker or machine has seen.
    pub fn merge(&mut self, other: &Self) {
        let (sums, more) = (&mut self.sums, &other.sums);
        for (sum, more) in [
            (&mut sums.calls, more.calls),
            (&mut sums.answered, more.answered),
            (&mut sums.compared_status, more.compared_status),
            (&mut sums.other_status, more.other_status),
            (&mut sums.compared_size, more.compared_size),
            (&mut sums.other_size, more.other_size),
            (&mut sums.logged_bytes, more.logged_bytes),
            (&mut sums.came_bytes, more.came_bytes),
            (&mut sums.compared_duration, more.compared_duration),
        ] {
            *sum = sum.saturating_add(more);
        }
        for pair in &more.statuses {
            self.other_status(pair.logged, pair.came, pair.count);
        }
        self.logged.merge(&other.logged);
        self.came.merge(&other.came);
    }

    /// The row of a result: sums, the most frequent pairs of statuses, and quantiles, under this name.
    pub fn row(&self, name: &str) -> AgainstLog {
        let mut statuses = self.sums.statuses.clone();
        statuses.sort_unstable_by_key(|pair| std::cmp::Reverse((pair.count, pair.logged, pair.came)));
        statuses.truncate(SHOWN_PAIRS);
        AgainstLog {
            name: name.to_owned(),
            statuses,
            logged_p50_ns: self.logged.quantile(0.5),
            logged_p95_ns: self.logged.quantile(0.95),
            came_p50_ns: self.came.quantile(0.5),
            came_p95_ns: self.came.quantile(0.95),
            ..self.sums.clone()
        }
    }
}

/// The row of all requests, and one for each template; those with the most requests first.
pub fn total_and_templates<'a>(rows: impl IntoIterator<Item = &'a ComparedTemplate>) -> (AgainstLog, Vec<AgainstLog>) {
    let (mut all, mut by_name) = (ComparedTemplate::default(), BTreeMap::<&str, ComparedTemplate>::new());
    for row in rows {
        all.merge(row);
        by_name.entry(&row.sums.name).or_default().merge(row);
    }
    let mut templates: Vec<_> = by_name.iter().map(|(name, row)| row.row(name)).collect();
    templates.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.name.cmp(&b.name)));
    (all.row("(all)"), templates)
}

/// What one machine has read of a log, and what came of its part.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LogRead {
    /// What tells whether others have read the same.
    pub marks: Marks,
    /// Its requests beside the log, by template.
    pub compared: Vec<ComparedTemplate>,
}

/// More than any figure of a replay is.
const MOST: u64 = 1 << 56;

impl LogRead {
    /// Whether it is what a machine can have read: no figure is without bounds.
    pub fn is_bounded(&self) -> bool {
        let row = |row: &ComparedTemplate| {
            let sums = &row.sums;
            let AgainstLog { calls, answered, compared_status, other_status, compared_size, other_size, .. } = sums;
            let AgainstLog { logged_bytes, came_bytes, compared_duration, .. } = sums;
            let counts = [*calls, *answered, *compared_status, *other_status, *compared_size, *other_size];
            let others = [*logged_bytes, *came_bytes, *compared_duration, row.logged.count(), row.came.count()];
            counts.into_iter().chain(others).all(|figure| figure <= MOST) && sums.statuses.len() <= MOST_PAIRS
        };
        self.compared.len() <= MOST_TEMPLATES && self.compared.iter().all(row)
    }
}

/// More than the templates that are told apart.
const MOST_TEMPLATES: usize = 1000;

/// Digests of a log's lines up to some of them, by which two readers know that they read the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    lines: u64,
    digest: u64,
    /// There is a digest after so many lines, after twice as many, and so on.
    every: u64,
    digests: Vec<u64>,
    is_over: bool,
}

/// How many digests there are at most; from then on every second one is left out.
const MOST_MARKS: usize = 128;

impl Default for Marks {
    fn default() -> Self {
        Self { lines: 0, digest: 0, every: 1, digests: Vec::new(), is_over: false }
    }
}

impl Marks {
    /// Another line was read, whose digest is this.
    pub fn line(&mut self, digest: u64) {
        self.lines += 1;
        // The multiplier of Fx, the hash of Firefox: order counts.
        self.digest = (self.digest.rotate_left(5) ^ digest).wrapping_mul(0x517c_c1b7_2722_0a95);
        if !self.lines.is_multiple_of(self.every) {
            return;
        }
        self.digests.push(self.digest);
        if self.digests.len() >= MOST_MARKS {
            self.every *= 2;
            let mut place = 0;
            self.digests.retain(|_| {
                place += 1;
                place % 2 == 0
            });
        }
    }

    /// The log is over, or what is wanted of it.
    pub fn end(&mut self) {
        self.is_over = true;
    }

    /// The digest after so many lines, where it is known.
    fn after(&self, lines: u64) -> Option<u64> {
        if lines == self.lines {
            return Some(self.digest);
        }
        let nth = lines.checked_div(self.every).filter(|nth| nth.saturating_mul(self.every) == lines)?;
        self.digests.get(usize::try_from(nth.checked_sub(1)?).ok()?).copied()
    }

    /// The number of a line up to which two readers did not read the same; none as far as both can tell.
    pub fn differ(&self, other: &Self) -> Option<u64> {
        let every = self.every.max(other.every).max(1);
        let both = self.lines.min(other.lines);
        let known = (1..=MOST_MARKS as u64).map(|nth| nth.saturating_mul(every)).take_while(|lines| *lines < both);
        let is_other = |lines: &u64| matches!((self.after(*lines), other.after(*lines)), (Some(a), Some(b)) if a != b);
        if let Some(lines) = known.chain([both]).find(is_other) {
            return Some(lines);
        }
        // Whoever has read all of it has read as much as anybody else.
        let is_short = |one: &Self, more: &Self| one.is_over && one.lines < more.lines;
        (is_short(self, other) || is_short(other, self)).then_some(both + 1)
    }
}

/// Why a line, or the request in it, is not replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
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
    #[serde(rename = "time_jump")]
    Jump,
    /// It came later than the window in which lines are sorted.
    #[serde(rename = "out_of_order")]
    TooLate,
    /// It is outside of the part that is replayed.
    #[serde(rename = "outside_window")]
    Outside,
    /// A filter leaves it out.
    Filtered,
    /// Its method writes, and such methods are not sent.
    Writes,
    /// It went to another host than the target.
    OtherHost,
    /// A scale below 1 leaves its session out.
    #[serde(rename = "sampled_out")]
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: impl IntoIterator<Item = u64>, is_over: bool) -> Marks {
        let mut marks = Marks::default();
        lines.into_iter().for_each(|digest| marks.line(digest));
        if is_over {
            marks.end();
        }
        marks
    }

    #[test]
    fn readers_know_whether_they_read_the_same() {
        for lines in [0, 1, 5, 127, 128, 1000, 100_000] {
            let all = read(0..lines, true);
            assert_eq!(all.differ(&read(0..lines, true)), None, "{lines}");
            // One was ended before it had read all of it.
            assert_eq!(all.differ(&read(0..lines / 3, false)), None, "{lines}");
            assert_eq!(read(0..lines / 2, false).differ(&read(0..lines / 3, false)), None, "{lines}");
            // One found the end earlier.
            assert_eq!(all.differ(&read(0..=lines, false)), Some(lines + 1), "{lines}");
            assert!(all.digests.len() < MOST_MARKS);
        }
        let with_other = |place: u64| read((0..1000).map(|line| if line == place { 7777 } else { line }), false);
        for place in [0, 1, 499, 998] {
            let found = read(0..1000, false).differ(&with_other(place));
            assert!(found.is_some_and(|lines| lines > place && lines <= place + 32), "{place}: {found:?}");
        }
        // Order counts, and what a stranger says divides by nothing.
        assert!(read([1, 2], true).differ(&read([2, 1], true)).is_some());
        let strange = Marks { every: 0, lines: 9, ..Marks::default() };
        assert_eq!(strange.differ(&strange), None);
    }
}
