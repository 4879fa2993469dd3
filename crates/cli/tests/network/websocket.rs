//! WebSocket against the built-in echo and against another implementation (Python's websockets, as Debian has it).

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brunt_testbed::server::{Delay, Listen, ServedProtocol, Server, ServerConfig};
use brunt_testbed::tls::Tls;
use serde_json::{Value, json};

use crate::program::{Directory, run};
use crate::report::report;

fn echo(config: ServerConfig) -> Server {
    Server::start(ServerConfig { speaks: ServedProtocol::WebSocket, ..config }).unwrap()
}

#[test]
fn every_message_comes_back_and_is_counted_on_both_sides() {
    let server = echo(ServerConfig::default());
    let url = server.url();
    for (n, args) in [
        (500, ["-c", "1", "-n", "500"].as_slice()),
        (500, &["-c", "7", "-n", "500", "--binary", "--message", "300B"]),
        (500, &["-c", "7", "-n", "500", "--pipeline", "5", "--message", "70KB"]),
        (40, &["-c", "3", "-n", "40", "--message", "3MB", "--timeout", "60s"]),
        (200, &["-c", "5", "-n", "200", "-r", "1000"]),
        (300, &["-c", "5", "-n", "300", "--deflate", "--message", "5000B"]),
        (10, &["-c", "2", "-n", "10", "--message", ""]),
    ] {
        let before = server.requests();
        let report = report(0, [args, &[&url]].concat());
        report.assert_all(n, 0);
        assert_eq!(server.requests() - before, n, "{args:?}");
        assert_eq!(report.number("/times/handshake/count"), report.connections("made"), "{args:?}");
    }
}

#[test]
fn a_connection_for_each_message() {
    let server = echo(ServerConfig::default());
    let report = report(0, ["-c", "4", "-n", "200", "--reconnect", &server.url()]);
    report.assert_all(200, 0);
    assert_eq!((report.connections("made"), server.connections()), (200, 200));
    assert_eq!(report.number("/times/handshake/count"), 200);
    let handshakes = report.number("/times/handshake/quantiles/0/value_ns");
    assert!(
        report.number("/times/response/quantiles/0/value_ns") > handshakes,
        "the handshake is in the response time"
    );
}

