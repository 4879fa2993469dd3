//! A run over time: panels on one axis of time, and the same figures as a table.

mod flow;
mod load;
mod own;
mod response;
mod table;
mod tracks;
mod watched;

use brunt_plan::units::{Clock, Duration, ExactDuration, Number};
use brunt_record::catalogue::Counter;

use super::shown::Shown;
use super::stretches::Stretch;
use crate::headline::Toned;
use crate::numbers::{count, counted, duration};
use crate::page::{Across, Mark, Panel, Plots, Point, Section, Tool};

pub(super) use load::load;
pub(super) use response::{Limit, limits};
pub(super) use table::{Moment, moments, table};
pub(super) use tracks::{OfCalls, bars_alone, calls_over_time, ends_over_time, sparkline};

/// The panels of a run; empty where nothing was measured.
pub(super) fn section(shown: Shown<'_>, remarks: &[Toned], stretches: &[Stretch], moments: &[Moment]) -> Section {
    let mut section = Section::new("over-time", "Over time");
    let Some(span) = stretches.last().map(|stretch| stretch.to_ns).filter(|span| *span > 0) else { return section };
    let axis = Across { span_ns: span };
    let panels: [Option<Panel>; 4] = [
        response::panel(shown, stretches, axis),
        Some(flow::ended(shown, stretches, axis)),
        flow::waiting(shown, stretches, axis),
        flow::users(shown, axis),
    ];
    let plots = Plots {
        id: "stack".to_owned(),
        name: "the run over time".to_owned(),
        words: in_words(shown, stretches),
        panels: panels
            .into_iter()
            .flatten()
            .chain(own::panels(shown, axis))
            .chain(watched::panels(shown, axis))
            .collect(),
        ticks: axis.ticks(),
        leads_to: Vec::new(),
        marks: bands(remarks, axis),
        points: stretches.iter().zip(moments).map(|(stretch, moment)| point(shown, stretch, moment, axis)).collect(),
        span_ns: Some(span),
        is_narrow: false,
    };
    plots.with_changes(&shown.summary.run.changes).write(&mut section.body);
    if let Some(warmup) = warmup(shown) {
        section.body.raw("<p class=\"faint\">").text(&warmup).raw("</p>");
    }
    if let Some(crowded) = own::crowded(shown) {
        section.body.raw("<p class=\"faint\">").text(crowded).raw("</p>");
    }
    section.tools.push(Tool::csv("run-over-time", &table::csv(shown, stretches, moments)));
    section.is_drawn = true;
    section
}

/// A note on the warm-up, which is not drawn.
fn warmup(shown: Shown<'_>) -> Option<String> {
    let ns = Some(shown.summary.plan.warmup_ns).filter(|ns| *ns > 0)?;
    Some(format!("{} of warm-up before 0:00 are in no figure", ExactDuration(ns)))
}

/// The text for a stretch: `0:05, p50 4.49ms, p99 8.01ms, max 9.12ms, 500 ok/s, 3 under way`.
fn point(shown: Shown<'_>, stretch: &Stretch, moment: &Moment, axis: Across) -> Point {
    let times = stretch.calls.response_times().quantiles([0.5, 0.99, 1.0]);
    let named = ["p50", "p99", "max"].into_iter().zip(times).map(|(name, time)| match time {
        Some(time) => format!("{name} {}", duration(time)),
        None => format!("no {name}"),
    });
    let not_ok = stretch.flow.not_ok / stretch.seconds();
    let not_ok = (not_ok > 0.0).then(|| format!("{} not ok/s", Number(not_ok)));
    let words = std::iter::once(Clock(stretch.from_ns).to_string())
        .chain(named)
        .chain([format!("{} ok/s", Number(stretch.flow.ok / stretch.seconds()))])
        .chain(not_ok)
        .chain([format!("{} under way", count(stretch.flow.waiting.round() as u64))])
        .chain(own::words(shown, &moment.own))
        .chain(watched::words(shown, moment));
    Point { from: axis.x(stretch.from_ns), to: axis.x(stretch.to_ns), words: words.collect::<Vec<_>>().join(", ") }
}

/// A description of the drawing for screen readers.
fn in_words(shown: Shown<'_>, stretches: &[Stretch]) -> String {
    let most = stretches.iter().map(|stretch| stretch.flow.waiting).fold(0.0, f64::max);
    let p99s = stretches.iter().filter_map(|stretch| stretch.calls.response.quantile(0.99));
    let (low, high) = p99s.fold((u64::MAX, 0), |(low, high), ns| (low.min(ns), high.max(ns)));
    let times = if high > 0 {
        format!("p99 of calls that ended well {} to {}, ", Duration(low), Duration(high))
    } else {
        String::new()
    };
    format!(
        "over {}: {times}{} ok/s, {} of {} not ok, at most {} under way",
        Clock(stretches.last().map_or(0, |stretch| stretch.to_ns)),
        Number(shown.summary.rates.ok_per_s),
        count(shown.summary.not_ok),
        counted(shown.summary.total.numbers.get(Counter::Due), "call"),
        count(most.round() as u64)
    )
}

/// The stretches of findings: a band through all panels, with the sign before the sentence.
fn bands(remarks: &[Toned], axis: Across) -> Vec<Mark> {
    let stretches = remarks.iter().filter_map(Toned::stretch);
    let mark = |(number, (from, to)): (usize, (u64, u64))| Mark {
        class: "band",
        from: axis.x(from),
        to: axis.x(to),
        words: crate::text::sign(number).to_owned(),
    };
    stretches.enumerate().map(mark).collect()
}
