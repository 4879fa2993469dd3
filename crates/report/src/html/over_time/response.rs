//! Response times by when calls were due: a heat map of calls that ended well, their percentiles, and below them a hatched row of those
//! that did not.

use std::collections::BTreeMap;

use brunt_judge::thresholds::ThresholdResult;
use brunt_plan::threshold::{Figure, Statistic, Time};
use brunt_record::catalogue::Timing;
use brunt_record::histogram::Percentile;

use super::super::shown::Shown;
use super::super::stretches::Stretch;
use crate::markup::Html;
use crate::numbers::{clean, duration};
use crate::page::{Across, Label, Panel, Scale, Unit, steps};

const HEIGHT: f64 = 150.0;
/// How many rows of the heat map double the time.
const ROWS_AN_OCTAVE: f64 = 3.0;
/// The least range of the axis, so that noise looks flat.
const LEAST_RATIO: f64 = 10.0;
/// How far beyond all times a limit may lie and still be drawn.
const NEAR: f64 = 10.0;
/// Shades of calls, the strongest last, and of calls that did not end well.
const SHADES: [&str; 5] = ["h1", "h2", "h3", "h4", "h5"];
const FAILED_SHADES: [&str; 3] = ["f1", "f2", "f3"];
/// The height of the row of calls that did not end well, and the room above it.
const ROW: f64 = 12.0;
const ROOM: f64 = 4.0;
/// The height of the mark of stretches that brunt itself spoiled.
const MARK: f64 = 5.0;

/// How far down a time lies.
fn y(scale: Scale, ns: f64) -> f64 {
    HEIGHT * (1.0 - scale.share(ns.max(1.0)))
}

/// A limit on a time of all calls.
pub(in crate::html) struct Limit {
    pub(in crate::html) ns: f64,
    pub(in crate::html) words: String,
    pub(in crate::html) held: bool,
}

pub(super) fn panel(shown: Shown<'_>, stretches: &[Stretch], axis: Across) -> Option<Panel> {
    let limits = limits(shown);
    let scale = scale(stretches, &limits)?;
    let is_mixed = shown.summary.not_ok > 0;
    let mut panel = Panel {
        title: "Response time".to_owned(),
        note: format!("by when calls were due; darker: more calls{}", if is_mixed { "; hatched: not ok" } else { "" }),
        height: HEIGHT,
        lines: scale.round(9).into_iter().map(|ns| (y(scale, ns), Unit::Ns.tick(ns))).collect(),
        ..Panel::default()
    };
    cells(&mut panel.plot, stretches, axis, scale);
    let (whose, times) = match (&shown.summary.times.ok, &shown.summary.times.response) {
        (Some(ok), _) if is_mixed => ("ok ", Some(ok)),
        (_, all) => ("", all.as_ref()),
    };
    for percentile in [Percentile::P50, Percentile::P99] {
        let name = percentile.name();
        let line = |html: &mut Html| {
            let values = stretches.iter().map(|stretch| {
                let y = stretch.calls.response.quantile(percentile.share()).map(|ns| y(scale, ns as f64));
                (axis.x(stretch.from_ns), axis.x(stretch.to_ns), y)
            });
            steps(html, values);
        };
        for class in ["casing", name] {
            panel.plot.raw("<path class=\"").raw(class).raw("\" d=\"");
            line(&mut panel.plot);
            panel.plot.raw("\"/>");
        }
        if let Some(value) = times.and_then(|times| times.quantile(percentile)) {
            let text = format!("{whose}{name} {}", duration(value));
            panel.labels.push(Label { class: "", y: y(scale, value.value as f64), text });
        }
    }
    for limit in limits.iter().filter(|limit| scale.holds(limit.ns)) {
        let y = y(scale, limit.ns);
        panel.plot.raw("<path class=\"limit\" d=\"M0 ").place(y).raw("H1000\"/>");
        let (sign, class) = if limit.held { ("✓", "good") } else { ("✗", "bad") };
        panel.labels.push(Label { class, y, text: format!("{sign} {}", limit.words) });
    }
    spoiled(&mut panel, stretches, axis);
    not_ok(&mut panel, stretches, axis);
    Some(panel)
}

/// Marks the stretches that brunt itself spoiled.
fn spoiled(panel: &mut Panel, stretches: &[Stretch], axis: Across) {
    let marked: Vec<_> = stretches.iter().filter(|stretch| stretch.is_spoiled).collect();
    if marked.is_empty() {
        return;
    }
    panel.plot.raw("<path class=\"spoiled\" d=\"");
    for stretch in marked {
        let (x, end) = (axis.x(stretch.from_ns), axis.x(stretch.to_ns));
        panel.plot.raw("M").place(x).raw(" ").place(HEIGHT - MARK).raw("h").place(end - x).raw("v").place(MARK);
        panel.plot.raw("h-").place(end - x).raw("z");
    }
    panel.plot.raw("\"/>");
    panel.labels.push(Label { class: "faint", y: HEIGHT - MARK / 2.0, text: "spoiled by brunt itself".to_owned() });
}

