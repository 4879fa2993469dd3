//! A figure over runs: a dot for each run, its threshold, and marks where the version changes.

use brunt_decide::kept::{Filter, TrendPoint};
use brunt_plan::threshold::shown;

use super::{Html, begun, field, filter_fields, page, svg};
use crate::numbers::brief;
use crate::page::Scale;

/// The content of a trend's page.
#[derive(Debug, Clone, Copy)]
pub struct TrendTable<'a> {
    /// The figure, as thresholds call it.
    pub figure: &'a str,
    /// The tag whose values mark versions.
    pub mark: &'a str,
    /// The filter that was asked for.
    pub filter: &'a Filter,
    /// The oldest first.
    pub points: &'a [TrendPoint],
    /// Figures to choose from.
    pub figures: &'a [String],
    /// Tags to choose from, as `key=value`.
    pub tags: &'a [String],
}

/// The size of the chart.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 300.0;
/// Room for the axis at the left, and for the marks above and below.
const LEFT: f64 = 80.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 24.0;
/// The distance from the right edge below which a mark's name stands on its left.
const LATE: f64 = 120.0;
/// The room above and below all values, as a share of their range, and as a share of the greatest.
const ROOM: f64 = 0.15;
const LEAST_ROOM: f64 = 0.02;
/// Values that go down to this share of the greatest stand on an axis from zero.
const NEAR_ZERO: f64 = 0.3;
/// The most horizontal lines.
const MOST_TICKS: usize = 5;
/// The most marks that are named.
const MOST_NAMED: usize = 12;

/// The page of a trend.
pub fn trend(trend: &TrendTable<'_>) -> String {
    let mut body = Html::default();
    body.raw("<p><a href=\"./\">All runs</a></p>");
    form(&mut body, trend);
    if trend.points.is_empty() {
        body.raw("<p>None of these runs has this figure.</p>");
    } else {
        chart(&mut body, trend);
        table(&mut body, trend);
    }
    page(&format!("Trend of {}", brief(trend.figure)), &body)
}

fn form(body: &mut Html, trend: &TrendTable<'_>) {
    body.raw("<form class=\"filter\" role=\"search\" action=\"trend\" method=\"get\">");
    field(body, "Figure", "figure", trend.figure, "figures");
    body.raw("<datalist id=\"figures\">");
    for figure in trend.figures {
        body.raw("<option value=\"").text(figure).raw("\">");
    }
    body.raw("</datalist>");
    field(body, "Versions by tag", "mark", trend.mark, "");
    filter_fields(body, trend.filter, trend.tags);
    body.raw("<button>Show</button></form>");
}

fn value_of(trend: &TrendTable<'_>, value: f64) -> String {
    shown(trend.figure, value).unwrap_or_else(|| value.to_string())
}

/// An axis for all values, as close to them as possible; from zero where they reach far down.
fn axis(low: f64, high: f64) -> Scale {
    let room = ((high - low) * ROOM).max(high.abs() * LEAST_ROOM);
    let low = if low < high * NEAR_ZERO { 0.0 } else { (low - room).max(0.0) };
    Scale::linear(low, high + room)
}

fn chart(body: &mut Html, trend: &TrendTable<'_>) {
    let points = trend.points;
    let ends = |point: &TrendPoint| point.interval.map_or([None; 2], |(low, high)| [Some(low), high]);
    let everything =
        points.iter().flat_map(|point| [Some(point.value), point.limit].into_iter().chain(ends(point))).flatten();
    let Some((low, high)) = svg::range(everything.filter(|value| value.is_finite())) else { return };
    let scale = axis(low, high);
    let ticks = scale.round(MOST_TICKS);
    let x = |at: usize| LEFT + 10.0 + at as f64 * (WIDTH - LEFT - 20.0) / points.len().saturating_sub(1).max(1) as f64;
    let y = |value: f64| HEIGHT - BOTTOM - scale.share(value).clamp(0.0, 1.0) * (HEIGHT - TOP - BOTTOM);
    let failed = points.iter().filter(|point| !point.held).count();
    let label = format!("{} of {} runs; {failed} failed its threshold", brief(trend.figure), points.len());
    body.raw("<svg class=\"trend\" viewBox=\"0 0 900 300\" role=\"group\" aria-label=\"").text(&label).raw("\">");
    for tick in &ticks {
        body.raw("<line class=\"grid\" x1=\"80\" x2=\"900\" y1=\"").place(y(*tick)).raw("\" y2=\"").place(y(*tick));
        body.raw("\"/><text class=\"axis\" text-anchor=\"end\" x=\"72\" y=\"").place(y(*tick) + 4.0).raw("\">");
        body.text(&value_of(trend, *tick)).raw("</text>");
    }
    marks(body, points, &x);
    // A threshold is a step from half way to the run before to half way to the run after.
    let half = (WIDTH - LEFT - 20.0) / points.len().saturating_sub(1).max(1) as f64 / 2.0;
    for (at, limit) in points.iter().enumerate().filter_map(|(at, point)| Some((at, point.limit?))) {
        let (left, right) = ((x(at) - half).max(LEFT), (x(at) + half).min(WIDTH));
        body.raw("<line class=\"limit\" x1=\"").place(left).raw("\" x2=\"").place(right);
        body.raw("\" y1=\"").place(y(limit)).raw("\" y2=\"").place(y(limit)).raw("\"/>");
    }
    body.raw("<path class=\"line\" d=\"");
    for (at, point) in points.iter().enumerate() {
        body.raw(if at == 0 { "M" } else { "L" }).place(x(at)).raw(" ").place(y(point.value));
    }
    body.raw("\"/>");
    for (at, point) in points.iter().enumerate() {
        if let Some((low, high)) = point.interval {
            // Without an upper end the line leaves the chart.
            let (top, bottom) = (high.map_or(TOP, &y), y(low));
            body.raw("<path class=\"line\" d=\"M").place(x(at)).raw(" ").place(top).raw("V").place(bottom);
            for end in high.map(|_| top).into_iter().chain([bottom]) {
                body.raw("M").place(x(at) - 4.0).raw(" ").place(end).raw("h8");
            }
            body.raw("\"/>");
        }
        dot(body, trend, point, x(at), y(point.value));
    }
    body.raw("</svg><p class=\"faint\">● no threshold failed, ✕ one did; dashed: the threshold")
        .raw("; vertical: the version changed</p>");
}

