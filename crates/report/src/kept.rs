//! Kept runs as a list for people, the newest last, next to where they type.

use brunt_decide::kept::{Entry, KeptKind};
use brunt_judge::remarks::Tone;
use brunt_plan::units::Number;
use brunt_record::histogram::{AtLeast, Percentile, fewest_calls};

use crate::columns;
use crate::dates::to_the_minute;
use crate::decision::table::{Cell, Table};
use crate::headline::InReports;
use crate::numbers::{brief, duration};
use crate::style::{Paint, Style};
use crate::text::wrapped;

/// The least width of a run's description where lines are broken, in columns.
const LEAST_OF_WHAT: usize = 24;
/// The most lines of a run's description.
const MOST_LINES: usize = 5;

/// The mark of a percentile that too few calls bound from above.
const OF_FEW: char = '*';

/// The runs of `entries`, which begin with the newest, under a line that names the columns. Descriptions are broken where
/// lines may not be wider than `width`. A p99 of few calls has a mark, which a line below the list explains.
pub fn listing(entries: &[Entry], style: Style, width: Option<usize>) -> String {
    let has_few = entries.iter().any(is_of_few);
    let of = |room: usize| {
        let mut table = Table::new(["run", "begun (UTC)", "answered/s", "p99", "what"]);
        for entry in entries.iter().rev() {
            for row in rows(entry, room, has_few) {
                table.push(row);
            }
        }
        table
    };
    let widest = |table: &Table| table.text(Paint(false)).iter().map(|line| columns::width(line)).max().unwrap_or(0);
    let whole = of(usize::MAX);
    let table = match width {
        Some(width) if widest(&whole) > width => {
            let others = widest(&of(0));
            of(width.saturating_sub(others).max(LEAST_OF_WHAT))
        }
        _ => whole,
    };
    let paint = Paint(style.colour);
    let mut lines = table.text(paint);
    if has_few {
        let text = format!("p99 of fewer than {} calls: it has no upper end", fewest_calls(Percentile::P99.share()));
        lines.push(paint.faint(format!("  {OF_FEW} {text}")));
    }
    lines.join("\n") + "\n"
}

/// Whether an entry's p99 is one of few calls.
fn is_of_few(entry: &Entry) -> bool {
    entry.p99_ns.is_some() && entry.few_calls(Percentile::P99.share()).is_some()
}

/// `text` in lines of at most `room` columns, the last of which ends in `…` where more would follow.
fn broken(text: &str, room: usize) -> Vec<String> {
    if room == 0 {
        return vec![String::new()];
    }
    if columns::width(text) <= room {
        return vec![text.to_owned()];
    }
    let fits = |line: String| {
        if columns::width(&line) <= room { line } else { format!("{}…", columns::cut(&line, room - 1)) }
    };
    let mut lines = wrapped("", "", text, room);
    if lines.len() > MOST_LINES {
        lines.truncate(MOST_LINES);
        if let Some(last) = lines.last_mut() {
            *last = format!("{}…", columns::cut(last, room - 1));
        }
    }
    lines.into_iter().map(fits).collect()
}

/// A run's row, and those on which its description goes on. `has_few`: a p99 of few calls is among those listed.
fn rows(entry: &Entry, room: usize, has_few: bool) -> Vec<[Cell; 5]> {
    let tone = entry.tone.filter(|tone| tone.is_bad() || *tone == Tone::Warning);
    let cell = |line: String| match tone {
        Some(tone) => Cell::from(line).as_(tone.role()),
        None => Cell::from(line),
    };
    let mut lines = broken(&what(entry), room).into_iter().map(cell);
    let first = row(entry, lines.next().unwrap_or_else(|| Cell::from(String::new())), has_few);
    let blank = || Cell::from(String::new());
    let others = lines.map(|line| [blank(), blank(), blank(), blank(), line]);
    std::iter::once(first).chain(others).collect()
}

fn row(entry: &Entry, what: Cell, has_few: bool) -> [Cell; 5] {
    let p99 = entry.p99_ns.map(|value| {
        let value = duration(AtLeast { value, at_least: entry.at_least });
        // Digits stand below digits.
        let mark = has_few.then_some(if is_of_few(entry) { OF_FEW } else { ' ' });
        value + &mark.map_or_else(String::new, String::from)
    });
    let rate = (entry.kind == KeptKind::Run).then(|| Number(entry.answered_per_s).to_string());
    let or_dash = |text: Option<String>| Cell::from(text.unwrap_or_else(|| "-".to_owned()));
    [entry.number.to_string().into(), to_the_minute(entry.started_unix_ms).into(), or_dash(rate), or_dash(p99), what]
}

/// The name, headline, script, target and tags of a run; a decision has its kind and its conclusion in place of the headline.
fn what(entry: &Entry) -> String {
    let mut parts = Vec::new();
    parts.extend(entry.label.name.as_deref().map(brief));
    parts.push(match &entry.headline {
        Some(headline) => brief(headline),
        None => format!("{}: {}", entry.kind.name(), brief(&entry.verdict)),
    });
    parts.extend(entry.script.as_deref().map(brief));
    parts.extend((!entry.url.is_empty()).then(|| brief(&entry.url)));
    parts.extend(entry.label.tags.iter().map(|(key, value)| brief(&format!("{key}={value}"))));
    parts.join("  ")
}

