//! What a person reads: what was run, whether to believe it, and the figures, each beside what spoils it.

use std::io::{self, Write};

use brunt_model::summary::Summary;

use crate::numbers;
use crate::style::{Paint, Style};

mod latency;
mod names;
mod outcomes;
mod plan;
mod seconds;
mod throughput;
mod verdict;

pub(crate) use plan::{heading as plan_heading, in_words as plan_in_words};

/// How far text is broken into lines, in characters: what fits a terminal's usual 80 columns.
pub(crate) const WIDTH: usize = 79;

/// Writes `summary` for people, in some 40 lines, and more where there are names.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(out: &mut impl Write, summary: &Summary, style: Style) -> io::Result<()> {
    let paint = Paint(style.colour);
    let mut sections = vec![plan::section(summary, paint)];
    if summary.answered() {
        sections.push(verdict::headline(summary, paint));
        sections.push(throughput::section(summary, paint));
        sections.push(latency::section(summary, paint));
        sections.push(seconds::section(summary, paint));
    } else {
        sections.push(outcomes::nothing_answered(summary, paint));
        sections.push(verdict::all_findings(summary, paint));
    }
    sections.push(outcomes::section(summary, paint));
    sections.extend(names::sections(summary, paint));
    sections.push(thresholds(summary, paint));
    let sections: Vec<_> = sections.iter().filter(|lines| !lines.is_empty()).map(|lines| lines.join("\n")).collect();
    writeln!(out, "{}", sections.join("\n\n"))
}

fn thresholds(summary: &Summary, paint: Paint) -> Vec<String> {
    if summary.thresholds.is_empty() {
        return Vec::new();
    }
    let names: Vec<_> = summary.thresholds.iter().map(|result| numbers::clean(result.threshold.trim())).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let mut lines = vec![paint.strong("Thresholds")];
    for (result, name) in summary.thresholds.iter().zip(&names) {
        let got = numbers::clean(&result.got);
        lines.push(if result.held {
            format!("  {} {name:<width$}  {got}", paint.good("✓"))
        } else {
            format!("  {} {name:<width$}  {}", paint.bad("✗"), paint.bad(got))
        });
    }
    lines
}

/// The name of a section, where its first figures stand in the same line.
fn title(name: &str, paint: Paint) -> String {
    paint.strong(format!("{name:<15}"))
}

/// The name of a line within a section.
fn label(name: &str, paint: Paint) -> String {
    paint.faint(format!("  {name:<13}"))
}

/// Stands for a space at which no line is broken.
const UNBROKEN: &str = "\u{a0}";

/// Breaks `text` into lines no longer than `width`, the first after `first`, the others after `rest`.
pub(crate) fn wrapped(first: &str, rest: &str, text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    let mut has_word = false;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let longer = line.chars().count() + usize::from(has_word) + word.chars().count();
        if has_word && longer > width {
            lines.push(std::mem::replace(&mut line, rest.to_owned()));
            has_word = false;
        }
        if has_word {
            line.push(' ');
        }
        line.push_str(word);
        has_word = true;
    }
    lines.push(line);
    lines.iter().map(|line| line.replace(UNBROKEN, " ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_broken_between_words() {
        let lines = wrapped("  - ", "    ", &"word ".repeat(40), WIDTH);
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH));
        assert!(lines.len() == 3 && lines[0].starts_with("  - word") && lines[1].starts_with("    word"));
        assert_eq!(wrapped("> ", "", &"x".repeat(100), WIDTH), [format!("> {}", "x".repeat(100))]);
    }
}
