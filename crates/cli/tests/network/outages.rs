//! A target that is down, stands still or cuts connections off by a timetable, over several protocols.

use std::thread;

use crate::program::Running;
use crate::report::{Report, report};

/// Starts a target with faults; with it, its URL.
fn serve(args: &[&str], faults: &str) -> (Running, String) {
    let mut server = Running::start([&["serve"], args, &["0", "--faults", faults, "--duration", "60s"]].concat());
    let line = server.line();
    let url = line.trim_end().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}")).to_owned();
    (server, url)
}

fn remarks<'a>(report: &'a Report, about: &str) -> Vec<&'a serde_json::Value> {
    report.at("/remarks").as_array().unwrap().iter().filter(|remark| remark["about"] == about).collect()
}

/// Down for two of six seconds, a run has a third of its calls fail, whatever it speaks, and says when.
#[test]
fn an_outage_has_its_share_of_failures_over_every_protocol() {
    let protocols: [(&[&str], &[&str]); 4] =
        [(&["http"], &[]), (&["http", "--tls"], &["-k"]), (&["http"], &["--http", "2"]), (&["ws"], &[])];
    thread::scope(|scope| {
        for (server, client) in protocols {
            scope.spawn(move || {
                let (_server, url) = serve(server, "refuse 2s-4s");
                let report = report(0, [client, &["-r", "200", "-d", "6s", &url]].concat());
                let failed = report.at("/outcomes/error_ratio").as_f64().unwrap();
                assert!((0.3..0.37).contains(&failed), "{url}: {failed}");
                let [outage] = remarks(&report, "outage")[..] else { panic!("{url}: {}", report.at("/remarks")) };
                let length = outage["to_ns"].as_u64().unwrap() - outage["from_ns"].as_u64().unwrap();
                assert!((1_900_000_000..=2_300_000_000).contains(&length), "{url}: {outage}");
            });
        }
    });
}

#[test]
fn a_freeze_and_a_cut_are_told_apart() {
    let (_server, url) = serve(&["http"], "freeze 2s-3s; cut 4s");
    let report = report(0, ["-r", "200", "-c", "8", "-d", "5s", "--timeout", "10s", &url]);
    let [freeze] = remarks(&report, "freeze")[..] else { panic!("{}", report.at("/remarks")) };
    assert!(freeze["worst_ns"].as_u64().unwrap() >= 700_000_000, "{freeze}");
    assert_eq!(remarks(&report, "outage"), Vec::<&serde_json::Value>::new());
    let made = report.at("/connections/made").as_u64().unwrap();
    assert!(made >= 12, "the cut closes connections that others are made for: {made}");
}

#[test]
fn a_delay_lasts_as_long_as_it_is_written() {
    let (_server, url) = serve(&["http"], "delay 200ms 0s-60s");
    let report = report(0, ["-c", "2", "-n", "10", "--timeout", "10s", &url]);
    assert!(report.at("/times/response/min_ns").as_u64().unwrap() >= 200_000_000, "{}", report.at("/times/response"));
}
