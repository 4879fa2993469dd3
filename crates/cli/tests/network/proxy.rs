//! `brunt proxy`: what goes through it, and what it does when something goes wrong.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread::spawn;
use std::time::Duration;

use brunt_testbed::faulty::{ConnectionFate, Fault, FaultyServer as Faulty};
use rustix::process::Signal;

use crate::nginx::Nginx;
use crate::program::{Directory, Running, nobody, until};

/// A running server, and where it listens.
pub struct Server {
    pub running: Running,
    pub address: String,
}

/// Starts a server of brunt's; with it, the address that it says it listens on.
pub fn start(args: &[&str]) -> Server {
    let mut running = Running::start(args);
    let line = running.line();
    let url = line.trim_end().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}"));
    let address = url.split_once("://").map_or(url, |(_, address)| address).trim_end_matches('/').to_owned();
    Server { running, address }
}

/// The built-in target, and a proxy before it.
fn pair(target: &[&str], proxy: &[&str]) -> (Server, Server) {
    let target = start(&[&["serve", "http", "0"], target].concat());
    let proxy = start(&[&["proxy", &target.address, "--listen", "127.0.0.1:0"], proxy].concat());
    (target, proxy)
}

/// Sends this, and reads to the end.
pub fn exchange(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8(answer).unwrap()
}

pub fn get(address: &str, path: &str, headers: &str) -> String {
    exchange(address, &format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n{headers}\r\n"))
}

fn at_once(address: &str, path: &'static str, count: usize) -> Vec<String> {
    let ask = || {
        let address = address.to_owned();
        spawn(move || get(&address, path, "x-coalesced: ?\r\n"))
    };
    let clients: Vec<_> = (0..count).map(|_| ask()).collect();
    clients.into_iter().map(|client| client.join().unwrap()).collect()
}

#[test]
fn identical_requests_are_served_once_and_that_is_counted_and_logged() {
    let dir = Directory::new();
    let log = dir.path("access.json");
    let (target, mut proxy) =
        pair(&["--delay", "500ms"], &["--coalesce", "--metrics", "127.0.0.1:0", "--access-log", &log]);
    assert_eq!(proxy.running.line(), format!("passing on to http://{}\n", target.address));
    let metrics = proxy.running.line();
    let metrics = metrics.trim_end().strip_prefix("metrics on http://").unwrap().trim_end_matches("/metrics");
    let answers = at_once(&proxy.address, "/report", 20);
    let is_right =
        |answer: &String| answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nabcdefghijklm");
    assert!(answers.iter().all(is_right), "{answers:?}");
    let followed = answers.iter().filter(|answer| answer.contains("x-coalesced: follower")).count();
    assert!(followed > 0, "{answers:?}");
    let page = get(metrics, "/metrics", "");
    let value = |name: &str| -> usize {
        let line = page.lines().find_map(|line| line.strip_prefix(&format!("brunt_proxy_{name} ")));
        line.unwrap_or_else(|| panic!("{name} is missing in {page}")).parse().unwrap()
    };
    let flights = value("coalesce_flights_total");
    assert_eq!((value("coalesce_followers_total"), flights + followed), (followed, 20));
    assert_eq!(value("requests_total{status=\"200\"}"), 20);
    proxy.running.send(Signal::TERM);
    let done = proxy.running.wait().with_status(0);
    assert!(done.stdout.contains("answered 20 requests\n"), "{done:?}");
    target.running.send(Signal::TERM);
    let done = target.running.wait().with_status(0);
    assert!(done.stdout.starts_with(&format!("answered {flights} requests")), "{done:?}");
    let lines = std::fs::read_to_string(log).unwrap();
    let lines: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.iter().filter(|line| line["coalesced"] == "follower").count(), followed);
    assert_eq!(lines.len(), 20, "{lines:#?}");
    assert!(lines.iter().all(|line| line["target"] == "/report" && line["whole"] == true), "{lines:#?}");
}

#[test]
fn the_built_in_target_coalesces_when_asked_to() {
    let target = start(&["serve", "http", "0", "--delay", "500ms", "--coalesce"]);
    let answers = at_once(&target.address, "/", 10);
    assert!(answers.iter().any(|answer| answer.contains("x-coalesced: follower")), "{answers:?}");
}

