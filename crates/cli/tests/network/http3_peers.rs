//! HTTP/3 against quic-go and aioquic, with and without a Retry.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use brunt_testbed::tls::server_certificate;

use crate::installed::{installed, python, succeed};
use crate::program::{Directory, run};
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

fn with_and_without_retry(program: &Path, before: &[&str]) {
    let dir = Directory::new();
    for retry in [&[][..], &["retry"]] {
        let mut command = Command::new(program);
        agrees(&Peer::start(command.args(before).args(certificate(&dir)).args(retry)), &dir);
    }
}
