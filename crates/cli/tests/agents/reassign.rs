//! Others do what a lost agent has left.

use std::thread::sleep;
use std::time::Duration;

use brunt_testbed::server::{Config, Delay, Server};
use rustix::process::Signal;
use serde_json::Value;

use crate::breaking::broken;
use crate::bus::{Agent, Bus, agent, agrees, closes, read, target, unknown};
use crate::program::{Directory, until};

const REASSIGN: [&str; 2] = ["--on-lost-agent", "reassign"];

/// Runs under `--on-lost-agent reassign` and breaks something in the middle.
fn reassigned(bus: &Bus, agents: &[Agent], args: &[&str], breaking: impl FnMut()) -> Value {
    let done = broken(bus, agents, &[args, &REASSIGN].concat(), breaking).with_status(0);
    let report = read(&done);
    closes(&report);
    report
}

/// What is not known to be made of a lost agent's calls is what was due between the last second that it reported and the takeover.
#[track_caller]
fn only_the_gap_is_missing(report: &Value, names: &[&str], rate_each: f64) {
    let mut gap_s = 0.0;
    for name in names {
        let lost = &agent(report, name)["lost"];
        let of = |field: &str| lost[field].as_u64().unwrap_or_else(|| panic!("no {field} in {lost:#}")) as f64 / 1e9;
        gap_s += of("taken_over_ns") - of("after_ns");
    }
    let unsent = (report["agents"]["unsent_lost"].as_u64().unwrap() + unknown(report)) as f64;
    let (least, most) = (gap_s * rate_each - 2.0, gap_s * rate_each + 2.0);
    assert!(unsent >= least && unsent <= most, "{unsent} missing in {gap_s} s: {:#}", report["agents"]);
    assert_eq!(report["outcomes"]["unsent"], report["agents"]["unsent_lost"]);
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_rate_is_whole_again_when_others_have_taken_over() {
    let (bus, server) = (Bus::start(), target());
    for arrivals in ["uniform", "poisson"] {
        let mut agents = bus.agents(3);
        let (others, lost) = agents.split_at_mut(2);
        let load = ["-r", "300", "-d", "9s", "-t", "1", "--arrivals", arrivals, "--seed", "7", &server.url()];
        let report = reassigned(&bus, others, &load, || lost[0].kill());
        if arrivals == "uniform" {
            assert_eq!(report["outcomes"]["due"], 2700);
            only_the_gap_is_missing(&report, &["a3"], 100.0);
        }
        assert_eq!(report["outcomes"]["failed"], 0);
        // The last second has all of its calls, and the result is that of one process but for the gap.
        let points = report["series"].as_array().unwrap();
        let last = points.last().unwrap();
        assert!(last["due"].as_u64().unwrap() >= 250 && last["unsent"].as_u64().unwrap_or(0) == 0, "{last:#}");
        let after_ns = agent(&report, "a3")["lost"]["after_ns"].as_u64().unwrap();
        assert!(agent(&report, "a3")["lost"]["taken_over_ns"].as_u64().unwrap() > after_ns);
    }
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn who_took_over_may_be_lost_too() {
    let (bus, server) = (Bus::start(), target());
    let mut agents = bus.agents(4);
    let args = ["-r", "400", "-d", "16s", "-t", "1", &server.url()];
    let (others, lost) = agents.split_at_mut(2);
    let report = reassigned(&bus, others, &args, || {
        lost[1].kill();
        for agent in others.iter() {
            agent.says("takes over");
        }
        sleep(Duration::from_millis(1500));
        lost[0].kill();
    });
    assert_eq!(report["outcomes"]["due"], 6400);
    // The second one had a third of the first one's calls besides its own.
    let lost = |name: &str| agent(&report, name)["lost"].clone();
    assert!(lost("a3")["taken_over_ns"].is_u64() && lost("a4")["taken_over_ns"].is_u64(), "{report:#}");
    let last = report["series"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["due"], 400, "{last:#}");
    assert_eq!(report["outcomes"]["unsent"], report["agents"]["unsent_lost"]);
    assert_eq!(report["outcomes"]["failed"], 0);
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn two_that_are_lost_at_once_are_replaced_by_the_third() {
    let (bus, server) = (Bus::start(), target());
    let mut agents = bus.agents(3);
    let (others, lost) = agents.split_at_mut(1);
    let args = ["-r", "300", "-d", "9s", "-t", "1", &server.url()];
    let report = reassigned(&bus, others, &args, || lost.iter_mut().for_each(Agent::kill));
    assert_eq!(report["outcomes"]["due"], 2700);
    let last = report["series"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["due"], 300, "{last:#}");
    assert_eq!(report["outcomes"]["unsent"], report["agents"]["unsent_lost"]);
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn when_all_are_lost_nobody_takes_over() {
    let (bus, server) = (Bus::start(), target());
    let mut agents = bus.agents(2);
    let url = bus.url();
    let args = ["-r", "200", "-d", "10m", "--nats", &url, "--format", "json", "--quiet", &server.url()];
    let running = crate::program::Running::start([&args[..], &REASSIGN].concat());
    for agent in &agents {
        agent.says("prepares workers");
    }
    until("calls are made", || server.requests() > 100);
    agents.iter_mut().for_each(Agent::kill);
    let report = read(&running.wait().with_status(4));
    closes(&report);
}

/// A process that stood still while others took over makes no call that others make as well: it goes no further than it was granted.
#[test]
#[ignore = "needs nats-server: make test installs it"]
fn who_comes_back_after_it_was_replaced_makes_no_call() {
    let (bus, server, dir) = (Bus::start(), target(), Directory::new());
    let url = server.url();
    let (few, many) = (visit(&dir, &url, "", "brunt.users(6, '10s')"), visit(&dir, &url, "", "brunt.rate(60, '10s')"));
    for load in
        [&["-r", "300", "-d", "10s", &url][..], &["-c", "6", "-d", "10s", &url], &["run", &few], &["run", &many]]
    {
        let (agents, before) = (bus.agents(3), server.requests());
        let args = [load, &["-t", "1"]].concat();
        let report = reassigned(&bus, &agents, &args, || {
            agents[2].send(Signal::STOP);
            agents[..2].iter().for_each(|agent| agent.says("takes over"));
            // The others have it by now.
            sleep(Duration::from_millis(800));
            agents[2].send(Signal::CONT);
        });
        let lost = &agent(&report, "a3")["lost"];
        agents[2].says("is free again");
        if load[0] == "-r" {
            // Calls of the timetable before its horizon are its own, however late.
            agrees(&report, server.requests() - before);
            continue;
        }
        let own = bus.kept("a3", 1);
        let after = lost["after_ns"].as_u64().unwrap() / 1_000_000_000;
        let late = own["series"].as_array().unwrap().iter().skip(after as usize + 2);
        let late: u64 = late.map(|point| point["answered"].as_u64().unwrap()).sum();
        // Answers to what was under way on two connections when it was stopped.
        assert!(late <= 2, "{load:?}: {late} answered, {:#}", own["series"]);
        assert!(own["outcomes"]["answered"].as_u64().unwrap() > 0);
    }
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn connections_of_the_closed_model_are_taken_over() {
    let server = Server::start(Config { delay: Delay::Fixed(Duration::from_millis(20)), ..Config::default() }).unwrap();
    let bus = Bus::start();
    let mut agents = bus.agents(3);
    let (others, lost) = agents.split_at_mut(2);
    let args = ["-c", "9", "-d", "9s", "-t", "1", &server.url()];
    let report = reassigned(&bus, others, &args, || lost[0].kill());
    assert_eq!(report["outcomes"]["unsent"], 0);
    let points = report["series"].as_array().unwrap();
    let open: Vec<u64> = points.iter().map(|point| point["open_connections"].as_u64().unwrap()).collect();
    assert!(open.contains(&6) && open[points.len() - 2] == 9, "{open:?}");
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_number_of_requests_is_made_all_the_same() {
    let server = Server::start(Config { delay: Delay::Fixed(Duration::from_millis(10)), ..Config::default() }).unwrap();
    let (bus, url) = (Bus::start(), server.url());
    // With a rate the others wait for what is left; with connections they have ended long before.
    for (load, due) in [(&["-c", "6", "-n", "2400"][..], 2400), (&["-r", "400", "-n", "2400"], 2400)] {
        let mut agents = bus.agents(3);
        let (others, lost) = agents.split_at_mut(2);
        let args = [load, &["-t", "1", &url]].concat();
        let report = reassigned(&bus, others, &args, || lost[0].kill());
        assert_eq!(report["outcomes"]["due"], due, "{load:?}");
        let of = |name: &str| report["outcomes"][name].as_u64().unwrap();
        // What was under way on two connections when it last reported is not known; of a rate, what was due until others came is unsent.
        let unsent = report["agents"]["unsent_lost"].as_u64().unwrap();
        assert!(of("unfinished") <= 2 && of("failed") == 0 && of("unsent") == unsent, "{:#}", report["outcomes"]);
        assert!(load[0] == "-r" || unsent == 0, "{unsent}");
    }
}

/// A script whose users say who they are, with this before its scenario.
fn visit(dir: &Directory, url: &str, before: &str, injection: &str) -> String {
    dir.file(
        &format!("{}.lua", injection.replace(|c: char| !c.is_alphanumeric(), "-")),
        format!(
            "local brunt = require 'brunt'\nlocal http = brunt.http {{ base = '{url}' }}\n{before}\n\
             brunt.scenario('visit', function(user) http:get('/' .. user.id) brunt.pause(0.02) end):inject {{ {injection} }}"
        ),
    )
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn users_of_a_lost_agent_come_back_elsewhere() {
    let (bus, server, dir) = (Bus::start(), target(), Directory::new());
    for (injection, is_open) in [("brunt.users(6, '10s')", false), ("brunt.rate(60, '10s')", true)] {
        let script = visit(&dir, &server.url(), "", injection);
        let mut agents = bus.agents(3);
        let (others, lost) = agents.split_at_mut(2);
        let report = reassigned(&bus, others, &["run", &script, "-t", "1"], || lost[0].kill());
        assert_eq!(report["outcomes"]["failed"], 0);
        let lost = &agent(&report, "a3")["lost"];
        let of = |field: &str| lost[field].as_u64().unwrap_or_else(|| panic!("no {field} in {lost:#}"));
        let (after, taken_over) = (of("after_ns") / 1_000_000_000, of("taken_over_ns") / 1_000_000_000);
        let points = report["series"].as_array().unwrap();
        let at = |second: u64, field: &str| points[second as usize][field].as_u64().unwrap();
        let visits = &report["names"]["scenarios"][0];
        assert_eq!(visits["users_ended"], visits["users_started"], "{visits:#}");
        if is_open {
            // Each user makes one call, and is the target's for it: 60 come each second, 40 of them in between.
            assert_eq!((at(after, "due"), at(taken_over + 1, "due")), (40, 60), "{report:#}");
            let gap = (of("taken_over_ns") - of("after_ns")) as f64 / 1e9 * 20.0;
            let missed = of("users_missed");
            assert!((missed as f64 - gap).abs() <= 2.0, "{missed} users never came, and {gap} were due");
            assert_eq!(visits["users_started"].as_u64().unwrap() + missed, 600);
        } else {
            // Two of six are gone until others have taken them over.
            assert_eq!(
                (at(after, "users"), at(taken_over, "users"), visits["users_started"].as_u64()),
                (4, 6, Some(8))
            );
        }
    }
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn users_of_an_agent_that_is_lost_at_the_end_do_not_come_after_it() {
    let (bus, server, dir) = (Bus::start(), target(), Directory::new());
    let script = visit(&dir, &server.url(), "", "brunt.rate(60, '5s')");
    let mut agents = bus.agents(3);
    let (others, lost) = agents.split_at_mut(2);
    let report = reassigned(&bus, others, &["run", &script, "-t", "1"], || {
        sleep(Duration::from_millis(3500));
        lost[0].kill();
    });
    let lost = &agent(&report, "a3")["lost"];
    assert!(lost["taken_over_ns"].is_null(), "{lost:#}");
    let points = report["series"].as_array().unwrap();
    assert!(points.len() <= 6 && points.iter().all(|point| point["length_ns"].as_u64() > Some(0)), "{points:#?}");
    let visits = &report["names"]["scenarios"][0];
    assert_eq!(visits["users_started"].as_u64().unwrap() + lost["users_missed"].as_u64().unwrap_or(0), 300, "{lost:#}");
    assert_eq!(visits["users_ended"], visits["users_started"]);
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn what_nobody_may_do_twice_is_refused_before_the_load() {
    let (bus, server, dir) = (Bus::start(), target(), Directory::new());
    let _agents = bus.agents(2);
    dir.file("users.csv", "name\nann\nbob\n");
    let url = server.url();
    for (before, injection, why) in [
        ("brunt.csv('users.csv'):queue()", "brunt.users(2, '5s')", "gives rows of data out only once"),
        ("", "brunt.iterations_shared(2, 10)", "the iterations of 'visit' are counted"),
    ] {
        let script = visit(&dir, &url, before, injection);
        let done = bus.command(&[&["run", &script][..], &REASSIGN].concat()).with_status(2);
        assert!(done.stderr.contains(why) && done.stderr.contains("take continue or abort"), "{done:#?}");
    }
    assert_eq!(server.requests(), 0);
}
