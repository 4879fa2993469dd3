//! Secrets in what answers others: the live page and the proxy.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

use crate::origin::Origin;
use crate::program::{Directory, Running, brunt};
use crate::{reached, search, search_done, secret};

#[test]
fn a_live_page_shows_none() {
    let origin = Origin::start();
    let url = format!("http://me:{}@{}/?token={}", secret("password"), origin.authority(), secret("query"));
    let mut command = brunt(["-r", "50", "-d", "1s", "-c", "1", "--live", "--live-linger", "0s", &url]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("live: http://").unwrap_or_else(|| panic!("{line}")).trim_end_matches('/');
    let page = get(address, "/");
    let events = get(address, "/events");
    assert!(page.contains("<script") && events.contains("event: finished"), "{events}");
    search("the live page", page.as_bytes());
    search("the live page's events", events.as_bytes());
    let mut rest = String::new();
    errors.read_to_string(&mut rest).unwrap();
    let mut printed = String::new();
    child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    assert!(child.wait().unwrap().success());
    search("the terminal", [line, rest, printed].concat().as_bytes());
    reached(&origin, &["query"]);
}

/// All of an answer, until the server closes.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn the_proxy_shows_none() {
    let origin = Origin::start();
    let directory = Directory::new();
    let log = directory.path("access.log");
    let upstream = format!("http://{}", origin.authority());
    let args =
        ["proxy", &upstream, "--listen", "127.0.0.1:0", "--coalesce", "--access-log", &log, "--metrics", "127.0.0.1:0"];
    let mut proxy = Running::start(args);
    let listening = proxy.line();
    let (_, metrics) = (proxy.line(), proxy.line());
    let address = listening.trim().strip_prefix("listening on http://").unwrap().trim_end_matches('/');
    let mut stream = TcpStream::connect(address).unwrap();
    let places = ["query", "authorization", "cookie", "key", "body"];
    let [query, authorization, cookie, key, body] = places.map(secret);
    let body = format!("password={body}");
    write!(
        stream,
        "POST /?token={query}&a=b HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {authorization}\r\nCookie: {cookie}\r\n\
         X-Api-Key: {key}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    reached(&origin, &places);
    let metrics = metrics.trim().strip_prefix("metrics on http://").unwrap().trim_end_matches("/metrics").to_owned();
    let counted = get(&metrics, "/metrics");
    search("the metrics", counted.as_bytes());
    proxy.send(rustix::process::Signal::TERM);
    search_done("the proxy", &proxy.wait());
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(log.contains("/?token=[redacted]&a=b"), "{log}");
    search("the access log", log.as_bytes());
}
