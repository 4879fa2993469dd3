//! Whether brunt notices what is wrong with itself: each fault is planted for real, and found by its name; where there
//! is none, none is found. One at a time, since each would be another's fault.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

#[allow(dead_code, reason = "shared with other tests, which use all of it")]
#[path = "../cli/program.rs"]
mod program;
#[allow(dead_code, reason = "shared with other tests, which use all of it")]
#[path = "../network/report.rs"]
mod report;

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use brunt_testbed::server::{Delay, Server, ServerConfig};
use rustix::process::Signal;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use program::{Directory, Running, brunt, done, nobody, run, until};
use report::{Report, report};

/// How often a run may be repeated whose result another process can spoil.
const TRIES: usize = 40;
/// A thread that comes before all others and wakes later than this was kept from a CPU.
const DISTURBANCE: Duration = Duration::from_millis(2);

/// Keeps the other tests of this file waiting.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn target(config: ServerConfig) -> Server {
    Server::start(config).unwrap()
}

fn judgement(report: &Report) -> &str {
    report.at("/verdict/judgement").as_str().unwrap()
}

/// What was found that spoils the run.
fn causes(report: &Report) -> Vec<&str> {
    let findings = report.at("/verdict/findings").as_array().unwrap();
    findings.iter().filter(|f| f["decisive"] == true).map(|f| f["cause"].as_str().unwrap()).collect()
}

/// Runs brunt before everything else that wants a CPU, if the system lets us.
#[track_caller]
fn favoured(status: i32, args: &[&str]) -> Report {
    let done = thread::scope(|scope| {
        let favoured = scope.spawn(|| {
            // This thread's, and that of what it starts.
            let _ = rustix::process::nice(-20);
            done(brunt(args).args(["--format", "json"]))
        });
        favoured.join().unwrap()
    });
    Report::parse(&done.with_status(status))
}

/// Does something while each core is watched; with what came of it, the longest that a favoured thread was kept from
/// one of them.
fn watched<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    const STEP: Duration = Duration::from_millis(2);
    let allowed = sched_getaffinity(None).unwrap();
    let over = AtomicBool::new(false);
    let watch = |core: usize| {
        stay_on(core);
        let _ = rustix::process::nice(-20);
        let mut longest = Duration::ZERO;
        while !over.load(Ordering::Relaxed) {
            let asleep = Instant::now();
            sleep(STEP);
            longest = longest.max(asleep.elapsed().saturating_sub(STEP));
        }
        longest
    };
    thread::scope(|scope| {
        let cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
        let watching: Vec<_> = cores.map(|core| scope.spawn(move || watch(core))).collect();
        let done = work();
        over.store(true, Ordering::Relaxed);
        (done, watching.into_iter().map(|thread| thread.join().unwrap()).max().unwrap_or_default())
    })
}

/// Repeats a run until it is judged trustworthy; its report. It may be spoiled as long as this machine is kept from
/// working, by what else it does or by other guests on it: where that never ends, there is nothing to be judged, and none.
#[track_caller]
fn is_trusted_in_the_end(status: i32, args: &[&str]) -> Option<Report> {
    let mut seen = Vec::new();
    let mut quiet = 0;
    for _ in 0..TRIES {
        let (report, longest) = watched(|| favoured(status, args));
        if judgement(&report) == "trustworthy" {
            return Some(report);
        }
        quiet += usize::from(longest < DISTURBANCE);
        seen.push((longest, report.at("/verdict/sentence").to_string()));
    }
    assert!(quiet == 0, "{args:?} was never trusted: {seen:#?}");
    None
}

const DISTURBED: &str =
    "not tested: something keeps all of this system's CPUs from us all the time; run it again on a quieter machine";

/// Lets this thread, and what it starts, run on one core only.
fn stay_on(core: usize) {
    let mut one = CpuSet::new();
    one.set(core);
    sched_setaffinity(None, &one).unwrap();
}

