//! What calls come to besides results: exceptions, silence, too much, too many at once, nonsense.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::peers::{IDL, Implementation, Peer};
use crate::program::{run, until};
use crate::report::report;

fn with<'a>(flags: &[&'a str], args: &'a [String]) -> Vec<&'a str> {
    flags.iter().copied().chain(args.iter().map(String::as_str)).collect()
}

#[test]
fn a_declared_exception_is_an_answer_with_its_id() {
    let peer = Peer::start(Implementation::Apache);
    for listener in peer.of_kind("plain") {
        let args = peer.args(listener);
        let refused =
            report(0, with(&["-n", "10", "-c", "2", "--call", "refuse", "--args", r#"{"busy": false}"#], &args));
        refused.assert_all(10, 1);
        let busy = report(0, with(&["-n", "10", "-c", "2", "--call", "refuse", "--args", r#"{"busy": true}"#], &args));
        busy.assert_all(10, 5);
        assert_eq!(busy.at("/outcomes/status_names"), &serde_json::json!({"1": "Refused", "5": "Busy"}));
    }
    // It is no success unless somebody says so.
    let args = peer.any("plain");
    let shown = run(with(&["-n", "10", "--call", "refuse", "--args", r#"{"busy": true}"#], &args)).with_status(0);
    assert!(shown.stdout.contains("status       5 Busy × 10"), "{shown:#?}");
    let call = ["-n", "10", "--call", "refuse", "--args", r#"{"busy": true}"#, "--threshold", "error_rate==0"];
    report(1, with(&call, &args));
    report(0, with(&[&call[..], &["--ok-status", "0,5"]].concat(), &args));
}

#[test]
fn what_a_server_could_not_carry_out_is_a_failure_by_name() {
    let peer = Peer::start(Implementation::Apache);
    for listener in peer.of_kind("plain") {
        let crashed = report(1, with(&["-n", "10", "-c", "1", "--call", "crash"], &peer.args(listener)));
        assert_eq!(crashed.reasons(), BTreeMap::from([("exception: internal error: Internal error".to_owned(), 10)]));
        assert_eq!(crashed.connections("made"), 1, "the connection goes on");
    }
    // Sent to a service that the server has not.
    let (idl, args) = (peer.dir.file("other.thrift", "service Everything { void unheard_of() }"), peer.any("plain"));
    let unknown = report(
        1,
        with(&["-n", "4", "-c", "1", "--call", "unheard_of"], &[&["--idl".into(), idl], &args[2..]].concat()),
    );
    let expected = "exception: unknown method: Unknown function unheard_of".to_owned();
    assert_eq!(unknown.reasons(), BTreeMap::from([(expected, 4)]));
}

#[test]
fn a_oneway_call_is_over_when_it_is_sent() {
    for implementation in [Implementation::Apache, Implementation::Thriftpy] {
        let peer = Peer::start(implementation);
        let mut told = 0;
        for listener in peer.of_kind("plain") {
            let args = peer.args(listener);
            let told_run = report(0, with(&["-n", "50", "-c", "1", "--call", "tell", "--args", r#"{"v": 3}"#], &args));
            told_run.assert_all(50, 0);
            told += 150;
            // All of them arrive, though nobody waits until they have.
            until(&format!("{implementation:?} {listener:?} has been told {told}"), || {
                let result = told.to_string();
                run(with(&["-n", "1", "--format", "json", "--call", "told", "--result", &result], &args)).status
                    == Some(0)
            });
        }
    }
}

#[test]
fn answers_of_any_length_come_in_within_the_limit() {
    let peer = Peer::start(Implementation::Thriftpy);
    for listener in peer.of_kind("plain") {
        let args = peer.args(listener);
        let bytes = ["-n", "4", "-c", "2", "--call", "bytes", "--args", r#"{"length": 3000000}"#];
        let run = report(0, with(&bytes, &args));
        run.assert_all(4, 0);
        assert!(run.number("/bytes/clear_in_bytes") > 12_000_000);
        let limited = report(1, with(&[&bytes[..], &["--max-answer", "2999999"]].concat(), &args));
        assert_eq!(limited.failures(), BTreeMap::from([("oversize", 4)]));
    }
}

#[test]
fn calls_wait_for_each_other_on_one_connection() {
    for implementation in [Implementation::Apache, Implementation::Thriftpy] {
        let peer = Peer::start(implementation);
        for listener in peer.of_kind("plain") {
            let add = ["--call", "add", "--args", r#"{"a": 1, "b": 2, "c": 3}"#, "--result", "6"];
            let flags = [&["-n", "400", "-c", "2", "--pipeline", "8"][..], &add].concat();
            report(0, with(&flags, &peer.args(listener))).assert_all(400, 0);
        }
    }
}

#[test]
fn arguments_may_be_different_for_each_call() {
    let peer = Peer::start(Implementation::Apache);
    let lines = peer.dir.file("lines.jsonl", "{\"busy\": true}\n\n{\"busy\": false}\n{\"busy\": false}\n");
    let args = peer.any("plain");
    let run = report(0, with(&["-n", "30", "--call", "refuse", "--args-lines", &lines], &args));
    assert_eq!(run.statuses(), BTreeMap::from([(1, 20), (5, 10)]));
}

#[test]
fn a_result_that_was_not_expected_is_a_mismatch() {
    let peer = Peer::start(Implementation::Thriftpy);
    let args = peer.any("plain");
    let point = ["--call", "echo_struct", "--args", r#"{"v": {"x": -3, "name": "ä"}}"#];
    let part = report(0, with(&[&["-n", "4"], &point[..], &["--result", r#"{"y": 7}"#]].concat(), &args));
    part.assert_all(4, 0);
    let other = report(1, with(&[&["-n", "4"], &point[..], &["--result", r#"{"y": 8}"#]].concat(), &args));
    assert_eq!(other.failures(), BTreeMap::from([("mismatch", 4)]));
}

#[test]
fn a_plan_carries_the_idl_with_all_that_it_includes() {
    let peer = Peer::start(Implementation::Apache);
    let dir = &peer.dir;
    std::fs::create_dir(dir.path("parts")).unwrap();
    let main = dir.file("main.thrift", "include 'base.thrift' service Everything extends base.Base {}");
    let base = dir.file("parts/base.thrift", "service Base { i32 add(1: i32 a, 2: i16 b, 30: i64 c) }");
    let (plan, parts, mut args) = (dir.path("plan.json"), dir.path("parts"), peer.any("plain"));
    args[1].clone_from(&main);
    let made =
        ["-n", "7", "--call", "add", "--args", r#"{"a": 1, "b": 2, "c": 3}"#, "--result", "6", "--idl-path", &parts];
    report_of_plan(&with(&[&made[..], &["--write-plan", &plan, "--dry-run"]].concat(), &args));
    std::fs::remove_file(main).unwrap();
    std::fs::remove_file(base).unwrap();
    report(0, ["--plan", &plan]).assert_all(7, 0);
}

#[track_caller]
fn report_of_plan(args: &[&str]) {
    let done = run(args).with_status(0);
    assert_eq!(done.stdout, "");
}

/// A server that answers each call with the same bytes; its port.
fn answering(answer: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // It ends with the program that runs the tests.
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            std::thread::spawn(move || {
                let mut bytes = [0; 1000];
                while connection.read(&mut bytes).is_ok_and(|n| n > 0) && connection.write_all(answer).is_ok() {}
            });
        }
    });
    port
}

#[test]
fn nonsense_is_a_failure_by_name() {
    for (answer, expected) in [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".as_slice(), "protocol: no message of the binary protocol"),
        (b"\x80\x01\0\x02\0\0\0\x04told\0\0\0\x63\x08\0\0\0\0\0\x01\0", "sequence: an answer with a sequence id"),
        (b"\x80\x01\0\x02\0\0\0\x04tole\0\0\0\0\x08\0\0\0\0\0\x01\0", "protocol: an answer to another method"),
        (b"\x80\x01\0\x02\0\0\0\x04told\0\0\0\0\x0a\0\0\0\0\0\x01\0\0\0\0\0", "protocol: a result of another type"),
        (b"\x80\x01\0\x02\0\0\0\x04told\0\0\0\0\0", "protocol: a reply with no result in it"),
        (b"\x80\x01\0\x02\0\0\0\x04told\0\0\0\0\x01\0\0", "protocol: a type that the binary protocol does not have"),
        (b"\x80\x01\0\x02\0\0\0\x04told\0\0\0\0\x0b\0\0\x7f\xff\xff\xff", "oversize: an answer of more bytes than"),
        (b"\x80\x01\0\x01\0\0\0\x04told\0\0\0\0\0", "protocol: a call where an answer belongs"),
    ] {
        let url = format!("thrift://127.0.0.1:{}", answering(answer));
        // What is no message of the protocol is no answer.
        let status = if expected.starts_with("protocol") { 3 } else { 1 };
        let run = report(status, ["-n", "1", "--idl", IDL, "--call", "told", &url]);
        let reasons = run.reasons();
        let (reason, count) = reasons.first_key_value().unwrap();
        assert!(reason.starts_with(expected) && *count == 1, "{answer:?}: {reasons:?}");
    }
}
