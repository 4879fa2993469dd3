//! A figure over runs: a dot for each run, its threshold, and marks where the version changes.

use brunt_decide::kept::{Filter, TrendPoint};
use brunt_plan::threshold::shown;

use super::{Html, ROOT, begun, field, filter_fields, filter_query, link, page, svg};
use crate::markup::query;
use crate::numbers::{bound, brief};
use crate::page::{ACROSS, Cell, Column, Label, Panel, Plots, Scale, Table};

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

/// The height of the drawing, in pixels.
const HEIGHT: f64 = 220.0;
/// The room above and below all values, as a share of their range, and as a share of the greatest.
const ROOM: f64 = 0.15;
const LEAST_ROOM: f64 = 0.02;
/// Values that go down to this share of the greatest stand on an axis from zero.
const NEAR_ZERO: f64 = 0.3;
/// The most horizontal lines.
const MOST_TICKS: usize = 5;
/// The most runs that are named below the drawing.
const MOST_RUNS: usize = 20;

/// The page of a trend.
pub fn trend(trend: &TrendTable<'_>) -> String {
    let mut body = Html::default();
    form(&mut body, trend);
    body.raw("<p>");
    link(&mut body, &format!("{ROOT}{}", filter_query(trend.filter, &[])), "The list of these runs");
    body.raw("</p>");
    if trend.points.is_empty() {
        body.raw("<p class=\"outcome\">None of these runs has this figure.</p><p>");
        if trend.figures.is_empty() {
            body.raw("No run matches: ask for less above, or for <a href=\"trend?figure=p99\">p99 of all runs</a>.");
        } else {
            body.raw("They have ");
            for (nth, figure) in trend.figures.iter().enumerate() {
                body.raw(if nth == 0 { "" } else { ", " });
                link(&mut body, &format!("trend{}", filter_query(trend.filter, &[("figure", figure)])), &brief(figure));
            }
            body.raw(".");
        }
        body.raw("</p>");
    } else {
        chart(&mut body, trend);
        table(&mut body, trend);
    }
    page(&format!("trend of {}", brief(trend.figure)), &body)
}

fn form(body: &mut Html, trend: &TrendTable<'_>) {
    body.raw("<div class=\"filter\"><form role=\"search\" action=\"trend\" method=\"get\">");
    field(body, "Figure", "figure", trend.figure, "figures");
    body.raw("<datalist id=\"figures\">");
    for figure in trend.figures {
        body.raw("<option value=\"").text(figure).raw("\">");
    }
    body.raw("</datalist>");
    field(body, "Versions by tag", "mark", trend.mark, "");
    filter_fields(body, trend.filter, trend.tags);
    body.raw("<button>Show</button></form></div>");
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
    // Each run has as much room.
    let room = ACROSS / points.len() as f64;
    let x = |at: usize| (at as f64 + 0.5) * room;
    let y = |value: f64| (1.0 - scale.share(value).clamp(0.0, 1.0)) * HEIGHT;
    let mut panel = Panel {
        title: brief(trend.figure),
        note: "of each run, the oldest first, with its 95% interval where known; ✕: over its limit".to_owned(),
        height: HEIGHT,
        lines: scale.round(MOST_TICKS).into_iter().map(|tick| (y(tick), value_of(trend, tick))).collect(),
        ..Panel::default()
    };
    versions(&mut panel, points, room);
    for (at, point) in points.iter().enumerate() {
        if let Some(limit) = point.limit {
            panel.plot.raw("<path class=\"limit\" d=\"M").place(at as f64 * room).raw(" ").place(y(limit)).raw("H");
            panel.plot.place((at + 1) as f64 * room).raw("\"/>");
        }
    }
    panel.plot.raw("<path class=\"line faint\" d=\"");
    for (at, point) in points.iter().enumerate() {
        panel.plot.raw(if at == 0 { "M" } else { "L" }).place(x(at)).raw(" ").place(y(point.value));
    }
    panel.plot.raw("\"/>");
    for (at, point) in points.iter().enumerate() {
        dot(&mut panel, trend, point, x(at), &y);
    }
    if let Some(last) = points.last() {
        let limit = last.limit.map(|limit| Label {
            class: "faint",
            y: y(limit),
            text: format!("limit {}", value_of(trend, limit)),
        });
        panel.labels.extend(limit);
        panel.labels.push(Label {
            class: "blue",
            y: y(last.value),
            text: format!("{}{}", bound(last.at_least), value_of(trend, last.value)),
        });
    }
    let failed = points.iter().filter(|point| !point.held).count();
    let step = points.len().div_ceil(MOST_RUNS);
    let named = points.iter().enumerate().step_by(step);
    let plots = Plots {
        id: "trend".to_owned(),
        name: format!("trend of {}", brief(trend.figure)),
        words: format!("{} of {} runs; {failed} failed its threshold", brief(trend.figure), points.len()),
        panels: vec![panel],
        ticks: named.clone().map(|(at, point)| (x(at), point.number.to_string())).collect(),
        leads_to: named.map(|(_, point)| Some(to_run(point))).collect(),
        ..Plots::default()
    };
    plots.write(body);
}

