//! `brunt replay`: logs against a server that writes down what it is asked, connection by connection.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::program::{Directory, run};

/// A request as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Asked {
    connection: usize,
    line: String,
    host: String,
    cookie: String,
}

/// A server that sets a cookie on each connection's first answer, and writes down what it is asked.
struct Server {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let log = Arc::clone(&asked);
        // It ends with the test's process.
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let (stream, log) = (stream.unwrap(), Arc::clone(&log));
                thread::spawn(move || converse(number, &stream, &log));
            }
        });
        Self { address, asked }
    }

    fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn converse(connection: usize, stream: &TcpStream, log: &Mutex<Vec<Asked>>) -> Option<()> {
    let mut lines = BufReader::new(stream).lines();
    let mut is_first = true;
    loop {
        let line = lines.next()?.ok()?;
        let (mut host, mut cookie, mut length) = (String::new(), String::new(), 0);
        loop {
            let field = lines.next()?.ok()?;
            match field.split_once(": ") {
                Some(("Host", value)) => value.clone_into(&mut host),
                Some(("Cookie", value)) => value.clone_into(&mut cookie),
                Some(("Content-Length", value)) => length = value.parse().unwrap(),
                _ if field.is_empty() => break,
                _ => {}
            }
        }
        assert_eq!(length, 0, "no log here has a body");
        let body = if line.starts_with("HEAD ") { "" } else { "ok" };
        log.lock().unwrap().push(Asked { connection, line, host, cookie });
        let sets =
            if std::mem::take(&mut is_first) { format!("Set-Cookie: sid={connection}\r\n") } else { String::new() };
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n{sets}\r\n{body}");
        (&*stream).write_all(answer.as_bytes()).ok()?;
    }
}

/// A line of the combined format, so many seconds after a midnight.
fn line(second: u32, client: u32, method: &str, path: &str, status: u16) -> String {
    let (minute, second) = (second / 60, second % 60);
    format!(
        "10.0.0.{client} - - [01/Jan/2026:00:{minute:02}:{second:02} +0000] \"{method} {path} HTTP/1.1\" {status} 2 \"-\" \"curl/8\"\n"
    )
}

/// Ten seconds of five clients, each asking for pages by number; and what each asks for, in its order.
fn log() -> (String, BTreeMap<u32, Vec<String>>) {
    let (mut text, mut by_client) = (String::new(), BTreeMap::<u32, Vec<String>>::new());
    for nth in 0..200_u32 {
        let (client, path) = (nth % 5, format!("/items/{nth}?token=s3cret"));
        let method = if nth % 7 == 0 { "HEAD" } else { "GET" };
        text += &line(nth / 20, client, method, &path, 200);
        by_client.entry(client).or_default().push(format!("{method} {path} HTTP/1.1"));
    }
    (text, by_client)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// What each connection was asked, in its order.
fn by_connection(asked: &[Asked]) -> BTreeMap<usize, Vec<String>> {
    let mut all = BTreeMap::<usize, Vec<String>>::new();
    for one in asked {
        all.entry(one.connection).or_default().push(one.line.clone());
    }
    all
}

#[test]
fn what_is_asked_is_what_the_log_has_session_by_session() {
    let (server, dir) = (Server::start(), Directory::new());
    let (text, by_client) = log();
    let file = dir.file("access.log", text);
    // Compressed, as rotated logs are.
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&std::fs::read(&file).unwrap()).unwrap();
    let file = dir.file("access.log.gz", packed.finish().unwrap());
    let done = run(["replay", "--no-save", "--format", "json", "--speed", "20x", &file, &server.url()]).with_status(0);
    assert!(done.stderr.contains("combined format, recognised"), "{}", done.stderr);
    let asked = server.asked();
    let (mut came, mut expected): (Vec<_>, Vec<_>) =
        (by_connection(&asked).into_values().collect(), by_client.into_values().collect());
    came.sort();
    expected.sort();
    assert!(came == expected, "a connection for each session, and its requests in their order: {} of 5", came.len());
    assert!(asked.iter().all(|asked| asked.host == server.address.to_string()));
    // Each session has the cookie that it was given, and no other's.
    let is_own = |asked: &Asked| asked.cookie.is_empty() || asked.cookie == format!("sid={}", asked.connection);
    assert!(asked.iter().all(is_own) && asked.iter().filter(|asked| asked.cookie.is_empty()).count() == 5);
    let result = json(&done.stdout);
    assert_eq!(result["outcomes"]["due"], 200);
    assert_eq!(result["replay"]["sessions"], 5);
    assert_eq!(result["replay"]["all"]["compared_status"], 200);
    assert_eq!(result["replay"]["all"]["other_status"], 0);
    assert_eq!(result["replay"]["templates"][0]["name"], "GET /items/{n}");
    assert!(!done.stdout.contains("s3cret"), "what may be secret in a log is not shown again");
}

