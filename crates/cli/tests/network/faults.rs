//! Servers that each break the rules in one way: the right failure with its reason for every call.

use std::collections::BTreeMap;
use std::time::Duration;

use brunt_testbed::faulty::{ConnectionFate, Fault, FaultyServer};

use crate::program::nobody;
use crate::report::{Report, report};

/// Calls that are made of each server.
const CALLS: u64 = 6;

/// Longer than any machine stands still: what happens, happens for another reason.
const PATIENT: [&str; 4] = ["--timeout", "60s", "--connect-timeout", "60s"];

/// What comes of calling a server with this fault, in the closed model and in the open one.
#[track_caller]
fn judge_calls(fault: &Fault, status: i32, args: &[&str], judge: impl Fn(&Report, &FaultyServer)) {
    for load in [["-c", "2", "-t", "1"].as_slice(), &["-c", "2", "-t", "1", "-r", "40"]] {
        let server = FaultyServer::start(fault.clone()).unwrap();
        let report = report(status, [load, args, &["-n", "6", &server.url()]].concat());
        assert_eq!(report.outcome("due"), CALLS, "{fault:?} {load:?}");
        judge(&report, &server);
    }
}

/// Every call fails, for one of these reasons.
#[track_caller]
fn fails(fault: &Fault, reasons: &[&str]) {
    fails_within(&PATIENT, fault, reasons);
}

/// The same within other times.
#[track_caller]
fn fails_within(times: &[&str], fault: &Fault, reasons: &[&str]) {
    judge_calls(fault, 3, times, |report, _| {
        assert_eq!(report.outcome("failed"), CALLS, "{fault:?} {:?}", report.at("/outcomes"));
        for reason in report.reasons().keys() {
            assert!(reasons.contains(&reason.as_str()), "{fault:?}: {reason}");
        }
    });
}

/// Every call is answered with 200.
#[track_caller]
fn answers(fault: &Fault, args: &[&str]) {
    judge_calls(fault, 0, &[&PATIENT, args].concat(), |report, server| {
        report.assert_all(CALLS, 200);
        assert_eq!(server.requests(), CALLS, "{fault:?}");
    });
}

fn raw(answer: &str, after: ConnectionFate) -> Fault {
    Fault::Raw { answer: answer.as_bytes().to_vec(), after }
}

#[test]
fn nobody_accepts() {
    let times = ["--timeout", "60s", "--connect-timeout", "300ms"];
    fails_within(&times, &Fault::NeverAccept, &["connect_timeout: no connection within the connect timeout"]);
}

#[test]
fn closed_at_once() {
    let reasons = [
        "closed: the peer closed before the answer was complete",
        "read: connection reset by the peer",
        "write: connection reset by the peer",
        "write: the peer had closed the connection",
    ];
    fails(&Fault::CloseAfterAccept, &reasons);
}

#[test]
fn never_answered() {
    let times = ["--timeout", "400ms", "--connect-timeout", "60s"];
    for fault in [Fault::NeverAnswer, Fault::Drip { interval: Duration::from_secs(60) }] {
        // Calls that come due while both connections wait in vain wait as long.
        let unanswered = "timeout: no connection was free within the timeout, and none was answered";
        fails_within(&times, &fault, &["timeout: no complete answer within the timeout", unanswered]);
    }
}

#[test]
fn ended_in_the_middle() {
    fails(&Fault::ResetMidAnswer, &["read: connection reset by the peer"]);
    for fault in [
        Fault::CloseMidBody,
        Fault::CloseMidHead,
        raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", ConnectionFate::Close),
        raw("HTTP/1.1 103 Early Hints\r\n\r\n", ConnectionFate::Close),
    ] {
        fails(&fault, &["closed: the peer closed before the answer was complete"]);
    }
}

#[test]
fn bytes_that_are_no_answer() {
    for (fault, reason) in [
        (Fault::Garbage, "bad status line: not HTTP/1.x"),
        (Fault::ConflictingLength, "conflicting Content-Length"),
        (Fault::BadLength, "bad Content-Length"),
        (Fault::BadChunkSize, "bad chunk size"),
        (Fault::HugeChunk, "a chunk size of more than 15 digits"),
        (Fault::OversizeHead { bytes: 100_000 }, "a header section of more than 64 KiB"),
        (Fault::EndlessHead, "more than 128 header fields"),
        (
            raw("HTTP/1.1 101 Switching Protocols\r\n\r\n", ConnectionFate::KeepOpen),
            "status 101: nobody asked to switch protocols",
        ),
        (raw(&"HTTP/1.1 100 Continue\r\n\r\n".repeat(17), ConnectionFate::KeepOpen), "more than 16 interim answers"),
        (raw("HTTP/2.0 200 OK\r\n\r\n", ConnectionFate::KeepOpen), "bad status line: not HTTP/1.x"),
        (raw("HTTP/1.1 20x OK\r\n\r\n", ConnectionFate::KeepOpen), "bad status line: bad status code or reason"),
        (
            raw("HTTP/1.1 200 OK\r\nNo Colon\r\n\r\n", ConnectionFate::KeepOpen),
            "bad name in the header field 'No Colon'",
        ),
        (raw("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", ConnectionFate::KeepOpen), "bad Content-Length"),
    ] {
        fails(&fault, &[&format!("protocol: {reason}")]);
    }
}

