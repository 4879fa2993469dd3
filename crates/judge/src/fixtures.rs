//! A plan, a run and its summary, for tests of this crate and of those that build on it.

use brunt_plan::plan::{Plan, ProtocolOptions, StopRule};
use brunt_plan::target::Target;
use brunt_record::SECOND_NS;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::outcome::{Failure, OkStatus};
use brunt_record::recording::Recording;
use brunt_record::series::Series;
use brunt_record::snapshot::Snapshot;

use crate::summary::Summary;

/// Ten seconds of a closed model over 64 connections, with a threshold.
///
/// # Panics
/// Never: the text is a threshold.
#[expect(clippy::unwrap_used, reason = "the text is a threshold")]
pub fn plan() -> Plan {
    let target = Target { scheme: "http".into(), host: "127.0.0.1".into(), port: Some(8080), path: "/".into() };
    Plan {
        connections: 64.into(),
        workers: 2,
        stop: StopRule { duration_ns: Some(10 * SECOND_NS), requests: None },
        seed: 1,
        own_times: false,
        own: Vec::new(),
        thresholds: vec!["p99<50ms".parse().unwrap()],
        ..Plan::of_calls(target, ProtocolOptions::default())
    }
}

/// A run of two seconds: 1998 answers in 1 ms, one 503, one timeout after 2 s.
pub fn run() -> (Plan, Recording) {
    let mut measured = Snapshot::with_numbers([(Counter::Due, 2000)]);
    for i in 0..1999 {
        measured.statuses.record(if i == 0 { 503 } else { 200 });
        measured.times.record(Timing::Response, 1_000_000);
        measured.times.record(Timing::Service, 900_000);
        measured.times.record(Timing::FirstByte, 900_000);
    }
    measured.failures.record(Failure::Timeout, "no answer in 2s");
    measured.times.record(Timing::Response, 2 * SECOND_NS);
    measured.times.record(Timing::Service, 2 * SECOND_NS);
    measured.times.record(Timing::Failed, 2 * SECOND_NS);
    measured.count_ends(&OkStatus::default());
    let mut series = Series::default();
    series.push(2 * SECOND_NS, &measured, &OkStatus::default());
    let run = Recording { measured_ns: 2 * SECOND_NS, measured, series, ..Recording::begun(0) };
    (Plan { thresholds: Vec::new(), ..plan() }, run)
}

/// The summary of [`run`].
pub fn summary() -> Summary {
    let (plan, run) = run();
    Summary::new(plan, run)
}