#[test]
#[ignore = "needs curl: make test installs it"]
fn the_built_in_target_coalesces_over_tls() {
    let dir = Directory::new();
    let (ca, got) = (dir.path("ca.pem"), dir.path("got"));
    let mut target = start(&["serve", "http", "0", "--delay", "500ms", "--coalesce", "--tls", "--write-cert", &ca]);
    for (version, seen) in [("--http2", "2"), ("--http1.1", "1.1")] {
        let url = format!("https://{}/", target.address);
        let more = [["--output", "/dev/null", &url]; 9].concat();
        let at_once = ["--cacert", &ca, version, "--parallel", "--parallel-immediate", &url];
        let all = curl(&[&at_once[..], &more].concat(), &got);
        assert_eq!(all.matches(&format!("{seen} 200 13")).count(), 10, "{all}");
    }
    target.running.send(Signal::TERM);
    let ended = target.running.line();
    let answers = ended.strip_prefix("answered 20 requests, by ").and_then(|rest| rest.split(' ').next());
    assert!(answers.and_then(|answers| answers.parse::<u64>().ok()).is_some_and(|answers| answers < 20), "{ended}");
    target.running.wait().with_status(0);
    // Who has to show a certificate, and has none.
    let made = brunt_testbed::tls::client_certificate("somebody").unwrap();
    let clients = dir.file("clients.pem", &made.authority_pem);
    let target = start(&["serve", "http", "0", "--coalesce", "--tls", "--write-cert", &ca, "--client-ca", &clients]);
    let url = format!("https://{}/", target.address);
    let (certificate, key) = (dir.file("client.pem", &made.certificate_pem), dir.file("client-key.pem", &made.key_pem));
    assert_eq!(curl(&["--cacert", &ca, "--cert", &certificate, "--key", &key, &url], &got), "2 200 13");
    assert!(!Command::new("curl").args(["--silent", "--cacert", &ca, &url]).output().unwrap().status.success());
}

#[test]
#[ignore = "needs curl: make test installs it"]
fn it_listens_on_a_unix_socket() {
    let dir = Directory::new();
    let (socket, log, got) = (dir.path("socket"), dir.path("access.json"), dir.path("got"));
    let listen = format!("unix:{socket}");
    let mut target = start(&["serve", "http", &listen, "--delay", "500ms", "--coalesce"]);
    assert_eq!(target.address, listen);
    let url = "http://any.invalid/";
    let more = [["--output", "/dev/null", url]; 9].concat();
    let at_once = ["--unix-socket", &socket, "--parallel", "--parallel-immediate", url];
    assert_eq!(curl(&[&at_once[..], &more].concat(), &got).matches("1.1 200 13").count(), 10);
    target.running.send(Signal::TERM);
    let ended = target.running.line();
    assert!(ended.starts_with("answered 10 requests, by ") && !ended.contains("by 10 "), "{ended}");
    target.running.wait().with_status(0);
    assert!(!std::path::Path::new(&socket).exists());
    // What a server left behind that was killed is replaced, and who asks by a socket has no address.
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let target = start(&["serve", "http", "0"]);
    let proxy = start(&["proxy", &target.address, "--listen", &listen, "--access-log", &log]);
    assert_eq!(curl(&["--unix-socket", &socket, "http://any.invalid/_/headers"], &got).split(' ').nth(1), Some("200"));
    let seen = std::fs::read_to_string(&got).unwrap().to_lowercase();
    assert!(seen.contains("host: any.invalid") && !seen.contains("x-forwarded-for"), "{seen}");
    proxy.running.send(Signal::TERM);
    proxy.running.wait().with_status(0);
    assert!(std::fs::read_to_string(&log).unwrap().contains("\"client\":\"unix\""));
    assert!(!std::path::Path::new(&socket).exists());
}

