//! A receiver of OTLP over HTTP, which reads requests by the code that is generated from the official `.proto` files.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::spawn;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::{Metric, metric, number_data_point};
use prost::Message as _;
use serde_json::Value;

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Request {
    /// Request line and fields.
    pub head: String,
    pub body: Vec<u8>,
}

/// What a receiver does with the request of a number, from 0: the whole answer, or nothing at all.
pub type Answer = dyn Fn(usize, &Request) -> Option<String> + Send + Sync;

/// A receiver that this process serves.
pub struct Receiver {
    pub url: String,
    requests: Arc<Mutex<Vec<(Request, bool)>>>,
}

/// An answer with this status and these fields.
#[expect(clippy::unnecessary_wraps, reason = "an answer may be nothing at all")]
pub fn status(status: &str) -> Option<String> {
    Some(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n"))
}

impl Receiver {
    /// One that takes everything in.
    pub fn start() -> Self {
        Self::with(|_, _| status("200 OK"))
    }

    /// One that answers so.
    pub fn with(answer: impl Fn(usize, &Request) -> Option<String> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<_>>>::default();
        let (kept, answer) = (Arc::clone(&requests), Arc::<Answer>::from(Box::new(answer) as Box<Answer>));
        spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                spawn(move || serve(stream, &kept, &*answer));
            }
        });
        Self { url, requests }
    }

    /// All requests.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().iter().map(|(request, _)| request.clone()).collect()
    }

    /// The metrics of requests that it took in.
    pub fn metrics(&self) -> Metrics {
        let taken = self.requests.lock().unwrap();
        let taken = taken.iter().filter(|(request, taken)| *taken && request.head.contains("/v1/metrics "));
        Metrics(taken.map(|(request, _)| ExportMetricsServiceRequest::decode(&request.body[..]).unwrap()).collect())
    }

    /// The events of requests that it took in.
    pub fn events(&self) -> Vec<LogRecord> {
        let taken = self.requests.lock().unwrap();
        let taken = taken.iter().filter(|(request, taken)| *taken && request.head.contains("/v1/logs "));
        let requests = taken.map(|(request, _)| ExportLogsServiceRequest::decode(&request.body[..]).unwrap());
        let resources = requests.flat_map(|request| request.resource_logs);
        resources.flat_map(|resource| resource.scope_logs).flat_map(|scope| scope.log_records).collect()
    }
}

fn serve(stream: TcpStream, requests: &Mutex<Vec<(Request, bool)>>, answer: &Answer) {
    let mut out = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let length =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body).unwrap();
        let request = Request { head, body };
        let answered = {
            let mut all = requests.lock().unwrap();
            let answered = answer(all.len(), &request);
            let is_taken = answered.as_ref().is_some_and(|text| text.starts_with("HTTP/1.1 200"));
            all.push((request, is_taken));
            answered
        };
        // What never answers keeps the connection.
        if answered.is_some_and(|text| out.write_all(text.as_bytes()).is_err()) {
            return;
        }
    }
}

/// Requests, in their order.
pub struct Metrics(pub Vec<ExportMetricsServiceRequest>);

/// Attributes as text.
pub fn attributes(of: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |pair: &KeyValue| match pair.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => (pair.key.clone(), text.clone()),
        Some(any_value::Value::IntValue(n)) => (pair.key.clone(), n.to_string()),
        other => panic!("{other:?}"),
    };
    of.iter().map(text).collect()
}

/// The result has these phases.
fn is_of_result(attributes: &BTreeMap<String, String>) -> bool {
    ["measured", "drain"].contains(&attributes["brunt.phase"].as_str())
}

impl Metrics {
    pub fn resource(&self) -> BTreeMap<String, String> {
        attributes(&self.0[0].resource_metrics[0].resource.as_ref().unwrap().attributes)
    }

    fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Metric> {
        let resources = self.0.iter().flat_map(|request| &request.resource_metrics);
        let all = resources.flat_map(|resource| &resource.scope_metrics).flat_map(|scope| &scope.metrics);
        all.filter(move |metric| metric.name == name)
    }

