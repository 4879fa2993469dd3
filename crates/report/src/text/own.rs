//! Figures that a protocol measures by itself, or that a script declares: times in a table, each other figure in a line.

use brunt_judge::breakdown::OwnBreakdown;
use brunt_judge::summary::Summary;
use brunt_plan::units::{Duration, Number};
use brunt_record::figures::{OwnFigures, OwnKind};
use brunt_record::histogram::{AtLeast, Percentile};

use super::fitting::{Rank, Section};
use crate::columns::named;
use crate::numbers::{bound, brief, count, percent};
use crate::style::Paint;

/// The widths of names, of how often a figure was recorded, and of times.
const NAME: usize = 20;
const TIMES: usize = 9;
const COLUMN: usize = 10;
/// The percentiles of times.
const SHOWN: [Percentile; 4] = [Percentile::P50, Percentile::P90, Percentile::P99, Percentile::P99_9];
/// The most figures of a script.
const MOST_ROWS: usize = 25;

/// Whether the figures are a protocol's, and not a script's.
pub(crate) fn are_of_protocol(summary: &Summary) -> bool {
    !summary.plan.own.is_empty() && !summary.breakdown.own.is_empty()
}

/// What such figures are called.
pub(crate) fn title(summary: &Summary) -> String {
    if are_of_protocol(summary) {
        format!("Figures of {}", summary.plan.target.scheme)
    } else {
        "Figures of the script".to_owned()
    }
}

/// The section; empty without such figures.
pub(super) fn section(summary: &Summary, paint: Paint, verbose: bool) -> Section {
    let all: Vec<_> = summary.breakdown.own.iter().filter(|own| verbose || !own.is_minor).collect();
    let name = title(summary);
    let title = paint.strong(format!("{name:<NAME$}"));
    let shown = all.len().min(MOST_ROWS);
    let (times, others): (Vec<_>, Vec<_>) = all.iter().copied().take(shown).partition(|own| is_time(&own.figures));
    let mut head = title;
    if !times.is_empty() {
        let columns = SHOWN.map(Percentile::name).into_iter().chain(["max"]);
        let columns = columns.fold(format!("{:>TIMES$}", "values"), |line, name| line + &format!("{name:>COLUMN$}"));
        head += &paint.faint(columns);
    }
    let mut section = Section::new(&name).headed(head).with_rows("figure");
    let times = times.iter().map(|own| row(own, paint));
    let others = others.iter().map(|own| format!("{}{}", named(&own.name, NAME), text(own)));
    times.chain(others).for_each(|row| section.add_row(Rank::Figure, row));
    section.and_in_files(all.len() - shown);
    section
}

/// What a protocol has measured of a single call: a value each.
pub(super) fn of_single(summary: &Summary, paint: Paint) -> Vec<String> {
    if !are_of_protocol(summary) {
        return Vec::new();
    }
    let value = |own: &OwnBreakdown| {
        let figures = &own.figures;
        let unit_ns = figures.unit_ns().filter(|_| is_time(figures));
        let text = match (figures.kind, unit_ns, figures.quantile(0.5)) {
            (OwnKind::Trend, Some(unit_ns), Some(value)) => in_time(value, unit_ns),
            (OwnKind::Trend, None, Some(value)) => format!("{} {}", in_number(value), brief(&figures.unit)),
            (OwnKind::Counter, ..) => format!("{} {}", Number(figures.sum()?), brief(&figures.unit)),
            _ => return None,
        };
        Some(format!("{}{}", named(&own.name, NAME), text.trim_end()))
    };
    let mut lines = vec![paint.strong(title(summary))];
    lines.extend(summary.breakdown.own.iter().filter_map(value));
    lines
}

/// Whether it is a distribution of times.
fn is_time(figures: &OwnFigures) -> bool {
    figures.kind == OwnKind::Trend && figures.unit_ns().is_some()
}

/// The distribution of a time.
fn row(own: &OwnBreakdown, paint: Paint) -> String {
    let figures = &own.figures;
    let unit_ns = figures.unit_ns().unwrap_or(1.0);
    let cell = |value: Option<AtLeast<f64>>| {
        let text = value.map_or_else(|| "-".to_owned(), |value| in_time(value, unit_ns));
        format!("{text:>COLUMN$}")
    };
    let cells: String = SHOWN.iter().map(|of| figures.quantile(of.share())).chain([figures.max()]).map(cell).collect();
    format!("{}{}{cells}", named(&own.name, NAME), paint.faint(format!("{:>TIMES$}", count(figures.count))))
}

/// A time, of which `unit_ns` is the unit: `≥4.71ms`.
fn in_time(value: AtLeast<f64>, unit_ns: f64) -> String {
    format!("{}{}", bound(value.at_least), Duration((value.value * unit_ns).round() as u64))
}

fn in_number(value: AtLeast<f64>) -> String {
    format!("{}{}", bound(value.at_least), Number(value.value))
}

/// The value of another figure: `12 eur`, `p50 12, p95 80, p99 80, max 90 eur (of 312)`.
fn text(own: &OwnBreakdown) -> String {
    let figures = &own.figures;
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| Number(value).to_string());
    let unit = if figures.unit.is_empty() { String::new() } else { format!(" {}", brief(&figures.unit)) };
    let of = count(figures.count);
    match figures.kind {
        OwnKind::Counter => format!("{}{unit}, {}/s", number(figures.sum()), number(own.per_s)),
        OwnKind::Rate => {
            let share = figures.share().map_or_else(|| "-".to_owned(), percent);
            format!("{share} of {of}")
        }
        OwnKind::Trend => {
            let shown = [Percentile::P50, Percentile::P95, Percentile::P99];
            let shown =
                shown.iter().filter_map(|of| Some(format!("{of} {}", in_number(figures.quantile(of.share())?))));
            let shown: Vec<_> = shown.collect();
            let most = figures.max().map_or_else(|| "-".to_owned(), in_number);
            format!("{}, max {most}{unit} (of {of})", shown.join(", "))
        }
        OwnKind::Gauge => {
            let (last, min, max) =
                (number(figures.last()), number(figures.min()), number(figures.max().map(|most| most.value)));
            format!("{last}{unit} in the end, {min} to {max}")
        }
    }
}
