//! Connections that the server closes when it likes.

use std::collections::{BTreeMap, BTreeSet};

use crate::nginx::{Nginx, counts};
use crate::report::report;

#[test]
#[ignore = "needs nginx: make test installs it"]
fn a_limit_on_requests_per_connection_fails_nothing() {
    for args in [
        ["-n", "1000", "-c", "1"].as_slice(),
        &["-n", "1000", "-c", "4", "-r", "5k"],
        &["-n", "1000", "-c", "4", "-t", "2", "--body", "x"],
        &["-n", "1000", "-c", "2", "--pipeline", "8"],
    ] {
        let nginx = Nginx::start("keepalive_requests 100; location / { return 200 hello; }");
        let report = report(0, [args, &[&nginx.url("/")]].concat());
        report.assert_all(1000, 200);
        let log = nginx.log();
        assert_eq!(log.len(), 1000, "{args:?}");
        let connections = counts(&log, "connection");
        assert!(connections.values().all(|requests| *requests <= 100), "{args:?} {connections:?}");
        assert!(report.connections("made") >= connections.len() as u64 && connections.len() >= 10, "{args:?}");
    }
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn requests_behind_the_last_of_a_connection_fail_if_they_must_not_be_sent_twice() {
    let nginx = Nginx::start("keepalive_requests 100; location / { return 200 hello; }");
    let report = report(0, ["-n", "500", "-c", "1", "--pipeline", "8", "--body", "x", &nginx.url("/")]);
    assert_eq!(report.outcome("due"), 500);
    assert_eq!(report.failures().keys().copied().collect::<Vec<_>>(), ["closed"], "{:?}", report.reasons());
    assert_eq!(nginx.count() as u64, report.outcome("answered"));
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn a_connection_for_each_request() {
    let nginx = Nginx::start("location / { return 200 hello; }");
    let report = report(0, ["-n", "200", "-c", "4", "--reconnect", &nginx.url("/")]);
    report.assert_all(200, 200);
    assert_eq!(report.connections("made"), 200);
    assert_eq!(report.number("/times/connect/count"), 200);
    let log = nginx.log();
    assert_eq!(counts(&log, "connection").len(), 200);
    assert_eq!(counts(&log, "connection_requests"), BTreeMap::from([("1", 200)]));
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn connections_are_kept_unless_told_otherwise() {
    let nginx = Nginx::start("keepalive_requests 100000; location / { return 200 hello; }");
    let report = report(0, ["-n", "2000", "-c", "5", "-t", "2", &nginx.url("/")]);
    report.assert_all(2000, 200);
    assert_eq!(report.connections("made"), 5);
    let log = nginx.log();
    let connections: BTreeSet<_> = log.iter().map(|line| line.get("connection")).collect();
    assert!(connections.len() <= 5, "{connections:?}");
}

/// nginx with these settings, plain and with TLS, and its URLs.
fn both(body: &str) -> [(Nginx, String); 2] {
    let (plain, tls) = (Nginx::start(body), Nginx::start_tls(body));
    let urls = (plain.url("/"), tls.tls_url());
    [(plain, urls.0), (tls, urls.1)]
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn idle_connections_that_the_server_closes_fail_nothing() {
    for (nginx, url) in both("keepalive_timeout 50ms; location / { return 200 hello; }") {
        // Due every 100 ms on either of two connections: each has been closed by then. For long enough that a machine that
        // stands still for seconds, after which all is sent at once that was due, does not stand still for all of it.
        let report = report(0, ["-r", "20", "-n", "140", "-c", "2", "-t", "1", "-k", &url]);
        report.assert_all(140, 200);
        assert!(report.connections("made") >= 6, "{}", report.at("/connections"));
        assert_eq!(nginx.count(), 140);
    }
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn an_idle_connection_that_the_server_closes_just_then_is_made_anew() {
    // The close and the next request meet now and then.
    for (nginx, url) in both("keepalive_timeout 10ms; location / { return 200 hello; }") {
        let report = report(0, ["-r", "400", "-n", "400", "-c", "4", "-t", "1", "-k", "--max-error-rate", "5%", &url]);
        // A call is sent again once (RFC 9110 §9.2.2): on a machine that stands still, a few meet two closes.
        let (answered, failed) = (report.outcome("answered"), report.outcome("failed"));
        assert!(answered + failed == 400 && failed <= 12, "{:?}", report.reasons());
        assert!((answered..=400).contains(&(nginx.count() as u64)));
    }
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn a_server_without_keep_alive() {
    let nginx = Nginx::start("keepalive_timeout 0; location / { return 200 hello; }");
    let report = report(0, ["-n", "100", "-c", "3", &nginx.url("/")]);
    report.assert_all(100, 200);
    assert_eq!(report.connections("reconnects"), 0, "a close that was announced surprises nobody");
    assert_eq!(counts(&nginx.log(), "connection").len(), 100);
}
