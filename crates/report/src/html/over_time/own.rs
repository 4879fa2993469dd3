//! Figures of the protocol's or the script's own: a panel for each that charts have, by when its values were recorded.

use brunt_judge::breakdown::OwnBreakdown;
use brunt_record::figures::{OwnPoint, OwnStatistic, time_unit_ns};
use brunt_record::histogram::AtLeast;
use brunt_record::series::Point;

use super::super::shown::Shown;
use super::flow::round;
use crate::numbers::clean;
use crate::own::{self, text};
use crate::page::{Across, Label, Panel, Scale, Unit, steps};

/// Heights of a distribution, and of a single value.
const TIMES: f64 = 84.0;
const VALUE: f64 = 48.0;
/// The room above the greatest value.
const ROOM: f64 = 1.15;
/// The least range of an axis of times, so that noise looks flat.
const LEAST_RATIO: f64 = 10.0;
/// The most stretches that a screen can show.
const MOST: usize = 240;

/// The panels, in the order of the report.
pub(super) fn panels(shown: Shown<'_>, axis: Across) -> impl Iterator<Item = Panel> {
    let points = shown.summary.run.series.points();
    own::drawn(shown.summary).into_iter().filter_map(move |own| panel(own, points, axis))
}

/// The note on figures that have no room in the series.
pub(super) fn crowded(shown: Shown<'_>) -> Option<&'static str> {
    let is_crowded = shown.summary.run.series.is_own_crowded();
    is_crowded.then_some("too many figures: the last ones have no values over time")
}

/// The values of a figure in stretches of the series, each with its beginning and end.
fn stretches(name: &str, points: &[Point]) -> Vec<(u64, u64, OwnPoint)> {
    let stretch = |points: &[Point]| {
        let mut values = OwnPoint::default();
        points.iter().filter_map(|point| point.own.get(name)).for_each(|own| values.absorb(own));
        let (from, to) = (points.first().map_or(0, |point| point.start_ns), points.last().map_or(0, Point::end_ns));
        (from, to, values)
    };
    points.chunks(points.len().div_ceil(MOST).max(1)).map(stretch).collect()
}

/// A panel of one figure; nothing if no stretch has a value.
fn panel(own: &OwnBreakdown, points: &[Point], axis: Across) -> Option<Panel> {
    let (kind, unit) = (own.figures.kind, own.figures.unit.as_str());
    let stretches = stretches(&own.name, points);
    let value = |shown: OwnStatistic, (from, to, values): &(u64, u64, OwnPoint)| shown.in_point(values, to - from);
    let all: Vec<_> = OwnStatistic::of_kind(kind)
        .iter()
        .flat_map(|shown| stretches.iter().filter_map(|at| value(*shown, at)))
        .collect();
    let (least, most) = all.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), at: &AtLeast<f64>| {
        (least.min(at.value), most.max(at.value))
    });
    if all.is_empty() {
        return None;
    }
    let is_distribution = OwnStatistic::of_kind(kind).len() > 1;
    let time = time_unit_ns(unit).filter(|_| is_distribution);
    let (scale, height) = match time {
        Some(_) if most > 0.0 => {
            let low = least.max(most / 1e6);
            let missing = (LEAST_RATIO / (most / low)).max(1.0).sqrt();
            (Scale::logarithmic(low / missing / ROOM, most * missing * ROOM), TIMES)
        }
        _ => (Scale::linear(least.min(0.0), most.max(0.0) * ROOM), if is_distribution { TIMES } else { VALUE }),
    };
    let y = |value: f64| height * (1.0 - scale.share(value)).clamp(0.0, 1.0);
    let mut panel = Panel { title: title(own), note: note(own).to_owned(), height, ..Panel::default() };
    panel.lines = if let (Some(ns), true) = (time, scale.is_logarithmic) {
        scale.round(4).into_iter().map(|at| (y(at), Unit::Ns.tick(at * ns))).collect()
    } else {
        let of_shown = OwnStatistic::of_kind(kind).first().copied().unwrap_or(OwnStatistic::Last);
        let zero = std::iter::once((y(0.0), "0".to_owned()));
        let rounds = round(most, 2).into_iter();
        zero.chain(rounds.map(|at| (y(at), text(of_shown, unit, AtLeast::exactly(at))))).collect()
    };
    for shown in OwnStatistic::of_kind(kind) {
        let classes: &[&'static str] = match shown.percentile() {
            Some(percentile) => &["casing", percentile.name()],
            None => &["users"],
        };
        for class in classes {
            panel.plot.raw("<path class=\"").raw(class).raw("\" d=\"");
            let places =
                stretches.iter().map(|at| (axis.x(at.0), axis.x(at.1), value(*shown, at).map(|at| y(at.value))));
            steps(&mut panel.plot, places);
            panel.plot.raw("\"/>");
        }
        if let Some(whole) = shown.in_run(&own.figures, own.per_s) {
            let name = if is_distribution { format!("{} ", shown.name()) } else { "overall ".to_owned() };
            panel.labels.push(Label { class: "", y: y(whole.value), text: name + &text(*shown, unit, whole) });
        }
    }
    Some(panel)
}

/// `ttft`, `output_tokens a second`.
fn title(own: &OwnBreakdown) -> String {
    let is_counter = OwnStatistic::of_kind(own.figures.kind) == [OwnStatistic::Rate];
    format!("{}{}", clean(&own.name), if is_counter { " a second" } else { "" })
}

fn note(own: &OwnBreakdown) -> &'static str {
    match OwnStatistic::of_kind(own.figures.kind) {
        [OwnStatistic::P50, ..] => "p50 and p99, by when it was recorded",
        [OwnStatistic::Share] => "the share, by when it was recorded",
        _ => "by when it was recorded",
    }
}

/// The figures of each column or phrase: `ttft p50`, in a moment.
pub(super) fn values(shown: Shown<'_>) -> Vec<(usize, String, String, OwnStatistic)> {
    let all = own::drawn(shown.summary).into_iter().enumerate();
    let each = all.flat_map(|(at, own)| {
        OwnStatistic::of_kind(own.figures.kind)
            .iter()
            .map(move |shown| (at, shown.of_figure(&clean(&own.name)), own.figures.unit.clone(), *shown))
    });
    each.collect()
}

/// The text for the values of a moment, in the order of those that charts have: `ttft p50 10.4ms, ttft p99 11.6ms, output_tokens/s 808/s`.
pub(super) fn words(shown: Shown<'_>, own: &[(OwnPoint, u64)]) -> impl Iterator<Item = String> {
    let words = values(shown).into_iter().filter_map(|(at, what, unit, shown)| {
        let (values, length_ns) = own.get(at)?;
        let value = shown.in_point(values, *length_ns)?;
        let what = what.trim_end_matches("/s");
        Some(format!("{what} {}", text(shown, &unit, value)))
    });
    words.collect::<Vec<_>>().into_iter()
}
