//! Ctrl-C and SIGTERM: the first ends the run early with its report, the second at once with what there is. The table of
//! docs/decisions/0210-what-a-signal-ends.md is [`PHASES`], a row for each phase of a run of a script; floods have the tests before it.

use std::time::{Duration, Instant};

use brunt_testbed::faulty::{self, Fault};
use brunt_testbed::server::{Server, ServerConfig};
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
        let (server, url) = target(ServerConfig::default());
        let running = Running::start(["-d", "1h", "-c", "2", &url]);
        until_answered(&server);
        running.send(signal);
        let done = running.wait().with_status(status);
        assert!(done.stdout.contains("interrupted"), "{}", done.stdout);
    }
}

#[test]
fn a_signal_comes_before_a_threshold_that_failed() {
    let (server, url) = target(ServerConfig::default());
    let running = Running::start(["-d", "1h", "--threshold", "due==0", &url]);
    until_answered(&server);
    running.send(Signal::INT);
    let done = running.wait().with_status(130);
    assert!(done.stdout.contains("1 of 1 threshold failed"), "{}", done.stdout);
}

#[test]
fn the_second_signal_ends_the_run_at_once_with_what_it_has() {
    // No answer: the drain would go on.
    let server = faulty::FaultyServer::start(Fault::NeverAnswer).unwrap();
    let running = Running::start(["-d", "1h", "--timeout", "1h", "-c", "2", &server.url()]);
    until("the run is on its way", || server.requests() > 0);
    let begun = Instant::now();
    running.send(Signal::INT);
    running.send(Signal::TERM);
    let done = running.wait().ended_by(&[Signal::INT, Signal::TERM]);
    assert!(done.stdout.contains("interrupted"), "{}", done.stdout);
    assert!(begun.elapsed() < Duration::from_secs(60), "it does not wait for the calls");
}

#[test]
fn the_first_signal_in_the_drain_ends_it() {
    let server = faulty::FaultyServer::start(Fault::NeverAnswer).unwrap();
    let running = Running::start(["-n", "4", "-r", "100", "--timeout", "1h", "--format", "json", &server.url()]);
    until("all calls are under way", || server.requests() == 4);
    running.send(Signal::INT);
    let done = running.wait().with_status(130);
    let outcomes = &serde_json::from_str::<Value>(&done.stdout).unwrap()["outcomes"];
    assert_eq!((&outcomes["due"], &outcomes["unfinished"]), (&4.into(), &4.into()), "{outcomes:#}");
}

#[test]
fn a_signal_before_the_load_ends_a_flood_without_any() {
    for signals in [&[Signal::INT][..], &[Signal::INT, Signal::TERM]] {
        // A target of its own: one that the run before has left may count the last request of it late.
        let (server, url) = target(ServerConfig::default());
        let warming_up = Running::start(["-d", "1h", "-w", "1h", "-c", "1", "--format", "json", &url]);
        until("the warm-up is on its way", || server.requests() > 0);
        for signal in signals {
            warming_up.send(*signal);
        }
        let done = warming_up.wait().ended_by(signals);
        let report: Value = serde_json::from_str(&done.stdout).unwrap();
        assert_eq!((&report["ending"], &report["outcomes"]["due"]), (&"interrupted".into(), &0.into()), "{done:#?}");
    }
    // No TLS handshake.
    let silent = faulty::FaultyServer::start(Fault::NeverAnswer).unwrap();
    let url = silent.url().replace("http:", "https:");
    for signals in [&[Signal::INT][..], &[Signal::INT, Signal::TERM]] {
        let before = silent.connections();
        let connecting = Running::start(["-d", "1h", "-c", "1", "-k", "--connect-timeout", "1h", &url]);
        until("it connects", || silent.connections() > before);
        for signal in signals {
            connecting.send(*signal);
        }
        let done = connecting.wait().ended_by(signals);
        assert!(done.stdout.contains("interrupted"), "{done:#?}");
    }
}

