//! Calls by when they ended, against those that were due; calls under way; virtual users.

use brunt_plan::units::Number;

use super::super::shown::Shown;
use super::super::stretches::Stretch;
use crate::chart;
use crate::failed::{self, Ending};
use crate::markup::Html;
use crate::numbers::count;
use crate::page::{ACROSS, Across, Label, Panel, Scale, Unit, steps};

/// The heights of plots, in pixels; of answers and of failures.
const ANSWERED: f64 = 72.0;
const FAILED: f64 = 32.0;
const WAITING: f64 = 36.0;
const USERS: f64 = 28.0;
/// The room above the highest value.
const ROOM: f64 = 1.15;
/// The share of stretches whose rate is usual.
const USUAL: f64 = 0.95;
/// A peak this many times above the usual value is cut off, so that the rest is visible.
const PEAK: f64 = 2.0;
/// Failures under this share of the scale of answers are drawn at a scale of their own.
const LITTLE: f64 = 0.1;

/// Calls by when they ended: successful ones above zero, the others below.
pub(super) fn ended(shown: Shown<'_>, stretches: &[Stretch], axis: Across) -> Panel {
    let ok: Vec<_> = stretches.iter().map(|stretch| stretch.flow.ok / stretch.seconds()).collect();
    let due: Vec<_> = stretches.iter().map(|stretch| stretch.flow.due / stretch.seconds()).collect();
    let failed: Vec<_> = stretches.iter().map(|stretch| stretch.flow.not_ok / stretch.seconds()).collect();
    let is_open = shown.summary.is_open();
    let (peak, usual) =
        (most(&ok), chart::usual(ok.iter().copied(), USUAL).unwrap_or(0.0).max(if is_open { most(&due) } else { 0.0 }));
    let is_cut = peak > usual * PEAK && usual > 0.0;
    let full = ROOM * if is_cut { usual * ROOM } else { peak.max(if is_open { most(&due) } else { 0.0 }).max(1e-9) };
    let worst = most(&failed);
    let has_own_scale = worst > 0.0 && worst < full * LITTLE;
    let below = match worst {
        worst if worst <= 0.0 => 0.0,
        _ if has_own_scale => FAILED,
        worst => (ANSWERED * worst / full).clamp(FAILED / 2.0, ANSWERED),
    };
    let note = match (worst > 0.0, has_own_scale) {
        (false, _) => "by when calls ended".to_owned(),
        (true, false) => "by when calls ended; not ok below zero".to_owned(),
        (true, true) => "by when calls ended; not ok below zero, at a scale of their own".to_owned(),
    };
    let y = |rate: f64| ANSWERED * (1.0 - (rate / full).min(1.0));
    let mut panel = Panel { title: "Ok calls a second".to_owned(), note, height: ANSWERED + below, ..Panel::default() };
    panel.lines.push((ANSWERED, "0".to_owned()));
    panel.lines.extend(round(full / ROOM, 2).into_iter().map(|rate| (y(rate), Unit::PerSecond.tick(rate))));
    let below_zero = |rate: f64| ANSWERED + below * rate / worst.max(1e-9);
    if below > 24.0 {
        panel.lines.extend(
            round(worst, 1).into_iter().map(|rate| (below_zero(rate), format!("−{}", Unit::PerSecond.tick(rate)))),
        );
    }
    area(&mut panel.plot, "ok", ANSWERED, stretches, axis, &ok, y);
    line(&mut panel.plot, "ok-line", stretches, axis, &ok, y);
    let ways = failed::ways(shown.summary);
    let first = first_way(shown, stretches, &ways);
    if let Some(first) = &first {
        area(&mut panel.plot, "failed others", ANSWERED, stretches, axis, &failed, below_zero);
        area(&mut panel.plot, "failed", ANSWERED, stretches, axis, first, below_zero);
    } else {
        area(&mut panel.plot, "failed", ANSWERED, stretches, axis, &failed, below_zero);
    }
    if is_open {
        line(&mut panel.plot, "due", stretches, axis, &due, y);
    }
    if is_cut && let Some(at) = ok.iter().position(|rate| *rate >= peak) {
        let x = stretches.get(at).map_or(0.0, |stretch| axis.x(stretch.to_ns));
        // It stands on the side that has room.
        let class = if x > ACROSS * 0.75 { "note before" } else { "note" };
        panel.notes.push((class, x, 10.0, format!("↑ {}/s", Number(peak))));
    }
    let rates = shown.summary.rates;
    panel.labels.push(Label {
        class: "blue",
        y: y(rates.ok_per_s),
        text: if is_open {
            format!("{} ok of {} due/s", Number(rates.ok_per_s), Number(rates.due_per_s))
        } else {
            format!("{} ok/s", Number(rates.ok_per_s))
        },
    });
    if worst > 0.0 {
        let named = |way: &Ending| format!("{} × {}", count(way.count), way.name);
        let text = match (ways.as_slice(), &first) {
            ([], _) => String::new(),
            ([only], _) => named(only),
            ([first, ..], None) => format!("{}, …", named(first)),
            ([first, ..], Some(_)) => format!("■ {}", named(first)),
        };
        panel.labels.push(Label { class: "orange", y: ANSWERED + below / 2.0, text });
        if let ([_, others @ ..], Some(_)) = (ways.as_slice(), &first) {
            let text = match others {
                [only] => named(only),
                others => format!("{} others", count(others.iter().map(|way| way.count).sum())),
            };
            panel.labels.push(Label { class: "orange", y: ANSWERED + below, text: format!("□ {text}") });
        }
    }
    panel
}