#[test]
fn unusual_and_right() {
    for fault in [
        Fault::Drip { interval: Duration::from_millis(1) },
        Fault::OversizeHead { bytes: 50_000 },
        Fault::Interim,
        Fault::UntilClose,
        Fault::CloseIdle,
        raw("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", ConnectionFate::Close),
        raw("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello", ConnectionFate::KeepOpen),
        raw("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\nConnection: close\r\n\r\nhello", ConnectionFate::Close),
        raw(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nT: x\r\n\r\n",
            ConnectionFate::KeepOpen,
        ),
        raw("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", ConnectionFate::KeepOpen),
    ] {
        answers(&fault, &[]);
    }
    answers(&Fault::AnswerEarly, &["--body", "hello"]);
}

#[test]
fn answers_without_a_body() {
    answers(&raw("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", ConnectionFate::KeepOpen), &["-m", "HEAD"]);
    answers(&raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", ConnectionFate::KeepOpen), &["-m", "HEAD"]);
    for status in [204, 304] {
        let fault = raw(&format!("HTTP/1.1 {status} X\r\nContent-Length: 5\r\n\r\n"), ConnectionFate::KeepOpen);
        judge_calls(&fault, 0, &PATIENT, |report, _| report.assert_all(CALLS, status));
    }
}

#[test]
fn an_answer_to_head_with_a_body_spoils_no_other_call() {
    let fault = raw("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", ConnectionFate::KeepOpen);
    answers(&fault, &["-m", "HEAD"]);
}

#[test]
fn an_idle_connection_that_was_closed_is_no_failure() {
    judge_calls(&Fault::CloseIdle, 0, &[&PATIENT[..], &["--body", "x"]].concat(), |report, server| {
        // A POST must not be sent twice; if its connection closed under it, it has failed.
        let failed = report.outcome("failed");
        assert_eq!(report.statuses(), BTreeMap::from([(200, CALLS - failed)]));
        assert!(
            report.failures().keys().all(|name| ["closed", "read", "write"].contains(name)),
            "{:?}",
            report.reasons()
        );
        assert!(server.connections() >= 2);
    });
}

#[test]
fn nobody_listens() {
    let (_port, url) = nobody();
    for args in [["-n", "6", "-c", "2"].as_slice(), &["-n", "6", "-c", "2", "-r", "40"], &["-n", "6", "--reconnect"]] {
        let report = report(3, [args, &[&url]].concat());
        assert_eq!(report.reasons(), BTreeMap::from([("connect: connection refused".to_owned(), 6)]), "{args:?}");
    }
}

#[test]
fn a_handshake_that_never_ends() {
    for (fault, patience, expected) in [
        (Fault::NeverAnswer, "300ms", "connect_timeout: no TLS handshake within the connect timeout"),
        (Fault::CloseAfterAccept, "60s", ""),
    ] {
        let server = FaultyServer::start(fault.clone()).unwrap();
        let url = server.url().replace("http:", "https:");
        let report = report(3, ["-n", "4", "-c", "2", "-k", "--connect-timeout", patience, &url]);
        assert_eq!(report.outcome("failed"), 4);
        if expected.is_empty() {
            assert!(!report.failures().contains_key("connect_timeout"), "{:?}", report.reasons());
        } else {
            assert_eq!(report.reasons(), BTreeMap::from([(expected.to_owned(), 4)]), "{fault:?}");
        }
    }
}

#[test]
fn pipelined_calls_end_with_the_first() {
    let server = FaultyServer::start(Fault::NeverAnswer).unwrap();
    let args = ["-n", "16", "-c", "1", "--pipeline", "8", "--timeout", "300ms", &server.url()];
    let report = report(3, args);
    assert_eq!(report.outcome("failed"), 16, "{:?}", report.reasons());
    assert_eq!(report.failures(), BTreeMap::from([("timeout", 16)]), "all had the same time: {:?}", report.reasons());
}
