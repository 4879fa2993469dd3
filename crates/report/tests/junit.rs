//! The `JUnit` view, read by a parser that is not ours.
#![allow(clippy::unwrap_used, reason = "tests")]

use brunt_report::{Format, Style, render};
use quick_junit::{Report, TestCase, TestCaseStatus, TestSuite};

mod fixtures;

fn report(summary: &brunt_model::summary::Summary) -> Report {
    let xml = String::from_utf8(render(Format::Junit, summary, Style::default()).unwrap()).unwrap();
    Report::deserialize_from_str(&xml).unwrap_or_else(|error| panic!("{error}\n{xml}"))
}

fn suite<'a>(report: &'a Report, name: &str) -> &'a TestSuite {
    report.test_suites.iter().find(|suite| suite.name.as_str() == name).unwrap_or_else(|| panic!("no suite {name}"))
}

fn failure(case: &TestCase) -> Option<&str> {
    match &case.status {
        TestCaseStatus::Success { .. } => None,
        TestCaseStatus::NonSuccess { message, .. } => Some(message.as_ref().unwrap().as_str()),
        TestCaseStatus::Skipped { .. } => panic!("nothing is skipped"),
    }
}

fn failures(suite: &TestSuite) -> Vec<(&str, Option<&str>)> {
    suite.test_cases.iter().map(|case| (case.name.as_str(), failure(case))).collect()
}

#[test]
fn every_report_is_read_and_its_counts_are_right() {
    for (name, summary) in fixtures::all().into_iter().chain(std::iter::once(("secretive", fixtures::secretive()))) {
        let report = report(&summary);
        let cases = || report.test_suites.iter().flat_map(|suite| &suite.test_cases);
        assert_eq!(report.tests, cases().count(), "{name}");
        assert_eq!(report.failures, cases().filter(|case| failure(case).is_some()).count(), "{name}");
        for suite in &report.test_suites {
            assert_eq!(suite.tests, suite.test_cases.len(), "{name}");
            assert_eq!(suite.failures, suite.test_cases.iter().filter(|case| failure(case).is_some()).count());
            assert!(suite.timestamp.is_some() && suite.time.is_some(), "{name}");
        }
        let held = summary.thresholds.iter().filter(|result| result.held).count();
        if !summary.thresholds.is_empty() {
            let thresholds = suite(&report, "thresholds");
            assert_eq!(thresholds.tests - thresholds.failures, held, "{name}");
        }
    }
}

#[test]
fn thresholds_and_errors_fail() {
    let report = report(&fixtures::shop());
    let thresholds = failures(suite(&report, "thresholds"));
    assert!(thresholds.contains(&("home:p95 < 20ms", None)), "{thresholds:#?}");
    assert!(thresholds.contains(&("nowhere:p99<1s", Some("got nothing has the name 'nowhere'"))), "{thresholds:#?}");
    // How many checks must hold is said by a threshold.
    assert!(failures(suite(&report, "checks")).iter().all(|(_, failure)| failure.is_none()));
    let scenarios = suite(&report, "scenarios");
    assert_eq!(failures(scenarios)[0], ("checkout", Some("an error ended 6 iterations")));
    let TestCaseStatus::NonSuccess { description, .. } = &scenarios.test_cases.first().unwrap().status else {
        panic!("{scenarios:#?}")
    };
    let details = description.as_ref().unwrap().as_str();
    assert!(details.contains("shop.lua:12") && details.lines().count() > 3, "{details}");
}

#[test]
fn a_check_fails_where_no_threshold_is_on_checks() {
    let mut summary = fixtures::shop();
    summary.run.plan.thresholds.clear();
    let report = report(&summary);
    let checks = failures(suite(&report, "checks"));
    assert_eq!(checks[0], ("home: has a cart", Some("failed 5 of 300 times (1.67%)")));
    assert_eq!(checks[1], ("the sum is right", None));
}

#[test]
fn a_target_that_never_answered_is_a_failure() {
    let report = report(&fixtures::silent());
    let run = failures(suite(&report, "run"));
    assert_eq!(run[1], ("the target answered", Some("the target never answered")));
}
