//! Messages: the time to the first, the regularity of the others, and their number.

use brunt_judge::breakdown::{CallBreakdown, MessageBreakdown};
use brunt_judge::distribution::Distribution;
use brunt_judge::distribution::TimeFigure::{self, At, Max, Mean, Min};
use brunt_judge::summary::Summary;
use brunt_plan::units::{Duration, Number};
use brunt_record::histogram::{AtLeast, Percentile};
use brunt_record::messages::Messages;

use super::fitting::{Rank, Section};
use super::{WIDTH, title, wrapped};
use crate::columns;
use crate::numbers::{clean, count, counted, duration, percent};
use crate::style::{Paint, Role};

/// The width of a column.
const COLUMN: usize = 15;
/// The width of the rows' names.
const NAME: usize = 10;
/// The rows without `-v`.
const BRIEF: [TimeFigure; 5] =
    [At(Percentile::P50), At(Percentile::P90), At(Percentile::P99), At(Percentile::P99_9), Max];
/// The width of a column of the table by name.
const NAMED: usize = 10;
/// The most names that are shown.
const MOST_NAMES: usize = 25;

/// The section of a run with answers that came as messages; empty for others.
pub(super) fn section(summary: &Summary, paint: Paint, verbose: bool) -> Section {
    let mut section = Section::new("Messages");
    let all = summary.total.messages();
    if all.is_empty() {
        let rate = summary.rates.messages_per_s;
        let line =
            || format!("{}{} messages/s, of streams that the warm-up began", title("Messages", paint), Number(rate));
        section.add(Rank::Figure, (rate > 0.0).then(line));
        return section;
    }
    section.add(Rank::Always, headline(all, summary, paint));
    let times = &summary.times;
    let columns: Vec<_> = [
        ("first message", times.first_message.as_ref()),
        ("message gap", times.message_gap.as_ref()),
        ("each message", times.each_message.as_ref()),
        ("last message", times.last_message.as_ref()),
    ]
    .into_iter()
    .filter_map(|(name, times)| Some((name, times?)))
    .collect();
    let names = columns.iter().map(|(name, _)| format!("{name:>COLUMN$}")).collect::<Vec<_>>().concat();
    let names = format!("{}{}", " ".repeat(NAME), paint.faint(names));
    section.add(Rank::Always, [names]);
    let rows = [Mean, Min].into_iter().chain(Percentile::ALL.map(At)).chain([Max]);
    for figure in rows.filter(|figure| verbose || BRIEF.contains(figure)) {
        let role = if matches!(figure, At(Percentile::P50 | Percentile::P99)) { Role::Strong } else { Role::Plain };
        let cells = columns
            .iter()
            .map(|(_, times)| times.figure(figure).map_or_else(String::new, |(value, _)| cell(value, role, paint)));
        let rank = if role == Role::Strong { Rank::Always } else { Rank::Minor };
        let line = format!("{}{}", paint.faint(format!("  {:<8}", figure.name())), cells.collect::<String>());
        section.add(rank, [line]);
    }
    section.add(Rank::Note, notes(all, summary, paint));
    section.add_whole(Rank::Minor, &by_name(&summary.breakdown.requests, paint));
    section
}

fn cell(value: AtLeast<u64>, role: Role, paint: Paint) -> String {
    paint.as_(if value.at_least { Role::Warning } else { role }, format!("{:>COLUMN$}", duration(value)))
}

fn headline(all: Messages<'_>, summary: &Summary, paint: Paint) -> Vec<String> {
    let rate = paint.strong(Number(summary.rates.messages_per_s));
    let of_each = all.each().quantile(0.5).filter(|ns| *ns > 0).map(|ns| 1e9 / ns as f64);
    let of_each = of_each.map_or_else(String::new, |rate| format!(", a stream at p50 {}/s", Number(rate)));
    vec![format!(
        "{}{rate} messages/s{of_each}; {} in {}",
        title("Messages", paint),
        count(all.count()),
        counted(all.streams(), "stream")
    )]
}

fn notes(all: Messages<'_>, summary: &Summary, paint: Paint) -> Vec<String> {
    let mut notes = Vec::new();
    if all.together() > 0 {
        let share = percent(all.together() as f64 / all.count().max(1) as f64);
        notes.push(format!("read with the one before, gap 0: {}, {share}", counted(all.together(), "message")));
    }
    if all.left() > 0 {
        notes.push(format!("left by their user before the end: {}", counted(all.left(), "stream")));
    }
    let cut_short = all.first().bounds.count() + all.gap().bounds.count();
    if cut_short > 0 {
        notes.push(format!("≥ at least: {} waited in vain for the next message", counted(cut_short, "stream")));
    }
    if let Some(gap) = summary.plan.protocol.shown().pointer("/messages/stall_ns").and_then(serde_json::Value::as_u64) {
        notes.push(format!("a gap over {} ends a stream as stalled", Duration(gap)));
    }
    let wrap = |note: String| wrapped("  ", "  ", &note, WIDTH);
    notes.into_iter().flat_map(wrap).map(|line| paint.faint(line)).collect()
}

/// The streams of each name, where there is more than one.
fn by_name(requests: &[CallBreakdown], paint: Paint) -> Vec<String> {
    let streams: Vec<(&str, &MessageBreakdown)> =
        requests.iter().filter_map(|calls| Some((calls.name.as_str(), calls.messages.as_deref()?))).collect();
    if streams.len() < 2 {
        return Vec::new();
    }
    let row = |(name, of): &(&str, &MessageBreakdown)| {
        let at = |times: &Option<Distribution>, percentile| {
            let value = times.as_ref().and_then(|times| times.quantile(percentile));
            let text = value.map_or_else(|| "-".to_owned(), duration);
            let is_bound = value.is_some_and(|value| value.at_least);
            paint.as_(if is_bound { Role::Warning } else { Role::Plain }, format!("{text:>NAMED$}"))
        };
        let name = columns::padded(columns::cut(&clean(name), 22), 22);
        let per_s = format!("{:>NAMED$}", Number(of.per_s).to_string());
        let first = [at(&of.first, Percentile::P50), at(&of.first, Percentile::P99)].concat();
        format!("  {name} {per_s}{first}{}{}", at(&of.gap, Percentile::P50), at(&of.gap, Percentile::P99))
    };
    let columns = ["per s", "first p50", "first p99", "gap p50", "gap p99"];
    let columns = columns.map(|column| format!("{column:>NAMED$}")).concat();
    let header = paint.faint(format!("{}{columns}", " ".repeat(25)));
    let mut lines: Vec<_> = std::iter::once(header).chain(streams.iter().take(MOST_NAMES).map(row)).collect();
    if streams.len() > MOST_NAMES {
        lines.push(paint.faint(format!("  … and {} more, in -o FILE.json", streams.len() - MOST_NAMES)));
    }
    lines
}
