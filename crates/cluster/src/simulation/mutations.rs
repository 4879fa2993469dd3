//! Breaks one rule after the other, and sees that a test of the crate finds it: one of its units, a directed simulation,
//! or the seeds.
//!
//! Each rule is broken in processes of their own, which are this test's program with other filters: `make mutations`.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::rules::{BROKEN, Rule};

/// How long the tests may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// What came of the tests with a rule broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TestResult {
    Passed,
    Failed,
    /// They took too long, on this machine perhaps.
    Undecided,
}

/// Runs the tests that these arguments choose, with this rule broken.
fn run(arguments: &[&str], rule: Option<Rule>) -> TestResult {
    let mut tests = Command::new(std::env::current_exe().unwrap());
    tests.args(arguments).arg("--quiet").stdout(Stdio::null()).stderr(Stdio::null());
    if let Some(rule) = rule {
        // What fails by design is nothing to be tried again later.
        tests.env(BROKEN, format!("{rule:?}")).env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true");
    }
    if std::env::var_os("BRUNT_SEEDS").is_none() {
        tests.env("BRUNT_SEEDS", "500");
    }
    let mut running = tests.spawn().unwrap();
    let patience = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = running.try_wait().unwrap() {
            return if status.success() { TestResult::Passed } else { TestResult::Failed };
        }
        if Instant::now() > patience {
            running.kill().and_then(|()| running.wait()).unwrap();
            return TestResult::Undecided;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// All tests: those that take seconds come first.
fn all(rule: Option<Rule>) -> TestResult {
    const SEEDS: &str = "simulation::whatever";
    match run(&["--skip", SEEDS], rule) {
        TestResult::Passed => run(&[SEEDS], rule),
        other => other,
    }
}

#[test]
#[ignore = "takes minutes: make mutations"]
fn every_broken_rule_is_found() {
    assert_eq!(all(None), TestResult::Passed, "with no rule broken the tests pass");
    let came = Rule::ALL.into_iter().map(|rule| (rule, all(Some(rule))));
    let missed: Vec<_> = came.filter(|(_, came)| *came != TestResult::Failed).collect();
    assert!(missed.is_empty(), "no test has failed with these: {missed:?}");
}
