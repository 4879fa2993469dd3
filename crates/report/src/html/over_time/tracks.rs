//! Calls of one name, or with one ending, over time.

use brunt_plan::units::{Clock, Duration, Number};

use crate::markup::Html;
use crate::numbers::count;
use crate::page::{Across, Label, Panel, Plots, Point, Scale, Unit, steps};

use super::super::drilldown::{Kind, RequestTrack};
use super::flow::round;

const TIMES: f64 = 90.0;
const CALLS: f64 = 48.0;
const NOT_OK: f64 = 24.0;
const ROOM: f64 = 1.15;
/// A sparkline: its width and the heights of its two parts, in its own units.
const WIDTH: f64 = 160.0;
const UPPER: f64 = 20.0;
const LOWER: f64 = 8.0;
/// The most columns of a sparkline.
const MOST_COLUMNS: usize = 60;

/// The beginning and end of each stretch. A last one shorter than half of the others is left out: its rate would be
/// mostly noise.
fn stretches<T>(kind: &Kind<T>) -> impl Iterator<Item = (u64, u64)> {
    let usual = kind.length_ns.first().copied().unwrap_or(0);
    let is_cut = kind.length_ns.len() > 1 && kind.length_ns.last().is_some_and(|last| *last < usual / 2);
    let shown = kind.start_ns.len() - usize::from(is_cut);
    kind.start_ns.iter().zip(&kind.length_ns).take(shown).map(|(start, length)| (*start, start + length))
}

fn axis<T>(kind: &Kind<T>) -> Across {
    Across { span_ns: stretches(kind).last().map_or(0, |(_, to)| to) }
}

fn per_s(calls: u64, (from, to): (u64, u64)) -> f64 {
    calls as f64 * 1e9 / to.saturating_sub(from).max(1) as f64
}

/// The calls of one name or tag.
#[derive(Debug, Clone, Copy)]
pub(in crate::html) struct OfCalls<'a> {
    pub(in crate::html) kind: &'a Kind<RequestTrack>,
    pub(in crate::html) track: &'a RequestTrack,
}

impl<'a> OfCalls<'a> {
    /// The calls of this name, where they are known over more than one stretch.
    pub(in crate::html) fn named(kind: &'a Kind<RequestTrack>, name: &str) -> Option<Self> {
        let track = kind.tracks.iter().find(|track| track.name == name)?;
        (stretches(kind).count() > 1).then_some(Self { kind, track })
    }

    /// The shortest p50 and the longest p99, in nanoseconds.
    pub(in crate::html) fn ends(self) -> Option<(u64, u64)> {
        let low = self.track.p50_ns.iter().flatten().min()?;
        Some(((*low).max(1), (*self.track.p99_ns.iter().flatten().max()?).max(1)))
    }
}

/// Panels of response times, and of calls.
pub(in crate::html) fn calls_over_time(id: String, calls: OfCalls<'_>) -> Plots {
    let OfCalls { kind, track } = calls;
    let axis = axis(kind);
    let mut panels = Vec::new();
    if let Some((low, high)) = calls.ends() {
        let scale = Scale::logarithmic(low as f64 / ROOM, (high as f64 * ROOM).max(low as f64 * 2.0));
        let y = |ns: u64| TIMES * (1.0 - scale.share(ns.max(1) as f64));
        let mut panel = Panel {
            title: "Response time".to_owned(),
            note: "by when calls ended; to within 0.8%".to_owned(),
            height: TIMES,
            ..Panel::default()
        };
        panel.lines = scale.round(5).into_iter().map(|ns| (y(ns as u64), Unit::Ns.tick(ns))).collect();
        for (class, values) in [("p50", &track.p50_ns), ("p99", &track.p99_ns)] {
            panel.plot.raw("<path class=\"").raw(class).raw("\" d=\"");
            let places = stretches(kind).zip(values);
            steps(&mut panel.plot, places.map(|((from, to), ns)| (axis.x(from), axis.x(to), ns.map(y))));
            panel.plot.raw("\"/>");
            if let Some(most) = values.iter().flatten().max() {
                panel.labels.push(Label { class: "", y: y(*most), text: format!("{class} up to {}", Duration(*most)) });
            }
        }
        panels.push(panel);
    }
    panels.push(ends(kind, axis, "Calls that ended a second", &track.ended, Some(&track.not_ok)));
    let time = |name: &str, ns: Option<u64>| ns.map_or(format!("no {name}"), |ns| format!("{name} {}", Duration(ns)));
    let points = stretches(kind).enumerate().map(|(at, (from, to))| {
        let value = |values: &[Option<u64>]| values.get(at).copied().flatten();
        let rate = |values: &[u64]| Number(per_s(values.get(at).copied().unwrap_or(0), (from, to))).to_string();
        let words = format!(
            "{}, {}, {}, {} ended/s, {} not ok/s",
            Clock(from),
            time("p50", value(&track.p50_ns)),
            time("p99", value(&track.p99_ns)),
            rate(&track.ended),
            rate(&track.not_ok)
        );
        Point { from: axis.x(from), to: axis.x(to), words }
    });
    Plots {
        id,
        name: format!("{} over time", crate::numbers::clean(&track.name)),
        words: format!("{} calls, {} not ok", count(track.ended.iter().sum()), count(track.not_ok.iter().sum())),
        ticks: axis.ticks(),
        span_ns: Some(axis.span_ns),
        points: points.collect(),
        panels,
        ..Plots::default()
    }
}

