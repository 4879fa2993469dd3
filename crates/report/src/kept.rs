//! Kept runs as a list for people, the newest first.

use brunt_model::histogram::AtLeast;
use brunt_model::kept::{Entry, RUN};
use brunt_model::units::{Duration, Number};

use crate::decision::table::{Cell, Table};
use crate::junit::iso_8601;
use crate::numbers::{brief, duration, percent};
use crate::style::{Paint, Role, Style};

/// A line for each of `entries`, under a line that names the columns.
pub fn listing(entries: &[Entry], style: Style) -> String {
    let mut table = Table::new(["run", "begun (UTC)", "took", "answered/s", "p50", "p99", "errors", "held", "what"]);
    for entry in entries {
        table.push(row(entry));
    }
    table.text(Paint(style.colour)).join("\n") + "\n"
}

fn row(entry: &Entry) -> [Cell; 9] {
    let time = |ns: Option<u64>, at_least| ns.map_or("-".to_owned(), |value| duration(AtLeast { value, at_least }));
    let errors = Cell::from(percent(entry.error_ratio));
    let held = match (entry.thresholds, entry.thresholds_failed) {
        (0, _) => Cell::from("-"),
        (all, failed) => {
            let role = if failed > 0 { Role::Bad } else { Role::Good };
            Cell::from(format!("{}/{all}", all.saturating_sub(failed))).as_(role)
        }
    };
    if entry.kind != RUN {
        let [none, p50, p99, errors, held] = ["-"; 5].map(Cell::from);
        let took = Duration(entry.measured_ns).to_string();
        return [
            entry.number.to_string().into(),
            begun(entry.started_unix_ms).into(),
            took.into(),
            none,
            p50,
            p99,
            errors,
            held,
            what(entry).into(),
        ];
    }
    [
        entry.number.to_string().into(),
        begun(entry.started_unix_ms).into(),
        Duration(entry.measured_ns).to_string().into(),
        Number(entry.answered_per_s).to_string().into(),
        time(entry.p50_ns, false).into(),
        time(entry.p99_ns, entry.at_least).into(),
        if entry.error_ratio > 0.0 { errors.as_(Role::Bad) } else { errors },
        held,
        what(entry).into(),
    ]
}

/// `2026-01-31 09:30:05`.
fn begun(unix_ms: u64) -> String {
    iso_8601(unix_ms / 1000).replace('T', " ").replace('Z', "")
}

/// Its name, its script, its target, its tags, and its verdict where that is not good.
fn what(entry: &Entry) -> String {
    let mut parts = Vec::new();
    parts.extend(entry.label.name.as_deref().map(brief));
    let is_run = entry.kind == RUN;
    if !is_run {
        parts.push(entry.kind.clone());
    }
    parts.extend(entry.script.as_deref().map(brief));
    parts.extend((!entry.url.is_empty()).then(|| brief(&entry.url)));
    parts.extend(entry.label.tags.iter().map(|(key, value)| brief(&format!("{key}={value}"))));
    if !is_run {
        parts.push(brief(&entry.verdict));
    } else if entry.verdict != "trustworthy" {
        parts.push(format!("✗ {}", brief(&entry.verdict)));
    }
    parts.join("  ")
}

#[cfg(test)]
mod tests {
    use brunt_model::kept::Label;

    use super::*;

    #[test]
    fn a_line_has_the_time_the_name_the_script_and_the_tags() {
        let label = Label { name: Some("a".to_owned()), tags: vec![("branch".to_owned(), "b".to_owned())] };
        let entry = Entry {
            number: 7,
            kind: RUN.to_owned(),
            part_of: None,
            label,
            started_unix_ms: 1_767_225_600_000,
            url: "http://127.0.0.1:8080/".to_owned(),
            script: Some("examples/counter.lua".to_owned()),
            verdict: "trustworthy".to_owned(),
            measured_ns: 1_000_000_000,
            due: 10,
            answered_per_s: 10.0,
            error_ratio: 0.0,
            p50_ns: Some(1_000_000),
            p99_ns: None,
            at_least: false,
            thresholds: 0,
            thresholds_failed: 0,
            content_bytes: 0,
        };
        let lines = listing(&[entry], Style::default());
        assert!(lines.contains("2026-01-01 00:00:00"), "{lines}");
        assert!(lines.contains("a  examples/counter.lua  http://127.0.0.1:8080/  branch=b"), "{lines}");
    }
}
