//! `brunt compare`: targets in turn, sets of flags, and results.

use std::time::Duration;

use brunt_testbed::server::{Delay, ServerConfig};
use rustix::process::Signal;
use serde_json::Value;

use crate::program::{Directory, Running, nobody, run, until};
use crate::runs::target;

fn slow(millis: u64) -> ServerConfig {
    ServerConfig { delay: Delay::Fixed(Duration::from_millis(millis)), ..ServerConfig::default() }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn metric<'a>(compared: &'a Value, name: &str) -> &'a Value {
    let all = compared["comparison"]["differences"].as_array().unwrap();
    all.iter().find(|difference| difference["metric"] == name).unwrap()
}

/// 50 and 300 ms are told apart on any machine, and 50 are so long that brunt's own delays stay below a tenth of them on a
/// busy one: a rate that they spoil cannot be judged. How finely differences are seen is a matter of the model's tests.
#[test]
fn a_slower_target_is_called_slower_and_fails_the_condition() {
    let ((_a, a_url), (_b, b_url)) = (target(slow(50)), target(slow(300)));
    let dir = Directory::new();
    let markdown = dir.path("out.md");
    let quick = ["-n12", "-w0", "-c6", "-t1", "--format=json", "-o", &markdown];
    let conditions = ["--fail-if", "p50 > 1.5x", "--fail-if", "rate > 1x"];
    let done = run([&["compare"], quick.as_slice(), &conditions, &[&a_url, &b_url]].concat()).with_status(1);
    let compared = json(&done.stdout);
    assert_eq!(
        (&compared["format"], &compared["comparison"]["design"]["rounds"]),
        (&"brunt-comparison".into(), &10.into())
    );
    let p50 = metric(&compared, "p50");
    assert!(p50["differs"] == true && p50["low_ratio"].as_f64().unwrap() > 1.5, "{p50:#}");
    let conditions = &compared["conditions"];
    assert!(conditions[0]["failed"] == true && conditions[1]["failed"] == false, "{conditions:#}");
    assert_eq!(compared["runs"].as_array().unwrap().len(), 20);
    assert!(done.stderr.contains("error: p50 > 1.5x: "), "{}", done.stderr);
    // Said once, before the third round; a factor of 1 is decided by no number of rounds.
    let (early, late) = done.stderr.split_once("round 3 of 10").unwrap();
    assert!(early.contains("after 2 rounds: p50 > 1.5x "), "{early}");
    assert!(!early.contains("rate > 1x") && !late.contains("after 2 rounds"), "{}", done.stderr);
    let markdown = std::fs::read_to_string(markdown).unwrap();
    assert!(markdown.contains("B's p50 is ") && markdown.contains("| ❌ `p50 > 1.5x` |"), "{markdown}");
}

