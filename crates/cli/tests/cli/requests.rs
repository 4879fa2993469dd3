//! Requests from standard input, by name, and answers that are not the expected ones.

use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use brunt_testbed::server::{Delay, ServerConfig};
use serde_json::Value;

use crate::program::{Directory, Done, brunt, run};
use crate::runs::target;

/// What comes of a call of the program that reads this.
fn reading(text: &str, args: &[&str]) -> Done {
    let mut command = brunt(args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    Done {
        status: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn lines_come_from_standard_input_and_have_a_row_each() {
    let (_server, url) = target(ServerConfig::default());
    let lines = "/shop/items/7\n/_/status/404\n";
    let done = reading(lines, &["-n", "100", "-c", "2", "--url-lines", "-", &url]).with_status(0);
    for name in ["GET /shop/items/7", "GET /_/status/404"] {
        assert!(done.stdout.contains(name), "{name}: {}", done.stdout);
    }
    let done = reading(lines, &["-n", "100", "-c", "2", "--url-lines", "-", "--format", "json", &url]).with_status(0);
    let result: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(result["outcomes"]["due"], 100, "{}", result["outcomes"]);
}

/// Due calls for which there was no connection are in their names' rows, and in what is asked of these.
#[test]
fn calls_that_were_never_sent_have_their_names() {
    let slow = Duration::from_millis(50);
    let (_server, url) =
        target(ServerConfig { delay: Delay::Uniform { min: slow, max: slow }, ..ServerConfig::default() });
    for (threads, rate) in [("1", "20000"), ("2", "500")] {
        let args = ["-c", "2", "-t", threads, "-r", rate, "-d", "2s", "--url-lines", "-", "--format", "json"];
        let asked = ["--threshold", "GET /b:error_rate<50%", &url];
        let done = reading("/a\n/b\n/a\n", &[args.as_slice(), &asked].concat()).with_status(1);
        let result: Value = serde_json::from_str(&done.stdout).unwrap();
        let named = |name: &str, figure: &str| {
            let rows = result["names"]["requests"].as_array().unwrap();
            let row = rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name} in {rows:?}"));
            row[figure].as_u64().unwrap()
        };
        for figure in ["due", "unsent", "unfinished"] {
            let (a, b) = (named("GET /a", figure), named("GET /b", figure));
            assert_eq!(a + b, result["outcomes"][figure], "{figure} at {rate}/s: {}", result["outcomes"]);
        }
        let never = |name: &str| named(name, "unsent") + named(name, "unfinished");
        let (a, b) = (never("GET /a"), never("GET /b"));
        assert!(b > 0 && a.abs_diff(2 * b) <= 50, "at {rate}/s: {a} and {b}");
        let judged = &result["thresholds"][0];
        assert!(judged["held"] == false && judged["got"].as_str().unwrap().ends_with('%'), "{judged}");
    }
}

/// A target that takes connections and says nothing: calls wait for TLS, and were never sent. They are unfinished, over all
/// as by name, in floods and of users.
#[test]
fn calls_of_a_silent_target_have_one_word() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let dir = Directory::new();
    let script = "local all = brunt.scenario('all', function() http:get('/a') http:get('/b') end)\n\
                  all:inject { brunt.users(3, '1s') }";
    let script = dir.file(
        "silent.lua",
        format!("local brunt = require 'brunt'\nlocal http = brunt.http {{ base = '{url}' }}\n{script}"),
    );
    let flags = ["-d", "1s", "--timeout", "20s", "--drain", "100ms", "--format", "json", "--max-error-rate", "100%"];
    let flood = [flags.as_slice(), &["--url-lines", "-", "-k", "-c", "3", &url]].concat();
    for (lines, args) in [("/a\n/b\n", flood), ("", [["run", "-k"].as_slice(), &flags[2..], &[&script]].concat())] {
        let done = reading(lines, &args);
        let result: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{args:?}: {}", done.stderr));
        let rows = result["names"]["requests"].as_array().unwrap();
        for figure in ["due", "unsent", "unfinished"] {
            let named: u64 = rows.iter().map(|row| row[figure].as_u64().unwrap_or(0)).sum();
            assert_eq!(named, result["outcomes"][figure], "{figure}, {args:?}: {} {rows:?}", result["outcomes"]);
        }
        assert_eq!(result["outcomes"]["unfinished"], 3, "{args:?}: {}", result["outcomes"]);
    }
}

/// Each run of a sweep reads its flags anew, and standard input once.
#[test]
fn a_body_from_standard_input_is_that_of_each_run() {
    let (server, url) = target(ServerConfig::default());
    let echo = format!("{url}_/echo");
    let args =
        ["sweep", "-c", "1,2", "-n", "20", "-w0", "--body", "-", "--expect-body", "hello", "--format", "json", &echo];
    let done = reading("hello, both of you", &args).with_status(0);
    let found: Value = serde_json::from_str(&done.stdout).unwrap();
    assert!(found["steps"].as_array().unwrap().iter().all(|step| step["evidence"]["ok"] == 20), "{found}");
    assert_eq!(server.requests(), 40);
}

#[test]
fn an_answer_without_the_expected_text_has_failed() {
    let (_server, url) = target(ServerConfig::default());
    let echo = format!("{url}_/echo");
    let args = |expected: &'static str| ["-n", "20", "-c", "2", "--body", "all is well", "--expect-body", expected];
    run([args("is well").as_slice(), &["--max-error-rate", "0", &echo]].concat()).with_status(0);
    for version in ["1.1", "2"] {
        let flags = ["--http", version, "--max-error-rate", "0", echo.as_str()];
        let done = run([args("is lost").as_slice(), &flags].concat()).with_status(1);
        assert!(
            done.stdout.contains("FAILED: 100% of 20 calls") && !done.stdout.contains("never answered"),
            "{}",
            done.stdout
        );
        assert!(done.stdout.contains("the body has no 'is lost'"), "HTTP/{version}: {}", done.stdout);
    }
    let done = run([args("").as_slice(), &[&echo]].concat()).with_status(2);
    assert!(done.stderr.contains("expected a text that is not empty"), "{}", done.stderr);
}

#[test]
fn the_user_agent_is_a_flag() {
    let (_server, url) = target(ServerConfig::default());
    let shown = run(["--once", "--user-agent", "me/2", &url]).with_status(0).stdout;
    assert!(shown.contains("User-Agent: me/2"), "{shown}");
    run(["find", "--user-agent", "me/2", "--threshold", "p99<1s", "--dry-run", &url]).with_status(0);
    let done = run(["--user-agent", "me/2", "-H", "user-agent: you", &url]).with_status(2);
    assert!(done.stderr.contains("leave one out") && !done.stderr.contains("you"), "{}", done.stderr);
}
