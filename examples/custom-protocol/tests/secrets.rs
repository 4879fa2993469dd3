//! A flag that says of itself that it is secret: what stands behind it is sent, and is nowhere else.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::thread;

const SECRET: &str = "hunter2";

/// A server that stores what it is told to, and keeps the lines that it was sent.
fn server() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("memcached://{}/", listener.local_addr().unwrap());
    let lines = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&lines);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let all = Arc::clone(&all);
            thread::spawn(move || {
                let mut answers = stream.try_clone().unwrap();
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    let answer = if line.starts_with("get ") { "END\r\n" } else { "STORED\r\n" };
                    let is_data = !line.starts_with("get ") && !line.starts_with("set ");
                    all.lock().unwrap().push(line.clone());
                    if (line.starts_with("get ") || is_data) && answers.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (url, lines)
}

/// A directory that goes with its test.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("brunt-memcached-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_brunt-memcached"));
    command.args(args).env("LOGIN", format!("me {SECRET}"));
    command
}

#[track_caller]
fn without_secret(what: &str, output: &Output, status: i32) -> String {
    let text = [String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)].concat();
    assert_eq!(output.status.code(), Some(status), "{what}: {text}");
    assert!(!text.contains(SECRET), "{what}: {text}");
    text
}

#[test]
fn a_secret_flag_is_on_the_wire_alone() {
    let (url, lines) = server();
    let directory = Directory::new("flag");
    let literal = format!("me {SECRET}");
    for (login, shown) in [(literal.as_str(), "[redacted]"), ("@LOGIN", "@LOGIN")] {
        let (result, plan, store) = (directory.path("r.json"), directory.path("plan.json"), directory.path("runs.db"));
        let args =
            ["--login", login, "-n3", "-c1", "--ok-status", "0-999", "-o", &result, "--write-plan", &plan, "--store"];
        let output = program(&[&args[..], &[&store, "--name", "one", &url]].concat()).output().unwrap();
        without_secret("the run", &output, 0);
        let sent = std::mem::take(&mut *lines.lock().unwrap());
        assert_eq!(sent.iter().filter(|line| **line == literal).count(), 1, "{sent:?}");
        assert_eq!(sent.iter().filter(|line| *line == "get brunt").count(), 3, "{sent:?}");
        for path in [&result, &plan] {
            let text = std::fs::read_to_string(path).unwrap();
            assert!(!text.contains(SECRET) && text.contains(shown), "{text}");
        }
        let kept = program(&["show", "one", "--format", "json", "--store", &store]).output().unwrap();
        assert!(without_secret("what is kept", &kept, 0).contains(shown));
        let traced = program(&["--login", login, "--once", "--ok-status", "0-999", &url]).output().unwrap();
        without_secret("the trace", &traced, 0);
        // By reference it runs again; without the secret it cannot.
        let again = program(&["--plan", &plan, "--no-save"]).output().unwrap();
        without_secret("the plan", &again, if login == "@LOGIN" { 0 } else { 2 });
        lines.lock().unwrap().clear();
    }
    let sides = [
        "compare",
        "--rounds",
        "10",
        "-n2",
        "-w0",
        "-t1",
        "--no-save",
        "--a",
        "--login 'me hunter2'",
        "--b=-c 1",
        &url,
    ];
    let compared = program(&sides).output().unwrap();
    let text = [String::from_utf8_lossy(&compared.stdout), String::from_utf8_lossy(&compared.stderr)].concat();
    assert!(!text.contains(SECRET) && text.contains("--login [redacted]"), "{text}");
}
