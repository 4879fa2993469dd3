//! The run over time, as a drawing: panels one above the other on one axis of time.
//!
//! Text keeps its size and drawings fill the width they get: places across are shares of the plot, places down are pixels. What lies in an
//! element with `data-plot` has a thousand units across, the whole of the run, so that the page's script zooms by its `viewBox` alone.

mod flow;
mod panel;
mod response;

use brunt_plan::units::{Clock, Number};

use super::shown::Shown;
use super::stretches::Stretch;
use crate::headline::Statement;
use crate::markup::Html;
use crate::numbers::{count, counted};
use panel::{Across, Panel, text};

/// How many units a plot is wide.
const ACROSS: f64 = 1000.0;
/// Where the first panel begins, in pixels: below the signs of findings.
const TOP: f64 = 18.0;
/// What stands below the last panel: the axis of time.
const AXIS: f64 = 22.0;
/// The most times on the axis.
const MOST_TIMES: u64 = 10;
/// Steps from one time to the next, in nanoseconds: what a clock has.
const STEPS: [u64; 16] = [
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
    15_000_000_000,
    30_000_000_000,
    60_000_000_000,
    120_000_000_000,
    300_000_000_000,
    600_000_000_000,
    900_000_000_000,
    1_800_000_000_000,
    3_600_000_000_000,
];

/// Writes the panels of a run; nothing where nothing was measured.
pub(super) fn write(html: &mut Html, shown: Shown<'_>, statements: &[Statement], stretches: &[Stretch]) {
    let Some(span) = stretches.last().map(|stretch| stretch.to_ns).filter(|span| *span > 0) else { return };
    let axis = Across { span_ns: span };
    let mut panels: Vec<Panel> = [
        response::panel(shown, stretches, axis),
        Some(flow::ended(shown, stretches, axis)),
        flow::waiting(shown, stretches, axis),
        flow::users(shown, axis),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut bottom = TOP;
    for panel in &mut panels {
        panel.top = bottom;
        bottom += panel.full_height();
    }
    html.raw("<div id=\"stack\" class=\"stack\" tabindex=\"0\" role=\"group\" aria-label=\"the run over time\"><svg class=\"plots\" overflow=\"visible\" width=\"100%\" height=\"");
    html.place(bottom + AXIS).raw("\" role=\"img\" aria-label=\"").text(&in_words(shown, stretches)).raw("\">");
    bands(html, statements, axis, bottom);
    for panel in &panels {
        panel.write(html);
    }
    times(html, axis, bottom);
    html.raw("</svg><p class=\"readout\" aria-live=\"polite\"></p></div>");
}

/// What the drawing shows, for who cannot see it.
fn in_words(shown: Shown<'_>, stretches: &[Stretch]) -> String {
    let most = stretches.iter().map(|stretch| stretch.flow.waiting).fold(0.0, f64::max);
    let p99s = stretches.iter().filter_map(|stretch| stretch.calls.response.quantile(0.99));
    let (low, high) = p99s.fold((u64::MAX, 0), |(low, high), ns| (low.min(ns), high.max(ns)));
    let times = if high > 0 {
        format!(
            "p99 of calls that ended well {} to {}, ",
            brunt_plan::units::Duration(low),
            brunt_plan::units::Duration(high)
        )
    } else {
        String::new()
    };
    format!(
        "over {}: {times}{} ok/s, {} of {} not ok, at most {} under way",
        Clock(stretches.last().map_or(0, |stretch| stretch.to_ns)),
        Number(shown.summary.rates.ok_per_s),
        count(shown.summary.not_ok),
        counted(shown.summary.total.numbers.get(brunt_record::catalogue::Counter::Due), "call"),
        count(most.round() as u64)
    )
}

/// Where findings have their place in time: a band through all panels, with the sign that stands before the sentence.
fn bands(html: &mut Html, statements: &[Statement], axis: Across, bottom: f64) {
    let height = bottom - TOP;
    html.raw("<svg data-plot y=\"").place(TOP).raw("\" width=\"100%\" height=\"").place(height);
    html.raw("\" viewBox=\"0 0 1000 ").place(height).raw("\" preserveAspectRatio=\"none\">");
    let stretches: Vec<_> = statements.iter().filter_map(Statement::stretch).collect();
    for (from, to) in &stretches {
        let (x, end) = (axis.x(*from), axis.x(*to));
        html.raw("<rect class=\"band\" y=\"0\" x=\"").place(x).raw("\" width=\"").place((end - x).max(2.0));
        html.raw("\" height=\"").place(height).raw("\"/>");
    }
    html.raw("</svg>");
    for (number, (from, to)) in stretches.into_iter().enumerate() {
        let middle = f64::midpoint(axis.x(from), axis.x(to).min(ACROSS));
        text(html, "sign", middle, 0.0, TOP - 4.0, crate::text::sign(number));
    }
}

/// The axis of time.
fn times(html: &mut Html, axis: Across, bottom: f64) {
    let step = STEPS.into_iter().find(|step| axis.span_ns / step <= MOST_TIMES);
    let step = step.unwrap_or_else(|| axis.span_ns.div_ceil(MOST_TIMES).next_multiple_of(3_600_000_000_000));
    html.raw("<g class=\"times\" data-y=\"").place(bottom + 15.0).raw("\">");
    for at in (0..=axis.span_ns).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
        text(html, "time", axis.x(at), 0.0, bottom + 15.0, &Clock(at).to_string());
    }
    html.raw("</g>");
}
