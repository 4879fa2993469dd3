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

/// Two calls an iteration.
const OF_K6: &str = r#"
import http from "k6/http";
import { check } from "k6";
export const options = {
  scenarios: { shop: { executor: "constant-vus", vus: 3, duration: "1h", exec: "buy" } },
  thresholds: { "http_req_duration": ["p(90)<400"], "iterations": ["count>1000000"] },
};
export function buy() {
  check(http.get(`${__ENV.BASE}/`), { ok: (r) => r.status === 200 });
  http.get(`${__ENV.BASE}/`);
}
"#;

/// Of a target of 200 calls a second, a script of two calls takes 100 iterations a second and no more.
#[test]
fn it_finds_the_most_iterations_of_a_script() {
    let (_server, url) = target(queue(4));
    let dir = Directory::new();
    let scripts = [
        dir.file("shop.js", OF_K6),
        dir.file(
            "shop.lua",
            "local brunt = require 'brunt'
            local http = brunt.http{ base = brunt.env('BASE') }
            brunt.scenario('shop', function() http:get('/') http:get('/') end):inject{ brunt.users(3, '1h') }",
        ),
    ];
    for script in scripts {
        let keep = dir.path(if script.ends_with("js") { "of-k6" } else { "lua" });
        let base = format!("BASE={url}");
        let search = ["--from=70", "--highest=200", "--precision=20%", "--repeats=1", "-d2s", "--no-save", "--keep"];
        let args = ["find", "-e", &base, "--threshold", "p90<100ms", "--format=json", &script];
        let done = run([&args[..], &search, &[&keep]].concat());
        let found = json(&done.stdout);
        assert_eq!(found["settings"]["searched"], "rate", "{done:#?}");
        let trials = found["trials"].as_array().unwrap();
        for trial in trials {
            assert!(trial["outcome"] != "met" || trial["rate_per_s"].as_f64().unwrap() <= 105.0, "{trial:#}");
        }
        match found["answer"]["is"].as_str().unwrap() {
            "between" => assert_eq!(done.status, Some(0)),
            // Of a machine too busy for a generator to be trusted.
            "generator" | "below_all" | "unsteady" => {}
            other => panic!("{other}: {done:#?}"),
        }
        assert!(done.stderr.contains("trial 1: 70/s "), "{}", done.stderr);
        let kept = std::fs::read_dir(&keep).unwrap().map(|entry| entry.unwrap().path());
        let mut kept: Vec<_> = kept.map(|path| json(&std::fs::read_to_string(path).unwrap())).collect();
        kept.sort_by_key(|result| result["started_unix_ms"].as_u64().unwrap());
        assert_eq!(kept.len(), trials.len());
        let population = &kept[0]["plan"]["scenarios"]["populations"][0];
        assert_eq!(
            (&population["scenarios"][0]["scenario"], &population["steps"][0]["from"]),
            (&"shop".into(), &70.0.into())
        );
        let command = kept[0]["plan"]["origin"]["command"].as_str().unwrap();
        assert!(
            command.starts_with("brunt run ") && command.contains(" -r 70 ") && command.ends_with(&script),
            "{command}"
        );
    }
}

/// Of four servers of 20 ms each, 8 users wait 40 ms for an answer and 9 wait longer. The thresholds are the script's.
#[test]
fn it_finds_the_most_users_of_a_script_by_its_own_thresholds() {
    let (_server, url) = target(queue(4));
    let dir = Directory::new();
    let script = dir.file("shop.js", OF_K6.replace("p(90)<400", "p(90)<50").replace("count>1000000", "count>0"));
    let base = format!("BASE={url}");
    let args = ["find", "-e", &base, "--users", "2..64", "--precision=20%", "--repeats=1", "-d2s", "--no-save"];
    let csv = dir.path("out.csv");
    let done = run([&args[..], &["--format=json", "-o", &csv, &script]].concat());
    let found = json(&done.stdout);
    assert_eq!(found["settings"]["searched"], "users", "{done:#?}");
    assert_eq!([&found["settings"]["from_users"], &found["settings"]["highest_users"]], [2, 64]);
    for trial in found["trials"].as_array().unwrap() {
        assert!(trial["outcome"] != "met" || trial["users"].as_u64().unwrap() <= 8, "{trial:#}");
    }
    assert!(done.stderr.starts_with("trial 1: 2 users "), "{}", done.stderr);
    assert!(std::fs::read_to_string(csv).unwrap().starts_with("trial,users,"));
}

