//! HTTP/3 against the built-in target, over networks that are quiet, lossy, silent or wrong.

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use brunt_testbed::server::{Delay, Server, ServerConfig};
use brunt_testbed::tls::Tls;

use crate::program::{Directory, run};
use crate::report::report;

fn target(config: ServerConfig) -> Server {
    Server::start(ServerConfig { tls: Some(Tls::default()), http3: true, ..config }).unwrap()
}

#[test]
fn floods_of_either_model_agree_with_the_server() {
    for args in [
        ["-n", "2000", "-c", "1"].as_slice(),
        &["-n", "2000", "-c", "2", "--streams", "50"],
        &["-n", "2000", "-t", "2", "-c", "4", "--streams", "10"],
        &["-n", "1000", "-r", "2k"],
        &["-n", "100", "-c", "4", "--reconnect"],
    ] {
        let server = target(ServerConfig { workers: 2, ..ServerConfig::default() });
        let report = report(0, [&["--http", "3", "-k"], args, &[&server.url()]].concat());
        let due = args[1].parse().unwrap();
        report.assert_all(due, 200);
        assert_eq!(server.requests(), due, "{args:?}");
    }
}

#[test]
fn bodies_arrive_whole_in_both_directions() {
    let dir = Directory::new();
    for size in [0, 1, 20_000, 1_000_000] {
        let body = "0123456789".repeat(size / 10) + &"x".repeat(size % 10);
        dir.file("body", &body);
        let server = target(ServerConfig::default());
        let url = format!("{}_/echo", server.url());
        let file = dir.path("body");
        let expected = body.get(body.len().saturating_sub(20)..).unwrap().to_owned();
        let mut args = vec!["--http", "3", "-k", "-n", "20", "-c", "1", "--streams", "5", "--body-file", &file];
        if !expected.is_empty() {
            args.extend(["--expect-body", &expected]);
        }
        args.push(&url);
        report(0, args).assert_all(20, 200);
        assert_eq!(server.requests(), 20, "{size}");
    }
    // Chunks and trailers.
    let server = target(ServerConfig::default());
    let url = format!("{}_/chunked/100000", server.url());
    report(0, ["--http", "3", "-k", "-n", "50", "-c", "2", "--streams", "5", &url]).assert_all(50, 200);
}

#[test]
fn a_slow_server_times_calls_out_and_the_connection_goes_on() {
    let delay = Delay::Uniform { min: Duration::from_millis(1), max: Duration::from_millis(200) };
    let server = target(ServerConfig { delay, ..ServerConfig::default() });
    let args = ["--http", "3", "-k", "-n", "200", "-c", "1", "--streams", "20", "--timeout", "70ms", &server.url()];
    let report = report(0, args);
    let (answered, failed) = (report.outcome("answered"), report.outcome("failed"));
    assert_eq!(answered + failed, 200);
    assert_eq!(report.failures(), [("timeout", failed)].into());
    assert!(answered > 20 && failed > 20, "{answered} {failed}");
    assert_eq!(report.connections("made"), 1);
}

#[test]
fn a_server_that_leaves_has_its_calls_made_again() {
    let server = target(ServerConfig { close_after: Some(100), ..ServerConfig::default() });
    let report = report(0, ["--http", "3", "-k", "-n", "1000", "-c", "2", "--streams", "10", &server.url()]);
    report.assert_all(1000, 200);
    assert_eq!(server.requests(), 1000);
    assert!(report.connections("made") >= 10);
}

#[test]
fn failures_to_connect_are_told_apart() {
    let server = target(ServerConfig::default());
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (negotiating, ended) = versions_only();
    for (url, extra, failure) in [
        (server.url(), "-t1", "tls"),
        (format!("https://{}/", silent.local_addr().unwrap()), "-k", "connect_timeout"),
        (format!("https://{nobody}/"), "-k", "connect"),
        (format!("https://{negotiating}/"), "-k", "protocol"),
    ] {
        let report = report(3, ["--http", "3", "-n", "3", "-c", "1", "--connect-timeout", "500ms", extra, &url]);
        assert_eq!(report.failures().keys().collect::<Vec<_>>(), [&failure], "{:?}", report.reasons());
        let way_out = report.reasons().keys().any(|reason| reason.contains("--cacert FILE trusts it"));
        assert_eq!(way_out, failure == "tls", "{:?}", report.reasons());
    }
    ended.store(true, Ordering::Relaxed);
}

