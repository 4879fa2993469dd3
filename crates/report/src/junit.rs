//! Test cases for CI: one for each threshold, for each check, and for each scenario.
//!
//! The form is the one that Jenkins, GitLab, GitHub and others read (`testsuites` > `testsuite` > `testcase` > `failure`,
//! <https://github.com/testmoapp/junitxml>). A threshold is a failure where it did not hold. A check that failed for some
//! calls is no failure by itself, as a load test's checks need not all hold: how many must is for a threshold to say;
//! where there is none on checks, a check that failed is one. An error in a script is one as well, and so is a target
//! that never answered. The verdict stands in the properties, and beside the figures in the output.

use std::fmt::Write as _;
use std::io::{self, Write};

use brunt_model::breakdown::{CheckBreakdown, ScenarioBreakdown};
use brunt_model::summary::{Ending, Summary};

use crate::numbers::{count, counted, percent};
use crate::style::Style;
use crate::text;

/// A test case: its name, and what failed with the details, if it did.
struct Case {
    name: String,
    failure: Option<(String, String)>,
}

struct Suite {
    name: &'static str,
    cases: Vec<Case>,
}

/// Writes the test cases of `summary`.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    let suites = [run(summary), thresholds(summary), checks(summary), scenarios(summary)];
    let suites: Vec<_> = suites.into_iter().filter(|suite| !suite.cases.is_empty()).collect();
    let seconds = summary.run.measured_ns as f64 / 1e9;
    let sum = |of: fn(&Suite) -> usize| suites.iter().map(of).sum::<usize>();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        xml,
        "<testsuites name=\"brunt\" tests=\"{}\" failures=\"{}\" errors=\"0\" time=\"{seconds:.3}\">",
        sum(|suite| suite.cases.len()),
        sum(Suite::failures)
    );
    for suite in &suites {
        suite.push(&mut xml, summary, seconds)?;
    }
    xml.push_str("</testsuites>\n");
    out.write_all(xml.as_bytes())
}

impl Suite {
    fn failures(&self) -> usize {
        self.cases.iter().filter(|case| case.failure.is_some()).count()
    }

    fn push(&self, xml: &mut String, summary: &Summary, seconds: f64) -> io::Result<()> {
        let _ = writeln!(
            xml,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"0\" time=\"{seconds:.3}\" \
             timestamp=\"{}\">",
            self.name,
            self.cases.len(),
            self.failures(),
            iso_8601(summary.run.started_unix_ms / 1000),
        );
        if self.name == "run" {
            let properties = [
                ("target", summary.run.plan.target.url()),
                ("verdict", summary.verdict.sentence()),
                ("seed", summary.run.plan.seed.to_string()),
            ];
            xml.push_str("    <properties>\n");
            for (name, value) in properties {
                let _ = writeln!(xml, "      <property name=\"{name}\" value=\"{}\"/>", attribute(&value));
            }
            xml.push_str("    </properties>\n");
        }
        for case in &self.cases {
            let name = attribute(&case.name);
            let _ =
                write!(xml, "    <testcase classname=\"brunt.{}\" name=\"{name}\" time=\"{seconds:.3}\"", self.name);
            match &case.failure {
                None => xml.push_str("/>\n"),
                Some((message, details)) => {
                    let (message, details) = (attribute(message), escaped(details));
                    let _ = writeln!(
                        xml,
                        ">\n      <failure message=\"{message}\" type=\"{}\">{details}</failure>\n    </testcase>",
                        self.name
                    );
                }
            }
        }
        if self.name == "run" {
            let mut report = Vec::new();
            text::write(&mut report, summary, Style::default())?;
            let _ = writeln!(xml, "    <system-out>{}</system-out>", escaped(&String::from_utf8_lossy(&report)));
        }
        xml.push_str("  </testsuite>\n");
        Ok(())
    }
}

