//! The built-in target as a command.

use std::io::{Read as _, Write as _};
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

#[test]
fn a_language_model_says_what_it_served_and_writes_it_down() {
    let dir = Directory::new();
    let (log, key) = (dir.path("log"), dir.file("key", "s3cret\n"));
    let flags = ["0", "--answer-tokens", "3", "--decode", "1000", "--log", &log, "--api-key", &format!("@{key}")];
    let mut server = Running::start([&["serve", "llm"], flags.as_slice()].concat());
    let url = server.line().trim_end().strip_prefix("listening on ").unwrap().to_owned();
    let body = r#"{"model":"brunt-sim","messages":[{"role":"user","content":"a b"}]}"#;
    for (key, status) in [("s3cret", "200"), ("other", "401")] {
        let mut stream = tcp(&url);
        let head = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n";
        write!(stream, "{head}Authorization: Bearer {key}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    }
    server.send(Signal::INT);
    let done = server.wait().with_status(0);
    let said = "1 requests for tokens: 2 prompt tokens (0 cached), 3 output tokens; 1 wrong\n";
    assert_eq!(done.stdout, format!("answered 2 requests on 2 connections\n{said}"));
    let line: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(log).unwrap()).unwrap();
    assert_eq!(
        (&line["end"], &line["output_tokens"], &line["path"]),
        (&"stop".into(), &3.into(), &"/v1/chat/completions".into())
    );
    assert!(line["first_sent_ns"].as_u64() >= line["started_ns"].as_u64(), "{line}");
}

#[test]
fn a_language_model_that_cannot_be_is_an_error() {
    for (args, expected) in [
        (["--refuse", "5%:500"], "such as 5%:503"),
        (["--stall", "2s"], "such as 2s:1%"),
        (["--prefill", "0"], "expected tokens a second"),
        (["--tokens-per-chunk", "0"], "tokens per chunk: expected 1 to 1000, got 0"),
        (["--api-key", "@/nowhere"], "--api-key: cannot read /nowhere"),
        (["--log", "/nowhere/log"], "/nowhere/log"),
    ] {
        let done = run([&["serve", "llm", "0"], args.as_slice()].concat()).with_status(2);
        assert!(done.stderr.contains(expected), "{}", done.stderr);
    }
}
