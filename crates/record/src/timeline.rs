//! What became of calls, by when they were due.
//!
//! A [`Timeline`] answers "what happened to the calls that were due then", which seconds of completions cannot: while a target
//! stands still nothing completes, and what completes afterwards was due before. Its points are sums, so that a point may be
//! added to until its last call has ended.
//!
//! [`Timeline::merge`] is the only operation. It adds what happened elsewhere and what happened later alike, in any order
//! and grouping: it is commutative and associative. A point is [`TICK_NS`] wide, and twice as wide as often as it takes to
//! stay within [`MOST_POINTS`].
//!
//! ```
//! use brunt_record::timeline::{DueLog, TICK_NS};
//!
//! let mut log = DueLog::beginning_at(1_000);
//! log.answered(1_000, 5_000_000);
//! log.completed(5_001_000);
//! let timeline = log.take();
//! let (start_ns, point) = timeline.points().next().unwrap();
//! assert_eq!((start_ns, point.due(), point.response.quantile(0.5)), (0, 1, Some(5_000_000)));
//! # assert_eq!(timeline.width_ns(), TICK_NS);
//! ```

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::histogram::{Censored, Histogram};
use crate::packed::Packed;

/// Width of a point, in nanoseconds, while there are few of them; silences are told apart at this width.
pub const TICK_NS: u64 = 100_000_000;
/// The most points. One more makes each twice as wide.
pub const MOST_POINTS: u64 = 1200;
/// The most ticks that silences are known of: a day. What completes later counts as the last one.
const MOST_TICKS: u64 = 24 * 3600 * (1_000_000_000 / TICK_NS);
/// Ticks of a word of [`Ticks`].
const WORD: u64 = u32::BITS as u64;

/// What became of the calls that were due in one stretch. `H` holds times: live while calls are recorded, packed at rest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(bound(serialize = "H: Serialize + Default + PartialEq"))]
#[schemars(bound = "H: JsonSchema + Default + Serialize + PartialEq")]
pub struct DuePoint<H = Packed> {
    /// When it begins, in nanoseconds of the measured part.
    pub start_ns: u64,
    /// Calls that ended well.
    pub ok: u64,
    /// Calls that were answered and are not a success.
    pub refused: u64,
    /// Calls that failed, those without a connection apart.
    pub failed: u64,
    /// Calls that failed since no connection could be made, or since theirs was lost.
    pub unreached: u64,
    /// Calls in flight when the drain ended.
    pub unfinished: u64,
    /// Calls that were never sent.
    pub unsent: u64,
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
        self.refused + self.failed + self.unreached + self.unfinished + self.unsent
    }

    fn add_counts<T>(&mut self, other: &DuePoint<T>) {
        self.ok += other.ok;
        self.refused += other.refused;
        self.failed += other.failed;
        self.unreached += other.unreached;
        self.unfinished += other.unfinished;
        self.unsent += other.unsent;
    }
}

impl DuePoint {
    /// Adds what happened to other calls.
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

    /// Response times of its calls, those of calls without success apart.
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