/// A phase of a run of a script, in which signals come.
struct Phase {
    name: &'static str,
    setup: &'static str,
    injection: &'static str,
    iteration: &'static str,
    /// Calls that the target has had once the phase is under way, and once it has ended.
    begun: u64,
    ended: u64,
}

const PHASES: [Phase; 4] = [
    Phase {
        name: "setup",
        setup: "brunt.pause('500ms')",
        injection: "brunt.iterations_each(1, 1)",
        iteration: "",
        begun: 1,
        ended: 1,
    },
    Phase {
        name: "measured",
        setup: "",
        injection: "brunt.iterations_each(1, 1)",
        iteration: "brunt.pause('1h')",
        begun: 2,
        ended: 2,
    },
    Phase {
        name: "drain",
        setup: "",
        injection: "brunt.users(1, '200ms')",
        iteration: "brunt.pause('400ms') http:get('/') brunt.pause('1h')",
        begun: 3,
        ended: 3,
    },
    Phase { name: "teardown", setup: "", injection: "brunt.iterations_each(1, 1)", iteration: "", begun: 3, ended: 2 },
];

/// A run of a script in whose phases signals can come; its setup calls the target once, its teardown twice, with a pause between.
fn surrounded(phase: &Phase, pause: &str) -> (Server, Running, Directory) {
    let (server, url) = target(ServerConfig::default());
    let directory = Directory::new();
    let Phase { setup, injection, iteration, .. } = phase;
    let script = format!(
        "local brunt = require 'brunt'; local http = brunt.http {{ base = '{url}' }}
         brunt.setup(function() http:get('/') {setup} return {{ made = true }} end)
         brunt.scenario('s', function() http:get('/') {iteration} end):inject {{ {injection} }}
         brunt.teardown(function(given) assert(given.made) http:get('/') brunt.pause('{pause}') http:get('/') end)"
    );
    let running = Running::start(["run", "--drain", "1h", &directory.file("s.lua", script)]);
    until(&format!("{} has begun", phase.name), || server.requests() == phase.begun);
    (server, running, directory)
}

#[test]
fn after_one_signal_each_phase_ends_and_teardown_is_finished() {
    for phase in &PHASES {
        let (server, running, _directory) = surrounded(phase, "500ms");
        running.send(Signal::INT);
        let done = running.wait().with_status(130);
        assert_eq!(server.requests(), phase.ended + 2, "{}: {done:#?}", phase.name);
        assert!(!done.stdout.contains("cut off"), "{}: {done:#?}", phase.name);
        // A load that is over cannot be cut short.
        assert!(done.stdout.contains("interrupted") || phase.name == "teardown", "{}: {done:#?}", phase.name);
    }
}

#[test]
fn after_two_signals_teardown_is_cut_off_and_what_there_is_is_reported() {
    for phase in &PHASES {
        let (server, running, _directory) = surrounded(phase, "1h");
        running.send(Signal::INT);
        until("teardown has begun", || server.requests() == phase.ended + 1);
        running.send(Signal::TERM);
        let done = running.wait().ended_by(&[Signal::INT, Signal::TERM]);
        assert_eq!(server.requests(), phase.ended + 1, "{}: {done:#?}", phase.name);
        let cut_off =
            done.stdout.contains("✗ teardown (") && done.stdout.contains("s.lua:4) had not returned, and was cut");
        assert!(cut_off, "{}: {done:#?}", phase.name);
    }
}

#[test]
fn a_setup_that_was_cut_off_is_not_torn_down() {
    let setup = Phase { setup: "brunt.pause('1h')", ..PHASES[0] };
    let (server, running, _directory) = surrounded(&setup, "1h");
    running.send(Signal::INT);
    running.send(Signal::TERM);
    let done = running.wait().ended_by(&[Signal::INT, Signal::TERM]);
    assert_eq!(server.requests(), 1, "{done:#?}");
    assert!(
        done.stderr.contains("error: setup (") && done.stderr.contains("had not returned, and was cut off"),
        "{done:#?}"
    );
}
