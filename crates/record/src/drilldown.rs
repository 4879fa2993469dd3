//! Calls over time by a common property: request name, status, reason of failure.
//!
//! The series shows when a run went wrong, this shows what went wrong then. It is filled once a second, from the
//! second's snapshot, and bounded: a kind has at most [`MOST_KEYS`] keys (names have the limit of [`crate::figures`])
//! and [`MOST_CELLS`] cells. Beyond that neighbouring stretches merge in pairs, so that times become coarser with more
//! keys.

use serde::{Deserialize, Serialize};

use crate::SECOND_NS;
use crate::catalogue::Timing;
use crate::counts::Failures;
use crate::figures::CallFigures;
use crate::outcome::{Failure, OkStatus};
use crate::packed::Packed;
use crate::snapshot::Snapshot;

/// The most cells of one kind: keys times stretches.
pub const MOST_CELLS: usize = 10_000;
/// The most stretches of one kind: more than a chart can tell apart.
pub const MOST_STRETCHES: usize = 600;
/// The most statuses, and the most reasons of failures, that have a track. Calls with others count in the outcomes
/// only.
pub const MOST_KEYS: usize = 64;

/// What happened in a stretch to calls with one key.
pub trait Cell: Default {
    /// Adds what `other` counted.
    fn merge(&mut self, other: &Self);
}

impl Cell for u64 {
    fn merge(&mut self, other: &Self) {
        *self += other;
    }
}

/// Calls with one name that ended in a stretch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Calls {
    /// How many.
    pub ended: u64,
    /// Calls among them that are not a success.
    pub not_ok: u64,
    /// Their response times in nanoseconds, to within 0.8%.
    pub response: Packed,
}

impl Calls {
    fn from_figures(figures: &CallFigures, ok: &OkStatus) -> Self {
        let response = Packed::from_histogram(figures.times.known(Timing::Response));
        Self { ended: figures.ended(), not_ok: figures.not_ok(ok), response }
    }
}

impl Cell for Calls {
    fn merge(&mut self, other: &Self) {
        self.ended += other.ended;
        self.not_ok += other.not_ok;
        self.response = self.response.merged(&other.response);
    }
}

/// A stretch of the measured part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// When it begins, in nanoseconds after the measured part's beginning.
    pub start_ns: u64,
    /// How long it is, in nanoseconds.
    pub length_ns: u64,
}

/// One key and its cells, one a stretch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Track<K, C> {
    /// The common property of the calls.
    pub key: K,
    /// Their figures, stretch by stretch.
    pub cells: Vec<C>,
}

/// Cells by key and stretch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tracks<K, C> {
    resolution_ns: u64,
    stretches: Vec<Stretch>,
    rows: Vec<Track<K, C>>,
}

impl<K, C> Default for Tracks<K, C> {
    fn default() -> Self {
        Self { resolution_ns: SECOND_NS, stretches: Vec::new(), rows: Vec::new() }
    }
}

impl<K: PartialEq, C: Cell> Tracks<K, C> {
    /// The stretches, in order.
    pub fn stretches(&self) -> &[Stretch] {
        &self.stretches
    }

    /// The tracks, in the order in which their keys came. Each has a cell for every stretch.
    pub fn tracks(&self) -> &[Track<K, C>] {
        &self.rows
    }

    /// Begins the stretch that follows the last, or makes the last one longer.
    fn extend(&mut self, length_ns: u64) {
        let start_ns = self.stretches.last().map_or(0, |last| last.start_ns + last.length_ns);
        match self.stretches.last_mut() {
            Some(last) if last.length_ns < self.resolution_ns => last.length_ns += length_ns,
            _ => {
                self.stretches.push(Stretch { start_ns, length_ns });
                self.rows.iter_mut().for_each(|track| track.cells.push(C::default()));
            }
        }
    }

