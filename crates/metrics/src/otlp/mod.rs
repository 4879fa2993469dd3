//! OTLP requests, as protobuf (<https://opentelemetry.io/docs/specs/otlp/>): metrics, and events as logs.

mod proto;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use brunt_record::histogram::Histogram;
use prost::Message as _;

use crate::exponential::Exponential;
use crate::model::{Attributes, Data, Exemplar, Metric, MetricPoint, Number, Value};
use proto::{any_value, metric, number_point};

/// The scope of metrics and events.
const SCOPE: &str = "brunt";

/// Whether points hold an interval, or everything up to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Temporality {
    /// Only the interval: points of several agents, runs and seconds add up.
    #[default]
    Delta,
    /// Everything since the beginning of the run.
    Cumulative,
}

/// The interval of a request's points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointInterval {
    /// The beginning, in nanoseconds since 1970-01-01 UTC.
    pub from_unix_ns: u64,
    /// The end, in nanoseconds since 1970-01-01 UTC.
    pub to_unix_ns: u64,
}

/// The sender: the attributes of its resource, and the version of brunt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sender {
    /// The attributes of the resource, such as `service.name`.
    pub resource: Attributes,
    /// The version of the scope.
    pub version: Cow<'static, str>,
}

/// The severity of an event, with its number (OpenTelemetry, "Logs Data Model", `SeverityNumber`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Normal events.
    Info = 9,
    /// Something that readers of the figures have to know.
    Warn = 13,
    /// A condition that did not hold.
    Error = 17,
}

/// An event at a time.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The name, such as `brunt.run.ended`.
    pub name: &'static str,
    /// The time, in nanoseconds since 1970-01-01 UTC.
    pub at_unix_ns: u64,
    /// The severity.
    pub severity: Severity,
    /// What happened, in a sentence.
    pub text: String,
    /// Further attributes.
    pub attributes: Attributes,
}

/// The receiver's answer to a request that it accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken {
    /// The number of rejected points or events.
    pub rejected: u64,
    /// The reason, or a warning; empty if there is none.
    pub message: String,
}

/// An `ExportMetricsServiceRequest`.
pub fn metrics(sender: &Sender, metrics: &[Metric], interval: PointInterval, temporality: Temporality) -> Vec<u8> {
    let scope_metrics = proto::ScopeMetrics {
        scope: Some(scope(sender)),
        metrics: metrics.iter().map(|metric| of_metric(metric, interval, temporality)).collect(),
    };
    let resource_metrics =
        vec![proto::ResourceMetrics { resource: Some(resource(sender)), scope_metrics: vec![scope_metrics] }];
    proto::ExportMetricsServiceRequest { resource_metrics }.encode_to_vec()
}

/// An `ExportLogsServiceRequest`, observed at a time in nanoseconds since 1970-01-01 UTC.
pub fn logs(sender: &Sender, events: &[Event], observed_unix_ns: u64) -> Vec<u8> {
    let record = |event: &Event| proto::LogRecord {
        time_unix_nano: event.at_unix_ns,
        severity_number: event.severity as i32,
        severity_text: format!("{:?}", event.severity).to_uppercase(),
        body: Some(any_value(&Value::from(event.text.clone()))),
        attributes: attributes(&event.attributes),
        observed_time_unix_nano: observed_unix_ns,
        event_name: event.name.to_owned(),
    };
    let scope_logs = proto::ScopeLogs { scope: Some(scope(sender)), log_records: events.iter().map(record).collect() };
    let resource_logs = vec![proto::ResourceLogs { resource: Some(resource(sender)), scope_logs: vec![scope_logs] }];
    proto::ExportLogsServiceRequest { resource_logs }.encode_to_vec()
}