#[test]
fn one_target_is_loaded_in_two_ways_and_the_runs_are_kept_and_compared_again() {
    // One connection to a mere delay does so much less than 32 that a run which was held up changes nothing.
    let (_server, url) = target(slow(20));
    let dir = Directory::new();
    let runs = dir.path("runs");
    let args = ["-n32", "-w0", "-t1", "--keep", &runs, "--a", "-c 1 -H 'X: a b'", "--b=-c 32", &url];
    let done = run([&["compare"], args.as_slice()].concat()).with_status(0);
    assert!(done.stdout.contains("× as many calls a second as A ["), "{}", done.stdout);
    assert!(
        done.stdout.contains("  A  http://127.0.0.1:") && done.stdout.contains(" -c 1 -H 'X: a b'\n"),
        "{}",
        done.stdout
    );
    let [old, new] = ["old", "new"].map(|name| dir.path(name));
    for (side, into) in [("A", &old), ("B", &new)] {
        std::fs::create_dir(into).unwrap();
        for entry in std::fs::read_dir(&runs).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            if name.ends_with(&format!("-{side}.json")) {
                std::fs::copy(entry.path(), format!("{into}/{name}")).unwrap();
            }
        }
    }
    let done = run(["compare", &old, &new, "--format=json"]).with_status(0);
    let compared = json(&done.stdout);
    let design = &compared["comparison"]["design"];
    assert_eq!((&design["is"], &design["a"], &design["b"]), (&"runs".into(), &10.into(), &10.into()));
    assert!(metric(&compared, "rate")["ratio"].as_f64().unwrap() > 2.0, "{compared:#}");
    // One of them alone is too short to be cut into blocks.
    let [one, other] = [&old, &new].map(|directory| {
        let file = std::fs::read_dir(directory).unwrap().next().unwrap().unwrap().path();
        file.to_str().unwrap().to_owned()
    });
    let done = run(["compare", &one, &other]).with_status(2);
    assert!(done.stderr.contains("too short to be compared by itself: 10 s or more"), "{}", done.stderr);
    // Nothing differs from itself, whatever its file is called.
    let copy = dir.path("copy.json");
    std::fs::copy(&one, &copy).unwrap();
    for same in [&one, &copy] {
        let done = run(["compare", &one, same]).with_status(2);
        assert!(done.stderr.contains("a run cannot be compared with itself"), "{}", done.stderr);
    }
}

#[test]
fn a_target_that_never_answers_exits_with_3() {
    let ((_server, url), (_port, nowhere)) = (target(ServerConfig::default()), nobody());
    let done = run(["compare", "-n20", "-w0", "--format=json", &url, &nowhere]).with_status(3);
    assert!(done.stderr.contains(&format!("{nowhere} never answered: connect")), "{}", done.stderr);
    let done = run(["compare", "-n20", "-w0", &url, &nowhere]).with_status(3);
    assert!(done.stdout.contains(&format!("✗ {nowhere} never answered: connect")), "{}", done.stdout);
}

/// Both sides fail alike: there is no difference, and nothing that a pipeline should pass.
#[test]
fn sides_that_fail_alike_fail_with_a_reason() {
    let failing = ServerConfig { error_rate: 0.3, ..slow(5) };
    let ((_a, a_url), (_b, b_url)) = (target(failing.clone()), target(failing));
    let dir = Directory::new();
    let junit = dir.path("out.xml");
    let done = run(["compare", "-n40", "-w0", "-c2", "-t1", "--max-error-rate", "1%", "-o", &junit, &a_url, &b_url])
        .with_status(1);
    let first = done.stdout.split("\n\n").nth(1).unwrap();
    assert!(first.starts_with("✗ a threshold failed in 20 of 20 runs, such as "), "{}", done.stdout);
    assert!(first.contains("(status 503)"), "{first}");
    let xml = std::fs::read_to_string(junit).unwrap();
    assert!(xml.contains("name=\"compare\"") && xml.contains("tests=\"4\" failures=\"1\""), "{xml}");
}

#[test]
fn a_signal_ends_it_with_the_rounds_so_far() {
    let (server, url) = target(ServerConfig::default());
    let running = Running::start(["compare", "-d1h", "-w0", "-c2", &url, &url]);
    until("the first run is on its way", || server.requests() > 0);
    running.send(Signal::INT);
    let done = running.wait();
    assert!(done.stdout.contains("too little data") && done.stdout.contains("! interrupted"), "{}", done.stdout);
}

