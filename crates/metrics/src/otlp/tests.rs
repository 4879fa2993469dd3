//! The encoded messages, read by code generated from the official `.proto` files.

use brunt_record::histogram::Histogram;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{exemplar, metric, number_data_point};
use prost::Message as _;

use super::*;

const INTERVAL: PointInterval = PointInterval { from_unix_ns: 1_000_000_000, to_unix_ns: 2_000_000_000 };

fn sender() -> Sender {
    Sender { resource: vec![("service.name".into(), "shop".into())], version: "1.2.3".into() }
}

fn read(bytes: &[u8]) -> Vec<opentelemetry_proto::tonic::metrics::v1::Metric> {
    let request = ExportMetricsServiceRequest::decode(bytes).unwrap();
    let [resource] = &request.resource_metrics[..] else { panic!("{request:?}") };
    assert_eq!(pairs(&resource.resource.as_ref().unwrap().attributes), ["service.name=shop"]);
    let [scope] = &resource.scope_metrics[..] else { panic!("{resource:?}") };
    let of = scope.scope.as_ref().unwrap();
    assert_eq!((of.name.as_str(), of.version.as_str()), ("brunt", "1.2.3"));
    scope.metrics.clone()
}

fn pairs(attributes: &[KeyValue]) -> Vec<String> {
    let text = |pair: &KeyValue| match pair.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => format!("{}={text}", pair.key),
        Some(any_value::Value::IntValue(n)) => format!("{}={n}", pair.key),
        other => panic!("{other:?}"),
    };
    attributes.iter().map(text).collect()
}

#[test]
fn sums_gauges_and_distributions_are_read_as_they_were_written() {
    let mut histogram = Histogram::new();
    for ns in [0, 1_000_000, 1_000_000, 50_000_000] {
        histogram.record(ns);
    }
    let trace_id = "4bf92f3577b34da6a3ce929d0e0e4736".to_owned();
    let slow = Exemplar { value: 50_000_000, at_unix_ns: 1_900_000_000, trace_id };
    let times = MetricPoint { exemplars: vec![slow], ..MetricPoint::new(vec![], histogram) };
    let status = vec![("http.response.status_code".into(), Value::from(200_u16))];
    let written = [
        Metric::new(
            "brunt.answers",
            "{call}",
            "Answers.",
            Data::counter(vec![MetricPoint::new(status, Number::Whole(7))]),
        ),
        Metric::new("brunt.users", "{user}", "Users.", Data::Gauge(vec![MetricPoint::new(vec![], 2.5)])),
        Metric::new("brunt.call.duration", "s", "Times.", Data::times(vec![times])),
    ];
    let [answers, users, duration] = &read(&metrics(&sender(), &written, INTERVAL, Temporality::Delta))[..] else {
        panic!()
    };
    assert_eq!((answers.name.as_str(), answers.unit.as_str()), ("brunt.answers", "{call}"));
    let Some(metric::Data::Sum(sum)) = &answers.data else { panic!("{answers:?}") };
    assert_eq!((sum.aggregation_temporality, sum.is_monotonic), (1, true));
    let point = &sum.data_points[0];
    assert_eq!(point.value, Some(number_data_point::Value::AsInt(7)));
    assert_eq!((point.start_time_unix_nano, point.time_unix_nano), (1_000_000_000, 2_000_000_000));
    assert_eq!(pairs(&point.attributes), ["http.response.status_code=200"]);
    let Some(metric::Data::Gauge(gauge)) = &users.data else { panic!("{users:?}") };
    assert_eq!(gauge.data_points[0].value, Some(number_data_point::Value::AsDouble(2.5)));
    let Some(metric::Data::ExponentialHistogram(times)) = &duration.data else { panic!("{duration:?}") };
    assert_eq!(times.aggregation_temporality, 1);
    let point = &times.data_points[0];
    assert_eq!((point.count, point.zero_count, point.min, point.max), (4, 1, Some(0.0), Some(0.05)));
    assert!((point.sum.unwrap() - 0.052).abs() < 1e-12);
    let [slow] = &point.exemplars[..] else { panic!("{point:?}") };
    assert_eq!((slow.time_unix_nano, slow.trace_id.len()), (1_900_000_000, 16));
    assert_eq!(slow.trace_id[..2], [0x4b, 0xf9]);
    assert_eq!(slow.value, Some(exemplar::Value::AsDouble(0.05)));
    let buckets = point.positive.as_ref().unwrap();
    assert_eq!((buckets.bucket_counts.first(), buckets.bucket_counts.last()), (Some(&2), Some(&1)));
    // (base^i, base^(i+1)], by the text of the data model.
    let base = 2_f64.powf(2_f64.powi(-point.scale));
    let low = base.powi(buckets.offset);
    assert!(low < 0.001 && 0.001 <= low * base, "0.001 is in ({low}, {}]", low * base);
}

#[test]
fn sums_so_far_say_that_they_are() {
    let written = [Metric::new("a", "1", "", Data::counter(vec![MetricPoint::new(vec![], Number::Real(0.5))]))];
    let [a] = &read(&metrics(&sender(), &written, INTERVAL, Temporality::Cumulative))[..] else { panic!() };
    let Some(metric::Data::Sum(sum)) = &a.data else { panic!("{a:?}") };
    assert_eq!(
        (sum.aggregation_temporality, sum.data_points[0].value),
        (2, Some(number_data_point::Value::AsDouble(0.5)))
    );
}

#[test]
fn events_are_read_as_log_records() {
    let event = Event {
        name: "brunt.run.ended",
        at_unix_ns: 5,
        severity: Severity::Error,
        text: "p99<50ms failed: 80ms".to_owned(),
        attributes: vec![("brunt.ending".into(), "completed".into())],
    };
    let request = ExportLogsServiceRequest::decode(&logs(&sender(), &[event], 6)[..]).unwrap();
    let record = &request.resource_logs[0].scope_logs[0].log_records[0];
    assert_eq!((record.time_unix_nano, record.observed_time_unix_nano, record.severity_number), (5, 6, 17));
    assert_eq!((record.event_name.as_str(), record.severity_text.as_str()), ("brunt.run.ended", "ERROR"));
    assert_eq!(pairs(&record.attributes), ["brunt.ending=completed"]);
    let body = record.body.as_ref().unwrap().value.clone();
    assert_eq!(body, Some(any_value::Value::StringValue("p99<50ms failed: 80ms".to_owned())));
}

#[test]
fn what_a_receiver_did_not_take_is_read() {
    let partial = ExportMetricsPartialSuccess { rejected_data_points: 3, error_message: "delta".to_owned() };
    let answer = ExportMetricsServiceResponse { partial_success: Some(partial) }.encode_to_vec();
    assert_eq!(taken(&answer), Taken { rejected: 3, message: "delta".to_owned() });
    assert_eq!(taken(&[]), Taken::default());
    for garbage in [&b"<html>"[..], &[0x0a, 0xff], &[0xff; 20]] {
        assert_eq!(taken(garbage), Taken::default());
    }
}
