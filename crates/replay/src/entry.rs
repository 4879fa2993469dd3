//! A request as a log has it, and why a line gives none.

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
    /// Its time is none.
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
