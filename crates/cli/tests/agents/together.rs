//! Agents together do what one machine would have done, once each.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::spawn;

use brunt_testbed::server::{Server, ServerConfig};
use brunt_testbed::tls::Tls;
use serde_json::Value;

use crate::bus::{Bus, agent, closes, target};
use crate::program::{Directory, brunt, done, run};

/// Calls due in each second of a result.
fn due_by_second(report: &Value) -> Vec<u64> {
    report["series"].as_array().unwrap().iter().map(|point| point["due"].as_u64().unwrap()).collect()
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_rate_is_the_same_timetable_on_one_machine_and_on_several() {
    let (bus, server) = (Bus::start(), target());
    let _agents = bus.agents(3);
    for arrivals in ["uniform", "poisson"] {
        let load = ["-r", "100..400/2s", "-d", "2s", "--arrivals", arrivals, "--seed", "7", "-t", "1", &server.url()];
        let together = bus.run(&load);
        closes(&together);
        let mut alone = load.to_vec();
        alone.extend(["--format", "json"]);
        let alone: Value = serde_json::from_str(&run(&alone).with_status(0).stdout).unwrap();
        assert_eq!(due_by_second(&together), due_by_second(&alone), "{arrivals}");
        let shares: Vec<_> = ["a1", "a2", "a3"].map(|name| agent(&together, name)["due"].as_u64().unwrap()).into();
        assert!(shares.iter().all(|share| *share > 100), "{shares:?}");
    }
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_number_of_requests_is_made_once() {
    let (bus, server) = (Bus::start(), target());
    let _agents = bus.agents(3);
    for load in [&["-c", "7", "-n", "1000"][..], &["-r", "500", "-n", "1000"]] {
        let before = server.requests();
        let report = bus.run(&[load, &[&server.url()]].concat());
        closes(&report);
        assert_eq!(report["outcomes"]["answered"], 1000, "{load:?}");
        assert_eq!(server.requests() - before, 1000, "{load:?}");
    }
    // Over HTTP/3 as well.
    let secure =
        Server::start(ServerConfig { tls: Some(Tls::default()), http3: true, ..ServerConfig::default() }).unwrap();
    let report = bus.run(&["--http", "3", "-k", "-r", "500", "-n", "1000", &secure.url()]);
    closes(&report);
    assert_eq!(report["outcomes"]["answered"], 1000);
    assert_eq!(secure.requests(), 1000);
    // What each wrote down is what it told.
    let report = bus.run(&["-c", "7", "-n", "900", &server.url()]);
    for name in ["a1", "a2", "a3"] {
        let kept = bus.kept(name, 4);
        assert_eq!(kept["outcomes"]["answered"], agent(&report, name)["answered"], "{name}");
    }
}

/// A server that writes down what is asked of it.
pub fn recorder() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (url, asked) = (format!("http://{}", listener.local_addr().unwrap()), Arc::new(Mutex::new(Vec::new())));
    let kept = Arc::clone(&asked);
    spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let asked = Arc::clone(&kept);
            spawn(move || answer(stream, &asked));
        }
    });
    (url, asked)
}

fn answer(stream: TcpStream, asked: &Mutex<Vec<String>>) {
    let mut out = stream.try_clone().unwrap();
    let mut head = Vec::new();
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        if !line.is_empty() {
            head.push(line);
            continue;
        }
        asked.lock().unwrap().push(std::mem::take(&mut head).join("\n"));
        if out.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_err() {
            return;
        }
    }
}

const SCRIPT: &str = r#"
local brunt = require "brunt"
local http = brunt.http { base = "BASE" }
local rows = brunt.csv("rows.csv"):queue()
local made = brunt.counter("made")
brunt.setup(function()
  made:add(3)
  http:get("/setup")
  brunt.check(nil, { ["set up"] = true })
  return { token = "t0" }
end)
brunt.teardown(function(given)
  made:add(4)
  http:get("/teardown/" .. given.token)
  brunt.check(nil, { ["torn down"] = false })
end)
brunt.expect { ["torn down:checks"] = "< 1%", ["set up:checks"] = "> 99%", ["made:sum"] = "== 7" }
local visit = brunt.scenario("visit", function(vu, given)
  http:get("/row/" .. rows:next().id .. "/" .. given.token, { name = "visit" })
end)
visit:inject { brunt.iterations_shared(12, 90) }
brunt.scenario("after", function()
  http:get("/after", { name = "after" })
  if brunt.rendezvous("all", 7, 60) then http:get("/met", { name = "met" }) end
end):inject { brunt.at_once(7), after = visit }
"#;

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn users_of_all_agents_share_rows_iterations_meetings_and_one_setup() {
    let bus = Bus::start();
    let _agents = bus.agents(3);
    let (base, asked) = recorder();
    let dir = Directory::new();
    let rows: Vec<_> = (0..90).map(|row: u32| row.to_string()).collect();
    dir.file("rows.csv", format!("id\n{}\n", rows.join("\n")));
    let script = dir.file("visit.lua", SCRIPT.replace("BASE", &base));
    let report = bus.run(&["run", &script]);
    closes(&report);
    let asked = asked.lock().unwrap().clone();
    let paths: Vec<&str> = asked.iter().filter_map(|head| head.split(' ').nth(1)).collect();
    let count = |path: &str| paths.iter().filter(|asked| **asked == path).count();
    assert_eq!((count("/setup"), count("/teardown/t0")), (1, 1), "{paths:?}");
    assert_eq!((paths.first(), paths.last()), (Some(&"/setup"), Some(&"/teardown/t0")));
    let rows: Vec<&str> = paths.iter().copied().filter(|path| path.starts_with("/row/")).collect();
    let distinct: BTreeSet<&str> = rows.iter().copied().collect();
    assert_eq!((rows.len(), distinct.len()), (90, 90), "no row twice: {rows:?}");
    assert_eq!((count("/after"), count("/met")), (7, 7), "{paths:?}");
    let last_row = paths.iter().rposition(|path| path.starts_with("/row/")).unwrap();
    let first_after = paths.iter().position(|path| *path == "/after").unwrap();
    assert!(last_row < first_after, "who comes after comes after all: {paths:?}");
}