    /// Calls known to have taken at least so long, in nanoseconds.
    pub fn count_from(&self, limit_ns: u64) -> u64 {
        let of = |times: &Packed| times.values().filter(|(value, _)| *value >= limit_ns).map(|(_, n)| n).sum::<u64>();
        of(&self.response) + of(&self.failing) + of(&self.bounds)
    }
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

/// The ticks in which a call completed, answered or failed: what is between them is silence. By the number of a word, a bit
/// for each of its ticks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Written", into = "Written")]
#[schemars(with = "Written")]
pub struct Timeline {
    width_ns: u64,
    points: BTreeMap<u64, DuePoint>,
    completed: Ticks,
}

/// A [`Timeline`] as it is written down.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Timeline")]
struct Written {
    /// Width of each point, in nanoseconds.
    width_ns: u64,
    /// Points that have calls.
    points: Vec<DuePoint>,
    /// Stretches of 100 ms in which a call completed, 32 to a number: bit `i` of entry `n` stands for stretch `32 n + i`.
    completed: Ticks,
}

impl From<Timeline> for Written {
    fn from(timeline: Timeline) -> Self {
        let Timeline { width_ns, points, completed } = timeline;
        Self { width_ns, points: points.into_values().collect(), completed }
    }
}

impl From<Written> for Timeline {
    fn from(written: Written) -> Self {
        let width_ns = written.width_ns.max(1);
        let points = written.points.into_iter().map(|point| (point.start_ns / width_ns, point)).collect();
        Self { width_ns, points, completed: written.completed }
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

    /// Points that have calls, each with when it begins, in nanoseconds of the measured part.
    pub fn points(&self) -> impl DoubleEndedIterator<Item = (u64, &DuePoint)> {
        self.points.values().map(|point| (point.start_ns, point))
    }

    /// Leaves the distributions of times out: counts stay.
    pub fn leave_histograms_out(&mut self) {
        for point in self.points.values_mut() {
            (point.response, point.failing, point.bounds) = Default::default();
        }
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

    /// Beginning of the first tick in which a call completed, in nanoseconds of the measured part; none where none did.
    pub fn first_completion_ns(&self) -> Option<u64> {
        self.completed.marked().next().map(|tick| tick * TICK_NS)
    }

    /// End of the last tick in which a call completed, in nanoseconds of the measured part; 0 where none did.
    pub fn last_completion_ns(&self) -> u64 {
        self.completed.marked().last().map_or(0, |tick| (tick + 1) * TICK_NS)
    }

    /// Adds what happened elsewhere, or later.
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

/// The most points beside the current one that a [`DueLog`] holds live.
const MOST_LIVE: usize = 64;
/// The most empty points that it keeps.
const MOST_SPARE: usize = 4;

/// Where a worker records calls by when they were due. Times are nanoseconds on its run's clock.
#[derive(Debug, Default)]
pub struct DueLog {
    /// When the measured part began.
    begin: u64,
    /// The point that was added to last, with its tick.
    current: (u64, DuePoint<Histogram>),
    /// The others since the last [`DueLog::take`].
    others: Vec<(u64, DuePoint<Histogram>)>,
    /// Empty points, whose memory is used again.
    spare: Vec<DuePoint<Histogram>>,
    completed: Ticks,
    /// The tick that was marked last as one with a completion.
    marked: Option<u64>,
    /// What did not fit into `others`.
    packed: Timeline,
}

impl DueLog {
    /// A log of a measured part that began at `begin`.
    pub fn beginning_at(begin: u64) -> Self {
        Self { begin, ..Self::default() }
    }

    /// The tick that `at` lies in: when it begins, and when it ends.
    #[inline]
    pub const fn tick_around(&self, at: u64) -> (u64, u64) {
        let begins = self.begin + self.tick_of(at) * TICK_NS;
        (begins, begins + TICK_NS)
    }

    #[inline]
    const fn tick_of(&self, at: u64) -> u64 {
        at.saturating_sub(self.begin) / TICK_NS
    }

    /// The point of calls due at `due`.
    #[inline]
    fn point(&mut self, due: u64) -> &mut DuePoint<Histogram> {
        let tick = self.tick_of(due);
        if self.current.0 != tick {
            self.switch_to(tick);
        }
        &mut self.current.1
    }

    /// Makes the point of a tick the current one.
    #[cold]
    fn switch_to(&mut self, tick: u64) {
        if let Some(place) = self.others.iter_mut().find(|(of, _)| *of == tick) {
            return std::mem::swap(&mut self.current, place);
        }
        if self.others.len() >= MOST_LIVE {
            self.pack();
        }
        let fresh = (tick, self.spare.pop().unwrap_or_default());
        self.others.push(std::mem::replace(&mut self.current, fresh));
    }

    /// A call has ended well that was due at `due`, after so many nanoseconds.
    #[inline]
    pub fn answered(&mut self, due: u64, response_ns: u64) {
        let point = self.point(due);
        point.ok += 1;
        point.response.record(response_ns);
    }

    /// Calls have ended well that were all due in the tick of `due`, after these times.
    pub fn answered_all(&mut self, due: u64, responses: &Histogram) {
        let point = self.point(due);
        point.ok += responses.count();
        point.response.merge(responses);
    }

    /// A call was answered, and is not a success.
    pub fn refused(&mut self, due: u64, response_ns: u64) {
        let point = self.point(due);
        point.refused += 1;
        point.failing.record(response_ns);
    }

    /// A call has failed; `is_unreached` if it had no connection, or lost it.
    pub fn failed(&mut self, due: u64, response_ns: u64, is_unreached: bool) {
        let point = self.point(due);
        *(if is_unreached { &mut point.unreached } else { &mut point.failed }) += 1;
        point.failing.record(response_ns);
    }

    /// So many calls have not ended after so long.
    pub fn unfinished(&mut self, due: u64, bound_ns: u64, calls: u64) {
        let point = self.point(due);
        point.unfinished += calls;
        point.bounds.record_n(bound_ns, calls);
    }

    /// So many calls were never sent, and had waited for so long.
    pub fn unsent(&mut self, due: u64, bound_ns: u64, calls: u64) {
        let point = self.point(due);
        point.unsent += calls;
        point.bounds.record_n(bound_ns, calls);
    }

    /// A call completed at `at`: answered, or failed by what the target did.
    #[inline]
    pub fn completed(&mut self, at: u64) {
        let tick = self.tick_of(at);
        if self.marked != Some(tick) {
            self.marked = Some(tick);
            self.completed.mark(tick);
        }
    }

    fn pack(&mut self) {
        let current = std::mem::take(&mut self.current);
        for (tick, mut point) in self.others.drain(..).chain([current]) {
            if point.due() > 0 {
                let one = Timeline { points: [(tick, point.pack())].into(), ..Timeline::default() };
                self.packed.merge(&one);
                point.clear();
            }
            if self.spare.len() < MOST_SPARE {
                self.spare.push(point);
            }
        }
    }

    /// Hands over what was recorded since the last time.
    pub fn take(&mut self) -> Timeline {
        self.pack();
        self.marked = None;
        let completed = std::mem::take(&mut self.completed);
        Timeline { completed, ..std::mem::take(&mut self.packed) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::SECOND_NS;

    /// When a call was due, how it ended, and how long it took.
    type Call = (u64, u8, u64);

    fn timeline(calls: &[Call]) -> Timeline {
        let mut log = DueLog::default();
        for &(due, kind, took) in calls {
            match kind {
                0..=3 => log.answered(due, took),
                4 => log.refused(due, took),
                5 => log.failed(due, took, took % 2 == 0),
                6 => log.unfinished(due, took, 1),
                _ => log.unsent(due, took, 3),
            }
            if kind < 6 {
                log.completed(due + took);
            }
        }
        log.take()
    }

    fn merged<'a>(timelines: impl IntoIterator<Item = &'a Timeline>) -> Timeline {
        let mut all = Timeline::default();
        timelines.into_iter().for_each(|one| all.merge(one));
        all
    }

    fn calls() -> impl Strategy<Value = Vec<Call>> {
        // Up to a long run, so that points are widened.
        let run = prop_oneof![Just(SECOND_NS), Just(100 * SECOND_NS), Just(100_000 * SECOND_NS)];
        run.prop_flat_map(|run| prop::collection::vec((0..run, 0_u8..8, 0..SECOND_NS), 0..80))
    }

    proptest! {
        #[test]
        fn merging_is_commutative_and_associative(a in calls(), b in calls(), c in calls()) {
            let [a, b, c] = [a, b, c].map(|calls| timeline(&calls));
            prop_assert_eq!(merged([&a, &b]), merged([&b, &a]));
            let (left, right) = (merged([&merged([&a, &b]), &c]), merged([&a, &merged([&b, &c])]));
            prop_assert_eq!(&left, &right);
            prop_assert!(left.points.len() as u64 <= MOST_POINTS);
        }

        #[test]
        fn however_calls_are_dealt_out_the_timeline_is_the_same(calls in calls(), places in 1_usize..5) {
            let mut parts = vec![Vec::new(); places];
            for (at, call) in calls.iter().enumerate() {
                parts[at % places].push(*call);
            }
            let parts: Vec<_> = parts.iter().map(|part| timeline(part)).collect();
            let whole = timeline(&calls);
            prop_assert_eq!(merged(&parts), merged([&whole]));
            let due: u64 = calls.iter().map(|(_, kind, _)| if *kind == 7 { 3 } else { 1 }).sum();
            prop_assert_eq!(whole.points().map(|(_, point)| point.due()).sum::<u64>(), due);
        }

        #[test]
        fn it_is_read_back_as_it_was_written(calls in calls()) {
            let written = timeline(&calls);
            let text = serde_json::to_vec(&written).unwrap();
            prop_assert_eq!(serde_json::from_slice::<Timeline>(&text).unwrap(), written);
        }
    }

    #[test]
    fn silences_lie_between_completions() {
        let mut log = DueLog::beginning_at(7);
        for at in (0..20).chain(50..60).chain(62..70) {
            log.completed(7 + at * TICK_NS);
        }
        let timeline = log.take();
        let ticks: Vec<_> = timeline.silences().iter().map(|(from, to)| (from / TICK_NS, to / TICK_NS)).collect();
        assert_eq!(ticks, [(20, 50), (60, 62)]);
        assert_eq!(timeline.last_completion_ns(), 70 * TICK_NS);
    }

    /// A silence of 300 ms in three hours.
    #[test]
    fn a_long_run_hides_no_silence() {
        let mut all = Timeline::default();
        let mut log = DueLog::default();
        for second in 0..3 * 3600 {
            for tick in 0..10 {
                if second != 7000 || !(4..7).contains(&tick) {
                    log.answered(second * SECOND_NS + tick * TICK_NS, 1_000_000);
                    log.completed(second * SECOND_NS + tick * TICK_NS);
                }
            }
            all.merge(&log.take());
        }
        assert_eq!(all.silences(), [(7000 * SECOND_NS + 4 * TICK_NS, 7000 * SECOND_NS + 7 * TICK_NS)]);
        assert!(all.points().count() as u64 <= MOST_POINTS && all.width_ns() == 128 * TICK_NS);
    }
}
