//! Sessions against input in pieces of every size.

use std::time::Instant;

use proptest::prelude::*;

use super::*;
use crate::service::{Counters, Delay, ServerConfig, Service};

fn site(config: &ServerConfig) -> Site {
    let service = Service::new(config, Instant::now(), [Counters::default()].into(), None, 0);
    Site::new(service, config.body_bytes)
}

/// All that a session says to these pieces of input, and who ends it.
fn converse(pieces: &[&[u8]], config: &ServerConfig) -> (String, Option<Closing>, u64) {
    let (mut session, mut site) = (Session::new(), site(config));
    let (mut all, mut out) = (Vec::new(), Vec::new());
    for piece in pieces {
        session.receive(piece, &mut site, &mut out);
        while !out.is_empty() || !session.is_idle() {
            all.append(&mut out);
            session.pump(&mut site, &mut out);
        }
    }
    (String::from_utf8(all).unwrap(), session.closing(), site.service.answered)
}

const PIPELINE: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n\
    POST /_/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello\
    \r\nHEAD /_/bytes/100 HTTP/1.1\r\nHost: x\r\n\r\n\
    POST /_/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: v\r\n\r\n\
    PUT / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc\
    GET /_/chunked/2 HTTP/1.1\r\nHost: x\r\n\r\n\
    GET /_/status/204 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n\
    GET /ignored HTTP/1.1\r\nHost: x\r\n\r\n";

fn answers_to_pipeline() -> String {
    let ok =
        |length, body| format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{body}");
    [
        ok(13, "abcdefghijklm"),
        ok(5, "hello"),
        ok(100, ""),
        ok(3, "abc"),
        "HTTP/1.1 100 Continue\r\n\r\n".to_owned(),
        ok(13, "abcdefghijklm"),
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\
         Trailer: X-Bytes\r\n\r\n2;brunt=filler\r\nab\r\n0;brunt=last\r\nX-Bytes: 2\r\n\r\n"
            .to_owned(),
        "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n".to_owned(),
    ]
    .concat()
}

#[test]
fn pipelined_requests_of_all_kinds_are_answered_in_order() {
    let (said, closing, answered) = converse(&[PIPELINE.as_bytes()], &ServerConfig::default());
    assert_eq!(said, answers_to_pipeline());
    assert_eq!(closing, Some(Closing::Asked));
    assert_eq!(answered, 7);
}

proptest! {
    #[test]
    fn how_requests_are_cut_makes_no_difference(cuts in proptest::collection::vec(0..PIPELINE.len(), 0..20)) {
        let mut cuts = cuts;
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut start = 0;
        for cut in cuts.into_iter().chain([PIPELINE.len()]) {
            pieces.push(&PIPELINE.as_bytes()[start..cut]);
            start = cut;
        }
        let (said, ..) = converse(&pieces, &ServerConfig::default());
        prop_assert_eq!(said, answers_to_pipeline());
    }
}

proptest! {
    /// Bytes near enough to requests to get past the first check.
    #[test]
    fn whatever_comes_is_answered_or_waited_for(
        input in proptest::collection::vec(
            prop_oneof![
                Just("GET ".to_owned()), Just("POST /_/echo ".to_owned()), Just("/_/chunked/3 ".to_owned()),
                Just("HTTP/1.1\r\n".to_owned()), Just("HTTP/1.0\r\n".to_owned()), Just("Host: x\r\n".to_owned()),
                Just("Content-Length: 4\r\n".to_owned()), Just("Transfer-Encoding: chunked\r\n".to_owned()),
                Just("\r\n".to_owned()), Just("4\r\nabcd\r\n0\r\n\r\n".to_owned()), "[ -~]{0,5}",
            ],
            0..30,
        ),
    ) {
        let pieces: Vec<&[u8]> = input.iter().map(String::as_bytes).collect();
        let whole = input.concat();
        let config = ServerConfig::default();
        prop_assert_eq!(converse(&pieces, &config), converse(&[whole.as_bytes()], &config));
    }
}

#[test]
fn byte_by_byte_is_the_same() {
    let pieces: Vec<&[u8]> = PIPELINE.as_bytes().chunks(1).collect();
    assert_eq!(converse(&pieces, &ServerConfig::default()).0, answers_to_pipeline());
}

