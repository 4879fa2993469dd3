//! A replay beside its log.

use brunt_judge::summary::Summary;
use brunt_record::histogram::AtLeast;
use brunt_record::replayed::{AgainstLog, Replayed};

use super::{WIDTH, label, title, wrapped};
use crate::columns;
use crate::numbers::{clean, count, counted, duration};
use crate::skipped;
use crate::style::Paint;

/// The templates that are shown unless all are asked for.
const SHOWN: usize = 8;

pub(super) fn section(summary: &Summary, paint: Paint, all: bool) -> Vec<String> {
    let Some(replayed) = &summary.run.replayed else { return Vec::new() };
    let head = format!(
        "{}, {} read, {}",
        counted(replayed.requests, "request"),
        counted(replayed.lines, "line"),
        counted(replayed.sessions, "session")
    );
    let mut text = vec![format!("{}{head}", title("Log", paint))];
    text.extend(skips(replayed, paint));
    if replayed.without_body > 0 {
        let sent = format!("{} sent without the body, which the log has not", counted(replayed.without_body, "write"));
        text.push(format!("{}{}", label("bodies", paint), paint.warning(sent)));
    }
    if replayed.redacted > 0 {
        let left =
            format!("{} redacted in the log and not sent; -H gives one", counted(replayed.redacted, "header field"));
        text.push(format!("{}{}", label("headers", paint), paint.warning(left)));
    }
    if replayed.unread_durations > 0 {
        let number = counted(replayed.unread_durations, "request");
        let unread = format!("{number} with one that cannot be read; the time in the log is their beginning");
        text.push(format!("{}{}", label("durations", paint), paint.warning(unread)));
    }
    text.extend(differences(&replayed.all, paint));
    text.extend(templates(replayed, paint, all));
    text
}

/// Lines that were not replayed, by reason.
fn skips(replayed: &Replayed, paint: Paint) -> Vec<String> {
    let reasons = replayed.skipped.iter().map(|(name, number)| {
        let text = format!("{} {}", count(*number), clean(skipped::words(name)));
        (skipped::is_defect(name), text)
    });
    let mut reasons: Vec<_> = reasons.collect();
    reasons.sort_by_key(|(is_defect, _)| !is_defect);
    let lines = reasons.into_iter().enumerate().map(|(place, (is_defect, text))| {
        let text = if is_defect { paint.warning(text) } else { text };
        format!("{}{text}", label(if place == 0 { "skipped" } else { "" }, paint))
    });
    lines.collect()
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

fn templates(replayed: &Replayed, paint: Paint, all: bool) -> Vec<String> {
    let shown: Vec<_> = replayed.templates.iter().take(if all { usize::MAX } else { SHOWN }).collect();
    let width = shown.iter().map(|row| columns::width(&row.name)).max().unwrap_or(0).clamp(8, 34);
    let cells = ["calls", "status", "size", "p95", "log's p95"];
    let line = |name: &str, cells: [String; 5]| {
        let cells = cells.map(|cell| columns::padded_left(&cell, 8));
        format!("  {}{}", columns::padded(columns::cut(name, width), width), cells.concat())
    };
    if shown.is_empty() {
        return Vec::new();
    }
    let mut lines =
        vec![paint.faint(line("", cells.map(str::to_owned).map(|cell| cell.replace("log's p95", " log p95"))))];
    for row in &shown {
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
    }
    let left = replayed.templates.len() - shown.len();
    if left > 0 {
        lines.push(format!("  and {left} more (--verbose shows all)"));
    }
    lines
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