/// Reads the answer to a request with status 200. An answer that cannot be read counts as an empty one.
pub fn taken(answer: &[u8]) -> Taken {
    let partial = proto::ExportResponse::decode(answer).ok().and_then(|answer| answer.partial_success);
    partial.map_or_else(Taken::default, |partial| Taken {
        rejected: u64::try_from(partial.rejected).unwrap_or(0),
        message: partial.error_message,
    })
}

fn scope(sender: &Sender) -> proto::Scope {
    proto::Scope { name: SCOPE.to_owned(), version: sender.version.clone().into_owned() }
}

fn resource(sender: &Sender) -> proto::Resource {
    proto::Resource { attributes: attributes(&sender.resource) }
}

fn attributes(attributes: &Attributes) -> Vec<proto::KeyValue> {
    let pair = |(key, value): &(Cow<'static, str>, Value)| proto::KeyValue {
        key: key.clone().into_owned(),
        value: Some(any_value(value)),
    };
    attributes.iter().map(pair).collect()
}

fn any_value(value: &Value) -> proto::AnyValue {
    let value = match value {
        Value::Text(text) => any_value::Value::Text(text.clone().into_owned()),
        Value::Whole(n) => any_value::Value::Whole(*n),
    };
    proto::AnyValue { value: Some(value) }
}

fn of_metric(metric: &Metric, interval: PointInterval, temporality: Temporality) -> proto::Metric {
    let aggregation_temporality = match temporality {
        Temporality::Delta => proto::Temporality::Delta,
        Temporality::Cumulative => proto::Temporality::Cumulative,
    } as i32;
    let data = match &metric.data {
        Data::Sum { monotonic, points } => metric::Data::Sum(proto::Sum {
            data_points: points.iter().map(|point| number(point, point.value, interval)).collect(),
            aggregation_temporality,
            is_monotonic: *monotonic,
        }),
        Data::Gauge(points) => metric::Data::Gauge(proto::Gauge {
            data_points: points.iter().map(|point| number(point, Number::Real(point.value), interval)).collect(),
        }),
        Data::Distribution { factor, points } => metric::Data::Exponential(proto::ExponentialHistogram {
            data_points: points.iter().map(|point| exponential(point, *factor, interval)).collect(),
            aggregation_temporality,
        }),
    };
    proto::Metric {
        name: metric.name.clone().into_owned(),
        description: metric.description.clone().into_owned(),
        unit: metric.unit.clone().into_owned(),
        data: Some(data),
    }
}

fn number<T>(point: &MetricPoint<T>, value: Number, interval: PointInterval) -> proto::NumberPoint {
    let value = match value {
        Number::Whole(n) => number_point::Value::Whole(i64::try_from(n).unwrap_or(i64::MAX)),
        Number::Real(x) => number_point::Value::Real(x),
    };
    proto::NumberPoint {
        start_time_unix_nano: interval.from_unix_ns,
        time_unix_nano: interval.to_unix_ns,
        value: Some(value),
        attributes: attributes(&point.attributes),
    }
}

fn exponential(point: &MetricPoint<Histogram>, factor: f64, interval: PointInterval) -> proto::ExponentialPoint {
    let buckets = Exponential::new(&point.value, factor);
    let exemplar = |of: &Exemplar| proto::Exemplar {
        time_unix_nano: of.at_unix_ns,
        value: of.value as f64 * factor,
        trace_id: u128::from_str_radix(&of.trace_id, 16).map_or_else(|_| Vec::new(), |id| id.to_be_bytes().to_vec()),
    };
    proto::ExponentialPoint {
        attributes: attributes(&point.attributes),
        start_time_unix_nano: interval.from_unix_ns,
        time_unix_nano: interval.to_unix_ns,
        count: buckets.count,
        sum: Some(buckets.sum),
        scale: buckets.scale,
        zero_count: buckets.zeros,
        positive: Some(proto::Buckets { offset: buckets.offset, bucket_counts: buckets.counts }),
        exemplars: point.exemplars.iter().map(exemplar).collect(),
        min: buckets.min,
        max: buckets.max,
    }
}
