//! What a controller sends of a run by several agents.

use std::time::Duration;

use brunt_testbed::server::{Delay, Server, ServerConfig};

use crate::bus::{Bus, closes};
use crate::collector::Collector;
use crate::program::Directory;
use crate::prometheus::Prometheus;
use crate::receiver::Receiver;

/// How wide a bucket is at most, by the docs.
const WIDEST: f64 = 1.09;

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn percentiles_of_three_agents_are_those_of_the_report() {
    let bus = Bus::start();
    let server = Server::start(ServerConfig {
        delay: Delay::Exponential { mean: Duration::from_millis(4) },
        ..ServerConfig::default()
    })
    .unwrap();
    let _agents = bus.agents(3);
    let receiver = Receiver::start();
    let report = bus.run(&["-r", "600", "-d", "3s", "--otlp", &receiver.url, &server.url()]);
    closes(&report);
    let metrics = receiver.metrics();
    metrics.distribution("http.client.request.duration", |_| true).agree_with(&report["times"]["response"]);
    metrics.distribution("brunt.service.duration", |_| true).agree_with(&report["times"]["service"]);
    assert_eq!(metrics.sum("brunt.due", |_| true), report["outcomes"]["due"].as_u64().unwrap());
    for agent in report["agents"]["list"].as_array().unwrap() {
        let of =
            |attributes: &std::collections::BTreeMap<String, String>| attributes["brunt.agent.name"] == agent["name"];
        assert_eq!(metrics.sum("brunt.agent.answered", of), agent["answered"].as_u64().unwrap(), "{}", agent["name"]);
    }
    assert_eq!(report["deliveries"][0]["seconds_missed"], 0, "{:#}", report["deliveries"]);
}

/// The official collector takes in what brunt sends, and what it hands on has the percentiles of the report.
#[test]
#[ignore = "needs nats-server and go: make test installs them"]
fn a_real_collector_hands_on_the_percentiles_of_three_agents() {
    let (bus, dir) = (Bus::start(), Directory::new());
    let server = Server::start(ServerConfig {
        delay: Delay::Exponential { mean: Duration::from_millis(4) },
        ..ServerConfig::default()
    })
    .unwrap();
    let _agents = bus.agents(3);
    let collector = Collector::start(&dir);
    let args = ["-r", "600", "-d", "3s", "--trace", "20%", "--otlp", &collector.url, &server.url()];
    let report = bus.run(&args);
    closes(&report);
    let delivery = &report["deliveries"][0];
    assert_eq!(delivery["seconds_missed"], 0, "{delivery:#}");
    assert!(delivery["events_missed"].is_null() && delivery["problem"].is_null(), "{delivery:#}");
    let metrics = collector.metrics();
    metrics.distribution("http.client.request.duration", |_| true).agree_with(&report["times"]["response"]);
    assert_eq!(metrics.sum("brunt.due", |_| true), report["outcomes"]["due"].as_u64().unwrap());
    let traces = metrics.traces("http.client.request.duration");
    let slowest = report["outcomes"]["slowest"].as_array().unwrap();
    assert!(slowest.iter().all(|call| traces.contains(call["trace_id"].as_str().unwrap())), "{traces:?}");
}

/// A real Prometheus adds up what three agents did, and finds the report's percentiles in it, and calls by which traces are found.
#[test]
#[ignore = "needs nats-server and prometheus: make test installs them"]
fn a_real_prometheus_finds_the_percentiles_of_three_agents() {
    let (bus, dir) = (Bus::start(), Directory::new());
    let server = Server::start(ServerConfig {
        delay: Delay::Exponential { mean: Duration::from_millis(4) },
        ..ServerConfig::default()
    })
    .unwrap();
    let _agents = bus.agents(3);
    let metrics = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let prometheus = Prometheus::start(&dir, &metrics);
    let args = ["-r", "600", "-d", "5s", "--trace", "20%", "--prometheus", &metrics, "--prometheus-linger", "1m"];
    let report = bus.run(&[&args[..], &[&server.url()]].concat());
    closes(&report);
    let response = &report["times"]["response"];
    let count = response["count"].as_f64().unwrap();
    let all = "sum(http_client_request_duration_seconds{brunt_phase!=\"warmup\"})";
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
    // The last scrape was a moment ago; after it the target is gone, and its series with it.
    let mut times = (0..60).map(|step| now - f64::from(step) / 4.0);
    let at = times.find(|at| prometheus.number(&format!("histogram_count({all})"), *at) == Some(count));
    let at = at.unwrap_or_else(|| panic!("no scrape has all {count} calls"));
    for (name, q) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
        let quantiles = response["quantiles"].as_array().unwrap();
        let of = quantiles.iter().find(|quantile| quantile["name"] == name).unwrap();
        let reported = of["value_ns"].as_f64().unwrap() / 1e9;
        let queried = prometheus.number(&format!("histogram_quantile({q}, {all})"), at).unwrap();
        let is_beside = (reported / WIDEST..reported * WIDEST).contains(&queried);
        assert!(is_beside, "{name}: {reported} reported, {queried} queried");
    }
    let due = prometheus.number("sum(brunt_due_total{brunt_phase!=\"warmup\"})", at);
    assert_eq!(due, report["outcomes"]["due"].as_f64());
    let (from, to) = (now - 60.0, now + 60.0);
    let path = format!("/api/v1/query_exemplars?query=http_client_request_duration_seconds&start={from}&end={to}");
    let found = prometheus.get(&path);
    let ids: Vec<_> = found[0]["exemplars"].as_array().unwrap().iter().map(|one| &one["labels"]["trace_id"]).collect();
    assert!(!ids.is_empty() && ids.iter().all(|id| id.as_str().unwrap().len() == 32), "{found:#}");
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn the_controller_watches_whoever_carries_the_run_out() {
    let bus = Bus::start();
    let server = Server::start(ServerConfig::default()).unwrap();
    let _agents = bus.agents(2);
    let page = "queue_depth 7\n";
    let page = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{page}", page.len());
    let exporter = Receiver::with(move |_, _| Some(page.clone()));
    let at = exporter.url.replace("http://", "http://me:hunter2@");
    let watch = format!("queue={at}/metrics#queue_depth");
    let threshold = ["--threshold", "watch.queue:max==7"];
    let report = bus.run(&[&["-r", "300", "-d", "3s", "--watch", &watch], &threshold[..], &[&server.url()]].concat());
    closes(&report);
    let figure = &report["watched"][0];
    assert_eq!((figure["name"].as_str(), figure["mean"].as_f64()), (Some("queue"), Some(7.0)), "{figure:#}");
    assert!(report["thresholds"].as_array().unwrap().iter().all(|threshold| threshold["held"] == true));
    assert!(exporter.requests().iter().all(|request| request.head.contains("authorization: Basic")));
    assert!(!report.to_string().contains("hunter2"));
}
