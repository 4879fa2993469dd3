//! Outcomes of calls, by when they were due.
//!
//! A [`Timeline`] answers "what happened to the calls that were due then". Seconds of completions cannot: while a
//! target stands still nothing completes, and calls that complete afterwards were due before. Its points are sums, so a
//! point can be added to until its last call has ended.
//!
//! [`Timeline::merge`] is the only operation. It adds calls of other places and of later times alike, in any order and
//! grouping: it is commutative and associative. A point is [`TICK_NS`] wide, doubled as often as needed to stay within
//! [`MOST_POINTS`].
//!
//! ```
//! use brunt_record::time::Tick;
//! use brunt_record::timeline::{DueLog, TICK_NS};
//!
//! let mut log = DueLog::beginning_at(Tick::from_ns(1_000));
//! log.answered(Tick::from_ns(1_000), 5_000_000);
//! log.completed(Tick::from_ns(5_001_000));
//! let timeline = log.take();
//! let (start_ns, point) = timeline.points().next().unwrap();
//! assert_eq!((start_ns, point.due(), point.response.quantile(0.5)), (0, 1, Some(5_000_000)));
//! # assert_eq!(timeline.width_ns(), TICK_NS);
//! ```

mod due_log;
mod flow;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::histogram::{Censored, Histogram};
use crate::packed::Packed;

pub use due_log::DueLog;
pub use flow::FlowPoint;

/// The widest point that is read, in nanoseconds: 13 years. Widths double without overflow up to it.
const WIDEST_NS: u64 = TICK_NS << 32;

/// A written width, limited to valid ones.
pub(crate) fn bounded_width(written_ns: u64) -> u64 {
    written_ns.clamp(1, WIDEST_NS)
}

/// Width of a point, in nanoseconds, while there are few of them; silences are told apart at this width.
pub const TICK_NS: u64 = 100_000_000;
/// The most points. One more makes each twice as wide.
pub const MOST_POINTS: u64 = 1200;
/// The most ticks in which silences are known: a day. Later completions count in the last one.
const MOST_TICKS: u64 = 24 * 3600 * (1_000_000_000 / TICK_NS);
/// Ticks of a word of [`Ticks`].
const WORD: u64 = u32::BITS as u64;

/// Outcomes of the calls that were due in one stretch. `H` holds times: live while calls are recorded, packed at rest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(bound(serialize = "H: Serialize + Default + PartialEq"))]
pub struct DuePoint<H = Packed> {
    /// When it begins, in nanoseconds of the measured part.
    pub start_ns: u64,
    /// Calls that ended well.
    pub ok: u64,
    /// Calls that were answered and are not a success.
    pub refused: u64,
    /// Calls that failed, except those without a connection.
    pub failed: u64,
    /// Calls that failed since no connection could be made, or since theirs was lost.
    pub unreached: u64,
    /// Calls in flight when the drain ended.
    pub unfinished: u64,
    /// Calls that were never sent.
    pub unsent: u64,
    /// Calls that say nothing about the target, since their agent was lost or held them back. They have no times.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub untold: u64,
    /// Response times of calls that ended well, in nanoseconds.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub response: H,
    /// How long the others took that ended, in nanoseconds.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub failing: H,
    /// Lower bounds of the times of calls that never ended, in nanoseconds.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub bounds: H,
}

/// For `skip_serializing_if`.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(calls: &u64) -> bool {
    *calls == 0
}

/// For `skip_serializing_if`.
fn is_nothing<H: Default + PartialEq>(times: &H) -> bool {
    *times == H::default()
}

impl<H> DuePoint<H> {
    /// Calls that were due: each has ended in one way.
    pub const fn due(&self) -> u64 {
        self.ok + self.not_ok()
    }

    /// Calls that are not a success.
    pub const fn not_ok(&self) -> u64 {
        self.refused + self.failed + self.unreached + self.unfinished + self.unsent + self.untold
    }

    fn add_counts<T>(&mut self, other: &DuePoint<T>) {
        self.ok += other.ok;
        self.refused += other.refused;
        self.failed += other.failed;
        self.unreached += other.unreached;
        self.unfinished += other.unfinished;
        self.unsent += other.unsent;
        self.untold += other.untold;
    }
}

impl DuePoint {
    /// Adds the outcomes of other calls.
    pub fn merge(&mut self, other: &Self) {
        self.add_counts(other);
        for (times, more) in [
            (&mut self.response, &other.response),
            (&mut self.failing, &other.failing),
            (&mut self.bounds, &other.bounds),
        ] {
            if !more.is_empty() {
                *times = times.merged(more);
            }
        }
    }

    /// Response times of its calls, with calls without success apart.
    pub fn response_times(&self) -> Censored {
        Censored { known: self.response.unpack(), failed: self.failing.unpack(), bounds: self.bounds.unpack() }
    }

    /// The longest that a call is known to have taken, well or not, in nanoseconds.
    pub fn longest_ns(&self) -> u64 {
        [&self.response, &self.failing, &self.bounds]
            .into_iter()
            .filter_map(|times| times.quantile(1.0))
            .max()
            .unwrap_or(0)
    }

    /// Calls known to have taken at least `limit_ns`, in nanoseconds.
    pub fn count_from(&self, limit_ns: u64) -> u64 {
        [&self.response, &self.failing, &self.bounds].map(|times| count_from(times, limit_ns)).iter().sum()
    }

    /// Those among them that ended well.
    pub fn count_answered_from(&self, limit_ns: u64) -> u64 {
        count_from(&self.response, limit_ns)
    }
}

