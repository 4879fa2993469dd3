//! The text format (<https://prometheus.io/docs/instrumenting/exposition_formats/>), version 0.0.4.

use std::fmt::Write as _;

use super::{Family, classic, families, info, labels, sum_of};
use crate::model::{Attributes, Data, Metric};

/// The metrics and their resource as text.
pub fn text(resource: &Attributes, metrics: &[Metric]) -> String {
    let mut out = String::new();
    let about = info(resource);
    for family in families(std::slice::from_ref(&about)).iter().chain(&families(metrics)) {
        write(&mut out, family);
    }
    out
}

fn write(out: &mut String, Family { name, metric }: &Family<'_>) {
    let kind = match &metric.data {
        Data::Sum { monotonic: true, .. } => "counter",
        Data::Sum { monotonic: false, .. } | Data::Gauge(_) => "gauge",
        Data::Distribution { .. } => "histogram",
    };
    // Writing to a String cannot fail, here and below.
    let help = metric.description.replace('\\', r"\\").replace('\n', r"\n");
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    match &metric.data {
        Data::Sum { points, .. } => {
            for point in points {
                sample(out, name, &in_quotes(&point.attributes), point.value.real());
            }
        }
        Data::Gauge(points) => {
            for point in points {
                sample(out, name, &in_quotes(&point.attributes), point.value);
            }
        }
        Data::Distribution { factor, points } => {
            for point in points {
                let (labels, count) = (in_quotes(&point.attributes), point.value.count() as f64);
                let bucket = format!("{name}_bucket");
                let with = |bound: &str| {
                    let separator = if labels.is_empty() { "" } else { "," };
                    format!("{labels}{separator}le=\"{bound}\"")
                };
                for (bound, n) in classic(&point.value, *factor) {
                    sample(out, &bucket, &with(&bound.to_string()), n as f64);
                }
                sample(out, &bucket, &with("+Inf"), count);
                sample(out, &format!("{name}_sum"), &labels, sum_of(&point.value, *factor));
                sample(out, &format!("{name}_count"), &labels, count);
            }
        }
    }
}

fn sample(out: &mut String, name: &str, labels: &str, value: f64) {
    let (open, close) = if labels.is_empty() { ("", "") } else { ("{", "}") };
    let _ = writeln!(out, "{name}{open}{labels}{close} {value}");
}

/// Labels with their values in quotes.
fn in_quotes(attributes: &Attributes) -> String {
    let label = |(name, value): (String, String)| {
        let value = value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
        format!("{name}=\"{value}\"")
    };
    labels(attributes).map(label).collect::<Vec<_>>().join(",")
}
