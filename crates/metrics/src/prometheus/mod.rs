//! Totals in Prometheus' exposition formats: text, and protobuf with native histograms.
//!
//! The names are those that OpenTelemetry's collector gives metrics for Prometheus: `http.client.request.duration` in
//! `s` is `http_client_request_duration_seconds`, and a counter ends in `_total`. So a dashboard works with both.

mod protobuf;
pub mod read;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeSet;

use brunt_record::histogram::Histogram;

use crate::model::{Attributes, Data, Metric, MetricPoint, Value};

pub use protobuf::protobuf;
pub use text::text;

/// The media type of [`text`].
pub const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The media type of [`protobuf`].
pub const PROTOBUF: &str =
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";

/// Upper bounds of the classic buckets of times, in seconds.
const TIME_BOUNDS: [f64; 20] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0,
    100.0, 250.0,
];
/// Upper bounds of the classic buckets of anything else, in its unit.
const OTHER_BOUNDS: [f64; 19] =
    [0.001, 0.01, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1e3, 2.5e3, 5e3, 1e4, 1e6];

/// Whether a request with this `Accept` prefers [`PROTOBUF`] (RFC 9110, section 12.5.1).
pub fn prefers_protobuf(accept: &str) -> bool {
    let quality = |is: fn(&str) -> bool| {
        let ranges = accept.split(',').filter(|range| is(range));
        let quality = |range: &str| {
            let given = range.split(';').find_map(|part| part.trim().strip_prefix("q=").map(str::parse::<f64>));
            given.map_or(1.0, |quality| quality.unwrap_or(0.0))
        };
        ranges.map(quality).fold(0.0, f64::max)
    };
    let protobuf = quality(|range| {
        range.contains("application/vnd.google.protobuf")
            && range.contains("io.prometheus.client.MetricFamily")
            && range.contains("delimited")
    });
    protobuf > 0.0 && protobuf >= quality(|range| !range.contains("protobuf") && range.contains("text/plain"))
}

/// A metric under its name in Prometheus.
struct Family<'a> {
    name: String,
    metric: &'a Metric,
}

/// The metrics under their names, no two under one name.
fn families(metrics: &[Metric]) -> Vec<Family<'_>> {
    let mut taken = BTreeSet::new();
    let mut families = Vec::with_capacity(metrics.len());
    for metric in metrics {
        let plain = name_of(metric);
        let mut name = plain.clone();
        let mut number = 1;
        while !taken.insert(name.clone()) {
            number += 1;
            name = format!("{plain}_{number}");
        }
        families.push(Family { name, metric });
    }
    families
}

fn name_of(metric: &Metric) -> String {
    let mut name = identifier(&metric.name);
    let is_gauge = matches!(metric.data, Data::Gauge(_));
    let unit = match &*metric.unit {
        "s" => "_seconds",
        "By" => "_bytes",
        "1" if is_gauge => "_ratio",
        _ => "",
    };
    if !name.ends_with(unit) {
        name.push_str(unit);
    }
    if matches!(metric.data, Data::Sum { monotonic: true, .. }) {
        name.push_str("_total");
    }
    name
}

/// A name of letters, digits and underscores that does not begin with a digit.
fn identifier(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if plain.starts_with(|c: char| c.is_ascii_digit()) { format!("_{plain}") } else { plain }
}

/// Names and values of labels.
fn labels(attributes: &Attributes) -> impl Iterator<Item = (String, String)> {
    attributes.iter().map(|(key, value)| {
        let value = match value {
            Value::Text(text) => text.clone().into_owned(),
            Value::Whole(n) => n.to_string(),
        };
        (identifier(key), value)
    })
}

/// The metric `target_info`, whose labels are the attributes of the resource.
fn info(resource: &Attributes) -> Metric {
    let point = MetricPoint::new(resource.clone(), 1.0);
    Metric::new("target_info", "", "What run this is.", Data::Gauge(vec![point]))
}

/// The number of values up to each bound, to three digits, with the bound in the metric's unit.
fn classic(histogram: &Histogram, factor: f64) -> Vec<(f64, u64)> {
    let bounds: &[f64] = if factor == 1e-9 { &TIME_BOUNDS } else { &OTHER_BOUNDS };
    let most = histogram.max().unwrap_or(0);
    let mut values = histogram.values().map(|(value, n)| (value.min(most) as f64 * factor, n)).peekable();
    let mut seen = 0;
    let up_to = |bound: &f64| {
        while let Some((_, n)) = values.next_if(|(value, _)| value <= bound) {
            seen += n;
        }
        (*bound, seen)
    };
    bounds.iter().map(up_to).collect()
}

/// The sum of all values, in the metric's unit.
fn sum_of(histogram: &Histogram, factor: f64) -> f64 {
    histogram.mean().unwrap_or(0.0) * histogram.count() as f64 * factor
}