/// A panel of calls with one ending.
pub(in crate::html) fn ends_over_time<T>(id: String, name: &str, kind: &Kind<T>, calls: &[u64], is_ok: bool) -> Plots {
    let axis = axis(kind);
    let none = vec![0; calls.len()];
    let panel = if is_ok {
        ends(kind, axis, "Calls a second", calls, None)
    } else {
        ends(kind, axis, "Calls a second", &none, Some(calls))
    };
    let points = stretches(kind).zip(calls).map(|((from, to), n)| Point {
        from: axis.x(from),
        to: axis.x(to),
        words: format!("{}, {} calls/s", Clock(from), Number(per_s(*n, (from, to)))),
    });
    Plots {
        id,
        name: format!("{} over time", crate::numbers::clean(name)),
        words: format!("{} calls", count(calls.iter().sum())),
        ticks: axis.ticks(),
        span_ns: Some(axis.span_ns),
        points: points.collect(),
        panels: vec![panel],
        ..Plots::default()
    }
}

/// Calls by when they ended: successful ones above zero, the others below.
fn ends<T>(kind: &Kind<T>, axis: Across, title: &str, ended: &[u64], not_ok: Option<&[u64]>) -> Panel {
    let rates = |calls: &[u64]| stretches(kind).zip(calls).map(|(stretch, n)| per_s(*n, stretch)).collect::<Vec<_>>();
    let bad = not_ok.map(rates).unwrap_or_default();
    let good: Vec<_> =
        rates(ended).into_iter().enumerate().map(|(at, rate)| (rate - bad.get(at).unwrap_or(&0.0)).max(0.0)).collect();
    let [most_good, most_bad] = [&good, &bad].map(|rates| rates.iter().copied().fold(0.0, f64::max));
    let (above, below) = match (most_good > 0.0, most_bad > 0.0) {
        (true, true) => (CALLS, NOT_OK),
        (true, false) => (CALLS, 0.0),
        (false, _) => (0.0, CALLS),
    };
    let note = if most_bad > 0.0 { "not ok below zero, at a scale of their own" } else { "" };
    let mut panel = Panel { title: title.to_owned(), note: note.to_owned(), height: above + below, ..Panel::default() };
    let y = |rate: f64| above * (1.0 - rate / (most_good * ROOM).max(1e-9));
    let down = |rate: f64| above + below * rate / (most_bad * ROOM).max(1e-9);
    panel.lines.push((above, "0".to_owned()));
    panel.lines.extend(round(most_good, 1).into_iter().map(|rate| (y(rate), Unit::PerSecond.tick(rate))));
    let halves = [
        ("ok", "blue", "ok/s", &y as &dyn Fn(f64) -> f64, &good, most_good),
        ("failed", "orange", "not ok/s", &down, &bad, most_bad),
    ];
    for (class, colour, what, at, rates, most) in halves {
        if most <= 0.0 {
            continue;
        }
        panel.plot.raw("<path class=\"").raw(class).raw("\" d=\"M0 ").place(above);
        for ((_, to), rate) in stretches(kind).zip(rates) {
            panel.plot.raw("V").place(at(*rate)).raw("H").place(axis.x(to));
        }
        panel.plot.raw("V").place(above).raw("z\"/>");
        panel.labels.push(Label { class: colour, y: at(most), text: format!("up to {} {what}", Number(most)) });
    }
    panel
}

