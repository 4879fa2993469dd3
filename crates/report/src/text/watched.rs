//! Figures watched beside the run: a line for each.

use brunt_judge::summary::Summary;
use brunt_judge::watched::WatchedSummary;
use brunt_plan::watch::shown_value;
use brunt_record::histogram::AtLeast;

use super::fitting::{Rank, Section};
use super::{WIDTH, wrapped};
use crate::columns;
use crate::numbers::{clean, count, duration};
use crate::style::{Paint, Role};

/// The widest names.
const NAME: usize = 24;
/// The width of a column.
const COLUMN: usize = 11;

pub(super) fn section(summary: &Summary, paint: Paint) -> Section {
    let all = &summary.watched;
    let width = all.iter().map(|one| columns::width(&one.name)).max().unwrap_or(0).clamp(13, NAME);
    let columns = ["mean", "min", "max", "in the end"].map(|column| format!("{column:>COLUMN$}")).concat();
    let heading = format!("{}{}", paint.strong(format!("{:<w$}", "Watched", w = width + 2)), paint.faint(columns));
    let mut section = Section::new("Watched").headed(heading).with_rows("figure");
    for one in all {
        let name = columns::padded(columns::cut(&clean(&one.name), width), width);
        let cells = [one.mean, one.min, one.max, one.last].map(|value| cell(one, value, paint)).concat();
        let per_call =
            one.cpu_per_call_ns.map(|ns| paint.faint(format!("  {} a call", duration(AtLeast::exactly(ns as u64)))));
        let mut lines = vec![format!("  {name}{cells}{}", per_call.unwrap_or_default())];
        lines.extend(missed(one).into_iter().map(|line| paint.warning(line)));
        let rank = if one.missed_seconds > 0 { Rank::Always } else { Rank::Figure };
        section.add_row(rank, lines.join("\n"));
    }
    section
}

fn cell(of: &WatchedSummary, value: Option<f64>, paint: Paint) -> String {
    match value {
        Some(value) => format!("{:>COLUMN$}", shown_value(of.unit, value)),
        None => paint.as_(Role::Faint, format!("{:>COLUMN$}", "-")),
    }
}

/// How many seconds have no value, and why.
fn missed(of: &WatchedSummary) -> Vec<String> {
    if of.missed_seconds == 0 {
        return Vec::new();
    }
    let all = count(of.seconds + of.missed_seconds);
    let text = format!("no value in {} of {all} seconds: {}", count(of.missed_seconds), clean(&of.problem));
    wrapped("  ! ", "    ", &text, WIDTH)
}