#[cfg(test)]
mod tests {
    use brunt_decide::kept::Label;
    use brunt_judge::verdict::Judgement;

    use super::*;

    /// A run with this headline.
    fn entry_of(headline: &str) -> Entry {
        Entry {
            number: 7,
            kind: KeptKind::Run,
            part_of: None,
            label: Label { name: Some("a name that goes on for quite a while".to_owned()), tags: Vec::new() },
            started_unix_ms: 1_767_225_600_000,
            url: "http://127.0.0.1:8080/".to_owned(),
            script: None,
            headline: Some(headline.to_owned()),
            tone: Some(Tone::Warning),
            verdict: "brunt was the limit".to_owned(),
            judgement: Some(Judgement::GeneratorBound),
            measured_ns: 1_000_000_000,
            due: 1_000,
            answered_per_s: 123_456.0,
            error_rate: 0.0123,
            p50_ns: Some(1_234_000),
            p99_ns: Some(12_340_000),
            at_least: true,
            thresholds: 12,
            thresholds_failed: 2,
            content_bytes: 0,
        }
    }

    #[test]
    fn descriptions_are_broken_on_a_terminal_and_keep_their_column() {
        let entry = entry_of("! the target froze from 0:01 to 0:02: 30 calls waited up to 0.95s for it");
        let listed = listing(&[entry], Style::default(), Some(80));
        assert!(listed.lines().all(|line| columns::width(line) <= 80), "{listed}");
        let words = listed.split_whitespace().collect::<Vec<_>>().join(" ");
        for said in ["≥12.34ms", "froze from 0:01 to 0:02", "0.95s for it http://127.0.0.1:8080/"] {
            assert!(words.contains(said), "{listed}");
        }
        let column = listed.lines().next().unwrap().find("what").unwrap();
        let go_on = listed.lines().skip(2).all(|line| line.len() > column && line[..column].trim().is_empty());
        assert!(go_on && listed.lines().count() > 2, "{listed}");
        let narrow = listing(&[entry_of(&"word ".repeat(100))], Style::default(), Some(60));
        assert!(narrow.lines().last().unwrap().ends_with('…') && narrow.lines().count() == 1 + MOST_LINES, "{narrow}");
    }

    #[test]
    fn a_p99_of_few_calls_is_marked() {
        let (few, many) = (Entry { due: 298, ..entry_of("298") }, Entry { number: 8, due: 299, ..entry_of("299") });
        let listed = listing(&[many.clone(), few.clone()], Style::default(), Some(80));
        let lines: Vec<_> = listed.lines().collect();
        assert!(
            lines[1].contains(" ≥12.34ms*  ") && lines.iter().any(|line| line.contains(" ≥12.34ms   ")),
            "{listed}"
        );
        assert_eq!(lines.last(), Some(&"  * p99 of fewer than 299 calls: it has no upper end"), "{listed}");
        assert!(lines.iter().all(|line| columns::width(line) <= 80), "{listed}");
        // Nothing to mark, and nothing to explain: of many calls, without a p99, and of a decision.
        let (nothing, decision) = (Entry { p99_ns: None, ..few.clone() }, Entry { kind: KeptKind::Sweep, ..few });
        assert!(!listing(&[many, nothing, decision], Style::default(), Some(80)).contains('*'));
    }

    #[test]
    fn a_line_has_the_time_the_name_the_script_and_the_tags() {
        let label = Label { name: Some("a".to_owned()), tags: vec![("branch".to_owned(), "b".to_owned())] };
        let entry = Entry {
            number: 7,
            kind: KeptKind::Run,
            part_of: None,
            label,
            started_unix_ms: 1_767_225_600_000,
            url: "http://127.0.0.1:8080/".to_owned(),
            script: Some("examples/counter.lua".to_owned()),
            headline: Some("10 of 10 calls succeeded, 10 ok/s".to_owned()),
            tone: Some(Tone::Plain),
            verdict: "measured well".to_owned(),
            judgement: Some(Judgement::Trustworthy),
            measured_ns: 1_000_000_000,
            due: 10,
            answered_per_s: 10.0,
            error_rate: 0.0,
            p50_ns: Some(1_000_000),
            p99_ns: None,
            at_least: false,
            thresholds: 0,
            thresholds_failed: 0,
            content_bytes: 0,
        };
        let headline = Some("✗ 1 of 1 threshold failed: p99 2.00s (limit <1s)".to_owned());
        let other = Entry { number: 8, script: None, headline, tone: Some(Tone::Bad), ..entry.clone() };
        let lines = listing(&[other, entry], Style::default(), None);
        assert!(lines.contains("2026-01-01 00:00"), "{lines}");
        assert!(
            lines.contains(
                "a  10 of 10 calls succeeded, 10 ok/s  examples/counter.lua  http://127.0.0.1:8080/  branch=b"
            ),
            "{lines}"
        );
        assert!(lines.contains("a  ✗ 1 of 1 threshold failed: p99 2.00s (limit <1s)  http:"), "{lines}");
        assert!(lines.lines().last().unwrap().trim_start().starts_with("8 "), "the newest is last: {lines}");
    }
}