#[test]
fn requests_arrive_as_they_were_sent_with_who_sent_them() {
    let asked = "x-own: 1\r\nKeep-Alive: 9\r\nX-Forwarded-For: 10.0.0.1\r\nX-Forwarded-For: 10.0.0.2\r\n";
    let (target, proxy) = pair(&[], &[]);
    // Anybody may say so.
    let seen = get(&proxy.address, "/_/headers", asked).to_lowercase();
    assert!(seen.contains("\r\nx-forwarded-for: 127.0.0.1\r\n") && !seen.contains("10.0.0."), "{seen}");
    let trusting = ["proxy", &target.address, "--listen", "127.0.0.1:0", "--trust-proxy", "127.0.0.0/8"];
    let proxy = start(&trusting);
    let seen = get(&proxy.address, "/_/headers?a=1", asked);
    let seen = seen.to_lowercase();
    for line in [
        "get /_/headers?a=1 http/1.1",
        "host: shop.example",
        "x-own: 1",
        "x-forwarded-for: 10.0.0.1, 10.0.0.2, 127.0.0.1",
        "forwarded: for=127.0.0.1;host=\"shop.example\";proto=http",
        "x-forwarded-proto: http",
        "x-forwarded-host: shop.example",
        "via: 1.1 brunt",
    ] {
        assert!(seen.lines().any(|seen| seen == line), "{line} is missing in\n{seen}");
    }
    assert!(!seen.contains("keep-alive"), "{seen}");
    let body = "x".repeat(100_000);
    let head = "POST /_/echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 100000\r\n\r\n";
    assert!(exchange(&proxy.address, &format!("{head}{body}")).ends_with(&body));
    let chunked = get(&proxy.address, "/_/chunked/100000", "TE: trailers\r\n").to_lowercase();
    assert!(chunked.contains("transfer-encoding: chunked") && chunked.ends_with("x-bytes: 100000\r\n\r\n"));
}

#[test]
fn what_goes_wrong_behind_it_is_said() {
    let (_port, nobody) = nobody();
    let proxy = start(&["proxy", nobody.trim_end_matches('/'), "--listen", "127.0.0.1:0", "--coalesce"]);
    assert!(get(&proxy.address, "/", "").starts_with("HTTP/1.1 502 "));
    let (_target, proxy) = pair(&["--delay", "60s"], &["--timeout", "50ms", "--coalesce"]);
    assert!(get(&proxy.address, "/", "").starts_with("HTTP/1.1 504 "));
    let (_target, proxy) = pair(&[], &["--max-body", "10B", "--coalesce"]);
    let long = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 11\r\n\r\n12345678901";
    assert!(exchange(&proxy.address, long).starts_with("HTTP/1.1 413 "));
    let chunked = "POST /_/echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n\
                   b\r\n12345678901\r\n0\r\n\r\n";
    assert!(exchange(&proxy.address, chunked).starts_with("HTTP/1.1 413 "));
}

#[test]
fn how_the_upstream_fails_is_counted() {
    let stalls = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf".to_vec();
    // What comes at all comes in less than the longer of these, also where a machine stands still for a while.
    for (fault, how, timeout) in [
        (Fault::CloseMidHead, "protocol", "8s"),
        (Fault::NeverAnswer, "timeout", "300ms"),
        (Fault::CloseMidBody, "body", "8s"),
        (Fault::Raw { answer: stalls, after: ConnectionFate::KeepOpen }, "timeout", "8s"),
    ] {
        let upstream = Faulty::start(fault.clone()).unwrap();
        let options = ["--listen", "127.0.0.1:0", "--coalesce", "--timeout", timeout, "--metrics", "127.0.0.1:0"];
        let mut proxy = start(&[&["proxy", &upstream.url()], &options[..]].concat());
        assert!(proxy.running.line().starts_with("passing on"));
        let metrics = metrics_of(&mut proxy);
        let answer = get(&proxy.address, "/", "");
        let is_refused = answer.starts_with("HTTP/1.1 502 ") || answer.starts_with("HTTP/1.1 504 ");
        // What has begun cannot be refused, so it breaks off, as its length tells whoever reads it.
        let has_begun = how == "body" || matches!(fault, Fault::Raw { .. });
        assert_eq!(is_refused, !has_begun, "{fault:?}: {answer}");
        let name = format!("upstream_failures_total{{how=\"{how}\"}}");
        assert_eq!(metric(&metrics, &name), 1, "{fault:?}");
        assert_eq!(metric(&metrics, "coalesce_held_bytes"), 0, "{fault:?}");
    }
}