fn count_from(times: &Packed, limit_ns: u64) -> u64 {
    times.values().filter(|(value, _)| *value >= limit_ns).map(|(_, n)| n).sum()
}

impl DuePoint<Histogram> {
    fn pack(&self) -> DuePoint {
        let mut packed = DuePoint {
            response: Packed::from_histogram(&self.response),
            failing: Packed::from_histogram(&self.failing),
            bounds: Packed::from_histogram(&self.bounds),
            ..DuePoint::default()
        };
        packed.add_counts(self);
        packed
    }

    /// Forgets everything, keeps the memory.
    fn clear(&mut self) {
        let [mut response, mut failing, mut bounds] =
            [&mut self.response, &mut self.failing, &mut self.bounds].map(std::mem::take);
        for times in [&mut response, &mut failing, &mut bounds] {
            times.clear();
        }
        *self = Self { response, failing, bounds, ..Self::default() };
    }
}

/// The ticks in which a call completed, answered or failed; the gaps between them are silences. Words by number, with a
/// bit for each tick.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Ticks(BTreeMap<u64, u32>);

impl Ticks {
    fn mark(&mut self, tick: u64) {
        let tick = tick.min(MOST_TICKS - 1);
        *self.0.entry(tick / WORD).or_default() |= 1 << (tick % WORD);
    }

    fn merge(&mut self, other: &Self) {
        for (word, bits) in &other.0 {
            *self.0.entry(*word).or_default() |= bits;
        }
    }

    fn marked(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().flat_map(|(word, bits)| {
            (0..WORD).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * WORD + bit)
        })
    }
}

/// Points by when their calls were due, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredTimeline", into = "StoredTimeline")]
pub struct Timeline {
    width_ns: u64,
    points: BTreeMap<u64, DuePoint>,
    completed: Ticks,
}

/// A [`Timeline`] in its written form.
#[derive(Serialize, Deserialize)]
struct StoredTimeline {
    /// Width of each point, in nanoseconds.
    width_ns: u64,
    /// Points that have calls.
    points: Vec<DuePoint>,
    /// Stretches of 100 ms in which a call completed, 32 to a number: bit `i` of entry `n` stands for stretch `32 n + i`.
    completed: Ticks,
}

impl From<Timeline> for StoredTimeline {
    fn from(timeline: Timeline) -> Self {
        let Timeline { width_ns, points, completed } = timeline;
        Self { width_ns, points: points.into_values().collect(), completed }
    }
}

impl From<StoredTimeline> for Timeline {
    fn from(written: StoredTimeline) -> Self {
        let width_ns = bounded_width(written.width_ns);
        let points = written.points.into_iter().map(|point| (point.start_ns / width_ns, point)).collect();
        let mut completed = written.completed;
        completed.0.retain(|word, _| *word < MOST_TICKS / WORD);
        Self { width_ns, points, completed }
    }
}

impl Default for Timeline {
    fn default() -> Self {
        Self { width_ns: TICK_NS, points: BTreeMap::new(), completed: Ticks::default() }
    }
}

impl Timeline {
    /// Whether nothing was due, and nothing completed.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty() && self.completed.0.is_empty()
    }

    /// Width of each point, in nanoseconds.
    pub const fn width_ns(&self) -> u64 {
        self.width_ns
    }

    /// Points that have calls, each with its beginning, in nanoseconds of the measured part.
    pub fn points(&self) -> impl DoubleEndedIterator<Item = (u64, &DuePoint)> {
        self.points.values().map(|point| (point.start_ns, point))
    }

    /// Stretches of at least a tick without a completion, from the first completion to the last, in nanoseconds of the measured
    /// part. An end may be off by a tick.
    pub fn silences(&self) -> Vec<(u64, u64)> {
        let mut silences = Vec::new();
        let mut before = None;
        for tick in self.completed.marked() {
            if let Some(before) = before.filter(|before| before + 1 < tick) {
                silences.push(((before + 1) * TICK_NS, tick * TICK_NS));
            }
            before = Some(tick);
        }
        silences
    }

    /// Beginning of the first tick with a completion, in nanoseconds of the measured part; `None` without one.
    pub fn first_completion_ns(&self) -> Option<u64> {
        self.completed.marked().next().map(|tick| tick * TICK_NS)
    }

    /// End of the last tick with a completion, in nanoseconds of the measured part; 0 without one.
    pub fn last_completion_ns(&self) -> u64 {
        self.completed.marked().last().map_or(0, |tick| (tick + 1) * TICK_NS)
    }

    /// Adds calls of another place, or of a later time.
    pub fn merge(&mut self, other: &Self) {
        while self.width_ns < other.width_ns {
            self.widen();
        }
        for (place, point) in &other.points {
            self.add(place * other.width_ns / self.width_ns, point);
        }
        self.completed.merge(&other.completed);
        while self.points.last_key_value().is_some_and(|(place, _)| *place >= MOST_POINTS) {
            self.widen();
        }
    }

    /// Makes points twice as wide.
    fn widen(&mut self) {
        self.width_ns *= 2;
        for (place, point) in std::mem::take(&mut self.points) {
            self.add(place / 2, &point);
        }
    }

    fn add(&mut self, place: u64, point: &DuePoint) {
        let start_ns = place * self.width_ns;
        self.points.entry(place).or_insert_with(|| DuePoint { start_ns, ..DuePoint::default() }).merge(point);
    }
}