#[test]
fn over_tls_and_unix_sockets() {
    let dir = Directory::new();
    let server = echo(ServerConfig { tls: Some(Tls::default()), ..ServerConfig::default() });
    let trusted = dir.file("ca.pem", server.certificate_pem().unwrap());
    let over_tls = report(0, ["-c", "3", "-n", "100", "--cacert", &trusted, &server.url()]);
    over_tls.assert_all(100, 0);
    assert_eq!((over_tls.number("/times/tls/count"), over_tls.number("/times/handshake/count")), (3, 3));
    assert!(server.url().starts_with("wss://"));
    let socket = dir.path("socket");
    let server = echo(ServerConfig { address: Listen::Unix(socket.clone().into()), ..ServerConfig::default() });
    report(0, ["-c", "3", "-n", "100", "--unix-socket", &socket, "ws://localhost/"]).assert_all(100, 0);
    assert_eq!(server.requests(), 100);
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn what_goes_wrong_has_its_name() {
    let wrong = echo(ServerConfig { error_rate: 0.3, seed: 5, ..ServerConfig::default() });
    let report_of_wrong = report(0, ["-c", "2", "-n", "200", &wrong.url()]);
    let mismatches = report_of_wrong.failures()["mismatch"];
    assert!((30..90).contains(&mismatches), "{mismatches}");
    assert_eq!(report_of_wrong.outcome("answered") + mismatches, 200);
    // The echo that is owed goes with its connection; the last ones need no other.
    let made = report_of_wrong.connections("made");
    assert!((mismatches..=mismatches + 2).contains(&made), "{made} connections, {mismatches} mismatches");

    let closing = echo(ServerConfig {
        close_after: Some(10),
        delay: Delay::Fixed(std::time::Duration::from_millis(1)),
        ..ServerConfig::default()
    });
    let report_of_closing = report(0, ["-c", "2", "-n", "100", "--pipeline", "3", &closing.url()]);
    for reason in report_of_closing.reasons().keys() {
        let known =
            ["closed: the peer closed with 1001 going away", "closed: the connection ended with an earlier call"];
        assert!(known.contains(&reason.as_str()), "{reason}");
    }

    let nginx = crate::nginx::Nginx::start("location / { return 403; }");
    let refused = report(3, ["-c", "1", "-n", "3", &nginx.url("/").replace("http", "ws")]);
    assert_eq!(
        refused.reasons(),
        BTreeMap::from([("handshake: the server answered 403, not 101 Switching Protocols".to_owned(), 3)])
    );
}

#[test]
fn pushes_are_counted_and_answer_nothing() {
    let push = Some(std::time::Duration::from_millis(50));
    let server = echo(ServerConfig { push, ..ServerConfig::default() });
    // Longer than any machine stands still.
    let report = report(0, ["-c", "2", "-r", "4", "-d", "7s", &server.url()]);
    assert_eq!(report.outcome("due"), 28);
    assert!(report.number("/outcomes/unasked") > 10, "{:?}", report.at("/outcomes"));
}

#[test]
fn flags_that_are_wrong() {
    let dir = Directory::new();
    let binary = dir.file("binary", b"\xff\xfe");
    for (args, expected) in [
        (["--message", &format!("@{binary}")].as_slice(), "the message is not UTF-8, as text must be: give --binary"),
        (&["--message", "@/nonexistent"], "cannot read /nonexistent"),
        (&["--message", "17MB"], "--message: expected at most 16 MB"),
        (&["--subprotocol", "a b"], "the subprotocol 'a b' is not one"),
        (&["-H", "Upgrade: h2c"], "header upgrade is the handshake's own"),
        (&["-H", "Sec-WebSocket-Protocol: chat"], "give --subprotocol"),
        (&["-m", "POST"], "--method belongs to http://, https://, and the URL's scheme is ws: leave it out"),
    ] {
        let done = run([args, &["ws://127.0.0.1:9/"]].concat()).with_status(2);
        assert!(done.stderr.contains(expected), "{args:?}: {}", done.stderr);
    }
}

/// Python's websockets, on a free port. It writes down each connection as it ends.
pub struct Python {
    child: Child,
    lines: BufReader<ChildStdout>,
    port: u64,
}

const SERVER: &str = r#"
import asyncio, json, websockets

async def push(socket):
    while True:
        await asyncio.sleep(0.02)
        await socket.send("push")

async def serve(socket, path):
    pushing = asyncio.create_task(push(socket)) if path == "/push" else None
    messages = []
    try:
        async for message in socket:
            if message not in messages and len(messages) < 10:
                messages.append(message if isinstance(message, str) else None)
            if path == "/fragments":
                await socket.send([message[:3], message[3:4], message[4:]])
            else:
                await socket.send(message)
    finally:
        if pushing:
            pushing.cancel()
        await socket.wait_closed()
        print(json.dumps({
            "path": path,
            "messages": messages if len(str(messages)) < 100 else None,
            "code": socket.close_code,
            "subprotocol": socket.subprotocol,
            "extensions": [extension.name for extension in socket.extensions],
            "authorization": socket.request_headers.get("Authorization"),
            "x": socket.request_headers.get("X-Test"),
        }), flush=True)

async def main():
    server = await websockets.serve(
        serve, "127.0.0.1", 0, subprotocols=["superchat", "chat"], ping_interval=0.02, max_size=None)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Future()

asyncio.run(main())
"#;

impl Python {
    pub fn start() -> Self {
        // Debian's own: another Python may have no such module.
        let mut child = Command::new("/usr/bin/python3")
            .args(["-c", SERVER])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("{e}: make test installs python3-websockets"));
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut port = String::new();
        lines.read_line(&mut port).unwrap();
        let port = port.trim().parse().unwrap_or_else(|_| panic!("no server: make test installs python3-websockets"));
        Self { child, lines, port }
    }

    pub fn url(&self, path: &str) -> String {
        format!("ws://127.0.0.1:{}{path}", self.port)
    }

    /// What it wrote about the next connection that ended.
    pub fn ended(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "needs python3-websockets: make test installs it"]
fn another_implementation_understands_and_is_understood() {
    let mut server = Python::start();
    for (path, args) in [
        ("/", [].as_slice()),
        ("/fragments", &[]),
        ("/", &["--binary", "--message", "70KB"]),
        ("/", &["--deflate", "--message", "70KB"]),
        ("/fragments", &["--deflate", "--message", "5000B"]),
        ("/", &["--deflate", "--reconnect"]),
        ("/", &["-r", "200"]),
    ] {
        let report = report(0, [["-c", "3", "-t", "1", "-n", "60"].as_slice(), args, &[&server.url(path)]].concat());
        report.assert_all(60, 0);
        let connections = report.connections("made");
        for _ in 0..connections {
            let ended = server.ended();
            assert_eq!(ended["code"], 1000, "{args:?}: an orderly close: {ended}");
            let extensions: &[&str] = if args.contains(&"--deflate") { &["permessage-deflate"] } else { &[] };
            assert_eq!(ended["extensions"], serde_json::json!(extensions), "{args:?}");
        }
    }
}

#[test]
#[ignore = "needs python3-websockets: make test installs it"]
fn a_handshake_says_what_it_is_told_to() {
    let mut server = Python::start();
    let url = server.url("/chat?room=1").replace("127.0.0.1", "me:secret@127.0.0.1");
    let args = ["-c", "1", "-n", "5", "--subprotocol", "chat", "--subprotocol", "soap", "-H", "X-Test: yes", &url];
    report(0, args).assert_all(5, 0);
    let ended = server.ended();
    assert_eq!(ended["path"], "/chat?room=1");
    assert_eq!(ended["subprotocol"], "chat");
    assert_eq!(ended["x"], "yes");
    assert_eq!(ended["authorization"], "Basic bWU6c2VjcmV0");
}

#[test]
#[ignore = "needs python3-websockets: make test installs it"]
fn each_connection_has_a_url_and_a_message() {
    let dir = Directory::new();
    let mut server = Python::start();
    let of_you = server.url("/b").replace("127.0.0.1", "you:pw@127.0.0.1");
    let urls = dir.file("urls", format!("/a?token=t0p\n# a comment\n{of_you}\n/c\n"));
    let messages = dir.file("messages", "one\r\n\ntwo\n");
    let lines = ["--url-lines", &urls, "--body-lines", &messages, "--basic", "me:pw"];
    // As many connections as workers make ahead, and a connection for each call.
    for (count, flags) in [(40, ["-c", "4", "-t", "2"].as_slice()), (4, &["-c", "1", "-t", "1", "--reconnect"])] {
        let count_flag = ["-n", &count.to_string()].map(str::to_owned);
        let url = server.url("/unused");
        let words =
            flags.iter().copied().chain(count_flag.iter().map(String::as_str)).chain(lines).chain([url.as_str()]);
        let report = report(0, words);
        report.assert_all(count, 0);
        let mut seen: Vec<_> = (0..4).map(|_| server.ended()).collect();
        seen.sort_by_key(|ended| ended["path"].to_string() + &ended["messages"].to_string());
        let seen: Vec<_> =
            seen.iter().map(|ended| (&ended["path"], &ended["messages"], &ended["authorization"])).collect();
        let (me, you) = (&json!("Basic bWU6cHc="), &json!("Basic eW91OnB3"));
        let (one, two) = (&json!(["one"]), &json!(["two"]));
        let expected = [("/a?token=t0p", one, me), ("/a?token=t0p", two, me), ("/b", two, you), ("/c", one, me)];
        assert!(
            seen.iter()
                .zip(&expected)
                .all(|((path, message, user), (at, sent, who))| { *path == *at && message == sent && user == who }),
            "{flags:?}: {seen:?}"
        );
        let named = report.at("/names/requests").as_array().unwrap().iter();
        let mut named: Vec<_> = named.map(|named| (named["name"].as_str().unwrap(), named["due"].as_u64())).collect();
        named.sort_unstable();
        // Whichever connection is free makes the next call.
        assert_eq!(named.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["/a", "/b", "/c"], "{flags:?}");
        let calls: Option<Vec<u64>> = named.iter().map(|(_, calls)| *calls).collect();
        let calls = calls.unwrap();
        assert!(calls.iter().sum::<u64>() == count && calls.iter().all(|calls| *calls > 0), "{flags:?}: {calls:?}");
        assert!(!report.at("/plan").to_string().contains("t0p"));
    }
    let wrong = |urls: &str, messages: &str, expected: &str| {
        let (urls, messages) = (dir.file("urls", urls), dir.file("messages", messages));
        let done = run(["--url-lines", &urls, "--body-lines", &messages, &server.url("/")]).with_status(2);
        assert!(done.stderr.contains(expected), "{}", done.stderr);
    };
    wrong("/a\nws://other.test/\n", "one", "urls, line 2: ws://other.test is not the target");
    wrong("/a\nhttp://127.0.0.1/\n", "one", "urls, line 2: 'http://127.0.0.1' is not ws:// or wss://");
    wrong("# nothing\n", "one", "there is no URL in it");
    wrong("/a", "\n", "there is no message in it");
}

/// Connections decide the names of calls. Those that no connection carried are dealt to them in turn: each is in a row, and
/// in what is asked by name, whether the target is slow or gone.
#[test]
fn calls_that_no_connection_carried_have_names() {
    let dir = Directory::new();
    let urls = dir.file("urls", "/a\n/b\n/c\n");
    let slow = std::time::Duration::from_millis(50);
    let server = echo(ServerConfig { delay: Delay::Uniform { min: slow, max: slow }, ..ServerConfig::default() });
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gone = format!("ws://{gone}/");
    for (status, url) in [(1, server.url()), (3, gone)] {
        for threads in ["1", "2"] {
            let args = ["-c", "2", "-t", threads, "-r", "2000", "-d", "1s", "--url-lines", &urls];
            let asked = ["--threshold", "/a:error_rate<50%", "--threshold", "/b:error_rate<50%", &url];
            let report = report(status, [args.as_slice(), &asked].concat());
            let rows = report.at("/names/requests").as_array().unwrap();
            let sum = |figure: &str| rows.iter().filter_map(|row| row[figure].as_u64()).sum::<u64>();
            for figure in ["due", "unsent", "unfinished"] {
                assert_eq!(
                    &json!(sum(figure)),
                    report.at(&format!("/outcomes/{figure}")),
                    "{url}: {figure} of {rows:?}"
                );
            }
            // Two connections have the first two lines; attempts that take the place of others have the next ones.
            let due =
                |name: &str| rows.iter().find(|row| row["name"] == name).map_or(0, |row| row["due"].as_u64().unwrap());
            let dues = ["/a", "/b", "/c"].map(due);
            assert!(status == 3 || dues[0].abs_diff(dues[1]) < 200 && dues[2] == 0, "{url}: {dues:?}");
            let held: Vec<_> = report.at("/thresholds").as_array().unwrap().iter().map(|one| &one["held"]).collect();
            assert!(held[..2].iter().all(|held| **held == json!(false)), "{url}: {:?}", report.at("/thresholds"));
        }
    }
}

#[test]
#[ignore = "needs python3-websockets: make test installs it"]
fn pings_are_answered_while_calls_wait() {
    // A ping every 20 ms, whose pong must come within 20 s; and no message for half a second at a time, longer in all than
    // any machine stands still.
    let server = Python::start();
    let report = report(0, ["-c", "1", "-r", "2", "-n", "14", &server.url("/")]);
    report.assert_all(14, 0);
    assert!(report.number("/bytes/wire_out_bytes") > 14 * 11 + 20 * 6, "{:?}", report.at("/bytes"));
}

#[test]
fn a_denied_handshake_is_tried_once_a_call() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (url, asked) = (format!("ws://{}/", listener.local_addr().unwrap()), Arc::new(AtomicU64::new(0)));
    let counted = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut bytes) = (stream.unwrap(), [0; 4000]);
            if std::io::Read::read(&mut stream, &mut bytes).is_ok_and(|n| n > 0) {
                counted.fetch_add(1, Ordering::SeqCst);
                let _ = std::io::Write::write_all(&mut stream, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
            }
        }
    });
    for (args, attempts) in [(&["--once"][..], 1), (&["-n", "3", "-c", "3"], 3), (&["-n", "5", "-c", "2"], 5)] {
        asked.store(0, Ordering::SeqCst);
        run([&["-t", "1"], args, &[&url]].concat()).with_status(3);
        assert_eq!(asked.load(Ordering::SeqCst), attempts, "{args:?}");
    }
}
