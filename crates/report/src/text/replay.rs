//! A replay beside its log.

use brunt_judge::summary::Summary;
use brunt_record::histogram::AtLeast;
use brunt_record::replayed::{AgainstLog, Replayed};

use super::fitting::{Rank, Section};
use super::{WIDTH, label, title, wrapped};
use crate::columns;
use crate::numbers::{clean, count, counted, duration};
use crate::skipped;
use crate::style::Paint;

pub(super) fn section(summary: &Summary, paint: Paint, all: bool) -> Section {
    let mut section = Section::new("Log").with_rows("request");
    let Some(replayed) = &summary.run.replayed else { return section };
    let head = format!(
        "{}, {} read, {}",
        counted(replayed.requests, "request"),
        counted(replayed.lines, "line"),
        counted(replayed.sessions, "session")
    );
    section.add(Rank::Always, [format!("{}{head}", title("Log", paint))]);
    skips(&mut section, replayed, paint);
    if replayed.without_body > 0 {
        let sent = format!("{} sent without the body, which the log has not", counted(replayed.without_body, "write"));
        section.add(Rank::Always, [format!("{}{}", label("bodies", paint), paint.warning(sent))]);
    }
    if replayed.redacted > 0 {
        let left =
            format!("{} redacted in the log and not sent; -H gives one", counted(replayed.redacted, "header field"));
        section.add(Rank::Always, [format!("{}{}", label("headers", paint), paint.warning(left))]);
    }
    if replayed.unread_durations > 0 {
        let number = counted(replayed.unread_durations, "request");
        let unread = format!("{number} with one that cannot be read; the time in the log is their beginning");
        section.add(Rank::Always, [format!("{}{}", label("durations", paint), paint.warning(unread))]);
    }
    section.add(Rank::Figure, differences(&replayed.all, paint));
    templates(&mut section, replayed, paint, all);
    section
}

/// Lines that were not replayed, by reason.
fn skips(section: &mut Section, replayed: &Replayed, paint: Paint) {
    let reasons = replayed.skipped.iter().map(|(name, number)| {
        let text = format!("{} {}", count(*number), clean(skipped::words(name)));
        (skipped::is_defect(name), text)
    });
    let mut reasons: Vec<_> = reasons.collect();
    reasons.sort_by_key(|(is_defect, _)| !is_defect);
    for (place, (is_defect, text)) in reasons.into_iter().enumerate() {
        let (rank, text) = if is_defect { (Rank::Cause, paint.warning(text)) } else { (Rank::Figure, text) };
        section.add(rank, [format!("{}{text}", label(if place == 0 { "skipped" } else { "" }, paint))]);
    }
}

/// The differences between the answers and the log, over everything.
fn differences(all: &AgainstLog, paint: Paint) -> Vec<String> {
    let mut parts = Vec::new();
    if all.compared_status > 0 {
        parts.push(format!("{} other status", share(all.other_status, all.compared_status)));
    }
    if all.compared_size > 0 {
        parts.push(format!("{} other size", share(all.other_size, all.compared_size)));
    }
    if let (Some(logged), Some(came)) = (all.logged_p50_ns, all.came_p50_ns) {
        parts.push(format!("p50 {} (log {})", time(came), time(logged)));
    }
    if let (Some(logged), Some(came)) = (all.logged_p95_ns, all.came_p95_ns) {
        parts.push(format!("p95 {} (log {})", time(came), time(logged)));
    }
    if parts.is_empty() {
        return Vec::new();
    }
    wrapped(&label("against it", paint), &" ".repeat(15), &parts.join(", "), WIDTH)
}

fn templates(section: &mut Section, replayed: &Replayed, paint: Paint, all: bool) {
    let width = replayed.templates.iter().map(|row| columns::width(&row.name)).max().unwrap_or(0).clamp(8, 34);
    let cells = ["calls", "status", "size", "p95", "log's p95"];
    let line = |name: &str, cells: [String; 5]| {
        let cells = cells.map(|cell| columns::padded_left(&cell, 8));
        format!("  {}{}", columns::padded(columns::cut(name, width), width), cells.concat())
    };
    let names = cells.map(str::to_owned).map(|cell| cell.replace("log's p95", " log p95"));
    let mut lines = vec![paint.faint(line("", names))];
    for row in &replayed.templates {
        let of = |other: u64, all: u64| if all == 0 { "–".to_owned() } else { share(other, all) };
        let quantile = |ns: Option<u64>| ns.map_or_else(|| "–".to_owned(), time);
        let cells = [
            count(row.calls),
            of(row.other_status, row.compared_status),
            of(row.other_size, row.compared_size),
            quantile(row.came_p95_ns),
            quantile(row.logged_p95_ns),
        ];
        lines.push(line(&clean(&row.name), cells));
        for pair in row.statuses.iter().take(if all { usize::MAX } else { 2 }) {
            let text = format!("{} came, the log has {}: {}", pair.came, pair.logged, count(pair.count));
            lines.push(format!("    {}", paint.warning(text)));
        }
        // The names of columns stand with the first row.
        section.add_row(Rank::Figure, std::mem::take(&mut lines).join("\n"));
    }
}

pub(crate) fn time(ns: u64) -> String {
    duration(AtLeast::exactly(ns))
}

pub(crate) fn share(part: u64, all: u64) -> String {
    match part as f64 / all.max(1) as f64 * 100.0 {
        0.0 => "0%".to_owned(),
        percent if percent < 0.1 => "<0.1%".to_owned(),
        percent => format!("{percent:.1}%"),
    }
}
