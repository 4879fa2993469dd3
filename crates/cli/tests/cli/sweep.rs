//! `brunt sweep`: a run for each value.

use std::time::Duration;

use brunt_testbed::server::{Delay, ServerConfig};
use rustix::process::Signal;
use serde_json::Value;

use crate::program::{Directory, Running, nobody, run, until};
use crate::runs::target;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

const QUICK: [&str; 4] = ["sweep", "-n40", "-w0", "-t1"];

/// A flag that `--vary` names is that flag: as many as there may be, and no more threads than connections.
#[test]
fn connections_may_be_varied_by_name() {
    let (server, url) = target(ServerConfig::default());
    let values = |vary: &str, threads: &str| {
        let args = ["sweep", "-n40", "-w0", threads, "--format=json", "--vary", vary, &url];
        let steps = json(&run(args).with_status(0).stdout)["steps"].as_array().unwrap().clone();
        steps.iter().map(|step| step["value"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(values("connections=1,4", "-t2"), [1, 4]);
    assert_eq!(server.requests(), 80);
    let dry = ["sweep", "-n40", "-w0", "--dry-run", "--vary", "connections=1..max", &url];
    run(dry).with_status(0);
}

#[test]
fn each_value_has_its_run() {
    let (server, url) =
        target(ServerConfig { delay: Delay::Fixed(Duration::from_millis(5)), ..ServerConfig::default() });
    let dir = Directory::new();
    let (csv, markdown) = (dir.path("out.csv"), dir.path("out.md"));
    let args = ["-c", "1..20", "--format=json", "-o", &csv, "-o", &markdown, &url];
    let done = run([QUICK.as_slice(), &args].concat()).with_status(0);
    let swept = json(&done.stdout);
    assert_eq!(swept["format"], "brunt-sweep");
    let values: Vec<_> =
        swept["steps"].as_array().unwrap().iter().map(|step| step["value"].as_u64().unwrap()).collect();
    assert_eq!(values, [1, 2, 4, 8, 16, 20]);
    let answered: Vec<_> =
        swept["steps"].as_array().unwrap().iter().map(|step| step["evidence"]["answered"].as_u64().unwrap()).collect();
    assert_eq!(answered, [40; 6]);
    assert_eq!((server.connections(), server.requests()), (1 + 2 + 4 + 8 + 16 + 20, 6 * 40));
    assert!(swept["law"]["fit"].is_object() || swept["law"]["no_fit"].is_object(), "{}", swept["law"]);
    assert_eq!(std::fs::read_to_string(csv).unwrap().lines().count(), 7);
    assert!(std::fs::read_to_string(markdown).unwrap().starts_with("# Sweep of connections at http://"));
    assert_eq!(done.stderr.lines().count(), 6, "{}", done.stderr);
}

#[test]
fn other_flags_are_varied_as_well() {
    let (_server, url) = target(ServerConfig::default());
    for (flag, values) in [("-r", "50,100"), ("--pipeline", "1..2"), ("-t", "1,2"), ("--vary", "connections=2,3")] {
        let words = ["sweep", "-n20", "-w0", flag, values, "--format=csv", &url];
        let done = run(words).with_status(0);
        assert_eq!(done.stdout.lines().count(), 3, "{flag}: {}", done.stdout);
    }
}

#[test]
fn users_rates_and_variables_of_a_script_are_varied() {
    let (server, url) = target(ServerConfig::default());
    let dir = Directory::new();
    let script = dir.file(
        "shop.js",
        format!(
            "import http from 'k6/http'; import {{ sleep }} from 'k6';
            export const options = {{ iterations: 1 }};
            export default function () {{
              for (let i = 0; i < Number(__ENV.ITEMS ?? 1); i++) http.get('{url}');
              sleep(0.1);
            }}"
        ),
    );
    let steps = |vary: &[&str]| {
        let done = run([&["sweep", "--format=json", "--no-save"], vary, &[&script]].concat()).with_status(0);
        let swept = json(&done.stdout);
        let due = |step: &Value| step["evidence"]["due"].as_u64().unwrap();
        swept["steps"].as_array().unwrap().iter().map(due).collect::<Vec<_>>()
    };
    // Each run makes the one iteration of the script.
    assert_eq!(steps(&["--vary", "ITEMS=1,5"]), [1, 5]);
    assert_eq!(server.requests(), 6);
    assert_eq!(steps(&["-r", "10,40", "-d1s"]), [10, 40]);
    let by_users = steps(&["--users", "1,8", "-d1s"]);
    assert!(by_users[0] <= 11 && by_users[1] > by_users[0], "{by_users:?}");
    let said = run(["sweep", "-c", "1,2", &script]).with_status(2).stderr;
    assert!(said.contains("--connections is not for scripts, whose users make their own connections"), "{said}");
}

#[test]
fn a_target_that_falls_over_is_a_finding() {
    let ((_server, url), (_port, nowhere)) =
        (target(ServerConfig { error_rate: 1.0, ..ServerConfig::default() }), nobody());
    let done = run([QUICK.as_slice(), &["-c", "1,2,4", &nowhere]].concat()).with_status(3);
    assert!(done.stdout.contains("at 4: no answer (connect: "), "{}", done.stdout);
    let threshold = ["-c", "1,2,4", "--threshold", "error_rate<50%"];
    let done = run([QUICK.as_slice(), &threshold, &["--stop-at-failure", &url]].concat()).with_status(1);
    assert!(done.stdout.contains("! stopped at 1, as told") && !done.stdout.contains("at 2:"), "{}", done.stdout);
    assert!(
        done.stdout.contains("✗ thresholds failed at 1 of 1 value, such as 1: error_rate<50% was 100%"),
        "{done:#?}"
    );
    let done = run([QUICK.as_slice(), &threshold, &["--quiet", &url]].concat()).with_status(1);
    assert!(done.stderr.contains("error: connections 4: error_rate<50% was 100%"), "{}", done.stderr);
}

#[test]
fn a_threshold_that_aborts_ends_the_run_of_one_value_alone() {
    let (_server, url) = target(ServerConfig { error_rate: 1.0, ..ServerConfig::default() });
    let args =
        ["sweep", "-d1h", "-w0", "-t1", "-c", "1,2", "--threshold", "error_rate==0 abort", "--format=json", &url];
    let done = run(args).with_status(1);
    let swept = json(&done.stdout);
    let steps = swept["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 2, "{swept:#}");
    for step in steps {
        let [threshold] = step["evidence"]["thresholds"].as_array().unwrap().as_slice() else { panic!("{step:#}") };
        assert_eq!(threshold["held"], false, "{step:#}");
    }
    assert!(!done.stderr.contains("interrupted"), "{}", done.stderr);
}

#[test]
fn a_signal_ends_it_with_the_values_so_far() {
    let (server, url) = target(ServerConfig::default());
    let running = Running::start(["sweep", "-d1h", "-w0", "-c", "2,4", &url]);
    until("the first run is on its way", || server.requests() > 0);
    running.send(Signal::INT);
    let done = running.wait().with_status(130);
    assert!(done.stdout.contains("! interrupted at 2: these are the values so far"), "{}", done.stdout);
}

/// Values of a variable that no script reads would differ by chance alone.
#[test]
fn a_variable_that_the_script_never_reads_is_refused() {
    let dir = Directory::new();
    let script = dir
        .file("deaf.js", "import { sleep } from 'k6';\nexport default function () { sleep(__ENV.ITEMS || 0.01); }\n");
    let vary =
        |name: &str| run(["sweep", "--vary", name, "--users", "1", "-d", "200ms", "-t", "1", "--no-save", &script]);
    let refused = vary("NAME=1..4").with_status(2).stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        refused.contains("--vary NAME: no flag has this name, and") && refused.contains("__ENV.NAME in JavaScript"),
        "{refused}"
    );
    assert!(!vary("ITEMS=1..2").stderr.contains("never reads"));
}
