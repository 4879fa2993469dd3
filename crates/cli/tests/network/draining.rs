//! Servers that end connections gracefully under load: each call is processed once, and no more than twice as many connections are open
//! as were asked for.

use rustix::process::Signal;

use crate::http2_peers::Peer;
use crate::nginx::{Listen, Nginx, counts};
use crate::program::{Directory, Running};
use crate::report::{Report, report};

/// Asserts that no call failed, and how many connections were open at the end of each second.
#[track_caller]
fn assert_drained(report: &Report, asked: u64, made: u64) {
    assert_eq!(report.outcome("failed"), 0, "{:?}", report.reasons());
    let seconds = report.at("/series").as_array().unwrap();
    let open = seconds.iter().map(|second| second["open_connections"].as_u64().unwrap());
    let most = open.max().unwrap_or_default();
    assert!(most <= 2 * asked, "{most} connections were open at once, {asked} were asked for");
    assert!(report.connections("made") >= made, "{} connections were made", report.connections("made"));
}

/// Loads of both models, each on two connections.
const LOADS: [&str; 2] = ["-c 2 --streams 20", "-c 2 --streams 20 -r 2k"];

#[test]
#[ignore = "needs Go: make test installs it"]
fn a_go_server_that_drains_processes_each_call_once() {
    for load in LOADS {
        let dir = Directory::new();
        let peer = Peer::draining_go(&dir, "200ms");
        let args = load.split(' ').chain(["-d", "3s", "-k", "--http", "2", &peer.url]);
        let report = report(0, args);
        assert_drained(&report, 2, 2 * 5);
        let ended = report.outcome("answered") + report.outcome("unfinished");
        let served = peer.served();
        assert!((report.outcome("answered")..=ended).contains(&served), "{load}: {served} served, {ended} ended");
    }
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn nginx_that_ends_old_connections_processes_each_call_once() {
    for load in LOADS {
        for limit in ["keepalive_time 200ms; keepalive_requests 100000", "keepalive_requests 500"] {
            let nginx = Nginx::listening(Listen::Http2, &[], &format!("{limit}; location / {{ return 200 hello; }}"));
            let args = load.split(' ').chain(["-d", "2s", "--http", "2"]);
            let url = nginx.url("/");
            let report = report(0, args.chain([url.as_str()]));
            assert_drained(&report, 2, 2 * 3);
            let log = nginx.log();
            assert_eq!(log.len() as u64, report.outcome("answered"), "{load}, {limit}");
            assert!(counts(&log, "connection").len() as u64 <= report.connections("made"), "{load}, {limit}");
        }
    }
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn an_nginx_that_is_reloaded_processes_each_call_once() {
    for load in LOADS {
        let nginx =
            Nginx::listening(Listen::Http2, &[], "keepalive_requests 1000000; location / { return 200 hello; }");
        let url = nginx.url("/");
        let running = Running::start(load.split(' ').chain(["-d", "1h", "--http", "2", "--format", "json", &url]));
        for _ in 0..3 {
            nginx.reload(1);
        }
        running.send(Signal::INT);
        let report = Report::parse(&running.wait().with_status(130));
        assert_drained(&report, 2, 2 + 3);
        assert_eq!(nginx.count() as u64, report.outcome("answered"), "{load}");
    }
}
