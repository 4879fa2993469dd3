//! The metrics of a second.

use brunt_record::catalogue::{Counter, Timing};
use brunt_record::figures::{OwnFigures, OwnKind};
use brunt_record::histogram::Histogram;
use brunt_record::live::Live;
use brunt_record::outcome::Failure;
use brunt_record::snapshot::{Phase, Snapshot};

use super::*;
use crate::series_names::{MOST_SERIES, OTHERS};

/// When the second ended.
const ENDED: u64 = 1_700_000_000_000_000_000;

pub(crate) fn second(snapshot: Snapshot) -> Live {
    Live {
        phase: Phase::Measured,
        elapsed_ns: 1_000_000_000,
        planned_ns: None,
        in_log: None,
        planned_requests: None,
        length_ns: 1_000_000_000,
        snapshot,
        open_connections: 3,
        in_flight: 2,
        waiting: 1,
        oldest_ns: 250_000_000,
        users: None,
        changes: Vec::new(),
        agents: Vec::new(),
    }
}

fn metrics(snapshot: Snapshot) -> Vec<Metric> {
    let subject = Subject { calls: CallKind::Http, ..Subject::default() };
    subject.metrics(&second(snapshot), ENDED, &mut Names::default())
}

fn named<'a>(metrics: &'a [Metric], name: &str) -> &'a Metric {
    metrics.iter().find(|metric| metric.name == name).unwrap_or_else(|| panic!("no {name} in {metrics:#?}"))
}

/// The points of a sum by the attribute that they have besides the phase.
fn sums(metric: &Metric) -> Vec<(String, f64)> {
    let Data::Sum { points, .. } = &metric.data else { panic!("{metric:?}") };
    let text = |value: &Value| match value {
        Value::Text(text) => text.to_string(),
        Value::Whole(n) => n.to_string(),
    };
    let of =
        |point: &MetricPoint<Number>| point.attributes.iter().skip(1).map(|(_, value)| text(value)).collect::<Vec<_>>();
    points.iter().map(|point| (of(point).join(" "), point.value.real())).collect()
}

#[test]
fn every_number_of_the_catalogue_has_a_metric_of_its_own_in_base_units() {
    let snapshot = Snapshot::with_numbers(Counter::ALL.map(|counter| (counter, 2_500_000_000)));
    let metrics = metrics(snapshot);
    let mut names: Vec<_> = metrics.iter().map(|metric| metric.name.clone()).collect();
    names.sort();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all, "no two metrics have one name");
    assert_eq!(sums(named(&metrics, "brunt.workers_cpu")), [(String::new(), 2.5)], "seconds, not nanoseconds");
    assert_eq!(sums(named(&metrics, "brunt.wire_in")), [(String::new(), 2.5e9)]);
    assert_eq!(named(&metrics, "brunt.wire_in").unit, "By");
    assert!(matches!(named(&metrics, "brunt.busiest_worker_cpu").data, Data::Gauge(_)), "a maximum does not add up");
}

#[test]
fn numbers_that_are_zero_are_there_too() {
    assert_eq!(sums(named(&metrics(Snapshot::default()), "brunt.unsent")), [(String::new(), 0.0)]);
}

#[test]
fn outcomes_stand_by_status_and_failure() {
    let mut snapshot = Snapshot::with_numbers([(Counter::Due, 4)]);
    for status in [200, 200, 503] {
        snapshot.statuses.record(status);
    }
    snapshot.failures.record(Failure::Timeout, "no answer in 1s");
    let metrics = metrics(snapshot);
    assert_eq!(sums(named(&metrics, "brunt.answers")), [("200".to_owned(), 2.0), ("503".to_owned(), 1.0)]);
    assert_eq!(sums(named(&metrics, "brunt.failures")), [("timeout".to_owned(), 1.0)]);
    assert_eq!(sums(named(&metrics, "brunt.ok")), [(String::new(), 2.0)]);
    assert_eq!(sums(named(&metrics, "brunt.not_ok")), [(String::new(), 2.0)]);
}

#[test]
fn response_times_with_and_without_success_and_of_what_never_ended_stand_apart() {
    let mut snapshot = Snapshot::default();
    for (ns, is_ok) in [(1_000_000, true), (2_000_000, true), (9_000_000, false)] {
        snapshot.times.record(Timing::Response, ns);
        if !is_ok {
            snapshot.times.record(Timing::Failed, ns);
        }
    }
    snapshot.times.record_bound(Timing::Response, 5_000_000);
    let metrics = metrics(snapshot);
    let duration = named(&metrics, "http.client.request.duration");
    let Data::Distribution { points, .. } = &duration.data else { panic!("{duration:?}") };
    let of = |point: &MetricPoint<Histogram>| (point.attributes.get(1).cloned(), point.value.count());
    let error = |text: &'static str| Some((ERROR_TYPE.into(), text.into()));
    assert_eq!(points.iter().map(of).collect::<Vec<_>>(), [(None, 2), (error("_OTHER"), 1), (error("unfinished"), 1)]);
    assert_eq!(duration.unit, "s");
}

