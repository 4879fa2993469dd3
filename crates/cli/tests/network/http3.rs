//! HTTP/3 against the built-in target, over networks that are quiet, lossy, silent or wrong.

use std::collections::{HashMap, HashSet};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use brunt_testbed::server::{Delay, Listen, Server, ServerConfig};
use brunt_testbed::tls::{Pem, Tls, client_certificate};

use crate::program::{Directory, run, until};
use crate::report::{Report, report};

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
        (&["--http", "2", "--tls-earlydata", "https://a/"], "--tls-earlydata is for HTTP/3"),
        (&["--udp-sockets", "2", "https://a/"], "--udp-sockets is for HTTP/3"),
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

/// What a way does with datagrams.
#[derive(Clone, Copy)]
struct Trouble {
    /// Every n-th is lost.
    every: u64,
    /// From when on, and for how long, none arrives.
    cut: Option<(Duration, Duration)>,
    /// When the server sees all clients at other addresses, as after a router was restarted.
    rebound: Option<Duration>,
}

const QUIET: Trouble = Trouble { every: u64::MAX, cut: None, rebound: None };

/// A way to a server, with its trouble.
struct Lossy {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<usize>>,
}

/// A socket of a way's own to a server.
fn way_to(server: SocketAddr) -> UdpSocket {
    let way = UdpSocket::bind("127.0.0.1:0").unwrap();
    way.connect(server).unwrap();
    way.set_nonblocking(true).unwrap();
    way
}