#[test]
fn it_ends_when_requests_in_flight_have() {
    // A target that answers when it is told to.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = listener.local_addr().unwrap().to_string();
    let proxy = start(&["proxy", &upstream, "--listen", "127.0.0.1:0"]);
    let address = proxy.address.clone();
    let client = spawn(move || get(&address, "/", ""));
    let (mut stream, _) = listener.accept().unwrap();
    let mut head = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
    assert!(head.any(|line| line.is_empty()), "the request has come");
    proxy.running.send(Signal::TERM);
    // Until the proxy knows: it takes no more connections.
    until("the proxy is about to end", || TcpStream::connect(&proxy.address).is_err());
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
    assert!(client.join().unwrap().starts_with("HTTP/1.1 200 OK"));
    proxy.running.wait().with_status(0);
}

#[test]
fn a_hangup_opens_the_log_again_and_ends_nothing() {
    let folder = Directory::new();
    let (log, moved) = (folder.path("access.json"), folder.path("access.json.1"));
    let (_target, proxy) = pair(&[], &["--access-log", &log]);
    let lines = |path: &str| std::fs::read_to_string(path).map_or(0, |text| text.lines().count());
    assert!(get(&proxy.address, "/one", "").starts_with("HTTP/1.1 200 OK"));
    until("the first line is written", || lines(&log) == 1);
    std::fs::rename(&log, &moved).unwrap();
    for _ in 0..3 {
        proxy.running.send(Signal::HUP);
    }
    // The file is opened again before the next line, once the proxy has seen the signal.
    until("the log is there again", || {
        assert!(get(&proxy.address, "/more", "").starts_with("HTTP/1.1 200 OK"));
        std::path::Path::new(&log).exists()
    });
    until("its line is written", || lines(&log) > 0);
    proxy.running.send(Signal::TERM);
    proxy.running.wait().with_status(0);
}

#[test]
#[ignore = "needs curl: make test installs it"]
fn a_hangup_reads_the_certificate_again() {
    let dir = Directory::new();
    let made = || brunt_testbed::tls::server_certificate().unwrap();
    let (old, new) = (made(), made());
    let (certificate, key) = (dir.file("cert.pem", &old.certificate_pem), dir.file("key.pem", &old.key_pem));
    let (old_ca, new_ca, got) =
        (dir.file("old.pem", &old.authority_pem), dir.file("new.pem", &new.authority_pem), dir.path("got"));
    let (_target, proxy) = pair(&[], &["--tls-cert", &certificate, "--tls-key", &key]);
    let url = format!("https://{}/", proxy.address);
    assert!(curl(&["--cacert", &old_ca, &url], &got).contains(" 200 "));
    // One that cannot be used changes nothing.
    std::fs::write(&certificate, "nonsense").unwrap();
    proxy.running.send(Signal::HUP);
    std::fs::write(&key, &new.key_pem).unwrap();
    std::fs::write(&certificate, &new.certificate_pem).unwrap();
    proxy.running.send(Signal::HUP);
    let is_new = || {
        let asked = Command::new("curl").args(["--silent", "--output", &got, "--cacert", &new_ca, &url]).status();
        asked.unwrap().success()
    };
    until("the new certificate is shown", is_new);
    proxy.running.send(Signal::TERM);
    proxy.running.wait().with_status(0);
}

