//! The servers: installed once, at pinned versions, from the package indices of Python and Node.js.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use brunt_testbed::tls::server_certificate;

use crate::installed::{self, succeed};
use crate::program::Directory;

/// The service's IDL.
pub const IDL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/thrift/peers/everything.thrift");

const PEERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/thrift/peers");

/// An implementation that is not ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Implementation {
    Apache,
    Thriftpy,
    Node,
}

/// How a server is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    pub protocol: String,
    pub transport: String,
    /// `plain`, `multiplexed` or `tls`; `other` is JSON, `THeader` and HTTP.
    pub kind: String,
    pub port: u16,
}

/// A running server. It ends with its test, however that ends.
pub struct Peer {
    child: Child,
    pub implementation: Implementation,
    pub listeners: Vec<Listener>,
    pub dir: Directory,
}

impl Peer {
    pub fn start(implementation: Implementation) -> Self {
        let dir = Directory::new();
        let made = server_certificate().unwrap();
        let (certificate, key) = (dir.file("cert.pem", made.certificate_pem), dir.file("key.pem", made.key_pem));
        let script = |name| Path::new(PEERS).join(name);
        let (program, script, source) = match implementation {
            Implementation::Apache => (python(), script("apache.py"), generated(&dir, "py")),
            Implementation::Thriftpy => (python(), script("thriftpy.py"), PEERS.to_owned()),
            Implementation::Node => (PathBuf::from("node"), node().join("node.js"), generated(&dir, "js:node")),
        };
        let mut child = Command::new(program)
            .arg(&script)
            .args([&source, &certificate, &key])
            // The compiler's code asks for Node's library where it stands.
            .env("NODE_PATH", script.with_file_name("node_modules"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            // It ends when this does.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut listeners = Vec::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            let words: Vec<_> = line.split(' ').collect();
            let [protocol, transport, kind, port] = words[..] else {
                assert_eq!(line, "ready");
                break;
            };
            let [protocol, transport, kind] = [protocol, transport, kind].map(str::to_owned);
            listeners.push(Listener { protocol, transport, kind, port: port.parse().unwrap() });
        }
        assert!(listeners.len() >= 11, "{} did not start", script.display());
        Self { child, implementation, listeners, dir }
    }

    /// The flags and the URL for one way to speak to it.
    pub fn args(&self, listener: &Listener) -> Vec<String> {
        let mut args: Vec<_> = ["--idl", IDL, "--protocol", &listener.protocol, "--transport", &listener.transport]
            .map(str::to_owned)
            .into();
        let scheme = match listener.kind.as_str() {
            "tls" => {
                args.extend(["--cacert".to_owned(), self.dir.path("cert.pem")]);
                "thrifts"
            }
            "multiplexed" => {
                args.push("--multiplexed".to_owned());
                "thrift"
            }
            _ => "thrift",
        };
        args.push(format!("{scheme}://127.0.0.1:{}", listener.port));
        args
    }

    /// The listeners of a kind.
    pub fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Listener> {
        self.listeners.iter().filter(move |listener| listener.kind == kind)
    }

    /// The flags and the URL for the first of a kind.
    pub fn any(&self, kind: &str) -> Vec<String> {
        self.args(self.of_kind(kind).next().unwrap())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What Apache Thrift's compiler makes of the IDL.
fn generated(dir: &Directory, language: &str) -> String {
    let path = dir.path("generated");
    fs::create_dir(&path).unwrap();
    succeed(Command::new("thrift").args(["-r", "--gen", language, "-out", &path, IDL]));
    path
}

/// A Python that has both libraries, made when it is needed for the first time.
fn python() -> PathBuf {
    installed::python("thrift-peers", Path::new(PEERS).join("requirements.txt"), &[])
}

/// Node's library, installed when it is needed for the first time.
fn node() -> PathBuf {
    let lives = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/network/peers/lives");
    let packages = ["package.json", "package-lock.json"].map(|file| Path::new(lives).join(file));
    let files: Vec<_> = packages.into_iter().chain([Path::new(PEERS).join("node.js")]).collect();
    installed::node("thrift-node", &files)
}
