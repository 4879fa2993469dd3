//! The exposed bytes. That Prometheus reads them is tested with Prometheus itself, by the program's tests.

use prost::Message as _;

use super::protobuf::MetricFamily;
use super::*;
use crate::model::Number;

fn times(values: &[u64]) -> Metric {
    let mut histogram = Histogram::new();
    for ns in values {
        histogram.record(*ns);
    }
    let attributes = vec![("error.type".into(), Value::from("a \"b\"\\\nc"))];
    Metric::new(
        "http.client.request.duration",
        "s",
        "Times.",
        Data::times(vec![MetricPoint::new(attributes, histogram)]),
    )
}

#[test]
fn text_has_names_units_and_labels_as_prometheus_writes_them() {
    let metrics = [
        Metric::new(
            "brunt.wire_in",
            "By",
            "Bytes\nreceived.",
            Data::counter(vec![MetricPoint::new(vec![], Number::Whole(7))]),
        ),
        Metric::new("brunt.busiest_worker_cpu", "1", "", Data::Gauge(vec![MetricPoint::new(vec![], 0.5)])),
        Metric::new(
            "brunt.own.left-over",
            "{eur}",
            "",
            Data::Sum { monotonic: false, points: vec![MetricPoint::new(vec![], Number::Real(-1.5))] },
        ),
    ];
    let expected = "# HELP target_info What run this is.\n# TYPE target_info gauge\n\
                    target_info{service_name=\"brunt\"} 1\n\
                    # HELP brunt_wire_in_bytes_total Bytes\\nreceived.\n# TYPE brunt_wire_in_bytes_total counter\n\
                    brunt_wire_in_bytes_total 7\n\
                    # HELP brunt_busiest_worker_cpu_ratio \n# TYPE brunt_busiest_worker_cpu_ratio gauge\n\
                    brunt_busiest_worker_cpu_ratio 0.5\n\
                    # HELP brunt_own_left_over \n# TYPE brunt_own_left_over gauge\nbrunt_own_left_over -1.5\n";
    assert_eq!(text(&vec![("service.name".into(), "brunt".into())], &metrics), expected);
}

#[test]
fn classic_buckets_count_what_is_at_most_their_bound() {
    let text = text(&vec![], &[times(&[90_000, 99_000, 260_000, 400_000_000_000])]);
    let bucket = |bound: &str| {
        let line = text.lines().find(|line| line.contains(&format!("le=\"{bound}\"")));
        line.unwrap_or_else(|| panic!("{text}")).rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()
    };
    assert_eq!(["0.0001", "0.00025", "0.0005", "250", "+Inf"].map(bucket), [2, 2, 3, 3, 4]);
    assert!(text.contains(r#"http_client_request_duration_seconds_count{error_type="a \"b\"\\\nc"} 4"#), "{text}");
}

#[test]
fn two_figures_never_share_a_name() {
    let gauge = |name: &'static str| Metric::new(name, "", "", Data::Gauge(vec![MetricPoint::new(vec![], 1.0)]));
    let metrics = [gauge("brunt.own.a-b"), gauge("brunt.own.a_b"), gauge("brunt.own.a b")];
    let names: Vec<_> = families(&metrics).into_iter().map(|family| family.name).collect();
    assert_eq!(names, ["brunt_own_a_b", "brunt_own_a_b_2", "brunt_own_a_b_3"]);
}

#[test]
fn native_buckets_add_up_to_what_was_counted() {
    let values: Vec<u64> = (1..2000).map(|n| n * n * 37).collect();
    let bytes = protobuf(&vec![], &[times(&values)]);
    let mut rest = &bytes[..];
    let mut families = Vec::new();
    while !rest.is_empty() {
        families.push(MetricFamily::decode_length_delimited(&mut rest).unwrap());
    }
    let [_, family] = &families[..] else { panic!("{families:?}") };
    assert_eq!(family.name.as_deref(), Some("http_client_request_duration_seconds"));
    let native = family.metric[0].histogram.as_ref().unwrap();
    let (mut at, mut sum) = (0, 0);
    for delta in &native.positive_delta {
        at += delta;
        assert!(at >= 0);
        sum += at;
    }
    assert_eq!((sum as u64, native.sample_count), (1999, Some(1999)));
    let [span] = &native.positive_span[..] else { panic!("{native:?}") };
    assert_eq!(span.length, Some(native.positive_delta.len() as u32));
    // (base^(i-1), base^i], by Prometheus' native histograms.
    let base = 2_f64.powf(2_f64.powi(-native.schema.unwrap()));
    let high = base.powi(span.offset.unwrap());
    assert!(high / base < 37e-9 && 37e-9 <= high, "37 ns is in ({}, {high}]", high / base);
}

#[test]
fn protobuf_is_for_those_who_prefer_it() {
    let native = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,\
                  application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
    assert!(prefers_protobuf(native));
    let last = "text/plain;version=0.0.4;q=0.6,\
                application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.5";
    assert!(!prefers_protobuf(last));
    assert!(!prefers_protobuf("*/*") && !prefers_protobuf("") && !prefers_protobuf("application/vnd.google.protobuf"));
}
