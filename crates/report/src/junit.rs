//! Test cases for CI: one for each threshold, for each check, and for each scenario.
//!
//! The form is the one that Jenkins, GitLab, GitHub and others read (`testsuites` > `testsuite` > `testcase` > `failure`,
//! <https://github.com/testmoapp/junitxml>). A threshold is a failure where it did not hold. A check that failed for some
//! calls is no failure by itself, as a load test's checks need not all hold: how many must is for a threshold to say;
//! where there is none on checks, a check that failed is one. An error in a script is one as well, and so is a target
//! that never answered. The verdict stands in the properties, and beside the figures in the output.

use std::io::{self, Write};
use std::time::Duration;

use brunt_model::breakdown::{CheckBreakdown, ScenarioBreakdown};
use brunt_model::summary::{Ending, Summary};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

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
    let mut report = Report::new("brunt");
    let took = Duration::from_nanos(summary.run.measured_ns);
    report.set_time(took);
    for suite in suites.iter().filter(|suite| !suite.cases.is_empty()) {
        report.add_test_suite(suite.in_junit(summary, took)?);
    }
    let xml = report.to_string().map_err(io::Error::other)?;
    out.write_all(xml.as_bytes())
}

impl Suite {
    fn in_junit(&self, summary: &Summary, took: Duration) -> io::Result<TestSuite> {
        let mut suite = TestSuite::new(self.name);
        suite.set_time(took);
        suite.extra.insert("timestamp".into(), iso_8601(summary.run.started_unix_ms / 1000).into());
        if self.name == "run" {
            suite.add_property(("target", in_a_line(&summary.run.plan.target.url()).as_str()));
            suite.add_property(("verdict", in_a_line(&summary.verdict.sentence()).as_str()));
            suite.add_property(("seed", summary.run.plan.seed.to_string().as_str()));
            let mut report = Vec::new();
            text::write(&mut report, summary, Style { verbose: true, ..Style::default() })?;
            suite.set_system_out_lossy(report);
        }
        suite.add_test_cases(self.cases.iter().map(|case| self.case_in_junit(case, took)));
        Ok(suite)
    }

    fn case_in_junit(&self, case: &Case, took: Duration) -> TestCase {
        let status = match &case.failure {
            None => TestCaseStatus::success(),
            Some((message, details)) => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(in_a_line(message)).set_type(self.name).set_description(details.as_str());
                status
            }
        };
        let mut case = TestCase::new(in_a_line(&case.name), status);
        case.set_classname(format!("brunt.{}", self.name)).set_time(took);
        case
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

/// `text` for an attribute, whose line breaks XML's readers turn into spaces anyway.
fn in_a_line(text: &str) -> String {
    text.replace(['\n', '\t'], " ")
}

/// Seconds since 1970 as `2026-01-01T00:00:00Z`; of years after 9999, which has no such form, the number of seconds.
pub(crate) fn iso_8601(unix_s: u64) -> String {
    let moment = i64::try_from(unix_s).ok().and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    moment.and_then(|moment| moment.format(&Rfc3339).ok()).unwrap_or_else(|| unix_s.to_string())
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
}
