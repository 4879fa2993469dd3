//! Ctrl-C and SIGTERM: the first ends the run early with its report, the second at once with what there is.

use std::time::{Duration, Instant};

use brunt_testbed::faulty::{self, Fault};
use brunt_testbed::server::{Config, Server};
use rustix::process::Signal;
use serde_json::Value;

use crate::program::{Directory, Running, until};
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
fn the_second_signal_ends_the_run_at_once_with_what_it_has() {
    // No answer: the drain would go on.
    let server = faulty::Server::start(Fault::NeverAnswer).unwrap();
    let running = Running::start(["-d", "1h", "--timeout", "1h", "-c", "2", &server.url()]);
    until("the run is on its way", || server.requests() > 0);
    let begun = Instant::now();
    running.send(Signal::INT);
    running.send(Signal::TERM);
    let done = running.wait().with_status(130);
    assert!(done.stdout.contains("interrupted"), "{}", done.stdout);
    assert!(begun.elapsed() < Duration::from_secs(60), "it does not wait for the calls");
}

#[test]
fn the_first_signal_in_the_drain_ends_it() {
    let server = faulty::Server::start(Fault::NeverAnswer).unwrap();
    let running = Running::start(["-n", "4", "-r", "100", "--timeout", "1h", "--format", "json", &server.url()]);
    until("all calls are under way", || server.requests() == 4);
    running.send(Signal::INT);
    let done = running.wait().with_status(130);
    let outcomes = &serde_json::from_str::<Value>(&done.stdout).unwrap()["outcomes"];
    assert_eq!((&outcomes["due"], &outcomes["unfinished"]), (&4.into(), &4.into()), "{outcomes:#}");
}

/// A run of a script with setup and teardown, which call the target and have these lines in them besides.
fn surrounded(setup: &str, teardown: &str) -> (Server, Running, Directory) {
    let (server, url) = target(Config::default());
    let directory = Directory::new();
    let script = format!(
        "local brunt = require 'brunt'; local http = brunt.http {{ base = '{url}' }}
         brunt.setup(function() http:get('/') {setup} return {{ made = true }} end)
         brunt.scenario('s', function() http:get('/') end):inject {{ brunt.iterations_each(1, 1) }}
         brunt.teardown(function(given) assert(given.made) http:get('/') {teardown} http:get('/') end)"
    );
    let running = Running::start(["run", &directory.file("s.lua", script)]);
    (server, running, directory)
}

#[test]
fn a_signal_in_setup_makes_no_load_and_is_torn_down() {
    let (server, running, _directory) = surrounded("brunt.pause('1s')", "");
    until("setup has begun", || server.requests() == 1);
    running.send(Signal::INT);
    let done = running.wait().with_status(130);
    assert_eq!(server.requests(), 3, "setup, and the two calls of teardown: {done:#?}");
    assert!(done.stdout.contains("interrupted"), "{done:#?}");
}

#[test]
fn a_setup_that_was_cut_off_is_not_torn_down() {
    let (server, running, _directory) = surrounded("brunt.pause('1h')", "");
    until("setup has begun", || server.requests() == 1);
    running.send(Signal::INT);
    running.send(Signal::TERM);
    let done = running.wait().with_status(130);
    assert_eq!(server.requests(), 1, "{done:#?}");
    assert!(done.stderr.contains("setup had not returned, and was cut off"), "{done:#?}");
}

#[test]
fn a_teardown_ends_in_peace_after_one_signal_and_at_once_after_two() {
    let (server, running, _directory) = surrounded("", "brunt.pause('1s')");
    until("teardown has begun", || server.requests() == 3);
    running.send(Signal::INT);
    let done = running.wait().with_status(130);
    assert_eq!(server.requests(), 4, "{done:#?}");
    assert!(!done.stdout.contains("cut off"), "{done:#?}");

    let (server, running, _directory) = surrounded("", "brunt.pause('1h')");
    until("teardown has begun", || server.requests() == 3);
    running.send(Signal::INT);
    running.send(Signal::TERM);
    let done = running.wait().with_status(130);
    assert_eq!(server.requests(), 3, "{done:#?}");
    assert!(done.stdout.contains("teardown had not returned, and was cut off"), "{done:#?}");
}