#[test]
fn websockets_pass_through() {
    let target = start(&["serve", "ws", "0"]);
    let proxy = start(&["proxy", &target.address, "--listen", "127.0.0.1:0", "--coalesce"]);
    let mut stream = TcpStream::connect(&proxy.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let upgrade = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(upgrade.as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    let head = String::from_utf8(head).unwrap();
    assert!(head.starts_with("HTTP/1.1 101 ") && head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
    // A text of five bytes, masked with zeros (RFC 6455, section 5.2).
    stream.write_all(b"\x81\x85\0\0\0\0hello").unwrap();
    let mut echo = [0; 7];
    stream.read_exact(&mut echo).unwrap();
    assert_eq!(&echo, b"\x81\x05hello");
    // However long a tunnel stays open, the proxy ends.
    drop(stream);
    proxy.running.send(Signal::TERM);
    proxy.running.wait().with_status(0);
}

/// Where a proxy that has just said what it passes on to has its metrics.
fn metrics_of(proxy: &mut Server) -> String {
    let line = proxy.running.line();
    let url = line.trim_end().strip_prefix("metrics on http://").unwrap_or_else(|| panic!("{line}"));
    url.trim_end_matches("/metrics").to_owned()
}

/// What a proxy counts by this name; 0 if it has not happened.
fn metric(metrics: &str, name: &str) -> u64 {
    let page = get(metrics, "/metrics", "");
    let line = page.lines().find_map(|line| line.strip_prefix(&format!("brunt_proxy_{name} ")));
    line.map_or(0, |value| value.parse().unwrap())
}

/// Runs curl, and returns what it printed; the body goes into a file.
fn curl(arguments: &[&str], body: &str) -> String {
    let seen = "%{http_version} %{http_code} %{size_download}";
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--max-time", "60", "--output", body, "--write-out", seen]);
    let output = command.args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "needs curl, nginx: make test installs them"]
fn http2_and_tls_on_either_side() {
    let dir = Directory::new();
    let made = brunt_testbed::tls::server_certificate().unwrap();
    let (certificate, key) = (dir.file("cert.pem", &made.certificate_pem), dir.file("key.pem", &made.key_pem));
    let (ca, log, got) = (dir.file("ca.pem", &made.authority_pem), dir.path("access.json"), dir.path("got"));
    let nginx =
        Nginx::start_tls("location / { } location /proto { return 200 $server_protocol-$http_x_forwarded_proto; }");
    let upstream_ca = dir.file("upstream.pem", &nginx.certificate.as_ref().unwrap().authority_pem);
    let large: Vec<u8> = (0..5_000_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(nginx.dir.path("www/large"), &large).unwrap();
    let tls = ["--tls-cert", &certificate, "--tls-key", &key, "--cacert", &upstream_ca];
    let rest = ["--coalesce", "--access-log", &log, "--listen", "127.0.0.1:0"];
    let upstream = format!("https://localhost:{}", nginx.port);
    let proxy = start(&[&["proxy", &upstream], &tls[..], &rest].concat());
    let url = |path: &str| format!("https://{}{path}", proxy.address);
    for (version, seen) in [("--http2", "2"), ("--http1.1", "1.1")] {
        let ask = |path: &str, more: &[&str]| curl(&[&["--cacert", &ca, version, &url(path)], more].concat(), &got);
        assert_eq!(ask("/proto", &[]), format!("{seen} 200 14"));
        assert_eq!(std::fs::read_to_string(&got).unwrap(), "HTTP/1.1-https");
        assert_eq!(ask("/large", &[]), format!("{seen} 200 5000000"));
        assert!(std::fs::read(&got).unwrap() == large, "another body came than was sent");
        assert_eq!(ask("/large", &["--head"]).split(' ').nth(1), Some("200"));
        assert!(std::fs::read_to_string(&got).unwrap().to_lowercase().contains("content-length: 5000000"));
        assert_eq!(ask("/large", &["--range", "0-9"]), format!("{seen} 206 10"));
        // At once, over one connection where that can be.
        let many: Vec<_> = (0..8).map(|_| url("/large")).collect();
        let many: Vec<_> = many.iter().flat_map(|url| ["--output", "/dev/null", url]).collect();
        let all = ask("/large", &[&["--parallel", "--parallel-immediate"], &many[..]].concat());
        assert_eq!(all.matches(" 200 5000000").count(), 9, "{all}");
    }
    drop(nginx);
    // What fails has no body for HEAD either, which HTTP/2 would show; why is for the log.
    let failed = curl(&["--cacert", &ca, "--http2", "--head", &url("/large")], &got);
    assert_eq!(failed.split(' ').nth(1), Some("502"));
    proxy.running.send(Signal::TERM);
    proxy.running.wait().with_status(0);
    let lines = std::fs::read_to_string(log).unwrap();
    let lines: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| line["whole"] == true), "{lines:?}");
    assert_eq!(lines.iter().filter(|line| line["version"] == "HTTP/2").count(), lines.len() / 2 + 1);
    let last = lines.last().unwrap();
    assert!(last["error"].as_str().is_some_and(|error| error.contains("onnect")), "{last}");
}

/// What h2load counted: requests that succeeded, and those that did not.
fn h2load(arguments: &[&str]) -> (u64, u64) {
    let output = Command::new("h2load").args(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let counts = text.lines().find_map(|line| line.strip_prefix("requests: ")).unwrap_or_else(|| panic!("{text}"));
    let count = |what: &str| {
        let named = counts.split(", ").find_map(|count| count.strip_suffix(what));
        named.unwrap_or_else(|| panic!("{what} is missing in {counts}")).parse::<u64>().unwrap()
    };
    (count(" succeeded"), count(" failed"))
}

#[test]
#[ignore = "needs h2load, nginx: make test installs them"]
fn many_streams_of_http2_before_an_upstream_with_tls() {
    let dir = Directory::new();
    let made = brunt_testbed::tls::server_certificate().unwrap();
    let (certificate, key) = (dir.file("cert.pem", &made.certificate_pem), dir.file("key.pem", &made.key_pem));
    let log = dir.path("access.json");
    let slow = start(&["serve", "http", "0", "--delay", "60s"]);
    let body = format!("location / {{ }} location /slow {{ proxy_pass http://{}; }}", slow.address);
    let nginx = Nginx::start_tls(&body);
    let upstream_ca = dir.file("upstream.pem", &nginx.certificate.as_ref().unwrap().authority_pem);
    std::fs::write(nginx.dir.path("www/file"), vec![b'x'; 100_000]).unwrap();
    let upstream = format!("https://localhost:{}", nginx.port);
    let tls = ["--tls-cert", &certificate, "--tls-key", &key, "--cacert", &upstream_ca];
    let rest = ["--coalesce", "--metrics", "127.0.0.1:0", "--access-log", &log, "--timeout", "8s"];
    let mut proxy = start(&[&["proxy", &upstream, "--listen", "127.0.0.1:0"], &tls[..], &rest].concat());
    assert!(proxy.running.line().starts_with("passing on"));
    let metrics = metrics_of(&mut proxy);
    let url = |path: &str| format!("https://{}{path}", proxy.address);
    assert_eq!(h2load(&["-n", "1000", "-c", "5", "-m", "40", &url("/file")]), (1000, 0));
    assert!(metric(&metrics, "coalesce_shared_total") > 0);
    // Those that wait for one that is too slow are told so, each, and no connection is lost by it.
    assert_eq!(h2load(&["-n", "60", "-c", "3", "-m", "20", &url("/slow")]), (0, 60));
    assert_eq!(metric(&metrics, "requests_total{status=\"504\"}"), 60);
    assert_eq!(h2load(&["-n", "10", "-c", "1", &url("/file")]), (10, 0));
    // All that it answers once it is to end is answered whole; what it does not take is refused, and no more.
    let load = {
        let url = url("/file");
        spawn(move || h2load(&["-n", "1000000", "-c", "5", "-m", "20", &url]))
    };
    until("the load goes on", || metric(&metrics, "requests_total{status=\"200\"}") >= 1100);
    proxy.running.send(Signal::TERM);
    let ended = proxy.running.line();
    proxy.running.wait().with_status(0);
    let succeeded = 1010 + load.join().unwrap().0;
    assert!(ended.starts_with(&format!("answered {} requests", 60 + succeeded)), "{succeeded} of {ended}");
    let lines = std::fs::read_to_string(log).unwrap();
    assert_eq!(lines.lines().filter(|line| line.contains("\"whole\":true")).count() as u64, 60 + succeeded);
    assert_eq!(lines.lines().count() as u64, 60 + succeeded);
}

#[test]
fn it_ends_in_peace_under_load() {
    let (target, mut proxy) = pair(&["--delay", "5ms"], &["--coalesce", "--metrics", "127.0.0.1:0"]);
    let url = format!("http://{}/", proxy.address);
    let load = ["-c", "20", "-d", "1h", "--no-save", "--format", "json", "--quiet", &url];
    let load = Running::start(load);
    assert!(proxy.running.line().starts_with("passing on"));
    let metrics = proxy.running.line();
    let metrics = metrics.trim_end().strip_prefix("metrics on http://").unwrap().trim_end_matches("/metrics");
    until("the proxy has answered", || get(metrics, "/metrics", "").contains("requests_total{status=\"200\"}"));
    proxy.running.send(Signal::TERM);
    let done = proxy.running.wait().with_status(0);
    load.send(Signal::INT);
    let result: serde_json::Value = serde_json::from_str(&load.wait().stdout).unwrap();
    // What it took was answered, and came as a whole: only connections that were idle have been closed.
    let came = result["outcomes"]["answered"].as_u64().unwrap();
    assert!(came > 0 && done.stdout.starts_with(&format!("answered {came} requests\n")), "{came} of {}", done.stdout);
    drop(target);
}
