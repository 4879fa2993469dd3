//! What breaks in the middle of a run: agents, the bus, controllers.

use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::bus::{Agent, Bus, agent, agrees, closes, read, target, unknown};
use crate::program::{Running, until};

/// Starts a run that all of these agents carry out.
pub fn started(bus: &Bus, agents: &[Agent], args: &[&str]) -> Running {
    let url = bus.url();
    let running = Running::start([args, &["--nats", &url, "--format", "json", "--quiet"]].concat());
    for agent in agents {
        agent.says("prepares workers");
    }
    running
}

/// Starts a run, breaks something once all agents carry it out, and returns what came of the run.
pub fn broken(bus: &Bus, agents: &[Agent], args: &[&str], mut breaking: impl FnMut()) -> crate::program::Done {
    let running = started(bus, agents, args);
    // Into the measured part, wherever within a second that is.
    sleep(Duration::from_millis(1700));
    breaking();
    running.wait()
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn the_accounts_close_when_an_agent_is_killed() {
    let (bus, server) = (Bus::start(), target());
    let mut agents = bus.agents(3);
    let (others, lost) = agents.split_at_mut(2);
    let args = ["-r", "300", "-d", "5s", "-t", "1", &server.url()];
    let done = broken(&bus, others, &args, || lost[0].kill()).with_status(4);
    let report = read(&done);
    agrees(&report, server.requests());
    assert_eq!(report["outcomes"]["due"], 1500);
    let gone = agent(&report, "a3");
    assert!(gone["lost"]["reason"].as_str().unwrap().contains("nothing was heard of it"), "{gone:#}");
    // It sent for at least 1 s, and was killed before 4 s; what it did not report it may have sent, as 8 s were granted.
    assert!((100..=400).contains(&unknown(&report)) && report["outcomes"]["unsent"] == 0, "{report:#}");
    // The figures of the others are what they themselves wrote down.
    for name in ["a1", "a2"] {
        assert_eq!(agent(&report, name)["answered"], bus.kept(name, 1)["outcomes"]["answered"], "{name}");
        assert_eq!(agent(&report, name)["due"], 500, "{name}");
    }
    for agent in others {
        agent.says("is free again");
    }
    // The next run goes on without it.
    assert_eq!(bus.run(&["-n", "30", "-c", "2", &server.url()])["outcomes"]["answered"], 30);
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn agents_that_stand_still_are_lost_and_come_back_free() {
    let (bus, server) = (Bus::start(), target());
    let agents = bus.agents(3);
    let args = ["-r", "300", "-d", "6s", "-t", "1", &server.url()];
    let done = broken(&bus, &agents, &args, || {
        agents[0].send(Signal::STOP);
        agents[1].send(Signal::STOP);
    });
    let report = read(&done.with_status(4));
    closes(&report);
    assert_eq!(report["outcomes"]["due"], 1800);
    assert!(agent(&report, "a1")["lost"].is_object() && agent(&report, "a2")["lost"].is_object(), "{report:#}");
    assert!(agent(&report, "a3")["lost"].is_null());
    for stopped in &agents[..2] {
        stopped.send(Signal::CONT);
        stopped.says("is free again");
    }
    assert_eq!(bus.run(&["-n", "30", "-c", "3", "--agents", "3", &server.url()])["outcomes"]["answered"], 30);
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_bus_that_is_started_anew_loses_nothing() {
    let (mut bus, server) = (Bus::start(), target());
    let agents = bus.agents(2);
    let running = started(&bus, &agents, &["-r", "200", "-d", "9s", &server.url()]);
    sleep(Duration::from_millis(1500));
    bus.end();
    // Under the default they may go on by themselves for 8 s.
    sleep(Duration::from_secs(5));
    bus.begin();
    let report = read(&running.wait().with_status(0));
    closes(&report);
    assert_eq!((&report["outcomes"]["due"], &report["outcomes"]["answered"]), (&1800.into(), &1800.into()));
    assert_eq!(server.requests(), 1800);
    assert!(agent(&report, "a1")["lost"].is_null() && agent(&report, "a2")["lost"].is_null());
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_bus_that_stays_away_ends_the_run_on_both_sides() {
    let (mut bus, server) = (Bus::start(), target());
    let agents = bus.agents(2);
    let running = started(&bus, &agents, &["-r", "200", "-d", "10m", &server.url()]);
    sleep(Duration::from_millis(1500));
    bus.end();
    for agent in &agents {
        agent.says("is free again: nothing was heard");
    }
    let report = read(&running.wait().with_status(4));
    closes(&report);
    let before = server.requests();
    sleep(Duration::from_millis(300));
    assert_eq!(server.requests(), before, "nobody calls any more");
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn agents_stop_by_themselves_when_their_controller_is_killed() {
    let (bus, server) = (Bus::start(), target());
    let agents = bus.agents(2);
    let running = started(&bus, &agents, &["-r", "200", "-d", "10m", &server.url()]);
    until("calls are made", || server.requests() > 100);
    running.send(Signal::KILL);
    let began = Instant::now();
    for agent in &agents {
        agent.says("is free again: nothing was heard");
    }
    // They wait for 15 s: what takes far longer has not ended by that.
    assert!(began.elapsed() < Duration::from_secs(60));
    let before = server.requests();
    sleep(Duration::from_millis(300));
    assert_eq!(server.requests(), before, "nobody calls any more");
    assert_eq!(bus.run(&["-n", "30", "-c", "2", &server.url()])["outcomes"]["answered"], 30);
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn what_takes_several_runs_goes_on_with_the_agents_that_are_left() {
    let (bus, server) = (Bus::start(), target());
    let mut agents = bus.agents(2);
    let (others, lost) = agents.split_at_mut(1);
    let args = ["sweep", "-c", "2..4", "-r", "100", "-d", "5s", "-w", "0s", &server.url()];
    let done = broken(&bus, others, &args, || lost[0].kill()).with_status(4);
    let swept = read(&done);
    assert_eq!(swept["steps"].as_array().map(Vec::len), Some(2), "{swept:#}");
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn the_run_ends_with_an_agent_if_it_is_to() {
    let (bus, server) = (Bus::start(), target());
    let mut agents = bus.agents(2);
    let (others, lost) = agents.split_at_mut(1);
    let args = ["-r", "200", "-d", "10m", "--on-lost-agent", "abort", &server.url()];
    let done = broken(&bus, others, &args, || lost[0].kill()).with_status(4);
    let report = read(&done);
    closes(&report);
    assert!(done.stderr.contains("agent 'a2' was lost after"), "{done:#?}");
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn an_agent_that_is_told_to_end_says_so() {
    let (bus, server) = (Bus::start(), target());
    // Its terminal hangs up, too.
    for signal in [Signal::TERM, Signal::HUP] {
        let mut agents = bus.agents(2);
        let args = ["-r", "200", "-d", "4s", &server.url()];
        let (others, leaving) = agents.split_at_mut(1);
        let done = broken(&bus, others, &args, || leaving[0].send(signal)).with_status(4);
        let report = read(&done);
        closes(&report);
        assert_eq!(agent(&report, "a2")["lost"]["reason"], "it was ended on its machine", "{signal:?}");
        assert_eq!(report["outcomes"]["due"], 800);
        assert_eq!(leaving[0].wait(), Some(0));
    }
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_signal_ends_the_run_of_all_with_its_report() {
    let (bus, server) = (Bus::start(), target());
    for (signal, status) in [(Signal::INT, 130), (Signal::HUP, 129)] {
        let agents = bus.agents(2);
        let running = started(&bus, &agents, &["-r", "200", "-d", "10m", &server.url()]);
        sleep(Duration::from_millis(1500));
        running.send(signal);
        let report = read(&running.wait().with_status(status));
        closes(&report);
        assert_eq!(report["ending"], "interrupted");
        for agent in &agents {
            agent.says("is free again");
        }
        assert!(agents.iter().all(|agent| !agent.has_said("nothing was heard")));
    }
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn an_agent_that_cannot_is_named() {
    let (bus, server) = (Bus::start(), target());
    let _strong = bus.agent("strong");
    let shell =
        format!("ulimit -n 128; exec {} agent --nats {} --name weak --cores 1", env!("CARGO_BIN_EXE_brunt"), bus.url());
    let mut weak = Agent::start(std::process::Command::new("sh").args(["-c", &shell]), "weak");
    let done = bus.command(&["-c", "1000", "-d", "1s", &server.url()]);
    assert_eq!(done.status, Some(3), "{done:#?}");
    assert!(done.stderr.contains("agent 'weak'") && done.stderr.contains("file descriptors"), "{}", done.stderr);
    // Both are free again.
    weak.kill();
    assert_eq!(bus.run(&["-n", "10", "-c", "1", "--agents", "1", &server.url()])["outcomes"]["answered"], 10);
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_target_that_nobody_reaches_never_answered() {
    let bus = Bus::start();
    let _agents = bus.agents(2);
    let (_kept, nobody) = crate::program::nobody();
    let done = bus.command(&["-r", "100", "-d", "30s", &nobody]);
    assert_eq!(done.status, Some(3), "{done:#?}");
    closes(&read(&done));
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_second_controller_is_told_or_waits() {
    let (bus, server) = (Bus::start(), target());
    let agents = bus.agents(2);
    let first = started(&bus, &agents, &["-r", "100", "-d", "4s", &server.url()]);
    let told = bus.command(&["-n", "10", "-c", "2", "--agents", "2", "--agents-wait", "1s", &server.url()]);
    assert_eq!(told.status, Some(4), "{told:#?}");
    assert!(
        told.stderr.contains("2 agents are wanted, and 0 came") && told.stderr.contains("carries out a run of"),
        "{told:#?}"
    );
    let patient = bus.run(&["-n", "10", "-c", "2", "--agents", "2", "--agents-wait", "60s", &server.url()]);
    assert_eq!(patient["outcomes"]["answered"], 10);
    assert_eq!(read(&first.wait().with_status(0))["outcomes"]["answered"], 400);
}
