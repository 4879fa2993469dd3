//! The run over time, in characters.

use std::fmt::Display;

use brunt_judge::summary::Summary;
use brunt_judge::verdict;
use brunt_plan::units::{ExactDuration, Number};
use brunt_record::histogram::AtLeast;
use brunt_record::series::Point;
use brunt_record::timeline::{DuePoint, Timeline};

use super::label;
use crate::chart;
use crate::numbers::duration;
use crate::style::Paint;

/// The most columns of a chart; longer runs have several points in each.
const MOST: usize = 50;

/// What one column shows.
struct Column {
    rate: f64,
    /// The worst of its points.
    p99_ns: Option<AtLeast<u64>>,
    spoiled: bool,
    /// The most users at the end of one of them.
    users: u64,
}

pub(super) fn section(summary: &Summary, paint: Paint) -> Vec<String> {
    let points = summary.run.series.points();
    if points.len() < 2 {
        return Vec::new();
    }
    let each = points.len().div_ceil(MOST);
    let timeline = &summary.total.timeline;
    let columns: Vec<_> = points.chunks(each).map(|points| Column::of(points, timeline)).collect();
    let length_ns: u64 = points.iter().take(each).map(|point| point.length_ns).sum();
    let each =
        if length_ns == brunt_record::SECOND_NS { "second".to_owned() } else { ExactDuration(length_ns).to_string() };
    let mut lines = vec![paint.strong(format!("Each {each}"))];

    let rates = || columns.iter().map(|column| column.rate.round());
    let (low, high) = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
    let blocks = paint.chart(chart::columns(rates().map(Some), high));
    lines.push(format!("{}{blocks}  {}/s", label("answered", paint), range(Number(low), Number(high))));
    let p99s = || columns.iter().filter_map(|column| column.p99_ns);
    let (low, high) = (p99s().min_by_key(|p99| p99.value), p99s().max_by_key(|p99| (p99.value, p99.at_least)));
    if let (Some(low), Some(high)) = (low, high) {
        let blocks =
            chart::columns(columns.iter().map(|column| column.p99_ns.map(|p99| p99.value as f64)), high.value as f64);
        let blocks = paint.chart(blocks);
        lines.push(format!("{}{blocks}  {}", label("response p99", paint), range(duration(low), duration(high))));
    }
    let users = || columns.iter().map(|column| column.users);
    if let (Some(low), Some(high)) = (users().min(), users().max().filter(|high| *high > 0)) {
        let blocks = paint.chart(chart::columns(users().map(|n| Some(n as f64)), high as f64));
        lines.push(format!("{}{blocks}  {}", label("users", paint), range(low, high)));
    }
    if columns.iter().any(|column| column.spoiled) {
        let marks: String = columns.iter().map(|column| if column.spoiled { '!' } else { ' ' }).collect();
        lines.push(format!("{}{}", label("spoiled", paint), paint.warning(marks.trim_end())));
    }
    lines
}

fn range(low: impl Display, high: impl Display) -> String {
    let (low, high) = (low.to_string(), high.to_string());
    if low == high { low } else { format!("{low} to {high}") }
}

impl Column {
    /// The worst 99th percentile is that of calls due in a stretch, or where that was not recorded, of those that ended in one.
    fn of(points: &[Point], timeline: &Timeline) -> Self {
        let length_ns: u64 = points.iter().map(|point| point.length_ns).sum();
        let answered: u64 = points.iter().map(|point| point.answered).sum();
        let (from, to) = (points.first().map_or(0, |first| first.start_ns), points.last().map_or(0, Point::end_ns));
        let mut due = DuePoint::default();
        timeline.points().filter(|(start, _)| (from..to).contains(start)).for_each(|(_, point)| due.merge(point));
        let ended = points.iter().filter_map(|point| point.response_quantile(0.99));
        let ended = ended.max_by_key(|p99| (p99.value, p99.at_least));
        Self {
            rate: if length_ns > 0 { answered as f64 * 1e9 / length_ns as f64 } else { 0.0 },
            p99_ns: if timeline.is_empty() { ended } else { due.response_times().quantile(0.99) },
            spoiled: points.iter().any(verdict::is_spoiled),
            users: points.iter().map(|point| point.users).max().unwrap_or(0),
        }
    }
}
