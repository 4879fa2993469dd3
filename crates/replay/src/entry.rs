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
}

impl Entry {
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
