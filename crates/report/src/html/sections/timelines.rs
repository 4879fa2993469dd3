//! Single calls, part by part: what a user sees of one answer.

use brunt_plan::units::{Duration, ExactDuration, count};
use brunt_record::call_timeline::CallTimeline;

use super::super::shown::Shown;
use crate::csv::Row;
use crate::numbers::clean;
use crate::page::{ACROSS, Label, Panel, Plots, Scale, Section, Tool};

/// The height of a call's row, and of the marks in it.
const ROW: f64 = 20.0;
const MARK: f64 = 10.0;

/// The section of single calls; without any it has no body.
pub(super) fn timelines(shown: Shown<'_>) -> Section {
    let calls = &shown.summary.run.timelines;
    let mut section = Section::new("timelines", "Single answers");
    let Some(first) = calls.first() else { return section };
    section.note = format!("{}, from when each was due", clean(&first.unit));
    plots(calls).write(&mut section.body);
    section.tools.push(Tool::csv("timelines", &csv(calls)));
    section.is_drawn = true;
    section
}

/// When the last part arrived, in nanoseconds.
fn last_ns(call: &CallTimeline) -> u64 {
    call.places.last().map_or(call.ended_ns, |(at_ns, _)| *at_ns)
}

fn plots(calls: &[CallTimeline]) -> Plots {
    let span_ns = calls.iter().map(last_ns).max().unwrap_or(1).max(1);
    let axis = Scale::linear(0.0, span_ns as f64);
    let x = |ns: u64| axis.share(ns as f64) * ACROSS;
    let mut panel = Panel { height: ROW * calls.len() as f64, ..Panel::default() };
    for (nth, call) in calls.iter().enumerate() {
        let middle = ROW * (nth as f64 + 0.5);
        let first_ns = call.places.first().map_or(call.ended_ns, |(at_ns, _)| *at_ns);
        panel.lines.push((middle, clean(&call.chosen).into_owned()));
        // It waits, first for its turn to be sent and then for the first part.
        for (class, from, to) in [("line faint dashed", 0, call.sent_ns), ("line orange", call.sent_ns, first_ns)] {
            panel.plot.raw("<path class=\"").raw(class).raw("\" d=\"M").place(x(from)).raw(" ").place(middle);
            panel.plot.raw("H").place(x(to)).raw("\"/>");
        }
        panel.plot.raw("<path class=\"line blue\" d=\"");
        for (at_ns, _) in &call.places {
            panel.plot.raw("M").place(x(*at_ns)).raw(" ").place(middle - MARK / 2.0).raw("v").place(MARK);
        }
        panel.plot.raw("\"/>");
        let amount = call.places.last().map_or(0, |(_, amount)| *amount);
        let text = format!("{}, {} {}", Duration(first_ns), count(amount), clean(&call.unit));
        panel.labels.push(Label { class: "faint", y: middle, text });
    }
    let step = axis.round(6);
    Plots {
        id: "single-answers".to_owned(),
        name: "single answers".to_owned(),
        words: words(calls),
        ticks: step.into_iter().map(|ns| (x(ns as u64), ExactDuration(ns as u64).to_string())).collect(),
        panels: vec![panel],
        ..Plots::default()
    }
}

/// The drawing for screen readers.
fn words(calls: &[CallTimeline]) -> String {
    let one = |call: &CallTimeline| {
        let first_ns = call.places.first().map_or(call.ended_ns, |(at_ns, _)| *at_ns);
        let amount = call.places.last().map_or(0, |(_, amount)| *amount);
        let (first, last) = (Duration(first_ns), Duration(last_ns(call)));
        let (chosen, unit) = (clean(&call.chosen), clean(&call.unit));
        format!("{chosen}: the first after {first}, {} {unit} after {last}", count(amount))
    };
    calls.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// A row for each part.
fn csv(calls: &[CallTimeline]) -> String {
    let mut head = Row::default();
    for name in ["answer", "chosen", "sent_ns", "at_ns", "so_far"] {
        head.put(name);
    }
    let mut text = head.line();
    for (number, call) in (1..).zip(calls) {
        for (at_ns, so_far) in &call.places {
            let mut row = Row::default();
            row.put(number);
            row.put(&call.chosen);
            row.put(call.sent_ns);
            row.put(at_ns);
            row.put(so_far);
            text += &row.line();
        }
    }
    text
}