/// The users of a mix are dealt by their numbers over all agents: each part has its share of them to within one user, and both agents carry users.
#[test]
#[ignore = "needs nats-server: make test installs it"]
fn users_of_a_mix_are_dealt_over_all_agents() {
    let bus = Bus::start();
    let _agents = bus.agents(2);
    let dir = Directory::new();
    for (users, shares) in [(40, [3, 1]), (13, [1, 1]), (9, [7, 2])] {
        let (base, asked) = recorder();
        let text = format!(
            "local brunt = require 'brunt'
             local http = brunt.http {{ base = '{base}' }}
             local a = brunt.scenario('browse', function() http:get('/a') end)
             local b = brunt.scenario('buy', function() http:get('/b') end)
             brunt.mix {{ {{ a, {} }}, {{ b, {} }} }}:inject {{ brunt.iterations_each({users}, 1) }}",
            shares[0], shares[1]
        );
        let script = dir.file("mix.lua", text);
        let report = bus.run(&["run", &script]);
        closes(&report);
        let asked = asked.lock().unwrap().clone();
        let count = |path: &str| asked.iter().filter(|head| head.split(' ').nth(1) == Some(path)).count();
        assert_eq!(count("/a") + count("/b"), users, "{asked:?}");
        let expected = (users * shares[0]) as f64 / (shares[0] + shares[1]) as f64;
        assert!((count("/a") as f64 - expected).abs() < 1.0, "{} of {users} are {expected}", count("/a"));
        let due = ["a1", "a2"].map(|name| agent(&report, name)["due"].as_u64().unwrap());
        assert!(due.iter().all(|due| *due * 3 >= users as u64), "both carry their part: {due:?}");
    }
}

