//! The servers: installed once, at pinned versions, from the package indexes of Python, npm and Go.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use brunt_testbed::tls::server_certificate;

use crate::installed::{self, installed, succeed};
use crate::program::Directory;

/// The service's schema.
pub const PROTO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/grpc/peers/shop.proto");
/// That of health checking.
pub const HEALTH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testbed/src/grpc/health.proto");

const PEERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/grpc/peers");

/// A running server. It ends with its test, however that ends.
pub struct Peer {
    child: Child,
    pub url: String,
    pub secure_url: String,
    pub dir: Directory,
}

impl Peer {
    pub fn start() -> Self {
        Self::with_compression("none")
    }

    /// Its answers are compressed by `gzip`, or by `none`.
    pub fn with_compression(compression: &str) -> Self {
        let dir = Directory::new();
        let made = server_certificate().unwrap();
        let (certificate, key) = (dir.file("cert.pem", made.certificate_pem), dir.file("key.pem", made.key_pem));
        let mut child = Command::new(python())
            .arg(Path::new(PEERS).join("server.py"))
            .args([PEERS, &certificate, &key, compression])
            .env("PYTHONDONTWRITEBYTECODE", "1")
            // It ends when this does.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (plain, secure) = line.trim().split_once(' ').unwrap();
        let url = format!("grpc://127.0.0.1:{plain}");
        Self { child, url, secure_url: format!("grpcs://127.0.0.1:{secure}"), dir }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server of another implementation. It ends with its test, however that ends.
pub struct Other {
    child: Child,
    pub url: String,
}

impl Other {
    /// @grpc/grpc-js, with its own reflection.
    pub fn node() -> Self {
        let files = ["node/package.json", "node/package-lock.json", "node/server.js"].map(in_peers);
        let home = installed::node("grpc-peer-node", &files);
        Self::started(Command::new("node").arg(home.join("server.js")).arg(PROTO))
    }

    /// grpc-go, with reflection of this version.
    pub fn go(version: &str, dir: &Directory) -> Self {
        let files = ["go/go.mod", "go/go.sum", "go/main.go"].map(in_peers);
        let home = installed("grpc-peer-go", &files, |home| {
            succeed(Command::new("go").args(["build", "-o", "peer", "."]).current_dir(home));
        });
        Self::started(Command::new(home.join("peer")).args([&descriptor_set(dir), version]))
    }

    fn started(command: &mut Command) -> Self {
        // It ends when this does.
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { child, url: format!("grpc://127.0.0.1:{}", port.trim()) }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The schema as protoc writes it into a file.
pub fn descriptor_set(dir: &Directory) -> String {
    let set = dir.path("shop.bin");
    let protoc = ["-m", "grpc_tools.protoc", "-I", PEERS, "--include_imports", "-o", &set, "shop.proto"];
    succeed(Command::new(python()).args(protoc));
    set
}

/// A Python that has the library, made when it is needed for the first time.
pub fn python() -> PathBuf {
    installed::python("grpc-peers", in_peers("requirements.txt"), &[])
}

fn in_peers(file: &str) -> PathBuf {
    Path::new(PEERS).join(file)
}