    /// Adds to a key's cell in the last stretch; whether there was room for the key.
    fn add(&mut self, key: K, most: usize, cell: &C) -> bool {
        let at = self.rows.iter().position(|track| track.key == key);
        if at.is_none() && self.rows.len() >= most {
            return false;
        }
        let at = at.unwrap_or_else(|| {
            let cells = self.stretches.iter().map(|_| C::default()).collect();
            self.rows.push(Track { key, cells });
            self.rows.len() - 1
        });
        if let Some(last) = self.rows.get_mut(at).and_then(|track| track.cells.last_mut()) {
            last.merge(cell);
        }
        true
    }

    /// Merges stretches until there are few enough cells.
    fn fit(&mut self) {
        let is_too_large = |all: &Self| {
            let stretches = all.stretches.len();
            stretches > MOST_STRETCHES || (stretches > 2 && stretches * all.rows.len() > MOST_CELLS)
        };
        while is_too_large(self) {
            let pairs = self.stretches.chunks(2);
            let merged = pairs.filter_map(|pair| {
                let start_ns = pair.first()?.start_ns;
                Some(Stretch { start_ns, length_ns: pair.iter().map(|stretch| stretch.length_ns).sum() })
            });
            self.stretches = merged.collect();
            for track in &mut self.rows {
                let mut cells = std::mem::take(&mut track.cells).into_iter();
                while let Some(mut cell) = cells.next() {
                    if let Some(next) = cells.next() {
                        cell.merge(&next);
                    }
                    track.cells.push(cell);
                }
            }
            self.resolution_ns *= 2;
        }
    }
}

/// The cause of failures: the failure's name, and the reason; empty where there was none, or no room for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureCause {
    /// The failure.
    pub failure: Failure,
    /// The reason.
    pub reason: String,
}

/// Calls over time, each in all of its tracks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Drilldown {
    /// Calls by request name, in a run that has names.
    pub requests: Tracks<String, Calls>,
    /// Calls by tag, `key=value`, in a run that has tags.
    pub tags: Tracks<String, Calls>,
    /// Answers by status.
    pub statuses: Tracks<u16, u64>,
    /// Failures by reason.
    pub failures: Tracks<FailureCause, u64>,
}

impl Drilldown {
    /// Adds the calls of the stretch that follows the last.
    pub(crate) fn push(&mut self, length_ns: u64, snapshot: &Snapshot, ok: &OkStatus) {
        let names = [(&mut self.requests, &snapshot.figures.requests), (&mut self.tags, &snapshot.figures.tags)];
        for (tracks, figures) in names {
            tracks.extend(length_ns);
            for (name, figures) in figures.iter() {
                // Named figures are bounded already.
                tracks.add(name.to_owned(), usize::MAX, &Calls::from_figures(figures, ok));
            }
            tracks.fit();
        }
        self.statuses.extend(length_ns);
        for (status, n) in snapshot.statuses.sorted() {
            self.statuses.add(status, MOST_KEYS, &n);
        }
        self.statuses.fit();
        self.failures.extend(length_ns);
        self.push_failures(&snapshot.failures);
        self.failures.fit();
    }

