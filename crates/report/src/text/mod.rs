//! The report for people: the outcome, the plan, the figures with the doubts about them, and the quality of the
//! measurement.

use std::io::{self, Write};

use brunt_judge::summary::Summary;
use brunt_judge::thresholds::ThresholdResult;

use self::fitting::{Rank, Section, fitted, whole};
use crate::headline::Toned;
use crate::style::{Detail, Paint, Style};
use crate::{columns, headline, numbers, sure};

mod agents;
mod by_name;
mod changes;
mod fitting;
mod latency;
mod messages;
mod outcomes;
mod over_time;
mod own;
mod plan;
pub(crate) mod replay;
mod single;
mod throughput;
mod verdict;
mod watched;

pub use outcomes::rows_of;
pub(crate) use outcomes::{connections as connections_in_words, events, sum as sum_of_outcomes};
pub(crate) use over_time::{marks, sign};
pub(crate) use own::{are_of_protocol, title as own_title};
pub use plan::{concurrency, in_words, scenario_list};
pub(crate) use plan::{
    connections_of, heading as plan_heading, in_short as plan_in_short, machine_lines, moment, origin_lines,
};
pub(crate) use verdict::{awake, in_brief};

/// The width at which text is broken, in characters: it fits a terminal's usual 80 columns.
pub(crate) const WIDTH: usize = 79;

/// Writes `summary` for people, in the lines of a usual terminal: what matters least, and rows of long tables, only with
/// [`Detail::Verbose`]. A single call is shown by its times and its outcome.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(out: &mut impl Write, summary: &Summary, style: Style) -> io::Result<()> {
    let paint = Paint(style.colour);
    let is_verbose = style.detail == Detail::Verbose;
    let lines = if single::is_single(summary) && summary.answered() && !is_verbose {
        whole(&of_single_call(summary, paint), paint)
    } else if is_verbose {
        whole(&sections(summary, style.detail, paint), paint)
    } else {
        fitted(&sections(summary, style.detail, paint), paint)
    };
    writeln!(out, "{}", lines.join("\n"))
}

fn of_single_call(summary: &Summary, paint: Paint) -> Vec<Section> {
    let mut remarks: Vec<_> = summary.remarks.iter().map(|remark| headline::about_target(remark, summary)).collect();
    // `--once` is itself what such advice asks for.
    for remark in &mut remarks {
        remark.remark.advice.take_if(|advice| advice.asks_for_one_call());
    }
    let mut first = Section::new("Remarks");
    verdict::remarks(&mut first, &remarks, paint);
    let mut last = Section::new("Thresholds");
    thresholds(&mut last, &remarks, summary, paint);
    vec![
        first,
        Section::of("Times", Rank::Always, single::section(summary, paint)),
        Section::of("Figures", Rank::Always, own::of_single(summary, paint)),
        last,
    ]
}

/// The whole report.
fn sections(summary: &Summary, detail: Detail, paint: Paint) -> Vec<Section> {
    let is_verbose = detail == Detail::Verbose;
    let remarks = headline::remarks(summary);
    let mut first = Section::new("Thresholds").with_rows("threshold").apart();
    verdict::remarks(&mut first, &remarks, paint);
    thresholds(&mut first, &remarks, summary, paint);
    first.add(Rank::Cause, sure::judged(summary).map(|words| format!("  {words}")));
    let mut sections = vec![
        first,
        plan::section(summary, detail >= Detail::Dated, paint),
        Section::of("Changes", Rank::Figure, changes::section(summary, paint)),
    ];
    if summary.answered() {
        sections.push(throughput::section(summary, paint, is_verbose));
        sections.push(latency::section(summary, paint, is_verbose));
        // What a protocol measures by itself stands for what is known of any message.
        let of_protocol = are_of_protocol(summary);
        if of_protocol {
            sections.push(own::section(summary, paint, is_verbose));
        }
        sections.push(over_time::section(summary, &remarks, paint));
        if !of_protocol || is_verbose {
            sections.push(messages::section(summary, paint, is_verbose));
        }
    } else {
        if summary.has_only_carried() {
            sections.push(throughput::section(summary, paint, false));
            sections.push(messages::section(summary, paint, false));
        }
        let mut findings = Section::new("Findings");
        verdict::all_findings(&mut findings, summary, paint);
        sections.push(findings);
    }
    let mut ends = outcomes::section(summary, paint, is_verbose);
    if !is_verbose {
        ends.add(Rank::Always, verdict::measurement(summary, paint, false));
    }
    sections.push(ends);
    sections.push(watched::section(summary, paint));
    sections.push(replay::section(summary, paint, is_verbose));
    sections.push(agents::section(summary, paint, is_verbose));
    sections.extend(by_name::sections(summary, paint));
    if is_verbose {
        sections.push(Section::of("Measurement", Rank::Always, verdict::measurement(summary, paint, true)));
    }
    sections
}