/// The row of calls that did not end well: the darker the more, and hatched, so that it is told from the others without colours.
fn not_ok(panel: &mut Panel, stretches: &[Stretch], axis: Across) {
    let of = |stretch: &Stretch| {
        let others = stretch.calls.failing.values().chain(stretch.calls.bounds.values());
        others.map(|(_, n)| n).sum::<u64>()
    };
    let most = stretches.iter().map(of).max().unwrap_or(0);
    if most == 0 {
        return;
    }
    let top = HEIGHT + ROOM;
    let row = |path: &mut Html, stretch: &Stretch| {
        let (x, end) = (axis.x(stretch.from_ns), axis.x(stretch.to_ns));
        path.raw("M").place(x).raw(" ").place(top).raw("h").place(end - x).raw("v").place(ROW);
        path.raw("h-").place(end - x).raw("z");
    };
    let mut all = Html::default();
    for (number, class) in FAILED_SHADES.iter().enumerate() {
        let mut path = Html::default();
        for stretch in stretches.iter().filter(|stretch| shade(of(stretch), most, FAILED_SHADES.len()) == number + 1) {
            row(&mut path, stretch);
        }
        if path != Html::default() {
            panel.plot.raw("<path class=\"").raw(class).raw("\" d=\"").html(&path).raw("\"/>");
            all.html(&path);
        }
    }
    panel.plot.raw("<defs><pattern id=\"hatch-of-failed\" width=\"9\" height=\"6\" patternUnits=\"userSpaceOnUse\"><path d=\"M0 6L9 0\"/></pattern></defs><path class=\"hatched\" d=\"");
    panel.plot.html(&all).raw("\"/>");
    panel.height = top + ROW;
    panel.labels.push(Label { class: "orange", y: top + ROW / 2.0, text: "not ok".to_owned() });
}

/// Which of so many shades stands for `n` calls, where `most` have the darkest: from 1; 0 without calls.
fn shade(n: u64, most: u64, shades: usize) -> usize {
    ((n as f64 / most.max(1) as f64).sqrt() * shades as f64).ceil() as usize
}

/// The limits on times of all calls.
pub(in crate::html) fn limits(shown: Shown<'_>) -> Vec<Limit> {
    let limit = |result: &ThresholdResult| {
        let threshold = result.condition.threshold()?;
        let is_of_all = threshold.subject().is_none() && threshold.selection().is_none();
        let of_times = |time, statistic| {
            matches!(time, Time::Usual | Time::Recorded(Timing::Response))
                && matches!(statistic, Statistic::Quantile(_) | Statistic::Mean | Statistic::Max)
        };
        let is_drawn =
            is_of_all && matches!(threshold.measure(), Figure::Time(time, statistic) if of_times(time, statistic));
        is_drawn.then(|| Limit {
            ns: threshold.limit(),
            words: clean(threshold.to_string().trim()).into_owned(),
            held: result.held,
        })
    };
    shown.summary.thresholds.iter().filter_map(limit).collect()
}

/// A scale for every call that ended well, and for each limit near them.
fn scale(stretches: &[Stretch], limits: &[Limit]) -> Option<Scale> {
    let mut ends: Option<(u64, u64)> = None;
    for calls in stretches.iter().map(|stretch| &stretch.calls) {
        let (Some(low), Some(high)) = (calls.response.quantile(0.0), calls.response.quantile(1.0)) else { continue };
        ends = Some(ends.map_or((low, high), |(least, most)| (least.min(low), most.max(high))));
    }
    let (low, high) = ends?;
    let (mut low, mut high) = (low.max(1) as f64, high.max(1) as f64);
    let near = low / NEAR..=high * NEAR;
    for limit in limits.iter().filter(|limit| near.contains(&limit.ns)) {
        (low, high) = (low.min(limit.ns), high.max(limit.ns));
    }
    let missing = (LEAST_RATIO / (high / low)).max(1.0).sqrt();
    Some(Scale::logarithmic((low / missing / 1.15).max(0.5), high * missing * 1.15))
}

/// Draws calls that ended well as cells, the darker the more.
fn cells(html: &mut Html, stretches: &[Stretch], axis: Across, scale: Scale) {
    let row = |ns: u64| ((ns.max(1) as f64).log2() * ROWS_AN_OCTAVE).floor() as u32;
    let columns: Vec<BTreeMap<u32, u64>> = stretches
        .iter()
        .map(|stretch| {
            let mut rows = BTreeMap::new();
            stretch.calls.response.values().for_each(|(ns, n)| *rows.entry(row(ns)).or_insert(0) += n);
            rows
        })
        .collect();
    let most = columns.iter().flat_map(BTreeMap::values).max().copied().unwrap_or(0);
    let edge = |row: u32| y(scale, (f64::from(row) / ROWS_AN_OCTAVE).exp2()).clamp(0.0, HEIGHT);
    for (number, class) in SHADES.iter().enumerate() {
        let mut path = Html::default();
        for (stretch, rows) in stretches.iter().zip(&columns) {
            let (x, width) = (axis.x(stretch.from_ns), axis.x(stretch.to_ns) - axis.x(stretch.from_ns));
            for (row, _) in rows.iter().filter(|(_, n)| shade(**n, most, SHADES.len()) == number + 1) {
                let (top, bottom) = (edge(row + 1), edge(*row));
                path.raw("M").place(x).raw(" ").place(top).raw("h").place(width).raw("v").place(bottom - top);
                path.raw("h-").place(width).raw("z");
            }
        }
        if path != Html::default() {
            html.raw("<path class=\"").raw(class).raw("\" d=\"").html(&path).raw("\"/>");
        }
    }
}
