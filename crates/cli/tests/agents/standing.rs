//! Things that stand still instead of dying: agents, the bus, controllers.

use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;

use crate::breaking::{broken, started};
use crate::bus::{Bus, agent, agrees, read, target, unknown};
use crate::program::until;

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn an_agent_that_stands_still_for_two_seconds_loses_nothing() {
    let bus = Bus::start();
    for pause_ms in [1200, 2000] {
        let server = target();
        let agents = bus.agents(2);
        let done = broken(&bus, &agents, &["-r", "200", "-d", "6s", "-t", "1", &server.url()], || {
            agents[1].send(Signal::STOP);
            sleep(Duration::from_millis(pause_ms));
            agents[1].send(Signal::CONT);
        });
        let report = read(&done.with_status(0));
        agrees(&report, server.requests());
        assert_eq!((&report["outcomes"]["answered"], server.requests()), (&1200.into(), 1200), "{report:#}");
    }
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn an_agent_that_was_lost_and_goes_on_tells_what_it_made() {
    let (bus, server) = (Bus::start(), target());
    let agents = bus.agents(2);
    let done = broken(&bus, &agents, &["-r", "200", "-d", "12s", "-t", "1", &server.url()], || {
        agents[1].send(Signal::STOP);
        sleep(Duration::from_secs(5));
        agents[1].send(Signal::CONT);
    });
    let report = read(&done.with_status(4));
    agrees(&report, server.requests());
    let reason = agent(&report, "a2")["lost"]["reason"].as_str().unwrap();
    assert!(reason.contains("nothing was heard of it"), "{reason}");
    // It ended as soon as it heard that it is lost, and told of all that it had done.
    let of = |name: &str| report["outcomes"][name].as_u64().unwrap();
    assert_eq!((of("due"), unknown(&report), of("answered")), (2400, 0, server.requests()), "{report:#}");
    assert!(of("unsent") > 300 && report["agents"]["unsent_lost"].as_u64() > Some(300), "{report:#}");
    agents[1].says("is free again");
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn an_agent_that_never_goes_on_leaves_what_is_unknown() {
    let (bus, server) = (Bus::start(), target());
    let agents = bus.agents(2);
    let url = server.url();
    let args = ["-r", "200", "-d", "14s", "-t", "1", "--threshold", "error_rate<5%", &url];
    let report = read(&broken(&bus, &agents, &args, || agents[1].send(Signal::STOP)).with_status(4));
    agrees(&report, server.requests());
    // Granted are 8 s from its last word on; of the rest nothing can have been sent.
    assert!((790..1000).contains(&unknown(&report)), "{:#}", report["outcomes"]);
    assert!(report["outcomes"]["unsent"].as_u64() > Some(200), "{:#}", report["outcomes"]);
    agents[1].send(Signal::CONT);
    let before = server.requests();
    agents[1].says("is free again");
    // What it was granted before may still be sent, and nothing else.
    let unsent = report["outcomes"]["unsent"].as_u64().unwrap();
    assert!(server.requests() >= before && server.requests() <= 2800 - unsent, "{} of {before}", server.requests());
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_bus_that_stands_still_says_nothing_of_agents() {
    let (bus, server) = (Bus::start(), target());
    for more in [&[][..], &["--on-lost-agent", "abort"]] {
        let before = server.requests();
        let agents = bus.agents(2);
        let url = server.url();
        let args = [&["-r", "200", "-d", "8s", "-t", "1"], more, &[&url]].concat();
        let pause = if more.is_empty() { 5 } else { 2 };
        let done = broken(&bus, &agents, &args, || {
            bus.send(Signal::STOP);
            sleep(Duration::from_secs(pause));
            bus.send(Signal::CONT);
        });
        let report = read(&done.with_status(0));
        agrees(&report, server.requests() - before);
        assert_eq!(report["outcomes"]["answered"], 1600, "{:#}", report["outcomes"]);
    }
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_bus_that_does_not_go_on_ends_the_run() {
    let (bus, server) = (Bus::start(), target());
    for more in [&[][..], &["--on-lost-agent", "abort"]] {
        let before = server.requests();
        let agents = bus.agents(2);
        let url = server.url();
        let args = [&["-r", "200", "-d", "10m", "-t", "1"], more, &[&url]].concat();
        let done = broken(&bus, &agents, &args, || bus.send(Signal::STOP)).with_status(4);
        // It was left, as it answers nothing, and there is no other.
        assert!(done.stderr.contains("the NATS server has been away for 10s"), "{done:#?}");
        let report = read(&done);
        agrees(&report, server.requests() - before);
        // Nobody goes further than was granted.
        sleep(Duration::from_millis(300));
        let counted = server.requests();
        sleep(Duration::from_millis(700));
        assert_eq!(server.requests(), counted);
        bus.send(Signal::CONT);
        drop(agents);
    }
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_controller_that_stands_still_for_six_seconds_loses_nothing() {
    let (bus, server) = (Bus::start(), target());
    let agents = bus.agents(2);
    let running = started(&bus, &agents, &["-r", "200", "-d", "10s", "-t", "1", &server.url()]);
    sleep(Duration::from_secs(2));
    running.send(Signal::STOP);
    sleep(Duration::from_secs(6));
    running.send(Signal::CONT);
    let report = read(&running.wait().with_status(0));
    agrees(&report, server.requests());
    assert_eq!(report["outcomes"]["answered"], 2000, "{:#}", report["outcomes"]);
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn ctrl_c_while_the_bus_stands_still_ends_the_run() {
    let (bus, server) = (Bus::start(), target());
    let agents = bus.agents(2);
    let running = started(&bus, &agents, &["-r", "200", "-d", "10m", "-t", "1", &server.url()]);
    sleep(Duration::from_millis(2500));
    bus.send(Signal::STOP);
    sleep(Duration::from_secs(1));
    // A server that lets nothing through for 10 s ends the run with another status.
    running.send(Signal::INT);
    let report = read(&running.wait().with_status(130));
    bus.send(Signal::CONT);
    for agent in &agents {
        agent.says("is free again");
    }
    // What they did not tell of is unknown: they may go on for as long as was granted.
    agrees(&report, server.requests());
    assert!(unknown(&report) > 200 && report["outcomes"]["answered"].as_u64() > Some(200), "{:#}", report["outcomes"]);
}

/// The names of what is found of a run.
fn found(report: &serde_json::Value) -> Vec<&str> {
    let of_target = report["remarks"].as_array().into_iter().flatten().filter(|remark| remark["of"] == "target");
    of_target.filter_map(|remark| remark["about"].as_str()).collect()
}

/// Where agents may go no further, the target is not what is silent: neither if the bus is back in time, nor if all agents are lost with it.
#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_bus_that_is_away_when_the_run_ends_is_no_silence_of_the_target() {
    let (bus, server) = (Bus::start(), target());
    let url = server.url();
    let args = ["-r", "200", "-d", "8s", "-t", "1", "--on-lost-agent", "abort", "--max-error-rate", "100%", &url];
    for (away_s, status) in [(7, 0), (14, 4)] {
        let before = server.requests();
        let agents = bus.agents(2);
        let running = started(&bus, &agents, &args);
        sleep(Duration::from_millis(2200));
        bus.send(Signal::STOP);
        sleep(Duration::from_secs(away_s));
        bus.send(Signal::CONT);
        let done = running.wait().with_status(status);
        let report = read(&done);
        agrees(&report, server.requests() - before);
        let of = |name: &str| report["outcomes"][name].as_u64().unwrap();
        assert_eq!((of("failed"), of("unfinished")), (0, 0), "{:#}", report["outcomes"]);
        assert!(of("unsent") + unknown(&report) > 300, "{:#}", report["outcomes"]);
        assert!(found(&report).is_empty(), "{:#}", report["remarks"]);
        assert!(!done.stderr.contains("never answered"), "{done:#?}");
        for agent in &agents {
            agent.says("is free again");
        }
    }
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn what_was_held_back_is_said_and_not_sent_in_a_burst() {
    let (bus, server) = (Bus::start(), target());
    let agents = bus.agents(2);
    let url = server.url();
    let args = ["-r", "200", "-d", "12s", "-t", "1", "--on-lost-agent", "abort", "--max-error-rate", "100%", &url];
    let running = started(&bus, &agents, &args);
    // The load is on, however long agents took to begin.
    until("calls come", || server.requests() > 100);
    // Beyond the 3.5 s that are granted, and less than what ends the run.
    bus.send(Signal::STOP);
    sleep(Duration::from_secs(6));
    bus.send(Signal::CONT);
    let report = read(&running.wait().with_status(0));
    agrees(&report, server.requests());
    let held = report["agents"]["unsent_held"].as_u64().unwrap_or(0);
    // Three seconds at least, and the time that it takes until grants come again.
    assert!((200..900).contains(&held) && report["outcomes"]["unsent"] == held, "{held}: {:#}", report["outcomes"]);
    let points = report["series"].as_array().unwrap();
    let most = points.iter().map(|point| point["answered"].as_u64().unwrap()).max().unwrap();
    assert!(most < 260, "{most} in a second of 200: {points:#?}");
    assert_eq!(found(&report), Vec::<&str>::new(), "{:#}", report["remarks"]);
}
