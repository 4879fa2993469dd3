//! `brunt doctor`: problems planted where the system lets us, and a machine with none.

use std::process::Command;

use brunt_testbed::server::ServerConfig;
use serde_json::Value;

use crate::program::{Done, done, nobody, run};
use crate::runs::target;

/// What doctor says of a check, as level and message.
fn said(done: &Done, check: &str) -> (String, String) {
    let document: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{done:#?}"));
    let checks = document["checks"].as_array().unwrap();
    let found = checks.iter().find(|found| found["check"] == check).unwrap_or_else(|| panic!("{document:#}"));
    let text = |field: &str| found[field].as_str().unwrap().to_owned();
    (text("level"), text("message"))
}

/// Doctor started by a shell's words.
fn started_by(shell: &str, args: &str) -> Done {
    let script = format!("{shell} {} doctor --format json {args}", env!("CARGO_BIN_EXE_brunt"));
    done(Command::new("sh").args(["-c", &script]).env("BRUNT_NO_SAVE", "1"))
}

#[test]
fn a_target_that_answers_is_reached() {
    let (_server, url) = target(ServerConfig::default());
    let report = run(["doctor", "-c", "8", "--format", "json", &url]);
    let (level, message) = said(&report, "target");
    assert!(level == "ok" && message.contains(" connects in "), "{level} {message}");
    assert_eq!(said(&report, "descriptors").0, "ok");
    let schema: Value = serde_json::from_str(&run(["schema", "doctor"]).with_status(0).stdout).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    for args in [&["doctor", "-c", "8", "--format", "json", &url][..], &["doctor", "--format", "json"]] {
        let document: Value = serde_json::from_str(&run(args).stdout).unwrap();
        let problems: Vec<_> = validator.iter_errors(&document).map(|error| error.to_string()).collect();
        assert!(problems.is_empty(), "{problems:?}");
    }
}

#[test]
fn a_target_that_refuses_is_a_problem() {
    let (_held, url) = nobody();
    let text = run(["doctor", &url]).with_status(1).stdout;
    assert!(text.contains("problem  target ") && text.contains("onnection refused"), "{text}");
    assert!(text.contains(" would spoil this run.") && text.contains("→ start it"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let unknown = run(["doctor", "--format", "json", "http://nobody.invalid/"]).with_status(1);
    let (level, message) = said(&unknown, "name");
    assert!(level == "problem" && message.contains("nobody.invalid:80 cannot be looked up"), "{unknown:#?}");
    assert!(!unknown.stdout.contains("\"target\""), "nothing of a target that is to be started: {unknown:#?}");
}

#[test]
fn without_a_target_nothing_is_connected_to() {
    let text = run(["doctor"]).stdout;
    assert!(text.starts_with("This machine, for as many requests as it takes, "), "{text}");
    assert!(!text.contains("  target  "), "{text}");
}

#[test]
fn descriptors_that_a_shell_does_not_allow_are_found() {
    let report = started_by("ulimit -n 128 && exec", "-c 1000").with_status(1);
    let (level, message) = said(&report, "descriptors");
    assert!(level == "problem" && message.ends_with(" needed, 128 allowed"), "{message}");
}

#[test]
fn more_threads_than_cpus_are_found() {
    let report = started_by("exec taskset -c 0", "-c 64 -t 8").with_status(1);
    let (level, message) = said(&report, "CPUs");
    assert!(level == "problem" && message == "8 threads, and this process may use 1 CPUs at a time", "{message}");
}

/// The slack of timers is inherited by programs that a process becomes (prctl(2), `PR_SET_TIMERSLACK`).
#[test]
fn timers_that_come_late_are_found() {
    let slack = "import ctypes, os, sys; ctypes.CDLL(None).prctl(29, 5000000); os.execvp(sys.argv[1], sys.argv[1:])";
    let mut command = Command::new("python3");
    command.args(["-c", slack, env!("CARGO_BIN_EXE_brunt"), "doctor", "--format", "json"]).env("BRUNT_NO_SAVE", "1");
    let report = done(&mut command).with_status(1);
    assert_eq!(said(&report, "timers"), ("problem".to_owned(), "they may come 5000µs late".to_owned()));
}

#[test]
fn a_program_that_uses_cpus_is_named() {
    let mut burning: Vec<_> = (0..std::thread::available_parallelism().unwrap().get())
        .map(|_| Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap())
        .collect();
    let report = run(["doctor", "--format", "json"]);
    for process in &mut burning {
        process.kill().unwrap();
        process.wait().unwrap();
    }
    let (level, message) = said(&report.with_status(1), "other programs");
    assert!(level == "problem" && message.contains(" CPUs, the most by "), "{message}");
}

#[test]
#[ignore = "needs a network namespace (unshare --net): make test runs it"]
fn ports_that_are_few_are_found() {
    let range = "echo 40000 40019 >/proc/sys/net/ipv4/ip_local_port_range";
    let flags = if rustix::process::geteuid().is_root() { "-n" } else { "-r -n" };
    // The shell inside becomes what follows its own words.
    let shell = format!("unshare {flags} sh -c 'ip link set lo up && {range} && exec \"$0\" \"$@\"'");
    let report = started_by(&shell, "-c 40 --source-ip 127.0.0.1").with_status(1);
    let (level, message) = said(&report, "local ports");
    assert!(level == "problem" && message.starts_with("40 needed, 20 there"), "{message}");
}

#[test]
fn what_is_no_run_is_refused() {
    for (args, expected) in [
        (&["doctor", "--format", "csv"][..], "doctor writes text or json"),
        (&["doctor", "-c", "none"], "none"),
        (&["doctor", "--once", "http://127.0.0.1/"], "--once"),
    ] {
        let stderr = run(args).with_status(2).stderr;
        assert!(stderr.contains(expected), "{args:?} {stderr}");
    }
}