impl Lossy {
    fn before(server: SocketAddr, Trouble { every, cut, mut rebound }: Trouble) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let (address, ended) = (socket.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let is_ended = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            let (mut ways, mut known) = (HashMap::<SocketAddr, UdpSocket>::new(), HashSet::new());
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
                if rebound.is_some_and(|at| began.elapsed() >= at) {
                    rebound = None;
                    ways.clear();
                    ways.extend(known.iter().map(|from| (*from, way_to(server))));
                }
                while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                    is_idle = false;
                    known.insert(from);
                    let way = ways.entry(from).or_insert_with(|| way_to(server));
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
            known.len()
        });
        Self { address, ended, thread: Some(thread) }
    }

    /// Ends it. Returns from how many addresses datagrams came.
    fn clients(mut self) -> usize {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Lossy {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[test]
fn connections_share_sockets() {
    let server = target(ServerConfig::default());
    for (more, sockets) in [([].as_slice(), 10), (&["--udp-sockets", "2"], 4)] {
        let way = Lossy::before(server.socket_addr().unwrap(), Trouble { every: 50, ..QUIET });
        let (before, url) = (server.requests(), format!("https://{}/", way.address));
        let args = ["--http", "3", "-k", "-n", "2000", "-c", "10", "-t", "2", "--streams", "5", "--timeout", "20s"];
        let report = report(0, [&args, more, &[&url]].concat());
        report.assert_all(2000, 200);
        assert_eq!((server.requests() - before, report.connections("made")), (2000, 10));
        assert_eq!(way.clients(), sockets, "{more:?}");
    }
    let args =
        ["--http", "3", "-k", "-n", "100", "-c", "4", "-t", "1", "--reconnect", "--udp-sockets", "1", "--no-save"];
    let before = server.requests();
    let shown = run([&args, [server.url().as_str()].as_slice()].concat()).with_status(0).stdout;
    assert!(shown.contains("1 UDP socket shared on each thread"), "{shown}");
    assert_eq!(server.requests() - before, 100);
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let args = ["--http", "3", "-n", "3", "-c", "2", "-t", "1", "-k", "--udp-sockets", "1"];
    let failed = report(3, [&args, [format!("https://{nobody}/").as_str()].as_slice()].concat());
    assert_eq!(failed.failures().keys().collect::<Vec<_>>(), [&"connect"], "{:?}", failed.reasons());
}

#[test]
fn a_tenth_of_all_datagrams_is_lost_and_no_call_is() {
    let server = target(ServerConfig::default());
    let way = Lossy::before(server.socket_addr().unwrap(), Trouble { every: 10, ..QUIET });
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
    let way = Lossy::before(server.socket_addr().unwrap(), Trouble { cut: Some(cut), ..QUIET });
    let url = format!("https://{}/", way.address);
    let report = report(0, ["--http", "3", "-k", "-n", "600", "-r", "200", "--timeout", "20s", &url]);
    report.assert_all(600, 200);
    assert_eq!(server.requests(), 600);
    // Due times go on while nothing arrives.
    assert!(report.number("/times/response/max_ns/value") > 700_000_000);
}

#[test]
fn clients_whose_address_changes_keep_their_connections() {
    let server = target(ServerConfig::default());
    let rebound = Some(Duration::from_millis(800));
    let way = Lossy::before(server.socket_addr().unwrap(), Trouble { rebound, ..QUIET });
    let url = format!("https://{}/", way.address);
    let report = report(0, ["--http", "3", "-k", "-n", "600", "-r", "300", "-c", "4", "--timeout", "20s", &url]);
    report.assert_all(600, 200);
    assert_eq!(server.requests(), 600);
    assert_eq!(report.connections("made"), 4);
}

/// Calls of a run, and those that servers took of them: each answer was given once, a call without one may have been taken, and one that was
/// sent again may have been taken twice.
#[track_caller]
fn agree(report: &Report, taken: u64) {
    let [answered, failed, unfinished] = ["answered", "failed", "unfinished"].map(|name| report.outcome(name));
    let most = answered + failed + unfinished + report.connections("reconnects");
    assert!(answered <= taken && taken <= most, "{answered} answered, {failed} failed, {most} at most, {taken} taken");
}

#[test]
fn a_server_that_is_started_again_gets_new_connections() {
    started_again(&[]);
    started_again(&["--udp-sockets", "1"]);
}

#[track_caller]
fn started_again(more: &'static [&str]) {
    let first = target(ServerConfig::default());
    let (address, url) = (first.addr().clone(), first.url());
    let running = std::thread::spawn(move || {
        let load = ["-r", "300", "-d", "4s", "-c", "4", "--timeout", "500ms"];
        run([&["--http", "3", "-k", "--format", "json"], load.as_slice(), more, &[&url]].concat())
    });
    until("the first server is asked", || first.requests() > 100);
    let taken = first.stop();
    std::thread::sleep(Duration::from_millis(700));
    let second = target(ServerConfig { address, ..ServerConfig::default() });
    let report = Report::parse(&running.join().unwrap());
    agree(&report, taken + second.requests());
    assert!(taken > 100 && second.requests() > 300, "{taken} {}", second.requests());
    assert!(report.connections("made") >= 8, "{}", report.connections("made"));
}

/// Nothing tells a client that a server has forgotten its connections, if the port is open again before the client's next datagram comes.
#[test]
fn connections_that_a_server_has_forgotten_are_given_up_with_the_first_call_that_times_out() {
    let first = target(ServerConfig::default());
    let way = Lossy::before(first.socket_addr().unwrap(), QUIET);
    let (address, url) = (first.addr().clone(), format!("https://{}/", way.address));
    let running = std::thread::spawn(move || {
        let load = ["-r", "200", "-d", "5s", "-c", "2", "--streams", "20", "--timeout", "400ms"];
        run([&["--http", "3", "-k", "--format", "json"], load.as_slice(), &[&url]].concat())
    });
    until("the first server is asked", || first.requests() > 100);
    let taken = first.stop();
    let second = target(ServerConfig { address, ..ServerConfig::default() });
    let report = Report::parse(&running.join().unwrap());
    agree(&report, taken + second.requests());
    assert_eq!(report.failures().keys().copied().collect::<Vec<_>>(), ["timeout"], "{:?}", report.reasons());
    // Some 400 ms of calls are lost: as long as the first of them waits.
    assert!(report.outcome("failed") < 300, "{:?}", report.failures());
    assert!(second.requests() > 400, "{}", second.requests());
}

#[test]
fn sessions_are_resumed_and_calls_that_change_nothing_go_early() {
    // Answers come behind the tickets of new sessions.
    let delay = Delay::Fixed(Duration::from_millis(20));
    for (more, is_resumed, is_early) in [
        (["--no-sessionid"].as_slice(), false, false),
        (&[], true, false),
        (&["--tls-earlydata"], true, true),
        (&["--tls-earlydata", "-m", "HEAD"], true, true),
        (&["--tls-earlydata", "-m", "POST"], true, false),
    ] {
        let server = target(ServerConfig { delay, ..ServerConfig::default() });
        let args = ["--http", "3", "-k", "-n", "20", "-c", "1", "--reconnect"];
        let report = report(0, [args.as_slice(), more, &[&server.url()]].concat());
        report.assert_all(20, 200);
        assert_eq!(server.requests(), 20, "{more:?}");
        let (resumed, early) = (report.connections("tls_resumed"), report.connections("early_calls"));
        // A slow machine may read a ticket too late for the next connection; the first has none.
        let range = if is_resumed { 10..=19 } else { 0..=0 };
        assert!(range.contains(&resumed) && early == if is_early { resumed } else { 0 }, "{more:?}: {resumed} {early}");
        assert_eq!(report.number("/times/tls/count"), 20, "{more:?}");
    }
}

#[test]
fn early_data_that_a_server_refuses_goes_again_and_fails_no_call() {
    let delay = Delay::Fixed(Duration::from_millis(20));
    let first = target(ServerConfig { delay, ..ServerConfig::default() });
    let way = Lossy::before(first.socket_addr().unwrap(), QUIET);
    let (address, url) = (first.addr().clone(), format!("https://{}/", way.address));
    let running = std::thread::spawn(move || {
        let load = ["-r", "50", "-d", "4s", "-c", "4", "--reconnect", "--tls-earlydata", "--timeout", "5s"];
        run([&["--http", "3", "-k", "--format", "json"], load.as_slice(), &[&url]].concat())
    });
    until("the first server is asked", || first.requests() > 50);
    let taken = first.stop();
    // It has forgotten all sessions.
    let second = target(ServerConfig { address, delay, ..ServerConfig::default() });
    let report = Report::parse(&running.join().unwrap());
    agree(&report, taken + second.requests());
    let refused = report.at("/outcomes/events").to_string();
    assert!(refused.contains("early data refused (0-RTT)"), "{refused}");
    assert!(report.connections("early_calls") > 40, "{}", report.connections("early_calls"));
    assert!(report.outcome("failed") <= 4, "{:?}", report.reasons());
}

#[test]
fn addresses_of_ipv6_are_reached() {
    let server = target(ServerConfig { address: Listen::Tcp("[::1]:0".parse().unwrap()), ..ServerConfig::default() });
    report(0, ["--http", "3", "-k", "-n", "200", "-c", "2", &server.url()]).assert_all(200, 200);
    let there = format!("[::1]:{}", server.port());
    let args = ["--http", "3", "-k", "-n", "50", "-c", "2", "--connect-to", &there, "https://localhost/"];
    report(0, args).assert_all(50, 200);
    assert_eq!(server.requests(), 250);
}

#[test]
fn a_client_shows_its_certificate() {
    let (made, dir) = (client_certificate("somebody").unwrap(), Directory::new());
    let [certificate, key] =
        [("client.pem", &made.certificate_pem), ("key.pem", &made.key_pem)].map(|(name, text)| dir.file(name, text));
    let tls = Tls { client_ca: Some(Pem::Text(made.authority_pem)), ..Tls::default() };
    let server = Server::start(ServerConfig { tls: Some(tls), http3: true, ..ServerConfig::default() }).unwrap();
    let ca = dir.file("ca.pem", server.certificate_pem().unwrap());
    let args = ["--http", "3", "-n", "20", "-c", "2", "--cacert", &ca];
    let url = server.url();
    report(0, [args.as_slice(), &["--cert", &certificate, "--key", &key, &url]].concat()).assert_all(20, 200);
    let without = report(3, [args.as_slice(), &[&url]].concat());
    assert_eq!(without.failures(), [("tls", 20)].into());
    let says = |reason: &String| reason.contains("the target wants a client's certificate: give --cert and --key");
    assert!(without.reasons().keys().all(says), "{:?}", without.reasons());
    assert_eq!(server.requests(), 20);
}

#[test]
fn certificates_for_another_name_are_refused_in_the_words_of_tls_over_tcp() {
    let server = target(ServerConfig::default());
    let ca = Directory::new();
    let ca = ca.file("ca.pem", server.certificate_pem().unwrap());
    let mut told = Vec::new();
    for version in ["3", "2"] {
        let args = ["--http", version, "-n", "2", "-c", "1", "--cacert", &ca, "--sni", "other.example", &server.url()];
        let refused = report(3, args);
        assert_eq!(refused.failures(), [("tls", 2)].into());
        told.push(refused.reasons().into_keys().collect::<Vec<_>>());
    }
    assert_eq!(told[0], told[1]);
    assert!(told[0][0].contains("the certificate is not for other.example but for localhost"), "{told:?}");
}

#[test]
fn versions_are_compared_by_one_command() {
    let server = target(ServerConfig { delay: Delay::Fixed(Duration::from_millis(10)), ..ServerConfig::default() });
    let dir = Directory::new();
    let runs = dir.path("runs");
    let args = ["compare", "-n32", "-w0", "-t1", "-k", "--keep", &runs, "--a", "--http 2", "--b", "--http 3 -c 4"];
    let done = run([args.as_slice(), &[&server.url()]].concat()).with_status(0);
    assert!(done.stdout.contains("--http 3"), "{done:#?}");
    assert_eq!(server.requests(), 20 * 32);
}

#[test]
fn a_command_of_curl_asks_for_it() {
    let server = target(ServerConfig::default());
    let line = format!("curl -k --http3 {}", server.url());
    let done = run(["curl", &line, "-n", "20", "-c", "2", "--format", "json"]).with_status(0);
    Report::parse(&done).assert_all(20, 200);
    let once = run(["curl", &line, "--once"]).with_status(0);
    assert!(once.stdout.contains("HEADERS, stream 0"), "{once:#?}");
    assert_eq!(server.requests(), 21);
}

#[test]
fn round_trip_times_have_values_in_each_second() {
    let server = target(ServerConfig::default());
    let url = server.url();
    let args = ["--http", "3", "-k", "-r", "50", "-d", "3s", "-c", "2", &url];
    let shown = run([args.as_slice(), &["-v"]].concat()).with_status(0).stdout;
    assert!(shown.contains("quic_rtt"), "{shown}");
    let report = report(0, args);
    let seconds = report.at("/series").as_array().unwrap();
    let with = seconds.iter().filter(|point| point["own"].get("quic_rtt").is_some()).count();
    assert!(with >= 2, "{seconds:#?}");
    let own = report.at("/names/own").as_array().unwrap();
    assert_eq!(own.len(), 1, "{own:#?}");
    assert_eq!((&own[0]["name"], &own[0]["unit"]), (&"quic_rtt".into(), &"ms".into()));
    // Two connections, for three seconds and at their ends.
    assert!((6..=8).contains(&own[0]["count"].as_u64().unwrap()), "{own:#?}");
    let before = run(["--http", "2", "-k", "-v", "-n", "10", &server.url()]).with_status(0).stdout;
    assert!(!before.contains("quic_rtt"), "{before}");
}

#[test]
fn rows_of_calls_have_the_bytes_that_streams_carry() {
    let server = target(ServerConfig::default());
    let dir = Directory::new();
    let body = dir.file("body", "x".repeat(20_000));
    let url = format!("{}_/echo", server.url());
    let mut sizes = Vec::new();
    for version in ["3", "2"] {
        let rows = dir.path(&format!("{version}.csv"));
        let args =
            ["--http", version, "-k", "-n", "3", "-c", "1", "--streams", "1", "--samples", &rows, "--body-file", &body];
        report(0, [args.as_slice(), &[&url]].concat()).assert_all(3, 200);
        let text = std::fs::read_to_string(&rows).unwrap();
        let mut lines =
            text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(',').collect::<Vec<_>>());
        let place = lines.next().unwrap().iter().position(|name| *name == "bytes_out").unwrap();
        sizes.push(lines.map(|row| row[place].parse::<u64>().unwrap()).collect::<Vec<_>>());
    }
    // Two frames of data, with a few bytes for the head of each and of the request.
    assert!(sizes[0].iter().all(|size| (20_000..20_200).contains(size)), "{sizes:?}");
}