#[test]
fn three_results_judge_a_single_one() {
    let dir = Directory::new();
    for folder in ["old", "few"] {
        std::fs::create_dir(dir.path(folder)).unwrap();
    }
    let ((_old, old), (_new, new)) = (target(slow(20)), target(slow(90)));
    let made = |url: &str, file: &str| {
        run(["-n", "40", "-c", "2", "-t", "1", "--quiet", "-o", &dir.path(file), url]).with_status(0);
    };
    for file in ["old/1.json", "old/2.json", "old/3.json", "few/1.json", "few/2.json"] {
        made(&old, file);
    }
    made(&new, "new.json");
    let compared =
        json(&run(["compare", "--format", "json", &dir.path("old"), &dir.path("new.json")]).with_status(0).stdout);
    let design = &compared["comparison"]["design"];
    assert_eq!((design["a"].as_u64(), design["b"].as_u64()), (Some(3), Some(1)), "{design}");
    let p50 = metric(&compared, "p50");
    assert!(p50["differs"] == true && p50["ratio"].as_f64().unwrap() > 2.0, "{p50}");
    let text = run(["compare", &dir.path("new.json"), &dir.path("old")]).with_status(0).stdout;
    assert!(text.contains("A is one run: the spread of B's 3 runs stands for its own"), "{text}");
    let few = run(["compare", &dir.path("few"), &dir.path("new.json")]).with_status(2);
    assert!(few.stderr.contains("at least 3 of one side are needed"), "{few:#?}");
}

/// Two targets by one script, whose base each side gives, and by two scripts.
#[test]
fn targets_are_compared_by_a_script() {
    let ((_a, a_url), (_b, b_url)) = (target(slow(50)), target(slow(300)));
    let dir = Directory::new();
    let of_k6 = "import http from 'k6/http';
        export const options = { scenarios: { s: { executor: 'shared-iterations', vus: 6, iterations: 12 } } };
        export default function () { http.get(`${__ENV.BASE}/`) }";
    let lua = "local brunt = require 'brunt'
        local http = brunt.http{ base = brunt.env('BASE') }
        brunt.scenario('s', function() http:get('/') end):inject{ brunt.iterations_shared(6, 12) }";
    for script in [dir.file("shop.js", of_k6), dir.file("shop.lua", lua)] {
        let sides = [format!("-e BASE={a_url}"), format!("--env BASE={b_url}")];
        let keep = dir.path("kept");
        let common = ["compare", "-t1", "--format=json", "--no-save", "--keep", &keep];
        let done = run([&common[..], &[&script, "--a", &sides[0], "--b", &sides[1]]].concat()).with_status(0);
        let compared = json(&done.stdout);
        let p50 = metric(&compared, "p50");
        assert!(p50["low_ratio"].as_f64().unwrap() > 1.5, "{compared:#}");
        assert_eq!(compared["a"], format!("{script} --env BASE={a_url}"), "{compared:#}");
        assert_eq!(compared["runs"].as_array().unwrap().len(), 20);
        let first = std::fs::read_dir(&keep).unwrap().map(|entry| entry.unwrap().path()).min().unwrap();
        let kept = json(&std::fs::read_to_string(first).unwrap());
        assert_eq!(kept["outcomes"]["due"], 12, "{:#}", kept["outcomes"]);
        let command = kept["plan"]["origin"]["command"].as_str().unwrap();
        assert!(command.starts_with("brunt run ") && command.contains(" --env BASE=http"), "{command}");
        std::fs::remove_dir_all(keep).unwrap();
    }
    // Scripts are no results, and -r gives both the same iterations a second.
    let old = dir.file("old.js", of_k6.replace("__ENV.BASE", "'PLACE'").replace("PLACE", &a_url));
    let new = dir.file("new.js", of_k6.replace("__ENV.BASE", "'PLACE'").replace("PLACE", &b_url));
    let done = run(["compare", "-r40", "-d500ms", "--no-save", &old, &new]).with_status(0);
    // 20 iterations begin in each run, however long the last of them takes.
    let rate = done.stdout.lines().find(|line| line.trim_start().starts_with("rate ")).unwrap();
    assert!(rate.contains("40.0/s") && rate.contains("1.000"), "{}", done.stdout);
    assert!(done.stdout.contains("40 iterations/s for 500ms"), "{}", done.stdout);
    assert!(done.stdout.contains("B's p50 is "), "{}", done.stdout);
    let done = run(["compare", &old]).with_status(2);
    assert!(done.stderr.contains("Give each side its flags, such as --a '-e BASE=http://old'"), "{}", done.stderr);
}
