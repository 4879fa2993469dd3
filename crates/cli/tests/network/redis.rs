//! Plain TCP against a real redis-server, which counts what it gets; over TLS against the built-in target.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use brunt_testbed::server::{Server, ServerConfig};
use brunt_testbed::tls::Tls;

use crate::nginx::free_port;
use crate::program::{Directory, run, until};
use crate::report::report;

/// A redis-server of the test's own, on a port and a Unix socket. It ends with its test.
pub struct Redis {
    dir: Directory,
    child: Child,
    port: u16,
}

impl Redis {
    pub fn start() -> Self {
        let dir = Directory::new();
        for _ in 0..5 {
            let port = free_port();
            let mut child = Command::new("redis-server")
                .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", "", "--appendonly", "no"])
                .args(["--unixsocket", &dir.path("socket"), "--dir", &dir.path("")])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .unwrap_or_else(|e| panic!("{e}: make test installs redis-server"));
            while child.try_wait().unwrap().is_none() {
                if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    return Self { dir, child, port };
                }
                sleep(Duration::from_millis(5));
            }
        }
        panic!("redis-server does not start");
    }

    pub fn url(&self) -> String {
        format!("tcp://127.0.0.1:{}", self.port)
    }

    /// How often it was given a command.
    pub fn calls(&self, command: &str) -> u64 {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.write_all(b"INFO commandstats\r\n").unwrap();
        let mut reader = BufReader::new(stream);
        let mut length = String::new();
        reader.read_line(&mut length).unwrap();
        let mut text = vec![0; length.trim()[1..].parse().unwrap()];
        reader.read_exact(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
        line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "needs redis-server: make test installs it"]
fn what_brunt_says_redis_has_counted() {
    let redis = Redis::start();
    let (url, socket) = (redis.url(), redis.dir.path("socket"));
    let ping = ["--send", "PING\\r\\n", "--until", "\\r\\n", "--expect", "+PONG"];
    report(0, [["-n", "500", "-c", "5"].as_slice(), &ping, &[&url]].concat()).assert_all(500, 0);
    report(0, [["-n", "300", "-c", "3", "--pipeline", "10"].as_slice(), &ping, &[&url]].concat()).assert_all(300, 0);
    report(0, [["-n", "200", "-r", "1000"].as_slice(), &ping, &[&url]].concat()).assert_all(200, 0);
    report(0, [["-n", "100", "-c", "4", "--reconnect"].as_slice(), &ping, &[&url]].concat()).assert_all(100, 0);
    let over_socket = [["-n", "50", "--unix-socket", &socket].as_slice(), &ping, &["tcp://localhost"]].concat();
    report(0, over_socket).assert_all(50, 0);
    assert_eq!(redis.calls("ping"), 1150);
    // Two commands in one call, whose answers together have so many bytes.
    let both = [
        "-n",
        "100",
        "--send",
        "SET k hello\\r\\nGET k\\r\\n",
        "--bytes",
        "16",
        "--expect",
        "+OK\\r\\n$5\\r\\nhello\\r\\n",
    ];
    report(0, [both.as_slice(), &[&url]].concat()).assert_all(100, 0);
    assert_eq!((redis.calls("set"), redis.calls("get")), (100, 100));
    // Without an answer to wait for: what was said to be sent has come. Nor does redis answer, as it would read no more from
    // a connection on which it cannot.
    let silent = "CLIENT REPLY SKIP\\r\\nINCR n\\r\\n";
    report(0, ["-n", "1000", "-c", "2", "--send", silent, &url]).assert_all(1000, 0);
    until("all have come", || redis.calls("incr") >= 1000);
    assert_eq!(redis.calls("incr"), 1000);
}

#[test]
#[ignore = "needs redis-server: make test installs it"]
fn another_answer_is_a_mismatch() {
    let redis = Redis::start();
    let args = ["-n", "20", "-c", "2", "--send", "PONG\\r\\n", "--until", "\\r\\n", "--expect", "+PONG", &redis.url()];
    let report = report(1, args);
    let expected = "mismatch: another answer came than --expect says".to_owned();
    assert_eq!(report.reasons(), BTreeMap::from([(expected, 20)]));
    assert!(report.connections("made") >= 19, "an answer that is owed goes with its connection");
}

#[test]
fn over_tls() {
    let server =
        Server::start(ServerConfig { tls: Some(Tls::default()), body_bytes: 5, ..ServerConfig::default() }).unwrap();
    let dir = Directory::new();
    let trusted = dir.file("ca.pem", server.certificate_pem().unwrap());
    let url = format!("tls://127.0.0.1:{}", server.port());
    let send = "GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n";
    let report =
        report(0, ["-n", "50", "-c", "3", "--cacert", &trusted, "--send", send, "--until", "\\r\\n\\r\\nabcde", &url]);
    report.assert_all(50, 0);
    assert_eq!(server.requests(), 50);
}

#[test]
fn flags_that_are_wrong() {
    const URL: &str = "tcp://127.0.0.1:9";
    for (args, expected) in [
        ([URL].as_slice(), "nothing says what to send: give --send, such as --send 'PING\\r\\n' --until '\\n'"),
        (&["--send", "a\\q", URL], "column 2: expected one of \\r \\n \\t \\0 \\\\ \\xHH"),
        (&["--send", "a", "--until", "", URL], "--until: expected the bytes that end an answer, got none"),
        (&["--send", "a", "--bytes", "0", URL], "--bytes: expected a number from 1 to 16777216, got '0'"),
        (&["--send", "a", "--length-prefix", "3", URL], "[possible values: 1, 2, 4, 2le, 4le]"),
        (&["--send", "a", "--until", "b", "--bytes", "1", URL], "cannot be used with"),
        (
            &["--send", "a", "--expect", "b", URL],
            "nothing says where it ends: give --until, --bytes or --length-prefix",
        ),
        (&["--send", "a", "tcp://127.0.0.1"], "the URL names no port, and tcp:// has none of its own"),
        (&["--send", "a", "tcp://me@127.0.0.1:9"], "tcp:// takes no user name"),
    ] {
        let done = run(args).with_status(2);
        let said = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(expected), "{args:?}: {said}");
    }
}

