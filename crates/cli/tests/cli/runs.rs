//! Whole runs against the built-in target: exit statuses, results and where they go.

use std::fs::File;
use std::io::Read as _;
use std::net::TcpListener;
use std::process::Stdio;

use brunt_testbed::server::{Delay, Server, ServerConfig};
use serde_json::Value;

use crate::program::{Directory, Done, brunt, done, nobody, run};

/// A target that this process serves.
pub fn target(config: ServerConfig) -> (Server, String) {
    let server = Server::start(config).unwrap();
    let url = server.url();
    (server, url)
}

fn plain() -> (Server, String) {
    target(ServerConfig::default())
}

fn json(done: &Done) -> Value {
    serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}: {done:#?}"))
}

#[test]
fn a_count_of_requests_is_exact() {
    for (n, args) in [
        (1, ["-n", "1", "-c", "8"].as_slice()),
        (1000, &["-n", "1k", "-c", "7", "-t", "3"]),
        (100, &["-n", "100", "-r", "10k", "-c", "3"]),
        (500, &["-n", "500", "--pipeline", "8"]),
        (20, &["-n", "20", "-c", "2", "--reconnect"]),
    ] {
        let (server, url) = plain();
        let done = run([args, &[&url]].concat()).with_status(0);
        assert_eq!(server.requests(), n, "{args:?} {done:#?}");
        assert_eq!(done.stderr, "", "not a terminal: nothing but the result");
    }
}

#[test]
fn a_run_without_a_failure_exits_with_0() {
    let (_server, url) = plain();
    run(["-d", "200ms", "--threshold", "error_rate==0", "--threshold", "rate>0.1", &url]).with_status(0);
}

#[test]
fn a_failed_threshold_exits_with_1() {
    let (_server, url) = target(ServerConfig { error_rate: 1.0, ..ServerConfig::default() });
    let done = run(["-n", "10", "--threshold", "error_rate<50%", &url]).with_status(1);
    assert!(done.stdout.contains("error_rate<50%"), "{}", done.stdout);
    let done = run(["-n", "10", "--threshold", "error_rate<50%", "--quiet", &url]).with_status(1);
    assert_eq!(done.stdout, "");
    assert!(done.stderr.contains("the threshold error_rate<50% failed: 100%"), "{}", done.stderr);
    run(["-n", "10", "--threshold", "error_rate<50%", "--ok-status", "503", &url]).with_status(0);
}

#[test]
fn a_threshold_beyond_repair_ends_the_run_where_it_is_to() {
    let (_server, url) = target(ServerConfig { error_rate: 1.0, ..ServerConfig::default() });
    let threshold = "error_rate < 1%";
    let aborting = format!("{threshold} abort");
    let done = run(["-c", "2", "-d", "30s", "--format", "json", "--threshold", &aborting, &url]).with_status(1);
    let result = json(&done);
    let cause = &result["ending"]["aborted"]["threshold"];
    // The calls of two connections are under way when it is judged, and have not failed.
    let got: f64 = cause["got"].as_str().unwrap().trim_end_matches('%').parse().unwrap();
    assert!(cause["threshold"] == threshold && (99.0..=100.0).contains(&got), "{cause}");
    assert!(result["measured"]["length_ns"].as_u64().unwrap() < 25_000_000_000);
    assert!(done.stderr.contains("error: aborted: the threshold"), "{}", done.stderr);
    let done = run(["-c", "2", "-d", "1500ms", "--threshold", "error_rate < 1%", &url]).with_status(1);
    assert!(!done.stdout.contains("aborted"), "{}", done.stdout);
}

#[test]
fn a_target_that_never_answers_exits_with_3() {
    let (_port, url) = nobody();
    let args = ["-d", "200ms", "--threshold", "error_rate<1%", &url];
    let done = run(args).with_status(3);
    assert!(done.stdout.contains("the target never answered: connect"), "{}", done.stdout);
    let done = run([&["--quiet"], args.as_slice()].concat()).with_status(3);
    assert!(done.stderr.contains(&format!("{url} never answered: connect")), "{}", done.stderr);
    // The backlog takes the connection, and nobody ever reads from it.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let done = run(["-n", "2", "-c", "2", "--timeout", "100ms", "--format", "json", &url]).with_status(3);
    assert!(done.stderr.contains("never answered: timeout"), "{}", done.stderr);
}