/// A run: a link, a dot where it held, a cross where it did not.
fn dot(body: &mut Html, trend: &TrendTable<'_>, point: &TrendPoint, x: f64, y: f64) {
    let version = point.mark.as_ref().map_or(String::new(), |mark| format!(", {} {mark}", trend.mark));
    let bound = if point.at_least { "≥" } else { "" };
    let when = begun(point.started_unix_ms);
    let label = format!("run {}: {bound}{}, {when}{version}", point.number, value_of(trend, point.value));
    body.raw("<a href=\"run?number=").number(point.number).raw("\"><title>").text(&label).raw("</title>");
    if point.held {
        body.raw("<circle class=\"dot\" r=\"4\" cx=\"").place(x).raw("\" cy=\"").place(y).raw("\"/>");
    } else {
        body.raw("<path class=\"cross\" d=\"M").place(x - 5.0).raw(" ").place(y - 5.0).raw("l10 10m0 -10l-10 10\"/>");
    }
    body.raw("</a>");
}

/// Marks where the version differs from that of the run before.
fn marks(body: &mut Html, points: &[TrendPoint], x: &impl Fn(usize) -> f64) {
    let changes: Vec<_> = points
        .iter()
        .enumerate()
        .zip(std::iter::once(None).chain(points.iter().map(|point| point.mark.as_deref())))
        .filter_map(|((at, point), before)| Some((at, point.mark.as_deref().filter(|mark| before != Some(mark))?)))
        .collect();
    for (at, version) in &changes {
        body.raw("<line class=\"mark\" y1=\"24\" y2=\"276\" x1=\"")
            .place(x(*at))
            .raw("\" x2=\"")
            .place(x(*at))
            .raw("\"/>");
        if changes.len() <= MOST_NAMED {
            let is_late = x(*at) > WIDTH - LATE;
            body.raw(if is_late {
                "<text class=\"axis\" text-anchor=\"end\" y=\"16\" x=\""
            } else {
                "<text class=\"axis\" y=\"16\" x=\""
            })
            .place(x(*at))
            .raw("\">")
            .text(&brief(version))
            .raw("</text>");
        }
    }
}

fn table(body: &mut Html, trend: &TrendTable<'_>) {
    body.raw("<table><caption>The runs, the newest first</caption><thead><tr><th>Run</th><th>Begun (UTC)</th><th>");
    body.text(&brief(trend.figure)).raw("</th><th>Threshold</th><th>");
    body.text(&brief(trend.mark)).raw("</th></tr></thead><tbody>");
    for point in trend.points.iter().rev() {
        body.raw("<tr><td><a href=\"run?number=")
            .number(point.number)
            .raw("\">")
            .number(point.number)
            .raw("</a></td><td>");
        body.text(&begun(point.started_unix_ms)).raw("</td><td>").text(if point.at_least { "≥" } else { "" });
        body.text(&value_of(trend, point.value));
        if let Some((low, None)) = point.interval {
            body.raw(" <small>over ").text(&value_of(trend, low)).raw("</small>");
        }
        body.raw("</td><td>");
        if let Some(limit) = point.limit {
            body.raw(if point.held { "<span class=\"good\">✓ " } else { "<span class=\"bad\">✗ " });
            body.text(&value_of(trend, limit)).raw("</span>");
        }
        body.raw("</td><td>").text(point.mark.as_deref().map(brief).unwrap_or_default().as_str()).raw("</td></tr>");
    }
    body.raw("</tbody></table>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_fits_its_values() {
        let near = axis(100.0, 110.0);
        assert!(near.low > 90.0 && near.high < 120.0 && near.round(MOST_TICKS).len() >= 2, "{near:?}");
        assert_eq!(axis(1.0, 110.0).low, 0.0);
        for (low, high) in [(0.0, 0.0), (1e-9, 1e-9), (7.0, 7.0), (1.0, 1e12)] {
            let axis = axis(low, high);
            assert!(axis.holds(low) && axis.holds(high) && axis.round(MOST_TICKS).len() <= 6, "{axis:?}");
        }
    }
}
