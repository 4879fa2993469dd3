//! Ctrl-C and SIGTERM: the first ends the run early with its report, the second ends the program.

use brunt_testbed::server::{Config, Delay, Server};
use rustix::process::Signal;

use crate::program::{Running, until};
use crate::runs::target;

/// Waits until the target has answered: from then on the run is on its way.
fn until_answered(server: &Server) {
    until("the target has answered", || server.requests() > 0);
}

#[test]
fn the_first_signal_ends_the_run_with_its_report() {
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let (server, url) = target(Config::default());
        let running = Running::start(["-d", "1h", "-c", "2", &url]);
        until_answered(&server);
        running.send(signal);
        let done = running.wait().with_status(status);
        assert!(done.stdout.contains("interrupted"), "{}", done.stdout);
    }
}

#[test]
fn a_signal_comes_before_a_threshold_that_failed() {
    let (server, url) = target(Config::default());
    let running = Running::start(["-d", "1h", "--threshold", "due==0", &url]);
    until_answered(&server);
    running.send(Signal::INT);
    let done = running.wait().with_status(130);
    assert!(done.stdout.contains("1 of 1 threshold failed"), "{}", done.stdout);
}

#[test]
fn the_second_signal_ends_the_program() {
    // One answer at once, then none: the drain would go on.
    let (server, url) =
        target(Config { delay: Delay::Fixed(std::time::Duration::from_secs(1800)), ..Config::default() });
    let running = Running::start(["-d", "1h", "--timeout", "1h", "-c", "2", &url]);
    until("the run is on its way", || server.connections() > 0);
    running.send(Signal::INT);
    running.send(Signal::TERM);
    let done = running.wait();
    assert_eq!((done.status, done.stdout.as_str()), (Some(130), ""));
}
