//! The run over time, in characters: times and failures by when calls were due, answers by when they came.

use brunt_judge::summary::Summary;
use brunt_judge::verdict;
use brunt_plan::units::{Clock, ExactDuration, count};
use brunt_record::SECOND_NS;
use brunt_record::series::Point;
use brunt_record::timeline::{DuePoint, FlowPoint};

use super::fitting::{Rank, Section};
use super::label;
use crate::chart::{self, Scale};
use crate::headline::Toned;
use crate::style::Paint;

/// The most columns of a chart.
const MOST: u64 = 48;
/// The width of the labels before a chart.
const BEFORE: usize = 15;
/// The fewest calls that wait at once for a chart of them.
const WAITING: u64 = 20;
/// Values under this share of the highest are left out.
const LEAST_SHARE: f64 = 0.01;
/// The share of columns whose value is usual.
const USUAL: f64 = 0.9;
/// A peak this many times above the usual value is cut off, so that the rest is visible.
const PEAK: f64 = 3.0;
/// The room above the usual value in that case.
const ROOM: f64 = 2.0;
/// Signs of findings, as they stand before their sentences.
const SIGNS: [&str; 5] = ["①", "②", "③", "④", "⑤"];

/// The sign of a finding with a place in time; the first is number 0.
pub(crate) fn sign(number: usize) -> &'static str {
    SIGNS.get(number).copied().unwrap_or("")
}

/// The figures of one column.
#[derive(Clone, Default)]
struct Column {
    /// The length of the stretch of its due calls, in nanoseconds.
    due_ns: u64,
    /// Calls that were due in it.
    due: DuePoint,
    /// Percentiles of the response time, in nanoseconds: of calls due in it or, if that was not recorded, of calls that
    /// ended in it.
    p50: Option<u64>,
    p99: Option<u64>,
    /// Successful calls a second, by when they ended; where calls are not known by due time, all answered ones.
    ended: f64,
    /// Calls that were due and had not ended at its end.
    waiting: u64,
    users: u64,
    spoiled: bool,
}

pub(super) fn section(summary: &Summary, remarks: &[Toned], paint: Paint) -> Section {
    let (columns, is_ok_known) = columns(summary);
    let span = summary.run.measured_ns;
    if span < SECOND_NS {
        return Section::new("");
    }
    let is_by_due = !summary.total.timeline.is_empty();
    let title = if is_by_due { "By due" } else { "Over time" };
    let axis = format!("{}{}", paint.strong(format!("{title:<BEFORE$}")), paint.faint(axis(span, columns.len())));
    let mut section = Section::new(title).headed(axis);
    // Where calls have names, a reader looks for those first.
    let rank = if summary.breakdown.requests.is_empty() { Rank::Figure } else { Rank::Minor };
    let marks = marks_in_line(remarks, span, columns.len());
    section.add(rank, marks.map(|marks| format!("{}{marks}", " ".repeat(BEFORE))));
    let times: Vec<_> = columns.iter().flat_map(|column| [column.p50, column.p99]).flatten().collect();
    let scale = Scale::logarithmic(times.iter().copied());
    for (name, rank, of) in [("p50", Rank::Note, Column::p50 as fn(&Column) -> Option<u64>), ("p99", rank, Column::p99)]
    {
        let Some(scale) = &scale else { continue };
        let blocks: String = columns.iter().map(|column| column.block(scale, of(column))).collect();
        let range = format!("{}–{}, log", ExactDuration(scale.low()), ExactDuration(scale.high()));
        section.add(rank, [row(name, &blocks, &range, paint)]);
    }
    let mut linear = |name: &str, unit: &str, is_cut: bool, of: &dyn Fn(&Column) -> f64| {
        let most = columns.iter().map(of).fold(0.0, f64::max);
        // A negligible value is left out.
        let seen = |value: f64| (value >= most * LEAST_SHARE).then_some(value);
        let full = chart::usual(columns.iter().map(of), USUAL)
            .filter(|usual| is_cut && *usual > 0.0 && most > usual * PEAK)
            .map(|usual| usual * ROOM);
        let blocks = chart::columns(columns.iter().map(|column| seen(of(column))), full.unwrap_or(most));
        let range = match full {
            None => format!("0–{}{unit}", count(most.ceil() as u64)),
            Some(full) => format!("0–{}{unit}, ↑{}", short(full), short(most)),
        };
        section.add(rank, [row(name, &blocks, &range, paint)]);
    };
    linear(if is_ok_known { "ok" } else { "answered" }, "/s", true, &|column| column.ended);
    if columns.iter().any(|column| column.due.not_ok() > 0) {
        linear("failed", "/s", false, &|column| column.due.not_ok() as f64 * 1e9 / column.due_ns.max(1) as f64);
    }
    if summary.remarks.iter().any(|remark| remark.about.is_unsteady())
        && columns.iter().any(|column| column.waiting >= WAITING)
    {
        linear("waiting", "", false, &|column| column.waiting as f64);
    }
    if columns.iter().any(|column| column.users > 0) {
        linear("users", "", false, &|column| column.users as f64);
    }
    if columns.iter().any(|column| column.spoiled) {
        let marks: String = columns.iter().map(|column| if column.spoiled { '!' } else { ' ' }).collect();
        section.add(Rank::Minor, [format!("{}{}", label("spoiled", paint), paint.warning(marks.trim_end()))]);
    }
    section
}