/// Calls a second that were not ok, of the most frequent kind; `None` if that is the only kind, or their times are
/// unknown.
fn first_way(shown: Shown<'_>, stretches: &[Stretch], ways: &[Ending]) -> Option<Vec<f64>> {
    let [first, _, ..] = ways else { return None };
    let tracks = shown.drilldown;
    let ok = &shown.summary.plan.ok_status;
    let statuses = tracks.statuses.tracks.iter().filter(|track| !ok.holds(track.status));
    let statuses = statuses.map(|track| (first.kind == failed::Kind::Status(track.status), &track.answers));
    let failures = tracks.failures.tracks.iter();
    let failures = failures.map(|track| (first.kind == failed::Kind::Failure(track.failure), &track.calls));
    let all: Vec<_> = statuses.chain(failures).collect();
    let starts =
        [&tracks.failures.start_ns, &tracks.statuses.start_ns].into_iter().max_by_key(|starts| starts.len())?;
    if !all.iter().any(|(is_first, _)| *is_first) || all.iter().any(|(_, counts)| counts.len() != starts.len()) {
        return None;
    }
    let share = |stretch: &Stretch| {
        let at = starts.partition_point(|start| *start <= stretch.from_ns).saturating_sub(1);
        let sum = |only_first: bool| {
            let counts = all.iter().filter(|(is_first, _)| !only_first || *is_first);
            counts.filter_map(|(_, counts)| counts.get(at)).sum::<u64>()
        };
        sum(true) as f64 / sum(false).max(1) as f64
    };
    Some(stretches.iter().map(|stretch| stretch.flow.not_ok / stretch.seconds() * share(stretch)).collect())
}

/// Calls that were due and had not ended; in the closed model there are as many as connections.
pub(super) fn waiting(shown: Shown<'_>, stretches: &[Stretch], axis: Across) -> Option<Panel> {
    if !shown.summary.is_open() && shown.summary.total.figures.is_empty() {
        return None;
    }
    let waiting: Vec<_> = stretches.iter().map(|stretch| stretch.flow.waiting).collect();
    let most = most(&waiting);
    if most <= 0.0 {
        return None;
    }
    let full = (most * ROOM).max(1.0);
    let y = |calls: f64| WAITING * (1.0 - calls / full);
    let mut panel = Panel {
        title: "Calls under way".to_owned(),
        note: "due, and not ended".to_owned(),
        height: WAITING,
        ..Panel::default()
    };
    panel.lines.push((WAITING, "0".to_owned()));
    let lines = round(most, 1).into_iter().filter(|calls| *calls >= 1.0);
    panel.lines.extend(lines.map(|calls| (y(calls), Number(calls).to_string())));
    area(&mut panel.plot, "waiting", WAITING, stretches, axis, &waiting, y);
    panel.labels.push(Label { class: "", y: y(most), text: format!("at most {}", count(most.round() as u64)) });
    Some(panel)
}

/// Virtual users that were alive.
pub(super) fn users(shown: Shown<'_>, axis: Across) -> Option<Panel> {
    if shown.summary.breakdown.scenarios.is_empty() {
        return None;
    }
    let points = shown.summary.run.series.points().iter();
    let users: Vec<_> = points.map(|point| (point.start_ns, point.end_ns().min(axis.span_ns), point.users)).collect();
    let most = users.iter().map(|(.., users)| *users).max().filter(|most| *most > 0)?;
    let full = (most as f64 * ROOM).max(1.0);
    let y = |users: u64| USERS * (1.0 - users as f64 / full);
    let mut panel = Panel { title: "Virtual users".to_owned(), height: USERS, ..Panel::default() };
    panel.lines.push((USERS, "0".to_owned()));
    panel.plot.raw("<path class=\"users\" d=\"");
    steps(&mut panel.plot, users.iter().map(|(from, to, users)| (axis.x(*from), axis.x(*to), Some(y(*users)))));
    panel.plot.raw("\"/>");
    panel.labels.push(Label { class: "", y: y(most), text: format!("at most {}", count(most)) });
    Some(panel)
}

pub(super) fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// Round values above zero up to `most`, at most about `at_most`.
pub(super) fn round(most: f64, at_most: usize) -> Vec<f64> {
    let values = Scale::linear(0.0, most).round(at_most);
    values.into_iter().filter(|value| *value > 0.0 && *value <= most).collect()
}

fn line(
    html: &mut Html,
    class: &'static str,
    stretches: &[Stretch],
    axis: Across,
    values: &[f64],
    y: impl Fn(f64) -> f64,
) {
    html.raw("<path class=\"").raw(class).raw("\" d=\"");
    let places = stretches.iter().zip(values);
    steps(html, places.map(|(stretch, value)| (axis.x(stretch.from_ns), axis.x(stretch.to_ns), Some(y(*value)))));
    html.raw("\"/>");
}

/// The area between a line and the zero line.
fn area(
    html: &mut Html,
    class: &'static str,
    zero: f64,
    stretches: &[Stretch],
    axis: Across,
    values: &[f64],
    y: impl Fn(f64) -> f64,
) {
    if values.iter().all(|value| *value <= 0.0) {
        return;
    }
    html.raw("<path class=\"").raw(class).raw("\" d=\"M0 ").place(zero);
    for (stretch, value) in stretches.iter().zip(values) {
        html.raw("V").place(y(*value)).raw("H").place(axis.x(stretch.to_ns));
    }
    html.raw("V").place(zero).raw("z\"/>");
}