fn to_run(point: &TrendPoint) -> String {
    format!("run{}", query(&[("number", &point.number.to_string())]))
}

/// A run: a link, a dot where it held, a cross where it did not, and its interval.
fn dot(panel: &mut Panel, trend: &TrendTable<'_>, point: &TrendPoint, x: f64, y: &impl Fn(f64) -> f64) {
    let version = point.mark.as_ref().map_or(String::new(), |mark| format!(", {} {mark}", trend.mark));
    let when = begun(point.started_unix_ms);
    let value = value_of(trend, point.value);
    let label = format!("run {}: {}{value}, {when}{version}", point.number, bound(point.at_least));
    let class = if point.held { " blue\" d=\"M" } else { " orange\" d=\"M" };
    let plot = &mut panel.plot;
    plot.raw("<a href=\"").text(&to_run(point)).raw("\"><title>").text(&label).raw("</title>");
    if let Some((low, high)) = point.interval {
        // Without an upper end the line leaves the drawing.
        plot.raw("<path class=\"line").raw(class).place(x).raw(" ").place(y(low)).raw("V");
        plot.place(high.map_or(0.0, y)).raw("\"/>");
    }
    plot.raw("<path class=\"dot").raw(class).place(x).raw(" ").place(y(point.value)).raw("h0\"/></a>");
    if !point.held {
        panel.notes.push(("cross", x, y(point.value) - 8.0, "✕".to_owned()));
    }
}

/// Draws a line where the version differs from that of the run before, with its name where there is room, even on a phone.
fn versions(panel: &mut Panel, points: &[TrendPoint], room: f64) {
    /// The width of a phone's drawing, and of a letter, in pixels.
    const PHONE: f64 = 260.0;
    const LETTER: f64 = 7.0;
    let before = std::iter::once(None).chain(points.iter().map(|point| point.mark.as_deref()));
    let changed = points.iter().enumerate().zip(before).filter_map(|((at, point), before)| {
        Some((at as f64 * room, point.mark.as_deref().filter(|mark| before != Some(mark))?))
    });
    let mut free = 0.0;
    for (x, version) in changed {
        panel.plot.raw("<path class=\"change\" d=\"M").place(x).raw(" 0V").place(HEIGHT).raw("\"/>");
        let version = brief(version);
        let width = (version.chars().count() as f64 + 1.5) * LETTER / PHONE * ACROSS;
        if x >= free && x + width <= ACROSS {
            panel.notes.push(("mark", x + 5.0, 10.0, version));
            free = x + width;
        }
    }
}

fn table(body: &mut Html, trend: &TrendTable<'_>) {
    let figure = Column::figure(brief(trend.figure));
    let columns = vec![Column::words("run"), Column::words("begun (UTC)"), figure, Column::words(brief(trend.mark))];
    let mut table = Table::new("runs", "the newest first", columns);
    for point in trend.points.iter().rev() {
        let within = match point.interval {
            Some((low, None)) => Some(format!("over {}", value_of(trend, low))),
            Some((low, Some(high))) => Some(format!("{} to {}", value_of(trend, low), value_of(trend, high))),
            None => None,
        };
        let limit = point.limit.map(|limit| format!("limit {}", value_of(trend, limit)));
        let (sign, class) = match (point.limit, point.held) {
            (None, _) => ("", ""),
            (Some(_), true) => ("✓ ", "good"),
            (Some(_), false) => ("✗ ", "bad"),
        };
        let value = format!("{sign}{}{}", bound(point.at_least), value_of(trend, point.value));
        table.push(vec![
            Cell::new(point.number.to_string()).leading_to(Some(to_run(point))),
            Cell::new(begun(point.started_unix_ms)),
            Cell::new(value).classed(class).noted(limit.into_iter().chain(within).collect::<Vec<_>>().join("; ")),
            Cell::new(point.mark.as_deref().map(brief).unwrap_or_default()),
        ]);
    }
    table.write(body);
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
