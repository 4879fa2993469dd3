//! What brunt counts is what nginx wrote down.

use std::collections::BTreeMap;

use rustix::process::Signal;

use crate::nginx::{Nginx, counts};
use crate::program::{Directory, Running};
use crate::report::{Report, report};

const HELLO: &str = "location / { return 200 hello; }";

#[test]
#[ignore = "needs nginx: make test installs it"]
fn a_count_is_as_many_lines() {
    for args in [
        "-n 1 -c 8",
        "-n 1000 -c 7 -t 3",
        "-n 777 -c 5 -r 5k",
        "-n 500 -c 16 -r 5k --arrivals poisson",
        "-n 60 -c 4 --reconnect",
        "-n 60 -c 4 --reconnect -r 500",
        "-n 1000 -c 4 --pipeline 8",
        "-n 1000 -c 4 --pipeline 8 -r 20k",
    ] {
        let nginx = Nginx::start(HELLO);
        let n = args.split(' ').nth(1).unwrap().parse().unwrap();
        let report = report(0, args.split(' ').chain([nginx.url("/").as_str()]));
        report.assert_all(n, 200);
        let log = nginx.log();
        assert_eq!(counts(&log, "status"), BTreeMap::from([("200", n as usize)]), "{args}");
    }
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn a_time_is_as_many_lines_as_answers() {
    for args in [
        "-d 500ms -c 8 -t 2",
        "-d 500ms -c 8 -r 2000",
        "-d 500ms -c 4 --pipeline 16",
        "-d 300ms -c 4 --reconnect",
        "-d 20s -n 500 -c 4",
        "-r 100..1000/300ms,1000..0/300ms -c 4",
    ] {
        let nginx = Nginx::start(HELLO);
        let report = report(0, args.split(' ').chain([nginx.url("/").as_str()]));
        let answered = report.outcome("answered");
        assert_eq!(report.statuses(), BTreeMap::from([(200, answered)]), "{args}");
        // On a busy machine the last calls of a rate may find no connection in time; without one, all are answered.
        let unsent = if args.contains("-r ") { report.outcome("unsent") } else { 0 };
        assert_eq!(report.outcome("due"), answered + unsent, "{args}");
        assert_eq!(nginx.count() as u64, answered, "{args}");
    }
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn a_warm_up_is_in_the_log_and_in_no_figure() {
    // A machine that stands still may leave out any of what a rate makes due, but each connection of a flood calls once.
    for (load, warm_up) in [(["-r", "200"].as_slice(), 0..=41), (&[], 2..=usize::MAX)] {
        let nginx = Nginx::start(HELLO);
        let report = report(0, [["-n", "100", "-w", "200ms", "-c", "2"].as_slice(), load, &[&nginx.url("/")]].concat());
        report.assert_all(100, 200);
        let warmed_up = nginx.count() - 100;
        assert!(warm_up.contains(&warmed_up), "{load:?} {warmed_up}");
    }
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn calls_that_the_end_cuts_off_are_unfinished() {
    // It would take more than a day.
    let nginx = Nginx::start("limit_rate 10;");
    nginx.file("large", 1_000_000);
    let report = report(3, ["-d", "300ms", "--drain", "100ms", "-c", "5", &nginx.url("/large")]);
    assert_eq!((report.outcome("due"), report.outcome("unfinished")), (5, 5));
    assert_eq!(nginx.count(), 5);
}

/// A run until it is ended, which says each second how far it is, and leaves its result in a file.
struct Watched {
    run: Running,
    dir: Directory,
}

impl Watched {
    fn start(load: &[&str], url: &str) -> Self {
        let dir = Directory::new();
        let to = dir.path("run.json");
        Self { run: Running::start([load, &["-d", "1h", "-v", "-o", &to, url]].concat()), dir }
    }

    /// Waits for a second with calls that failed.
    fn wait_for_failures(&mut self) {
        loop {
            let line = self.run.told();
            assert!(!line.is_empty(), "the run has ended");
            let words: Vec<_> = line.split_whitespace().collect();
            let failed =
                words.windows(2).find(|pair| pair[1] == "failed" && pair[0].starts_with(|c: char| c.is_ascii_digit()));
            if failed.is_some_and(|pair| pair[0] != "0") {
                return;
            }
        }
    }

    fn end(self) -> Report {
        self.run.send(Signal::INT);
        self.run.wait().with_status(130);
        Report::read(&self.dir.path("run.json"))
    }
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn a_server_that_goes_and_comes_back() {
    let mut nginx = Nginx::start(HELLO);
    let mut run = Watched::start(&["-r", "200", "-c", "4"], &nginx.url("/"));
    nginx.wait_for(100);
    nginx.end(Signal::TERM);
    let before = nginx.lines().len();
    run.wait_for_failures();
    assert!(nginx.begin(), "nginx does not come back");
    // A connection that is refused is tried again at least every second.
    nginx.wait_for(before + 50);
    let report = run.end();
    assert!(report.outcome("failed") > 0, "{report:#?}");
    // A connection that waits to be accepted when the server goes is reset.
    let known = ["connect", "closed", "read", "write"];
    assert!(report.failures().keys().all(|name| known.contains(name)), "{:?}", report.reasons());
    assert_eq!(nginx.count() as u64, report.outcome("answered"));
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn a_server_that_goes_for_good() {
    // Nothing spins on a port where nobody listens: each connection tries ten times a second, or each call that is due once.
    for (load, per_second) in [(["-c", "8"].as_slice(), 8 * 20), (&["-c", "8", "-r", "500"], 500)] {
        let mut nginx = Nginx::start(HELLO);
        let mut run = Watched::start(load, &nginx.url("/"));
        nginx.wait_for(100);
        nginx.end(Signal::TERM);
        (0..2).for_each(|_| run.wait_for_failures());
        let report = run.end();
        assert!(report.failures().contains_key("connect"), "{load:?} {:?}", report.failures());
        assert_eq!(nginx.lines().len() as u64, report.outcome("answered"), "{load:?}");
        let (attempts, seconds) = (report.connections("failed"), report.number("/measured/length_ns") / 1_000_000_000);
        assert!(attempts <= per_second * (1 + seconds), "{load:?} {attempts} attempts in {seconds} s");
    }
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn a_reload_under_load_fails_nothing() {
    for (tls, load) in
        [(false, "-c 8"), (false, "-c 8 -r 1000"), (false, "-c 4 --pipeline 4"), (true, "-c 8"), (true, "-c 8 -r 500")]
    {
        let nginx = if tls { Nginx::start_tls(HELLO) } else { Nginx::start(HELLO) };
        let url = if tls { nginx.tls_url() } else { nginx.url("/") };
        let run = Running::start(load.split(' ').chain(["-k", "-d", "1h", "--format", "json", &url]));
        let connections = load.split(' ').nth(1).unwrap().parse().unwrap();
        // A call is sent again once (RFC 9110 §9.2.2), so none may meet two of them.
        (0..3).for_each(|_| nginx.reload(connections));
        run.send(Signal::INT);
        let report = Report::parse(&run.wait().with_status(130));
        // A call that was behind another on a connection that is reset has failed: three on each of four, three times. So has one that met a close
        // which this machine was too busy to see for long.
        let failed = report.outcome("failed");
        let most = if load.contains("pipeline") { 3 * 4 * 3 } else { 12 };
        assert!(failed <= most, "{url} {load} {:?}", report.reasons());
        assert!(
            report.failures().keys().all(|name| ["closed", "read", "write"].contains(name)),
            "{:?}",
            report.reasons()
        );
        assert!(report.connections("made") >= 4 * connections as u64, "{url} {load}");
        // On a busy machine the last calls of a rate may find no connection in time.
        let answered = report.outcome("answered");
        assert_eq!(report.outcome("due"), answered + failed + report.outcome("unsent"), "{url} {load}");
        assert_eq!(report.statuses().into_keys().collect::<Vec<_>>(), [200], "{url} {load}");
        // An answer may be lost with the reset that those behind it get.
        let logged = nginx.count() as u64;
        assert!((answered..=answered + failed).contains(&logged), "{url} {load} {logged}");
    }
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn ctrl_c_ends_early_with_every_answer_counted() {
    let nginx = Nginx::start(HELLO);
    let run = Running::start(["-d", "1h", "-c", "4", "-t", "2", "--format", "json", &nginx.url("/")]);
    nginx.wait_for(100);
    run.send(Signal::INT);
    let report = Report::parse(&run.wait().with_status(130));
    assert_eq!(report.at("/ending"), "interrupted");
    assert_eq!(nginx.count() as u64, report.outcome("answered"));
}
