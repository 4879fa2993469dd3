//! A log that agents replay together: what one machine would have replayed, once each, and whatever breaks, the accounts close.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::process::Signal;
use serde_json::Value;

use crate::breaking::{broken, started};
use crate::bus::{Agent, Bus, agent, agrees, closes, read, target, unknown};
use crate::program::{Directory, brunt, run};

/// A server that writes down what it is asked, connection by connection.
struct Recorder {
    url: String,
    asked: Arc<Mutex<BTreeMap<usize, Vec<String>>>>,
}

impl Recorder {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (url, asked) = (format!("http://{}/", listener.local_addr().unwrap()), Arc::default());
        let kept = Arc::clone(&asked);
        // It ends with the test's process.
        spawn(move || {
            for (number, stream) in listener.incoming().map_while(Result::ok).enumerate() {
                let kept = Arc::clone(&kept);
                spawn(move || converse(number, stream, &kept));
            }
        });
        Self { url, asked }
    }

    /// What each session has asked, in its order, since this was last taken: whatever its connection was called.
    fn take(&self) -> Vec<Vec<String>> {
        let mut sessions: Vec<_> = std::mem::take(&mut *self.asked.lock().unwrap()).into_values().collect();
        sessions.sort();
        sessions
    }
}

fn converse(number: usize, stream: TcpStream, asked: &Mutex<BTreeMap<usize, Vec<String>>>) {
    let mut out = stream.try_clone().unwrap();
    let mut first = String::new();
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        if first.is_empty() {
            first.clone_from(&line);
        }
        if !line.is_empty() {
            continue;
        }
        let request = std::mem::take(&mut first);
        let body = if request.starts_with("HEAD ") { "" } else { "ok" };
        asked.lock().unwrap().entry(number).or_default().push(request);
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{body}");
        if out.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// A log of so many seconds with 50 requests each, of so many clients; some lines are wrong, and some write.
fn log(seconds: u32, clients: u32) -> String {
    let mut text = String::new();
    for nth in 0..seconds * 50 {
        let (second, client) = (nth / 50, nth * 7 % clients);
        let method = ["GET", "GET", "HEAD", "POST"][(nth % 4) as usize];
        let status = if nth % 10 == 3 { 404 } else { 200 };
        let _ = writeln!(
            text,
            "10.0.0.{client} - - [01/Jan/2026:00:{:02}:{:02} +0000] \"{method} /items/{nth} HTTP/1.1\" {status} 2 \"-\" \"x\"",
            second / 60,
            second % 60
        );
        if nth % 25 == 0 {
            text += "what is this?\n";
        }
    }
    text
}

/// Requests of such a log that write nothing.
fn sent(seconds: u64) -> u64 {
    // Of four, three.
    (seconds * 50 * 3).div_ceil(4)
}

fn agents(bus: &Bus, number: usize) -> Vec<Agent> {
    let logs = bus.directory().path("");
    (1..=number).map(|number| bus.agent_with(&format!("a{number}"), &["--logs", &logs])).collect()
}

fn packed(text: &str) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap()
}

