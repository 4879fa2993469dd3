//! What the live page shows agrees with what the report will say.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

mod fixtures;

use brunt_plan::plan::Plan;
use brunt_plan::units::count;
use brunt_record::catalogue::Counter;
use brunt_record::live::{InLog, Live};
use brunt_record::snapshot::Phase;
use brunt_report::html::Running;
use serde_json::Value;

fn plan() -> Plan {
    fixtures::clean().plan
}

/// What the page shows, as HTML.
fn shown(running: &Running) -> String {
    let event: Value = serde_json::from_str(&running.data().unwrap()).unwrap();
    assert!(!running.data().unwrap().contains('\n'), "an event is a line");
    event["main"].as_str().unwrap().to_owned()
}

fn running(seconds: &[Live]) -> Running {
    let mut running = Running::new(&plan(), 1_767_225_600_000);
    for second in seconds {
        running.push(second);
    }
    running
}

#[test]
fn before_the_first_second_there_is_nothing_to_see() {
    let shown = shown(&running(&[]));
    assert!(shown.contains("● running</strong> starting, 0s"), "{shown}");
    assert!(shown.contains("● running: starting, nothing is measured yet"));
    assert!(!shown.contains("data-figure=") && !shown.contains("id=\"stack\""));
}

#[test]
fn the_figures_are_those_of_the_seconds_that_count() {
    let seconds = fixtures::live(12);
    let of = |phase| seconds.iter().filter(move |second| second.phase == phase).map(|second| &second.snapshot);
    let due: u64 = [Phase::Measured, Phase::Drain]
        .into_iter()
        .flat_map(of)
        .map(|snapshot| snapshot.numbers.get(Counter::Due))
        .sum();
    let answered: u64 = of(Phase::Measured).map(|snapshot| snapshot.statuses.total()).sum();
    let shown = shown(&running(&seconds));
    let said = shown.split("class=\"sum\">").nth(1).unwrap().split('<').next().unwrap();
    assert!(said.starts_with(&format!("{} due ", count(due))), "{said}");
    assert!(said.contains(&format!(" {} answered + ", count(answered))), "{said}");
    assert!(shown.contains("2 unfinished") && shown.contains("2 calls in flight"));
    assert!(shown.contains("data-span-ms=\"12000\""));
    assert!(shown.contains("● running</strong> draining"));
}

/// While a run goes on nothing is judged: thresholds that hold by now are not green, and those that do not have not failed.
#[test]
fn nothing_is_green_before_the_end() {
    for (threshold, sign) in [("p99<10s", "· "), ("rate>90M", "! ")] {
        let mut plan = plan();
        plan.thresholds = vec![threshold.parse().unwrap()];
        let mut running = Running::new(&plan, 1_767_225_600_000);
        fixtures::live(3)
            .iter()
            .filter(|second| second.phase == Phase::Measured)
            .for_each(|second| running.push(second));
        let shown = shown(&running);
        let outcome = shown.split("id=\"outcome\"").nth(1).unwrap().split("</section>").next().unwrap();
        assert!(
            !["✓", "\"good", "good\"", " held", "threshold failed"].iter().any(|word| outcome.contains(word)),
            "{outcome}"
        );
        assert!(
            outcome.contains(&format!(">{sign}</span>{}", threshold.replace('<', "&lt;").replace('>', "&gt;"))),
            "{outcome}"
        );
    }
}

#[test]
fn the_warm_up_is_shown_and_counts_for_nothing() {
    let shown = shown(&running(&fixtures::live(0)[..2]));
    assert!(shown.contains("● running</strong> warm-up, 2s"), "{shown}");
    assert!(shown.contains("in the last second: 20k/s") || shown.contains("in the last second: 20.00k/s"));
    assert!(shown.contains("0 due = 0 answered"));
}

#[test]
fn seconds_that_are_missing_are_told_where_they_would_count() {
    let seconds = fixtures::live(3);
    let mut running = running(&seconds[..2]);
    running.miss(5);
    let missed = |running: &Running, n: u64| {
        shown(running).contains(&format!("{n} second{} came too fast", if n == 1 { "" } else { "s" }))
    };
    assert!(missed(&running, 5));
    running.push(&seconds[2]);
    assert!(!shown(&running).contains("came too fast"), "those of the warm-up are in no figure anyway");
    running.miss(1);
    for second in &seconds[3..] {
        running.push(second);
    }
    assert!(missed(&running, 1));
}

#[test]
fn a_replay_says_how_far_it_is_in_its_log() {
    let in_log = InLog { clock_s: Some(36_727), end_ns: Some(100_000_000_000), is_estimate: true };
    let of_log = |second: Live| Live { in_log: Some(in_log), planned_ns: None, ..second };
    let measured = fixtures::live(1).into_iter().filter(|second| second.phase == Phase::Measured);
    let shown = shown(&running(&measured.map(of_log).collect::<Vec<_>>()));
    assert!(shown.contains("of about 1.67m; 10:12:07 in the log, about 1m 39s left"), "{shown}");
    assert!(shown.contains("<progress max=\"1\" value=\"0.0100\""), "{shown}");
}