/// Each threshold with its figure, below the headline. Where that names those that failed with their figures, it stands for them.
fn thresholds(section: &mut Section, remarks: &[Toned], summary: &Summary, paint: Paint) {
    let noted: Vec<_> = summary.thresholds.iter().filter(|result| result.is_noted()).collect();
    let name = |result: &ThresholdResult| {
        let whose = if result.is_implicit() { " (default)" } else { "" };
        format!("{}{whose}", numbers::clean(&result.condition.to_string()))
    };
    let names: Vec<_> = noted.iter().map(|result| name(result)).collect();
    let width = names.iter().map(|name| columns::width(name)).max().unwrap_or(0);
    let is_named =
        |result: &ThresholdResult| remarks.iter().any(|remark| remark.thresholds.contains(&result.condition));
    let has_failed = noted.iter().any(|result| !result.held);
    for (result, name) in noted.into_iter().zip(&names) {
        let name = columns::padded(name, width);
        let got = result.got.to_string();
        let got = numbers::clean(&got);
        let (sign, text) = if !result.sure {
            let sign = if result.held { "✓" } else { "✗" };
            let text = format!("{got} ? brunt's own delays can have decided it");
            (paint.warning(sign), paint.warning(text))
        } else if result.held {
            (paint.good("✓"), got.into_owned())
        } else {
            (paint.bad("✗"), paint.bad(got))
        };
        let rank = match result {
            ThresholdResult { sure: false, .. } => Rank::Always,
            ThresholdResult { held: false, .. } if !is_named(result) => Rank::Always,
            _ if has_failed => Rank::Minor,
            _ => Rank::Figure,
        };
        let lines = wrapped(&format!("  {sign} {name}  "), "      ", &text, WIDTH);
        // The headline names those that failed.
        if has_failed { section.add_whole(rank, &lines) } else { section.add_row(rank, lines.join("\n")) }
    }
}

/// The name of a section whose first figures are in the same line.
fn title(name: &str, paint: Paint) -> String {
    paint.strong(format!("{name:<15}"))
}

/// The name of a line within a section.
fn label(name: &str, paint: Paint) -> String {
    paint.faint(format!("  {name:<13}"))
}

/// Stands for a space at which no line is broken.
const UNBROKEN: &str = "\u{a0}";

/// Breaks `text` into lines no longer than `width` columns, the first after `first`, the others after `rest`. A word is never cut.
pub fn wrapped(first: &str, rest: &str, text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    let mut has_word = false;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let longer = columns::width(&line) + usize::from(has_word) + columns::width(word);
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
        assert!(lines.iter().all(|line| columns::width(line) <= WIDTH));
        assert!(lines.len() == 3 && lines[0].starts_with("  - word") && lines[1].starts_with("    word"));
        assert_eq!(wrapped("> ", "", &"x".repeat(100), WIDTH), [format!("> {}", "x".repeat(100))]);
    }
}