#[test]
fn a_window_at_the_logs_own_speed_is_shared_by_two_threads_and_says_how_far_it_is() {
    let (server, dir) = (Server::start(), Directory::new());
    let file = dir.file("access.log", log().0);
    let window = ["--window", "00:00:04-00:00:06", "-t", "2", "-v"];
    let url = server.url();
    let args = [&["replay", "--no-save", "--format", "json"][..], &window, &[&file, &url]].concat();
    let done = run(args).with_status(0);
    let result = json(&done.stdout);
    assert_eq!((&result["outcomes"]["due"], &result["replay"]["sessions"]), (&40.into(), &5.into()));
    // Those of the seconds 4 and 5, each client's in their order on a connection of its own.
    let mut expected = BTreeMap::<u32, Vec<String>>::new();
    for nth in 80..120 {
        let method = if nth % 7 == 0 { "HEAD" } else { "GET" };
        expected.entry(nth % 5).or_default().push(format!("{method} /items/{nth}?token=s3cret HTTP/1.1"));
    }
    let mut came: Vec<_> = by_connection(&server.asked()).into_values().collect();
    came.sort();
    let mut expected: Vec<_> = expected.into_values().collect();
    expected.sort();
    assert!(came == expected, "{} connections", came.len());
    assert!(done.stderr.contains("00:00:05 in the log, 1s left"), "{}", done.stderr);
}

#[test]
fn three_times_the_requests_are_three_times_the_sessions() {
    let (server, dir) = (Server::start(), Directory::new());
    let (text, by_client) = log();
    let file = dir.file("access.log", text);
    let args = ["replay", "--no-save", "--quiet", "--scale", "3x", "--speed", "20x", &file, &server.url()];
    run(args).with_status(0);
    let came = by_connection(&server.asked());
    assert_eq!((came.len(), came.values().map(Vec::len).sum::<usize>()), (15, 600));
    let mut expected: Vec<_> =
        by_client.into_values().flat_map(|lines| [lines.clone(), lines.clone(), lines]).collect();
    let mut came: Vec<_> = came.into_values().collect();
    came.sort();
    expected.sort();
    assert!(came == expected, "{} connections", came.len());
}

#[test]
fn what_is_wrong_with_lines_is_counted_by_name() {
    let (server, dir) = (Server::start(), Directory::new());
    let mut text = line(0, 1, "GET", "/a", 200).into_bytes();
    text.extend(line(0, 1, "POST", "/a", 200).bytes());
    text.extend(line(0, 1, "GET", "https://elsewhere.test/a", 200).bytes());
    text.extend(b"\xff\xfe\x00\n");
    text.extend(vec![b'x'; 10 << 20]);
    text.extend(b"\n10.0.0.1 - - [01/Ja\n");
    text.extend(line(0, 1, "GET", "/b", 200).replace("2026", "2036").bytes());
    text.extend(line(0, 1, "GET", "/b", 200).replace("01/Jan", "41/Jan").bytes());
    // The same moment by another clock.
    text.extend(line(0, 1, "GET", "/c", 200).replace("00:00:00 +0000", "02:00:00 +0200").bytes());
    text.extend(line(0, 1, "\\x16\\x03\\x01", "", 400).bytes());
    let file = dir.file("access.log", text);
    let done = run(["replay", "--no-save", "--format", "json", &file, &server.url()]).with_status(1);
    let result = json(&done.stdout);
    let expected = [
        ("bad_time", 1),
        ("binary", 1),
        ("incomplete", 1),
        ("no_request", 1),
        ("other_host", 1),
        ("time_jump", 1),
        ("too_long", 1),
        ("writes", 1),
    ];
    let expected: Value = expected.iter().map(|(name, count)| ((*name).to_owned(), Value::from(*count))).collect();
    assert_eq!(result["replay"]["skipped"], expected);
    assert_eq!(result["replay"]["lines"], 10);
    let lines: Vec<_> = server.asked().into_iter().map(|asked| asked.line).collect();
    assert_eq!(lines, ["GET /a HTTP/1.1", "GET /c HTTP/1.1"]);
}