/// Whether the run came to its end, and to an answer.
fn run(summary: &Summary) -> Suite {
    let failure = |message: &str| Some((message.to_owned(), message.to_owned()));
    let ended = match &summary.run.ending {
        // A script that ends its run has done what it was written for.
        Ending::Completed | Ending::Stopped(_) => None,
        Ending::Interrupted => failure("interrupted: the figures cover what was done"),
        Ending::Failed(reason) => failure(reason),
        Ending::Aborted(reason) => failure(&format!("aborted: {reason}")),
    };
    let answered = if summary.answered() { None } else { failure("the target never answered") };
    let cases = [("the run came to its end", ended), ("the target answered", answered)];
    let cases = cases.map(|(name, failure)| Case { name: name.to_owned(), failure });
    Suite { name: "run", cases: cases.into() }
}

fn thresholds(summary: &Summary) -> Suite {
    let cases = summary.thresholds.iter().map(|result| {
        let name = result.threshold.trim().to_owned();
        let details = || format!("expected {name}, got {}", result.got);
        let failure = (!result.held).then(|| (format!("got {}", result.got), details()));
        Case { name, failure }
    });
    Suite { name: "thresholds", cases: cases.collect() }
}

fn checks(summary: &Summary) -> Suite {
    let decided = summary.run.plan.thresholds.iter().any(brunt_model::threshold::Threshold::is_about_checks);
    let case = |check: &CheckBreakdown| {
        let all = check.passes + check.fails;
        let failure = (check.fails > 0 && !decided).then(|| {
            let share = percent(check.fails as f64 / all as f64);
            let message = format!("failed {} of {} times ({share})", count(check.fails), count(all));
            let example = check.example.as_ref().map(|example| {
                let status = example.status.map_or(String::new(), |status| format!(" status {status},"));
                format!("such as:{status} body '{}'", example.body)
            });
            (message.clone(), [Some(message), example].into_iter().flatten().collect::<Vec<_>>().join("\n"))
        });
        Case { name: check.name.clone(), failure }
    };
    Suite { name: "checks", cases: summary.breakdown.checks.iter().map(case).collect() }
}

fn scenarios(summary: &Summary) -> Suite {
    let case = |scenario: &ScenarioBreakdown| {
        let failure = (scenario.errors > 0).then(|| {
            let message = format!("an error ended {}", counted(scenario.errors, "iteration"));
            let details = scenario.tracebacks.iter().map(|(text, n)| format!("{} × {text}", count(*n)));
            (message, details.collect::<Vec<_>>().join("\n"))
        });
        Case { name: scenario.name.clone(), failure }
    };
    Suite { name: "scenarios", cases: summary.breakdown.scenarios.iter().map(case).collect() }
}

/// `text` in an attribute, in one line.
fn attribute(text: &str) -> String {
    escaped(&text.replace(['\n', '\t'], " "))
}

/// `text` within XML 1.0, between tags. Characters that XML cannot have become `U+FFFD`.
fn escaped(text: &str) -> String {
    let mut xml = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '"' => xml.push_str("&quot;"),
            // The production Char of XML 1.0, https://www.w3.org/TR/xml/#charsets
            '\t' | '\n' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'.. => xml.push(c),
            _ => xml.push('\u{fffd}'),
        }
    }
    xml
}

/// Seconds since 1970 as `2026-01-01T00:00:00Z`, by the civil calendar
/// (<https://howardhinnant.github.io/date_algorithms.html#civil_from_days>).
pub(crate) fn iso_8601(unix_s: u64) -> String {
    let (days, second) = (unix_s / 86_400, unix_s % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hours, minutes, seconds) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (unix_s, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(iso_8601(unix_s), text);
        }
    }

    #[test]
    fn nothing_breaks_out_of_the_xml() {
        assert_eq!(escaped("<a b=\"&\">\u{1b}[31m\n"), "&lt;a b=&quot;&amp;&quot;&gt;\u{fffd}[31m\n");
        assert_eq!(attribute("a\nb"), "a b");
    }
}
