//! The protobuf format: `io.prometheus.client.MetricFamily` messages, each behind its length, with native histograms
//! (`prometheus/client_model`, `io/prometheus/client/metrics.proto`).

use brunt_record::SECOND_NS;
use brunt_record::histogram::Histogram;
use prost::Message;

use super::{Family, classic, families, info, labels};
use crate::exponential::Exponential;
use crate::model::{Attributes, Data, Exemplar, Metric};

/// The largest value that counts as 0, as in Prometheus' own clients.
const ZERO_THRESHOLD: f64 = 2.938_735_877_055_719e-39;

/// `io.prometheus.client.MetricFamily`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct MetricFamily {
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    #[prost(string, optional, tag = "2")]
    help: Option<String>,
    #[prost(int32, optional, tag = "3")]
    kind: Option<i32>,
    #[prost(message, repeated, tag = "4")]
    pub(super) metric: Vec<Sample>,
}

const COUNTER: i32 = 0;
const GAUGE: i32 = 1;
const HISTOGRAM: i32 = 4;

/// `Metric`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Sample {
    #[prost(message, repeated, tag = "1")]
    label: Vec<Label>,
    #[prost(message, optional, tag = "2")]
    gauge: Option<Number>,
    #[prost(message, optional, tag = "3")]
    counter: Option<Number>,
    #[prost(message, optional, tag = "7")]
    pub(super) histogram: Option<Native>,
}

/// `LabelPair`.
#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(string, optional, tag = "2")]
    value: Option<String>,
}

/// `Gauge` and `Counter`, which have their value in the same field.
#[derive(Clone, Copy, PartialEq, Message)]
struct Number {
    #[prost(double, optional, tag = "1")]
    value: Option<f64>,
}

/// `Histogram`, with classic and exponential buckets.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Native {
    #[prost(uint64, optional, tag = "1")]
    pub(super) sample_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    sample_sum: Option<f64>,
    #[prost(message, repeated, tag = "3")]
    bucket: Vec<Bucket>,
    #[prost(sint32, optional, tag = "5")]
    pub(super) schema: Option<i32>,
    #[prost(double, optional, tag = "6")]
    zero_threshold: Option<f64>,
    #[prost(uint64, optional, tag = "7")]
    zero_count: Option<u64>,
    #[prost(message, repeated, tag = "12")]
    pub(super) positive_span: Vec<Span>,
    #[prost(sint64, repeated, packed = "false", tag = "13")]
    pub(super) positive_delta: Vec<i64>,
}

/// `Bucket`.
#[derive(Clone, PartialEq, Message)]
struct Bucket {
    #[prost(uint64, optional, tag = "1")]
    cumulative_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    upper_bound: Option<f64>,
    #[prost(message, optional, tag = "3")]
    exemplar: Option<ExemplarOf>,
}

/// `Exemplar`.
#[derive(Clone, PartialEq, Message)]
struct ExemplarOf {
    #[prost(message, repeated, tag = "1")]
    label: Vec<Label>,
    #[prost(double, optional, tag = "2")]
    value: Option<f64>,
    #[prost(message, optional, tag = "3")]
    timestamp: Option<Timestamp>,
}

/// `google.protobuf.Timestamp`.
#[derive(Clone, Copy, PartialEq, Message)]
struct Timestamp {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

/// `BucketSpan`.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Span {
    #[prost(sint32, optional, tag = "1")]
    pub(super) offset: Option<i32>,
    #[prost(uint32, optional, tag = "2")]
    pub(super) length: Option<u32>,
}

/// The metrics and their resource as protobuf.
pub fn protobuf(resource: &Attributes, metrics: &[Metric]) -> Vec<u8> {
    let about = info(resource);
    let mut out = Vec::new();
    for family in families(std::slice::from_ref(&about)).iter().chain(&families(metrics)) {
        out.extend(of_family(family).encode_length_delimited_to_vec());
    }
    out
}

fn of_family(Family { name, metric }: &Family<'_>) -> MetricFamily {
    let gauge = |value| Some(Number { value: Some(value) });
    let with = |attributes: &Attributes| Sample {
        label: labels(attributes).map(|(name, value)| Label { name: Some(name), value: Some(value) }).collect(),
        ..Sample::default()
    };
    let (kind, samples) = match &metric.data {
        Data::Sum { monotonic: true, points } => {
            let sample = |point: &crate::MetricPoint<crate::Number>| Sample {
                counter: gauge(point.value.real()),
                ..with(&point.attributes)
            };
            (COUNTER, points.iter().map(sample).collect())
        }
        Data::Sum { monotonic: false, points } => {
            let sample = |point: &crate::MetricPoint<crate::Number>| Sample {
                gauge: gauge(point.value.real()),
                ..with(&point.attributes)
            };
            (GAUGE, points.iter().map(sample).collect())
        }
        Data::Gauge(points) => {
            let sample =
                |point: &crate::MetricPoint<f64>| Sample { gauge: gauge(point.value), ..with(&point.attributes) };
            (GAUGE, points.iter().map(sample).collect())
        }
        Data::Distribution { factor, points } => {
            let sample = |point: &crate::MetricPoint<_>| Sample {
                histogram: Some(native(point, *factor)),
                ..with(&point.attributes)
            };
            (HISTOGRAM, points.iter().map(sample).collect())
        }
    };
    MetricFamily {
        name: Some(name.clone()),
        help: Some(metric.description.clone().into_owned()),
        kind: Some(kind),
        metric: samples,
    }
}

fn exemplar(of: &Exemplar, factor: f64) -> ExemplarOf {
    let label = Label { name: Some("trace_id".to_owned()), value: Some(of.trace_id.clone()) };
    let at = of.at_unix_ns;
    let timestamp = Timestamp { seconds: (at / SECOND_NS) as i64, nanos: (at % SECOND_NS) as i32 };
    ExemplarOf { label: vec![label], value: Some(of.value as f64 * factor), timestamp: Some(timestamp) }
}

fn native(point: &crate::MetricPoint<Histogram>, factor: f64) -> Native {
    let histogram = &point.value;
    let buckets = Exponential::new(histogram, factor);
    let mut above = 0.0;
    let bucket = |(bound, n)| {
        let from = std::mem::replace(&mut above, bound);
        // Each bucket has room for one exemplar: the newest.
        let of = point.exemplars.iter().rev().find(|of| (from..=bound).contains(&(of.value as f64 * factor)));
        Bucket { cumulative_count: Some(n), upper_bound: Some(bound), exemplar: of.map(|of| exemplar(of, factor)) }
    };
    // Bucket i is OpenTelemetry's bucket i - 1.
    let span = Span { offset: Some(buckets.offset + 1), length: Some(buckets.counts.len() as u32) };
    let before = std::iter::once(0).chain(buckets.counts.iter().copied());
    Native {
        sample_count: Some(buckets.count),
        sample_sum: Some(buckets.sum),
        bucket: classic(histogram, factor).into_iter().map(bucket).collect(),
        schema: Some(buckets.scale),
        zero_threshold: Some(ZERO_THRESHOLD),
        zero_count: Some(buckets.zeros),
        positive_delta: buckets.counts.iter().zip(before).map(|(n, before)| *n as i64 - before as i64).collect(),
        positive_span: vec![span],
    }
}
