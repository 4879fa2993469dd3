//! Where connections go, and where they come from.

use std::collections::BTreeMap;
use std::net::ToSocketAddrs as _;

use crate::nginx::{Nginx, counts};
use crate::program::run;
use crate::report::report;

const HELLO: &str = "location / { return 200 hello; }";

#[test]
#[ignore = "needs nginx: make test installs it"]
fn ipv6() {
    let nginx = Nginx::start(HELLO);
    report(0, ["-n", "20", "-c", "2", &format!("http://[::1]:{}/", nginx.port)]).assert_all(20, 200);
    let host = format!("[::1]:{}", nginx.port);
    let log = nginx.log();
    assert_eq!(counts(&log, "remote_addr"), BTreeMap::from([("::1", 20)]));
    assert_eq!(counts(&log, "http_host"), BTreeMap::from([(host.as_str(), 20)]));
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn a_unix_socket() {
    let nginx = Nginx::start(HELLO);
    let report = report(0, ["-n", "500", "-c", "8", "--unix-socket", &nginx.socket(), "http://example.org/a"]);
    report.assert_all(500, 200);
    let log = nginx.log();
    assert_eq!(counts(&log, "remote_addr"), BTreeMap::from([("unix:", 500)]));
    assert_eq!(counts(&log, "http_host"), BTreeMap::from([("example.org", 500)]));
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn connecting_elsewhere_keeps_the_host() {
    let nginx = Nginx::start(HELLO);
    for there in [format!("127.0.0.1:{}", nginx.port), format!("[::1]:{}", nginx.port)] {
        report(0, ["-n", "10", "--connect-to", &there, "http://example.org:81/a?b"]).assert_all(10, 200);
    }
    report(0, ["-n", "5", "-H", "Host: other.example", &nginx.url("/")]).assert_all(5, 200);
    let log = nginx.log();
    assert_eq!(counts(&log, "http_host"), BTreeMap::from([("example.org:81", 20), ("other.example", 5)]));
    assert_eq!(counts(&log, "remote_addr"), BTreeMap::from([("127.0.0.1", 15), ("::1", 10)]));
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn source_addresses_take_turns() {
    let nginx = Nginx::start(HELLO);
    let url = nginx.url("/");
    let report = report(0, ["-n", "400", "-c", "4", "--source-ip", "127.0.0.2,127.0.0.3-127.0.0.5", "-t", "1", &url]);
    report.assert_all(400, 200);
    let log = nginx.log();
    let from: Vec<_> = counts(&log, "remote_addr").into_keys().collect();
    assert_eq!(from, ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"]);
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn source_addresses_of_one_family_leave_the_other_alone() {
    let nginx = Nginx::start(HELLO);
    let v6 = format!("http://[::1]:{}/", nginx.port);
    report(0, ["-n", "10", "--source-ip", "127.0.0.2,::1", &v6]).assert_all(10, 200);
    assert_eq!(counts(&nginx.log(), "remote_addr"), BTreeMap::from([("::1", 10)]));
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn source_addresses_are_used_or_nothing_is() {
    let nginx = Nginx::start(HELLO);
    let done = run(["-n", "10", "--source-ip", "::1", &nginx.url("/")]).with_status(3);
    let way_out = "none of the source addresses is an IPv4 one: give one with --source-ip";
    assert!(done.stderr.contains(way_out), "{}", done.stderr);
    let v6 = format!("http://[::1]:{}/", nginx.port);
    let done = run(["-n", "10", "--source-ip", "127.0.0.1", &v6]).with_status(3);
    let way_out = "none of the source addresses is an IPv6 one: give one with --source-ip";
    assert!(done.stderr.contains(way_out), "{}", done.stderr);
    assert_eq!(nginx.count(), 0);
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn one_family_of_a_name() {
    let nginx = Nginx::start(HELLO);
    let url = format!("http://localhost:{}/", nginx.port);
    let known: Vec<_> = ("localhost", nginx.port).to_socket_addrs().unwrap().collect();
    for (flag, kind, peer, there) in [
        ("-4", "IPv4", "127.0.0.1", known.iter().any(std::net::SocketAddr::is_ipv4)),
        ("-6", "IPv6", "::1", known.iter().any(std::net::SocketAddr::is_ipv6)),
    ] {
        let before = nginx.lines().len();
        if there {
            report(0, ["-n", "40", "-c", "4", flag, &url]).assert_all(40, 200);
            let lines = nginx.lines();
            assert_eq!(counts(&lines[before..], "remote_addr"), BTreeMap::from([(peer, 40)]));
        } else {
            let done = run(["-n", "40", flag, &url]).with_status(3);
            assert!(done.stderr.contains(&format!("it has no {kind} address; leave {flag} out")), "{}", done.stderr);
        }
    }
    let done = run(["-n", "1", "-6", &nginx.url("/")]).with_status(3);
    assert!(
        done.stderr.contains("'127.0.0.1' cannot be resolved: it has no IPv6 address; leave -6 out"),
        "{}",
        done.stderr
    );
}
