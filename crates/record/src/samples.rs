//! Samples: one row for each call, beside the figures that sum them up.
//!
//! Workers hand rows over in [chunks](Chunk) to a [`SampleSink`], which writes them down on a thread of its own.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::outcome::Failure;

/// Rows of a chunk at which a worker hands it over.
const MOST_ROWS: usize = 4096;
/// Bytes of texts of a chunk at which a worker hands it over.
const MOST_TEXT: usize = 1 << 20;

/// How a call ended, as its row says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowEnd {
    /// Answered with this status, which is a success or not; checks of the answer come later.
    Answered(u16, bool),
    /// Without a good answer.
    Failed(Failure),
    /// In flight when the drain ended.
    Unfinished,
    /// Due and never sent.
    Unsent,
}

impl RowEnd {
    /// The name in files: `ok`, `not_ok`, a failure's name, `unfinished` or `unsent`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Answered(_, true) => "ok",
            Self::Answered(_, false) => "not_ok",
            Self::Failed(failure) => failure.name(),
            Self::Unfinished => "unfinished",
            Self::Unsent => "unsent",
        }
    }
}

/// A call. Times are nanoseconds on the clock of the run; `None` where the call did not come so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// When it was due.
    pub due_ns: u64,
    /// When it was sent.
    pub sent_ns: Option<u64>,
    /// When its answer arrived: by the kernel where it told, otherwise when it was read.
    pub arrived_ns: Option<u64>,
    /// When it ended.
    pub ended_ns: u64,
    /// How late brunt itself sent it, in nanoseconds: no part of its response time.
    pub lag_ns: u64,
    /// How it ended.
    pub ended: RowEnd,
    /// Whether it belongs to the measured part, and not to the warm-up.
    pub measured: bool,
    /// Bytes received on its connection since a call ended there before, after decryption.
    pub bytes_in: u64,
    /// Bytes of the call, before encryption.
    pub bytes_out: u64,
    /// Its connection's number among those of its worker, from 1.
    pub connection: Option<u64>,
    /// Its virtual user's number, and that user's iteration, from 1.
    pub user: Option<(u64, u64)>,
}

/// The texts of a call.
#[derive(Debug, Clone, Copy, Default)]
pub struct Texts<'a> {
    /// The name of its request; empty where calls have none.
    pub name: &'a str,
    /// Its tags, which a `;` separates.
    pub tags: &'a str,
}

/// Rows of a worker, with their texts.
#[derive(Debug, Default)]
pub struct Chunk {
    /// The worker's number.
    pub worker: u32,
    /// Calls that have ended and have no row, as only a share of them has one.
    pub left_out: u64,
    /// Calls that were due, and for which no connection was free until they were given up together: they have no row.
    pub never_begun: u64,
    rows: Vec<(Row, u32, u32)>,
    texts: String,
}

impl Chunk {
    /// The number of its rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it tells nothing.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.left_out == 0 && self.never_begun == 0
    }

    /// Its rows, each with its name and its tags.
    pub fn rows(&self) -> impl Iterator<Item = (&Row, &str, &str)> {
        let mut from = 0;
        self.rows.iter().map(move |(row, name, tags)| {
            let (to, end) = (from + *name as usize, from + (*name + *tags) as usize);
            let texts = (self.texts.get(from..to).unwrap_or_default(), self.texts.get(to..end).unwrap_or_default());
            from = end;
            (row, texts.0, texts.1)
        })
    }

    fn push(&mut self, row: Row, texts: &Texts<'_>) {
        let before = self.texts.len();
        self.texts.push_str(texts.name);
        let name = self.texts.len() - before;
        self.texts.push_str(texts.tags);
        let tags = self.texts.len() - before - name;
        self.rows.push((row, name as u32, tags as u32));
    }
}

/// Takes the rows of a run's calls.
pub trait SampleSink: Send + Sync {
    /// The share of calls that have a row, above 0 and up to 1.
    fn share(&self) -> f64;

    /// The load is about to begin: the clock of the run is at `clock_ns`, and the wall clock at `unix_ns`. Called once, before any
    /// rows come.
    fn begin(&self, clock_ns: u64, unix_ns: u64);

    /// Takes rows, on the worker's thread: it does not wait.
    fn take(&self, chunk: Chunk);
}

/// The rows of one worker. Whether a call has one depends on its number alone, and on nothing that happens to it.
pub struct Samples {
    sink: Arc<dyn SampleSink>,
    chunk: Chunk,
    /// A call has a row if a random number of 64 bits is at most this.
    most: u64,
    random: u64,
}

impl std::fmt::Debug for Samples {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Samples").field("chunk", &self.chunk).finish_non_exhaustive()
    }
}

