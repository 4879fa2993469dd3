//! HTTP/2 against Go's net/http and Node's own server.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use brunt_testbed::tls::server_certificate;

use crate::installed::{installed, succeed};
use crate::program::{Directory, run};
use crate::report::report;

const PEERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/network/peers");

/// A server; it ends with its test.
pub struct Peer {
    child: Child,
    pub url: String,
}

impl Peer {
    fn go(dir: &Directory) -> Self {
        Self::go_with(dir, &[])
    }

    /// net/http that ends each connection gracefully so often: `200ms`.
    pub fn draining_go(dir: &Directory, interval: &str) -> Self {
        Self::go_with(dir, &[interval])
    }

    fn go_with(dir: &Directory, args: &[&str]) -> Self {
        let files = ["go/go.mod", "go/main.go"].map(|file| Path::new(PEERS).join(file));
        let home = installed("http2-peer-go", &files, |home| {
            succeed(Command::new("go").args(["build", "-o", "peer", "."]).current_dir(home));
        });
        Self::start(Command::new(home.join("peer")).args(certificate(dir)).args(args), "https")
    }

    fn node(dir: Option<&Directory>) -> Self {
        let mut command = Command::new("node");
        command.arg(Path::new(PEERS).join("node.js")).args(dir.map(certificate).into_iter().flatten());
        Self::start(&mut command, if dir.is_some() { "https" } else { "http" })
    }

    fn start(command: &mut Command, scheme: &str) -> Self {
        // It ends when this does.
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { child, url: format!("{scheme}://127.0.0.1:{}", port.trim()) }
    }

    /// The requests over HTTP/2 that it has counted.
    pub fn served(&self) -> u64 {
        let shown = run(["--once", "--http", "2", "-k", &format!("{}/served", self.url)]).with_status(0).stdout;
        let count = shown.lines().rev().find_map(|line| line.trim().parse().ok());
        count.unwrap_or_else(|| panic!("no count in {shown}"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn certificate(dir: &Directory) -> [String; 2] {
    let made = server_certificate().unwrap();
    [dir.file("cert.pem", made.certificate_pem), dir.file("key.pem", made.key_pem)]
}

#[test]
#[ignore = "needs Go and Node.js: make test installs them"]
fn go_and_node_agree() {
    let dir = Directory::new();
    let body = dir.file("body", "0123456789".repeat(20_000));
    for peer in [Peer::go(&dir), Peer::node(Some(&dir)), Peer::node(None)] {
        let flooded = |status, args: &[&str], path: &str| {
            report(status, [&["--http", "2", "-k"], args, &[&format!("{}{path}", peer.url)]].concat())
        };
        let flood = |args: &[&str], path: &str| flooded(0, args, path);
        flood(&["-n", "2000", "-c", "2", "--streams", "50"], "/").assert_all(2000, 200);
        flood(&["-n", "1000", "-r", "5k"], "/").assert_all(1000, 200);
        flood(&["-n", "40", "-c", "2", "--streams", "5", "--body-file", &body], "/length").assert_all(40, 200);
        assert_eq!(peer.served(), 3040, "{}", peer.url);
        let shown = run(["--once", "--http", "2", "-k", "--body-file", &body, &format!("{}/length", peer.url)]);
        assert!(shown.with_status(0).stdout.contains("200000"), "{}: every byte of a body arrives", peer.url);
        let events = flood(&["-n", "20", "-c", "1", "--streams", "10", "--messages", "sse"], "/events");
        events.assert_all(20, 200);
        assert_eq!(events.number("/outcomes/messages/count"), 60, "{}", peer.url);
        let aborted = flooded(3, &["-n", "20", "-c", "1", "--streams", "10"], "/abort");
        assert_eq!(aborted.outcome("failed"), 20, "{}: each stream is reset", peer.url);
    }
}
