//! Response times as the page draws them: of the calls that were due in each stretch.

use brunt_record::timeline::{DuePoint, Timeline};
use schemars::JsonSchema;
use serde::Serialize;

use super::distribution::Bound;
use crate::json::SeriesPoint;

/// The calls that a stretch should have for percentiles to say something of it.
const ENOUGH_CALLS: u64 = 20;
/// The fewest stretches of a run, however few calls it has.
const FEWEST: u64 = 10;
/// The most stretches: what a screen can show apart.
const MOST: u64 = 600;

/// Columns of figures, one row a stretch. A call that failed counts as one that would have taken longer than it did.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct ByDue {
    start_ms: Vec<u64>,
    length_ms: Vec<u64>,
    /// The rows that the generator spoiled.
    spoiled: Vec<usize>,
    p50_ns: Vec<Option<Bound>>,
    p90_ns: Vec<Option<Bound>>,
    p99_ns: Vec<Option<Bound>>,
    max_ns: Vec<Option<Bound>>,
}

impl ByDue {
    /// Those of a timeline, beside the run's series; none of a run that has no timeline.
    pub(super) fn from_timeline(timeline: &Timeline, series: &[SeriesPoint]) -> Option<Self> {
        let end = series.last().map(|point| point.start_ns + point.length_ns)?;
        let calls: u64 = timeline.points().map(|(_, point)| point.due()).sum();
        if calls == 0 || end == 0 {
            return None;
        }
        let width = width_of(timeline, calls, end);
        let mut columns = Self::default();
        let mut points = timeline.points().peekable();
        for start in (0..end).step_by(usize::try_from(width).unwrap_or(usize::MAX)) {
            let stop = (start + width).min(end);
            let mut stretch = DuePoint::default();
            while let Some((_, point)) = points.next_if(|(at, _)| *at < stop) {
                stretch.merge(point);
            }
            let overlaps = |point: &&SeriesPoint| point.start_ns < stop && start < point.start_ns + point.length_ns;
            columns.push(start, stop, &stretch, series.iter().filter(overlaps).any(|point| point.spoiled));
        }
        Some(columns)
    }

    fn push(&mut self, start_ns: u64, stop_ns: u64, stretch: &DuePoint, is_spoiled: bool) {
        if is_spoiled {
            self.spoiled.push(self.start_ms.len());
        }
        self.start_ms.push(start_ns / 1_000_000);
        self.length_ms.push((stop_ns - start_ns) / 1_000_000);
        let [p50, p90, p99, max] = stretch.response_times().quantiles([0.5, 0.9, 0.99, 1.0]);
        for (column, value) in
            [(&mut self.p50_ns, p50), (&mut self.p90_ns, p90), (&mut self.p99_ns, p99), (&mut self.max_ns, max)]
        {
            column.push(value.map(Bound));
        }
    }
}

/// How long a stretch is: a point of the timeline, or so many that it has calls enough.
fn width_of(timeline: &Timeline, calls: u64, end: u64) -> u64 {
    let mut width = timeline.width_ns();
    while end / width > MOST || (calls * width / end < ENOUGH_CALLS && end / width > 2 * FEWEST) {
        width *= 2;
    }
    width
}
