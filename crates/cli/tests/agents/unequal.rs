//! Agents that are not equally fast, and requests of a counted number.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use crate::bus::{Agent, Bus, agent, agrees, closes, read};
use crate::program::{brunt, done};

/// What may be said of a target whose answers take two times, on a machine that has more to do.
const MAY_BE: [&str; 3] = ["modes", "slowness", "freeze"];

/// A target that takes as many milliseconds for an answer as a request's header `ms` says.
fn target_of_own_pace() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    spawn(move || listener.incoming().map_while(Result::ok).for_each(|stream| drop(spawn(move || answer(&stream)))));
    url
}

fn answer(stream: &TcpStream) {
    let mut ms = 0;
    stream.set_nodelay(true).unwrap();
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        if let Some(value) = line.strip_prefix("ms: ") {
            ms = value.parse().unwrap();
        }
        if line.is_empty() {
            sleep(Duration::from_millis(ms));
            let mut to = stream;
            if to.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").is_err() {
                return;
            }
        }
    }
}

fn agent_of_pace(bus: &Bus, name: &str, ms: &str) -> Agent {
    let args = ["agent", "--nats", &bus.url(), "--name", name, "--cores", "1"];
    Agent::start(brunt(args).env("PACE", ms), name)
}

/// `-n` of this many requests on six connections, which agents make at their own pace.
fn requests(bus: &Bus, number: &str, url: &str) -> std::process::Command {
    let (bus, pace) = (bus.url(), "ms: @PACE");
    let of_bus = ["--nats", &bus, "--agents", "2", "--secrets-from-agents", "--format", "json", "--quiet"];
    brunt([&["-n", number, "-c", "6", "-H", pace][..], &of_bus, &[url]].concat())
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_fast_agent_makes_the_requests_of_a_slow_one() {
    let (bus, url) = (Bus::start(), target_of_own_pace());
    let _agents = [agent_of_pace(&bus, "fast", "6"), agent_of_pace(&bus, "slow", "60")];
    let began = Instant::now();
    let report = read(&done(&mut requests(&bus, "4000", &url)).with_status(0));
    // Shares dealt ahead are 2,000 for each, and 40 s of the slow one's work.
    assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
    closes(&report);
    assert_eq!(report["outcomes"]["answered"], 4000);
    let by = |name: &str| agent(&report, name)["answered"].as_u64().unwrap();
    assert!(by("fast") > 3 * by("slow") && by("slow") > 100, "{} and {}", by("fast"), by("slow"));
    // Answers really take two times here, and this machine may be slow; that agents are unequal is no other finding.
    let remarks = report["remarks"].as_array().unwrap();
    let mut of_target = remarks.iter().filter(|remark| remark["of"] == "target");
    assert!(of_target.all(|remark| MAY_BE.contains(&remark["about"].as_str().unwrap())), "{remarks:#?}");
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn others_make_what_a_killed_agent_had_not_in_hand() {
    let (bus, url) = (Bus::start(), target_of_own_pace());
    let _other = agent_of_pace(&bus, "a1", "5");
    let mut killed = agent_of_pace(&bus, "a2", "5");
    let run = std::thread::scope(|scope| {
        let run = scope.spawn(|| done(&mut requests(&bus, "9000", &url)));
        killed.says("prepares workers");
        sleep(Duration::from_millis(3500));
        killed.kill();
        run.join().unwrap()
    });
    let report = read(&run.with_status(4));
    assert_eq!(report["outcomes"]["due"], 9000);
    agrees(&report, report["outcomes"]["answered"].as_u64().unwrap());
    // Of its share of 4,500 it had not reported some seconds of work.
    let unknown = report["outcomes"]["unknown"].as_u64().unwrap();
    assert!((1..=3200).contains(&unknown), "{:#}", report["outcomes"]);
    assert!(agent(&report, "a1")["answered"].as_u64() > Some(4500), "{:#}", report["agents"]["list"]);
}
