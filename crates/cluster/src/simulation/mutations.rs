//! Breaks one rule after the other, and sees that the simulation finds it.
//!
//! Each rule is broken in a process of its own, which is this test's program with another filter: `make mutations`.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::rules::{Rule, break_rule};

/// The variable that names the rule to be broken in this process.
const BROKEN: &str = "BRUNT_BROKEN_RULE";
/// How long the tests may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// Breaks the rule that this process shall break, if any.
pub(super) fn break_what_is_asked() {
    if let Ok(name) = std::env::var(BROKEN) {
        break_rule(Rule::ALL.into_iter().find(|rule| format!("{rule:?}") == name).expect("a rule of this name"));
    }
}

/// Whether the simulation passes with this rule broken.
fn survives(rule: Option<Rule>) -> bool {
    let mut tests = Command::new(std::env::current_exe().unwrap());
    tests.args(["simulation::whatever", "--quiet"]).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some(rule) = rule {
        tests.env(BROKEN, format!("{rule:?}"));
    }
    if std::env::var_os("BRUNT_SEEDS").is_none() {
        tests.env("BRUNT_SEEDS", "500");
    }
    let mut running = tests.spawn().unwrap();
    let patience = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = running.try_wait().unwrap() {
            return status.success();
        }
        // A run without an end has found it, too.
        if Instant::now() > patience {
            running.kill().and_then(|()| running.wait()).unwrap();
            return false;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
#[ignore = "takes minutes: make mutations"]
fn every_broken_rule_is_found() {
    assert!(survives(None), "with no rule broken the simulation passes");
    let missed: Vec<_> = Rule::ALL.into_iter().filter(|rule| survives(Some(*rule))).collect();
    assert!(missed.is_empty(), "nothing has found these: {missed:?}");
}
