//! What a lost agent means for what was asked: the exit status, and decisions over several runs.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{sleep, spawn};
use std::time::Duration;

use brunt_testbed::server::{Delay, Server, ServerConfig};
use rustix::process::Signal;
use serde_json::Value;

use crate::breaking::{broken, started};
use crate::bus::{Bus, agent, agrees, closes, read, target, unknown};
use crate::program::{Directory, until};

/// Sentences about losses, without those that say which agents made which run.
fn losses(decision: &Value) -> Vec<&str> {
    let all = decision["losses"].as_array().into_iter().flatten().filter_map(Value::as_str);
    all.filter(|line| !line.starts_with("made by ")).collect()
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_loss_ends_with_4_unless_it_was_allowed() {
    let (bus, server) = (Bus::start(), target());
    let url = server.url();
    for (allowed, status) in [(&[][..], 4), (&["--on-lost-agent", "continue"], 0)] {
        let mut agents = bus.agents(2);
        let (others, lost) = agents.split_at_mut(1);
        let args = [allowed, &["-r", "200", "-d", "5s", "-t", "1", &url]].concat();
        let done = broken(&bus, others, &args, || lost[0].kill()).with_status(status);
        let report = read(&done);
        closes(&report);
        assert_eq!(report["ending"], "completed");
        assert_eq!(done.stderr.contains("agent 'a2' was lost after"), status == 4, "{done:#?}");
        assert_eq!(done.stderr.contains("--on-lost-agent"), status == 4, "{done:#?}");
    }
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_round_that_lost_an_agent_is_made_again() {
    let (bus, servers) = (Bus::start(), [target(), target()]);
    let mut agents = bus.agents(2);
    let (others, lost) = agents.split_at_mut(1);
    let (a, b) = (servers[0].url(), servers[1].url());
    let args = ["compare", "--rounds", "10", "-r", "100", "-d", "2s", "-w", "0s", &a, &b];
    let done = broken(&bus, others, &args, || lost[0].kill()).with_status(4);
    let compared = read(&done);
    let losses = losses(&compared);
    assert!(losses.len() == 1 && losses[0].starts_with("round 1 of 10: "), "{losses:?}");
    assert!(losses[0].contains("lost agent 'a2' after") && losses[0].ends_with("made again"), "{losses:?}");
    assert!(done.stderr.contains(losses[0]), "{done:#?}");
    let runs = compared["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 20, "{runs:#?}");
    assert!(runs.iter().all(|run| run["evidence"]["due"] == 200 && run["evidence"]["failed"] == 0), "{runs:#?}");
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_sweep_keeps_its_table_when_nobody_is_left() {
    let (bus, server) = (Bus::start(), target());
    let mut only = bus.agent("a1");
    let args = ["sweep", "-c", "1,2,4", "-r", "50", "-d", "3s", "-w", "0s", &server.url()];
    let running = started(&bus, &[], &args);
    only.says_times("prepares workers", 2);
    sleep(Duration::from_millis(1500));
    only.kill();
    let done = running.wait().with_status(4);
    let swept = read(&done);
    let steps = swept["steps"].as_array().unwrap();
    assert_eq!(steps[0]["evidence"]["due"], 150, "{swept:#}");
    let problem = steps[1]["problem"].as_str().unwrap();
    assert!(steps[1]["evidence"].is_null() && problem.contains("lost agent 'a1'"), "{swept:#}");
    assert!(problem.ends_with("left out"), "{problem}");
    assert_eq!(steps.len(), 2);
    assert!(swept["ended"].as_str().unwrap().contains("no agent is left"), "{swept:#}");
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn an_agent_that_dies_between_runs_costs_no_run() {
    let (bus, server) = (Bus::start(), target());
    let mut agents = bus.agents(2);
    let junit = bus.directory().path("sweep.xml");
    let args = ["sweep", "-c", "2,4,6", "-r", "50", "-d", "2s", "-w", "0s", "-o", &junit, &server.url()];
    let running = started(&bus, &[], &args);
    // Its part is dealt, and has not begun.
    agents[1].says_times("prepares workers", 2);
    agents[1].kill();
    let done = running.wait().with_status(4);
    let swept = read(&done);
    let losses = losses(&swept);
    // On a busy machine it is dead a moment later.
    let is_told = |loss: &str| loss.contains("before it began (") || loss.contains("after 0.0s (");
    assert!(losses.len() == 1 && losses[0].contains("lost agent 'a2' ") && is_told(losses[0]), "{losses:?}");
    let due: Vec<_> = swept["steps"].as_array().unwrap().iter().map(|step| &step["evidence"]["due"]).collect();
    assert_eq!(due, [100, 100, 100]);
    // Two of three steps were made by one agent of two: JSON, the test cases and the line of errors say so.
    let [short] = swept["short"].as_array().unwrap().as_slice() else { panic!("{swept:#}") };
    assert_eq!((&short["asked"], &short["made"]), (&6.0.into(), &4.0.into()), "{short:#}");
    assert_eq!(swept["agents_lost"], true, "{swept:#}");
    let said = "only 66.7% of the load was made: 4 of 6 runs of an agent, 2 made by fewer agents";
    assert!(done.stderr.contains(&format!("error: {said}")), "{done:#?}");
    let xml = std::fs::read_to_string(junit).unwrap();
    assert!(
        xml.contains("tests=\"6\" failures=\"2\"") && xml.contains(&format!("<failure message=\"{said}\"")),
        "{xml}"
    );
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_run_of_an_agent_that_was_told_to_end_is_made_by_the_others() {
    let (bus, server) = (Bus::start(), target());
    let mut agents = bus.agents(2);
    let args = ["sweep", "-c", "2,4", "-r", "50", "-d", "4s", "-w", "0s", &server.url()];
    let (others, leaving) = agents.split_at_mut(1);
    let swept = read(&broken(&bus, others, &args, || leaving[0].send(Signal::TERM)).with_status(4));
    let due: Vec<_> = swept["steps"].as_array().unwrap().iter().map(|step| &step["evidence"]["due"]).collect();
    assert_eq!(due, [200, 200], "{swept:#}");
    let losses = losses(&swept);
    assert!(
        losses.len() == 1 && losses[0].ends_with("(it was ended on its machine), and was made again"),
        "{losses:?}"
    );
}

/// A server that is ready for so many calls, and then not before it is told.
fn gated(calls: usize) -> (String, Arc<AtomicUsize>, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (asked, is_open) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let shared = (Arc::clone(&asked), Arc::clone(&is_open));
    spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (asked, is_open) = shared.clone();
            spawn(move || {
                let mut out = stream.try_clone().unwrap();
                let heads = BufReader::new(stream).lines().map_while(Result::ok).filter(String::is_empty);
                for _ in heads {
                    let is_ready = asked.fetch_add(1, Ordering::Relaxed) < calls || is_open.load(Ordering::Relaxed);
                    let status = if is_ready { "200 OK" } else { "503 Not Yet" };
                    if write!(out, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").is_err() {
                        return;
                    }
                }
            });
        }
    });
    (url, asked, is_open)
}

/// It is lost to no run, and the second step has fewer agents than were asked for.
#[test]
#[ignore = "needs nats-server: make test installs it"]
fn an_agent_that_leaves_between_two_steps_is_missing_in_the_second() {
    for (more, status) in [(&[][..], 1), (&["--allow-less", "30%"], 0), (&["--on-lost-agent", "continue"], 0)] {
        // A call is made before each step, until the target is ready.
        let (bus, (url, asked, is_open)) = (Bus::start(), gated(1 + 60));
        let mut agents = bus.agents(2);
        let args = ["sweep", "-c", "2,6", "-n", "60", "-t", "1", "-w", "0s", "--wait-for", "2m", &url];
        let running = started(&bus, &[], &[&args, more].concat());
        until("the target is waited for", || asked.load(Ordering::Relaxed) > 1 + 60);
        agents[1].send(Signal::TERM);
        assert_eq!(agents[1].wait(), Some(0));
        is_open.store(true, Ordering::Relaxed);
        let done = running.wait().with_status(status);
        let swept = read(&done);
        assert!(losses(&swept).is_empty() && swept["agents_lost"].is_null(), "{swept:#}");
        let by: Vec<_> = swept["steps"].as_array().unwrap().iter().map(|step| &step["evidence"]["agents"]).collect();
        assert_eq!(by, [2, 1], "{swept:#}");
        let said = "only 75% of the load was made: 3 of 4 runs of an agent, 1 made by fewer agents";
        assert_eq!(done.stderr.contains(said), status == 1, "{done:#?}");
    }
}

/// Its user goes without: what is left is the loss in words, and figures whose exit status counts.
#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_decision_whose_user_goes_without_agents_lacks_nothing() {
    let (bus, server) = (Bus::start(), target());
    let mut agents = bus.agents(2);
    let (others, lost) = agents.split_at_mut(1);
    let url = server.url();
    let args = ["sweep", "-c", "2,4", "-r", "50", "-d", "4s", "-w", "0s", "--on-lost-agent", "continue", &url];
    let swept = read(&broken(&bus, others, &args, || lost[0].kill()).with_status(0));
    assert!(swept["short"].is_null() && swept["agents_lost"].is_null(), "{swept:#}");
    assert!(losses(&swept)[0].ends_with("made again"), "{swept:#}");
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_trial_that_lost_an_agent_says_nothing_of_the_target() {
    let (bus, server) = (Bus::start(), target());
    let url = server.url();
    for (allowed, status) in [(&[][..], 4), (&["--on-lost-agent", "continue"], 0)] {
        let mut agents = bus.agents(2);
        let (others, lost) = agents.split_at_mut(1);
        let search = ["find", "--threshold", "error_rate<1%", "--from", "100", "--highest", "100", "--repeats", "1"];
        let args = [&search[..], &["-d", "6s", "-w", "0s", &url], allowed].concat();
        let done = broken(&bus, others, &args, || lost[0].kill()).with_status(status);
        let found = read(&done);
        let losses = losses(&found);
        assert!(losses.len() == 1 && losses[0].ends_with("made again"), "{found:#}");
        let trials = found["trials"].as_array().unwrap();
        assert!(!trials.is_empty() && trials.iter().all(|trial| trial["outcome"] == "met"), "{trials:#?}");
    }
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_decision_ends_with_an_agent_if_it_is_to() {
    let (bus, server) = (Bus::start(), target());
    let mut agents = bus.agents(2);
    let (others, lost) = agents.split_at_mut(1);
    let url = server.url();
    let args = ["sweep", "-c", "2,4", "-r", "100", "-d", "5s", "-w", "0s", "--on-lost-agent", "abort", &url];
    let done = broken(&bus, others, &args, || lost[0].kill()).with_status(4);
    let swept = read(&done);
    assert_eq!(swept["steps"].as_array().unwrap().len(), 1, "{swept:#}");
    assert!(losses(&swept)[0].contains("lost agent 'a2' after"), "{swept:#}");
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn requests_that_a_lost_agent_has_not_told_of_are_counted() {
    let server =
        Server::start(ServerConfig { delay: Delay::Fixed(Duration::from_millis(10)), ..ServerConfig::default() })
            .unwrap();
    let (bus, url) = (Bus::start(), server.url());
    let mut agents = bus.agents(3);
    let (others, lost) = agents.split_at_mut(2);
    let done = broken(&bus, others, &["-c", "6", "-n", "6000", "-t", "1", &url], || lost[0].kill()).with_status(4);
    let report = read(&done);
    closes(&report);
    assert_eq!(report["outcomes"]["due"], 6000, "{:#}", report["outcomes"]);
    let of = |name: &str| report["outcomes"][name].as_u64().unwrap();
    // What it had in hand of its 2,000 is unknown, and others made what it had given back.
    assert!((1..2000).contains(&unknown(&report)) && of("unsent") == 0, "{:#}", report["outcomes"]);
    let by_others: u64 = ["a1", "a2"].iter().filter_map(|name| agent(&report, name)["answered"].as_u64()).sum();
    assert!(by_others >= 4000, "{:#}", report["agents"]["list"]);
    let seconds: u64 = report["series"].as_array().unwrap().iter().map(|point| point["due"].as_u64().unwrap()).sum();
    assert_eq!(seconds, 6000);
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_controller_that_stood_still_says_so() {
    let (bus, server) = (Bus::start(), target());
    let agents = bus.agents(2);
    let running =
        started(&bus, &agents, &["-r", "200", "-d", "24s", "-t", "1", "--on-lost-agent", "continue", &server.url()]);
    sleep(Duration::from_millis(2500));
    running.send(Signal::STOP);
    sleep(Duration::from_secs(18));
    running.send(Signal::CONT);
    let done = running.wait().with_status(4);
    let report = read(&done);
    closes(&report);
    let reason = agent(&report, "a1")["lost"]["reason"].as_str().unwrap();
    assert!(reason.contains("gave the run up") && reason.contains("stood still for"), "{reason}");
    assert!(done.stderr.contains("stood still for"), "{done:#?}");
    agrees(&report, server.requests());
    // What was sent until then is in the result.
    assert_eq!(report["outcomes"]["answered"], server.requests(), "{:#}", report["outcomes"]);
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn iterations_that_a_lost_agent_has_not_told_of_are_counted() {
    let (bus, server, dir) = (Bus::start(), target(), Directory::new());
    let script = dir.file(
        "visit.lua",
        format!(
            "local brunt = require 'brunt'\nlocal http = brunt.http {{ base = '{}' }}\n\
             brunt.scenario('visit', function() http:get('/') brunt.pause(0.01) end):inject {{ brunt.iterations_shared(6, 3000) }}",
            server.url()
        ),
    );
    let mut agents = bus.agents(3);
    let (others, lost) = agents.split_at_mut(2);
    let done = broken(&bus, others, &["run", "-t", "1", &script], || lost[0].kill()).with_status(4);
    let report = read(&done);
    closes(&report);
    // About 180 a second of its 1,000 were made, for a second or two.
    let unknown = agent(&report, "a3")["lost"]["iterations_unknown"].as_u64().unwrap();
    assert!((400..1000).contains(&unknown), "{unknown}");
    let visits = &report["names"]["scenarios"][0];
    let of = |name: &str| visits[name].as_u64().unwrap_or(0);
    assert_eq!(of("iterations") + of("unfinished") + of("errors") + unknown, 3000, "{visits:#}");
    let said =
        report["remarks"].as_array().unwrap().iter().any(|remark| {
            remark["message"].as_str().unwrap().contains(&format!("had not told of {unknown} iterations"))
        });
    assert!(said, "{:#}", report["remarks"]);
}
