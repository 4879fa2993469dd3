//! Who can see a live page: everybody on this machine on loopback, and elsewhere those who have its token.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Stdio};
use std::sync::Arc;

use brunt_testbed::server::ServerConfig;
use rustix::process::{Pid, Signal, kill_process};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::program::{Directory, brunt, run, until};
use crate::runs::target;

/// A run with a live page. It ends with its test.
struct Page {
    child: Child,
    errors: BufReader<ChildStderr>,
    /// As it was printed.
    url: String,
    /// Host and port to connect to.
    address: String,
    /// The path of the page, `/` at its end.
    path: String,
}

impl Page {
    fn start(target: &str, args: &[&str]) -> Self {
        let mut child = brunt(["-r", "20", "-d", "1h", "-c", "1"])
            .args(args)
            .arg(target)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("live: ").unwrap_or_else(|| panic!("{line}")).to_owned();
        let (authority, path) = url.split_once("://").unwrap().1.split_once('/').unwrap();
        let address = format!("127.0.0.1:{}", authority.rsplit_once(':').unwrap().1);
        let path = format!("/{path}");
        Self { child, errors, url, address, path }
    }

    /// The head of the answer, and as much of its body as came with it.
    fn ask(&self, path: &str, host: &str) -> String {
        exchange(TcpStream::connect(&self.address).unwrap(), path, host)
    }

