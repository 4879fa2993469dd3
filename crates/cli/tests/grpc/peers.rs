//! The server: installed once, at pinned versions, from Python's package index.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use brunt_testbed::tls::server_certificate;

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

/// A Python that has the library, made when it is needed for the first time.
pub fn python() -> PathBuf {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(install).clone()
}

fn install() -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("grpc-peers");
    let wanted = fs::read_to_string(Path::new(PEERS).join("requirements.txt")).unwrap();
    let (python, installed) = (home.join("bin/python"), home.join("installed.txt"));
    if fs::read_to_string(&installed).is_ok_and(|installed| installed == wanted) {
        return python;
    }
    let requirements = format!("{PEERS}/requirements.txt");
    succeed(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home));
    succeed(Command::new(&python).args(["-m", "pip", "install", "--quiet", "-r", &requirements]));
    fs::write(installed, wanted).unwrap();
    python
}

fn succeed(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
}
