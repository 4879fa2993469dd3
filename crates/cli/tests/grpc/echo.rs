//! The built-in echo, by its own schema and by another's, and as grpcio sees it.

use std::process::Command;

use crate::calls::{EVERYTHING, once};
use crate::peers::{HEALTH, PROTO, python};
use crate::program::{Directory, Running, run};
use crate::report::report;

const ECHO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/grpc/echo.proto");

/// The echo, and the URL that it prints.
pub fn serve(flags: &[&str]) -> (Running, String) {
    let mut server = Running::start(["serve", "grpc", "0"].iter().chain(flags));
    let line = server.line();
    let url = line.strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}")).trim().to_owned();
    (server, url)
}

#[test]
fn the_example_is_what_it_serves() {
    assert_eq!(std::fs::read_to_string(ECHO).unwrap(), brunt_testbed::grpc::PROTO);
}

#[test]
fn every_kind_is_answered() {
    let (_server, url) = serve(&[]);
    let texts = r#"[{"text": "a"}, {"text": "b"}]"#;
    for (call, args, shown) in [
        ("Say", r#"{"text": "a"}"#, &[r#"{"text":"a"}"#][..]),
        (
            "Repeat",
            r#"{"text": "a", "times": 2}"#,
            &[r#"{"text":"a","times":2,"number":1}"#, r#"{"text":"a","times":2,"number":2}"#],
        ),
        ("Collect", texts, &[r#"{"text":"b","number":2}"#]),
        ("Chat", texts, &[r#"{"text":"a"}"#, r#"{"text":"b"}"#]),
    ] {
        let flags = ["--proto", ECHO, "--call", call, "--args", args];
        report(0, [&flags[..], &["-n", "200", "-c", "2", "--streams", "10", &url]].concat()).assert_all(200, 0);
        let told = once(0, &[&flags[..], &[&url]].concat());
        let from = told.iter().position(|line| line.starts_with("← answer")).unwrap();
        let messages: Vec<_> = told[from..].iter().filter(|line| line.starts_with('{')).collect();
        assert_eq!(messages, shown, "{told:#?}");
    }
    // A schema of someone else's, with every type.
    report(0, ["--proto", PROTO, "--call", "Add", "--args", EVERYTHING, "-n", "50", &url]).assert_all(50, 0);
    let health = ["--proto", HEALTH, "--call", "Check", "--args", r#"{"service": "brunt.Echo"}"#, &url];
    assert!(once(0, &health).iter().any(|line| line == r#"{"status":"SERVING"}"#));
    let fail = ["--proto", ECHO, "--call", "Fail", "--args", r#"{"status": 9, "message": "ü%"}"#, "-n", "10", &url];
    assert_eq!(report(0, fail).statuses(), [(9, 10)].into());
    assert!(once(0, &fail).iter().any(|line| line.ends_with("status 9 FAILED_PRECONDITION: ü%")));
}

#[test]
fn streams_are_many_and_long() {
    let (_server, url) = serve(&["--delay", "1ms"]);
    let flags = ["--proto", ECHO, "--call", "Repeat", "--args", r#"{"text": "x", "times": 300}"#];
    let run = report(0, [&flags[..], &["-n", "300", "-c", "2", "--streams", "50", &url]].concat());
    run.assert_all(300, 0);
    assert_eq!(run.connections("made"), 2);
    assert!(run.number("/times/service/min_ns") >= 1_000_000);
    // A gap that is longer than the timeout ends the call, and its connection goes on.
    let slow = ["--proto", ECHO, "--call", "Repeat", "--args", r#"{"times": 2, "gap_ms": 60000}"#];
    let run = report(3, [&slow[..], &["-n", "6", "-c", "1", "--timeout", "50ms", &url]].concat());
    assert_eq!(run.failures(), [("timeout", 6)].into());
    assert_eq!(run.connections("made"), 1);
}

/// Flags of calls whose answers are five messages, 20 ms apart.
const TICKS: [&str; 6] = ["--proto", ECHO, "--call", "Repeat", "--args", r#"{"times": 5, "gap_ms": 20}"#];

#[test]
fn messages_are_timed_without_being_asked_for() {
    let (_server, url) = serve(&[]);
    let closed = ["-n", "100", "-c", "2", "--streams", "25"].as_slice();
    for load in [closed, &["-n", "100", "-r", "200", "-c", "2", "--streams", "100"]] {
        let run = report(0, [&TICKS[..], load, &[&url]].concat());
        run.assert_all(100, 0);
        let messages = |what: &str| run.number(&format!("/outcomes/messages/{what}"));
        assert_eq!((messages("count"), messages("streams")), (500, 100));
        assert_eq!(run.number("/times/message_gap/count"), 400);
        // Of a late message the next comes sooner; on the whole none does.
        assert!(run.number("/times/last_message/min_ns") >= 79_000_000);
    }
    let held = ["-n", "10", "--threshold", "message_gap.p50 > 15ms", "--threshold", "first_message.p99 < 5s", &url];
    report(0, [&TICKS[..], &held].concat());
    // What answers with one message is timed as it ever was.
    let unary = report(0, ["--proto", ECHO, "--call", "Say", "-n", "50", &url]);
    assert!(unary.at("/outcomes").get("messages").is_none_or(serde_json::Value::is_null));
}

#[test]
fn gaps_are_those_that_the_echo_wrote_down() {
    let dir = Directory::new();
    let log = dir.path("messages.log");
    let (_server, url) = serve(&["--message-log", &log]);
    let run = report(0, [&TICKS[..], &["-n", "40", "-c", "2", "--streams", "20", &url]].concat());
    run.assert_all(40, 0);
    let mut sent = std::collections::BTreeMap::<u64, Vec<u64>>::new();
    for line in std::fs::read_to_string(&log).unwrap().lines() {
        let (call, at) = line.split_once(',').unwrap();
        sent.entry(call.parse().unwrap()).or_default().push(at.parse().unwrap());
    }
    assert_eq!((sent.len(), sent.values().map(Vec::len).sum::<usize>()), (40, 200));
    let gaps: Vec<_> = sent.values().flat_map(|times| times.windows(2).map(|pair| pair[1] - pair[0])).collect();
    let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
    let measured = run.at("/times/message_gap/mean_ns/value").as_f64().unwrap();
    // Of a late message the next comes sooner, so that the mean is what both agree on however busy the machine is.
    assert!((measured - mean).abs() < 0.1 * mean, "{measured} and {mean}");
}

#[test]
fn a_stream_that_stalls_fails_by_name() {
    let (_server, url) = serve(&[]);
    let run =
        report(1, [&TICKS[..], &["-n", "6", "-c", "1", "--streams", "3", "--stall-timeout", "5ms", &url]].concat());
    assert_eq!(run.failures(), [("stalled", 6)].into());
    assert_eq!((run.connections("made"), run.number("/outcomes/messages/count")), (1, 6));
    let unary = run_with_status_2(&["--call", "Say", "--stall-timeout", "1s", &url]);
    assert!(unary.contains("Say answers with one message"), "{unary}");
}

fn run_with_status_2(args: &[&str]) -> String {
    run([&["--proto", ECHO], args].concat()).with_status(2).stderr
}

#[test]
fn its_faults_are_those_that_were_asked_for() {
    let (_server, url) = serve(&["--error-rate", "50%"]);
    let flags = ["--proto", ECHO, "--call", "Say", "-n", "200", "-c", "2", &url];
    let unavailable = report(0, flags).statuses()[&14];
    assert!((50..150).contains(&unavailable), "{unavailable}");
    // What is not gRPC is told so.
    let http = url.replace("grpc://", "http://");
    assert_eq!(report(0, ["--http", "2", "-n", "3", &http]).statuses(), [(415, 3)].into());
}

#[test]
fn it_speaks_tls() {
    let dir = Directory::new();
    let cert = dir.path("cert.pem");
    let (_server, url) = serve(&["--tls", "--write-cert", &cert]);
    assert!(url.starts_with("grpcs://"), "{url}");
    report(0, ["--proto", ECHO, "--call", "Say", "--cacert", &cert, "-n", "20", &url]).assert_all(20, 0);
    // A server that speaks HTTP/1.1 alone does not agree.
    let mut http = Running::start(["serve", "http", "0", "--tls"]);
    let line = http.line();
    let https = line.trim().replace("listening on https://", "grpcs://");
    let done = run(["--proto", ECHO, "--call", "Say", "-k", "-n", "2", &https]);
    assert_eq!(done.status, Some(3), "{done:#?}");
}

/// grpcio's own client finds nothing wrong with it, in any kind of call.
#[test]
fn grpcio_can_be_served() {
    let (_server, url) = serve(&[]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/grpc/peers/client.py");
    let address = url.strip_prefix("grpc://").unwrap().trim_end_matches('/');
    let examples = ECHO.strip_suffix("/echo.proto").unwrap();
    let output = Command::new(python()).args([script, examples, address]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "all came back");
}
