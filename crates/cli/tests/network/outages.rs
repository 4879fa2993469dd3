//! A target that is down, stands still or cuts connections off by a timetable, over several protocols.
//!
//! Shares and times are wide here, as machines of tests stand still now and then; the simulation has them to the point.

use std::thread;

use crate::program::{Directory, Running};
use crate::report::{Report, report};

/// Starts a target with faults; with it, its URL.
fn serve(args: &[&str], faults: &str) -> (Running, String) {
    let mut server = Running::start([&["serve"], args, &["0", "--faults", faults, "--duration", "60s"]].concat());
    let line = server.line();
    let url = line.trim_end().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}")).to_owned();
    (server, url)
}

fn remarks<'a>(report: &'a Report, about: &str) -> Vec<&'a serde_json::Value> {
    report.at("/remarks").as_array().unwrap().iter().filter(|remark| remark["about"] == about).collect()
}

/// A file of the examples.
fn example(name: &str) -> String {
    format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// The length of the longest of these remarks, in nanoseconds; 0 without one.
fn longest(remarks: &[&serde_json::Value]) -> u64 {
    remarks
        .iter()
        .map(|remark| remark["to_ns"].as_u64().unwrap() - remark["from_ns"].as_u64().unwrap())
        .max()
        .unwrap_or(0)
}

/// Half of the calls failed, in an outage of three seconds.
#[track_caller]
fn is_half_out(report: &Report, what: &str) {
    let failed = report.at("/outcomes/error_ratio").as_f64().unwrap();
    assert!((0.3..=0.7).contains(&failed), "{what}: {failed}");
    let length = longest(&remarks(report, "outage"));
    assert!((1_500_000_000..=5_000_000_000).contains(&length), "{what}: {}", report.at("/remarks"));
}

/// Down for half of the time, a run has half of its calls fail, whatever it speaks, and says when.
#[test]
fn an_outage_has_its_share_of_failures_over_every_protocol() {
    let (proto, idl) = (example("grpc/echo.proto"), example("thrift/echo.thrift"));
    let grpc = ["--proto", &proto, "--call", "brunt.Echo/Say", "--args", r#"{"text": "hello"}"#];
    let thrift = ["--idl", &idl, "--call", "Echo.item", "--args", r#"{"item": {"sku": "a1", "colour": "BLUE"}}"#];
    let tcp = ["--send", r"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "--until", "abcdefghijklm"];
    let protocols: [(&[&str], &[&str]); 7] = [
        (&["http"], &[]),
        (&["http", "--tls"], &["-k"]),
        (&["http"], &["--http", "2"]),
        (&["ws"], &[]),
        (&["grpc"], &grpc),
        (&["thrift"], &thrift),
        (&["http"], &tcp),
    ];
    // Two at a time: all at once would keep a small machine from answering any.
    for protocols in protocols.chunks(2) {
        thread::scope(|scope| {
            for (server, client) in protocols {
                scope.spawn(move || {
                    let (_server, url) = serve(server, "refuse 1500ms-4500ms");
                    let url = if client.contains(&"--send") { url.replace("http:", "tcp:") } else { url };
                    is_half_out(&report(0, [*client, &["-r", "50", "-d", "6s", &url]].concat()), &url);
                });
            }
        });
    }
}

/// Users who come by a rate, and users who are there all along: each call of the outage fails, and the script goes on.
#[test]
fn an_outage_has_its_share_of_failures_in_scenarios() {
    let dir = Directory::new();
    let script = dir.path("users.lua");
    std::fs::write(
        &script,
        r#"
            local brunt = require("brunt")
            local http = brunt.http {}
            brunt.scenario("come", function() http:get("/") end):inject { brunt.rate(50, 6) }
            brunt.scenario("stay", function()
              brunt.pacing(0.1)
              http:get("/")
            end):inject { brunt.users(10, 6) }
        "#,
    )
    .unwrap();
    thread::scope(|scope| {
        for name in ["come", "stay"] {
            let script = &script;
            scope.spawn(move || {
                let (_server, url) = serve(&["http"], "refuse 1500ms-4500ms");
                is_half_out(&report(0, ["run", "-t", "1", "--base-url", &url, "--only", name, script]), name);
            });
        }
    });
}

#[test]
fn a_freeze_and_a_cut_are_told_apart() {
    let (_server, url) = serve(&["http"], "freeze 2s-3s; cut 4s");
    let report = report(0, ["-r", "200", "-c", "8", "-d", "5s", "--timeout", "10s", &url]);
    let worst = remarks(&report, "freeze").iter().filter_map(|freeze| freeze["worst_ns"].as_u64()).max();
    assert!(worst >= Some(700_000_000), "{}", report.at("/remarks"));
    assert_eq!(remarks(&report, "outage"), Vec::<&serde_json::Value>::new());
    let made = report.at("/connections/made").as_u64().unwrap();
    assert!(made >= 12, "the cut closes connections that others are made for: {made}");
}

#[test]
fn a_delay_lasts_as_long_as_it_is_written() {
    let (_server, url) = serve(&["http"], "delay 200ms 0s-60s");
    let report = report(0, ["-c", "2", "-n", "10", "--timeout", "10s", &url]);
    assert!(report.at("/times/response/min_ns").as_u64().unwrap() >= 200_000_000, "{}", report.at("/times/response"));
}

/// Without a rate few calls find out that the target is away: the time says it.
#[test]
fn a_closed_flood_fails_by_the_time_without_a_server() {
    // Its one place tries again 100 ms apart: sixty calls fail, of many thousands.
    let (_server, url) = serve(&["http"], "refuse 3s-9s");
    let report = report(1, ["-c", "1", "-t", "1", "-d", "12s", "--max-error-rate", "5%", &url]);
    assert!(report.at("/outcomes/error_ratio").as_f64().unwrap() < 0.05, "{}", report.at("/outcomes"));
    let thresholds = report.at("/thresholds").as_array().unwrap();
    let away = thresholds.iter().find(|result| result["threshold"] == "availability>=95%").unwrap();
    let share: f64 = away["got"].as_str().unwrap().trim_end_matches('%').parse().unwrap();
    assert!((30.0..=70.0).contains(&share) && away["held"] == false, "{away}");
    let said = report.at("/remarks").as_array().unwrap();
    let first = &said[0];
    assert!(first["tone"] == "failed" && first["message"].as_str().unwrap().starts_with("no server for "), "{said:?}");
}

/// Slow for a while is no freeze: calls go on to be answered.
#[test]
fn a_target_that_is_slow_for_a_while_is_said_to_be() {
    let (_server, url) = serve(&["http", "--service-time", "2ms"], "delay 300ms 2s-4s");
    let report = report(0, ["-r", "100", "-d", "6s", &url]);
    let length = longest(&remarks(&report, "slowness"));
    assert!((1_000_000_000..=5_000_000_000).contains(&length), "{}", report.at("/remarks"));
    // A machine that stands still may freeze the target before or after that.
    let freezes = remarks(&report, "freeze");
    assert!(
        freezes.iter().all(|freeze| freeze["to_ns"].as_u64() <= Some(2_000_000_000)
            || freeze["from_ns"].as_u64() >= Some(4_000_000_000)),
        "{freezes:?}"
    );
}

#[test]
fn connections_that_are_cut_under_calls_have_their_moment() {
    // With one server for 16 connections each call takes 1.6 s.
    let (_server, url) = serve(&["http", "--service-time", "100ms"], "cut 3s");
    let report = report(0, ["-c", "16", "-d", "5s", &url]);
    let [drops] = remarks(&report, "drops")[..] else { panic!("{}", report.at("/remarks")) };
    assert!(drops["calls"].as_u64().unwrap() >= 5, "{drops}");
    assert_eq!(remarks(&report, "freeze"), Vec::<&serde_json::Value>::new());
}

/// Begins with the first success of a service that starts later; gives up with status 3.
#[test]
fn a_service_that_starts_later_is_waited_for() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let url = format!("http://127.0.0.1:{port}/");
    let long = crate::program::run(["--wait-for", "1500ms", "-n", "1", &url]).with_status(3);
    assert!(long.stderr.starts_with("waiting up to 1500ms for the target: connect: "), "{}", long.stderr);
    let quiet = crate::program::run(["--wait-for", "1500ms", "-n", "1", "--quiet", &url]).with_status(3);
    assert!(!quiet.stderr.contains("waiting up to"), "{}", quiet.stderr);
    let none = crate::program::run(["--wait-for", "300ms", "-n", "1", &url]).with_status(3);
    assert!(none.stderr.contains("the target was not ready within 300ms (--wait-for): connect: "), "{}", none.stderr);
    let report = thread::scope(|scope| {
        let waiting = scope.spawn(|| report(0, ["--wait-for", "30s", "-n", "20", "-c", "2", &url]));
        thread::sleep(std::time::Duration::from_millis(500));
        let mut server = Running::start(["serve", "http", &port, "--duration", "60s"]);
        server.line();
        waiting.join().unwrap()
    });
    report.assert_all(20, 200);
    assert_eq!(report.connections("failed"), 0);
}
