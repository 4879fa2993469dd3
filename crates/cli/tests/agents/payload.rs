//! NATS servers that take short messages only.

use std::thread::sleep;
use std::time::Duration;

use crate::breaking::started;
use crate::bus::{Bus, agrees, read, target};
use crate::program::{Directory, brunt, done, until};

/// A plan of so many bytes goes through messages of at most `max_payload`, and every second of the run comes back.
#[track_caller]
fn carries(max_payload: &str) {
    let (bus, server, dir) = (Bus::with(&format!("max_payload: {max_payload}\n")), target(), Directory::new());
    let agents = bus.agents(2);
    let body = dir.file("body", "x".repeat(2_000_000));
    let report = bus.run(&["-r", "20", "-d", "3s", "-X", "POST", "--body-file", &body, &server.url()]);
    agrees(&report, server.requests());
    assert_eq!(report["outcomes"]["answered"], 60, "{report:#}");
    assert!(agents.iter().all(|agent| !agent.has_said("max_payload")));
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_server_of_short_messages_carries_long_ones() {
    carries("64KB");
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_server_of_the_shortest_messages_carries_long_ones() {
    carries("4KB");
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_server_of_shorter_messages_is_refused_in_words() {
    let (bus, server) = (Bus::with("max_payload: 2KB\n"), target());
    let url = bus.url();
    for args in [
        &["agent", "--nats", &url, "--name", "a1"][..],
        &["agents", "--nats", &url],
        &["-n", "1", "--nats", &url, &server.url()],
    ] {
        let refused = done(&mut brunt(args)).with_status(2);
        let said = &refused.stderr;
        assert!(said.contains("takes messages of 2048 bytes at most, and brunt needs 4096"), "{refused:#?}");
        assert!(said.contains("max_payload"), "{refused:#?}");
    }
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_server_that_comes_back_with_shorter_messages_ends_the_run_in_words() {
    let (mut bus, server) = (Bus::with("max_payload: 64KB\n"), target());
    let agents = bus.agents(2);
    let running = started(&bus, &agents, &["-r", "100", "-d", "10m", &server.url()]);
    until("calls are made", || server.requests() > 100);
    bus.end();
    bus.configure("max_payload: 1KB\n");
    bus.begin();
    for agent in &agents {
        agent.says("takes messages of 1024 bytes at most");
    }
    let done = running.wait().with_status(4);
    assert!(done.stderr.contains("takes messages of 1024 bytes at most"), "{done:#?}");
    agrees(&read(&done), server.requests());
    // With a server that takes them all is well again.
    bus.end();
    bus.configure("max_payload: 4KB\n");
    bus.begin();
    for agent in &agents {
        agent.says("is free again");
    }
    sleep(Duration::from_millis(100));
    assert_eq!(bus.run(&["-n", "30", "-c", "2", "--agents", "2", &server.url()])["outcomes"]["answered"], 30);
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn an_agent_that_cannot_announce_itself_says_so() {
    let bus = Bus::with("max_payload: 4KB\n");
    let tags: Vec<String> = (0..30).map(|number| format!("tag{number}={}", "x".repeat(200))).collect();
    let tags: Vec<&str> = tags.iter().flat_map(|tag| ["--tag", tag]).collect();
    let agent = bus.agent_with("a1", &tags);
    let none = done(&mut brunt(["agents", "--nats", &bus.url()]));
    assert!(!none.stdout.contains("a1"), "{none:#?}");
    agent.says("takes 4096 bytes at most");
    agent.says("shorter --tag");
}
