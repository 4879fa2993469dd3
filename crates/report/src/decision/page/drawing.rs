//! Figures against a value: lines and points with their intervals, in panels on one axis.

use std::borrow::Cow;

use brunt_decide::capacity::Capacity;
use brunt_plan::plan::Plan;
use brunt_plan::threshold::{Figure, Statistic, Threshold, Time};
use brunt_plan::units::{Duration, Number};
use brunt_record::catalogue::Timing;

use crate::csv::Row;
use crate::markup::Html;
use crate::numbers::percent;
use crate::page::{ACROSS, Label, Panel, Plots, Point, Scale, Section, Tool, Unit, change};

/// The least distance between two named values on the axis, as a share of it.
const APART: f64 = 0.045;
/// A limit is drawn if it is at most this many times larger or smaller than the measured values.
const NEAR: f64 = 10.0;

/// A measured value, with its position.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// How a line's places are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// Points alone.
    Points,
    /// Points, and a line from one to the next.
    Joined,
    /// A line alone.
    Line,
    /// A dashed line: not measured.
    Dashed,
}

/// Shapes of points, which differ even without colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Disc,
    Ring,
    Cross,
}

impl Sign {
    const fn text(self) -> &'static str {
        match self {
            Self::Disc => "●",
            Self::Ring => "○",
            Self::Cross => "✕",
        }
    }
}

/// Points of one kind.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) name: Cow<'static, str>,
    pub(super) class: &'static str,
    pub(super) how: How,
    pub(super) sign: Sign,
    pub(super) places: Vec<Measured>,
}

/// Lines on one scale.
#[derive(Debug)]
pub(super) struct Chart {
    pub(super) title: Cow<'static, str>,
    pub(super) note: String,
    pub(super) unit: Unit,
    pub(super) is_logarithmic: bool,
    pub(super) height: f64,
    pub(super) lines: Vec<Line>,
    /// Horizontal limits with their names, drawn where they are near the measured values.
    pub(super) limits: Vec<(f64, String)>,
}

/// The axis that charts stand on.
#[derive(Debug)]
pub(super) struct Axis {
    pub(super) scale: Scale,
    /// The name of its values for screen readers: `connections`.
    pub(super) name: String,
    /// Values that are named on it.
    pub(super) named: Vec<(f64, String)>,
    /// Writes a value's name.
    pub(super) write: fn(f64) -> String,
}

impl Axis {
    /// An axis for these values; those with enough room have their names.
    pub(super) fn through(values: impl IntoIterator<Item = f64>, name: &str, write: fn(f64) -> String) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let (low, high) = (values.first().copied().unwrap_or(0.0), values.last().copied().unwrap_or(1.0));
        let room = (high - low) / 60.0;
        let scale = match () {
            () if low > 0.0 && high > low => Scale::logarithmic(low / 1.05, high * 1.05),
            () if low > 0.0 => Scale::logarithmic(low / 2.0, high * 2.0),
            () if high > low => Scale::linear(low - room, high + room),
            () => Scale::linear(low - 1.0, high + 1.0),
        };
        let mut last = f64::NEG_INFINITY;
        values.retain(|value| {
            let share = scale.share(*value);
            let has_room = share - last >= APART;
            if has_room {
                last = share;
            }
            has_room
        });
        Self {
            named: values.into_iter().map(|value| (value, write(value))).collect(),
            scale,
            name: name.to_owned(),
            write,
        }
    }

    /// The place of a value.
    pub(super) fn x(&self, value: f64) -> f64 {
        self.scale.share(value) * ACROSS
    }
}

/// A value in full, for screen readers.
pub(super) fn in_full(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Ns => Duration(value.round() as u64).to_string(),
        Unit::PerSecond => format!("{}/s", Number(if value >= 100.0 { value.round() } else { value })),
        Unit::Count => Number(value).to_string(),
        Unit::Share => percent(value),
        Unit::Change => change(value, 1),
    }
}