#[test]
fn refusals_say_what_was_expected_and_end_it() {
    let big = format!("POST /_/echo HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", MAX_ECHO + 1);
    let endless = "x".repeat(MAX_HEAD);
    for (input, status, text) in [
        ("GET\r\n\r\n", "400 Bad Request", "expected a request line"),
        ("GET / HTTP/1.1\r\n\r\n", "400 Bad Request", "expected a Host header"),
        ("GET / HTTP/3.0\r\n\r\n", "505 HTTP Version Not Supported", "expected HTTP/1.0 or"),
        (&endless, "431 Request Header Fields Too Large", "at most 16384 bytes"),
        (&big, "413 Content Too Large", "at most 1048576 bytes"),
    ] {
        let (said, closing, answered) = converse(&[input.as_bytes(), b"more"], &ServerConfig::default());
        assert!(said.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{said}");
        assert!(said.contains("Connection: close\r\n") && said.contains(text), "{said}");
        assert_eq!((closing, answered), (Some(Closing::Ours), 1));
    }
}

#[test]
fn a_chunked_body_too_long_to_echo_is_refused_on_the_way() {
    let head = b"POST /_/echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunk = [format!("{MAX_ECHO:x}\r\n").into_bytes(), vec![b'x'; MAX_ECHO], b"\r\n".to_vec()].concat();
    let (said, closing, _) = converse(&[head, &chunk, b"1\r\nx\r\n"], &ServerConfig::default());
    assert!(said.starts_with("HTTP/1.1 413 "), "{said}");
    assert_eq!(closing, Some(Closing::Ours));
}

#[test]
fn the_last_answer_before_a_close_announces_it() {
    let config = ServerConfig { close_after: Some(2), body_bytes: 0, ..ServerConfig::default() };
    let (said, closing, answered) = converse(&["GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(3).as_bytes()], &config);
    assert_eq!(said.matches("HTTP/1.1 200 OK").count(), 2);
    assert!(said.ends_with("Connection: close\r\n\r\n"), "{said}");
    assert_eq!(said.matches("Connection: close").count(), 1);
    assert_eq!((closing, answered), (Some(Closing::Ours), 2));
}

#[test]
fn the_share_of_errors_is_as_asked_and_fixed_by_the_seed() {
    let requests = "GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(10_000);
    let config = ServerConfig { error_rate: 0.25, seed: 7, ..ServerConfig::default() };
    let (said, ..) = converse(&[requests.as_bytes()], &config);
    let errors = said.matches("HTTP/1.1 503 Service Unavailable").count();
    assert!((2400..2600).contains(&errors), "{errors}");
    assert_eq!(said, converse(&[requests.as_bytes()], &config).0);
    assert_ne!(said, converse(&[requests.as_bytes()], &ServerConfig { seed: 8, ..config }).0);
}

#[test]
fn what_is_not_due_waits_and_holds_back_what_follows() {
    let config = ServerConfig { delay: Delay::Fixed(Duration::from_secs(3600)), ..ServerConfig::default() };
    let (mut session, mut site, mut out) = (Session::new(), site(&config), Vec::new());
    let requests = "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /_/count HTTP/1.1\r\nHost: x\r\n\r\n";
    session.receive(requests.as_bytes(), &mut site, &mut out);
    session.pump(&mut site, &mut out);
    assert!(out.is_empty() && !session.is_idle());
    assert!(session.next_due().unwrap() >= Duration::from_secs(3600));
    assert_eq!(site.service.answered, 0);
}

#[test]
fn a_peer_that_does_not_read_fills_the_session() {
    let config = ServerConfig { body_bytes: 1 << 40, ..ServerConfig::default() };
    let (mut session, mut site, mut out) = (Session::new(), site(&config), Vec::new());
    let requests = "GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(MAX_QUEUE);
    session.receive(requests.as_bytes(), &mut site, &mut out);
    assert!(session.is_full());
    let head = format!("POST /_/echo HTTP/1.1\r\nHost: x\r\nContent-Length: {MAX_ECHO}\r\n\r\n");
    let mut session = Session::new();
    session.receive(head.as_bytes(), &mut site, &mut out);
    session.receive(&vec![b'x'; MAX_ECHO], &mut site, &mut out);
    assert!(session.is_full());
    while !session.is_idle() {
        out.clear();
        session.pump(&mut site, &mut out);
    }
    assert!(!session.is_full());
}