/// Does something on one core, which `busy` other threads want at the same time. What it starts stays there.
fn on_a_busy_core<T: Send>(busy: usize, work: impl FnOnce() -> T + Send) -> T {
    let allowed = sched_getaffinity(None).unwrap();
    let core = (0..CpuSet::MAX_CPU).rfind(|core| allowed.is_set(*core)).unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..busy {
            scope.spawn(|| {
                stay_on(core);
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let worker = scope.spawn(move || {
            stay_on(core);
            work()
        });
        let done = worker.join();
        over.store(true, Ordering::Relaxed);
        done.unwrap()
    })
}

#[test]
fn a_starved_generator() {
    let _alone = alone();
    let server = target(ServerConfig::default());
    for load in [["-c", "64", "-t", "1"], ["-r", "50k", "-t", "1"]] {
        let url = server.url();
        let report =
            on_a_busy_core(3, || report(0, [load.as_slice(), &["-d", "2s", "--drain", "100ms", &url]].concat()));
        assert_ne!(judgement(&report), "trustworthy", "{load:?} {:#}", report.at("/verdict"));
        assert!(causes(&report).contains(&"cpu_starved"), "{load:?} {:#}", report.at("/verdict"));
        let spoiled = report.at("/series").as_array().unwrap().iter().filter(|point| point["spoiled"] == true).count();
        assert!(spoiled > 0, "{load:?}");
    }
}

#[test]
fn a_starved_generator_says_so_in_every_view() {
    let _alone = alone();
    let (server, dir) = (target(ServerConfig::default()), Directory::new());
    let (url, json, csv) = (server.url(), dir.path("run.json"), dir.path("run.csv"));
    let args = ["-c", "64", "-t", "1", "-d", "1s", "-o", &json, "-o", &csv, &url];
    let text = on_a_busy_core(3, || run(args).with_status(0)).stdout;
    assert!(text.contains("! brunt was the limit") && text.contains("had no CPU"), "{text}");
    let read = |path: &str| std::fs::read_to_string(path).unwrap();
    assert!(read(&json).contains("\"cpu_starved\""));
    assert!(read(&csv).contains("had no CPU"));
    let wrk = on_a_busy_core(3, || run(["-c", "64", "-t", "1", "-d", "1s", "--format", "wrk", &url]).with_status(0));
    assert!((wrk.stdout + &wrk.stderr).contains("had no CPU"));
}

#[test]
fn a_generator_that_was_stopped() {
    let _alone = alone();
    let server = target(ServerConfig { delay: Delay::Fixed(Duration::from_millis(20)), ..ServerConfig::default() });
    for load in [["-c", "8"].as_slice(), &["-c", "8", "-r", "200"]] {
        let before = server.requests();
        let run = Running::start([load, &["-d", "1h", "--format", "json", &server.url()]].concat());
        let answered = || server.requests() - before;
        until("the run is on its way", || answered() > 0);
        run.send(Signal::STOP);
        sleep(Duration::from_millis(1200));
        let behind = answered();
        run.send(Signal::CONT);
        until("the run goes on", || answered() > behind + 20);
        run.send(Signal::INT);
        let report = Report::parse(&run.wait().with_status(130));
        assert_ne!(judgement(&report), "trustworthy", "{load:?} {:#}", report.at("/verdict"));
        let findings = report.at("/verdict/findings").as_array().unwrap();
        let seconds = |f: &serde_json::Value| !f["seconds"].as_array().unwrap().is_empty();
        assert!(findings.iter().any(|f| f["cause"] == "cpu_starved" && seconds(f)), "{load:?} {findings:#?}");
    }
}

/// A shell in a network of its own where few local ports are left. None if the system does not let us have one.
fn few_ports(script: &str) -> Option<Command> {
    let root = rustix::process::geteuid().is_root();
    let flags: &[&str] = if root { &["-n"] } else { &["-r", "-n"] };
    let prepared = "ip link set lo up && echo 40000 40019 >/proc/sys/net/ipv4/ip_local_port_range";
    let command = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(flags).args(["sh", "-c", script]).env("BRUNT_NO_SAVE", "1");
        command
    };
    let possible = command(prepared).output().is_ok_and(|output| output.status.success());
    possible.then(|| command(&format!("{prepared} && {script}")))
}

const NO_NETWORK: &str = "not tested: this system gives us no network of our own (unshare -n)";

/// The report of brunt under this load at a target in the same network, where few local ports are left.
fn with_few_ports(load: &str) -> Option<Report> {
    let brunt = env!("CARGO_BIN_EXE_brunt");
    let dir = Directory::new();
    // What the target says when it listens.
    let said = dir.path("said");
    let script = format!(
        "{{ {brunt} serve http 127.0.0.1:8080 --duration 120s >{said} & }} && until grep -q listening {said}; do sleep 0.02; done &&
         {brunt} {load} --format json http://127.0.0.1:8080/; status=$?; kill $!; exit $status"
    );
    few_ports(&script).map(|mut command| Report::parse(&done(&mut command).with_status(0)))
}

/// On loopback there are more local addresses to be had.
#[test]
#[ignore = "needs a network namespace (unshare --net): make test runs it"]
fn more_connections_than_ports_take_other_local_addresses() {
    let _alone = alone();
    let Some(report) = with_few_ports("-c 40 -t 1 -n 400") else { panic!("{NO_NETWORK}") };
    assert_eq!(report.at("/connections/made"), 40, "{:#}", report.at("/verdict"));
    assert!(report.failures().is_empty() && report.outcome("answered") > 40, "{:?}", report.reasons());
}

