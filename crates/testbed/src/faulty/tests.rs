//! Each fault, as a client sees it.

use std::io::{ErrorKind, Read, Write};

use super::conversation::{GOOD, half_answer, rendered};
use super::*;

/// What a client gets that sends one request (with these bytes after its head) and reads until
/// the server ends, or until it has `enough` bytes.
fn ask(fault: Fault, head: &str, enough: usize) -> (Vec<u8>, Option<ErrorKind>, FaultyServer) {
    let server = FaultyServer::start(fault).unwrap();
    let mut stream = TcpStream::connect(server.addr()).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let mut got = Vec::new();
    let mut chunk = [0; 4096];
    while got.len() < enough {
        match stream.read(&mut chunk) {
            Ok(0) => return (got, None, server),
            Ok(length) => got.extend_from_slice(&chunk[..length]),
            Err(error) => return (got, Some(error.kind()), server),
        }
    }
    (got, None, server)
}

const GET: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

#[test]
fn close_after_accept_ends_before_any_request() {
    let server = FaultyServer::start(Fault::CloseAfterAccept).unwrap();
    let mut stream = TcpStream::connect(server.addr()).unwrap();
    assert_eq!(stream.read(&mut [0; 10]).unwrap(), 0);
    assert_eq!(server.connections(), 1);
    assert_eq!(server.requests(), 0);
}

#[test]
fn never_accept_leaves_a_connect_hanging() {
    let server = FaultyServer::start(Fault::NeverAccept).unwrap();
    let error = TcpStream::connect_timeout(&server.addr(), Duration::from_millis(50)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

#[test]
fn never_answer_reads_the_request_and_ends_with_its_server() {
    let server = FaultyServer::start(Fault::NeverAnswer).unwrap();
    let mut stream = TcpStream::connect(server.addr()).unwrap();
    stream.write_all(GET.as_bytes()).unwrap();
    while server.requests() == 0 {
        std::thread::yield_now();
    }
    drop(server);
    assert_eq!(stream.read(&mut [0; 10]).unwrap(), 0);
}

#[test]
fn reset_mid_answer_is_a_reset() {
    let (got, error, _) = ask(Fault::ResetMidAnswer, GET, usize::MAX);
    if cfg!(target_os = "linux") {
        assert_eq!(got, half_answer());
    }
    assert_eq!(error, Some(ErrorKind::ConnectionReset));
}

#[test]
fn close_mid_body_sends_half_and_ends_in_order() {
    let (got, error, _) = ask(Fault::CloseMidBody, GET, usize::MAX);
    assert!(got.ends_with(b"xxx") && got.len() < 600, "{} bytes", got.len());
    assert_eq!(error, None);
}

#[test]
fn drip_sends_a_good_answer() {
    let (got, ..) = ask(Fault::Drip { interval: Duration::ZERO }, GET, GOOD.len());
    assert_eq!(got, GOOD);
}

#[test]
fn a_drip_between_bytes_does_not_hold_up_the_end() {
    let (got, _, server) = ask(Fault::Drip { interval: Duration::from_secs(3600) }, GET, 1);
    assert_eq!(got, b"H");
    drop(server);
}

#[test]
fn close_idle_does_not_announce_it() {
    let (got, error, _) = ask(Fault::CloseIdle, GET, usize::MAX);
    assert_eq!(got, GOOD);
    assert_eq!(error, None);
}

#[test]
fn answer_early_does_not_wait_for_the_body() {
    let head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n";
    let (got, _, server) = ask(Fault::AnswerEarly, head, GOOD.len());
    assert_eq!(got, GOOD);
    assert_eq!(server.requests(), 1);
}

#[test]
fn bodies_are_read_before_the_next_request() {
    let requests = "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcPOST / HTTP/1.1\r\n\
        Transfer-Encoding: chunked\r\n\r\n4;x=y\r\nabcd\r\n0\r\nT: v\r\n\r\nGET / HTTP/1.1\r\n\r\n";
    let raw = Fault::Raw { answer: b"ok".to_vec(), after: ConnectionFate::KeepOpen };
    let (got, _, server) = ask(raw, requests, 6);
    assert_eq!(got, b"okokok");
    assert_eq!(server.requests(), 3);
}

#[test]
fn an_endless_head_outlasts_a_client_that_gives_up() {
    let (got, _, server) = ask(Fault::EndlessHead, GET, 1_000_000);
    assert!(!memchr::memmem::find_iter(&got, b"\r\n\r\n").any(|_| true));
    drop(server);
}

#[test]
fn wrong_bytes_are_sent_as_described() {
    let expected: [(Fault, &[u8]); 5] = [
        (Fault::ConflictingLength, b"Content-Length: 5\r\nContent-Length: 6\r\n"),
        (Fault::BadLength, b"Content-Length: five"),
        (Fault::BadChunkSize, b"xyz\r\n"),
        (Fault::HugeChunk, b"ffffffffffffffff\r\n"),
        (Fault::Interim, b"HTTP/1.1 103 Early Hints\r\n"),
    ];
    for (fault, part) in expected {
        let (bytes, after) = rendered(&fault);
        let (got, ..) = ask(fault.clone(), GET, bytes.len());
        assert_eq!(got, bytes);
        assert_eq!(after, ConnectionFate::KeepOpen);
        assert!(memchr::memmem::find(&got, part).is_some(), "{fault:?}");
    }
}

#[test]
fn the_oversize_head_is_as_long_as_asked() {
    let (bytes, _) = rendered(&Fault::OversizeHead { bytes: 100_000 });
    let end = memchr::memmem::find(&bytes, b"\r\n\r\n").unwrap();
    assert!((100_000..100_100).contains(&end));
}
