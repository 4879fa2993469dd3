//! Calls by name and by tag, worst first: failures, response times, and their course over time. The rest shows on
//! opening.

use brunt_judge::breakdown::CallBreakdown;
use brunt_judge::distribution::Distribution;
use brunt_plan::threshold::Statistic;
use brunt_plan::units::{Number, Size};
use brunt_record::histogram::{AtLeast, Percentile};
use brunt_record::outcome::OkStatus;

use super::super::drilldown::{Kind, RequestTrack};
use super::super::first_screen::{is_over_limit, within};
use super::super::over_time::{OfCalls, calls_over_time, sparkline};
use super::super::shown::Shown;
use crate::markup::Html;
use crate::numbers::{clean, count, counted, duration, percent};
use crate::page::{Cell, Column, Plots, Scale, Section, Table, Unit};

/// The most kinds of failures beside a name.
const MOST_WAYS: usize = 2;
/// The most names that can be opened: with more, a page would be slow.
const MOST_OPENING: usize = 60;

pub(super) fn requests(shown: Shown<'_>) -> Section {
    let names = &shown.summary.breakdown;
    let mut section = section(shown, ["requests", "Requests", "name"], &names.requests, &shown.drilldown.requests);
    let crowded = &names.crowded;
    if !crowded.is_empty() {
        section.body.raw("<p class=\"warning\">There were more ").text(&crowded.join(" and "));
        section.body.raw(" than are told apart; the rest count as (others).</p>");
    }
    section
}

pub(super) fn tags(shown: Shown<'_>) -> Section {
    section(shown, ["tags", "Tags", "tag"], &shown.summary.breakdown.tags, &shown.drilldown.tags)
}

