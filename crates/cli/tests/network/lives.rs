//! Each protocol against real servers in Python and JavaScript, through seven behaviours: one that closes at once, one that speaks first, and
//! so on ([`BEHAVIOURS`]).

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;

use crate::installed::{self, python};
use crate::program::{Directory, Running, nobody};
use crate::report::{Report, report};

const LIVES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/network/peers/lives");
const LANGUAGES: [&str; 2] = ["Python", "JavaScript"];
/// The answers of a server that restarts before it ends.
const ENDS_WITH: u64 = 10;
const BEHAVIOURS: [&str; 7] = ["closes", "first", "early", "drains", "restarts", "refuses", "garbage"];

/// What a server cannot be made to do: these libraries hand over whole calls and messages only.
const CANNOT: [(&str, &str, &str); 3] =
    [("thrift", "JavaScript", "early"), ("websocket", "Python", "early"), ("websocket", "JavaScript", "early")];

/// A server of ours in another language. It ends with its test, however that ends.
struct Life {
    child: Child,
    port: u16,
}

impl Life {
    fn start(language: &str, protocol: &str, behaviour: &str, port: u16) -> Self {
        let mut command = if language == "Python" {
            let mut command = Command::new(python("lives-python", in_lives("requirements.txt"), &[]));
            command.arg(in_lives("lives.py")).env("PYTHONDONTWRITEBYTECODE", "1");
            command
        } else {
            let files = ["package.json", "package-lock.json", "lives.js"].map(in_lives);
            let home = installed::node("lives-node", &files);
            let mut command = Command::new("node");
            command.arg(home.join("lives.js"));
            command
        };
        command.args([protocol, behaviour, &port.to_string()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().parse().unwrap_or_else(|_| panic!("{language} {protocol} {behaviour}: '{line}'"));
        Self { child, port }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn in_lives(file: &str) -> PathBuf {
    Path::new(LIVES).join(file)
}

/// Flags of a run over `protocol` to a server that behaves so. `large` is a file that no socket's buffer holds, as a text in JSON for Thrift.
fn flags(protocol: &str, behaviour: &str, port: u16, large: &str) -> Vec<String> {
    let is_early = behaviour == "early";
    let own: &[&str] = match protocol {
        "http1" if is_early => &["--body-file", large],
        "http2" if is_early => &["--http", "2", "--body-file", large],
        "http2" => &["--http", "2", "--streams", "4"],
        "websocket" => &["--message", "ping"],
        "grpc" if is_early => &["--call", "Send", "--args", r#"[{"text": "a"}, {"text": "b"}]"#],
        "grpc" => &["--call", "Call", "--args", r#"{"text": "a"}"#, "--streams", "4"],
        "thrift" if is_early => &["--call", "call", "--args", large, "--result", r#""ok""#],
        "thrift" => &["--call", "call", "--args", r#"{"text": "a"}"#, "--result", r#""ok""#],
        "tcp" if behaviour == "first" => {
            &["--send", "ping\\n", "--until", "\\n", "--greeting", "\\n", "--expect", "pong"]
        }
        "tcp" => &["--send", "ping\\n", "--until", "\\n", "--expect", "pong"],
        _ => &[],
    };
    let schema = match protocol {
        "grpc" => vec!["--proto".to_owned(), in_lives("life.proto").display().to_string()],
        "thrift" => vec!["--idl".to_owned(), in_lives("life.thrift").display().to_string()],
        _ => Vec::new(),
    };
    let scheme = match protocol {
        "http1" | "http2" => "http",
        "websocket" => "ws",
        other => other,
    };
    let length: &[&str] = match behaviour {
        // The connection's age ends it meanwhile.
        "drains" if protocol == "grpc" => &["-r", "50", "-d", "1s"],
        // It ends once the server has restarted twice.
        "restarts" => &["-r", "50", "-d", "10m"],
        "early" => &["-n", "4"],
        _ => &["-n", "20"],
    };
    let common = ["-t", "1", "-c", "2", "--timeout", "60s"];
    let words = common.iter().chain(length).chain(own).map(|word| (*word).to_owned());
    words.chain(schema).chain([format!("{scheme}://127.0.0.1:{port}")]).collect()
}

/// The status of a success.
fn ok_of(protocol: &str) -> u64 {
    if protocol.starts_with("http") { 200 } else { 0 }
}

/// Asserts what a run tells of a server that behaves so. That its sums close was seen as it was read.
fn assert_told(protocol: &str, behaviour: &str, told: &Report, whose: &str) {
    const LOST: [&str; 5] = ["closed", "read", "write", "handshake", "connect"];

    let (statuses, failures) = (told.statuses(), told.failures());
    let (due, ok) = (told.outcome("due"), ok_of(protocol));
    let whole = || format!("{whose}: {statuses:?}, {:?}", told.reasons());
    let only = |allowed: &[&str]| failures.keys().all(|failure| allowed.contains(failure));
    let all = |status: u64| statuses == BTreeMap::from([(status, due)]);
    let holds = match (behaviour, protocol) {
        ("closes", _) => statuses.is_empty() && failures.values().sum::<u64>() == due && only(&LOST),
        // A farewell that nobody has asked for is no answer, or that of the call that had just been sent.
        ("first", "http1") => statuses.keys().all(|status| *status == 408) && only(&LOST),
        // It has a sequence id of its own.
        ("first", "thrift") => statuses.is_empty() && only(&["protocol", "sequence"]),
        // A message may come before the first call, or be taken for its answer.
        ("first", "websocket") => statuses.keys().eq([&ok]) && only(&["mismatch"]),
        // What was sent of a large body meets a socket that is closed.
        ("early", "http1") => statuses.keys().all(|status| *status == 413) && !statuses.is_empty() && only(&LOST),
        ("early", "http2") => all(413),
        ("early", "grpc") => all(8),
        ("first" | "early", _) => all(ok),
        // These say before the answer that it is the last, or which calls they have not processed.
        ("drains", "http1" | "http2" | "grpc") => statuses.keys().eq([&ok]) && failures.is_empty(),
        ("drains", _) => statuses.keys().all(|status| *status == ok) && only(&["closed", "read", "write"]),
        ("restarts", _) => statuses.keys().eq([&ok]) && only(&LOST) && statuses[&ok] > ENDS_WITH,
        ("refuses", "http1") => all(503),
        ("refuses", "http2") => statuses.is_empty() && only(&["closed"]),
        ("refuses", "websocket") => failures == BTreeMap::from([("handshake", due)]),
        ("refuses", "grpc") => all(14),
        ("refuses", "thrift") => failures == BTreeMap::from([("exception", due)]),
        ("refuses", _) => failures == BTreeMap::from([("connect", due)]),
        // Its bytes end a connection or fail a call; no call waits for its timeout, and none counts twice.
        ("garbage", _) => {
            statuses.keys().all(|status| *status == ok) && only(&["protocol", "mismatch", "closed", "read", "write"])
        }
        other => panic!("{other:?}"),
    };
    assert!(holds, "{}", whole());
}

fn lives(protocol: &'static str) {
    let dir = Directory::new();
    let text = "x".repeat(8 << 20);
    let large = match protocol {
        "thrift" => format!("@{}", dir.file("large", format!(r#"{{"text": "{text}"}}"#))),
        _ => dir.file("large", text),
    };
    for language in LANGUAGES {
        for behaviour in BEHAVIOURS {
            if CANNOT.contains(&(protocol, language, behaviour)) {
                continue;
            }
            let whose = format!("{protocol} of {language}, which {behaviour}");
            if (protocol, behaviour) == ("tcp", "refuses") {
                let (_kept, url) = nobody();
                let port = url.trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap();
                assert_told(protocol, behaviour, &report(3, flags(protocol, behaviour, port, &large)), &whose);
                continue;
            }
            let mut life = Life::start(language, protocol, behaviour, 0);
            let words = flags(protocol, behaviour, life.port, &large);
            let result = dir.path("result.json");
            let mut run = Running::start(words.iter().map(String::as_str).chain(["--quiet", "-o", &result]));
            // One that restarts ends by itself, and another takes its port.
            let mut ended = 0;
            while !run.is_over() {
                if ended < 2 && life.child.try_wait().unwrap().is_some() {
                    ended += 1;
                    if ended == 2 {
                        run.send(Signal::INT);
                    } else {
                        life = Life::start(language, protocol, behaviour, life.port);
                    }
                }
                sleep(Duration::from_millis(10));
            }
            let done = run.wait();
            assert!(matches!(done.status, Some(0 | 1 | 3 | 130)), "{whose}: {done:#?}");
            let told = Report::read(&result);
            assert_told(protocol, behaviour, &told, &whose);
        }
    }
}

#[test]
#[ignore = "needs Python and Node.js: make test installs them"]
fn http1_lives() {
    lives("http1");
}

#[test]
#[ignore = "needs Python and Node.js: make test installs them"]
fn http2_lives() {
    lives("http2");
}

#[test]
#[ignore = "needs Python and Node.js: make test installs them"]
fn websocket_lives() {
    lives("websocket");
}

#[test]
#[ignore = "needs Python and Node.js: make test installs them"]
fn grpc_lives() {
    lives("grpc");
}

#[test]
#[ignore = "needs Python and Node.js: make test installs them"]
fn thrift_lives() {
    lives("thrift");
}

#[test]
#[ignore = "needs Python and Node.js: make test installs them"]
fn tcp_lives() {
    lives("tcp");
}