    /// What the differences of a counter add up to, over what the result is of and where `keep` holds.
    pub fn sum(&self, name: &str, keep: impl Fn(&BTreeMap<String, String>) -> bool) -> u64 {
        let mut sum = 0;
        for metric in self.named(name) {
            let Some(metric::Data::Sum(data)) = &metric.data else { panic!("{metric:?}") };
            assert_eq!((data.aggregation_temporality, data.is_monotonic), (1, true), "{metric:?}");
            for point in &data.data_points {
                let of = attributes(&point.attributes);
                let Some(number_data_point::Value::AsInt(n)) = point.value else { panic!("{point:?}") };
                sum += if is_of_result(&of) && keep(&of) { n as u64 } else { 0 };
            }
        }
        sum
    }

    /// The traces of the calls that stand beside a distribution.
    pub fn traces(&self, name: &str) -> BTreeSet<String> {
        let mut ids = BTreeSet::new();
        for metric in self.named(name) {
            let Some(metric::Data::ExponentialHistogram(data)) = &metric.data else { panic!("{metric:?}") };
            for exemplar in data.data_points.iter().flat_map(|point| &point.exemplars) {
                let id = <[u8; 16]>::try_from(&exemplar.trace_id[..]).unwrap();
                ids.insert(format!("{:032x}", u128::from_be_bytes(id)));
            }
        }
        ids
    }

    /// What the differences of a distribution add up to, at the coarsest scale among them.
    pub fn distribution(&self, name: &str, keep: impl Fn(&BTreeMap<String, String>) -> bool) -> Buckets {
        let mut points = Vec::new();
        for metric in self.named(name) {
            let Some(metric::Data::ExponentialHistogram(data)) = &metric.data else { panic!("{metric:?}") };
            assert_eq!(data.aggregation_temporality, 1, "{metric:?}");
            points.extend(data.data_points.iter().filter(|point| {
                let of = attributes(&point.attributes);
                is_of_result(&of) && keep(&of)
            }));
        }
        let scale = points.iter().map(|point| point.scale).min().unwrap_or(0);
        let mut buckets = Buckets { scale, ..Buckets::default() };
        for point in points {
            let positive = point.positive.clone().unwrap_or_default();
            assert_eq!(point.count, point.zero_count + positive.bucket_counts.iter().sum::<u64>());
            buckets.zeros += point.zero_count;
            for (place, n) in positive.bucket_counts.iter().enumerate() {
                // By the text of the data model: two buckets become one with each step to a coarser scale.
                let index = (positive.offset + place as i32) >> (point.scale - scale);
                *buckets.counts.entry(index).or_default() += n;
            }
        }
        buckets
    }
}

/// A distribution in exponential buckets.
#[derive(Debug, Default)]
pub struct Buckets {
    scale: i32,
    zeros: u64,
    counts: BTreeMap<i32, u64>,
}

impl Buckets {
    pub fn count(&self) -> u64 {
        self.zeros + self.counts.values().sum::<u64>()
    }

    /// The bounds of the bucket in which a quantile falls, in seconds.
    pub fn quantile(&self, q: f64) -> (f64, f64) {
        let rank = ((q * self.count() as f64).ceil() as u64).max(1);
        let mut seen = self.zeros;
        for (index, n) in &self.counts {
            seen += n;
            if seen >= rank {
                let base = 2_f64.powf(2_f64.powi(-self.scale));
                return (base.powi(*index), base.powi(*index + 1));
            }
        }
        panic!("{self:?} has no {q}");
    }

    /// Asserts that each percentile of a report lies in the bucket in which it falls here, or in one beside it: brunt knows percentiles of
    /// the whole run, and whoever adds seconds up may put one call elsewhere.
    #[track_caller]
    pub fn agree_with(&self, times: &Value) {
        assert_eq!(times["count"], self.count(), "{times:#}");
        let base = 2_f64.powf(2_f64.powi(-self.scale));
        for (name, q) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
            let quantiles = times["quantiles"].as_array().unwrap();
            let of = quantiles.iter().find(|quantile| quantile["name"] == name).unwrap_or_else(|| panic!("{times:#}"));
            let reported = of["value_ns"].as_u64().unwrap();
            let (low, high) = self.quantile(q);
            let seconds = reported as f64 / 1e9;
            assert!(
                low / base <= seconds && seconds <= high * base,
                "{name}: {seconds} reported, ({low}, {high}] received"
            );
        }
    }
}
