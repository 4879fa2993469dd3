//! The measured part in stretches as wide as percentiles need, each with the outcomes of its calls.

use brunt_judge::verdict;
use brunt_record::catalogue::Counter;
use brunt_record::series::Point;
use brunt_record::timeline::{DuePoint, FlowPoint, Timeline};

/// The calls that a stretch needs for meaningful percentiles.
const ENOUGH_CALLS: u64 = 20;
/// The fewest stretches of a run, however few calls it has.
const FEWEST: u64 = 10;
/// The most stretches that a screen can show.
const MOST: u64 = 240;

/// A stretch of the measured part.
#[derive(Debug, Clone, Default)]
pub(super) struct Stretch {
    /// When it begins and ends, in nanoseconds of the measured part.
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    /// Calls that were due in it; where that was not recorded, calls that ended in it.
    pub(super) calls: DuePoint,
    /// Calls that became due and ended in it, and that waited at its end.
    pub(super) flow: FlowPoint,
    /// Whether the generator spoiled its figures.
    pub(super) is_spoiled: bool,
}

impl Stretch {
    /// All stretches, in order.
    pub(super) fn all(timeline: &Timeline, series: &[Point]) -> Vec<Self> {
        let end = series.last().map_or(0, |point| point.start_ns + point.length_ns);
        let calls: u64 = timeline.points().map(|(_, point)| point.due()).sum();
        match timeline.flow(end, series.iter().map(Point::ended_ok)) {
            Some(flow) if calls > 0 && end > 0 => Self::by_due(timeline, series, &flow, calls, end),
            _ => Self::by_end(series),
        }
    }

    fn by_due(timeline: &Timeline, series: &[Point], flow: &[FlowPoint], calls: u64, end: u64) -> Vec<Self> {
        let width = width_of(timeline, calls, end);
        let mut points = timeline.points().peekable();
        let mut flow = flow.iter();
        let begins = (0..end).step_by(usize::try_from(width).unwrap_or(usize::MAX));
        let stretches = begins.map(|from_ns| {
            let to_ns = (from_ns + width).min(end);
            let mut stretch = Self { from_ns, to_ns, ..Self::default() };
            while let Some((_, point)) = points.next_if(|(at, _)| *at < to_ns) {
                stretch.calls.merge(point);
            }
            let each = usize::try_from((to_ns - from_ns).div_ceil(timeline.width_ns())).unwrap_or(usize::MAX);
            flow.by_ref().take(each).for_each(|point| stretch.flow.extend(point));
            let overlaps = |point: &&Point| point.start_ns < to_ns && from_ns < point.start_ns + point.length_ns;
            stretch.is_spoiled = series.iter().filter(overlaps).any(verdict::is_spoiled);
            stretch
        });
        without_a_rest(stretches.collect(), width)
    }

    /// The stretches of an older run, whose calls are not known by due time.
    fn by_end(series: &[Point]) -> Vec<Self> {
        let chunk = series.len().div_ceil(usize::try_from(MOST).unwrap_or(usize::MAX)).max(1);
        let mut waiting = 0_u64;
        let stretches = series.chunks(chunk).map(|points| {
            let from_ns = points.first().map_or(0, |point| point.start_ns);
            let mut stretch = Self { from_ns, ..Self::default() };
            for point in points {
                stretch.to_ns = point.start_ns + point.length_ns;
                stretch.is_spoiled |= verdict::is_spoiled(point);
                let due = point.numbers.get(Counter::Due);
                let ok = point.ended.max(point.answered).saturating_sub(point.not_ok);
                waiting = (waiting + due).saturating_sub(ok + point.not_ok);
                let flow = FlowPoint {
                    due: due as f64,
                    ok: point.numbers.ended_ok() as f64,
                    not_ok: point.not_ok as f64,
                    waiting: waiting as f64,
                };
                stretch.flow.extend(&flow);
                let calls = DuePoint {
                    ok,
                    failed: point.not_ok,
                    response: point.response.clone(),
                    bounds: point.response_bounds.clone(),
                    ..DuePoint::default()
                };
                stretch.calls.merge(&calls);
            }
            stretch
        });
        stretches.collect()
    }

    /// Its length in seconds.
    pub(super) fn seconds(&self) -> f64 {
        (self.to_ns - self.from_ns).max(1) as f64 / 1e9
    }
}

/// Joins a last stretch of less than half of the width with the one before: the rate of a moment would set the scale for all.
fn without_a_rest(mut stretches: Vec<Stretch>, width: u64) -> Vec<Stretch> {
    if stretches.len() > 1
        && let Some(rest) = stretches.pop_if(|last| (last.to_ns - last.from_ns) * 2 < width)
        && let Some(last) = stretches.last_mut()
    {
        last.to_ns = rest.to_ns;
        last.calls.merge(&rest.calls);
        last.flow.extend(&rest.flow);
        last.is_spoiled |= rest.is_spoiled;
    }
    stretches
}

/// The width of a stretch: a point of the timeline, or as many as it takes to have enough calls.
fn width_of(timeline: &Timeline, calls: u64, end: u64) -> u64 {
    let mut width = timeline.width_ns();
    while end / width > MOST
        || ((u128::from(calls) * u128::from(width) / u128::from(end)) < u128::from(ENOUGH_CALLS)
            && end / width > 2 * FEWEST)
    {
        width *= 2;
    }
    width
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_a_last_moment_sets_no_scale() {
        let stretch = |from_ns: u64, to_ns: u64, ok: f64| Stretch {
            from_ns,
            to_ns,
            flow: FlowPoint { ok, ..FlowPoint::default() },
            ..Stretch::default()
        };
        let cut = |length: u64| without_a_rest(vec![stretch(0, 100, 5.0), stretch(100, 100 + length, 1.0)], 100);
        let ends = |all: &[Stretch]| all.iter().map(|stretch| (stretch.to_ns, stretch.flow.ok)).collect::<Vec<_>>();
        assert_eq!(ends(&cut(1)), [(101, 6.0)]);
        assert_eq!(ends(&cut(50)), [(100, 5.0), (150, 1.0)]);
        assert_eq!(ends(&without_a_rest(vec![stretch(0, 1, 1.0)], 100)), [(1, 1.0)]);
    }
}