/// From one address there are ports for half of the connections. A connection for each call would not do: of a brunt that is
/// held up the target closes them first, and so has the ports in `TIME_WAIT`.
#[test]
#[ignore = "needs a network namespace (unshare --net): make test runs it"]
fn ports_that_run_out() {
    let _alone = alone();
    for (rate, is_decisive) in [("", true), ("-r 500", false)] {
        let load = format!("-c 40 -t 1 --source-ip 127.0.0.1 -d 3s {rate}");
        let Some(report) = with_few_ports(&load) else { panic!("{NO_NETWORK}") };
        let findings = report.at("/verdict/findings").as_array().unwrap();
        let ports = findings.iter().find(|finding| finding["cause"] == "ports");
        let ports = ports.unwrap_or_else(|| panic!("{load} {:#}", report.at("/verdict")));
        // Half of the connections carry such a rate.
        assert_eq!(ports["decisive"], is_decisive, "{load} {ports:#}");
        assert!(!is_decisive || judgement(&report) == "generator_bound", "{load} {:#}", report.at("/verdict"));
        assert!(report.outcome("answered") > 0 && report.at("/connections/made") == 20, "{load}");
        let advice = ports["advice"].as_str().unwrap();
        assert!(advice.contains("--source-ip") && advice.contains("ip_local_port_range"), "{advice}");
    }
}

/// brunt under a limit of the shell's.
fn under(limit: &str, args: &str) -> program::Done {
    let script = format!("{limit} && exec {} {args}", env!("CARGO_BIN_EXE_brunt"));
    let mut command = Command::new("sh");
    done(command.args(["-c", &script]).env("BRUNT_NO_SAVE", "1"))
}

#[test]
fn descriptors_that_are_too_few() {
    let said = under("ulimit -n 100", "-c 200 http://127.0.0.1:9/").with_status(2);
    assert!(said.stderr.contains("descriptors are needed for 200 connections"), "{}", said.stderr);
    assert!(said.stderr.contains("the limit is 100") && said.stderr.contains("ulimit -Hn"), "{}", said.stderr);
    assert_eq!(said.stdout, "");
}

/// However busy the machine is: a rate that takes 140 connections has some thirty descriptors.
#[test]
fn descriptors_that_are_too_few_for_a_rate_are_named() {
    let server = target(ServerConfig { delay: Delay::Fixed(Duration::from_millis(700)), ..ServerConfig::default() });
    let args = format!("-t 1 -r 200 -d 3s --drain 200ms --max-error-rate 100% {}", server.url());
    let said = under("ulimit -n 90", &args).with_status(0).stdout;
    let head = said.split("\n\n").next().unwrap_or_default();
    assert!(head.contains("more descriptors (ulimit -Hn)"), "{said}");
    assert!(!head.lines().any(|line| line.starts_with("! the target") || line.starts_with("✗ the target")), "{said}");
}

#[test]
fn a_soft_limit_on_descriptors_is_raised() {
    let server = target(ServerConfig::default());
    let args = format!("-c 400 -n 4000 --format json {}", server.url());
    Report::parse(&under("ulimit -Sn 50", &args).with_status(0)).assert_all(4000, 200);
}

#[test]
fn a_slow_target_is_not_the_generators_fault() {
    let _alone = alone();
    let server = target(ServerConfig { delay: Delay::Fixed(Duration::from_millis(200)), ..ServerConfig::default() });
    let url = server.url();
    let Some(_) = is_trusted_in_the_end(0, &["-c", "16", "-d", "2s", &url]) else { panic!("{DISTURBED}") };
    // Far more is due than four connections can carry: most calls wait for one.
    let args = ["-c", "4", "-r", "100", "-d", "2s", &url];
    let Some(report) = is_trusted_in_the_end(0, &args) else { panic!("{DISTURBED}") };
    assert!(report.outcome("waited_for_connection") > 20 && report.outcome("unsent") > 50, "{report:#?}");
}

#[test]
fn a_clean_run_is_trusted() {
    let _alone = alone();
    // Beside answers this long, what the scheduler of a busy machine adds is little.
    let server = target(ServerConfig { delay: Delay::Fixed(Duration::from_millis(20)), ..ServerConfig::default() });
    let args = ["-c", "16", "-r", "200", "-d", "2s", &server.url()];
    let Some(report) = is_trusted_in_the_end(0, &args) else { panic!("{DISTURBED}") };
    assert_eq!(causes(&report), Vec::<&str>::new());
    assert_eq!(report.outcome("due"), 400);
    assert_eq!(report.failures().len(), 0, "{:?}", report.reasons());
}

#[test]
fn a_target_that_is_not_there_is_not_the_generators_fault() {
    let _alone = alone();
    let (_port, url) = nobody();
    let args = ["-c", "4", "-r", "100", "-d", "1s", &url];
    let report = favoured(3, &args);
    // Nothing was measured, and nothing is trusted; nor is it anybody's fault here.
    assert_eq!((judgement(&report), causes(&report)), ("nothing_measured", Vec::<&str>::new()));
}