/// The same without what differs from run to run: how long things took.
fn untimed(replayed: &Value) -> Value {
    let mut replayed = replayed.clone();
    let rows = replayed["templates"].as_array().unwrap().len();
    for row in 0..=rows {
        let row = if row == rows { &mut replayed["all"] } else { &mut replayed["templates"][row] };
        for time in ["came_p50_ns", "came_p95_ns"] {
            row.as_object_mut().unwrap().remove(time);
        }
    }
    replayed
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn agents_together_ask_what_one_machine_asks_session_by_session() {
    let (bus, server) = (Bus::start(), Recorder::start());
    let _agents = agents(&bus, 3);
    let text = log(8, 23);
    let file = bus.directory().file("access.log", &text);
    let gz = bus.directory().file("access.log.gz", packed(&text));
    let one = bus.directory().file("one.log", log(2, 1));
    let rows: [&[&str]; 8] = [
        &[&file, "--speed", "8x"],
        &[&gz, "--speed", "8x", "--unsafe", "--think"],
        &[&file, "--speed", "8x", "--scale", "2.5x"],
        &[&file, "--speed", "8x", "--scale", "0.4x", "--filter", "status=200", "--rewrite", "/items=/v2/items"],
        &[&file, "--speed", "8x", "--session", "none", "-t", "2"],
        &[&file, "--window", "00:00:03-00:00:05", "-H", "X: 1"],
        // Two of three agents have nothing to do.
        &[&one, "--speed", "4x"],
        &[&one, "--speed", "4x", "--loop", "-d", "1300ms"],
    ];
    for row in rows {
        let row = [&["replay", "--seed", "7", "--allow-less", "100%"], row, &[&server.url]].concat();
        let alone = run([&row[..], &["--format", "json", "--no-save", "--quiet"]].concat()).with_status(0);
        let (alone, asked): (Value, _) = (serde_json::from_str(&alone.stdout).unwrap(), server.take());
        let together = bus.run(&[&row[..], &["--no-save"]].concat());
        closes(&together);
        let (mut by_agents, mut by_one) = (server.take(), asked);
        if row.contains(&"none") {
            // Connections are shared: how is of no account.
            by_agents = vec![by_agents.concat()];
            by_one = vec![by_one.concat()];
            by_agents.iter_mut().chain(&mut by_one).for_each(|all| all.sort());
        }
        assert!(by_agents == by_one, "{row:?}: {} sessions, and {} alone", by_agents.len(), by_one.len());
        assert_eq!(together["outcomes"]["due"], alone["outcomes"]["due"], "{row:?}");
        if row.contains(&"--loop") {
            // How far it was read ahead when it ended is of no account.
            assert_eq!(untimed(&together["replay"])["all"], untimed(&alone["replay"])["all"], "{row:?}");
        } else {
            assert_eq!(untimed(&together["replay"]), untimed(&alone["replay"]), "{row:?}");
        }
    }
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn the_accounts_of_a_log_close_when_an_agent_is_killed() {
    let bus = Bus::start();
    let file = bus.directory().file("access.log", log(12, 23));
    // In its own time, and ended before the log is over.
    for (more, seconds) in [(&[][..], 12), (&["-d", "6s"], 6)] {
        let server = target();
        let mut agents = agents(&bus, 3);
        let (others, lost) = agents.split_at_mut(2);
        let url = server.url();
        let args = [&["replay", &file, &url], more].concat();
        let done = broken(&bus, others, &args, || lost[0].kill()).with_status(4);
        let report = read(&done);
        agrees(&report, server.requests());
        let of = |name: &str| report["outcomes"][name].as_u64().unwrap();
        assert_eq!(of("due"), sent(seconds), "{:#}", report["outcomes"]);
        assert_eq!(report["replay"]["requests"], of("due"));
        assert_eq!(report["replay"]["sessions"], 23);
        // It was killed after 1.7 s or somewhat later, and may have sent what is due in the eight seconds that were granted.
        let expected = if seconds == 12 { of("unsent") > 0 } else { of("unsent") == 0 };
        assert!(unknown(&report) > 0 && expected, "{:#}", report["outcomes"]);
        let series = report["series"].as_array().unwrap();
        assert_eq!(series.iter().map(|point| point["due"].as_u64().unwrap()).sum::<u64>(), of("due"));
        for second in series.iter().take(series.len() - 1) {
            assert!((35..=39).contains(&second["due"].as_u64().unwrap()), "{second:#}");
        }
        for agent in others {
            agent.says("is free again");
        }
    }
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn an_agent_that_stands_still_sends_nothing_beyond_its_horizon() {
    let (bus, server) = (Bus::start(), target());
    let file = bus.directory().file("access.log", log(20, 23));
    let agents = agents(&bus, 2);
    let running = started(&bus, &agents, &["replay", &file, "--on-lost-agent", "continue", &server.url()]);
    sleep(Duration::from_millis(1700));
    agents[1].send(Signal::STOP);
    sleep(Duration::from_secs(14));
    agents[1].send(Signal::CONT);
    let done = running.wait().with_status(0);
    let report = read(&done);
    agrees(&report, server.requests());
    assert_eq!(report["outcomes"]["due"], sent(20), "{:#}", report["outcomes"]);
    assert!(report["outcomes"]["unsent"].as_u64().unwrap() > 0, "{:#}", report["outcomes"]);
    assert!(agent(&report, "a2")["lost"].is_object());
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn ctrl_c_and_an_agent_that_leaves_end_with_what_was_replayed() {
    let (bus, server) = (Bus::start(), target());
    let file = bus.directory().file("access.log", log(20, 23));
    let mut agents = agents(&bus, 2);
    let running = started(&bus, &agents, &["replay", &file, &server.url()]);
    sleep(Duration::from_millis(2200));
    running.send(Signal::INT);
    let report = read(&running.wait().with_status(130));
    agrees(&report, server.requests());
    assert_eq!((unknown(&report), &report["replay"]["all"]["calls"]), (0, &report["outcomes"]["due"]));
    // One is told to end, and tells what came of its part.
    let before = server.requests();
    let args = ["replay", &file, "-d", "6s", "--on-lost-agent", "continue", &server.url()];
    let running = started(&bus, &agents[..0], &args);
    agents[1].says_times("prepares workers", 2);
    sleep(Duration::from_millis(1700));
    agents[1].send(Signal::TERM);
    let report = read(&running.wait().with_status(0));
    assert_eq!(agents[1].wait(), Some(0));
    agrees(&report, server.requests() - before);
    assert_eq!(report["outcomes"]["due"], sent(6), "{:#}", report["outcomes"]);
    assert_eq!(unknown(&report), 0, "it has told of all that it made");
    let compared = report["replay"]["all"]["answered"].as_u64().unwrap();
    assert_eq!(report["outcomes"]["answered"], compared, "{:#}", report["replay"]["all"]);
}

/// An agent in a directory of its own, where it may read logs.
fn agent_in(bus: &Bus, name: &str, directory: &Directory) -> Agent {
    let (url, logs) = (bus.url(), directory.path(""));
    let mut command = brunt(["agent", "--nats", &url, "--name", name, "--cores", "1", "--logs", &logs]);
    Agent::start(command.current_dir(directory), name)
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn an_agent_without_the_log_is_named_before_the_load() {
    let (bus, server, here) = (Bus::start(), target(), Directory::new());
    // Each process finds its own directory there.
    let path = "/proc/self/cwd/access.log";
    let text = log(4, 5);
    let replay = |status: i32| {
        let (bus_url, url) = (bus.url(), server.url());
        let args =
            ["replay", path, "--quiet", "--no-save", "--format", "json", "--speed", "4x", "--nats", &bus_url, &url];
        crate::program::done(brunt(args).current_dir(&here)).with_status(status)
    };
    let refused = |there: Option<&str>, says: &str| {
        let (first, second) = (Directory::new(), Directory::new());
        first.file("access.log", &text);
        if let Some(text) = there {
            second.file("access.log", text);
        }
        let _agents = [agent_in(&bus, "a1", &first), agent_in(&bus, "a2", &second)];
        let error = replay(2).stderr;
        assert!(error.contains("agent 'a2': ") && error.contains(says), "{error}");
        assert_eq!(server.requests(), 0, "no request before all agents are ready");
    };
    here.file("access.log", &text);
    refused(None, "cannot read the log /proc/self/cwd/access.log");
    refused(Some(&text.replace("/items/7 ", "/items/8 ")), "is another one here than where the run was planned");
    refused(Some(&text[1..]), "bytes here, and");
    // Without --logs it reads none.
    {
        let _deaf = bus.agent("a2");
        let error = replay(2).stderr;
        assert!(error.contains("agent 'a2': it may not read the log") && error.contains("--logs"), "{error}");
    }
    // What differs in a place that is not looked at before the load is found when it is read.
    let (first, second, text) = (Directory::new(), Directory::new(), log(150, 5));
    assert!(text.len() > 600_000);
    let place = text.find("/items/2000 ").unwrap();
    let other = [&text[..place], "/items/2001 ", &text[place + 12..]].concat();
    for (directory, text) in [(&here, &text), (&first, &text), (&second, &other)] {
        directory.file("access.log", text);
    }
    let _agents = [agent_in(&bus, "a1", &first), agent_in(&bus, "a2", &second)];
    let (bus_url, url) = (bus.url(), server.url());
    let args = ["replay", path, "--quiet", "--no-save", "--speed", "60x", "--nats", &bus_url, &url];
    let error = crate::program::done(brunt(args).current_dir(&here)).with_status(2).stderr;
    assert!(error.contains("agent 'a2' did not read the log that this brunt has read: they differ at line"), "{error}");
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_log_that_is_cut_off_or_grows_meanwhile_is_replayed_as_it_was_or_not_at_all() {
    let (bus, server) = (Bus::start(), Recorder::start());
    let _agents = agents(&bus, 2);
    // Larger than what is read ahead.
    let long = bus.directory().file("long.log", log(1500, 5));
    let running = started(&bus, &[], &["replay", &long, "--speed", "100x", &server.url]);
    sleep(Duration::from_millis(2500));
    std::fs::OpenOptions::new().write(true).open(&long).unwrap().set_len(2_000_000).unwrap();
    let done = running.wait().with_status(2);
    assert!(done.stderr.contains("was cut off while it was read"), "{done:#?}");
    server.take();
    let grows = bus.directory().file("grows.log", log(3, 5));
    let running = started(&bus, &[], &["replay", &grows, "--allow-less", "100%", &server.url]);
    sleep(Duration::from_millis(1500));
    let mut file = std::fs::OpenOptions::new().append(true).open(&grows).unwrap();
    file.write_all(log(9, 5).as_bytes()).unwrap();
    let report = read(&running.wait().with_status(0));
    closes(&report);
    assert_eq!(report["outcomes"]["due"], sent(3));
    for (args, says) in [
        (&["replay", "-", &server.url][..], "cannot read this brunt's standard input"),
        (&["replay", &grows, "--scale", "2x", "--shift", "61s", &server.url], "at most 60s"),
    ] {
        let error = bus.command(args).with_status(2).stderr;
        assert!(error.contains(says), "{error}");
    }
}