#[test]
fn a_search_with_a_script_says_what_it_needs() {
    let dir = Directory::new();
    let script = dir.file("shop.js", OF_K6);
    let two = dir.file(
        "two.lua",
        "local brunt = require 'brunt'
        local http = brunt.http{ base = 'http://127.0.0.1:1' }
        brunt.scenario('a', function() http:get('/') end):inject{ brunt.users(3, '1h') }
        brunt.scenario('b', function() http:get('/') end):inject{ brunt.rate(3, '1h') }",
    );
    for (flags, expected) in [
        (&["-c", "1..8", &*script][..], "-c 1..8: a search for connections needs a URL: of a script, --users FROM..TO"),
        (
            &["-c", "8", &script],
            "--connections is not for scripts, whose users make their own connections: --users says",
        ),
        (&["-w", "1s", &script], "--warmup is not for scripts, whose trials have no warm-up: a longer -d"),
        (&["-H", "A: b", &script], "--header is not for scripts: a script sets this itself"),
        (&["--users", "1..8", "http://127.0.0.1:1/"], "--users 1..8: a search for users needs a script"),
        (&["--users", "8", "http://127.0.0.1:1/"], "--users needs a script, and http://127.0.0.1:1/ is a URL"),
        (
            &["--users", "1..8", "-c", "1..8", &script],
            "a search is for connections of a URL (-c), or for users of a script",
        ),
        (&["-e", "A=b", "http://127.0.0.1:1/"], "--env needs a script, and http://127.0.0.1:1/ is a URL"),
        (
            &[&two],
            "scenario b has a rate and a a number of users, which one load cannot replace: choose one with --only b",
        ),
    ] {
        let done = run([&["find", "--threshold=p99<1s"], flags].concat()).with_status(2);
        assert!(done.stderr.contains(expected), "{flags:?}: {}", done.stderr);
    }
    // A script that nobody gave thresholds has nothing to meet.
    let bare = dir.file("bare.js", "import http from 'k6/http'; export default () => http.get('http://127.0.0.1:1/')");
    let done = run(["find", &bare]).with_status(2);
    assert!(done.stderr.contains("needs to know what the target must meet"), "{}", done.stderr);
    // What changes the script's load has no meaning beside one that takes its place.
    for (flag, value, file) in [
        ("--scale", "2", &script),
        ("--vus", "3", &script),
        ("--iterations", "3", &bare),
        ("--stage", "1s:3", &bare),
        ("--inject", "a=at_once(3)", &two),
    ] {
        let done = run(["run", "--users", "3", flag, value, file]).with_status(2);
        let expected = format!("--users takes the place of the script's load, which {flag} changes");
        assert!(done.stderr.contains(&expected), "{flag}: {}", done.stderr);
    }
    let done = run(["find", "--dry-run", "--threshold", "p99<1s", &script]).with_status(0);
    assert!(done.stderr.contains("note: --threshold takes the place of 2 thresholds of the script"), "{}", done.stderr);
}

/// A script that ends its run has measured nothing: the search ends with its words.
#[test]
fn a_script_that_aborts_ends_the_search() {
    let (_server, url) = target(ServerConfig::default());
    let dir = Directory::new();
    let script = dir.file(
        "abort.js",
        format!(
            "import http from 'k6/http'; import exec from 'k6/execution';
            export default function () {{ http.get('{url}'); exec.test.abort('no stock') }}"
        ),
    );
    let done = run(["find", "--threshold", "p99<1s", "-d1s", &script]).with_status(2);
    assert!(
        done.stderr.contains("trial 1: 10/s: the script ended the run") && done.stderr.contains("no stock"),
        "{done:#?}"
    );
}

/// A limit of users is not the target's.
#[test]
fn a_limit_of_users_is_no_capacity() {
    let (_server, url) =
        target(ServerConfig { delay: Delay::Fixed(Duration::from_millis(50)), ..ServerConfig::default() });
    let dir = Directory::new();
    let script = dir.file("shop.js", OF_K6);
    let base = format!("BASE={url}");
    // Two users of 100 ms each make 20 iterations a second.
    let args = ["find", "-e", &base, "--users", "2", "--threshold", "error_rate<50%", "--from=12", "--highest=60"];
    let search = ["--precision=50%", "--repeats=1", "-d2s", "--no-save", &script];
    let done = run([&args[..], &search].concat()).with_status(1);
    assert!(done.stdout.contains("all users were busy while the target was as fast as ever"), "{done:#?}");
    assert!(done.stdout.contains("--users N allows more"), "{done:#?}");
}

/// A script whose users make no call aims at nobody, and whoever made it is told how to see that.
#[test]
fn a_script_without_a_call_names_no_target() {
    let dir = Directory::new();
    let script = dir.file("idle.js", "import { sleep } from 'k6';\nexport default function () { sleep(0.01); }\n");
    let done = run(["find", "--threshold", "p99<50ms", "-d", "200ms", "-t", "1", "--no-save", &script]);
    assert!(
        done.stdout.contains("no answer: no call was due\n  see which calls its users make: brunt check FILE"),
        "{done:#?}"
    );
    assert!(!done.stdout.contains("http://"), "{done:#?}");
}