fn section(
    shown: Shown<'_>,
    [id, title, noun]: [&'static str; 3],
    all: &[CallBreakdown],
    tracks: &Kind<RequestTrack>,
) -> Section {
    let mut section = Section::new(id, title);
    let Some(scale) = scale(all) else { return section };
    section.note = format!("{}, worst first; failures count as slower than measured", counted(all.len() as u64, noun));
    let mut worst: Vec<_> = all.iter().collect();
    let p99 = |calls: &CallBreakdown| {
        calls.response.as_ref().and_then(|times| times.quantile(Percentile::P99)).map_or(0, |p99| p99.value)
    };
    worst.sort_by(|a, b| b.error_rate.total_cmp(&a.error_rate).then_with(|| p99(b).cmp(&p99(a))));
    let has_tracks = worst.iter().any(|calls| OfCalls::named(tracks, &calls.name).is_some());
    let ends = format!("{} to {}", Unit::Ns.tick(scale.low), Unit::Ns.tick(scale.high));
    let mut columns = vec![Column::words(noun), Column::figure("calls"), Column::words("not ok")];
    columns.extend(["p50", "p99", "max"].map(Column::time));
    columns.push(Column::words(ends));
    if has_tracks {
        columns.push(Column::words("p50 to p99 over time"));
    }
    let caption = "line: the fastest to the slowest ok call; bar: p50 to p99; ✕: the median of those not ok";
    let mut table = Table::new(id, caption, columns).sortable();
    for (nth, calls) in worst.into_iter().enumerate() {
        let track = OfCalls::named(tracks, &calls.name);
        let mut cells =
            vec![Cell::new(calls.name.as_str()), Cell::count(calls.due), not_ok(calls, &shown.summary.plan.ok_status)];
        cells.extend([Percentile::P50, Percentile::P99].map(|of| time(shown, calls, of)));
        cells.push(calls.response.as_ref().map_or_else(Cell::none, |times| bounded(times.max)));
        cells.push(Cell::drawn(range(calls, scale)));
        if has_tracks {
            cells.push(track.map_or_else(|| Cell::new(""), |track| Cell::drawn(sparkline(track, scale))));
        }
        let below = (nth < MOST_OPENING).then(|| {
            let plots = track.map(|track| calls_over_time(format!("{noun}-{nth}"), track));
            below(calls, plots.map(|plots| plots.with_changes(&shown.summary.run.changes)))
        });
        table.push_opening(String::new(), cells, below);
    }
    section.tools.push(table.csv());
    table.write(&mut section.body);
    section
}

/// A scale for the times of all of them.
fn scale(all: &[CallBreakdown]) -> Option<Scale> {
    let times = || all.iter().filter_map(|calls| calls.response.as_ref());
    let low = times().map(|times| times.min).min();
    let high = times().map(|times| times.max.value).max();
    if all.is_empty() {
        return None;
    }
    let (low, high) = (low.unwrap_or(1).max(1) as f64, high.unwrap_or(10).max(1) as f64);
    let round = |value: f64, power: f64| 10_f64.powf(power).max(value.min(1.0));
    Some(Scale::logarithmic(round(low, low.log10().floor()), round(high, high.log10().ceil()).max(low * 10.0)))
}

/// A time, marked where it is a lower bound.
fn bounded(time: AtLeast<u64>) -> Cell {
    Cell::sorted(duration(time), time.value as f64).classed(if time.at_least { "warning" } else { "" })
}

fn time(shown: Shown<'_>, calls: &CallBreakdown, percentile: Percentile) -> Cell {
    let Some(quantile) = calls.response.as_ref().and_then(|times| times.at(percentile)) else { return Cell::none() };
    let statistic = Statistic::Quantile(quantile.share_ratio);
    let failed = shown.summary.thresholds.iter().any(|result| is_over_limit(result, Some(&calls.name), statistic));
    let cell = bounded(quantile.value());
    let interval = quantile.interval.map_or_else(String::new, |of| within(of.low_ns, of.high_ns));
    let class = match () {
        () if failed => "bad",
        () if quantile.at_least || quantile.is_spoiled() => "warning",
        () => "",
    };
    let cell = cell.classed(class).titled(interval);
    if failed { cell.noted("✗ over its limit") } else { cell }
}

/// The number of calls that were not ok, and their endings.
fn not_ok(calls: &CallBreakdown, ok: &OkStatus) -> Cell {
    if calls.not_ok == 0 {
        return Cell::sorted("0", 0.0);
    }
    let ways = ways(calls, |status| !ok.holds(status));
    let named: u64 = ways.iter().map(|(n, _)| n).sum();
    let checks = calls.not_ok.saturating_sub(named);
    let checks = (checks > 0).then(|| (checks, "failed by checks or the script".to_owned()));
    let ways: Vec<_> = ways.into_iter().chain(checks).collect();
    let more = if ways.len() > MOST_WAYS { ", …" } else { "" };
    let text = format!("{} · {}", count(calls.not_ok), percent(calls.error_rate));
    let note = in_words(ways.into_iter().take(MOST_WAYS)) + more;
    Cell::sorted(text, calls.error_rate).classed("bad").noted(note)
}

/// The endings of its calls, by these statuses and by failures, the most frequent first.
fn ways(calls: &CallBreakdown, is_named: impl Fn(u16) -> bool) -> Vec<(u64, String)> {
    let statuses = calls.statuses.iter().filter(|status| status.status != 0 && is_named(status.status)).map(|status| {
        let name = calls.status_names.get(&status.status).map_or_else(String::new, |name| format!(" {name}"));
        (status.count, format!("{}{name}", status.status))
    });
    let failures = calls.failures.iter().map(|failure| (failure.count, failure.failure.name().to_owned()));
    let others = [(calls.unfinished, "unfinished".to_owned()), (calls.unsent, "unsent".to_owned())];
    let mut ways: Vec<_> = statuses.chain(failures).chain(others).filter(|(n, _)| *n > 0).collect();
    ways.sort_by_key(|(n, _)| std::cmp::Reverse(*n));
    ways
}

/// `503 Busy × 67, timeout × 3`.
fn in_words(ways: impl Iterator<Item = (u64, String)>) -> String {
    ways.map(|(n, name)| format!("{name} × {}", count(n))).collect::<Vec<_>>().join(", ")
}

/// Its times on the common scale: of calls that are ok, and of those that are not.
fn range(calls: &CallBreakdown, scale: Scale) -> Html {
    let mut html = Html::default();
    html.raw("<svg class=\"range\" viewBox=\"0 0 160 14\" preserveAspectRatio=\"none\" aria-hidden=\"true\">");
    let x = |ns: u64| scale.share(ns.max(1) as f64).clamp(0.0, 1.0) * 160.0;
    let ok = calls.response_ok.as_ref().or_else(|| calls.response.as_ref().filter(|_| calls.not_ok == 0));
    if let Some(times) = ok {
        html.raw("<path class=\"whisker\" d=\"M").place(x(times.min)).raw(" 7H").place(x(times.max.value)).raw("\"/>");
        if let (Some(p50), Some(p99)) = (times.quantile(Percentile::P50), times.quantile(Percentile::P99)) {
            html.raw("<path class=\"box\" d=\"M").place(x(p50.value)).raw(" 4H").place(x(p99.value)).raw("v6H");
            html.place(x(p50.value)).raw("z\"/><path class=\"median\" d=\"M").place(x(p50.value)).raw(" 1v12\"/>");
        }
    }
    let not_ok = calls.response_not_ok.as_ref().or_else(|| calls.response.as_ref().filter(|_| ok.is_none()));
    if let Some(p50) = not_ok.and_then(|times| times.quantile(Percentile::P50)) {
        html.raw("<path class=\"cross\" d=\"M").place(x(p50.value) - 3.0).raw(" 4l6 6m0 -6l-6 6\"/>");
    }
    html.raw("</svg>");
    html
}

/// The details below an opened name.
fn below(calls: &CallBreakdown, over_time: Option<Plots>) -> Html {
    let mut html = Html::default();
    let mut say = |words: &str| {
        html.raw("<p class=\"faint\">").text(&clean(words)).raw("</p>");
    };
    say(&format!(
        "{} answered/s, {} in, {} out; ended as {}",
        Number(calls.answered_per_s),
        Size(calls.bytes_in as f64),
        Size(calls.bytes_out as f64),
        in_words(ways(calls, |_| true).into_iter())
    ));
    let apart = |times: Option<&Distribution>| {
        let times = times?;
        Some(format!(
            "p50 {}, p99 {}",
            duration(times.quantile(Percentile::P50)?),
            duration(times.quantile(Percentile::P99)?)
        ))
    };
    if let (Some(ok), Some(not_ok)) = (apart(calls.response_ok.as_ref()), apart(calls.response_not_ok.as_ref())) {
        say(&format!("ok calls alone: {ok}; those not ok: {not_ok}"));
    }
    if let Some(over_time) = over_time {
        over_time.write(&mut html);
    }
    html
}