#[test]
fn requests_are_chosen_and_changed() {
    let (server, dir) = (Server::start(), Directory::new());
    let mut text = String::new();
    for (second, path) in [(0, "/v1/a"), (60, "/v1/b"), (60, "/other"), (120, "/v1/c")] {
        text += &line(second, 1, "GET", path, 200);
    }
    let file = dir.file("access.log", text);
    let chosen = ["--window", "00:01-00:02", "--filter", "path^=/v1", "--rewrite", "/v1=/v2", "-H", "Host: shop.test"];
    let url = server.url();
    let args = [&["replay", "--no-save", "--format", "json"][..], &chosen, &[&file, &url]].concat();
    let result = json(&run(args).with_status(0).stdout);
    assert_eq!(
        (&result["replay"]["skipped"]["outside_window"], &result["replay"]["skipped"]["filtered"]),
        (&2.into(), &1.into())
    );
    let asked = server.asked();
    assert_eq!((asked.len(), asked[0].line.as_str(), asked[0].host.as_str()), (1, "GET /v2/b HTTP/1.1", "shop.test"));
}

#[test]
fn a_replay_fails_where_it_differs_too_much() {
    let (server, dir) = (Server::start(), Directory::new());
    let mut text = String::new();
    for (path, status) in [("/a", 200), ("/b", 404)] {
        let _ = write!(text, "{}", line(0, 1, "GET", path, status));
    }
    let file = dir.file("access.log", text);
    let with = |condition: &str, status: i32| {
        let args = ["replay", "-v", "--no-save", "--fail-if", condition, &file, &server.url()];
        run(args).with_status(status).stdout
    };
    let text = with("other_status>10%", 1);
    assert!(text.starts_with("✗ 1 of 1 threshold failed: fail-if other_status>10% (50.00%)"), "{text}");
    assert!(text.contains("✗ fail-if other_status>10%"), "{text}");
    assert!(text.contains("200 came, the log has 404: 1"), "{text}");
    assert!(with("other_status>50%", 0).contains("✓ fail-if other_status>50%"));
    assert!(with("GET /a: other_status>0%", 0).contains("0.00%"));
    assert!(text.contains("\nbrunt replay "), "{text}");
}

#[test]
fn a_session_waits_for_its_answers_and_its_user_thinks() {
    let (server, dir) = (Server::start(), Directory::new());
    let (text, by_client) = log();
    let file = dir.file("access.log", text);
    let args = ["replay", "--no-save", "--format", "json", "--think", "--speed", "20x", &file, &server.url()];
    let result = json(&run(args).with_status(0).stdout);
    assert_eq!((&result["plan"]["load"]["replay"]["think"], &result["outcomes"]["due"]), (&true.into(), &200.into()));
    let mut came: Vec<_> = by_connection(&server.asked()).into_values().collect();
    came.sort();
    let mut expected: Vec<_> = by_client.into_values().collect();
    expected.sort();
    assert!(came == expected, "{} connections", came.len());
}

#[test]
fn calls_without_sessions_share_connections() {
    let (server, dir) = (Server::start(), Directory::new());
    let file = dir.file("access.log", log().0);
    let args = ["replay", "--no-save", "--quiet", "--session", "none", "--speed", "5x", &file, &server.url()];
    run(args).with_status(0);
    let asked = server.asked();
    let connections = by_connection(&asked).len();
    assert_eq!(asked.len(), 200);
    assert!(connections < 100, "{connections} connections for calls that come one after the other");
    assert!(asked.iter().all(|asked| asked.cookie.is_empty()), "nobody keeps cookies");
}