/// The columns of a sparkline, at most [`MOST_COLUMNS`], each for several neighbouring stretches.
struct Columns {
    /// From when to when, and which stretches.
    all: Vec<(u64, u64, std::ops::Range<usize>)>,
    span_ns: u64,
}

impl Columns {
    fn new<T>(kind: &Kind<T>) -> Self {
        let stretches: Vec<_> = stretches(kind).collect();
        let each = stretches.len().div_ceil(MOST_COLUMNS).max(1);
        let columns = stretches.chunks(each).enumerate().filter_map(|(nth, chunk)| {
            let (from, _) = chunk.first()?;
            let (_, to) = chunk.last()?;
            Some((*from, *to, nth * each..nth * each + chunk.len()))
        });
        Self { all: columns.collect(), span_ns: stretches.last().map_or(1, |(_, to)| *to).max(1) }
    }

    fn x(&self, ns: u64) -> f64 {
        ns as f64 / self.span_ns as f64 * WIDTH
    }

    /// The longest of the times in a column.
    fn longest(values: &[Option<u64>], column: &std::ops::Range<usize>) -> Option<u64> {
        values.get(column.clone())?.iter().flatten().max().copied()
    }
}

/// The calls of one name in a line: from p50 to p99 on a common scale, and below it those that were not ok.
pub(in crate::html) fn sparkline(calls: OfCalls<'_>, scale: Scale) -> Html {
    let OfCalls { kind, track } = calls;
    let columns = Columns::new(kind);
    let y = |ns: u64| UPPER * (1.0 - scale.share(ns.max(1) as f64).clamp(0.0, 1.0));
    let mut html = Html::default();
    html.raw("<svg class=\"spark\" viewBox=\"0 0 160 28\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><path class=\"between\" d=\"");
    for (from, to, column) in &columns.all {
        let [p50, p99] = [&track.p50_ns, &track.p99_ns].map(|values| Columns::longest(values, column));
        let (Some(p50), Some(p99)) = (p50, p99) else { continue };
        let (top, bottom) = (y(p99), y(p50));
        html.raw("M").place(columns.x(*from)).raw(" ").place(top).raw("H").place(columns.x(*to));
        html.raw("V").place(bottom.max(top + 1.0)).raw("H").place(columns.x(*from)).raw("z");
    }
    html.raw("\"/><path class=\"p50\" d=\"");
    let line = columns
        .all
        .iter()
        .map(|(from, to, column)| (columns.x(*from), columns.x(*to), Columns::longest(&track.p50_ns, column).map(y)));
    steps(&mut html, line);
    html.raw("\"/>");
    bars(&mut html, "failed", &columns, &track.not_ok, UPPER, LOWER);
    html.raw("</svg>");
    html
}

/// Calls with one ending in a line.
pub(in crate::html) fn bars_alone<T>(kind: &Kind<T>, calls: &[u64], is_ok: bool) -> Html {
    let mut html = Html::default();
    html.raw("<svg class=\"spark\" viewBox=\"0 0 160 28\" preserveAspectRatio=\"none\" aria-hidden=\"true\">");
    let class = if is_ok { "between" } else { "failed" };
    bars(&mut html, class, &Columns::new(kind), calls, 0.0, UPPER + LOWER);
    html.raw("</svg>");
    html
}

/// Bars that hang from `top`.
fn bars(html: &mut Html, class: &'static str, columns: &Columns, calls: &[u64], top: f64, height: f64) {
    let sum = |column: &std::ops::Range<usize>| calls.get(column.clone()).unwrap_or_default().iter().sum::<u64>();
    let most = columns.all.iter().map(|(.., column)| sum(column)).max().unwrap_or(0);
    if most == 0 {
        return;
    }
    html.raw("<path class=\"").raw(class).raw("\" d=\"");
    for (from, to, column) in columns.all.iter().filter(|(.., column)| sum(column) > 0) {
        let (from, to) = (columns.x(*from), columns.x(*to));
        let length = (height * sum(column) as f64 / most as f64).max(1.5);
        html.raw("M").place(from).raw(" ").place(top).raw("H").place(to.max(from + 0.7)).raw("v").place(length);
        html.raw("H").place(from).raw("z");
    }
    html.raw("\"/>");
}
