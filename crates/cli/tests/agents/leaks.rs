//! Run after run an agent stays as it was.

use std::time::{Duration, Instant};

use crate::bus::{Bus, agent, target};
use crate::program::{Directory, brunt, done, until};

/// For how many seconds runs follow each other, if not only a few do. An hour tells more than a minute.
const LONGER: &str = "BRUNT_LEAK_SECONDS";
/// Rounds of runs after which an agent has the memory that it needs, and how many follow at least.
const FIRST: usize = 4;
const LEAST: usize = 6;
/// How much memory may grow from then on, in bytes.
const GROWTH: u64 = 8 << 20;

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn run_after_run_an_agent_stays_as_it_was() {
    let (bus, server) = (Bus::start(), target());
    let agents = bus.agents(2);
    let (dir, url) = (Directory::new(), server.url());
    let script = |injection: &str| {
        format!(
            "local brunt = require 'brunt'\nlocal http = brunt.http {{ base = '{url}' }}\n\
             brunt.setup(function() return {{ token = 't' }} end)\n\
             brunt.scenario('visit', function() http:get('/') end):inject {{ {injection} }}\n"
        )
    };
    let users = dir.file("visit.lua", script("brunt.iterations_shared(4, 40)"));
    let crowd = dir.file("crowd.lua", script("brunt.at_once(40)"));
    let wrk = dir.file("w.lua", "function request() return wrk.format('GET', '/?w') end");
    let loads: [&[&str]; 5] = [
        &["-n", "50", "-c", "2", &url],
        &["-r", "500", "-n", "100", "--on-lost-agent", "abort", &url],
        &["run", &users],
        &["run", &crowd, "--on-lost-agent", "abort"],
        &["-n", "50", "-c", "2", "-s", &wrk, &url],
    ];
    let round = || {
        for load in loads {
            let report = bus.run(load);
            assert!(agent(&report, "a1")["lost"].is_null() && agent(&report, "a2")["lost"].is_null(), "{report:#}");
        }
    };
    (0..FIRST).for_each(|_| round());
    let at_rest = || {
        until("the agents are free", || {
            let listed = done(&mut brunt(["agents", "--nats", &bus.url()])).with_status(0).stdout;
            listed.matches("free").count() == 2
        });
        agents.iter().map(|agent| (agent.resident_bytes(), agent.descriptors_and_threads())).collect::<Vec<_>>()
    };
    let before = at_rest();
    let longer =
        std::env::var(LONGER).ok().map(|text| text.parse().expect(LONGER)).map_or(Duration::ZERO, Duration::from_secs);
    let (began, mut rounds) = (Instant::now(), 0);
    while rounds < LEAST || began.elapsed() < longer {
        round();
        rounds += 1;
    }
    let after = at_rest();
    eprintln!("{} runs: resident bytes, (descriptors, threads) {before:?}, then {after:?}", rounds * loads.len());
    for ((resident, held), (resident_then, held_then)) in before.iter().zip(&after) {
        assert_eq!(held, held_then, "descriptors and threads");
        assert!(*resident_then <= resident + GROWTH, "{resident} bytes, {resident_then} after {rounds} rounds");
    }
    assert!(agents.iter().all(|agent| !agent.has_said("nothing was heard")));
}
