//! `brunt find` against targets whose capacity is known.

use std::time::Duration;

use brunt_testbed::server::{Delay, Queue, ServerConfig};
use rustix::process::Signal;
use serde_json::Value;

use crate::program::{Directory, Running, nobody, run, until};
use crate::runs::target;

/// A target that answers `servers` in each 20 ms.
fn queue(servers: usize) -> ServerConfig {
    ServerConfig {
        queue: Some(Queue { count: servers, service_time: Delay::Fixed(Duration::from_millis(20)) }),
        ..ServerConfig::default()
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// Calls of a warm-up above the capacity are answered before those that are due in the trial, and are answers.
#[test]
fn the_table_has_what_was_answered_above_the_capacity() {
    let (_server, url) = target(queue(1));
    let dir = Directory::new();
    let out = dir.path("out.json");
    let flags = ["find", "-t1", "--from=200", "--highest=200", "--precision=50%", "--repeats=1", "-d400ms", "-w400ms"];
    let done = run([&flags[..], &["--threshold", "p99<50ms", "-o", &out, &url]].concat());
    let found = json(&std::fs::read_to_string(&out).unwrap_or_else(|e| panic!("{e}: {done:#?}")));
    let over = found["trials"].as_array().unwrap().iter().filter(|trial| trial["rate_per_s"] == 200.0);
    let answered: Vec<_> = over.map(|trial| trial["evidence"]["answered_per_s"].as_f64().unwrap()).collect();
    assert!(!answered.is_empty() && answered.iter().all(|rate| (17.0..150.0).contains(rate)), "{answered:?}");
    let row =
        done.stdout.lines().map(str::trim).find(|line| line.starts_with("200 ")).unwrap_or_else(|| panic!("{done:#?}"));
    let printed: f64 = row.split_whitespace().skip(1).find_map(|cell| cell.parse().ok()).unwrap();
    assert!(answered.iter().any(|rate| (rate - printed).abs() < 1.0), "{row}: {answered:?}");
}

/// Whatever the machine that runs the tests is busy with: no trial that was met lies above the capacity, and so does no
/// answer. How near it comes is for the benchmark.
#[test]
fn it_finds_no_more_than_the_target_can_do() {
    let (_server, url) = target(queue(4));
    let dir = Directory::new();
    let (csv, markdown) = (dir.path("out.csv"), dir.path("out.md"));
    let done = run([
        "find",
        "--threshold",
        "p99<100ms",
        "--from=150",
        "--highest=400",
        "--precision=20%",
        "--repeats=1",
        "-d2s",
        "-w200ms",
        "--format=json",
        "-o",
        &csv,
        "-o",
        &markdown,
        "--keep",
        &dir.path("runs"),
        &url,
    ]);
    let found = json(&done.stdout);
    assert_eq!(found["format"], "brunt-capacity");
    let trials = found["trials"].as_array().unwrap();
    assert!(!trials.is_empty(), "{done:#?}");
    for trial in trials {
        let rate = trial["rate_per_s"].as_f64().unwrap();
        assert!(trial["outcome"] != "met" || rate <= 200.0 * 1.05, "{trial:#}");
    }
    match found["answer"]["is"].as_str().unwrap() {
        "between" => {
            let [low, high] = ["low_per_s", "high_per_s"].map(|end| found["answer"][end].as_f64().unwrap());
            assert!(low <= 210.0 && high > low, "{low} to {high}");
            assert_eq!(done.status, Some(0));
        }
        // Of a machine too busy for a generator to be trusted.
        "generator" | "below_all" | "unsteady" => assert_eq!(done.status, Some(1), "{done:#?}"),
        other => panic!("{other}: {done:#?}"),
    }
    assert_eq!(std::fs::read_to_string(csv).unwrap().lines().count(), 1 + trials.len());
    assert!(std::fs::read_to_string(markdown).unwrap().starts_with("# Capacity of http://127.0.0.1:"));
    let kept = std::fs::read_dir(dir.path("runs")).unwrap().map(|entry| entry.unwrap().path());
    let kept: Vec<_> = kept.map(|path| json(&std::fs::read_to_string(path).unwrap())).collect();
    assert!(kept.len() == trials.len() && kept.iter().all(|result| result["format"] == "brunt-result"));
    assert!(done.stderr.lines().next().unwrap().starts_with("trial 1: 150/s "), "{}", done.stderr);
}

/// Of four servers of 20 ms each, 8 connections wait 40 ms for an answer and 9 wait longer, however fast the machine is.
#[test]
fn it_finds_the_most_connections() {
    let (_server, url) = target(queue(4));
    let args = ["find", "-c", "2..64", "--threshold", "p90<50ms", "--precision=20%", "--repeats=1", "-d2s", "-w200ms"];
    let done = run([args.as_slice(), &["--format=json", "--no-save", &url]].concat());
    let found = json(&done.stdout);
    assert_eq!(found["settings"]["searched"], "connections", "{done:#?}");
    assert_eq!([&found["settings"]["from_connections"], &found["settings"]["highest_connections"]], [2, 64]);
    for trial in found["trials"].as_array().unwrap() {
        let connections = trial["connections"].as_u64().unwrap();
        assert!(trial["outcome"] != "met" || connections <= 8, "{trial:#}");
    }
    match found["answer"]["is"].as_str().unwrap() {
        "between" => {
            assert!(found["answer"]["low_connections"].as_u64().unwrap() <= 8, "{}", found["answer"]);
            assert_eq!(done.status, Some(0));
        }
        // Of a machine too busy for a generator to be trusted.
        "generator" | "below_all" | "unsteady" => {}
        other => panic!("{other}: {done:#?}"),
    }
    assert!(done.stderr.starts_with("trial 1: 2 connections "), "{}", done.stderr);
}

#[test]
fn a_search_for_connections_says_what_it_needs() {
    for (flags, expected) in [
        (&["-c", "1..8", "-r", "100"][..], "-r cannot be used with brunt find: with -c FROM..TO each connection makes"),
        (&["-c", "1..8", "--from", "10"], "--from and --highest are rates, and -c 1..8 searches for connections"),
        (&["-c", "1,2,4"], "-c 1,2,4: a search needs the first and the last number alone, such as 1..1000"),
        (&["-c", "0..4"], "a value must be above 0"),
        (&["-c", "1..1000000"], "connections at most (ulimit -n): give 1..max"),
    ] {
        let args = [&["find", "--threshold=p99<1s", "http://127.0.0.1:1/"], flags].concat();
        let done = run(args).with_status(2);
        assert!(done.stderr.contains(expected), "{flags:?}: {}", done.stderr);
    }
}

#[test]
fn a_target_that_never_answers_exits_with_3() {
    let (_port, url) = nobody();
    let done = run(["find", "--threshold", "p99<1s", "-d1s", "-w0", &url]).with_status(3);
    // Of a generator that stood still, most calls may have come too late to be sent.
    let whys = ["connect: ", "unsent"].map(|why| format!("the target never answered ({why}"));
    assert!(whys.iter().any(|why| done.stdout.contains(why)), "{}", done.stdout);
    let done = run(["find", "--threshold", "p99<1s", "http://nothing.invalid/"]).with_status(3);
    assert!(done.stdout.contains("'nothing.invalid' cannot be resolved"), "{}", done.stdout);
}

#[test]
fn a_target_that_does_not_meet_the_lowest_rate_has_no_capacity() {
    let (_server, url) = target(ServerConfig { error_rate: 1.0, ..ServerConfig::default() });
    let args = ["find", "--threshold=error_rate<1%", "--from=2", "--repeats=1", "-d500ms", "-w0", "--quiet"];
    let done = run([args.as_slice(), &[&url]].concat()).with_status(1);
    assert!(done.stdout.is_empty() && done.stderr.starts_with("error: no "), "{done:#?}");
    let done = run([args.as_slice(), &["--format=text", &url]].concat()).with_status(1);
    // On a machine too busy for a generator to be trusted, it is that which the search ends with.
    let target = ["no capacity: not even 1/s was met", "error_rate<1% was 100%"];
    let is_target = target.iter().all(|part| done.stdout.contains(part));
    assert!(is_target || done.stdout.contains("no answer: brunt, not the target, gave out at "), "{}", done.stdout);
}

#[test]
fn a_threshold_that_cannot_be_judged_is_no_fault_of_the_target() {
    let (_server, url) = target(ServerConfig::default());
    let args = ["find", "--threshold=first_message.p50<1s", "-d500ms", "-w0", "--quiet", "--format=text", &url];
    let done = run(args).with_status(1);
    let target = "no answer: first_message.p50<1s cannot be judged at 100/s: nothing measures it";
    let head = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    // On a machine too busy for the load to be made as asked, that is what the search ends with.
    assert!(head.contains(target) || head.contains("brunt, not the target, gave out at"), "{}", done.stdout);
}

#[test]
fn a_signal_ends_it_with_what_it_has() {
    let (server, url) = target(ServerConfig::default());
    let running = Running::start(["find", "--threshold", "p99<1s", "-d1h", "-w0", &url]);
    until("the first trial is on its way", || server.requests() > 0);
    running.send(Signal::INT);
    let done = running.wait().with_status(130);
    assert!(done.stdout.contains("no answer: interrupted\n  nothing was seen so far"), "{}", done.stdout);
}

#[test]
fn it_checks_everything_before_the_load() {
    let (server, url) = target(ServerConfig::default());
    run(["find", "--threshold=p99<1s", "--dry-run", &url]).with_status(0);
    assert_eq!(server.requests(), 0);
}

/// A flag's value is what its one parser makes of it, in each trial and in its command.
#[test]
fn numbers_in_any_notation_hold_in_each_trial() {
    let (_server, url) = target(ServerConfig::default());
    let dir = Directory::new();
    let kept = dir.path("runs");
    let flags = ["-t", "0.003k", "--pipeline", "0.002k", "-d", "100ms", "-w", "0", "--threshold", "p99<10s"];
    let search = ["find", "-c", "4..8", "--repeats", "1", "--quiet", "--keep", &kept];
    let sweep = ["sweep", "-c", "2,4", "--quiet", "--keep", &kept];
    for command in [&search[..], &sweep] {
        run(command.iter().copied().chain(flags).chain([url.as_str()]));
        let runs: Vec<_> = std::fs::read_dir(&kept).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(!runs.is_empty(), "{command:?}");
        for path in runs {
            let plan = &json(&std::fs::read_to_string(&path).unwrap())["plan"];
            let connections = plan["connections"].as_u64().unwrap();
            assert_eq!((&plan["workers"], &plan["pipeline"]), (&connections.min(3).into(), &2.into()), "{path:?}");
            let shown = plan["origin"]["command"].as_str().unwrap();
            assert!(shown.contains(&format!("-t {} ", connections.min(3))), "{shown}");
            std::fs::remove_file(path).unwrap();
        }
    }
}