/// Charts above each other, called `id`.
pub(super) fn plots(id: &str, axis: &Axis, charts: &[Chart]) -> Plots {
    let is_measured = |chart: &&Chart| chart.lines.iter().any(|line| !line.places.is_empty());
    let panels: Vec<_> = charts.iter().filter(is_measured).map(|chart| panel(chart, axis)).collect();
    let words = charts.iter().map(|chart| format!("{}: {}", chart.title, chart.note)).collect::<Vec<_>>().join("; ");
    Plots {
        id: id.to_owned(),
        name: charts.iter().map(|chart| &*chart.title).collect::<Vec<_>>().join(", "),
        words,
        ticks: axis.named.iter().map(|(value, words)| (axis.x(*value), words.clone())).collect(),
        points: points(axis, charts),
        panels,
        ..Plots::default()
    }
}

/// The text for each measured value.
fn points(axis: &Axis, charts: &[Chart]) -> Vec<Point> {
    let lines = || charts.iter().flat_map(|chart| chart.lines.iter().map(move |line| (chart, line)));
    let measured = lines().filter(|(_, line)| line.how != How::Dashed);
    let mut values: Vec<f64> = measured.flat_map(|(_, line)| line.places.iter().map(|place| place.x)).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let point = |value: f64| {
        let said = lines().filter(|(_, line)| line.how != How::Dashed).filter_map(|(chart, line)| {
            let ys: Vec<_> = line
                .places
                .iter()
                .filter(|place| place.x.total_cmp(&value).is_eq())
                .map(|place| in_full(chart.unit, place.y))
                .collect();
            (!ys.is_empty()).then(|| format!("{} {}", line.name, ys.join(" and ")))
        });
        let named = (axis.write)(value);
        let first = if axis.name.is_empty() { named } else { format!("{named} {}", axis.name) };
        let words = std::iter::once(first).chain(said).collect::<Vec<_>>().join(", ");
        Point { from: axis.x(value), to: axis.x(value), words }
    };
    values.into_iter().map(point).collect()
}

fn scale(chart: &Chart) -> (Scale, Vec<(f64, String)>) {
    let measured = || chart.lines.iter().flat_map(|line| &line.places).map(|place| place.y);
    let (low, high) = measured().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), y| (low.min(y), high.max(y)));
    let near: Vec<_> =
        chart.limits.iter().filter(|(limit, _)| *limit <= high * NEAR && *limit >= low / NEAR).cloned().collect();
    let (low, high) = near.iter().fold((low, high), |(low, high), (limit, _)| (low.min(*limit), high.max(*limit)));
    let scale = match chart.unit {
        Unit::Change => {
            let room = ((high - low) * 0.08).max(0.005);
            Scale::linear(low.min(1.0) - room, high.max(1.0) + room)
        }
        _ if chart.is_logarithmic && high > 0.0 => Scale::logarithmic(low.max(1e-3) / 1.2, high * 1.2),
        _ => Scale::linear(0.0, if high > 0.0 { high * 1.08 } else { 1.0 }),
    };
    (scale, near)
}

fn panel(chart: &Chart, axis: &Axis) -> Panel {
    let (scale, limits) = scale(chart);
    let y = |value: f64| chart.height * (1.0 - scale.share(value));
    let mut panel =
        Panel { title: chart.title.to_string(), note: chart.note.clone(), height: chart.height, ..Panel::default() };
    panel.lines = scale.round(4).into_iter().map(|value| (y(value), chart.unit.tick(value))).collect();
    for (limit, words) in &limits {
        panel.plot.raw("<path class=\"limit\" d=\"M0 ").place(y(*limit)).raw("H1000\"/>");
        panel.labels.push(Label { class: "faint", y: y(*limit), text: words.clone() });
    }
    if chart.unit == Unit::Change {
        panel.plot.raw("<path class=\"zero\" d=\"M0 ").place(y(1.0)).raw("H1000\"/>");
    }
    for line in &chart.lines {
        draw(&mut panel, line, axis, &y);
        if let Some(last) = line.places.last() {
            let is_pointed = matches!(line.how, How::Points | How::Joined);
            let text = if is_pointed { format!("{} {}", line.sign.text(), line.name) } else { line.name.to_string() };
            panel.labels.push(Label { class: line.class, y: y(last.y), text });
        }
    }
    panel
}

