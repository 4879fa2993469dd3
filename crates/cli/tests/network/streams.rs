//! Answers that come as messages, from the built-in target and from another server, which writes down when it sent each.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use brunt_testbed::server::{Delay, Server, ServerConfig, Tokens};
use brunt_testbed::tls::Tls;
use serde_json::Value;

use crate::nginx::{Listen, Nginx};
use crate::program::Directory;
use crate::report::{Report, report};

const DONE: [&str; 4] = ["--messages", "sse", "--last-message", "[DONE]"];

fn model(first_ms: u64, gap_ms: u64, count: u64, tls: bool) -> Server {
    let fixed = |ms| Delay::Fixed(Duration::from_millis(ms));
    let tokens = Tokens { first: fixed(first_ms), gap: fixed(gap_ms), count };
    Server::start(ServerConfig { workers: 2, tokens, tls: tls.then(Tls::default), ..ServerConfig::default() }).unwrap()
}

fn asked(url: &str) -> Vec<String> {
    let url = format!("{url}v1/chat/completions");
    DONE.map(str::to_owned).into_iter().chain(["--json".into(), r#"{"stream":true}"#.into(), url]).collect()
}

fn messages(report: &Report, what: &str) -> u64 {
    report.number(&format!("/outcomes/messages/{what}"))
}

#[test]
fn every_token_is_counted_and_none_comes_early() {
    let dir = Directory::new();
    for tls in [false, true] {
        let server = model(50, 5, 20, tls);
        let mut common = asked(&server.url());
        if tls {
            common.extend(["--cacert".to_owned(), dir.file("ca.pem", server.certificate_pem().unwrap())]);
        }
        for (calls, args) in [(60, ["-c", "20", "-n", "60"].as_slice()), (60, &["-c", "40", "-n", "60", "-r", "100"])] {
            let args: Vec<_> = args.iter().map(|arg| (*arg).to_owned()).chain(common.clone()).collect();
            let report = report(0, args);
            report.assert_all(calls, 200);
            assert_eq!((messages(&report, "count"), messages(&report, "streams")), (20 * calls, calls));
            assert!(report.number("/times/first_message/min_ns") >= 49_900_000);
            assert_eq!(report.number("/times/message_gap/count"), 19 * calls);
            // Of a late token the next comes sooner; on the whole none does.
            assert!(report.number("/times/last_message/min_ns") >= 144_900_000);
        }
    }
}

#[test]
fn streams_that_stall_or_end_early_fail_by_name() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let url = |query: &str| format!("{}_/events/{query}", server.url());
    let stalled = report(1, ["-n", "4", "--messages", "sse", "--stall-timeout", "50ms", &url("5?gap=400&first=0")]);
    assert_eq!(stalled.reasons().get("stalled: no message within the longest gap allowed"), Some(&4));
    assert_eq!(messages(&stalled, "count"), 4);
    assert_eq!(stalled.at("/times/message_gap/max_ns/at_least"), &Value::Bool(true));
    let early = report(1, [["-c", "1", "-n", "4"].as_slice(), &DONE, &[&url("5?gap=1")]].concat());
    assert_eq!(early.failures().get("ended_early"), Some(&4));
    assert_eq!((messages(&early, "count"), early.connections("made")), (20, 1));
    let ended = report(0, ["-n", "4", "--messages", "sse", "--last-message", r#"{"n":4}"#, &url("5?gap=1")]);
    assert_eq!((ended.outcome("answered"), messages(&ended, "count")), (4, 16));
    let lines = report(0, ["-n", "4", "--messages", "lines", &url("5?gap=1")]);
    assert_eq!(messages(&lines, "count"), 4 * 10, "an id and data, five times");
    let chunks = report(0, ["-n", "4", "--messages", "chunks", &url("5?gap=1")]);
    assert_eq!(messages(&chunks, "count"), 4 * 5);
}

#[test]
fn an_answer_that_is_not_streamed_is_an_answer() {
    let server = model(5, 1, 3, false);
    let url = format!("{}v1/chat/completions", server.url());
    let whole = report(0, ["-n", "5", "--json", "{}", &url]);
    whole.assert_all(5, 200);
    assert!(whole.at("/outcomes").get("messages").is_none() && whole.at("/times").get("first_message").is_none());
    let refused = report(
        0,
        [["-n", "5", "-H", "Content-Type: application/json", "--body", "no json"].as_slice(), &DONE, &[&url]].concat(),
    );
    refused.assert_all(5, 400);
    assert!(refused.at("/outcomes").get("messages").is_none());
}

/// Sends so many events so far apart, on as many connections as come, and writes down every gap.
const PYTHON: &str = r#"
import asyncio, json, time

gaps = []

async def serve(reader, writer):
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            begin, times = time.monotonic(), []
            for n in range(20):
                await asyncio.sleep(max(begin + 0.03 * (n + 1) - time.monotonic(), 0))
                event = b"event: tick\r\nid: %d\r\ndata: %d\r\n\r\n" % (n, n)
                writer.write(b"%x\r\n%s\r\n" % (len(event), event))
                times.append(time.monotonic_ns())
                await writer.drain()
            writer.write(b"0\r\n\r\n")
            gaps.extend(after - before for before, after in zip(times, times[1:]))
            if len(gaps) == 50 * 19:
                print(json.dumps(sorted(gaps)), flush=True)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Future()

asyncio.run(main())
"#;

#[test]
#[ignore = "needs python3: make test installs it"]
fn gaps_are_those_that_another_server_wrote_down() {
    let mut child = Command::new("/usr/bin/python3")
        .args(["-c", PYTHON])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{e}: make test installs python3-websockets"));
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    let url = format!("http://127.0.0.1:{}/", line.trim());
    let report = report(0, ["-c", "10", "-n", "50", "-t", "1", "--messages", "sse", &url]);
    line.clear();
    lines.read_line(&mut line).unwrap();
    let _ = child.kill();
    let _ = child.wait();
    assert_eq!(messages(&report, "count"), 1000);
    // Those that a busy machine kept brunt from reading came together in the end.
    assert!(messages(&report, "together") <= 300, "{}", messages(&report, "together"));
    let written: Vec<u64> = serde_json::from_str(&line).unwrap();
    let measured: Vec<u64> = report
        .at("/histograms/message_gap/counts")
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|pair| std::iter::repeat_n(pair[0].as_u64().unwrap(), pair[1].as_u64().unwrap() as usize))
        .collect();
    assert_eq!(measured.len(), written.len());
    // A write is an instant before its bytes arrive; on a busy machine it is some milliseconds. A gap is 30 ms long.
    let mut off: Vec<u64> = measured.iter().zip(&written).map(|(one, other)| one.abs_diff(*other)).collect();
    off.sort_unstable();
    assert!(off[off.len() / 2] < 10_000_000, "{off:?}");
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn messages_come_over_http_2_as_well() {
    // nginx speaks HTTP/2 and has the built-in target behind it.
    let server = model(50, 5, 20, false);
    let target = server.url();
    let behind = target.trim_start_matches("http://").trim_end_matches('/');
    let body = format!("location / {{ proxy_pass http://{behind}; proxy_http_version 1.1; proxy_buffering off; }}");
    let nginx = Nginx::listening(Listen::Http2, &[], &body);
    let url = nginx.url("/");
    let flags = [vec!["--http".to_owned(), "2".to_owned()], asked(&url)].concat();
    for load in [["-n", "60", "-c", "2", "--streams", "15"].as_slice(), &["-n", "60", "-r", "100"]] {
        let args: Vec<_> = load.iter().map(|arg| (*arg).to_owned()).chain(flags.clone()).collect();
        let report = report(0, args);
        report.assert_all(60, 200);
        assert_eq!((messages(&report, "count"), messages(&report, "streams")), (60 * 20, 60));
        assert!(report.number("/times/last_message/min_ns") >= 144_000_000);
    }
}
