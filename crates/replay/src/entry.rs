//! A request as a log has it, and the reasons for which lines are skipped.

pub use brunt_protocol::record::replayed::Skip;

/// A moment in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    /// Nanoseconds since 1970-01-01 UTC.
    pub ns: i64,
    /// Whether the log has only whole seconds.
    pub is_whole: bool,
    /// The offset of the log's clock from UTC, in seconds.
    pub offset_s: i32,
}

impl Stamp {
    /// The most nanoseconds between 1970 and the time of a request, 146 years: times can be added and subtracted
    /// without an overflow.
    pub const MOST_NS: i64 = 1 << 62;

    /// Whether it is within [`Self::MOST_NS`] of 1970.
    pub fn is_in_range(self) -> bool {
        self.ns.unsigned_abs() <= Self::MOST_NS.unsigned_abs()
    }
}

/// A request from a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// When it began; `None` in lists of targets, which have no times.
    pub at: Option<Stamp>,
    /// Its method.
    pub method: String,
    /// A path with its query, or a whole URL.
    pub url: String,
    /// The requested host, where the log has it beside the path.
    pub host: Option<String>,
    /// Header fields, as far as the log has them.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Option<Vec<u8>>,
    /// The session to which it belongs.
    pub session: Option<String>,
    /// The status of its answer.
    pub status: Option<u16>,
    /// The size of its answer's body in bytes.
    pub bytes: Option<u64>,
    /// The duration in nanoseconds.
    pub duration_ns: Option<u64>,
    /// Whether the log has a duration that cannot be read.
    pub has_unread_duration: bool,
}

/// A duration as a log has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Took {
    /// The log has none: `-`, or -1 for a request that was cut short.
    Absent,
    /// In nanoseconds.
    Ns(u64),
    /// It is no number, or a negative one.
    Unread,
}

impl Took {
    /// Reads a number in units of `unit_ns`, or one with a unit of its own: `0.5`, `0,5`, `1.5ms`.
    pub fn read(text: &str, unit_ns: f64) -> Self {
        let text = text.trim().trim_start_matches('+');
        if matches!(text, "" | "-" | "-1" | "-1.0" | "-1.000") {
            return Self::Absent;
        }
        let is_of_number =
            |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | ',' | 'e' | 'E' | '-' | '+');
        let end = text.find(|letter| !is_of_number(letter)).unwrap_or(text.len());
        let Some((number, unit)) = text.split_at_checked(end) else { return Self::Unread };
        let unit_ns = match unit.trim_start() {
            "" => unit_ns,
            "s" => 1e9,
            "ms" => 1e6,
            "us" | "µs" => 1e3,
            "ns" => 1.0,
            _ => return Self::Unread,
        };
        let value = number.parse().or_else(|_| number.replacen(',', ".", 1).parse::<f64>());
        match value {
            Ok(value) if value.is_finite() && value >= 0.0 => Self::Ns((value * unit_ns) as u64),
            _ => Self::Unread,
        }
    }

    /// Both, one after the other.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unread, _) | (_, Self::Unread) => Self::Unread,
            (Self::Absent, took) | (took, Self::Absent) => took,
            (Self::Ns(one), Self::Ns(more)) => Self::Ns(one.saturating_add(more)),
        }
    }
}

impl Entry {
    /// Sets the duration.
    pub fn took(&mut self, took: Took) {
        self.duration_ns = if let Took::Ns(ns) = took { Some(ns) } else { None };
        self.has_unread_duration = took == Took::Unread;
    }

    /// The approximate size in memory, in bytes.
    pub fn weight(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len() + 48).sum();
        let names = [&self.host, &self.session].into_iter().flatten().map(String::len).sum::<usize>();
        let body = self.body.as_ref().map_or(0, Vec::len);
        size_of::<Self>() + self.method.len() + self.url.len() + names + headers + body
    }
}

/// The numbers of skipped lines, by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skips([u64; Skip::ALL.len()]);

impl Skips {
    /// Counts a line skipped for this reason.
    pub fn add(&mut self, skip: Skip) {
        if let Some(count) = self.0.get_mut(skip as usize) {
            *count += 1;
        }
    }

    /// The number of lines skipped for this reason.
    pub fn count(&self, skip: Skip) -> u64 {
        self.0.get(skip as usize).copied().unwrap_or(0)
    }

    /// The reasons that occurred, with their counts.
    pub fn found(&self) -> impl Iterator<Item = (Skip, u64)> {
        Skip::ALL.into_iter().map(|skip| (skip, self.count(skip))).filter(|(_, count)| *count > 0)
    }

    /// The number of all skipped lines.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}