    fn push_failures(&mut self, failures: &Failures) {
        for (failure, all) in failures.counted() {
            let mut unnamed = all;
            for (reason, n) in failures.reasons(failure) {
                let why = FailureCause { failure, reason: reason.to_owned() };
                if self.failures.add(why, MOST_KEYS - Failure::ALL.len(), &n) {
                    unnamed = unnamed.saturating_sub(n);
                }
            }
            if unnamed > 0 {
                self.failures.add(FailureCause { failure, reason: String::new() }, MOST_KEYS, &unnamed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(names: usize, status: u16, latency_ns: u64) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for i in 0..names {
            let calls = snapshot.figures.requests.named(&format!("GET /{i}"));
            calls.due();
            calls.answered(status, latency_ns, latency_ns);
            snapshot.statuses.record(status);
        }
        snapshot
    }

    #[test]
    fn each_key_has_its_calls_second_by_second() {
        let mut all = Drilldown::default();
        let mut failing = second(1, 503, 2_000_000);
        failing.failures.record(Failure::Timeout, "no answer in 10s");
        for snapshot in [second(2, 200, 1_000_000), failing] {
            all.push(SECOND_NS, &snapshot, &OkStatus::default());
        }
        let statuses: Vec<_> = all.statuses.tracks().iter().map(|track| (track.key, track.cells.clone())).collect();
        assert_eq!(statuses, [(200, vec![2, 0]), (503, vec![0, 1])]);
        let [first, second] = all.requests.tracks() else { panic!("two names") };
        assert_eq!((first.key.as_str(), second.key.as_str()), ("GET /0", "GET /1"));
        assert_eq!(first.cells.iter().map(|calls| calls.not_ok).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(second.cells.iter().map(|calls| calls.ended).collect::<Vec<_>>(), [1, 0]);
        let p50 = first.cells[1].response.quantile(0.5).unwrap() as f64;
        assert!((p50 / 2e6 - 1.0).abs() < 0.008, "{p50}");
        assert_eq!(all.failures.tracks()[0].key.reason, "no answer in 10s");
        assert!(all.tags.tracks().is_empty() && all.tags.stretches().len() == 2);
        assert_eq!(all.failures.tracks()[0].cells, [0, 1]);
    }

    #[test]
    fn tags_have_tracks_of_their_own() {
        let mut all = Drilldown::default();
        let mut tagged = second(1, 200, 1_000_000);
        tagged.figures.tags.named("plan=pro").answered(503, 3_000_000, 3_000_000);
        for snapshot in [second(1, 200, 1_000_000), tagged] {
            all.push(SECOND_NS, &snapshot, &OkStatus::default());
        }
        let [track] = all.tags.tracks() else { panic!("one tag") };
        assert_eq!(track.key, "plan=pro");
        let counts: Vec<_> = track.cells.iter().map(|calls| (calls.ended, calls.not_ok)).collect();
        assert_eq!(counts, [(0, 0), (1, 1)]);
    }

    #[test]
    fn many_names_over_a_long_run_stay_bounded_and_lose_no_call() {
        let mut all = Drilldown::default();
        for i in 0..500 {
            all.push(SECOND_NS, &second(300, 200, 1_000 + i), &OkStatus::default());
        }
        let requests = &all.requests;
        assert!(requests.stretches().len() * requests.tracks().len() <= MOST_CELLS);
        assert_eq!(requests.stretches().iter().map(|stretch| stretch.length_ns).sum::<u64>(), 500 * SECOND_NS);
        let mut end = 0;
        for stretch in requests.stretches() {
            assert_eq!(stretch.start_ns, end);
            end += stretch.length_ns;
        }
        for track in requests.tracks() {
            assert_eq!(track.cells.len(), requests.stretches().len());
            assert_eq!(track.cells.iter().map(|calls| calls.ended).sum::<u64>(), 500);
            assert_eq!(track.cells.iter().map(|calls| calls.response.count()).sum::<u64>(), 500);
        }
        assert_eq!(all.statuses.stretches().len(), 500, "few keys keep their seconds");
    }

    #[test]
    fn reasons_and_statuses_beyond_the_limit_are_dropped_and_failures_are_not() {
        let mut all = Drilldown::default();
        for i in 0..200_u16 {
            let mut snapshot = second(1, i, 1000);
            snapshot.failures.record(Failure::Protocol, &format!("garbage {i}"));
            all.push(SECOND_NS, &snapshot, &OkStatus::default());
        }
        assert_eq!(all.statuses.tracks().len(), MOST_KEYS);
        assert!(all.failures.tracks().len() <= MOST_KEYS);
        let counted: u64 = all.failures.tracks().iter().flat_map(|track| &track.cells).sum();
        assert_eq!(counted, 200);
    }
}
