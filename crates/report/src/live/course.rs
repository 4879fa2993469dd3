//! The run over time, in columns as wide as the terminal allows: times by when calls were due, answers by when they
//! came.

use brunt_plan::plan::{Load, Plan};
use brunt_plan::profile::Profile;
use brunt_record::timeline::{DuePoint, FlowPoint, TICK_NS, Timeline};

/// The figures of one column, for a stretch of the run.
#[derive(Debug, Clone, Default)]
pub(super) struct Column {
    /// The 99th percentile of the response times of calls due in it, in nanoseconds.
    pub p99_ns: Option<u64>,
    /// Whether calls due in it have ended, and none of them well.
    pub is_lost: bool,
    /// The least time for which a call due in it has waited, in nanoseconds, if one waits.
    pub waited_ns: Option<u64>,
    /// Calls a second that ended in it, successful and others; `None` in the future.
    pub ended: Option<(f64, f64)>,
    /// Calls that waited at its end.
    pub waiting: f64,
    /// The due rate by the plan; `None` where the plan has none.
    pub planned: Option<f64>,
}

/// Calls that have not ended.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Open {
    pub calls: u64,
    pub oldest_ns: u64,
    /// The beginning of a stall, in nanoseconds of the measured part, if there is one.
    pub stalled_from_ns: Option<u64>,
}

/// The sources of the columns.
pub(super) struct Course<'a> {
    pub timeline: &'a Timeline,
    pub flow: &'a [FlowPoint],
    pub plan: &'a Plan,
    pub open: Open,
    pub now_ns: u64,
    /// The stretch that they show, in nanoseconds of the measured part.
    pub from_ns: u64,
    pub to_ns: u64,
}

impl Course<'_> {
    /// The stretch in `n` columns of the same width.
    pub(super) fn columns(&self, n: usize) -> Vec<Column> {
        let width = self.timeline.width_ns();
        let mut points: Vec<Option<&DuePoint>> = vec![None; self.flow.len()];
        for (start, point) in self.timeline.points() {
            if let Some(place) = points.get_mut(usize::try_from(start / width).unwrap_or(usize::MAX)) {
                *place = Some(point);
            }
        }
        let profile = match &self.plan.load {
            Load::Open { profile, .. } => Some(profile),
            Load::Closed {} | Load::Replay(_) => None,
        };
        let at = |column: usize| {
            let span = u128::from(self.to_ns - self.from_ns);
            self.from_ns + u64::try_from(span * column as u128 / n.max(1) as u128).unwrap_or(0)
        };
        (0..n).map(|column| self.column(at(column), at(column + 1), &points, profile)).collect()
    }

    fn column(&self, from: u64, to: u64, points: &[Option<&DuePoint>], profile: Option<&Profile>) -> Column {
        let mut column = Column { planned: profile.and_then(|profile| rate(profile, from, to)), ..Column::default() };
        if from >= self.now_ns {
            return column;
        }
        let width = self.timeline.width_ns();
        // A point belongs to the column in which it begins; a column without a beginning shows the point that it lies in.
        let (mut first, mut end) = (from.div_ceil(width), to.div_ceil(width));
        if end <= first {
            (first, end) = (from / width, from / width + 1);
        }
        let begins = first * width;
        let passed = (end * width).min(self.now_ns).saturating_sub(begins);
        let place = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let (first, end) = (place(first), place(end).min(points.len()));
        let due = merged(points.get(first..end).unwrap_or_default());
        if let Some(due) = &due {
            let times = due.response_times();
            column.p99_ns = times.quantile(0.99).map(|p99| p99.value);
            column.is_lost = due.ok == 0;
        }
        let mut calls = FlowPoint::default();
        self.flow.get(first..end).unwrap_or_default().iter().for_each(|point| calls.extend(point));
        // The rate of a point that has hardly begun would mean nothing.
        if passed >= width / 2 {
            let per_s = 1e9 / passed as f64;
            column.ended = Some((calls.ok * per_s, calls.not_ok * per_s));
        }
        self.add_open(&mut column, from, to);
        column.waiting += calls.waiting;
        column
    }

    /// Adds calls that wait now, and were due before the end of the column.
    fn add_open(&self, column: &mut Column, from: u64, to: u64) {
        let oldest_due = self.now_ns.saturating_sub(self.open.oldest_ns);
        if self.open.calls == 0 || to <= oldest_due {
            return;
        }
        let share = (to.min(self.now_ns) - oldest_due) as f64 / self.open.oldest_ns.max(1) as f64;
        column.waiting += self.open.calls as f64 * share.min(1.0);
        let is_oldest = from <= oldest_due;
        // A wait shorter than a column is not a shade, but the last dot of a steady run.
        let is_long = self.open.oldest_ns >= (to - from).max(self.timeline.width_ns());
        // The last completion is known to the tick, and calls due in that tick wait, too.
        let waits = |from_ns: u64| to > from_ns.saturating_sub(TICK_NS);
        if is_long && (is_oldest || self.open.stalled_from_ns.is_some_and(waits)) {
            let due = from.max(oldest_due);
            column.waited_ns = Some(self.now_ns.saturating_sub(due).max(1));
        }
    }
}

/// The sum of these points; `None` where no call was due.
fn merged(points: &[Option<&DuePoint>]) -> Option<DuePoint> {
    let mut merged: Option<DuePoint> = None;
    for point in points.iter().flatten() {
        match &mut merged {
            Some(merged) => merged.merge(point),
            None => merged = Some((*point).clone()),
        }
    }
    merged
}

/// The rate of a profile in a stretch; `None` where no calls are due.
fn rate(profile: &Profile, from: u64, to: u64) -> Option<f64> {
    let calls = |ns: u64| profile.calls_until(ns as f64 / 1e9);
    let rate = (calls(to) - calls(from)) * 1e9 / (to - from).max(1) as f64;
    (rate > 0.0).then_some(rate)
}
