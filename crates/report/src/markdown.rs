//! A result where Markdown is read: the summary of a CI job, a comment on a pull request, an issue. What was asked and what came of it stands in
//! ten lines; the whole report is folded below.
//!
//! Texts that come from elsewhere cannot become markup.

use std::io::{self, Write};

use brunt_judge::summary::Summary;
use brunt_judge::thresholds::ThresholdResult;
use brunt_plan::units::Number;
use brunt_record::histogram::Percentile;

use crate::decision::table::Table;
use crate::headline::remarks;
use crate::numbers::{bound, clean, count, duration};
use crate::style::{Detail, Paint, Style};
use crate::{sure, text};

/// The latencies that have a column.
const SHOWN: [Percentile; 4] = [Percentile::P50, Percentile::P90, Percentile::P99, Percentile::P99_9];

/// Writes `summary` as Markdown, in the dialect of GitHub and GitLab (`CommonMark` with tables and `details`).
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    let mut parts = vec![format!("### {}", escaped(&text::plan_heading(&summary.plan)))];
    let mut said = remarks(summary).into_iter();
    parts
        .extend(said.next().map(|first| format!("**{}{}**", first.sign(), escaped(&first.remark.message.to_string()))));
    parts.extend(sure::judged(summary).map(|words| escaped(&words)));
    parts.push(escaped(&text::in_words(&summary.plan).join(", ")));
    let others: Vec<_> =
        said.map(|one| format!("- {}{}", one.sign(), escaped(&one.remark.message.to_string()))).collect();
    parts.push(others.join("\n"));
    parts.push(thresholds(summary));
    if summary.answered() {
        parts.push(figures(summary));
    }
    parts.push(folded(summary)?);
    let command = &summary.plan.origin.command;
    if !command.is_empty() {
        parts.push(format!("Run it again:\n\n{}", fenced("sh", &clean(command))));
    }
    parts.retain(|part| !part.is_empty());
    writeln!(out, "{}", parts.join("\n\n"))
}

/// Each threshold, with its figure and whether it held.
fn thresholds(summary: &Summary) -> String {
    let mut table = Table::new(["threshold", "figure", "held"]);
    let held = |result: &ThresholdResult| match (result.held, result.sure) {
        (true, true) => "✓",
        (true, false) => "✓ ? brunt's own delays can have decided it",
        (false, true) => "✗",
        (false, false) => "✗ ? brunt's own delays can have decided it",
    };
    let mut is_empty = true;
    for result in summary.thresholds.iter().filter(|result| result.is_noted()) {
        let condition = escaped(&result.condition.to_string());
        table.push([condition.into(), escaped(&result.got.to_string()).into(), held(result).into()]);
        is_empty = false;
    }
    if is_empty { String::new() } else { table.markdown().trim_end().to_owned() }
}

/// Throughput, latency and outcomes.
fn figures(summary: &Summary) -> String {
    let outcomes = format!("Outcomes: {}", text::sum_of_outcomes(summary, Paint(false), false));
    let Some(times) = &summary.times.response else { return outcomes };
    let mut table = Table::new(["ok/s", "calls"].into_iter().chain(SHOWN.map(Percentile::name)).chain(["max"]));
    let ok = format!(
        "{}{}",
        bound(summary.verdict.is_brunt_the_limit() || summary.is_rate_at_least()),
        Number(summary.rates.ok_per_s)
    );
    let quantile = |of| times.quantile(of).map_or_else(String::new, duration).into();
    let first = [ok.into(), count(times.count).into()];
    table.push(first.into_iter().chain(SHOWN.into_iter().map(quantile)).chain([duration(times.max).into()]));
    format!("{}\n{outcomes}", table.markdown())
}

/// The whole report as text, folded.
fn folded(summary: &Summary) -> io::Result<String> {
    let mut report = Vec::new();
    text::write(&mut report, summary, Style { detail: Detail::Verbose, ..Style::default() })?;
    let report = fenced("text", String::from_utf8_lossy(&report).trim_end());
    Ok(format!("<details><summary>The whole report</summary>\n\n{report}\n\n</details>"))
}

/// Text as a block of code, between fences that are longer than any row of backticks in it.
fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}")
}

/// Text in which nothing is markup (`CommonMark` 0.31, section 2.4: a backslash before punctuation).
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in clean(text).chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '&' | '!' | '~') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_from_elsewhere_are_no_markup() {
        assert_eq!(escaped("![x](http://y) <b>`a`\n"), "\\!\\[x\\](http://y) \\<b\\>\\`a\\`\\\\n");
        let report = "a\n```\n<script>";
        assert_eq!(fenced("text", report), "````text\na\n```\n<script>\n````");
    }
}