#[test]
fn results_go_where_they_are_wanted() {
    let dir = Directory::new();
    let (_server, url) = plain();
    let names = ["run.txt", "run.json", "run.csv"];
    let paths = names.map(|name| dir.path(name));
    dir.file("run.json", "what was there before");
    let files: Vec<_> = paths.iter().flat_map(|path| ["-o", path]).collect();
    let printed = run([&["-n", "50"], files.as_slice(), &[&url]].concat()).with_status(0).stdout;
    assert_eq!(dir.names(), ["run.csv", "run.json", "run.txt"], "and no traces beside them");
    let [text, json, csv] = paths.map(|path| std::fs::read_to_string(path).unwrap());
    // The file says more of the measurement.
    for line in printed.lines().filter(|line| !line.starts_with("Measurement")) {
        assert!(text.contains(line), "the file has every figure, and '{line}' is not in it:\n{text}");
    }
    assert!(text.contains("  stdev ") && !printed.contains("  stdev "), "what is printed fits a screen:\n{printed}");
    let verbose = run(["-n", "50", "-v", &url]).with_status(0).stdout;
    assert!(verbose.contains("  stdev "), "{verbose}");
    assert!(!text.contains('\x1b'), "{text}");
    assert!(serde_json::from_str::<Value>(&json).is_ok() && csv.contains(','), "{json}\n{csv}");
    assert!(!printed.contains('\x1b'), "{printed}");
}

#[test]
fn every_format_is_printed() {
    let (_server, url) = plain();
    let printed = |args: &[&str]| run([&["-n", "50"], args, &[&url]].concat()).with_status(0).stdout;
    let wrk = printed(&["--format", "wrk"]);
    assert!(wrk.starts_with("Running ") && wrk.contains("Requests/sec:") && !wrk.contains("Latency Distribution"));
    assert!(printed(&["--format", "wrk", "--latency"]).contains("Latency Distribution"));
    assert!(serde_json::from_str::<Value>(&printed(&["--format", "json"])).is_ok());
    assert!(printed(&["--format", "csv"]).lines().next().unwrap().contains(','));
    assert_eq!(printed(&["--quiet"]), "");
    assert!(serde_json::from_str::<Value>(&printed(&["--quiet", "--format", "json"])).is_ok());
}

#[test]
fn a_line_a_second() {
    let (_server, url) = plain();
    let done = run(["-v", "-d", "1100ms", "-w", "200ms", "-c", "2", &url]).with_status(0);
    let second = |text: &str| text.lines().any(|line| line.starts_with("0:01.0  steady ") && line.contains(" p99 "));
    assert!(done.stderr.starts_with("-0:00.2 start ") && second(&done.stderr), "{}", done.stderr);
    assert!(!second(&done.stdout) && done.stdout.contains("Outcomes"), "{}", done.stdout);
    let done = run(["-v", "-d", "1100ms", "-c", "2", "--format", "json", &url]).with_status(0);
    json(&done);
    assert!(second(&done.stderr), "{}", done.stderr);
    let plain = run(["--plain", "--ascii", "-d", "1100ms", "-c", "2", &url]).with_status(0);
    assert!(plain.stderr.starts_with("0:00.0  start ") && plain.stderr.is_ascii(), "{}", plain.stderr);
    assert!(plain.stdout.is_ascii() && plain.stdout.contains("Outcomes"), "{}", plain.stdout);
}

#[test]
fn the_seed_is_printed() {
    let (_server, url) = plain();
    assert!(run(["-n", "5", "--seed", "4711", &url]).with_status(0).stdout.contains("4711"));
}

#[test]
fn secrets_reach_the_target_and_nothing_else() {
    let dir = Directory::new();
    let (plan, out) = (dir.path("plan.json"), dir.path("out.json"));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let heard = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut heard = Vec::new();
        while !heard.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            heard.push(byte[0]);
        }
        std::io::Write::write_all(&mut stream, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .unwrap();
        String::from_utf8(heard).unwrap()
    });
    let url = format!("http://me:hunter2@{address}/");
    let args = ["-n1", "-c1", "-H", "X-Api-Key: hunter3", "-H", "X-Other: Bearer @TOKEN", "--format", "json"];
    let done =
        done(brunt([args.as_slice(), &["-o", &out, "--write-plan", &plan, &url]].concat()).env("TOKEN", "hunter4"));
    let heard = heard.join().unwrap();
    // base64("me:hunter2")
    for secret in ["Basic bWU6aHVudGVyMg==", "hunter3", "Bearer hunter4"] {
        assert!(heard.contains(secret), "{heard}");
    }
    let read = |path: &str| std::fs::read_to_string(path).unwrap();
    for shown in [done.with_status(0).stdout, read(&out), read(&plan)] {
        assert!(!shown.contains("hunter") && !shown.contains("bWU6aHVudGVyMg"), "{shown}");
    }
}