#[test]
fn what_cannot_be_replayed_is_said_with_a_way_out() {
    let dir = Directory::new();
    let url = "http://127.0.0.1:1/";
    let (prose, empty, post) = (
        dir.file("prose.txt", "once upon a time\n"),
        dir.file("empty.log", "\n"),
        dir.file("post.log", line(0, 1, "POST", "/a", 200)),
    );
    let garbage = dir.file("garbage.log", "once upon a time\n\u{1}\u{2}\n");
    let mixed =
        dir.file("mixed.log", line(0, 1, "POST", "/a", 200) + &line(0, 1, "GET", "https://elsewhere.test/", 200));
    let targets = dir.file("targets.json", "{\"method\":\"GET\",\"url\":\"/a\"}\n");
    for (args, status, said) in [
        (vec!["nowhere.log", url], 2, "cannot read the log nowhere.log"),
        (vec![&prose, url], 2, "give --log-format (combined, common,"),
        (vec![&empty, url], 2, "the log is empty"),
        (vec![&post, url], 1, "every request writes: --unsafe sends them"),
        (vec!["--log-format", "combined", &garbage, url], 1, "no line gave a request"),
        (vec![&mixed, url], 1, "every line was skipped, for reasons that the result counts"),
        (vec![&targets, url], 1, "--rate says how many requests come a second"),
        (vec![&post, "http://127.0.0.1:1/base"], 2, "leave /base out of the URL"),
        (vec![&post, "tcp://127.0.0.1:1/"], 2, "a log's requests are HTTP"),
        (vec!["--layout", "$status", &post, url], 2, "the format has no time"),
        (vec!["--fields", "path=a", &post, url], 2, "expected at least time=FIELD"),
        (vec!["--window", "10:00", &post, url], 2, "--window: expected FROM-TO such as 10:00-10:30"),
        (vec!["--filter", "where=1", &post, url], 2, "session before the operator, got 'where'"),
        (vec!["--rewrite", "a=b", &post, url], 2, "--rewrite: expected /FROM=/TO"),
        (vec!["--session", "who", &post, url], 2, "--session: expected client, cookie:NAME"),
        (vec!["--shift", "61s", &post, url], 2, "--shift: expected at most 60s, got 61s"),
        (vec!["--rate", "5", &post, url], 2, "--rate is for targets of vegeta"),
        (vec!["--loop", "-d", "1s", "-", url], 2, "standard input has none: give a file"),
        (vec!["--fail-if", "p95", &post, url], 2, "p95>2x"),
        (vec!["--loop", &post, url], 2, "--duration"),
        (vec!["--unsafe", &post, url], 3, "never answered"),
    ] {
        let args = [&["replay", "--no-save"][..], &args].concat();
        let done = run(&args).with_status(status);
        assert!([done.stderr, done.stdout].concat().contains(said), "{args:?}: {said}");
    }
}

#[test]
fn logs_of_several_servers_and_of_a_rotation_are_one_by_time() {
    let server = Server::start();
    let directory = Directory::new();
    let line = |second: u32, path: &str| {
        format!("203.0.113.7 - - [01/Jan/2026:10:00:{second:02} +0000] \"GET {path} HTTP/1.1\" 200 13 \"-\" \"-\"\n")
    };
    let newer = directory.file("access.log", [line(25, "/f"), line(26, "/g")].concat());
    let older = directory.file("access.log.1", [line(1, "/a"), "no request\n".to_owned(), line(20, "/d")].concat());
    let other = directory.file("other.log", [line(2, "/b"), line(3, "/c"), line(21, "/e")].concat().trim_end());
    let samples = directory.path("calls.csv");
    let url = server.url();
    let args =
        ["replay", &newer, &older, "--speed", "100x", &other, "--samples", &samples, "--allow-less", "50%", &url];
    let done = run(args.into_iter().chain(["--format", "json"])).with_status(0);
    let json: Value = serde_json::from_str(&done.stdout).unwrap();
    // None came too late for the window in which lines are sorted.
    assert_eq!((&json["replay"]["lines"], &json["replay"]["requests"]), (&8.into(), &7.into()), "{:#}", json["replay"]);
    let rows = std::fs::read_to_string(samples).unwrap();
    let mut called: Vec<(u64, &str)> = rows
        .lines()
        .filter(|row| row.contains(",GET /"))
        .map(|row| (row.split(',').next().unwrap().parse().unwrap(), row.split("GET /").nth(1).unwrap()))
        .collect();
    called.sort_unstable();
    let order: String = called.iter().filter_map(|(_, path)| path.chars().next()).collect();
    assert_eq!(order, "abcdefg", "{rows}");
    let refused = run(["replay", &newer, "-", &url]).with_status(2);
    assert!(refused.stderr.contains("standard input is replayed by itself"), "{refused:#?}");
    for (only, said) in [(&newer, "no URL is given: brunt replay "), (&url, "no log is given: brunt replay LOG http")] {
        let lacking = run(["replay", only, "--speed", "2x"]).with_status(2);
        assert!(lacking.stderr.contains(said), "{lacking:#?}");
    }
}

#[test]
fn durations_that_cannot_be_read_are_said() {
    let server = Server::start();
    let directory = Directory::new();
    let line = |second: u32, took: &str| {
        format!("{{\"time\":\"2026-01-01T10:00:0{second}Z\",\"url\":\"/a\",\"duration_s\":\"{took}\"}}\n")
    };
    let log = directory.file("log.ndjson", [line(0, "0.1"), line(1, "fast"), line(2, "-3")].concat());
    let args = ["replay", &log, "--speed", "100x", &server.url()];
    let text = run(args).with_status(0).stdout;
    assert!(text.contains("durations    2 requests with one that cannot be read"), "{text}");
    let json = json(&run(args.into_iter().chain(["--format", "json"])).with_status(0).stdout);
    assert_eq!(json["replay"]["unread_durations"], 2);
}
