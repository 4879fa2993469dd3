//! Every distribution of times, as a table.

use brunt_judge::distribution::{Distribution, Quantile};
use brunt_judge::uncertainty::ConfidenceInterval;
use brunt_plan::units::Clock;
use brunt_record::catalogue::Counter;
use brunt_record::histogram::{AtLeast, Percentile};
use brunt_record::slowest::TracedCall;

use super::super::first_screen::within;
use super::super::shown::Shown;
use crate::numbers::{clean, count, counted, duration};
use crate::page::{Cell, Column, Section, Table};

/// The rows that are not folded away.
const MAIN: [&str; 5] = ["p50", "p90", "p99", "p99.9", "max"];

pub(super) fn latency(shown: Shown<'_>) -> Section {
    let mut section = Section::new("latency", "Latency");
    let times = &shown.summary.times;
    let all = [
        ("response", &times.response),
        ("service", &times.service),
        ("first byte", &times.first_byte),
        ("connect", &times.connect),
        ("tls", &times.tls),
        ("handshake", &times.handshake),
        ("first message", &times.first_message),
        ("message gap", &times.message_gap),
        ("each message", &times.each_message),
        ("last message", &times.last_message),
        ("lag", &times.lag),
        ("ok", &times.ok),
        ("not ok", &times.not_ok),
    ];
    let known: Vec<(&str, &Distribution)> =
        all.iter().filter_map(|(name, times)| Some((*name, times.as_ref()?))).collect();
    if known.is_empty() {
        return section;
    }
    let has_ends = |times: &Distribution| times.quantiles.iter().any(|quantile| quantile.interval.is_some());
    let mut columns = vec![Column::figure("figure")];
    for (name, times) in &known {
        columns.push(Column::time(*name));
        if has_ends(times) {
            columns.push(Column::figure(format!("{name} within")));
        }
    }
    let note = if known.iter().any(|(_, times)| has_ends(times)) {
        "; within: 95% sampling and brunt's own delays"
    } else {
        ""
    };
    let caption = format!("response from when a call was due, service from when it was sent{note}");
    let mut table = Table::new("latency", caption, columns);
    let mut row = |name: &str, cell: &dyn Fn(&Distribution) -> Cell, ends: &dyn Fn(&Distribution) -> String| {
        let mut cells = vec![Cell::new(name)];
        for (_, times) in &known {
            cells.push(cell(times));
            if has_ends(times) {
                cells.push(Cell::new(ends(times)));
            }
        }
        if MAIN.contains(&name) { table.push(cells) } else { table.push_minor(cells) }
    };
    let none = |_: &Distribution| String::new();
    let rounded = |mean: AtLeast<f64>| time(mean.map(|ns| ns.round() as u64));
    row("mean", &|times| rounded(times.mean), &none);
    row("stdev", &|times| rounded(times.stdev), &none);
    row("min", &|times| time(AtLeast { value: times.min, at_least: false }), &none);
    for percentile in Percentile::ALL {
        row(
            percentile.name(),
            &|times| times.at(percentile).map_or_else(Cell::none, |one| quantile(times, one)),
            &|times| {
                let interval = times.at(percentile).and_then(|quantile| quantile.interval);
                interval.map_or_else(String::new, |ConfidenceInterval { low_ns, high_ns, .. }| within(low_ns, high_ns))
            },
        );
    }
    row("max", &|times| time(times.max), &none);
    row("count", &|times| Cell::sorted(count(times.count), times.count as f64), &none);
    section.tools.push(table.csv());
    table.write_choice(&mut section.body);
    table.write(&mut section.body);
    let numbers = &shown.summary.total.numbers;
    let open = numbers.get(Counter::Unfinished) + numbers.get(Counter::Unsent);
    if open > 0 {
        section.body.raw("<p class=\"faint\">≥ at least: ").text(&counted(open, "call"));
        section.body.raw(" had not ended and count with the time they had waited</p>");
    }
    let slowest = shown.summary.total.slowest.calls();
    if !slowest.is_empty() {
        slowest_traced(slowest).write(&mut section.body);
    }
    section
}

/// The slowest traced calls: their times, when they were due, and the ids of their traces.
fn slowest_traced(calls: &[TracedCall]) -> Table {
    let has_names = calls.iter().any(|call| !call.request.is_empty());
    let mut columns = vec![Column::time("took"), Column::figure("due at"), Column::figure("status")];
    if has_names {
        columns.push(Column::words("request"));
    }
    columns.push(Column::words("trace"));
    let mut table = Table::new("slowest", "the slowest traced calls that were a success", columns);
    for call in calls {
        let mut cells = vec![
            time(AtLeast { value: call.took_ns, at_least: false }),
            Cell::sorted(Clock(call.due_ns).to_string(), call.due_ns as f64),
            Cell::new(call.status.to_string()),
        ];
        if has_names {
            cells.push(Cell::new(clean(&call.request)));
        }
        cells.push(Cell::new(clean(&call.trace_id)));
        table.push(cells);
    }
    table
}

/// A time, marked where it is a lower bound.
fn time(ns: AtLeast<u64>) -> Cell {
    Cell::sorted(duration(ns), ns.value as f64).classed(if ns.at_least { "warning" } else { "" })
}

/// A percentile: faint where it is merely the longest call, marked where own delays spoil it.
fn quantile(times: &Distribution, quantile: &Quantile) -> Cell {
    let cell = time(quantile.value());
    match () {
        () if quantile.is_spoiled() => cell.classed("warning"),
        () if is_longest(times, quantile) => cell.classed("faint"),
        () => cell,
    }
}

/// Whether a percentile of this many calls is merely the longest of them.
fn is_longest(times: &Distribution, quantile: &Quantile) -> bool {
    (times.count as f64 * (1.0 - quantile.share_ratio)) < 1.0
}