/// A number in at most five characters: `4,500`, `12k`, `1.2M`.
fn short(n: f64) -> String {
    match n.round() as u64 {
        n @ 0..10_000 => count(n),
        n @ 10_000..1_000_000 => format!("{}k", n / 1_000),
        n => format!("{:.1}M", n as f64 / 1e6),
    }
}

fn row(name: &str, blocks: &str, range: &str, paint: Paint) -> String {
    format!("{}{} {}", label(name, paint), paint.chart(blocks), paint.faint(range))
}

impl Column {
    fn p50(&self) -> Option<u64> {
        self.p50
    }

    fn p99(&self) -> Option<u64> {
        self.p99
    }

    /// A dot marks due calls without any success.
    fn block(&self, scale: &Scale, value: Option<u64>) -> char {
        match value {
            Some(ns) if self.due.due() == 0 || self.due.ok > 0 => scale.block(ns),
            None if self.due.due() == 0 => ' ',
            _ => '·',
        }
    }
}

/// The measured part in columns of the same width, and whether it is known when calls succeeded.
fn columns(summary: &Summary) -> (Vec<Column>, bool) {
    let (span, points, timeline) = (summary.run.measured_ns, summary.run.series.points(), &summary.total.timeline);
    let recorded = if timeline.is_empty() { SECOND_NS } else { timeline.width_ns() };
    let n = (span / recorded).clamp(1, MOST);
    // Few are drawn wider.
    let each = usize::try_from(MOST / n).unwrap_or(1);
    let place =
        |at: u64| usize::try_from(u128::from(at) * u128::from(n) / u128::from(span.max(1))).unwrap_or(usize::MAX);
    let begin = |number: u64| u64::try_from(u128::from(span) * u128::from(number) / u128::from(n)).unwrap_or(u64::MAX);
    // Points of calls belong to the column in which they begin.
    let points_before = |number: u64| begin(number).div_ceil(timeline.width_ns().max(1));
    let mut columns: Vec<_> = (0..n)
        .map(|number| {
            let due_ns = (points_before(number + 1) - points_before(number)).max(1) * timeline.width_ns();
            Column { due_ns, ..Column::default() }
        })
        .collect();
    for (start, point) in timeline.points() {
        let last = columns.len() - 1;
        if let Some(column) = columns.get_mut(place(start).min(last)) {
            column.due.merge(point);
        }
    }
    let flow = timeline.flow(span, points.iter().map(Point::ended_ok)).filter(|_| !timeline.is_empty());
    for (number, column) in (0..n).zip(&mut columns) {
        let (from, to) = (begin(number), begin(number + 1));
        let times = column.due.response_times();
        (column.p50, column.p99) = (value(times.quantile(0.5)), value(times.quantile(0.99)));
        let within = |point: &&Point| point.start_ns < to && point.end_ns() > from;
        let mut worst: (Option<u64>, Option<u64>) = (None, None);
        for point in points.iter().filter(within) {
            let shared = point.end_ns().min(to) - point.start_ns.max(from);
            column.ended += point.numbers.ended_ok() as f64 * shared as f64 / point.length_ns.max(1) as f64;
            column.users = column.users.max(point.users);
            column.spoiled |= verdict::is_spoiled(point);
            worst.0 = worst.0.max(value(point.response_quantile(0.5)));
            worst.1 = worst.1.max(value(point.response_quantile(0.99)));
        }
        if timeline.is_empty() {
            (column.p50, column.p99) = worst;
        }
        if let Some(flow) = &flow {
            let place = |number: u64| usize::try_from(points_before(number)).unwrap_or(usize::MAX).min(flow.len());
            let mut calls = FlowPoint::default();
            flow.get(place(number)..place(number + 1)).unwrap_or_default().iter().for_each(|point| calls.extend(point));
            column.ended = calls.ok * 1e9 / column.due_ns.max(1) as f64;
            column.waiting = calls.waiting.round() as u64;
        } else {
            column.ended *= 1e9 / (to - from).max(1) as f64;
        }
    }
    (columns.into_iter().flat_map(|column| std::iter::repeat_n(column, each)).collect(), flow.is_some())
}

fn value(quantile: Option<brunt_record::histogram::AtLeast<u64>>) -> Option<u64> {
    quantile.map(|quantile| quantile.value)
}

