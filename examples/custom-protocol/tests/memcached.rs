//! The example against a real memcached: what it says is what memcached counted.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// A memcached of the test's own. It ends with it.
struct Memcached {
    child: Child,
    port: u16,
}

/// A port that was free a moment ago, below those that the system gives to others by itself.
fn free_port() -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let offset = (std::process::id() % 97) as u16 * 100;
    loop {
        let port = 10_000 + (offset + TAKEN.fetch_add(1, Ordering::Relaxed)) % 20_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

impl Memcached {
    fn start() -> Self {
        for _ in 0..20 {
            let port = free_port();
            let mut child = Command::new("memcached")
                .args(["-l", "127.0.0.1", "-p", &port.to_string(), "-U", "0", "-u", "nobody", "-t", "1"])
                .stdin(Stdio::null())
                .spawn()
                .unwrap_or_else(|e| panic!("{e}: make test installs memcached"));
            while child.try_wait().unwrap().is_none() {
                if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    return Self { child, port };
                }
                sleep(Duration::from_millis(5));
            }
        }
        panic!("memcached does not start");
    }

    /// One of its own counters.
    fn count(&self, name: &str) -> u64 {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.write_all(b"stats\r\n").unwrap();
        let lines = BufReader::new(stream).lines().map(Result::unwrap);
        let mut stats = lines.take_while(|line| line != "END");
        let line = stats.find(|line| line.starts_with(&format!("STAT {name} "))).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    fn brunt(&self, args: &[&str]) -> Output {
        let url = format!("memcached://127.0.0.1:{}/", self.port);
        Command::new(env!("CARGO_BIN_EXE_brunt-memcached")).args(args).arg(url).output().unwrap()
    }

    #[track_caller]
    fn json(&self, status: i32, args: &[&str]) -> String {
        let output = self.brunt(&[&["--format", "json"], args].concat());
        assert_eq!(output.status.code(), Some(status), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().split_whitespace().collect()
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "needs memcached: make test installs it"]
fn what_brunt_says_memcached_has_counted() {
    let server = Memcached::start();
    let missed = server.json(1, &["-n", "300", "--item", "a", "--threshold", "error_rate==0"]);
    assert!(missed.contains(r#""statuses":[{"status":404,"count":300}]"#), "{missed}");
    let stored = server.json(0, &["-n", "200", "--item", "a", "--set", &"v".repeat(3000)]);
    assert!(stored.contains(r#""statuses":[{"status":201,"count":200}]"#), "{stored}");
    // At a rate, with several calls in flight on a connection.
    let found = server.json(0, &["-n", "500", "-r", "2000", "-c", "4", "--pipeline", "8", "--item", "a"]);
    assert!(found.contains(r#""statuses":[{"status":200,"count":500}]"#), "{found}");
    assert!(found.contains(r#""due":500,"answered":500"#), "{found}");
    assert_eq!((server.count("get_misses"), server.count("cmd_set"), server.count("get_hits")), (300, 200, 500));
}

#[test]
#[ignore = "needs memcached: make test installs it"]
fn scenarios_have_it_by_its_flags() {
    let server = Memcached::start();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenario.lua");
    let address = format!("memcached://127.0.0.1:{}", server.port);
    let output = Command::new(env!("CARGO_BIN_EXE_brunt-memcached"))
        // A third of its calls ask for what is not there.
        .args([
            "run",
            "--no-save",
            "--max-error-rate",
            "50%",
            "-t",
            "2",
            "--format",
            "json",
            "--base-url",
            &address,
            folder,
        ])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    // 5 users, 20 times each: what was set is got, and what was not is missed.
    assert_eq!((server.count("cmd_set"), server.count("get_hits"), server.count("get_misses")), (100, 100, 100));
    let wrong = std::env::temp_dir().join(format!("brunt-memcached-{}.lua", std::process::id()));
    for (text, expected) in [
        ("local c = require 'brunt'.memcached {}", "brunt.memcached needs an address"),
        ("local c = require 'brunt'.memcached { address = 'a', itme = 'x' }", "did you mean 'item'?"),
        ("local c = require 'brunt'.memcached { address = 'a', item = 'a b' }", "1 to 250 characters without spaces"),
    ] {
        std::fs::write(&wrong, text).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_brunt-memcached")).arg("run").arg(&wrong).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(output.status.code() == Some(2) && said.contains(expected), "{text}: {said}");
    }
    std::fs::remove_file(&wrong).unwrap();
}

#[test]
#[ignore = "needs memcached: make test installs it"]
fn a_single_call_is_shown() {
    let server = Memcached::start();
    let output = server.brunt(&["--once", "--item", "a", "--set", "hello"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let shown = String::from_utf8(output.stdout).unwrap();
    for expected in
        ["→ call, ", "\n  set a 0 0 5\n  hello\n", "← answer, 8 bytes, ", "\n  STORED\n", "\n✓ answered with 201 in "]
    {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    assert_eq!(server.count("cmd_set"), 1);
}

#[test]
#[ignore = "needs memcached: make test installs it"]
fn its_flags_are_brunts() {
    let server = Memcached::start();
    let said = |args: &[&str]| {
        let output = server.brunt(args);
        (output.status.code(), String::from_utf8(output.stderr).unwrap() + &String::from_utf8(output.stdout).unwrap())
    };
    let (status, help) = said(&["--help-all"]);
    assert!(status == Some(0) && help.contains("memcached:") && help.contains("--item <KEY>"), "{help}");
    let (status, wrong) = said(&["--item", "a b"]);
    assert!(status == Some(2) && wrong.contains("expected 1 to 250 characters without spaces"), "{wrong}");
    let (status, wrong) = said(&["--body", "x"]);
    assert!(status == Some(2) && wrong.contains("--body belongs to http://, https://"), "{wrong}");
}
