//! Setup and teardown of scenarios: what setup has made is torn down, whatever comes between.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::Signal;

use crate::breaking::started;
use crate::bus::{Agent, Bus};
use crate::program::{Directory, brunt, done, until};
use crate::together::recorder;

const SCRIPT: &str = r#"
local brunt = require "brunt"
local http = brunt.http { base = "BASE" }
local token = brunt.env("TOKEN", "none")
brunt.setup(function() http:get("/setup") brunt.pause(WAIT) http:get("/made") return { token = "t0" } end)
brunt.teardown(function(given) http:get("/teardown/" .. given.token) end)
brunt.scenario("visit", function() http:get("/visit", { name = "visit" }) brunt.pause(0.1) end)
  :inject { brunt.users(4, 30) }
"#;

/// The script in this directory, whose setup takes so many seconds.
fn script(dir: &Directory, base: &str, wait: &str) -> String {
    dir.file("visit.lua", SCRIPT.replace("BASE", base).replace("WAIT", wait))
}

/// How often this path was asked for.
fn count(asked: &Arc<Mutex<Vec<String>>>, path: &str) -> usize {
    let asked = asked.lock().unwrap();
    asked.iter().filter(|head| head.split(' ').nth(1) == Some(path)).count()
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn what_was_set_up_is_torn_down_when_an_agent_dies_before_the_load() {
    let (bus, dir) = (Bus::start(), Directory::new());
    let (base, asked) = recorder();
    let mut agents = bus.agents(2);
    let running = started(&bus, &[], &["run", &script(&dir, &base, "0")]);
    // The first one has set up, and is the one that dies.
    agents[0].says("prepares workers");
    agents[0].kill();
    let done = running.wait().with_status(4);
    assert!(done.stderr.contains("agent 'a1' was lost before the run began"), "{done:#?}");
    assert_eq!((count(&asked, "/made"), count(&asked, "/teardown/t0"), count(&asked, "/visit")), (1, 1, 0));
    agents[1].says("is free again");
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn what_was_set_up_is_torn_down_when_an_agent_cannot() {
    let (bus, dir) = (Bus::start(), Directory::new());
    let (base, asked) = recorder();
    let url = bus.url();
    let agent = |name: &str| brunt(["agent", "--nats", &url, "--name", name, "--cores", "1"]);
    let _able = Agent::start(agent("able").env("TOKEN", "t"), "able");
    let _unable = Agent::start(agent("unable").env_remove("TOKEN"), "unable");
    let script = script(&dir, &base, "0");
    let args = ["run", &script, "--env", "TOKEN=@TOKEN", "--nats", &url, "--secrets-from-agents", "--quiet"];
    let done = done(brunt(args).env("TOKEN", "t")).with_status(2);
    assert!(done.stderr.contains("agent 'unable'") && done.stderr.contains("TOKEN"), "{done:#?}");
    assert_eq!((count(&asked, "/made"), count(&asked, "/teardown/t0")), (1, 1), "{done:#?}");
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn ctrl_c_in_setup_tears_down_what_it_makes() {
    let (bus, dir) = (Bus::start(), Directory::new());
    let (base, asked) = recorder();
    let agents = bus.agents(2);
    let running = started(&bus, &[], &["run", &script(&dir, &base, "2")]);
    until("setup has begun", || count(&asked, "/setup") == 1);
    running.send(Signal::INT);
    running.wait().with_status(130);
    assert_eq!((count(&asked, "/made"), count(&asked, "/teardown/t0"), count(&asked, "/visit")), (1, 1, 0));
    for agent in &agents {
        agent.says("is free again");
    }
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn what_was_not_set_up_is_not_torn_down() {
    let (bus, dir) = (Bus::start(), Directory::new());
    let (base, asked) = recorder();
    let mut agents = bus.agents(2);
    let running = started(&bus, &[], &["run", &script(&dir, &base, "2")]);
    until("setup has begun", || count(&asked, "/setup") == 1);
    agents[0].kill();
    running.wait().with_status(4);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!((count(&asked, "/made"), count(&asked, "/teardown/t0")), (0, 0));
}
