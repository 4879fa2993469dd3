//! A request as a log has it, and why a line gives none.

pub use brunt_protocol::record::replayed::Skip;

/// A moment in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    /// Nanoseconds since 1970-01-01 UTC.
    pub ns: i64,
    /// Whether the log has whole seconds alone.
    pub is_whole: bool,
    /// The offset of the log's clock from UTC, in seconds.
    pub offset_s: i32,
}

/// A request that a log has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// When it began; none in lists of targets, which have no times.
    pub at: Option<Stamp>,
    /// Its method.
    pub method: String,
    /// A path with its query, or a whole URL.
    pub url: String,
    /// The host that it asked for, where the log has it beside the path.
    pub host: Option<String>,
    /// Header fields, as far as the log has them.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Option<Vec<u8>>,
    /// Who made it.
    pub session: Option<String>,
    /// The status of its answer.
    pub status: Option<u16>,
    /// The size of its answer's body in bytes.
    pub bytes: Option<u64>,
    /// How long it took, in nanoseconds.
    pub duration_ns: Option<u64>,
}

impl Entry {
    /// About how much memory it takes, in bytes.
    pub fn weight(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len() + 48).sum();
        size_of::<Self>() + self.method.len() + self.url.len() + headers + self.body.as_ref().map_or(0, Vec::len)
    }
}

/// How many lines were skipped, by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skips([u64; Skip::ALL.len()]);

impl Skips {
    /// Another line was skipped for this reason.
    pub fn add(&mut self, skip: Skip) {
        if let Some(count) = self.0.get_mut(skip as usize) {
            *count += 1;
        }
    }

    /// How many were skipped for this reason.
    pub fn count(&self, skip: Skip) -> u64 {
        self.0.get(skip as usize).copied().unwrap_or(0)
    }

    /// Reasons that were found, with their counts.
    pub fn found(&self) -> impl Iterator<Item = (Skip, u64)> {
        Skip::ALL.into_iter().map(|skip| (skip, self.count(skip))).filter(|(_, count)| *count > 0)
    }

    /// All that were skipped.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}