impl Samples {
    /// The rows of this worker, for `sink`.
    pub fn new(sink: Arc<dyn SampleSink>, worker: u32) -> Self {
        // The product is at most the largest number: a cast saturates.
        let most = (sink.share() * u64::MAX as f64) as u64;
        let random = u64::from(worker).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self { sink, chunk: Chunk { worker, ..Chunk::default() }, most, random }
    }

    /// Whether the next call that ends has a row (splitmix64; G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number
    /// generators", OOPSLA 2014).
    pub fn takes_next(&mut self) -> bool {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let takes = (z ^ (z >> 31)) <= self.most;
        self.chunk.left_out += u64::from(!takes);
        takes
    }

    /// Adds a row.
    pub fn push(&mut self, row: Row, texts: &Texts<'_>) {
        self.chunk.push(row, texts);
        if self.chunk.rows.len() >= MOST_ROWS || self.chunk.texts.len() >= MOST_TEXT {
            self.hand_over();
        }
    }

    /// So many calls that were due never began.
    pub fn never_begun(&mut self, calls: u64) {
        self.chunk.never_begun += calls;
    }

    /// Hands over what it has.
    pub fn hand_over(&mut self) {
        if !self.chunk.is_empty() {
            let next = Chunk { worker: self.chunk.worker, ..Chunk::default() };
            self.sink.take(std::mem::replace(&mut self.chunk, next));
        }
    }
}

/// The account of a file of rows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sampled {
    /// The file.
    pub file: String,
    /// Rows in it.
    pub rows: u64,
    /// The share of calls that were to have a row, above 0 and up to 1.
    pub share_ratio: f64,
    /// The most bytes that it may have.
    pub limit_bytes: u64,
    /// Calls without a row as only a share of them has one.
    pub left_out_by_share: u64,
    /// Calls without a row as the file had its most bytes.
    pub left_out_by_limit: u64,
    /// Calls without a row as the file was written too slowly.
    pub left_out_by_delay: u64,
    /// Calls that were due, and for which no connection was free until they were given up together.
    pub never_begun: u64,
    /// Why it could not be written to its end; missing where it could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    struct Kept(f64, Mutex<Vec<Chunk>>);

    impl SampleSink for Kept {
        fn share(&self) -> f64 {
            self.0
        }

        fn begin(&self, _clock_ns: u64, _unix_ns: u64) {}

        fn take(&self, chunk: Chunk) {
            self.1.lock().unwrap().push(chunk);
        }
    }

    fn row(due_ns: u64) -> Row {
        Row {
            due_ns,
            sent_ns: None,
            arrived_ns: None,
            ended_ns: due_ns,
            lag_ns: 0,
            ended: RowEnd::Unsent,
            measured: true,
            bytes_in: 0,
            bytes_out: 0,
            connection: None,
            user: None,
        }
    }

    #[test]
    fn rows_keep_their_texts_and_go_in_chunks_of_bounded_size() {
        let kept = Arc::new(Kept(1.0, Mutex::default()));
        let mut samples = Samples::new(Arc::clone(&kept) as Arc<dyn SampleSink>, 3);
        for due in 0..MOST_ROWS as u64 + 2 {
            assert!(samples.takes_next(), "a share of 1 leaves nothing out");
            let name = due.to_string();
            samples.push(row(due), &Texts { name: &name, tags: if due % 2 == 0 { "a=1;b=2" } else { "" } });
        }
        samples.hand_over();
        samples.hand_over();
        let chunks = kept.1.lock().unwrap();
        assert_eq!(chunks.iter().map(Chunk::len).collect::<Vec<_>>(), [MOST_ROWS, 2], "nothing is handed over twice");
        for (due, (row, name, tags)) in (0..).zip(chunks.iter().flat_map(Chunk::rows)) {
            let expected = if due % 2 == 0 { "a=1;b=2" } else { "" };
            assert_eq!((row.due_ns, name, tags), (due, due.to_string().as_str(), expected));
        }
    }

    #[test]
    fn a_share_is_that_share_and_counts_the_others() {
        let kept = Arc::new(Kept(0.1, Mutex::default()));
        let mut samples = Samples::new(Arc::clone(&kept) as Arc<dyn SampleSink>, 0);
        for due in 0..10_000 {
            if samples.takes_next() {
                samples.push(row(due), &Texts::default());
            }
        }
        samples.hand_over();
        let chunks = kept.1.lock().unwrap();
        let (rows, left_out) =
            chunks.iter().fold((0, 0), |(rows, out), chunk| (rows + chunk.len() as u64, out + chunk.left_out));
        assert_eq!(rows + left_out, 10_000);
        assert!((900..1100).contains(&rows), "{rows}");
    }
}
