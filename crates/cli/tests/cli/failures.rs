//! How many calls may fail before a run has failed.

use brunt_testbed::server::ServerConfig;

use crate::program::{Done, brunt, done};
use crate::runs::target;

/// Runs brunt with its own default, which the harness replaces elsewhere, on a target that fails with this share.
fn run_on(error_rate: f64, args: &[&str]) -> Done {
    let (_server, url) = target(ServerConfig { error_rate, ..ServerConfig::default() });
    done(brunt([args, &["-n", "400", "-c", "4", &url]].concat()).env_remove("BRUNT_MAX_ERROR_RATE"))
}

#[test]
fn a_run_of_which_a_tenth_fails_has_failed_and_says_so_first() {
    let failed = run_on(0.1, &[]).with_status(1);
    let first = failed.stdout.lines().next().unwrap_or_default();
    assert!(first.starts_with("FAILED: ") && first.contains("of 400 calls"), "{}", failed.stdout);
    assert!(!failed.stdout.contains('✓'), "nothing is praised: {}", failed.stdout);
    run_on(0.0, &[]).with_status(0);
}

#[test]
fn a_limit_or_a_threshold_of_ones_own_takes_the_defaults_place() {
    run_on(0.1, &["--max-error-rate", "50%"]).with_status(0);
    run_on(0.1, &["--threshold", "error_rate<50%"]).with_status(0);
    run_on(0.1, &["--ok-status", "2xx,5xx"]).with_status(0);
    run_on(0.1, &["--threshold", "p99<1h"]).with_status(1);
}

/// One call is made to see its answer, whatever that is.
#[test]
fn a_single_call_may_fail() {
    let (_server, url) = target(ServerConfig { error_rate: 1.0, ..ServerConfig::default() });
    done(brunt(["--once", url.as_str()]).env_remove("BRUNT_MAX_ERROR_RATE")).with_status(0);
}

#[test]
fn the_environment_holds_a_share_and_the_flag_comes_first() {
    let (_server, url) = target(ServerConfig { error_rate: 0.1, ..ServerConfig::default() });
    let run = |args: &[&str], share: &str| {
        done(brunt([args, &["-n", "400", "-c", "4", &url]].concat()).env("BRUNT_MAX_ERROR_RATE", share))
    };
    run(&[], "50%").with_status(0);
    run(&["--max-error-rate", "1%"], "50%").with_status(1);
    let wrong = run(&[], "many").with_status(2);
    assert!(wrong.stderr.contains("BRUNT_MAX_ERROR_RATE=many"), "{}", wrong.stderr);
}
