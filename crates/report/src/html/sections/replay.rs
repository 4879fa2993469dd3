//! A replay beside its log.

use brunt_record::replayed::AgainstLog;

use super::super::shown::Shown;
use crate::numbers::{clean, count, counted};
use crate::page::{Cell, Column, Section, Table};
use crate::skipped;
use crate::text::replay::{share, time};

/// Its section; without a body where no log was replayed.
pub(super) fn replay(shown: Shown<'_>) -> Section {
    let mut section = Section::new("replay", "Against the log");
    let Some(replayed) = &shown.summary.run.replayed else { return section };
    let read = format!(
        "{}, {} read, {}",
        counted(replayed.requests, "request"),
        counted(replayed.lines, "line"),
        counted(replayed.sessions, "session")
    );
    section.body.raw("<p>").text(&read).raw("</p>");
    if !replayed.skipped.is_empty() {
        section.body.raw("<ul class=\"findings\">");
        for (name, number) in &replayed.skipped {
            let class = if skipped::is_defect(name) { "warning" } else { "faint" };
            let text = format!("{} skipped: {}", counted(*number, "line"), clean(skipped::words(name)));
            section.body.raw("<li class=\"").raw(class).raw("\">").text(&text).raw("</li>");
        }
        section.body.raw("</ul>");
    }
    let mut columns = vec![Column::words("template")];
    columns.extend(["calls", "other status", "other size"].map(Column::figure));
    columns.extend(["p50", "log's p50", "p95", "log's p95"].map(Column::time));
    columns.push(Column::words("such as"));
    let mut table = Table::new("replay", "what came beside what the log has", columns).sortable();
    for row in std::iter::once(&replayed.all).chain(&replayed.templates) {
        table.push(cells(row));
    }
    section.tools.push(table.csv());
    table.write(&mut section.body);
    section
}

fn cells(row: &AgainstLog) -> Vec<Cell> {
    let of = |other: u64, all: u64| match other {
        _ if all == 0 => Cell::none(),
        0 => Cell::sorted("0%", 0.0),
        _ => Cell::sorted(share(other, all), other as f64 / all as f64).classed("warning"),
    };
    let quantile = |ns: Option<u64>| ns.map_or_else(Cell::none, |ns| Cell::sorted(time(ns), ns as f64));
    let pair = row.statuses.first();
    vec![
        Cell::new(clean(&row.name)),
        Cell::count(row.calls),
        of(row.other_status, row.compared_status),
        of(row.other_size, row.compared_size),
        quantile(row.came_p50_ns),
        quantile(row.logged_p50_ns),
        quantile(row.came_p95_ns),
        quantile(row.logged_p95_ns),
        pair.map_or_else(Cell::none, |pair| {
            Cell::new(format!("{} came, the log has {}: {}", pair.came, pair.logged, count(pair.count)))
        }),
    ]
}
