//! Runs by agents that are changed while they go on: by hand, and by a guard that backs off.

use std::time::Duration;

use brunt_testbed::server::{Delay, Queue, Server, ServerConfig};
use serde_json::Value;

use crate::bus::{Bus, closes, read, target};
use crate::place::{Place, at_s};

/// How many calls are due by `first` calls a second until the end at `end_s`, as these changes have it.
fn integral(first: f64, changes: &[Value], end_s: f64) -> f64 {
    let (mut calls, mut from, mut rate, mut is_paused) = (0.0, 0.0, first, false);
    for change in changes {
        let at = at_s(change).min(end_s);
        calls += if is_paused { 0.0 } else { rate * (at - from) };
        from = at;
        match &change["action"] {
            Value::String(action) => is_paused = action == "pause",
            action => rate = action["rate"].as_f64().unwrap_or(rate),
        }
    }
    calls + if is_paused { 0.0 } else { rate * (end_s - from) }
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn what_is_due_of_two_agents_is_the_integral_of_the_changed_rate() {
    let (bus, server, place) = (Bus::start(), target(), Place::new());
    let _agents = bus.agents(2);
    let (nats, url) = (bus.url(), server.url());
    let run = ["-r", "200", "-d", "16s", "--on-lost-agent", "abort", "--nats", &nats, "--quiet", "--format", "json"];
    let running = place.start(&[&run[..], &[&url]].concat());
    let changes = [
        place.change(&["rate", "500"]),
        place.change(&["pause"]),
        place.change(&["rate", "90"]),
        place.change(&["resume"]),
    ];
    let report = read(&running.wait().with_status(0));
    closes(&report);
    assert_eq!(report["changes"].as_array().unwrap(), &changes);
    let expected = integral(200.0, &changes, 16.0);
    let due = report["outcomes"]["due"].as_f64().unwrap();
    assert!((due - expected.ceil()).abs() <= 1.0, "{due} of {expected}: {changes:#?}");
    assert_eq!(report["outcomes"]["due"], report["outcomes"]["answered"]);
    assert_eq!(server.requests() as f64, due);
}

/// Each agent takes its share of a changed number of users, as it took that of the first.
#[test]
#[ignore = "needs nats-server: make test installs it"]
fn the_number_of_users_of_two_agents_changes() {
    let (bus, server, place) = (Bus::start(), target(), Place::new());
    let _agents = bus.agents(2);
    let (nats, url) = (bus.url(), server.url());
    let script = format!(
        "local brunt = require 'brunt'
         local http = brunt.http {{ base = '{}' }}
         brunt.scenario('s', function() http:get('/') brunt.pause('50ms') end):inject {{ brunt.users(4, '14s') }}",
        url.trim_end_matches('/')
    );
    let file = place.directory.file("s.lua", script);
    let run = ["run", &file, "--on-lost-agent", "abort", "--nats", &nats, "--quiet", "--format", "json"];
    let running = place.start(&run);
    let more = place.change(&["users", "9"]);
    // So that the other takes effect later.
    std::thread::sleep(Duration::from_secs(3));
    let changes = [more, place.change(&["users", "3"])];
    let report = read(&running.wait().with_status(0));
    closes(&report);
    assert_eq!(report["changes"].as_array().unwrap(), &changes);
    assert!(at_s(&changes[1]) > at_s(&changes[0]), "{changes:#?}");
    let scenario = &report["names"]["scenarios"][0];
    assert_eq!(
        (scenario["users_started"].as_u64(), scenario["users_ended"].as_u64()),
        (Some(9), Some(9)),
        "{scenario:#}"
    );
    let points = report["series"].as_array().unwrap();
    let users: Vec<_> = points.iter().filter_map(|point| point["users"].as_u64()).collect();
    assert!(users[0] == 4 && users.contains(&9) && users.contains(&3), "{users:?}");
    assert!(users.iter().all(|users| *users <= 9), "{users:?}");
}

/// Two servers of 4 ms do 500 calls a second, in all and not for each agent.
#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_guard_of_two_agents_backs_off_below_what_the_target_can_do() {
    let bus = Bus::start();
    let queue = Queue { count: 2, service_time: Delay::Fixed(Duration::from_millis(4)) };
    let server = Server::start(ServerConfig { queue: Some(queue), ..ServerConfig::default() }).unwrap();
    let _agents = bus.agents(2);
    let guard = ["--guard", "p99>300ms for 1s", "--guard-action", "back-off", "--on-lost-agent", "abort"];
    let done = bus.command(&[&["-r", "200/4s,900/26s"][..], &guard, &[&server.url()]].concat()).with_status(1);
    let report = read(&done);
    closes(&report);
    assert_eq!(report["ending"], "completed", "{:#}", report["ending"]);
    let changes = report["changes"].as_array().unwrap();
    assert!(!changes.is_empty() && changes.len() <= 3, "{changes:#?}");
    let last = changes[changes.len() - 1]["action"]["rate"].as_f64().unwrap();
    assert!((100.0..500.0).contains(&last), "{changes:#?}");
    assert_eq!(changes[0]["by"]["guard"]["guard"], "p99>300ms for 1s");
    let got = report["thresholds"][0]["got"].as_str().unwrap();
    assert!(got.starts_with("fired ") && report["thresholds"][0]["held"] == false, "{got}");
    let planned = |until: f64| 200.0 * until.min(4.0) + 900.0 * (until - 4.0).max(0.0);
    let first = at_s(&changes[0]);
    let expected = planned(first) + integral(0.0, changes, 30.0);
    let due = report["outcomes"]["due"].as_f64().unwrap();
    assert!((due - expected.ceil()).abs() <= 1.0, "{due} of {expected}: {changes:#?}");
}