/// The time at five places of the axis, at fewer if it is short.
fn axis(span: u64, columns: usize) -> String {
    const LABELS: usize = 4;
    let label = |number: usize| Clock(span / LABELS as u64 * number as u64).to_string();
    let last = label(LABELS);
    // The last one ends with the chart.
    let last_at = columns.saturating_sub(last.len());
    let mut line = String::new();
    for number in 0..LABELS {
        let (at, text) = (columns * number / LABELS, label(number));
        if (line.is_empty() || line.len() < at) && at + text.len() < last_at {
            line = format!("{line:<at$}{text}");
        }
    }
    format!("{line:<last_at$}{last}")
}

/// The stretches of findings in this many columns, which show a stretch of the measured part: `├──①──┤`. A later one
/// covers an earlier one.
pub(crate) fn marks(remarks: &[Toned], from_ns: u64, to_ns: u64, columns: usize) -> Vec<(usize, char)> {
    let mut marks = Vec::new();
    let with_place = remarks.iter().filter_map(Toned::stretch);
    for (number, (from, to)) in with_place.enumerate() {
        let Some(sign) = sign(number).chars().next() else { break };
        if to <= from_ns || columns == 0 {
            continue;
        }
        let span = u128::from(to_ns.saturating_sub(from_ns).max(1));
        let place = |ns: u64| (u128::from(ns.saturating_sub(from_ns)) * columns as u128 / span) as usize;
        let first = place(from).min(columns - 1);
        let last = place(to.saturating_sub(1)).clamp(first, columns - 1);
        let middle = usize::midpoint(first, last);
        marks.extend((first..=last).map(|at| match at {
            _ if at == middle => (at, sign),
            _ if at == first => (at, '├'),
            _ if at == last => (at, '┤'),
            _ => (at, '─'),
        }));
    }
    marks
}

/// The stretches of findings as a line of text.
fn marks_in_line(remarks: &[Toned], span: u64, columns: usize) -> Option<String> {
    let mut line = vec![' '; columns];
    for (at, mark) in marks(remarks, 0, span, columns) {
        if let Some(cell) = line.get_mut(at) {
            *cell = mark;
        }
    }
    let text: String = line.into_iter().collect();
    let text = text.trim_end();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_judge::remarks::Tone;

    fn at(from_s: u64, to_s: u64) -> Toned {
        Toned::about_stretch(Tone::Warning, from_s * SECOND_NS, to_s * SECOND_NS)
    }

    #[test]
    fn findings_stand_at_their_place() {
        let remarks = [at(2, 4), at(8, 8)];
        assert_eq!(marks_in_line(&remarks, 10 * SECOND_NS, 20).unwrap(), "    ├①─┤        ②");
        assert_eq!(marks_in_line(&[at(9, 30)], 10 * SECOND_NS, 10).unwrap(), "         ①", "it went on in the drain");
        assert_eq!(marks_in_line(&[], SECOND_NS, 10), None);
    }

    #[test]
    fn every_second_of_a_long_run_is_drawn() {
        let (plan, mut run) = brunt_judge::fixtures::run();
        run.series = brunt_record::series::Series::default();
        run.measured_ns = 300 * SECOND_NS;
        for _ in 0..300 {
            let mut part = brunt_record::snapshot::Snapshot::default();
            (0..10).for_each(|_| part.statuses.record(200));
            part.count_ends(&plan.ok_status);
            run.series.push(SECOND_NS, &part, &plan.ok_status);
        }
        let (columns, _) = columns(&Summary::new(plan, run));
        assert_eq!(columns.len(), 48);
        assert!(columns.iter().all(|column| (column.ended - 10.0).abs() < 1e-6));
    }

    #[test]
    fn a_steady_rate_of_failures_is_a_steady_row() {
        for seconds in [1, 3, 6, 10, 11] {
            let (plan, mut run) = brunt_judge::fixtures::run();
            run.measured_ns = seconds * SECOND_NS;
            let mut log = brunt_record::timeline::DueLog::default();
            (0..seconds * 100).for_each(|call| {
                log.failed(brunt_record::time::Tick::from_ns(call * SECOND_NS / 100), 1_000_000, false);
            });
            run.measured.timeline = log.take();
            for column in columns(&Summary::new(plan, run)).0 {
                let rate = column.due.not_ok() as f64 * 1e9 / column.due_ns as f64;
                assert!((rate - 100.0).abs() < 1e-6, "{seconds} s: {rate}");
            }
        }
    }

    #[test]
    fn the_axis_has_the_time() {
        assert_eq!(axis(20 * SECOND_NS, 40), "0:00      0:05      0:10      0:15  0:20");
        assert_eq!(axis(10 * SECOND_NS, 48), "0:00        0:02.5      0:05        0:07.5  0:10");
        assert_eq!(axis(SECOND_NS, 10), "0:00  0:01");
    }
}