/// What thresholds and guards ask for is recorded on the agents, and judged over all of them.
#[test]
#[ignore = "needs nats-server: make test installs it"]
fn thresholds_by_conditions_and_guards_hold_over_all_agents() {
    let (bus, server) = (Bus::start(), target());
    let _agents = bus.agents(2);
    let dir = Directory::new();
    let script = dir.file(
        "home.lua",
        r#"
        local brunt = require "brunt"
        local http = brunt.http {}
        brunt.scenario("s", function() http:get("/", { name = "home" }) end):inject { brunt.rate(40, 8) }
        "#,
    );
    let url = server.url();
    let of_all = ["--threshold", "{name=home,status=2xx}:due>=320", "--guard", "{name=home}:due>100 for 2s"];
    let report = bus.run(&[&["run", "--base-url", &url], &of_all[..], &[&script]].concat());
    closes(&report);
    let got: Vec<_> = report["thresholds"].as_array().unwrap().iter().map(|result| &result["got"]).collect();
    assert_eq!(got[..2], ["320", "did not fire"], "{}", report["thresholds"]);
    // Each agent has 20 a second of them, both 40.
    let guarded = ["run", "--base-url", &url, "--guard", "{name=home}:due>60 for 2s", &script];
    let done = bus.command(&guarded).with_status(1);
    assert!(done.stderr.contains("error: aborted: the guard '{name=home}:due>60 for 2s' fired at 0:0"), "{done:#?}");
    assert_eq!(done.stderr.matches("fired").count(), 1, "{done:#?}");
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_script_for_wrk_is_set_up_on_each_agent_and_is_done_once() {
    let (bus, server) = (Bus::start(), target());
    let _agents = bus.agents(2);
    let dir = Directory::new();
    let script = dir.file(
        "w.lua",
        r#"
        function setup(thread) thread:set("path", "/?set-up") end
        function request() return wrk.format("GET", path) end
        function done(summary, latency) print("done", summary.requests, latency.max > 0) end
        "#,
    );
    let url = bus.url();
    let args = ["-c", "4", "-n", "400", "-s", &script, "--nats", &url, &server.url()];
    let done = done(&mut brunt(args)).with_status(0);
    assert!(done.stdout.contains("done\t400\ttrue"), "{done:#?}");
    assert_eq!(server.requests(), 400);
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn what_is_decided_over_several_runs_is_decided_by_agents_too() {
    let (bus, server) = (Bus::start(), target());
    let agents = bus.agents(2);
    let target = server.url();
    let find =
        ["find", "--from", "50", "--highest", "100", "--threshold", "error_rate<1%", "-d", "1s", "-w", "0s", &target];
    let found = bus.run(&find);
    assert_eq!(found["answer"]["is"], "at_least", "{found:#}");
    let swept = bus.run(&["sweep", "-c", "2..4", "-d", "1s", &target]);
    assert_eq!(swept["steps"].as_array().map(Vec::len), Some(2), "{swept:#}");
    for agent in &agents {
        agent.says("is free again");
    }
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_threshold_ends_the_run_of_all() {
    let (bus, server) = (Bus::start(), target());
    let _agents = bus.agents(2);
    let args = ["-r", "200", "-d", "1m", "--threshold", "p99<1ns abort", &server.url()];
    let done = bus.command(&args).with_status(1);
    let report = crate::bus::read(&done);
    closes(&report);
    assert!(report["ending"]["aborted"].is_object(), "{:#}", report["ending"]);
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn an_agent_can_be_left_out_afterwards() {
    let (bus, server) = (Bus::start(), target());
    let _agents = bus.agents(3);
    let report = bus.run(&["-r", "300", "-d", "2s", "-t", "1", &server.url()]);
    let file = bus.directory().file("run.json", report.to_string());
    let shown = run(["show", &file, "--without", "a2", "--format", "json"]).with_status(0);
    let fewer: Value = serde_json::from_str(&shown.stdout).unwrap();
    closes(&fewer);
    assert_eq!(report["outcomes"]["due"], 600);
    assert_eq!(fewer["outcomes"]["due"], 400);
    assert_eq!(due_by_second(&fewer), [200, 200]);
    let error = run(["show", &file, "--without", "a9"]).with_status(2).stderr;
    assert!(error.contains("the run has no agent 'a9'; there are a1, a2, a3"), "{error}");
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn agents_are_listed_and_chosen_by_tags() {
    let (bus, server) = (Bus::start(), target());
    let _eu = bus.agent_with("eu-1", &["--tag", "zone=eu"]);
    let _us = bus.agent_with("us-1", &["--tag", "zone=us"]);
    let url = bus.url();
    let listed = run(["agents", "--nats", &url]).with_status(0).stdout;
    assert!(listed.contains("eu-1") && listed.contains("zone=us") && listed.contains("free"), "{listed}");
    let report = bus.run(&["-n", "20", "-c", "2", "--agents", "zone=us", &server.url()]);
    assert_eq!(report["agents"]["list"].as_array().unwrap().len(), 1);
    assert_eq!(agent(&report, "us-1")["answered"], 20);
}

/// What setup returns, files that are opened, modules and the environment reach every machine.
#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_script_of_k6_runs_on_several_machines() {
    let (bus, (url, asked)) = (Bus::start(), recorder());
    let _agents = bus.agents(2);
    let directory = Directory::new();
    directory.file("paths.json", r#"["/a", "/b"]"#);
    directory.file("lib.js", "export const header = (data) => ({ 'X-From': data.word + __ENV.WHO });");
    let text = "import http from 'k6/http';\nimport { header } from './lib.js';\nconst paths = JSON.parse(open('./paths.json'));\n\
         export const options = { vus: 4, iterations: 40, thresholds: { http_reqs: ['count>=40'] } };\n\
         export function setup() { http.get('BASE/setup'); return { word: 'hi' }; }\n\
         export default function (data) { http.get('BASE' + paths[__ITER % 2], { headers: header(data) }); }"
        .replace("BASE", &url);
    let path = directory.file("s.js", text);
    let report = bus.run(&["run", &path, "--env", "WHO=all"]);
    closes(&report);
    assert_eq!(report["outcomes"]["answered"], 40);
    let asked = asked.lock().unwrap();
    assert_eq!(asked.iter().filter(|head| head.starts_with("GET /setup")).count(), 1);
    let from = asked.iter().filter(|head| head.contains("X-From: hiall")).count();
    assert_eq!(from, 40, "{asked:#?}");
    for name in ["a1", "a2"] {
        assert!(agent(&report, name)["answered"].as_u64().unwrap() > 0);
    }
}