#[test]
fn names_beyond_the_most_count_together_and_lose_nothing() {
    let mut snapshot = Snapshot::default();
    for n in 0..MOST_SERIES + 10 {
        snapshot.figures.requests.named(&format!("r{n}")).answered(200, 1000, 900);
    }
    let mut names = Names::default();
    let metrics = Subject::default().metrics(&second(snapshot), ENDED, &mut names);
    let Data::Distribution { points, .. } = &named(&metrics, "brunt.request.duration").data else { panic!() };
    assert_eq!(points.len(), MOST_SERIES + 1);
    assert_eq!(points.iter().map(|point| point.value.count()).sum::<u64>(), MOST_SERIES as u64 + 10);
    let last = points.last().unwrap();
    assert_eq!((last.attributes[1].1.clone(), last.value.count()), (Value::from(OTHERS), 10));
    assert_eq!(names.crowded().collect::<Vec<_>>(), ["request"]);
}

#[test]
fn a_target_that_makes_statuses_up_makes_no_more_series() {
    let mut snapshot = Snapshot::default();
    (0..1000).for_each(|status| snapshot.statuses.record(status));
    let metrics = metrics(snapshot);
    let answers = sums(named(&metrics, "brunt.answers"));
    assert_eq!(answers.len(), MOST_SERIES + 1);
    assert_eq!(answers.iter().map(|(_, n)| n).sum::<f64>(), 1000.0);
}

#[test]
fn figures_of_a_scripts_own_keep_their_kind() {
    let mut snapshot = Snapshot::default();
    let mut add = |name: &str, kind, values: &[f64]| {
        let mut own = OwnFigures::new(kind, "eur");
        for value in values {
            own.record(*value, 0);
        }
        *snapshot.figures.own.named(name) = own;
    };
    add("sold", OwnKind::Counter, &[2.0, -0.5]);
    add("hit", OwnKind::Rate, &[1.0, 0.0, 1.0]);
    add("price", OwnKind::Trend, &[1.5, 2.5]);
    add("stock", OwnKind::Gauge, &[7.0]);
    let metrics = metrics(snapshot);
    assert_eq!(sums(named(&metrics, "brunt.own.sold")), [(String::new(), 1.5)]);
    assert!(matches!(named(&metrics, "brunt.own.sold").data, Data::Sum { monotonic: false, .. }));
    assert_eq!(sums(named(&metrics, "brunt.own.hit")), [("true".to_owned(), 2.0), ("false".to_owned(), 1.0)]);
    let Data::Distribution { factor, points } = &named(&metrics, "brunt.own.price").data else { panic!() };
    assert_eq!(crate::exponential::Exponential::new(&points[0].value, *factor).max, Some(2.5));
    assert_eq!(named(&metrics, "brunt.own.price").unit, "{eur}");
}

#[test]
fn slow_calls_with_a_trace_stand_beside_the_times_of_successes() {
    let mut snapshot = Snapshot::default();
    for (ns, is_ok) in [(7_000_000, true), (3_000_000, true), (9_000_000, false)] {
        snapshot.times.record(if is_ok { Timing::Response } else { Timing::Failed }, ns);
        snapshot.times.record(Timing::Response, ns);
    }
    let call = |due_ns, took_ns, trace_id: &str| TracedCall {
        due_ns,
        took_ns,
        trace_id: trace_id.to_owned(),
        ..TracedCall::default()
    };
    snapshot.slowest.add(call(800_000_000, 3_000_000, "0a"));
    snapshot.slowest.add(call(200_000_000, 7_000_000, "0b"));
    let metrics = metrics(snapshot);
    let Data::Distribution { points, .. } = &named(&metrics, "http.client.request.duration").data else { panic!() };
    let of = |point: &MetricPoint<Histogram>| {
        let of = point.exemplars.iter().map(|of| (of.value, ENDED - of.at_unix_ns, of.trace_id.clone()));
        of.collect::<Vec<_>>()
    };
    // The second ended 1 s after the beginning.
    assert_eq!(of(&points[0]), [(7_000_000, 793_000_000, "0b".to_owned()), (3_000_000, 197_000_000, "0a".to_owned())]);
    assert!(points.len() > 1 && points[1..].iter().all(|point| of(point).is_empty()), "{points:?}");
}

#[test]
fn a_warm_up_is_told_apart() {
    let live = Live { phase: Phase::Warmup, ..second(Snapshot::with_numbers([(Counter::Due, 1)])) };
    let metrics = Subject::default().metrics(&live, ENDED, &mut Names::default());
    let Data::Sum { points, .. } = &named(&metrics, "brunt.due").data else { panic!() };
    assert_eq!(points[0].attributes, [(PHASE.into(), Value::from("warmup"))]);
}
