//! HTTP/3 against quic-go and aioquic, with and without a Retry, and against Caddy.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use brunt_testbed::tls::server_certificate;

use crate::installed::{installed, python, succeed};
use crate::program::{Directory, run, until};
use crate::report::report;

const PEERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/network/peers/http3");

/// A server; it ends with its test.
struct Peer {
    child: Child,
    url: String,
}

impl Peer {
    fn start(command: &mut Command) -> Self {
        // It ends when this does.
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { child, url: format!("https://127.0.0.1:{}", port.trim()) }
    }

    /// The requests that it has counted.
    fn served(&self) -> u64 {
        let shown = run(["--once", "--http", "3", "-k", &format!("{}/served", self.url)]).with_status(0).stdout;
        let number = |line: &str| line.trim().parse().ok();
        shown.lines().find_map(number).unwrap_or_else(|| panic!("no count in {shown}"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Loads a server in all ways that it takes, and asks it what came.
fn agrees(peer: &Peer, dir: &Directory) {
    let body = dir.file("body", "0123456789".repeat(20_000));
    let flooded = |status, args: &[&str], path: &str| {
        report(status, [&["--http", "3", "-k"], args, &[&format!("{}{path}", peer.url)]].concat())
    };
    let flood = |args: &[&str], path: &str| flooded(0, args, path);
    // quic-go allows 20 streams here.
    flood(&["-n", "2000", "-c", "2", "--streams", "50"], "/").assert_all(2000, 200);
    flood(&["-n", "500", "-r", "2k"], "/").assert_all(500, 200);
    flood(&["-n", "100", "-c", "50", "--reconnect"], "/").assert_all(100, 200);
    flood(&["-n", "40", "-c", "2", "--streams", "5", "--body-file", &body], "/length").assert_all(40, 200);
    flood(&["-n", "20", "-c", "1", "--streams", "10", "--messages", "sse"], "/events").assert_all(20, 200);
    assert_eq!(peer.served(), 2660, "{}", peer.url);
    let shown = run(["--once", "--http", "3", "-k", "--body-file", &body, &format!("{}/length", peer.url)]);
    assert!(shown.with_status(0).stdout.contains("200000"), "{}: every byte of a body arrives", peer.url);
    let aborted = flooded(3, &["-n", "20", "-c", "1", "--streams", "4"], "/abort");
    assert_eq!(aborted.failures().get("closed"), Some(&20), "{}: {aborted:?}", peer.url);
}

fn certificate(dir: &Directory) -> [String; 2] {
    let made = server_certificate().unwrap();
    [dir.file("cert.pem", made.certificate_pem), dir.file("key.pem", made.key_pem)]
}

#[test]
#[ignore = "needs Go: make test installs it"]
fn quic_go_agrees() {
    let files = ["go.mod", "go.sum", "main.go"].map(|file| Path::new(PEERS).join(file));
    let fetched = Command::new("go").args(["mod", "download"]).current_dir(PEERS).output().unwrap();
    if !fetched.status.success() {
        eprintln!("not run: quic-go cannot be had: {}", String::from_utf8_lossy(&fetched.stderr));
        return;
    }
    let home = installed("http3-peer-go", &files, |home| {
        succeed(Command::new("go").args(["build", "-o", "peer", "."]).current_dir(home));
    });
    with_and_without_retry(&home.join("peer"), &[]);
    // What goes as early data is taken, or told to come later.
    let dir = Directory::new();
    let peer = Peer::start(Command::new(home.join("peer")).args(certificate(&dir)));
    for (path, asked_again) in [("/", false), ("/late", true)] {
        let args = ["--http", "3", "-k", "-n", "20", "-c", "1", "--reconnect", "--tls-earlydata"];
        let before = peer.served();
        let report = report(0, [args.as_slice(), &[&format!("{}{path}", peer.url)]].concat());
        report.assert_all(20, 200);
        let early = report.connections("early_calls");
        let turned_away = report.connections("turned_away");
        // A slow machine may have ended a handshake before its request is looked at.
        assert!(
            early >= 5 && turned_away <= early && (turned_away > 0) == asked_again,
            "{path}: {turned_away} of {early}"
        );
        assert_eq!(peer.served() - before, 20 + report.connections("turned_away"), "{path}");
    }
}

#[test]
#[ignore = "needs python3-venv: make test installs it"]
fn aioquic_agrees() {
    let python = python("http3-peer-python", Path::new(PEERS).join("requirements.txt"), &[]);
    let program = format!("{PEERS}/aioquic_peer.py");
    with_and_without_retry(&python, &[&program]);
    let dir = Directory::new();
    let peer = Peer::start(Command::new(&python).arg(&program).args(certificate(&dir)));
    let closed = report(3, ["--http", "3", "-k", "-n", "3", "-c", "1", &format!("{}/close", peer.url)]);
    let says = |reason: &String| reason.ends_with(": going down for repairs");
    assert!(closed.reasons().keys().all(says), "{:?}", closed.reasons());
}

/// Caddy, which counts requests in its log.
struct Caddy {
    child: Child,
    url: String,
    dir: Directory,
    /// How many lines of its log were read.
    read: Cell<usize>,
}

impl Caddy {
    fn start(program: &Path) -> Self {
        let dir = Directory::new();
        certificate(&dir);
        dir.file("large", "0123456789".repeat(50_000));
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let file = dir.file("Caddyfile", fs::read_to_string(format!("{PEERS}/Caddyfile")).unwrap());
        let home = dir.path("");
        let mut command = Command::new(program);
        command.args(["run", "--config", &file]).current_dir(&home).env("ADDRESS", &address);
        command.envs(["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"].map(|name| (name, &home)));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("Caddy listens", || std::net::TcpStream::connect(&address).is_ok());
        Self { child, url: format!("https://{address}"), dir, read: Cell::new(0) }
    }

    /// Its requests over HTTP/3 since this was last asked, at least this many: how many by status, and how many of them on a resumed session.
    fn served(&self, least: u64) -> (HashMap<u64, u64>, u64) {
        let log = || fs::read_to_string(self.dir.path("access.log")).unwrap();
        // A line is written once the answer is under way.
        until("Caddy has logged all requests", || log().lines().count() >= self.read.get() + least as usize);
        let (mut served, mut resumed) = (HashMap::new(), 0);
        for line in log().lines().skip(self.read.get()) {
            self.read.set(self.read.get() + 1);
            let entry: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(entry["request"]["proto"], "HTTP/3.0", "{entry}");
            *served.entry(entry["status"].as_u64().unwrap()).or_default() += 1;
            resumed += u64::from(entry["request"]["tls"]["resumed"] == true);
        }
        (served, resumed)
    }
}

impl Drop for Caddy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "needs python3-venv: make test installs it"]
fn caddy_agrees() {
    let requirements = Path::new(PEERS).join("caddy.txt");
    let caddy = Caddy::start(&python("http3-caddy", requirements, &["--no-deps"]).with_file_name("caddy"));
    let flood = |args: &[&str], path: &str| {
        let report = report(0, [&["--http", "3", "-k"], args, &[&format!("{}{path}", caddy.url)]].concat());
        let served = caddy.served(report.outcome("answered") + report.connections("turned_away"));
        (report, served)
    };
    for args in [
        ["-n", "2000", "-c", "2", "--streams", "50"].as_slice(),
        &["-n", "500", "-r", "2k"],
        &["-n", "500", "-c", "8", "-t", "1", "--udp-sockets", "1"],
    ] {
        let due = args[1].parse().unwrap();
        let (report, served) = flood(args, "/");
        report.assert_all(due, 200);
        assert_eq!(served.0, [(200, due)].into(), "{args:?}");
    }
    let (report, served) = flood(&["-n", "100", "-c", "2", "--streams", "5"], "/large");
    report.assert_all(100, 200);
    assert!(report.number("/bytes/clear_in_bytes") >= 50_000_000);
    assert_eq!(served.0, [(200, 100)].into());
    // The first has no session yet.
    let anew = ["-n", "20", "-c", "1", "-t", "1", "--reconnect"];
    let (report, (served, resumed)) = flood(&anew, "/");
    assert_eq!((served, report.connections("tls_resumed")), ([(200, 20)].into(), resumed));
    assert!((10..=19).contains(&resumed), "{resumed}");
    for (path, asked_again) in [("/", false), ("/late", true)] {
        let (report, (served, _)) = flood(&[&anew, ["--tls-earlydata"].as_slice()].concat(), path);
        report.assert_all(20, 200);
        let (early, late) = (report.connections("early_calls"), report.connections("turned_away"));
        assert!((5..=19).contains(&early) && late <= early && (late > 0) == asked_again, "{path}: {late} of {early}");
        assert_eq!((served.get(&200), served.get(&425).copied().unwrap_or(0)), (Some(&20), late), "{path}");
    }
}

fn with_and_without_retry(program: &Path, before: &[&str]) {
    let dir = Directory::new();
    for retry in [&[][..], &["retry"]] {
        let mut command = Command::new(program);
        agrees(&Peer::start(command.args(before).args(certificate(&dir)).args(retry)), &dir);
    }
}