#[test]
fn what_cannot_be_is_said() {
    for (args, problem) in [
        (["--http", "3", "http://127.0.0.1:1/"].as_slice(), "needs a target with https://"),
        (&["--http", "3", "--unix-socket", "/tmp/none", "https://a/"], "leave --unix-socket out"),
        (&["--http", "3", "--proxy", "http://127.0.0.1:1", "https://a/"], "leave --proxy out"),
    ] {
        let done = run([["-n", "1"].as_slice(), args].concat()).with_status(2);
        assert!(done.stderr.contains(problem), "{done:#?}");
    }
}

/// A peer that speaks a version of QUIC that nobody else does, until it is told to end.
fn versions_only() -> (SocketAddr, Arc<AtomicBool>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let (address, ended) = (socket.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
    let is_ended = Arc::clone(&ended);
    std::thread::spawn(move || {
        let mut buffer = [0; 2000];
        while !is_ended.load(Ordering::Relaxed) {
            let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
            // A long header (RFC 8999): a byte, the version, then both connection ids with their lengths.
            let destination = usize::from(buffer[5]);
            let source = usize::from(buffer[6 + destination]);
            if length < 7 + destination + source {
                continue;
            }
            let mut answer = vec![0x80, 0, 0, 0, 0, source as u8];
            answer.extend_from_slice(&buffer[7 + destination..][..source]);
            answer.push(destination as u8);
            answer.extend_from_slice(&buffer[6..][..destination]);
            answer.extend_from_slice(&0x5a5a_5a5a_u32.to_be_bytes());
            let _ = socket.send_to(&answer, from);
        }
    });
    (address, ended)
}

/// A way to a server on which every n-th datagram is lost, and none arrives for a while.
struct Lossy {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Lossy {
    fn before(server: SocketAddr, every: u64, cut: Option<(Duration, Duration)>) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let (address, ended) = (socket.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let is_ended = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            let mut ways: HashMap<SocketAddr, UdpSocket> = HashMap::new();
            let (began, mut count, mut buffer) = (Instant::now(), 0_u64, vec![0; 65_536]);
            let mut is_lost = || {
                count += 1;
                let is_cut = cut.is_some_and(|(from, length)| {
                    let at = began.elapsed();
                    at >= from && at < from + length
                });
                count.is_multiple_of(every) || is_cut
            };
            while !is_ended.load(Ordering::Relaxed) {
                let mut is_idle = true;
                while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                    is_idle = false;
                    let way = ways.entry(from).or_insert_with(|| {
                        let way = UdpSocket::bind("127.0.0.1:0").unwrap();
                        way.connect(server).unwrap();
                        way.set_nonblocking(true).unwrap();
                        way
                    });
                    if !is_lost() {
                        let _ = way.send(&buffer[..length]);
                    }
                }
                for (from, way) in &ways {
                    while let Ok(length) = way.recv(&mut buffer) {
                        is_idle = false;
                        if !is_lost() {
                            let _ = socket.send_to(&buffer[..length], from);
                        }
                    }
                }
                if is_idle {
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
        });
        Self { address, ended, thread: Some(thread) }
    }
}

impl Drop for Lossy {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

#[test]
fn a_tenth_of_all_datagrams_is_lost_and_no_call_is() {
    let server = target(ServerConfig::default());
    let way = Lossy::before(server.socket_addr().unwrap(), 10, None);
    for args in [["-n", "500", "-c", "2", "--streams", "10"].as_slice(), &["-n", "300", "-r", "300"]] {
        let before = server.requests();
        let url = format!("https://{}/", way.address);
        let report = report(0, [&["--http", "3", "-k", "--timeout", "20s"], args, &[&url]].concat());
        let due = args[1].parse().unwrap();
        report.assert_all(due, 200);
        assert_eq!(server.requests() - before, due, "{args:?}");
    }
}

#[test]
fn a_way_that_is_cut_holds_calls_up_and_loses_none() {
    let server = target(ServerConfig::default());
    let cut = (Duration::from_millis(700), Duration::from_secs(1));
    let way = Lossy::before(server.socket_addr().unwrap(), u64::MAX, Some(cut));
    let url = format!("https://{}/", way.address);
    let report = report(0, ["--http", "3", "-k", "-n", "600", "-r", "200", "--timeout", "20s", &url]);
    report.assert_all(600, 200);
    assert_eq!(server.requests(), 600);
    // Due times go on while nothing arrives.
    assert!(report.number("/times/response/max_ns/value") > 700_000_000);
}
