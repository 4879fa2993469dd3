//! Breaks one rule of the network after the other, and sees that the simulation or a test of its edges finds it.
//!
//! Each rule is broken in a process of its own, which is this test's program with another filter: `make mutations`.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use brunt_engine::simulated::{Rule, break_rule};

/// The variable that names the rule to be broken in this process.
const BROKEN: &str = "BRUNT_BROKEN_RULE";
/// How many times as long the tests may take with a rule broken as they do with none.
const PATIENCE: u32 = 5;

/// Breaks the rule that this process shall break, if any. Tests that may find it call this before they run anything.
pub(super) fn break_what_is_asked() {
    if let Ok(name) = std::env::var(BROKEN) {
        break_rule(Rule::ALL.into_iter().find(|rule| format!("{rule:?}") == name).expect("a rule of this name"));
    }
}

/// Whether the tests that shall find a broken rule pass with this one broken, within so long.
fn survives(rule: Option<Rule>, patience: Duration) -> bool {
    let mut tests = Command::new(std::env::current_exe().unwrap());
    tests.args(["simulation::", "edges::", "--quiet"]).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some(rule) = rule {
        tests.env(BROKEN, format!("{rule:?}"));
    }
    if std::env::var_os("BRUNT_SEEDS").is_none() {
        tests.env("BRUNT_SEEDS", "300");
    }
    let mut running = tests.spawn().unwrap();
    let began = Instant::now();
    loop {
        if let Some(status) = running.try_wait().unwrap() {
            return status.success();
        }
        // A run without an end has found it, too.
        if began.elapsed() > patience {
            running.kill().and_then(|()| running.wait()).unwrap();
            return false;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
#[ignore = "takes minutes: make mutations"]
fn every_broken_rule_is_found() {
    let began = Instant::now();
    assert!(survives(None, Duration::MAX), "with no rule broken the tests pass");
    let patience = PATIENCE * began.elapsed();
    let missed: Vec<_> = Rule::ALL.into_iter().filter(|rule| survives(Some(*rule), patience)).collect();
    assert!(missed.is_empty(), "nothing has found these: {missed:?}");
}
