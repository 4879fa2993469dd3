//! What the live page is given agrees with what the report will say.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

mod fixtures;

use brunt_plan::plan::Plan;
use brunt_record::catalogue::Counter;
use brunt_record::live::Live;
use brunt_record::snapshot::Phase;
use brunt_report::html::Running;
use serde_json::{Value, json};

fn plan() -> Plan {
    fixtures::clean().plan
}

fn data(running: &Running) -> Value {
    serde_json::from_str(&running.data().unwrap()).unwrap()
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
    let data = data(&running(&[]));
    assert_eq!((&data["kind"], &data["live"]["phase"]), (&json!("run"), &json!("starting")));
    assert_eq!((&data["outcomes"]["due"], &data["series"]["length_ms"]), (&json!(0), &json!([])));
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
    let data = data(&running(&seconds));
    assert_eq!(data["outcomes"]["due"], due);
    assert_eq!(data["outcomes"]["answered"], answered);
    assert_eq!(data["outcomes"]["unfinished"], 2);
    let lengths = data["series"]["length_ms"].as_array().unwrap();
    assert_eq!(lengths.iter().map(|ms| ms.as_u64().unwrap()).sum::<u64>(), 12_000);
    assert_eq!(data["series"]["start_ms"].as_array().unwrap().len(), 12);
    assert_eq!((&data["live"]["phase"], &data["live"]["in_flight"]), (&json!("draining"), &json!(2)));
}

#[test]
fn the_warm_up_is_shown_and_counts_for_nothing() {
    let data = data(&running(&fixtures::live(0)[..2]));
    assert_eq!((&data["live"]["phase"], &data["live"]["elapsed_ns"]), (&json!("warm-up"), &json!(2_000_000_000_u64)));
    assert_eq!(data["live"]["answered_per_s"], 20_000.0);
    assert_eq!(data["outcomes"]["due"], 0);
}

#[test]
fn seconds_that_are_missing_are_told_where_they_would_count() {
    let seconds = fixtures::live(3);
    let mut running = running(&seconds[..2]);
    running.miss(5);
    assert_eq!(data(&running)["live"]["missed"], 5);
    running.push(&seconds[2]);
    assert_eq!(data(&running)["live"]["missed"], 0, "those of the warm-up are in no figure anyway");
    running.miss(1);
    for second in &seconds[3..] {
        running.push(second);
    }
    assert_eq!(data(&running)["live"]["missed"], 1);
}
