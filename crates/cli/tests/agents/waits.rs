//! Agents that answer and do not go on, second signals, and agents that come back.

use std::time::{Duration, Instant};

use rustix::fs::{Mode, mkfifoat};
use rustix::process::Signal;
use serde_json::Value;
use std::thread::sleep;

use crate::breaking::started;
use crate::bus::{Bus, agent, closes, read, target};
use crate::program::{Directory, brunt, done};

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_disk_that_hangs_keeps_neither_run_nor_agent_from_the_next_one() {
    let (bus, server) = (Bus::start(), target());
    let _first = bus.agent("a1");
    let keep = Directory::new();
    // Nobody reads it: opening it for writing never returns.
    mkfifoat(rustix::fs::CWD, keep.path("001.json"), Mode::RUSR | Mode::WUSR).unwrap();
    let args = ["agent", "--nats", &bus.url(), "--name", "a2", "--cores", "1", "--keep", &keep.path("")];
    let second = crate::bus::Agent::start(&mut brunt(args), "a2");
    for requests in ["90", "50"] {
        let report = bus.run(&["-n", requests, "-c", "2", &server.url()]);
        assert_eq!(report["outcomes"]["answered"].to_string(), requests);
        second.says("is free again");
    }
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn ctrl_c_twice_writes_what_was_measured_while_an_agent_does_not_go_on() {
    let (bus, server) = (Bus::start(), target());
    let agents = bus.agents(2);
    let running = started(&bus, &agents, &["-r", "200", "-d", "10m", "-t", "1", &server.url()]);
    sleep(Duration::from_millis(2500));
    agents[1].send(Signal::STOP);
    let began = Instant::now();
    running.send(Signal::INT);
    sleep(Duration::from_millis(300));
    running.send(Signal::INT);
    let report = read(&running.wait().with_status(130));
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    closes(&report);
    assert!(report["outcomes"]["answered"].as_u64() > Some(100), "{:#}", report["outcomes"]);
    assert_eq!(report["ending"], "interrupted");
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn an_agent_that_is_back_makes_the_next_steps_and_who_made_which_is_said() {
    let (bus, server) = (Bus::start(), target());
    let mut agents = bus.agents(2);
    let url = server.url();
    let running = started(&bus, &agents, &["sweep", "-r", "80,90,100", "-d", "3s", "-w", "0s", "--drain", "1s", &url]);
    sleep(Duration::from_millis(1200));
    agents[1].kill();
    // The first step is lost, and made again by the other; the agent is back while that goes on.
    agents[0].says_times("prepares workers", 2);
    let back = bus.agent("a2");
    back.says_times("prepares workers", 2);
    let swept = read(&running.wait().with_status(4));
    let losses: Vec<_> = swept["losses"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(losses.iter().any(|line| line.starts_with("made by a1: rate 80")), "{losses:?}");
    assert!(losses.iter().any(|line| line.starts_with("made by a1, a2: ") && line.contains("rate 100")), "{losses:?}");
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn what_no_number_bounds_is_said_by_connections_and_time() {
    let (bus, server) = (Bus::start(), target());
    let mut agents = bus.agents(2);
    let (others, lost) = agents.split_at_mut(1);
    let args = ["-c", "5", "-d", "6s", "-t", "1", &server.url()];
    let report = read(&crate::breaking::broken(&bus, others, &args, || lost[0].kill()).with_status(4));
    closes(&report);
    // Of five connections the second of two has two.
    let untold = &agent(&report, "a2")["lost"]["untold"];
    assert_eq!(untold["connections"], 2, "{untold:#}");
    assert!((500_000_000..6_000_000_000).contains(&untold["ns"].as_u64().unwrap()), "{untold:#}");
    let remarks = report["remarks"].to_string();
    assert!(remarks.contains("2 connections may have made calls for up to"), "{remarks}");
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_login_that_is_refused_later_is_said_and_taken_again() {
    let login = |password: &str| format!("authorization {{ user: load, password: {password} }}\n");
    let (mut bus, server) = (Bus::with(&login("first0")), target());
    let url = format!("nats://load:first0@127.0.0.1:{}", bus.port);
    let args = ["agent", "--nats", &url, "--name", "a1", "--cores", "1"];
    let agent = crate::bus::Agent::start(&mut brunt(args), "a1");
    bus.configure(&login("second0"));
    bus.end();
    bus.begin();
    agent.says("the NATS server refuses the login");
    assert!(!agent.has_said("first0"));
    bus.configure(&login("first0"));
    bus.end();
    bus.begin();
    agent.says("the NATS server is back");
    let run = ["-n", "20", "-c", "1", "--nats", &url, "--agents", "1", "--quiet", &server.url()];
    done(&mut brunt(run)).with_status(0);
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn each_agent_writes_its_own_calls_down_and_a_lost_one_leaves_a_file_without_an_end() {
    let (bus, server, rows) = (Bus::start(), target(), Directory::new());
    let mut agents: Vec<_> =
        ["a1", "a2"].iter().map(|name| bus.agent_with(name, &["--samples", &rows.path("")])).collect();
    let report = bus.run(&["-n", "90", "-c", "4", "-w", "0s", &server.url()]);
    assert_eq!(report["outcomes"]["due"], 90);
    let (mut written, mut times) = (0, Vec::new());
    for (name, agent) in ["a1", "a2"].iter().zip(&agents) {
        agent.says(" rows");
        let text = std::fs::read_to_string(rows.path(&format!("{name}-001.csv"))).unwrap();
        let calls: Vec<&str> =
            text.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit())).collect();
        assert!(calls.iter().all(|line| line.split(',').nth(9) == Some(name)), "{text}");
        assert!(text.contains("zero_unix_ns=") && text.contains(&format!("# rows={} ", calls.len())), "{text}");
        written += calls.len();
        let number = |line: &str, column| line.split(',').nth(column).unwrap().parse::<f64>().unwrap();
        times.extend(calls.iter().map(|line| number(line, 2) - number(line, 0) - number(line, 15)));
    }
    assert_eq!(written, 90);
    times.sort_by(f64::total_cmp);
    let quantiles = report["times"]["response"]["quantiles"].as_array().unwrap();
    for (name, exact) in [("p50", times[44]), ("p99", times[89])] {
        let shown = quantiles.iter().find(|quantile| quantile["name"] == name).unwrap()["value_ns"].as_f64().unwrap();
        assert!((shown - exact).abs() <= exact * 0.008 + 1.0, "{name}: {shown} and {exact}");
    }

    let running = started(&bus, &agents, &["-r", "200", "-d", "8s", "-w", "0s", &server.url()]);
    // Both carry out this run, too.
    for agent in &agents {
        agent.says_times("prepares workers", 2);
    }
    sleep(Duration::from_millis(1200));
    agents[1].kill();
    running.wait().with_status(4);
    agents[0].says_times("csv has ", 2);
    let text = |name: &str| std::fs::read_to_string(rows.path(&format!("{name}-002.csv"))).unwrap();
    assert!(
        text("a1").contains("# rows=") && !text("a2").contains("# rows="),
        "the lost agent's file has no last line"
    );

    let few = [
        "--samples",
        &rows.path(""),
        "--samples-format",
        "ndjson",
        "--samples-share",
        "0.5",
        "--samples-limit",
        "6000",
    ];
    drop(agents);
    let few = bus.agent_with("few", &few);
    bus.run(&["-n", "400", "-c", "4", "-w", "0s", "--agents", "1", &server.url()]);
    few.says("calls have none, as 50% of calls have one");
    few.says("calls have none, as the file is full (--samples-limit)");
    let text = std::fs::read_to_string(rows.path("few-001.ndjson")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let account = lines.last().unwrap();
    let count = |name: &str| account[name].as_u64().unwrap();
    assert!(count("rows") as usize == lines.len() - 2 && count("rows") > 0 && text.len() < 7000, "{account}");
    assert_eq!(count("rows") + count("left_out_by_share") + count("left_out_by_limit"), 400, "{account}");

    let refused = bus.command(&["-n", "9", "--samples", &rows.path("all.csv"), &server.url()]).with_status(2);
    assert!(refused.stderr.contains("start the agents with --samples"), "{refused:#?}");
}