#[test]
fn a_kept_plan_runs() {
    let dir = Directory::new();
    let plan = dir.path("plan.json");
    let (server, url) = plain();
    run(["-n", "30", "--write-plan", &plan, "--dry-run", &url]).with_status(0);
    assert_eq!(server.requests(), 0);
    let done = run(["--plan", &plan, "--threshold", "due==30", "--format", "json"]).with_status(0);
    assert_eq!(server.requests(), 30);
    json(&done);
}

#[test]
fn tls_is_verified_unless_told_otherwise() {
    let dir = Directory::new();
    let (server, url) =
        target(ServerConfig { tls: Some(brunt_testbed::tls::Tls::default()), ..ServerConfig::default() });
    let ca = dir.file("ca.pem", server.certificate_pem().unwrap());
    run(["-n", "10", "-c", "2", "--cacert", &ca, &url]).with_status(0);
    run(["-n", "10", "-c", "2", "-k", &url]).with_status(0);
    let done = run(["-d", "200ms", "-c", "2", "--quiet", &url]).with_status(3);
    assert!(done.stderr.contains("never answered: tls"), "{}", done.stderr);
}

#[test]
fn a_unix_socket_and_another_address() {
    let dir = Directory::new();
    let path = dir.path("socket");
    let address = format!("unix:{path}").parse().unwrap();
    let (server, _) = target(ServerConfig { address, ..ServerConfig::default() });
    run(["-n", "10", "--unix-socket", &path, "http://any.invalid/"]).with_status(0);
    assert_eq!(server.requests(), 10);
    let (server, url) = plain();
    let there = url.trim_start_matches("http://").trim_end_matches('/');
    run(["-n", "10", "--connect-to", there, "http://any.invalid/"]).with_status(0);
    assert_eq!(server.requests(), 10);
}

#[test]
fn a_host_without_an_address_never_answers() {
    let done = run(["-n", "1", "http://nothing.invalid/"]).with_status(3);
    assert!(done.stderr.contains("nothing.invalid"), "{}", done.stderr);
}

#[test]
fn a_reader_that_has_seen_enough_changes_nothing() {
    let (_server, url) = plain();
    for args in [["-n", "10"].as_slice(), &["-v", "-n", "10"], &["-n", "10", "--format", "json"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let done = done(brunt([args, &[&url]].concat()).stdout(writer).stderr(Stdio::piped())).with_status(0);
        // With -v there are lines of the run.
        let others: Vec<_> = done.stderr.lines().filter(|line| !line.starts_with("0:0")).collect();
        assert_eq!(others, [""; 0]);
    }
}

#[test]
fn a_result_that_cannot_be_written_is_an_error() {
    let dir = Directory::new();
    let out = dir.path("run.json");
    let (_server, url) = plain();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let done = done(brunt(["-n", "10", "-o", &out, &url]).stdout(full).stderr(Stdio::piped())).with_status(2);
    assert!(done.stderr.contains("No space left on device"), "{}", done.stderr);
    assert!(std::fs::read_to_string(out).unwrap().starts_with('{'), "the other place still gets it");
}

#[test]
fn the_demo_shows_both_models_side_by_side_and_what_to_do_next() {
    let dir = Directory::new();
    let page = dir.path("page.html");
    let done = run(["demo", "-d", "1s", "-r", "50", "--html", &page]).with_status(0);
    for expected in [
        "closed model",
        "open model",
        "second     answered",
        "requests ",
        "before the target's first freeze",
        "brunt --once",
    ] {
        assert!(done.stdout.contains(expected), "{expected}\n{}", done.stdout);
    }
    let has_page = std::fs::read_to_string(&page).is_ok_and(|page| page.starts_with("<!doctype html>"));
    assert!(has_page && done.stdout.contains(&page), "{}", done.stdout);
}

#[test]
fn a_slow_target_is_waited_for() {
    let delay = Delay::Fixed(std::time::Duration::from_millis(50));
    let (server, url) = target(ServerConfig { delay, ..ServerConfig::default() });
    run(["-n", "3", "-c", "1", "--threshold", "min>=50ms", &url]).with_status(0);
    assert_eq!(server.requests(), 3);
}
