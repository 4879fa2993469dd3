//! The built-in target as a command.

use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use rustix::process::Signal;

use crate::program::{Directory, Running, run};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

/// Starts the target; with it, the address that it says it listens on.
fn serve(args: &[&str]) -> (Running, String) {
    let mut server = Running::start([&["serve", "http"], args].concat());
    let line = server.line();
    let address = line.trim_end().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}")).to_owned();
    (server, address)
}

fn tcp(url: &str) -> TcpStream {
    TcpStream::connect(url.trim_start_matches("http://").trim_end_matches('/')).unwrap()
}

fn answer(mut stream: impl std::io::Read + std::io::Write) -> String {
    stream.write_all(GET).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn it_answers_until_it_is_told_to_stop_and_says_how_often() {
    for signal in [Signal::INT, Signal::TERM] {
        let (server, url) = serve(&["0", "--body-size", "5", "-w", "2"]);
        for _ in 0..3 {
            let answer = answer(tcp(&url));
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("Content-Length: 5\r\n"), "{answer}");
        }
        server.send(signal);
        let done = server.wait().with_status(0);
        assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("answered 3 requests on 3 connections\n", ""));
    }
}

#[test]
fn it_can_be_told_to_fail() {
    let (_server, url) = serve(&["0", "--error-share", "100%", "--delay", "1us..2us", "--close-after", "1"]);
    assert!(answer(tcp(&url)).starts_with("HTTP/1.1 503 "));
}

#[test]
fn it_listens_on_a_unix_socket() {
    let dir = Directory::new();
    let path = dir.path("socket");
    let (server, address) = serve(&[&format!("unix:{path}")]);
    assert_eq!(address, format!("unix:{path}"));
    assert!(answer(UnixStream::connect(&path).unwrap()).starts_with("HTTP/1.1 200"));
    server.send(Signal::TERM);
    server.wait().with_status(0);
    assert!(dir.names().is_empty());
}

#[test]
fn it_stops_by_itself() {
    let done = run(["serve", "http", "0", "--duration", "1ms"]).with_status(0);
    assert!(done.stdout.ends_with("answered 0 requests on 0 connections\n"), "{}", done.stdout);
}

#[test]
fn its_certificate_can_be_had() {
    let dir = Directory::new();
    let certificate = dir.path("cert.pem");
    let (_server, url) = serve(&["0", "--tls", "--write-cert", &certificate]);
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");
    assert!(std::fs::read_to_string(certificate).unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
}

#[test]
fn an_address_in_use_is_an_error() {
    let (_server, url) = serve(&["0"]);
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let done = run(["serve", "http", address]).with_status(2);
    assert!(done.stderr.contains(&format!("{address} is in use")), "{}", done.stderr);
}