    fn status(&self, path: &str, host: &str) -> u16 {
        let answer = self.ask(path, host);
        answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{answer}"))
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn exchange(mut stream: impl std::io::Read + std::io::Write, path: &str, host: &str) -> String {
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
    while !answer.windows(4).any(|four| four == b"\r\n\r\n") {
        match stream.read(&mut piece).unwrap() {
            0 => break,
            length => answer.extend_from_slice(&piece[..length]),
        }
    }
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn a_page_that_others_can_reach_needs_its_token() {
    let (_server, url) = target(ServerConfig::default());
    let page = Page::start(&url, &["--live=0.0.0.0:0"]);
    let token = page.path.trim_matches('/');
    assert!(token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "{}", page.url);
    let host = page.address.as_str();
    let shorter = format!("/{}/", &token[1..]);
    let upper = format!("/{}g/", &token[..31]);
    for path in ["/", "/events", "/nothing", "/?token=x", &shorter, &upper, &format!("{shorter}events"), "//", "/x/../"]
    {
        assert_eq!(page.status(path, host), 403, "{path}");
        assert_eq!(page.status(path, "evil.example"), 403, "{path}");
    }
    assert_eq!(page.status(&page.path, host), 200);
    assert_eq!(page.status(&format!("{}events", page.path), host), 200);
    assert_eq!(page.status(&format!("{}nothing", page.path), host), 404);
    // A name of somebody else's that leads here (DNS rebinding).
    assert_eq!(page.status(&page.path, "evil.example"), 421);
    let answer = page.ask(&page.path, host).to_lowercase();
    assert!(answer.contains("referrer-policy: no-referrer") && answer.contains("cache-control: no-store"), "{answer}");
    // Another run has another.
    let other = Page::start(&url, &["--live=0.0.0.0:0"]);
    assert_ne!(other.path, page.path);
    assert_eq!(other.status(&page.path, &other.address), 403);
}

/// The status of the answer to a change, and its text.
fn change(page: &Page, path: &str, fields: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(&page.address).unwrap();
    let length = body.len();
    let host = &page.address;
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{fields}Content-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let text = answer.split("\r\n\r\n").nth(1).unwrap_or_default().to_owned();
    (answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{answer}")), text)
}

#[test]
fn a_run_is_changed_on_its_page_and_by_no_other() {
    let (server, url) = target(ServerConfig::default());
    let page = Page::start(&url, &["--live"]);
    until("the load has begun", || server.requests() > 0);
    // What the page offers: this run has a rate, and no virtual users.
    let offered = page.ask("/change", &page.address);
    assert!(offered.starts_with("HTTP/1.1 200") && offered.ends_with("{\"rate\":true,\"users\":false}"), "{offered}");
    let (json, own) = ("Content-Type: application/json\r\n", "Sec-Fetch-Site: same-origin\r\n");
    let other = format!("{json}Sec-Fetch-Site: cross-site\r\n");
    for fields in [json, own, &other, ""] {
        assert_eq!(change(&page, "/change", fields, "\"pause\"").0, 403, "{fields}");
    }
    let both = format!("{json}{own}");
    let (status, text) = change(&page, "/change", &both, "{\"rate\":40}");
    assert!(status == 200 && text.starts_with("40 calls a second, at 0:0"), "{status} {text}");
    assert_eq!(change(&page, "/change", &both, "\"resume\""), (409, "the run is not paused".to_owned()));
    for wrong in ["{\"rate\":\"x\"}", "{\"rate\":null}", "{\"users\":5.5}", "{\"users\":-1}", "faster"] {
        let (status, text) = change(&page, "/change", &both, wrong);
        assert!(status == 400 && text.starts_with("expected a rate such as 5000, a whole number"), "{wrong}: {text}");
    }
    let (status, text) = change(&page, "/change", &both, "{\"users\":5}");
    assert!(status == 409 && text.starts_with("the number of virtual users cannot change: "), "{status} {text}");
    assert_eq!(change(&page, "/change", &both, &"x".repeat(10_000)).0, 413);
    assert_eq!(change(&page, "/", &both, "\"pause\"").0, 405);
    // Where others can reach it, the token says who may.
    let page = Page::start(&url, &["--live=0.0.0.0:0"]);
    assert_eq!(change(&page, "/change", &both, "{\"mark\":\"a\"}").0, 403);
    until("its load has begun", || change(&page, &format!("{}change", page.path), json, "{\"mark\":\"a\"}").0 == 200);
}

#[test]
fn a_page_of_this_machine_needs_none_and_no_foreign_name() {
    let (_server, url) = target(ServerConfig::default());
    let page = Page::start(&url, &["--live"]);
    assert_eq!((page.path.as_str(), page.status("/", &page.address)), ("/", 200));
    assert_eq!(page.status("/events", "localhost"), 200);
    assert_eq!(page.status("/", "evil.example"), 421);
    assert_eq!(page.status("/events", "evil.example"), 421);
}

/// The answer to a request over TLS by a client that trusts this certificate alone.
fn over_tls(page: &Page, pem: &str, path: &str) -> String {
    use rustls::pki_types::pem::PemObject as _;
    let mut roots = RootCertStore::empty();
    roots.add(rustls::pki_types::CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let client = ClientConnection::new(Arc::new(config), ServerName::try_from("127.0.0.1").unwrap()).unwrap();
    exchange(StreamOwned::new(client, TcpStream::connect(&page.address).unwrap()), path, &page.address)
}

#[test]
fn a_page_speaks_tls_with_a_certificate_that_is_given() {
    let (_server, url) = target(ServerConfig::default());
    let made = brunt_testbed::tls::server_certificate().unwrap();
    let dir = Directory::new();
    let (cert, key) = (dir.file("cert.pem", &made.certificate_pem), dir.file("key.pem", &made.key_pem));
    let mut page = Page::start(&url, &["--live=0.0.0.0:0", "--live-cert", &cert, "--live-key", &key]);
    assert!(page.url.starts_with("https://0.0.0.0:"), "{}", page.url);
    let mut line = String::new();
    page.errors.read_line(&mut line).unwrap();
    let fingerprint = brunt_testbed::tls::certificate_fingerprint(&made.certificate_pem).unwrap();
    assert_eq!(line.trim(), format!("SHA-256 of its certificate: {fingerprint}"));
    assert!(over_tls(&page, &made.certificate_pem, &page.path).starts_with("HTTP/1.1 200"));
    assert!(over_tls(&page, &made.certificate_pem, "/events").starts_with("HTTP/1.1 403"));
    // What is not TLS gets nothing; the page may hang up while it is being sent.
    let mut plain = TcpStream::connect(&page.address).unwrap();
    let _ = plain.write_all(format!("GET {} HTTP/1.1\r\nHost: a\r\n\r\n", page.path).as_bytes());
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&answer));
}

#[test]
fn a_page_speaks_tls_with_a_certificate_made_on_the_spot() {
    let (_server, url) = target(ServerConfig::default());
    let mut page = Page::start(&url, &["--live", "--live-tls"]);
    assert!(page.url.starts_with("https://127.0.0.1:"), "{}", page.url);
    let mut line = String::new();
    page.errors.read_line(&mut line).unwrap();
    let fingerprint = line.trim().strip_prefix("SHA-256 of its certificate: ").unwrap();
    assert!(fingerprint.len() == 95 && fingerprint.split(':').count() == 32, "{line}");
}

#[test]
fn flags_of_the_page_need_a_page() {
    for args in [["--live-tls", "http://a/"].as_slice(), &["--live", "--live-cert", "x", "http://a/"]] {
        run(args).with_status(2);
    }
    let error = run(["--live", "--live-cert", "/nothing", "--live-key", "/nothing", "http://127.0.0.1:1/"]);
    assert!(error.status == Some(2) && error.stderr.contains("--live-cert"), "{error:#?}");
}

/// What a short run leaves: its page with the number that it is kept under, until its time is over or Ctrl-C comes.
#[test]
fn a_finished_page_stays_and_says_what_it_is_kept_as() {
    let (_server, url) = target(ServerConfig::default());
    let dir = Directory::new();
    let store = dir.path("runs.db");
    // Ctrl-C ends the page, and not the run that is over.
    let args = ["-n", "5", "--live", "--live-linger", "1h", "--store", &store, "--name", "mine"];
    let mut page = Page::start(&url, &args);
    until("the run is kept", || run(["runs", "--store", &store]).stdout.contains("mine"));
    let events = || {
        let mut stream = TcpStream::connect(&page.address).unwrap();
        write!(stream, "GET /events HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", page.address).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    for _ in 0..2 {
        let events = events();
        let kept = events.find("event: kept\ndata: 1\n").unwrap_or_else(|| panic!("{events}"));
        assert!(kept < events.find("event: finished\n").unwrap(), "{events}");
    }
    assert_eq!(page.status("/", &page.address), 200);
    let mut line = String::new();
    page.errors.read_line(&mut line).unwrap();
    assert!(line.starts_with("live: finished; http://127.0.0.1:") && line.contains("stays for 1h"), "{line}");
    kill_process(Pid::from_raw(page.child.id().try_into().unwrap()).unwrap(), Signal::INT).unwrap();
    until("it ends", || page.child.try_wait().unwrap().is_some());
    assert_eq!(page.child.wait().unwrap().code(), Some(0), "the run had ended well");
    // Nobody watches, and nobody could: nothing stays.
    let began = std::time::Instant::now();
    run(["-d", "100ms", "-c", "1", "--no-save", "--live", &url]).with_status(0);
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
    let stays = ["-d", "100ms", "-c", "1", "--no-save", "--live", "--live-linger", "1s", "--quiet", &url];
    let began = std::time::Instant::now();
    assert_eq!(run(stays).with_status(0).stderr, "");
    assert!(began.elapsed().as_millis() > 1000);
}