/// Elements of a list are rows, read before the load alone; a plan carries them, and nothing of the password.
#[test]
#[ignore = "needs redis-server: make test installs it"]
fn elements_of_a_list_are_rows() {
    let redis = Redis::start();
    let mut stream = TcpStream::connect(("127.0.0.1", redis.port)).unwrap();
    let (mut commands, count) = (String::new(), 20_001);
    for n in 0..count {
        let element = format!("größe {n}");
        let push = format!("*3\r\n$5\r\nRPUSH\r\n$5\r\nusers\r\n${}\r\n{element}\r\n", element.len());
        commands.push_str(&push);
    }
    commands += "CONFIG SET requirepass hunter2\r\n";
    stream.write_all(commands.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    for _ in 0..=count {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert!(line.starts_with([':', '+']), "{line}");
    }
    let server = Server::start(ServerConfig::default()).unwrap();
    let directory = Directory::new();
    let text = |password: &str| {
        format!(
            "local brunt = require 'brunt'
             local http = brunt.http {{ base = '{}' }}
             local list = brunt.redis_list {{ address = '127.0.0.1:{}', key = 'users', password = {password} }}
             assert(list:length() == {count})
             local rows = list:queue()
             brunt.scenario('s', function() http:get('/', {{ name = rows:next() }}) end)
               :inject {{ brunt.iterations_shared(2, 3) }}",
            server.url().trim_end_matches('/'),
            redis.port,
        )
    };
    let script = directory.file("s.lua", text("brunt.env('PASSWORD')"));
    let plan = directory.path("plan.json");
    let env = ["--env", "PASSWORD=hunter2", "-t", "2"];
    let done = run([&["run", &script, "--write-plan", &plan, "--format", "json"][..], &env].concat()).with_status(0);
    for n in 0..3 {
        assert!(done.stdout.contains(&format!("\"größe {n}\"")), "{}", done.stdout);
    }
    assert!(!std::fs::read_to_string(&plan).unwrap().contains("hunter2"));
    let refused = run([&["run", &script, "--sandbox", "--dry-run"][..], &env].concat()).with_status(2);
    assert!(refused.stderr.contains("which the sandbox does not let it"), "{refused:#?}");
    let script = directory.file("wrong.lua", text("'hunter3'"));
    let wrong = run(["run", &script]).with_status(2);
    assert!(
        wrong.stderr.contains("wrong.lua:3: brunt.redis_list of 127.0.0.1:") && wrong.stderr.contains("WRONGPASS"),
        "{wrong:#?}"
    );
    drop(redis);
    // Without Redis: what the plan needs it has.
    let again = run([&["--plan", &plan][..], &["--dry-run"]].concat());
    assert!(again.status == Some(0) || again.stderr.contains("PASSWORD"), "{again:#?}");
}