fn draw(panel: &mut Panel, line: &Line, axis: &Axis, y: &dyn Fn(f64) -> f64) {
    if line.how != How::Points {
        let dashed = if line.how == How::Dashed { " dashed" } else { "" };
        panel.plot.raw("<path class=\"line ").raw(line.class).raw(dashed).raw("\" d=\"");
        for (nth, place) in line.places.iter().enumerate() {
            panel.plot.raw(if nth == 0 { "M" } else { "L" }).place(axis.x(place.x)).raw(" ").place(y(place.y));
        }
        panel.plot.raw("\"/>");
    }
    if !matches!(line.how, How::Points | How::Joined) {
        return;
    }
    for place in &line.places {
        let (x, y) = (axis.x(place.x), y(place.y));
        match line.sign {
            Sign::Disc => dot(&mut panel.plot, "dot", line.class, x, y),
            Sign::Ring => {
                dot(&mut panel.plot, "dot", line.class, x, y);
                dot(&mut panel.plot, "hole", "", x, y);
            }
            Sign::Cross => panel.notes.push(("cross", x, y + 4.0, "✕".to_owned())),
        }
    }
}

/// A point that stays round however the drawing is stretched: a line of no length with round ends.
pub(super) fn dot(plot: &mut Html, kind: &'static str, class: &'static str, x: f64, y: f64) {
    plot.raw("<path class=\"").raw(kind).raw(" ").raw(class).raw("\" d=\"M").place(x).raw(" ").place(y).raw("h0\"/>");
}

/// The places of charts as a file.
pub(super) fn csv(id: &str, axis: &Axis, charts: &[Chart]) -> Tool {
    let mut head = Row::default();
    for name in ["figure", "line", if axis.name.is_empty() { "at" } else { &axis.name }, "value"] {
        head.put(name);
    }
    let mut text = head.line();
    for chart in charts {
        for line in &chart.lines {
            for place in &line.places {
                let mut row = Row::default();
                row.put(&chart.title);
                row.put(&line.name);
                row.put(place.x);
                row.put(place.y);
                text.push_str(&row.line());
            }
        }
    }
    Tool::csv(id, &text)
}

/// A section with these charts, if anything was measured.
pub(super) fn section(id: &'static str, title: &str, plots: &Plots, csv: Tool) -> Section {
    let mut section = Section::new(id, title);
    plots.write(&mut section.body);
    section.tools.push(csv);
    section.is_drawn = true;
    section
}

/// The plan's thresholds on these percentiles of all calls, in nanoseconds, with their names.
pub(super) fn limits(plan: &Plan, shares: &[f64]) -> Vec<(f64, String)> {
    let limit = |threshold: &Threshold| {
        let is_of_all = threshold.subject().is_none() && threshold.selection().is_none();
        let Figure::Time(Time::Usual | Time::Recorded(Timing::Response), Statistic::Quantile(share)) =
            threshold.measure()
        else {
            return None;
        };
        let is_asked = shares.iter().any(|asked| (asked - share).abs() < 1e-9);
        (is_of_all && is_asked).then(|| (threshold.limit(), format!("limit {}", threshold.to_string().trim())))
    };
    plan.thresholds.iter().filter_map(limit).collect()
}

/// The levels of a search's trials.
pub(super) fn levels(capacity: &Capacity) -> impl Iterator<Item = f64> {
    capacity.trials.iter().map(|trial| trial.level)
}
